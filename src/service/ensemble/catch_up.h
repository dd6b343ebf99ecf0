/* What catch_up.c and catch_up_snapshot.c share. */
#ifndef CV_SERVICE_ENSEMBLE_CATCH_UP_H
#define CV_SERVICE_ENSEMBLE_CATCH_UP_H

#include "service/ensemble/internal.h"
#include "service/log/reader.h"
#include "service/log/transfer.h"

enum { BATCHES_IN_FLIGHT = 16 };

struct log_job { /* a thread reads the log */
    uv_work_t work;
    struct ensemble *ensemble; /* NULL: nobody wants the result */
    uint8_t id;
    int directory;
    const char *path;
    uint64_t position, position_term; /* where to begin, if there is no reader yet */
    uint64_t last;
    uint64_t term; /* in which this server leads */
    struct log_reader *reader;
    struct raft_batch batch;
    uint64_t previous_term;
    bool failed;
};

struct from_log {              /* entries of the log on disk for a member */
    struct log_reader *reader; /* NULL: none yet, or a thread has it */
    struct log_job *job;
    uint64_t position, position_term; /* its log may agree up to here; position_term 0: not known */
    uint64_t refused;                 /* it does not agree there, as it has said; 0: it has not */
    uint64_t sent_index;              /* 0: nothing yet */
    uint64_t before_index;            /* of the entry before the first in flight */
    bool agreed;                      /* it has taken one of the batches */
    uint64_t in_flight[BATCHES_IN_FLIGHT]; /* the last entry of each batch */
    unsigned count;
    uint64_t progress_us;
    bool impossible; /* the log does not go back so far: a snapshot is needed */
};

struct from_snapshot { /* a snapshot for a member */
    struct sending file;
    bool open, asked, answered; /* asked: by the first chunk */
    uint64_t term;              /* of the snapshot */
    uint64_t offset, sent; /* the member has it up to offset; sent is where the next chunk begins */
    uint64_t progress_us;
    unsigned repeats; /* since the last progress */
};

struct verify_job { /* a thread decodes a snapshot */
    uv_work_t work;
    struct ensemble *ensemble; /* NULL: nobody wants the result */
    struct snapshots from;
    uint64_t index, term;
    bool good;
};

struct catch_up {
    struct from_log log[MEMBER_ID_MAX + 1];
    struct from_snapshot snapshot[MEMBER_ID_MAX + 1];
    uint64_t up_us[MEMBER_ID_MAX + 1]; /* when the link to it was up last */
    struct verify_job *verify;
    uint64_t verified_index, verified_term;   /* the newest snapshot that was read as a whole */
    uint64_t unreadable_until_us, damaged_us; /* one could not be read; was found damaged */
};

/* Begins or continues to send a snapshot. */
void catch_up_send_snapshot(struct ensemble *ensemble, uint8_t id, struct from_snapshot *to);
void catch_up_close_snapshot(struct from_snapshot *to);

#endif
