/* The record of a process: each event that its algorithm was given, each message that it sent, and
 * a hash of what came of each step.  With the records of all processes a run can be replayed and
 * judged (lab/peers); without, it costs a branch.
 *
 * A file is a series of blocks, each with its size and its checksum, so that an end that was torn
 * by a crash is known; a block holds whole entries.  Numbers are little-endian.  A process that
 * restarts appends another run. */
#ifndef CV_PEER_RECORD_H
#define CV_PEER_RECORD_H

#include "base/bytes.h"
#include "base/hash.h"
#include "peer/codec.h"
#include "peer/group.h"

enum { RECORD_ERROR_MAX = 512 };

enum record_entry {
    RECORD_RUN =
        1,       /* a run begins: magic, flags, pid, incarnation, time, prefix, group_run, group */
    RECORD_STEP, /* event, time since the entry before, hash; what the event brings */
    RECORD_SENT, /* to, number: by the step before */
    RECORD_MET,  /* pid, incarnation: messages to and from it are numbered anew */
    RECORD_END,  /* whether the group has ended in order; time since the entry before */
};
/* Sizes of entries, with the byte that says which it is. */
enum {
    RECORD_MAGIC = 0x32525643,
    RECORD_BLOCK_HEAD = 8, /* size and checksum of the block */
    RECORD_RUN_SIZE = 42,  /* without the group */
    RECORD_STEP_SIZE = 14, /* without what the event brings: */
    RECORD_MESSAGE_SIZE = 18,
    RECORD_ARGUMENT_SIZE = 4,
    RECORD_SENT_SIZE = 13,
    RECORD_MET_SIZE = 13,
    RECORD_END_SIZE = 6,
};
/* Of a run.  One that is resumed goes on with the state and the channels of the one before it in
 * the file, which is of the same incarnation. */
enum { RECORD_AGAIN = 1, RECORD_AMNESIA = 2, RECORD_DETECTOR = 4, RECORD_RESUMED = 8 };

/* What came of a step: the state and all effects.  The same in the peer and in the replay. */
static inline uint64_t record_hash(const void *state, size_t size, const struct cv_out *out) {
    uint64_t flags[2] = {(uint64_t)out->save | (uint64_t)out->tells << 8 |
                             (uint64_t)out->timers_set << 16 |
                             (uint64_t)out->timers_cancelled << 24,
                         out->choose};
    uint64_t hash = hash_long(flags, sizeof flags, out->used);
    if (out->tells) hash = hash_long(out->tell, out->tells * sizeof out->tell[0], hash);
    for (unsigned t = 0; t < CV_TIMERS_MAX; t++)
        if (out->timers_set & 1u << t) hash = hash_long(&out->timer[t], sizeof out->timer[t], hash);
    if (out->used) hash = hash_long(out->sends, out->used, hash);
    return hash_long(state, size, hash);
}

/* ---- Writing ---- */

struct recorder {
    int fd;              /* -1: nothing is recorded */
    struct bytes block;  /* what is not written yet, after room for its head */
    uint64_t written_us; /* the time of the newest entry that has one */
};

/* 0, or -1 and a sentence in `error`. */
int recorder_open(struct recorder *recorder, const char *path, char error[RECORD_ERROR_MAX]);
struct recorder_run {
    const struct group *group;
    cv_pid self;
    uint64_t incarnation, wall_us, now_us;
    unsigned flags;
    uint64_t prefix;    /* the hash of the durable prefix with which it begins */
    uint32_t group_run; /* which of the group's it belongs to, see peer/runs.c */
};
void recorder_run(struct recorder *recorder, const struct recorder_run *run);
/* `number` is that of the message, if the event is one. */
void recorder_step(struct recorder *recorder, uint64_t now_us, const struct codec *codec,
                   const struct cv_event *event, uint64_t number, uint64_t hash);
void recorder_sent(struct recorder *recorder, cv_pid to, uint64_t number);
void recorder_met(struct recorder *recorder, cv_pid p, uint64_t incarnation);
void recorder_end(struct recorder *recorder, uint64_t now_us, bool in_order);
bool recorder_is_full(const struct recorder *recorder); /* and is to be flushed */
/* Gives the system what was recorded: before anything that others see.  0 or an errno, after which
 * nothing is recorded any more. */
int recorder_flush(struct recorder *recorder);
uint64_t recorder_size(const struct recorder *recorder); /* of what the system has got */
void recorder_close(struct recorder *recorder);

/* ---- Reading ---- */

struct record_step {
    struct cv_event event;     /* of a message: without its body */
    const unsigned char *body; /* of a message, as it was sent */
    uint64_t time_us, hash;
    uint64_t number, from_incarnation; /* of a message */
    uint32_t sent, sent_count;         /* the messages that it has sent */
};

struct record_sent {
    cv_pid to;
    uint64_t number;
    uint64_t incarnation; /* of the receiver; 0: it was never met */
};

struct record_run {
    cv_pid self;
    const char *path; /* of the file */
    uint64_t incarnation, began_us, prefix;
    uint64_t ended_us;
    uint64_t resumed_us; /* the last time; 0: never */
    unsigned flags;
    uint32_t group_run;
    bool ended, in_order;
    size_t torn; /* bytes at the end that are no whole block */
    struct record_step *step;
    size_t step_count, step_room;
    struct record_sent *sent;
    size_t sent_count, sent_room;
};

struct records { /* of one group.  All zero: none yet */
    /* Set before the first is read: the algorithm, or how it is found by its name. */
    const struct cv_algorithm *algorithm;
    const struct cv_algorithm *(*find)(const char *name);
    struct group group;
    const unsigned char *group_bytes; /* of the first run: all have the same */
    size_t group_size;
    struct record_run *run;
    size_t run_count, run_room;
    unsigned char **file; /* their bytes */
    size_t file_count, file_room;
};

/* Adds the runs of a file.  0, or -1 and a sentence in `error`. */
int records_read(struct records *records, const char *path, char error[RECORD_ERROR_MAX]);
/* The same of bytes, which the records keep and free. */
int records_parse(struct records *records, const char *name, unsigned char *bytes, size_t size,
                  char error[RECORD_ERROR_MAX]);
/* One that was suspended and resumed is one run.  The runs of one process in their order, and all
 * processes in theirs. */
void records_sort(struct records *records);
void records_free(struct records *records);

#endif
