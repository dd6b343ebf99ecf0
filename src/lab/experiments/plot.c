/* The line plot: chooses the scales, then draws grid, series, marks and legend. */
#include "lab/experiments/plot.h"

#include <math.h>
#include <string.h>

enum {
    HEIGHT = 500,
    FRAME_LEFT = 84,
    FRAME_TOP = 60,
    FRAME_WIDTH = 640,
    FRAME_HEIGHT = 364,
    LEGEND_GAP = 20,
    LEGEND_LINE = 28,
    ROW = 22,
    LETTER = 7, /* about the width of one */
};

static const char *const colours[] = {"#0063a6", "#d1490c", "#12805c", "#a8448c",
                                      "#c98a00", "#4aa3d8", "#6b4fb3", "#6e6e6e"};
enum { COLOURS = sizeof colours / sizeof colours[0] };

struct scale {
    bool logarithmic;
    double min, max;
    double from, to; /* in pixels */
};

/* ---- Scales ---- */

static double power_of_10(double x) { return pow(10, floor(log10(x) + 1e-9)); }

double nice_step(double min) {
    static const double steps[] = {1, 2, 2.5, 5};
    double power = power_of_10(min);
    for (int i = 0; i < 4; i++)
        if (steps[i] * power >= min * (1 - 1e-9)) return steps[i] * power;
    return 10 * power;
}

static bool usable(const struct scale *scale, double value) {
    return isfinite(value) && (!scale->logarithmic || value > 0);
}

static double project(const struct scale *s, double value) {
    double part = s->logarithmic ? log(value / s->min) / log(s->max / s->min)
                                 : (value - s->min) / (s->max - s->min);
    double pixel = s->from + part * (s->to - s->from);
    return fmin(fmax(pixel, -1e4), 1e4); /* what is far outside is clipped anyway */
}

static void widen_to(struct scale *scale, const double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!usable(scale, values[i])) continue;
        if (values[i] < scale->min) scale->min = values[i];
        if (values[i] > scale->max) scale->max = values[i];
    }
}

/* Extends the scale to round numbers. */
static void round_off(struct scale *s) {
    if (s->min > s->max) s->min = s->logarithmic ? 1 : 0, s->max = 10; /* no data */
    if (s->logarithmic) {
        double low = power_of_10(s->min), high = power_of_10(s->max);
        s->min = s->min >= 5 * low ? 5 * low : s->min >= 2 * low ? 2 * low : low;
        s->max = s->max <= high       ? high
                 : s->max <= 2 * high ? 2 * high
                 : s->max <= 5 * high ? 5 * high
                                      : 10 * high;
        if (s->min == s->max) s->max *= 10;
        return;
    }
    if (s->min == s->max) {
        double room = s->max != 0 ? fabs(s->max) / 2 : 1;
        s->min -= room, s->max += room;
    }
    if (s->min > 0 && s->min < s->max / 2) s->min = 0;
    double step = nice_step((s->max - s->min) / 10);
    s->min = floor(s->min / step + 1e-9) * step;
    s->max = ceil(s->max / step - 1e-9) * step;
}

static struct scale scale_of(const struct plot *plot, const struct plot_axis *axis, double from,
                             double to) {
    struct scale scale = {axis->logarithmic, axis->min, axis->max, from, to};
    if (axis->min < axis->max) return scale;
    scale.min = INFINITY, scale.max = -INFINITY;
    for (size_t i = 0; i < plot->series_count; i++) {
        const struct plot_series *series = &plot->series[i];
        widen_to(&scale, axis == &plot->x ? series->x : series->y, series->count);
    }
    round_off(&scale);
    return scale;
}

/* ---- Text ---- */

static void write_escaped(const char *text, FILE *out) {
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else
            fputc(*text, out);
    }
}

static void write_text(FILE *out, double x, double y, const char *attributes, const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    write_escaped(text, out);
    fputs("</text>\n", out);
}

/* ---- Grid ---- */

struct grid {
    FILE *out;
    const struct scale *scale;
    bool upright; /* lines of the x axis */
};

static void grid_line(const struct grid *g, double value, bool faint) {
    double at = project(g->scale, value);
    const char *class = faint ? "faint" : "grid";
    if (g->upright)
        fprintf(g->out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", class,
                at, FRAME_TOP, at, FRAME_TOP + FRAME_HEIGHT);
    else
        fprintf(g->out, "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", class,
                FRAME_LEFT, at, FRAME_LEFT + FRAME_WIDTH, at);
}

