/* A segment of the log as a file: its form, and what is found in it.  Only the log looks in here.
 *
 * What a segment holds is worth nothing alone, so its header says how the log stood where it
 * begins: that is where the segment before it has to end. */
#ifndef CV_RAFT_SEGMENT_H
#define CV_RAFT_SEGMENT_H

#include "raft/log.h"

struct segment_header {
    char magic[16];
    uint64_t key, sequence;
    uint64_t next, committed, term; /* a struct log_end */
    uint64_t before;        /* where the one before it ends; 0: it does not go on from that */
    uint32_t reserved, crc; /* of all before it */
};
struct batch_header {
    uint32_t crc; /* of the key, the rest of the header and the entries */
    uint32_t size;
    uint64_t first, term, committed;
    uint32_t count, kind, reserved, mark;
};
_Static_assert(sizeof(struct segment_header) == 72, "it is what is on disk");
_Static_assert(sizeof(struct batch_header) == 48, "it is what is on disk");

enum { SEGMENT_NAME_SIZE = 32 };

char *segment_name(char name[SEGMENT_NAME_SIZE], uint64_t sequence);
bool segment_is_named(const char *name, uint64_t *sequence);
/* The header of a new one; 0, or -1 when there is no randomness to be had. */
int segment_begin(struct segment_header *header, uint64_t sequence, const struct log_end *end);
struct batch_header segment_batch_header(uint64_t key, const struct raft_batch *batch);

/* Batches begin at multiples of 8. */
static inline uint64_t segment_room(uint64_t entries_size) {
    return (sizeof(struct batch_header) + entries_size + 7) & ~(uint64_t)7;
}

/* ---- Looking into one ---- */

struct segment_view { /* of a whole one, in memory */
    int file;
    const unsigned char *base;
    uint64_t size;
    struct segment_header header;
    char name[SEGMENT_NAME_SIZE];
};

/* -1, and the log's message.  To be closed either way. */
int segment_map(struct log *log, struct segment_view *view, uint64_t sequence);
void segment_unmap(struct segment_view *view);
/* Only the header; false: there is none that is good. */
bool segment_read_header(int directory, uint64_t sequence, struct segment_header *header);

/* The batch at a place, if there is one. */
bool segment_batch(const struct segment_view *view, uint64_t at, struct raft_batch *batch);
/* Whether there is any batch from a place on; *last is raised to its last entry. */
bool segment_any_batch(const struct segment_view *view, uint64_t at, uint64_t *last);
/* Whether nothing was written from a place on. */
bool segment_is_zero(const struct segment_view *view, uint64_t at);
/* Cuts it at a place, and gives it back the room that it had. */
int segment_cut(struct log *log, const struct segment_view *view, uint64_t at);

/* ---- Messages of the log, each -1 ---- */

__attribute__((format(printf, 2, 3))) int log_fail(struct log *log, const char *format, ...);
int log_fail_errno(struct log *log, const char *what, const char *name);

#endif
