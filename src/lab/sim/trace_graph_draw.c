/* One drawing: edges, quorums, messages, processes, and who waits for whom. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/trace_graph_draw.h"

#include "base/utf8.h"
#include "language/language.h"

enum {
    ASIDE = 5,       /* pixels between the messages of both directions */
    LABELS_MAX = 80, /* messages of a drawing of which each gets a label */
    NOTE_MAX = 26,
    NAMED_MAX = 60, /* processes whose names have room */
};

struct flow { /* the messages from one process to another */
    cv_pid from, to;
    uint32_t count, entry;
    bool arrives, lost, asks;
    char text[LABEL_MAX];
};

struct drawing {
    struct graph_picture *picture;
    const struct frame *frame;
    struct graph_legend *legend;
    FILE *out;
    struct flow *flow;
    size_t flow_count;
    uint32_t *flow_of; /* by from * (nodes + 1) + to: index + 1 */
    int *colour;       /* by pid: of its messages */
    struct label *label;
    size_t label_count;
};

/* ---- Lines ---- */

struct line {
    int x1, y1, x2, y2;
};

/* From the rim of one process to that of another, aside from the line between them. */
static struct line line_between(const struct graph_picture *picture, cv_pid from, cv_pid to,
                                int aside) {
    double x1 = picture->x[from], y1 = picture->y[from];
    double dx = picture->x[to] - x1, dy = picture->y[to] - y1, length = sqrt(dx * dx + dy * dy);
    if (length < 1) length = 1;
    double right = dx / length, down = dy / length, rim = picture->radius + 2;
    x1 -= aside * down, y1 += aside * right;
    return (struct line){(int)lround(x1 + rim * right), (int)lround(y1 + rim * down),
                         (int)lround(x1 + dx - rim * right), (int)lround(y1 + dy - rim * down)};
}

static bool has_ways(const struct graph_picture *picture) {
    return !picture->trace->network.complete && record_way(picture->trace->algorithm->state);
}

/* In the same way as the edges are drawn. */
static void stand_by_edges(struct graph_picture *picture) {
    static const uint8_t standing[2][2] = {{0, 1}, {3, 2}}; /* by edges in, and out */
    const struct trace_network *network = &picture->trace->network;
    for (cv_pid p = 1; p <= picture->nodes; p++) {
        bool has[WAYS] = {false};
        uint8_t *now = &picture->standing[p].now;
        for (uint32_t i = network->offset[p]; i < network->offset[p + 1]; i++)
            if (network->neighbour[i] <= picture->nodes)
                has[graph_way(picture, p, network->neighbour[i])] = true;
        if (*now == STANDING_LEADS || *now == STANDING_FOLLOWS) continue;
        *now = has[WAY_UNKNOWN] ? STANDING_NONE
                                : (uint8_t)(STANDING_VALUES + standing[has[WAY_IN]][has[WAY_OUT]]);
    }
}

static void put_edge(const struct drawing *d, cv_pid a, cv_pid b) {
    const struct graph_picture *picture = d->picture;
    enum way way = has_ways(picture) ? graph_way(picture, a, b) : WAY_UNKNOWN;
    bool one_way = picture->trace->network.ring && picture->trace->algorithm->topology == CV_RING;
    bool directed = one_way || way == WAY_IN || way == WAY_OUT;
    struct line l = way == WAY_IN ? line_between(picture, b, a, 0) : line_between(picture, a, b, 0);
    d->legend->cut |= way == WAY_CUT;
    fprintf(d->out, "<path class=\"edge%s\"%s d=\"M%d %dL%d %d\"/>\n", way == WAY_CUT ? " cut" : "",
            directed ? " marker-end=\"url(#edge-head)\"" : "", l.x1, l.y1, l.x2, l.y2);
}

/* ---- Messages ---- */

