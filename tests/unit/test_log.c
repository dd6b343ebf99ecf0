/* The log on disk: appended batches are replayed, and damage to the files is noticed. */
#include <inttypes.h>

#include "base/crc32c.h"
#include "file_help.h"
#include "service/log/log.h"

enum { SEGMENT = 4096, SEGMENT_HEADER = 80, BATCH_HEADER = 56, END_MARK = 8 };
#define FIRST_SEGMENT "log.0000000000000001"

/* ---- Batches ---- */

/* The batch that begins with an entry; its sizes follow from that. */
static struct raft_batch batch_from(uint64_t first) {
    static struct bytes bytes;
    uint32_t count = 1 + (uint32_t)(first % 3);
    bytes.used = 0;
    for (uint64_t index = first; index < first + count; index++) {
        uint32_t size = (uint32_t)(index * 31 % 90);
        memcpy(bytes_extend(&bytes, sizeof size), &size, sizeof size);
        memset(bytes_extend(&bytes, size), 'a' + (int)(index % 26), size);
    }
    return (struct raft_batch){.first = first,
                               .term = 1 + first / 8,
                               .commit_index = first + count - 1,
                               .count = count,
                               .bytes = bytes.at,
                               .size = bytes.used};
}

static uint64_t size_on_disk(uint64_t first) {
    return (BATCH_HEADER + batch_from(first).size + 7) / 8 * 8 + END_MARK;
}

/* The first entry of the batch that an entry is in, if batches follow each other from 1 on. */
static uint64_t first_of(uint64_t index) {
    uint64_t first = 1;
    while (first + batch_from(first).count <= index) first += batch_from(first).count;
    return first;
}

static uint64_t term_of(uint64_t index) { return index ? batch_from(first_of(index)).term : 0; }

/* ---- Opening ---- */

struct replayed {
    uint64_t after, next; /* next: expected; 0: any */
    unsigned batches;
};

static int check_batch(void *context, const struct raft_batch *batch) {
    struct replayed *r = context;
    uint64_t first = batch->first;
    struct raft_entry entry;
    size_t at = 0;
    /* The first batch comes without the entries up to `after`: its count shows that. */
    if (first == r->after + 1 && batch->count != batch_from(first).count) first = first_of(first);
    struct raft_batch expected = batch_from(first);
    for (; first < batch->first; first++) assert_true(raft_next(&expected, &at, &entry));
    if (r->next) assert_int_equal(batch->first, r->next);
    assert_true(batch->first > r->after);
    assert_int_equal(raft_batch_last(batch), raft_batch_last(&expected));
    assert_int_equal(batch->commit_index, raft_batch_last(&expected));
    assert_int_equal(batch->term, expected.term);
    assert_int_equal(batch->kind, RAFT_NORMAL);
    assert_int_equal(batch->size, expected.size - at);
    assert_memory_equal(batch->bytes, expected.bytes + at, batch->size);
    r->next = batch->first + batch->count;
    r->batches++;
    return 0;
}

static int ignore_batch(void *context, const struct raft_batch *batch) {
    return (void)context, (void)batch, 0;
}

static int open_log(struct log *log, const struct place *place, uint64_t after, enum log_state *end,
                    struct replayed *r) {
    *log = (struct log){.segment_bytes = SEGMENT, .no_sync = true, .read_only = log->read_only};
    *r = (struct replayed){.after = after};
    return log_open(log, place->directory, place->path, after, term_of(after), check_batch, r, end);
}

/* Opens a log that must be whole, up to but not including an entry. */
static void open_whole(struct log *log, const struct place *place, uint64_t next) {
    struct replayed r;
    enum log_state end;
    log->read_only = false;
    if (open_log(log, place, 0, &end, &r) != 0) fail_msg("%s", log->message);
    assert_int_equal(end, LOG_WHOLE);
    assert_int_equal(log->end.next_index, next);
    if (next > 1) assert_int_equal(r.next, next);
}

static void append(struct log *log, unsigned batches) {
    while (batches--) {
        struct raft_batch batch = batch_from(log->end.next_index);
        assert_int_equal(log_append(log, &batch), 0);
    }
}

