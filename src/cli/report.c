#include "cli/report.h"

#include <math.h>
#include <stdarg.h>

#include "algorithms/catalogue.h"
#include "base/parse.h"
#include "language/language.h"

/* Enough for the longest name of a property. */
static int name_columns(void) { return language_chosen() == PORTUGUESE ? 31 : 20; }

void figure(FILE *out, const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(out, "  %-*s ", COLUMN(name_columns(), name));
    vfprintf(out, format, arguments);
    va_end(arguments);
}

static json_t *hash_json(uint64_t hash) {
    return json_sprintf("%016llx", (unsigned long long)hash);
}

static json_t *settings_json(const struct sim_config *config) {
    json_t *settings = json_object();
    char text[1024];
    for (size_t i = 0; i < sim_setting_count; i++) {
        const struct setting *s = &sim_settings[i];
        if (!(s->problems & config->algorithm->problem)) continue;
        setting_format(config, s, text, sizeof text);
        if (*text && strcmp(s->name, "seed") != 0)
            json_object_set_new(settings, s->name, json_string(text));
    }
    for (unsigned i = 0; i < config->algorithm->option_count; i++) {
        const struct cv_option *o = &config->algorithm->options[i];
        option_format(config, o, text, sizeof text);
        if (*text) json_object_set_new(settings, o->name, json_string(text));
    }
    return settings;
}

/* The first keys of every report: what was run. */
static json_t *report_head(const struct sim_config *config) {
    struct roster roster = config_roster(config);
    return json_pack("{s:s, s:I, s:i, s:I, s:o}", "algorithm", config->algorithm->name, "processes",
                     (json_int_t)config->processes, "servers", (int)roster.servers, "seed",
                     (json_int_t)config->seed, "settings", settings_json(config));
}

/* ---- One run ---- */

/* {"exclusion": "violated", …, "at": {"exclusion": 12.5}, "why": {"exclusion": "…"}} */
static json_t *verdicts_json(const struct sim *sim) {
    json_t *verdicts = json_object(), *at = json_object(), *why = json_object();
    struct properties properties = sim_properties(sim->algorithm);
    for (int i = 0; i < properties.count; i++) {
        const struct verdict *v = &sim_verdicts(sim)[i];
        const char *name = properties.name[i];
        json_object_set_new(verdicts, name, json_string(verdict_word(v->value)));
        if (v->value == VIOLATED) json_object_set_new(at, name, json_real((double)v->at_us / 1e3));
        if (*v->why) json_object_set_new(why, name, json_string(v->why));
    }
    json_object_set_new(verdicts, "at", at);
    json_object_set_new(verdicts, "why", why);
    return verdicts;
}

static json_t *kinds_json(const struct sim *sim) {
    json_t *kinds = json_object();
    for (unsigned i = 0; i < sim->algorithm->message_count; i++)
        json_object_set_new(kinds, sim->algorithm->messages[i].name,
                            json_integer((json_int_t)sim->result.by_kind[i]));
    return kinds;
}

static const char *const ends[] = {
    [ALL_SERVED] = "all served", [QUIESCENT] = "at rest",       [NO_PROGRESS] = "patience lost",
    [TIME_LIMIT] = "time limit", [EVENT_LIMIT] = "event limit", [LASTED] = "time limit"};

static json_t *lock_json(const struct sim *sim) {
    const struct sim_result *r = &sim->result;
    const struct mutex_judge *judge = &sim->judge;
    double entries = r->entries ? (double)r->entries : NAN;
    json_t *object = json_pack(
        "{s:I, s:o, s:o, s:o, s:f, s:I, s:f, s:{s:I, s:I, s:I, s:I}}", "entries",
        (json_int_t)r->entries, "messages_per_entry", real_or_null((double)r->messages / entries),
        "delay_hops_mean", real_or_null(sim_delay_hops(r, sim->config)), "wait_ms_mean",
        real_or_null((double)r->wait_us / entries / 1e3), "wait_ms_max",
        (double)r->wait_us_max / 1e3, "overtakes_max", (json_int_t)r->overtakes_max, "fairness",
        sim_fairness(r, sim->config), "resource", "overlaps", (json_int_t)judge->overlaps, "writes",
        (json_int_t)judge->writes, "refused", (json_int_t)judge->writes_refused, "late",
        (json_int_t)judge->writes_late);
    if (r->woken && r->entries)
        json_object_set_new(object, "woken_per_release",
                            json_real((double)r->woken / (double)r->entries));
    return object;
}