/* Whether a value goes without saying: the first of those that have names. */
static bool is_usual(const struct cv_record *record, const char *name, size_t length,
                     const char *value) {
    for (unsigned i = 0; i < record->field_count; i++) {
        const struct cv_field *field = &record->fields[i];
        const char *known = language_name(field->name);
        char usual[ROSTER_NAME_MAX];
        if (strlen(known) != length || strncmp(known, name, length) != 0) continue;
        if (!field->values) return false;
        snprintf(usual, sizeof usual, "%.*s", (int)strcspn(field->values, "|"), field->values);
        size_t size = strlen(language_name(usual));
        return strncmp(language_name(usual), value, size) == 0 && strcspn(value, " ") == size;
    }
    return false;
}

/* The values of a message, without its round: "12", "yes, leaf". */
static void describe(const struct trace *trace, const struct trace_entry *entry,
                     char text[LABEL_MAX]) {
    const struct cv_record *record = &trace->algorithm->messages[entry->kind];
    char message[256];
    int used = 0;
    trace_message(trace, entry, message, sizeof message);
    if (record->row_size && label_list(message, text)) return;
    text[0] = 0;
    for (const char *at = message + strcspn(message, " "); *at == ' ';) {
        const char *name = ++at, *value = strchr(at, '=');
        if (!value) return;
        value++;
        at = value + (*value == '[' ? strcspn(value, "]") + 1 : strcspn(value, " "));
        size_t length = (size_t)(value - name - 1);
        if (strlen(language_name("round")) == length &&
            strncmp(name, language_name("round"), length) == 0)
            continue;
        if (used && is_usual(record, name, length, value)) continue;
        used += snprintf(text + used, (size_t)(LABEL_MAX - used), "%s%.*s", used ? ", " : "",
                         (int)(at - value), value);
        if (used >= LABEL_MAX) {
            utf8_mend(text, LABEL_MAX);
            return;
        }
    }
}

/* Whether a list, "12; 7", has a text among its parts. */
static bool has_part(const char *list, const char *text) {
    size_t length = strlen(text);
    for (const char *at = list; at; at = strstr(at, "; "), at = at ? at + 2 : NULL)
        if (strncmp(at, text, length) == 0 && (!at[length] || at[length] == ';')) return true;
    return false;
}

static void add_flow(struct drawing *d, size_t index) {
    const struct trace *trace = d->picture->trace;
    const struct trace_entry *entry = &trace->entry[index];
    uint32_t n = d->picture->nodes;
    char text[LABEL_MAX];
    if (entry->process > n || entry->peer > n) return;
    uint32_t *slot = &d->flow_of[entry->process * (n + 1) + entry->peer];
    describe(trace, entry, text);
    if (!*slot) {
        *slot = (uint32_t)++d->flow_count;
        d->flow[*slot - 1] =
            (struct flow){.from = entry->process, .to = entry->peer, .entry = (uint32_t)index};
    }
    struct flow *flow = &d->flow[*slot - 1];
    size_t used = strlen(flow->text);
    bool lost = entry->match && trace->entry[entry->match].type == TR_LOST;
    flow->count++;
    flow->lost |= lost;
    flow->arrives |= !lost;
    flow->asks |= trace->entry[entry->cause].type == TR_ASK;
    if (flow->count <= 3 && !has_part(flow->text, text))
        snprintf(flow->text + used, LABEL_MAX - used, "%s%s", used ? "; " : "", text);
    else if (flow->count == 4)
        snprintf(flow->text + used, LABEL_MAX - used, "; ...");
}

/* Whether a process asks some of the others, but not all. */
static bool asks_quorum(const struct drawing *d, cv_pid p) {
    uint32_t n = d->picture->nodes, asked = 0;
    if (!d->picture->trace->network.complete || d->picture->trace->roster.servers) return false;
    for (cv_pid q = 1; q <= n; q++) {
        uint32_t flow = d->flow_of[p * (n + 1) + q];
        asked += flow && d->flow[flow - 1].asks;
    }
    return asked >= 2 && asked + 1 < n;
}

/* Messages of a kind have a colour; where quorums are drawn, each has its own. */
static void find_flows(struct drawing *d) {
    const struct graph_picture *picture = d->picture;
    if (d->frame->still) return;
    const struct stage *stage = &picture->stage[d->frame->stage - 1];
    int quorums = 0;
    for (size_t i = stage->first; i < picture->trace->count; i++)
        if (picture->stage_of[i] == d->frame->stage) add_flow(d, i);
    for (cv_pid p = 1; p <= picture->nodes; p++)
        d->colour[p] = (asks_quorum(d, p) ? quorums++ : stage->kind) % SVG_COLOURS;
}

