/* The encoding of a state as one word: packed while its parts have small numbers, else folded; or
 * hashed, when it need not be decoded.
 *
 * Packed, the numbers of its nodes and of its budgets are fields of 64 bits, which suffices for
 * small systems and needs no lookup.  Folded, they are paired, then the pairs, until one pair is
 * left (tree compression, see pairs.h).  When numbers outgrow their fields all states are encoded
 * again. */
#include "lab/check/explore.h"

enum { BITS_MIN = 12, BITS_OF_BUDGETS = 8 };

static uint32_t inner(struct worker *worker, uint32_t a, uint32_t b) {
    bool is_new;
    uint64_t pair = pair_of(a, b);
    return pairs_put(&worker->explorer->inner, &worker->inner, pair, pair_hash(pair), &is_new);
}

/* ---- Packed ---- */

/* Budgets have many bits, but few different values occur, so they are numbered. */
static uint32_t budgets_number(struct worker *worker, uint32_t budgets) {
    bool is_new;
    uint64_t pair = pair_of(1, budgets);
    return pairs_put(&worker->explorer->budgets, &worker->budgets, pair, pair_hash(pair), &is_new);
}

static uint64_t pack(struct worker *worker, const uint32_t *leaves) {
    const struct explorer *e = worker->explorer;
    uint32_t n = e->model->processes;
    if (leaves[n] != worker->packed_budgets || !worker->packed_number) {
        worker->packed_budgets = leaves[n];
        worker->packed_number = budgets_number(worker, leaves[n]);
    }
    uint64_t word = worker->packed_number;
    for (uint32_t p = 0; p < n; p++) word = word << e->bits[p] | node_index(leaves[p]);
    return word;
}

static void unpack(const struct explorer *e, uint64_t word, uint32_t *leaves) {
    uint32_t n = e->model->processes;
    for (uint32_t p = n; p-- > 0; word >>= e->bits[p])
        leaves[p] =
            (p + 1) << NODE_INDEX_BITS | (uint32_t)(word & (((uint64_t)1 << e->bits[p]) - 1));
    leaves[n] = (uint32_t)e->budgets.pair[word];
}

/* ---- Folded ---- */

/* A pair that equals the one of the expanded state at the same position needs no lookup. */
static uint64_t fold(struct worker *worker, const uint32_t *leaves) {
    const struct explorer *e = worker->explorer;
    struct fold *there = &worker->there;
    const struct fold *here = &worker->here;
    memcpy(there->at[0], leaves, (size_t)e->width[0] * sizeof *leaves);
    for (int level = 0; level + 1 < e->levels; level++) {
        const uint32_t *old = here->at[level], *new = there->at[level];
        uint32_t *up = there->at[level + 1];
        for (int i = 0; 2 * i < e->width[level]; i++) {
            if (2 * i + 1 == e->width[level])
                up[i] = new[2 * i];
            else if (new[2 * i] == old[2 * i] && new[2 * i + 1] == old[2 * i + 1])
                up[i] = here->at[level + 1][i];
            else
                up[i] = inner(worker, new[2 * i], new[2 * i + 1]);
        }
    }
    const uint32_t *top = there->at[e->levels - 1];
    return pair_of(top[0], top[1]);
}

static void unfold(struct worker *worker, uint64_t pair) {
    const struct explorer *e = worker->explorer;
    struct fold *here = &worker->here;
    uint32_t *top = here->at[e->levels - 1];
    top[0] = (uint32_t)(pair >> 32), top[1] = (uint32_t)pair;
    for (int level = e->levels - 2; level >= 0; level--) {
        const uint32_t *up = here->at[level + 1];
        uint32_t *down = here->at[level];
        for (int i = 0; 2 * i < e->width[level]; i++) {
            uint64_t parts =
                2 * i + 1 == e->width[level] ? pair_of(up[i], 0) : e->inner.pair[up[i]];
            down[2 * i] = (uint32_t)(parts >> 32);
            if (2 * i + 1 < e->width[level]) down[2 * i + 1] = (uint32_t)parts;
        }
    }
}

/* ---- Either way ---- */

static uint64_t hash(struct worker *worker, const uint32_t *leaves) {
    uint64_t word = 0;
    uint32_t n = worker->explorer->model->processes;
    memcpy(worker->there.at[0], leaves, (n + 1) * sizeof *leaves);
    for (uint32_t i = 0; i <= n; i++) word = rng_mix(word ^ (leaves[i] + (uint64_t)i));
    return word;
}

uint64_t worker_fold(struct worker *worker, const uint32_t *leaves) {
    const struct explorer *e = worker->explorer;
    return e->hashed   ? hash(worker, leaves)
           : e->packed ? pack(worker, leaves)
                       : fold(worker, leaves);
}

void worker_place(struct worker *worker, const uint32_t *leaves) {
    uint32_t n = worker->explorer->model->processes;
    memset(&worker->here, 0, sizeof worker->here);
    if (worker->explorer->packed || worker->explorer->hashed)
        memcpy(worker->here.at[0], leaves, (n + 1) * sizeof *leaves);
    else
        worker_unfold(worker, worker_fold(worker, leaves));
}

void worker_unfold(struct worker *worker, uint64_t pair) {
    if (worker->explorer->packed)
        unpack(worker->explorer, pair, worker->here.at[0]);
    else
        unfold(worker, pair);
}

/* ---- Encoding all states again ---- */

static uint32_t bits_for(uint32_t count) {
    uint32_t bits = BITS_MIN;
    while (bits < NODE_INDEX_BITS && 1u << bits < 4 * (uint64_t)count) bits++;
    return bits;
}

/* Chooses fields so wide that no number outgrows them while one state is expanded; none when 64
 * bits do not suffice. */
void explorer_choose_bits(struct explorer *e) {
    uint32_t all = BITS_OF_BUDGETS;
    while (1u << all < 4 * atomic_load(&e->budgets.count)) all++;
    for (uint32_t p = 0; p < e->model->processes; p++) {
        e->bits[p] = bits_for(e->system.nodes[p + 1].count);
        all += e->bits[p];
        e->system.many[p + 1] = 1u << (e->bits[p] - 1);
    }
    e->packed = all <= 64 && !e->hashed;
    for (uint32_t p = 1; p <= e->model->processes && !e->packed; p++)
        e->system.many[p] = UINT32_MAX;
    atomic_store(&e->system.crowded, false);
}

void explorer_write_anew(struct explorer *e) {
    struct explorer before = *e;
    struct worker worker;
    uint32_t leaves[LEAVES_MAX], count = atomic_load(&e->states.count);
    worker_open(&worker, e, 1);
    explorer_choose_bits(e);
    for (uint32_t i = 1; i <= count; i++) {
        if (!e->states.pair[i]) continue;
        unpack(&before, e->states.pair[i], leaves);
        if (pairs_crowded(&e->inner)) {
            pairs_make_room(&e->inner, true);
            pairs_put_back(&e->inner, 0, 1);
        }
        e->states.pair[i] = worker_fold(&worker, leaves);
    }
    worker_close(&worker);
}
