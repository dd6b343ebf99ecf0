/* Recording what happens, and cutting out what led to a violation. */
#include "sim/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void trace_open(struct trace *trace, const struct sim_config *config) {
    *trace = (struct trace){.algorithm = config->algorithm,
                            .roster = config_roster(config),
                            .count = 1,
                            .text_used = 1,
                            .recording = true};
}

void trace_close(struct trace *trace) {
    free(trace->entry);
    free(trace->bytes);
    free(trace->text);
    *trace = (struct trace){0};
}

uint32_t trace_add(struct trace *trace, struct trace_entry entry) {
    if (!trace->recording) return 0;
    if (trace->count > TRACE_ENTRIES_MAX || trace->text_used > TRACE_BYTES_MAX ||
        trace->bytes_used > TRACE_BYTES_MAX)
        return trace->full = true, 0;
    trace->entry = grown(trace->entry, &trace->room, trace->count + 1, sizeof entry);
    uint32_t index = (uint32_t)trace->count++;
    trace->entry[index] = entry;
    if (entry.match && (entry.type == TR_RECEIVE || entry.type == TR_LOST) &&
        !trace->entry[entry.match].match)
        trace->entry[entry.match].match = index;
    return index;
}

void trace_body(struct trace *trace, uint32_t entry, const void *body, uint32_t size) {
    if (!entry) return;
    size_t at = trace->bytes_used, needed = at + ((size + 7) & ~7u);
    trace->bytes = grown(trace->bytes, &trace->bytes_room, needed, 1);
    memcpy(trace->bytes + at, body, size);
    trace->bytes_used = needed;
    trace->entry[entry].body = (uint32_t)at;
    trace->entry[entry].size = size;
}

void trace_state(struct trace *trace, uint32_t entry, const void *state, uint32_t rows,
                 cv_pid first) {
    const struct cv_record *record = trace->algorithm->state;
    int length = record_print(NULL, 0, record, state, rows, first, CV_SHOWN, &trace->roster);
    if (length <= 0) return;
    size_t at = trace->text_used, size = (size_t)length + 1;
    trace->text = grown(trace->text, &trace->text_room, at + size, 1);
    record_print(trace->text + at, size, record, state, rows, first, CV_SHOWN, &trace->roster);
    trace->text_used = at + size;
    trace->entry[entry].note = (uint32_t)at;
}

const char *number_word(uint32_t number, char buffer[NUMBER_WORD_MAX]) {
    static const char *const words[] = {"none", "one", "two", "three", "four", "five"};
    if (number < sizeof words / sizeof words[0]) return words[number];
    snprintf(buffer, NUMBER_WORD_MAX, "%u", number);
    return buffer;
}

char *trace_message(const struct trace *trace, const struct trace_entry *entry, char *buffer,
                    size_t size) {
    const struct cv_record *record = &trace->algorithm->messages[entry->kind];
    uint32_t rows = record->row_size ? (entry->size - record->size) / record->row_size : 0;
    int used = snprintf(buffer, size, "%s ", record->name);
    if (record_print(buffer + used, size - (size_t)used, record, trace->bytes + entry->body, rows,
                     1, CV_SHOWN, &trace->roster) == 0)
        buffer[used - 1] = 0;
    return buffer;
}

/* ---- The cut ---- */

static bool is_fault(enum trace_type type) { return type >= TR_CRASH; }

/* The entry and everything that it came from. */
static void keep_causes(struct trace *trace, uint32_t index) {
    for (; index && !trace->entry[index].kept; index = trace->entry[index].cause)
        trace->entry[index].kept = true;
}

/* All that a process did and saw from its last request before `end` up to `end`. */
static void keep_attempt(struct trace *trace, cv_pid p, size_t end) {
    for (size_t i = end; i > 0; i--) {
        const struct trace_entry *entry = &trace->entry[i];
        if (entry->process != p) continue;
        keep_causes(trace, (uint32_t)i);
        if (entry->type == TR_ASK) break;
    }
}

/* Closes the cut: the arrival of what was sent and the faults of those who take part. */
static void keep_context(struct trace *trace, size_t end) {
    bool *involved = calloc(trace->roster.processes + 1, 1);
    size_t begin = 0;
    cv_assert(involved);
    for (size_t i = 1; i <= end; i++) {
        if (!trace->entry[i].kept) continue;
        if (!begin) begin = i;
        involved[trace->entry[i].process] = true;
        if (trace->entry[i].type == TR_SEND && trace->entry[i].match <= end)
            trace->entry[trace->entry[i].match].kept = true;
    }
    for (size_t i = begin ? begin : 1; i <= end; i++) {
        struct trace_entry *entry = &trace->entry[i];
        if (is_fault(entry->type) && (!entry->process || involved[entry->process]))
            entry->kept = true;
        if (entry->type == TR_REFUSED && involved[entry->process]) entry->kept = true;
    }
    trace->entry[0].kept = false;
    free(involved);
}

