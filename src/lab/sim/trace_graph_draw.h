/* Drawing one frame of a graph picture. */
#ifndef CV_LAB_SIM_TRACE_GRAPH_DRAW_H
#define CV_LAB_SIM_TRACE_GRAPH_DRAW_H

#include "lab/sim/trace_graph.h"
#include "lab/sim/trace_svg.h"

/* What a page shows, for its legend. */
struct graph_legend {
    bool standing[STANDINGS];
    bool waiting, inside, together, down, paused, message, lost, quorum, cut, waits;
};

#define COLOUR_WAITING  "#fcd34d"
#define COLOUR_INSIDE   "#4ade80"
#define COLOUR_TOGETHER "#f87171"

/* Draws the network at (0, 0), and notes what the legend must explain. */
void graph_draw(struct graph_picture *picture, const struct frame *frame,
                struct graph_legend *legend, FILE *out);

#endif
