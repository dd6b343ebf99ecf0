/* The parts of the picture: spans of lines, marks on them and arrows between them. */
#include <stdlib.h>

#include <string.h>

#include "lab/sim/trace_svg.h"

enum { TICK = 12, STATES_MAX = 40 }; /* pixels of a message that is one of many */

/* ---- Spans ---- */

/* Processes that overlap: inside at the same time, or leading in the same term. */
struct company {
    enum shape shape; /* of a span with several */
    uint32_t term, count, max;
    int from; /* since when there are several */
};

/* Where the open spans began, by shape and process; 0: none is open. */
struct open_spans {
    int *from[SHAPE_OVERLAP]; /* by pid */
    uint32_t *term;           /* by pid: in which it leads */
    int split;
    struct company *company;
    size_t company_count;
};

static void add_span(struct layout *layout, struct span span) {
    if (!span.y && span.shape < SHAPE_OVERLAP) return; /* it has no line on this page */
    layout->span[layout->span_count++] = span;
    layout->occurs[span.shape] = true;
}

static struct company *company_of(struct open_spans *open, enum shape shape, uint32_t term) {
    enum shape several = shape == SHAPE_INSIDE ? SHAPE_OVERLAP : SHAPE_RIVALS;
    for (size_t i = 0; i < open->company_count; i++)
        if (open->company[i].shape == several && open->company[i].term == term)
            return &open->company[i];
    open->company[open->company_count] = (struct company){.shape = several, .term = term};
    return &open->company[open->company_count++];
}

static void end_span(struct layout *layout, struct open_spans *open, enum shape shape, cv_pid p,
                     int to) {
    int from = open->from[shape][p];
    uint32_t term = shape == SHAPE_LEADS ? open->term[p] : 0;
    if (!from) return;
    add_span(layout, (struct span){
                         .shape = shape, .y = layout->y[p], .from = from, .to = to, .term = term});
    open->from[shape][p] = 0;
    if (shape != SHAPE_INSIDE && shape != SHAPE_LEADS) return;
    struct company *company = company_of(open, shape, term);
    if (company->count-- == 2)
        add_span(layout, (struct span){.shape = company->shape,
                                       .from = company->from,
                                       .to = to,
                                       .term = term,
                                       .max = company->max});
}

static void begin_span(struct open_spans *open, enum shape shape, cv_pid p, int from) {
    if (open->from[shape][p]) return;
    open->from[shape][p] = from;
    if (shape != SHAPE_INSIDE && shape != SHAPE_LEADS) return;
    struct company *company = company_of(open, shape, shape == SHAPE_LEADS ? open->term[p] : 0);
    company->count++;
    if (company->count == 2) company->from = from, company->max = 2;
    if (company->count > company->max) company->max = company->count;
}

/* A leader that is elected again continues, perhaps in another term. */
static void elect(struct layout *layout, struct open_spans *open, cv_pid p, uint32_t term, int x) {
    if (open->term[p] != term) end_span(layout, open, SHAPE_LEADS, p, x);
    open->term[p] = term;
    begin_span(open, SHAPE_LEADS, p, x);
}

static void split_until(struct layout *layout, struct open_spans *open, int to) {
    if (open->split)
        add_span(layout, (struct span){.shape = SHAPE_SPLIT, .from = open->split, .to = to});
    open->split = 0;
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
    case TR_ELECTED: elect(layout, open, p, entry->term, x); break;
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
        split_until(layout, open, x);
        if (entry->type == TR_PARTITION) open->split = x;
        break;
    default: break;
    }
}

/* ---- Standings ---- */

static void end_standing(struct layout *layout, cv_pid p, struct standing standing, int *from,
                         int to) {
    bool shown = standing.now >= STANDING_FOLLOWS && *from < to;
    if (shown) {
        add_span(layout, (struct span){.shape = SHAPE_STANDING,
                                       .y = layout->y[p],
                                       .from = *from,
                                       .to = to,
                                       .standing = standing});
        layout->stands[standing.now] = true;
    }
    *from = to;
}

/* One span for each part that a process takes in a round. */
static void find_standings(struct layout *layout, struct standing *now) {
    const struct trace *trace = layout->trace;
    uint32_t processes = trace->roster.processes;
    int *from = layout_array(processes, sizeof *from);
    for (cv_pid p = 1; p <= processes; p++) from[p] = layout->left;
    for (size_t i = 0; i < layout->drawn_count; i++) {
        cv_pid p = trace->entry[layout->drawn[i]].process;
        struct standing before = now[p];
        standing_follow(trace, layout->drawn[i], now);
        if (before.now != now[p].now || before.round != now[p].round)
            end_standing(layout, p, before, &from[p], layout->x[i]);
    }
    for (cv_pid p = 1; p <= processes; p++)
        end_standing(layout, p, now[p], &from[p], layout->right);
    free(from);
}

/* ---- All of them ---- */

/* What happened on earlier pages, at the left end of this one. */
static void follow_earlier(struct layout *layout, struct open_spans *open,
                           struct standing *standing) {
    const struct trace *trace = layout->trace;
    size_t end = layout->drawn_count ? layout->drawn[0] : trace->count;
    for (size_t i = 1; layout->skipped && i < end; i++) {
        standing_follow(trace, i, standing);
        if (layout_draws(layout, i)) follow(layout, open, &trace->entry[i], layout->left);
        if (layout->span_count) layout->span_count = 0; /* it ended there */
    }
    for (int shape = 0; layout->skipped && shape < SHAPES; shape++) layout->occurs[shape] = false;
}

