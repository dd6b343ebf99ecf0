/* The search for an order of the operations on one key: after Wing and Gong (1993), with Lowe's
 * memory of the configurations that led nowhere (2017). */
#ifndef CV_JUDGE_HISTORY_SEARCH_H
#define CV_JUDGE_HISTORY_SEARCH_H

#include "base/bytes.h"
#include "base/table.h"
#include "judge/history_model.h"

#define NO_ITEM  UINT32_MAX
#define NO_QUEUE UINT32_MAX

struct item {                   /* an operation of the key */
    struct history_operation o; /* as far as it makes a difference; see history_prepare.c */
    size_t place;               /* in the history */
    uint32_t queue;             /* that it waits in, NO_QUEUE: in none */
    uint32_t before, after;     /* neighbours among those that must still be put in order */
};

struct queue { /* items of which only the first that is left may be next */
    uint32_t begin, at, end;
};

struct items {
    struct item *item; /* those that must have happened, by their start, then those that may have */
    uint32_t count, musts;
    struct queue *queue; /* of clients, when the order is sequential; then of equal operations */
    uint32_t *queued;
    uint32_t queues, clients;
    struct history_state first;
    bool versioned; /* somebody looks at versions */
};

/* `places` are those of the key's operations, by their start. */
void items_open(struct items *items, const struct history *history, const size_t *places,
                size_t count, bool sequential);
void items_close(struct items *items);

/* Adds to the result's work, and fills in, of use when it is VIOLATED, the order and what is
 * stuck. */
enum verdict_value history_search(struct items *items, uint64_t work_most,
                                  struct history_result *result);

#endif
