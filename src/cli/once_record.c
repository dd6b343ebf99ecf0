#include "cli/once_record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cli/remote.h"

int64_t once_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void once_record_begin(struct once_record *record, const char *label, bool retry) {
    unsigned char random[16];
    *record = (struct once_record){.pid = getpid(), .since = once_now(), .retry = retry};
    if (getrandom(random, sizeof random, 0) != sizeof random) system_error("no random numbers");
    for (size_t i = 0; i < sizeof random; i++) snprintf(record->id + 2 * i, 3, "%02x", random[i]);
    snprintf(record->label, sizeof record->label, "%s", label ? label : "");
    if (gethostname(record->host, sizeof record->host - 1) != 0) *record->host = 0;
}

json_t *once_record_json(const struct once_record *record) {
    json_t *json = json_object();
    json_object_set_new(json, "id", remote_json_name(record->id));
    if (*record->label) json_object_set_new(json, "label", remote_json_name(record->label));
    json_object_set_new(json, "host", remote_json_name(record->host));
    json_object_set_new(json, "pid", json_integer(record->pid));
    json_object_set_new(json, "since", json_integer(record->since));
    if (record->retry) json_object_set_new(json, "retry", json_true());
    if (record->ended) json_object_set_new(json, "ended", json_integer(record->ended));
    if (record->ended) json_object_set_new(json, "status", json_integer(record->status));
    return json;
}

char *once_record_write(const struct once_record *record) {
    json_t *json = once_record_json(record);
    char *text = json_dumps(json, JSON_COMPACT);
    if (!text) system_error("out of memory");
    json_decref(json);
    return text;
}

static void read_text(const json_t *json, const char *key, char *to, size_t size) {
    const char *text = json_string_value(json_object_get(json, key));
    snprintf(to, size, "%s", text ? text : "");
}

void once_record_read(struct once_record *record, const void *text, size_t size) {
    *record = (struct once_record){0};
    json_t *json = text ? json_loadb(text, size, 0, NULL) : NULL;
    read_text(json, "id", record->id, sizeof record->id);
    read_text(json, "label", record->label, sizeof record->label);
    read_text(json, "host", record->host, sizeof record->host);
    record->pid = json_integer_value(json_object_get(json, "pid"));
    record->since = json_integer_value(json_object_get(json, "since"));
    record->ended = json_integer_value(json_object_get(json, "ended"));
    record->status = (int)json_integer_value(json_object_get(json, "status"));
    record->retry = json_is_true(json_object_get(json, "retry"));
    json_decref(json);
}

static void put_time(int64_t ms, FILE *out) {
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    char text[64] = "?";
    if (gmtime_r(&seconds, &parts)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    fputs(text, out);
}

void once_record_say(const struct once_record *record, bool alive, FILE *out) {
    fputs(record->ended ? "was run by " : alive ? "is being run by " : "was begun by ", out);
    if (*record->label) {
        remote_put(out, record->label, strlen(record->label), REMOTE_LINE);
        fputs(" on ", out);
    }
    remote_put(out, record->host, strlen(record->host), REMOTE_LINE);
    fprintf(out, " (pid %lld) ", (long long)record->pid);
    fputs(record->ended ? "from " : alive ? "since " : "at ", out);
    put_time(record->since, out);
    if (record->ended) {
        fputs(" to ", out);
        put_time(record->ended, out);
        fprintf(out, ", exit status %d", record->status);
    } else if (!alive) {
        fputs(record->retry ? ", and has not ended; with --retry it is run again"
                            : ", and nothing was heard of its end; it is not run again",
              out);
    }
}

/* ---- Old slots ---- */

struct slot {
    const char *name;
    int64_t czxid; /* 0: gone */
};

static int by_age(const void *one, const void *other) {
    int64_t a = ((const struct slot *)one)->czxid, b = ((const struct slot *)other)->czxid;
    return (a > b) - (a < b);
}

static int64_t born(struct cv_client *client, const char *folder, const char *name) {
    char path[4400];
    struct cv_stat stat;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return cv_exists(client, path, &stat) == CV_OK ? stat.czxid : 0;
}

static void forget(struct cv_client *client, const char *folder, const char *name) {
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cv_delete(client, path, -1); /* refused while it has a runner */
}

void once_prune(struct cv_client *client, const char *folder, const char *slot, int keep) {
    struct cv_result *result = NULL;
    int error = cv_children(client, folder, &result);
    size_t count = error ? 0 : result->name_count;
    size_t most = (size_t)keep + (size_t)keep / 4; /* not one by one: each look takes a request */
    struct slot *slots = count > most ? calloc(count, sizeof *slots) : NULL;
    if (slots) {
        for (size_t i = 0; i < count; i++)
            slots[i] = (struct slot){result->names[i], born(client, folder, result->names[i])};
        qsort(slots, count, sizeof *slots, by_age);
        for (size_t i = 0; i < count - (size_t)keep; i++)
            if (slots[i].czxid && strcmp(slots[i].name, slot) != 0)
                forget(client, folder, slots[i].name);
    }
    free(slots);
    cv_result_free(result);
}
