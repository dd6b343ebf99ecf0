/* What the files of lab/peers share. */
#ifndef CV_LAB_PEERS_INTERNAL_H
#define CV_LAB_PEERS_INTERNAL_H

#include "lab/peers/merge.h"
#include "lab/peers/repeat.h"

enum { NO_MESSAGE = UINT32_MAX };

struct message { /* that was sent to a process that received it, or might have */
    uint32_t run;
    cv_pid to;
    uint64_t incarnation, number;
    uint64_t hash;  /* of its kind and its body, when it has been sent */
    uint32_t entry; /* of the trace, likewise */
    bool sent;
};

struct lane {             /* a process in the order that is being made */
    size_t run, last_run; /* of the records: the current one, and the last of this process */
    struct repeat repeat;
    bool over;        /* the last run is */
    uint32_t awaited; /* the message that the next step receives; NO_MESSAGE: none */
    bool unsent;      /* the next step receives a message that no record has */
    uint32_t cause;   /* the entry of the last step */
    uint32_t timer_cause[CV_TIMERS_MAX];
};

struct play {
    struct merge *merge;
    bool late_leaves;
    struct message *message; /* of all runs, in their order */
    uint32_t message_count;
    uint32_t *first;         /* by run: its first message */
    struct message **sorted; /* by sender, receiver and number */
    struct lane *lane;       /* by pid */
    uint64_t begin_us, now_us;
    char *error;
};

/* merge.c */
cv_pid merge_bearer(const struct merge *merge, uint64_t id);
/* told.c: what a step means for the trace and for the judges. */
void told_step(struct play *play, cv_pid p);
/* A process is gone, or back. */
void told_crash(struct play *play, cv_pid p);

#endif
