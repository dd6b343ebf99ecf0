/* Timeouts: the rule of the lecture, solved for modelled and for measured delays. */
#include "lab/experiments/timeout.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "lab/experiments/plot.h"
#include "language/language.h"

static const double US_PER_S = 1e6, US_PER_MS = 1e3, DELAY_US_MAX = 1e18;

/* ---- Delays ---- */

static char *trimmed(char *line) {
    line[strcspn(line, "#")] = 0;
    while (isspace((unsigned char)*line)) line++;
    size_t length = strlen(line);
    while (length && isspace((unsigned char)line[length - 1])) line[--length] = 0;
    return line;
}

static const char *parse_delay(const char *text, double *us) {
    double ms;
    uint64_t whole_us;
    if (*text == '-') return "is negative";
    if (parse_real(text, &ms) == 0)
        *us = ms * US_PER_MS;
    else if (parse_duration(text, &whole_us) == 0)
        *us = (double)whole_us;
    else
        return "is not a delay such as 12.5ms, or a number of milliseconds";
    return *us <= DELAY_US_MAX ? NULL : "is too long";
}

static int append(struct delays *delays, size_t *room, double us) {
    if (delays->count == *room) {
        size_t more = *room ? 2 * *room : 256;
        double *grown = realloc(delays->sample_us, more * sizeof *grown);
        if (!grown) return -1;
        delays->sample_us = grown;
        *room = more;
    }
    delays->sample_us[delays->count++] = us;
    return 0;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int delays_read(struct delays *delays, FILE *file, const char *name,
                char error[TIMEOUT_ERROR_MAX]) {
    char *line = NULL;
    size_t line_room = 0, room = 0;
    unsigned long number = 0;
    *delays = (struct delays){0};
    *error = 0;
    while (!*error && getline(&line, &line_room, file) >= 0) {
        char *text = trimmed(line);
        double us;
        number++;
        if (!*text) continue;
        const char *wrong = parse_delay(text, &us);
        if (!wrong && append(delays, &room, us) != 0) wrong = "does not fit into memory";
        if (wrong)
            snprintf(error, TIMEOUT_ERROR_MAX, "%s:%lu: '%.40s' %s", name, number, text, wrong);
    }
    free(line);
    if (!*error && delays->count < 2)
        snprintf(error, TIMEOUT_ERROR_MAX, "%s: at least 2 delays are needed, not %zu", name,
                 delays->count);
    if (*error) return delays_free(delays), -1;
    qsort(delays->sample_us, delays->count, sizeof *delays->sample_us, ascending);
    return 0;
}

void delays_free(struct delays *delays) {
    free(delays->sample_us);
    delays->sample_us = NULL, delays->count = 0;
}

double delays_above(const struct delays *delays, double us) {
    if (!delays->count) return distribution_above(&delays->model, us);
    size_t low = 0, high = delays->count; /* the first sample above lies between */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (delays->sample_us[middle] > us)
            high = middle;
        else
            low = middle + 1;
    }
    return (double)(delays->count - low) / (double)delays->count;
}

/* ---- Costs ---- */

struct timeout_point timeout_at(const struct timeout_problem *problem, double us) {
    double probability = delays_above(&problem->delays, us);
    return (struct timeout_point){.timeout_us = us,
                                  .mistake_probability = probability,
                                  .mistake_cost = problem->mistake_cost * probability,
                                  .wait_cost = problem->wait_cost * (us / US_PER_S)};
}

static bool worth_waiting(const struct timeout_problem *problem, double us) {
    struct timeout_point point = timeout_at(problem, us);
    return point.mistake_cost > point.wait_cost;
}

/* C*p(T) falls and E*T grows, so they cross or jump past each other once.  Bisection goes on until
 * no number lies between the ends, which is exact for step functions, too. */
struct timeout_point timeout_break_even(const struct timeout_problem *problem) {
    double low = 0, high = problem->mistake_cost / problem->wait_cost * US_PER_S;
    if (!worth_waiting(problem, low)) return timeout_at(problem, low);
    while (worth_waiting(problem, high)) high *= 1 + 1e-15; /* rounding */
    for (;;) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) return timeout_at(problem, high);
        if (worth_waiting(problem, middle))
            low = middle;
        else
            high = middle;
    }
}

/* Where the total of a model may have its minimum besides T = 0: where the density falls to E/C, or
 * at the end of a bounded delay. */
