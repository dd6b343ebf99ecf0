/* The judge of histories: classic ones by hand, random ones that are right, and thousands of small
 * ones, for which every order is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/rng.h"
#include "lab/judge/history.h"

enum { X = 1, Y, Z }; /* keys */

/* ---- Histories by hand ---- */

static struct history_operation *add(struct history *h, uint32_t client, enum history_action action,
                                     int64_t start, int64_t end) {
    struct history_operation o = history_begin(client, X, action, start);
    o.end = end;
    o.outcome = HISTORY_OK;
    size_t index = history_add(h, &o);
    return &h->operation[index];
}

static void reads(struct history *h, uint32_t client, int64_t value, int64_t start, int64_t end) {
    add(h, client, HISTORY_READ, start, end)->value = value;
}

static void reads_nothing(struct history *h, uint32_t client, int64_t start, int64_t end) {
    add(h, client, HISTORY_READ, start, end)->outcome = HISTORY_NO_NODE;
}

static struct history_operation *writes(struct history *h, uint32_t client, int64_t value,
                                        int64_t start, int64_t end) {
    struct history_operation *o = add(h, client, HISTORY_WRITE, start, end);
    o->value = value;
    return o;
}

static struct history_operation *creates(struct history *h, uint32_t client, int64_t value,
                                         int64_t start, int64_t end) {
    struct history_operation *o = add(h, client, HISTORY_CREATE, start, end);
    o->value = value;
    return o;
}

static struct history_operation *swaps(struct history *h, uint32_t client, int64_t expected,
                                       int64_t value, int64_t start, int64_t end) {
    struct history_operation *o = add(h, client, HISTORY_CAS, start, end);
    o->expected = expected;
    o->value = value;
    return o;
}

static void begins_with(struct history *h, int64_t value) {
    add(h, 0, HISTORY_INITIAL, 0, 0)->value = value;
}

static void assert_judged(const struct history *h, bool sequential, enum verdict_value value) {
    struct history_result result;
    history_judge(h, &(struct history_rules){.sequential = sequential}, &result);
    if (result.verdict.value != value) print_message("%s\n", result.verdict.why);
    assert_string_equal(verdict_word(result.verdict.value), verdict_word(value));
    assert_true((value == VIOLATED) == (result.stuck_count > 0));
    history_result_close(&result);
}

/* Judges in both ways, and empties the history. */
static void assert_verdicts(struct history *h, enum verdict_value linearizable,
                            enum verdict_value sequential) {
    assert_judged(h, false, linearizable);
    assert_judged(h, true, sequential);
    history_clear(h);
}

static void nothing_holds(void **state) {
    struct history h = {0};
    (void)state;
    assert_verdicts(&h, HELD, HELD);
    reads_nothing(&h, 1, 0, 1);
    assert_verdicts(&h, HELD, HELD);
    history_close(&h);
}

static void reads_and_writes(void **state) {
    struct history h = {0};
    (void)state;
    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 20);
    reads(&h, 2, 0, 12, 13); /* overlaps the write: old or new, and then new */
    reads(&h, 2, 7, 14, 15);
    reads(&h, 3, 7, 30, 31);
    assert_verdicts(&h, HELD, HELD);

    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 20);
    reads(&h, 2, 0, 21, 30); /* stale */
    assert_verdicts(&h, VIOLATED, HELD);

    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 20);
    reads(&h, 2, 0, 20, 30); /* starts when the write ends: it overlaps */
    assert_verdicts(&h, HELD, HELD);

    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 20);
    reads(&h, 2, 7, 11, 12); /* goes back, while the write is under way */
    reads(&h, 2, 0, 13, 14);
    assert_verdicts(&h, VIOLATED, VIOLATED);

    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 20);
    reads(&h, 2, 7, 11, 12); /* two readers need not agree when reads may be stale */
    reads(&h, 3, 0, 13, 14);
    assert_verdicts(&h, VIOLATED, HELD);

    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 20);
    reads(&h, 1, 0, 21, 22); /* not even what it wrote itself */
    assert_verdicts(&h, VIOLATED, VIOLATED);

    begins_with(&h, 7);
    writes(&h, 1, 7, 10, 40); /* changes nothing at first, but it is not first */
    writes(&h, 2, 8, 20, 25);
    reads(&h, 3, 7, 30, 35);
    assert_verdicts(&h, HELD, HELD);

    begins_with(&h, 0);
    reads(&h, 2, 7, 5, 9); /* what is not written yet */
    writes(&h, 1, 7, 10, 20);
    assert_verdicts(&h, VIOLATED, VIOLATED);
    history_close(&h);
}

