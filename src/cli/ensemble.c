#include "cli/ensemble.h"

#include <stdio.h>
#include <string.h>

static uint64_t number(const json_t *object, const char *key) {
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

static int small(const json_t *object, const char *key) {
    uint64_t value = number(object, key);
    return value < 1 << 20 ? (int)value : 0;
}

static void text(const json_t *object, const char *key, char *to, size_t size) {
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(to, size, "%s", value ? value : "");
}

static void read_member(const json_t *object, struct ensemble_member *m) {
    *m = (struct ensemble_member){.id = small(object, "id"),
                                  .weight = small(object, "weight"),
                                  .port = small(object, "port"),
                                  .linked = json_is_true(json_object_get(object, "linked")),
                                  .learns = json_is_true(json_object_get(object, "learning")),
                                  .has_log = json_object_get(object, "match") != NULL,
                                  .log = number(object, "match")};
    text(object, "host", m->host, sizeof m->host);
    text(object, "sending", m->sending, sizeof m->sending);
}

bool ensemble_read(const json_t *json, struct ensemble *e) {
    const json_t *members = json_object_get(json, "members");
    *e = (struct ensemble){.server = small(json, "server"),
                           .leader = small(json, "leader"),
                           .heir = small(json, "handing_over_to"),
                           .term = number(json, "term"),
                           .last = number(json, "last"),
                           .committed = number(json, "committed"),
                           .applied = number(json, "applied"),
                           .clients = number(json, "clients"),
                           .sessions = number(json, "sessions"),
                           .requests = number(json, "requests"),
                           .changing = json_is_true(json_object_get(json, "changing")),
                           .dismissed = json_is_true(json_object_get(json, "dismissed"))};
    text(json, "mode", e->mode, sizeof e->mode);
    text(json, "role", e->role, sizeof e->role);
    for (size_t i = 0; i < json_array_size(members) && i < ENSEMBLE_MEMBERS_MAX; i++)
        read_member(json_array_get(members, i), &e->member[e->count++]);
    return json_is_array(members) && e->server && *e->mode;
}

bool ensemble_parse(const char *at, struct ensemble *e) {
    json_t *json = json_loads(at, 0, NULL);
    bool good = ensemble_read(json, e);
    json_decref(json);
    return good;
}

const struct ensemble_member *ensemble_member(const struct ensemble *e, int id) {
    for (int i = 0; i < e->count; i++)
        if (e->member[i].id == id) return &e->member[i];
    return NULL;
}