/* A message that meets another, or goes against its edge, has a line of its own. */
static int aside_of(const struct drawing *d, const struct flow *flow) {
    bool against = has_ways(d->picture) && graph_way(d->picture, flow->from, flow->to) == WAY_IN;
    return against || d->flow_of[flow->to * (d->picture->nodes + 1) + flow->from] ? ASIDE : 0;
}

static void put_flow(const struct drawing *d, const struct flow *flow) {
    const struct trace *trace = d->picture->trace;
    struct line l = line_between(d->picture, flow->from, flow->to, aside_of(d, flow));
    char message[256];
    int colour = d->colour[flow->from];
    fputs("<g><title>", d->out);
    svg_name(d->out, trace, flow->from);
    fputs(_(" to "), d->out);
    svg_name(d->out, trace, flow->to);
    fputs(": ", d->out);
    svg_text(d->out, trace_message(trace, &trace->entry[flow->entry], message, sizeof message),
             sizeof message);
    if (flow->count > 1) fprintf(d->out, _(" and %u more"), flow->count - 1);
    fputs("</title>", d->out);
    d->legend->message |= flow->arrives;
    d->legend->lost |= flow->lost;
    if (flow->arrives)
        fprintf(d->out,
                "<path class=\"message\" stroke=\"%s\" marker-end=\"url(#head%d)\""
                " d=\"M%d %dL%d %d\"/>",
                svg_colours[colour], colour, l.x1, l.y1, l.x2, l.y2);
    if (flow->lost) {
        int x = l.x1 + (l.x2 - l.x1) * 17 / 20, y = l.y1 + (l.y2 - l.y1) * 17 / 20;
        if (!flow->arrives)
            fprintf(d->out, "<path class=\"lost\" d=\"M%d %dL%d %d\"/>", l.x1, l.y1, x, y);
        fprintf(d->out, "<use xlink:href=\"#cross\" x=\"%d\" y=\"%d\"/>", x, y);
    }
    fputs("</g>\n", d->out);
}

/* ---- Labels of messages ---- */

static bool covers(const struct label *label, double x, double y, double wide, double high) {
    return fabs(label->x - x) < label->half + wide && fabs(label->y - y) < high;
}

/* Whether it hides where a message begins or ends. */
static bool covers_ends(const struct drawing *d, const struct label *label) {
    for (size_t i = 0; i < d->flow_count; i++) {
        const struct flow *flow = &d->flow[i];
        struct line l = line_between(d->picture, flow->from, flow->to, aside_of(d, flow));
        if (covers(label, l.x1, l.y1, 2, 7) || covers(label, l.x2, l.y2, 6, 10)) return true;
    }
    return false;
}

/* Whether a label of a message lies on others, on a process, or beyond the drawing. */
static bool clashes(const struct drawing *d, const struct label *label) {
    const struct graph_picture *picture = d->picture;
    for (size_t i = 0; i < d->label_count; i++)
        if (covers(label, d->label[i].x, d->label[i].y, d->label[i].half + 3, 12)) return true;
    for (cv_pid p = 1; p <= picture->nodes; p++)
        if (covers(label, picture->x[p], picture->y[p], picture->radius + 4, picture->radius + 7))
            return true;
    return label->x < label->half || label->x > picture->size - label->half;
}

/* Whether every process says nothing but its own id. */
static bool only_ids(const struct drawing *d) {
    const struct trace *trace = d->picture->trace;
    char id[32];
    if (!trace->network.ids || trace->network.ring) return false;
    for (size_t i = 0; i < d->flow_count; i++) {
        snprintf(
            id, sizeof id, "%llu",
            (unsigned long long)roster_id(&trace->roster, trace->network.ids[d->flow[i].from]));
        if (strcmp(d->flow[i].text, id) != 0) return false;
    }
    return true;
}

/* Writes a label at an arrow, if it has room there.  It may be forced to hide the end of another.
 */
