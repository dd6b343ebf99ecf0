/* The figures of a server, under ZooKeeper's names where it has them: in the word mntr, in JSON,
 * and as metrics. */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "service/admin/internal.h"

enum figure_kind { COUNTER, GAUGE, REAL }; /* real: a gauge with decimals */

struct figure {
    const char *name, *help;
    enum figure_kind kind;
    double (*read)(const struct server *s);
};

/* ---- Figures that are worked out ---- */

struct tally report_latency(const struct server *s) {
    return tally_of_both(&s->statistics.reads.all, &s->statistics.writes.all);
}

static double average_ms(const struct tally *tally) { return tally_average(tally) / 1000; }

static double latency_average_ms(const struct server *s) {
    struct tally latency = report_latency(s);
    return average_ms(&latency);
}

static double latency_max_ms(const struct server *s) {
    struct tally latency = report_latency(s);
    return (double)tally_max_ms(&latency);
}

/* ZooKeeper says -1 where no reply was sent yet. */
static double size_or_none(const struct server *s, uint64_t size) {
    return s->statistics.responses.count ? (double)size : -1;
}

static uint64_t connections_refused(const struct server *s) {
    const uint64_t *refused = s->statistics.refused;
    return refused[REFUSED_connections] + refused[REFUSED_address] + refused[REFUSED_descriptors] +
           refused[REFUSED_stopping];
}

static double open_files(void) {
    DIR *stream = opendir("/proc/self/fd");
    int count = -3; /* two dots, and the stream itself */
    while (stream && readdir(stream)) count++;
    if (stream) closedir(stream);
    return stream ? count : -1;
}

static double max_files(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : -1;
}

/* On the file system of a directory; -1: the system does not say. */
static double free_bytes(int directory) {
    struct statvfs disk;
    return fstatvfs(directory, &disk) == 0 ? (double)disk.f_bavail * (double)disk.f_frsize : -1;
}

static double processor_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double resident_bytes(void) {
    size_t bytes = 0;
    uv_resident_set_memory(&bytes);
    return (double)bytes;
}

static double role_is(const struct server *s, const char *mode) {
    return strcmp(report_mode(s), mode) == 0;
}

static int32_t leader_of(const struct server *s) {
    uint8_t leader = ensemble_status(s->ensemble).raft->leader;
    return leader ? member_number(leader) : -1;
}

static uint64_t voters(const struct server *s) {
    const struct raft_config *config = &ensemble_status(s->ensemble).raft->config;
    uint64_t count = 0;
    for (uint32_t i = 0; i < config->count; i++) count += config->at[i].weight > 0;
    return count;
}

/* Of the other members, those that are linked, or synced and voters, or synced and not. */
enum kin { LINKED, FOLLOWERS, OBSERVERS };
static double members_of(const struct server *s, enum kin kin) {
    const struct raft *raft = ensemble_status(s->ensemble).raft;
    unsigned count = 0;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        const struct raft_member *member = &raft->config.at[i];
        if (member->id == raft->self) continue;
        struct ensemble_member of = ensemble_member(s->ensemble, member->id);
        count +=
            kin == LINKED ? of.linked : of.synced && (member->weight > 0) == (kin == FOLLOWERS);
    }
    return count;
}

/* ZooKeeper says -1 where nothing was proposed yet. */
static double proposal_size(const struct server *s, uint64_t size) {
    return ensemble_statistics(s->ensemble)->proposal_sizes.count ? (double)size : -1;
}

/* ---- The tables: F(name, kind, help, where it is read) ---- */

#define STATISTIC(FIELD) (double)s->statistics.FIELD
#define ENSEMBLE(FIELD)  (double)ensemble_statistics(s->ensemble)->FIELD
#define LOOP(KIND)       (double)s->work.kind_max_us[BUSY_##KIND]

