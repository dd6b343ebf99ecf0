/* Networks as people write them: "a-b b-c", edge lists, Graphviz. */
#ifndef CV_SIM_GRAPH_H
#define CV_SIM_GRAPH_H

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

/* Reads words such as "1-2 2-3 a--b".  Returns 0, or minus the line that is wrong and a sentence.
 */
int graph_parse(struct graph *graph, const char *text, char error[GRAPH_ERROR_MAX]);
/* Reads a file: two names a line, or the undirected edges of Graphviz.  Errors name file and line.
 */
int graph_read(struct graph *graph, const char *path, char error[GRAPH_ERROR_MAX]);
void graph_free(struct graph *graph);

#endif