static bool label_arrow(struct drawing *d, const struct flow *flow, int length, bool forced) {
    static const double along[] = {0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78};
    enum { PLACES = 14 };
    struct line l = line_between(d->picture, flow->from, flow->to, aside_of(d, flow));
    double dx = l.x2 - l.x1, dy = l.y2 - l.y1, long_by = sqrt(dx * dx + dy * dy);
    struct label label = {.text = ""};
    snprintf(label.text, sizeof label.text, "%.*s%s", length, flow->text,
             strchr(flow->text + length, ';') ? "; ..." : "");
    label.half = text_width(label.text, 10) / 2.0;
    for (int i = 0; i < PLACES && long_by >= 1; i++) {
        double part = along[i / 2], beside = i % 2 ? -1 : 1;
        /* a flat arrow's label is above or below it, a steep one's beside it */
        double away = 8 + fabs(dy / long_by) * label.half * 0.8;
        label.x = l.x1 + part * dx - beside * away * dy / long_by;
        label.y = l.y1 + part * dy + beside * away * dx / long_by;
        if (clashes(d, &label) || (!forced && covers_ends(d, &label))) continue;
        d->label[d->label_count++] = label;
        fprintf(d->out,
                "<text class=\"small\" style=\"font-size:10px;fill:%s\" x=\"%ld\" y=\"%ld\">",
                flow->arrives ? svg_colours[d->colour[flow->from]] : "#b91c1c", lround(label.x),
                lround(label.y) + 4);
        svg_text(d->out, label.text, LABEL_MAX);
        fputs("</text>\n", d->out);
        return true;
    }
    return false;
}

/* Its values, or only the first; the tooltip has what there is no room for. */
static void label_flow(struct drawing *d, const struct flow *flow) {
    const char *comma = strstr(flow->text, ", ");
    int all = (int)strlen(flow->text), first = comma ? (int)(comma - flow->text) : all;
    bool done = !all;
    for (int forced = 0; forced < 2 && !done; forced++)
        done = label_arrow(d, flow, all, forced) || label_arrow(d, flow, first, forced);
}

/* ---- Quorums ---- */

/* The processes that one asks, with itself, as an area: on a circle the order of the places is that
 * of the corners. */
static void put_quorum(const struct drawing *d, cv_pid p) {
    const struct graph_picture *picture = d->picture;
    uint32_t n = picture->nodes;
    const char *colour = svg_colours[d->colour[p]];
    fprintf(d->out, "<path class=\"quorum\" fill=\"%s\" stroke=\"%s\" stroke-width=\"%d\" d=\"",
            colour, colour, 2);
    const char *command = "M";
    for (cv_pid q = 1; q <= n; q++) {
        if (q != p && !d->flow_of[p * (n + 1) + q]) continue;
        fprintf(d->out, "%s%d %d", command, picture->x[q], picture->y[q]);
        command = "L";
    }
    fputs("Z\"/>\n", d->out);
    d->legend->quorum = true;
}

/* ---- Processes ---- */

static const char *fill_of(const struct drawing *d, cv_pid p, bool together) {
    const struct look *look = &d->picture->look[p];
    const struct standing *standing = &d->picture->standing[p];
    struct graph_legend *legend = d->legend;
    if (look->down) return legend->down = true, "#e2e8f0";
    legend->together |= look->inside && together;
    legend->inside |= look->inside && !together;
    legend->waiting |= look->waiting;
    if (look->inside) return together ? COLOUR_TOGETHER : COLOUR_INSIDE;
    if (look->waiting) return COLOUR_WAITING;
    if (d->picture->trace->algorithm->problem != CV_ELECTION) return "#ffffff";
    legend->standing[standing->now] = true;
    return standing_colour(standing->now, standing->round);
}