static void find_spans(struct layout *layout) {
    uint32_t processes = layout->trace->roster.processes;
    size_t changes = layout->drawn_count + (layout->skipped ? layout->total : 0);
    struct standing *standing = layout_array(processes, sizeof *standing);
    struct open_spans open = {.term = layout_array(processes, sizeof *open.term),
                              .company = layout_array(changes, sizeof *open.company)};
    /* An entry begins at most two spans, and those of earlier pages may still be open. */
    layout->span =
        layout_array(3 * layout->drawn_count + 6 * (size_t)processes + 8, sizeof *layout->span);
    for (enum shape s = SHAPE_WAITING; s < SHAPE_OVERLAP; s++)
        open.from[s] = layout_array(processes, sizeof *open.from[s]);
    follow_earlier(layout, &open, standing);
    find_standings(layout, standing);
    for (size_t i = 0; i < layout->drawn_count; i++)
        follow(layout, &open, &layout->trace->entry[layout->drawn[i]], layout->x[i]);
    for (enum shape s = SHAPE_WAITING; s < SHAPE_OVERLAP; s++) {
        for (cv_pid p = 1; p <= processes; p++) end_span(layout, &open, s, p, layout->right);
        free(open.from[s]);
    }
    split_until(layout, &open, layout->right);
    free(open.term);
    free(open.company);
    free(standing);
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
        if (!shape || layout->thin[i]) continue;
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

/* A message that is one of many becomes a tick at its sender, towards its receiver. */
static struct arrow tick(const struct layout *layout, cv_pid from, cv_pid to, int x,
                         uint32_t entry) {
    int y = layout->y[from], down = layout->y[to] > y ? TICK : -TICK;
    return (struct arrow){SHAPE_REPEATED, x, y, x, y + down, entry};
}

/* What comes from another page, or goes there, begins or ends at the edge of this one. */
static struct arrow clip(const struct layout *layout, struct arrow arrow) {
    int x1 = arrow.x1, y1 = arrow.y1, wide = arrow.x2 - x1, high = arrow.y2 - y1;
    int left = layout->left, right = layout->right;
    if (wide <= 0) return arrow;
    if (x1 < left) arrow.x1 = left, arrow.y1 = y1 + high * (left - x1) / wide;
    if (arrow.x2 > right) arrow.x2 = right, arrow.y2 = y1 + high * (right - x1) / wide;
    return arrow;
}

/* Where a message is lost, apart from the lines of others, which have not lost it. */
static int lost_y(const struct layout *layout, int from, int to, double part) {
    int y = between(from, to, part), off = (y - layout->top) % layout->distance;
    bool on_line = off < layout->distance / 5 || off > layout->distance * 4 / 5;
    return !on_line ? y : y + (to > from ? layout->distance : -layout->distance) / 3;
}

/* From the send, when it is drawn; a lost message ends on the way. */
static void add_arrival(struct layout *layout, size_t index, bool *arrived) {
    const struct trace_entry *entry = &layout->trace->entry[layout->drawn[index]];
    int from_y = layout->y[entry->peer], to_y = layout->y[entry->process];
    int from_x = layout->x[index] - layout->unit / 2, to_x = layout->x[index];
    size_t sending = layout_find(layout, entry->match);
    if (sending < layout->drawn_count) {
        from_x = layout->x[sending];
        arrived[sending] = true;
    } else {
        from_y = between(to_y, from_y, 0.5);
    }
    if (layout->thin[index]) {
        add_arrow(layout, tick(layout, entry->peer, entry->process, from_x, layout->drawn[index]));
        return;
    }
    struct arrow arrow = {SHAPE_MESSAGE, from_x, from_y, to_x, to_y, layout->drawn[index]};
    if (entry->type == TR_LOST) {
        bool at_once = to_x <= from_x;
        arrow.shape = SHAPE_LOST;
        arrow.x2 = at_once ? from_x + layout->unit / 2 : between(from_x, to_x, 0.85);
        arrow.y2 = lost_y(layout, from_y, to_y, at_once ? 0.5 : 0.85);
    }
    add_arrow(layout, clip(layout, arrow));
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
        struct arrow arrow = {
            SHAPE_UNDER_WAY, x, y, x + layout->unit / 2, between(y, layout->y[entry->peer], 0.5),
            layout->drawn[i]};
        if (layout->thin[i]) arrow = tick(layout, entry->process, entry->peer, x, arrow.entry);
        add_arrow(layout, clip(layout, arrow));
    }
    free(arrived);
}

/* ---- States ---- */

/* Beside the lines there is room for a few short ones; a tooltip shows all. */
static void find_states(struct layout *layout) {
    const struct trace *trace = layout->trace;
    uint32_t *known = layout_array(trace->roster.processes, sizeof *known);
    layout->state = layout_array(layout->drawn_count, sizeof *layout->state);
    for (size_t i = 0; i < layout->drawn_count; i++) {
        const struct trace_entry *entry = &trace->entry[layout->drawn[i]];
        const char *text = trace->text + entry->note;
        if (!entry->note || layout->thin[i]) continue;
        bool same = known[entry->process] && strcmp(trace->text + known[entry->process], text) == 0;
        known[entry->process] = entry->note;
        if (same || strlen(text) >= LABEL_MAX) continue;
        size_t at = layout->state_count; /* at one time the last one counts */
        for (size_t k = at; k > 0 && layout->state[k - 1].x == layout->x[i]; k--)
            if (layout->state[k - 1].y == layout->y[entry->process]) at = k - 1;
        layout->state_count += at == layout->state_count;
        layout->state[at] =
            (struct mark){SHAPE_NONE, layout->x[i], layout->y[entry->process], layout->drawn[i]};
    }
    if (layout->state_count > STATES_MAX) layout->state_count = 0;
    free(known);
}

void layout_parts(struct layout *layout) {
    find_spans(layout);
    find_marks(layout);
    find_arrows(layout);
    find_states(layout);
}
