/* raft: the consensus core of the server, as one of the algorithms.
 *
 *   follower       hears no leader for an election timeout and a random jitter, and asks:
 *   pre-candidate  --PRE_VOTE--> all, <--PRE_ANSWER--; a majority would vote for it, so it
 *   candidate      opens the next term, votes for itself: --VOTE--> all, <--ANSWER--; with a
 *   leader         majority it leads, and its log is everybody's: --APPEND--> all, <--APPENDED--
 *
 * What runs here are the object files of the server (src/raft), with pre-vote, check-quorum and
 * pledges; only their owner is another one, with a log of a few numbers.  A leader begins its term
 * with an entry that has no number, and then proposes numbers, one with each heartbeat: its own,
 * and then 100 more each time.
 *
 * Nobody votes for a candidate whose log lacks something that its own has, and what is durable at
 * a majority is in the log of one of every majority.  So whoever is elected has all that was
 * committed (leader completeness), and no two logs have different entries committed at the same
 * index (state machine safety).  An APPEND names the entry before its own, and a log that does not
 * have that one rejects it: two logs with an entry of the same index and term are the same up to
 * there (log matching).  An entry of an older term is never committed by being counted, only with
 * one of the leader's own term: else a later leader could still replace it (Figure 8 of the paper).
 *
 * In traces `log` has a digit for each entry after the snapshot, the last one of its term.
 *
 * The term and the vote are durable before anything is sent, and so is the log, unless an entry
 * takes --disk-time to be written: then it is acknowledged, and counted, once it is, and a crash
 * leaves those that were written so far.  A log of 8 entries is full: then what is committed is
 * dropped, and who needs it gets a SNAPSHOT.  A process whose log is full of entries that are not
 * committed does not stand for election until a leader has replaced or committed some.
 *
 * With --at-once nobody waits: whoever campaigns opens a term, as after a transfer of leadership,
 * and who is asked votes although it may hear a leader.  So the checker needs no timers to try
 * every order of elections, and with --logs it begins where the hard ones begin: --logs 120 gives
 * p1 and p2 an entry each, of terms 1 and 2, as in Figure 8, and p3 none.
 *
 * Cost: 4(N-1) messages per election, 4 message times after the timeout; 2(N-1) for each heartbeat.
 *
 * What breaks it: amnesia, for a process that forgets its vote gives it twice, and one that forgets
 * its log votes for candidates that lack what is committed.  Nobody leads while no part of the
 * network has more than half of the weight, nor while messages take longer than the election
 * timeout; and nobody leads again once all logs are full of entries that are not committed, which
 * takes leaders that crash one after the other.  Two may believe that they lead, the older one in
 * an older term. */
#include "algorithms/election/raft_records.h"

enum { PRE_VOTE, PRE_ANSWER, VOTE, ANSWER, APPEND, APPENDED, SNAPSHOT, KINDS };
enum { ELECTION_TIMEOUT, HEARTBEAT_INTERVAL, PROPOSALS, DISK_TIME, LOGS, AT_ONCE, OPTIONS };
enum { ELECTION_TIMER, HEARTBEAT_TIMER, DISK_TIMER, TIMERS };
enum { WEIGHT_MAX = UINT16_MAX, NEXT_NUMBER = 100 };

struct member { /* during a step */
    struct raft raft;
    struct cv_log_entry log[LOG_MAX], disk[LOG_MAX]; /* from raft.snapshot_index + 1 on */
    uint64_t written;                                /* the last index on the disk */
    uint32_t proposed;
    const struct cv_env *env;
    struct cv_out *out;
};

static struct cv_log_entry *entry_at(struct member *m, uint64_t index) {
    cv_assert(index > m->raft.snapshot_index && index - m->raft.snapshot_index <= LOG_MAX);
    return &m->log[index - m->raft.snapshot_index - 1];
}

static bool log_is_full(const struct member *m) {
    return m->raft.last_index - m->raft.snapshot_index >= LOG_MAX;
}

/* ---- The state, and the core ---- */

static unsigned char *log_of(struct state *s) {
    return (unsigned char *)s + offsetof(struct state, term_log_1);
}

