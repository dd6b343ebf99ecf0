/* The next segment is made ready ahead of need, of an old one if there is one; and nothing that an
 * old one held is ever taken for a part of the new one. */
#include <errno.h>
#include <inttypes.h>
#include <sys/statvfs.h>

#include "file_help.h"
#include "service/log/spare.h"

enum { SEGMENT = 8192, HEADER = 80, PER_SEGMENT = 6, ENTRY = 1100, SECTOR = 512 };

/* ---- A disk ---- */

static uint64_t room = UINT32_MAX; /* bytes that are free */

/* Instead of the system's. */
int fstatvfs(int file, struct statvfs *about) {
    (void)file;
    *about = (struct statvfs){.f_frsize = 1, .f_blocks = UINT32_MAX, .f_bavail = room};
    return 0;
}

/* ---- A log ---- */

static struct place place;

static char *name_of(uint64_t sequence) {
    static char name[32];
    snprintf(name, sizeof name, "log.%016" PRIx64, sequence);
    return name;
}

static struct raft_batch batch_of(uint64_t index) {
    static unsigned char bytes[4 + ENTRY];
    uint32_t size = ENTRY;
    memcpy(bytes, &size, sizeof size);
    memset(bytes + 4, (int)('a' + index % 26), size);
    return (struct raft_batch){.first = index,
                               .term = 1,
                               .commit_index = index,
                               .count = 1,
                               .bytes = bytes,
                               .size = sizeof bytes};
}

static int take(void *context, const struct raft_batch *batch) {
    struct raft_batch expected = batch_of(batch->first);
    *(uint64_t *)context = batch->first + 1;
    assert_int_equal(batch->size, expected.size);
    assert_memory_equal(batch->bytes, expected.bytes, batch->size);
    return 0;
}

/* Opens the log after a snapshot; returns the entry after the last that was replayed. */
static uint64_t open_log(struct log *log, uint64_t after, enum log_state *end) {
    uint64_t next = after + 1;
    *log = (struct log){.segment_bytes = SEGMENT};
    if (log_open(log, place.directory, place.path, after, after ? 1 : 0, take, &next, end) != 0)
        fail_msg("%s", log->message);
    return next;
}

static void append(struct log *log, unsigned count) {
    while (count--) {
        struct raft_batch batch = batch_of(log->end.next_index);
        assert_int_equal(log_append(log, &batch), 0);
    }
}

static uint64_t inode_of(const char *name) {
    struct stat about;
    assert_int_equal(fstatat(place.directory, name, &about, 0), 0);
    return about.st_ino;
}

static uint64_t last_segment(const struct log *log) {
    return log->segment[log->segments - 1].sequence;
}

/* A log of some whole segments and a few batches of the next; the first of them is needed no more,
 * and has become the spare. */
static void make_recycled(struct log *log) {
    enum log_state end;
    place_open(&place);
    open_log(log, 0, &end);
    append(log, 3 * PER_SEGMENT + 2);
    assert_int_equal(log->segments, 4);
    uint64_t inode = inode_of(name_of(1));
    assert_int_equal(log_trim(log, PER_SEGMENT), 0);
    assert_int_equal(log->spare, SPARE_STALE);
    assert_false(file_exists(&place, name_of(1)));
    assert_int_equal(inode_of(SPARE_NAME), inode);
}

static void make_ready(struct log *log) {
    struct spare_work work;
    assert_true(spare_is_wanted(log, &work));
    spare_prepare(&work);
    assert_int_equal(work.error, 0);
    spare_take(log, &work);
    assert_int_equal(log->spare, SPARE_READY);
    assert_false(spare_is_wanted(log, &work));
}

static bool is_zero(const struct bytes *file, size_t from) {
    for (size_t i = from; i < file->used; i++)
        if (file->at[i]) return false;
    return true;
}

static void expect_zeros(const char *name, size_t from) {
    struct bytes file = file_read(&place, name);
    assert_int_equal(file.used, SEGMENT);
    assert_true(is_zero(&file, from));
    bytes_close(&file);
}

/* ---- Made ready ---- */

