/* A trace as one JSON object, written entry by entry. */
#include <jansson.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "lab/sim/trace.h"

/* What an entry has besides time, process and cause. */
enum {
    HAS_PEER = 1,
    HAS_MESSAGE = 2,
    HAS_ARGUMENT = 4,
    HAS_NONZERO = 8 /* an argument unless it is 0 */
};

static const struct {
    const char *name;
    unsigned has;
} types[] = {
    [TR_NONE] = {"none", 0},
    [TR_START] = {"start", 0},
    [TR_ASK] = {"ask", 0},
    [TR_DONE] = {"done", 0},
    [TR_CAMPAIGN] = {"campaign", 0},
    [TR_ELECTED] = {"elected", HAS_NONZERO},
    [TR_FOLLOWS] = {"follows", HAS_NONZERO},
    [TR_LEADERLESS] = {"leaderless", 0},
    [TR_SEND] = {"send", HAS_PEER | HAS_MESSAGE},
    [TR_RECEIVE] = {"receive", HAS_PEER | HAS_MESSAGE},
    [TR_LOST] = {"lost", HAS_PEER | HAS_MESSAGE},
    [TR_TIMER] = {"timer", HAS_ARGUMENT},
    [TR_CHOICE] = {"choice", HAS_ARGUMENT},
    [TR_ENTER] = {"enter", HAS_NONZERO},
    [TR_LEAVE] = {"leave", 0},
    [TR_WRITE] = {"write", HAS_ARGUMENT},
    [TR_REFUSED] = {"refused", HAS_ARGUMENT},
    [TR_CRASH] = {"crash", 0},
    [TR_RECOVER] = {"recover", HAS_ARGUMENT},
    [TR_PAUSE] = {"pause", 0},
    [TR_RESUME] = {"resume", 0},
    [TR_SUSPECT] = {"suspect", HAS_PEER},
    [TR_TRUST] = {"trust", HAS_PEER},
    [TR_PARTITION] = {"partition", 0},
    [TR_HEAL] = {"heal", 0},
};

/* jansson refuses text that is not UTF-8, but names may be any bytes. */
static json_t *mended(const char *text) {
    char *copy = strdup(text);
    cv_assert(copy);
    for (const char *at = copy, *next = copy; *at; at = next)
        if (utf8_next(&next) == UTF8_BROKEN) memset(copy + (at - copy), '?', (size_t)(next - at));
    json_t *string = json_string(copy);
    free(copy);
    return string;
}

static void put_string(FILE *out, const char *text) {
    json_t *string = json_string(text);
    if (!string) string = mended(text);
    cv_assert(string && json_dumpf(string, out, JSON_ENCODE_ANY) == 0);
    json_decref(string);
}

static void put_name(FILE *out, const struct trace *trace, cv_pid p) {
    char name[ROSTER_NAME_MAX];
    put_string(out, roster_name(&trace->roster, p, name));
}

/* By hand, because jansson's integers are signed. */
static void put_number(FILE *out, uint64_t number) {
    fprintf(out, "%llu", (unsigned long long)number);
}

static void put_id(FILE *out, const struct trace *trace, uint64_t id) {
    if (id)
        put_number(out, roster_id(&trace->roster, id));
    else
        fputs("null", out);
}

static void put_value(FILE *out, const struct trace *trace, enum cv_type type, const void *at) {
    switch (type) {
    case CV_U8: put_number(out, *(const uint8_t *)at); break;
    case CV_U16: put_number(out, *(const uint16_t *)at); break;
    case CV_U32: put_number(out, *(const uint32_t *)at); break;
    case CV_U64: put_number(out, *(const uint64_t *)at); break;
    case CV_ID: put_id(out, trace, *(const uint64_t *)at); break;
    case CV_PID: put_name(out, trace, *(const cv_pid *)at); break;
    case CV_QUEUE:
    case CV_LINK: fputs("null", out); break; /* a link means nothing outside its state */
    }
}