/* Makes a log of some batches; `begins`: their offsets if they are in one segment. */
static uint64_t make(const struct place *place, unsigned batches, uint64_t *begins) {
    struct log log = {0};
    open_whole(&log, place, 1);
    for (unsigned i = 0; i < batches; i++) {
        if (log.file < 0 && begins) begins[i] = SEGMENT_HEADER;
        if (log.file >= 0 && begins) begins[i] = log.end.offset;
        append(&log, 1);
    }
    if (begins) begins[batches] = log.end.offset;
    uint64_t next = log.end.next_index;
    log_close(&log);
    return next;
}

static void expect_refused(const struct place *place, uint64_t after, const char *why) {
    struct log log = {0};
    struct replayed r;
    enum log_state end;
    assert_int_equal(open_log(&log, place, after, &end, &r), -1);
    if (!strstr(log.message, why)) fail_msg("'%s' is not in: %s", why, log.message);
    log_close(&log);
}

/* ---- Whole logs ---- */

static void appended_batches_are_replayed(void **state) {
    struct place place;
    struct log log = {0};
    uint64_t next = 1;
    (void)state;
    place_open(&place);
    for (unsigned round = 0; round < 30; round++) {
        open_whole(&log, &place, next);
        append(&log, round);
        next = log.end.next_index;
        log_close(&log);
    }
    assert_in_range(each_file(&place, NULL), 5, 100);
    struct replayed r;
    enum log_state end;
    for (uint64_t after = 0; after < next; after++) { /* from each entry on */
        assert_int_equal(open_log(&log, &place, after, &end, &r), 0);
        assert_int_equal(log.end.next_index, next);
        assert_int_equal(r.batches > 0, after < next - 1);
        log_close(&log);
    }
    place_close(&place);
}

static void a_batch_may_be_larger_than_a_segment(void **state) {
    struct place place;
    struct log log = {0};
    (void)state;
    place_open(&place);
    open_whole(&log, &place, 1);
    log.segment_bytes = 64; /* less than any batch needs */
    append(&log, 10);
    assert_int_equal(log.segments, 10);
    uint64_t next = log.end.next_index;
    log_close(&log);
    open_whole(&log, &place, next);
    log_close(&log);
    place_close(&place);
}

static void segments_that_a_snapshot_covers_are_trimmed(void **state) {
    struct place place;
    struct log log = {0};
    struct replayed r;
    enum log_state end;
    (void)state;
    place_open(&place);
    uint64_t next = make(&place, 200, NULL);
    open_whole(&log, &place, next);
    size_t segments = log.segments;
    assert_true(segments > 4);
    uint64_t third = log.segment[2].next_index;
    assert_int_equal(log_trim(&log, third - 2), 0); /* the second still has one */
    assert_int_equal(log.segments, segments - 1);
    assert_int_equal(log_trim(&log, third - 1), 0);
    assert_int_equal(log.segments, segments - 2);
    assert_int_equal(each_file(&place, NULL), segments - 2 + 1); /* and the spare */
    append(&log, 1);                                             /* continues where it was */
    next = log.end.next_index;
    log_close(&log);
    assert_int_equal(open_log(&log, &place, third - 1, &end, &r), 0);
    assert_int_equal(r.next, next);
    assert_int_equal(log_trim(&log, UINT64_MAX - 1), 0); /* the last one stays */
    assert_int_equal(log.segments, 1);
    append(&log, 1);
    log_close(&log);
    expect_refused(&place, third - 2, "the first that no snapshot holds");
    expect_refused(&place, 0, "the first that no snapshot holds");
    place_close(&place);
}

static void a_snapshot_may_be_newer_than_the_log(void **state) {
    struct place place;
    struct log log = {0};
    struct replayed r;
    enum log_state end;
    (void)state;
    place_open(&place);
    uint64_t last = make(&place, 10, NULL) - 1, after = last + 50;
    assert_int_equal(open_log(&log, &place, after, &end, &r), 0);
    assert_int_equal(r.batches, 0);
    assert_int_equal(log.end.next_index, after + 1);
    append(&log, 3);
    uint64_t next = log.end.next_index;
    log_close(&log);
    assert_int_equal(open_log(&log, &place, after, &end, &r), 0);
    assert_int_equal(r.batches, 3);
    assert_int_equal(log.end.next_index, next);
    log_close(&log);
    expect_refused(&place, last, "entries are missing"); /* not readable without that snapshot */
    place_close(&place);
}