static void a_spare_is_made_when_half_a_segment_is_used(void **state) {
    struct log log;
    struct spare_work work;
    enum log_state end;
    (void)state;
    place_open(&place);
    open_log(&log, 0, &end);
    assert_false(spare_is_wanted(&log, &work)); /* a server that only reads needs none */
    append(&log, 2);
    assert_false(spare_is_wanted(&log, &work));
    append(&log, 2);
    make_ready(&log);
    expect_zeros(SPARE_NAME, 0);
    uint64_t inode = inode_of(SPARE_NAME);
    append(&log, PER_SEGMENT);
    assert_int_equal(log.spare, SPARE_MISSING);
    assert_false(file_exists(&place, SPARE_NAME));
    assert_int_equal(last_segment(&log), 2);
    assert_int_equal(inode_of(name_of(2)), inode);
    log_close(&log);
    assert_int_equal(open_log(&log, 0, &end), PER_SEGMENT + 5);
    assert_int_equal(end, LOG_WHOLE);
    log_close(&log);
    place_close(&place);
}

/* Nothing is lost when the log is opened again, and that is the end of the test. */
static void ends_whole(struct log *log) {
    enum log_state end;
    uint64_t next = log->end.next_index;
    log_close(log);
    assert_int_equal(open_log(log, PER_SEGMENT, &end), next);
    assert_int_equal(end, LOG_WHOLE);
    log_close(log);
    place_close(&place);
}

static void an_old_segment_becomes_the_next(void **state) {
    struct log log;
    (void)state;
    make_recycled(&log);
    uint64_t inode = inode_of(SPARE_NAME);
    struct bytes stale = file_read(&place, SPARE_NAME);
    assert_false(is_zero(&stale, HEADER));
    bytes_close(&stale);
    make_ready(&log);
    expect_zeros(SPARE_NAME, 0);
    append(&log, PER_SEGMENT);
    assert_int_equal(last_segment(&log), 5);
    assert_int_equal(inode_of(name_of(5)), inode);
    expect_zeros(name_of(5), (size_t)log.end.offset);
    ends_whole(&log);
}

/* There is one spare; what else is old is removed. */
static void only_one_is_kept(void **state) {
    struct log log;
    (void)state;
    make_recycled(&log);
    make_ready(&log);
    append(&log, 2 * PER_SEGMENT);
    assert_int_equal(log_trim(&log, 4 * PER_SEGMENT), 0);
    assert_int_equal(log.segments + 2, each_file(&place, NULL)); /* with the mark and the spare */
    assert_true(file_exists(&place, SPARE_NAME));
    log_close(&log);
    place_close(&place);
}

/* Its zeros may be in the memory of the system only. */
static void a_spare_that_was_left_is_stale(void **state) {
    struct log log;
    enum log_state end;
    (void)state;
    make_recycled(&log);
    make_ready(&log);
    uint64_t next = log.end.next_index;
    log_close(&log);
    assert_int_equal(open_log(&log, PER_SEGMENT, &end), next);
    assert_int_equal(log.spare, SPARE_STALE);
    append(&log, PER_SEGMENT); /* the next segment does without it */
    assert_int_equal(last_segment(&log), 5);
    assert_true(file_exists(&place, SPARE_NAME));
    log_close(&log);
    place_close(&place);
}

static void a_spare_of_another_size_gets_the_right_one(void **state) {
    static const char old[SEGMENT * 2] = "old";
    struct log log;
    (void)state;
    for (size_t size = 100; size <= sizeof old; size += sizeof old - 100) {
        make_recycled(&log);
        file_write(&place, SPARE_NAME, old, size);
        make_ready(&log);
        expect_zeros(SPARE_NAME, 0);
        log_close(&log);
        place_close(&place);
    }
}

static void a_large_batch_does_not_use_it(void **state) {
    static unsigned char bytes[4 + 2 * SEGMENT];
    uint32_t size = 2 * SEGMENT;
    struct log log;
    (void)state;
    make_recycled(&log);
    make_ready(&log);
    memcpy(bytes, &size, sizeof size);
    struct raft_batch batch = {
        .first = log.end.next_index, .term = 1, .count = 1, .bytes = bytes, .size = sizeof bytes};
    assert_int_equal(log_append(&log, &batch), 0);
    assert_int_equal(log.spare, SPARE_READY);
    assert_true(file_exists(&place, SPARE_NAME));
    log_close(&log);
    place_close(&place);
}

static void a_spare_that_cannot_be_made_is_done_without(void **state) {
    struct log log;
    struct spare_work work;
    (void)state;
    make_recycled(&log);
    append(&log, 2);
    assert_true(spare_is_wanted(&log, &work));
    atomic_store(&work.stop, true); /* as good as any error */
    spare_prepare(&work);
    assert_int_equal(work.error, ECANCELED);
    assert_false(file_exists(&place, SPARE_NAME));
    spare_take(&log, &work);
    assert_false(spare_is_wanted(&log, &work)); /* not at once */
    append(&log, PER_SEGMENT + 1);
    assert_int_equal(last_segment(&log), 5);
    make_ready(&log);
    log_close(&log);
    place_close(&place);
}

