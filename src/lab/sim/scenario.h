/* Scenarios: runs written down, with their expected outcomes.
 *
 *   # comment
 *   title A coordinator forgets its vote
 *   algorithm quorum
 *   servers Coord1 Coord2 Coord3      names of the servers
 *   processes Part1 Part2             names, or how many
 *   m 2                               an option of the algorithm, or any setting of `conclave sim`
 *   at 5ms Coord2 crash               an action, in order of time
 *   expect exclusion violated         an expected outcome
 *
 * With the setting `scripted` a scenario determines everything: which timers fire (`p2 timeout`),
 * what is chosen (`p2 chooses 1`), and how long each message takes (`delay p1 p2 3ms once`). */
#ifndef CV_LAB_SIM_SCENARIO_H
#define CV_LAB_SIM_SCENARIO_H

#include "lab/sim/sim.h"
#include "lab/sim/trace.h"

enum expectation_type {
    EXPECT_VERDICT,   /* property, value */
    EXPECT_ENTRIES,   /* number */
    EXPECT_MESSAGES,  /* number */
    EXPECT_OVERLAPS,  /* number */
    EXPECT_REFUSED,   /* number */
    EXPECT_ROUNDS,    /* number */
    EXPECT_COMMITTED, /* number: of entries that a process knows to be committed at the end */
    EXPECT_LEADER,    /* leader at the end; CV_NOBODY: none, or more than one */
    EXPECT_ORDER,     /* of entries: pids */
};

struct expectation {
    enum expectation_type type;
    int line;
    int property;
    enum verdict_value value;
    uint64_t number;
    cv_pid leader;
    cv_pid *order; /* owned */
    size_t order_count;
};

enum { SCENARIO_TITLE_MAX = 128 };

struct scenario {
    char title[SCENARIO_TITLE_MAX];
    struct sim_config config;
    struct expectation *expectations;
    size_t expectation_count;
};

extern const char
    *const expectation_name[]; /* as typed, by type; for a verdict: that of the property */

enum { SCENARIO_ERROR_MAX = 512 };

/* Returns 0, or -1 and "FILE:LINE: what is wrong" in `error`. */
int scenario_read(struct scenario *scenario, const char *path, char error[SCENARIO_ERROR_MAX]);
void scenario_free(struct scenario *scenario);
/* Writes a file from which the same scenario can be read. */
void scenario_write(const struct scenario *scenario, FILE *out);

/* Writes a line for each expectation that the run did not meet, and returns their number. */
size_t scenario_check(const struct scenario *scenario, const char *path, const struct sim *sim,
                      const struct trace *trace, FILE *out);

#endif
