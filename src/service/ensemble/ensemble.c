/* The member's loop iteration: proposals go to the leader, entries go to the other members and to
 * the disk, and committed entries are applied in their order. */
#include "service/ensemble/core.h"
#include "service/ensemble/internal.h"

#include <sys/random.h>
#include <unistd.h>

#include "base/logger.h"

enum {
    ELECTION_JITTER_PERCENT = 30,  /* at most; without a leader the maximum grows ... */
    ELECTION_JITTER_TIMES_MAX = 8, /* ... to so many times that */
};

bool ensemble_leads(const struct ensemble *e) { return e->raft.role == RAFT_LEADER; }

bool ensemble_is_standalone(const struct ensemble *e) { return e->standalone; }

uint64_t ensemble_term(const struct ensemble *e) { return e->raft.term; }

bool ensemble_is_writing(const struct ensemble *e) { return e->disk.writing; }

/* ---- Leadership ---- */

void ensemble_heartbeat(struct ensemble *e) {
    read_index_round_begun(e, core_heartbeat(e));
    ensemble_wake(e);
}

static void heartbeat_due(uv_timer_t *timer) {
    struct ensemble *e = timer->data;
    clock_read(e->clock);
    ensemble_heartbeat(e);
}

void ensemble_transfer_leadership(struct ensemble *e) {
    struct raft_out out = {0};
    uint8_t transferee = raft_best_transferee(&e->raft);
    if (transferee) core_transfer_leadership(e, transferee, &out);
    ensemble_perform(e, &out, NULL);
}

bool ensemble_is_restored(const struct ensemble *e) {
    return e->applied_index >= e->restored_index;
}

bool ensemble_is_leaderless(const struct ensemble *e) {
    uint64_t since = e->leaderless_us;
    return since && e->clock->monotonic_us - since > (uint64_t)e->settings->election_timeout_ms *
                                                         ENSEMBLE_LEADERLESS_TIMES * 1000;
}

void ensemble_note_leader(struct ensemble *e) {
    if (ensemble_leads(e) || e->peer[e->raft.leader].up) {
        bool was_leaderless = e->leaderless_us;
        if (was_leaderless) summary_add(&e->statistics.leaderless, ensemble_leaderless_us(e), 1);
        e->leaderless_us = 0;
        if (was_leaderless) e->callbacks->leader_changed(e->owner, ENSEMBLE_LEADER_KNOWN);
    } else if (!e->leaderless_us) {
        e->leaderless_us = e->clock->monotonic_us;
    }
}

static void log_leader(const struct ensemble *e) {
    if (!e->raft.leader)
        logger_info("this server has no leader", LOGGER_UINT("term", e->raft.term));
    else
        logger_info(
            ensemble_leads(e) ? "this server was elected leader" : "this server follows a leader",
            LOGGER_INT("leader", member_number(e->raft.leader)), LOGGER_UINT("term", e->raft.term),
            LOGGER_UINT("last_index", e->raft.last_index));
}

static void leader_changed(struct ensemble *e) {
    e->known_leader = e->raft.leader;
    e->known_term = e->raft.term;
    report_leader(e);
    ensemble_note_leader(e);
    e->leading_us = e->clock->monotonic_us;
    for (unsigned id = 0; id <= MEMBER_ID_MAX; id++) {
        e->peer[id].incarnation = e->peer[id].sequence = e->peer[id].index = 0;
        e->peer[id].left_index = e->peer[id].acknowledged = 0;
        if (e->links && e->peer[id].up) link_discard_bulk(e->links, id); /* of another term */
    }
    e->urgent_index = e->raft.last_index;
    e->forwarded_sequence = outbox_applied(&e->outbox);
    if (ensemble_is_standalone(e)) return;
    log_leader(e);
    if (e->raft.leader) peers_tell_removed(e); /* those that had a leader did not listen */
    uv_timer_stop(&e->heartbeat_timer);
    if (!ensemble_leads(e)) return;
    uv_timer_start(&e->heartbeat_timer, heartbeat_due, 0, (uint64_t)e->settings->heartbeat_ms);
    e->callbacks->leader_changed(e->owner, ENSEMBLE_ELECTED);
}

