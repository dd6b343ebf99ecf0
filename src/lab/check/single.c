/* Every single event that is possible at a node. */
#include "lab/check/system.h"

/* A node while its events are tried. */
struct scene {
    struct system *system;
    const struct local *local;
    uint32_t local_number;
    const uint32_t *inbox;
    uint32_t count, flags;
    uint32_t rest[NODE_INBOX_MAX + 1]; /* room for another inbox */
};

static struct trial trial_of(struct scene *scene, enum check_move_type type, cv_pid peer) {
    return (struct trial){.outcome = {.peer = (uint8_t)peer},
                          .move = {.type = (uint8_t)type, .peer = (uint8_t)peer},
                          .inbox = scene->inbox,
                          .inbox_count = scene->count,
                          .first_send = (uint32_t)scene->system->drafts.sends};
}

/* A copy of the local state, to be changed. */
static struct local *copy_local(struct scene *scene) {
    struct local *copy = local_scratch(scene->system, 0);
    memcpy(copy, scene->local, scene->system->layout[scene->local->self].size);
    return copy;
}

/* Takes the message at this index out of the inbox of the trial. */
static void take(struct scene *scene, struct trial *trial, uint32_t at) {
    for (uint32_t i = 0, kept = 0; i < scene->count; i++)
        if (i != at) scene->rest[kept++] = scene->inbox[i];
    trial->inbox = scene->rest;
    trial->inbox_count = scene->count - 1;
    trial->move.message = scene->inbox[at];
}

static void tell_others(struct scene *scene, uint16_t kind) {
    const struct check_model *model = scene->system->model;
    if (!model->detector) return;
    uint32_t notice = system_notice(scene->system, kind, scene->local->self);
    for (cv_pid p = 1; p <= model->processes; p++)
        if (p != scene->local->self) draft_send(scene->system, p, notice);
}

/* ---- Messages and notices ---- */

static void step_with(struct scene *scene, uint32_t at, struct trial trial) {
    struct message_text text;
    message_get(scene->system, scene->inbox[at], &text);
    struct cv_event event = {.type = CV_RECV,
                             .from = text.head.from,
                             .kind = text.head.kind,
                             .size = text.head.size,
                             .body = text.body};
    copy_local(scene);
    local_step(scene->system, &trial, &event);
}

/* What a process does with a message depends on its local state alone, not on the rest of the
 * inbox, so it is computed once and kept. */
static const struct outcomes *reaction(struct scene *scene, uint32_t at, struct trial trial) {
    struct system *system = scene->system;
    struct drafts *d = &system->drafts;
    uint64_t key = pair_of(scene->local_number, scene->inbox[at]);
    bool is_new;
    if (pairs_crowded(&system->reactions)) {
        pairs_make_room(&system->reactions, true);
        pairs_put_back(&system->reactions, 0, 1);
    }
    uint32_t number =
        pairs_put(&system->reactions, &system->reaction_block, key, pair_hash(key), &is_new);
    if (is_new) {
        size_t count = d->count, sends = d->sends;
        trial.first_send = (uint32_t)sends;
        system->reacting = true;
        step_with(scene, at, trial);
        system->reacting = false;
        system->reactions.note[number] = draft_publish(system, count);
        d->count = count, d->sends = sends;
    }
    return system_words(system, system->reactions.note[number]);
}

static void receive(struct scene *scene, uint32_t at) {
    struct system *system = scene->system;
    struct trial trial = trial_of(scene, MOVE_RECEIVE, message_head(system, scene->inbox[at]).from);
    take(scene, &trial, at);
    trial.outcome.flags = OUT_INVISIBLE;
    if (system->explaining) {
        step_with(scene, at, trial);
        return;
    }
    const struct outcomes *reactions = reaction(scene, at, trial);
    for (uint32_t i = 0; i < reactions->count; i++) {
        const struct outcome *outcome = &reactions->of[i];
        struct draft draft = {*outcome, (uint32_t)system->drafts.sends, trial.move, 0};
        draft.outcome.node =
            node_put(system, scene->local->self, outcome->node, trial.inbox, trial.inbox_count);
        for (uint32_t s = 0; s < outcome->sends; s++) {
            struct sending send = outcome_sends(system, outcome)[s];
            draft_send(system, send.to, send.message);
        }
        draft_add(&system->drafts, draft);
    }
}

/* The algorithm acts on a suspicion, or the application when the algorithm does not use detectors.
 */
static void hear(struct system *system, struct trial *trial, struct local *local, bool down,
                 cv_pid about) {
    struct cv_event event = {.type = down ? CV_DOWN : CV_UP, .arg = about};
    bool campaigns = down && local->flags & LOCAL_DECIDED && local->leader == about;
    local->suspects = down ? local->suspects | 1u << about : local->suspects & ~(1u << about);
    if (system->model->algorithm->traits & CV_USES_DETECTOR) {
        local_step(system, trial, &event);
    } else if (campaigns) {
        event = (struct cv_event){.type = CV_CALL, .arg = CV_CAMPAIGN};
        local_step(system, trial, &event);
    } else {
        draft_end(system, trial, local);
    }
}