static void expect_no_room(struct log *log) {
    struct spare_work work;
    assert_true(spare_is_wanted(log, &work));
    spare_prepare(&work);
    assert_int_equal(work.error, ENOSPC);
    assert_false(file_exists(&place, SPARE_NAME));
    spare_take(log, &work);
}

/* The next segment may be needed before the spare is ready, and then is a file of its own. */
static void a_spare_leaves_room_for_a_segment(void **state) {
    struct log log;
    (void)state;
    make_recycled(&log);
    room = SEGMENT - 1;
    expect_no_room(&log); /* what the old segment had is free now */
    append(&log, PER_SEGMENT + 2);
    room = 2 * SEGMENT - 1;
    expect_no_room(&log);
    append(&log, PER_SEGMENT);
    room = 2 * SEGMENT;
    make_ready(&log);
    room = UINT32_MAX;
    log_close(&log);
    place_close(&place);
}

/* ---- What others do to it ---- */

static const char PRECIOUS[] = "precious";

static void replace_spare(unsigned kind) {
    struct bytes garbage = {0};
    assert_int_equal(unlinkat(place.directory, SPARE_NAME, 0), 0);
    file_write(&place, PRECIOUS, PRECIOUS, sizeof PRECIOUS);
    switch (kind) {
    case 1:
        for (int i = 0; i < SEGMENT; i++) bytes_add(&garbage, "x", 1);
        file_write(&place, SPARE_NAME, garbage.at, garbage.used);
        break;
    case 2: assert_int_equal(symlinkat(PRECIOUS, place.directory, SPARE_NAME), 0); break;
    case 3: assert_int_equal(symlinkat("nowhere", place.directory, SPARE_NAME), 0); break;
    case 4: assert_int_equal(linkat(place.directory, PRECIOUS, place.directory, SPARE_NAME, 0), 0);
    default: break; /* there is none */
    }
    bytes_close(&garbage);
}

/* The log does without it, and later makes another one of what is its own. */
static void a_spare_that_was_replaced_is_not_used(void **state) {
    struct log log;
    (void)state;
    for (unsigned kind = 0; kind < 5; kind++) {
        make_recycled(&log);
        make_ready(&log);
        replace_spare(kind);
        append(&log, PER_SEGMENT + 2);
        assert_int_equal(last_segment(&log), 5);
        assert_int_equal(log.spare, SPARE_MISSING);
        make_ready(&log);
        expect_zeros(SPARE_NAME, 0);
        struct bytes precious = file_read(&place, PRECIOUS);
        assert_int_equal(precious.used, sizeof PRECIOUS);
        assert_memory_equal(precious.at, PRECIOUS, sizeof PRECIOUS);
        bytes_close(&precious);
        append(&log, PER_SEGMENT);
        ends_whole(&log);
    }
}

static void a_directory_in_its_place_is_done_without(void **state) {
    struct log log;
    struct spare_work work;
    (void)state;
    make_recycled(&log);
    make_ready(&log);
    assert_int_equal(unlinkat(place.directory, SPARE_NAME, 0), 0);
    assert_int_equal(mkdirat(place.directory, SPARE_NAME, 0700), 0);
    append(&log, PER_SEGMENT + 2);
    assert_true(spare_is_wanted(&log, &work));
    spare_prepare(&work);
    assert_int_equal(work.error, EMEDIUMTYPE);
    spare_take(&log, &work);
    append(&log, PER_SEGMENT);
    assert_int_equal(last_segment(&log), 6);
    log_close(&log);
    assert_int_equal(unlinkat(place.directory, SPARE_NAME, AT_REMOVEDIR), 0);
    place_close(&place);
}

/* ---- After a crash ---- */

/* A crash leaves any mixture of written sectors in the last batch: that is torn, in a segment that
 * was another one before as in any. */