/* Mistakes per hour and pair of watcher and watched process. */
static double mistake_rate(const struct sim *sim) {
    double n = sim->roster.processes, hours = (double)sim->result.end_us / 3600e6;
    return n > 1 && hours > 0 ? (double)sim->detectors.mistakes / (n * (n - 1) * hours) : 0;
}

static json_t *election_json(const struct sim *sim) {
    const struct sim_result *r = &sim->result;
    cv_pid leader = election_judge_leader(&sim->election);
    char name[ROSTER_NAME_MAX];
    roster_name(&sim->roster, leader, name);
    return json_pack("{s:o, s:o, s:I, s:I, s:f, s:I, s:I, s:b, s:s}", "leader",
                     leader ? json_integer((json_int_t)r->leader) : json_null(), "leader_name",
                     leader ? json_string(name) : json_null(), "rounds", (json_int_t)r->rounds,
                     "bytes", (json_int_t)r->bytes, "time", (double)r->decided_us / 1e3,
                     "elections", (json_int_t)r->elections, "unexplained_changes",
                     (json_int_t)r->leader_changes, "split_brain", sim->election.split_brain,
                     "uniqueness_within_parts",
                     sim->election.within_parts.value == VIOLATED ? "violated" : "held");
}

static json_t *detectors_json(const struct sim *sim) {
    const struct detector_judge *d = &sim->detectors;
    double noticed = d->crashes_detected ? (double)d->crashes_detected : NAN;
    double ended = d->mistakes_ended ? (double)d->mistakes_ended : NAN;
    return json_pack("{s:s, s:I, s:I, s:o, s:f, s:I, s:I, s:f, s:o, s:f}", "kind",
                     sim->config->detector.text, "heartbeats", (json_int_t)sim->result.heartbeats,
                     "noticed", (json_int_t)d->crashes_detected, "detection_ms_mean",
                     real_or_null((double)d->detection_us_sum / noticed / 1e3), "detection_ms_max",
                     (double)d->detection_us_max / 1e3, "missed", (json_int_t)d->missed, "mistakes",
                     (json_int_t)d->mistakes, "mistakes_per_pair_hour", mistake_rate(sim),
                     "mistake_ms_mean", real_or_null((double)d->mistake_us_sum / ended / 1e3),
                     "mistake_ms_max", (double)d->mistake_us_max / 1e3);
}

/* ---- Load ---- */

struct load {
    char busiest[ROSTER_NAME_MAX];
    double busy, others, wait_us; /* others: on average */
    uint64_t messages;            /* of the busiest */
};

static struct load load_of(const struct sim *sim) {
    struct load load = {.others = 0};
    cv_pid busiest = sim_busiest(sim);
    uint64_t served = 0, queued_us = 0;
    roster_name(&sim->roster, busiest, load.busiest);
    load.busy = sim_busy(sim, busiest);
    load.messages = sim->service[busiest].served;
    for (cv_pid p = 1; p <= sim->roster.processes; p++) {
        if (p != busiest) load.others += sim_busy(sim, p);
        served += sim->service[p].served;
        queued_us += sim->service[p].queued_us;
    }
    if (sim->roster.processes > 1) load.others /= sim->roster.processes - 1;
    load.wait_us = served ? (double)queued_us / (double)served : 0;
    return load;
}