static void writes_have_one_order(void **state) {
    struct history h = {0};
    (void)state;
    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 20);
    writes(&h, 2, 8, 10, 20);
    reads(&h, 3, 7, 11, 12), reads(&h, 3, 8, 13, 14);
    reads(&h, 4, 8, 11, 12), reads(&h, 4, 7, 13, 14);
    assert_verdicts(&h, VIOLATED, VIOLATED);

    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 20);
    writes(&h, 2, 8, 30, 40);
    reads(&h, 3, 8, 31, 41), reads(&h, 3, 7, 42, 43); /* against the order of time */
    assert_verdicts(&h, VIOLATED, VIOLATED);
    history_close(&h);
}

static void versions_tell_lost_updates(void **state) {
    struct history h = {0};
    (void)state;
    creates(&h, 1, 5, 0, 1)->version = 0;
    writes(&h, 1, 6, 10, 20)->version = 1;
    writes(&h, 2, 7, 10, 20)->version = 2;
    assert_verdicts(&h, HELD, HELD);

    creates(&h, 1, 5, 0, 1)->version = 0;
    writes(&h, 1, 6, 10, 20)->version = 1;
    writes(&h, 2, 7, 10, 20)->version = 1; /* one of them was lost */
    assert_verdicts(&h, VIOLATED, VIOLATED);

    creates(&h, 1, 5, 0, 1);
    swaps(&h, 1, 0, 6, 10, 20);
    swaps(&h, 2, 0, 7, 10, 20); /* both for the same version */
    assert_verdicts(&h, VIOLATED, VIOLATED);

    creates(&h, 1, 5, 0, 1);
    swaps(&h, 1, 0, 6, 10, 20);
    swaps(&h, 2, 0, 7, 10, 20)->outcome = HISTORY_BAD_VERSION;
    assert_verdicts(&h, HELD, HELD);

    creates(&h, 1, 5, 0, 1);
    swaps(&h, 2, 0, 7, 10, 20)->outcome = HISTORY_BAD_VERSION; /* for no reason */
    assert_verdicts(&h, VIOLATED, VIOLATED);
    history_close(&h);
}

static void values_are_compared(void **state) {
    struct history h = {0};
    (void)state;
    begins_with(&h, 5);
    swaps(&h, 1, 5, 6, 10, 20)->action = HISTORY_CAS_VALUE;
    swaps(&h, 2, 6, 5, 10, 20)->action = HISTORY_CAS_VALUE;
    reads(&h, 3, 5, 21, 22);
    assert_verdicts(&h, HELD, HELD);

    begins_with(&h, 5);
    swaps(&h, 1, 5, 6, 10, 20)->action = HISTORY_CAS_VALUE;
    swaps(&h, 2, 5, 7, 10, 20)->action = HISTORY_CAS_VALUE;
    assert_verdicts(&h, VIOLATED, VIOLATED);
    history_close(&h);
}

static void nodes_come_and_go(void **state) {
    struct history h = {0};
    (void)state;
    creates(&h, 1, 5, 0, 1);
    creates(&h, 2, 6, 2, 3)->outcome = HISTORY_EXISTS;
    add(&h, 2, HISTORY_DELETE, 4, 5);
    reads_nothing(&h, 1, 6, 7);
    add(&h, 1, HISTORY_DELETE, 8, 9)->outcome = HISTORY_NO_NODE;
    writes(&h, 1, 3, 8, 9)->outcome = HISTORY_NO_NODE;
    creates(&h, 2, 6, 10, 11)->version = 0;
    add(&h, 1, HISTORY_DELETE, 12, 13)->expected = 0;
    assert_verdicts(&h, HELD, HELD);

    creates(&h, 1, 5, 0, 1);
    creates(&h, 2, 6, 2, 3); /* both think that it is theirs */
    assert_verdicts(&h, VIOLATED, VIOLATED);

    creates(&h, 1, 5, 0, 1);
    struct history_operation *o = add(&h, 1, HISTORY_DELETE, 2, 3);
    o->expected = 1; /* it is 0 */
    assert_verdicts(&h, VIOLATED, VIOLATED);
    history_close(&h);
}

