/* Any bytes as a segment of the log: what is refused is refused, and what is opened goes on.
 *
 * Checksums that are wrong would hide everything behind them, so the first byte says which of them
 * are put right before: 1 that of the segment, 2 those of the batches.
 *
 *   make fuzz F=log */
#include "fuzz_files.h"
#include "raft/log.h"
#include "raft/window.h"

enum { SEGMENT_HEADER = 72, BATCH_HEADER = 48, FIX_SEGMENT = 1, FIX_BATCHES = 2 };

static void put_right(unsigned char *file, size_t size, unsigned what) {
    uint32_t crc, batch;
    if (size < SEGMENT_HEADER) return;
    crc = crc32c(0, file, SEGMENT_HEADER - sizeof crc);
    if (what & FIX_SEGMENT) memcpy(file + SEGMENT_HEADER - sizeof crc, &crc, sizeof crc);
    for (size_t at = SEGMENT_HEADER; what & FIX_BATCHES && size - at >= BATCH_HEADER;) {
        memcpy(&batch, file + at + 4, sizeof batch);
        if (batch > size - at - BATCH_HEADER) return;
        crc = crc32c(crc32c(0, file + 16, 8), file + at + 4, BATCH_HEADER - 4 + batch);
        memcpy(file + at, &crc, sizeof crc);
        size_t step = (BATCH_HEADER + (size_t)batch + 7) / 8 * 8;
        if (step > size - at) return;
        at += step;
    }
}

struct replayed {
    struct window window;
    uint64_t batches, sum;
    bool bad; /* some batch was none, which is for the owner of the log to notice */
};

/* As a server does: what is decided is looked at, once, and then forgotten. */
static int take(void *context, const struct raft_batch *batch) {
    struct replayed *r = context;
    struct raft_entry entry;
    cv_assert(batch->committed <= raft_batch_last(batch));
    r->batches++;
    r->bad |= !window_append(&r->window, batch);
    if (r->bad) return -1;
    for (uint64_t i = r->window.after + 1; i <= window_last(&r->window); i++) {
        window_entry(&r->window, i, &entry);
        r->sum += crc32c(0, entry.bytes, entry.size);
    }
    if (batch->committed > r->window.after) window_trim(&r->window, batch->committed);
    return 0;
}

static int open_log(struct log *log, struct replayed *r) {
    bool cut;
    *log = (struct log){.segment_bytes = 4096, .no_sync = true};
    *r = (struct replayed){0};
    window_open(&r->window, 0);
    int status = log_open(log, fuzz_directory, fuzz_path, 0, 0, take, r, &cut);
    cv_assert(status || window_last(&r->window) + 1 == log->end.next);
    window_close(&r->window);
    return status;
}

static void note(void *context, const struct log_finding *finding) {
    *(struct log_finding *)context = *finding;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct log log;
    struct log_finding found = {0};
    struct replayed before, after;
    if (!size) return 0;
    unsigned char *file = malloc(size);
    cv_assert(file);
    memcpy(file, bytes + 1, size - 1);
    put_right(file, size - 1, bytes[0]);
    fuzz_file("log.0000000000000001", file, size - 1);
    free(file);
    cv_assert(log_examine(&log, fuzz_directory, fuzz_path, note, &found) == 0);
    log_close(&log);
    int status = open_log(&log, &before);
    if (status == 0) { /* it goes on, and all that was there is there again */
        struct raft_batch batch = {.first = log.end.committed + 1, /* may replace */
                                   .term = log.end.term,
                                   .count = 1,
                                   .bytes = (const unsigned char *)"\4\0\0\0abcd",
                                   .size = 8};
        cv_assert(found.state != LOG_UNREADABLE && found.state != LOG_DAMAGED);
        cv_assert(found.next == log.end.next);
        cv_assert(log_append(&log, &batch) == 0);
        uint64_t next = log.end.next;
        log_close(&log);
        if (open_log(&log, &after) != 0) cv_assert(!"what was opened and appended to opens again");
        cv_assert(log.end.next == next && after.batches == before.batches + 1 &&
                  after.sum >= before.sum);
    } else {
        cv_assert(*log.message || before.bad);
    }
    log_close(&log);
    return 0;
}