/* ---- The effects of the core ---- */

static bool persist_vote(void *owner) {
    struct ensemble *e = owner;
    e->vote.term = e->raft.term;
    e->vote.voted_for = e->raft.voted_for;
    if (e->vote.withheld && !e->raft.vote_withheld && e->raft.durable_index)
        logger_info(raft_has_vote(&e->raft.config, e->raft.self)
                        ? "this server has caught up with the leader, and votes again"
                        : "this server has caught up with the leader",
                    LOGGER_UINT("index", e->raft.durable_index));
    e->vote.withheld = e->raft.vote_withheld;
    if (vote_write(&e->vote) == 0) return true;
    logger_error("the vote cannot be made durable, so the server stops; nothing is lost",
                 LOGGER_UINT("term", e->vote.term), LOGGER_STRING("reason", e->vote.message));
    _exit(ENSEMBLE_EXIT_FAILED); /* nothing may be sent to anybody any more */
}

/* The entries of a batch from an index on. */
static struct raft_batch batch_from(struct raft_batch batch, uint64_t index) {
    struct raft_entry entry;
    size_t at = 0;
    uint32_t skipped = (uint32_t)(index - batch.first);
    for (uint32_t i = 0; i < skipped; i++) raft_next(&batch, &at, &entry);
    batch.first = index;
    batch.count -= skipped;
    batch.bytes += at;
    batch.size -= at;
    return batch;
}

static void append_entries(void *owner, uint64_t from, const void *received) {
    struct ensemble *e = owner;
    const struct message_payload *payload = received;
    struct raft_batch batch = batch_from(payload->batch, from);
    bool appended = window_append(&e->log, &batch);
    cv_assert(appended);
    if (batch.kind != RAFT_CONFIG) return;
    members_take(e, payload->members.at, (size_t)payload->members.size);
    peers_update(e);
}

void ensemble_append_members(struct ensemble *e) {
    struct tree_members members = {
        .time = e->clock->now_ms,
        .text = {(const char *)e->members.text.at, (int32_t)e->members.text.used},
        .version = members_version(e)};
    size_t size = tree_members_size(&members);
    tree_store_members(window_room(&e->log, size), &members);
    uint64_t index = window_add(&e->log, e->raft.term, RAFT_CONFIG, size);
    cv_assert(index == e->raft.last_index);
    e->urgent_index = index;
}

static void append_config(void *owner) { ensemble_append_members(owner); }

static void election_timer_fired(uv_timer_t *timer) {
    struct ensemble *e = timer->data;
    struct raft_out out = {0};
    clock_read(e->clock);
    if (e->removed && e->raft.leader_timed_out) return; /* a leader would have to speak first */
    identity_found(e);
    core_timer_fired(e, &out);
    ensemble_perform(e, &out, NULL);
}

/* The jitter grows while there is no leader: members may be further apart than it lasts, and would
 * interrupt each other's elections for ever. */
static uint64_t jitter_ms(struct ensemble *e) {
    uint64_t since = e->leaderless_us;
    uint64_t seconds = since ? (e->clock->monotonic_us - since) / 1000000 : 0;
    uint64_t times = seconds < ELECTION_JITTER_TIMES_MAX ? 1 + seconds : ELECTION_JITTER_TIMES_MAX;
    uint64_t jitter = (uint64_t)e->settings->election_timeout_ms * ELECTION_JITTER_PERCENT / 100;
    return rng_below(&e->rng, times * jitter + 1);
}

static void start_timer(void *owner, enum raft_timer timer) {
    struct ensemble *e = owner;
    if (ensemble_is_standalone(e)) return;
    uint64_t ms = timer == RAFT_TIMER_ELECTION_TIMEOUT ? (uint64_t)e->settings->election_timeout_ms
                                                       : jitter_ms(e);
    uv_update_time(e->loop); /* the timeout must not be shorter: a leader's lease relies on it */
    uv_timer_start(&e->election_timer, election_timer_fired, ms, 0);
}

