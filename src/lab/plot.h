/* A line plot as SVG: several named series over linear or logarithmic axes. */
#ifndef CV_LAB_PLOT_H
#define CV_LAB_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct plot_axis {
    const char *label;
    bool logarithmic;
    double least, most; /* least == most: what the series need */
};

struct plot_series {
    const char *name;
    const double *x, *y; /* points that are not finite, or not above 0 on a logarithmic axis, are
                          * gaps */
    size_t count;
    bool dots; /* mark the points: they were measured one by one */
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

/* The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `least`, which is above 0.
 */
double nice_step(double least);

#endif