static void an_unknown_outcome_may_take_effect_late_or_never(void **state) {
    struct history h = {0};
    (void)state;
    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 11)->outcome = HISTORY_UNKNOWN;
    reads(&h, 2, 0, 20, 21);
    reads(&h, 2, 7, 30, 31); /* late */
    assert_verdicts(&h, HELD, HELD);

    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 11)->outcome = HISTORY_UNKNOWN;
    reads(&h, 2, 0, 20, 21); /* never */
    assert_verdicts(&h, HELD, HELD);

    begins_with(&h, 0);
    writes(&h, 1, 7, 10, 11)->outcome = HISTORY_UNKNOWN;
    reads(&h, 2, 7, 20, 21);
    reads(&h, 2, 0, 30, 31); /* once is once */
    assert_verdicts(&h, VIOLATED, VIOLATED);

    begins_with(&h, 0);
    reads(&h, 2, 7, 5, 9); /* but not before it started */
    writes(&h, 1, 7, 10, 11)->outcome = HISTORY_UNKNOWN;
    assert_verdicts(&h, VIOLATED, VIOLATED);

    creates(&h, 1, 5, 0, 1);
    writes(&h, 1, 6, 10, 11)->outcome = HISTORY_UNKNOWN; /* nobody saw it, but it counted */
    writes(&h, 2, 8, 20, 21)->version = 2;
    assert_verdicts(&h, HELD, HELD);

    creates(&h, 1, 5, 0, 1);
    writes(&h, 1, 6, 10, 11)->outcome = HISTORY_UNKNOWN;
    writes(&h, 2, 8, 20, 21)->version = 3; /* it cannot have counted twice */
    assert_verdicts(&h, VIOLATED, VIOLATED);
    history_close(&h);
}

/* With the write first, the others need both operations of unknown outcome; the other way round,
 * one of them is left for the read. */
static void used_up_operations_are_part_of_a_configuration(void **state) {
    struct history h = {0};
    (void)state;
    begins_with(&h, 0);
    add(&h, 4, HISTORY_DELETE, 1, 1)->outcome = HISTORY_UNKNOWN;
    creates(&h, 5, 50, 2, 2)->outcome = HISTORY_UNKNOWN;
    writes(&h, 1, 6, 10, 20);
    swaps(&h, 2, 0, 7, 11, 20);
    add(&h, 3, HISTORY_DELETE, 30, 31);
    reads(&h, 3, HISTORY_ANY, 40, 41);
    assert_verdicts(&h, HELD, HELD);

    /* Either of the first two makes version 1, but only the first can be what was read. */
    begins_with(&h, 0);
    swaps(&h, 1, 0, 5, 1, 1)->outcome = HISTORY_UNKNOWN;
    writes(&h, 2, 9, 2, 2)->outcome = HISTORY_UNKNOWN;
    swaps(&h, 3, 77, 5, 3, 3)->outcome = HISTORY_UNKNOWN; /* never */
    writes(&h, 4, 6, 10, 20)->version = 2;
    add(&h, 4, HISTORY_DELETE, 30, 31);
    creates(&h, 4, 8, 32, 33); /* version 0 comes back */
    struct history_operation *o = add(&h, 4, HISTORY_READ, 40, 41);
    o->value = 5, o->version = 1;
    assert_verdicts(&h, HELD, HELD);
    history_close(&h);
}

static struct history_operation *acquires(struct history *h, uint32_t client, int64_t start,
                                          int64_t end, int64_t token) {
    struct history_operation *o = add(h, client, HISTORY_ACQUIRE, start, end);
    o->token = token;
    return o;
}

