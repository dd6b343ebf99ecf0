/* What the files of the runtime share. */
#ifndef CV_PEER_INTERNAL_H
#define CV_PEER_INTERNAL_H

#include "base/rng.h"
#include "peer/channel.h"
#include "peer/codec.h"
#include "peer/durable.h"
#include "peer/peer.h"
#include "peer/record.h"
#include "wire/net/link.h"

enum {
    BACKLOG_MAX = 64 << 20, /* bytes kept for one process: beyond, it is cut off */
    ACKNOWLEDGE_AFTER = 64, /* messages, or ... */
    ACKNOWLEDGE_MS = 20,    /* ... so long after the first */
    CALLS_MAX = 16,         /* of the application, while a step is under way */
};

enum peer_machine { ALGORITHM, DETECTOR, MACHINES };

struct machine {
    const struct cv_algorithm *code; /* NULL: there is none */
    const uint64_t *option;
    struct cv_layout layout;
    struct codec codec;
    void *state;
    size_t size; /* of the state */
    struct machine_timer {
        uv_timer_t uv;
        struct peer *peer;
        uint8_t machine, index;
    } timer[CV_TIMERS_MAX];
};

struct other { /* a process of the group, by pid */
    struct channel channel;
    uint64_t awaited; /* number of the last message that it has to get before this process ends */
    uint64_t incarnation; /* of its newest link to us */
    uint32_t run;         /* in which it is; it has ended all before */
    bool begun;           /* that run */
    bool up;              /* our link to it */
    bool here;            /* its link to us */
    bool suspected;       /* by the detector */
    bool cut_off;         /* messages to it are lost: it has to restart */
    bool done, knows_us_done, stays;
    bool gone;   /* nobody listens where it was */
    bool parted; /* the network between it and us is cut, by whoever tries that */
};

struct peer {
    struct peer_config config;
    const struct group *group;
    cv_pid self;
    struct machine machine[MACHINES];
    struct cv_out out;
    void *body; /* of the message that is being received */
    struct durable durable;
    struct recorder recorder;
    uint64_t recorded; /* bytes of the record, when it was suspended; 0: there was none */
    uint64_t arriving; /* the number of the message that is being received */
    uint64_t messages; /* received */
    struct rng rng;
    uint64_t incarnation;
    uint32_t run, next_run; /* the highest that it has heard of */
    uint64_t since_ms;      /* when it began to wait for a run, or heard of the next one */
    uint64_t left_ms;       /* when it left the lock last */
    uint64_t leader;        /* the id that it follows; 0: none is known */
    struct links *links;
    struct other *other;
    uv_prepare_t flush;
    uv_timer_t acknowledge, runs;
    uint64_t warned_ms; /* when a refusal was logged last */
    bool full;          /* a link did not take all that a channel had for it */
    bool stepping, done, stays, ending, closing, over;
    bool begun; /* its run: the algorithm takes steps */
    bool met;   /* another process in its run */
    bool late;  /* the log has said that its run waits */
    bool campaigned;
    bool may_end;   /* all are done, and somebody stays; its owner knows */
    bool stranded;  /* it has crashed, and the algorithm has no way back */
    bool ended;     /* in order: the next run of the group begins anew */
    bool resumed;   /* it goes on where the same incarnation was */
    bool suspended; /* its record has ended */
    /* What the application has of the lock. */
    enum { OUTSIDE, WAITING, INSIDE, LEAVING } phase;
    bool orphan; /* whoever wanted the lock has ended before this process was resumed */
    uint32_t calls[CALLS_MAX], call_count;
    unsigned handles; /* that are not closed yet */
};

/* peer.c */
void peer_step(struct peer *peer, enum peer_machine m, const struct cv_event *event);
/* The detector, or a restart, says that a process is down or up. */
void peer_suspect(struct peer *peer, cv_pid p, bool down);
void peer_fail(struct peer *peer, const char *why);
/* All have ended the run before: starts the algorithm. */
void peer_begin_run(struct peer *peer);
/* Ends the run that others have left; the application's wishes are for the next one. */
void peer_renew(struct peer *peer);
/* Nothing that was done is seen by others before it is recorded. */
void peer_flush_record(struct peer *peer);

/* channels.c */
int channels_open(struct peer *peer, char error[PEER_ERROR_MAX]);
void channels_send(struct peer *peer, enum peer_machine m, const struct cv_send *send);
/* Begins a frame; NULL: the link is not up, or has just ended, which is told later. */
enum peer_frame {
    FRAME_MESSAGE = 1,
    FRAME_RECEIVED,
    FRAME_HEARTBEAT,
    FRAME_DONE,
    FRAME_CUT_OFF,
    FRAME_RUN
};
struct bytes *channels_begin(struct peer *peer, cv_pid p, enum peer_frame type);
void channels_meet(struct peer *peer, cv_pid p);
/* All of them begin anew, for another incarnation of this process. */
void channels_renew(struct peer *peer);
void channels_close(struct peer *peer);

/* runs.c.  What is heard: NULL, or what is wrong with it. */
void runs_introduce(struct peer *peer, cv_pid p); /* over a new link */
const char *runs_hear(struct peer *peer, cv_pid p, const unsigned char *bytes, size_t size);
void runs_tell_done(struct peer *peer, cv_pid p);
const char *runs_hear_done(struct peer *peer, cv_pid p, const unsigned char *bytes, size_t size);
void runs_look_whether_over(struct peer *peer);
void runs_look(struct peer *peer); /* whether one begins, or is left */
void runs_watch(struct peer *peer);

#endif
