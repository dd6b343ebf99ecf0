#include "lab/sim/topology.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/parse.h"

/* ---- Edges ---- */

struct edges { /* a growing list, which must be the last piece of the arena meanwhile */
    struct arena *arena;
    uint32_t (*at)[2];
    size_t count;
};

static void join(struct edges *edges, uint32_t a, uint32_t b) {
    uint32_t(*edge)[2] = edges->count ? arena_extend(edges->arena, sizeof *edge)
                                      : arena_take(edges->arena, sizeof *edge);
    if (!edges->count) edges->at = edge;
    (*edge)[0] = a, (*edge)[1] = b;
    edges->count++;
}

static void make_line(struct edges *edges, uint32_t n) {
    for (uint32_t p = 1; p < n; p++) join(edges, p, p + 1);
}

static void make_star(struct edges *edges, uint32_t n) {
    for (uint32_t p = 2; p <= n; p++) join(edges, 1, p);
}

static void make_grid(struct edges *edges, uint32_t n) {
    uint32_t width = (uint32_t)ceil(sqrt((double)n));
    for (uint32_t p = 1; p <= n; p++) {
        if (p % width != 0 && p + 1 <= n) join(edges, p, p + 1);
        if (p + width <= n) join(edges, p, p + width);
    }
}

/* Erdos-Renyi: each pair with probability `p`, in time linear in the edges, because the gaps
 * between them are geometric.  Pairs (a, b), a < b, are counted b by b. */
static void make_random(struct edges *edges, uint32_t n, double p, struct rng *rng) {
    uint64_t a = 0, b = 2;
    if (p <= 0) return;
    while (b <= n) {
        double skip = p >= 1 ? 0 : floor(log(1 - rng_unit(rng)) / log1p(-p));
        if (skip > 1e18) return;
        a += 1 + (uint64_t)skip;
        while (a >= b && b <= n) a -= b - 1, b++;
        if (b <= n) join(edges, (uint32_t)a, (uint32_t)b);
    }
}

/* ---- Lists of neighbours ---- */

static void make_lists(struct topology *topology, const struct edges *edges, struct arena *arena) {
    uint32_t n = topology->processes;
    topology->offset = arena_take(arena, ((size_t)n + 2) * sizeof *topology->offset);
    for (size_t i = 0; i < edges->count; i++)
        topology->offset[edges->at[i][0] + 1]++, topology->offset[edges->at[i][1] + 1]++;
    for (uint32_t p = 1; p <= n + 1; p++) topology->offset[p] += topology->offset[p - 1];
    topology->neighbour = arena_take(arena, (2 * edges->count + 1) * sizeof(cv_pid));
    uint32_t *fill = arena_take(arena, ((size_t)n + 1) * sizeof *fill);
    for (size_t i = 0; i < edges->count; i++) {
        uint32_t a = edges->at[i][0], b = edges->at[i][1];
        topology->neighbour[topology->offset[a] + fill[a]++] = b;
        topology->neighbour[topology->offset[b] + fill[b]++] = a;
    }
}

static void make_ring(struct topology *topology, bool two_way, struct arena *arena) {
    uint32_t n = topology->processes, degree = n < 2 ? 0 : 1u + two_way;
    topology->degree = degree;
    topology->offset = arena_take(arena, ((size_t)n + 2) * sizeof *topology->offset);
    topology->neighbour = arena_take(arena, ((size_t)n * degree + 1) * sizeof(cv_pid));
    for (uint32_t p = 1; p <= n + 1; p++) topology->offset[p] = (p - 1) * degree;
    for (uint32_t p = 1; degree && p <= n; p++) {
        topology->neighbour[topology->offset[p]] = p % n + 1;
        if (two_way) topology->neighbour[topology->offset[p] + 1] = p == 1 ? n : p - 1;
    }
}

/* A one-way ring as its processes see it: all of it, from the next to the right on. */
static void make_order(struct topology *topology, bool given, struct arena *arena) {
    uint32_t n = topology->processes;
    if (n < 2) return;
    topology->ring = arena_take(arena, 2 * (size_t)n * sizeof *topology->ring);
    if (given) topology->place = arena_take(arena, ((size_t)n + 1) * sizeof *topology->place);
    cv_pid p = 1;
    for (uint32_t i = 0; i < 2 * n; i++) {
        topology->ring[i] = p;
        if (topology->place && i < n) topology->place[p] = i + 1;
        p = topology->neighbour[p - 1];
    }
}

