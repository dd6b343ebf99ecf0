/* The labels of marks and arrows, placed where they cover least. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/trace_svg.h"
#include "language/language.h"

/* The costs of a position.  A label is left out rather than cover another or leave the picture; one
 * that is longer than its arrow, or is crossed by much else, does not fit well. */
enum {
    COST_LABEL = 1000,
    COST_EDGE = 1000,
    COST_SHORT = 300,
    COST_MARK = 60,
    COST_STATE = 40,
    COST_LINE = 12,
    COST_ARROW = 8
};
enum {
    ROOM = 13,       /* height of a label in pixels */
    ROOM_BESIDE = 2, /* at both of its ends */
    MARK_RADIUS = 6,
    ARROW_END = 12,   /* kept free at both ends of an arrow */
    ARROW_BESIDE = 8, /* from an arrow to the middle of its label */
};

/* ---- Costs ---- */

/* How far a label reaches from its middle in a direction of length 1. */
static double reach(const struct label *label, double right, double down) {
    return fabs(label->right * right + label->down * down) * (label->half + ROOM_BESIDE) +
           fabs(label->right * down - label->down * right) * ROOM / 2.0;
}

/* Two boxes are apart if they are so along a side of one of them. */
static bool labels_meet(const struct label *a, const struct label *b) {
    const double sides[4][2] = {
        {a->right, a->down}, {-a->down, a->right}, {b->right, b->down}, {-b->down, b->right}};
    double dx = a->x - b->x, dy = a->y - b->y;
    for (int i = 0; i < 4; i++) {
        double right = sides[i][0], down = sides[i][1];
        if (fabs(dx * right + dy * down) >= reach(a, right, down) + reach(b, right, down))
            return false;
    }
    return true;
}

/* The side of the line through two points on which a third one lies. */
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

/* The number of process lines that go through a label. */
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

/* The cost of the label here, given the first `count` labels. */
static double cost_of(const struct layout *layout, const struct label *label, size_t count) {
    double cost = COST_LINE * lines_covered(layout, label);
    double wide = label->right * label->half;
    for (size_t i = 0; i < count; i++)
        if (layout->label[i].text[0] && labels_meet(label, &layout->label[i])) cost += COST_LABEL;
    for (size_t i = 0; i < layout->round_count; i++)
        if (labels_meet(label, &layout->round[i])) cost += COST_LABEL;
    for (size_t i = 0; i < layout->arrow_count; i++)
        if (crosses(label, &layout->arrow[i])) cost += COST_ARROW;
    for (size_t i = 0; i < layout->mark_count; i++)
        if (covers(label, &layout->mark[i])) cost += COST_MARK;
    if (label->x - wide < layout->left || label->x + wide > layout->right) cost += COST_EDGE;
    return cost;
}

