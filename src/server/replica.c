/* The turn of a member: what was put forward goes to the leader, entries go to the others and to
 * the disk, and what is decided comes out in its order. */
#include "server/server.h"

#include <sys/random.h>
#include <unistd.h>

#include "base/rng.h"
#include "store/data.h"

enum {
    BEAT_MS = 50,             /* a leader is heard that often */
    TURN_MS = 150,            /* and then up to so much more */
    TURN_TIMES_MAX = 8,       /* or so many times that */
    UNAPPLIED_MAX = 64 << 20, /* bytes that a leader takes in before some are decided */
    FEED_MAX = 1 << 20,       /* bytes at a time */
    SAVE_MAX = 16 << 20,      /* bytes of one batch of the log */
    SAVE_LATER_MAX = 1 << 20, /* bytes that are decided and wait for more */
    PATIENCE_MS = 2,
    AGAIN_US = 2000000, /* what has not come back by then is put forward once more */
};

bool replica_leads(const struct server *s) { return s->replica.raft.role == RAFT_LEADER; }

static bool is_alone(const struct server *s) { return !s->replica.links; }

/* ---- Effects ---- */

static void save_vote(struct server *s) {
    struct replica *r = &s->replica;
    r->vote.term = r->raft.term;
    r->vote.server = r->raft.vote;
    if (vote_write(&r->vote) == 0) return;
    server_say("error", "%s", r->vote.message);
    _exit(SERVER_EXIT_DISK); /* nothing may be said to anybody any more */
}

static void waited(uv_timer_t *timer) {
    struct server *s = timer->data;
    struct raft_out out = {0};
    server_read_clock(s);
    raft_waited(&s->replica.raft, &out);
    replica_perform(s, &out);
}

void replica_beat(struct server *s) {
    fresh_round_begun(s, raft_beat(&s->replica.raft));
    server_wake(s);
}

static void beat(uv_timer_t *timer) {
    struct server *s = timer->data;
    server_read_clock(s);
    replica_beat(s);
}

void replica_hand_over(struct server *s) {
    struct raft_out out = {0};
    uint8_t heir = raft_best_heir(&s->replica.raft);
    if (heir) raft_transfer(&s->replica.raft, heir, &out);
    replica_perform(s, &out);
}

bool replica_is_lost(const struct server *s) {
    uint64_t since = s->replica.leaderless_us;
    return since && s->clock_us - since > REPLICA_LEADERLESS_MS * 1000;
}

/* Longer when it has come to nothing for long: members may be further apart than a turn lasts, and
 * would for ever interrupt each other. */
static uint64_t turn_ms(struct server *s) {
    const struct replica *r = &s->replica;
    uint64_t s_without = r->leaderless_us ? (s->clock_us - r->leaderless_us) / 1000000 : 0;
    uint64_t times = s_without < TURN_TIMES_MAX ? 1 + s_without : TURN_TIMES_MAX;
    return rng_below(&s->replica.rng, times * TURN_MS + 1);
}

static void start_wait(struct server *s, enum raft_wait wait) {
    struct replica *r = &s->replica;
    if (wait == RAFT_AS_IT_WAS || is_alone(s)) return;
    uint64_t ms = wait == RAFT_WAIT_SILENCE ? REPLICA_SILENCE_MS : turn_ms(s);
    uv_update_time(&s->loop); /* a leader may rely on it that this is no shorter than it says */
    uv_timer_start(&r->wait, waited, ms, 0);
}

/* The new leader says who is a member: its first entry. */
void replica_add_members(struct server *s) {
    struct replica *r = &s->replica;
    struct tree_members members = {
        s->now_ms, {(const char *)r->members.text.at, (int32_t)r->members.text.used}};
    size_t size = tree_members_size(&members);
    tree_store_members(window_room(&r->log, size), &members);
    cv_assert(window_add(&r->log, r->raft.term, RAFT_CONFIG, size) == r->raft.last);
    r->for_all = r->raft.last;
}

/* A config that was in the log may have been replaced by what was before it. */
static void follow_members(struct server *s) {
    struct replica *r = &s->replica;
    if (r->members.mark == r->raft.config.mark || is_alone(s)) return;
    cv_assert(r->former.mark == r->raft.config.mark);
    struct members swap = r->members;
    r->members = r->former;
    r->former = swap;
    peers_update(s);
}