/* A network that was given for a ring must be one; its first edge leads to the right. */
static int make_cycle(struct topology *topology, const struct graph *graph, bool two_way,
                      struct arena *arena) {
    uint32_t n = topology->processes;
    cv_pid(*ends)[2] = arena_take(arena, ((size_t)n + 1) * sizeof *ends);
    for (size_t i = 0; i < graph->edge_count; i++)
        for (int k = 0; k < 2; k++) {
            cv_pid *of = ends[graph->edges[i][k]], other = graph->edges[i][1 - k];
            if (of[0] && of[1]) return -1;
            of[of[0] != 0] = other;
        }
    make_ring(topology, two_way, arena);
    cv_pid before = CV_NOBODY, at = 1;
    for (uint32_t step = 0; step < n; step++) {
        cv_pid next = ends[at][0] == before || !ends[at][0] ? ends[at][1] : ends[at][0];
        if (n == 2) next = 3 - at;
        if (!next || (next == 1) != (step == n - 1)) return -1;
        topology->neighbour[(size_t)(at - 1) * topology->degree] = next;
        if (two_way) topology->neighbour[(size_t)(next - 1) * topology->degree + 1] = at;
        before = at, at = next;
    }
    return 0;
}

uint32_t topology_parts(const struct topology *topology, const bool *gone,
                        const unsigned char *side, uint32_t *part) {
    uint32_t n = topology->processes, parts = 0;
    uint32_t *stack = part + n + 1; /* the caller provides room for both */
    for (uint32_t p = 0; p <= n; p++) part[p] = 0;
    bool complete = topology->complete || topology->ring;
    uint32_t of_side[UCHAR_MAX + 1] = {0}; /* a side may be empty, a part may not */
    for (uint32_t p = 1; complete && p <= n; p++) {
        if (gone && gone[p]) continue;
        uint32_t *its = &of_side[side ? side[p] : 0];
        if (!*its) *its = ++parts;
        part[p] = *its;
    }
    for (uint32_t start = 1; !complete && start <= n; start++) {
        if (part[start] || (gone && gone[start])) continue;
        uint32_t depth = 0;
        part[start] = ++parts;
        stack[depth++] = start;
        while (depth) {
            uint32_t p = stack[--depth];
            for (uint32_t i = topology->offset[p]; i < topology->offset[p + 1]; i++) {
                uint32_t q = topology->neighbour[i];
                if (part[q] || (gone && gone[q]) || (side && side[p] != side[q])) continue;
                part[q] = parts;
                stack[depth++] = q;
            }
        }
    }
    return parts;
}

/* ---- Ids and weights ---- */

static int fail(char *error, const char *name, const char *why, const char *text) {
    snprintf(error, SIM_ERROR_MAX, "%s: %s%.60s", name, why, text);
    return -1;
}

static void shuffle(uint64_t *values, uint32_t n, struct rng *rng) {
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = 1 + (uint32_t)rng_below(rng, i);
        uint64_t swap = values[i];
        values[i] = values[j], values[j] = swap;
    }
}

