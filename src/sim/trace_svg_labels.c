/* What is written beside marks and along arrows, placed where it covers least. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/trace_svg.h"

/* What a place costs.  Rather than cover another label or leave the picture, a label is left out;
 * one that is longer than its arrow, or that much else crosses, does not fit well. */
enum {
    COST_LABEL = 1000,
    COST_EDGE = 1000,
    COST_SHORT = 300,
    COST_MARK = 60,
    COST_LINE = 12,
    COST_ARROW = 8
};
enum {
    ROOM = 12, /* pixels that a label is high */
    MARK_RADIUS = 6,
    ARROW_END = 12,   /* kept free at both ends of an arrow */
    ARROW_BESIDE = 8, /* from an arrow to the middle of its label */
};

/* ---- Costs ---- */

/* Along the label, one disc after the other: when two discs of two labels meet, so do the labels.
 */
static bool labels_meet(const struct label *a, const struct label *b) {
    double reach = a->half + b->half + ROOM;
    if (fabs(a->x - b->x) > reach || fabs(a->y - b->y) > reach) return false;
    for (double i = -a->half; i <= a->half; i += ROOM / 2.0)
        for (double j = -b->half; j <= b->half; j += ROOM / 2.0) {
            double dx = a->x + i * a->right - b->x - j * b->right;
            double dy = a->y + i * a->down - b->y - j * b->down;
            if (dx * dx + dy * dy < ROOM * ROOM) return true;
        }
    return false;
}

/* On which side of the way from one point to another a third one is. */
static double side(double x1, double y1, double x2, double y2, double x, double y) {
    return (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1);
}

static bool crosses(const struct label *label, const struct arrow *arrow) {
    double ax = label->x - label->half * label->right, ay = label->y - label->half * label->down;
    double bx = label->x + label->half * label->right, by = label->y + label->half * label->down;
    return side(ax, ay, bx, by, arrow->x1, arrow->y1) * side(ax, ay, bx, by, arrow->x2, arrow->y2) <
               0 &&
           side(arrow->x1, arrow->y1, arrow->x2, arrow->y2, ax, ay) *
                   side(arrow->x1, arrow->y1, arrow->x2, arrow->y2, bx, by) <
               0;
}

/* How many lines of processes go through a label. */
static int lines_covered(const struct layout *layout, const struct label *label) {
    double half = fabs(label->down) * label->half + ROOM / 2.0;
    double from = (label->y - half - layout->top) / layout->distance;
    double to = (label->y + half - layout->top) / layout->distance;
    int first = from < 0 ? 0 : (int)ceil(from);
    int last = to < 0 ? -1 : to > layout->lines - 1 ? (int)layout->lines - 1 : (int)floor(to);
    return last >= first ? last - first + 1 : 0;
}

static bool covers(const struct label *label, const struct mark *mark) {
    double dx = mark->x - label->x, dy = mark->y - label->y;
    double along = dx * label->right + dy * label->down;
    double beside = dy * label->right - dx * label->down;
    return fabs(along) < label->half + MARK_RADIUS && fabs(beside) < ROOM / 2.0 + MARK_RADIUS;
}

/* What it costs to place the label here, when those before `count` are placed. */
static double cost_of(const struct layout *layout, const struct label *label, size_t count) {
    double cost = COST_LINE * lines_covered(layout, label);
    double wide = label->right * label->half;
    for (size_t i = 0; i < count; i++)
        if (layout->label[i].text[0] && labels_meet(label, &layout->label[i])) cost += COST_LABEL;
    for (size_t i = 0; i < layout->arrow_count; i++)
        if (crosses(label, &layout->arrow[i])) cost += COST_ARROW;
    for (size_t i = 0; i < layout->mark_count; i++)
        if (covers(label, &layout->mark[i])) cost += COST_MARK;
    if (label->x - wide < layout->left || label->x + wide > layout->right) cost += COST_EDGE;
    return cost;
}