#define FIGURES(F)                                                                                 \
    F(uptime, GAUGE, "Time since the start, ms",                                                   \
      (double)((s->clock.monotonic_us - s->started_us) / 1000))                                    \
    F(avg_latency, REAL, "Average time of a request, ms", latency_average_ms(s))                   \
    F(min_latency, GAUGE, "Shortest time of a request, ms",                                        \
      (double)(report_latency(s).min / 1000))                                                      \
    F(max_latency, GAUGE, "Longest time of a request, ms", latency_max_ms(s))                      \
    F(packets_received, COUNTER, "Requests received", STATISTIC(received))                         \
    F(packets_sent, COUNTER, "Replies and events that were sent", STATISTIC(sent))                 \
    F(num_alive_connections, GAUGE, "Connections", s->connections.count)                           \
    F(outstanding_requests, GAUGE, "Writes proposed and not applied",                              \
      (double)ensemble_pending(s->ensemble))                                                       \
    F(global_sessions, GAUGE, "Sessions", s->tree.sessions.count)                                  \
    F(local_sessions, GAUGE, "Sessions that only one server knows: there are none", 0)             \
    F(znode_count, GAUGE, "Nodes", s->tree.nodes)                                                  \
    F(ephemerals_count, GAUGE, "Ephemeral nodes", s->tree.ephemerals)                              \
    F(watch_count, GAUGE, "Watches", s->watches.watches)                                           \
    F(approximate_data_size, GAUGE, "Bytes of names and data", (double)s->tree.bytes)              \
    F(open_file_descriptor_count, GAUGE, "Open files", open_files())                               \
    F(max_file_descriptor_count, GAUGE, "Open files that are allowed", max_files())                \
    F(last_client_response_size, GAUGE, "Bytes of the last reply",                                 \
      size_or_none(s, s->statistics.responses.last))                                               \
    F(min_client_response_size, GAUGE, "Bytes of the smallest reply",                              \
      size_or_none(s, s->statistics.responses.min))                                                \
    F(max_client_response_size, GAUGE, "Bytes of the largest reply",                               \
      size_or_none(s, s->statistics.responses.max))                                                \
    F(response_bytes, COUNTER, "Bytes of replies", STATISTIC(responses.total))                     \
    F(bytes_received_count, COUNTER, "Bytes received from clients", STATISTIC(bytes_received))     \
    F(watch_bytes, COUNTER, "Bytes of events", STATISTIC(watch_bytes))                             \
    F(connection_request_count, COUNTER, "Clients that asked for a session",                       \
      STATISTIC(sessions_asked))                                                                   \
    F(connection_rejected, COUNTER, "Connections over a limit", (double)connections_refused(s))    \
    F(connection_drop_count, COUNTER, "Connections that ended while their session lived",          \
      STATISTIC(dropped))                                                                          \
    F(connection_drop_probability, REAL, "Share of connections dropped at random: none are", 0)    \
    F(sessionless_connections_expired, COUNTER,                                                    \
      "Connections that never asked for a session, or never took their last answer",               \
      STATISTIC(refused[REFUSED_silence]))                                                         \
    F(stale_sessions_expired, COUNTER, "Sessions that expired", STATISTIC(expired))                \
    F(auth_failed_count, COUNTER, "Clients that failed to authenticate",                           \
      STATISTIC(refused[REFUSED_authentication]))                                                  \
    F(unsuccessful_handshake, COUNTER, "TLS handshakes that failed",                               \
      STATISTIC(refused[REFUSED_tls]))                                                             \
    F(reloads, COUNTER, "Times that new certificates or keys were taken", STATISTIC(reloads))      \
    F(reloads_failed, COUNTER, "Times that new certificates or keys could not be used",            \
      STATISTIC(reloads_failed))                                                                   \
    F(proposal_count, COUNTER, "Entries proposed for the log", ENSEMBLE(proposals))                \
    F(commit_count, COUNTER, "Entries applied", STATISTIC(commits))                                \
    F(log_bytes_written, COUNTER, "Bytes of entries written to the log", ENSEMBLE(log_bytes))      \
    F(snapshots_failed, COUNTER, "Snapshots that could not be written",                            \
      ENSEMBLE(snapshots_failed))                                                                  \
    F(snapshots_damaged, COUNTER, "Snapshots that were damaged, and set aside",                    \
      ENSEMBLE(snapshots_damaged))                                                                 \
    F(mending_entries, GAUGE, "Damaged entries that other members have not brought back yet",      \
      (double)ensemble_status(s->ensemble).mending.lacking)                                        \
    F(mended_entries, COUNTER, "Damaged entries that other members brought back",                  \
      ENSEMBLE(mended_entries))                                                                    \
    F(mended_snapshots, COUNTER, "Damaged snapshots that one of another member replaced",          \
      ENSEMBLE(mended_snapshots))                                                                  \
    F(helped_entries, COUNTER, "Entries sent to members that had lost them",                       \
      ENSEMBLE(helped_entries))                                                                    \
    F(vote_withheld, GAUGE, "1 if this server has no vote until it has caught up",                 \
      ensemble_status(s->ensemble).raft->vote_withheld)                                            \
    F(memory_limit, GAUGE, "Memory that the server may use, bytes; 0: there is no limit",          \
      (double)s->memory.limit)                                                                     \
    F(memory_refused, COUNTER, "Requests that were refused because memory is short",               \
      STATISTIC(refused[REFUSED_memory]))                                                          \
    F(loop_long_iterations, COUNTER, "Iterations of the loop that took longer than 100 ms",        \
      STATISTIC(long_iterations))                                                                  \
    F(loop_full_iterations, COUNTER, "Iterations of the loop that left work to the next one",      \
      STATISTIC(full_iterations))                                                                  \
    F(loop_max_us, GAUGE, "The longest iteration of the loop, us", (double)s->work.max_us)         \
    F(loop_max_us_other, GAUGE, "The longest time in one iteration: anything else, us",            \
      LOOP(OTHER))                                                                                 \
    F(loop_max_us_requests, GAUGE,                                                                 \
      "The longest time in one iteration: requests that are answered at once, us", LOOP(REQUESTS)) \
    F(loop_max_us_apply, GAUGE, "The longest time in one iteration: committed entries, us",        \
      LOOP(APPLY))                                                                                 \
    F(loop_max_us_sending, GAUGE, "The longest time in one iteration: answers and events, us",     \
      LOOP(SENDING))                                                                               \
    F(loop_max_us_members, GAUGE,                                                                  \
      "The longest time in one iteration: messages of other servers, us", LOOP(MEMBERS))           \
    F(loop_max_us_disk, GAUGE,                                                                     \
      "The longest time in one iteration: waiting for the log to be durable, us", LOOP(DISK))      \
    F(loop_max_us_snapshot, GAUGE, "The longest time in one iteration: starting a snapshot, us",   \
      LOOP(SNAPSHOT))                                                                              \
    F(loop_max_us_install, GAUGE,                                                                  \
      "The longest time in one iteration: a snapshot of the leader, us", LOOP(INSTALL))            \
    F(loop_max_us_expiry, GAUGE,                                                                   \
      "The longest time in one iteration: sessions and nodes that expire, us", LOOP(EXPIRY))       \
    F(loop_max_us_reports, GAUGE,                                                                  \
      "The longest time in one iteration: words, metrics and commands, us", LOOP(REPORTS))

