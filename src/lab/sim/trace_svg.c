/* A trace as a space-time diagram in SVG.
 *
 * Positions are whole pixels, so the same trace makes the same bytes everywhere. */
#include "lab/sim/trace_svg.h"
#include "base/parse.h"
#include "language/language.h"

enum {
    WIDTH_MIN = 560,   /* for titles and legends of short runs */
    LEGEND_BELOW = 52, /* pixels from the axis to the legend */
    LEGEND_LINE = 22,
    TICK_PIXELS = 80, /* from one number on the axis to the next, at least */
};

/* ---- The shapes ---- */

static const char style[] =
    "text { font: 11px 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; fill: #334155; }\n"
    "text.title { font-size: 18px; font-weight: bold; fill: #0f172a; }\n"
    "text.name { font-size: 14px; text-anchor: end; fill: #0f172a; }\n"
    "text.small { text-anchor: middle; paint-order: stroke; stroke: #fff; stroke-width: 3px;"
    " stroke-linejoin: round; }\n"
    "text.number { font-size: 11px; text-anchor: middle; }\n"
    "text.legend, text.unit { font-size: 11px; }\n"
    "text.wrong { font-size: 12px; font-weight: bold; text-anchor: middle; fill: #b91c1c; }\n"
    "text.caption { font-size: 13px; font-weight: bold; fill: #0f172a; }\n"
    "text.inner { text-anchor: middle; fill: #0f172a; }\n"
    "text.note { font-size: 9px; text-anchor: middle; fill: #64748b; paint-order: stroke;"
    " stroke: #fff; stroke-width: 3px; stroke-linejoin: round; }\n"
    "text.verdict { fill: #b91c1c; font-weight: bold; }\n"
    "text.round { font-size: 9px; text-anchor: middle; fill: #14532d; }\n"
    ".standing { stroke: #94a3b8; stroke-width: 0.6; }\n"
    "text.split { font-size: 12px; text-anchor: middle; fill: #6d28d9; }\n"
    ".line { stroke: #64748b; stroke-width: 1.5; }\n"
    ".axis { stroke: #94a3b8; }\n"
    ".grid { stroke: #f1f5f9; }\n"
    ".waiting { fill: #fcd34d; }\n"
    ".inside { fill: #16a34a; }\n"
    ".leads { fill: #3b82f6; }\n"
    ".both { fill: #dc2626; }\n"
    ".overlap { fill: #dc2626; fill-opacity: 0.13; }\n"
    ".partition { fill: #8b5cf6; fill-opacity: 0.10; stroke: #8b5cf6; stroke-dasharray: 5 4; }\n"
    ".down { stroke: #cbd5e1; stroke-width: 2; stroke-dasharray: 5 5; }\n"
    ".blank { stroke: #fff; stroke-width: 4; }\n"
    ".paused { fill: url(#hatching); stroke: #64748b; stroke-width: 0.6; }\n"
    ".message { fill: none; stroke-width: 1.4; }\n"
    ".under-way { stroke-dasharray: 1.5 3.5; }\n"
    ".repeated { fill: none; stroke-opacity: 0.45; }\n"
    ".lost { fill: none; stroke: #dc2626; stroke-opacity: 0.75; stroke-dasharray: 5 3; }\n"
    ".waits-for { fill: none; stroke: #dc2626; stroke-width: 2; }\n"
    ".node { stroke: #334155; stroke-width: 1.5; }\n"
    ".dead { fill: #e2e8f0; stroke: #94a3b8; stroke-dasharray: 3 3; }\n"
    ".edge { fill: none; stroke: #94a3b8; stroke-width: 1.5; }\n"
    ".cut { stroke: #cbd5e1; stroke-dasharray: 3 4; }\n"
    ".quorum { fill-opacity: 0.10; stroke-opacity: 0.5; stroke-linejoin: round; }\n"
    ".frame { fill: none; stroke: #e2e8f0; }\n"
    ".violation { stroke: #dc2626; stroke-width: 1.5; stroke-dasharray: 6 3; }\n"
    ".cross { fill: none; stroke: #dc2626; stroke-width: 2; }\n";