static unsigned char *disk_of(struct state *s) {
    return (unsigned char *)s + offsetof(struct state, term_disk_1);
}

static void set_config(struct raft_config *config, const struct cv_env *env) {
    cv_assert(env->processes <= RAFT_MEMBERS_MAX);
    *config = (struct raft_config){.count = env->processes};
    for (cv_pid p = 1; p <= env->processes; p++) {
        uint64_t weight = env->weights[p] < WEIGHT_MAX ? env->weights[p] : WEIGHT_MAX;
        config->at[p - 1] = (struct raft_member){.id = (uint8_t)p, .weight = (uint16_t)weight};
    }
}

static void restore(struct member *m, const struct state *s, const void *log, uint64_t last) {
    struct raft *raft = &m->raft;
    struct raft_config config;
    set_config(&config, m->env);
    memcpy(m->log, log, sizeof m->log);
    raft_open(raft, (uint8_t)m->env->self, s->term, (uint8_t)s->vote);
    raft_restore_snapshot(raft, s->snapshot, s->snapshot_term, &config);
    for (uint64_t i = s->snapshot + 1; i <= last; i++)
        raft_restore_entries(raft, i, 1, entry_at(m, i)->term, NULL);
    m->written = s->written;
}

/* The disk at the beginning: the last digit is that of the last process. */
static void begin_with_log(const struct member *m, struct state *s) {
    uint64_t term = m->env->option[LOGS];
    for (cv_pid p = m->env->processes; p > m->env->self; p--) term /= 10;
    if (!(term %= 10)) return;
    s->term = s->term_disk_1 = (uint32_t)term;
    s->written = 1;
    cv_save(m->out);
}

/* As a server starts from its disk. */
static void restore_from_disk(struct member *m, struct state *s) {
    memcpy(m->disk, disk_of(s), sizeof m->disk);
    restore(m, s, m->disk, s->written);
}

static void unpack(struct member *m, struct state *s) {
    struct raft *raft = &m->raft;
    memcpy(m->disk, disk_of(s), sizeof m->disk);
    restore(m, s, log_of(s), s->last);
    raft->durable_index = s->last - s->unwritten;
    raft->commit_index = s->commit;
    raft->verified_index = s->verified;
    raft->term_start_index = s->term_start;
    raft->round = s->round;
    raft->confirmed_round = s->confirmed_round;
    raft->pledge = s->pledge;
    raft->leader = (uint8_t)s->leader;
    raft->role = (uint8_t)s->role;
    raft->leader_timed_out = s->leader_timed_out || m->env->option[AT_ONCE];
    memcpy(raft->peer, s + 1, m->env->processes * sizeof *raft->peer);
    m->proposed = s->proposed;
}

static void pack(struct member *m, struct state *s) {
    const struct raft *raft = &m->raft;
    s->term = (uint32_t)raft->term;
    s->vote = raft->voted_for;
    s->snapshot = raft->snapshot_index;
    s->snapshot_term = (uint32_t)raft->snapshot_term;
    s->last = raft->last_index;
    memset(log_of(s), 0, sizeof m->log);
    memcpy(log_of(s), m->log, (s->last - s->snapshot) * sizeof *m->log);
    s->unwritten = raft->last_index - raft->durable_index;
    s->written = m->written;
    memset(disk_of(s), 0, sizeof m->disk);
    memcpy(disk_of(s), m->disk, (s->written - s->snapshot) * sizeof *m->disk);
    s->log = 0;
    for (uint64_t i = s->snapshot + 1; i <= s->last; i++)
        s->log = 10 * s->log + entry_at(m, i)->term % 10;
    s->commit = raft->commit_index;
    s->verified = raft->verified_index;
    s->term_start = raft->term_start_index;
    s->round = raft->round;
    s->confirmed_round = raft->confirmed_round;
    s->pledge = raft->pledge;
    s->leader = raft->leader;
    s->role = raft->role;
    s->leader_timed_out = raft->leader_timed_out;
    s->proposed = raft->role == RAFT_LEADER ? m->proposed : 0;
    memcpy(s + 1, raft->peer, m->env->processes * sizeof *raft->peer);
}

/* ---- Messages ---- */

