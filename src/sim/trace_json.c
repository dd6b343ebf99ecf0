/* A trace for programs: one JSON object, written entry by entry. */
#include <jansson.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "sim/trace.h"

/* What an entry says beyond when, who and why. */
enum { HAS_PEER = 1, HAS_MESSAGE = 2, HAS_ARGUMENT = 4, HAS_NEWS = 8 /* an argument but 0 */ };

static const struct {
    const char *name;
    unsigned has;
} types[] = {
    [TR_NONE] = {"none", 0},
    [TR_START] = {"start", 0},
    [TR_ASK] = {"ask", 0},
    [TR_DONE] = {"done", 0},
    [TR_CAMPAIGN] = {"campaign", 0},
    [TR_ELECTED] = {"elected", HAS_NEWS},
    [TR_FOLLOWS] = {"follows", HAS_NEWS},
    [TR_LEADERLESS] = {"leaderless", 0},
    [TR_SEND] = {"send", HAS_PEER | HAS_MESSAGE},
    [TR_RECEIVE] = {"receive", HAS_PEER | HAS_MESSAGE},
    [TR_LOST] = {"lost", HAS_PEER | HAS_MESSAGE},
    [TR_TIMER] = {"timer", HAS_ARGUMENT},
    [TR_CHOICE] = {"choice", HAS_ARGUMENT},
    [TR_ENTER] = {"enter", HAS_NEWS},
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

/* jansson takes no text with broken letters, and people name things as they like. */
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

/* By hand: jansson's integers are signed, and what counts here is not. */
static void put_number(FILE *out, uint64_t number) {
    fprintf(out, "%llu", (unsigned long long)number);
}

static void put_value(FILE *out, const struct trace *trace, enum cv_type type, const void *at) {
    switch (type) {
    case CV_U8: put_number(out, *(const uint8_t *)at); break;
    case CV_U16: put_number(out, *(const uint16_t *)at); break;
    case CV_U32: put_number(out, *(const uint32_t *)at); break;
    case CV_U64: put_number(out, *(const uint64_t *)at); break;
    case CV_PID: put_name(out, trace, *(const cv_pid *)at); break;
    case CV_QUEUE:
    case CV_LINK: fputs("null", out); break; /* they mean nothing outside a state */
    }
}

static void put_message(FILE *out, const struct trace *trace, const struct trace_entry *entry) {
    const struct cv_record *record = &trace->algorithm->messages[entry->kind];
    fputs(",\"message\":", out);
    put_string(out, record->name);
    fputs(",\"fields\":{", out);
    for (unsigned i = 0, shown = 0; i < record->field_count; i++) {
        const struct cv_field *field = &record->fields[i];
        if (field->audience < CV_SHOWN) continue;
        if (shown++) fputc(',', out);
        put_string(out, field->name);
        fputc(':', out);
        put_value(out, trace, field->type, trace->bytes + entry->body + field->offset);
    }
    fputc('}', out);
}

static void put_entry(FILE *out, const struct trace *trace, size_t index) {
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
    if (has & HAS_ARGUMENT || (has & HAS_NEWS && entry->arg))
        fprintf(out, ",\"arg\":%llu", (unsigned long long)entry->arg);
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
        put_entry(out, trace, i);
        before = ",\n";
    }
    fputs("\n]}\n", out);
}
