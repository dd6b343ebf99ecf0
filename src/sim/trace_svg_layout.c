/* Which entries of a trace are drawn, on which lines, and where each time stands. */
#include "sim/trace_svg.h"

#include <stdlib.h>

#include "base/utf8.h"

enum {
    UNIT_PIXELS = 92,  /* of a typical message, while there are few at a time */
    STEP_PIXELS = 80,  /* between two steps at the same time */
    WIDTH_MAX = 30000, /* many programs draw no more than 32,767 pixels */
    WIDE = 6000,       /* from here on repeated messages are thinned */
    SILENCE = 5,       /* so many units without anything are drawn shorter */
    TOP = 96,          /* above the first line */
    TAIL = 70,         /* behind the last moment */
    NAME_SIZE = 14,
};

void *layout_array(size_t count, size_t item) {
    void *memory = calloc(count + 1, item);
    cv_assert(memory);
    return memory;
}

int text_width(const char *text, int size) {
    int letters = 0;
    while (utf8_next(&text)) letters++;
    return letters * size * 3 / 5;
}

/* ---- What is drawn, on which lines ---- */

static bool is_drawn(const struct trace *trace, size_t i) {
    enum trace_type type = trace->entry[i].type;
    return trace_shows(trace, i) && type != TR_NONE && type != TR_START && type != TR_DONE;
}

static void choose_entries(struct layout *layout) {
    const struct trace *trace = layout->trace;
    layout->drawn = layout_array(DRAWN_MAX, sizeof *layout->drawn);
    layout->x = layout_array(DRAWN_MAX, sizeof *layout->x);
    layout->thin = layout_array(DRAWN_MAX, sizeof *layout->thin);
    layout->moment = layout_array(DRAWN_MAX, sizeof *layout->moment);
    layout->y = layout_array(trace->roster.processes, sizeof *layout->y);
    for (size_t i = 1; i < trace->count; i++) {
        if (!is_drawn(trace, i)) continue;
        if (layout->drawn_count == DRAWN_MAX) {
            layout->left_out++;
            continue;
        }
        layout->drawn[layout->drawn_count++] = (uint32_t)i;
        layout->y[trace->entry[i].process] = layout->y[trace->entry[i].peer] = 1;
    }
    layout->y[CV_NOBODY] = 0;
}

static void place_lines(struct layout *layout) {
    char name[ROSTER_NAME_MAX];
    int widest = 0;
    for (cv_pid p = 1; p <= layout->trace->roster.processes; p++) layout->lines += layout->y[p] > 0;
    uint32_t n = layout->lines;
    layout->distance = n <= 3 ? 110 : n <= 6 ? 90 : n <= 12 ? 66 : n <= 100 ? 48 : 24;
    layout->top = layout->bottom = TOP;
    for (cv_pid p = 1, line = 0; p <= layout->trace->roster.processes; p++) {
        if (!layout->y[p]) continue;
        layout->y[p] = layout->bottom = TOP + (int)line++ * layout->distance;
        int width = text_width(roster_name(&layout->trace->roster, p, name), NAME_SIZE);
        if (width > widest) widest = width;
    }
    layout->left = 20 + widest + 12;
}

