/* The commands beside the command of `conclave elect`: a check that is repeated, and a hook. */
#ifndef CV_CLI_HEALTH_H
#define CV_CLI_HEALTH_H

#include "cli/run.h"

struct health {
    const char *command; /* for sh -c; NULL: always well */
    int64_t every;       /* ms between checks, and the most that one may take */
    bool well;
    bool known;  /* the first check is over */
    pid_t check; /* 0: none runs */
    int64_t next, limit;
};

/* Starts a check when it is time, and ends one that takes too long. */
void health_look(struct health *health, struct run *run);
/* The moment of the next look. */
int64_t health_next(const struct health *health);
/* A child has ended; perhaps it was the check. */
void health_ended(struct health *health, pid_t pid, int status);

/* Runs `sh -c command` beside the command. */
pid_t health_start(struct run *run, const char *command);

#endif