static const char shapes[] =
    "<pattern id=\"hatching\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\""
    " patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"#fff\""
    " fill-opacity=\"0.55\"/><path d=\"M0 0V5\" stroke=\"#64748b\" stroke-width=\"2\"/></pattern>\n"
    "<g id=\"crash\"><path d=\"M-7 -7L7 7M-7 7L7 -7\" stroke=\"#fff\" stroke-width=\"6\"/>"
    "<path d=\"M-7 -7L7 7M-7 7L7 -7\" stroke=\"#0f172a\" stroke-width=\"3\"/></g>\n"
    "<circle id=\"saved\" r=\"5.5\" fill=\"#0f172a\" stroke=\"#0f172a\" stroke-width=\"2\"/>\n"
    "<circle id=\"amnesia\" r=\"5.5\" fill=\"#fff\" stroke=\"#0f172a\" stroke-width=\"2\"/>\n"
    "<g id=\"timer\"><circle r=\"6.5\" fill=\"#fff\" stroke=\"#c2410c\" stroke-width=\"1.6\"/>"
    "<path d=\"M0 -4.5V0L3 2\" fill=\"none\" stroke=\"#c2410c\" stroke-width=\"1.4\"/></g>\n"
    "<path id=\"choice\" d=\"M0 -6L6 0L0 6L-6 0Z\" fill=\"#fff\" stroke=\"#0e7490\""
    " stroke-width=\"1.6\"/>\n"
    "<circle id=\"write\" r=\"3.5\" fill=\"#fff\" stroke=\"#14532d\" stroke-width=\"1.6\"/>\n"
    "<g id=\"refused\"><circle r=\"6\" fill=\"#fff\" stroke=\"#dc2626\" stroke-width=\"2\"/>"
    "<path d=\"M-4 4L4 -4\" stroke=\"#dc2626\" stroke-width=\"2\"/></g>\n"
    "<path id=\"campaign\" d=\"M0 0V-9H8L6 -6.5L8 -4H0\" fill=\"#fde68a\" stroke=\"#92400e\""
    " stroke-width=\"1.4\"/>\n"
    "<path id=\"elected\" d=\"M-7 5L-8 -5L-3.5 -1L0 -7L3.5 -1L8 -5L7 5Z\" fill=\"#fbbf24\""
    " stroke=\"#92400e\" stroke-width=\"1.2\"/>\n"
    "<circle id=\"follows\" r=\"3.5\" fill=\"#3b82f6\" stroke=\"#fff\"/>\n"
    "<circle id=\"leaderless\" r=\"3.5\" fill=\"#fff\" stroke=\"#3b82f6\" stroke-width=\"1.6\"/>\n"
    "<path id=\"suspect\" d=\"M0 -6L6 5H-6Z\" fill=\"#fff\" stroke=\"#b45309\""
    " stroke-width=\"1.6\"/>\n"
    "<path id=\"trust\" d=\"M0 6L6 -5H-6Z\" fill=\"#fff\" stroke=\"#15803d\""
    " stroke-width=\"1.6\"/>\n"
    "<path id=\"cross\" class=\"cross\" d=\"M-4 -4L4 4M-4 4L4 -4\"/>\n";

