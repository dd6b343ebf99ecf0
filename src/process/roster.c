#include "process/roster.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "language/language.h"

char *roster_name(const struct roster *roster, cv_pid p, char buffer[ROSTER_NAME_MAX]) {
    if (p == CV_NOBODY || p > roster->processes)
        snprintf(buffer, ROSTER_NAME_MAX, "%s", p == CV_NOBODY ? "nobody" : "stranger");
    else if (roster->names)
        snprintf(buffer, ROSTER_NAME_MAX, "%s", roster->names[p]);
    else if (p > roster->servers)
        snprintf(buffer, ROSTER_NAME_MAX, "p%u", p - roster->servers - roster->names_from_zero);
    else if (roster->servers == 1)
        snprintf(buffer, ROSTER_NAME_MAX, "%s", roster->server_name);
    else
        snprintf(buffer, ROSTER_NAME_MAX, "%s%u", roster->server_name, p);
    return buffer;
}

/* Default names are parsed; given names are searched. */
cv_pid roster_find(const struct roster *roster, const char *name) {
    char buffer[ROSTER_NAME_MAX];
    uint64_t number;
    if (roster->names) {
        for (cv_pid p = 1; p <= roster->processes; p++)
            if (strcmp(roster->names[p], name) == 0) return p;
        return CV_NOBODY;
    }
    size_t letters = strcspn(name, "0123456789");
    if (parse_u64(name + letters, &number) != 0) number = 1;
    cv_pid candidates[] = {(cv_pid)number,
                           (cv_pid)(number + roster->servers + roster->names_from_zero)};
    for (int i = 0; number <= roster->processes && i < 2; i++)
        if (candidates[i] && candidates[i] <= roster->processes &&
            strcmp(roster_name(roster, candidates[i], buffer), name) == 0)
            return candidates[i];
    return CV_NOBODY;
}

struct printer {
    char *buffer;
    size_t size, length;
    const struct roster *roster;
};

static void put(struct printer *out, const char *text) {
    if (out->length < out->size) {
        size_t kept = utf8_fit(text, out->size - 1 - out->length);
        memcpy(out->buffer + out->length, text, kept);
        out->buffer[out->length + kept] = 0;
    }
    out->length += strlen(text);
}

static void put_queue(struct printer *out, const struct cv_queue *queue, struct cv_links links) {
    char name[ROSTER_NAME_MAX];
    put(out, "[");
    for (cv_pid p = queue->first; p; p = cv_link(links, p)->next) {
        if (p != queue->first) put(out, ", ");
        put(out, roster_name(out->roster, p, name));
    }
    put(out, "]");
}

/* The k-th of the names between bars, or the number itself when there is no k-th name. */
static void put_named(struct printer *out, const char *values, uint64_t k) {
    char text[ROSTER_NAME_MAX];
    uint64_t left = k;
    for (; left && *values; left--) {
        values += strcspn(values, "|");
        values += *values == '|';
    }
    if (*values)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(values, "|"), values);
    else
        snprintf(text, sizeof text, "%llu", (unsigned long long)k);
    put(out, *values ? language_name(text) : text);
}

static void put_id(struct printer *out, uint64_t id) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)roster_id(out->roster, id));
    put(out, id ? text : _("none"));
}

static uint64_t number_at(const struct cv_field *field, const void *at) {
    switch (field->type) {
    case CV_U8: return *(const uint8_t *)at;
    case CV_U16: return *(const uint16_t *)at;
    case CV_U32: return *(const uint32_t *)at;
    default: return *(const uint64_t *)at;
    }
}

static bool is_set(const struct cv_field *field, const void *at) {
    if (field->type == CV_QUEUE) return ((const struct cv_queue *)at)->first;
    return field->type == CV_PID ? *(const cv_pid *)at : number_at(field, at);
}

/* A process keeps the name by which scenarios know it. */
static void put_pid(struct printer *out, cv_pid p) {
    char name[ROSTER_NAME_MAX];
    roster_name(out->roster, p, name);
    put(out, p == CV_NOBODY ? _("nobody") : name);
}

static void put_value(struct printer *out, const struct cv_field *field, const unsigned char *at,
                      struct cv_links links) {
    switch ((enum cv_type)field->type) {
    case CV_PID: put_pid(out, *(const cv_pid *)(const void *)at); break;
    case CV_ID: put_id(out, number_at(field, at)); break;
    case CV_QUEUE: put_queue(out, (const void *)at, links); break;
    case CV_LINK: break;
    default: put_named(out, field->values ? field->values : "", number_at(field, at)); break;
    }
}

/* Where the rows keep their links, so that queues can be followed. */
static struct cv_links links_of(const struct cv_record *record, const void *bytes, cv_pid first) {
    struct cv_links links = {(unsigned char *)bytes + record->size, record->row_size, first};
    for (unsigned i = 0; i < record->row_field_count; i++)
        if (record->row_fields[i].type == CV_LINK) links.base += record->row_fields[i].offset;
    return links;
}