static bool send_message(void *owner, const struct raft_message *message) {
    peers_send(owner, message, NULL, 0);
    return true;
}

/* What others see of the core follows its state. */
static void follow_core(struct ensemble *e) {
    members_revert(e);
    report_step(e);
    if (e->raft.leader != e->known_leader || e->raft.term != e->known_term) leader_changed(e);
}

static void snapshot_chunk(void *owner, const void *received) {
    const struct message_payload *payload = received;
    follow_core(owner); /* the chunk may replace the tree */
    install_receive(owner, payload->message, payload->chunk);
}

void ensemble_perform(struct ensemble *e, const struct raft_out *out,
                      const struct message_payload *payload) {
    static const struct raft_callbacks callbacks = {.persist_vote = persist_vote,
                                                    .append_entries = append_entries,
                                                    .append_config = append_config,
                                                    .start_timer = start_timer,
                                                    .send = send_message,
                                                    .snapshot_chunk = snapshot_chunk};
    raft_perform(out, &callbacks, e, payload);
    follow_core(e);
    ensemble_wake(e);
}

/* ---- Proposals ---- */

void ensemble_propose(struct ensemble *e, struct tree_entry *entry,
                      const struct proposal *proposal) {
    entry->incarnation = e->incarnation;
    entry->sequence = outbox_last(&e->outbox) + 1;
    outbox_add(&e->outbox, entry, proposal);
    e->statistics.proposals++;
    ensemble_wake(e);
}

bool ensemble_take_proposal(struct ensemble *e, const struct tree_entry *entry,
                            struct proposal *proposal) {
    if (entry->incarnation != e->incarnation) return false;
    /* An entry in this server's name that it did not propose is made up by a leader. */
    bool proposed = entry->sequence == outbox_applied(&e->outbox) + 1 &&
                    entry->sequence <= outbox_last(&e->outbox);
    if (!proposed) return false;
    *proposal = outbox_remove(&e->outbox, entry->sequence);
    e->forwarded_us = e->clock->monotonic_us;
    return proposal->op == entry->op || entry->op == ZK_OP_ERROR;
}

uint64_t ensemble_committed(const struct ensemble *e) { return e->raft.commit_index; }

uint64_t ensemble_applied(const struct ensemble *e) { return e->applied_index; }

size_t ensemble_pending(const struct ensemble *e) { return e->outbox.entries.count; }

/* The leader's clock counts, so that times do not depend on the server that a client is connected
 * to. */
bool ensemble_append(struct ensemble *e, const unsigned char *bytes, size_t size) {
    struct bytes judged = {0};
    if (ensemble_leads(e) && change_judge(e, zk_in_of(bytes, size), &judged))
        bytes = judged.at, size = judged.used;
    if (!core_propose(e, 1)) return bytes_close(&judged), false;
    unsigned char *room = window_room(&e->log, size);
    memcpy(room, bytes, size);
    if (size >= sizeof e->clock->now_ms) zk_store_i64(room, &e->clock->now_ms);
    uint64_t index = window_add(&e->log, e->raft.term, RAFT_NORMAL, size);
    cv_assert(index == e->raft.last_index);
    bytes_close(&judged);
    report_appended(e, size);
    return true;
}

/* ---- Applying ---- */

static void apply_config(struct ensemble *e, const struct raft_entry *entry) {
    struct tree_members members;
    bool read = tree_read_members(zk_in_of(entry->bytes, entry->size), &members);
    cv_assert(read); /* it was checked when it was received */
    tree_configure(e->tree, tree_next_zxid(e->tree, entry->term), &members);
    if (e->first_members_index == UINT64_MAX) e->first_members_index = entry->index;
    e->identity_index = entry->index;
    change_committed(e);
    e->callbacks->members_changed(e->owner);
}

static void drop_entries(struct ensemble *e, uint64_t index) {
    core_compacted(e, index);
    window_trim(&e->log, index);
}

/* Entries that are applied and durable are kept for members that lag, unless this server is
 * alone. */