/* The sample of each shape in the legend, around (0, 0), and its caption. */
static const struct {
    const char *sample, *text;
} legend[SHAPES] = {
    [SHAPE_WAITING] = {"<rect class=\"waiting\" x=\"-12\" y=\"-3\" width=\"24\" height=\"6\"/>",
                       N_("waits")},
    [SHAPE_INSIDE] = {"<rect class=\"inside\" x=\"-12\" y=\"-6\" width=\"24\" height=\"12\"/>",
                      N_("inside")},
    [SHAPE_OVERLAP] = {"<rect class=\"both\" x=\"-12\" y=\"-6\" width=\"24\" height=\"12\"/>",
                       N_("inside with another")},
    [SHAPE_RIVALS] = {"<rect class=\"both\" x=\"-12\" y=\"-5\" width=\"24\" height=\"10\"/>",
                      N_("leads beside another")},
    [SHAPE_LEADS] = {"<rect class=\"leads\" x=\"-12\" y=\"-5\" width=\"24\" height=\"10\"/>",
                     N_("leads")},
    [SHAPE_DOWN] = {"<path class=\"down\" d=\"M-12 0H12\"/>", N_("is down")},
    [SHAPE_PAUSED] = {"<rect class=\"paused\" x=\"-12\" y=\"-4\" width=\"24\" height=\"8\"/>",
                      N_("pauses")},
    [SHAPE_SPLIT] = {"<rect class=\"partition\" x=\"-12\" y=\"-7\" width=\"24\" height=\"14\"/>",
                     N_("the network is split")},
    [SHAPE_CRASH] = {"<use xlink:href=\"#crash\"/>", N_("crashes")},
    [SHAPE_SAVED] = {"<use xlink:href=\"#saved\"/>", N_("is back with what it had saved")},
    [SHAPE_AMNESIA] = {"<use xlink:href=\"#amnesia\"/>", N_("is back, has forgotten everything")},
    [SHAPE_TIMER] = {"<use xlink:href=\"#timer\"/>", N_("timer runs out")},
    [SHAPE_CHOICE] = {"<use xlink:href=\"#choice\"/>", N_("draws a number")},
    [SHAPE_WRITE] = {"<use xlink:href=\"#write\"/>", N_("writes with its fencing token")},
    [SHAPE_REFUSED] = {"<use xlink:href=\"#refused\"/>", N_("the resource refuses the write")},
    [SHAPE_CAMPAIGN] = {"<use xlink:href=\"#campaign\" y=\"4\"/>", N_("wants an election")},
    [SHAPE_ELECTED] = {"<use xlink:href=\"#elected\"/>", N_("is elected")},
    [SHAPE_FOLLOWS] = {"<use xlink:href=\"#follows\"/>", N_("follows a leader")},
    [SHAPE_LEADERLESS] = {"<use xlink:href=\"#leaderless\"/>", N_("knows of no leader")},
    [SHAPE_SUSPECT] = {"<use xlink:href=\"#suspect\"/>", N_("suspects another")},
    [SHAPE_TRUST] = {"<use xlink:href=\"#trust\"/>", N_("trusts it again")},
    [SHAPE_LOST] = {"<path class=\"lost\" d=\"M-14 0H4\"/>"
                    "<use xlink:href=\"#cross\" x=\"8\"/>",
                    N_("lost")},
    [SHAPE_UNDER_WAY] = {"<path class=\"message under-way\" stroke=\"#475569\" d=\"M-12 0H12\"/>",
                         N_("its arrival is not shown")},
    [SHAPE_WAITS_FOR] = {"<path class=\"waits-for\" marker-end=\"url(#waits-head)\""
                         " d=\"M-12 0H12\"/>",
                         N_("waits for, at the end")},
    [SHAPE_REPEATED] = {"<path class=\"repeated\" stroke=\"#475569\""
                        " d=\"M-12 0v10M-6 0v10M0 0v10M6 0v10M12 0v10\"/>"
                        "<path class=\"line\" d=\"M-14 0H14\"/>",
                        N_("repeated messages are thinned to ticks")},
};

/* ---- The axis ---- */

/* "0.25": milliseconds without trailing zeros. */
static char *format_ms(char *buffer, size_t size, uint64_t us) {
    int length = snprintf(buffer, size, "%llu.%03llu", (unsigned long long)us / 1000,
                          (unsigned long long)us % 1000);
    while (buffer[length - 1] == '0') length--;
    if (buffer[length - 1] == '.') length--;
    buffer[length] = 0;
    return buffer;
}

/* The smallest of 1, 2 or 5 times a power of ten at which the numbers have room. */
static uint64_t tick_step(const struct layout *layout) {
    double wanted = TICK_PIXELS / layout->pixels_per_us;
    uint64_t step = 1;
    for (unsigned i = 0; (double)step < wanted && step < UINT64_MAX / 10; i++)
        step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    return step;
}

