/* Private to this folder: a segment of the log as a file, its format and its contents.
 *
 * The batches of a segment mean nothing without what came before, so its header records the state
 * of the log where it begins: the previous segment has to end in that state. */
#ifndef CV_SERVICE_LOG_INTERNAL_H
#define CV_SERVICE_LOG_INTERNAL_H

#include <sys/uio.h>

#include "service/log/log.h"

struct segment_header {
    char magic[16];
    uint64_t key, sequence;
    uint64_t next_index, commit_index, term; /* a struct log_end */
    uint64_t previous_end; /* offset at which the previous segment ends; 0: this one is fresh */
    uint64_t size;         /* of the preallocated file; 0: version 2, which does not say */
    uint32_t origin, crc;  /* origin: see struct log; crc: of all before it */
};
/* Between its header and the end mark are the entries.  The first and the last word of the header
 * are not zero, nor is the end mark, and it is known how many sectors in between are: so a batch of
 * which a part was never written differs from one that was written and then damaged. */
struct batch_header {
    uint32_t magic, size;
    uint64_t first, term, commit_index;
    uint32_t count, kind;
    uint32_t zero_sectors;  /* sectors of the disk that only hold zeros, all of them of entries */
    uint32_t entries_crc;   /* of the key and the entries */
    uint32_t previous_term; /* of the entry before the first, if the batch continues the log; 0: it
                               does not, or an older program did not say */
    uint32_t crc;           /* of the key and the header before it */
};
_Static_assert(sizeof(struct segment_header) == 80, "it is what is on disk");
_Static_assert(sizeof(struct batch_header) == 56, "it is what is on disk");

enum { SEGMENT_NAME_SIZE = 32, BATCH_END_MAX = 16, SECTOR = 512 };

char *segment_name(char name[SEGMENT_NAME_SIZE], uint64_t sequence);
bool segment_is_named(const char *name, uint64_t *sequence);
/* The header of a new segment; 0, or -1 when the system has no random number. */
int segment_begin(struct segment_header *header, struct log *log, uint64_t sequence, uint64_t size,
                  const struct log_end *end);
/* The bytes of a header, as version 2 if it has no size; how many they are. */
size_t segment_header_form(const struct segment_header *header,
                           unsigned char bytes[sizeof(struct segment_header)]);

/* ---- Writing a batch ---- */

struct batch_form { /* what precedes the entries and what follows them */
    unsigned char header[sizeof(struct batch_header)], end[BATCH_END_MAX];
    size_t header_size, end_size;
};

/* The bytes that a batch takes: batches begin at multiples of 8. */
uint64_t segment_room(uint64_t entries_size, bool is_old);
/* `offset`: where it will be. */
void segment_batch_form(struct batch_form *form, uint64_t key, const struct raft_batch *batch,
                        uint64_t previous_term, uint64_t offset, bool is_old);

/* ---- Reading a segment ---- */

struct segment_view { /* a segment, of which a part is in memory */
    int file;
    uint64_t size, begin; /* of the file; where its batches begin */
    struct segment_header header;
    char name[SEGMENT_NAME_SIZE];
    unsigned char *part;
    uint64_t part_offset;
    size_t part_size, part_room;
    int error; /* why it cannot be opened; or, what cannot be read is taken for damage: errno, and
                  the first such offset */
    uint64_t error_offset;
};

struct batch_place {         /* of a batch that has a header */
    struct raft_batch batch; /* without its entries */
    uint64_t entries, end;   /* offsets */
    uint32_t crc_seed, entries_crc, zero_sectors, previous_term;
};

/* -1, and the log's message.  The view has to be closed either way. */
int segment_open(struct log *log, struct segment_view *view, uint64_t sequence);
void segment_close(struct segment_view *view);
/* Only the header; false: it cannot be read (errno), or is damaged (0). */
bool segment_read_header(int directory, uint64_t sequence, struct segment_header *header);

static inline bool segment_is_old(const struct segment_view *view) { return !view->header.size; }
/* Bytes of the file, until the next call. */
const unsigned char *segment_bytes(struct segment_view *view, uint64_t offset, size_t size);
/* The header of a batch; false: there is no good one.  (One of version 2 is only plausible.) */
bool segment_batch_place(struct segment_view *view, uint64_t offset, struct batch_place *place);
/* The batch at an offset, and where it ends; false: there is no good one. */
bool segment_batch(struct segment_view *view, uint64_t offset, struct raft_batch *batch,
                   uint64_t *end);
/* Where the next header of a batch may be, from an offset on; the file's size: nowhere. */
uint64_t segment_next_magic(struct segment_view *view, uint64_t offset);
/* The first word of a header, and the last; returns where it ends. */
uint64_t segment_header_ends(struct segment_view *view, uint64_t offset, uint32_t *first,
                             uint32_t *last);
/* Whether nothing but zeros is there. */
bool segment_is_zero(struct segment_view *view, uint64_t offset, uint64_t end);
int segment_write_zeros(int file, uint64_t from, uint64_t end); /* -1 and errno */
/* Cuts the segment at an offset: from there on it is as if nothing had been written. */
int segment_cut(struct log *log, struct segment_view *view, uint64_t offset);

/* ---- The end of a segment (tail.c) ---- */

enum { TAIL_WHAT_MAX = 320 };

struct tail { /* what follows the last good batch */
    enum log_state state;
    uint64_t last;            /* entry of which anything is known */
    char what[TAIL_WHAT_MAX]; /* what is wrong, and how that is known */
};

/* `durable_end`: the segment is known to have been durable up to there; 0: nothing is known. */
void tail_judge(struct segment_view *view, const struct log_end *end, bool is_last,
                uint64_t durable_end, struct tail *tail);

/* ---- The mark (mark.c) ---- */

/* All zero: there is none, or it is damaged. */
int mark_read(struct log *log);
/* Moves the mark to the end of the log; `durable`: when it returns. */
int mark_move(struct log *log, bool durable);

/* ---- Parts of log.c ---- */

int log_list_segments(struct log *log); /* in their order */
/* The last segment from which everything after a snapshot of that entry can be read; `segments`:
 * there is none. */
size_t log_first_needed(const struct log *log, uint64_t index);
/* Of the next segment: a small one, so that there soon is a spare. */
uint64_t log_size_without_spare(const struct log *log);
/* Up to where a segment is known to have been durable; 0: that is not known. */
uint64_t log_durable_end(const struct log *log, const struct segment_header *header);
int log_write_all(int file, struct iovec *parts, int count, uint64_t at);

/* ---- Messages of the log, each -1 ---- */

__attribute__((format(printf, 2, 3))) int log_fail(struct log *log, const char *format, ...);
int log_fail_errno(struct log *log, const char *what, const char *name);

#endif
