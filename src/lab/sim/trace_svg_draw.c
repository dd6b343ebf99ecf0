/* Drawing a space-time diagram: lines, spans and marks on them, and messages between them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/trace_svg.h"
#include "language/language.h"

/* Red is reserved for violations. */
const char *const svg_colours[SVG_COLOURS] = {"#1d4ed8", "#15803d", "#7c3aed",
                                              "#a16207", "#0e7490", "#475569"};

/* ---- Lines and spans ---- */

static void put_bar(FILE *out, const char *class, int y, int height, int from, int to) {
    fprintf(out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", class, from,
            y - height / 2, to - from < 4 ? 4 : to - from, height);
}

static void put_bands(const struct layout *layout, FILE *out) {
    int top = layout->top - BAND_ABOVE, height = layout->bottom - top + BAND_ABOVE;
    for (size_t i = 0; i < layout->span_count; i++) {
        const struct span *span = &layout->span[i];
        if (span->shape >= SHAPE_OVERLAP)
            put_bar(out, span->shape == SHAPE_SPLIT ? "partition" : "overlap", top + height / 2,
                    height, span->from, span->to);
    }
}

static void put_lines(const struct layout *layout, FILE *out) {
    for (cv_pid p = 1; p <= layout->trace->roster.processes; p++) {
        if (!layout->y[p]) continue;
        fprintf(out, "<text class=\"name\" x=\"%d\" y=\"%d\">", layout->left - 10,
                layout->y[p] + 5);
        svg_name(out, layout->trace, p);
        fprintf(out, "</text><path class=\"line\" d=\"M%d %dH%d\"/>\n", layout->left, layout->y[p],
                layout->right);
    }
}

/* A stay inside, or a leadership; the part of it that overlaps another is drawn over it in red. */
static void put_stay(const struct layout *layout, const struct span *stay, FILE *out) {
    bool leads = stay->shape == SHAPE_LEADS;
    int height = leads ? 10 : 14;
    put_bar(out, leads ? "leads" : "inside", stay->y, height, stay->from, stay->to);
    for (size_t i = 0; i < layout->span_count; i++) {
        const struct span *overlap = &layout->span[i];
        if (overlap->shape != (leads ? SHAPE_RIVALS : SHAPE_OVERLAP)) continue;
        int from = stay->from > overlap->from ? stay->from : overlap->from;
        int to = stay->to < overlap->to ? stay->to : overlap->to;
        if (overlap->term == stay->term && from < to)
            put_bar(out, "both", stay->y, height, from, to);
    }
}

static void put_standing(const struct span *span, FILE *out) {
    enum { HEIGHT = 10 };
    fprintf(out,
            "<rect class=\"standing\" fill=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
            standing_colour(span->standing.now, span->standing.round), span->from,
            span->y - HEIGHT / 2, span->to - span->from, HEIGHT);
}

/* A pause is drawn over the span that it interrupts. */
static void put_spans(const struct layout *layout, FILE *out) {
    for (size_t i = 0; i < layout->span_count; i++) {
        const struct span *span = &layout->span[i];
        if (span->shape == SHAPE_STANDING) put_standing(span, out);
        if (span->shape == SHAPE_WAITING) put_bar(out, "waiting", span->y, 6, span->from, span->to);
        if (span->shape == SHAPE_LEADS || span->shape == SHAPE_INSIDE) put_stay(layout, span, out);
        if (span->shape == SHAPE_DOWN)
            fprintf(
                out,
                "<path class=\"blank\" d=\"M%d %dH%d\"/><path class=\"down\" d=\"M%d %dH%d\"/>\n",
                span->from, span->y, span->to, span->from, span->y, span->to);
    }
    for (size_t i = 0; i < layout->span_count; i++)
        if (layout->span[i].shape == SHAPE_PAUSED)
            put_bar(out, "paused", layout->span[i].y, 8, layout->span[i].from, layout->span[i].to);
}

/* ---- Arrows and marks ---- */

