/* Membership changes while the members serve.
 *
 * A reconfig request goes through the log like any other, and what it makes of the members, the
 * target, is a part of the tree: every server has it, and keeps it.  Whoever leads goes there step
 * by step, each an entry that is committed before the next (see raft_change_config).  A new member
 * is a learner first and gets its vote later; one that leaves loses its vote first.
 *
 * A configuration takes force before it is committed, and one without a quorum that lives could
 * neither be committed nor undone.  So the leader looks at all steps before it takes the first, and
 * at those that are left before each: a step that needs members which are not heard, or are about
 * to move to another address, is not taken, and in the end the change is given up, through the log.
 */
#include "service/ensemble/change.h"
#include "service/ensemble/core.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/logger.h"

enum {
    CLIENT_TIMEOUT_US = 10000000, /* without progress; then a client that asked is answered */
    /* For a change that waits: for members that are not heard, before its first step, which may be
     * because this server has led for a moment only; later, and for a new member.  A client gets
     * its answer when the change has ended, an operator has the time to start the new member. */
    FIRST_STEP_GRACE_US = 2000000,
    CLIENT_GRACE_US = 5000000,
    OPERATOR_GRACE_US = 60000000,
    REJECTED_GRACE_US = 5000000, /* for a new member that may only be starting */
    ABSENT_US = 300000, /* a new member that is not reached by then gets its vote before the log */
    HEARD_US = 2000000, /* a member that was not heard for longer is not reached */
};

bool change_is_in_progress(const struct ensemble *e) { return e->tree->target.used && !e->removed; }

/* The reason follows the request, where servers that know of none do not look.  The request may be
 * forwarded late, by a server that was cut off: then it is about other members than those by now,
 * and the leader refuses it. */
void change_propose(struct ensemble *e, const struct zk_reconfig_request *asked,
                    const char *reason) {
    struct zk_reconfig_request request = *asked;
    struct bytes body = {0};
    request.config_id = tree_members_version(e->tree);
    zk_write_reconfig_request(&body, &request);
    if (*reason) zk_write_text(&body, zk_text_of(reason));
    struct tree_entry entry = {.time = e->clock->now_ms,
                               .rules = e->tree->rules | TREE_INTERNAL,
                               .op = ZK_OP_RECONFIG,
                               .body = zk_in_of(body.at, body.used)};
    ensemble_propose(e, &entry, &(struct proposal){.op = ZK_OP_RECONFIG});
    bytes_close(&body);
}

/* ---- The target, as it is applied ---- */

static void end_change(struct ensemble *e, int32_t err) {
    struct change *change = &e->change;
    change->is_noted = change->is_cancelled = change->is_undone = false;
    change->target.used = change->before.used = change->origin.used = 0;
    change->error = err;
}

void change_close(struct ensemble *e) {
    bytes_close(&e->change.target);
    bytes_close(&e->change.before);
    bytes_close(&e->change.origin);
}

void change_removed(struct ensemble *e) {
    if (!e->removed)
        logger_warning("this server is no longer a member; it serves the clients that it has while "
                       "the leader lets it; stop it, or add it again");
    e->removed = true;
}

void change_readmitted(struct ensemble *e) {
    e->removed = false;
    /* Of the last change that it knew, unless that is the one that brings it back. */
    if (!e->tree->target.used) end_change(e, ZK_OPERATIONTIMEOUT);
}

static void copy(struct bytes *to, struct zk_text from) {
    to->used = 0;
    if (from.size > 0) bytes_add(to, from.at, (size_t)from.size);
}

/* Where to go back to: the configuration before the change; and for one that was asked for while
 * another one was in progress, that other one's target. */
static void note_target(struct ensemble *e, bool undoes) {
    struct change *change = &e->change;
    change->is_undone = undoes && !change->before.used;
    if (undoes)
        change->before.used = 0;
    else if (change->target.used)
        copy(&change->before, change_text(&change->target));
    else
        copy(&change->origin, members_committed(e));
    copy(&change->target, change_text(&e->tree->target));
}

