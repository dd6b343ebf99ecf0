/* Any bytes as a segment of the log: what is refused is refused, and what is opened goes on.
 *
 * Checksums that are wrong would hide everything behind them, so the first byte says which of them
 * are put right before: 1 that of the segment, 2 those of the batches.
 *
 *   make fuzz F=log */
#include "fuzz_files.h"
#include "raft/log.h"

enum { SEGMENT_HEADER = 40, BATCH_HEADER = 32, FIX_SEGMENT = 1, FIX_BATCHES = 2 };

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
    uint64_t entries, batches;
};

static int count(void *context, const struct raft_batch *batch) {
    struct replayed *r = context;
    struct raft_entry entry;
    for (size_t at = 0; raft_next(batch, &at, &entry);) {
        cv_assert(entry.bytes >= batch->bytes && at <= batch->size);
        cv_assert(entry.bytes + entry.size == batch->bytes + at);
    }
    r->entries += batch->count;
    r->batches++;
    return 0;
}

static int open_log(struct log *log, struct replayed *r) {
    bool cut;
    *log = (struct log){.segment_bytes = 4096, .no_sync = true};
    *r = (struct replayed){0};
    return log_open(log, fuzz_directory, fuzz_path, 0, count, r, &cut);
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
        struct raft_batch batch = {.first = log.next,
                                   .term = 1,
                                   .count = 1,
                                   .bytes = (const unsigned char *)"\4\0\0\0abcd",
                                   .size = 8};
        cv_assert(found.state != LOG_UNREADABLE && found.state != LOG_DAMAGED);
        cv_assert(found.next == log.next);
        cv_assert(log_append(&log, &batch) == 0);
        uint64_t next = log.next;
        log_close(&log);
        if (open_log(&log, &after) != 0) cv_assert(!"what was opened and appended to opens again");
        cv_assert(log.next == next && after.batches == before.batches + 1);
    } else {
        cv_assert(*log.message);
    }
    log_close(&log);
    return 0;
}
