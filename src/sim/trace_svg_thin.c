/* Pictures that would be too wide: of messages that are sent over and over and change nothing, such
 * as heartbeats, only the first and the last are drawn as arrows, and time does not stretch for the
 * others. */
#include <stdlib.h>
#include <string.h>

#include "sim/trace_svg.h"

static const struct trace_entry *entry_at(const struct layout *layout, size_t place) {
    return &layout->trace->entry[layout->drawn[place]];
}

/* Whether the entry belongs to the step that its cause began. */
static bool is_told(enum trace_type type) {
    return (type >= TR_ELECTED && type <= TR_LEADERLESS) ||
           (type >= TR_CHOICE && type <= TR_REFUSED);
}

/* Whether the step of entry i left a state behind that looks unlike the one before it.  `known`
 * holds what each process's state looked like, a place in trace.text. */
static bool changes_state(const struct layout *layout, size_t i, uint32_t *known) {
    const struct trace_entry *entry = entry_at(layout, i);
    uint32_t before = known[entry->process];
    if (!entry->note) return false;
    known[entry->process] = entry->note;
    return !before || strcmp(layout->trace->text + before, layout->trace->text + entry->note) != 0;
}

/* Finds the entries that matter, and with each the message or the timeout that led to it. */
static void find_news(const struct layout *layout, bool *news) {
    uint32_t *known = layout_array(layout->trace->roster.processes, sizeof *known);
    for (size_t i = 0; i < layout->drawn_count; i++) {
        enum trace_type type = entry_at(layout, i)->type;
        bool changes = changes_state(layout, i, known);
        news[i] =
            type == TR_RECEIVE || type == TR_TIMER ? changes : type != TR_SEND && type != TR_LOST;
    }
    for (size_t i = layout->drawn_count; i-- > 0;) {
        const struct trace_entry *entry = entry_at(layout, i);
        if (!news[i]) continue;
        if (entry->type == TR_RECEIVE) news[layout_find(layout, entry->match)] = true;
        if (is_told(entry->type)) news[layout_find(layout, entry->cause)] = true;
    }
    free(known);
}

static bool is_alike(const struct trace_entry *a, const struct trace_entry *b) {
    return a->type == b->type && a->kind == b->kind && a->process == b->process &&
           a->peer == b->peer;
}

/* Whether a sending is one of more than `many`, and neither among the first `few` nor the last. */
static bool is_repeated(const struct layout *layout, size_t place, size_t many, size_t few) {
    size_t before = 0, behind = 0;
    for (size_t i = 0; i < layout->drawn_count; i++) {
        if (!is_alike(entry_at(layout, i), entry_at(layout, place))) continue;
        before += i < place;
        behind += i > place;
    }
    return before + behind >= many && before >= few && behind > 0;
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

/* A timeout is thinned that led to nothing but thinned messages. */
static void thin_timers(struct layout *layout, const bool *news) {
    for (size_t i = 0; i < layout->drawn_count; i++)
        if (entry_at(layout, i)->type == TR_TIMER) layout->thin[i] = !news[i];
    for (size_t i = 0; i < layout->drawn_count; i++) {
        size_t cause = layout_find(layout, entry_at(layout, i)->cause);
        if (!layout->thin[i] && entry_at(layout, i)->type == TR_SEND) layout->thin[cause] = false;
    }
}

bool layout_thin(struct layout *layout, size_t many, size_t few) {
    bool *news = layout_array(layout->drawn_count, sizeof *news), thinned = false;
    find_news(layout, news);
    for (size_t i = 0; i < layout->drawn_count; i++) {
        enum trace_type type = entry_at(layout, i)->type;
        size_t sending = layout_find(layout, entry_at(layout, i)->match);
        if (news[i]) continue;
        if (type == TR_SEND) layout->thin[i] = is_repeated(layout, i, many, few);
        if (type == TR_RECEIVE || type == TR_LOST) layout->thin[i] = layout->thin[sending];
        thinned = thinned || layout->thin[i];
    }
    if (thinned) {
        keep_questions(layout);
        thin_timers(layout, news);
    }
    free(news);
    return thinned;
}
