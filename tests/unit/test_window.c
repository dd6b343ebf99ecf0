/* Entries in memory: a window over a log, against a plain list of entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "service/log/window.h"

enum { SIZE_MAX_TRIED = 50, LIST = 200000 };

struct known {
    uint64_t term;
    enum raft_kind kind;
    size_t size;
    unsigned char fill;
};

static void expect_entry(const struct raft_entry *entry, const struct known *known) {
    assert_int_equal(entry->term, known->term);
    assert_int_equal(entry->kind, known->kind);
    assert_int_equal(entry->size, known->size);
    for (size_t i = 0; i < entry->size; i++) assert_int_equal(entry->bytes[i], known->fill);
}

/* A batch must be as long as possible, and no longer. */
static void expect_read(const struct window *w, uint64_t index, size_t max_size,
                        const struct known *known) {
    struct raft_batch batch;
    struct raft_entry entry;
    size_t at = 0;
    window_read(w, index, max_size, &batch);
    assert_int_equal(batch.first, index);
    assert_in_range(batch.count, 1, window_last(w) - index + 1);
    assert_true(batch.size <= max_size || batch.count == 1);
    for (uint32_t i = 0; i < batch.count; i++) {
        assert_true(raft_next(&batch, &at, &entry));
        expect_entry(&entry, &known[index + i]);
    }
    assert_int_equal(at, batch.size);
    assert_int_equal(batch.term, known[index].term);
    assert_int_equal(batch.kind, known[index].kind);
    if (batch.kind == RAFT_CONFIG) assert_int_equal(batch.count, 1);
    uint64_t next = index + batch.count;
    if (next > window_last(w)) return;
    bool alike = known[next].term == batch.term && known[next].kind == batch.kind;
    bool fits = batch.size + RAFT_SIZE_BYTES + known[next].size <= max_size;
    assert_true(!alike || !fits || batch.kind == RAFT_CONFIG);
}

static void expect_all(const struct window *w, const struct known *known, size_t bytes) {
    struct raft_entry entry;
    assert_int_equal(window_bytes(w), bytes);
    for (uint64_t index = w->after + 1; index <= window_last(w); index++) {
        window_entry(w, index, &entry);
        assert_int_equal(entry.index, index);
        expect_entry(&entry, &known[index]);
    }
}

static struct known any_entry(struct rng *rng, uint64_t term) {
    return (struct known){.term = term,
                          .kind = rng_below(rng, 6) ? RAFT_NORMAL : RAFT_CONFIG,
                          .size = (size_t)rng_below(rng, SIZE_MAX_TRIED),
                          .fill = (unsigned char)rng_next(rng)};
}

static void add(struct window *w, const struct known *known, uint64_t index) {
    unsigned char *to = window_room(w, known->size + 7); /* more than it takes */
    memset(to, known->fill, known->size);
    assert_int_equal(window_add(w, known->term, known->kind, known->size), index);
}

/* A batch of entries that the list has from `first` on. */
static struct raft_batch batch_of(struct bytes *bytes, const struct known *known, uint64_t first,
                                  uint32_t count) {
    bytes->used = 0;
    for (uint64_t i = first; i < first + count; i++) {
        uint32_t size = (uint32_t)known[i].size;
        bytes_add(bytes, &size, sizeof size);
        memset(bytes_extend(bytes, size), known[i].fill, size);
    }
    return (struct raft_batch){.first = first,
                               .term = known[first].term,
                               .count = count,
                               .kind = known[first].kind,
                               .bytes = bytes->at,
                               .size = bytes->used};
}

static size_t bytes_of(const struct known *known, uint64_t after, uint64_t last) {
    size_t bytes = 0;
    for (uint64_t i = after + 1; i <= last; i++) bytes += RAFT_SIZE_BYTES + known[i].size;
    return bytes;
}

