/* The stages of a run, and which of them are drawn. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "lab/sim/trace_graph.h"
#include "lab/sim/trace_svg.h"

/* ---- Rounds and waves ---- */

struct finder {
    struct graph_picture *picture;
    uint32_t *round;   /* of a message, by entry */
    uint32_t *wave;    /* likewise */
    uint32_t *current; /* by pid: the round that it is in */
    uint32_t *depth;   /* by pid: the highest wave that has reached it */
    size_t room;
    uint32_t *changes; /* by entry: how often what is drawn of a process has changed before it */
};

static const struct cv_field *round_field(const struct cv_record *record) {
    for (unsigned i = 0; i < record->field_count; i++)
        if (strcmp(record->fields[i].name, "round") == 0) return &record->fields[i];
    return NULL;
}

/* A message that says its round is of that one, one that is passed on of that of the message that
 * came, and any other of the round of its sender. */
static uint32_t round_of(const struct finder *f, size_t index) {
    const struct trace *trace = f->picture->trace;
    const struct trace_entry *entry = &trace->entry[index], *cause = &trace->entry[entry->cause];
    const struct cv_field *field = round_field(&trace->algorithm->messages[entry->kind]);
    if (field) return (uint32_t)record_number(field, trace->bytes + entry->body);
    bool passes_on = cause->type == TR_RECEIVE && cause->kind == entry->kind && !cause->round;
    return passes_on ? f->round[cause->match] : f->current[entry->process];
}

static uint64_t arrival_of(const struct trace *trace, const struct trace_entry *entry) {
    return entry->match ? trace->entry[entry->match].time_us : entry->time_us;
}

static bool belongs(const struct finder *f, size_t index, const struct stage *stage) {
    const struct trace *trace = f->picture->trace;
    const struct trace_entry *entry = &trace->entry[index];
    if (stage->kind != entry->kind) return false;
    if (!trace->network.complete) return stage->round == f->round[index];
    return stage->wave == f->wave[index] && entry->time_us <= stage->to_us;
}

static void add_message(struct finder *f, size_t index) {
    enum { LOOK_BACK = 64 };
    struct graph_picture *picture = f->picture;
    const struct trace_entry *entry = &picture->trace->entry[index];
    size_t i = picture->stage_count, tried = 0;
    while (i > 0 && tried < LOOK_BACK && !belongs(f, index, &picture->stage[i - 1])) i--, tried++;
    if (i == 0 || tried == LOOK_BACK) {
        picture->stage =
            grown(picture->stage, &f->room, picture->stage_count + 1, sizeof *picture->stage);
        i = ++picture->stage_count;
        picture->stage[i - 1] = (struct stage){.kind = entry->kind,
                                               .round = f->round[index],
                                               .wave = f->wave[index],
                                               .first = (uint32_t)index,
                                               .from_us = entry->time_us};
    }
    struct stage *stage = &picture->stage[i - 1];
    uint64_t arrives = arrival_of(picture->trace, entry);
    stage->messages++;
    if (arrives > stage->to_us) stage->to_us = arrives;
    picture->stage_of[index] = (uint32_t)i;
}

static void find_messages(struct finder *f) {
    const struct trace *trace = f->picture->trace;
    for (size_t i = 1; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        if (entry->round) f->current[entry->process] = entry->round;
        if (entry->type == TR_SEND) {
            f->round[i] = round_of(f, i);
            f->wave[i] = f->depth[entry->process] + 1;
            if (trace_shows(trace, i)) add_message(f, i);
        }
        if (entry->type == TR_RECEIVE && f->wave[entry->match] > f->depth[entry->process])
            f->depth[entry->process] = f->wave[entry->match];
    }
}

/* ---- What is drawn ---- */

static void count_changes(struct finder *f) {
    const struct trace *trace = f->picture->trace;
    struct standing *of = layout_array(trace->roster.processes, sizeof *of);
    uint32_t changes = 0;
    for (size_t i = 1; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        uint8_t before = of[entry->process].now;
        bool visible = entry->type == TR_ASK || entry->type == TR_ENTER ||
                       entry->type == TR_LEAVE || entry->type == TR_CRASH ||
                       entry->type == TR_RECOVER || entry->type == TR_PARTITION ||
                       entry->type == TR_HEAL;
        f->changes[i] = changes;
        standing_follow(trace, i, of);
        changes += visible || of[entry->process].now != before;
    }
    free(of);
}

