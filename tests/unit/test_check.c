/* The parts of the model checker: its sets, its pools, its symmetry reduction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "lab/check/search.h"

/* ---- Pairs ---- */

static uint32_t put(struct pairs *pairs, struct pairs_block *block, uint64_t pair, bool *is_new) {
    return pairs_put(pairs, block, pair, pair_hash(pair), is_new);
}

static void make_room(struct pairs *pairs) {
    if (!pairs_crowded(pairs)) return;
    pairs_make_room(pairs, true);
    pairs_put_back(pairs, 0, 1);
}

static void pairs_are_numbered_once(void **state) {
    enum { COUNT = 200000 };
    struct pairs pairs;
    struct pairs_block block = {.size = 1};
    bool is_new;
    (void)state;
    assert_int_equal(pairs_open(&pairs), 0);
    for (uint32_t i = 1; i <= COUNT; i++) {
        make_room(&pairs);
        assert_int_equal(put(&pairs, &block, pair_of(i * 7919, i), &is_new), i);
        assert_true(is_new);
    }
    for (uint32_t i = 1; i <= COUNT; i++) {
        assert_int_equal(put(&pairs, &block, pair_of(i * 7919, i), &is_new), i);
        assert_false(is_new);
    }
    assert_int_equal(pairs.count, COUNT);
    pairs_close(&pairs);
}

enum { SHARED = 9000, THREADS = 4 };
struct adder {
    struct pairs *pairs;
    pthread_t thread;
    uint32_t first, new;
    uint32_t number[SHARED];
};

static void *add_all(void *context) {
    struct adder *adder = context;
    struct pairs_block block = {.size = 16};
    for (uint32_t i = 0; i < SHARED; i++) {
        uint32_t value = (i + adder->first) % SHARED;
        bool is_new;
        adder->number[value] = put(adder->pairs, &block, pair_of(1 + value, 3), &is_new);
        adder->new += is_new;
    }
    pairs_drop_block(adder->pairs, &block);
    return NULL;
}

