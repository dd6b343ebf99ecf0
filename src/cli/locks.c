#include "cli/locks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/parse.h"
#include "cli/pipeline.h"
#include "cli/run.h"
#include "recipe/contend.h"
#include "recipe/note.h"

char *locks_path(const char *name) {
    char path[NAME_PATH_SIZE];
    char *copy = strdup(name_path(path, NAME_LOCKS, name));
    cv_assert(copy);
    return copy;
}

int locks_check_name(const char *name) {
    const char *problem = run_name_problem(name);
    return problem ? remote_usage("'%s': %s", name, problem) : 0;
}

/* ---- All names ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int locks_names(struct remote *remote, struct locks_names *names) {
    struct cv_op op = cv_op_children(NAME_LOCKS);
    *names = (struct locks_names){0};
    int error = remote_call(remote, &op, &names->result);
    if (error == CV_NO_NODE) return 0; /* no lock was ever taken */
    if (error) return remote_fail(remote, error, NAME_LOCKS);
    names->count = names->result->name_count;
    names->at = malloc((names->count + 1) * sizeof *names->at);
    cv_assert(names->at);
    memcpy(names->at, names->result->names, names->count * sizeof *names->at);
    if (names->count) qsort(names->at, names->count, sizeof *names->at, by_name);
    return 0;
}

void locks_names_free(struct locks_names *names) {
    free(names->at);
    cv_result_free(names->result);
}

/* ---- A page of them ---- */

struct looking {
    struct locks_row *rows;
    size_t count;
    size_t *first; /* of a row's nodes, among all */
    char *path;
};

/* How many of the first may hold it: one that is exclusive, or a run of shared ones or slots. */
static size_t may_hold(const struct contender *all, size_t count) {
    size_t run = count > 0;
    if (count && all[0].kind != CONTEND_EXCLUSIVE)
        while (run < count && run < LOCKS_HOLDERS_MAX && all[run].kind == all[0].kind) run++;
    return run;
}

static bool ask_children(void *arg, size_t index, struct cv_op *op) {
    struct looking *looking = arg;
    if (index >= looking->count) return false;
    free(looking->path);
    looking->path = locks_path(looking->rows[index].name);
    *op = cv_op_children(looking->path);
    return true;
}

static void take_children(void *arg, size_t index, const struct cv_result *result) {
    struct locks_row *row = &((struct looking *)arg)->rows[index];
    row->error = result->error;
    if (result->error) return;
    struct contender *all = calloc(result->name_count + 1, sizeof *all);
    cv_assert(all);
    row->contenders = contend_list(all, result->names, result->name_count);
    row->node_count = may_hold(all, row->contenders);
    row->nodes = calloc(row->node_count + 1, sizeof *row->nodes);
    row->holders = calloc(row->node_count + 1, sizeof *row->holders);
    cv_assert(row->nodes && row->holders);
    for (size_t i = 0; i < row->node_count; i++) {
        row->nodes[i] = strdup(all[i].name);
        cv_assert(row->nodes[i]);
    }
    free(all);
}

/* The row that a node of all rows is in. */
static struct locks_row *row_of(const struct looking *looking, size_t *index) {
    size_t low = 0, high = looking->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (looking->first[middle] <= *index)
            low = middle;
        else
            high = middle;
    }
    *index -= looking->first[low];
    return &looking->rows[low];
}

static bool ask_node(void *arg, size_t index, struct cv_op *op) {
    struct looking *looking = arg;
    if (index >= looking->first[looking->count]) return false;
    struct locks_row *row = row_of(looking, &index);
    free(looking->path);
    cv_assert(asprintf(&looking->path, NAME_LOCKS "/%s/%s", row->name, row->nodes[index]) > 0);
    *op = cv_op_get(looking->path);
    return true;
}

static const char *copy(const char *text) {
    char *result = strdup(text);
    cv_assert(result);
    return result;
}