static void other_files_are_ignored(void **state) {
    static const char *const names[] = {"new.log",
                                        "log.1",
                                        "log.00000000000000001",
                                        "log.xyz",
                                        "damaged.log.0000000000000001",
                                        "snapshot.0000000000000009"};
    struct place place;
    struct log log = {0};
    (void)state;
    place_open(&place);
    uint64_t next = make(&place, 10, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) file_write(&place, names[i], "x", 1);
    open_whole(&log, &place, next);
    log_close(&log);
    place_close(&place);
}

/* ---- Torn ---- */

/* The last batch was written up to an offset: the batches before it are there, and the log
 * continues.
 */
static void expect_cut(const struct place *place, uint64_t next, enum log_state expected) {
    struct log log = {0};
    struct replayed r;
    enum log_state end;
    if (open_log(&log, place, 0, &end, &r) != 0) fail_msg("%s", log.message);
    if (end != expected) fail_msg("%d instead of %d: %s", end, expected, log.message);
    if (end == LOG_END_DAMAGED) assert_int_equal(log_give_up_end(&log), 0);
    assert_int_equal(log.end.next_index, next);
    assert_int_equal(r.next, next);
    append(&log, 2);
    next = log.end.next_index;
    log_close(&log);
    open_whole(&log, place, next);
    log_close(&log);
}

static void only_file(const struct place *place, const void *bytes, size_t size) {
    each_file(place, remove_file);
    file_write(place, FIRST_SEGMENT, bytes, size);
}

static bool any_but_zero(const unsigned char *at, uint64_t size) {
    while (size && !*at) at++, size--;
    return size;
}

static void a_torn_or_damaged_end_is_cut_at_any_byte(void **state) {
    enum { BATCHES = 6 };
    struct place place;
    uint64_t begins[BATCHES + 1];
    (void)state;
    place_open(&place);
    make(&place, BATCHES, begins);
    struct bytes whole = file_read(&place, FIRST_SEGMENT), torn = {0};
    uint64_t from = begins[BATCHES - 1], last = 1;
    for (unsigned i = 1; i < BATCHES; i++) last += batch_from(last).count;
    uint64_t end = from + BATCH_HEADER + batch_from(last).size; /* without the padding */
    for (uint64_t at = from; at < end; at++) {
        torn.used = 0;
        bytes_add(&torn, whole.at, whole.used);
        memset(torn.at + at, 0, whole.used - at);
        bool is_torn = any_but_zero(torn.at + from, at - from);
        bool is_whole = memcmp(torn.at, whole.at, end) == 0; /* it ended in zeros */
        if (is_whole) continue;
        only_file(&place, torn.at, torn.used);
        expect_cut(&place, last, is_torn ? LOG_TORN : LOG_WHOLE);
        only_file(&place, torn.at, at); /* the preallocated rest is missing as well */
        expect_cut(&place, last, LOG_END_DAMAGED);
        memcpy(torn.at, whole.at, whole.used); /* it was written in full, and something happened */
        for (uint64_t i = at; i < end; i++) torn.at[i] = (unsigned char)(whole.at[i] ^ 0x81);
        only_file(&place, torn.at, torn.used);
        expect_cut(&place, last, LOG_END_DAMAGED);
    }
    bytes_close(&whole);
    bytes_close(&torn);
    place_close(&place);
}

static void a_reader_does_not_cut_a_torn_end(void **state) {
    struct place place;
    struct log log = {.read_only = true};
    struct replayed r;
    enum log_state end;
    uint64_t begins[4];
    (void)state;
    place_open(&place);
    make(&place, 3, begins);
    struct bytes file = file_read(&place, FIRST_SEGMENT);
    memset(file.at + begins[2] + 4, 0, file.used - begins[2] - 4);
    file_write(&place, FIRST_SEGMENT, file.at, file.used);
    assert_int_equal(open_log(&log, &place, 0, &end, &r), 0);
    assert_int_equal(end, LOG_TORN);
    assert_int_equal(r.batches, 2);
    log_close(&log);
    struct bytes after = file_read(&place, FIRST_SEGMENT);
    assert_int_equal(after.used, file.used);
    assert_memory_equal(after.at, file.at, file.used);
    bytes_close(&file);
    bytes_close(&after);
    place_close(&place);
}

/* ---- Damaged ---- */

