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
    bool up;          /* our link to it */
    bool here;        /* its link to us */
    bool suspected;   /* by the detector */
    bool cut_off;     /* messages to it are lost: it has to restart */
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
    uint64_t leader; /* the id that it follows; 0: none is known */
    struct links *links;
    struct other *other;
    uv_prepare_t flush;
    uv_timer_t acknowledge;
    uint64_t warned_ms; /* when a refusal was logged last */
    bool full;          /* a link did not take all that a channel had for it */
    bool stepping, done, stays, ending, closing, over;
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
/* Nothing that was done is seen by others before it is recorded. */
void peer_flush_record(struct peer *peer);

/* channels.c */
const char *channels_open(struct peer *peer);
void channels_send(struct peer *peer, enum peer_machine m, const struct cv_send *send);
void channels_tell_done(struct peer *peer);
void channels_close(struct peer *peer);

#endif