static void note_given_up(struct ensemble *e, struct zk_text reason) {
    struct change *change = &e->change;
    if (reason.size <= 0) reason = zk_text_of("that was asked for");
    change->refused++;
    snprintf(change->reason, sizeof change->reason, "%.*s", reason.size, reason.at);
    logger_warning(e->tree->target.used
                       ? "the change of the members was given up; what was done of it is undone"
                       : "the change of the members was given up; they stay as they are now",
                   LOGGER_STRING("reason", change->reason));
}

void ensemble_change_applied(struct ensemble *e, const struct tree_entry *entry) {
    struct change *change = &e->change;
    struct zk_reconfig_request request;
    struct zk_text reason = {0};
    struct zk_in body = entry->body;
    bool own = entry->rules & TREE_INTERNAL;
    bool read = zk_read_reconfig_request(&body, &request);
    cv_assert(read); /* the tree has read it */
    bool nothing =
        request.members.size <= 0 && request.joining.size <= 0 && request.leaving.size <= 0;
    if (own && zk_left(&body) && !zk_read_text(&body, &reason)) reason.size = 0;
    bool ends = nothing && (own || change->is_noted), undoes = reason.size > 0 && !nothing;
    note_target(e, undoes);
    if (!e->tree->target.used) end_change(e, ends || undoes ? ZK_NEWCONFIGNOQUORUM : ZK_OK);
    change->progress_us = e->clock->monotonic_us;
    change->term = change->blocked_us = 0;
    change->is_cancelled = false;
    change->has_stepped = undoes; /* what goes on then has its time as before */
    if (!undoes) change->is_clients = !own;
    if (e->tree->target.used && !change->is_noted && !undoes)
        logger_info("a change of the members has begun");
    change->is_noted = e->tree->target.used;
    if (ends || undoes) note_given_up(e, reason);
}

bool ensemble_change_ended(const struct ensemble *e, int32_t *error) {
    bool in_progress = e->tree->target.used;
    bool late = e->clock->monotonic_us - e->change.progress_us > CLIENT_TIMEOUT_US;
    *error = in_progress ? ZK_OPERATIONTIMEOUT : e->change.error;
    return !in_progress || late;
}

/* ---- Whether the members of each step can go on ---- */

/* Whether a member is to get another address: it has to be reached there before it counts. */
static bool moves(const struct plan *p, int32_t id) {
    const struct member *before = member_list_find(&p->now, id),
                        *after = member_list_find(&p->target, id);
    return before && after &&
           (before->peer_port != after->peer_port || strcmp(before->host, after->host) != 0);
}

/* A server that is no member yet is known by its introduction.  A member answers on its link: one
 * that hangs has links, too. */
static bool is_reached(const struct ensemble *e, uint8_t id) {
    const struct peer_state *peer = &e->peer[id];
    if (!raft_find_member(&e->raft.config, id)) return peer->up || peer->introduced;
    return peer->up && e->clock->monotonic_us - peer->heard_us < HEARD_US;
}

/* A server without a vote gets it when it has caught up, or is not needed, so it is counted on. One
 * that a change waits for already has to be there, unless it is about to be looked for elsewhere.
 */
static bool newcomer_counts(const struct ensemble *e, const struct plan *p, uint8_t id) {
    bool is_awaited = raft_find_member(&e->raft.config, id) && !moves(p, id);
    return is_reached(e, id) || !(p->needs_newcomers || is_awaited);
}

/* The members of a step that will be there: those that have responded to the round, and have been
 * heard since `since_us`.  A leader that is a quorum by itself needs no address. */
static uint32_t live_set(const struct ensemble *e, const struct plan *p,
                         const struct raft_config *step) {
    uint32_t set = raft_live_set(&e->raft, step, p->round);
    for (uint32_t i = 0; i < step->count; i++) {
        uint8_t id = step->at[i].id;
        bool self = id == e->raft.self, alone = self && raft_is_quorum(step, 1u << i);
        bool lost = !self && e->peer[id].heard_us < p->since_us;
        bool has_vote = raft_has_vote(&e->raft.config, id);
        if (p->counts_on_voters && has_vote)
            set |= 1u << i;
        else if (lost)
            set &= ~(1u << i);
        if (moves(p, id) && !alone) set &= ~(1u << i);
        if (has_vote) continue;
        set = newcomer_counts(e, p, id) ? set | 1u << i : set & ~(1u << i);
    }
    return set;
}