/* One byte of a segment is wrong: the log is refused, with the offset, and nothing is changed. */
static void expect_damage(const struct place *place, const char *name, struct bytes *file,
                          uint64_t at, const char *why) {
    file->at[at] ^= (unsigned char)(1u << at % 8);
    file_write(place, name, file->at, file->used);
    expect_refused(place, 0, why);
    struct bytes after = file_read(place, name);
    assert_memory_equal(after.at, file->at, file->used);
    bytes_close(&after);
    file->at[at] ^= (unsigned char)(1u << at % 8);
}

static void damage_before_the_end_is_refused_at_any_byte(void **state) {
    enum { BATCHES = 6 };
    struct place place;
    uint64_t begins[BATCHES + 1], first = 1;
    char why[64];
    (void)state;
    place_open(&place);
    make(&place, BATCHES, begins);
    struct bytes file = file_read(&place, FIRST_SEGMENT);
    for (uint64_t at = 0; at < SEGMENT_HEADER; at++)
        expect_damage(&place, FIRST_SEGMENT, &file, at, "header is damaged (offset 0)");
    for (unsigned i = 0; i + 1 < BATCHES; i++) {
        uint64_t end = begins[i] + BATCH_HEADER + batch_from(first).size;
        assert_int_equal(begins[i + 1] - begins[i], size_on_disk(first));
        snprintf(why, sizeof why, "damaged at offset %" PRIu64 " (entry %" PRIu64 ")", begins[i],
                 first);
        for (uint64_t at = begins[i]; at < end; at++)
            expect_damage(&place, FIRST_SEGMENT, &file, at, why);
        first += batch_from(first).count;
    }
    memset(file.at + begins[2], 0, begins[3] - begins[2]); /* as if never written */
    file_write(&place, FIRST_SEGMENT, file.at, file.used);
    expect_refused(&place, 0, "damaged at offset");
    bytes_close(&file);
    place_close(&place);
}

/* Only the last segment may end with a torn batch. */
static void an_earlier_segment_has_no_torn_end(void **state) {
    struct place place;
    struct log log = {0};
    char why[64];
    (void)state;
    place_open(&place);
    uint64_t next = make(&place, 120, NULL), at = SEGMENT_HEADER, first = 1;
    open_whole(&log, &place, next);
    uint64_t second = log.segment[1].next_index;
    assert_true(log.segments > 2);
    log_close(&log);
    while (first + batch_from(first).count < second) {
        at += size_on_disk(first);
        first += batch_from(first).count;
    }
    struct bytes file = file_read(&place, FIRST_SEGMENT);
    snprintf(why, sizeof why, "damaged at offset %" PRIu64, at);
    for (uint64_t i = at; i < at + BATCH_HEADER + batch_from(first).size; i++)
        expect_damage(&place, FIRST_SEGMENT, &file, i, why);
    memset(file.at + at, 0, file.used - at);
    file_write(&place, FIRST_SEGMENT, file.at, file.used);
    expect_refused(&place, 0, "entries are missing");
    file_write(&place, FIRST_SEGMENT, file.at, at); /* cut short */
    expect_refused(&place, 0, "entries are missing");
    file_write(&place, FIRST_SEGMENT, "", 0);
    expect_refused(&place, 0, "is too short");
    bytes_close(&file);
    place_close(&place);
}

/* Without its last batch a segment can look as if nothing were missing, if that one only replaced.
 */
static void a_lost_replacement_is_noticed(void **state) {
    struct place place;
    struct log log = {0};
    (void)state;
    place_open(&place);
    open_whole(&log, &place, 1);
    struct raft_batch batch = batch_from(1);
    batch.commit_index = 0;
    assert_int_equal(log_append(&log, &batch), 0);
    uint64_t begin = log.end.offset;
    assert_int_equal(log_append(&log, &batch), 0); /* replaces the same entries */
    uint64_t end = log.end.offset;
    log.size = end; /* the segment is full */
    append(&log, 1);
    assert_int_equal(log.segments, 2);
    log_close(&log);
    struct bytes file = file_read(&place, FIRST_SEGMENT);
    memset(file.at + begin, 0, end - begin);
    file_write(&place, FIRST_SEGMENT, file.at, file.used);
    struct replayed r;
    enum log_state how;
    log = (struct log){.read_only = true};
    assert_int_equal(log_open(&log, place.directory, place.path, 0, 0, ignore_batch, &r, &how), -1);
    assert_non_null(strstr(log.message, "does not continue the segment before it"));
    log_close(&log);
    bytes_close(&file);
    place_close(&place);
}

