/* The timer wheel beside a model that keeps everything in one list and searches it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/rng.h"
#include "base/wheel.h"

enum { NODES = 256 };

struct pending {
    uint64_t time, sequence;
    uint32_t index;
};

struct bench {
    struct wheel wheel;
    struct pending pending[NODES];
    size_t count;
    uint64_t inserted;
    uint32_t spare[NODES];
    size_t spare_count;
    struct rng rng;
};

static struct bench *bench_new(uint64_t seed) {
    struct bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->wheel.nodes = calloc(NODES + 1, WHEEL_NODE_BYTES);
    assert_non_null(b->wheel.nodes);
    for (uint32_t i = NODES; i > 0; i--) b->spare[b->spare_count++] = i;
    rng_seed(&b->rng, seed);
    return b;
}

static void bench_free(struct bench *b) {
    free(b->wheel.nodes);
    free(b);
}

static uint32_t insert(struct bench *b, uint64_t time) {
    assert_true(b->spare_count > 0);
    uint32_t index = b->spare[--b->spare_count];
    b->pending[b->count++] = (struct pending){time, b->inserted++, index};
    wheel_insert(&b->wheel, index, time);
    assert_int_equal(b->wheel.count, b->count);
    return index;
}

static void forget(struct bench *b, size_t at) {
    b->spare[b->spare_count++] = b->pending[at].index;
    b->pending[at] = b->pending[--b->count];
}

static size_t earliest(const struct bench *b) {
    size_t best = 0;
    for (size_t i = 1; i < b->count; i++) {
        const struct pending *p = &b->pending[i], *q = &b->pending[best];
        if (p->time < q->time || (p->time == q->time && p->sequence < q->sequence)) best = i;
    }
    return best;
}

static void pop(struct bench *b) {
    if (b->count == 0) {
        assert_int_equal(wheel_pop(&b->wheel), 0);
        return;
    }
    size_t at = earliest(b);
    uint32_t index = wheel_pop(&b->wheel);
    assert_int_equal(index, b->pending[at].index);
    assert_true(b->wheel.now == b->pending[at].time);
    assert_true(wheel_at(&b->wheel, index)->time == b->pending[at].time);
    forget(b, at);
    assert_int_equal(b->wheel.count, b->count);
}

static void remove_at(struct bench *b, size_t at) {
    wheel_remove(&b->wheel, b->pending[at].index);
    forget(b, at);
    assert_int_equal(b->wheel.count, b->count);
}

static void remove_index(struct bench *b, uint32_t index) {
    size_t at = 0;
    while (b->pending[at].index != index) at++;
    remove_at(b, at);
}

static void drain(struct bench *b) {
    while (b->count) pop(b);
    pop(b);
}

/* ---- Delays of every magnitude ---- */

static const uint64_t magnitude[] = {0,
                                     0,
                                     1,
                                     2,
                                     63,
                                     64,
                                     65,
                                     4095,
                                     4096,
                                     4097,
                                     (1u << 18) - 1,
                                     1u << 18,
                                     1u << 20,
                                     1u << 24,
                                     1u << 30,
                                     (uint64_t)1 << 36,
                                     (uint64_t)1 << 40,
                                     (uint64_t)1 << 48,
                                     (uint64_t)1 << 54,
                                     (uint64_t)1 << 60,
                                     (uint64_t)1 << 63};
enum { MAGNITUDES = sizeof magnitude / sizeof magnitude[0] };

static uint64_t later(uint64_t now, uint64_t delay) {
    return delay > UINT64_MAX - now ? UINT64_MAX : now + delay;
}

/* A time from now on: a magnitude, a time near it, a time already taken, or the end. */
static uint64_t some_time(struct bench *b, size_t magnitudes) {
    uint64_t now = b->wheel.now, delay = magnitude[rng_below(&b->rng, magnitudes)];
    switch (rng_below(&b->rng, 8)) {
    case 0: return b->count ? b->pending[rng_below(&b->rng, b->count)].time : now;
    case 1: return later(now, rng_below(&b->rng, 2 * delay + 1));
    case 2:
        if (magnitudes == MAGNITUDES && rng_below(&b->rng, 4) == 0)
            return UINT64_MAX - rng_below(&b->rng, UINT64_MAX - now < 100 ? 1 : 100);
        return now;
    default: return later(now, delay);
    }
}

static void random_operation(struct bench *b, size_t magnitudes) {
    uint64_t what = rng_below(&b->rng, 10);
    if (what < 5 && b->spare_count)
        insert(b, some_time(b, magnitudes));
    else if (what < 7 && b->count)
        remove_at(b, rng_below(&b->rng, b->count));
    else
        pop(b);
}

