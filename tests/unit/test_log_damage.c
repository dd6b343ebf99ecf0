/* Every kind of damage to every batch of a log: it is noticed and told from a torn end, nothing is
 * changed before that is allowed, and afterwards the log goes on. */
#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/crc32c.h"
#include "file_help.h"
#include "service/log/salvage.h"

enum { SEGMENT = 8192, BATCHES = 14, SEGMENTS_MAX = 8, SECTOR = 512, HEADER = 56, EMPTY = 4 };

/* ---- A log ---- */

static struct place place;
static struct made { /* a batch */
    uint64_t sequence, begin, end, first;
} made[BATCHES];
static struct bytes original[SEGMENTS_MAX + 1], original_mark; /* by sequence */
static uint64_t segments, next_index;

static char *name_of(uint64_t sequence) {
    static char name[32];
    snprintf(name, sizeof name, "log.%016" PRIx64, sequence);
    return name;
}

/* One entry; of some nothing but zeros, of some a part. */
static struct raft_batch batch_of(uint64_t index) {
    static unsigned char bytes[4 + 4096];
    uint32_t size = (uint32_t)(index * 541 % 2600);
    memcpy(bytes, &size, sizeof size);
    memset(bytes + 4, index % 4 ? (int)('a' + index % 26) : 0, size);
    if (index % 4 == 2) memset(bytes + 4 + size / 4, 0, size / 2);
    return (struct raft_batch){.first = index,
                               .term = 1,
                               .commit_index = index,
                               .count = 1,
                               .bytes = bytes,
                               .size = size + 4};
}

static int take(void *context, const struct raft_batch *batch) {
    struct raft_batch expected = batch_of(batch->first);
    *(uint64_t *)context = batch->first + 1;
    if (batch->size == EMPTY) return 0;
    assert_int_equal(batch->size, expected.size);
    assert_memory_equal(batch->bytes, expected.bytes, batch->size);
    return 0;
}

static uint64_t replayed;

static int open_log(struct log *log, enum log_state *end) {
    *log = (struct log){.segment_bytes = SEGMENT};
    replayed = 1;
    return log_open(log, place.directory, place.path, 0, 0, take, &replayed, end);
}

static void append(struct log *log) {
    struct raft_batch batch = batch_of(log->end.next_index);
    assert_int_equal(log_append(log, &batch), 0);
}

/* A batch that is shorter than any other: what is left of one that was there shows after it. */
static void append_empty(struct log *log) {
    struct raft_batch batch = {.first = log->end.next_index,
                               .term = 1,
                               .count = 1,
                               .bytes = (const unsigned char *)"\0\0\0",
                               .size = EMPTY};
    assert_int_equal(log_append(log, &batch), 0);
}

static int set_up(void **state) {
    struct log log;
    enum log_state end;
    (void)state;
    place_open(&place);
    assert_int_equal(open_log(&log, &end), 0);
    for (int i = 0; i < BATCHES; i++) {
        uint64_t first = log.end.next_index;
        append(&log);
        uint64_t size = (HEADER + batch_of(first).size + 7) / 8 * 8 + 8;
        made[i] = (struct made){log.segment[log.segments - 1].sequence, log.end.offset - size,
                                log.end.offset, first};
    }
    next_index = log.end.next_index;
    segments = log.segments;
    log_close(&log);
    assert_in_range(segments, 3, SEGMENTS_MAX);
    assert_int_equal(made[BATCHES - 2].sequence, segments); /* the last has several */
    for (uint64_t i = 1; i <= segments; i++) original[i] = file_read(&place, name_of(i));
    original_mark = file_read(&place, "mark");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    place_close(&place);
    for (uint64_t i = 1; i <= segments; i++) bytes_close(&original[i]);
    bytes_close(&original_mark);
    return 0;
}

/* ---- What is expected ---- */

/* Puts all files back but one, which gets these bytes; NULL: none. */
static void arrange(uint64_t sequence, const void *bytes, size_t size, bool with_mark) {
    each_file(&place, remove_file);
    for (uint64_t i = 1; i <= segments; i++) {
        if (i == sequence && bytes) file_write(&place, name_of(i), bytes, size);
        if (i != sequence) file_write(&place, name_of(i), original[i].at, original[i].used);
    }
    if (with_mark) file_write(&place, "mark", original_mark.at, original_mark.used);
}

enum { REFUSED = -1 };

static enum log_state last_state;
static void note(void *context, const struct log_finding *found) {
    enum log_state *worst = context;
    if (found->state > *worst) *worst = found->state;
    last_state = found->state;
}