/* Writes a number unless it touches the one before, and returns where the last one ends. */
static int put_tick(const struct layout *layout, uint64_t time, int end, FILE *out) {
    char number[32];
    int x = layout_x(layout, time), y = layout->bottom + AXIS_BELOW;
    int half = text_width(format_ms(number, sizeof number, time), 11) / 2;
    if (x - half < end + 8) return end;
    fprintf(out, "<path class=\"grid\" d=\"M%d %dV%d\"/><path class=\"axis\" d=\"M%d %dv6\"/>", x,
            layout->top - 30, y, x, y);
    svg_label(out, "number", x, y + 19, number);
    return x + half;
}

/* Labels a shortened gap with its true length, unless that touches the one before, and returns
 * where the last one ends. */
static int put_break(const struct layout *layout, const struct moment *moment, int end, FILE *out) {
    char length[32];
    int x = (moment[-1].x + moment->x) / 2, y = layout->bottom + AXIS_BELOW;
    format_duration(length, sizeof length, (double)(moment->time_us - moment[-1].time_us));
    int half = text_width(length, LABEL_SIZE) / 2;
    fprintf(out,
            "<path class=\"blank\" d=\"M%d %dh8\"/>"
            "<path class=\"axis\" d=\"M%d %dl6 -12m2 0l-6 12\"/>\n",
            x - 4, y, x - 4, y + 6);
    if (x - half < end + 4) return end;
    svg_label(out, "number", x, y - 10, length);
    return x + half;
}

/* One section between two gaps at a time; a section too short for a round number gets its start. */
static void put_axis(const struct layout *layout, FILE *out) {
    uint64_t step = tick_step(layout);
    int y = layout->bottom + AXIS_BELOW, end_x = 0, break_end = 0;
    fprintf(out, "<path class=\"axis\" d=\"M%d %dH%d\"/>", layout->left, y, layout->right);
    svg_label(out, "unit", layout->right + 6, y + 4, "ms");
    for (size_t i = 0, end; i < layout->moment_count; i = end) {
        for (end = i + 1; end < layout->moment_count && !layout->moment[end].after_silence;) end++;
        uint64_t from = layout->moment[i].time_us, to = layout->moment[end - 1].time_us;
        uint64_t first = from - from % step;
        if (first < from && first <= UINT64_MAX - step) first += step;
        if (i) break_end = put_break(layout, &layout->moment[i], break_end, out);
        if (first > to || first < from) first = from;
        for (uint64_t time = first;; time += step) {
            end_x = put_tick(layout, time, end_x, out);
            if (to - time < step) break;
        }
    }
}

/* ---- The frame ---- */

struct legend_place {
    int x, height, width, y;
    FILE *out; /* NULL: it is only measured */
};

static void put_sample(struct legend_place *place, const char *sample, const char *text) {
    int room = 52 + text_width(text, 11);
    if (place->x > 20 && place->x + room > place->width)
        place->x = 20, place->height += LEGEND_LINE;
    int y = place->y + place->height - LEGEND_LINE;
    if (place->out) {
        fprintf(place->out, "<g transform=\"translate(%d %d)\">%s</g>", place->x + 12, y, sample);
        svg_label(place->out, "legend", place->x + 32, y + 4, text);
    }
    place->x += room;
}

/* Writes the legend from y on, or only measures it when there is no file.  Returns its height. */
static int put_legend(const struct layout *layout, int width, int y, FILE *out) {
    struct legend_place place = {20, LEGEND_LINE, width, y, out};
    char name[STANDING_NAME_MAX], sample[160];
    for (uint8_t s = 0; s < STANDINGS; s++) {
        if (!layout->stands[s]) continue;
        snprintf(sample, sizeof sample,
                 "<rect class=\"standing\" fill=\"%s\" x=\"-12\" y=\"-5\" width=\"24\""
                 " height=\"10\"/>",
                 standing_colour(s, 2));
        put_sample(&place, sample, standing_name(layout->trace, s, name));
    }
    for (int shape = 0; shape < SHAPES; shape++)
        if (layout->occurs[shape] && legend[shape].text)
            put_sample(&place, legend[shape].sample, _(legend[shape].text));
    return place.height;
}

