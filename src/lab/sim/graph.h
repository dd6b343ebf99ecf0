/* Networks as text: "a-b b-c", edge lists, Graphviz. */
#ifndef CV_LAB_SIM_GRAPH_H
#define CV_LAB_SIM_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/roster.h"

struct graph {
    uint32_t vertices;
    char (*names)[ROSTER_NAME_MAX]; /* from 1, in order of appearance */
    uint32_t (*edges)[2];
    size_t edge_count;
};

enum { GRAPH_ERROR_MAX = 200 };

/* Reads edges such as "1-2 2-3 a--b".  Returns 0, or minus the number of the wrong line, and a
 * sentence in `error`. */
int graph_parse(struct graph *graph, const char *text, char error[GRAPH_ERROR_MAX]);
/* Reads a file: two names a line, or an undirected graph of Graphviz.  Errors name the line. */
int graph_read(struct graph *graph, const char *path, char error[GRAPH_ERROR_MAX]);
void graph_free(struct graph *graph);

#endif
