/* The figures of a server, under ZooKeeper's names where it has them: in the word mntr, in JSON,
 * and as metrics. */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>

#include "server/report.h"

enum figure_kind { COUNTER, GAUGE, REAL }; /* real: a gauge with decimals */

struct figure {
    const char *name, *help;
    enum figure_kind kind;
    double (*read)(const struct server *s);
};

/* ---- What has to be asked for ---- */

struct tally report_latency(const struct server *s) {
    return tally_of_both(&s->statistics.reads.all, &s->statistics.writes.all);
}

static double average_ms(const struct tally *tally) { return tally_average(tally) / 1000; }

static double latency_average_ms(const struct server *s) {
    struct tally latency = report_latency(s);
    return average_ms(&latency);
}

/* Of sizes: the original's word for none. */
static double size_or_none(const struct server *s, uint64_t size) {
    return s->statistics.responses.count ? (double)size : -1;
}

static double open_files(void) {
    DIR *stream = opendir("/proc/self/fd");
    int count = -3; /* two dots, and the stream itself */
    while (stream && readdir(stream)) count++;
    if (stream) closedir(stream);
    return stream ? count : -1;
}

static double most_files(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : -1;
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

/* ---- The tables: F(name, kind, help, where it is read) ---- */

#define STATISTIC(FIELD) (double)s->statistics.FIELD

#define FIGURES(F)                                                                                 \
    F(uptime, GAUGE, "Time since the start, ms", (double)(s->now_ms - s->started_ms))              \
    F(avg_latency, REAL, "Average time of a request, ms", latency_average_ms(s))                   \
    F(min_latency, GAUGE, "Shortest time of a request, ms",                                        \
      (double)(report_latency(s).least / 1000))                                                    \
    F(max_latency, GAUGE, "Longest time of a request, ms",                                         \
      (double)(report_latency(s).most / 1000))                                                     \
    F(packets_received, COUNTER, "Requests that came", STATISTIC(received))                        \
    F(packets_sent, COUNTER, "Replies and events that were sent", STATISTIC(sent))                 \
    F(num_alive_connections, GAUGE, "Connections", s->connections)                                 \
    F(outstanding_requests, GAUGE, "Writes on their way", (double)s->pending_count)                \
    F(global_sessions, GAUGE, "Sessions", s->tree.sessions.count)                                  \
    F(local_sessions, GAUGE, "Sessions that only one server knows: there are none", 0)             \
    F(znode_count, GAUGE, "Nodes", s->tree.nodes)                                                  \
    F(ephemerals_count, GAUGE, "Ephemeral nodes", s->tree.ephemerals)                              \
    F(watch_count, GAUGE, "Watches", s->watches.watches)                                           \
    F(approximate_data_size, GAUGE, "Bytes of names and data", (double)s->tree.bytes)              \
    F(open_file_descriptor_count, GAUGE, "Open files", open_files())                               \
    F(max_file_descriptor_count, GAUGE, "Open files that are allowed", most_files())               \
    F(last_client_response_size, GAUGE, "Bytes of the last reply",                                 \
      size_or_none(s, s->statistics.responses.last))                                               \
    F(min_client_response_size, GAUGE, "Bytes of the smallest reply",                              \
      size_or_none(s, s->statistics.responses.least))                                              \
    F(max_client_response_size, GAUGE, "Bytes of the largest reply",                               \
      size_or_none(s, s->statistics.responses.most))                                               \
    F(response_bytes, COUNTER, "Bytes of replies", STATISTIC(responses.total))                     \
    F(bytes_received_count, COUNTER, "Bytes that came from clients", STATISTIC(bytes_received))    \
    F(watch_bytes, COUNTER, "Bytes of events", STATISTIC(watch_bytes))                             \
    F(connection_request_count, COUNTER, "Clients that asked for a session", STATISTIC(joins))     \
    F(connection_rejected, COUNTER, "Connections over a limit", STATISTIC(refused))                \
    F(connection_drop_count, COUNTER, "Connections that ended while their session lived",          \
      STATISTIC(dropped))                                                                          \
    F(connection_drop_probability, REAL, "Share of connections dropped at random: none are", 0)    \
    F(sessionless_connections_expired, COUNTER, "Connections that never asked for a session",      \
      STATISTIC(silent))                                                                           \
    F(stale_sessions_expired, COUNTER, "Sessions whose time was up", STATISTIC(expired))           \
    F(auth_failed_count, COUNTER, "Clients that could not say who they are",                       \
      STATISTIC(auth_failed))                                                                      \
    F(unsuccessful_handshake, COUNTER, "TLS handshakes that failed", STATISTIC(handshakes_failed)) \
    F(proposal_count, COUNTER, "Entries put forward for the log", STATISTIC(proposals))            \
    F(commit_count, COUNTER, "Entries applied", STATISTIC(commits))                                \
    F(log_bytes_written, COUNTER, "Bytes of entries written to the log", STATISTIC(log_bytes))     \
    F(snapshots_failed, COUNTER, "Snapshots that could not be written", STATISTIC(snapshots_failed))

/* Of the process: names that every exporter has, for metrics only. */
#define PROCESS_FIGURES(F)                                                                         \
    F(process_cpu_seconds_total, COUNTER, "Processor time", processor_seconds())                   \
    F(process_resident_memory_bytes, GAUGE, "Resident memory", resident_bytes())                   \
    F(process_start_time_seconds, REAL, "When it started, since 1970", (double)s->started_ms / 1000)

#define SUMMARIES(F)                                                                               \
    F(readlatency, "Times of requests that were answered at once, ms", reads)                      \
    F(updatelatency, "Times of requests that went through the log, ms", writes)                    \
    F(fsynctime, "Times to make a batch of the log durable, ms", syncs)                            \
    F(snapshottime, "Times to write a snapshot in the background, ms", snapshots)

#define FIGURE_READ(NAME, KIND, HELP, VALUE)                                                       \
    static double read_##NAME(const struct server *s) { return (void)s, (VALUE); }
FIGURES(FIGURE_READ)
PROCESS_FIGURES(FIGURE_READ)

#define FIGURE_ROW(NAME, KIND, HELP, VALUE) {#NAME, HELP, KIND, read_##NAME},
static const struct figure figures[] = {FIGURES(FIGURE_ROW)};
static const struct figure process_figures[] = {PROCESS_FIGURES(FIGURE_ROW)};

static const struct {
    const char *name, *help;
    size_t offset; /* in struct statistics */
} summaries[] = {
#define SUMMARY_ROW(NAME, HELP, FIELD) {#NAME, HELP, offsetof(struct statistics, FIELD)},
    SUMMARIES(SUMMARY_ROW)};

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

static const struct summary *summary_at(const struct server *s, size_t i) {
    return (const struct summary *)((const char *)&s->statistics + summaries[i].offset);
}

static const struct {
    double share;
    const char *name;
} quantiles[] = {{0.5, "p50"}, {0.95, "p95"}, {0.99, "p99"}, {0.999, "p999"}};

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
    report_part("min", name, (double)(all->least / 1000), ITEM_NUMBER, each, context);
    report_part("max", name, (double)(all->most / 1000), ITEM_NUMBER, each, context);
    report_part("cnt", name, (double)all->count, ITEM_NUMBER, each, context);
    report_part("sum", name, (double)(all->total / 1000), ITEM_NUMBER, each, context);
    for (size_t i = 0; i < COUNT(quantiles); i++) {
        double us = summary_quantile(summary, quantiles[i].share);
        report_part(quantiles[i].name, name, us < 0 ? 0 : us / 1000, ITEM_NUMBER, each, context);
    }
}

