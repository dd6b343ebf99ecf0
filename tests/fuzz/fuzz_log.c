/* Any bytes as a segment of the log: it is refused, or opened and continued.
 *
 * Wrong checksums would hide everything after them, so the first byte says which are corrected
 * before: 1 that of the segment, 2 those of the batches.
 *
 *   make fuzz F=log */
#include "fuzz_files.h"
#include "service/log/log.h"
#include "service/log/window.h"

enum { FIX_SEGMENT = 1, FIX_BATCHES = 2, ALLOCATED_MAX = 65535 };

struct form { /* of a version: where checksums are, and what they are of */
    const char *magic;
    size_t segment_header, batch_header, batch_crc, end_mark;
};
static const struct form forms[] = {{"conclave log 2", 72, 48, 0, 0},
                                    {"conclave log 3", 80, 56, 52, 8}};

static void put_batch_right(unsigned char *batch, uint32_t size, const unsigned char *key,
                            const struct form *form) {
    uint32_t crc = crc32c(0, key, 8), of_entries;
    if (form->batch_crc) {
        of_entries = crc32c(crc, batch + form->batch_header, size);
        memcpy(batch + 44, &of_entries, sizeof of_entries);
        crc = crc32c(crc, batch, form->batch_crc);
    } else {
        crc = crc32c(crc, batch + 4, form->batch_header - 4 + size);
    }
    memcpy(batch + form->batch_crc, &crc, sizeof crc);
}

static void put_right(unsigned char *file, size_t size, unsigned what) {
    const struct form *form = &forms[size > 13 && file[13] == '3'];
    uint64_t allocated;
    uint32_t crc, batch;
    if (size < form->segment_header) return;
    memcpy(&allocated, file + 64, sizeof allocated);
    if (form->end_mark && allocated > ALLOCATED_MAX) memset(file + 66, 0, 6); /* it is allocated */
    crc = crc32c(0, file, form->segment_header - sizeof crc);
    if (what & FIX_SEGMENT) memcpy(file + form->segment_header - sizeof crc, &crc, sizeof crc);
    size_t at = form->segment_header;
    while (what & FIX_BATCHES && size - at >= form->batch_header) {
        memcpy(&batch, file + at + 4, sizeof batch);
        if (batch > size - at - form->batch_header) return;
        put_batch_right(file + at, batch, file + 16, form);
        size_t step = (form->batch_header + (size_t)batch + 7) / 8 * 8 + form->end_mark;
        if (step > size - at) return;
        at += step;
    }
}

struct replayed {
    struct window window;
    uint64_t batches, sum;
    bool bad; /* a batch was malformed inside, which the owner of the log has to notice */
};

/* As a server does: committed entries are read once, and then trimmed. */
static int take(void *context, const struct raft_batch *batch) {
    struct replayed *r = context;
    struct raft_entry entry;
    cv_assert(batch->commit_index <= raft_batch_last(batch));
    r->batches++;
    r->bad |= !window_append(&r->window, batch);
    if (r->bad) return -1;
    for (uint64_t i = r->window.after + 1; i <= window_last(&r->window); i++) {
        window_entry(&r->window, i, &entry);
        r->sum += crc32c(0, entry.bytes, entry.size);
    }
    if (batch->commit_index > r->window.after) window_trim(&r->window, batch->commit_index);
    return 0;
}

static int open_log(struct log *log, struct replayed *r) {
    enum log_state end;
    *log = (struct log){.segment_bytes = 4096, .no_sync = true};
    *r = (struct replayed){0};
    window_open(&r->window, 0);
    int status = log_open(log, fuzz_directory, fuzz_path, 0, 0, take, r, &end);
    if (status == 0 && end == LOG_END_DAMAGED) cv_assert(log_give_up_end(log) == 0);
    cv_assert(status || window_last(&r->window) + 1 == log->end.next_index);
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
    if (status == 0) { /* it continues, and all earlier batches are replayed again */
        struct raft_batch batch = {.first = log.end.commit_index + 1, /* may replace */
                                   .term = log.end.term,
                                   .count = 1,
                                   .bytes = (const unsigned char *)"\4\0\0\0abcd",
                                   .size = 8};
        cv_assert(found.state != LOG_UNREADABLE && found.state != LOG_DAMAGED);
        cv_assert(found.next_index == log.end.next_index);
        cv_assert(log_append(&log, &batch) == 0);
        uint64_t next = log.end.next_index;
        log_close(&log);
        if (open_log(&log, &after) != 0) cv_assert(!"what was opened and appended to opens again");
        cv_assert(log.end.next_index == next && after.batches == before.batches + 1 &&
                  after.sum >= before.sum);
    } else {
        cv_assert(*log.message || before.bad);
    }
    log_close(&log);
    return 0;
}
