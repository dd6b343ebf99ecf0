/* What is drawn of a trace: stretches of lines, marks on them and arrows between them. */
#include <stdlib.h>

#include "sim/trace_svg.h"

/* ---- Stretches ---- */

/* Where the stretches under way began, by shape and process; 0: not under way. */
struct open_spans {
    int *from[SHAPE_OVERLAP]; /* by pid */
    int overlap, split;
    uint32_t inside, inside_most;
};

static void add_span(struct layout *layout, enum shape shape, int y, int *from, int to) {
    if (!*from) return;
    layout->span[layout->span_count++] =
        (struct span){.shape = shape, .y = y, .from = *from, .to = to};
    layout->occurs[shape] = true;
    *from = 0;
}

static void end_span(struct layout *layout, struct open_spans *open, enum shape shape, cv_pid p,
                     int to) {
    if (!open->from[shape][p]) return;
    add_span(layout, shape, layout->y[p], &open->from[shape][p], to);
    if (shape != SHAPE_INSIDE || open->inside-- != 2) return;
    add_span(layout, SHAPE_OVERLAP, 0, &open->overlap, to);
    layout->span[layout->span_count - 1].inside = open->inside_most;
}

static void begin_span(struct open_spans *open, enum shape shape, cv_pid p, int from) {
    if (open->from[shape][p]) return;
    open->from[shape][p] = from;
    if (shape != SHAPE_INSIDE) return;
    open->inside++;
    if (open->inside == 2) open->overlap = from, open->inside_most = 2;
    if (open->inside > open->inside_most) open->inside_most = open->inside;
}

static void follow(struct layout *layout, struct open_spans *open, const struct trace_entry *entry,
                   int x) {
    cv_pid p = entry->process;
    switch (entry->type) {
    case TR_ASK: begin_span(open, SHAPE_WAITING, p, x); break;
    case TR_ENTER:
        end_span(layout, open, SHAPE_WAITING, p, x);
        begin_span(open, SHAPE_INSIDE, p, x);
        break;
    case TR_LEAVE: end_span(layout, open, SHAPE_INSIDE, p, x); break;
    case TR_ELECTED: begin_span(open, SHAPE_LEADS, p, x); break;
    case TR_FOLLOWS:
    case TR_LEADERLESS: end_span(layout, open, SHAPE_LEADS, p, x); break;
    case TR_CRASH:
        for (enum shape shape = SHAPE_WAITING; shape < SHAPE_OVERLAP; shape++)
            end_span(layout, open, shape, p, x);
        begin_span(open, SHAPE_DOWN, p, x);
        break;
    case TR_RECOVER: end_span(layout, open, SHAPE_DOWN, p, x); break;
    case TR_PAUSE: begin_span(open, SHAPE_PAUSED, p, x); break;
    case TR_RESUME: end_span(layout, open, SHAPE_PAUSED, p, x); break;
    case TR_PARTITION:
    case TR_HEAL:
        add_span(layout, SHAPE_SPLIT, 0, &open->split, x);
        if (entry->type == TR_PARTITION) open->split = x;
        break;
    default: break;
    }
}

static void find_spans(struct layout *layout) {
    uint32_t processes = layout->trace->roster.processes;
    struct open_spans open = {0};
    /* An entry begins two stretches at the most. */
    layout->span = layout_array(2 * layout->drawn_count, sizeof *layout->span);
    for (enum shape s = SHAPE_WAITING; s < SHAPE_OVERLAP; s++)
        open.from[s] = layout_array(processes, sizeof *open.from[s]);
    for (size_t i = 0; i < layout->drawn_count; i++)
        follow(layout, &open, &layout->trace->entry[layout->drawn[i]], layout->x[i]);
    for (enum shape s = SHAPE_WAITING; s < SHAPE_OVERLAP; s++) {
        for (cv_pid p = 1; p <= processes; p++) end_span(layout, &open, s, p, layout->right);
        free(open.from[s]);
    }
    add_span(layout, SHAPE_SPLIT, 0, &open.split, layout->right);
}

/* ---- Marks ---- */

