/* The outcomes of a node, computed once and kept.
 *
 * With partial-order reduction, an invisible step (a message is received, and nothing is sent or
 * told) joins the next step of the process: until then it makes no difference when it happened,
 * because it commutes with every step of every other process (a right mover, after Lipton).  An
 * outcome is then any number of invisible steps and one visible step. */
#include "base/grow.h"
#include "lab/check/system.h"

/* ---- Drafts ---- */

void draft_send(struct system *system, uint32_t to, uint32_t message) {
    struct drafts *d = &system->drafts;
    d->send = grown(d->send, &d->send_room, d->sends + 1, sizeof *d->send);
    d->send[d->sends++] = (struct sending){to, message};
}

void draft_add(struct drafts *d, struct draft draft) {
    d->draft = grown(d->draft, &d->room, d->count + 1, sizeof *d->draft);
    draft.outcome.sends = (uint32_t)(d->sends - draft.first_send);
    d->draft[d->count++] = draft;
}

void draft_end(struct system *system, const struct trial *trial, const struct local *local) {
    struct drafts *d = &system->drafts;
    struct outcome outcome = trial->outcome;
    if (d->sends > trial->first_send) outcome.flags &= (uint16_t)~OUT_INVISIBLE;
    outcome.node = local_put(system, local);
    if (!system->reacting)
        outcome.node =
            node_put(system, local->self, outcome.node, trial->inbox, trial->inbox_count);
    draft_add(d, (struct draft){outcome, trial->first_send, trial->move, 0});
}

uint32_t draft_publish(struct system *system, size_t from) {
    struct drafts *d = &system->drafts;
    uint32_t count = (uint32_t)(d->count - from);
    size_t place = system->word_arena.used / 8;
    struct outcomes *kept =
        arena_extend(&system->word_arena, sizeof *kept + count * sizeof(struct outcome));
    kept->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct draft *draft = &d->draft[from + i];
        size_t bytes = draft->outcome.sends * sizeof(struct sending);
        kept->of[i] = draft->outcome;
        kept->of[i].at = (uint32_t)(system->word_arena.used / 8);
        cv_assert(system->word_arena.used / 8 < UINT32_MAX);
        void *to = arena_extend(&system->word_arena, bytes);
        if (bytes) memcpy(to, d->send + draft->first_send, bytes);
    }
    return (uint32_t)place;
}

static void forget_drafts(struct drafts *d) { d->count = d->sends = 0; }

static const struct outcomes *singles(struct system *system, uint32_t node) {
    struct node_info *info = node_info(system, node);
    if (!info->single) {
        struct drafts *d = &system->drafts;
        size_t count = d->count, sends = d->sends;
        single_drafts(system, node);
        info->single = draft_publish(system, count);
        d->count = count, d->sends = sends;
    }
    return system_words(system, info->single);
}

/* ---- Invisible steps ---- */

struct hidden { /* a node that is reached by invisible steps */
    uint32_t node;
    uint32_t from, outcome; /* the hidden node before it, and its outcome that led here */
};

struct hiding {
    struct hidden *at;
    size_t count, room;
};

static void hide(struct hiding *hiding, uint32_t node, uint32_t from, uint32_t outcome) {
    for (size_t i = 0; i < hiding->count; i++)
        if (hiding->at[i].node == node) return;
    hiding->at = grown(hiding->at, &hiding->room, hiding->count + 1, sizeof *hiding->at);
    hiding->at[hiding->count++] = (struct hidden){node, from, outcome};
}

/* Drafts an outcome of a hidden node. */
static void draft_behind(struct system *system, uint32_t hidden, uint32_t index,
                         const struct outcome *outcome) {
    struct drafts *d = &system->drafts;
    struct draft draft = {*outcome, (uint32_t)d->sends, {.message = index}, hidden};
    for (uint32_t i = 0; i < outcome->sends; i++) {
        struct sending send = outcome_sends(system, outcome)[i];
        draft_send(system, send.to, send.message);
    }
    draft_add(d, draft);
}

