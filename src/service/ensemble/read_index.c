/* Linearizable reads (--reads linearizable): ReadIndex of the Raft dissertation.
 *
 * A server asks the leader, once for all reads of a loop iteration, for its read index (the higher
 * of its commit index and its pledges, by which a follower may commit first: raft_read_index), and
 * serves the reads when it has applied that much.  The leader makes sure that it still leads: it
 * has a lease, or begins a round of heartbeats that a quorum answers.  The log is not written. */
#include "service/ensemble/internal.h"

enum {
    ASK_AGAIN_US = 500000,    /* a request that was not answered */
    CLOCK_DRIFT_PERCENT = 10, /* by which the speeds of two clocks may differ */
};

/* ---- The leader's side ---- */

void read_index_round_begun(struct ensemble *e, uint64_t round) {
    e->read_index.round_us[round % READ_INDEX_ROUNDS] = e->clock->monotonic_us;
}

/* The members that answered the round vote for nobody until their election timeout has passed,
 * which is no shorter than the shortest that can be set. */
static bool has_lease(const struct ensemble *e) {
    uint64_t round = e->raft.confirmed_round;
    if (!raft_has_lease(&e->raft) || !round || round + READ_INDEX_ROUNDS <= e->raft.round)
        return false;
    uint64_t lasts_us =
        (uint64_t)SETTINGS_ELECTION_MS_MIN * 1000 * (100 - CLOCK_DRIFT_PERCENT) / 100;
    uint64_t begun_us = e->read_index.round_us[round % READ_INDEX_ROUNDS];
    return e->clock->monotonic_us - begun_us < lasts_us;
}

static void answer(struct ensemble *e, const struct read_index_request *request) {
    if (request->from == e->raft.self)
        read_index_answered(e, request->number, request->index);
    else
        peers_answer_read_index(e, request->from, request->number, request->index);
}

void read_index_requested(struct ensemble *e, uint8_t from, uint64_t number) {
    struct read_index *r = &e->read_index;
    struct read_index_request request = {
        .number = number, .index = raft_read_index(&e->raft), .term = e->raft.term, .from = from};
    if (!raft_may_serve_reads(&e->raft)) return; /* not yet, or no longer: it is asked again */
    if (has_lease(e)) {
        answer(e, &request);
        return;
    }
    if (r->count == READ_INDEX_REQUESTS_MAX) return;
    request.round = e->raft.round + 1; /* one for all requests of this iteration */
    r->request[r->count++] = request;
    r->round_due = true;
    ensemble_wake(e);
}

static void answer_confirmed(struct ensemble *e) {
    struct read_index *r = &e->read_index;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct read_index_request *request = &r->request[i];
        if (!ensemble_leads(e) || request->term != e->raft.term) continue;
        if (request->round <= e->raft.confirmed_round)
            answer(e, request);
        else
            r->request[kept++] = *request;
    }
    r->count = kept;
}

/* ---- The side of the server that was asked by clients ---- */

/* Numbers belong to an incarnation of the process.  Frames do not outlive their link, but a request
 * does: the leader keeps it until a round is confirmed, and answers over whatever link there is by
 * then.  An answer to the process before this one, whose index is older than a read of this one,
 * has a number that this one does not come to. */
void read_index_open(struct ensemble *e) {
    e->read_index.number = e->read_index.reached = e->incarnation >> 1; /* far from the last */
}

uint64_t ensemble_request_read_index(struct ensemble *e) {
    e->read_index.wanted = true;
    ensemble_wake(e);
    return e->read_index.number + 1;
}

bool ensemble_read_index_reached(const struct ensemble *e, uint64_t number) {
    return e->read_index.reached >= number;
}

void read_index_answered(struct ensemble *e, uint64_t number, uint64_t index) {
    struct read_index *r = &e->read_index;
    if (number != r->number || number <= r->reached) return; /* late */
    r->answered = true;
    r->index = index;
    ensemble_wake(e);
}

static void ask(struct ensemble *e) {
    struct read_index *r = &e->read_index;
    r->asked_us = e->clock->monotonic_us;
    r->asked_term = e->raft.term;
    if (ensemble_leads(e))
        read_index_requested(e, e->raft.self, r->number);
    else
        peers_ask_read_index(e, r->number);
}

static bool is_applied(const struct ensemble *e) {
    return e->read_index.answered && e->applied_index >= e->read_index.index;
}

bool read_index_has_work(const struct ensemble *e) {
    const struct read_index *r = &e->read_index;
    bool idle = r->number == r->reached;
    return r->round_due || (idle && r->wanted) || is_applied(e);
}

void read_index_advance(struct ensemble *e) {
    struct read_index *r = &e->read_index;
    if (r->round_due) ensemble_heartbeat(e);
    r->round_due = false;
    answer_confirmed(e);
    if (is_applied(e)) {
        r->reached = r->number;
        r->answered = false;
        e->callbacks->read_index_reached(e->owner);
    }
    bool idle = r->number == r->reached;
    bool overdue = e->clock->monotonic_us - r->asked_us > ASK_AGAIN_US;
    if (idle && r->wanted) {
        r->wanted = false;
        r->number++;
        ask(e);
    } else if (!idle && !r->answered && e->raft.leader &&
               (overdue || r->asked_term != e->raft.term)) {
        ask(e);
    }
}
