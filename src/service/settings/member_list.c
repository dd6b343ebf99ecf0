#include "service/settings/member_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/settings/internal.h"

/* ---- Members ---- */

/* Of the first member whose id is not lower. */
static unsigned index_of(const struct member_list *list, int32_t id) {
    unsigned index = 0;
    while (index < list->count && list->at[index].id < id) index++;
    return index;
}

static struct member *find(struct member_list *list, int32_t id) {
    unsigned index = index_of(list, id);
    return index < list->count && list->at[index].id == id ? &list->at[index] : NULL;
}

const struct member *member_list_find(const struct member_list *list, int32_t id) {
    return find((struct member_list *)list, id);
}

bool member_list_put(struct member_list *list, const struct member *member) {
    unsigned index = index_of(list, member->id);
    bool replaces = index < list->count && list->at[index].id == member->id;
    if (!replaces && list->count == MEMBER_LIST_MAX) return false;
    if (!replaces)
        memmove(&list->at[index + 1], &list->at[index],
                (list->count++ - index) * sizeof list->at[0]);
    list->at[index] = *member;
    memset(&list->unnamed[member->id], 0, sizeof list->unnamed[0]);
    return true;
}

bool member_list_remove(struct member_list *list, int32_t id) {
    struct member *member = find(list, id);
    if (!member) return false;
    memmove(member, member + 1, (size_t)(&list->at[--list->count] - member) * sizeof *member);
    return true;
}

void member_list_take_ids(struct member_list *list, const struct member_list *from) {
    if (!list->ensemble) list->ensemble = from->ensemble;
    for (unsigned i = 0; i < list->count; i++) {
        const struct member *known = member_list_find(from, list->at[i].id);
        if (known && !list->at[i].directory) list->at[i].directory = known->directory;
    }
}

bool member_list_same_ids(const struct member_list *list, const struct member_list *as) {
    if (list->ensemble != as->ensemble) return false;
    for (unsigned i = 0; i < list->count; i++) {
        const struct member *known = member_list_find(as, list->at[i].id);
        if (list->at[i].directory != (known ? known->directory : 0)) return false;
    }
    return true;
}

/* ---- Lines ---- */

static bool read_id(const char *text, int32_t *id, struct settings_error *error) {
    int32_t number = 0;
    bool good = settings_number(text, 0, MEMBER_NUMBER_MAX, &number);
    if (!good)
        settings_refuse(error, "a server's id is a whole number from 0 to %d", MEMBER_NUMBER_MAX);
    *id = member_id(number);
    return good;
}

static bool scan_id(const char **at, int32_t *id) {
    int32_t number;
    if (!scan_number(at, 0, &number) || number > MEMBER_NUMBER_MAX) return false;
    *id = member_id(number);
    return true;
}

/* A server.N line says nothing of the group, the weight and the directory, which other lines may
 * have set. */
static int put_server(struct member_list *list, struct member *member,
                      struct settings_error *error) {
    const struct member *before = member_list_find(list, member->id);
    if (before) {
        member->group = before->group;
        member->weight = before->weight;
        member->directory = before->directory;
    } else {
        member->group = list->unnamed[member->id].group;
        member->weight =
            list->unnamed[member->id].has_weight ? list->unnamed[member->id].weight : 1;
    }
    if (member_list_put(list, member)) return SETTINGS_SET;
    return settings_refuse(error, "more than %d servers", MEMBER_LIST_MAX);
}

static bool scan_server(const char *at, struct member *member) {
    if (!scan_host(&at, member->host) || !scan_word(&at, ":") ||
        !scan_number(&at, 1, &member->peer_port) || !scan_word(&at, ":") ||
        !scan_number(&at, 1, &member->election_port))
        return false;
    if (scan_word(&at, ":")) {
        member->observer = scan_word(&at, "observer");
        if (!member->observer && !scan_word(&at, "participant")) return false;
    }
    if (!scan_word(&at, ";")) return *at == 0;
    strcpy(member->client.host, "*");
    bool has_host = at[strspn(at, "0123456789")] != 0;
    return (has_host ? scan_address(&at, 1, &member->client)
                     : scan_number(&at, 1, &member->client.port)) &&
           *at == 0;
}

int member_list_set_server(struct member_list *list, const char *id, const char *value,
                           struct settings_error *error) {
    struct member member = {0};
    if (!read_id(id, &member.id, error)) return SETTINGS_BAD;
    if (!scan_server(value, &member))
        return settings_refuse(error,
                               "'%.60s' is not host:port:port[:participant or :observer]"
                               "[;[host:]client port], with one host",
                               value);
    return put_server(list, &member, error);
}