/* Sequences of limited range exercise the near slots; the last ones reach the end of time. */
static void any_sequence_is_as_in_the_model(void **state) {
    (void)state;
    for (size_t sequence = 0; sequence < 40 * MAGNITUDES; sequence++) {
        struct bench *b = bench_new(sequence);
        for (int i = 0; i < 400; i++) random_operation(b, 1 + sequence % MAGNITUDES);
        drain(b);
        bench_free(b);
    }
}

static void a_full_wheel_is_as_in_the_model(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct bench *b = bench_new(seed);
        while (b->spare_count) insert(b, some_time(b, MAGNITUDES));
        while (b->count > NODES / 2) remove_at(b, rng_below(&b->rng, b->count));
        drain(b);
        bench_free(b);
    }
}

static void a_cleared_wheel_is_as_new(void **state) {
    (void)state;
    for (size_t sequence = 0; sequence < 4 * MAGNITUDES; sequence++) {
        struct bench *b = bench_new(sequence);
        struct wheel new = {.nodes = b->wheel.nodes};
        for (int i = 0; i < 400; i++) random_operation(b, 1 + sequence % MAGNITUDES);
        wheel_clear(&b->wheel);
        assert_memory_equal(&b->wheel, &new, sizeof new);
        bench_free(b);
    }
}

/* ---- One thing at a time ---- */

static void an_empty_wheel_gives_nothing(void **state) {
    (void)state;
    struct bench *b = bench_new(1);
    pop(b);
    remove_index(b, insert(b, 5000));
    pop(b);
    assert_true(b->wheel.now == 0);
    bench_free(b);
}

/* Some are inserted when their time is far, some when it is near; all keep their order. */
static void equal_times_keep_the_order_of_insertion(void **state) {
    (void)state;
    for (size_t m = 0; m < MAGNITUDES; m++) {
        struct bench *b = bench_new(m);
        uint64_t time = magnitude[m];
        for (uint64_t near = time / 2; near < time; near += (time - near + 1) / 2) {
            insert(b, time);
            insert(b, near);
            insert(b, time);
            pop(b);
            insert(b, time);
            if (b->count > NODES - 4) break;
        }
        insert(b, time);
        insert(b, time);
        drain(b);
        bench_free(b);
    }
}

/* First, middle and last of a slot, and the only one, leave the others in order. */
static void removal_works_on_every_level(void **state) {
    (void)state;
    for (size_t m = 0; m < MAGNITUDES; m++)
        for (unsigned removed = 1; removed < 16; removed++) {
            struct bench *b = bench_new(m);
            uint32_t index[4];
            for (int i = 0; i < 4; i++) index[i] = insert(b, magnitude[m]);
            for (unsigned i = 0; i < 4; i++)
                if (removed & 1u << i) remove_index(b, index[i]);
            insert(b, magnitude[m]);
            drain(b);
            bench_free(b);
        }
}

/* A removed node leaves nothing that a later pop could find. */
static void emptied_levels_are_skipped(void **state) {
    (void)state;
    for (size_t m = 0; m < MAGNITUDES; m++) {
        struct bench *b = bench_new(m);
        uint32_t index = insert(b, magnitude[m]);
        insert(b, UINT64_MAX);
        remove_index(b, index);
        drain(b);
        assert_true(b->wheel.now == UINT64_MAX);
        bench_free(b);
    }
}

static void the_end_of_time_is_reached(void **state) {
    (void)state;
    struct bench *b = bench_new(1);
    for (uint64_t before_end = 100; before_end-- > 0;) insert(b, UINT64_MAX - before_end);
    for (uint64_t before_end = 0; before_end < 100; before_end++)
        insert(b, UINT64_MAX - before_end);
    for (int i = 0; i < 150; i++) pop(b);
    insert(b, UINT64_MAX);
    drain(b);
    insert(b, UINT64_MAX);
    drain(b);
    bench_free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_sequence_is_as_in_the_model),
        cmocka_unit_test(a_full_wheel_is_as_in_the_model),
        cmocka_unit_test(a_cleared_wheel_is_as_new),
        cmocka_unit_test(an_empty_wheel_gives_nothing),
        cmocka_unit_test(equal_times_keep_the_order_of_insertion),
        cmocka_unit_test(removal_works_on_every_level),
        cmocka_unit_test(emptied_levels_are_skipped),
        cmocka_unit_test(the_end_of_time_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
