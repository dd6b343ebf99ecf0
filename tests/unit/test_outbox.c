/* The outbox, against a plain list of proposals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/ensemble/internal.h"

enum { LIST = 200000, BODY_MAX = 40, RING_MIN = 256 };

struct proposed {
    struct proposal proposal;
    size_t body_size;
    unsigned char fill;
};

struct model {
    struct outbox outbox;
    struct rng rng;
    struct proposed *list; /* by sequence number */
    uint64_t applied, last;
};

static struct model open_model(uint64_t seed) {
    struct model m = {.list = calloc(LIST + 1, sizeof *m.list)};
    assert_non_null(m.list);
    rng_seed(&m.rng, seed);
    outbox_open(&m.outbox);
    return m;
}

static void close_model(struct model *m) {
    outbox_close(&m->outbox);
    free(m->list);
}

/* ---- Changing both ---- */

static void add(struct model *m) {
    unsigned char body[BODY_MAX];
    assert_in_range(m->last, 0, LIST - 1);
    struct proposed *p = &m->list[++m->last];
    p->proposal = (struct proposal){.connection = (uint32_t)rng_next(&m->rng),
                                    .serial = (uint32_t)rng_next(&m->rng),
                                    .xid = (int32_t)rng_next(&m->rng),
                                    .op = (int32_t)rng_next(&m->rng),
                                    .proposed_us = rng_next(&m->rng)};
    p->body_size = rng_below(&m->rng, BODY_MAX + 1);
    p->fill = (unsigned char)rng_next(&m->rng);
    memset(body, p->fill, p->body_size);
    struct tree_entry entry = {
        .sequence = m->last, .op = p->proposal.op, .body = zk_in_of(body, p->body_size)};
    assert_int_equal(outbox_add(&m->outbox, &entry, &p->proposal), m->last);
}

static void remove_up_to(struct model *m, uint64_t sequence) {
    struct proposal removed = outbox_remove(&m->outbox, sequence);
    m->applied = sequence;
    assert_memory_equal(&removed, &m->list[sequence].proposal, sizeof removed);
}

/* ---- Comparing ---- */

static void expect_entry(const struct model *m, uint64_t sequence) {
    const struct proposed *p = &m->list[sequence];
    struct raft_entry stored;
    struct tree_entry entry;
    window_entry(&m->outbox.entries, sequence, &stored);
    struct zk_in in = zk_in_of(stored.bytes, stored.size);
    assert_true(tree_read_entry(&in, &entry));
    assert_int_equal(entry.sequence, sequence);
    assert_int_equal(entry.op, p->proposal.op);
    assert_int_equal(zk_left(&entry.body), p->body_size);
    for (size_t i = 0; i < p->body_size; i++) assert_int_equal(entry.body.at[i], p->fill);
}

static void expect_same(const struct model *m) {
    assert_int_equal(outbox_last(&m->outbox), m->last);
    assert_int_equal(outbox_applied(&m->outbox), m->applied);
    for (uint64_t s = m->applied + 1; s <= m->last; s++) expect_entry(m, s);
}

/* ---- Tests ---- */

static void is_empty_at_first(void **state) {
    struct model m = open_model(1);
    (void)state;
    expect_same(&m);
    assert_int_equal(m.outbox.room, 0);
    close_model(&m);
}

/* The ring is full exactly, several times. */
static void grows_when_it_is_full(void **state) {
    struct model m = open_model(2);
    (void)state;
    for (size_t room = RING_MIN; room <= 16 * RING_MIN; room *= 2) {
        while (m.last < room) add(&m);
        assert_int_equal(m.outbox.room, room);
        expect_same(&m);
    }
    for (uint64_t s = 1; s <= m.last; s++) remove_up_to(&m, s);
    expect_same(&m);
    close_model(&m);
}

/* Long-lived, but never with much in it: it wraps around and does not grow. */
static void wraps_around(void **state) {
    struct model m = open_model(3);
    (void)state;
    for (int i = 0; i < RING_MIN; i++) add(&m);
    for (int i = 0; i < 20 * RING_MIN; i++) {
        remove_up_to(&m, m.applied + 1);
        add(&m);
        assert_int_equal(m.outbox.room, RING_MIN);
    }
    expect_same(&m);
    while (m.applied < m.last) remove_up_to(&m, m.applied + 1);
    close_model(&m);
}

/* It grows while what is in it lies around the end of the ring. */
static void grows_around_the_end(void **state) {
    (void)state;
    for (uint64_t begin = 0; begin < 2 * RING_MIN; begin += 37) {
        struct model m = open_model(begin);
        for (uint64_t i = 0; i < begin; i++) {
            add(&m);
            remove_up_to(&m, m.last);
        }
        for (int i = 0; i < 3 * RING_MIN; i++) add(&m);
        assert_int_equal(m.outbox.room, 4 * RING_MIN);
        expect_same(&m);
        while (m.applied < m.last) remove_up_to(&m, m.applied + 1);
        close_model(&m);
    }
}

/* A snapshot brings many at once: the proposals before the last are nobody's. */
static void removes_several(void **state) {
    struct model m = open_model(4);
    (void)state;
    for (int i = 0; i < 1000; i++) add(&m);
    remove_up_to(&m, 700);
    expect_same(&m);
    remove_up_to(&m, 1000);
    expect_same(&m);
    add(&m);
    remove_up_to(&m, 1001);
    close_model(&m);
}

static void behaves_like_a_list(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct model m = open_model(seed);
        for (int i = 0; i < 200; i++) {
            uint64_t many = rng_below(&m.rng, 120 * seed), pending;
            while (many-- && m.last < LIST) add(&m);
            pending = m.last - m.applied;
            if (pending) remove_up_to(&m, m.applied + 1 + rng_below(&m.rng, pending));
            if (i % 20 == 0) expect_same(&m);
        }
        expect_same(&m);
        close_model(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_empty_at_first), cmocka_unit_test(grows_when_it_is_full),
        cmocka_unit_test(wraps_around),      cmocka_unit_test(grows_around_the_end),
        cmocka_unit_test(removes_several),   cmocka_unit_test(behaves_like_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