static void locks_have_one_holder(void **state) {
    struct history h = {0};
    (void)state;
    acquires(&h, 1, 0, 9, 3);
    add(&h, 1, HISTORY_RELEASE, 20, 25);
    acquires(&h, 2, 5, 22, 4); /* while the other lets go */
    acquires(&h, 3, 23, 24, HISTORY_ANY)->outcome = HISTORY_REFUSED;
    add(&h, 3, HISTORY_RELEASE, 30, 31)->outcome = HISTORY_REFUSED;
    assert_verdicts(&h, HELD, HELD);

    acquires(&h, 1, 0, 9, HISTORY_ANY);
    acquires(&h, 2, 5, 19, HISTORY_ANY); /* two hold it */
    add(&h, 1, HISTORY_RELEASE, 20, 25);
    assert_verdicts(&h, VIOLATED, VIOLATED);

    acquires(&h, 1, 0, 9, 3);
    add(&h, 1, HISTORY_RELEASE, 10, 11);
    acquires(&h, 2, 12, 13, 3); /* the same token again */
    assert_verdicts(&h, VIOLATED, VIOLATED);

    acquires(&h, 1, 0, 9, 3);
    add(&h, 1, HISTORY_RELEASE, 10, 11);
    acquires(&h, 2, 12, 13, HISTORY_ANY); /* at least 4 */
    add(&h, 2, HISTORY_RELEASE, 14, 15);
    acquires(&h, 3, 16, 17, 4);
    assert_verdicts(&h, VIOLATED, VIOLATED);

    acquires(&h, 1, 0, 9, HISTORY_ANY);
    add(&h, 1, HISTORY_RELEASE, 10, 10)->outcome = HISTORY_UNKNOWN; /* its session ended */
    acquires(&h, 2, 12, 13, HISTORY_ANY);
    assert_verdicts(&h, HELD, HELD);

    acquires(&h, 1, 0, 9, HISTORY_ANY);
    add(&h, 3, HISTORY_RELEASE, 10, 10)->outcome = HISTORY_UNKNOWN; /* another's */
    acquires(&h, 2, 12, 13, HISTORY_ANY);
    assert_verdicts(&h, VIOLATED, VIOLATED);
    history_close(&h);
}

/* The read of Y is right only if the keys are apart. */
static void keys_are_apart(void **state) {
    struct history h = {0};
    (void)state;
    creates(&h, 1, 5, 0, 1);
    reads_nothing(&h, 1, 2, 3);
    h.operation[1].key = Y;
    acquires(&h, 1, 4, 5, HISTORY_ANY); /* the lock X is not the node X */
    assert_verdicts(&h, HELD, HELD);
    history_close(&h);
}

static void a_violation_is_explained(void **state) {
    static const char *const clients[] = {"-", "ann", "bob", "cid"}, *const keys[] = {"-", "/x"};
    struct history h = {.client_name = clients, .key_name = keys};
    struct history_result result;
    char text[HISTORY_TEXT_MAX];
    (void)state;
    creates(&h, 1, 5, 0, 1);
    writes(&h, 2, 9, 2, 3)->outcome = HISTORY_UNKNOWN; /* which does not help */
    writes(&h, 1, 6, 4, 5)->version = 1;
    reads(&h, 3, 5, 6, 15);
    reads(&h, 2, 5, 7, 9);
    reads(&h, 2, 5, 10, 11); /* never asked: the one before is stuck */
    history_judge(&h, &(struct history_rules){0}, &result);
    assert_int_equal(result.verdict.value, VIOLATED);
    assert_int_equal(result.verdict.at_us, 9);
    assert_int_equal(result.key, X);
    assert_string_equal(result.verdict.why, "bob reads 5 [7, 9], but the value is 6, version 1");
    assert_int_equal(result.ordered, 2);
    assert_int_equal(result.order[0], 0);
    assert_int_equal(result.order[1], 2);
    assert_int_equal(result.stuck_count, 2);
    assert_int_equal(result.stuck[0], 3);
    assert_int_equal(result.stuck[1], 4);
    assert_string_equal(history_describe(&h, 1, text), "bob writes 9: no answer [2, ...]");
    assert_string_equal(history_describe(&h, 2, text), "ann writes 6: version 1 [4, 5]");
    history_result_close(&result);
    history_close(&h);
}