static json_t *load_json(const struct sim *sim) {
    enum { LISTED_MAX = 1000 };
    struct load load = load_of(sim);
    json_t *object =
        json_pack("{s:s, s:f, s:f, s:f}", "busiest", load.busiest, "busy", load.busy,
                  "busy_others_mean", load.others, "queued_ms_mean", load.wait_us / 1e3);
    json_t *processes = json_object();
    char name[ROSTER_NAME_MAX];
    for (cv_pid p = 1; p <= sim->roster.processes && p <= LISTED_MAX; p++)
        json_object_set_new(processes, roster_name(&sim->roster, p, name),
                            json_pack("{s:I, s:f}", "messages", (json_int_t)sim->service[p].served,
                                      "busy", sim_busy(sim, p)));
    json_object_set_new(object, "processes", processes);
    return object;
}

static void load_text(const struct sim *sim, FILE *out) {
    struct load load = load_of(sim);
    char wait[32];
    figure(out, _("load"),
           _("%s %.1f%% busy with %llu messages, the others %.1f%%; a message waits %s\n"),
           load.busiest, 100 * load.busy, (unsigned long long)load.messages, 100 * load.others,
           format_duration(wait, sizeof wait, load.wait_us));
}

static void add_all(json_t *object, json_t *more) {
    json_object_update(object, more);
    json_decref(more);
}

json_t *report_run_json(const struct sim *sim) {
    const struct sim_result *r = &sim->result;
    json_t *report = report_head(sim->config);
    add_all(report, json_pack("{s:I, s:I, s:o}", "events", (json_int_t)r->events, "messages",
                              (json_int_t)r->messages, "messages_by_kind", kinds_json(sim)));
    add_all(report, sim->algorithm->problem == CV_ELECTION ? election_json(sim) : lock_json(sim));
    if (sim->config->detector.code) json_object_set_new(report, "detector", detectors_json(sim));
    if (sim->service) json_object_set_new(report, "load", load_json(sim));
    add_all(report, json_pack("{s:I, s:I, s:f, s:s, s:o, s:o}", "lost", (json_int_t)r->lost,
                              "crashes", (json_int_t)r->crashes, "time_ms", (double)r->end_us / 1e3,
                              "end", ends[r->end], "verdicts", verdicts_json(sim), "trace_hash",
                              hash_json(r->hash)));
    return report;
}

static void title_text(json_t *head, FILE *out) {
    int servers = (int)json_integer_value(json_object_get(head, "servers"));
    long long processes = json_integer_value(json_object_get(head, "processes"));
    fprintf(out, processes == 1 ? _("%s: %lld process") : _("%s: %lld processes"),
            json_string_value(json_object_get(head, "algorithm")), processes);
    const struct cv_algorithm *algorithm =
        catalogue_find(json_string_value(json_object_get(head, "algorithm")));
    if (servers > 1) fprintf(out, _(" and %d coordinators"), servers);
    if (servers == 1) fprintf(out, _(" and 1 %s"), algorithm ? _(algorithm->server_name) : "");
}

static void resource_text(const struct mutex_judge *judge, FILE *out) {
    if (!judge->overlaps) return;
    bool fencing = judge->rules.fencing;
    uint64_t late = fencing ? judge->writes_refused : judge->writes_late;
    figure(out, _("resource"),
           judge->overlaps == 1 ? _("two believed they held the lock %llu time; ")
                                : _("two believed they held the lock %llu times; "),
           (unsigned long long)judge->overlaps);
    if (fencing)
        fprintf(out,
                late == 1 ? _("it refused %llu late write\n") : _("it refused %llu late writes\n"),
                (unsigned long long)late);
    else
        fprintf(out,
                late == 1 ? _("it took %llu late write (no fencing)\n")
                          : _("it took %llu late writes (no fencing)\n"),
                (unsigned long long)late);
}

static void lock_text(const struct sim *sim, FILE *out) {
    const struct sim_result *r = &sim->result;
    char text[32];
    if (!isnan(sim_delay_hops(r, sim->config)))
        figure(out, _("delay before entry"),
               _("%.4g message times once wanted and free; %s from the request\n"),
               sim_delay_hops(r, sim->config),
               format_duration(text, sizeof text, (double)r->wait_us / (double)r->entries));
    figure(out, _("fairness"), _("%.4g (1: all entered equally often)\n"),
           sim_fairness(r, sim->config));
    if (r->woken && r->entries)
        figure(out, _("woken"), _("%.4g processes per release\n"),
               (double)r->woken / (double)r->entries);
    resource_text(&sim->judge, out);
}

