/* Bounded wait: how often others can enter while one process waits.
 *
 * A request that is still on its way holds nobody up, and messages may take any time, so entries of
 * others count from when the request has arrived: while no message of a kind that requests are made
 * by is under way from the process that waits.
 *
 * Every entry uses up one that the model allows, so no cycle contains one, and the longest paths by
 * entries are found by going over the states until nothing changes. */
#include <stdlib.h>

#include "lab/check/component.h"
#include "lab/check/path.h"
#include "lab/judge/mutex.h"

struct waits {
    struct components components;
    uint32_t n, count;
    uint32_t asking; /* bit per kind of message that a request is made by */
    uint16_t *most;  /* by state and process: entries of others that can follow while it waits */
};

static uint16_t *most_of(const struct waits *w, uint32_t state) {
    return w->most + (size_t)state * w->n;
}

static const struct outcome *outcome_of(struct waits *w, const struct step *step) {
    struct worker *worker = &w->components.worker;
    return &system_outcomes(&worker->explorer->system, worker->here.at[0][step->process])
                ->of[step->outcome];
}

static bool is_waiting(const struct waits *w, uint32_t node) {
    return node_flags(&w->components.search->explorer.system, node) & NODE_WAITING;
}

/* ---- Requests under way ---- */

static void find_kinds(struct waits *w) {
    struct explorer *e = &w->components.search->explorer;
    struct worker *worker = &w->components.worker;
    for (uint32_t state = 1; state <= w->count; state++) {
        if (!e->states.pair[state]) continue;
        components_expand(&w->components, state);
        for (size_t i = 0; i < worker->step_count; i++) {
            uint32_t process = worker->steps[i].process;
            const struct outcome *outcome = outcome_of(w, &worker->steps[i]);
            if (is_waiting(w, worker->here.at[0][process]) || !is_waiting(w, outcome->node))
                continue;
            for (uint32_t s = 0; s < outcome->sends; s++)
                w->asking |=
                    1u
                    << message_head(&e->system, outcome_sends(&e->system, outcome)[s].message).kind;
        }
    }
}

/* Bit per process whose request is under way in the state that was expanded last. */
static uint32_t under_way(const struct waits *w) {
    const struct system *system = &w->components.search->explorer.system;
    uint32_t who = 0;
    struct node node;
    for (uint32_t p = 0; p < w->n; p++) {
        node_get(system, w->components.worker.here.at[0][p], &node);
        for (uint32_t i = 0; i < node.count; i++) {
            struct message message = message_head(system, node.inbox[i]);
            if (message.kind < KIND_DOWN && w->asking & 1u << message.kind)
                who |= 1u << (message.from - 1);
        }
    }
    return who;
}

/* Whether the step is an entry that p, which waits, has to let go before it. */
static bool overtakes(struct waits *w, const struct step *step, uint32_t p, uint32_t asking) {
    return step->process != p && !(asking & 1u << p) && outcome_of(w, step)->flags & OUT_ENTERED;
}

/* ---- The longest paths ---- */

/* Returns whether more is known afterwards. */
static bool look_ahead(struct waits *w, uint32_t state) {
    struct worker *worker = &w->components.worker;
    uint16_t *most = most_of(w, state);
    bool news = false;
    components_expand(&w->components, state);
    uint32_t asking = under_way(w);
    for (size_t i = 0; i < worker->step_count; i++) {
        const uint16_t *after = most_of(w, components_next(&w->components, &worker->steps[i]));
        for (uint32_t p = 0; p < w->n; p++) {
            if (!is_waiting(w, worker->here.at[0][p])) continue;
            unsigned entries = after[p] + overtakes(w, &worker->steps[i], p, asking);
            if (entries <= most[p]) continue;
            most[p] = (uint16_t)entries;
            news = true;
        }
    }
    return news;
}

/* The greatest of all; the first state in which that many can still come. */
static unsigned find_most(const struct waits *w, unsigned at_least, uint32_t *state, uint32_t *p) {
    unsigned greatest = 0;
    *state = 0;
    for (uint32_t s = 1; s <= w->count; s++)
        for (uint32_t q = 0; q < w->n; q++) {
            unsigned most = most_of(w, s)[q];
            if (most > greatest) greatest = most;
            if (most >= at_least && !*state) *state = s, *p = q;
        }
    return greatest;
}

/* ---- The counterexample ---- */

