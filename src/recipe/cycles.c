#include "recipe/cycles.h"

#include <stdlib.h>

#include "base/assert.h"
#include "recipe/outer.h"

/* It waits for those before it that are in its way, back to one that waits for all before that one.
 * Of several slots any can become free, which makes no circle. */
void cycles_waits(const struct wait_place *places, size_t waiter,
                  void (*each)(size_t waiter, size_t before, void *arg), void *arg) {
    const struct wait_place *own = &places[waiter];
    if (own->holds || !own->session) return;
    for (size_t i = waiter; i-- > 0;) {
        const struct wait_place *before = &places[i];
        bool both_shared = own->shared && before->shared;
        bool both_slots = own->slots > 1 && before->slots > 1;
        if (both_shared || both_slots) continue;
        each(waiter, i, arg);
        if (!before->shared && before->slots <= 1) break;
    }
}

void cycles_outer(const struct wait_place *place, void (*each)(int64_t session, void *arg),
                  void *arg) {
    int64_t sessions[OUTER_MAX];
    if (place->holds || !place->session) return;
    size_t count = outer_read(place->outer, sessions);
    for (size_t i = 0; i < count; i++)
        if (sessions[i] != place->session) each(sessions[i], arg);
}

static int compare(const void *a, const void *b) {
    const struct wait *x = a, *y = b;
    if (x->waiter != y->waiter) return x->waiter < y->waiter ? -1 : 1;
    if (x->holder != y->holder) return x->holder < y->holder ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* The first wait of a session, by number; `count` if it waits for nobody. */
static size_t first_of(const struct wait *waits, size_t count, int64_t session) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (waits[middle].waiter < session)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && waits[low].waiter == session ? low : count;
}

/* A depth-first search.  What is kept of a session is kept at its first wait. */
enum colour { NEW, ON_PATH, DONE };

struct search {
    struct wait *waits;
    size_t count;
    unsigned char *colour;
    size_t *path, depth; /* waits that lead to where the search is */
    const struct wait **circle;
    size_t found;
};

/* The path from the wait of that session on is a circle. */
static void tell(struct search *search, int64_t session,
                 void (*found)(const struct wait *const *, size_t, void *), void *arg) {
    size_t from = search->depth - 1, size = 0;
    while (search->waits[search->path[from]].waiter != session) from--;
    for (size_t i = from; i < search->depth; i++)
        search->circle[size++] = &search->waits[search->path[i]];
    found(search->circle, size, arg);
    search->found++;
}

static void search_from(struct search *search, size_t start,
                        void (*found)(const struct wait *const *, size_t, void *), void *arg) {
    search->depth = 0;
    search->path[search->depth++] = start;
    search->colour[start] = ON_PATH;
    while (search->depth) {
        size_t *at = &search->path[search->depth - 1];
        size_t next = first_of(search->waits, search->count, search->waits[*at].holder);
        if (next < search->count && search->colour[next] == ON_PATH) {
            tell(search, search->waits[*at].holder, found, arg);
        } else if (next < search->count && search->colour[next] == NEW) {
            search->colour[next] = ON_PATH;
            search->path[search->depth++] = next;
            continue;
        }
        /* The next wait of the same session, or back to who waits for it. */
        while (search->depth) {
            at = &search->path[search->depth - 1];
            int64_t waiter = search->waits[*at].waiter;
            if (++*at < search->count && search->waits[*at].waiter == waiter) break;
            search->colour[first_of(search->waits, search->count, waiter)] = DONE;
            search->depth--;
        }
    }
}

size_t cycles_find(struct wait *waits, size_t count,
                   void (*found)(const struct wait *const *circle, size_t size, void *arg),
                   void *arg) {
    struct search search = {.waits = waits, .count = count};
    if (!count) return 0;
    if (count) qsort(waits, count, sizeof *waits, compare);
    search.colour = calloc(count, 1);
    search.path = calloc(count + 1, sizeof *search.path);
    search.circle = calloc(count + 1, sizeof *search.circle);
    cv_assert(search.colour && search.path && search.circle);
    for (size_t i = 0; i < count; i++)
        if ((!i || waits[i - 1].waiter != waits[i].waiter) && search.colour[i] == NEW)
            search_from(&search, i, found, arg);
    free(search.colour);
    free(search.path);
    free(search.circle);
    return search.found;
}
