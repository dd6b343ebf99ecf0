#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/grow.h"
#include "cli/locks.h"
#include "recipe/cycles.h"

/* The contended locks, and who waits for whom at each. */
struct contended {
    char *name;
    struct cv_contender *contenders;
    size_t count;
};

struct graph {
    struct remote *remote;
    size_t seen; /* locks, contended or not */
    struct contended *locks;
    size_t count, room;
    struct wait *waits;
    size_t wait_count, wait_room;
    int64_t inner; /* for whom those wait whose command it is */
};

static void add(struct graph *graph, struct wait wait) {
    wait.at = graph->count - 1; /* the last that was read */
    graph->waits =
        grown(graph->waits, &graph->wait_room, graph->wait_count + 1, sizeof *graph->waits);
    graph->waits[graph->wait_count++] = wait;
}

static void add_wait(size_t waiter, size_t before, void *arg) {
    struct graph *graph = arg;
    const struct cv_contender *contenders = graph->locks[graph->count - 1].contenders;
    add(graph,
        (struct wait){.waiter = contenders[waiter].session, .holder = contenders[before].session});
}

static void add_outer(int64_t session, void *arg) {
    struct graph *graph = arg;
    add(graph, (struct wait){.waiter = session, .holder = graph->inner, .outer = true});
}

static void add_waits(struct graph *graph, const struct contended *at) {
    struct wait_place *places = calloc(at->count + 1, sizeof *places);
    cv_assert(places);
    for (size_t i = 0; i < at->count; i++)
        places[i] = (struct wait_place){.session = at->contenders[i].session,
                                        .holds = at->contenders[i].holds,
                                        .shared = at->contenders[i].kind == CV_SHARED,
                                        .slots = at->contenders[i].slots,
                                        .outer = at->contenders[i].outer};
    for (size_t i = 0; i < at->count; i++) {
        cycles_waits(places, i, add_wait, graph);
        graph->inner = places[i].session;
        cycles_outer(&places[i], add_outer, graph);
    }
    free(places);
}

static int read_lock(const struct locks_row *row, void *arg) {
    struct graph *graph = arg;
    struct contended lock = {0};
    graph->seen++;
    if (row->contenders < 2) return 0;
    char *path = locks_path(row->name);
    int error = cv_lock_contenders(graph->remote->client, path, &lock.contenders, &lock.count);
    int status = error && error != CV_NO_NODE ? remote_fail(graph->remote, error, path) : 0;
    free(path);
    if (error) {
        free(lock.contenders);
        return status;
    }
    lock.name = strdup(row->name);
    cv_assert(lock.name);
    graph->locks = grown(graph->locks, &graph->room, graph->count + 1, sizeof *graph->locks);
    graph->locks[graph->count++] = lock;
    add_waits(graph, &lock);
    return 0;
}

static const struct cv_contender *contender_of(const struct contended *lock, int64_t session,
                                               bool last) {
    const struct cv_contender *found = NULL;
    for (size_t i = 0; i < lock->count; i++)
        if (lock->contenders[i].session == session && (!found || last))
            found = &lock->contenders[i];
    cv_assert(found);
    return found;
}

/* For whom a wait is. */
static const struct cv_contender *whom_of(const struct graph *graph, const struct wait *wait) {
    return contender_of(&graph->locks[wait->at], wait->holder, wait->outer);
}

/* Whoever waits for its command need not be at that lock: it is one for whom the wait before is. */
static const struct cv_contender *who_of(const struct graph *graph,
                                         const struct wait *const *circle, size_t size, size_t at) {
    const struct wait *wait = circle[at];
    if (wait->outer) return whom_of(graph, circle[(at + size - 1) % size]);
    return contender_of(&graph->locks[wait->at], wait->waiter, true);
}

static void tell(const struct wait *const *circle, size_t size, void *arg) {
    struct graph *graph = arg;
    json_t *waits = json_array();
    char waiter[700], before[700], name[600];
    if (!graph->remote->json) printf("%zu sessions wait for each other:\n", size);
    for (size_t i = 0; i < size; i++) {
        const char *lock = circle[i]->outer ? NULL : graph->locks[circle[i]->at].name;
        const struct cv_contender *who = who_of(graph, circle, size, i);
        const struct cv_contender *whom = whom_of(graph, circle[i]);
        locks_who(who, waiter, sizeof waiter);
        locks_who(whom, before, sizeof before);
        if (graph->remote->json)
            json_array_append_new(waits,
                                  json_pack("{s:o, s:o, s:o}", "waiter", locks_json(who), "lock",
                                            lock ? remote_json_name(lock) : json_null(),
                                            "waits_for", locks_json(whom)));
        else if (lock)
            printf("  %s waits at %s for %s%s\n", waiter, remote_name(name, sizeof name, lock),
                   before, whom->holds ? ", who holds it" : ", who waits before it");
        else
            printf("  %s waits for %s, which its command has started\n", waiter, before);
    }
    if (graph->remote->json)
        remote_json_line(json_pack("{s:o}", "circle", waits));
    else
        json_decref(waits);
}

int locks_deadlocks(struct remote *remote) {
    struct graph graph = {.remote = remote};
    int status =
        locks_walk(&(struct locks_walk){.remote = remote, .each = read_lock, .arg = &graph});
    if (!status && cycles_find(graph.waits, graph.wait_count, tell, &graph))
        status = EXIT_CONFLICT;
    else if (!status && !remote->json)
        printf("nobody waits in a circle; %zu of %zu locks are waited for\n", graph.count,
               graph.seen);
    for (size_t i = 0; i < graph.count; i++) {
        free(graph.locks[i].contenders);
        free(graph.locks[i].name);
    }
    free(graph.locks);
    free(graph.waits);
    return status;
}