#define RAFT(FIELD)     (double)ensemble_status(s->ensemble).raft->FIELD
#define SNAPSHOT(FIELD) (double)ensemble_snapshot(s->ensemble).FIELD

/* Of replication. */
#define ENSEMBLE_FIGURES(F)                                                                        \
    F(quorum_size, GAUGE, "Members with a vote", (double)voters(s))                                \
    F(raft_term, GAUGE, "The current term", RAFT(term))                                            \
    F(raft_leader, GAUGE, "Id of the leader; -1: there is none", leader_of(s))                     \
    F(raft_last_index, GAUGE, "Last entry of this server's log", RAFT(last_index))                 \
    F(raft_durable_index, GAUGE, "Last entry that is durable on this server's disk",               \
      RAFT(durable_index))                                                                         \
    F(raft_commit_index, GAUGE, "Last entry that this server knows to be committed",               \
      RAFT(commit_index))                                                                          \
    F(raft_applied_index, GAUGE, "Last entry that is applied to this server's tree",               \
      (double)ensemble_status(s->ensemble).applied_index)                                          \
    F(raft_leaderless_seconds, REAL, "Time since a leader could be reached; 0: one can be",        \
      (double)ensemble_leaderless_us(s->ensemble) / 1e6)                                           \
    F(raft_elections, COUNTER, "Elections in which this server stood", ENSEMBLE(elections))        \
    F(raft_elections_won, COUNTER, "Elections that this server won", ENSEMBLE(elections_won))      \
    F(raft_leader_changes, COUNTER, "New leaders that this server has seen",                       \
      ENSEMBLE(leader_changes))                                                                    \
    F(raft_transfers, COUNTER, "Transfers of leadership that this server began",                   \
      ENSEMBLE(transfers))                                                                         \
    F(raft_transfers_done, COUNTER, "... of which so many succeeded", ENSEMBLE(transfers_done))    \
    F(raft_frames_refused, COUNTER, "Messages of other servers that no server should send",        \
      ENSEMBLE(frames_refused))                                                                    \
    F(raft_changes_refused, COUNTER, "Changes of members that were given up",                      \
      (double)ensemble_status(s->ensemble).changes_refused)                                        \
    F(snap_count, COUNTER, "Snapshots that were sent to members that lag",                         \
      ENSEMBLE(snapshots_sent))                                                                    \
    F(snapshots_installed, COUNTER, "Snapshots of a leader that this server has taken over",       \
      ENSEMBLE(snapshots_installed))                                                               \
    F(snapshot_index, GAUGE, "Last entry that the newest snapshot holds", SNAPSHOT(index))         \
    F(snapshot_bytes, GAUGE, "Size of the newest snapshot's file", SNAPSHOT(bytes))                \
    F(snapshot_written_time_seconds, GAUGE,                                                        \
      "When the newest snapshot was written, since 1970; 0: there is none", SNAPSHOT(written_s))   \
    F(data_disk_free_bytes, GAUGE, "Free on the disk of the snapshots",                            \
      free_bytes(ensemble_status(s->ensemble).data_directory))                                     \
    F(log_disk_free_bytes, GAUGE, "Free on the disk of the log",                                   \
      free_bytes(ensemble_status(s->ensemble).log_directory))                                      \
    F(fsync_threshold_exceed_count, COUNTER,                                                       \
      "Batches of the log that took longer than fsync.warningthresholdms", ENSEMBLE(slow_syncs))

