/* The judge of the records of servers. */
#include "lab/servers/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/member_id.h"

const char *servers_judge_property_name(enum servers_property property) {
    static const char *const names[] = {
        [SERVERS_ELECTION_SAFETY] = "election safety",
        [SERVERS_ONE_VOTE] = "one vote",
        [SERVERS_LOG_MATCHING] = "log matching",
        [SERVERS_STATE_MACHINE_SAFETY] = "state machine safety",
        [SERVERS_LEADER_COMPLETENESS] = "leader completeness",
    };
    return names[property];
}

/* The first violation of a property is kept. */
__attribute__((format(printf, 3, 4))) static void
violated(struct servers_judge *judge, enum servers_property property, const char *format, ...) {
    va_list args;
    if (judge->why[property][0]) return;
    va_start(args, format);
    vsnprintf(judge->why[property], JUDGE_WHY_MAX, format, args);
    va_end(args);
}

bool servers_judge_is_violated(const struct servers_judge *judge) {
    for (int i = 0; i < SERVERS_PROPERTIES; i++)
        if (judge->why[i][0]) return true;
    return false;
}

/* ---- Terms ---- */

static struct judged_term *find_term(struct servers_judge *judge, uint64_t term) {
    uint32_t hash = hash_bytes(&term, sizeof term, (uintptr_t)judge), number;
    for (struct probe p = table_probe(&judge->term_index, hash);
         (number = table_next(&judge->term_index, &p));)
        if (judge->term[number - 1].term == term) return &judge->term[number - 1];
    judge->term = grown(judge->term, &judge->term_room, judge->terms + 1, sizeof *judge->term);
    judge->term[judge->terms++] = (struct judged_term){.term = term};
    table_add(&judge->term_index, hash, (uint32_t)judge->terms);
    return &judge->term[judge->terms - 1];
}