static void compact(struct ensemble *e) {
    uint64_t max =
        e->applied_index < e->raft.durable_index ? e->applied_index : e->raft.durable_index;
    size_t kept = room_for_kept(e);
    if (ensemble_is_standalone(e) && max > e->log.after) drop_entries(e, max);
    while (window_bytes(&e->log) > kept && e->log.after < max) drop_entries(e, e->log.after + 1);
    room_shrink(e);
}

/* False: not yet, or not all of it. */
static bool apply_next(struct ensemble *e) {
    struct raft_entry entry;
    uint64_t term_before = e->applied_term;
    window_entry(&e->log, e->applied_index + 1, &entry);
    e->applied_index++;
    e->applied_term = entry.term;
    enum ensemble_applied applied = ENSEMBLE_APPLIED;
    if (entry.kind == RAFT_CONFIG)
        apply_config(e, &entry);
    else
        applied = e->callbacks->apply(e->owner, &entry);
    e->unfinished = applied == ENSEMBLE_UNFINISHED;
    if (applied == ENSEMBLE_APPLIED) return true;
    e->applied_index--;
    e->applied_term = term_before;
    return false;
}

static void apply_committed(struct ensemble *e) {
    enum busy_kind before = busy_with(e->busy, BUSY_APPLY);
    report_committed(e);
    while (e->applied_index < e->raft.commit_index && apply_next(e)) continue;
    compact(e);
    busy_with(e->busy, before);
    e->callbacks->flush(e->owner);
}

/* ---- The loop iteration ---- */

bool ensemble_has_work(const struct ensemble *e) {
    if (e->mend) return false;
    bool to_forward = e->raft.leader && e->forwarded_sequence < outbox_last(&e->outbox) &&
                      (ensemble_leads(e) ? ensemble_can_append(e) : forward_is_possible(e));
    return disk_has_work(e) || to_forward || e->applied_index < e->raft.commit_index ||
           read_index_has_work(e);
}

void ensemble_advance(struct ensemble *e) {
    if (e->mend) {
        mend_advance(e);
        return;
    }
    room_ask_to_forward(e);
    forward_outbox(e);
    replicate(e, true); /* the other members' disks work while this one's does */
    peers_flush(e);
    if (e->applied_index < e->raft.commit_index) apply_committed(e); /* that needs no disk */
    tidy_advance(e); /* before the next write, as a busy disk always has another one */
    while (disk_write(e)) continue;
    peers_flush(e);
    apply_committed(e);
    identity_advance(e);
    read_index_advance(e);
    change_advance(e);
    snapshots_take(e, false);
    replicate(e, false);
    leaving_advance(e);
    install_advance(e);
    catch_up_advance(e);
    peers_flush(e);
    e->deferral_over = false;
}

/* ---- Reports ---- */

struct ensemble_status ensemble_status(const struct ensemble *e) {
    struct ensemble_status status = {
        .raft = &e->raft,
        .applied_index = e->applied_index,
        .snapshot_index = e->snapshotting.last_index,
        .snapshot_in_progress = e->snapshotting.process ? e->snapshotting.index : 0,
        .changing = change_is_in_progress(e),
        .changes_refused = e->change.refused,
        .refusal = e->change.reason,
        .removed = e->removed,
        .founded_by = identity_is_founding(e) ? identity_knows_data(e) : 0,
        .founding_set = identity_is_founding(e) ? identity_awaited(e) : 0,
        .data_directory = e->disk.data_directory,
        .log_directory = e->disk.log_directory};
    status.founding = status.founding_set != 0;
    mend_report(e, &status.mending);
    return status;
}

const struct ensemble_statistics *ensemble_statistics(const struct ensemble *e) {
    return &e->statistics;
}

void ensemble_reset_statistics(struct ensemble *e) {
    e->statistics = (struct ensemble_statistics){0};
}

void ensemble_age_statistics(struct ensemble *e) {
    summary_age(&e->statistics.syncs);
    summary_age(&e->statistics.snapshots);
    summary_age(&e->statistics.commits);
    summary_age(&e->statistics.leaderless);
}

