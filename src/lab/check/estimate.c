/* A low estimate of the number of states, before they are explored.
 *
 * The first levels are explored, and some random walks to the end measure the depth.  Levels grow
 * ever more slowly up to about 0.7 of the depth and shrink after it.  Extrapolated like this they
 * come to between a fifth and all of the states of the locks that were measured, so the estimate is
 * "at least". */
#include <math.h>
#include <stdlib.h>

#include "lab/check/search.h"

enum { WALKS = 50, DEPTH_MAX = 2000, PROBE_STATES = 60000 };
#define PEAK         0.7
#define ESTIMATE_MAX 1e15 /* larger estimates mean nothing */

static size_t random_walk(struct worker *w, struct rng *rng) {
    struct explorer *e = w->explorer;
    uint32_t leaves[LEAVES_MAX];
    size_t depth = 0;
    explorer_start(w, false, leaves);
    for (;; depth++) {
        explorer_make_room(e);
        worker_place(w, leaves);
        worker_expand(w);
        if (!w->step_count || depth == DEPTH_MAX) return depth;
        struct step step = w->steps[rng_below(rng, w->step_count)];
        worker_follow(w, &step, leaves);
    }
}

/* The length of the longest of some random walks; DEPTH_MAX: they may be infinite. */
static size_t walked_depth(const struct check_model *model, const struct check_search *options) {
    struct check_search hashed = *options;
    struct explorer explorer;
    struct worker worker;
    struct rng rng;
    size_t deepest = 0;
    hashed.compact = true;
    if (explorer_open(&explorer, model, &hashed) != 0) return 0;
    worker_open(&worker, &explorer, 1);
    rng_seed(&rng, 1);
    for (int i = 0; i < WALKS && deepest < DEPTH_MAX; i++) {
        size_t depth = random_walk(&worker, &rng);
        if (depth > deepest) deepest = depth;
    }
    worker_close(&worker);
    explorer_close(&explorer);
    return deepest;
}

static double carry_on(const uint64_t *level, size_t count, size_t depth) {
    double slope = 0, states = 0;
    size_t last = count - 1, back = last < 3 ? last : 3;
    if (back) slope = log((double)level[last] / (double)level[last - back]) / (double)back;
    for (size_t i = 0; i < count; i++) states += (double)level[i];
    double size = log((double)level[last]), peak = PEAK * (double)depth;
    if (peak <= (double)last) peak = (double)last + 1;
    for (size_t d = last + 1; d <= depth && size >= 0 && states < ESTIMATE_MAX; d++) {
        size += slope * (peak - (double)d) / (peak - (double)last + 1);
        states += exp(size);
    }
    return states;
}

double check_estimate(const struct check_model *model, const struct check_search *options) {
    struct check_search probe = *options;
    struct check_result result = {0};
    struct search search = {.options = &probe, .result = &result, .probe_limit = PROBE_STATES};
    probe.progress = NULL;
    probe.keep_going = true;
    probe.compact = false;
    if (explorer_open(&search.explorer, model, &probe) != 0) return 0;
    pthread_mutex_init(&search.lock, NULL);
    search_breadth(&search, 1);
    double states = (double)result.states;
    if (search.probed) {
        size_t depth = walked_depth(model, options);
        if (options->depth && options->depth < depth) depth = options->depth;
        states = carry_on(search.level, search.levels, depth);
    }
    free(search.level);
    explorer_close(&search.explorer);
    pthread_mutex_destroy(&search.lock);
    return states;
}