/* An undecided key is reported, and another key may still be violated. */
static void too_much_work_is_said_to_be(void **state) {
    struct history h = {0};
    struct history_result result;
    (void)state;
    begins_with(&h, 0);
    for (int i = 0; i < 12; i++) writes(&h, (uint32_t)i, i, 10, 20);
    for (int i = 0; i < 12; i++) reads(&h, 30, i, 21, 22);
    struct history_rules rules = {.work_limit = 10000};
    history_judge(&h, &rules, &result);
    assert_int_equal(result.verdict.value, UNKNOWN);
    assert_int_equal(result.key, X);
    assert_true(result.work >= 10000 && result.work < 20000);
    assert_int_equal(result.ordered + result.stuck_count, 0);
    history_result_close(&result);

    reads(&h, 1, 5, 0, 1);
    h.operation[h.count - 1].key = Y;
    history_judge(&h, &rules, &result);
    assert_int_equal(result.verdict.value, VIOLATED);
    assert_int_equal(result.key, Y);
    history_result_close(&result);
    history_close(&h);
}

static void nonsense_is_refused(void **state) {
    struct history_operation o = history_begin(1, X, HISTORY_WRITE, 5);
    (void)state;
    assert_non_null(history_refuse(&o)); /* no value */
    o.value = 3;
    assert_null(history_refuse(&o));
    o.version = 4;
    assert_non_null(history_refuse(&o)); /* without an answer */
    o.outcome = HISTORY_OK;
    assert_null(history_refuse(&o));
    o.end = 4;
    assert_non_null(history_refuse(&o));
    o.end = 5, o.outcome = HISTORY_EXISTS;
    assert_non_null(history_refuse(&o));
    o.outcome = HISTORY_OK, o.value = -2;
    assert_non_null(history_refuse(&o));
    o.value = 3, o.action = HISTORY_CAS_VALUE;
    assert_non_null(history_refuse(&o)); /* no expected value */
}

/* ---- Small histories, every order ---- */

/* A second specification of the objects, independent of the judge's. */
struct copy {
    bool exists, held;
    int64_t value, version, token;
    uint32_t holder;
};

/* What it would answer: the outcome, with the version and the value that it would show. */
static enum history_outcome answer(struct copy *c, const struct history_operation *o) {
    bool sets =
        o->action == HISTORY_WRITE || o->action == HISTORY_CAS || o->action == HISTORY_CAS_VALUE;
    if (o->action == HISTORY_ACQUIRE) {
        if (c->held) return HISTORY_REFUSED;
        c->held = true, c->holder = o->client;
        c->token = o->token == HISTORY_ANY ? c->token + 1 : o->token;
        return HISTORY_OK;
    }
    if (o->action == HISTORY_RELEASE) {
        if (!c->held || c->holder != o->client) return HISTORY_REFUSED;
        c->held = false;
        return HISTORY_OK;
    }
    if (o->action == HISTORY_CREATE) {
        if (c->exists) return HISTORY_EXISTS;
        c->exists = true, c->value = o->value, c->version = 0;
        return HISTORY_OK;
    }
    if (!c->exists) return HISTORY_NO_NODE;
    if (o->action == HISTORY_CAS_VALUE && o->expected != c->value) return HISTORY_BAD_VERSION;
    if ((o->action == HISTORY_CAS || o->action == HISTORY_DELETE) && o->expected != HISTORY_ANY &&
        o->expected != c->version)
        return HISTORY_BAD_VERSION;
    if (o->action == HISTORY_DELETE) c->exists = false;
    if (sets) c->value = o->value, c->version++;
    return HISTORY_OK;
}

static bool is_right(const struct copy *before, const struct copy *after,
                     const struct history_operation *o, enum history_outcome outcome) {
    if (o->outcome == HISTORY_UNKNOWN) return outcome == HISTORY_OK;
    if (o->outcome != outcome) return false;
    if (outcome != HISTORY_OK) return true;
    if (o->action == HISTORY_ACQUIRE) return after->token > before->token;
    if (o->action == HISTORY_RELEASE || o->action == HISTORY_DELETE) return true;
    if (o->version != HISTORY_ANY && o->version != after->version) return false;
    return o->action != HISTORY_READ || o->value == HISTORY_ANY || o->value == after->value;
}

/* Whether operation i has to come before operation j. */
static bool comes_before(const struct history *h, size_t i, size_t j, bool sequential) {
    const struct history_operation *a = &h->operation[i], *b = &h->operation[j];
    bool known = a->outcome != HISTORY_UNKNOWN, both = known && b->outcome != HISTORY_UNKNOWN;
    if (sequential && both && a->client == b->client &&
        (a->start < b->start || (a->start == b->start && i < j)))
        return true;
    if (sequential && b->action == HISTORY_READ) return false;
    return known && a->end < b->start;
}

