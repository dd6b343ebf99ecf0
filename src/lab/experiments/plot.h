/* A line plot as SVG: several named series over linear or logarithmic axes. */
#ifndef CV_LAB_EXPERIMENTS_PLOT_H
#define CV_LAB_EXPERIMENTS_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct plot_axis {
    const char *label;
    bool logarithmic;
    double min, max; /* min == max: fitted to the series */
};

struct plot_series {
    const char *name;
    const double *x, *y; /* what is not finite, or 0 on a logarithmic axis, is a gap */
    size_t count;
    bool dots; /* mark the points, which were measured one by one */
};

struct plot_mark { /* a vertical line */
    const char *label;
    double x;
};

struct plot {
    const char *title;
    struct plot_axis x, y;
    const struct plot_series *series;
    size_t series_count;
    const struct plot_mark *marks;
    size_t mark_count;
};

void plot_write(const struct plot *plot, FILE *out);
/* Several, one below the other. */
void plot_write_all(const struct plot *plots, size_t count, FILE *out);

/* The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `min`, above 0. */
double nice_step(double min);

#endif