void replica_note_leader(struct server *s) {
    struct replica *r = &s->replica;
    if (replica_leads(s) || r->up[r->raft.leader]) {
        if (r->leaderless_us) sessions_with_leader(s);
        r->leaderless_us = 0;
    } else if (!r->leaderless_us) {
        r->leaderless_us = s->clock_us;
    }
}

static void leader_changed(struct server *s) {
    struct replica *r = &s->replica;
    r->leader_said = r->raft.leader;
    r->term_said = r->raft.term;
    replica_note_leader(s);
    memset(r->came_from, 0, sizeof r->came_from);
    r->for_all = r->raft.last;
    r->fed = r->outbox.after;
    if (is_alone(s)) return;
    if (!r->raft.leader)
        server_say("info", "no leader term=%llu", (unsigned long long)r->raft.term);
    else
        server_say("info", "%s leader=%u term=%llu last=%llu",
                   replica_leads(s) ? "leading" : "following", r->raft.leader,
                   (unsigned long long)r->raft.term, (unsigned long long)r->raft.last);
    uv_timer_stop(&r->beat);
    if (!replica_leads(s)) return;
    uv_timer_start(&r->beat, beat, 0, BEAT_MS);
    sessions_renew(s);
}

void replica_perform(struct server *s, const struct raft_out *out) {
    struct replica *r = &s->replica;
    if (out->save_vote) save_vote(s);
    if (out->add_config) replica_add_members(s);
    start_wait(s, out->wait);
    for (uint32_t i = 0; i < out->messages; i++) peers_send(s, &out->message[i]);
    follow_members(s);
    if (r->raft.leader != r->leader_said || r->raft.term != r->term_said) leader_changed(s);
    server_wake(s);
}

/* ---- What is left for later ---- */

static void patience_ended(uv_timer_t *timer) {
    struct server *s = timer->data;
    struct replica *r = &s->replica;
    uint64_t done = r->raft.saved;
    if (replica_leads(s) && r->raft.committed < done) done = r->raft.committed;
    r->hurry = done < r->patient_for;
    server_wake(s);
}

void replica_be_patient(struct server *s) {
    struct replica *r = &s->replica;
    if (uv_is_active((uv_handle_t *)&r->patience)) return;
    r->patient_for = r->raft.last;
    uv_update_time(&s->loop);
    uv_timer_start(&r->patience, patience_ended, PATIENCE_MS, 0);
}

/* ---- Putting forward ---- */

unsigned char *replica_room(struct server *s, size_t most) {
    return window_room(&s->replica.outbox, most);
}

void replica_propose(struct server *s, size_t size) {
    window_add(&s->replica.outbox, 0, RAFT_NORMAL, size);
    server_wake(s);
}

/* The leader's clock counts, so that times do not depend on who a client is connected to. */
bool replica_lead_entry(struct server *s, const unsigned char *bytes, size_t size) {
    struct replica *r = &s->replica;
    if (!raft_propose(&r->raft, 1)) return false;
    unsigned char *room = window_room(&r->log, size);
    memcpy(room, bytes, size);
    if (size >= sizeof s->now_ms) zk_store_i64(room, &s->now_ms);
    cv_assert(window_add(&r->log, r->raft.term, RAFT_NORMAL, size) == r->raft.last);
    return true;
}

static void lead_batch(struct server *s, const struct raft_batch *batch) {
    struct replica *r = &s->replica;
    struct raft_entry entry;
    for (size_t at = 0; raft_next(batch, &at, &entry); r->fed++) {
        if (!replica_lead_entry(s, entry.bytes, entry.size)) return;
        r->for_all = r->raft.last;
    }
}

bool replica_can_lead_more(const struct server *s) {
    const struct replica *r = &s->replica;
    return replica_leads(s) && !r->raft.heir &&
           window_span(&r->log, r->applied + 1, r->raft.last) <= UNAPPLIED_MAX;
}

static void feed(struct server *s) {
    struct replica *r = &s->replica;
    struct raft_batch batch;
    bool overdue = !replica_leads(s) && s->clock_us - r->fed_us > AGAIN_US;
    bool passed = r->fed < r->outbox.after; /* what had been forgotten came back all the same */
    if (r->fed_term != r->raft.term || overdue || passed) r->fed = r->outbox.after;
    while (r->raft.leader && r->fed < window_last(&r->outbox)) {
        if (r->fed == r->outbox.after) r->fed_us = s->clock_us;
        r->fed_term = r->raft.term;
        window_read(&r->outbox, r->fed + 1, FEED_MAX, &batch);
        if (!replica_leads(s)) {
            if (!peers_forward(s, &batch)) return;
            r->fed += batch.count;
        } else {
            if (!replica_can_lead_more(s)) return;
            lead_batch(s, &batch);
        }
    }
}