/* The order is right, and no stuck operation can follow it. */
static void assert_explained(const struct history *h, bool sequential) {
    struct copy copy = {.token = -1}, before;
    struct history_result result;
    unsigned used = 0;
    history_judge(h, &(struct history_rules){.sequential = sequential}, &result);
    for (size_t i = 0; i < result.ordered; i++) {
        const struct history_operation *o = &h->operation[result.order[i]];
        before = copy;
        assert_true(is_right(&before, &copy, o, answer(&copy, o)));
        for (size_t j = 0; j < h->count; j++)
            assert_false(used >> j & 1 && comes_before(h, result.order[i], j, sequential));
        used |= 1u << result.order[i];
    }
    for (size_t i = 0; i < result.stuck_count; i++) {
        const struct history_operation *o = &h->operation[result.stuck[i]];
        before = copy;
        struct copy after = copy;
        assert_false(used >> result.stuck[i] & 1);
        assert_false(is_right(&before, &after, o, answer(&after, o)));
    }
    history_result_close(&result);
}

static bool some_order(const struct history *h, bool sequential, unsigned used, struct copy copy) {
    bool all = true;
    for (size_t i = 0; i < h->count; i++)
        all &= used >> i & 1 || h->operation[i].outcome == HISTORY_UNKNOWN;
    if (all) return true;
    for (size_t j = 0; j < h->count; j++) {
        bool next = !(used >> j & 1);
        for (size_t i = 0; i < h->count && next; i++)
            next = used >> i & 1 || i == j || !comes_before(h, i, j, sequential);
        struct copy after = copy;
        if (next && is_right(&copy, &after, &h->operation[j], answer(&after, &h->operation[j])) &&
            some_order(h, sequential, used | 1u << j, after))
            return true;
    }
    return false;
}

static int64_t below(struct rng *rng, uint64_t bound) { return (int64_t)rng_below(rng, bound); }

/* An operation on X or its lock, as yet without an answer.  Few values, so that they repeat. */
static struct history_operation random_operation(struct rng *rng, unsigned clients, bool lock,
                                                 int64_t values) {
    static const enum history_action of_node[] = {
        HISTORY_READ, HISTORY_READ,      HISTORY_WRITE,  HISTORY_WRITE, HISTORY_CAS,
        HISTORY_CAS,  HISTORY_CAS_VALUE, HISTORY_CREATE, HISTORY_DELETE};
    enum history_action action =
        lock ? rng_below(rng, 2) ? HISTORY_ACQUIRE : HISTORY_RELEASE : of_node[rng_below(rng, 9)];
    struct history_operation o = history_begin((uint32_t)rng_below(rng, clients), X, action, 0);
    if (action != HISTORY_READ && action != HISTORY_DELETE && !lock) o.value = below(rng, values);
    if (action == HISTORY_CAS) o.expected = below(rng, 3);
    if (action == HISTORY_CAS_VALUE) o.expected = below(rng, values);
    if (action == HISTORY_DELETE) o.expected = below(rng, 3) - 1;
    return o;
}

/* The answer of the copy, complete or in part. */
static void take_answer(struct rng *rng, struct copy *copy, struct history_operation *o) {
    if (o->action == HISTORY_ACQUIRE && rng_below(rng, 2))
        o->token = copy->token + 1 + below(rng, 2);
    o->outcome = answer(copy, o);
    if (o->outcome != HISTORY_OK) {
        o->token = HISTORY_ANY;
        return;
    }
    if (o->action == HISTORY_READ && rng_below(rng, 4)) o->value = copy->value;
    bool versioned =
        o->action != HISTORY_DELETE && o->action != HISTORY_ACQUIRE && o->action != HISTORY_RELEASE;
    if (versioned && rng_below(rng, 2)) o->version = copy->version;
}

/* An error of the server: a wrong answer. */
static void spoil(struct rng *rng, struct history_operation *o) {
    static const enum history_outcome others[] = {HISTORY_OK, HISTORY_NO_NODE, HISTORY_EXISTS,
                                                  HISTORY_BAD_VERSION, HISTORY_REFUSED};
    struct history_operation before = *o;
    switch (rng_below(rng, 4)) {
    case 0: o->outcome = others[rng_below(rng, 5)]; break;
    case 1: o->version = below(rng, 3); break;
    case 2: o->value = below(rng, 3); break;
    default: o->token = below(rng, 4);
    }
    if (o->outcome == HISTORY_UNKNOWN || history_refuse(o)) *o = before;
}