/* The log ends as expected, and after what is damaged was given up it goes on from there. */
static void expect(int expected, uint64_t next, const char *what) {
    struct log log;
    enum log_state end, worst = LOG_WHOLE;
    assert_int_equal(log_examine(&log, place.directory, place.path, note, &worst), 0);
    log_close(&log);
    int status = open_log(&log, &end);
    int got = status ? REFUSED : (int)end;
    if (got != expected) fail_msg("%s: %d instead of %d: %s", what, got, expected, log.message);
    if (expected >= LOG_TORN || expected == REFUSED) assert_true(*log.message);
    if (expected == LOG_WHOLE || expected == LOG_TORN) assert_int_equal(worst, expected);
    if (expected == LOG_END_DAMAGED) assert_true(worst == LOG_END_DAMAGED || worst == LOG_MISSING);
    if (expected == REFUSED) { /* unless it shows only between two segments */
        log_close(&log);
        return;
    }
    if (log.end.next_index != next)
        fail_msg("%s: ends before %" PRIu64 " instead of %" PRIu64, what, log.end.next_index, next);
    assert_int_equal(replayed, next);
    if (expected == LOG_END_DAMAGED) {
        log_close(&log); /* nothing has changed: it is found again */
        assert_int_equal(open_log(&log, &end), 0);
        assert_int_equal(end, LOG_END_DAMAGED);
        assert_int_equal(log_give_up_end(&log), 0);
    }
    append_empty(&log);
    append_empty(&log);
    log_close(&log);
    assert_int_equal(open_log(&log, &end), 0);
    assert_int_equal(end, LOG_WHOLE);
    assert_int_equal(log.end.next_index, next + 2);
    log_close(&log);
}

/* ---- Damage ---- */

static struct bytes copy_of(uint64_t sequence) {
    struct bytes copy = {0};
    bytes_add(&copy, original[sequence].at, original[sequence].used);
    return copy;
}

static bool is_zero(const unsigned char *at, uint64_t size) {
    while (size && !*at) at++, size--;
    return !size;
}

static void damage_batch(const struct made *m, bool is_last, bool with_mark) {
    struct bytes file = copy_of(m->sequence);
    const struct bytes *whole = &original[m->sequence];
    uint64_t entries = m->begin + HEADER, last_byte = entries + batch_of(m->first).size - 1;
    uint64_t where[] = {m->begin, m->begin + 20, m->begin + HEADER - 1, entries, last_byte};
    char what[64];
    snprintf(what, sizeof what, "batch %" PRIu64 "%s", m->first, with_mark ? "" : " without mark");
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) { /* a bit flips */
        file.at[where[i]] ^= 4;
        arrange(m->sequence, file.at, file.used, with_mark);
        expect(is_last ? LOG_END_DAMAGED : REFUSED, m->first, what);
        file.at[where[i]] ^= 4;
    }
    for (uint64_t i = m->begin; i < m->end; i++) file.at[i] = (unsigned char)(i * 37 | 1);
    arrange(m->sequence, file.at, file.used, with_mark); /* garbage */
    expect(is_last ? LOG_END_DAMAGED : REFUSED, m->first, what);
    memcpy(file.at, whole->at, whole->used);
    /* A sector was not written, or lost. */
    for (uint64_t at = m->begin, next; at < m->end; at = next) {
        next = at / SECTOR * SECTOR + SECTOR < m->end ? at / SECTOR * SECTOR + SECTOR : m->end;
        if (at > last_byte || is_zero(whole->at + at, last_byte + 1 - at)) continue;
        if (is_zero(whole->at + at, next - at)) continue;
        memset(file.at + at, 0, next - at);
        arrange(m->sequence, file.at, file.used, with_mark);
        bool is_gone = is_zero(file.at + m->begin, m->end - m->begin);
        int without = is_gone ? LOG_WHOLE : LOG_TORN;
        expect(!is_last ? REFUSED : with_mark ? LOG_END_DAMAGED : without, m->first, what);
        memcpy(file.at + at, whole->at + at, next - at);
    }
    bytes_close(&file);
}

static void each_batch_damaged(void **state) {
    (void)state;
    for (int i = 0; i < BATCHES; i++) {
        damage_batch(&made[i], i == BATCHES - 1, true);
        damage_batch(&made[i], i == BATCHES - 1, false);
    }
}