/* The tooltip of an arrow: the whole message, and the state of the receiver after it. */
static void put_story(const struct layout *layout, const struct trace_entry *entry, FILE *out) {
    char message[256];
    bool sent = entry->type == TR_SEND;
    fputs("<title>", out);
    svg_name(out, layout->trace, sent ? entry->process : entry->peer);
    fputs(_(" to "), out);
    svg_name(out, layout->trace, sent ? entry->peer : entry->process);
    fputs(": ", out);
    svg_text(out, trace_message(layout->trace, entry, message, sizeof message), sizeof message);
    if (entry->note) {
        fputs(_("; then "), out);
        svg_text(out, layout->trace->text + entry->note, SVG_TEXT_MAX);
    }
    fputs("</title>", out);
}

static void put_arrow(const struct layout *layout, const struct arrow *arrow, FILE *out) {
    const struct trace_entry *entry = &layout->trace->entry[arrow->entry];
    int colour = entry->kind % SVG_COLOURS;
    fputs("<g>", out);
    put_story(layout, entry, out);
    if (arrow->shape == SHAPE_REPEATED)
        fprintf(out, "<path class=\"repeated\" stroke=\"%s\" d=\"M%d %dV%d\"/>",
                entry->type == TR_LOST ? "#dc2626" : svg_colours[colour], arrow->x1, arrow->y1,
                arrow->y2);
    else if (arrow->shape == SHAPE_LOST)
        fprintf(out,
                "<path class=\"lost\" d=\"M%d %dL%d %d\"/>"
                "<use xlink:href=\"#cross\" x=\"%d\" y=\"%d\"/>",
                arrow->x1, arrow->y1, arrow->x2, arrow->y2, arrow->x2, arrow->y2);
    else
        fprintf(out,
                "<path class=\"message%s\" stroke=\"%s\" marker-end=\"url(#head%d)\""
                " d=\"M%d %dL%d %d\"/>",
                arrow->shape == SHAPE_UNDER_WAY ? " under-way" : "", svg_colours[colour], colour,
                arrow->x1, arrow->y1, arrow->x2, arrow->y2);
    fputs("</g>\n", out);
}

static void put_label_along(const struct label *label, const char *colour, FILE *out) {
    if (!label->text[0]) return;
    int degrees = (int)lround(atan2(label->down, label->right) * 180 / M_PI);
    fprintf(out,
            "<text class=\"small\" style=\"fill:%s\" transform=\"translate(%ld %ld) rotate(%d)\" "
            "y=\"4\">",
            colour, lround(label->x), lround(label->y), degrees);
    svg_text(out, label->text, LABEL_MAX);
    fputs("</text>\n", out);
}

static void put_marks(const struct layout *layout, FILE *out) {
    static const char *const names[SHAPES] = {
        [SHAPE_CRASH] = "crash",     [SHAPE_SAVED] = "saved",           [SHAPE_AMNESIA] = "amnesia",
        [SHAPE_TIMER] = "timer",     [SHAPE_CHOICE] = "choice",         [SHAPE_WRITE] = "write",
        [SHAPE_REFUSED] = "refused", [SHAPE_CAMPAIGN] = "campaign",     [SHAPE_ELECTED] = "elected",
        [SHAPE_FOLLOWS] = "follows", [SHAPE_LEADERLESS] = "leaderless", [SHAPE_SUSPECT] = "suspect",
        [SHAPE_TRUST] = "trust"};
    for (size_t i = 0; i < layout->mark_count; i++) {
        const struct mark *mark = &layout->mark[i];
        const struct trace_entry *entry = &layout->trace->entry[mark->entry];
        uint32_t note = entry->note ? entry->note : layout->trace->entry[entry->cause].note;
        fputs(note ? "<g><title>" : "", out);
        if (note) svg_name(out, layout->trace, entry->process), fputs(": ", out);
        if (note) svg_text(out, layout->trace->text + note, SVG_TEXT_MAX);
        fprintf(out, "%s<use xlink:href=\"#%s\" x=\"%d\" y=\"%d\"/>%s\n", note ? "</title>" : "",
                names[mark->shape], mark->x, mark->y, note ? "</g>" : "");
    }
}