static bool send_message(void *owner, const struct raft_message *message) {
    struct member *m = owner;
    uint32_t term = (uint32_t)message->term;
    if (message->type == RAFT_REQUEST_VOTE) {
        const struct raft_request_vote *request = &message->request_vote;
        cv_send(m->out, message->to, request->pre_vote ? PRE_VOTE : VOTE, call, .term = term,
                .last_index = request->last_log_index,
                .last_term = (uint32_t)request->last_log_term);
    } else if (message->type == RAFT_REQUEST_VOTE_RESPONSE) {
        const struct raft_request_vote_response *response = &message->request_vote_response;
        cv_send(m->out, message->to, response->pre_vote ? PRE_ANSWER : ANSWER, reply, .term = term,
                .yes = response->vote_granted);
    } else if (message->type == RAFT_APPEND_ENTRIES) {
        const struct raft_append_entries *a = &message->append_entries;
        cv_send(m->out, message->to, APPEND, append, .term = term, .prev_index = a->prev_log_index,
                .prev_term = (uint32_t)a->prev_log_term, .entry_term = (uint32_t)a->entries_term,
                .number = a->entry_count ? entry_at(m, a->prev_log_index + 1)->number : 0,
                .commit = a->leader_commit, .pledge = a->pledge, .round = a->round,
                .commit_notification = a->commit_notification);
    } else {
        cv_assert(message->type == RAFT_APPEND_ENTRIES_RESPONSE);
        const struct raft_append_entries_response *r = &message->append_entries_response;
        cv_send(m->out, message->to, APPENDED, appended, .term = term, .rejected = r->rejected,
                .match_index = r->match_index, .match_term = r->match_term,
                .rejected_index = r->rejected_index, .round = r->round);
    }
    return true;
}

/* An entry for which there is no room is left out, and is sent again when it is missed. */
static void read_append(const struct member *m, const struct append *body,
                        struct raft_message *message) {
    bool fits = body->prev_index < m->raft.snapshot_index + LOG_MAX;
    message->type = RAFT_APPEND_ENTRIES;
    message->append_entries =
        (struct raft_append_entries){.prev_log_index = body->prev_index,
                                     .prev_log_term = body->prev_term,
                                     .leader_commit = body->commit,
                                     .pledge = body->pledge,
                                     .round = body->round,
                                     .entries_term = fits ? body->entry_term : 0,
                                     .entry_count = fits && body->entry_term,
                                     .commit_notification = body->commit_notification != 0};
}

static void read_message(const struct member *m, const struct cv_event *e,
                         struct raft_message *message) {
    const struct call *call = e->body;
    const struct reply *reply = e->body;
    const struct appended *appended = e->body;
    const struct snapshot *snapshot = e->body;
    memset(message, 0, sizeof *message);
    message->from = (uint8_t)e->from;
    message->to = m->raft.self;
    message->term = reply->term; /* replies, APPEND and APPENDED begin with it */
    switch (e->kind) {
    case PRE_VOTE:
    case VOTE:
        message->type = RAFT_REQUEST_VOTE;
        message->term = call->term;
        message->request_vote = (struct raft_request_vote){.last_log_index = call->last_index,
                                                           .last_log_term = call->last_term,
                                                           .pre_vote = e->kind == PRE_VOTE};
        break;
    case PRE_ANSWER:
    case ANSWER:
        message->type = RAFT_REQUEST_VOTE_RESPONSE;
        message->request_vote_response = (struct raft_request_vote_response){
            .vote_granted = reply->yes != 0, .pre_vote = e->kind == PRE_ANSWER};
        break;
    case APPEND: read_append(m, e->body, message); break;
    case APPENDED:
        message->type = RAFT_APPEND_ENTRIES_RESPONSE;
        message->append_entries_response =
            (struct raft_append_entries_response){.match_index = appended->match_index,
                                                  .match_term = appended->match_term,
                                                  .rejected_index = appended->rejected_index,
                                                  .round = appended->round,
                                                  .rejected = appended->rejected != 0};
        break;
    default:
        message->type = RAFT_INSTALL_SNAPSHOT;
        message->term = snapshot->term;
        message->install_snapshot = (struct raft_install_snapshot){
            .last_included_index = snapshot->last_index, .last_included_term = snapshot->last_term};
    }
}