/* What only a leader knows. */
#define LEADER_FIGURES(F)                                                                          \
    F(leader_uptime, GAUGE, "Of a leader: time since its election, ms",                            \
      (double)(ensemble_leading_us(s->ensemble) / 1000))                                           \
    F(learners, GAUGE, "Of a leader: other members that are connected", members_of(s, LINKED))     \
    F(synced_followers, GAUGE,                                                                     \
      "Of a leader: other members with a vote that get entries as they come, and respond",         \
      members_of(s, FOLLOWERS))                                                                    \
    F(synced_non_voting_followers, GAUGE, "Of a leader: there are none; see synced_observers", 0)  \
    F(synced_observers, GAUGE,                                                                     \
      "Of a leader: members without a vote that get entries as they come, and respond",            \
      members_of(s, OBSERVERS))                                                                    \
    F(pending_syncs, GAUGE,                                                                        \
      "Of a leader: requests for a read index that wait for a quorum; several reads may share "    \
      "one",                                                                                       \
      (double)ensemble_reads_pending(s->ensemble))                                                 \
    F(last_proposal_size, GAUGE, "Of a leader: bytes of the last entry",                           \
      proposal_size(s, ensemble_statistics(s->ensemble)->proposal_sizes.last))                     \
    F(min_proposal_size, GAUGE, "Of a leader: bytes of the smallest entry",                        \
      proposal_size(s, ensemble_statistics(s->ensemble)->proposal_sizes.min))                      \
    F(max_proposal_size, GAUGE, "Of a leader: bytes of the largest entry",                         \
      proposal_size(s, ensemble_statistics(s->ensemble)->proposal_sizes.max))

