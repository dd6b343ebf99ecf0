/* Where the processes are drawn: on a circle when they are on a ring or can all reach each other,
 * level by level in a tree, and else so that distances are as in the network. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/trace_graph.h"
#include "lab/sim/trace_svg.h"

/* ---- Edges ---- */

static void add_edge(struct graph_picture *picture, cv_pid a, cv_pid b) {
    if (!a || !b || a == b || a > picture->nodes || b > picture->nodes) return;
    picture->edge[picture->edge_count][0] = a;
    picture->edge[picture->edge_count++][1] = b;
}

static void find_edges(struct graph_picture *picture) {
    const struct trace_network *network = &picture->trace->network;
    uint32_t n = picture->nodes;
    size_t room = n + (network->complete ? 0 : network->offset[n + 1]);
    picture->edge = layout_array(room, sizeof *picture->edge);
    for (cv_pid p = 1; p <= n && network->toward; p++)
        if (p < network->toward[p] || network->toward[network->toward[p]] != p)
            add_edge(picture, p, network->toward[p]);
    for (cv_pid p = 1; p <= n && !network->complete; p++)
        for (uint32_t i = network->offset[p]; i < network->offset[p + 1]; i++) {
            bool one_way = picture->trace->algorithm->topology == CV_RING;
            if (one_way || p < network->neighbour[i]) add_edge(picture, p, network->neighbour[i]);
        }
}

/* ---- A circle ---- */

/* The same number everywhere: the last bit of a sine, which is not, does not decide a half. */
static int rounded(double x) { return (int)floor(x + 0.5 + 1e-9); }

/* The i-th of `count` places, clockwise from the top. */
static void place_on_circle(struct graph_picture *picture, cv_pid p, uint32_t i, uint32_t count,
                            double radius) {
    double angle = 2 * M_PI * i / count, centre = picture->size / 2.0;
    picture->x[p] = rounded(centre + radius * sin(angle));
    picture->y[p] = rounded(centre - radius * cos(angle));
}

static void place_ring(struct graph_picture *picture, double radius) {
    const struct trace_network *network = &picture->trace->network;
    cv_pid p = 1;
    for (uint32_t i = 0; i < picture->nodes; i++) {
        place_on_circle(picture, p, i, picture->nodes, radius);
        bool has_next = network->ring && network->offset[p + 1] > network->offset[p];
        cv_pid next = has_next ? network->neighbour[network->offset[p]] : p + 1;
        p = next <= picture->nodes && !picture->x[next] ? next : p + 1;
        while (p <= picture->nodes && picture->x[p]) p++;
        for (cv_pid q = 1; p > picture->nodes && q <= picture->nodes; q++)
            if (!picture->x[q]) p = q;
        if (p > picture->nodes) return;
    }
}

/* The only server is in the middle of its clients; several are in a row above them. */
static void place_all(struct graph_picture *picture, double radius) {
    enum { ROW_MAX = 12 };
    uint32_t servers = picture->trace->roster.servers, n = picture->nodes;
    if (servers > n) servers = n;
    uint32_t clients = n - servers;
    bool rows = servers > 1 && servers <= ROW_MAX && clients <= ROW_MAX;
    for (cv_pid p = 1; p <= n; p++) {
        bool serves = p <= servers;
        uint32_t i = serves ? p - 1 : p - servers - 1, count = serves ? servers : clients;
        if (rows) {
            picture->x[p] = rounded(picture->size * (i + 0.5) / count);
            picture->y[p] = serves ? picture->size / 4 : picture->size * 3 / 4;
        } else {
            place_on_circle(picture, p, i, count, !serves ? radius : count > 1 ? radius / 2 : 0);
        }
    }
}

/* ---- Distances ---- */

enum { FAR = 1000 };

/* The distance of every pair, by breadth first; `at` is n by n. */
static void measure(const struct graph_picture *picture, uint32_t *at) {
    uint32_t n = picture->nodes, *queue = layout_array(n, sizeof *queue);
    for (uint32_t from = 0; from < n; from++) {
        uint32_t *row = at + (size_t)from * n, head = 0, tail = 0;
        for (uint32_t i = 0; i < n; i++) row[i] = FAR;
        row[from] = 0;
        queue[tail++] = from;
        while (head < tail) {
            uint32_t here = queue[head++];
            for (size_t e = 0; e < picture->edge_count; e++) {
                uint32_t a = picture->edge[e][0] - 1, b = picture->edge[e][1] - 1;
                uint32_t next = a == here ? b : b == here ? a : here;
                if (row[next] != FAR) continue;
                row[next] = row[here] + 1;
                queue[tail++] = next;
            }
        }
    }
    free(queue);
}

/* Fits the positions into the drawing. */
static void fit(struct graph_picture *picture, const double *x, const double *y) {
    uint32_t n = picture->nodes;
    double left = x[0], right = x[0], top = y[0], bottom = y[0];
    int margin = picture->radius + 14, room = picture->size - 2 * margin;
    for (uint32_t i = 1; i < n; i++) {
        left = fmin(left, x[i]), right = fmax(right, x[i]);
        top = fmin(top, y[i]), bottom = fmax(bottom, y[i]);
    }
    double wide = fmax(right - left, 1e-6), high = fmax(bottom - top, 1e-6);
    for (uint32_t i = 0; i < n; i++) {
        picture->x[i + 1] = margin + rounded((x[i] - left) / wide * room);
        picture->y[i + 1] = margin + rounded((y[i] - top) / high * room);
    }
}