static void a_missing_segment_is_noticed(void **state) {
    struct place place;
    struct log log = {0};
    char name[32], why[64];
    (void)state;
    place_open(&place);
    uint64_t next = make(&place, 120, NULL);
    open_whole(&log, &place, next);
    uint64_t second = log.segment[1].sequence;
    log_close(&log);
    snprintf(name, sizeof name, "log.%016" PRIx64, second);
    snprintf(why, sizeof why, "%s: is missing", name);
    struct bytes kept = file_read(&place, name);
    remove_file(place.directory, name);
    expect_refused(&place, 0, why);
    file_write(&place, name, kept.at, kept.used);
    struct bytes other = file_read(&place, FIRST_SEGMENT);
    file_write(&place, name, other.at, other.used); /* the bytes of another segment */
    expect_refused(&place, 0, "header is damaged");
    bytes_close(&kept);
    bytes_close(&other);
    place_close(&place);
}

/* ---- Forged ---- */

/* Changes a field in the header of a batch, and corrects the checksum. */
static void forge(const struct place *place, const struct bytes *file, uint64_t begin, size_t where,
                  uint64_t value, size_t size) {
    struct bytes copy = {0};
    uint32_t crc;
    bytes_add(&copy, file->at, file->used);
    unsigned char *batch = copy.at + begin;
    memcpy(batch + where, &value, size);
    crc = crc32c(crc32c(0, copy.at + 16, 8), batch, BATCH_HEADER - 4);
    memcpy(batch + BATCH_HEADER - 4, &crc, sizeof crc);
    file_write(place, FIRST_SEGMENT, copy.at, copy.used);
    bytes_close(&copy);
}

static void forged_batches_are_refused(void **state) {
    enum { FIRST = 8, TERM = 16, COMMIT_INDEX = 24, COUNT = 32, KIND = 36, BATCHES = 6 };
    struct place place;
    uint64_t begins[BATCHES + 1];
    char why[64];
    (void)state;
    place_open(&place);
    uint64_t next = make(&place, BATCHES, begins), begin = begins[BATCHES - 1];
    uint64_t last = first_of(next - 1);
    const struct {
        size_t where;
        uint64_t value;
        size_t size;
        const char *why;
    } forgeries[] = {
        {FIRST, last + 1, 8, "comes after a gap"},
        {FIRST, UINT64_MAX, 8, "comes after a gap"},
        {FIRST, last - 1, 8, "replaces committed entries"},
        {FIRST, 0, 8, "replaces committed entries"},
        {TERM, 0, 8, "an earlier term"},
        {COMMIT_INDEX, next, 8, "that do not exist"},
        {COMMIT_INDEX, UINT64_MAX, 8, "that do not exist"},
        {COUNT, 0, 4, "is malformed"},
        {COUNT, UINT32_MAX, 4, "is malformed"},
        {KIND, RAFT_CONFIG + 1, 4, "is malformed"},
        {KIND, UINT32_MAX, 4, "is malformed"},
    };
    struct bytes file = file_read(&place, FIRST_SEGMENT);
    snprintf(why, sizeof why, "log.0000000000000001: the batch at offset %" PRIu64, begin);
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        forge(&place, &file, begin, forgeries[i].where, forgeries[i].value, forgeries[i].size);
        expect_refused(&place, 0, forgeries[i].why);
        expect_refused(&place, 0, why);
        expect_refused(&place, 0, "'conclave recover'");
        expect_refused(&place, 0, "with an empty directory");
    }
    bytes_close(&file);
    place_close(&place);
}

/* A snapshot that contradicts committed entries is not of this log. */
static void a_snapshot_of_another_history_is_refused(void **state) {
    struct place place;
    struct log log = {0};
    struct replayed r = {.after = 5};
    enum log_state end;
    (void)state;
    place_open(&place);
    make(&place, 10, NULL);
    assert_int_equal(
        log_open(&log, place.directory, place.path, 5, term_of(5) + 1, check_batch, &r, &end), -1);
    assert_non_null(strstr(log.message, "in the snapshot"));
    log_close(&log);
    place_close(&place);
}

/* ---- Inspecting and repairing ---- */