/* Everything from a batch on, to the end of its segment. */
static void damage_rest(const struct made *m, uint64_t from, bool with_mark) {
    struct bytes file = copy_of(m->sequence);
    bool is_last = m->sequence == segments, in_last_batch = m->first == made[BATCHES - 1].first;
    bool is_cut_inside = from != m->begin;
    char what[64];
    snprintf(what, sizeof what, "from batch %" PRIu64 " on%s", m->first,
             with_mark ? "" : " without mark");
    memset(file.at + from, 0, file.used - from); /* zeros */
    arrange(m->sequence, file.at, file.used, with_mark);
    int without = is_cut_inside ? LOG_TORN : LOG_WHOLE;
    expect(!is_last ? REFUSED : with_mark ? LOG_END_DAMAGED : without, m->first, what);
    for (uint64_t i = from; i < file.used; i++) file.at[i] = (unsigned char)(i * 41 | 1);
    arrange(m->sequence, file.at, file.used, with_mark); /* garbage */
    expect(is_last ? LOG_END_DAMAGED : REFUSED, m->first, what);
    arrange(m->sequence, file.at, from, with_mark); /* cut short */
    expect(is_last ? LOG_END_DAMAGED : REFUSED, m->first, what);
    if (is_last && !in_last_batch) { /* each of several batches */
        memcpy(file.at, original[m->sequence].at, file.used);
        for (const struct made *each = m; each < made + BATCHES; each++)
            file.at[each->begin + HEADER] ^= 1;
        arrange(m->sequence, file.at, file.used, with_mark);
        expect(LOG_END_DAMAGED, m->first, what);
    }
    bytes_close(&file);
}

static void all_from_a_batch_on_damaged(void **state) {
    (void)state;
    for (int i = 0; i < BATCHES; i++) {
        for (int with_mark = 0; with_mark < 2; with_mark++) {
            damage_rest(&made[i], made[i].begin, with_mark);
            damage_rest(&made[i], made[i].begin + HEADER, with_mark);
        }
    }
}

/* Zeros from the middle of one batch to the middle of the next: the first looks torn. */
static void zeros_in_the_middle(void **state) {
    const struct made *m = &made[BATCHES - 2], *last = m + 1;
    struct bytes file = copy_of(segments);
    (void)state;
    memset(file.at + m->begin + HEADER, 0, last->begin + HEADER - m->begin - HEADER);
    arrange(segments, file.at, file.used, false);
    expect(LOG_END_DAMAGED, m->first, "zeros in the middle");
    bytes_close(&file);
}

/* A batch that looks torn, and another after it that is damaged. */
static void a_damaged_batch_after_one_that_looks_torn(void **state) {
    const struct made *m = &made[BATCHES - 2], *last = m + 1;
    struct bytes file = copy_of(segments);
    (void)state;
    memset(file.at + m->begin, 0, SECTOR - m->begin % SECTOR);
    file.at[last->begin + HEADER] ^= 1;
    arrange(segments, file.at, file.used, false);
    expect(LOG_END_DAMAGED, m->first, "a damaged batch after one that looks torn");
    bytes_close(&file);
}

/* The last segment is another one of the same number, and longer. */
static void a_segment_of_another_log(void **state) {
    struct log log;
    enum log_state end;
    (void)state;
    arrange(segments, NULL, 0, false);
    assert_int_equal(open_log(&log, &end), 0);
    uint64_t more = next_index - log.end.next_index + 1;
    while (more--) append(&log);
    assert_int_equal(log.segments, segments);
    assert_true(log.end.offset > made[BATCHES - 1].end);
    log_close(&log);
    file_write(&place, "mark", original_mark.at, original_mark.used);
    expect(LOG_END_DAMAGED, next_index + 1, "a segment of another log");
}

static void segments_removed(void **state) {
    uint64_t first_of_last = 0;
    (void)state;
    for (int i = BATCHES; i-- > 0;)
        if (made[i].sequence == segments) first_of_last = made[i].first;
    for (uint64_t i = 1; i < segments; i++) {
        arrange(i, NULL, 0, true);
        expect(REFUSED, 0, "an earlier segment is removed");
    }
    arrange(segments, NULL, 0, true);
    expect(LOG_END_DAMAGED, first_of_last, "the last segment is removed");
    assert_int_equal(last_state, LOG_MISSING);
    arrange(segments, NULL, 0, false); /* that cannot be known */
    expect(LOG_WHOLE, first_of_last, "the last segment is removed, and the mark");
    each_file(&place, remove_file);
    file_write(&place, "mark", original_mark.at, original_mark.used);
    expect(LOG_END_DAMAGED, 1, "all segments are removed");
}