struct stretch {            /* the search for the next entry before p */
    uint32_t *queue, *came; /* came: by state */
    size_t head, tail;
    uint32_t last, end; /* the states before and after that entry */
    int process;        /* that enters */
};

static void stretch_from(struct waits *w, struct stretch *s, uint32_t at, uint32_t p) {
    struct worker *worker = &w->components.worker;
    unsigned left = most_of(w, at)[p];
    components_expand(&w->components, at);
    uint32_t asking = under_way(w);
    for (size_t i = 0; i < worker->step_count && !s->end; i++) {
        const struct step *step = &worker->steps[i];
        uint32_t next = components_next(&w->components, step);
        bool one = overtakes(w, step, p, asking);
        if (most_of(w, next)[p] + (unsigned)one != left) continue;
        if (one)
            s->end = next, s->last = at, s->process = step->process;
        else if (!s->came[next])
            s->came[next] = at, s->queue[s->tail++] = next;
    }
}

/* Walks from a state to the next entry before p, and returns the state after it. */
static uint32_t walk_to_entry(struct waits *w, struct walk *walk, uint32_t from, uint32_t p) {
    struct stretch s = {.queue = calloc(2 * ((size_t)w->count + 1), sizeof *s.queue)};
    cv_assert(s.queue);
    s.came = s.queue + w->count + 1;
    s.queue[s.tail++] = from;
    s.came[from] = from;
    while (s.head < s.tail && !s.end) stretch_from(w, &s, s.queue[s.head++], p);
    cv_assert(s.end);
    size_t length = 0;
    for (uint32_t at = s.last; at != from; at = s.came[at]) s.queue[length++] = at;
    while (length) walk_on_to(walk, s.queue[--length], -1);
    walk_on_to(walk, s.end, s.process);
    free(s.queue);
    return s.end;
}

static struct check_path show(struct waits *w, uint32_t state, uint32_t p, unsigned entries) {
    struct walk walk;
    walk_open(&walk, &w->components.search->explorer);
    walk_to_state(&walk, w->components.search, state);
    for (unsigned i = 0; i < entries; i++) state = walk_to_entry(w, &walk, state, p);
    walk.path.goes_on = true;
    return walk_close(&walk);
}

/* ---- Deciding ---- */

static void judge(struct waits *w, struct search *s, int property, unsigned entries) {
    uint32_t state, p = 0;
    find_most(w, entries, &state, &p);
    if (!(s->explorer.judged & 1u << property) || s->broken & 1u << property || !state) return;
    s->broken |= 1u << property;
    s->result->path[property] = show(w, state, p, entries);
}

static void decide(struct waits *w, struct search *s) {
    const struct check_model *model = s->explorer.model;
    uint32_t state, p, others = w->n - model->servers - 1;
    unsigned greatest = find_most(w, 1, &state, &p), all = others * model->entries;
    s->result->overtakes = (int)greatest;
    if (model->starved_after) {
        judge(w, s, STARVATION, model->starved_after);
        judge(w, s, BOUNDED_WAIT, model->starved_after);
    }
    if (model->wait_bound) judge(w, s, BOUNDED_WAIT, model->wait_bound + 1);
    if (!model->wait_bound && greatest && greatest == all) s->waits_doubt = ALL_ENTRIES_USED;
}

void search_waits(struct search *s) {
    struct explorer *e = &s->explorer;
    struct waits w = {.n = e->model->processes, .count = atomic_load(&e->states.count)};
    size_t room = ((size_t)w.count + 1) * w.n * sizeof *w.most;
    s->result->overtakes = -1;
    if (!(e->judged & 1u << BOUNDED_WAIT)) return;
    s->waits_doubt = s->explored && !e->hashed ? REDUCED : BEYOND_MEMORY;
    if (!s->explored || e->hashed || s->options->order || e->system.renamings.count > 1) return;
    s->waits_doubt = BEYOND_MEMORY;
    if (explorer_bytes(e) + room > s->options->memory) return;
    s->waits_doubt = NO_DOUBT;
    w.most = calloc(1, room);
    cv_assert(w.most);
    components_open(&w.components, s);
    find_kinds(&w);
    for (bool news = true; news;) {
        news = false;
        for (uint32_t state = w.count; state; state--)
            if (e->states.pair[state]) news |= look_ahead(&w, state);
    }
    decide(&w, s);
    components_close(&w.components);
    free(w.most);
}