bool ensemble_is_linked(const struct ensemble *e, uint8_t id) { return e->peer[id].up; }

const char *ensemble_link_problem(const struct ensemble *e, uint8_t id) {
    return e->links ? link_status(e->links, id).problem : NULL;
}

static void read_list(const struct members *members, struct member_list *list) {
    struct raft_config config;
    char why[256];
    members_read(members->text.at, members->text.used, &config, list, why, sizeof why);
}

void ensemble_members(const struct ensemble *e, struct member_list *list) {
    read_list(&e->members, list);
}

bool ensemble_target_members(const struct ensemble *e, struct member_list *list) {
    if (!change_is_in_progress(e)) return false;
    struct raft_config config;
    char why[256];
    return members_read(e->tree->target.at, e->tree->target.used, &config, list, why, sizeof why);
}

/* ---- Start and end ---- */

/* Whether the log has a configuration of an ensemble. */
static bool restore_log(struct ensemble *e) {
    struct raft_batch batch;
    struct raft_config config;
    struct zk_text text;
    bool has_config = false;
    for (uint64_t index = e->log.after + 1; index <= window_last(&e->log); index += batch.count) {
        window_read(&e->log, index, SIZE_MAX, &batch);
        bool is_config =
            batch.kind == RAFT_CONFIG && members_read_entry(&batch, &config, &text) && text.size;
        if (is_config) members_adopt(e, text.at, (size_t)text.size);
        has_config |= is_config;
        raft_restore_entries(&e->raft, batch.first, batch.count, batch.term,
                             is_config ? &config : NULL);
    }
    return has_config;
}

/* The configuration in the data directory overrides the one in the settings. */
static int choose_members(struct ensemble *e, struct raft_config *config) {
    const struct settings *given = e->settings;
    struct bytes text = {0};
    const char *problem = NULL;
    bool known = members_adopt_committed(e, config);
    e->first_members_index = known ? 0 : UINT64_MAX;
    if (!known) {
        if (!given->join) member_list_write(&given->members, &text);
        members_set(&e->members, text.at, text.used);
        bytes_close(&text);
        *config = (struct raft_config){.hash = e->members.hash};
        if (given->members.count && !given->join && !members_in_force(e, config))
            return ENSEMBLE_EXIT_FAILED;
    }
    if (known && config->count && !given->members.count)
        problem = "the data belongs to a server of an ensemble; name both with --id and --ensemble";
    if (!known && given->members.count > 1 && !given->join && e->applied_index)
        problem =
            "the data was written by a server alone; start it with itself as the only member of "
            "--ensemble, then add the others ('conclave ensemble add')";
    if (problem) logger_error(problem, LOGGER_STRING("path", given->data_dir));
    return problem ? ENSEMBLE_EXIT_FAILED : 0;
}

static uint64_t term_of_entry(const void *log, uint64_t index) {
    struct raft_entry entry;
    window_entry(log, index, &entry);
    return entry.term;
}

static uint8_t self_of(const struct ensemble *e) {
    return e->settings->members.count ? (uint8_t)member_id(e->settings->server_id) : 1;
}

static int open_incarnation(struct ensemble *e) {
    if (getrandom(&e->incarnation, sizeof e->incarnation, 0) != sizeof e->incarnation) {
        logger_error("the system gives no random numbers, so the server does not start");
        return ENSEMBLE_EXIT_FAILED;
    }
    e->incarnation = e->incarnation << 8 | self_of(e);
    read_index_open(e);
    rng_seed(&e->rng, e->incarnation);
    return 0;
}

