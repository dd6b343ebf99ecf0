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

/* A value under its name, or under the one that servers before protocol 3 have. */
static const json_t *either(const json_t *object, const char *key, const char *older) {
    const json_t *value = json_object_get(object, key);
    return value ? value : json_object_get(object, older);
}

/* The id of the member with that number; null: nobody. */
static int id_of(const json_t *number) {
    json_int_t value = json_is_integer(number) ? json_integer_value(number) : -1;
    return value < 0 || value > MEMBER_NUMBER_MAX ? 0 : member_id((int32_t)value);
}

static void text(const json_t *object, const char *key, char *to, size_t size) {
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(to, size, "%s", value ? value : "");
}

static void read_member(const json_t *object, struct ensemble_view_member *m) {
    *m = (struct ensemble_view_member){.id = id_of(json_object_get(object, "id")),
                                       .weight = small(object, "weight"),
                                       .port = small(object, "port"),
                                       .linked = json_is_true(json_object_get(object, "linked")),
                                       .is_learner =
                                           json_is_true(json_object_get(object, "learning")),
                                       .has_match_index = json_object_get(object, "match") != NULL,
                                       .match_index = number(object, "match")};
    text(object, "host", m->host, sizeof m->host);
    text(object, "link_problem", m->link_problem, sizeof m->link_problem);
    text(object, "sending", m->sending, sizeof m->sending);
    m->vote_withheld = json_is_true(json_object_get(object, "vote_withheld"));
}

static void read_waiting(const json_t *json, struct ensemble_view *e) {
    const json_t *mending = json_object_get(json, "mending");
    const json_t *awaited = json_object_get(json, "founding_waits_for");
    e->vote_withheld = json_is_true(json_object_get(json, "vote_withheld"));
    for (size_t i = 0, used = 0; i < json_array_size(awaited) && used < sizeof e->awaited - 16; i++)
        used += (size_t)snprintf(e->awaited + used, sizeof e->awaited - used, "%s%d", i ? ", " : "",
                                 (int)json_integer_value(json_array_get(awaited, i)));
    e->founded_by = id_of(json_object_get(json, "founded_by"));
    e->mending = json_is_object(mending);
    if (!e->mending) return;
    e->entries_lost = number(mending, "entries_lost");
    e->first_lost = number(mending, "first_lost");
    e->last_lost = number(mending, "last_lost");
    e->entries_mended = number(mending, "entries_mended");
    e->mended_by = id_of(json_object_get(mending, "mended_by"));
    e->snapshot = number(mending, "snapshot");
    text(mending, "damage", e->damage, sizeof e->damage);
}

bool ensemble_view_read(const json_t *json, struct ensemble_view *e) {
    const json_t *members = json_object_get(json, "members");
    *e = (struct ensemble_view){.server = id_of(json_object_get(json, "server")),
                                .leader = id_of(json_object_get(json, "leader")),
                                .transferee = id_of(either(json, "transferee", "handing_over_to")),
                                .term = number(json, "term"),
                                .last = number(json, "last"),
                                .committed = number(json, "committed"),
                                .applied = number(json, "applied"),
                                .clients = number(json, "clients"),
                                .sessions = number(json, "sessions"),
                                .requests = number(json, "requests"),
                                .changing = json_is_true(json_object_get(json, "changing")),
                                .changes_refused = number(json, "changes_refused"),
                                .removed = json_is_true(either(json, "removed", "dismissed"))};
    text(json, "mode", e->mode, sizeof e->mode);
    text(json, "role", e->role, sizeof e->role);
    text(json, "refusal", e->refusal, sizeof e->refusal);
    read_waiting(json, e);
    for (size_t i = 0; i < json_array_size(members) && i < ENSEMBLE_MEMBERS_MAX; i++)
        read_member(json_array_get(members, i), &e->member[e->count++]);
    /* Servers that know no member 0 say 0 for nobody. */
    if (!ensemble_view_member(e, MEMBER_ID_MAX) && e->leader == MEMBER_ID_MAX) e->leader = 0;
    if (!ensemble_view_member(e, MEMBER_ID_MAX) && e->transferee == MEMBER_ID_MAX)
        e->transferee = 0;
    return json_is_array(members) && e->server && *e->mode;
}

bool ensemble_view_parse(const char *at, struct ensemble_view *e) {
    json_t *json = json_loads(at, 0, NULL);
    bool good = ensemble_view_read(json, e);
    json_decref(json);
    return good;
}

const struct ensemble_view_member *ensemble_view_member(const struct ensemble_view *e, int id) {
    for (int i = 0; i < e->count; i++)
        if (e->member[i].id == id) return &e->member[i];
    return NULL;
}