struct search { /* for the best position of the label number `count` */
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

/* The label at its best position, left out when even that one is bad. */
static struct label found(const struct search *search) {
    return search->best_cost < COST_LABEL ? search->best : (struct label){.text = ""};
}

/* ---- Rounds ---- */

/* The number of a round is written on its span, where there is room for it. */
static void label_rounds(struct layout *layout) {
    layout->round = layout_array(layout->span_count, sizeof *layout->round);
    for (size_t i = 0; i < layout->span_count; i++) {
        const struct span *span = &layout->span[i];
        bool numbered = span->shape == SHAPE_STANDING && span->standing.round &&
                        span->standing.now == STANDING_VALUES + 1;
        if (!numbered || span->to - span->from <= 24) continue;
        struct label *label = &layout->round[layout->round_count++];
        *label = (struct label){.x = span->from + 15, .y = span->y, .right = 1};
        snprintf(label->text, LABEL_MAX, "%u", span->standing.round);
        label->half = text_width(label->text, ROUND_SIZE) / 2.0;
    }
}

/* ---- Marks ---- */

static void describe_mark(const struct layout *layout, const struct mark *mark,
                          char text[LABEL_MAX]) {
    const struct trace *trace = layout->trace;
    const struct trace_entry *entry = &trace->entry[mark->entry];
    char peer[ROSTER_NAME_MAX], term[32] = "";
    unsigned long long arg = entry->arg;
    roster_name(&trace->roster, entry->peer, peer);
    if (entry->term) snprintf(term, sizeof term, _(" in term %u"), entry->term);
    switch (mark->shape) {
    case SHAPE_TIMER: snprintf(text, LABEL_MAX, _("timeout")); break;
    case SHAPE_CHOICE: snprintf(text, LABEL_MAX, _("draws %llu"), arg); break;
    case SHAPE_AMNESIA: snprintf(text, LABEL_MAX, _("amnesia")); break;
    case SHAPE_WRITE: snprintf(text, LABEL_MAX, _("writes, token %llu"), arg); break;
    case SHAPE_REFUSED: snprintf(text, LABEL_MAX, _("token %llu refused"), arg); break;
    case SHAPE_CAMPAIGN: snprintf(text, LABEL_MAX, _("wants an election")); break;
    case SHAPE_ELECTED: snprintf(text, LABEL_MAX, _("leads%s"), term); break;
    case SHAPE_FOLLOWS:
        if (entry->peer)
            snprintf(text, LABEL_MAX, _("follows %s%s"), peer, term);
        else
            snprintf(text, LABEL_MAX, _("knows of a leader%s"), term);
        break;
    case SHAPE_LEADERLESS: snprintf(text, LABEL_MAX, _("no leader")); break;
    case SHAPE_SUSPECT: snprintf(text, LABEL_MAX, _("suspects %s"), peer); break;
    case SHAPE_TRUST: snprintf(text, LABEL_MAX, _("trusts %s"), peer); break;
    default: text[0] = 0; break;
    }
}

/* Places a text above or below a point of a line. */
static struct search place_near(const struct layout *layout, const struct mark *mark, size_t number,
                                struct label label) {
    static const int heights[] = {-14, 17, -27, 30};
    struct search search = {layout, number, {.text = ""}, INFINITY};
    label.half = text_width(label.text, LABEL_SIZE) / 2.0;
    /* where it cannot be taken for what is said of the next line */
    for (int height = 0; height < 4 && abs(heights[height]) + 14 <= layout->distance; height++)
        for (int shift = 0; shift < 3; shift++) {
            label.x = mark->x + (shift == 0 ? label.half - 4 : shift == 1 ? 0 : 4 - label.half);
            label.y = mark->y + heights[height];
            try(&search, label, 3 * height + shift);
        }
    return search;
}

static struct label label_mark(const struct layout *layout, size_t i) {
    struct label label = {.right = 1};
    describe_mark(layout, &layout->mark[i], label.text);
    if (!label.text[0]) return label;
    struct search search = place_near(layout, &layout->mark[i], i, label);
    return found(&search);
}

/* A state gives way to everything else: it is left out rather than cover anything but a line. */
static void label_states(struct layout *layout) {
    size_t before = layout->mark_count + layout->arrow_count;
    for (size_t i = 0; i < layout->state_count; i++) {
        const struct mark *mark = &layout->state[i];
        struct label label = {.right = 1};
        snprintf(label.text, LABEL_MAX, "%s",
                 layout->trace->text + layout->trace->entry[mark->entry].note);
        struct search search = place_near(layout, mark, before + i, label);
        bool clear = search.best_cost < COST_STATE;
        layout->label[before + i] = clear ? search.best : (struct label){.text = ""};
    }
}

/* ---- Arrows ---- */

enum brevity { IN_FULL, BARE_VALUES, LIST_ONLY, NAME_ONLY };

static bool has_list(const struct trace *trace, uint16_t kind) {
    const struct cv_record *record = &trace->algorithm->messages[kind];
    for (unsigned i = 0; i < record->row_field_count; i++)
        if (record->row_fields[i].audience >= CV_SHOWN) return true;
    return false;
}

/* The letters that all names of a list begin with, if numbers follow. */
static size_t common_letters(const char *list) {
    size_t common = strcspn(list, "0123456789,]");
    for (const char *at = list; *at && *at != ']'; at += strspn(at, ", ")) {
        if (strcspn(at, "0123456789,]") != common || !strchr("0123456789", at[common]) ||
            strncmp(at, list, common) != 0)
            return 0;
        at += strcspn(at, ",]");
    }
    return common;
}

bool label_list(const char *message, char text[LABEL_MAX]) {
    const char *list = strchr(message, '[');
    size_t used = 0;
    text[0] = 0;
    if (!list || !strchr(list, ']')) return false;
    list++;
    size_t common = common_letters(list);
    for (const char *at = list; used < LABEL_MAX - 2; at += strspn(at, ", ")) {
        if (*at == ']')
            return snprintf(text + used, LABEL_MAX - used, "%s]", used ? "" : "["), true;
        size_t length = strcspn(at, ",]");
        used += (size_t)snprintf(text + used, LABEL_MAX - used, "%s%.*s", used ? "," : "[",
                                 (int)(length - common), at + common);
        at += length;
    }
    return false;
}

int layout_list_width(const struct trace *trace, const struct trace_entry *entry) {
    char message[256], text[LABEL_MAX];
    bool arrives = entry->type == TR_RECEIVE || entry->type == TR_SEND;
    if (!arrives || !has_list(trace, entry->kind)) return 0;
    trace_message(trace, entry, message, sizeof message);
    return label_list(message, text) ? text_width(text, LABEL_SIZE) + 2 * ARROW_END : 0;
}

/* "GRANT number=1 fence=7", "GRANT(1, 7)", a list alone, or "GRANT"; false when it is too long. */
static bool describe_message(const struct trace *trace, uint32_t entry, enum brevity brevity,
                             char text[LABEL_MAX]) {
    char message[256];
    trace_message(trace, &trace->entry[entry], message, sizeof message);
    char *fields = message + strcspn(message, " ");
    if (brevity == LIST_ONLY) return label_list(message, text);
    if (brevity == IN_FULL || !*fields) return snprintf(text, LABEL_MAX, "%s", message) < LABEL_MAX;
    *fields++ = 0;
    int used = snprintf(text, LABEL_MAX, "%s", message);
    const char *before = "(";
    for (char *field; brevity == BARE_VALUES && (field = strsep(&fields, " "));) {
        const char *value =
            strchr(field, '='); /* none: it continues the list of the field before */
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

/* All messages of a kind are labelled alike: as fully as all of them fit, and by their names alone
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
        for (size_t k = 0; k < kinds; k++) {
            bool list =
                has_list(layout->trace, (uint16_t)k); /* as much of it as there is room for */
            size_t bearable =
                brevity[k] == IN_FULL || (list && brevity[k] == BARE_VALUES) ? 0 : labels[k] / 2;
            if (brevity[k] == NAME_ONLY || bad[k] <= bearable) continue;
            brevity[k] = brevity[k] == BARE_VALUES && !list ? NAME_ONLY : brevity[k] + 1;
            again = true;
        }
    }
    free(brevity);
    free(labels);
    free(bad);
}

void layout_labels(struct layout *layout) {
    label_rounds(layout);
    layout->label = layout_array(layout->mark_count + layout->arrow_count + layout->state_count,
                                 sizeof *layout->label);
    for (size_t i = 0; i < layout->mark_count; i++) layout->label[i] = label_mark(layout, i);
    label_arrows(layout);
    label_states(layout);
}