static void visit_hidden(struct system *system, struct hiding *hiding, uint32_t at) {
    uint32_t node = hiding->at[at].node;
    const struct outcomes *single = singles(system, node);
    for (uint32_t i = 0; i < single->count; i++) {
        const struct outcome *outcome = &single->of[i];
        if (outcome->flags & OUT_INVISIBLE)
            hide(hiding, outcome->node, at, i);
        else if (!(outcome->flags & OUT_BESIDE) || at == 0)
            draft_behind(system, at, i, outcome);
    }
    if (at == 0 || !(node_flags(system, node) & NODE_QUIESCENT)) return;
    node_info(system, hiding->at[0].node)->flags |= NODE_SETTLES;
    struct outcome settled = {.node = node, .flags = OUT_SETTLES};
    draft_behind(system, at, 0, &settled);
}

static bool alike(const struct drafts *d, const struct draft *a, const struct draft *b) {
    const struct outcome *x = &a->outcome, *y = &b->outcome;
    return x->node == y->node && x->flags == y->flags && x->budget == y->budget &&
           x->peer == y->peer && x->value == y->value && x->sends == y->sends &&
           (!x->sends || memcmp(d->send + a->first_send, d->send + b->first_send,
                                x->sends * sizeof *d->send) == 0);
}

/* Drafts with the same result are merged. */
static void drop_doubles(struct drafts *d) {
    size_t kept = 0;
    for (size_t i = 0; i < d->count; i++) {
        size_t j = 0;
        while (j < kept && !alike(d, &d->draft[i], &d->draft[j])) j++;
        if (j == kept) d->draft[kept++] = d->draft[i];
    }
    d->count = kept;
}

static void draft_hidden(struct system *system, struct hiding *hiding, uint32_t node) {
    hide(hiding, node, 0, 0);
    for (uint32_t i = 0; i < hiding->count; i++) visit_hidden(system, hiding, i);
    drop_doubles(&system->drafts);
}

const struct outcomes *system_find_outcomes(struct system *system, uint32_t node) {
    struct node_info *info = node_info(system, node);
    struct hiding hiding = {0};
    system_lock(system);
    uint32_t at = atomic_load_explicit(&info->outcomes, memory_order_relaxed);
    if (!at && system->order) {
        draft_hidden(system, &hiding, node);
        at = draft_publish(system, 0);
    } else if (!at) {
        singles(system, node);
        at = info->single;
    }
    forget_drafts(&system->drafts);
    atomic_store_explicit(&info->outcomes, at, memory_order_release);
    pthread_mutex_unlock(&system->lock);
    free(hiding.at);
    return system_words(system, at);
}

/* ---- Moves ---- */

static struct single_move single_move(struct system *system, uint32_t node, uint32_t outcome) {
    forget_drafts(&system->drafts);
    system->explaining = true;
    single_drafts(system, node);
    system->explaining = false;
    return system->drafts.draft[outcome].move;
}

size_t system_moves(struct system *system, uint32_t node, uint32_t outcome,
                    struct single_move **moves) {
    struct hiding hiding = {0};
    size_t count = 0;
    system_lock(system);
    uint32_t at = 0, last = outcome;
    bool settles = false;
    if (system->order) {
        draft_hidden(system, &hiding, node);
        const struct draft *draft = &system->drafts.draft[outcome];
        at = draft->hidden;
        last = draft->move.message;
        settles = draft->outcome.flags & OUT_SETTLES;
    } else {
        hide(&hiding, node, 0, 0);
    }
    *moves = calloc(hiding.count + 1, sizeof **moves);
    cv_assert(*moves);
    for (uint32_t i = at; i; i = hiding.at[i].from) count++;
    size_t place = count;
    if (!settles) (*moves)[count++] = single_move(system, hiding.at[at].node, last);
    for (uint32_t i = at; i; i = hiding.at[i].from)
        (*moves)[--place] =
            single_move(system, hiding.at[hiding.at[i].from].node, hiding.at[i].outcome);
    forget_drafts(&system->drafts);
    pthread_mutex_unlock(&system->lock);
    free(hiding.at);
    return count;
}