struct search { /* for the best place of the label number `count` */
    const struct layout *layout;
    size_t count;
    struct label best;
    double best_cost;
};

static void try(struct search *search, struct label label, double cost) {
    cost += cost_of(search->layout, &label, search->count);
    if (cost >= search->best_cost) return;
    search->best = label;
    search->best_cost = cost;
}

/* The label in its best place, left out when even that one is bad. */
static struct label found(const struct search *search) {
    return search->best_cost < COST_LABEL ? search->best : (struct label){.text = ""};
}

/* ---- Marks ---- */

static void describe_mark(const struct layout *layout, const struct mark *mark,
                          char text[LABEL_MAX]) {
    const struct trace *trace = layout->trace;
    const struct trace_entry *entry = &trace->entry[mark->entry];
    char peer[ROSTER_NAME_MAX], term[32] = "";
    unsigned long long arg = entry->arg;
    roster_name(&trace->roster, entry->peer, peer);
    if (entry->term) snprintf(term, sizeof term, " in term %u", entry->term);
    switch (mark->shape) {
    case SHAPE_TIMER: snprintf(text, LABEL_MAX, "timeout"); break;
    case SHAPE_CHOICE: snprintf(text, LABEL_MAX, "draws %llu", arg); break;
    case SHAPE_AMNESIA: snprintf(text, LABEL_MAX, "amnesia"); break;
    case SHAPE_WRITE: snprintf(text, LABEL_MAX, "writes, token %llu", arg); break;
    case SHAPE_REFUSED: snprintf(text, LABEL_MAX, "token %llu refused", arg); break;
    case SHAPE_CAMPAIGN: snprintf(text, LABEL_MAX, "wants an election"); break;
    case SHAPE_ELECTED: snprintf(text, LABEL_MAX, "leads%s", term); break;
    case SHAPE_FOLLOWS:
        if (entry->peer)
            snprintf(text, LABEL_MAX, "follows %s%s", peer, term);
        else
            snprintf(text, LABEL_MAX, "knows of a leader%s", term);
        break;
    case SHAPE_LEADERLESS: snprintf(text, LABEL_MAX, "no leader"); break;
    case SHAPE_SUSPECT: snprintf(text, LABEL_MAX, "suspects %s", peer); break;
    case SHAPE_TRUST: snprintf(text, LABEL_MAX, "trusts %s", peer); break;
    default: text[0] = 0; break;
    }
}

static struct label label_mark(const struct layout *layout, size_t i) {
    static const int heights[] = {-14, 17, -26, 29};
    const struct mark *mark = &layout->mark[i];
    struct search search = {layout, i, {.text = ""}, INFINITY};
    struct label label = {.right = 1};
    describe_mark(layout, mark, label.text);
    if (!label.text[0]) return label;
    label.half = text_width(label.text, LABEL_SIZE) / 2.0;
    for (int height = 0; height < 4; height++)
        for (int shift = 0; shift < 3; shift++) {
            label.x = mark->x + (shift == 0 ? label.half - 4 : shift == 1 ? 0 : 4 - label.half);
            label.y = mark->y + heights[height];
            try(&search, label, 3 * height + shift);
        }
    return found(&search);
}

/* ---- Arrows ---- */

enum brevity { IN_FULL, BARE_VALUES, NAME_ONLY };

