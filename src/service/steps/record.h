/* The record of a server: every step of its consensus core, with a hash of what came of it.
 *
 * A file is a series of blocks, each with its size and its checksum, so that an end that was torn
 * by a crash is known; a block holds whole entries.  An entry is a step, a checkpoint (the state of
 * the core, from which a replay can begin), or the end of the server.  Every file begins with a
 * checkpoint, and so replays without any other.  Numbers are little-endian; those of steps have as
 * many bytes as they need. */
#ifndef CV_SERVICE_STEPS_RECORD_H
#define CV_SERVICE_STEPS_RECORD_H

#include <stdio.h>

#include "base/bytes.h"
#include "service/steps/step.h"

enum {
    STEPS_ERROR_MAX = 512,
    STEPS_MAGIC = 0x31535643,
    STEPS_BLOCK_HEAD = 8,        /* size and checksum of the block */
    STEPS_BLOCK_MAX = 16 << 20,  /* bytes in a block */
    STEPS_ENTRY_MAX = 512,       /* bytes of a step */
    STEPS_ENTRIES_MAX = 1 << 24, /* of the log, in one step */
};

enum steps_entry { /* the first byte; a step has its type there */
                   STEPS_CHECKPOINT = 128,
                   STEPS_END,
                   STEPS_END_MISSED, /* there were more steps before it */
};

enum steps_reason {                /* of a checkpoint */
                    STEPS_BEGUN,   /* the core was opened from what is durable */
                    STEPS_ROTATED, /* another file begins, and nothing is missing */
                    STEPS_MISSED,  /* the disk was too slow: there were steps that are not recorded
                                    */
                    STEPS_REASONS,
};

struct checkpoint {
    uint8_t reason;       /* enum steps_reason */
    uint64_t incarnation; /* of the server's process */
    uint64_t ensemble;    /* its id; 0: not known yet */
    uint64_t step;        /* so many were taken by this process before */
    uint64_t time_ms;     /* since 1970 */
    struct raft raft;     /* without its pointers */
    uint32_t runs;        /* of entries of one term, in the whole log */
    const unsigned char *run;
};

/* ---- Entries ---- */

/* Writes a step, and returns its size: at most STEPS_ENTRY_MAX. */
size_t steps_write(unsigned char *to, const struct step *step, uint32_t hash);
void steps_write_checkpoint(struct bytes *to, const struct checkpoint *checkpoint,
                            const struct raft *raft);
static inline struct raft_run checkpoint_run(const struct checkpoint *checkpoint, uint32_t i) {
    struct raft_run run;
    memcpy(&run, checkpoint->run + i * sizeof run, sizeof run);
    return run;
}

/* ---- Writing ---- */

struct steps; /* a recorder */

/* Appends to the file, if it is a record or what a crash has left of one.  When it has half of the
 * bytes it becomes PATH.1, and another one begins.  NULL: there is a sentence in `error`. */
struct steps *steps_open(const char *path, uint64_t bytes_max, uint64_t incarnation,
                         char error[STEPS_ERROR_MAX]);
/* The core has been opened, and takes its first step next; it must outlive the record. */
void steps_begin(struct steps *steps, const struct raft *raft, uint64_t ensemble);
/* The core takes a step next.  Proposals that follow each other are one step in the record, because
 * to propose some entries one by one, or at once, comes to the same; so what they came to is
 * written when another step follows. */
void steps_before(struct steps *steps, const struct step *step);
/* The core has taken a step.  False: nothing can be recorded any more, and steps_error says why. */
bool steps_add(struct steps *steps, const struct raft *raft, const struct step *step,
               const struct raft_out *out, uint64_t result);
int steps_error(const struct steps *steps); /* an errno; 0: none */
void steps_close(struct steps *steps);

/* ---- Reading ---- */

/* Every byte may be forged: what is not in order is refused here or, where it takes the core to
 * know, in the replay. */
struct steps_reader {
    const char *name;
    FILE *file;
    struct bytes block;
    size_t at;   /* in the block */
    size_t torn; /* bytes at the end that are no whole block */
    bool at_begin;
    char error[STEPS_ERROR_MAX];
    /* What was read last. */
    struct checkpoint checkpoint;
    struct step step;
    uint32_t hash;
    struct raft_message message;
    struct raft_config config;
};

enum steps_read {
    STEPS_READ_BAD = -1,
    STEPS_READ_EOF,
    STEPS_READ_STEP,
    STEPS_READ_CHECKPOINT,
    STEPS_READ_END,
    STEPS_READ_END_MISSED
};

/* The reader has the file from then on; the name is for messages. */
void steps_reader_open(struct steps_reader *reader, const char *name, FILE *file);
enum steps_read steps_read(struct steps_reader *reader);
void steps_reader_close(struct steps_reader *reader);
/* Whether a file begins as a record of a server does. */
bool steps_is_record(FILE *file);

#endif