void svg_head(int width, int height, FILE *out) {
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" "
            "xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n<defs>\n<style>\n%s</style>\n%s",
            width, height, width, height, style, shapes);
    for (int i = 0; i < SVG_COLOURS; i++)
        fprintf(out,
                "<marker id=\"head%d\" viewBox=\"0 0 10 10\" refX=\"9.5\" refY=\"5\" "
                "markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" "
                "orient=\"auto\"><path d=\"M0 1L10 5L0 9Z\" fill=\"%s\"/></marker>\n",
                i, svg_colours[i]);
    static const struct {
        const char *id, *colour;
    } heads[] = {{"waits-head", "#dc2626"}, {"edge-head", "#94a3b8"}};
    for (int i = 0; i < 2; i++)
        fprintf(out,
                "<marker id=\"%s\" viewBox=\"0 0 10 10\" refX=\"9.5\" refY=\"5\" "
                "markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" "
                "orient=\"auto\"><path d=\"M0 1L10 5L0 9Z\" fill=\"%s\"/></marker>\n",
                heads[i].id, heads[i].colour);
    fprintf(out, "</defs>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
}

/* What the picture leaves out. */
static void write_remarks(const struct layout *layout, char *text, size_t size) {
    int used = 0;
    text[0] = 0;
    if (layout->pages > 1)
        used = snprintf(text, size,
                        _("Page %llu of %llu: entries %zu to %zu of %zu; --page %llu shows %s.\n"),
                        (unsigned long long)layout->page, (unsigned long long)layout->pages,
                        layout->skipped + 1, layout->skipped + layout->drawn_count, layout->total,
                        (unsigned long long)(layout->page < layout->pages ? layout->page + 1 : 1),
                        layout->page < layout->pages ? _("what follows") : _("the beginning"));
    if (*layout->trace->violated && layout->pages > 1 && layout->page != layout->violated_page)
        used += snprintf(text + used, size - (size_t)used, _("The violation is on page %llu.\n"),
                         (unsigned long long)layout->violated_page);
    if (layout->folded_count)
        used += snprintf(text + used, size - (size_t)used,
                         _("%zu messages that change nothing, and were sent before, are folded.\n"),
                         layout->folded_count);
    if (layout->trace->full)
        snprintf(text + used, size - (size_t)used,
                 _("The run went on: its trace ends after %d entries.\n"), TRACE_ENTRIES_MAX);
}

void trace_write_svg(const struct trace *trace, const char *title, uint64_t page, FILE *out) {
    struct layout layout;
    char remarks[600];
    layout_open(&layout, trace, page);
    int waits = svg_waits(&layout, NULL);
    int width = layout.right + 40 + waits, below = layout.bottom + AXIS_BELOW + LEGEND_BELOW;
    if (width < WIDTH_MIN) width = WIDTH_MIN;
    layout.occurs[SHAPE_WAITS_FOR] = waits > 0;
    write_remarks(&layout, remarks, sizeof remarks);
    int text = width - 40, y = below + put_legend(&layout, width, below, NULL) + 2;
    int lines = svg_paragraph(NULL, "", 20, y, text, trace->violated) +
                svg_paragraph(NULL, "", 20, y, text, remarks);
    svg_head(width, y + SVG_LINE * lines, out);
    svg_title(out, width, title);
    put_axis(&layout, out);
    svg_headings(&layout, out);
    svg_parts(&layout, out);
    svg_waits(&layout, out);
    put_legend(&layout, width, below, out);
    y += SVG_LINE * svg_paragraph(out, "verdict", 20, y, text, trace->violated);
    svg_paragraph(out, "legend", 20, y, text, remarks);
    fputs("</svg>\n", out);
    layout_close(&layout);
}