/* Of the process: names that every exporter has, for metrics only. */
#define PROCESS_FIGURES(F)                                                                         \
    F(process_cpu_seconds_total, COUNTER, "Processor time", processor_seconds())                   \
    F(process_resident_memory_bytes, GAUGE, "Resident memory", resident_bytes())                   \
    F(process_start_time_seconds, REAL, "When it started, since 1970", (double)s->started_ms / 1000)

#define SUMMARIES(F)                                                                               \
    F(readlatency, "Times of requests that were answered at once, ms", s->statistics.reads)        \
    F(updatelatency, "Times of requests that went through the log, ms", s->statistics.writes)      \
    F(fsynctime, "Times to make a batch of the log durable, ms",                                   \
      ensemble_statistics(s->ensemble)->syncs)                                                     \
    F(snapshottime, "Times to write a snapshot in the background, ms",                             \
      ensemble_statistics(s->ensemble)->snapshots)                                                 \
    F(quorum_ack_latency, "Of a leader: times from an entry's arrival to its commit, ms",          \
      ensemble_statistics(s->ensemble)->commits)                                                   \
    F(leader_unavailable_time, "Times until a leader could be reached again, ms",                  \
      ensemble_statistics(s->ensemble)->leaderless)

/* The same with fixed bounds, in seconds, for metrics only: these can be added up. */
#define HISTOGRAMS(F)                                                                              \
    F(read_seconds, "Times of requests that were answered at once", s->statistics.reads)           \
    F(write_seconds, "Times of requests that went through the log", s->statistics.writes)          \
    F(fsync_seconds, "Times to make a batch of the log durable",                                   \
      ensemble_statistics(s->ensemble)->syncs)                                                     \
    F(commit_seconds, "Of a leader: times from an entry's arrival to its commit",                  \
      ensemble_statistics(s->ensemble)->commits)                                                   \
    F(snapshot_seconds, "Times to write a snapshot in the background",                             \
      ensemble_statistics(s->ensemble)->snapshots)                                                 \
    F(leaderless_seconds, "Times until a leader could be reached again",                           \
      ensemble_statistics(s->ensemble)->leaderless)

/* Of each other member: what only a leader knows. */
#define MEMBER_FIGURES(F)                                                                          \
    F(linked, "1: this leader is connected to that member", member->linked)                        \
    F(synced, "1: that member gets entries as they come, and responds", member->synced)            \
    F(lag_entries, "Entries that are not known to be durable on that member",                      \
      (double)member->lag_entries)                                                                 \
    F(lag_bytes, "... and their bytes, of those that are still in memory",                         \
      (double)member->lag_bytes)

#define FIGURE_READ(NAME, KIND, HELP, VALUE)                                                       \
    static double read_##NAME(const struct server *s) { return (void)s, (VALUE); }
FIGURES(FIGURE_READ)
ENSEMBLE_FIGURES(FIGURE_READ)
LEADER_FIGURES(FIGURE_READ)
PROCESS_FIGURES(FIGURE_READ)