static void take_node(void *arg, size_t index, const struct cv_result *result) {
    struct locks_row *row = row_of(arg, &index);
    struct contender parsed;
    struct note note;
    if (result->error || !contend_parse(&parsed, row->nodes[index])) return;
    note_read(&note, result->data, result->data ? result->size : 0);
    int32_t slots = note.slots > 0 ? note.slots : 1;
    bool holds = parsed.kind != CONTEND_SLOT || index < (size_t)slots || note.held;
    if (!holds) return;
    row->holders[row->holder_count++] =
        (struct cv_contender){.node = copy(row->nodes[index]),
                              .label = copy(note.label),
                              .host = copy(note.host),
                              .pid = note.pid,
                              .session = result->stat.ephemeral_owner,
                              .token = note.token ? note.token : result->stat.czxid,
                              .since = note.since ? note.since : result->stat.ctime,
                              .held_since = note.held ? note.held : result->stat.ctime,
                              .kind = parsed.kind == CONTEND_SHARED ? CV_SHARED : CV_EXCLUSIVE,
                              .slots = slots,
                              .holds = true};
}

int locks_look(struct remote *remote, const char *const *names, size_t count,
               struct locks_row **rows) {
    struct looking looking = {.count = count};
    struct pipeline children = {ask_children, take_children, &looking, true};
    struct pipeline nodes = {ask_node, take_node, &looking, true};
    *rows = looking.rows = calloc(count + 1, sizeof *looking.rows);
    looking.first = calloc(count + 1, sizeof *looking.first);
    cv_assert(looking.rows && looking.first);
    for (size_t i = 0; i < count; i++) looking.rows[i].name = names[i];
    int error = pipeline_run(remote, &children);
    for (size_t i = 0; i < count; i++)
        looking.first[i + 1] = looking.first[i] + looking.rows[i].node_count;
    if (!error && looking.first[count]) error = pipeline_run(remote, &nodes);
    for (size_t i = 0; i < count; i++) {
        struct locks_row *row = &looking.rows[i];
        if (row->contenders > row->holder_count) row->waiting = row->contenders - row->holder_count;
        if (!error && row->error != CV_NO_NODE) error = row->error;
    }
    free(looking.first);
    free(looking.path);
    return error ? remote_fail(remote, error, NAME_LOCKS) : 0;
}

void locks_free(struct locks_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < rows[i].holder_count; j++) {
            free((char *)rows[i].holders[j].node);
            free((char *)rows[i].holders[j].label);
            free((char *)rows[i].holders[j].host);
        }
        for (size_t j = 0; j < rows[i].node_count; j++) free(rows[i].nodes[j]);
        free(rows[i].holders);
        free(rows[i].nodes);
    }
    free(rows);
}

/* ---- Text ---- */

int64_t locks_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *locks_who(const struct cv_contender *contender, char *text, size_t size) {
    char label[300], host[300];
    remote_name(label, sizeof label, *contender->label ? contender->label : "");
    remote_name(host, sizeof host, contender->host);
    if (*host && contender->pid)
        snprintf(text, size, "%s%s%s:%" PRId64 "%s", label, *label ? " (" : "", host,
                 contender->pid, *label ? ")" : "");
    else if (*label)
        snprintf(text, size, "%s", label);
    else
        snprintf(text, size, "session 0x%" PRIx64, (uint64_t)contender->session);
    return text;
}

const char *locks_moment(int64_t ms, char *text, size_t size) {
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (!ms || !localtime_r(&seconds, &tm) || !strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm))
        snprintf(text, size, "-");
    return text;
}

const char *locks_ago(int64_t ms, char *text, size_t size) {
    int64_t ago = locks_now() - ms;
    return format_duration(text, size, ago > 0 ? (double)ago * 1000 : 0);
}

json_t *locks_json(const struct cv_contender *c) {
    json_t *object = json_object();
    json_object_set_new(object, "node", remote_json_name(c->node));
    json_object_set_new(object, "label", remote_json_name(c->label));
    json_object_set_new(object, "host", remote_json_name(c->host));
    json_object_set_new(object, "pid", c->pid ? json_integer(c->pid) : json_null());
    json_object_set_new(object, "session", json_sprintf("0x%" PRIx64, (uint64_t)c->session));
    json_object_set_new(object, "token", json_integer(c->token));
    json_object_set_new(object, "shared", json_boolean(c->kind == CV_SHARED));
    json_object_set_new(object, "slots", json_integer(c->slots));
    json_object_set_new(object, "since_ms", json_integer(c->since));
    if (c->holds) json_object_set_new(object, "held_since_ms", json_integer(c->held_since));
    return object;
}