static void add_frame(struct graph_picture *picture, size_t *room, struct frame frame) {
    picture->frame = grown(picture->frame, room, picture->frame_count + 1, sizeof *picture->frame);
    picture->frame[picture->frame_count++] = frame;
}

/* Whether edges have turned or been cut since the frame before. */
static bool edges_change(struct graph_picture *picture, const struct frame *frame,
                         unsigned char *drawn) {
    const struct trace_network *network = &picture->trace->network;
    bool change = false;
    graph_look(picture, frame);
    for (cv_pid p = 1; p <= picture->nodes; p++)
        for (uint32_t i = network->offset[p]; i < network->offset[p + 1]; i++) {
            if (network->neighbour[i] > picture->nodes) continue;
            unsigned char way = (unsigned char)graph_way(picture, p, network->neighbour[i]);
            change = change || way != drawn[i];
            drawn[i] = way;
        }
    return change;
}

/* Whether a stage that began with the same message was drawn since anything changed. */
static bool repeats(const struct finder *f, const struct stage *stage) {
    const struct graph_picture *picture = f->picture;
    const struct trace_entry *first = &picture->trace->entry[stage->first];
    for (size_t i = picture->frame_count; i > 0; i--) {
        const struct stage *drawn = &picture->stage[picture->frame[i - 1].stage - 1];
        const struct trace_entry *entry = &picture->trace->entry[drawn->first];
        if (f->changes[drawn->first] != f->changes[stage->first]) return false;
        if (entry->kind == first->kind && entry->process == first->process &&
            entry->peer == first->peer)
            return true;
    }
    return false;
}

/* How the network was split before an entry, that from `*at` on has not been looked at. */
static uint32_t split_before(const struct trace *trace, size_t entry, size_t *at, uint32_t split) {
    for (; *at < entry; (*at)++) {
        if (trace->entry[*at].type == TR_PARTITION) split = (uint32_t)*at;
        if (trace->entry[*at].type == TR_HEAL) split = 0;
    }
    return split;
}

static void choose_frames(struct finder *f) {
    struct graph_picture *picture = f->picture;
    const struct trace *trace = picture->trace;
    bool ways = !trace->network.complete && record_way(trace->algorithm->state);
    unsigned char *drawn =
        ways ? layout_array(trace->network.offset[trace->roster.processes + 1], 1) : NULL;
    uint32_t folded = 0, split = 0;
    size_t room = 0, at = 1;
    for (size_t i = 0; i < picture->stage_count; i++) {
        split = split_before(trace, picture->stage[i].first, &at, split);
        struct frame frame = {.stage = (uint32_t)i + 1, .folded = folded, .split = split};
        if (trace->network.complete && repeats(f, &picture->stage[i])) {
            folded++;
            continue;
        }
        folded = 0;
        if (ways && edges_change(picture, &frame, drawn))
            add_frame(picture, &room,
                      (struct frame){.stage = frame.stage, .still = true, .split = split});
        add_frame(picture, &room, frame);
    }
    add_frame(picture, &room,
              (struct frame){.still = true,
                             .folded = folded,
                             .split = split_before(trace, trace->count, &at, split)});
    free(drawn);
}

void stages_find(struct graph_picture *picture) {
    size_t entries = picture->trace->count, processes = picture->trace->roster.processes;
    struct finder f = {.picture = picture,
                       .round = layout_array(entries, sizeof *f.round),
                       .wave = layout_array(entries, sizeof *f.wave),
                       .current = layout_array(processes, sizeof *f.current),
                       .depth = layout_array(processes, sizeof *f.depth),
                       .changes = layout_array(entries, sizeof *f.changes)};
    picture->stage_of = layout_array(entries, sizeof *picture->stage_of);
    find_messages(&f);
    count_changes(&f);
    choose_frames(&f);
    free(f.round);
    free(f.wave);
    free(f.current);
    free(f.depth);
    free(f.changes);
}

/* ---- The state that a frame shows ---- */

/* Whoever takes part in the stage is shown as it was before, the others as they were when the stage
 * began. */