/* ---- What is decided ---- */

static void apply_config(struct server *s, const struct raft_entry *entry) {
    struct tree_members members;
    cv_assert(tree_read_members(zk_in_of(entry->bytes, entry->size), &members));
    tree_configure(&s->tree, tree_next_zxid(&s->tree, entry->term), &members);
    change_applied(s, members.text);
    commit_tell_watchers(s);
}

static void apply_decided(struct server *s) {
    struct replica *r = &s->replica;
    struct raft_entry entry;
    while (r->applied < r->raft.committed) {
        window_entry(&r->log, r->applied + 1, &entry);
        r->applied++;
        r->applied_term = entry.term;
        if (entry.kind == RAFT_CONFIG)
            apply_config(s, &entry);
        else
            commit_apply(s, &entry);
    }
    /* What is applied and durable is kept for others for a while, unless there are none. */
    uint64_t most = r->applied < r->raft.saved ? r->applied : r->raft.saved;
    if (is_alone(s) && most > r->log.after) window_trim(&r->log, most);
    size_t kept = (size_t)s->settings.kept_bytes;
    if (install_is_sending(s)) kept *= 4; /* what comes behind it, too */
    while (window_bytes(&r->log) > kept && r->log.after < most)
        window_trim(&r->log, r->log.after + 1);
    raft_trimmed(&r->raft, r->log.after);
}

/* ---- The disk ----
 *
 * One that answers at once is waited for: that is quicker than to ask a thread.  When it has been
 * slow, the next batch is left to a thread, and everything else goes on meanwhile. */

static void write_batch(uv_work_t *work) {
    struct server *s = work->data;
    uint64_t begun = uv_hrtime();
    s->save_failed = log_append(&s->log, &s->batch) != 0;
    s->save_us = (uv_hrtime() - begun) / 1000;
}

static void batch_saved(struct server *s) {
    struct raft_out out = {0};
    if (s->save_failed) {
        server_say("error", "%s; what was not acknowledged may be lost, nothing else is",
                   s->log.message);
        _exit(SERVER_EXIT_DISK); /* nothing may be said to anybody any more */
    }
    server_read_clock(s);
    summary_add(&s->statistics.syncs, s->save_us, 1);
    s->statistics.log_bytes += s->batch.size;
    if (s->save_us > (uint64_t)s->settings.sync_warning_ms * 1000) {
        s->statistics.slow_syncs++;
        server_say("warning", "the disk is slow: writing %u entries took %llu ms", s->batch.count,
                   (unsigned long long)s->save_us / 1000);
    }
    raft_saved(&s->replica.raft, raft_batch_last(&s->batch), s->batch.term, &out);
    replica_perform(s, &out);
}

static void batch_written(uv_work_t *work, int status) {
    struct server *s = work->data;
    (void)status;
    s->saving = false;
    if (s->stopping) return; /* nobody is left to be told */
    batch_saved(s);
    replica_turn(s);
}

/* What has been decided without us is to be durable here, too, but nobody waits for it. */
static bool may_save_later(const struct server *s) {
    const struct replica *r = &s->replica;
    return r->raft.last <= r->raft.committed && !r->hurry && !s->stopping &&
           window_span(&r->log, r->raft.saved + 1, r->raft.last) < SAVE_LATER_MAX;
}

static bool save(struct server *s) {
    struct replica *r = &s->replica;
    if (s->saving || r->raft.saved == r->raft.last) return false;
    if (may_save_later(s)) {
        replica_be_patient(s);
        return false;
    }
    window_read(&r->log, r->raft.saved + 1, SAVE_MAX, &s->batch);
    s->batch.committed = is_alone(s) ? raft_batch_last(&s->batch) : r->raft.committed;
    s->save.data = s;
    if (s->save_us <= (uint64_t)s->settings.sync_wait_us || s->stopping) {
        write_batch(&s->save);
        batch_saved(s);
        return true;
    }
    s->saved_bytes.used = 0; /* the window may move while the thread writes */
    bytes_add(&s->saved_bytes, s->batch.bytes, s->batch.size);
    s->batch.bytes = s->saved_bytes.at;
    s->saving = true;
    uv_queue_work(&s->loop, &s->save, write_batch, batch_written);
    return false;
}

/* ---- The turn ---- */