/* Level by level from the first process; a parent is above the middle of its children.  `order` is
 * depth first, so that leaves are from left to right. */
static void place_tree(struct graph_picture *picture, const uint32_t *distance) {
    uint32_t n = picture->nodes, count = 0, top = 0, leaves = 0;
    uint32_t *order = layout_array(n, sizeof *order), *parent = layout_array(n, sizeof *parent);
    uint32_t *stack = layout_array(n, sizeof *stack);
    uint32_t *children = layout_array(n, sizeof *children);
    double *x = layout_array(n, sizeof *x), *y = layout_array(n, sizeof *y);
    stack[top++] = 0;
    while (top) {
        uint32_t here = stack[--top];
        order[count++] = here;
        for (uint32_t child = n; child-- > 0;) {
            if (distance[(size_t)here * n + child] != 1 || distance[child] <= distance[here])
                continue;
            parent[child] = here;
            children[here]++;
            stack[top++] = child;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        if (!children[order[i]]) x[order[i]] = leaves++;
    for (uint32_t i = count; i-- > 0;) {
        uint32_t here = order[i];
        if (children[here]) x[here] /= children[here];
        if (i) x[parent[here]] += x[here];
        y[here] = distance[here];
    }
    fit(picture, x, y);
    free(order);
    free(parent);
    free(stack);
    free(children);
    free(x);
    free(y);
}

/* A network of n processes with n - 1 edges is a tree if all can be reached. */
static bool is_tree(const struct graph_picture *picture, const uint32_t *distance) {
    if (picture->edge_count != picture->nodes - 1) return false;
    for (uint32_t i = 0; i < picture->nodes; i++)
        if (distance[i] == FAR) return false;
    return true;
}

/* Moves every process, in turn, to the mean of the places that the others would give it. */
static void place_by_distance(struct graph_picture *picture, const uint32_t *distance) {
    enum { TURNS = 300 };
    uint32_t n = picture->nodes;
    double *x = layout_array(n, sizeof *x), *y = layout_array(n, sizeof *y);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = sin(2 * M_PI * i / n) * sqrt(n);
        y[i] = -cos(2 * M_PI * i / n) * sqrt(n);
    }
    for (uint32_t turn = 0; turn < TURNS * (n > 1); turn++) {
        uint32_t i = turn % n;
        for (uint32_t k = 0; k < n; k++, i = (i + 1) % n) {
            double sum_x = 0, sum_y = 0, weights = 0;
            for (uint32_t j = 0; j < n; j++) {
                double d = distance[(size_t)i * n + j], dx = x[i] - x[j], dy = y[i] - y[j];
                if (j == i) continue;
                if (d >= FAR) d = sqrt(n);
                double now = sqrt(dx * dx + dy * dy), weight = 1 / (d * d);
                double stretch = now > 1e-9 ? d / now : 0;
                sum_x += weight * (x[j] + dx * stretch);
                sum_y += weight * (y[j] + dy * stretch);
                weights += weight;
            }
            x[i] = sum_x / weights, y[i] = sum_y / weights;
        }
    }
    fit(picture, x, y);
    free(x);
    free(y);
}

/* The process whose neighbours are all others, which have no other: of a large star. */
static cv_pid hub_of(const struct graph_picture *picture, const uint32_t *distance) {
    enum { LARGE = 9 };
    uint32_t n = picture->nodes;
    if (n < LARGE || picture->edge_count != n - 1) return CV_NOBODY;
    for (cv_pid p = 1; p <= n; p++) {
        uint32_t near = 0;
        for (uint32_t i = 0; i < n; i++) near += distance[(size_t)(p - 1) * n + i] == 1;
        if (near == n - 1) return p;
    }
    return CV_NOBODY;
}

static void place_star(struct graph_picture *picture, cv_pid hub, double radius) {
    uint32_t leaves = picture->nodes - 1;
    for (cv_pid p = 1, i = 0; p <= picture->nodes; p++)
        place_on_circle(picture, p, p == hub ? 0 : i++, leaves, p == hub ? 0 : radius);
}

void graph_place(struct graph_picture *picture) {
    const struct trace *trace = picture->trace;
    uint32_t n = trace->roster.processes < NODES_MAX ? trace->roster.processes : NODES_MAX;
    picture->nodes = n;
    bool graph = !trace->network.complete && !trace->network.ring;
    picture->size = n <= 12 ? (graph ? 360 : 280) : n <= 30 ? 420 : 600;
    picture->radius = n <= 12 ? 16 : n <= 30 ? 13 : 6;
    picture->x = layout_array(trace->roster.processes, sizeof *picture->x);
    picture->y = layout_array(trace->roster.processes, sizeof *picture->y);
    double radius = picture->size / 2.0 - picture->radius - 26;
    find_edges(picture);
    if (trace->network.ring) {
        place_ring(picture, radius);
    } else if (picture->edge_count) {
        uint32_t *distance = layout_array((size_t)n * n, sizeof *distance);
        measure(picture, distance);
        cv_pid hub = hub_of(picture, distance);
        if (hub)
            place_star(picture, hub, radius);
        else if (is_tree(picture, distance))
            place_tree(picture, distance);
        else
            place_by_distance(picture, distance);
        free(distance);
    } else {
        place_all(picture, radius);
    }
}
