/* A run as drawings of its network, one for each stage, side by side.
 *
 * A stage is what one wave of messages does: all messages of one kind in one round, on a ring or in
 * a graph; where everyone can reach everyone, all of one kind that are as far from the beginning,
 * and under way together.  A drawing shows each process as it was before it took part in the stage,
 * and the messages of the stage. */
#ifndef CV_LAB_SIM_TRACE_GRAPH_H
#define CV_LAB_SIM_TRACE_GRAPH_H

#include "lab/sim/trace_standing.h"

enum { NODES_MAX = 120 };

struct stage {
    uint16_t kind;
    uint32_t round, wave;
    uint32_t first;          /* the entry of its first message */
    uint64_t from_us, to_us; /* until the last arrival */
    uint32_t messages;
};

struct frame {
    uint32_t stage;  /* index + 1; 0: the end of the run */
    bool still;      /* only what the processes are, before the messages of the stage */
    uint32_t folded; /* stages before it that repeat what was drawn */
    uint32_t split;  /* the entry that has split the network; 0: it is whole */
};

/* A process in a drawing. */
struct look {
    uint32_t note, ways; /* as in a trace entry */
    bool waiting, inside, down, paused;
};

struct graph_picture {
    const struct trace *trace;
    uint32_t *stage_of; /* by entry: of a message, index + 1; 0: none */
    struct stage *stage;
    struct frame *frame;
    size_t stage_count, frame_count;
    /* The drawing: */
    uint32_t nodes;   /* processes 1 to this one are drawn */
    int size, radius; /* pixels of a drawing, without captions, and of a process */
    int *x, *y;       /* by pid */
    cv_pid (*edge)[2];
    size_t edge_count;
    /* The state that a frame shows, by pid: */
    uint32_t *limit; /* entries from here on come later, */
    uint64_t *event; /* except what it tells in this event */
    bool *heard;     /* by index into the network's lists: that neighbour sends to the process */
    struct look *look;
    struct standing *standing;
};

/* Finds the stages of a run, and places its processes. */
void graph_open(struct graph_picture *picture, const struct trace *trace);
void graph_close(struct graph_picture *picture);
/* The steps of graph_open. */
void graph_place(struct graph_picture *picture); /* nodes to edge */
void stages_find(struct graph_picture *picture); /* stage_of, stage, frame; after the places */
/* Sets what the processes are in a frame. */
void graph_look(struct graph_picture *picture, const struct frame *frame);
/* The way of an edge in that frame, as seen from a. */
enum way { WAY_UNKNOWN, WAY_IN, WAY_OUT, WAY_CUT, WAYS };
enum way graph_way(const struct graph_picture *picture, cv_pid a, cv_pid b);

#endif