const struct cv_field *record_begins_list(const struct cv_record *record,
                                          const struct cv_field *column) {
    for (unsigned i = 0; i < record->field_count; i++)
        if (strcmp(record->fields[i].name, column->name) == 0 &&
            record->fields[i].audience == column->audience)
            return &record->fields[i];
    return NULL;
}

uint64_t record_number(const struct cv_field *field, const void *bytes) {
    const unsigned char *at = (const unsigned char *)bytes + field->offset;
    return field->type == CV_PID ? *(const cv_pid *)(const void *)at : number_at(field, at);
}

const struct cv_field *record_way(const struct cv_record *record) {
    for (unsigned i = 0; i < record->row_field_count; i++)
        if (record->row_fields[i].values) return &record->row_fields[i];
    return NULL;
}

bool record_queues(const struct cv_record *record, const void *bytes, cv_pid first, cv_pid p) {
    struct cv_links links = links_of(record, bytes, first);
    for (unsigned i = 0; i < record->field_count; i++) {
        const struct cv_queue *queue =
            (const void *)((const unsigned char *)bytes + record->fields[i].offset);
        if (record->fields[i].type != CV_QUEUE) continue;
        for (cv_pid q = queue->first; q; q = cv_link(links, q)->next)
            if (q == p) return true;
    }
    return false;
}

cv_pid record_shown_pid(const struct cv_record *record, const void *bytes) {
    for (unsigned i = 0; i < record->field_count; i++) {
        const struct cv_field *field = &record->fields[i];
        if (field->type != CV_PID || field->audience < CV_SHOWN) continue;
        cv_pid p = (cv_pid)record_number(field, bytes);
        if (p) return p;
    }
    return CV_NOBODY;
}

static bool begins_a_list(const struct cv_record *record, const struct cv_field *field) {
    for (unsigned i = 0; i < record->row_field_count; i++)
        if (record_begins_list(record, &record->row_fields[i]) == field) return true;
    return false;
}

/* A column of the rows, where it is set: "asked=[p2:1, p3:4]". */
static void put_set(struct printer *out, const struct cv_record *record,
                    const struct cv_field *field, const unsigned char *rows, uint32_t count,
                    cv_pid first) {
    char name[ROSTER_NAME_MAX];
    const char *before = "=[";
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *at = rows + (size_t)i * record->row_size + field->offset;
        if (!is_set(field, at)) continue;
        if (*before == '=') put(out, out->length ? " " : ""), put(out, language_name(field->name));
        put(out, before);
        before = ", ";
        put(out, roster_name(out->roster, first + i, name));
        put(out, ":");
        put_value(out, field, at, (struct cv_links){0});
    }
    if (*before == ',') put(out, "]");
}

/* A column of the rows, as a list. */
static void put_column(struct printer *out, const struct cv_record *record,
                       const struct cv_field *field, const unsigned char *bytes, uint32_t count) {
    const struct cv_field *head = record_begins_list(record, field);
    const unsigned char *rows = bytes + record->size;
    put(out, out->length ? " " : "");
    put(out, language_name(field->name));
    put(out, "=[");
    if (head) put_value(out, head, bytes + head->offset, (struct cv_links){0});
    for (uint32_t i = 0; i < count; i++) {
        if (i || head) put(out, ", ");
        put_value(out, field, rows + (size_t)i * record->row_size + field->offset,
                  (struct cv_links){0});
    }
    put(out, "]");
}

int record_print(char *buffer, size_t size, const struct cv_record *record, const void *bytes,
                 uint32_t rows, cv_pid first, enum cv_audience audience,
                 const struct roster *roster) {
    struct printer out = {.buffer = buffer, .size = size, .roster = roster};
    struct cv_links links = links_of(record, bytes, first);
    if (size) *buffer = 0;
    for (unsigned i = 0; i < record->field_count; i++) {
        const struct cv_field *field = &record->fields[i];
        const unsigned char *at = (const unsigned char *)bytes + field->offset;
        if (field->audience < audience || begins_a_list(record, field)) continue;
        if (field->audience == CV_IF_SET && !is_set(field, at)) continue;
        if (out.length) put(&out, " ");
        put(&out, language_name(field->name));
        put(&out, "=");
        put_value(&out, field, at, links);
    }
    for (unsigned i = 0; i < record->row_field_count; i++) {
        const struct cv_field *field = &record->row_fields[i];
        if (field->audience == CV_IF_SET)
            put_set(&out, record, field, (const unsigned char *)bytes + record->size, rows, first);
        else if (field->audience >= audience && field->type != CV_LINK)
            put_column(&out, record, field, bytes, rows);
    }
    return (int)out.length;
}
