/* Which entries of a trace are drawn, on which lines, and the x of each time. */
#include "lab/sim/trace_svg.h"

#include <stdlib.h>
#include <string.h>

enum {
    UNIT_PIXELS = 92,   /* width of a typical message, while there are few at a time */
    STEP_PIXELS = 80,   /* between two steps at the same time */
    WIDE = 4000,        /* from here on repeated messages are thinned, then there are pages */
    HIGH = 4000,        /* likewise */
    WIDTH_MAX = 100000, /* before that is known */
    PAGE_ENTRIES = 200, /* of a picture that has several pages */
    LINES_ALWAYS = 40,  /* up to this number of processes every page has the lines of all */
    SILENCE = 5,        /* a gap of this many units is shortened */
    TOP = 98,           /* above the first line */
    TAIL = 70,          /* after the last moment */
    NAME_SIZE = 14,
};

void *layout_array(size_t count, size_t item) {
    void *memory = calloc(count + 1, item);
    cv_assert(memory);
    return memory;
}

/* ---- What is drawn, on which lines ---- */

bool layout_draws(const struct layout *layout, size_t i) {
    const struct trace *trace = layout->trace;
    enum trace_type type = trace->entry[i].type;
    if (layout->folded && layout->folded[i]) return false;
    return trace_shows(trace, i) && type != TR_NONE && type != TR_START && type != TR_DONE;
}

static void open_arrays(struct layout *layout) {
    layout->drawn = layout_array(DRAWN_MAX, sizeof *layout->drawn);
    layout->x = layout_array(DRAWN_MAX, sizeof *layout->x);
    layout->thin = layout_array(DRAWN_MAX, sizeof *layout->thin);
    layout->moment = layout_array(DRAWN_MAX, sizeof *layout->moment);
    layout->y = layout_array(layout->trace->roster.processes, sizeof *layout->y);
}

/* Takes at most `most` entries after those that are skipped. */
static void choose_entries(struct layout *layout, size_t most) {
    const struct trace *trace = layout->trace;
    bool all_lines = trace->roster.processes <= LINES_ALWAYS;
    layout->total = layout->drawn_count = 0;
    for (size_t i = 1; i < trace->count; i++) {
        if (!layout_draws(layout, i)) continue;
        bool here = layout->total >= layout->skipped && layout->drawn_count < most;
        layout->total++;
        if (here) layout->drawn[layout->drawn_count++] = (uint32_t)i;
        if (here || all_lines)
            layout->y[trace->entry[i].process] = layout->y[trace->entry[i].peer] = 1;
    }
    for (size_t i = 0; i < trace->wait_count && layout->page == layout->pages; i++)
        layout->y[trace->wait[i].who] = layout->y[trace->wait[i].whom] = 1;
    layout->y[CV_NOBODY] = 0;
}