static void notice(struct scene *scene, uint32_t at) {
    struct message message = message_head(scene->system, scene->inbox[at]);
    bool down = message.kind == KIND_DOWN;
    struct trial trial = trial_of(scene, down ? MOVE_SUSPECT : MOVE_TRUST, message.from);
    take(scene, &trial, at);
    trial.outcome.flags = OUT_INVISIBLE;
    hear(scene->system, &trial, copy_local(scene), down, message.from);
}

/* A message that vanishes without a step: the network loses it, its sender had not got rid of it
 * when it crashed, or its receiver is down. */
static void vanish(struct scene *scene, uint32_t at, enum check_move_type type, uint16_t flags,
                   enum budget budget) {
    struct message message = message_head(scene->system, scene->inbox[at]);
    struct trial trial = trial_of(scene, type, message.from);
    take(scene, &trial, at);
    trial.outcome.flags = flags;
    trial.outcome.budget = (uint8_t)budget;
    draft_end(scene->system, &trial, scene->local);
}

/* What a process has sent, and what has not arrived when it crashes, may never have left it.  Of a
 * queue the newest is lost first, until the process is back. */
static bool may_be_unsent(struct scene *scene, uint32_t at) {
    const struct check_model *model = scene->system->model;
    cv_pid from = message_head(scene->system, scene->inbox[at]).from;
    if (!model->crashes) return false;
    for (uint32_t i = at + 1; i < scene->count && model->fifo; i++) {
        struct message after = message_head(scene->system, scene->inbox[i]);
        if (after.from == from && after.kind < KIND_DOWN) return false;
    }
    return true;
}

/* Whether something of the same sender or subject has to come before it: an older notice, and in a
 * queue everything older.  So a process hears that a connection broke before it receives what was
 * sent over the next one. */
static bool is_behind(struct scene *scene, uint32_t at) {
    struct message message = message_head(scene->system, scene->inbox[at]);
    bool about = message.kind >= KIND_DOWN;
    if (!about && !scene->system->model->fifo) return false;
    for (uint32_t i = 0; i < at; i++) {
        struct message before = message_head(scene->system, scene->inbox[i]);
        if (before.from == message.from && (!about || before.kind >= KIND_DOWN)) return true;
    }
    return false;
}

static void try_inbox(struct scene *scene) {
    const struct check_model *model = scene->system->model;
    for (uint32_t i = 0; i < scene->count; i++) {
        bool alike = i && scene->inbox[i] == scene->inbox[i - 1];
        bool about = message_head(scene->system, scene->inbox[i]).kind >= KIND_DOWN;
        if (!about && model->losses && !alike) vanish(scene, i, MOVE_LOSE, OUT_BESIDE, FOR_LOSS);
        if (!about && may_be_unsent(scene, i) && (model->fifo || !alike))
            vanish(scene, i, MOVE_LOSE, OUT_BESIDE | OUT_UNSENT, NO_BUDGET);
        if (is_behind(scene, i) || (alike && !about)) continue;
        if (about)
            notice(scene, i);
        else if (scene->flags & NODE_DOWN)
            vanish(scene, i, MOVE_MISS, OUT_INVISIBLE, NO_BUDGET);
        else
            receive(scene, i);
    }
}

/* ---- Timers and the application ---- */

static void try_timers(struct scene *scene) {
    for (unsigned t = 0; t < CV_TIMERS_MAX; t++) {
        if (!(scene->local->timers & 1u << t)) continue;
        struct trial trial = trial_of(scene, MOVE_TIMEOUT, CV_NOBODY);
        struct cv_event event = {.type = CV_TIMEOUT, .arg = t};
        trial.move.arg = (uint8_t)t;
        trial.outcome.flags = scene->flags & NODE_QUIESCENT ? OUT_WHEN_QUIESCENT : OUT_LATE;
        trial.outcome.budget = FOR_TIMEOUT;
        copy_local(scene)->timers &= (uint8_t) ~(1u << t);
        local_step(scene->system, &trial, &event);
    }
}

static void call(struct scene *scene, enum check_move_type type, uint32_t what,
                 struct trial trial) {
    struct cv_event event = {.type = CV_CALL, .arg = what};
    trial.move.type = (uint8_t)type;
    local_step(scene->system, &trial, &event);
}

