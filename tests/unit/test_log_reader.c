/* Reading the log while it grows: what is committed comes out as it was written, from any entry
 * on. */
#include "base/rng.h"
#include "file_help.h"
#include "service/log/log.h"
#include "service/log/reader.h"

enum { ENTRIES = 400, SEGMENT = 2048 };

struct model { /* what the log holds, by index */
    uint64_t term[ENTRIES + 64];
    uint32_t size[ENTRIES + 64];
    unsigned char letter[ENTRIES + 64];
    enum raft_kind kind[ENTRIES + 64];
    uint64_t last, commit;
};

static struct place place;
static struct log log_;
static struct model model;

static int nothing(void *context, const struct raft_batch *batch) {
    (void)context, (void)batch;
    return 0;
}

static void open_log(void) {
    enum log_state end;
    place_open(&place);
    log_ = (struct log){.segment_bytes = SEGMENT, .no_sync = true};
    model = (struct model){0};
    assert_int_equal(log_open(&log_, place.directory, place.path, 0, 0, nothing, NULL, &end), 0);
}

static void close_log(void) {
    log_close(&log_);
    place_close(&place);
}

static void append(uint64_t first, uint32_t count, uint64_t term, enum raft_kind kind,
                   struct rng *rng) {
    struct bytes bytes = {0};
    for (uint32_t i = 0; i < count; i++) {
        uint64_t index = first + i;
        model.term[index] = term;
        model.kind[index] = kind;
        model.letter[index] = (unsigned char)rng_next(rng);
        model.size[index] = (uint32_t)rng_below(rng, rng_chance(rng, 0.1) ? 1500 : 60);
        memcpy(bytes_extend(&bytes, 4), &model.size[index], 4);
        memset(bytes_extend(&bytes, model.size[index]), model.letter[index], model.size[index]);
    }
    model.last = first + count - 1;
    struct raft_batch batch = {.first = first,
                               .term = term,
                               .commit_index = model.commit,
                               .count = count,
                               .kind = kind,
                               .bytes = bytes.at,
                               .size = bytes.used};
    assert_int_equal(log_append(&log_, &batch), 0);
    bytes_close(&bytes);
}

/* A leader after the other; what is not committed may be replaced. */
static void write_random(struct rng *rng, uint64_t until) {
    static uint64_t term;
    if (!model.last) term = 1;
    while (model.last < until) {
        uint64_t first = model.last + 1;
        if (rng_chance(rng, 0.2)) {
            term++;
            first -= rng_below(rng, model.last - model.commit + 1);
        }
        bool is_config = rng_chance(rng, 0.1);
        append(first, is_config ? 1 : 1 + (uint32_t)rng_below(rng, 6), term,
               is_config ? RAFT_CONFIG : RAFT_NORMAL, rng);
        model.commit += rng_below(rng, model.last - model.commit + 1);
    }
}

/* Reads on to an entry. */
static void read_to(struct log_reader *reader, uint64_t last, size_t bytes_max) {
    struct raft_batch batch;
    uint64_t previous;
    while (log_reader_next_index(reader) <= last) {
        uint64_t index = log_reader_next_index(reader);
        struct raft_entry entry;
        assert_int_equal(log_reader_next(reader, last, bytes_max, &batch, &previous), 0);
        assert_int_equal(batch.first, index);
        assert_true(batch.count > 0 && (batch.count == 1 || batch.size <= bytes_max));
        assert_true(raft_batch_last(&batch) <= last);
        assert_int_equal(previous, model.term[index - 1]);
        for (size_t at = 0; raft_next(&batch, &at, &entry); index++) {
            assert_int_equal(batch.term, model.term[index]);
            assert_int_equal(batch.kind, model.kind[index]);
            assert_int_equal(entry.size, model.size[index]);
            for (size_t i = 0; i < entry.size; i++)
                assert_int_equal(entry.bytes[i], model.letter[index]);
        }
        assert_int_equal(index, log_reader_next_index(reader));
    }
    assert_int_equal(log_reader_next(reader, last, bytes_max, &batch, &previous), 0);
    assert_int_equal(batch.count, 0);
}

static void test_from_any_entry(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        open_log();
        write_random(&rng, ENTRIES);
        for (uint64_t index = 1; index <= model.commit; index += 1 + rng_below(&rng, 20)) {
            struct log_reader *reader = log_reader_open(place.directory, place.path, index);
            assert_non_null(reader);
            read_to(reader, model.commit, 1 + rng_below(&rng, 3000));
            log_reader_close(reader);
        }
        close_log();
    }
}

