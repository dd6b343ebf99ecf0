/* Frames between servers, each described once, and their form.
 *
 * A frame's type and size are the link's affair (wire/net/link.h); the body is the fields in the
 * order of their description, then a payload: entries, or a part of a snapshot's file.  Numbers are
 * big-endian.  Entries are as in the log: little-endian sizes, then bytes.
 *
 * The two ends of a link agree on a version.  Each field names the version that added it, at the
 * end of its frame; in an older version it is neither written nor read, and is 0.  Version 2 had
 * messages of the core in another form (codec_v2.c), and all numbers little-endian. */
#ifndef CV_SERVICE_ENSEMBLE_CODEC_H
#define CV_SERVICE_ENSEMBLE_CODEC_H

#include "raft/message.h"
#include "wire/zk/wire.h"

enum {
    CODEC_VERSION_TYPED = 3,   /* the first with typed, big-endian messages */
    CODEC_VERSION_TOUCHED = 4, /* the first in which reports of sessions are acknowledged */
    CODEC_VERSION_MEND = 5,    /* the first in which members mend each other's logs */
    CODEC_VERSION_MEMORY = 6,  /* the first in which members say that their memory is short */
    CODEC_VERSION_PROOF = 7,   /* the first in which members say which configuration names them */
};

/* Proposals of the sender's clients, for the leader of `term`; the sender has seen all up to
 * applied_sequence applied.  Entries follow. */
#define FRAME_FIELDS_forward(F)                                                                    \
    F(u64, term, 2)                                                                                \
    F(u64, applied_sequence, 2)
/* Sessions that were heard from: their ids follow, 8 bytes each.  The leader acknowledges the
 * number of the report. */
#define FRAME_FIELDS_touch_sessions(F)     F(u64, number, 4)
#define FRAME_FIELDS_sessions_touched(F)   F(u64, number, 4)
#define FRAME_FIELDS_read_index_request(F) F(u64, number, 2)
#define FRAME_FIELDS_read_index_response(F)                                                        \
    F(u64, number, 2)                                                                              \
    F(u64, index, 2)
/* An operator wants that server to lead. */
#define FRAME_FIELDS_transfer_leadership(F) F(u64, transferee, 2)
/* The receiver is no longer a member: the configuration of that index, which is without it, is
 * committed.  0: the leader says so, and it is in force. */
#define FRAME_FIELDS_removed(F) F(u64, config_index, 4)
/* The first frame on a link: where the sender can be reached, for a receiver whose configuration
 * does not name it.  Blank: its log is empty.  Sent again when the sender's directory is named
 * by what it has applied: up to there, or 0.  The host follows. */
#define FRAME_FIELDS_introduction(F)                                                               \
    F(u32, port, 4)                                                                                \
    F(u8, blank, 4)                                                                                \
    F(u64, named_index, 7)

/* Entries that the sender has lost, from first to last, if the receiver has them; and whether the
 * receiver's log has the entry pin_index of pin_term (0: no matter). */
#define FRAME_FIELDS_mend_request(F)                                                               \
    F(u64, number, 5)                                                                              \
    F(u64, first, 5)                                                                               \
    F(u64, last, 5)                                                                                \
    F(u64, pin_index, 5)                                                                           \
    F(u64, pin_term, 5)
/* The first of these entries, as many as fit, all of one term and kind; none: the sender does not
 * have them, but perhaps a snapshot with them, and it may know that so many are of that term.  The
 * entries follow. */
#define FRAME_FIELDS_mend_response(F)                                                              \
    F(u64, number, 5)                                                                              \
    F(u64, term, 5)                                                                                \
    F(u64, commit_index, 5)                                                                        \
    F(u64, snapshot_index, 5)                                                                      \
    F(u64, known, 5)                                                                               \
    F(u32, count, 5)                                                                               \
    F(u8, kind, 5)                                                                                 \
    F(u8, pinned, 5)
/* A part of that snapshot's file. */
#define FRAME_FIELDS_mend_chunk_request(F)                                                         \
    F(u64, snapshot_index, 5)                                                                      \
    F(u64, offset, 5)
/* It follows; file_size 0: the sender does not have that snapshot. */
#define FRAME_FIELDS_mend_chunk(F)                                                                 \
    F(u64, snapshot_index, 5)                                                                      \
    F(u64, offset, 5)                                                                              \
    F(u64, file_size, 5)

/* Whether the sender's memory is short: what any member takes all of them have to keep. */
#define FRAME_FIELDS_memory(F) F(u8, is_short, 6)
/* The leader of that term had no room for what the receiver has forwarded, and has it now. */
#define FRAME_FIELDS_forward_again(F) F(u64, term, 6)

/* M(TYPE, NAME); the type is the link's. */
#define FRAMES(M)                                                                                  \
    M(2, forward)                                                                                  \
    M(3, touch_sessions)                                                                           \
    M(4, read_index_request)                                                                       \
    M(5, read_index_response)                                                                      \
    M(6, transfer_leadership)                                                                      \
    M(7, removed)                                                                                  \
    M(8, introduction)                                                                             \
    M(9, sessions_touched)                                                                         \
    M(10, mend_request)                                                                            \
    M(11, mend_response)                                                                           \
    M(12, mend_chunk_request)                                                                      \
    M(13, mend_chunk)                                                                              \
    M(14, memory)                                                                                  \
    M(15, forward_again)

enum frame_type {
    FRAME_MESSAGE = 1, /* a message of the core */
#define FRAME_TYPE_(TYPE, NAME) FRAME_TYPE_##NAME = TYPE,
    FRAMES(FRAME_TYPE_)
};

#define FRAME_STRUCT_(TYPE, NAME)                                                                  \
    struct frame_##NAME {                                                                          \
        FRAME_FIELDS_##NAME(RAFT_MEMBER_)                                                          \
    };
FRAMES(FRAME_STRUCT_)

/* Each takes the fields off the front of `in` and leaves the payload there; false: there are too
 * few bytes. */
#define FRAME_FUNCTIONS_(TYPE, NAME)                                                               \
    void codec_write_##NAME(struct bytes *out, uint16_t version,                                   \
                            const struct frame_##NAME *frame);                                     \
    bool codec_read_##NAME(struct zk_in *in, uint16_t version, struct frame_##NAME *frame);
FRAMES(FRAME_FUNCTIONS_)

/* A message of the core.  Its sender and receiver are those of the link. */
void codec_write_message(struct bytes *out, uint16_t version, const struct raft_message *message);
bool codec_read_message(struct zk_in *in, uint16_t version, uint8_t from, uint8_t to,
                        struct raft_message *message);

void codec_write_u64(struct bytes *out, uint16_t version, uint64_t value);
bool codec_read_u64(struct zk_in *in, uint16_t version, uint64_t *value);

/* ---- codec_v2.c ---- */

enum { CODEC_V2_SIZE = 72 };

void codec_v2_write_message(struct bytes *out, const struct raft_message *message);
bool codec_v2_read_message(struct zk_in *in, struct raft_message *message);

#endif