static void describe_absent(const struct ensemble *e, const struct plan *p, uint8_t id, char *to,
                            size_t size) {
    const struct raft_peer *peer = raft_find_peer(&e->raft, id);
    uint64_t heard = e->peer[id].heard_us, now = e->clock->monotonic_us;
    int32_t number = member_number(id);
    bool responds = peer && peer->acked_round >= p->round && heard >= p->since_us;
    if (moves(p, id))
        snprintf(to, size, "server %d is to move to another address", number);
    else if (responds && peer->vote_withheld)
        snprintf(to, size, "server %d may not vote before it has caught up", number);
    else if (responds)
        snprintf(to, size, "server %d is %" PRIu64 " entries behind", number,
                 e->raft.commit_index - peer->match_index);
    else if (heard)
        snprintf(to, size, "server %d was not heard for %" PRIu64 " s", number,
                 (now - heard + 500000) / 1000000);
    else
        snprintf(to, size, "server %d was never heard", number);
}

/* "server 2 was not heard for 40 s; the new configuration {1,2} needs it" */
static void describe_step(const struct ensemble *e, struct plan *p, const struct raft_config *step,
                          uint32_t live) {
    char absent[256] = "", voters[128] = "", one[96];
    unsigned missing = 0;
    size_t used = 0, named = 0;
    for (uint32_t i = 0; i < step->count; i++) {
        uint8_t id = step->at[i].id;
        uint16_t weight = step->at[i].weight;
        if (!weight) continue;
        named += (size_t)snprintf(voters + named, sizeof voters - named,
                                  weight == 1 ? "%s%d" : "%s%d=%u", named ? "," : "",
                                  member_number(id), weight);
        if (live & 1u << i || used >= sizeof absent) continue;
        describe_absent(e, p, id, one, sizeof one);
        used +=
            (size_t)snprintf(absent + used, sizeof absent - used, "%s%s", used ? ", " : "", one);
        missing++;
    }
    snprintf(p->why, sizeof p->why, "%s; the new configuration {%s} needs %s", absent, voters,
             missing == 1 ? "it" : "more of them");
}

bool change_is_blocked(const struct ensemble *e, struct plan *p) {
    struct raft_config at = e->raft.config, next;
    bool steps = false;
    for (; raft_config_step(&at, &p->target_config, &next); at = next, steps = true) {
        uint32_t live = live_set(e, p, &next);
        if (!raft_is_quorum(&next, live)) return describe_step(e, p, &next, live), true;
    }
    uint32_t live = live_set(e, p, &at);
    if (steps || raft_is_quorum(&at, live)) return false;
    describe_step(e, p, &at, live); /* only addresses differ */
    return true;
}

/* ---- Steps ---- */

/* An address that is in force already stays, so that its member can be removed. */
bool change_has_unusable_address(const struct ensemble *e, struct plan *p) {
    for (unsigned i = 0; i < p->target.count; i++) {
        const struct member *m = &p->target.at[i];
        const struct member *before = member_list_find(&p->now, m->id);
        if (before && before->peer_port == m->peer_port && strcmp(before->host, m->host) == 0)
            continue;
        const char *problem = links_judge(e->links, m->host, m->peer_port);
        if (!problem) continue;
        snprintf(p->why, sizeof p->why, "server %d at %.64s: %s", member_number(m->id), m->host,
                 problem);
        return true;
    }
    return false;
}

/* The members of a step; one that is to leave has its address in the present configuration only. */
static void write_step(struct plan *p, const struct raft_config *next) {
    struct member_list step = {.ensemble = p->target.ensemble};
    for (uint32_t i = 0; i < next->count; i++) {
        int32_t id = next->at[i].id;
        const struct member *known = member_list_find(&p->target, id);
        struct member member = known ? *known : *member_list_find(&p->now, id);
        member.observer = next->at[i].weight == 0;
        member.weight = next->at[i].weight ? next->at[i].weight : 1;
        member_list_put(&step, &member);
    }
    member_list_write(&step, &p->text);
}

/* What the target becomes when the change is given up, as a list for a request; empty: nothing was
 * done that could be undone.  A request cannot name directories that the target does not name: the
 * leader records them again. */