size_t layout_find(const struct layout *layout, uint32_t entry) {
    size_t low = 0, high = layout->drawn_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (layout->drawn[middle] < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return low < layout->drawn_count && layout->drawn[low] == entry ? low : layout->drawn_count;
}

/* ---- Moments ---- */

static const struct trace_entry *entry_at(const struct layout *layout, size_t place) {
    return &layout->trace->entry[layout->drawn[place]];
}

/* The step at which an entry happens among those of its time: a message that takes no time arrives
 * a step after it was sent.  `step` holds those of the entries before, `last` the place of each
 * process's entry before, from 1. */
static uint32_t step_of(const struct layout *layout, size_t place, const uint32_t *step,
                        const uint32_t *last) {
    const struct trace_entry *entry = entry_at(layout, place);
    uint32_t before = last[entry->process], result = 0;
    if (before && entry_at(layout, before - 1)->time_us == entry->time_us)
        result = step[before - 1];
    if (entry->type != TR_RECEIVE) return result;
    size_t sending = layout_find(layout, entry->match);
    if (sending == layout->drawn_count || entry_at(layout, sending)->time_us != entry->time_us)
        return result;
    return result > step[sending] ? result : step[sending] + 1;
}

/* Makes the moments and leaves in x the moment of each entry. */
static void make_moments(struct layout *layout) {
    uint32_t *step = layout_array(layout->drawn_count, sizeof *step);
    uint32_t *last = layout_array(layout->trace->roster.processes, sizeof *last);
    size_t first = 0; /* moment of the time under way */
    layout->moment_count = 0;
    for (size_t i = 0; i < layout->drawn_count; i++) {
        uint64_t now = entry_at(layout, i)->time_us;
        if (layout->thin[i]) continue;
        step[i] = step_of(layout, i, step, last);
        last[entry_at(layout, i)->process] = (uint32_t)i + 1;
        if (!layout->moment_count || now != layout->moment[layout->moment_count - 1].time_us)
            first = layout->moment_count;
        while (layout->moment_count <= first + step[i])
            layout->moment[layout->moment_count++] = (struct moment){.time_us = now};
        layout->x[i] = (int)(first + step[i]);
    }
    free(step);
    free(last);
}

/* ---- The scale ---- */

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t median(uint64_t *values, size_t count) {
    if (!count) return 0;
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

/* What a message usually takes, or, when that is next to nothing, what passes between two moments.
 */
static uint64_t typical_us(const struct layout *layout) {
    uint64_t *values = layout_array(layout->drawn_count, sizeof *values);
    size_t gaps = 0, flights = 0;
    for (size_t i = 1; i < layout->moment_count; i++) {
        uint64_t gap = layout->moment[i].time_us - layout->moment[i - 1].time_us;
        if (gap) values[gaps++] = gap;
    }
    uint64_t gap = median(values, gaps);
    for (size_t i = 0; i < layout->drawn_count; i++) {
        size_t sending = layout_find(layout, entry_at(layout, i)->match);
        if (entry_at(layout, i)->type != TR_RECEIVE || sending == layout->drawn_count) continue;
        uint64_t flight = entry_at(layout, i)->time_us - entry_at(layout, sending)->time_us;
        if (flight) values[flights++] = flight;
    }
    uint64_t flight = median(values, flights);
    free(values);
    if (gap > 8 * flight) return gap;
    return flight ? flight : 1;
}

/* A busy time needs more room, an overlong picture less. */
static double scale_of(const struct layout *layout, uint64_t typical) {
    double units = 1, steps = 0, entries = 0;
    for (size_t i = 0; i < layout->drawn_count; i++) entries += !layout->thin[i];
    for (size_t i = 1; i < layout->moment_count; i++) {
        const struct moment *moment = &layout->moment[i];
        uint64_t gap = moment->time_us - moment[-1].time_us;
        if (gap == 0) steps++;
        units += moment->after_silence ? 1 : (double)gap / (double)typical;
    }
    double crowd = entries / (units + steps) / 8;
    double scale = crowd < 1 ? 1 : crowd > 5 ? 5 : crowd;
    double fitting = (WIDTH_MAX - steps * STEP_PIXELS) / (units * UNIT_PIXELS);
    if (fitting >= scale) return scale;
    /* Below 1 the steps shrink with the rest. */
    return fitting >= 1 ? fitting : WIDTH_MAX / (units * UNIT_PIXELS + steps * STEP_PIXELS);
}

static void layout_time(struct layout *layout) {
    make_moments(layout);
    if (!layout->typical_us) layout->typical_us = typical_us(layout);
    uint64_t typical = layout->typical_us;
    double x = layout->left + 24;
    for (size_t i = 1; i < layout->moment_count; i++) {
        struct moment *moment = &layout->moment[i];
        moment->after_silence = moment->time_us - moment[-1].time_us > SILENCE * typical;
    }
    double scale = scale_of(layout, typical), unit = UNIT_PIXELS * scale;
    double step = scale < 1 ? STEP_PIXELS * scale : STEP_PIXELS;
    layout->pixels_per_us = unit / (double)typical;
    for (size_t i = 0; i < layout->moment_count; i++) {
        struct moment *moment = &layout->moment[i];
        uint64_t gap = i ? moment->time_us - moment[-1].time_us : 0;
        if (i && gap == 0) x += step;
        x += moment->after_silence ? unit : (double)gap * layout->pixels_per_us;
        moment->x = (int)x;
    }
    layout->unit = (int)unit;
    layout->right = (int)x + TAIL;
    for (size_t i = 0; i < layout->drawn_count; i++)
        layout->x[i] = layout->thin[i] ? layout_x(layout, entry_at(layout, i)->time_us)
                                       : layout->moment[layout->x[i]].x;
}

int layout_x(const struct layout *layout, uint64_t time_us) {
    size_t low = 0, high = layout->moment_count;
    while (low < high) { /* the first moment at or behind the time */
        size_t middle = (low + high) / 2;
        if (layout->moment[middle].time_us < time_us)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == layout->moment_count) return layout->right;
    const struct moment *next = &layout->moment[low];
    if (low == 0 || next->time_us == time_us) return next->x;
    double part = (double)(time_us - next[-1].time_us) / (double)(next->time_us - next[-1].time_us);
    return next[-1].x + (int)(part * (next->x - next[-1].x));
}

/* The wider the picture, the more counts as repeated. */
static void thin_out(struct layout *layout) {
    static const size_t many[] = {60, 20, 6}, few[] = {3, 2, 1};
    for (int i = 0; i < 3 && layout->right > WIDE; i++)
        if (layout_thin(layout, many[i], few[i])) layout_time(layout);
}

void layout_open(struct layout *layout, const struct trace *trace) {
    *layout = (struct layout){.trace = trace};
    choose_entries(layout);
    place_lines(layout);
    layout_time(layout);
    thin_out(layout);
    layout_parts(layout);
    layout_labels(layout);
}

void layout_close(struct layout *layout) {
    free(layout->drawn);
    free(layout->x);
    free(layout->thin);
    free(layout->y);
    free(layout->moment);
    free(layout->span);
    free(layout->mark);
    free(layout->arrow);
    free(layout->label);
}