/* 250, 1e-05 as 10 to the -5. */
static void tick(const struct grid *g, double value) {
    double at = project(g->scale, value), size = fabs(value);
    double x = g->upright ? at : FRAME_LEFT - 10;
    double y = g->upright ? FRAME_TOP + FRAME_HEIGHT + 20 : at + 4;
    const char *anchor = g->upright ? "middle" : "end";
    grid_line(g, value, false);
    fprintf(g->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    if (g->scale->logarithmic && (size < 0.999e-3 || size > 9999)) {
        int exponent = (int)floor(log10(size) + 1e-9);
        double mantissa = round(size / pow(10, exponent));
        if (mantissa > 1) fprintf(g->out, "%.0f·", mantissa);
        fprintf(g->out, "10<tspan dy=\"-5\" font-size=\"9\">%d</tspan>", exponent);
    } else {
        fprintf(g->out, "%.6g", value);
    }
    fputs("</text>\n", g->out);
}

static void linear_grid(const struct grid *g) {
    const struct scale *s = g->scale;
    double step = nice_step((s->max - s->min) / (g->upright ? 10 : 8));
    double last = floor(s->max / step + 1e-9);
    for (double i = ceil(s->min / step - 1e-9); i <= last; i++) tick(g, i == 0 ? 0 : i * step);
}

static void logarithmic_grid(const struct grid *g) {
    const struct scale *s = g->scale;
    int first = (int)floor(log10(s->min) + 1e-9), last = (int)floor(log10(s->max) + 1e-9);
    int every = (last - first) / 10 + 1;
    double decades = log10(s->max / s->min);
    for (int k = first; k <= last; k++) {
        for (int digit = 1; digit <= 9; digit++) {
            double value = digit * pow(10, k);
            bool labelled =
                digit == 1 ? k % every == 0 : decades <= 3.1 && (digit == 2 || digit == 5);
            if (value < s->min * (1 - 1e-9) || value > s->max * (1 + 1e-9)) continue;
            if (labelled)
                tick(g, value);
            else if (decades <= 6)
                grid_line(g, value, true);
        }
    }
}

static void write_axis(FILE *out, const struct scale *scale, bool upright) {
    struct grid grid = {out, scale, upright};
    if (scale->logarithmic)
        logarithmic_grid(&grid);
    else
        linear_grid(&grid);
}

/* ---- Series, marks, legend ---- */

static void write_style(FILE *out, size_t series) {
    fprintf(out, "stroke=\"%s\"%s", colours[series % COLOURS],
            series < COLOURS ? "" : " stroke-dasharray=\"6 4\"");
}

static void write_series(FILE *out, const struct plot_series *series, size_t index,
                         const struct scale *x, const struct scale *y) {
    bool down = false; /* the pen */
    fprintf(out, "<path class=\"line\" ");
    write_style(out, index);
    fputs(" d=\"", out);
    for (size_t i = 0; i < series->count; i++) {
        bool draws = usable(x, series->x[i]) && usable(y, series->y[i]);
        if (draws)
            fprintf(out, "%s%.1f %.1f", down ? "L" : "M", project(x, series->x[i]),
                    project(y, series->y[i]));
        down = draws;
    }
    fputs("\"/>\n", out);
}

static bool shown(const struct scale *scale, double value) {
    return usable(scale, value) && value >= scale->min && value <= scale->max;
}

static void write_dots(FILE *out, const struct plot_series *series, size_t index,
                       const struct scale *x, const struct scale *y) {
    for (size_t i = 0; series->dots && i < series->count; i++)
        if (shown(x, series->x[i]) && shown(y, series->y[i]))
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                    project(x, series->x[i]), project(y, series->y[i]), colours[index % COLOURS]);
}

/* Labels are stacked, so that marks may be close, and left of their line where another mark follows
 * on the right. */
static void write_mark(FILE *out, const struct plot *plot, size_t index, const struct scale *x) {
    const struct plot_mark *mark = &plot->marks[index];
    if (!shown(x, mark->x)) return;
    double at = project(x, mark->x), width = LETTER * (double)strlen(mark->label) + 7;
    bool followed = false;
    for (size_t i = 0; i < plot->mark_count; i++) followed |= plot->marks[i].x > mark->x;
    bool fits_left = at - FRAME_LEFT > width, fits_right = FRAME_LEFT + FRAME_WIDTH - at > width;
    bool to_the_left = fits_left && (followed || !fits_right);
    fprintf(out, "<line class=\"mark\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", at,
            FRAME_TOP, at, FRAME_TOP + FRAME_HEIGHT);
    write_text(out, at + (to_the_left ? -7 : 7), FRAME_TOP + 18 + 19.0 * (double)index,
               to_the_left ? "class=\"label\" text-anchor=\"end\"" : "class=\"label\"",
               mark->label);
}