int member_list_set_short(struct member_list *list, const char *value,
                          struct settings_error *error) {
    struct member_list result = *list;
    bool named[MEMBER_ID_MAX + 1] = {false};
    const char *at = value;
    do {
        struct member member = {0};
        at += strspn(at, " ");
        if (!scan_id(&at, &member.id) || !scan_word(&at, "=") || !scan_host(&at, member.host) ||
            !scan_word(&at, ":") || !scan_number(&at, 1, &member.peer_port))
            return settings_refuse(
                error,
                "'%.60s' is not 1=host:port,2=host:port,... with the servers' ids from 0 to %d",
                value, MEMBER_NUMBER_MAX);
        if (named[member.id])
            return settings_refuse(error, "'%.60s' has server %d twice", value,
                                   member_number(member.id));
        named[member.id] = true;
        member.election_port = member.peer_port;
        member.observer = scan_word(&at, ":observer");
        if (put_server(&result, &member, error) != SETTINGS_SET) return SETTINGS_BAD;
        at += strspn(at, " ");
    } while (scan_word(&at, ","));
    if (*at)
        return settings_refuse(
            error, "'%.60s' has something other than :observer or a comma after a port", value);
    *list = result;
    return SETTINGS_SET;
}

static uint8_t *group_of(struct member_list *list, int32_t id) {
    struct member *member = find(list, id);
    return member ? &member->group : &list->unnamed[id].group;
}

int member_list_set_group(struct member_list *list, const char *number, const char *value,
                          struct settings_error *error) {
    bool named[MEMBER_ID_MAX + 1] = {false}, valid;
    int32_t group, id;
    const char *at = value;
    if (!settings_number(number, 1, UINT8_MAX, &group))
        return settings_refuse(error, "a group's number is a whole number from 1 to %d", UINT8_MAX);
    do {
        valid = scan_id(&at, &id);
        if (!valid) break;
        uint8_t other = *group_of(list, id);
        if (named[id] || (other && other != group))
            return settings_refuse(error, "server %d is in a group already", member_number(id));
        named[id] = true;
    } while (scan_word(&at, ":"));
    if (!valid || *at)
        return settings_refuse(error,
                               "'%.60s' is not servers' ids from 0 to %d with colons between them",
                               value, MEMBER_NUMBER_MAX);
    for (id = 1; id <= MEMBER_ID_MAX; id++) {
        uint8_t *of = group_of(list, id);
        if (named[id] || *of == group) *of = named[id] ? (uint8_t)group : 0;
    }
    return SETTINGS_SET;
}

int member_list_set_weight(struct member_list *list, const char *number, const char *value,
                           struct settings_error *error) {
    enum { WEIGHT_MAX = 1000000 };
    int32_t id, weight;
    if (!read_id(number, &id, error)) return SETTINGS_BAD;
    if (!settings_number(value, 0, WEIGHT_MAX, &weight))
        return settings_refuse(error, "'%.60s' is not a whole number from 0 to %d", value,
                               WEIGHT_MAX);
    struct member *member = find(list, id);
    if (member) {
        member->weight = weight;
    } else {
        list->unnamed[id].has_weight = true;
        list->unnamed[id].weight = weight;
    }
    return SETTINGS_SET;
}

/* Of exactly so many hexadecimal digits; 0: it is not. */
static uint64_t read_hex(const char *value, size_t digits) {
    if (strspn(value, "0123456789abcdef") != digits || value[digits]) return 0;
    return strtoull(value, NULL, 16);
}

static int set_directory(struct member_list *list, const char *number, const char *value,
                         struct settings_error *error) {
    int32_t id;
    if (!read_id(number, &id, error)) return SETTINGS_BAD;
    struct member *member = find(list, id);
    uint64_t directory = read_hex(value, 8);
    if (!member || !directory)
        return settings_refuse(error, "directory.%s is not the id of a server's data directory",
                               number);
    member->directory = (uint32_t)directory;
    return SETTINGS_SET;
}

static int set_ensemble(struct member_list *list, const char *value, struct settings_error *error) {
    uint64_t id = read_hex(value, 16);
    if (!id) return settings_refuse(error, "'%.60s' is not the id of an ensemble", value);
    list->ensemble = id;
    return SETTINGS_SET;
}

int member_list_check_groups(const struct member_list *list, struct settings_error *error) {
    bool groups = false;
    for (int32_t id = 1; id <= MEMBER_ID_MAX; id++) {
        int32_t number = member_number(id);
        if (list->unnamed[id].group)
            return settings_refuse(error, "group.%d has server %d, but there is no server.%d",
                                   list->unnamed[id].group, number, number);
        if (list->unnamed[id].has_weight)
            return settings_refuse(error, "weight.%d: there is no server.%d", number, number);
    }
    for (unsigned i = 0; i < list->count; i++) groups |= list->at[i].group != 0;
    for (unsigned i = 0; i < list->count; i++)
        if (groups && !list->at[i].observer && !list->at[i].group)
            return settings_refuse(
                error, "server.%d is in no group; where there are groups, every voter is in one",
                member_number(list->at[i].id));
    return SETTINGS_SET;
}

/* ---- Parsing ---- */

static bool has_prefix(const char **key, const char *prefix) {
    bool has = strncmp(*key, prefix, strlen(prefix)) == 0;
    if (has) *key += strlen(prefix);
    return has;
}

