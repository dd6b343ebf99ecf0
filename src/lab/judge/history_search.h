/* The search for a linearization of the operations on one key: Wing and Gong's (1993), with Lowe's
 * cache of the configurations that led nowhere (2017). */
#ifndef CV_LAB_JUDGE_HISTORY_SEARCH_H
#define CV_LAB_JUDGE_HISTORY_SEARCH_H

#include "base/bytes.h"
#include "base/table.h"
#include "lab/judge/history_model.h"

#define NO_ITEM  UINT32_MAX
#define NO_QUEUE UINT32_MAX

struct item {                   /* an operation on the key */
    struct history_operation o; /* simplified; see history_prepare.c */
    size_t index;               /* in the history */
    uint32_t queue;             /* that it waits in; NO_QUEUE: none */
    uint32_t before, after;     /* neighbours among the required items that are not linearized */
};

struct queue { /* items of which only the first that is left may be next */
    uint32_t begin, at, end;
};

struct items {
    struct item *item; /* required ones by their start, then optional ones */
    uint32_t count, required;
    struct queue *queue; /* of clients, for sequential consistency; then of equal operations */
    uint32_t *queued;
    uint32_t queues, clients;
    struct history_state first;
    bool versioned; /* some operation observes versions */
};

/* `indices`: the operations of the key in the history, by their start. */
void items_open(struct items *items, const struct history *history, const size_t *indices,
                size_t count, bool sequential);
void items_close(struct items *items);

/* Adds to the result's work, and fills in its order and stuck operations, for when it is VIOLATED.
 */
enum verdict_value history_search(struct items *items, uint64_t work_limit,
                                  struct history_result *result);

#endif
