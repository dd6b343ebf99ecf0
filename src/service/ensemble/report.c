/* Figures of replication: what a server knows of itself and, if it leads, of the other members. */
#include <sys/stat.h>

#include "base/logger.h"
#include "service/ensemble/internal.h"
#include "service/log/snapshot.h"

/* ---- Elections and transfers ---- */

static void report_given_up(const struct ensemble *e, uint8_t transferee) {
    const struct raft_peer *peer = raft_find_peer(&e->raft, transferee);
    if (!peer) return;
    logger_warning("leadership was not transferred: that server did not take it over in time, and "
                   "this one goes on",
                   LOGGER_INT("server", member_number(transferee)),
                   LOGGER_UINT("entries_behind", e->raft.last_index - peer->match_index));
}

void report_step(struct ensemble *e) {
    struct timings *t = &e->timings;
    bool stands = e->raft.role == RAFT_CANDIDATE || e->raft.role == RAFT_LEADER;
    if (e->standalone) return;
    if (stands && t->stood_term != e->raft.term) {
        t->stood_term = e->raft.term;
        e->statistics.elections++;
    }
    if (e->raft.transferee) {
        e->statistics.transfers += e->raft.transferee != t->transferee;
        t->transferee = e->raft.transferee;
    } else if (e->raft.leader) { /* while nobody leads it may still succeed */
        e->statistics.transfers_done += e->raft.leader == t->transferee;
        if (t->transferee && ensemble_leads(e)) report_given_up(e, t->transferee);
        t->transferee = 0;
    }
}

void report_leader(struct ensemble *e) {
    struct timings *t = &e->timings;
    t->first = t->count = 0;
    if (e->standalone) return;
    t->election[t->elections++ % ENSEMBLE_ELECTIONS_KEPT] =
        (struct ensemble_election){e->clock->now_ms, e->raft.term, e->raft.leader};
    /* A term has one leader: one that was lost and is found again is no other. */
    if (!e->raft.leader || t->led_term == e->raft.term) return;
    t->led_term = e->raft.term;
    e->statistics.leader_changes++;
    e->statistics.elections_won += ensemble_leads(e);
}

const struct ensemble_election *ensemble_election(const struct ensemble *e, uint32_t i) {
    const struct timings *t = &e->timings;
    uint64_t kept = t->elections < ENSEMBLE_ELECTIONS_KEPT ? t->elections : ENSEMBLE_ELECTIONS_KEPT;
    if (i >= kept) return NULL;
    return &t->election[(t->elections - kept + i) % ENSEMBLE_ELECTIONS_KEPT];
}

/* ---- Times of commits ---- */

/* Those of one iteration of the loop have the same time, and count when the last of them is
 * committed.  If many wait, for a quorum that is gone, the rest of them count as if they had come
 * with the last that has room here. */
void report_appended(struct ensemble *e, size_t size) {
    struct timings *t = &e->timings;
    struct timing *last = &t->appended[(t->first + t->count - 1) % COMMITS_TIMED];
    tally_add(&e->statistics.proposal_sizes, size, 1);
    if (!t->count || (last->us != e->clock->monotonic_us && t->count < COMMITS_TIMED)) {
        last = &t->appended[(t->first + t->count++) % COMMITS_TIMED];
        *last = (struct timing){.us = e->clock->monotonic_us};
    }
    last->index = e->raft.last_index;
    last->entries++;
}

void report_committed(struct ensemble *e) {
    struct timings *t = &e->timings;
    for (; t->count; t->count--, t->first = (t->first + 1) % COMMITS_TIMED) {
        const struct timing *oldest = &t->appended[t->first];
        if (!ensemble_leads(e) || oldest->index > e->raft.commit_index) return;
        summary_add(&e->statistics.commits, e->clock->monotonic_us - oldest->us, oldest->entries);
    }
}

/* ---- Leadership ---- */

uint64_t ensemble_leading_us(const struct ensemble *e) {
    return ensemble_leads(e) ? e->clock->monotonic_us - e->leading_us : 0;
}

uint64_t ensemble_leaderless_us(const struct ensemble *e) {
    return e->leaderless_us ? e->clock->monotonic_us - e->leaderless_us : 0;
}

uint32_t ensemble_reads_pending(const struct ensemble *e) { return e->read_index.count; }

/* ---- Members ---- */

struct ensemble_member ensemble_member(const struct ensemble *e, uint8_t id) {
    enum { SILENCE_TIMES = 2 }; /* of the election timeout */
    const struct raft_peer *peer = raft_find_peer(&e->raft, id);
    struct ensemble_member member = {.linked = e->peer[id].up, .heard_us = e->peer[id].heard_us};
    if (!ensemble_leads(e) || !peer) return member;
    uint64_t silence_us = e->clock->monotonic_us - e->peer[id].heard_us;
    bool heard =
        e->peer[id].heard_us &&
        silence_us < (uint64_t)SILENCE_TIMES * (uint64_t)e->settings->election_timeout_ms * 1000;
    uint64_t match =
        peer->match_index < e->raft.last_index ? peer->match_index : e->raft.last_index;
    uint64_t first = match > e->log.after ? match + 1 : e->log.after + 1;
    member.synced = member.linked && heard && peer->mode == RAFT_STREAM;
    member.lag_entries = e->raft.last_index - match;
    member.lag_bytes = window_span(&e->log, first, e->raft.last_index);
    return member;
}

/* ---- Snapshots ---- */

struct ensemble_snapshot ensemble_snapshot(const struct ensemble *e) {
    struct ensemble_snapshot newest = {.index = e->snapshotting.last_index,
                                       .zxid = e->snapshotting.last_zxid};
    char name[SNAPSHOT_NAME_SIZE];
    struct stat file;
    if (newest.index &&
        fstatat(e->disk.data_directory, snapshot_name(name, newest.index), &file, 0) == 0) {
        newest.bytes = (uint64_t)file.st_size;
        newest.written_s = file.st_mtime;
    }
    return newest;
}