static void election_text(const struct sim *sim, FILE *out) {
    const struct sim_result *r = &sim->result;
    cv_pid leader = election_judge_leader(&sim->election);
    char name[ROSTER_NAME_MAX], text[32], id[40];
    roster_name(&sim->roster, leader, name);
    snprintf(id, sizeof id, _(" (id %llu)"), (unsigned long long)r->leader);
    if (sim->algorithm->traits & CV_ANONYMOUS) *id = 0;
    if (leader && election_judge_settled(&sim->election))
        figure(out, _("leader"), _("%s%s, known to all after %s\n"), name, id,
               format_duration(text, sizeof text, (double)r->decided_us));
    else if (leader)
        figure(out, _("leader"), _("%s%s; %u of %u live processes have no leader\n"), name, id,
               sim->election.live - sim->election.decided, sim->election.live);
    else
        figure(out, _("leader"), "%s\n", sim->election.leaders ? _("more than one") : _("none"));
    if (r->rounds) figure(out, _("rounds"), "%llu\n", (unsigned long long)r->rounds);
    if (r->elections > 1)
        figure(out, _("changes"),
               _("%llu elections were won, %llu of them although the leader was well\n"),
               (unsigned long long)r->elections, (unsigned long long)r->leader_changes);
}

static void detectors_text(const struct sim *sim, FILE *out) {
    const struct detector_judge *d = &sim->detectors;
    char mean[32], longest[32];
    figure(out, _("detector"), _("%s, %llu heartbeats\n"), sim->config->detector.text,
           (unsigned long long)sim->result.heartbeats);
    if (d->crashes_detected)
        figure(out, _("detection time"),
               _("%s on average, %s at most (%llu noticed, %llu missed)\n"),
               format_duration(mean, sizeof mean,
                               (double)d->detection_us_sum / (double)d->crashes_detected),
               format_duration(longest, sizeof longest, (double)d->detection_us_max),
               (unsigned long long)d->crashes_detected, (unsigned long long)d->missed);
    figure(out, _("mistakes"), _("%llu, %.4g per hour and pair of processes"),
           (unsigned long long)d->mistakes, mistake_rate(sim));
    if (d->mistakes_ended)
        fprintf(out, _("; each lasted %s on average, %s at most"),
                format_duration(mean, sizeof mean,
                                (double)d->mistake_us_sum / (double)d->mistakes_ended),
                format_duration(longest, sizeof longest, (double)d->mistake_us_max));
    fputc('\n', out);
}

static void verdicts_text(const struct sim *sim, FILE *out) {
    struct properties properties = sim_properties(sim->algorithm);
    for (int i = 0; i < properties.count; i++) {
        const struct verdict *v = &sim_verdicts(sim)[i];
        figure(out, _(properties.name[i]), "%s",
               v->value == VIOLATED ? _("VIOLATED") : _(verdict_word(v->value)));
        if (v->value == VIOLATED) fprintf(out, _(" at %.3f ms"), (double)v->at_us / 1e3);
        fprintf(out, *v->why ? ": %s\n" : "\n", v->why);
    }
}

