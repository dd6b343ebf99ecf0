/* Parallel breadth-first search, level by level, so that the first path to a state is a shortest.
 *
 * States are numbered as they are found, so the states of a level are consecutive and the frontier
 * needs no memory of its own.  Threads take chunks of the level.  They meet at a barrier when a set
 * has to grow and when the level is done; the last to arrive decides what is next. */
#include "base/grow.h"
#include "lab/check/search.h"

enum { CHUNK = 64, BLOCK = 64 };

struct level {
    _Atomic uint64_t next; /* the first state that no thread has taken */
    uint64_t end;
    uint64_t depth;
};

struct breadth {
    struct search *search;
    struct level level;
    pthread_mutex_t lock;
    pthread_cond_t passed;
    unsigned threads, waiting;
    uint64_t barriers;  /* passed so far */
    bool unfinished;    /* a thread arrived with states left */
    uint64_t pairs_max; /* with more pairs than these the memory limit is passed */
    bool last; /* the depth limit: states of this level are judged, but not their successors */
    bool over;
    atomic_bool stop; /* a violation ends the search */
};

struct crew_member { /* one of the threads, on cache lines of its own */
    _Alignas(64) struct breadth *breadth;
    struct worker worker;
    pthread_t thread;
    unsigned index;
    uint64_t next, end; /* its chunk */
    uint64_t states, transitions;
    bool timers_left;
    bool more; /* there are steps that were not taken */
};

static uint64_t pair_count(const struct explorer *e) {
    return (uint64_t)atomic_load_explicit(&e->states.count, memory_order_relaxed) +
           atomic_load_explicit(&e->inner.count, memory_order_relaxed) +
           atomic_load_explicit(&e->system.memo.count, memory_order_relaxed);
}

/* Whether the threads have to meet before another state is expanded. */
static bool must_meet(const struct breadth *b) {
    const struct explorer *e = &b->search->explorer;
    return explorer_crowded(e) || pair_count(e) > b->pairs_max;
}

/* ---- The barrier ---- */

static void note_level(struct search *s, uint64_t states) {
    if (!s->probe_limit || !states) return;
    s->level = grown(s->level, &s->level_room, s->levels + 1, sizeof *s->level);
    s->level[s->levels++] = states;
}

static void prepare_next_phase(struct breadth *b) {
    struct search *s = b->search;
    struct explorer *e = &s->explorer;
    uint64_t bytes = explorer_bytes(e);
    if (bytes > s->result->memory) s->result->memory = bytes;
    if (atomic_load(&b->stop)) b->over = true;
    bool done = !b->unfinished && atomic_load(&b->level.next) >= b->level.end;
    if (done && !b->over) {
        b->level.next = b->level.end;
        b->level.end = atomic_load(&e->states.count) + 1;
        note_level(s, b->level.end - b->level.next);
        if (s->probe_limit && b->level.end > s->probe_limit) b->over = s->probed = true;
        if (b->level.next == b->level.end)
            b->over = true;
        else
            b->level.depth++;
        b->last = s->options->depth && b->level.depth >= s->options->depth;
    }
    if (!b->over && bytes + explorer_growth(e) > s->options->memory) {
        b->over = true;
        s->result->end = CHECK_MEMORY;
    }
    if (!b->over)
        b->pairs_max =
            pair_count(e) + (s->options->memory - bytes - explorer_growth(e)) / PAIR_BYTES;
    b->unfinished = false;
    memset(e->growing, 0, sizeof e->growing);
    if (!b->over) explorer_grow(e);
}

