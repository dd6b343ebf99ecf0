#include "process/roster.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "process/queue.h"

char *roster_name(const struct roster *roster, cv_pid p, char buffer[ROSTER_NAME_MAX]) {
    if (p == CV_NOBODY || p > roster->processes)
        snprintf(buffer, ROSTER_NAME_MAX, "%s", p == CV_NOBODY ? "nobody" : "stranger");
    else if (roster->names)
        snprintf(buffer, ROSTER_NAME_MAX, "%s", roster->names[p]);
    else if (p > roster->servers)
        snprintf(buffer, ROSTER_NAME_MAX, "p%u", p - roster->servers);
    else if (roster->servers == 1)
        snprintf(buffer, ROSTER_NAME_MAX, "%s", roster->server_name);
    else
        snprintf(buffer, ROSTER_NAME_MAX, "%s%u", roster->server_name, p);
    return buffer;
}

/* Names of the usual form are turned back into numbers; chosen ones are looked through. */
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
    cv_pid candidates[] = {(cv_pid)number, (cv_pid)(number + roster->servers)};
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
    size_t length = strlen(text), at = out->length < out->size ? out->length : out->size;
    if (out->size - at > 0) snprintf(out->buffer + at, out->size - at, "%s", text);
    out->length += length;
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

/* The k-th of the names between bars; the number itself when there are not so many. */
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
    put(out, text);
}

static uint64_t number_at(const struct cv_field *field, const void *at) {
    switch (field->type) {
    case CV_U8: return *(const uint8_t *)at;
    case CV_U16: return *(const uint16_t *)at;
    case CV_U32: return *(const uint32_t *)at;
    default: return *(const uint64_t *)at;
    }
}

static void put_value(struct printer *out, const struct cv_field *field, const unsigned char *at,
                      struct cv_links links) {
    char text[ROSTER_NAME_MAX];
    switch ((enum cv_type)field->type) {
    case CV_PID: put(out, roster_name(out->roster, *(const cv_pid *)(const void *)at, text)); break;
    case CV_QUEUE: put_queue(out, (const void *)at, links); break;
    case CV_LINK: break;
    default: put_named(out, field->values ? field->values : "", number_at(field, at)); break;
    }
}

/* Where the rows keep their links, for queues to be followed. */
static struct cv_links links_of(const struct cv_record *record, const void *bytes, cv_pid first) {
    struct cv_links links = {(unsigned char *)bytes + record->size, record->row_size, first};
    for (unsigned i = 0; i < record->row_field_count; i++)
        if (record->row_fields[i].type == CV_LINK) links.base += record->row_fields[i].offset;
    return links;
}

/* A column of the rows, as a list. */
static void put_column(struct printer *out, const struct cv_record *record,
                       const struct cv_field *field, const unsigned char *rows, uint32_t count) {
    put(out, out->length ? " " : "");
    put(out, field->name);
    put(out, "=[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) put(out, ", ");
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
        if (field->audience < audience) continue;
        if (out.length) put(&out, " ");
        put(&out, field->name);
        put(&out, "=");
        put_value(&out, field, (const unsigned char *)bytes + field->offset, links);
    }
    for (unsigned i = 0; i < record->row_field_count; i++)
        if (record->row_fields[i].audience >= audience)
            put_column(&out, record, &record->row_fields[i],
                       (const unsigned char *)bytes + record->size, rows);
    return (int)out.length;
}