/* ---- One lock ---- */

/* Estimates are for queues in which each waits for all before it. */
static bool is_plain(const struct cv_contender *contenders, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (contenders[i].kind != CV_EXCLUSIVE || contenders[i].slots > 1) return false;
    return true;
}

static bool estimate(const struct cv_contender *contenders, size_t count, size_t place,
                     const struct waits *waits, struct waits_interval *interval) {
    if (!waits || !is_plain(contenders, count)) return false;
    double elapsed = (double)(locks_now() - contenders[0].held_since);
    return waits_estimate(waits, place, elapsed > 0 ? elapsed : 0, interval);
}

static void print_interval(const struct waits_interval *interval) {
    char low[32], high[32];
    format_duration(low, sizeof low, interval->low_ms * 1000);
    if (isfinite(interval->high_ms))
        printf("; %s to %s more", low,
               format_duration(high, sizeof high, interval->high_ms * 1000));
    else
        printf("; it is held for longer than ever before");
}

static void print_calibration(const struct waits *waits) {
    if (!waits || waits->holds < WAITS_FEWEST)
        printf("  no estimate of the waits: %zu holds were seen (--watch sees them), and it takes "
               "%d\n",
               waits ? waits->holds : 0, WAITS_FEWEST);
    else if (waits->judged)
        printf("  waits are estimated from %zu holds; %u of %u estimates were right so far, and %d "
               "%% should be\n",
               waits->holds, waits->right, waits->judged, WAITS_PERCENT);
    else
        printf("  waits are estimated from %zu holds; no estimate could be judged yet\n",
               waits->holds);
}

void locks_print_one(const char *name, const struct cv_contender *contenders, size_t count,
                     const struct waits *waits) {
    char text[700], moment[64], ago[64];
    size_t place = 0;
    if (!count) printf("%s: nobody holds it, and nobody waits\n", remote_name(text, 600, name));
    for (size_t i = 0; i < count; i++) {
        const struct cv_contender *c = &contenders[i];
        struct waits_interval interval;
        char shown[600];
        remote_name(shown, sizeof shown, name);
        locks_who(c, text, sizeof text);
        if (c->holds) {
            printf("%s: held%s by %s with token %" PRId64 ", since %s (%s)\n", shown,
                   c->kind == CV_SHARED ? " shared" : "", text, c->token,
                   locks_moment(c->held_since, moment, sizeof moment),
                   locks_ago(c->held_since, ago, sizeof ago));
            continue;
        }
        printf("%4zu. %s waits%s since %s (%s)", ++place, text,
               c->kind == CV_SHARED ? " for a share" : "",
               locks_moment(c->since, moment, sizeof moment), locks_ago(c->since, ago, sizeof ago));
        if (estimate(contenders, count, i, waits, &interval)) print_interval(&interval);
        putchar('\n');
    }
    if (place) print_calibration(waits);
}

static json_t *json_interval(const struct waits_interval *interval) {
    json_t *object = json_object();
    json_object_set_new(object, "low_ms", json_integer((json_int_t)interval->low_ms));
    json_object_set_new(object, "high_ms",
                        isfinite(interval->high_ms) ? json_integer((json_int_t)interval->high_ms)
                                                    : json_null());
    return object;
}

json_t *locks_json_one(const char *name, const struct cv_contender *contenders, size_t count,
                       const struct waits *waits) {
    json_t *object = json_object(), *holders = json_array(), *queue = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *entry = locks_json(&contenders[i]);
        struct waits_interval interval;
        bool known = !contenders[i].holds && estimate(contenders, count, i, waits, &interval);
        if (!contenders[i].holds)
            json_object_set_new(entry, "wait", known ? json_interval(&interval) : json_null());
        json_array_append_new(contenders[i].holds ? holders : queue, entry);
    }
    json_object_set_new(object, "lock", remote_json_name(name));
    json_object_set_new(object, "holders", holders);
    json_object_set_new(object, "queue", queue);
    json_object_set_new(object, "holds_seen", json_integer(waits ? (json_int_t)waits->holds : 0));
    json_object_set_new(object, "estimates_right", json_integer(waits ? waits->right : 0));
    json_object_set_new(object, "estimates_judged", json_integer(waits ? waits->judged : 0));
    return object;
}