/* Numbers between commas, one for each process. */
static int read_list(const char *name, const char *text, uint32_t n, uint64_t *values,
                     char *error) {
    for (uint32_t p = 1; p <= n; p++) {
        char word[24];
        size_t length = strcspn(text, ",");
        if (length >= sizeof word) return fail(error, name, "not a number: ", text);
        memcpy(word, text, length);
        word[length] = 0;
        if (parse_u64(word, &values[p]) != 0) return fail(error, name, "not a number: ", word);
        text += length;
        if (*text == ',' && p < n) text++;
        if (!*text && p < n) return fail(error, name, "fewer numbers than processes", "");
    }
    return *text ? fail(error, name, "more numbers than processes", "") : 0;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int make_ids(struct topology *topology, const struct sim_config *config, struct rng *rng,
                    struct arena *arena, char *error) {
    uint32_t n = topology->processes;
    uint64_t *ids = topology->ids = arena_take(arena, ((size_t)n + 1) * sizeof *ids);
    const char *how = config->ids                 ? config->ids
                      : config->network_names_ids ? "names"
                      : topology->complete        ? "ascending"
                                                  : "random";
    bool shifted = config_roster(config).ids_from_zero; /* they are kept one higher, from 1 */
    for (uint32_t p = 1; p <= n; p++) ids[p] = p;
    if (strcmp(how, "ascending") == 0) return 0;
    if (strcmp(how, "random") == 0) return shuffle(ids, n, rng), 0;
    if (strcmp(how, "descending") == 0) {
        for (uint32_t p = 1; p <= n; p++) ids[p] = n + 1 - p;
        return 0;
    }
    if (strcmp(how, "names") == 0) {
        for (uint32_t p = 1; p <= n; p++)
            if (parse_u64(config->names[p], &ids[p]) != 0)
                return fail(error, "ids", "the name is not a number: ", config->names[p]);
    } else if (read_list("ids", how, n, ids, error) != 0) {
        return -1;
    }
    uint64_t *sorted = arena_take(arena, n * sizeof *sorted);
    memcpy(sorted, ids + 1, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    if (sorted[n - 1] == UINT64_MAX) return fail(error, "ids", "the highest is too high", "");
    for (uint32_t i = 1; i < n; i++)
        if (sorted[i] == sorted[i - 1]) return fail(error, "ids", "each must be unique", "");
    for (uint32_t p = 1; shifted && p <= n; p++) ids[p]++;
    return 0;
}

/* "memory=4,8,2": the name is for the reader alone. */
static int make_weights(struct topology *topology, const struct sim_config *config,
                        struct arena *arena, char *error) {
    uint32_t n = topology->processes;
    uint64_t *weights = topology->weights = arena_take(arena, ((size_t)n + 1) * sizeof *weights);
    for (uint32_t p = 1; p <= n; p++) weights[p] = 1;
    if (!config->attribute) return 0;
    const char *values = strchr(config->attribute, '=');
    if (!values || values == config->attribute)
        return fail(error, "attribute", "expected NAME=V,V,...: ", config->attribute);
    if (read_list("attribute", values + 1, n, weights, error) != 0) return -1;
    for (uint32_t p = 1; p <= n; p++)
        if (weights[p]) return 0;
    return fail(error, "attribute", "one must be above 0; a process with 0 cannot lead", "");
}

/* ---- All of it ---- */

static int make_network(struct topology *topology, const struct sim_config *config, struct rng *rng,
                        struct arena *arena, char *error) {
    static const char *const natural[] = {[CV_COMPLETE] = "complete",
                                          [CV_RING] = "ring",
                                          [CV_TWO_WAY_RING] = "ring",
                                          [CV_GRAPH] = "random:0.3"};
    uint32_t n = topology->processes;
    enum cv_topology needs = config->algorithm->topology;
    const char *name = config->topology ? config->topology : natural[needs];
    struct edges edges = {.arena = arena};
    double p;
    bool ring = strcmp(name, "ring") == 0;
    if (needs == CV_COMPLETE && (strcmp(name, "complete") != 0 || config->network.vertices))
        return fail(error, config->algorithm->name, "needs a complete network", "");
    bool two_way = needs == CV_TWO_WAY_RING, cycle = two_way || needs == CV_RING;
    if (cycle && (!ring || (config->network.vertices &&
                            make_cycle(topology, &config->network, two_way, arena) != 0)))
        return fail(error, config->algorithm->name, "needs a ring", "");
    if (cycle && config->network.vertices) return 0;
    topology->complete = needs == CV_COMPLETE;
    if (topology->complete) return 0;
    if (needs != CV_GRAPH) return make_ring(topology, needs == CV_TWO_WAY_RING, arena), 0;
    if (config->network.vertices) {
        for (size_t i = 0; i < config->network.edge_count; i++)
            join(&edges, config->network.edges[i][0], config->network.edges[i][1]);
    } else if (ring || strcmp(name, "line") == 0) {
        make_line(&edges, n);
        if (ring && n > 2) join(&edges, n, 1);
    } else if (strcmp(name, "star") == 0) {
        make_star(&edges, n);
    } else if (strcmp(name, "grid") == 0) {
        make_grid(&edges, n);
    } else if (strcmp(name, "complete") == 0) {
        make_random(&edges, n, 1, rng);
    } else if (strncmp(name, "random:", 7) == 0 && parse_probability(name + 7, &p) == 0) {
        make_random(&edges, n, p, rng);
    } else {
        return fail(error, "topology",
                    "not complete, ring, line, star, grid or random:P (as random:0.3): ", name);
    }
    make_lists(topology, &edges, arena);
    return 0;
}

/* Joins the components of a random network with as few edges as possible. */
static void connect_parts(struct topology *topology, struct rng *rng, struct arena *arena) {
    uint32_t n = topology->processes;
    uint32_t *part = arena_take(arena, (2 * (size_t)n + 2) * sizeof *part);
    uint32_t parts = topology_parts(topology, NULL, NULL, part);
    if (parts <= 1) return;
    struct edges edges = {.arena = arena};
    uint32_t *chosen = arena_take(arena, ((size_t)parts + 1) * sizeof *chosen);
    uint32_t *seen = arena_take(arena, ((size_t)parts + 1) * sizeof *seen);
    for (uint32_t p = 1; p <= n; p++)
        if (rng_below(rng, ++seen[part[p]]) == 0) chosen[part[p]] = p;
    for (uint32_t p = 1; p <= n; p++)
        for (uint32_t i = topology->offset[p]; i < topology->offset[p + 1]; i++)
            if (p < topology->neighbour[i]) join(&edges, p, topology->neighbour[i]);
    for (uint32_t k = 2; k <= parts; k++)
        join(&edges, chosen[1 + (uint32_t)rng_below(rng, k - 1)], chosen[k]);
    make_lists(topology, &edges, arena);
}

int topology_build(struct topology *topology, const struct sim_config *config, struct arena *arena,
                   char error[SIM_ERROR_MAX]) {
    struct rng rng; /* a generator of its own, so that the network does not depend on other draws */
    rng_seed(&rng, config->seed ^ 0x746f706f6c6f6779u);
    *topology = (struct topology){.processes = config_roster(config).processes};
    if (make_network(topology, config, &rng, arena, error) != 0) return -1;
    if (config->algorithm->topology == CV_RING && config->algorithm->traits & CV_USES_DETECTOR)
        make_order(topology, config->network.vertices, arena);
    if (!topology->complete && !config->network.vertices) connect_parts(topology, &rng, arena);
    if (make_ids(topology, config, &rng, arena, error) != 0) return -1;
    return make_weights(topology, config, arena, error);
}