void report_figures(const struct server *s, item_fn *each, void *context) {
    for (size_t i = 0; i < COUNT(figures); i++) {
        const struct figure *figure = &figures[i];
        double value = figure->read(s);
        struct item item = {figure->name, figure->name, ITEM_NUMBER, {.number = (int64_t)value}};
        if (figure->kind == REAL) item.kind = ITEM_REAL, item.real = value;
        each(context, &item);
    }
    for (size_t i = 0; i < COUNT(summaries); i++)
        report_summary(summary_at(s, i), summaries[i].name, each, context);
}

/* ---- As metrics ---- */

static void print_head(struct bytes *out, const char *name, const char *help, const char *type) {
    report_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_figure(struct bytes *out, const struct server *s, const struct figure *figure) {
    print_head(out, figure->name, figure->help, figure->kind == COUNTER ? "counter" : "gauge");
    report_print(out, "%s %.15g\n", figure->name, figure->read(s));
}

static void print_summary(struct bytes *out, const struct server *s, size_t i) {
    const struct summary *summary = summary_at(s, i);
    const char *name = summaries[i].name;
    print_head(out, name, summaries[i].help, "summary");
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

void report_metrics(const struct server *s, struct bytes *out) {
    for (size_t i = 0; i < COUNT(figures); i++) print_figure(out, s, &figures[i]);
    for (size_t i = 0; i < COUNT(process_figures); i++) print_figure(out, s, &process_figures[i]);
    for (size_t i = 0; i < COUNT(summaries); i++) print_summary(out, s, i);
}