/* With fencing the story ends where the resource refuses; returns that end. */
static size_t keep_refusal(struct trace *trace, cv_pid p, size_t overlap) {
    for (size_t i = overlap; i < trace->count; i++)
        if (trace->entry[i].type == TR_REFUSED && trace->entry[i].process == p)
            return trace->entry[i].kept = true, i;
    return overlap;
}

/* The longest wait of a process, counted in entries of others, and those entries. */
static void keep_wait(struct trace *trace, cv_pid p) {
    size_t asked = 0, entered = 0, most = 0, from = 0, to = 0;
    for (size_t i = 1; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        if (entry->type == TR_ASK && entry->process == p) asked = i, entered = 0;
        if (entry->type != TR_ENTER || !asked) continue;
        if (++entered > most) most = entered, from = asked, to = i;
        if (entry->process == p) asked = 0;
    }
    for (size_t i = from; i <= to; i++) {
        struct trace_entry *entry = &trace->entry[i];
        if (entry->process == p || entry->type == TR_ENTER || entry->type == TR_LEAVE)
            entry->kept = true;
    }
}

static size_t overlap_at(const struct trace *trace, const struct mutex_judge *judge) {
    for (size_t i = 1; i < trace->count; i++)
        if (trace->entry[i].type == TR_ENTER && trace->entry[i].process == judge->culprit[1] &&
            trace->entry[i].time_us == judge->belief.at_us)
            return i;
    return trace->count - 1;
}

/* Nobody gets in: what died or got lost after the last entry, and what the dead last did. */
static void keep_losses(struct trace *trace) {
    size_t last_entry = trace->count - 1;
    while (last_entry > 1 && trace->entry[last_entry].type != TR_ENTER) last_entry--;
    for (size_t i = 1; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        if (entry->type == TR_LOST && i > last_entry) keep_causes(trace, (uint32_t)i);
        if (entry->type != TR_CRASH) continue;
        size_t before = i - 1;
        while (before > 0 && trace->entry[before].process != entry->process) before--;
        keep_causes(trace, (uint32_t)before);
        keep_causes(trace, (uint32_t)i);
    }
}

/* What a process did and saw since it last had a leader, or was asked or moved to look for one. */
static void keep_candidacy(struct trace *trace, cv_pid p, size_t end) {
    for (size_t i = end; i > 0; i--) {
        const struct trace_entry *entry = &trace->entry[i];
        if (entry->process != p) continue;
        bool begins = entry->type == TR_CAMPAIGN || entry->type == TR_RECOVER ||
                      entry->type == TR_FOLLOWS || entry->type == TR_SUSPECT ||
                      (entry->type == TR_ELECTED && i != end);
        trace->entry[i].kept = true;
        if (entry->type == TR_RECEIVE) keep_causes(trace, entry->match);
        if (begins) break;
    }
}

/* How both leaders came to lead; when there were never two, everything led there. */
void trace_cut_election(struct trace *trace, const struct election_judge *judge) {
    size_t leads[2] = {0, 0};
    if (trace->count < 2 || !judge->culprit[0]) return;
    for (size_t i = 1; i < trace->count; i++)
        for (int k = 0; k < 2; k++)
            if (trace->entry[i].type == TR_ELECTED &&
                trace->entry[i].process == judge->culprit[k] &&
                trace->entry[i].time_us <= judge->verdict[UNIQUENESS].at_us)
                leads[k] = i;
    if (!leads[0] || !leads[1]) return;
    trace->cut = true;
    for (int k = 0; k < 2; k++) keep_candidacy(trace, judge->culprit[k], leads[k]);
    size_t first = leads[0] < leads[1] ? leads[0] : leads[1], last = leads[0] + leads[1] - first;
    for (size_t i = first; i <= last; i++) /* what came between them */
        if (is_fault(trace->entry[i].type) || trace->entry[i].type == TR_FOLLOWS)
            trace->entry[i].kept = true;
}

void trace_cut_lock(struct trace *trace, const struct mutex_judge *judge) {
    if (trace->count < 2) return;
    size_t end = trace->count - 1;
    trace->cut = true;
    if (judge->belief.value == VIOLATED) {
        size_t overlap = overlap_at(trace, judge);
        keep_attempt(trace, judge->culprit[0], overlap);
        keep_attempt(trace, judge->culprit[1], overlap);
        end = judge->rules.fencing ? keep_refusal(trace, judge->culprit[0], overlap) : overlap;
    } else if (judge->overtaken) {
        keep_wait(trace, judge->overtaken);
    } else {
        for (cv_pid p = 1; p <= trace->roster.processes; p++)
            if (judge->of[p].waiting) keep_attempt(trace, p, end);
        keep_losses(trace);
    }
    keep_context(trace, end);
}

void trace_write(const struct trace *trace, enum trace_format format, const char *title,
                 FILE *out) {
    switch (format) {
    case TRACE_TEXT: trace_write_text(trace, out); break;
    case TRACE_MERMAID: trace_write_mermaid(trace, title, out); break;
    case TRACE_JSON: trace_write_json(trace, title, out); break;
    case TRACE_SVG: trace_write_svg(trace, title, out); break;
    }
}