static void write_undo(const struct ensemble *e, struct bytes *text) {
    const struct change *change = &e->change;
    struct zk_text to = change_text(change->before.used ? &change->before : &change->origin);
    struct zk_text now = members_committed(e);
    struct plan p = {0};
    bool stepped = to.size != now.size || memcmp(to.at, now.at, (size_t)to.size) != 0;
    if (!to.size || !stepped || change->is_undone) return;
    members_read(e->tree->target.at, e->tree->target.used, &p.config, &p.now, p.why, sizeof p.why);
    members_read(to.at, (size_t)to.size, &p.target_config, &p.target, p.why, sizeof p.why);
    p.target.ensemble = p.now.ensemble;
    for (unsigned i = 0; i < p.target.count; i++) {
        const struct member *known = member_list_find(&p.now, p.target.at[i].id);
        p.target.at[i].directory = known ? known->directory : 0;
    }
    member_list_write(&p.target, text);
}

/* Ends the change through the log, so that no later leader goes on with it.  What was done of it is
 * undone in the same way. */
static void give_up(struct ensemble *e, const char *why) {
    struct bytes text = {0};
    write_undo(e, &text);
    e->change.is_cancelled = true;
    change_propose(e, &(struct zk_reconfig_request){.members = change_text(&text)}, why);
    bytes_close(&text);
}

/* One that this server has from a snapshot, and not from the log, may have begun. */
static uint64_t grace_us(const struct change *change) {
    if (change->target.used && !change->has_stepped) return FIRST_STEP_GRACE_US;
    return change->is_clients ? CLIENT_GRACE_US : OPERATOR_GRACE_US;
}

/* The next step, or one after it, cannot be taken now: perhaps it can in a moment. */
static void await(struct ensemble *e, const struct plan *p, uint64_t grace_us) {
    struct change *change = &e->change;
    uint64_t now = e->clock->monotonic_us;
    if (!change->blocked_us) change->blocked_us = now;
    if (now - change->blocked_us > grace_us) give_up(e, p->why);
}

static void await_quorum(struct ensemble *e, const struct plan *p) {
    await(e, p, grace_us(&e->change));
}

/* Whether the learner that the step gives its vote cannot be reached. */
static bool is_learner_absent(struct ensemble *e, const struct raft_config *next) {
    bool absent = false;
    for (uint32_t i = 0; i < next->count; i++) {
        const struct raft_member *now = raft_find_member(&e->raft.config, next->at[i].id);
        bool learns = now && !now->weight && next->at[i].weight;
        absent |= learns && !is_reached(e, now->id);
    }
    if (!absent) e->change.progress_us = e->clock->monotonic_us;
    return e->clock->monotonic_us - e->change.progress_us > ABSENT_US;
}

/* Whether a server runs there, and is none that could be this member.  To a client that is as if
 * nobody were there, as in ZooKeeper. */
static bool is_learner_rejected(const struct ensemble *e, const struct raft_config *next,
                                struct plan *p) {
    for (uint32_t i = 0; i < next->count && !e->change.is_clients; i++) {
        uint8_t id = next->at[i].id;
        bool gets_vote = next->at[i].weight && !raft_has_vote(&e->raft.config, id);
        const char *problem = ensemble_link_problem(e, id);
        if (!gets_vote || !e->peer[id].rejected || !problem) continue;
        snprintf(p->why, sizeof p->why, "there is no link to server %d: %s",
                 member_number((int32_t)id), problem);
        return true;
    }
    return false;
}

/* A member that is to get a vote has to catch up, for as long as it takes while it is reachable. If
 * it does not run, and the others are a quorum without it, it gets its vote now, and the log when
 * it comes. */
static enum raft_change await_learner(struct ensemble *e, struct plan *p,
                                      const struct raft_config *next) {
    if (!is_learner_absent(e, next)) {
        e->change.blocked_us = 0;
        return RAFT_CHANGE_NOT_CAUGHT_UP;
    }
    enum raft_change change = core_admit_absent(e, next, p->round);
    if (change != RAFT_CHANGE_NO_QUORUM) return change;
    p->needs_newcomers = true;
    if (change_is_blocked(e, p)) await_quorum(e, p);
    return change;
}

