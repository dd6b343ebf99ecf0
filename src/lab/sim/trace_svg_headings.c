/* What is written above the lines of a diagram: where the first property is violated, what the
 * bands are, and that there is a deadlock.  Headings that would lie on each other get rows of their
 * own, and are left out when there is none. */
#include "base/parse.h"
#include "lab/sim/trace_svg.h"
#include "language/language.h"

enum { ROWS = 2, ROW = 14, ROW_GAP = 8, HEADING_MAX = 40, KEPT = 60 };

struct heading {
    int from, to;
};

struct headings {
    const struct layout *layout;
    FILE *out;
    struct heading row[ROWS][KEPT];
    int used[ROWS];
};

static bool is_free(const struct headings *headings, int row, struct heading heading) {
    for (int i = 0; i < headings->used[row]; i++)
        if (heading.from < headings->row[row][i].to + ROW_GAP &&
            heading.to > headings->row[row][i].from - ROW_GAP)
            return false;
    return headings->used[row] < KEPT;
}

/* Around x; returns its y, or 0 if it is left out. */
static int put_heading(struct headings *headings, const char *class, int x, const char *text) {
    int half = text_width(text, HEADING_SIZE) * 9 / 16; /* it may be bold */
    struct heading heading = {x - half, x + half};
    for (int row = 0; row < ROWS; row++) {
        int y = headings->layout->top - HEADINGS_ABOVE - ROW * row;
        if (!is_free(headings, row, heading)) continue;
        headings->row[row][headings->used[row]++] = heading;
        svg_label(headings->out, class, x, y, text);
        return y;
    }
    return 0;
}

/* Where the first property is violated, if the page comes to that. */
static void put_violation(struct headings *headings) {
    const struct layout *layout = headings->layout;
    uint64_t time_us = layout->trace->violated_us;
    size_t count = layout->moment_count;
    if (!*layout->trace->violated || !count || time_us < layout->moment[0].time_us ||
        time_us > layout->moment[count - 1].time_us)
        return;
    int x = layout_x(layout, time_us), y = put_heading(headings, "wrong", x, _("violated"));
    fprintf(headings->out, "<path class=\"violation\" d=\"M%d %dV%d\"/>\n", x, y + 4,
            layout->bottom + AXIS_BELOW);
}

static void put_band(struct headings *headings, const struct span *span) {
    char text[HEADING_MAX], word[NUMBER_WORD_MAX];
    bool split = span->shape == SHAPE_SPLIT;
    if (split)
        snprintf(text, sizeof text, "%s", _("network split"));
    else
        snprintf(text, sizeof text, span->shape == SHAPE_OVERLAP ? _("%s inside") : _("%s lead"),
                 number_word(span->max, word));
    int x = split ? span->from + text_width(text, HEADING_SIZE) / 2 : (span->from + span->to) / 2;
    put_heading(headings, split ? "split" : "wrong", x, text);
}

void svg_headings(const struct layout *layout, FILE *out) {
    struct headings headings = {.layout = layout, .out = out};
    int waits = svg_waits(layout, NULL);
    put_violation(&headings);
    if (waits) put_heading(&headings, "wrong", layout->right + waits / 2, "deadlock");
    for (enum shape shape = SHAPE_OVERLAP; shape <= SHAPE_SPLIT; shape++)
        for (size_t i = 0; i < layout->span_count; i++)
            if (layout->span[i].shape == shape) put_band(&headings, &layout->span[i]);
}
