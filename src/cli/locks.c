#include "cli/locks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/parse.h"
#include "cli/run.h"

char *locks_path(const char *name) {
    char path[NAME_PATH_SIZE];
    char *copy = strdup(name_path(path, NAME_LOCKS, name));
    cv_assert(copy);
    return copy;
}

int locks_check_name(const char *name) {
    const char *problem = run_name_problem(NAME_LOCKS, name);
    return problem ? remote_usage("'%s': %s", name, problem) : 0;
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