static void put_process(const struct drawing *d, cv_pid p, bool together) {
    const struct graph_picture *picture = d->picture;
    const struct look *look = &picture->look[p];
    int x = picture->x[p], y = picture->y[p], r = picture->radius;
    fputs("<g><title>", d->out);
    svg_name(d->out, picture->trace, p);
    if (look->note) {
        fputs(": ", d->out);
        svg_text(d->out, picture->trace->text + look->note, SVG_TEXT_MAX);
    }
    bool leads = picture->standing[p].now == STANDING_LEADS && !look->down;
    fprintf(d->out, "</title><circle class=\"node%s\" cx=\"%d\" cy=\"%d\" r=\"%d\" fill=\"%s\"/>",
            look->down ? " dead" : "", x, y, r, fill_of(d, p, together));
    if (look->paused)
        fprintf(d->out, "<circle cx=\"%d\" cy=\"%d\" r=\"%d\" fill=\"url(#hatching)\"/>", x, y, r);
    d->legend->paused |= look->paused;
    fputs("</g>", d->out);
    if (leads) fprintf(d->out, "<use xlink:href=\"#elected\" x=\"%d\" y=\"%d\"/>", x, y - r - 4);
}

/* Where lines cross least: above a process in the upper half, and above a branch of a tree. */
static bool writes_above(const struct graph_picture *picture, cv_pid p) {
    const cv_pid *toward = picture->trace->network.toward;
    int lowest = 0;
    for (cv_pid q = 1; q <= picture->nodes; q++)
        if (picture->y[q] > lowest) lowest = picture->y[q];
    return toward ? picture->y[p] < lowest : picture->y[p] < picture->size / 2 - 4;
}

/* A line of words at a process, within the drawing. */
static struct label line_at(const struct drawing *d, cv_pid p, int y, const char *text) {
    struct label label = {.x = d->picture->x[p], .y = y - 3, .half = text_width(text, 9) / 2.0 + 2};
    if (label.x < label.half + 2) label.x = label.half + 2;
    if (label.x > d->picture->size - label.half - 2) label.x = d->picture->size - label.half - 2;
    return label;
}

/* Where a line of words is clear of the caption. */
static int highest_line(const struct drawing *d) {
    return d->frame->folded || d->frame->split ? 17 : 6;
}

/* Whether a line of words lies on others, on another process, or where it would be taken for what
 * is said of that. */
static bool covers_others(const struct drawing *d, cv_pid p, const struct label *label) {
    const struct graph_picture *picture = d->picture;
    if (label->y + 3 < highest_line(d)) return true;
    for (size_t i = 0; i < d->label_count; i++)
        if (covers(label, d->label[i].x, d->label[i].y, d->label[i].half, 10)) return true;
    for (cv_pid q = 1; q <= picture->nodes; q++)
        if (q != p &&
            (covers(label, picture->x[q], picture->y[q], picture->radius, picture->radius + 4) ||
             covers(label, picture->x[q], picture->y[q], -4, picture->radius + 16)))
            return true;
    return false;
}

static void put_line(struct drawing *d, const struct label *label, const char *text) {
    svg_label(d->out, "note", (int)label->x, (int)label->y + 3, text);
    d->label[d->label_count++] = *label;
}

/* Writes what a process is called, where its circle has no room for that, and what else is to be
 * said of it: on the other side if that covers less there.  A line that would cover other words or
 * processes on both sides is left to the tooltip. */
static void put_lines(struct drawing *d, cv_pid p, bool crown, const char *name,
                      const char *words) {
    enum { LINE = 11, CROWN = 12 };
    int y = d->picture->y[p], r = d->picture->radius;
    int above = y - r - 4 - (crown ? CROWN : 0), below = y + r + LINE;
    int top = above - (*name && *words ? LINE : 0);
    bool up = writes_above(d->picture, p) && top >= highest_line(d);
    int beyond = !*name ? 0 : up ? -LINE : LINE; /* the one that is further from the circle */
    struct label called = line_at(d, p, up ? above + (*words ? beyond : 0) : below, name);
    struct label here = line_at(d, p, up ? above : below + beyond, words);
    struct label there = line_at(d, p, up ? below : above, words);
    if (*name && !covers_others(d, p, &called)) put_line(d, &called, name);
    if (!*words) return;
    bool fits_here = !covers_others(d, p, &here);
    if (fits_here && !covers_ends(d, &here))
        put_line(d, &here, words);
    else if (!covers_others(d, p, &there) && !covers_ends(d, &there))
        put_line(d, &there, words);
    else if (fits_here)
        put_line(d, &here, words);
}

