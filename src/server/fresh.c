/* Reads that are as new as any write that was acknowledged before they came (--reads linearizable).
 *
 * The server asks the leader, once for all reads of a turn, what is decided; when it has applied
 * that much it answers them.  The leader makes sure that it still leads: it has a lease, or begins
 * a round that a quorum answers.  Nothing is written to the log. */
#include "server/server.h"

enum {
    AGAIN_US = 500000,  /* a question that was not answered */
    DRIFT_PERCENT = 10, /* by which clocks may differ in how fast they go */
};

/* ---- The leader's side ---- */

void fresh_round_begun(struct server *s, uint64_t round) {
    s->replica.fresh.begun_us[round % FRESH_ROUNDS] = s->clock_us;
}

/* Until when nobody else can lead: those who answered the round wait for that long at least. */
static bool has_lease(const struct server *s) {
    const struct replica *r = &s->replica;
    uint64_t round = r->raft.confirmed;
    if (!raft_has_lease(&r->raft) || !round || round + FRESH_ROUNDS <= r->raft.round) return false;
    uint64_t lasts_us = (uint64_t)REPLICA_SILENCE_MS * 1000 * (100 - DRIFT_PERCENT) / 100;
    return s->clock_us - r->fresh.begun_us[round % FRESH_ROUNDS] < lasts_us;
}

static void answer(struct server *s, const struct fresh_asked *asked) {
    if (asked->from == s->replica.raft.self)
        fresh_answered(s, asked->number, asked->index);
    else
        peers_answer_fresh(s, asked->from, asked->number, asked->index);
}

void fresh_asked(struct server *s, uint8_t from, uint64_t number) {
    struct replica *r = &s->replica;
    struct fresh_asked asked = {
        .number = number, .index = raft_read_index(&r->raft), .term = r->raft.term, .from = from};
    if (!raft_may_read(&r->raft)) return; /* not yet, or no longer: it is asked again */
    if (has_lease(s)) {
        answer(s, &asked);
        return;
    }
    if (r->fresh.count == FRESH_ASKED_MAX) return;
    asked.round = r->raft.round + 1; /* begun at the end of the turn, for all that came in it */
    r->fresh.asked_by[r->fresh.count++] = asked;
    r->fresh.round_due = true;
    server_wake(s);
}

static void answer_confirmed(struct server *s) {
    struct replica *r = &s->replica;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->fresh.count; i++) {
        struct fresh_asked *asked = &r->fresh.asked_by[i];
        if (!replica_leads(s) || asked->term != r->raft.term) continue;
        if (asked->round <= r->raft.confirmed)
            answer(s, asked);
        else
            r->fresh.asked_by[kept++] = *asked;
    }
    r->fresh.count = kept;
}

/* ---- The side of whoever was asked ---- */

uint64_t fresh_ticket(struct server *s) {
    s->replica.fresh.wanted = true;
    server_wake(s);
    return s->replica.fresh.number + 1;
}

bool fresh_is_done(const struct server *s, uint64_t ticket) {
    return s->replica.fresh.done >= ticket;
}

void fresh_answered(struct server *s, uint64_t number, uint64_t index) {
    struct replica *r = &s->replica;
    if (number != r->fresh.number || number <= r->fresh.done) return; /* late */
    r->fresh.answered = true;
    r->fresh.index = index;
    server_wake(s);
}

static void ask(struct server *s) {
    struct replica *r = &s->replica;
    r->fresh.asked_us = s->clock_us;
    r->fresh.asked_term = r->raft.term;
    if (replica_leads(s))
        fresh_asked(s, r->raft.self, r->fresh.number);
    else
        peers_ask_fresh(s, r->fresh.number);
}

bool fresh_has_work(const struct server *s) {
    const struct replica *r = &s->replica;
    bool idle = r->fresh.number == r->fresh.done;
    return r->fresh.round_due || (idle && r->fresh.wanted) ||
           (r->fresh.answered && r->applied >= r->fresh.index);
}

void fresh_turn(struct server *s) {
    struct replica *r = &s->replica;
    if (r->fresh.round_due) replica_beat(s);
    r->fresh.round_due = false;
    answer_confirmed(s);
    if (r->fresh.answered && r->applied >= r->fresh.index) {
        r->fresh.done = r->fresh.number;
        r->fresh.answered = false;
        connections_freshen(s);
    }
    bool idle = r->fresh.number == r->fresh.done;
    if (idle && r->fresh.wanted) {
        r->fresh.wanted = false;
        r->fresh.number++;
        ask(s);
    } else if (!idle && !r->fresh.answered && r->raft.leader &&
               (s->clock_us - r->fresh.asked_us > AGAIN_US ||
                r->fresh.asked_term != r->raft.term)) {
        ask(s);
    }
}