static void wait_for_others(struct breadth *b, void (*last)(struct breadth *)) {
    pthread_mutex_lock(&b->lock);
    uint64_t barrier = b->barriers;
    if (++b->waiting == b->threads) {
        if (last) last(b);
        b->waiting = 0;
        b->barriers++;
        pthread_cond_broadcast(&b->passed);
    } else {
        while (barrier == b->barriers) pthread_cond_wait(&b->passed, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

static void pass_barrier(struct crew_member *c) {
    struct breadth *b = c->breadth;
    pairs_drop_block(&b->search->explorer.states, &c->worker.states);
    if (c->next < c->end) {
        pthread_mutex_lock(&b->lock);
        b->unfinished = true;
        pthread_mutex_unlock(&b->lock);
    }
    wait_for_others(b, prepare_next_phase);
    explorer_put_back(&b->search->explorer, c->index, b->threads);
    wait_for_others(b, NULL);
}

/* ---- Exploring ---- */

static void report(struct crew_member *c) {
    struct breadth *b = c->breadth;
    uint64_t next = atomic_load_explicit(&b->level.next, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&b->search->explorer.states.count, memory_order_relaxed);
    search_report(b->search, count, c->transitions * b->threads, count > next ? count - next : 0,
                  b->level.depth);
}

static void visit(struct crew_member *c, uint32_t number) {
    struct breadth *b = c->breadth;
    struct search *s = b->search;
    struct worker *w = &c->worker;
    uint64_t pair = s->explorer.states.pair[number];
    if (!pair) return; /* the number was not used */
    worker_unfold(w, pair);
    worker_expand(w);
    c->timers_left |= w->timers_left;
    if (w->broken && search_broken(s, number, w->broken, true)) atomic_store(&b->stop, true);
    if (b->last) {
        c->more |= w->step_count > 0;
        return;
    }
    c->transitions += w->step_count;
    for (size_t i = 0; i < w->step_count; i++) {
        bool is_new;
        const struct step *step = &w->steps[i];
        uint32_t next = pairs_put(&s->explorer.states, &w->states, step->pair, step->hash, &is_new);
        c->states += is_new;
        if (is_new)
            atomic_store_explicit(&s->explorer.states.note[next], number, memory_order_relaxed);
        else if (next <= number && !atomic_load_explicit(&s->cyclic, memory_order_relaxed))
            atomic_store_explicit(&s->cyclic, true, memory_order_relaxed);
        if (step->broken && search_broken(s, number, step->broken, false))
            atomic_store(&b->stop, true);
    }
}

static bool take_chunk(struct crew_member *c) {
    struct level *level = &c->breadth->level;
    uint64_t first = atomic_fetch_add_explicit(&level->next, CHUNK, memory_order_relaxed);
    if (first >= level->end) return false;
    c->next = first;
    c->end = first + CHUNK < level->end ? first + CHUNK : level->end;
    return true;
}

static void *work(void *context) {
    struct crew_member *c = context;
    struct breadth *b = c->breadth;
    while (!b->over) {
        bool stop = atomic_load_explicit(&b->stop, memory_order_relaxed);
        if (stop) c->next = c->end;
        if (stop || must_meet(b) || (c->next == c->end && !take_chunk(c))) {
            pass_barrier(c);
            continue;
        }
        for (; c->next < c->end && !must_meet(b); c->next++) visit(c, (uint32_t)c->next);
        if (c->index == 0) report(c);
    }
    return NULL;
}

void search_breadth(struct search *s, unsigned threads) {
    struct breadth b = {.search = s, .threads = threads};
    struct crew_member *crew = aligned_alloc(_Alignof(struct crew_member), threads * sizeof *crew);
    uint32_t leaves[LEAVES_MAX];
    bool is_new;
    cv_assert(crew);
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.passed, NULL);
    for (unsigned i = 0; i < threads; i++) {
        crew[i] = (struct crew_member){.breadth = &b, .index = i};
        worker_open(&crew[i].worker, &s->explorer, threads > 1 ? BLOCK : 1);
    }
    explorer_start(&crew[0].worker, true, leaves);
    worker_place(&crew[0].worker, leaves);
    uint64_t start = worker_fold(&crew[0].worker, leaves);
    pairs_put(&s->explorer.states, &crew[0].worker.states, start, pair_hash(start), &is_new);
    pairs_drop_block(&s->explorer.states, &crew[0].worker.states);
    crew[0].states = 1;
    b.level.next = 1;
    b.level.end = atomic_load(&s->explorer.states.count) + 1;
    b.pairs_max = s->options->memory / PAIR_BYTES;
    note_level(s, 1);
    for (unsigned i = 1; i < threads; i++)
        cv_assert(pthread_create(&crew[i].thread, NULL, work, &crew[i]) == 0);
    work(&crew[0]);
    for (unsigned i = 1; i < threads; i++) pthread_join(crew[i].thread, NULL);
    for (unsigned i = 0; i < threads; i++) {
        s->result->states += crew[i].states;
        s->result->transitions += crew[i].transitions;
        s->result->timers_left |= crew[i].timers_left;
        if (crew[i].more && s->result->end == CHECK_COMPLETE) s->result->end = CHECK_DEPTH;
        worker_close(&crew[i].worker);
    }
    s->result->depth = b.level.depth;
    free(crew);
    pthread_mutex_destroy(&b.lock);
    pthread_cond_destroy(&b.passed);
}