/* A column of the rows, after the field of the head with which it begins, if there is one. */
static void put_list(FILE *out, const struct trace *trace, const struct trace_entry *entry,
                     const struct cv_record *record, const struct cv_field *column) {
    const unsigned char *body = trace->bytes + entry->body;
    const struct cv_field *head = record_begins_list(record, column);
    uint32_t rows = (entry->size - record->size) / record->row_size;
    fputc('[', out);
    if (head) put_value(out, trace, head->type, body + head->offset);
    for (uint32_t i = 0; i < rows; i++) {
        if (i || head) fputc(',', out);
        put_value(out, trace, column->type,
                  body + record->size + (size_t)i * record->row_size + column->offset);
    }
    fputc(']', out);
}

static void put_message(FILE *out, const struct trace *trace, const struct trace_entry *entry) {
    const struct cv_record *record = &trace->algorithm->messages[entry->kind];
    fputs(",\"message\":", out);
    put_string(out, record->name);
    fputs(",\"fields\":{", out);
    const char *before = "";
    for (unsigned i = 0; i < record->field_count + record->row_field_count; i++) {
        bool list = i >= record->field_count;
        const struct cv_field *field =
            list ? &record->row_fields[i - record->field_count] : &record->fields[i];
        bool begins = false;
        for (unsigned k = 0; !list && k < record->row_field_count; k++)
            begins |= record_begins_list(record, &record->row_fields[k]) == field;
        if (field->audience < CV_SHOWN || begins) continue;
        fputs(before, out);
        before = ",";
        put_string(out, field->name);
        fputc(':', out);
        if (list)
            put_list(out, trace, entry, record, field);
        else
            put_value(out, trace, field->type, trace->bytes + entry->body + field->offset);
    }
    fputc('}', out);
}

static uint64_t argument(const struct trace *trace, const struct trace_entry *entry) {
    bool id = entry->type == TR_ELECTED || entry->type == TR_FOLLOWS;
    return id ? roster_id(&trace->roster, entry->arg) : entry->arg;
}

void trace_write_entry_json(const struct trace *trace, size_t index, FILE *out) {
    const struct trace_entry *entry = &trace->entry[index];
    unsigned has = types[entry->type].has;
    fprintf(out, "{\"index\":%zu,\"time_ms\":%llu.%03llu,\"type\":\"%s\"", index,
            (unsigned long long)entry->time_us / 1000, (unsigned long long)entry->time_us % 1000,
            types[entry->type].name);
    if (entry->process) {
        fputs(",\"process\":", out);
        put_name(out, trace, entry->process);
    }
    if (has & HAS_PEER) {
        fputs(",\"peer\":", out);
        put_name(out, trace, entry->peer);
    }
    if (has & HAS_MESSAGE) put_message(out, trace, entry);
    if (has & HAS_ARGUMENT || (has & HAS_NONZERO && entry->arg))
        fprintf(out, ",\"arg\":%llu", (unsigned long long)argument(trace, entry));
    if (entry->term) fprintf(out, ",\"term\":%u", entry->term);
    if (entry->note) {
        fputs(",\"state\":", out);
        put_string(out, trace->text + entry->note);
    }
    if (entry->cause) fprintf(out, ",\"cause\":%u", entry->cause);
    if (entry->match) fprintf(out, ",\"match\":%u", entry->match);
    fputc('}', out);
}

void trace_write_json(const struct trace *trace, const char *title, FILE *out) {
    fputs("{\"algorithm\":", out);
    put_string(out, trace->algorithm->name);
    fputs(",\n\"title\":", out);
    put_string(out, title ? title : "");
    fputs(",\n\"processes\":[", out);
    for (cv_pid p = 1; p <= trace->roster.processes; p++) {
        if (p > 1) fputc(',', out);
        put_name(out, trace, p);
    }
    fprintf(out, "],\n\"servers\":%u,\n\"truncated\":%s,\n\"entries\":[", trace->roster.servers,
            trace->full ? "true" : "false");
    const char *before = "\n";
    for (size_t i = 1; i < trace->count; i++) {
        if (!trace_shows(trace, i)) continue;
        fputs(before, out);
        trace_write_entry_json(trace, i, out);
        before = ",\n";
    }
    fputs("\n]}\n", out);
}