static void threads_agree_on_the_numbers(void **state) {
    static struct adder adder[THREADS];
    struct pairs pairs;
    uint32_t new = 0;
    (void)state;
    assert_int_equal(pairs_open(&pairs), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        adder[i] = (struct adder){.pairs = &pairs, .first = i * SHARED / THREADS / 2};
        pthread_create(&adder[i].thread, NULL, add_all, &adder[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(adder[i].thread, NULL);
        new += adder[i].new;
    }
    assert_int_equal(new, SHARED);
    for (unsigned i = 1; i < THREADS; i++)
        assert_memory_equal(adder[i].number, adder[0].number, sizeof adder[0].number);
    for (uint32_t i = 0; i < SHARED; i++)
        assert_true(pairs.pair[adder[0].number[i]] == pair_of(1 + i, 3));
    pairs_close(&pairs);
}

/* ---- Pools ---- */

static void strings_come_back_as_they_were(void **state) {
    enum { COUNT = 5000, LENGTH = 61 };
    struct pool pool;
    unsigned char bytes[LENGTH], back[LENGTH + 8];
    struct rng rng;
    (void)state;
    assert_int_equal(pool_open(&pool), 0);
    for (int pass = 0; pass < 2; pass++) {
        rng_seed(&rng, 1);
        for (uint32_t i = 1; i <= COUNT; i++) {
            uint32_t size = 4 + (uint32_t)rng_below(&rng, LENGTH - 3);
            for (uint32_t k = 0; k < size; k++)
                bytes[k] = rng_below(&rng, 3) ? 0 : (unsigned char)rng_next(&rng);
            memcpy(bytes, &i, sizeof i); /* so that no two are equal */
            assert_int_equal(pool_put(&pool, bytes, size), i);
            assert_int_equal(pool_get(&pool, i, back), size);
            assert_memory_equal(back, bytes, size);
        }
    }
    assert_int_equal(pool.count, COUNT);
    pool_close(&pool);
}

static void length_is_part_of_a_string(void **state) {
    struct pool pool;
    unsigned char zeros[32] = {0};
    (void)state;
    assert_int_equal(pool_open(&pool), 0);
    for (uint32_t size = 1; size <= 32; size++)
        assert_int_equal(pool_put(&pool, zeros, size), size);
    pool_close(&pool);
}

/* ---- Symmetry ---- */

struct system_of { /* everything that a model points to */
    uint64_t option[CV_OPTIONS_MAX];
    uint64_t ids[CHECK_PROCESSES_MAX + 1], weights[CHECK_PROCESSES_MAX + 1];
    cv_pid next[CHECK_PROCESSES_MAX + 1];
    struct cv_env env[CHECK_PROCESSES_MAX + 1];
    struct check_model model;
};

static void make_model(struct system_of *s, const char *name, uint32_t processes, uint8_t crashes) {
    const struct cv_algorithm *code = catalogue_find(name);
    *s = (struct system_of){0};
    for (unsigned i = 0; i < code->option_count; i++) s->option[i] = code->options[i].default_value;
    uint32_t servers = code->servers ? code->servers(s->option) : 0, n = servers + processes;
    s->model = (struct check_model){.algorithm = code,
                                    .processes = n,
                                    .servers = servers,
                                    .env = s->env,
                                    .entries = 1,
                                    .crashes = crashes,
                                    .timeouts = 2,
                                    .initiators = (uint8_t)n};
    for (cv_pid p = 1; p <= n; p++) {
        s->ids[p] = p, s->weights[p] = 1, s->next[p] = p % n + 1;
        s->env[p] = (struct cv_env){.self = p,
                                    .processes = n,
                                    .servers = servers,
                                    .option = s->option,
                                    .id = p,
                                    .weight = 1,
                                    .ids = s->ids,
                                    .weights = s->weights,
                                    .degree = 1,
                                    .neighbours = &s->next[p]};
    }
}

static int compare_words(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The size of the orbit of a state. */
static size_t orbit(struct worker *w, uint64_t pair) {
    struct system *system = &w->explorer->system;
    const struct renamings *r = &system->renamings;
    uint32_t n = w->explorer->model->processes, leaves[LEAVES_MAX];
    uint64_t *words = calloc(r->count, sizeof *words);
    size_t different = 0;
    worker_unfold(w, pair);
    for (uint32_t i = 0; i < r->count; i++) {
        for (uint32_t p = 0; p < n; p++)
            leaves[r->of[i][p + 1] - 1] =
                system_change(system, &w->memo, w->here.at[0][p], RENAMED | i, node_rename);
        uint32_t latest = latest_of(w->here.at[0][n]);
        leaves[n] = w->here.at[0][n];
        if (w->explorer->model->algorithm->problem == CV_ELECTION)
            leaves[n] = (leaves[n] & ~(31u << LATEST_SHIFT)) | r->of[i][latest] << LATEST_SHIFT;
        for (uint32_t p = 0; p <= n; p++) words[i] = rng_mix(words[i] ^ leaves[p]) + p;
    }
    qsort(words, r->count, sizeof *words, compare_words);
    for (uint32_t i = 0; i < r->count; i++) different += i == 0 || words[i] != words[i - 1];
    free(words);
    return different;
}

static uint64_t explored(struct search *search, const struct check_search *options,
                         struct check_result *result, const struct check_model *model) {
    *search = (struct search){.options = options, .result = result};
    *result = (struct check_result){0};
    assert_int_equal(explorer_open(&search->explorer, model, options), 0);
    pthread_mutex_init(&search->lock, NULL);
    search_breadth(search, 1);
    return result->states;
}

/* An algorithm that claims to be symmetric is: the orbits of the states that were kept contain all
 * states, and no others. */
static void symmetry_leaves_out_what_it_may(void **state) {
    static const struct {
        const char *name;
        uint32_t processes;
        uint8_t crashes;
    } cases[] = {{"central", 3, 0},         {"central", 2, 1},         {"central-lease", 3, 0},
                 {"quorum", 2, 0},          {"quorum", 2, 1},          {"voting", 2, 0},
                 {"tree-lock", 3, 0},       {"tree-lock", 2, 1},       {"tree-lock-naive", 3, 0},
                 {"tree-lock-queue", 3, 0}, {"tree-lock-queue", 2, 1}, {"ring-anonymous", 3, 0},
                 {"ring-anonymous", 4, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct system_of system;
        struct check_search plain = {.memory = UINT64_MAX, .keep_going = true}, reduced = plain;
        struct check_result result;
        struct search search;
        struct worker worker;
        make_model(&system, cases[i].name, cases[i].processes, cases[i].crashes);
        uint64_t all = explored(&search, &plain, &result, &system.model), counted = 0;
        explorer_close(&search.explorer);
        reduced.symmetry = true;
        uint64_t kept = explored(&search, &reduced, &result, &system.model);
        worker_open(&worker, &search.explorer, 1);
        for (uint32_t s = 1; s <= search.explorer.states.count; s++) {
            explorer_make_room(&search.explorer);
            if (search.explorer.states.pair[s])
                counted += orbit(&worker, search.explorer.states.pair[s]);
        }
        if (counted != all) print_error("%s\n", cases[i].name);
        assert_int_equal(counted, all);
        assert_true(kept < all);
        worker_close(&worker);
        explorer_close(&search.explorer);
    }
}

/* Every algorithm that claims to be symmetric is tested above. */
static void symmetric_algorithms_are_known(void **state) {
    static const char *const known[] = {"central",   "central-lease",   "quorum",         "voting",
                                        "tree-lock", "tree-lock-naive", "tree-lock-queue"};
    unsigned found = 0;
    (void)state;
    for (size_t i = 0; i < catalogue_count; i++)
        found += (catalogue[i]->traits & CV_SYMMETRIC) != 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(catalogue_find(known[i])->traits & CV_SYMMETRIC);
    assert_int_equal(found, sizeof known / sizeof known[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_numbered_once),
        cmocka_unit_test(threads_agree_on_the_numbers),
        cmocka_unit_test(strings_come_back_as_they_were),
        cmocka_unit_test(length_is_part_of_a_string),
        cmocka_unit_test(symmetry_leaves_out_what_it_may),
        cmocka_unit_test(symmetric_algorithms_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