static int open_core(struct ensemble *e) {
    struct raft_config config;
    uint8_t self = self_of(e);
    if (vote_read(&e->vote, e->disk.log_directory, e->settings->log_dir) != 0) {
        logger_error("the vote cannot be read, so the server does not start",
                     LOGGER_STRING("reason", e->vote.message));
        return ENSEMBLE_EXIT_FAILED;
    }
    int status = choose_members(e, &config);
    if (status) return status;
    if (!config.count && !e->settings->join)
        config = (struct raft_config){.hash = config.hash, .count = 1, .at = {{self, 0, 1}}};
    if (identity_raise_term(e) != 0) return ENSEMBLE_EXIT_FAILED;
    raft_open(&e->raft, self, e->vote.term, (uint8_t)e->vote.voted_for);
    e->raft.vote_withheld = e->vote.withheld;
    e->raft.leases_enabled = e->settings->linearizable;
    e->raft.term_of = term_of_entry;
    e->raft.log = &e->log;
    raft_restore_snapshot(&e->raft, e->log.after, e->log_start_term, &config);
    return identity_open(e, restore_log(e));
}

struct ensemble *ensemble_open(const struct ensemble_config *config, int *status) {
    struct ensemble *e = calloc(1, sizeof *e);
    cv_assert(e);
    e->settings = config->settings;
    e->loop = config->loop;
    e->clock = config->clock;
    e->busy = config->busy;
    e->tree = config->tree;
    e->owner = config->owner;
    e->callbacks = config->callbacks;
    e->memory_max = config->memory_max;
    e->standalone = !e->settings->members.count;
    e->disk.data_directory = e->disk.log_directory = -1;
    e->disk.log.file = e->disk.log.mark_file = -1;
    outbox_open(&e->outbox);
    *status = snapshots_open(e);
    if (!*status) *status = open_incarnation(e);
    if (!*status) *status = core_open_record(e);
    if (!*status) *status = open_core(e);
    if (!*status) *status = peers_open(e);
    return e;
}

static void start_core(struct ensemble *e) {
    struct raft_out out = {0};
    e->restored_index = e->raft.last_index;
    core_start(e, e->applied_index, &out);
    ensemble_perform(e, &out, NULL);
}

void ensemble_start(struct ensemble *e) {
    uv_timer_init(e->loop, &e->election_timer);
    uv_timer_init(e->loop, &e->heartbeat_timer);
    uv_timer_init(e->loop, &e->deferral_timer);
    uv_timer_init(e->loop, &e->mend_timer);
    e->election_timer.data = e->heartbeat_timer.data = e->deferral_timer.data = e;
    e->mend_timer.data = e;
    e->leaderless_us = e->contact.last_us = e->clock->monotonic_us;
    if (e->mend)
        mend_start(e);
    else
        start_core(e);
    if (ensemble_is_standalone(e)) ensemble_advance(e);
}

/* After the files were mended.  More may have been damaged meanwhile, but what is damaged each time
 * would be written again and again, until the disk is full. */
void ensemble_reopen(struct ensemble *e) {
    enum { IN_VAIN_MAX = 3 };
    if (snapshots_restore(e) != 0 || open_core(e) != 0) _exit(ENSEMBLE_EXIT_FAILED);
    e->mended_in_vain = e->mend ? e->mended_in_vain + 1 : 0;
    if (e->mended_in_vain == IN_VAIN_MAX) {
        logger_error("the files were mended and are damaged again, several times, so the server "
                     "stops; check the disk, or remove this member and let it join again with an "
                     "empty directory",
                     LOGGER_STRING("path", e->settings->data_dir));
        _exit(ENSEMBLE_EXIT_FAILED);
    }
    peers_update(e);
    e->callbacks->snapshot_installed(e->owner);
    if (e->mend)
        mend_start(e); /* more was damaged meanwhile */
    else
        start_core(e);
}

void ensemble_drain(struct ensemble *e) {
    e->draining = true;
    tidy_drain(e);
    install_abandon(e);
}

void ensemble_end_links(struct ensemble *e) {
    if (e->links) links_close(e->links);
    e->links = NULL;
}

void ensemble_free(struct ensemble *e) {
    steps_close(e->record);
    tidy_close(e);
    snapshots_close(e);
    install_close(e);
    catch_up_close(e);
    mend_close(e);
    outbox_close(&e->outbox);
    change_close(e);
    window_close(&e->log);
    bytes_close(&e->members.text);
    bytes_close(&e->previous_members.text);
    bytes_close(&e->disk.batch_copy);
    tls_close(e->tls);
    free(e);
}