static void a_torn_batch_in_a_recycled_segment_is_torn(void **state) {
    enum { SECTORS = 3 };
    struct log log;
    enum log_state end;
    (void)state;
    for (unsigned kept = 0; kept < 1u << SECTORS; kept++) {
        make_recycled(&log);
        make_ready(&log);
        append(&log, PER_SEGMENT);
        struct bytes mark = file_read(&place, "mark");
        uint64_t next = log.end.next_index, begin = log.end.offset;
        append(&log, 1);
        uint64_t sequence = last_segment(&log), written = log.end.offset;
        assert_int_equal(sequence, 5);
        log_close(&log);
        struct bytes file = file_read(&place, name_of(sequence));
        unsigned sector = 0;
        for (uint64_t at = begin, to; at < written; at = to, sector++) {
            to = at / SECTOR * SECTOR + SECTOR;
            if (to > written) to = written;
            if (!(kept >> (sector < SECTORS ? sector : SECTORS - 1) & 1))
                memset(file.at + at, 0, (size_t)(to - at));
        }
        file_write(&place, name_of(sequence), file.at, file.used);
        file_write(&place, "mark", mark.at, mark.used); /* as it was before */
        bool all = kept == (1u << SECTORS) - 1;
        assert_int_equal(open_log(&log, PER_SEGMENT, &end), all ? next + 1 : next);
        assert_int_equal(end, all || !kept ? LOG_WHOLE : LOG_TORN);
        log_close(&log);
        bytes_close(&file);
        bytes_close(&mark);
        place_close(&place);
    }
}

/* If a disk brings the bytes of the old segment back, they are no batches of the new one, wherever
 * they are: its key is another one. */
static void stale_batches_are_none_of_the_new_segment(void **state) {
    struct log log;
    enum log_state end;
    uint64_t next;
    (void)state;
    make_recycled(&log);
    struct bytes stale = file_read(&place, SPARE_NAME);
    make_ready(&log);
    append(&log, PER_SEGMENT - 1); /* one in the new segment */
    assert_int_equal(last_segment(&log), 5);
    uint64_t begin = log.end.offset;
    next = log.end.next_index;
    log_close(&log);
    struct bytes file = file_read(&place, name_of(5));
    memcpy(file.at + begin, stale.at + begin, stale.used - (size_t)begin);
    file_write(&place, name_of(5), file.at, file.used);
    assert_int_equal(open_log(&log, PER_SEGMENT, &end), next);
    assert_int_equal(end, LOG_END_DAMAGED); /* and this is noticed */
    log_close(&log);
    bytes_close(&file);
    bytes_close(&stale);
    place_close(&place);
}

/* Whatever of a spare reached the disk, it is no part of the log. */
static void a_crash_while_it_is_overwritten_does_no_harm(void **state) {
    struct log log;
    enum log_state end;
    (void)state;
    make_recycled(&log);
    uint64_t next = log.end.next_index;
    struct bytes stale = file_read(&place, SPARE_NAME);
    memset(stale.at + SECTOR, 0, SECTOR);
    file_write(&place, SPARE_NAME, stale.at, stale.used); /* with its header */
    bytes_close(&stale);
    log_close(&log);
    assert_int_equal(open_log(&log, PER_SEGMENT, &end), next);
    assert_int_equal(end, LOG_WHOLE);
    assert_int_equal(log.spare, SPARE_STALE);
    make_ready(&log);
    expect_zeros(SPARE_NAME, 0);
    log_close(&log);
    place_close(&place);
}

/* ---- What is not renamed ---- */

static void a_copy_by_links_keeps_its_bytes(void **state) {
    struct log log;
    enum log_state end;
    (void)state;
    place_open(&place);
    open_log(&log, 0, &end);
    append(&log, 3 * PER_SEGMENT);
    assert_int_equal(linkat(place.directory, name_of(1), place.directory, "copy", 0), 0);
    assert_int_equal(log_trim(&log, PER_SEGMENT), 0);
    assert_int_equal(log.spare, SPARE_MISSING);
    assert_false(file_exists(&place, SPARE_NAME));
    assert_true(file_exists(&place, "copy"));
    log_close(&log);
    place_close(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spare_is_made_when_half_a_segment_is_used),
        cmocka_unit_test(an_old_segment_becomes_the_next),
        cmocka_unit_test(only_one_is_kept),
        cmocka_unit_test(a_spare_that_was_left_is_stale),
        cmocka_unit_test(a_spare_of_another_size_gets_the_right_one),
        cmocka_unit_test(a_large_batch_does_not_use_it),
        cmocka_unit_test(a_spare_that_cannot_be_made_is_done_without),
        cmocka_unit_test(a_spare_leaves_room_for_a_segment),
        cmocka_unit_test(a_spare_that_was_replaced_is_not_used),
        cmocka_unit_test(a_directory_in_its_place_is_done_without),
        cmocka_unit_test(a_torn_batch_in_a_recycled_segment_is_torn),
        cmocka_unit_test(stale_batches_are_none_of_the_new_segment),
        cmocka_unit_test(a_crash_while_it_is_overwritten_does_no_harm),
        cmocka_unit_test(a_copy_by_links_keeps_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