/* The answers of one copy, one operation per moment, with starts and ends spread around it; now and
 * then a read is stale. */
static void small_history(struct rng *rng, struct history *h) {
    struct copy copy = {.token = -1}, older = copy;
    bool lock = rng_below(rng, 4) == 0;
    int64_t values = rng_below(rng, 2) ? 3 : 1000;
    size_t count = 2 + rng_below(rng, 6);
    uint64_t spread = 1 + rng_below(rng, 6);
    history_clear(h);
    for (size_t moment = 0; moment < count; moment++) {
        struct history_operation o = random_operation(rng, 3, lock, values);
        if (!lock && !moment) o.action = HISTORY_CREATE, o.value = 0;
        o.start = 2 * (int64_t)moment - below(rng, spread);
        o.end = 2 * (int64_t)moment + below(rng, spread);
        if (o.action == HISTORY_READ && rng_below(rng, 2)) {
            take_answer(rng, &older, &o);
        } else if (rng_below(rng, 5)) {
            take_answer(rng, &copy, &o);
        } else if (rng_below(rng, 2)) {
            answer(&copy, &o); /* it takes effect, but its client gets no answer */
        }
        if (rng_below(rng, 2)) older = copy;
        history_add(h, &o);
    }
    for (uint64_t slips = rng_below(rng, 5); slips; slips--)
        spoil(rng, &h->operation[rng_below(rng, count)]);
}

static void every_order_was_tried(void **state) {
    enum { HISTORIES = 50000 };
    struct history h = {0};
    struct rng rng;
    unsigned held[2][2] = {{0}}; /* linearizable, sequential */
    (void)state;
    rng_seed(&rng, 6);
    for (int i = 0; i < HISTORIES; i++) {
        small_history(&rng, &h);
        bool linearizable = some_order(&h, false, 0, (struct copy){.token = -1});
        bool sequential = some_order(&h, true, 0, (struct copy){.token = -1});
        assert_judged(&h, false, linearizable ? HELD : VIOLATED);
        assert_judged(&h, true, sequential ? HELD : VIOLATED);
        if (!linearizable) assert_explained(&h, false);
        if (!sequential) assert_explained(&h, true);
        held[linearizable][sequential]++;
    }
    history_close(&h);
}

/* ---- Large histories that are right ---- */

enum { CLIENTS = 10, KEYS = 10, STATES_MAX = 20000 };

struct world {
    struct copy copy[KEYS];
    struct copy past[KEYS][STATES_MAX]; /* what each node was */
    size_t states[KEYS], known[CLIENTS][KEYS];
    int64_t free_at[CLIENTS];
    bool stale;
};

/* A read of some state between the one that the client knows and the last. */
static void read_past(struct rng *rng, struct world *w, struct history_operation *o) {
    size_t *known = &w->known[o->client][o->key], newest = w->states[o->key];
    *known += rng_below(rng, newest - *known + 1);
    struct copy then = w->past[o->key][*known];
    take_answer(rng, &then, o);
}

static void large_operation(struct rng *rng, struct world *w, struct history *h, int64_t moment) {
    struct history_operation o = random_operation(rng, CLIENTS, rng_below(rng, 8) == 0, 1 << 20);
    o.key = (uint32_t)rng_below(rng, KEYS);
    if (w->free_at[o.client] >= moment) return; /* it is busy */
    struct copy *copy = &w->copy[o.key];
    if (o.action == HISTORY_CAS && rng_below(rng, 4)) o.expected = copy->version;
    o.start = moment - below(rng, 30);
    if (o.start <= w->free_at[o.client]) o.start = w->free_at[o.client] + 1;
    o.end = moment + below(rng, 30);
    w->free_at[o.client] = o.end;
    uint64_t luck = rng_below(rng, 20);
    if (w->stale && o.action == HISTORY_READ) {
        read_past(rng, w, &o);
    } else if (luck > 1) {
        take_answer(rng, copy, &o);
        w->past[o.key][++w->states[o.key]] = *copy;
        w->known[o.client][o.key] = w->states[o.key];
    } else if (luck) {
        answer(copy, &o);
        w->past[o.key][++w->states[o.key]] = *copy;
    }
    history_add(h, &o);
}