static enum shape mark_of(const struct trace_entry *entry) {
    switch (entry->type) {
    case TR_CRASH: return SHAPE_CRASH;
    case TR_RECOVER: return entry->arg ? SHAPE_AMNESIA : SHAPE_SAVED;
    case TR_TIMER: return SHAPE_TIMER;
    case TR_CHOICE: return SHAPE_CHOICE;
    case TR_WRITE: return SHAPE_WRITE;
    case TR_REFUSED: return SHAPE_REFUSED;
    case TR_CAMPAIGN: return SHAPE_CAMPAIGN;
    case TR_ELECTED: return SHAPE_ELECTED;
    case TR_FOLLOWS: return SHAPE_FOLLOWS;
    case TR_LEADERLESS: return SHAPE_LEADERLESS;
    case TR_SUSPECT: return SHAPE_SUSPECT;
    case TR_TRUST: return SHAPE_TRUST;
    default: return SHAPE_NONE;
    }
}

static void find_marks(struct layout *layout) {
    layout->mark = layout_array(layout->drawn_count, sizeof *layout->mark);
    for (size_t i = 0; i < layout->drawn_count; i++) {
        const struct trace_entry *entry = &layout->trace->entry[layout->drawn[i]];
        enum shape shape = mark_of(entry);
        if (!shape) continue;
        layout->occurs[shape] = true;
        layout->mark[layout->mark_count++] =
            (struct mark){shape, layout->x[i], layout->y[entry->process], layout->drawn[i]};
    }
}

/* ---- Arrows ---- */

static int between(int a, int b, double part) { return a + (int)(part * (b - a)); }

static void add_arrow(struct layout *layout, struct arrow arrow) {
    layout->arrow[layout->arrow_count++] = arrow;
    layout->occurs[arrow.shape] = true;
}

/* From the sending, when it is drawn; what was lost ends on the way. */
static void add_arrival(struct layout *layout, size_t place, bool *arrived) {
    const struct trace_entry *entry = &layout->trace->entry[layout->drawn[place]];
    int from_y = layout->y[entry->peer], to_y = layout->y[entry->process];
    int from_x = layout->x[place] - layout->unit / 2, to_x = layout->x[place];
    size_t sending = layout_find(layout, entry->match);
    if (sending < layout->drawn_count) {
        from_x = layout->x[sending];
        arrived[sending] = true;
    } else {
        from_y = between(to_y, from_y, 0.5);
    }
    struct arrow arrow = {SHAPE_MESSAGE, from_x, from_y, to_x, to_y, layout->drawn[place]};
    if (entry->type == TR_LOST) {
        bool at_once = to_x <= from_x;
        arrow.shape = SHAPE_LOST;
        arrow.x2 = at_once ? from_x + layout->unit / 2 : between(from_x, to_x, 0.85);
        arrow.y2 = between(from_y, to_y, at_once ? 0.5 : 0.85);
    }
    add_arrow(layout, arrow);
}

static void find_arrows(struct layout *layout) {
    bool *arrived = layout_array(layout->drawn_count, sizeof *arrived);
    layout->arrow = layout_array(layout->drawn_count, sizeof *layout->arrow);
    for (size_t i = 0; i < layout->drawn_count; i++) {
        enum trace_type type = layout->trace->entry[layout->drawn[i]].type;
        if (type == TR_RECEIVE || type == TR_LOST) add_arrival(layout, i, arrived);
    }
    for (size_t i = 0; i < layout->drawn_count; i++) {
        const struct trace_entry *entry = &layout->trace->entry[layout->drawn[i]];
        if (entry->type != TR_SEND || arrived[i]) continue;
        int x = layout->x[i], y = layout->y[entry->process];
        add_arrow(layout,
                  (struct arrow){SHAPE_UNDER_WAY, x, y, x + layout->unit / 2,
                                 between(y, layout->y[entry->peer], 0.5), layout->drawn[i]});
    }
    free(arrived);
}

void layout_parts(struct layout *layout) {
    find_spans(layout);
    find_marks(layout);
    find_arrows(layout);
}