/* ---- Effects of the core ---- */

static bool persist_vote(void *owner) {
    struct member *m = owner;
    cv_save(m->out);
    return true;
}

static void append_entries(void *owner, uint64_t from, const void *payload) {
    struct member *m = owner;
    const struct append *body = payload;
    *entry_at(m, from) = (struct cv_log_entry){body->entry_term, body->number};
}

/* The members do not change, so the first entry of a term says nothing. */
static void append_config(void *owner) {
    struct member *m = owner;
    *entry_at(m, m->raft.last_index) = (struct cv_log_entry){(uint32_t)m->raft.term, 0};
}

static void start_timer(void *owner, enum raft_timer timer) {
    const struct member *m = owner;
    uint64_t timeout_us = m->env->option[ELECTION_TIMEOUT];
    cv_timer(m->out, ELECTION_TIMER, timer == RAFT_TIMER_ELECTION_TIMEOUT ? timeout_us : 1,
             timeout_us);
}

/* A snapshot takes the place of so many entries.  What is on the disk counts no more unless it goes
 * on from there. */
static void drop(struct member *m, uint64_t count, uint64_t durable) {
    bool goes_on = m->raft.last_index > m->raft.snapshot_index && durable >= m->raft.snapshot_index;
    if (count < LOG_MAX) {
        memmove(m->log, m->log + count, (LOG_MAX - count) * sizeof *m->log);
        memmove(m->disk, m->disk + count, (LOG_MAX - count) * sizeof *m->disk);
    }
    if (!goes_on) m->written = m->raft.snapshot_index;
    cv_save(m->out);
}

static void install_snapshot(void *owner, const void *payload) {
    struct member *m = owner;
    const struct snapshot *body = payload;
    struct raft_config config = m->raft.config;
    struct raft_out out = {0};
    uint64_t before = m->raft.snapshot_index, durable = m->raft.durable_index;
    if (!raft_snapshot_installed(&m->raft, body->last_index, body->last_term, &config, &out))
        return;
    drop(m, m->raft.snapshot_index - before, durable);
    for (uint32_t i = 0; i < out.messages; i++) send_message(m, &out.message[i]);
}

static void perform(struct member *m, const struct raft_out *out, const void *payload) {
    static const struct raft_callbacks callbacks = {.persist_vote = persist_vote,
                                                    .append_entries = append_entries,
                                                    .append_config = append_config,
                                                    .start_timer = start_timer,
                                                    .send = send_message,
                                                    .snapshot_chunk = install_snapshot};
    raft_perform(out, &callbacks, m, payload);
}

/* ---- What an owner does after every event ---- */

static bool is_writing(const struct member *m) {
    return m->raft.durable_index < m->raft.last_index;
}

/* The next entry is on the disk, and what was there from its index on is not any more. */
static void write_entry(struct member *m) {
    struct raft *raft = &m->raft;
    struct raft_out out = {0};
    uint64_t index = raft->durable_index + 1;
    if (!is_writing(m)) return;
    m->disk[index - raft->snapshot_index - 1] = *entry_at(m, index);
    m->written = index;
    cv_save(m->out);
    raft_entries_durable(raft, index, raft_term_at(raft, index), &out);
    perform(m, &out, NULL);
}

/* Entry after entry, as long as there are any: a crash leaves those that were written. */
static void keep_writing(const struct member *m, bool timer_runs) {
    uint64_t disk_us = m->env->option[DISK_TIME];
    if (is_writing(m) && !timer_runs) cv_timer(m->out, DISK_TIMER, disk_us, disk_us);
    if (!is_writing(m) && timer_runs) cv_timer_cancel(m->out, DISK_TIMER);
}

static void compact(struct member *m) {
    uint64_t gone = m->raft.commit_index - m->raft.snapshot_index, durable = m->raft.durable_index;
    if (!log_is_full(m) || !gone) return;
    raft_compacted(&m->raft, m->raft.commit_index);
    drop(m, gone, durable);
}