void report_run_text(const struct sim *sim, FILE *out) {
    const struct sim_result *r = &sim->result;
    bool lock = sim->algorithm->problem == CV_MUTEX;
    char text[32];
    json_t *head = report_head(sim->config);
    title_text(head, out);
    json_decref(head);
    fprintf(out, _(", seed %llu\n"), (unsigned long long)sim->config->seed);
    if (lock)
        figure(out, _("entries"), _("%llu in %s of virtual time\n"), (unsigned long long)r->entries,
               format_duration(text, sizeof text, (double)r->end_us));
    figure(out, _("messages"), "%llu", (unsigned long long)r->messages);
    if (r->entries) fprintf(out, _(", %.4g per entry"), (double)r->messages / (double)r->entries);
    if (!lock) fprintf(out, _(", %llu bytes"), (unsigned long long)r->bytes);
    fprintf(out, r->lost ? _("; %llu lost\n") : "\n", (unsigned long long)r->lost);
    if (lock)
        lock_text(sim, out);
    else
        election_text(sim, out);
    if (sim->service) load_text(sim, out);
    if (sim->config->detector.code) detectors_text(sim, out);
    verdicts_text(sim, out);
    figure(out, _("trace hash"), _("%016llx after %llu events\n"), (unsigned long long)r->hash,
           (unsigned long long)r->events);
}

/* ---- Many runs ---- */

json_t *batch_head(const struct batch *batch) {
    json_t *head = report_head(batch->config);
    json_object_set_new(head, "runs", json_integer((json_int_t)batch->runs));
    json_object_set_new(head, "hop_us", json_real(distribution_mean(&batch->config->delay)));
    return head;
}

static const struct cv_algorithm *algorithm_of(json_t *head) {
    static const struct cv_algorithm unknown = {.problem = CV_MUTEX};
    const char *name = json_string_value(json_object_get(head, "algorithm"));
    const struct cv_algorithm *algorithm = name ? catalogue_find(name) : NULL;
    return algorithm ? algorithm : &unknown;
}

static json_t *columns_json(struct properties properties) {
    json_t *columns = json_array();
#define C(NAME) json_array_append_new(columns, json_string(#NAME));
    BATCH_COLUMNS(C)
#undef C
    for (int i = 0; i < properties.count; i++)
        json_array_append_new(columns, json_string(properties.name[i]));
    json_array_append_new(columns, json_string("trace_hash"));
    return columns;
}

static json_t *row_json(const struct batch_row *row, struct properties properties) {
    json_t *columns = json_array();
#define C(NAME) json_array_append_new(columns, json_integer((json_int_t)row->NAME));
    BATCH_COLUMNS(C)
#undef C
    for (int i = 0; i < properties.count; i++)
        json_array_append_new(columns, json_string(verdict_word(row->verdict[i])));
    json_array_append_new(columns, hash_json(row->hash));
    return columns;
}

static int read_verdict(json_t *value, enum verdict_value *verdict) {
    const char *word = json_string_value(value);
    for (int v = UNKNOWN; word && v <= VIOLATED; v++)
        if (strcmp(word, verdict_word((enum verdict_value)v)) == 0)
            return *verdict = (enum verdict_value)v, 0;
    return -1;
}

int batch_row_read(json_t *head, json_t *columns, struct batch_row *row) {
    struct properties properties = sim_properties(algorithm_of(head));
    size_t at = 0;
    *row = (struct batch_row){0};
    char hash[32];
#define C(NAME)                                                                                    \
    if (!json_is_integer(json_array_get(columns, at))) return -1;                                  \
    row->NAME = (uint64_t)json_integer_value(json_array_get(columns, at++));
    BATCH_COLUMNS(C)
#undef C
    for (int i = 0; i < properties.count; i++)
        if (read_verdict(json_array_get(columns, at++), &row->verdict[i]) != 0) return -1;
    const char *text = json_string_value(json_array_get(columns, at++));
    if (!text || strlen(text) != 16 || json_array_size(columns) != at) return -1;
    snprintf(hash, sizeof hash, "0x%s", text);
    return parse_u64(hash, &row->hash);
}

static json_t *stats_json(const struct stats *s) {
    if (s->count == 0) return json_null();
    return json_pack("{s:f, s:[f, f], s:f, s:f, s:f, s:f, s:f}", "mean", s->mean, "interval_95",
                     s->low, s->high, "min", s->min, "p50", s->p50, "p90", s->p90, "p99", s->p99,
                     "max", s->max);
}