static double model_minimum_us(const struct timeout_problem *problem) {
    const struct distribution *d = &problem->delays.model;
    double ratio = problem->wait_cost / US_PER_S / problem->mistake_cost; /* E/C */
    switch (d->kind) {
    case UNIFORM: return d->b;
    case EXPONENTIAL: return -d->a * log(ratio * d->a);
    case LOGNORMAL: {
        /* With y = ln(T/a), the density is E/C at y^2/2s^2 + y + ln(a s sqrt(2 pi) E/C) = 0. */
        if (d->b == 0) return d->a;
        double s2 = d->b * d->b, constant = log(d->a * d->b * sqrt(2 * M_PI) * ratio);
        return d->a * exp(-s2 + sqrt(s2 * s2 - 2 * s2 * constant));
    }
    default: return d->a;
    }
}

struct timeout_point timeout_least_total(const struct timeout_problem *problem) {
    const struct delays *delays = &problem->delays;
    struct timeout_point least = timeout_at(problem, 0);
    size_t candidates = delays->count ? delays->count : 1;
    for (size_t i = 0; i < candidates; i++) {
        double us = delays->count ? delays->sample_us[i] : model_minimum_us(problem);
        if (!(us > 0)) continue; /* there is none: negative, or not a number */
        struct timeout_point point = timeout_at(problem, us);
        if (timeout_total(&point) < timeout_total(&least)) least = point;
    }
    return least;
}

/* ---- The curve ---- */

double timeout_range(const struct timeout_point *break_even,
                     const struct timeout_point *least_total) {
    double range = fmax(1.6 * break_even->timeout_us, 1.4 * least_total->timeout_us);
    return range > 0 ? range : US_PER_MS;
}

static bool same(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)); }

static int by_time(const void *a, const void *b) {
    const struct timeout_point *x = a, *y = b;
    return (x->timeout_us > y->timeout_us) - (x->timeout_us < y->timeout_us);
}

size_t timeout_curve(const struct timeout_problem *problem, const struct timeout_point *break_even,
                     const struct timeout_point *least_total,
                     struct timeout_point curve[TIMEOUT_CURVE_MAX]) {
    enum { STEPS = 14 };
    double step = nice_step(timeout_range(break_even, least_total) / STEPS);
    size_t count = 0;
    curve[count++] = *break_even;
    if (!same(break_even->timeout_us, least_total->timeout_us)) curve[count++] = *least_total;
    for (int i = 0; i <= STEPS; i++)
        if (!same(i * step, break_even->timeout_us) && !same(i * step, least_total->timeout_us))
            curve[count++] = timeout_at(problem, i * step);
    qsort(curve, count, sizeof *curve, by_time);
    return count;
}

/* ---- The plot ---- */

enum { PLOT_POINTS = 801 };
struct plotted {
    double ms[PLOT_POINTS], mistake[PLOT_POINTS], wait[PLOT_POINTS], total[PLOT_POINTS];
};

static void fill(struct plotted *curves, const struct timeout_problem *problem, double range_us) {
    for (int i = 0; i < PLOT_POINTS; i++) {
        struct timeout_point point = timeout_at(problem, range_us * i / (PLOT_POINTS - 1));
        curves->ms[i] = point.timeout_us / US_PER_MS;
        curves->mistake[i] = point.mistake_cost;
        curves->wait[i] = point.wait_cost;
        curves->total[i] = timeout_total(&point);
    }
}

void timeout_plot(const struct timeout_problem *problem, const struct timeout_point *break_even,
                  const struct timeout_point *least_total, FILE *out) {
    struct plotted curves;
    char break_even_label[64], least_label[64];
    double range_us = timeout_range(break_even, least_total);
    fill(&curves, problem, range_us);
    snprintf(break_even_label, sizeof break_even_label, _("break-even T = %.4g ms"),
             break_even->timeout_us / US_PER_MS);
    snprintf(least_label, sizeof least_label, _("least total at %.4g ms"),
             least_total->timeout_us / US_PER_MS);
    const struct plot_series series[] = {
        {_("mistakes: C p(T)"), curves.ms, curves.mistake, PLOT_POINTS, false},
        {_("waiting: E T"), curves.ms, curves.wait, PLOT_POINTS, false},
        {_("total"), curves.ms, curves.total, PLOT_POINTS, false},
    };
    const struct plot_mark marks[] = {{break_even_label, break_even->timeout_us / US_PER_MS},
                                      {least_label, least_total->timeout_us / US_PER_MS}};
    struct plot plot = {.title = _("What a timeout costs"),
                        .x = {_("timeout T (ms)"), false, 0, range_us / US_PER_MS},
                        .y = {_("expected cost"), false, 0, 0},
                        .series = series,
                        .series_count = 3,
                        .marks = marks,
                        .mark_count = 2};
    /* When mistakes are expensive, the crossing would be invisible on a linear axis. */
    if (break_even->wait_cost > 0 && problem->mistake_cost > 20 * break_even->wait_cost)
        plot.y = (struct plot_axis){_("expected cost (logarithmic)"), true,
                                    break_even->wait_cost / 30, 2 * problem->mistake_cost};
    plot_write(&plot, out);
}