static void find_limits(struct graph_picture *picture, const struct frame *frame) {
    const struct trace *trace = picture->trace;
    size_t first = frame->stage ? picture->stage[frame->stage - 1].first : trace->count;
    bool *found = layout_array(trace->roster.processes, sizeof *found);
    for (cv_pid p = 1; p <= trace->roster.processes; p++) {
        picture->limit[p] = (uint32_t)first;
        picture->event[p] = UINT64_MAX;
    }
    for (size_t i = first; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        bool arrives = entry->type == TR_RECEIVE;
        size_t message = entry->type == TR_SEND ? i : arrives ? entry->match : 0;
        if (!message || picture->stage_of[message] != frame->stage || found[entry->process])
            continue;
        found[entry->process] = true;
        picture->limit[entry->process] = (uint32_t)i;
        if (!arrives) picture->event[entry->process] = entry->event;
    }
    free(found);
}

static void find_heard(struct graph_picture *picture, const struct frame *frame) {
    const struct trace_network *network = &picture->trace->network;
    size_t from = frame->stage ? picture->stage[frame->stage - 1].first : picture->trace->count;
    if (network->complete) return;
    memset(picture->heard, 0, network->offset[picture->trace->roster.processes + 1]);
    for (size_t i = from; i < picture->trace->count; i++) {
        const struct trace_entry *entry = &picture->trace->entry[i];
        if (picture->stage_of[i] != frame->stage) continue;
        for (uint32_t k = network->offset[entry->peer]; k < network->offset[entry->peer + 1]; k++)
            if (network->neighbour[k] == entry->process) picture->heard[k] = true;
    }
}

/* As the process itself sees it; `heard`: whether it hears from the other one in this stage. */
static enum way own_way(const struct graph_picture *picture, cv_pid p, cv_pid neighbour,
                        bool *heard) {
    const struct trace_network *network = &picture->trace->network;
    uint32_t ways = picture->look[p].ways;
    for (uint32_t i = network->offset[p]; i < network->offset[p + 1]; i++) {
        if (network->neighbour[i] != neighbour) continue;
        *heard = picture->heard[i];
        return ways ? picture->trace->bytes[ways + i - network->offset[p]] % WAYS : WAY_UNKNOWN;
    }
    return WAY_UNKNOWN;
}

/* Whoever answers may have turned the edge already; whoever hears the answer has not. */
enum way graph_way(const struct graph_picture *picture, cv_pid a, cv_pid b) {
    static const enum way turned[WAYS] = {WAY_UNKNOWN, WAY_OUT, WAY_IN, WAY_CUT};
    bool a_hears = false, b_hears = false;
    enum way of_a = own_way(picture, a, b, &a_hears), of_b = own_way(picture, b, a, &b_hears);
    bool from_b = of_a == WAY_UNKNOWN || (b_hears && !a_hears && of_b != WAY_UNKNOWN);
    return from_b ? turned[of_b] : of_a;
}

static void look_on(struct look *look, const struct trace_entry *entry) {
    if (entry->note) look->note = entry->note;
    if (entry->ways) look->ways = entry->ways;
    switch (entry->type) {
    case TR_ASK: look->waiting = true; break;
    case TR_ENTER: look->waiting = false, look->inside = true; break;
    case TR_LEAVE: look->inside = false; break;
    case TR_CRASH: *look = (struct look){.down = true}; break;
    case TR_RECOVER: look->down = false; break;
    case TR_PAUSE: look->paused = true; break;
    case TR_RESUME: look->paused = false; break;
    default: break;
    }
}

/* Whether a process tells its application of it. */
static bool is_told(enum trace_type type) {
    return type == TR_ENTER || type == TR_LEAVE || (type >= TR_ELECTED && type <= TR_LEADERLESS);
}

void graph_look(struct graph_picture *picture, const struct frame *frame) {
    const struct trace *trace = picture->trace;
    size_t processes = trace->roster.processes;
    find_limits(picture, frame);
    find_heard(picture, frame);
    memset(picture->look, 0, (processes + 1) * sizeof *picture->look);
    memset(picture->standing, 0, (processes + 1) * sizeof *picture->standing);
    for (size_t i = 1; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        bool told = entry->event == picture->event[entry->process] && is_told(entry->type);
        if (i >= picture->limit[entry->process] && !told) continue;
        look_on(&picture->look[entry->process], entry);
        standing_follow(trace, i, picture->standing);
    }
}