static void replicate_to(struct member *m, cv_pid p) {
    struct raft *raft = &m->raft;
    struct raft_message message;
    while (raft_next_append(raft, (uint8_t)p, UINT64_MAX, &message)) {
        if (message.append_entries.entry_count) message.append_entries.entry_count = 1;
        raft_append_sent(raft, &message);
        send_message(m, &message);
        if (raft->peer[p - 1].mode == RAFT_SNAPSHOT)
            cv_send(m->out, p, SNAPSHOT, snapshot, .term = (uint32_t)raft->term,
                    .last_index = raft->snapshot_index, .last_term = (uint32_t)raft->snapshot_term);
    }
}

static void start_heartbeats(const struct member *m) {
    uint64_t interval_us = m->env->option[HEARTBEAT_INTERVAL];
    cv_timer(m->out, HEARTBEAT_TIMER, interval_us, interval_us);
}

/* `before`: the state that the event found. */
static void tell(const struct member *m, const struct state *before) {
    const struct raft *raft = &m->raft;
    const struct cv_env *env = m->env;
    uint32_t term = (uint32_t)raft->term;
    bool leads = raft->role == RAFT_LEADER, new_term = term != before->term;
    if (new_term && raft->voted_for == env->self) cv_tell(m->out, CV_ROUND, term);
    if (leads && (before->role != RAFT_LEADER || new_term)) {
        start_heartbeats(m);
        cv_tell_term(m->out, CV_ELECTED, env->id, term);
    } else if (!leads && before->role == RAFT_LEADER) {
        cv_timer_cancel(m->out, HEARTBEAT_TIMER);
    }
    if (!raft->leader && before->leader)
        cv_tell(m->out, CV_LEADERLESS, 0);
    else if (!leads && raft->leader && (raft->leader != before->leader || new_term))
        cv_tell_term(m->out, CV_FOLLOWS, env->ids[raft->leader], term);
}

/* ---- Events ---- */

static void on_message(struct member *m, const struct cv_event *e) {
    struct raft_message message;
    struct raft_out out = {0};
    read_message(m, e, &message);
    raft_receive(&m->raft, &message, NULL, &out);
    perform(m, &out, e->body);
}

static void on_election_timeout(struct member *m) {
    struct raft_out out = {0};
    if (m->raft.role != RAFT_LEADER && m->raft.leader_timed_out && log_is_full(m))
        out.timer = RAFT_TIMER_ELECTION_TIMEOUT; /* it has no room for the entry of a leader */
    else
        raft_timer_fired(&m->raft, &out);
    perform(m, &out, NULL);
}

/* As after TimeoutNow, which may come late: another may lead already. */
static void stand_at_once(struct member *m) {
    struct raft_out out = {0};
    if (m->raft.role == RAFT_LEADER || log_is_full(m)) return;
    raft_become_candidate(&m->raft, false, &out);
    perform(m, &out, NULL);
}

static void propose(struct member *m) {
    if (m->proposed >= m->env->option[PROPOSALS] || log_is_full(m)) return;
    uint64_t index = raft_propose(&m->raft, 1);
    if (!index) return;
    *entry_at(m, index) =
        (struct cv_log_entry){(uint32_t)m->raft.term, m->env->self + NEXT_NUMBER * m->proposed};
    m->proposed++;
}

static void on_heartbeat_interval(struct member *m) {
    if (m->raft.role != RAFT_LEADER) return;
    propose(m);
    raft_heartbeat(&m->raft);
    start_heartbeats(m);
}

