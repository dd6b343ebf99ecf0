/* Thinning of pictures that would be too wide: of messages that are repeated and change nothing,
 * such as heartbeats, only the first and the last are drawn as arrows, and the others get no room
 * of their own on the time axis. */
#include <stdlib.h>
#include <string.h>

#include "lab/sim/trace_svg.h"

static const struct trace_entry *entry_at(const struct layout *layout, size_t index) {
    return &layout->trace->entry[layout->drawn[index]];
}

/* Whether the entry belongs to the step that its cause began. */
static bool is_told(enum trace_type type) {
    return (type >= TR_ELECTED && type <= TR_LEADERLESS) ||
           (type >= TR_CHOICE && type <= TR_REFUSED);
}

/* Whether the step of entry i changed the visible state.  `known` holds the last visible state of
 * each process, an offset into trace.text. */
static bool changes_state(const struct layout *layout, size_t i, uint32_t *known) {
    const struct trace_entry *entry = entry_at(layout, i);
    uint32_t before = known[entry->process];
    if (!entry->note) return false;
    known[entry->process] = entry->note;
    return !before || strcmp(layout->trace->text + before, layout->trace->text + entry->note) != 0;
}

/* Finds the significant entries, and for each the message or the timeout that led to it. */
static void find_significant(const struct layout *layout, bool *significant) {
    uint32_t *known = layout_array(layout->trace->roster.processes, sizeof *known);
    for (size_t i = 0; i < layout->drawn_count; i++) {
        enum trace_type type = entry_at(layout, i)->type;
        bool changes = changes_state(layout, i, known);
        significant[i] =
            type == TR_RECEIVE || type == TR_TIMER ? changes : type != TR_SEND && type != TR_LOST;
    }
    for (size_t i = layout->drawn_count; i-- > 0;) {
        const struct trace_entry *entry = entry_at(layout, i);
        if (!significant[i]) continue;
        if (entry->type == TR_RECEIVE) significant[layout_find(layout, entry->match)] = true;
        if (is_told(entry->type)) significant[layout_find(layout, entry->cause)] = true;
    }
    free(known);
}

static bool is_alike(const struct trace_entry *a, const struct trace_entry *b) {
    return a->type == b->type && a->kind == b->kind && a->process == b->process &&
           a->peer == b->peer;
}

/* Whether a send is one of more than `many`, and neither among the first `few` nor the last. */
static bool is_repeated(const struct layout *layout, size_t index, size_t many, size_t few) {
    size_t before = 0, after = 0;
    for (size_t i = 0; i < layout->drawn_count; i++) {
        if (!is_alike(entry_at(layout, i), entry_at(layout, index))) continue;
        before += i < index;
        after += i > index;
    }
    return before + after >= many && before >= few && after > 0;
}

/* A message that is answered by one that is drawn is drawn too. */
static void keep_questions(struct layout *layout) {
    for (size_t i = 0; i < layout->drawn_count; i++) {
        size_t cause = layout_find(layout, entry_at(layout, i)->cause);
        if (entry_at(layout, i)->type != TR_SEND || layout->thin[i] || !layout->thin[cause])
            continue;
        layout->thin[cause] = false;
        layout->thin[layout_find(layout, entry_at(layout, cause)->match)] = false;
    }
}

/* A timeout that led to thinned messages alone is thinned. */
static void thin_timers(struct layout *layout, const bool *significant) {
    for (size_t i = 0; i < layout->drawn_count; i++)
        if (entry_at(layout, i)->type == TR_TIMER) layout->thin[i] = !significant[i];
    for (size_t i = 0; i < layout->drawn_count; i++) {
        size_t cause = layout_find(layout, entry_at(layout, i)->cause);
        if (!layout->thin[i] && entry_at(layout, i)->type == TR_SEND) layout->thin[cause] = false;
    }
}

bool layout_thin(struct layout *layout, size_t many, size_t few) {
    bool *significant = layout_array(layout->drawn_count, sizeof *significant), thinned = false;
    find_significant(layout, significant);
    for (size_t i = 0; i < layout->drawn_count; i++) {
        enum trace_type type = entry_at(layout, i)->type;
        size_t sending = layout_find(layout, entry_at(layout, i)->match);
        if (significant[i]) continue;
        if (type == TR_SEND) layout->thin[i] = is_repeated(layout, i, many, few);
        if (type == TR_RECEIVE || type == TR_LOST) layout->thin[i] = layout->thin[sending];
        thinned = thinned || layout->thin[i];
    }
    if (thinned) {
        keep_questions(layout);
        thin_timers(layout, significant);
    }
    free(significant);
    return thinned;
}

/* ---- Folding ---- */

enum { FOLD_PROCESSES_MAX = 200, FOLD_AFTER = 2 };

/* Finds what changes a state that is seen, and what led there: all but heartbeats and their like.
 */
static void find_matters(const struct trace *trace, bool *matters) {
    uint32_t *known = layout_array(trace->roster.processes, sizeof *known);
    for (size_t i = 1; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        uint32_t before = known[entry->process];
        bool step = entry->type == TR_RECEIVE || entry->type == TR_TIMER;
        bool passes = step || entry->type == TR_SEND;
        if (entry->note) known[entry->process] = entry->note;
        matters[i] =
            !passes || (step && entry->note &&
                        (!before || strcmp(trace->text + before, trace->text + entry->note) != 0));
    }
    for (size_t i = trace->count; i-- > 1;) {
        const struct trace_entry *entry = &trace->entry[i];
        if (!matters[i]) continue;
        if (entry->type == TR_RECEIVE || entry->type == TR_LOST) matters[entry->match] = true;
        if (is_told(entry->type) || entry->type == TR_SEND) matters[entry->cause] = true;
    }
    free(known);
}

void layout_fold(struct layout *layout) {
    const struct trace *trace = layout->trace;
    size_t n = trace->roster.processes + 1;
    if (!(trace->algorithm->traits & CV_NEVER_QUIESCENT) || n > FOLD_PROCESSES_MAX) return;
    bool *matters = layout_array(trace->count, sizeof *matters);
    uint8_t *sent = layout_array(CV_KINDS_MAX * n * n, sizeof *sent);
    layout->folded = layout_array(trace->count, sizeof *layout->folded);
    find_matters(trace, matters);
    for (size_t i = 1; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        uint8_t *before = &sent[(entry->kind * n + entry->process) * n + entry->peer];
        if (matters[i]) continue;
        if (entry->type == TR_SEND) {
            layout->folded[i] = *before >= FOLD_AFTER;
            *before += *before < FOLD_AFTER;
            layout->folded_count += layout->folded[i];
        } else if (entry->type == TR_RECEIVE) {
            layout->folded[i] = layout->folded[entry->match];
        } else {
            layout->folded[i] = true; /* a timeout */
        }
    }
    free(matters);
    free(sent);
}