#define FIGURE_ROW(NAME, KIND, HELP, VALUE) {#NAME, HELP, KIND, read_##NAME},
static const struct figure figures[] = {FIGURES(FIGURE_ROW) ENSEMBLE_FIGURES(FIGURE_ROW)};
static const struct figure leader_figures[] = {LEADER_FIGURES(FIGURE_ROW)};
static const struct figure process_figures[] = {PROCESS_FIGURES(FIGURE_ROW)};

#define SUMMARY_READ(NAME, HELP, SUMMARY)                                                          \
    static const struct summary *summary_##NAME(const struct server *s) { return &SUMMARY; }
SUMMARIES(SUMMARY_READ)
HISTOGRAMS(SUMMARY_READ)

struct spread {
    const char *name, *help;
    const struct summary *(*read)(const struct server *s);
};
#define SUMMARY_ROW(NAME, HELP, SUMMARY) {#NAME, HELP, summary_##NAME},
static const struct spread summaries[] = {SUMMARIES(SUMMARY_ROW)};
static const struct spread histograms[] = {HISTOGRAMS(SUMMARY_ROW)};

#define MEMBER_READ(NAME, HELP, VALUE)                                                             \
    static double member_##NAME(const struct ensemble_member *member) { return VALUE; }
MEMBER_FIGURES(MEMBER_READ)

static const struct {
    const char *name, *help;
    double (*read)(const struct ensemble_member *member);
} member_figures[] = {
#define MEMBER_ROW(NAME, HELP, VALUE) {#NAME, HELP, member_##NAME},
    MEMBER_FIGURES(MEMBER_ROW)};

static const char *const refusals[][2] = {
#define REFUSAL_ROW(NAME, HELP) {#NAME, HELP},
    REFUSALS(REFUSAL_ROW)};

static const char *const modes[] = {"leader",     "follower", "observer",
                                    "standalone", "looking",  "read-only"};

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

static const struct {
    double share;
    const char *name;
} quantiles[] = {{0.5, "p50"}, {0.95, "p95"}, {0.99, "p99"}, {0.999, "p999"}};

/* A server alone has nobody to lead. */
static bool leads(const struct server *s) {
    return !ensemble_is_standalone(s->ensemble) && ensemble_leads(s->ensemble);
}

/* ---- As items ---- */

static void report_part(const char *part, const char *name, double value, enum item_kind kind,
                        item_fn *each, void *context) {
    char full[64];
    snprintf(full, sizeof full, "%s_%s", part, name);
    struct item item = {full, full, kind, {.number = (int64_t)value}};
    if (kind == ITEM_REAL) item.real = value;
    each(context, &item);
}

static void report_summary(const struct summary *summary, const char *name, item_fn *each,
                           void *context) {
    const struct tally *all = &summary->all;
    report_part("avg", name, average_ms(all), ITEM_REAL, each, context);
    report_part("min", name, (double)(all->min / 1000), ITEM_NUMBER, each, context);
    report_part("max", name, (double)(all->max / 1000), ITEM_NUMBER, each, context);
    report_part("cnt", name, (double)all->count, ITEM_NUMBER, each, context);
    report_part("sum", name, (double)(all->total / 1000), ITEM_NUMBER, each, context);
    for (size_t i = 0; i < COUNT(quantiles); i++) {
        double us = summary_quantile(summary, quantiles[i].share);
        report_part(quantiles[i].name, name, us < 0 ? 0 : us / 1000, ITEM_NUMBER, each, context);
    }
}

static void report_some(const struct server *s, const struct figure *some, size_t count,
                        item_fn *each, void *context) {
    for (const struct figure *figure = some; figure < some + count; figure++) {
        double value = figure->read(s);
        struct item item = {figure->name, figure->name, ITEM_NUMBER, {.number = (int64_t)value}};
        if (figure->kind == REAL) item.kind = ITEM_REAL, item.real = value;
        each(context, &item);
    }
}

