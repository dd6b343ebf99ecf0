/* A recorded run of a peer, replayed by the step function that the simulator uses: the same object
 * file with the same inputs, so that each step must end in the same state with the same effects. */
#ifndef CV_LAB_PEERS_REPEAT_H
#define CV_LAB_PEERS_REPEAT_H

#include "peer/record.h"

struct repeat {
    const struct records *records;
    const struct record_run *run;
    size_t next; /* step */
    struct cv_env env;
    struct cv_layout layout;
    struct codec codec;
    size_t size;                /* of the state */
    unsigned char *state;       /* after the last step */
    void *saved, *saved_before; /* the durable prefix, and the one before */
    struct cv_out out;          /* of the last step */
    struct cv_event event;      /* the last one, with its body */
    void *body;
    uint8_t armed; /* timers */
    bool choosing; /* the last step has asked for a choice */
    enum { IDLE, WAITING, INSIDE, LEFT_EARLY, LEAVING } application;
};

/* Begins a run.  `repeat` is all zero, or at the end of the run before of this process, whose
 * durable prefix it finds.  0, or -1 and a sentence in `error`. */
int repeat_open(struct repeat *repeat, const struct records *records, const struct record_run *run,
                char error[RECORD_ERROR_MAX]);
/* Takes the next step. */
int repeat_step(struct repeat *repeat, char error[RECORD_ERROR_MAX]);
static inline bool repeat_is_over(const struct repeat *repeat) {
    return repeat->next == repeat->run->step_count;
}
void repeat_close(struct repeat *repeat);

/* The messages that a step has sent, one for each receiver: begin with all zero.  Those that were
 * given up on the way are left out. */
struct repeat_send {
    uint32_t at, sent; /* in the effects; of the record */
    bool begun;        /* the one at `at` */
    cv_pid to;
    const struct cv_send *send;
    const struct record_sent *record;
};
bool repeat_next_send(const struct repeat *repeat, struct repeat_send *send);

#endif