/* A damaged mark says nothing, and one of its slots is enough. */
static void marks_damaged(void **state) {
    (void)state;
    for (int damaged = 0; damaged < 3; damaged++) {
        arrange(segments, NULL, 0, true);
        struct bytes mark = file_read(&place, "mark");
        assert_in_range(mark.used, SECTOR + 1, 2 * SECTOR);
        if (damaged != 1) mark.at[40] ^= 1;
        if (damaged != 0) mark.at[SECTOR + 40] ^= 1;
        file_write(&place, "mark", mark.at, mark.used);
        bytes_close(&mark);
        struct log log;
        enum log_state end;
        assert_int_equal(open_log(&log, &end), 0);
        assert_int_equal(end, damaged == 2 ? LOG_WHOLE : LOG_END_DAMAGED);
        log_close(&log);
    }
}

/* ---- Disks that fail ---- */

static uint64_t bad_offset; /* of a sector that cannot be read; 0: none */
static unsigned failures;

ssize_t pread(int file, void *to, size_t size, off_t offset) {
    uint64_t from = (uint64_t)offset;
    if (bad_offset && bad_offset >= from && bad_offset < from + size) {
        if (bad_offset == from) return failures++, errno = EIO, -1;
        size = bad_offset - from;
    }
    return syscall(SYS_pread64, file, to, size, offset);
}

static void a_sector_that_cannot_be_read(void **state) {
    struct log log;
    enum log_state end;
    (void)state;
    const struct made *last = &made[BATCHES - 1];
    arrange(0, NULL, 0, true);
    bad_offset = (last->begin + HEADER + SECTOR) / SECTOR * SECTOR;
    assert_true(bad_offset < last->end);
    assert_int_equal(open_log(&log, &end), -1); /* there is such a sector in every segment */
    assert_non_null(strstr(log.message, "Input/output error"));
    log_close(&log);
    for (uint64_t i = 1; i < segments; i++) remove_file(place.directory, name_of(i));
    remove_file(place.directory, "mark");
    failures = 0;
    log = (struct log){.segment_bytes = SEGMENT};
    uint64_t after = 0;
    while (made[after].sequence < segments) after++; /* entries are numbered as batches are */
    assert_int_equal(log_open(&log, place.directory, place.path, after, 1, take, &replayed, &end),
                     0);
    bad_offset = 0;
    assert_int_equal(end, LOG_END_DAMAGED);
    assert_true(failures);
    assert_non_null(strstr(log.message, "cannot be read: Input/output error"));
    /* The disk gives all of it again: what was given up is gone all the same. */
    uint64_t next = log.end.next_index, last_of_all = segments;
    assert_int_equal(next, last->first);
    assert_int_equal(log_give_up_end(&log), 0);
    append_empty(&log);
    assert_int_equal(log.segments, 1);
    assert_int_equal(log.segment[0].sequence, last_of_all);
    log_close(&log);
    log = (struct log){.segment_bytes = SEGMENT};
    assert_int_equal(log_open(&log, place.directory, place.path, after, 1, take, &replayed, &end),
                     0);
    assert_int_equal(end, LOG_WHOLE);
    assert_int_equal(log.end.next_index, next + 1);
    log_close(&log);
}

/* What cannot be opened may be good: it is neither skipped nor taken for damaged. */
static void files_that_cannot_be_opened(void **state) {
    struct rlimit limit, all;
    struct salvage salvage;
    struct log log;
    enum log_state end;
    unsigned refused = 0;
    (void)state;
    arrange(0, NULL, 0, true);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    limit = all;
    int next = dup(place.directory);
    close(next);
    for (int more = 0, status = -1; status != 0; more++) {
        assert_true(more < 5);
        limit.rlim_cur = (rlim_t)(next + more);
        setrlimit(RLIMIT_NOFILE, &limit);
        status = open_log(&log, &end);
        int salvaged = salvage_open(&salvage, place.directory, place.path, 0, 0, 0, 1);
        setrlimit(RLIMIT_NOFILE, &all);
        assert_int_not_equal(end, LOG_END_DAMAGED);
        if (status) assert_non_null(strstr(log.message, "Too many open files"));
        if (!more) assert_non_null(strstr(log.message, "/mark: "));
        assert_string_equal(salvage.what, "");
        if (!salvaged) assert_true(salvage_is_whole(&salvage));
        refused += status != 0;
        salvage_close(&salvage);
        log_close(&log);
    }
    assert_true(refused >= 2);
}