/* Calls back for each other member; a leader has some to tell of. */
static void each_member(const struct server *s,
                        void (*tell)(void *context, int32_t number,
                                     const struct ensemble_member *of),
                        void *context) {
    const struct raft *raft = ensemble_status(s->ensemble).raft;
    for (uint32_t i = 0; leads(s) && i < raft->config.count; i++) {
        if (raft->config.at[i].id == raft->self) continue;
        struct ensemble_member of = ensemble_member(s->ensemble, raft->config.at[i].id);
        tell(context, member_number(raft->config.at[i].id), &of);
    }
}

struct reporting {
    item_fn *each;
    void *context;
};

static void report_member(void *context, int32_t number, const struct ensemble_member *of) {
    const struct reporting *to = context;
    char name[64];
    for (size_t i = 0; i < COUNT(member_figures); i++) {
        snprintf(name, sizeof name, "member_%d_%s", number, member_figures[i].name);
        struct item item = {
            name, name, ITEM_NUMBER, {.number = (int64_t)member_figures[i].read(of)}};
        to->each(to->context, &item);
    }
}

void report_figures(const struct server *s, item_fn *each, void *context) {
    struct reporting to = {each, context};
    report_some(s, figures, COUNT(figures), each, context);
    if (leads(s)) report_some(s, leader_figures, COUNT(leader_figures), each, context);
    each_member(s, report_member, &to);
    for (size_t i = 0; i < REFUSAL_KINDS; i++)
        report_part("refused", refusals[i][0], (double)s->statistics.refused[i], ITEM_NUMBER, each,
                    context);
    for (size_t i = 0; i < COUNT(summaries); i++)
        report_summary(summaries[i].read(s), summaries[i].name, each, context);
}

/* ---- As metrics ---- */

static void print_head(struct bytes *out, const char *name, const char *help, const char *type) {
    report_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_figure(struct bytes *out, const struct server *s, const struct figure *figure) {
    print_head(out, figure->name, figure->help, figure->kind == COUNTER ? "counter" : "gauge");
    report_print(out, "%s %.15g\n", figure->name, figure->read(s));
}

static void print_summary(struct bytes *out, const struct server *s, const struct spread *spread) {
    const struct summary *summary = spread->read(s);
    const char *name = spread->name;
    print_head(out, name, spread->help, "summary");
    for (size_t j = 0; j < COUNT(quantiles); j++) {
        double us = summary_quantile(summary, quantiles[j].share);
        report_print(out, "%s{quantile=\"%g\"} ", name, quantiles[j].share);
        if (us < 0)
            report_print(out, "NaN\n");
        else
            report_print(out, "%.4f\n", us / 1000);
    }
    report_print(out, "%s_sum %.3f\n%s_count %llu\n", name, (double)summary->all.total / 1000, name,
                 (unsigned long long)summary->all.count);
}

/* Each bucket has those of all before it. */
static void print_histogram(struct bytes *out, const struct server *s,
                            const struct spread *spread) {
    const struct summary *summary = spread->read(s);
    const char *name = spread->name;
    unsigned long long seen = 0, all = summary->all.count;
    print_head(out, name, spread->help, "histogram");
    for (size_t i = 0; i < SUMMARY_BOUNDS; i++)
        report_print(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)summary_bound_us[i] / 1e6,
                     seen += summary->bucket[i]);
    report_print(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name, all, name,
                 (double)summary->all.total / 1e6, name, all);
}

static void print_spread(struct bytes *out, const char *name, const char *label,
                         const struct busy_spread *spread) {
    unsigned long long seen = 0, all = spread->count;
    const char *part = *label ? "," : "", *open = *label ? "{" : "", *close = *label ? "}" : "";
    for (size_t i = 0; i < SUMMARY_BOUNDS; i++)
        report_print(out, "%s_bucket{%s%sle=\"%g\"} %llu\n", name, label, part,
                     (double)summary_bound_us[i] / 1e6, seen += spread->bucket[i]);
    report_print(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, part, all);
    report_print(out, "%s_sum%s%s%s %.6f\n%s_count%s%s%s %llu\n", name, open, label, close,
                 (double)spread->total_us / 1e6, name, open, label, close, all);
}