static void large_history(struct rng *rng, struct history *h, size_t count, bool stale) {
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->stale = stale;
    history_clear(h);
    for (size_t k = 0; k < KEYS; k++) w->copy[k].token = w->past[k][0].token = -1;
    for (int64_t moment = 0; h->count < count; moment += 3) large_operation(rng, w, h, moment);
    free(w);
}

static void histories_of_one_copy_hold(void **state) {
    struct history h = {0};
    struct rng rng;
    (void)state;
    rng_seed(&rng, 1);
    for (int i = 0; i < 200; i++) {
        large_history(&rng, &h, 400, false);
        assert_verdicts(&h, HELD, HELD);
        large_history(&rng, &h, 400, true);
        assert_judged(&h, true, HELD);
    }
    large_history(&rng, &h, 1000, true);
    assert_verdicts(&h, VIOLATED, HELD); /* some read was old */
    history_close(&h);
}

static uint64_t work_of(const struct history *h, enum verdict_value value) {
    struct history_result result;
    history_judge(h, &(struct history_rules){0}, &result);
    assert_string_equal(verdict_word(result.verdict.value), verdict_word(value));
    uint64_t work = result.work;
    history_result_close(&result);
    return work;
}

static void large_ones_are_little_work(void **state) {
    struct history h = {0};
    struct rng rng;
    (void)state;
    rng_seed(&rng, 2);
    large_history(&rng, &h, 10000, false);
    assert_true(work_of(&h, HELD) < 200 * h.count);
    struct history_operation o = history_begin(CLIENTS, 4, HISTORY_READ, 20000);
    o.end = 20001, o.outcome = HISTORY_OK, o.value = 1 << 21; /* what nobody wrote */
    history_add(&h, &o);
    assert_true(work_of(&h, VIOLATED) < 200 * h.count);
    history_close(&h);
}

/* Writes without an answer are interchangeable, so it does not matter which took effect. */
static void many_unknown_ones_are_little_work(void **state) {
    struct history h = {0};
    (void)state;
    creates(&h, 0, 0, 0, 1);
    for (int i = 0; i < 200; i++) {
        writes(&h, 1, i, 10 + i, 10 + i)->outcome = HISTORY_UNKNOWN;
        writes(&h, 2, 1000 + i, 10 + i, 11 + i);
    }
    writes(&h, 3, 5000, 1000, 1001)->version = 300;
    assert_true(work_of(&h, HELD) < 1000000);
    writes(&h, 3, 5001, 2000, 2001)->version = 300; /* once more */
    assert_true(work_of(&h, VIOLATED) < 2000000);

    history_clear(&h);
    creates(&h, 0, 0, 0, 1);
    for (int i = 0; i < 200; i++) {
        writes(&h, 1, i, 10 + i, 10 + i)->outcome = HISTORY_UNKNOWN;
        writes(&h, 2, 1000 + i, 10 + i, 11 + i);
        reads(&h, 3, 1000 + i, 12 + i, 13 + i);
    }
    reads(&h, 3, 5000, 2000, 2001); /* what nobody wrote; and nobody counted */
    assert_true(work_of(&h, VIOLATED) < 200000);
    history_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_holds),
        cmocka_unit_test(reads_and_writes),
        cmocka_unit_test(writes_have_one_order),
        cmocka_unit_test(versions_tell_lost_updates),
        cmocka_unit_test(values_are_compared),
        cmocka_unit_test(nodes_come_and_go),
        cmocka_unit_test(an_unknown_outcome_may_take_effect_late_or_never),
        cmocka_unit_test(used_up_operations_are_part_of_a_configuration),
        cmocka_unit_test(locks_have_one_holder),
        cmocka_unit_test(keys_are_apart),
        cmocka_unit_test(a_violation_is_explained),
        cmocka_unit_test(too_much_work_is_said_to_be),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(every_order_was_tried),
        cmocka_unit_test(histories_of_one_copy_hold),
        cmocka_unit_test(large_ones_are_little_work),
        cmocka_unit_test(many_unknown_ones_are_little_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