/* "GRANT number=1 fence=7", "GRANT(1, 7)" or "GRANT"; false when that is too long. */
static bool describe_message(const struct trace *trace, uint32_t entry, enum brevity brevity,
                             char text[LABEL_MAX]) {
    char message[256];
    trace_message(trace, &trace->entry[entry], message, sizeof message);
    char *fields = message + strcspn(message, " ");
    if (brevity == IN_FULL || !*fields) return snprintf(text, LABEL_MAX, "%s", message) < LABEL_MAX;
    *fields++ = 0;
    int used = snprintf(text, LABEL_MAX, "%s", message);
    const char *before = "(";
    for (char *field; brevity == BARE_VALUES && (field = strsep(&fields, " "));) {
        const char *value = strchr(field, '='); /* none: the list of the field before goes on */
        if (used >= LABEL_MAX) break;
        used += snprintf(text + used, (size_t)(LABEL_MAX - used), "%s%s", value ? before : " ",
                         value ? value + 1 : field);
        before = ", ";
    }
    if (*before == ',' && used < LABEL_MAX)
        used += snprintf(text + used, (size_t)(LABEL_MAX - used), ")");
    return used < LABEL_MAX;
}

/* Tries the label along the arrow, preferably near the sender and above. */
static void try_along(struct search *search, const struct arrow *arrow, double length,
                      struct label label, double cost) {
    double slack = length - 2 * ARROW_END - 2 * label.half;
    if (slack < 0) slack = 0, cost += COST_SHORT;
    for (int place = 0; place <= 6; place++)
        for (int above = 1; above >= -1; above -= 2) {
            double along = length / 2 + slack * (place / 6.0 - 0.5);
            label.x = arrow->x1 + along * label.right + above * ARROW_BESIDE * label.down;
            label.y = arrow->y1 + along * label.down - above * ARROW_BESIDE * label.right;
            try(search, label, cost + abs(place - 1) + (above < 0 ? 2 : 0));
        }
}

/* Labels an arrow, or leaves its label out, and says whether the label fits well. */
static bool label_arrow(struct layout *layout, size_t i, enum brevity brevity) {
    const struct arrow *arrow = &layout->arrow[i];
    double dx = arrow->x2 - arrow->x1, dy = arrow->y2 - arrow->y1, length = sqrt(dx * dx + dy * dy);
    struct search search = {layout, layout->mark_count + i, {.text = ""}, INFINITY};
    struct label label = {.right = dx / length, .down = dy / length};
    if (length < 1) return true;
    bool whole = describe_message(layout->trace, arrow->entry, brevity, label.text);
    label.half = text_width(label.text, LABEL_SIZE) / 2.0;
    try_along(&search, arrow, length, label, 0);
    layout->label[search.count] = found(&search);
    return whole && search.best_cost < COST_SHORT;
}

/* All messages of a kind are written alike: as fully as all of them fit, and as their mere name
 * when otherwise most would be left out. */
static void label_arrows(struct layout *layout) {
    size_t kinds = layout->trace->algorithm->message_count;
    enum brevity *brevity = layout_array(kinds, sizeof *brevity);
    size_t *labels = layout_array(kinds, sizeof *labels), *bad = layout_array(kinds, sizeof *bad);
    for (bool again = true; again;) {
        memset(labels, 0, kinds * sizeof *labels);
        memset(bad, 0, kinds * sizeof *bad);
        memset(layout->label + layout->mark_count, 0, layout->arrow_count * sizeof *layout->label);
        for (size_t i = 0; i < layout->arrow_count; i++) {
            uint16_t kind = layout->trace->entry[layout->arrow[i].entry].kind;
            if (layout->arrow[i].shape == SHAPE_REPEATED) continue;
            labels[kind]++;
            bad[kind] += !label_arrow(layout, i, brevity[kind]);
        }
        again = false;
        for (size_t k = 0; k < kinds; k++)
            if (brevity[k] == IN_FULL ? bad[k] > 0
                                      : brevity[k] == BARE_VALUES && 2 * bad[k] > labels[k])
                brevity[k]++, again = true;
    }
    free(brevity);
    free(labels);
    free(bad);
}

void layout_labels(struct layout *layout) {
    layout->label = layout_array(layout->mark_count + layout->arrow_count, sizeof *layout->label);
    for (size_t i = 0; i < layout->mark_count; i++) layout->label[i] = label_mark(layout, i);
    label_arrows(layout);
}
