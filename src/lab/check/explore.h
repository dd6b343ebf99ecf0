/* States of the whole system, and the steps from one to the next. */
#ifndef CV_LAB_CHECK_EXPLORE_H
#define CV_LAB_CHECK_EXPLORE_H

#include "lab/check/system.h"

/* The leaves of a state: the node of each process, then the budgets. */
enum { LEAVES_MAX = CHECK_PROCESSES_MAX + 1, LEVELS_MAX = 6 };

/* A state as a tree: the leaves, their pairs, the pairs of these, up to the root; see fold.c. */
struct fold {
    uint32_t at[LEVELS_MAX][LEAVES_MAX];
};

struct step { /* from a state to the next */
    uint64_t pair, hash;
    uint32_t broken; /* bit per property that it violates */
    uint16_t outcome;
    uint8_t process;
};

struct violation {
    uint32_t state; /* the last state of the path */
    bool in_state;  /* the state violates it, not a step from it */
};

/* Shared by all threads. */
struct explorer {
    const struct check_model *model;
    const struct check_search *search;
    struct system system;
    struct pairs states;
    struct pairs inner, budgets; /* see fold.c */
    bool growing[3];             /* the states, the inner pairs, the memo */
    bool packed, hashed;
    uint32_t bits[CHECK_PROCESSES_MAX];            /* of a node number, when packed */
    uint32_t down_notice[CHECK_PROCESSES_MAX + 1]; /* the notice that a process is down */
    unsigned judged;                               /* properties that are judged */
    int levels, width[LEVELS_MAX];
    struct violation violation[PROPERTIES_MAX];
};

/* One for each thread. */
struct worker {
    struct explorer *explorer;
    struct pairs_block states, inner, budgets, memo;
    struct fold here, there;
    uint32_t packed_budgets, packed_number; /* of the last lookup */
    struct step *steps;                     /* from the state that was expanded last */
    size_t step_count, step_room;
    uint32_t broken;  /* bit per property that this state violates */
    bool timers_left; /* a timer is set there, and `timeouts` is used up */
    bool final;       /* nothing more must happen there */
    bool quiescent;   /* during expansion: all processes are */
    cv_pid settles;   /* during expansion: the process that is to settle */
};

int explorer_open(struct explorer *explorer, const struct check_model *model,
                  const struct check_search *search);
void explorer_close(struct explorer *explorer);
/* A crowded set has to grow before another state is expanded: one thread makes room, then each of
 * `of` threads reinserts its share. */
bool explorer_crowded(const struct explorer *explorer);
void explorer_grow(struct explorer *explorer);
void explorer_put_back(struct explorer *explorer, unsigned share, unsigned of);
/* The same for a single thread; returns whether anything had to grow. */
bool explorer_make_room(struct explorer *explorer);
uint64_t explorer_bytes(const struct explorer *explorer);
uint64_t explorer_growth(const struct explorer *explorer);
/* The part of it that holds the visited states, without the caches. */
uint64_t explorer_visited_bytes(const struct explorer *explorer);

void worker_open(struct worker *worker, struct explorer *explorer, uint32_t block);
void worker_close(struct worker *worker);

void explorer_choose_bits(struct explorer *explorer);
void explorer_write_anew(struct explorer *explorer);

/* The leaves of the initial state. */
void explorer_start(struct worker *worker, bool renamed, uint32_t *leaves);
/* Sets worker->here to the state with these leaves. */
void worker_place(struct worker *worker, const uint32_t *leaves);
/* Unfolds a state into worker->here. */
void worker_unfold(struct worker *worker, uint64_t pair);
/* Finds the steps from worker->here. */
void worker_expand(struct worker *worker);
/* The state after a step, as leaves; without renaming. */
void worker_follow(struct worker *worker, const struct step *step, uint32_t *leaves);
uint64_t worker_fold(struct worker *worker, const uint32_t *leaves);

/* The properties that a final state violates, in which nothing more must happen. */
uint32_t worker_judge_end(const struct worker *worker);

/* Replaces a state by the canonical representative of its orbit under the permutations of
 * processes. */
void worker_rename(struct worker *worker, uint32_t *leaves);

/* ---- Budgets: the last leaf ---- */

static const uint8_t budget_shift[BUDGETS + 1] = {0, 0, 3, 6, 9, 12, 18, 23};
enum { TIMEOUTS_FOREVER = 63, LATEST_SHIFT = 23, LATEST_FAILED = 1 << 28 };

static inline uint32_t budget_left(uint32_t word, enum budget budget) {
    return word >> budget_shift[budget] &
           ((1u << (budget_shift[budget + 1] - budget_shift[budget])) - 1);
}
static inline uint32_t latest_of(uint32_t word) { return word >> LATEST_SHIFT & 31; }
static inline uint32_t token_of(uint32_t word) { return word >> LATEST_SHIFT & (TOKENS_MAX - 1); }

#endif