static void try_application(struct scene *scene) {
    const struct check_model *model = scene->system->model;
    const struct local *local = scene->local;
    struct trial trial = trial_of(scene, MOVE_ACQUIRE, CV_NOBODY);
    if (local->flags & LOCAL_PENDING) {
        copy_local(scene)->flags &= (uint8_t)~LOCAL_PENDING;
        trial.outcome.budget = FOR_CAMPAIGN;
        call(scene, MOVE_CAMPAIGN, CV_CAMPAIGN, trial);
    } else if (local->phase == APP_IDLE && local->entries) {
        struct local *copy = copy_local(scene);
        copy->phase = APP_WAITING;
        if (model->entries != CHECK_FOREVER) copy->entries--;
        call(scene, MOVE_ACQUIRE, CV_ACQUIRE, trial);
    } else if (local->phase == APP_INSIDE) {
        trial.outcome.flags = OUT_WRITES;
        trial.outcome.value = local->token;
        if (local->flags & LOCAL_SUPERSEDED) trial.outcome.flags |= OUT_SUPERSEDED;
        copy_local(scene)->phase = APP_LEAVING;
        call(scene, MOVE_RELEASE, CV_RELEASE, trial);
    }
}

/* ---- Faults ---- */

/* A process that is down keeps its saved prefix and its remaining entries. */
static void try_crash(struct scene *scene) {
    const struct check_model *model = scene->system->model;
    const struct local_layout *layout = &scene->system->layout[scene->local->self];
    struct trial trial = trial_of(scene, MOVE_CRASH, CV_NOBODY);
    uint32_t kept = 0;
    if (!model->crashes) return;
    struct local *copy = copy_local(scene);
    *copy = (struct local){
        .self = scene->local->self, .entries = scene->local->entries, .flags = LOCAL_DOWN};
    memset(local_state(copy), 0, layout->state_size);
    for (uint32_t i = 0; i < scene->count && !model->fifo; i++)
        if (message_head(scene->system, scene->inbox[i]).kind < KIND_DOWN)
            scene->rest[kept++] = scene->inbox[i];
    trial.inbox = scene->rest;
    trial.inbox_count = kept;
    trial.outcome.flags = OUT_CRASH;
    trial.outcome.budget = FOR_CRASH;
    tell_others(scene, KIND_DOWN);
    draft_end(scene->system, &trial, copy);
}

static void try_recovery(struct scene *scene) {
    const struct local_layout *layout = &scene->system->layout[scene->local->self];
    struct trial trial = trial_of(scene, MOVE_RECOVER, CV_NOBODY);
    struct cv_event event = {.type = CV_RESTART};
    struct local *copy = copy_local(scene);
    copy->flags = 0;
    if (layout->saved)
        memcpy(local_state(copy), (unsigned char *)copy + layout->saved, layout->durable);
    trial.outcome.flags = OUT_RECOVER;
    tell_others(scene, KIND_UP);
    local_step(scene->system, &trial, &event);
}

static bool awaits_notice(struct scene *scene, cv_pid about) {
    for (uint32_t i = 0; i < scene->count; i++) {
        struct message message = message_head(scene->system, scene->inbox[i]);
        if (message.kind >= KIND_DOWN && message.from == about) return true;
    }
    return false;
}

/* The detector suspects a live process, and corrects itself later. */
static void try_suspicions(struct scene *scene) {
    struct system *system = scene->system;
    const struct check_model *model = system->model;
    bool listens = model->algorithm->traits & CV_USES_DETECTOR;
    for (cv_pid p = 1; p <= model->processes && model->suspicions; p++) {
        bool follows = scene->local->flags & LOCAL_DECIDED && scene->local->leader == p;
        if (p == scene->local->self || scene->local->suspects & 1u << p || (!listens && !follows) ||
            awaits_notice(scene, p))
            continue;
        struct trial trial = trial_of(scene, MOVE_SUSPECT, p);
        uint32_t up = node_inbox_add(system, scene->inbox, scene->count,
                                     system_notice(system, KIND_UP, p), scene->rest);
        trial.inbox = scene->rest;
        trial.inbox_count = up;
        trial.outcome.flags = OUT_WRONG;
        trial.outcome.budget = FOR_SUSPICION;
        hear(system, &trial, copy_local(scene), true, p);
    }
}

/* ---- All of them ---- */

void single_drafts(struct system *system, uint32_t number) {
    struct node node;
    struct scene scene = {.system = system, .flags = node_flags(system, number)};
    _Alignas(8) unsigned char local[POOL_BYTES_MAX];
    node_get(system, number, &node);
    pool_get(&system->locals, node.local, local);
    scene.local = (const struct local *)(void *)local;
    scene.local_number = node.local;
    scene.inbox = node.inbox;
    scene.count = node.count;
    try_inbox(&scene);
    if (scene.flags & NODE_DOWN) {
        try_recovery(&scene);
    } else {
        try_timers(&scene);
        try_application(&scene);
        try_suspicions(&scene);
        try_crash(&scene);
    }
}