/* A state that says no more than "here=no" is not worth a line. */
static bool is_telling(const char *note) {
    const char *value = strchr(note, '=');
    bool no = value && strcmp(value + 1, language_name("no")) == 0;
    return strlen(note) <= NOTE_MAX && !no;
}

/* Its name, and its id, when the name does not have that, or its state. */
static void put_words(struct drawing *d, cv_pid p) {
    const struct trace *trace = d->picture->trace;
    const struct look *look = &d->picture->look[p];
    bool crown = d->picture->standing[p].now == STANDING_LEADS && !look->down;
    char name[ROSTER_NAME_MAX], id[32] = "";
    const char *words = id;
    roster_name(&trace->roster, p, name);
    if (trace->network.ids && !(trace->algorithm->traits & CV_ANONYMOUS)) {
        snprintf(id, sizeof id, _("id %llu"),
                 (unsigned long long)roster_id(&trace->roster, trace->network.ids[p]));
        if (strstr(name, id + 3)) id[0] = 0;
    } else if (look->note && is_telling(trace->text + look->note) && d->picture->nodes <= 12) {
        words = trace->text + look->note;
    }
    bool fits = text_width(name, 11) <= 2 * d->picture->radius - 6;
    if (fits) svg_label(d->out, "inner", d->picture->x[p], d->picture->y[p] + 4, name);
    put_lines(d, p, crown, fits ? "" : name, words);
}

/* ---- The end ---- */

static void put_waits(const struct drawing *d) {
    const struct trace *trace = d->picture->trace;
    if (d->frame->stage) return;
    for (size_t i = 0; i < trace->wait_count; i++) {
        const struct trace_wait *wait = &trace->wait[i];
        if (wait->who > d->picture->nodes || wait->whom > d->picture->nodes) continue;
        struct line l = line_between(d->picture, wait->who, wait->whom, ASIDE);
        int x = (l.x1 + l.x2) / 2 - (l.y2 - l.y1) / 4, y = (l.y1 + l.y2) / 2 + (l.x2 - l.x1) / 4;
        fputs("<g><title>", d->out);
        svg_wait(d->out, trace, wait);
        fprintf(d->out,
                "</title><path class=\"waits-for\" marker-end=\"url(#waits-head)\""
                " d=\"M%d %dQ%d %d %d %d\"/></g>\n",
                l.x1, l.y1, x, y, l.x2, l.y2);
        d->legend->waits = true;
    }
}

void graph_draw(struct graph_picture *picture, const struct frame *frame,
                struct graph_legend *legend, FILE *out) {
    size_t n = picture->nodes, inside = 0;
    struct drawing d = {.picture = picture, .frame = frame, .legend = legend, .out = out};
    d.flow = layout_array(n * n, sizeof *d.flow);
    d.flow_of = layout_array((n + 1) * (n + 1), sizeof *d.flow_of);
    d.colour = layout_array(n, sizeof *d.colour);
    d.label = layout_array(2 * NAMED_MAX + LABELS_MAX, sizeof *d.label);
    graph_look(picture, frame);
    if (has_ways(picture)) stand_by_edges(picture);
    find_flows(&d);
    for (cv_pid p = 1; p <= n; p++) inside += picture->look[p].inside;
    for (cv_pid p = 1; p <= n; p++)
        if (asks_quorum(&d, p)) put_quorum(&d, p);
    for (size_t i = 0; i < picture->edge_count; i++)
        put_edge(&d, picture->edge[i][0], picture->edge[i][1]);
    for (size_t i = 0; i < d.flow_count; i++) put_flow(&d, &d.flow[i]);
    put_waits(&d);
    for (cv_pid p = 1; p <= n; p++) put_process(&d, p, inside > 1);
    for (cv_pid p = 1; p <= n && n <= NAMED_MAX; p++) put_words(&d, p);
    for (size_t i = 0; i < d.flow_count && d.flow_count <= LABELS_MAX && !only_ids(&d); i++)
        label_flow(&d, &d.flow[i]);
    free(d.flow);
    free(d.flow_of);
    free(d.colour);
    free(d.label);
}