/* A term begins with its number. */
static int compare_terms(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void sort_terms(struct servers_judge *judge) {
    if (judge->terms) qsort(judge->term, judge->terms, sizeof *judge->term, compare_terms);
    table_close(&judge->term_index);
}

/* How many of them begin up to there. */
static size_t runs_up_to(struct judged_runs runs, uint64_t index) {
    size_t low = 0, high = runs.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (runs.at[middle].first <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_log(struct servers_judge *judge, const struct raft *raft, struct judged_runs runs) {
    size_t shared = runs_up_to(runs, judge->shared_index), count = runs.count - shared;
    judge->log = grown(judge->log, &judge->log_room, judge->logs + 1, sizeof *judge->log);
    judge->log[judge->logs++] = (struct judged_log){.term = raft->term,
                                                    .snapshot_index = raft->snapshot_index,
                                                    .last_index = raft->last_index,
                                                    .shared_index = judge->shared_index,
                                                    .run = judge->log_runs,
                                                    .runs = count};
    judge->log_run = grown(judge->log_run, &judge->log_run_room, judge->log_runs + count,
                           sizeof *judge->log_run);
    if (count) memcpy(judge->log_run + judge->log_runs, runs.at + shared, count * sizeof *runs.at);
    judge->log_runs += count;
    judge->shared_index = UINT64_MAX;
}

static void see_leader(struct servers_judge *judge, const struct raft *raft,
                       struct judged_runs runs) {
    struct judged_term *term = find_term(judge, raft->term);
    if (term->leader && term->leader != raft->leader)
        violated(judge, SERVERS_ELECTION_SAFETY,
                 "in term %" PRIu64 " server %d leads by the record of server %d, and server %d by "
                 "that of server %d",
                 raft->term, member_number(term->leader), member_number(term->leader_by),
                 member_number(raft->leader), member_number(raft->self));
    if (!term->leader) {
        term->leader = raft->leader;
        term->leader_by = raft->self;
    }
    if (raft->role != RAFT_LEADER || term->has_log) return;
    term->has_log = true;
    add_log(judge, raft, runs);
}

static void see_vote(struct servers_judge *judge) {
    uint64_t at = judge->seen_term;
    uint8_t vote = judge->seen_vote, *known = &find_term(judge, at)->vote[judge->self];
    if (*known && *known != vote)
        violated(judge, SERVERS_ONE_VOTE,
                 "in term %" PRIu64 " server %d votes for server %d and server %d", at,
                 member_number(judge->self), member_number(*known), member_number(vote));
    *known = vote;
    judge->is_vote_counted = true;
}

/* The first run after a snapshot may have begun before it. */
static void see_run(struct servers_judge *judge, const struct raft *raft, struct judged_runs runs,
                    size_t i) {
    struct raft_run run = runs.at[i];
    uint64_t before = i ? runs.at[i - 1].term : raft->snapshot_term;
    if (before == run.term || (!i && run.first > 1 && !before)) return;
    struct judged_term *term = find_term(judge, run.term);
    if (term->first && (term->first != run.first || term->before != before))
        violated(judge, SERVERS_LOG_MATCHING,
                 "the entries of term %" PRIu64 " begin at %" PRIu64 " after term %" PRIu64
                 " in the log of server %d, and at %" PRIu64 " after term %" PRIu64
                 " in that of server %d",
                 run.term, term->first, term->before, member_number(term->first_by), run.first,
                 before, member_number(raft->self));
    if (term->first) return;
    term->first = run.first;
    term->before = before;
    term->first_by = raft->self;
}

/* ---- What is committed ---- */

static void see_entries(struct servers_judge *judge, struct judged_entries entries) {
    size_t count = judge->committed_count;
    struct judged_entries *last = count ? &judge->committed[count - 1] : NULL;
    if (last && last->by == entries.by && last->term == entries.term &&
        last->last + 1 == entries.first) {
        last->last = entries.last;
        return;
    }
    judge->committed =
        grown(judge->committed, &judge->committed_room, count + 1, sizeof *judge->committed);
    entries.order = count;
    judge->committed[judge->committed_count++] = entries;
}

static int compare_entries(const void *a, const void *b) {
    const struct judged_entries *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Brings into order what all have committed; neighbours of one term become one. */
static void join_committed(struct servers_judge *judge) {
    size_t kept = 0;
    if (!judge->committed_count) return;
    qsort(judge->committed, judge->committed_count, sizeof *judge->committed, compare_entries);
    for (size_t i = 1; i < judge->committed_count; i++) {
        struct judged_entries *to = &judge->committed[kept], *from = &judge->committed[i];
        if (from->term == to->term && from->first <= to->last + 1)
            to->last = from->last > to->last ? from->last : to->last;
        else if (from->first > to->last)
            judge->committed[++kept] = *from;
        else /* the table has room for one of them */
            violated(judge, SERVERS_STATE_MACHINE_SAFETY,
                     "entry %" PRIu64 " is committed with term %" PRIu64
                     " at server %d, and with term %" PRIu64 " at server %d",
                     from->first, to->term, member_number(to->by), from->term,
                     member_number(from->by));
    }
    judge->committed_count = kept + 1;
}

/* From the first entry that was not committed before. */
static void see_commit(struct servers_judge *judge, const struct raft *raft,
                       struct judged_runs runs) {
    uint64_t from = judge->seen_commit_index, to = raft->commit_index;
    if (from < raft->snapshot_index) {
        from = raft->snapshot_index;
        see_entries(judge,
                    (struct judged_entries){from, from, raft->snapshot_term, .by = raft->self});
    }
    size_t i = runs_up_to(runs, from + 1);
    if (!i && runs.count) i = 1;
    for (; i && i <= runs.count && from < to; i++) {
        uint64_t last = i < runs.count && runs.at[i].first <= to ? runs.at[i].first - 1 : to;
        see_entries(judge,
                    (struct judged_entries){from + 1, last, runs.at[i - 1].term, .by = raft->self});
        from = last;
    }
    struct judged_term *term = find_term(judge, raft->term);
    if (term->commit_index < to) term->commit_index = to, term->commit_by = raft->self;
}

/* ---- Records ---- */

static void note(struct servers_judge *judge, const struct raft *raft, struct judged_runs runs) {
    if (judge->seen_term != raft->term || judge->seen_vote != raft->voted_for)
        judge->is_vote_counted = false;
    judge->seen_term = raft->term;
    judge->seen_vote = raft->voted_for;
    judge->seen_leader = raft->leader;
    judge->seen_commit_index = raft->commit_index;
    judge->newest_run = runs.count ? runs.at[runs.count - 1].term : 0;
    judge->newest_first = runs.count ? runs.at[runs.count - 1].first : 0;
}

void servers_judge_begin(struct servers_judge *judge, const struct raft *raft,
                         struct judged_runs runs) {
    judge->self = raft->self;
    judge->server[raft->self] = true;
    judge->seen_commit_index = 0;
    judge->is_vote_counted = false;
    judge->shared_index = 0;
    for (size_t i = 0; i < runs.count; i++) see_run(judge, raft, runs, i);
    if (raft->commit_index) see_commit(judge, raft, runs);
    if (raft->leader) see_leader(judge, raft, runs);
    note(judge, raft, runs);
}

/* A vote counts from the step after it on: it is durable then, and whoever asked for it may know.
 * The server may have ended before that. */
void servers_judge_step(struct servers_judge *judge, const struct raft *raft,
                        struct judged_runs runs) {
    if (judge->seen_vote && !judge->is_vote_counted) see_vote(judge);
    if (raft->commit_index < judge->seen_commit_index)
        violated(judge, SERVERS_STATE_MACHINE_SAFETY,
                 "the commit index of server %d goes back from %" PRIu64 " to %" PRIu64,
                 member_number(raft->self), judge->seen_commit_index, raft->commit_index);
    bool newer_run = runs.count && (runs.at[runs.count - 1].term != judge->newest_run ||
                                    runs.at[runs.count - 1].first != judge->newest_first);
    if (!runs.count)
        judge->shared_index = 0; /* a snapshot may be in place of entries that it never had */
    else if (newer_run && runs.at[runs.count - 1].first <= judge->shared_index)
        judge->shared_index = runs.at[runs.count - 1].first - 1;
    bool newer_leader = raft->leader != judge->seen_leader || raft->term != judge->seen_term;
    if (raft->leader && newer_leader) see_leader(judge, raft, runs);
    if (newer_run) see_run(judge, raft, runs, runs.count - 1);
    if (raft->commit_index > judge->seen_commit_index) see_commit(judge, raft, runs);
    note(judge, raft, runs);
}

/* ---- Leaders ---- */

/* The log of one leader after the other.  Each is the one before up to an index, so a run is put
 * here and compared once, however many leaders have it. */
struct compared_run {
    struct raft_run run;     /* of term 0: not known */
    uint64_t differs_before; /* the first entry of the runs before that was committed otherwise */
};

struct compared_log {
    struct compared_run *at;
    size_t count, room;
};

/* The committed entries that end there or later begin with these. */
static size_t find_committed(const struct servers_judge *judge, uint64_t index) {
    size_t low = 0, high = judge->committed_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (judge->committed[middle].last < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first of these entries that is committed with another term; 0: none is. */
static uint64_t find_difference(const struct servers_judge *judge, uint64_t first, uint64_t last,
                                uint64_t term) {
    if (!term || first > last) return 0;
    for (size_t i = find_committed(judge, first); i < judge->committed_count; i++) {
        const struct judged_entries *entries = &judge->committed[i];
        if (entries->first > last) break;
        if (entries->term != term) return entries->first > first ? entries->first : first;
    }
    return 0;
}

static void push_run(const struct servers_judge *judge, struct compared_log *log,
                     struct raft_run run) {
    uint64_t differs = 0;
    if (log->count) {
        const struct compared_run *top = &log->at[log->count - 1];
        differs = top->differs_before;
        if (!differs)
            differs = find_difference(judge, top->run.first, run.first - 1, top->run.term);
    }
    log->at = grown(log->at, &log->room, log->count + 1, sizeof *log->at);
    log->at[log->count++] = (struct compared_run){run, differs};
}

static void follow_log(const struct servers_judge *judge, struct compared_log *compared,
                       const struct judged_log *log) {
    const struct raft_run *run = judge->log_run + log->run;
    while (compared->count && compared->at[compared->count - 1].run.first > log->shared_index)
        compared->count--;
    if (log->runs && run[0].first > log->shared_index + 1) /* what is between is in a snapshot */
        push_run(judge, compared, (struct raft_run){log->shared_index + 1, 0});
    for (size_t i = 0; i < log->runs; i++) push_run(judge, compared, run[i]);
}

/* What the leader's snapshot holds was committed by its own record. */
static uint64_t first_difference(const struct servers_judge *judge,
                                 const struct compared_log *compared, uint64_t snapshot_index,
                                 uint64_t last_index) {
    if (!compared->count || snapshot_index >= last_index) return 0;
    size_t i = compared->count - 1;
    uint64_t differs = compared->at[i].differs_before;
    if (differs > snapshot_index) return differs <= last_index ? differs : 0;
    if (differs) /* in the snapshot, and there may be others after it */
        while (i && compared->at[i].run.first > snapshot_index + 1) i--;
    for (differs = 0; i < compared->count && !differs; i++) {
        struct raft_run run = compared->at[i].run;
        uint64_t first = run.first > snapshot_index ? run.first : snapshot_index + 1;
        uint64_t last = i + 1 < compared->count ? compared->at[i + 1].run.first - 1 : last_index;
        differs = find_difference(judge, first, last < last_index ? last : last_index, run.term);
    }
    return differs;
}

static uint64_t term_in(const struct compared_log *compared, uint64_t index) {
    size_t i = compared->count - 1;
    while (i && compared->at[i].run.first > index) i--;
    return compared->at[i].run.term;
}

static void judge_log(struct servers_judge *judge, const struct compared_log *compared,
                      const struct judged_log *log) {
    const struct judged_term *term =
        bsearch(&log->term, judge->term, judge->terms, sizeof *judge->term, compare_terms);
    cv_assert(term);
    uint64_t last_index = log->last_index;
    if (last_index < term->commit_before)
        violated(judge, SERVERS_LEADER_COMPLETENESS,
                 "server %d leads in term %" PRIu64 " with a log that ends at %" PRIu64
                 ", and %" PRIu64 " was committed before",
                 member_number(term->leader), term->term, last_index, term->commit_before);
    if (last_index > term->commit_before) last_index = term->commit_before;
    uint64_t index = first_difference(judge, compared, log->snapshot_index, last_index);
    if (!index || judge->why[SERVERS_LEADER_COMPLETENESS][0]) return;
    violated(judge, SERVERS_LEADER_COMPLETENESS,
             "server %d leads in term %" PRIu64 " with an entry %" PRIu64 " of term %" PRIu64
             ", which was committed before with term %" PRIu64,
             member_number(term->leader), term->term, index, term_in(compared, index),
             judge->committed[find_committed(judge, index)].term);
}

void servers_judge_finish(struct servers_judge *judge) {
    struct compared_log compared = {0};
    uint64_t commit_index = 0;
    sort_terms(judge);
    join_committed(judge);
    for (size_t i = 0; i < judge->terms; i++) {
        judge->term[i].commit_before = commit_index;
        if (judge->term[i].commit_index > commit_index) commit_index = judge->term[i].commit_index;
    }
    for (size_t i = 0; i < judge->logs; i++) {
        follow_log(judge, &compared, &judge->log[i]);
        judge_log(judge, &compared, &judge->log[i]);
    }
    free(compared.at);
}

void servers_judge_close(struct servers_judge *judge) {
    free(judge->term);
    table_close(&judge->term_index);
    free(judge->committed);
    free(judge->log);
    free(judge->log_run);
    *judge = (struct servers_judge){0};
}