static void place_lines(struct layout *layout) {
    char name[ROSTER_NAME_MAX];
    int widest = 0;
    for (cv_pid p = 1; p <= layout->trace->roster.processes; p++) layout->lines += layout->y[p] > 0;
    uint32_t n = layout->lines;
    layout->distance = n <= 3     ? 110
                       : n <= 6   ? 90
                       : n <= 12  ? 66
                       : n <= 60  ? 48
                       : n <= 150 ? 24
                                  : 18;
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

static const struct trace_entry *entry_at(const struct layout *layout, size_t index) {
    return &layout->trace->entry[layout->drawn[index]];
}

/* The step of an entry among those of its time: a message without delay arrives one step after it
 * was sent.  `step` holds the steps of the entries before, `last` the index of the previous entry
 * of each process, from 1. */
static uint32_t step_of(const struct layout *layout, size_t index, const uint32_t *step,
                        const uint32_t *last) {
    const struct trace_entry *entry = entry_at(layout, index);
    uint32_t before = last[entry->process], result = 0;
    if (before && entry_at(layout, before - 1)->time_us == entry->time_us)
        result = step[before - 1];
    if (entry->type != TR_RECEIVE) return result;
    size_t sending = layout_find(layout, entry->match);
    if (sending == layout->drawn_count || entry_at(layout, sending)->time_us != entry->time_us)
        return result;
    return result > step[sending] ? result : step[sending] + 1;
}

/* Makes the moments, and sets x to the moment of each entry. */
static void make_moments(struct layout *layout) {
    uint32_t *step = layout_array(layout->drawn_count, sizeof *step);
    uint32_t *last = layout_array(layout->trace->roster.processes, sizeof *last);
    size_t first = 0; /* the first moment of the current time */
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

/* The typical delay of a message, or when that is next to 0 the time between two moments. */
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

/* A busy period needs more room, an overlong picture less. */
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
    for (size_t i = 0; i < layout->drawn_count; i++) {
        double lists = layout_list_width(layout->trace, entry_at(layout, i)) / (double)UNIT_PIXELS;
        if (!layout->thin[i] && lists > scale) scale = lists;
    }
    double fitting = (layout->width_max - steps * STEP_PIXELS) / (units * UNIT_PIXELS);
    if (fitting >= scale) return scale;
    /* Below 1 the steps shrink, too. */
    return fitting >= 1 ? fitting : layout->width_max / (units * UNIT_PIXELS + steps * STEP_PIXELS);
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
    while (low < high) { /* the first moment at or after the time */
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

/* The wider the picture, the more messages count as repeated. */
static void thin_out(struct layout *layout) {
    static const size_t many[] = {60, 20, 6}, few[] = {3, 2, 1};
    for (int i = 0; i < 3 && layout->right > WIDE; i++)
        if (layout_thin(layout, many[i], few[i])) layout_time(layout);
}

static void start_again(struct layout *layout) {
    memset(layout->thin, 0, DRAWN_MAX * sizeof *layout->thin);
    memset(layout->y, 0, (layout->trace->roster.processes + 1) * sizeof *layout->y);
    layout->typical_us = 0;
}

static bool is_too_large(const struct layout *layout) {
    return layout->total > DRAWN_MAX || layout->right > WIDE || layout->bottom > HIGH;
}

/* The page on which something at a time is. */
static uint64_t page_of(const struct layout *layout, uint64_t time_us) {
    size_t before = 0;
    for (size_t i = 1; i < layout->trace->count; i++)
        before += layout_draws(layout, i) && layout->trace->entry[i].time_us <= time_us;
    return (before ? before - 1 : 0) / PAGE_ENTRIES + 1;
}

static void lay_out(struct layout *layout, size_t most) {
    choose_entries(layout, most);
    layout->lines = 0;
    place_lines(layout);
    layout_time(layout);
    thin_out(layout);
}

/* A picture that would be too large, even with repeated messages thinned, is folded, and if that is
 * not enough, it has several pages. */
void layout_open(struct layout *layout, const struct trace *trace, uint64_t page) {
    *layout = (struct layout){.trace = trace, .page = 1, .pages = 1, .width_max = WIDTH_MAX};
    open_arrays(layout);
    lay_out(layout, DRAWN_MAX);
    if (is_too_large(layout)) {
        layout_fold(layout);
        start_again(layout);
        lay_out(layout, DRAWN_MAX);
    }
    if (is_too_large(layout)) {
        layout->pages = (layout->total + PAGE_ENTRIES - 1) / PAGE_ENTRIES;
        layout->page = page < layout->pages ? page : layout->pages;
        layout->skipped = (layout->page - 1) * PAGE_ENTRIES;
        layout->violated_page = page_of(layout, trace->violated_us);
        layout->width_max = WIDE;
        start_again(layout);
        lay_out(layout, PAGE_ENTRIES);
    }
    layout_parts(layout);
    layout_labels(layout);
}

void layout_close(struct layout *layout) {
    free(layout->drawn);
    free(layout->folded);
    free(layout->x);
    free(layout->thin);
    free(layout->y);
    free(layout->moment);
    free(layout->span);
    free(layout->mark);
    free(layout->arrow);
    free(layout->state);
    free(layout->label);
    free(layout->round);
}