/* Where a log that has a certain term at an index can agree at the latest. */
static void test_agreement(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        open_log();
        write_random(&rng, ENTRIES);
        for (uint64_t index = 0; index < model.commit; index += 1 + rng_below(&rng, 20)) {
            uint64_t term = rng_below(&rng, model.term[index] + 2), agreed = index;
            while (model.term[agreed] > term) agreed--;
            struct log_reader *reader =
                log_reader_open_after(place.directory, place.path, index, term);
            assert_non_null(reader);
            assert_int_equal(log_reader_next_index(reader), agreed + 1);
            read_to(reader, model.commit, 1 + rng_below(&rng, 3000));
            log_reader_close(reader);
        }
        close_log();
    }
}

/* The log is written to between two reads; nothing that may be replaced comes out. */
static void test_while_it_grows(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        open_log();
        write_random(&rng, 1);
        struct log_reader *reader = log_reader_open(place.directory, place.path, 1);
        assert_non_null(reader);
        while (model.last < ENTRIES) {
            write_random(&rng, model.last + 1 + rng_below(&rng, 10));
            if (model.last < ENTRIES) read_to(reader, model.commit, 1 + rng_below(&rng, 500));
        }
        log_reader_close(reader);
        close_log();
    }
}

/* Segments that a snapshot has made unnecessary, and those after a snapshot from elsewhere. */
static void test_what_is_gone(void **state) {
    (void)state;
    struct rng rng;
    struct raft_batch batch;
    uint64_t previous;
    rng_seed(&rng, 7);
    open_log();
    assert_null(log_reader_open(place.directory, place.path, 1));
    write_random(&rng, ENTRIES / 2);
    struct log_reader *early = log_reader_open(place.directory, place.path, 1);
    assert_non_null(early);
    assert_int_equal(log_reader_next(early, model.commit, 1, &batch, &previous), 0);
    assert_int_equal(log_trim(&log_, model.commit), 0);
    assert_null(log_reader_open(place.directory, place.path, 1));
    assert_null(log_reader_open_after(place.directory, place.path, model.commit - 1, 0));
    int status = 0; /* the segment that it has in view is still readable, the next is not */
    while (!status && log_reader_next_index(early) <= model.commit)
        status = log_reader_next(early, model.commit, 100, &batch, &previous);
    assert_int_equal(status, -1);
    log_reader_close(early);
    uint64_t before = model.commit;
    log_reset(&log_, ENTRIES, 1000);
    model.term[ENTRIES] = 1000;
    append(ENTRIES + 1, 2, 1000, RAFT_NORMAL, &rng);
    struct log_reader *across = log_reader_open(place.directory, place.path, before);
    if (across) assert_int_equal(log_reader_next(across, ENTRIES, 100000, &batch, &previous), -1);
    log_reader_close(across);
    struct log_reader *after = log_reader_open(place.directory, place.path, ENTRIES + 1);
    assert_non_null(after);
    read_to(after, ENTRIES + 2, 100);
    log_reader_close(after);
    close_log();
}

/* Damage is an end that the caller notices, never entries that nobody wrote: in a segment before
 * others, and in the last one. */
static void test_damage(void **state) {
    (void)state;
    for (unsigned from_end = 0; from_end < 2; from_end++) {
        struct raft_batch batch = {0};
        uint64_t previous;
        struct rng rng;
        char name[32];
        rng_seed(&rng, 3);
        open_log();
        write_random(&rng, ENTRIES);
        model.commit = model.last; /* so that what is damaged is wanted */
        snprintf(name, sizeof name, "log.%016llx",
                 (unsigned long long)log_.segment[log_.segments - 1 - from_end].sequence);
        int file = openat(place.directory, name, O_WRONLY | O_CLOEXEC);
        assert_true(file >= 0);
        assert_int_equal(pwrite(file, "damage", 6, 100), 6);
        close(file);
        struct log_reader *reader = log_reader_open(place.directory, place.path, 1);
        assert_non_null(reader);
        int status = 0;
        while (!status && log_reader_next_index(reader) <= model.commit) {
            status = log_reader_next(reader, model.commit, 100, &batch, &previous);
            assert_true(status || batch.count);
        }
        assert_int_equal(status, -1);
        log_reader_close(reader);
        close_log();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_any_entry), cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_while_it_grows), cmocka_unit_test(test_what_is_gone),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