static void write_legend(FILE *out, const struct plot *plot) {
    double x = FRAME_LEFT + FRAME_WIDTH + LEGEND_GAP;
    for (size_t i = 0; i < plot->series_count; i++) {
        double y = FRAME_TOP + 12 + ROW * (double)i;
        fprintf(out, "<line class=\"line\" ");
        write_style(out, i);
        fprintf(out, " x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, y, x + LEGEND_LINE,
                y);
        if (plot->series[i].dots)
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                    x + LEGEND_LINE / 2.0, y, colours[i % COLOURS]);
        write_text(out, x + LEGEND_LINE + 8, y + 4, "", plot->series[i].name);
    }
}

/* ---- The whole ---- */

static int width_of(const struct plot *plot) {
    size_t longest = 0;
    for (size_t i = 0; i < plot->series_count; i++) {
        size_t length = strlen(plot->series[i].name);
        if (length > longest) longest = length;
    }
    return FRAME_LEFT + FRAME_WIDTH + LEGEND_GAP + LEGEND_LINE + 8 + LETTER * (int)longest + 16;
}

static int height_of(const struct plot *plot) {
    int legend = FRAME_TOP + ROW * (int)plot->series_count + 16;
    return legend > HEIGHT ? legend : HEIGHT;
}

static void write_head(FILE *out, const struct plot *plot) {
    int width = width_of(plot), height = height_of(plot);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" "
            "fill=\"#333\" role=\"img\">\n<title>",
            width, height, width, height);
    write_escaped(plot->title, out);
    fputs("</title>\n<style>.grid{stroke:#dcdcdc}.faint{stroke:#f1f1f1}"
          ".line{fill:none;stroke-width:2;stroke-linejoin:round}"
          ".mark{stroke:#333;stroke-dasharray:4 4}"
          ".label{font-weight:bold;stroke:#fff;stroke-width:4;paint-order:stroke}</style>\n"
          "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
          out);
    write_text(out, FRAME_LEFT, 34, "font-size=\"17\" font-weight=\"bold\"", plot->title);
}

static void write_labels(FILE *out, const struct plot *plot) {
    char turned[96];
    double middle = FRAME_TOP + FRAME_HEIGHT / 2.0;
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#777\"/>\n",
            FRAME_LEFT, FRAME_TOP, FRAME_WIDTH, FRAME_HEIGHT);
    write_text(out, FRAME_LEFT + FRAME_WIDTH / 2.0, FRAME_TOP + FRAME_HEIGHT + 48,
               "font-size=\"13\" text-anchor=\"middle\"", plot->x.label);
    snprintf(turned, sizeof turned,
             "font-size=\"13\" text-anchor=\"middle\" transform=\"rotate(-90 22 %.1f)\"", middle);
    write_text(out, 22, middle, turned, plot->y.label);
}

void plot_write(const struct plot *plot, FILE *out) {
    struct scale x = scale_of(plot, &plot->x, FRAME_LEFT, FRAME_LEFT + FRAME_WIDTH);
    struct scale y = scale_of(plot, &plot->y, FRAME_TOP + FRAME_HEIGHT, FRAME_TOP);
    write_head(out, plot);
    write_axis(out, &x, true);
    write_axis(out, &y, false);
    /* An inner svg element clips what lies outside the frame. */
    fprintf(out, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"%d %d %d %d\">\n",
            FRAME_LEFT, FRAME_TOP, FRAME_WIDTH, FRAME_HEIGHT, FRAME_LEFT, FRAME_TOP, FRAME_WIDTH,
            FRAME_HEIGHT);
    for (size_t i = 0; i < plot->series_count; i++) write_series(out, &plot->series[i], i, &x, &y);
    fputs("</svg>\n", out);
    for (size_t i = 0; i < plot->mark_count; i++) write_mark(out, plot, i, &x);
    write_labels(out, plot);
    for (size_t i = 0; i < plot->series_count; i++) write_dots(out, &plot->series[i], i, &x, &y);
    write_legend(out, plot);
    fputs("</svg>\n", out);
}

void plot_write_all(const struct plot *plots, size_t count, FILE *out) {
    int width = 0, height = 0;
    for (size_t i = 0; i < count; i++) {
        if (width_of(&plots[i]) > width) width = width_of(&plots[i]);
        height += height_of(&plots[i]);
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\">\n",
            width, height, width, height);
    for (size_t i = 0, y = 0; i < count; i++) {
        fprintf(out, "<svg y=\"%zu\" width=\"%d\" height=\"%d\">\n", y, width,
                height_of(&plots[i]));
        plot_write(&plots[i], out);
        fputs("</svg>\n", out);
        y += (size_t)height_of(&plots[i]);
    }
    fputs("</svg>\n", out);
}