static void a_directory_that_is_moved_away(void **state) {
    struct log log;
    enum log_state end;
    char aside[80];
    (void)state;
    snprintf(aside, sizeof aside, "%s.moved", place.path);
    for (int kind = 0; kind < 4; kind++) {
        arrange(0, NULL, 0, true);
        assert_int_equal(open_log(&log, &end), 0);
        struct raft_batch batch = batch_of(log.end.next_index);
        if (kind == 0) remove_file(place.directory, name_of(segments));
        if (kind == 1) file_write(&place, name_of(segments), "other", 5);
        if (kind >= 2) assert_int_equal(rename(place.path, aside), 0);
        if (kind == 3) assert_int_equal(mkdir(place.path, 0700), 0);
        assert_int_equal(log_append(&log, &batch), -1);
        assert_non_null(strstr(log.message, "while the server was"));
        log_close(&log);
        if (kind == 3) assert_int_equal(rmdir(place.path), 0);
        if (kind >= 2) assert_int_equal(rename(aside, place.path), 0);
    }
}

static void what_is_no_file_is_not_waited_for(void **state) {
    struct log log;
    enum log_state end;
    (void)state;
    for (int directory = 0; directory < 2; directory++) {
        arrange(segments, NULL, 0, true);
        int made_it = directory ? mkdirat(place.directory, name_of(segments), 0700)
                                : mkfifoat(place.directory, name_of(segments), 0600);
        assert_int_equal(made_it, 0);
        assert_int_equal(open_log(&log, &end), -1);
        assert_non_null(strstr(log.message, "no regular file"));
        log_close(&log);
        unlinkat(place.directory, name_of(segments), directory ? AT_REMOVEDIR : 0);
    }
}

/* ---- Version 2 ---- */

struct old_header {
    char magic[16];
    uint64_t key, sequence, next_index, commit_index, term, previous_end;
    uint32_t reserved, crc;
};
struct old_batch {
    uint32_t crc, size;
    uint64_t first, term, commit_index;
    uint32_t count, kind, reserved, magic;
};

static struct bytes old_segment(unsigned batches, uint64_t *last_begin) {
    struct old_header header = {
        .magic = "conclave log 2\n", .key = 0x1234567890abcdef, .sequence = 1, .next_index = 1};
    header.crc = crc32c(0, &header, sizeof header - 4);
    struct bytes file = {0};
    bytes_add(&file, &header, sizeof header);
    for (uint64_t i = 1; i <= batches; i++) {
        struct raft_batch batch = batch_of(i);
        struct old_batch old = {.size = (uint32_t)batch.size,
                                .first = i,
                                .term = 1,
                                .commit_index = i,
                                .count = 1,
                                .magic = 0x68637462 ^ (uint32_t)header.key};
        old.crc = crc32c(crc32c(0, &header.key, 8), &old.size, sizeof old - 4);
        old.crc = crc32c(old.crc, batch.bytes, batch.size);
        *last_begin = file.used;
        bytes_add(&file, &old, sizeof old);
        bytes_add(&file, batch.bytes, batch.size);
        while (file.used % 8) bytes_add(&file, "", 1);
    }
    memset(bytes_extend(&file, SEGMENT), 0, SEGMENT);
    return file;
}

static void segments_of_version_2(void **state) {
    enum { OLD = 5 };
    uint64_t begin;
    (void)state;
    struct bytes file = old_segment(OLD, &begin);
    for (int damage = 0; damage < 4; damage++) {
        each_file(&place, remove_file);
        struct bytes copy = {0};
        bytes_add(&copy, file.at, file.used);
        if (damage == 1) memset(copy.at + begin + 20, 0, copy.used - begin - 20);
        if (damage == 2) copy.at[begin + 50] ^= 1;
        if (damage == 3) copy.at[begin - 20] ^= 1;
        file_write(&place, name_of(1), copy.at, copy.used);
        static const int expected[] = {LOG_WHOLE, LOG_TORN, LOG_END_DAMAGED, REFUSED};
        expect(expected[damage], damage ? OLD : OLD + 1, "version 2");
        if (damage < 3) assert_true(file_exists(&place, name_of(2)));
        bytes_close(&copy);
    }
    bytes_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_batch_damaged),
        cmocka_unit_test(all_from_a_batch_on_damaged),
        cmocka_unit_test(zeros_in_the_middle),
        cmocka_unit_test(a_damaged_batch_after_one_that_looks_torn),
        cmocka_unit_test(a_segment_of_another_log),
        cmocka_unit_test(segments_removed),
        cmocka_unit_test(marks_damaged),
        cmocka_unit_test(a_sector_that_cannot_be_read),
        cmocka_unit_test(files_that_cannot_be_opened),
        cmocka_unit_test(a_directory_that_is_moved_away),
        cmocka_unit_test(what_is_no_file_is_not_waited_for),
        cmocka_unit_test(segments_of_version_2),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