bool replica_has_work(const struct server *s) {
    const struct replica *r = &s->replica;
    bool to_save = !s->saving && r->raft.saved < r->raft.last && !may_save_later(s);
    bool to_feed = r->raft.leader && r->fed < window_last(&r->outbox) &&
                   (replica_leads(s) ? replica_can_lead_more(s) : peers_can_forward(s));
    return to_save || to_feed || r->applied < r->raft.committed || fresh_has_work(s);
}

void replica_turn(struct server *s) {
    feed(s);
    peers_replicate(s, true); /* the others' disks work while ours does */
    peers_flush(s);
    if (s->replica.applied < s->replica.raft.committed) { /* nor does that wait for our disk */
        apply_decided(s);
        connections_flush(s);
    }
    while (save(s)) continue;
    peers_flush(s);
    apply_decided(s);
    connections_flush(s);
    fresh_turn(s);
    change_turn(s);
    change_answer(s);
    store_snapshot(s, false);
    store_trim(s);
    peers_replicate(s, false);
    install_turn(s);
    peers_flush(s);
    s->replica.hurry = false;
}

/* ---- Beginning and end ---- */

static void restore_log(struct server *s) {
    struct replica *r = &s->replica;
    struct raft_batch batch;
    struct raft_config config;
    for (uint64_t index = r->log.after + 1; index <= window_last(&r->log); index += batch.count) {
        window_read(&r->log, index, SIZE_MAX, &batch);
        bool is_config = batch.kind == RAFT_CONFIG && members_take_entry(s, &batch, &config);
        raft_restore(&r->raft, batch.first, batch.count, batch.term, is_config ? &config : NULL);
    }
}

/* The members that the data knows of count more than those that settings name. */
static int choose_members(struct server *s, struct raft_config *config) {
    const struct settings *named = &s->settings;
    struct replica *r = &s->replica;
    struct bytes text = {0};
    const char *problem = NULL;
    bool known = members_of_tree(s, config);
    if (!known) {
        if (!named->join) members_write(named, &text);
        members_set(&r->members, text.at, text.used);
        bytes_close(&text);
        *config = (struct raft_config){.mark = r->members.mark};
        if (named->member_count && !named->join && !members_in_force(s, config))
            return SERVER_EXIT_NETWORK;
    }
    if (known && config->count && !named->member_count)
        problem = "belongs to a server of an ensemble: say which with --id and --ensemble";
    if (!known && named->member_count > 1 && !named->join && r->applied)
        problem = "was written by a server alone: start it with --ensemble and nobody but itself "
                  "there, then add the others ('conclave ensemble add')";
    if (problem) server_say("error", "%s: %s", named->data_dir, problem);
    return problem ? SERVER_EXIT_DISK : 0;
}

int replica_open(struct server *s) {
    struct replica *r = &s->replica;
    struct raft_config config;
    uint8_t self = s->settings.server_id > 0 ? (uint8_t)s->settings.server_id : 1;
    cv_assert(getrandom(&r->life, sizeof r->life, 0) == sizeof r->life);
    r->life = r->life << 8 | self;
    rng_seed(&r->rng, r->life);
    window_open(&r->outbox, 0);
    if (vote_read(&r->vote, s->log_directory, s->settings.log_dir) != 0) {
        server_say("error", "%s", r->vote.message);
        return SERVER_EXIT_DISK;
    }
    int status = choose_members(s, &config);
    if (status) return status;
    if (!config.count && !s->settings.join)
        config = (struct raft_config){.mark = config.mark, .count = 1, .at = {{self, 0, 1}}};
    raft_open(&r->raft, self, r->vote.term, (uint8_t)r->vote.server);
    r->raft.leases = s->settings.linearizable;
    raft_restore_base(&r->raft, r->log.after, r->base_term, &config);
    restore_log(s);
    return 0;
}

void replica_start(struct server *s) {
    struct replica *r = &s->replica;
    struct raft_out out = {0};
    uv_timer_init(&s->loop, &r->wait);
    uv_timer_init(&s->loop, &r->beat);
    uv_timer_init(&s->loop, &r->patience);
    r->wait.data = r->beat.data = r->patience.data = s;
    r->leaderless_us = s->clock_us;
    raft_begin(&r->raft, r->applied, &out);
    replica_perform(s, &out);
    if (is_alone(s)) replica_turn(s);
}

void replica_close(struct server *s) {
    struct replica *r = &s->replica;
    window_close(&r->log);
    window_close(&r->outbox);
    bytes_close(&r->members.text);
    bytes_close(&r->former.text);
    bytes_close(&r->goal.members.text);
    install_close(s);
}