static void put_labels(const struct layout *layout, FILE *out) {
    for (size_t i = 0; i < layout->round_count; i++) {
        const struct label *label = &layout->round[i];
        svg_label(out, "round", (int)label->x, (int)label->y + 3, label->text);
    }
    for (size_t i = 0; i < layout->mark_count; i++)
        put_label_along(&layout->label[i],
                        layout->mark[i].shape == SHAPE_REFUSED ? "#b91c1c" : "#334155", out);
    for (size_t i = 0; i < layout->arrow_count; i++) {
        const struct arrow *arrow = &layout->arrow[i];
        uint16_t kind = layout->trace->entry[arrow->entry].kind;
        put_label_along(&layout->label[layout->mark_count + i],
                        arrow->shape == SHAPE_LOST ? "#b91c1c" : svg_colours[kind % SVG_COLOURS],
                        out);
    }
    for (size_t i = 0; i < layout->state_count; i++)
        put_label_along(&layout->label[layout->mark_count + layout->arrow_count + i], "#64748b",
                        out);
}

/* ---- Deadlock ---- */

void svg_wait(FILE *out, const struct trace *trace, const struct trace_wait *wait) {
    svg_name(out, trace, wait->who);
    fputs(_(" waits for "), out);
    svg_name(out, trace, wait->whom);
    if (!wait->at) return;
    fputs(_(" at "), out);
    svg_name(out, trace, wait->at);
}

/* How far below its line a wait ends at a process: all that end there do so apart, those that go up
 * above those that go down, and the longer ones around the shorter. */
static int wait_aside(const struct layout *layout, cv_pid p, size_t index) {
    enum { APART = 7, ROOM = 18 };
    const struct trace *trace = layout->trace;
    const struct trace_wait *this = &trace->wait[index];
    int ends = 0, above = 0, there = layout->y[this->who == p ? this->whom : this->who];
    bool up = there < layout->y[p];
    for (size_t i = 0; i < trace->wait_count; i++) {
        const struct trace_wait *wait = &trace->wait[i];
        if (wait->who != p && wait->whom != p) continue;
        int y = layout->y[wait->who == p ? wait->whom : wait->who];
        ends++;
        bool goes_up = y < layout->y[p];
        above += goes_up != up ? goes_up : y > there || (y == there && i < index);
    }
    int apart = ends * APART < ROOM ? APART : ROOM / ends;
    return above * apart - (ends - 1) * apart / 2;
}

/* The waits curve after the ends of the lines, the longest outermost. */
int svg_waits(const struct layout *layout, FILE *out) {
    const struct trace *trace = layout->trace;
    int widest = 0;
    if (layout->page < layout->pages) return 0;
    for (size_t i = 0; i < trace->wait_count; i++) {
        const struct trace_wait *wait = &trace->wait[i];
        int from = layout->y[wait->who], to = layout->y[wait->whom], x = layout->right + 4;
        int lines = abs(to - from) / layout->distance;
        int out_by = (to > from ? 36 : 28) + 16 * (lines < 12 ? lines : 12);
        if (out_by > widest) widest = out_by;
        if (!out) continue;
        from += wait_aside(layout, wait->who, i), to += wait_aside(layout, wait->whom, i);
        fputs("<g><title>", out);
        svg_wait(out, trace, wait);
        fprintf(out,
                "</title><path class=\"waits-for\" marker-end=\"url(#waits-head)\""
                " d=\"M%d %dC%d %d %d %d %d %d\"/></g>\n",
                x, from, x + out_by, from, x + out_by, to, x, to);
    }
    return widest;
}

void svg_parts(const struct layout *layout, FILE *out) {
    put_bands(layout, out);
    put_lines(layout, out);
    put_spans(layout, out);
    for (size_t i = 0; i < layout->arrow_count; i++) put_arrow(layout, &layout->arrow[i], out);
    put_marks(layout, out);
    put_labels(layout, out);
}