static bool take_step(struct ensemble *e, struct plan *p) {
    struct raft_config next;
    const struct bytes *target = &e->tree->target, *now = &e->members.text;
    members_read(now->at, now->used, &p->config, &p->now, p->why, sizeof p->why);
    members_read(target->at, target->used, &p->target_config, &p->target, p->why, sizeof p->why);
    if (change_has_unusable_address(e, p)) return give_up(e, p->why), false;
    if (change_is_blocked(e, p)) return await_quorum(e, p), false;
    if (raft_config_step(&e->raft.config, &p->target_config, &next))
        write_step(p, &next);
    else
        bytes_add(&p->text, target->at, target->used); /* only addresses differ */
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): change_advance closes the plan */
    if (!members_read(p->text.at, p->text.used, &next, &p->now, p->why, sizeof p->why))
        return give_up(e, p->why), false;
    if (is_learner_rejected(e, &next, p)) return await(e, p, REJECTED_GRACE_US), false;
    enum raft_change change = core_change_config(e, &next, p->round);
    if (change == RAFT_CHANGE_NOT_CAUGHT_UP)
        change = await_learner(e, p, &next);
    else
        e->change.blocked_us = 0;
    switch (change) {
    case RAFT_CHANGE_DONE: break;
    case RAFT_CHANGE_TOO_LARGE: return give_up(e, "a step is too large"), false;
    case RAFT_CHANGE_NO_VOTER: return give_up(e, "no member would have a vote"), false;
    default: return false; /* not yet */
    }
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    e->change.round = e->change.blocked_us = 0;
    members_adopt(e, p->text.at, p->text.used);
    ensemble_append_members(e);
    peers_update(e);
    return true;
}

/* The same members, with ids that the leader has learned from their hellos. */
static void record_ids(struct ensemble *e) {
    struct plan p = {0};
    if (identity_record(e, &p.text) &&
        members_read(p.text.at, p.text.used, &p.config, &p.now, p.why, sizeof p.why) &&
        core_change_config(e, &p.config, e->raft.confirmed_round) == RAFT_CHANGE_DONE) {
        members_adopt(e, p.text.at, p.text.used);
        ensemble_append_members(e);
        ensemble_wake(e);
    }
    bytes_close(&p.text);
}

/* A server that replays the log passes configurations from before it became a member, which say
 * nothing; so it looks at the one that it has when it has caught up. */
static void note_leaving(struct ensemble *e) {
    const struct raft *raft = &e->raft;
    bool is_behind = !ensemble_is_restored(e) || e->applied_index < e->leader_commit ||
                     raft->config_index > e->applied_index;
    if (!e->change.may_have_left || is_behind) return;
    e->change.may_have_left = false;
    if (!e->standalone && raft->config.count && !raft_find_member(&raft->config, raft->self))
        change_removed(e);
}

void change_advance(struct ensemble *e) {
    struct change *change = &e->change;
    note_leaving(e);
    bool may = ensemble_leads(e) && e->applied_index == e->raft.commit_index &&
               e->raft.config_index <= e->applied_index && e->applied_term == e->raft.term;
    /* A change that is in the log already has members without these ids for its target. */
    bool requested =
        change->requested_term == e->raft.term && change->requested_index > e->applied_index;
    if (may && !requested && !e->tree->target.used && !identity_is_complete(e)) record_ids(e);
    if (!e->tree->target.used || !may) return;
    if (change->term != e->raft.term) {
        change->term = e->raft.term;
        change->progress_us = e->clock->monotonic_us;
        change->blocked_us = change->round = 0;
        change->is_cancelled = false; /* that may have been lost, or refused */
    }
    if (change->is_cancelled) return;
    if (!change->round) {
        ensemble_heartbeat(e);
        change->round = e->raft.round;
    }
    struct plan p = {.round = change->round};
    if (take_step(e, &p)) ensemble_wake(e);
    bytes_close(&p.text);
}

void change_committed(struct ensemble *e) {
    struct change *change = &e->change;
    bool reached = change->is_noted && !e->tree->target.used;
    change->may_have_left = true;
    note_leaving(e);
    peers_tell_removed(e);
    change->progress_us = e->clock->monotonic_us;
    change->has_stepped = true;
    if (!reached) return;
    logger_info(change->is_undone ? "the change of the members is undone"
                                  : "the change of the members is complete");
    end_change(e, change->is_undone ? ZK_NEWCONFIGNOQUORUM : ZK_OK);
}
