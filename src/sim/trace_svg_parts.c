/* What is drawn of a trace: stretches of lines, marks on them and arrows between them. */
#include <stdlib.h>

#include "sim/trace_svg.h"

enum { TICK = 12 }; /* pixels of a message that is one of many */

/* ---- Stretches ---- */

/* Those that are in one place at the same time: inside, or leading in one term. */
struct company {
    enum shape shape; /* of a stretch with several */
    uint32_t term, count, most;
    int from; /* since when they are several */
};

/* Where the stretches under way began, by shape and process; 0: not under way. */
struct open_spans {
    int *from[SHAPE_OVERLAP]; /* by pid */
    uint32_t *term;           /* by pid: in which it leads */
    int split;
    struct company *company;
    size_t company_count;
};

static void add_span(struct layout *layout, struct span span) {
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
    add_span(layout, (struct span){shape, layout->y[p], from, to, term, 0});
    open->from[shape][p] = 0;
    if (shape != SHAPE_INSIDE && shape != SHAPE_LEADS) return;
    struct company *company = company_of(open, shape, term);
    if (company->count-- == 2)
        add_span(layout, (struct span){company->shape, 0, company->from, to, term, company->most});
}

static void begin_span(struct open_spans *open, enum shape shape, cv_pid p, int from) {
    if (open->from[shape][p]) return;
    open->from[shape][p] = from;
    if (shape != SHAPE_INSIDE && shape != SHAPE_LEADS) return;
    struct company *company = company_of(open, shape, shape == SHAPE_LEADS ? open->term[p] : 0);
    company->count++;
    if (company->count == 2) company->from = from, company->most = 2;
    if (company->count > company->most) company->most = company->count;
}

/* A leader that is elected anew leads on, in another term perhaps. */
static void elect(struct layout *layout, struct open_spans *open, cv_pid p, uint32_t term, int x) {
    if (open->term[p] != term) end_span(layout, open, SHAPE_LEADS, p, x);
    open->term[p] = term;
    begin_span(open, SHAPE_LEADS, p, x);
}

static void split_until(struct layout *layout, struct open_spans *open, int to) {
    if (open->split) add_span(layout, (struct span){SHAPE_SPLIT, 0, open->split, to, 0, 0});
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

static void find_spans(struct layout *layout) {
    uint32_t processes = layout->trace->roster.processes;
    struct open_spans open = {.term = layout_array(processes, sizeof *open.term),
                              .company = layout_array(layout->drawn_count, sizeof *open.company)};
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
    split_until(layout, &open, layout->right);
    free(open.term);
    free(open.company);
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

/* What is left of one message of many: at its sender, towards its receiver. */
static struct arrow tick(const struct layout *layout, cv_pid from, cv_pid to, int x,
                         uint32_t entry) {
    int y = layout->y[from], down = layout->y[to] > y ? TICK : -TICK;
    return (struct arrow){SHAPE_REPEATED, x, y, x, y + down, entry};
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
    if (layout->thin[place]) {
        add_arrow(layout, tick(layout, entry->peer, entry->process, from_x, layout->drawn[place]));
        return;
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
        struct arrow arrow = {
            SHAPE_UNDER_WAY, x, y, x + layout->unit / 2, between(y, layout->y[entry->peer], 0.5),
            layout->drawn[i]};
        if (layout->thin[i]) arrow = tick(layout, entry->process, entry->peer, x, arrow.entry);
        add_arrow(layout, arrow);
    }
    free(arrived);
}

void layout_parts(struct layout *layout) {
    find_spans(layout);
    find_marks(layout);
    find_arrows(layout);
}
