/* Questions for the leader's read index: which answers count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/ensemble/internal.h"

struct process { /* a server that follows a leader, without links: nothing is sent */
    struct ensemble ensemble;
    struct clock clock;
    unsigned reached;
};

static void wake(void *owner) { (void)owner; }
static void reached(void *owner) { ((struct process *)owner)->reached++; }

static const struct ensemble_callbacks callbacks = {.wake = wake, .read_index_reached = reached};

static struct process *start(uint64_t incarnation) {
    struct process *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->ensemble.owner = p;
    p->ensemble.callbacks = &callbacks;
    p->ensemble.clock = &p->clock;
    p->ensemble.incarnation = incarnation;
    p->ensemble.raft.self = 1;
    p->ensemble.raft.leader = 2;
    read_index_open(&p->ensemble);
    return p;
}

static uint64_t ask(struct process *p) {
    uint64_t number = ensemble_request_read_index(&p->ensemble);
    read_index_advance(&p->ensemble);
    assert_int_equal(p->ensemble.read_index.number, number);
    return number;
}

static bool answer(struct process *p, uint64_t number, uint64_t index) {
    unsigned before = p->reached;
    read_index_answered(&p->ensemble, number, index);
    read_index_advance(&p->ensemble);
    return p->reached > before;
}

/* The leader may answer a question of the process before this one, with what it had committed
 * then. */
static void test_answer_to_a_former_process(void **state) {
    (void)state;
    for (uint64_t random = 1; random <= 1000; random++) {
        struct process *former = start(random << 8 | 1), *now = start((random + 1) << 8 | 1);
        uint64_t old = 0, number = 0;
        now->ensemble.applied_index = 10;
        for (unsigned i = 0; i < 3; i++) {
            old = ask(former);
            assert_true(answer(former, old, 0));
            number = ask(now);
            assert_false(answer(now, old, 5));
            assert_false(ensemble_read_index_reached(&now->ensemble, number));
            assert_true(answer(now, number, 10));
            assert_true(ensemble_read_index_reached(&now->ensemble, number));
        }
        free(former);
        free(now);
    }
}

/* Each question has one answer, and is served when that much is applied. */
static void test_answers(void **state) {
    (void)state;
    struct process *p = start(0x1234567801);
    uint64_t first = ask(p);
    assert_false(answer(p, first, 3));
    p->ensemble.applied_index = 3;
    read_index_advance(&p->ensemble);
    assert_true(ensemble_read_index_reached(&p->ensemble, first));
    assert_int_equal(p->reached, 1);
    assert_false(answer(p, first, 3));
    uint64_t second = ask(p);
    assert_false(answer(p, first, 3));
    assert_false(ensemble_read_index_reached(&p->ensemble, second));
    assert_true(answer(p, second, 3));
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_to_a_former_process),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
