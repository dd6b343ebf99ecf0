/* Recording what happens. */
#include "lab/sim/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "language/language.h"

void trace_open(struct trace *trace, const struct sim_config *config) {
    *trace = (struct trace){.algorithm = config->algorithm,
                            .roster = config_roster(config),
                            .count = 1,
                            .text_used = 1,
                            .bytes_used = 8, /* offset 0 stands for nothing */
                            .network.complete = true,
                            .recording = true};
    trace->entry = grown(NULL, &trace->room, 1, sizeof *trace->entry);
    trace->entry[0] = (struct trace_entry){0}; /* what stands for no entry has nothing to show */
}

void trace_close(struct trace *trace) {
    free(trace->entry);
    free(trace->bytes);
    free(trace->text);
    free(trace->network.offset);
    free(trace->network.neighbour);
    free(trace->network.ids);
    free(trace->network.toward);
    free(trace->wait);
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
    trace->entry[index].event = trace->event;
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

void trace_network(struct trace *trace, const struct topology *topology) {
    struct trace_network *network = &trace->network;
    uint32_t n = topology->processes;
    struct cv_env env = {0};
    network->complete = topology->complete;
    network->ring =
        trace->algorithm->topology == CV_RING || trace->algorithm->topology == CV_TWO_WAY_RING;
    network->ids = calloc(n + 1, sizeof *network->ids);
    cv_assert(network->ids);
    memcpy(network->ids, topology->ids, (n + 1) * sizeof *network->ids);
    if (network->complete) return;
    network->offset = calloc(n + 2, sizeof *network->offset);
    cv_assert(network->offset);
    size_t room = 0;
    for (cv_pid p = 1; p <= n; p++) {
        topology_env(topology, p, &env);
        uint32_t at = network->offset[p];
        network->offset[p + 1] = at + env.degree;
        network->neighbour =
            grown(network->neighbour, &room, at + env.degree + 1, sizeof *network->neighbour);
        if (env.degree)
            memcpy(network->neighbour + at, env.neighbours, env.degree * sizeof(cv_pid));
    }
}

/* What part the process takes: the first field of its state that has named values. */
static uint8_t standing(const struct cv_record *record, const unsigned char *state) {
    for (unsigned i = 0; i < record->field_count; i++)
        if (record->fields[i].values)
            return (uint8_t)(1 + record_number(&record->fields[i], state));
    return 0;
}

/* The same for a process that only has edges: 1 + cut off, source, between, sink; 0 until the ways
 * of all are known. */
static uint8_t standing_by_edges(const unsigned char *way, uint32_t edges) {
    enum { UNKNOWN_WAY, IN, OUT, WAYS = 4 };
    uint32_t count[WAYS] = {0};
    for (uint32_t i = 0; i < edges; i++) count[way[i] % WAYS]++;
    if (count[UNKNOWN_WAY]) return 0;
    if (count[IN]) return count[OUT] ? 3 : 4;
    return count[OUT] ? 2 : 1;
}

/* The ways of its edges, when its rows, one for each neighbour, have them. */
static void keep_ways(struct trace *trace, uint32_t entry, const unsigned char *state,
                      uint32_t rows) {
    const struct cv_record *record = trace->algorithm->state;
    const struct cv_field *way = record_way(record);
    const uint32_t *edges = trace->network.offset;
    cv_pid p = trace->entry[entry].process;
    if (!way || trace->network.complete || !rows || rows != edges[p + 1] - edges[p]) return;
    size_t at = trace->bytes_used, needed = at + ((rows + 7) & ~7u);
    trace->bytes = grown(trace->bytes, &trace->bytes_room, needed, 1);
    for (uint32_t i = 0; i < rows; i++)
        trace->bytes[at + i] =
            (unsigned char)record_number(way, state + record->size + (size_t)i * record->row_size);
    trace->bytes_used = needed;
    trace->entry[entry].ways = (uint32_t)at;
    if (!trace->entry[entry].standing)
        trace->entry[entry].standing = standing_by_edges(trace->bytes + at, rows);
}

void trace_state(struct trace *trace, uint32_t entry, const void *state, uint32_t rows,
                 cv_pid first) {
    const struct cv_record *record = trace->algorithm->state;
    trace->entry[entry].standing = standing(record, state);
    keep_ways(trace, entry, state, rows);
    size_t at = trace->text_used, size = 0, length = 200; /* which few are longer than */
    do {
        size = length + 1;
        trace->text = grown(trace->text, &trace->text_room, at + size, 1);
        length = (size_t)record_print(trace->text + at, size, record, state, rows, first, CV_SHOWN,
                                      &trace->roster);
    } while (length >= size);
    if (!length) return;
    trace->text_used = at + length + 1;
    trace->entry[entry].note = (uint32_t)at;
}

const char *number_word(uint32_t number, char buffer[NUMBER_WORD_MAX]) {
    static const char *const words[] = {N_("none"),  N_("one"),  N_("two"),
                                        N_("three"), N_("four"), N_("five")};
    if (number < sizeof words / sizeof words[0]) return _(words[number]);
    snprintf(buffer, NUMBER_WORD_MAX, "%u", number);
    return buffer;
}

char *trace_sides(const struct trace *trace, const struct trace_entry *entry, char *buffer,
                  size_t size) {
    const unsigned char *side = trace->bytes + entry->body;
    unsigned last = 0;
    size_t used = 0;
    buffer[0] = 0;
    for (cv_pid p = 1; p < entry->size; p++) last = side[p] > last ? side[p] : last;
    for (unsigned s = 0; s <= last; s++)
        for (cv_pid p = 1, first = 1; p < entry->size && used < size; p++) {
            char name[ROSTER_NAME_MAX];
            if (side[p] != s) continue;
            used += (size_t)snprintf(buffer + used, size - used, "%s%s",
                                     !first ? " "
                                     : used ? " | "
                                            : "",
                                     roster_name(&trace->roster, p, name));
            first = 0;
        }
    utf8_mend(buffer, size);
    return buffer;
}

char *trace_message(const struct trace *trace, const struct trace_entry *entry, char *buffer,
                    size_t size) {
    const struct cv_record *record = &trace->algorithm->messages[entry->kind];
    uint32_t rows = record->row_size ? (entry->size - record->size) / record->row_size : 0;
    size_t used = (size_t)snprintf(buffer, size, "%s ", language_name(record->name));
    cv_assert(used < size); /* names are short */
    if (record_print(buffer + used, size - used, record, trace->bytes + entry->body, rows, 1,
                     CV_SHOWN, &trace->roster) == 0)
        buffer[used - 1] = 0;
    return buffer;
}

void trace_write(const struct trace *trace, enum trace_format format, const char *title,
                 uint64_t page, FILE *out) {
    switch (format) {
    case TRACE_TEXT: trace_write_text(trace, out); break;
    case TRACE_MERMAID: trace_write_mermaid(trace, title, out); break;
    case TRACE_JSON: trace_write_json(trace, title, out); break;
    case TRACE_SVG: trace_write_svg(trace, title, page, out); break;
    case TRACE_GRAPH: trace_write_graph(trace, title, page, out); break;
    case TRACE_FORMATS: break;
    }
}
