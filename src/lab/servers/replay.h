/* The records of servers, replayed: each step is given to the consensus core again, the same object
 * file that the server runs, and has to end in the state and the effects that were recorded. */
#ifndef CV_LAB_SERVERS_REPLAY_H
#define CV_LAB_SERVERS_REPLAY_H

#include "lab/servers/judge.h"
#include "service/steps/record.h"

struct servers_picture;

struct servers_replay {              /* all zero: nothing yet */
    struct servers_judge *judge;     /* NULL: nothing is judged */
    struct servers_picture *picture; /* NULL: nothing is drawn */
    bool any_hash;                   /* what came of steps is not compared: for a fuzzer */
    uint64_t steps, starts, missed;  /* starts of servers; times that steps are missing */
    uint64_t files, torn;            /* files whose end is torn */
    uint64_t ensemble;               /* 0: not known */
    char error[STEPS_ERROR_MAX];

    struct raft raft;
    struct raft_run *run; /* of the whole log, also those that the core has forgotten */
    size_t runs, room;
    size_t asked_run;     /* where the last term that was asked for was found */
    uint64_t asked;       /* terms, by one step */
    uint64_t incarnation; /* of the process whose record was read last */
    uint64_t incarnation_step;
};

/* Replays a file, which is closed then.  0, or -1 and a sentence in replay->error.  A file that a
 * server has put aside (FILE.1) goes before the one that follows it: what follows has to begin in
 * the state in which the other ends, or later, and then steps are missing. */
int servers_replay_file(struct servers_replay *replay, const char *name, FILE *file);
void servers_replay_close(struct servers_replay *replay);

#endif