static void note_finding(void *context, const struct log_finding *finding) {
    *(struct log_finding *)context = *finding;
}

static void examined_and_cut(void **state) {
    enum { BATCHES = 6 };
    struct place place;
    struct log log = {0};
    struct log_finding found = {0};
    uint64_t begins[BATCHES + 1];
    (void)state;
    place_open(&place);
    uint64_t next = make(&place, BATCHES, begins), third = 1;
    for (int i = 0; i < 2; i++) third += batch_from(third).count;
    assert_int_equal(log_examine(&log, place.directory, place.path, note_finding, &found), 0);
    log_close(&log);
    assert_int_equal(found.state, LOG_WHOLE);
    assert_int_equal(found.next_index, next);
    assert_int_equal(found.last, next - 1);
    assert_int_equal(found.offset, begins[BATCHES]);

    struct bytes file = file_read(&place, FIRST_SEGMENT);
    file.at[begins[2] + 9] ^= 4;
    file_write(&place, FIRST_SEGMENT, file.at, file.used);
    assert_int_equal(log_examine(&log, place.directory, place.path, note_finding, &found), 0);
    assert_int_equal(found.state, LOG_DAMAGED);
    assert_int_equal(found.next_index, third);
    assert_int_equal(found.last, next - 1);
    assert_int_equal(found.offset, begins[2]);
    assert_int_equal(log_cut(&log, found.sequence, found.offset), 0);
    log_close(&log);
    open_whole(&log, &place, third);
    append(&log, 1);
    log_close(&log);

    file.at[0] ^= 1;
    file_write(&place, FIRST_SEGMENT, file.at, file.used);
    assert_int_equal(log_examine(&log, place.directory, place.path, note_finding, &found), 0);
    assert_int_equal(found.state, LOG_UNREADABLE);
    assert_int_equal(log_set_aside(&log, found.sequence), 0);
    log_close(&log);
    assert_true(file_exists(&place, "damaged." FIRST_SEGMENT));
    open_whole(&log, &place, 1);
    log_close(&log);
    bytes_close(&file);
    place_close(&place);
}

/* ---- A disk that is full ---- */

/* Wherever the disk becomes full: earlier batches are there, and of the failed one all or nothing.
 */
static void a_full_disk_loses_nothing(void **state) {
    struct place place;
    (void)state;
    for (rlim_t limit = 0; limit < SEGMENT; limit += 61) {
        struct log log = {0};
        struct raft_batch batch;
        place_open(&place);
        uint64_t next = make(&place, 1, NULL);
        open_whole(&log, &place, next);
        limit_files(limit);
        while (batch = batch_from(log.end.next_index), log_append(&log, &batch) == 0 && next < 500)
            next = log.end.next_index;
        limit_files(RLIM_INFINITY);
        assert_true(next < 500);
        assert_non_null(strstr(log.message, "cannot be written"));
        log_close(&log);
        struct replayed r;
        enum log_state end;
        if (open_log(&log, &place, 0, &end, &r) != 0) fail_msg("%s", log.message);
        if (log.end.next_index != next)
            assert_int_equal(log.end.next_index, next + batch_from(next).count);
        append(&log, 3);
        next = log.end.next_index;
        log_close(&log);
        open_whole(&log, &place, next);
        log_close(&log);
        place_close(&place);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_batches_are_replayed),
        cmocka_unit_test(a_batch_may_be_larger_than_a_segment),
        cmocka_unit_test(segments_that_a_snapshot_covers_are_trimmed),
        cmocka_unit_test(a_snapshot_may_be_newer_than_the_log),
        cmocka_unit_test(other_files_are_ignored),
        cmocka_unit_test(a_torn_or_damaged_end_is_cut_at_any_byte),
        cmocka_unit_test(a_reader_does_not_cut_a_torn_end),
        cmocka_unit_test(damage_before_the_end_is_refused_at_any_byte),
        cmocka_unit_test(an_earlier_segment_has_no_torn_end),
        cmocka_unit_test(a_lost_replacement_is_noticed),
        cmocka_unit_test(a_missing_segment_is_noticed),
        cmocka_unit_test(forged_batches_are_refused),
        cmocka_unit_test(a_snapshot_of_another_history_is_refused),
        cmocka_unit_test(examined_and_cut),
        cmocka_unit_test(a_full_disk_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
