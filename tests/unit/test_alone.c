/* The consensus core for one: what is put forward comes out in its order, and not before it is
 * saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "raft/alone.h"

/* Entry n is so many bytes, each n. */
static size_t size_of(uint64_t index) { return index * 7919 % 300; }

static void propose(struct alone *raft, uint64_t index) {
    size_t size = size_of(index);
    unsigned char *room = alone_room(raft, size + 20); /* at most: less may be taken */
    if (size) memset(room, (int)(index & 0xff), size);
    assert_int_equal(alone_propose(raft, size), index);
}

static void expect_entry(const struct raft_entry *entry, uint64_t index) {
    assert_int_equal(entry->size, size_of(index));
    for (size_t i = 0; i < entry->size; i++) assert_int_equal(entry->bytes[i], index & 0xff);
}

static void nothing_comes_of_nothing(void **state) {
    struct alone raft;
    struct raft_batch batch;
    struct raft_entry entry;
    (void)state;
    alone_open(&raft, 3, 10);
    assert_false(alone_to_save(&raft, &batch));
    assert_false(alone_committed(&raft, &entry));
    alone_close(&raft);
}

static void nothing_is_decided_before_it_is_saved(void **state) {
    struct alone raft;
    struct raft_batch batch;
    struct raft_entry entry;
    (void)state;
    alone_open(&raft, 3, 10);
    propose(&raft, 11);
    propose(&raft, 12);
    assert_false(alone_committed(&raft, &entry));
    assert_true(alone_to_save(&raft, &batch));
    assert_int_equal(batch.first, 11);
    assert_int_equal(batch.count, 2);
    assert_int_equal(batch.term, 3);
    assert_false(alone_committed(&raft, &entry));
    propose(&raft, 13); /* while that is under way */
    assert_false(alone_committed(&raft, &entry));
    alone_saved(&raft, 12);
    for (uint64_t index = 11; index <= 12; index++) {
        assert_true(alone_committed(&raft, &entry));
        assert_int_equal(entry.index, index);
        assert_int_equal(entry.term, 3);
        expect_entry(&entry, index);
    }
    assert_false(alone_committed(&raft, &entry));
    assert_true(alone_to_save(&raft, &batch));
    assert_int_equal(batch.first, 13);
    assert_int_equal(batch.count, 1);
    alone_close(&raft);
}

/* Turn after turn, with entries that are put forward while others are saved and applied. */
static void turns_follow_each_other(void **state) {
    struct alone raft;
    struct raft_batch batch;
    struct raft_entry entry;
    struct rng rng;
    uint64_t last = 0, decided = 0;
    (void)state;
    rng_seed(&rng, 3);
    alone_open(&raft, 1, 0);
    for (int turn = 0; turn < 2000; turn++) {
        for (uint64_t n = rng_below(&rng, 5); n; n--) propose(&raft, ++last);
        if (!alone_to_save(&raft, &batch)) {
            assert_int_equal(decided, last);
            continue;
        }
        uint64_t saved = batch.first + batch.count - 1;
        assert_int_equal(batch.first, decided + 1);
        assert_int_equal(saved, last);
        size_t at = 0;
        for (uint64_t index = batch.first; raft_next(&batch, &at, &entry); index++)
            expect_entry(&entry, index);
        assert_int_equal(at, batch.size);
        if (rng_below(&rng, 2)) propose(&raft, ++last);
        alone_saved(&raft, saved);
        while (alone_committed(&raft, &entry)) {
            assert_int_equal(entry.index, ++decided);
            expect_entry(&entry, decided);
            if (rng_below(&rng, 4) == 0) propose(&raft, ++last);
        }
        assert_int_equal(decided, saved);
    }
    alone_close(&raft);
}

/* What is no entry is not taken for one. */
static void a_batch_that_is_cut_is_noticed(void **state) {
    static const unsigned char bytes[] = {2, 0, 0, 0, 'a', 'b', 0,   0,  0,
                                          0, 3, 0, 0, 0,   'x', 'y', 'z'};
    (void)state;
    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct raft_batch batch = {.bytes = bytes, .size = size};
        struct raft_entry entry;
        size_t at = 0, count = 0;
        while (raft_next(&batch, &at, &entry)) count++;
        assert_int_equal(count, (size >= 6) + (size >= 10) + (size >= 17));
        assert_int_equal(at == size, size == 0 || size == 6 || size == 10 || size == 17);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_comes_of_nothing),
        cmocka_unit_test(nothing_is_decided_before_it_is_saved),
        cmocka_unit_test(turns_follow_each_other),
        cmocka_unit_test(a_batch_that_is_cut_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