static json_t *property_json(const struct batch_summary *summary, int i, size_t count) {
    struct proportion p = proportion_of(summary->violated[i], count);
    const struct batch_row *first = summary->first_failing[i];
    return json_pack("{s:I, s:I, s:I, s:f, s:[f, f], s:o}", "held", (json_int_t)summary->held[i],
                     "violated", (json_int_t)summary->violated[i], "unknown",
                     (json_int_t)(count - summary->held[i] - summary->violated[i]), "rate", p.rate,
                     "interval_95", p.low, p.high, "first_seed",
                     first ? json_integer((json_int_t)first->seed) : json_null());
}

json_t *report_batch_json(json_t *head, const struct batch_row *rows, size_t count,
                          const struct batch_summary *summary) {
    json_t *report = json_copy(head), *measures = json_object(), *verdicts = json_object();
    json_t *results = json_array();
    enum cv_problem problem = (enum cv_problem)algorithm_of(head)->problem;
    struct properties properties = sim_properties(algorithm_of(head));
    for (int m = 0; m < BATCH_MEASURES; m++)
        if (batch_measured((enum batch_measure)m, problem))
            json_object_set_new(measures, batch_measure_name[m], stats_json(&summary->of[m]));
    for (int i = 0; i < properties.count; i++)
        json_object_set_new(verdicts, properties.name[i], property_json(summary, i, count));
    for (size_t i = 0; i < count; i++)
        json_array_append_new(results, row_json(&rows[i], properties));
    const struct batch_row *first = summary->first_failing_any;
    json_object_set_new(report, "completed", json_integer((json_int_t)count));
    json_object_set_new(report, "summary", measures);
    json_object_set_new(report, "verdicts", verdicts);
    json_object_set_new(report, "first_failing_seed",
                        first ? json_integer((json_int_t)first->seed) : json_null());
    json_object_set_new(report, "columns", columns_json(properties));
    json_object_set_new(report, "results", results);
    return report;
}

static void property_text(const struct batch_summary *summary, const char *name, int i,
                          size_t count, FILE *out) {
    struct proportion p = proportion_of(summary->violated[i], count);
    size_t unknown = count - summary->held[i] - summary->violated[i];
    figure(out, _(name), _("held in %zu"), summary->held[i]);
    if (unknown) fprintf(out, _(", unknown in %zu"), unknown);
    if (summary->violated[i])
        fprintf(
            out,
            _(", VIOLATED in %zu (%.3g%%, 95%% interval %.3g%% to %.3g%%), first with seed %llu"),
            summary->violated[i], 100 * p.rate, 100 * p.low, 100 * p.high,
            (unsigned long long)summary->first_failing[i]->seed);
    fputc('\n', out);
}

void report_batch_text(json_t *head, size_t count, const struct batch_summary *summary, FILE *out) {
    title_text(head, out);
    long long runs = json_integer_value(json_object_get(head, "runs"));
    fprintf(out, _(", %zu of %lld runs, seeds from %lld"), count, runs,
            json_integer_value(json_object_get(head, "seed")));
    fprintf(out, (long long)count < runs ? _(" (a share; the others are missing)\n") : "\n");
    fprintf(out, "  %-*s %*s  %-*s %10s %10s %10s %*s\n", name_columns(), "", COLUMN(10, _("mean")),
            COLUMN(23, _("95% interval")), "p50", "p90", "p99", COLUMN(10, _("max")));
    enum cv_problem problem = (enum cv_problem)algorithm_of(head)->problem;
    struct properties properties = sim_properties(algorithm_of(head));
    for (int m = 0; m < BATCH_MEASURES; m++) {
        const struct stats *s = &summary->of[m];
        if (s->count == 0 || !batch_measured((enum batch_measure)m, problem)) continue;
        char interval[32];
        snprintf(interval, sizeof interval, _("%.4g to %.4g"), s->low, s->high);
        figure(out, _(batch_measure_name[m]), "%10.5g  %-23s %10.5g %10.5g %10.5g %10.5g\n",
               s->mean, interval, s->p50, s->p90, s->p99, s->max);
    }
    for (int i = 0; i < properties.count; i++)
        property_text(summary, properties.name[i], i, count, out);
}