static void print_loop(struct bytes *out, const struct server *s) {
    static const char all[] = "loop_seconds", work[] = "loop_work_seconds";
    char label[64];
    print_head(out, all, "Times of the iterations of the loop, without waiting", "histogram");
    print_spread(out, all, "", &s->work.iterations);
    print_head(out, work, "... and of each kind of work in them", "histogram");
    for (enum busy_kind kind = 0; kind < BUSY_KIND_COUNT; kind++) {
        snprintf(label, sizeof label, "work=\"%s\"", busy_kind_name(kind));
        print_spread(out, work, label, &s->work.work[kind]);
    }
}

static void print_role(struct bytes *out, const struct server *s) {
    print_head(out, "server_state", "1: this server is that", "gauge");
    for (size_t i = 0; i < COUNT(modes); i++)
        report_print(out, "server_state{state=\"%s\"} %g\n", modes[i], role_is(s, modes[i]));
}

static void print_certificates(struct bytes *out, const struct server *s) {
    static const char name[] = "certificate_expiry_time_seconds";
    int64_t clients = s->tls ? tls_expiry(s->tls) : 0;
    int64_t members = ensemble_certificate_expiry(s->ensemble);
    print_head(out, name, "When this server's certificate expires, since 1970", "gauge");
    if (clients) report_print(out, "%s{of=\"clients\"} %lld\n", name, (long long)clients);
    if (members) report_print(out, "%s{of=\"members\"} %lld\n", name, (long long)members);
}

static void print_refusals(struct bytes *out, const struct server *s) {
    print_head(out, "refused_total", "What was refused, by its reason", "counter");
    for (size_t i = 0; i < REFUSAL_KINDS; i++)
        report_print(out, "refused_total{reason=\"%s\"} %llu\n", refusals[i][0],
                     (unsigned long long)s->statistics.refused[i]);
}

struct printing {
    struct bytes *out;
    size_t figure;
};

static void print_member(void *context, int32_t number, const struct ensemble_member *of) {
    const struct printing *to = context;
    report_print(to->out, "raft_member_%s{member=\"%d\"} %.15g\n", member_figures[to->figure].name,
                 number, member_figures[to->figure].read(of));
}

static void print_members(struct bytes *out, const struct server *s) {
    for (size_t i = 0; i < COUNT(member_figures); i++) {
        struct printing to = {out, i};
        char name[64];
        snprintf(name, sizeof name, "raft_member_%s", member_figures[i].name);
        print_head(out, name, member_figures[i].help, "gauge");
        each_member(s, print_member, &to);
    }
}

/* As in ZooKeeper, only a leader has these: an alarm about them is not one about its followers. */
static void print_leading(struct bytes *out, const struct server *s) {
    for (size_t i = 0; i < COUNT(leader_figures); i++) {
        const struct figure *figure = &leader_figures[i];
        print_head(out, figure->name, figure->help, "gauge");
        if (leads(s)) report_print(out, "%s %.15g\n", figure->name, figure->read(s));
    }
}

void report_metrics(const struct server *s, struct bytes *out) {
    for (size_t i = 0; i < COUNT(figures); i++) print_figure(out, s, &figures[i]);
    print_role(out, s);
    print_leading(out, s);
    print_members(out, s);
    print_refusals(out, s);
    print_certificates(out, s);
    for (size_t i = 0; i < COUNT(process_figures); i++) print_figure(out, s, &process_figures[i]);
    for (size_t i = 0; i < COUNT(summaries); i++) print_summary(out, s, &summaries[i]);
    for (size_t i = 0; i < COUNT(histograms); i++) print_histogram(out, s, &histograms[i]);
    print_loop(out, s);
}