static void start(struct member *m) {
    struct raft_out out = {0};
    raft_start(&m->raft, 0, &out);
    perform(m, &out, NULL);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state, before = *s;
    struct member m = {.env = env, .out = out};
    bool starts = e->type == CV_START || e->type == CV_RESTART;
    bool writes = e->type == CV_TIMEOUT && e->arg == DISK_TIMER;
    if (e->type == CV_START) begin_with_log(&m, s);
    if (starts)
        restore_from_disk(&m, s), start(&m);
    else
        unpack(&m, s);
    if (e->type == CV_RECV)
        on_message(&m, e);
    else if (writes)
        write_entry(&m);
    else if (e->type == CV_TIMEOUT && e->arg == HEARTBEAT_TIMER)
        on_heartbeat_interval(&m);
    else if (e->type == CV_CALL && e->arg == CV_CAMPAIGN && env->option[AT_ONCE])
        stand_at_once(&m);
    else if (e->type == CV_TIMEOUT ||
             (e->type == CV_CALL && e->arg == CV_CAMPAIGN && m.raft.role == RAFT_FOLLOWER))
        on_election_timeout(&m);
    while (!env->option[DISK_TIME] && is_writing(&m)) write_entry(&m);
    compact(&m);
    keep_writing(&m, before.unwritten && !starts && !writes);
    for (cv_pid p = 1; p <= env->processes; p++) replicate_to(&m, p);
    tell(&m, &before);
    pack(&m, s);
}

static void show_log(const void *state, struct cv_log *log) {
    const struct state *s = state;
    *log = (struct cv_log){.first = s->snapshot + 1,
                           .last = s->last,
                           .commit = s->commit,
                           .term = s->term,
                           .leads = s->role == RAFT_LEADER,
                           .entry = (const struct cv_log_entry *)(const void *)&s->term_log_1};
}

static const char *refuse(const struct cv_env *env) {
    if (env->processes > RAFT_MEMBERS_MAX)
        return "there are at most 16 processes, as in an ensemble";
    uint64_t logs = env->option[LOGS];
    for (cv_pid p = 1; p <= env->processes; p++) logs /= 10;
    if (logs) return "logs: there are more digits than processes";
    if (env->option[HEARTBEAT_INTERVAL] >= env->option[ELECTION_TIMEOUT])
        return "heartbeat-interval must be shorter than election-timeout, or a leader loses its "
               "followers";
    return NULL;
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->durable = offsetof(struct state, leader);
    /* To each other process its log, a heartbeat and a snapshot; and responses. */
    layout->sends = env->processes * (LOG_MAX + 4);
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("PRE_VOTE", call),     CV_TABLE("PRE_ANSWER", reply), CV_TABLE("VOTE", call),
    CV_TABLE("ANSWER", reply),      CV_TABLE("APPEND", append),    CV_TABLE("APPENDED", appended),
    CV_TABLE("SNAPSHOT", snapshot),
};
static const struct cv_option options[OPTIONS] = {
    [ELECTION_TIMEOUT] = {"election-timeout",
                          "stand for election after hearing nothing for this long (up to twice)",
                          CV_DURATION, 150000, 2, 1000000000000},
    [HEARTBEAT_INTERVAL] = {"heartbeat-interval", "how often a leader sends a heartbeat",
                            CV_DURATION, 30000, 1, 1000000000000},
    [PROPOSALS] = {"proposals", "how many numbers a leader proposes in its term", CV_NUMBER, 1, 0,
                   1000000000},
    [DISK_TIME] = {"disk-time",
                   "how long it takes to write an entry; a crash loses what is not written",
                   CV_DURATION, 0, 0, 1000000000000},
    [LOGS] =
        {"logs",
         "a digit for each process: the term of the entry with which its log begins, 0 for none",
         CV_NUMBER, 0, 0, 9999999999999999},
    [AT_ONCE] = {"at-once",
                 "who campaigns opens a term at once, without a pre-vote, and everybody votes "
                 "whether or not it hears a leader",
                 CV_FLAG, 0, 0, 1},
};

CV_ALGORITHM(raft) = {
    .name = "raft",
    .summary = "the consensus core of the server: a leader for each term, and one log for all",
    .paper = "Ongaro & Ousterhout, In search of an understandable consensus algorithm, ATC 2014",
    .tolerates = "crashes of less than half the weight, partitions, loss; restarts, not amnesia",
    .cost = "4(N-1), and 2(N-1) per heartbeat",
    .delay = "4 after the timeout",
    CV_MACHINE,
    CV_OPTIONS,
    .timers = TIMERS,
    .refuse = refuse,
    .problem = CV_ELECTION,
    .topology = CV_COMPLETE,
    .preference = CV_ANYONE,
    .traits = CV_TERMS | CV_NEVER_QUIESCENT | CV_UNBOUNDED,
    .log = show_log,
};