static int set(struct member_list *list, const char *key, const char *value,
               struct settings_error *error) {
    if (settings_has_control(key) || settings_has_control(value))
        return settings_refuse(error, "control characters are not allowed");
    if (has_prefix(&key, "server.")) return member_list_set_server(list, key, value, error);
    if (has_prefix(&key, "group.")) return member_list_set_group(list, key, value, error);
    if (has_prefix(&key, "weight.")) return member_list_set_weight(list, key, value, error);
    if (has_prefix(&key, "directory.")) return set_directory(list, key, value, error);
    if (strcmp(key, "ensemble") == 0) return set_ensemble(list, value, error);
    if (strcmp(key, "version") == 0) return SETTINGS_SET;
    return settings_refuse(error, "'%.60s' is not server.N, group.N or weight.N", key);
}

bool member_list_set(struct member_list *list, const char *key, const char *value, char *error,
                     size_t size) {
    struct settings_error message = {error, size};
    return set(list, key, value, &message) == SETTINGS_SET;
}

bool member_list_parse(struct member_list *list, const char *text, size_t size, char *error,
                       size_t error_size) {
    struct settings_error message = {error, error_size};
    const char *end = size ? text + size : text; /* an empty text may be NULL */
    char line[2 * SETTINGS_HOST_MAX + 64];
    for (const char *at = text; at < end;) {
        size_t length = 0;
        while (at + length < end && at[length] != ',' && at[length] != '\n') length++;
        char *equals = memchr(at, '=', length);
        if (length >= sizeof line || memchr(at, 0, length) || (length && !equals)) {
            settings_refuse(&message, "a line of members is not KEY=VALUE of at most %zu bytes",
                            sizeof line - 1);
            return false;
        }
        if (length) {
            memcpy(line, at, length);
            line[length] = line[equals - at] = 0;
            if (set(list, line, line + (equals - at) + 1, &message) != SETTINGS_SET) return false;
        }
        at += length + 1;
    }
    return true;
}

bool member_list_parse_short(struct member_list *list, const char *text, char *error, size_t size) {
    struct settings_error message = {error, size};
    return member_list_set_short(list, text, &message) == SETTINGS_SET;
}

/* ---- Writing ---- */

__attribute__((format(printf, 2, 3))) static void add(struct bytes *text, const char *format, ...) {
    char room[2 * SETTINGS_HOST_MAX + 64];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(room, sizeof room, format, arguments);
    va_end(arguments);
    bytes_add(text, room, (size_t)size);
}

static const char *separator(const struct bytes *text) { return text->used ? "\n" : ""; }

static void write_server(const struct member *m, struct bytes *text) {
    const char *client = strcmp(m->client.host, "*") == 0 ? "0.0.0.0" : m->client.host;
    add(text, strchr(m->host, ':') ? "%sserver.%d=[%s]:%d:%d:%s" : "%sserver.%d=%s:%d:%d:%s",
        separator(text), member_number(m->id), m->host, m->peer_port, m->election_port,
        m->observer ? "observer" : "participant");
    if (m->client.port)
        add(text, strchr(client, ':') ? ";[%s]:%d" : ";%s:%d", client, m->client.port);
}

static void write_group(const struct member_list *list, int group, struct bytes *text) {
    bool begun = false;
    for (unsigned i = 0; i < list->count; i++) {
        if (list->at[i].group != group) continue;
        if (!begun) add(text, "%sgroup.%d=", separator(text), group);
        add(text, begun ? ":%d" : "%d", member_number(list->at[i].id));
        begun = true;
    }
}

void member_list_write(const struct member_list *list, struct bytes *text) {
    text->used = 0;
    for (unsigned i = 0; i < list->count; i++) write_server(&list->at[i], text);
    for (int group = 1; group <= UINT8_MAX; group++) write_group(list, group, text);
    for (unsigned i = 0; i < list->count; i++)
        if (list->at[i].weight != 1)
            add(text, "%sweight.%d=%d", separator(text), member_number(list->at[i].id),
                list->at[i].weight);
    for (unsigned i = 0; i < list->count; i++)
        if (list->at[i].directory)
            add(text, "%sdirectory.%d=%08x", separator(text), member_number(list->at[i].id),
                list->at[i].directory);
    if (list->count && list->ensemble)
        add(text, "%sensemble=%016llx", separator(text), (unsigned long long)list->ensemble);
}

bool member_list_is_ensemble(const struct member_list *list, char *why, size_t size) {
    enum { WEIGHT_MAX = 255 };
    if (list->count > MEMBERS_MAX) {
        snprintf(why, size, "there are %u members, and an ensemble has at most %d", list->count,
                 MEMBERS_MAX);
        return false;
    }
    for (unsigned i = 0; i < list->count; i++) {
        if (list->at[i].weight <= WEIGHT_MAX) continue;
        snprintf(why, size, "weight.%d: a weight is at most %d", member_number(list->at[i].id),
                 WEIGHT_MAX);
        return false;
    }
    return true;
}