static void a_window_is_its_model(void **state) {
    struct known *known = calloc(LIST, sizeof *known);
    struct bytes bytes = {0};
    struct window w;
    struct rng rng;
    (void)state;
    rng_seed(&rng, 7);
    for (int round = 0; round < 60; round++) {
        uint64_t after = rng_below(&rng, 100), last = after, term = 1;
        window_open(&w, after);
        for (int step = 0; step < 400 && last + 20 < LIST; step++) {
            uint64_t what = rng_below(&rng, 20);
            if (!rng_below(&rng, 9)) term++;
            if (what < 8) {
                known[last + 1] = any_entry(&rng, term);
                add(&w, &known[last + 1], last + 1);
                last++;
            } else if (what < 15) { /* a batch, that may replace */
                uint64_t first = after + 1 + rng_below(&rng, last - after + 1);
                if (rng_below(&rng, 2)) first = last + 1;
                uint32_t count = (uint32_t)rng_below(&rng, 9);
                known[first] = any_entry(&rng, ++term);
                if (known[first].kind == RAFT_CONFIG) count = 1;
                for (uint32_t i = 1; i < count; i++) {
                    known[first + i] = any_entry(&rng, term);
                    known[first + i].kind = RAFT_NORMAL;
                }
                struct raft_batch batch = batch_of(&bytes, known, first, count);
                assert_true(window_append(&w, &batch));
                last = first + count - 1;
            } else if (what < 18) {
                after += rng_below(&rng, last - after + 1);
                window_trim(&w, after);
            } else if (what == 18) {
                window_trim(&w, after ? after - 1 : 0); /* was trimmed before */
            } else if (!rng_below(&rng, 5)) {
                last = after = rng_below(&rng, 100);
                window_reset(&w, after);
            }
            assert_int_equal(w.after, after);
            assert_int_equal(window_last(&w), last);
            expect_all(&w, known, bytes_of(known, after, last));
            for (int i = 0; i < 3 && last > after; i++)
                expect_read(&w, after + 1 + rng_below(&rng, last - after),
                            (size_t)rng_below(&rng, 300), known);
            if (last > after) expect_read(&w, after + 1, SIZE_MAX, known);
        }
        window_close(&w);
    }
    bytes_close(&bytes);
    free(known);
}

/* Memory is bounded by the entries in the window, not by those that passed through. */
static void trimmed_entries_free_their_memory(void **state) {
    struct window w;
    (void)state;
    window_open(&w, 0);
    for (uint64_t index = 1; index <= 1000000; index++) {
        memset(window_room(&w, 100), 1, 100);
        assert_int_equal(window_add(&w, 1, RAFT_NORMAL, 100), index);
        if (index > 1000) window_trim(&w, index - 1000);
    }
    assert_int_equal(window_bytes(&w), 1000 * 104);
    assert_true(w.bytes.room <= 8 * 1000 * 104);
    assert_true(w.slot_room <= 8 * 1000);
    window_close(&w);
}

/* A malformed batch is refused, and removes nothing. */
static void malformed_batches_are_refused(void **state) {
    static const struct known known[] = {
        {0}, {1, RAFT_NORMAL, 5, 'a'}, {1, RAFT_NORMAL, 0, 'b'}, {1, RAFT_NORMAL, 9, 'c'}};
    struct bytes bytes = {0};
    struct window w;
    (void)state;
    window_open(&w, 0);
    struct raft_batch good = batch_of(&bytes, known, 1, 3), bad;
    assert_true(window_append(&w, &good));
    for (size_t size = 0; size < good.size; size++) { /* cut anywhere */
        bad = good;
        bad.size = size;
        assert_false(window_append(&w, &bad));
    }
    bytes_add(&bytes, "more", 4);
    good.bytes = bytes.at;
    for (size_t more = 1; more <= 4; more++) {
        bad = good;
        bad.size += more;
        assert_false(window_append(&w, &bad));
    }
    for (uint32_t count = 0; count < 6; count++) {
        bad = good;
        bad.count = count;
        assert_int_equal(window_append(&w, &bad), count == 3);
    }
    bad = good;
    bad.kind = RAFT_CONFIG; /* alone in its batch */
    assert_false(window_append(&w, &bad));
    bad.kind = RAFT_CONFIG + 1;
    assert_false(window_append(&w, &bad));
    bad = good;
    bad.term = UINT64_MAX;
    assert_false(window_append(&w, &bad));
    bytes.at[0] = 255; /* an entry that is longer than the batch */
    bytes.at[3] = 255;
    assert_false(window_append(&w, &good));
    expect_all(&w, known, good.size);
    window_close(&w);
    bytes_close(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_its_model),
        cmocka_unit_test(trimmed_entries_free_their_memory),
        cmocka_unit_test(malformed_batches_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
