#include "lab/sim/graph.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"

enum { VERTICES_MAX = 100000, EDGES_MAX = 10000000 };

/* A text that is read into a graph, with hash tables of the vertices and edges so far. */
struct reader {
    struct graph *graph;
    const char *at;
    int line;
    bool graphviz; /* between its braces two names on a line are two processes, not an edge */
    char *error;
    uint32_t *vertex_slot; /* vertices by name */
    uint64_t *edge_slot;   /* edges by their ends */
    size_t vertex_slots, edge_slots, vertex_room, edge_room;
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *r, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->error, GRAPH_ERROR_MAX, format, arguments);
    va_end(arguments);
    return -1;
}

void graph_free(struct graph *graph) {
    free(graph->names);
    free(graph->edges);
    *graph = (struct graph){0};
}

/* ---- Vertices and edges, each once ---- */

static uint64_t hash_name(const char *name) {
    uint64_t hash = 0;
    for (; *name; name++) hash = rng_mix(hash ^ (unsigned char)*name);
    return hash;
}

static size_t find_name(const struct reader *r, const char *name) {
    size_t at = hash_name(name) & (r->vertex_slots - 1);
    while (r->vertex_slot[at] && strcmp(r->graph->names[r->vertex_slot[at]], name) != 0)
        at = (at + 1) & (r->vertex_slots - 1);
    return at;
}

static size_t find_edge(const struct reader *r, uint64_t edge) {
    size_t at = rng_mix(edge) & (r->edge_slots - 1);
    while (r->edge_slot[at] && r->edge_slot[at] != edge) at = (at + 1) & (r->edge_slots - 1);
    return at;
}

/* Makes room for one more vertex and edge.  Returns 0 or -1. */
static int make_room(struct reader *r) {
    struct graph *graph = r->graph;
    if (graph->vertices + 2 > r->vertex_room) {
        size_t room = 2 * r->vertex_room + 16;
        void *names = realloc(graph->names, room * sizeof *graph->names);
        if (!names) return fail(r, "out of memory");
        graph->names = names, r->vertex_room = room;
    }
    if (graph->edge_count + 1 > r->edge_room) {
        size_t room = 2 * r->edge_room + 16;
        void *edges = realloc(graph->edges, room * sizeof *graph->edges);
        if (!edges) return fail(r, "out of memory");
        graph->edges = edges, r->edge_room = room;
    }
    if (2 * graph->vertices + 2 > r->vertex_slots) {
        free(r->vertex_slot);
        r->vertex_slots = r->vertex_slots ? 4 * r->vertex_slots : 64;
        r->vertex_slot = calloc(r->vertex_slots, sizeof *r->vertex_slot);
        if (!r->vertex_slot) return fail(r, "out of memory");
        for (uint32_t v = 1; v <= graph->vertices; v++)
            r->vertex_slot[find_name(r, graph->names[v])] = v;
    }
    if (2 * graph->edge_count + 2 > r->edge_slots) {
        free(r->edge_slot);
        r->edge_slots = r->edge_slots ? 4 * r->edge_slots : 64;
        r->edge_slot = calloc(r->edge_slots, sizeof *r->edge_slot);
        if (!r->edge_slot) return fail(r, "out of memory");
        for (size_t i = 0; i < graph->edge_count; i++) {
            uint64_t edge = (uint64_t)graph->edges[i][0] << 32 | graph->edges[i][1];
            r->edge_slot[find_edge(r, edge)] = edge;
        }
    }
    return 0;
}

/* The vertex of that name, which is added when it is new; 0 on an error. */
static uint32_t vertex(struct reader *r, const char *name) {
    if (make_room(r) != 0) return 0;
    size_t at = find_name(r, name);
    if (r->vertex_slot[at]) return r->vertex_slot[at];
    if (r->graph->vertices == VERTICES_MAX) {
        fail(r, "more than %d processes", VERTICES_MAX);
        return 0;
    }
    uint32_t v = ++r->graph->vertices;
    strcpy(r->graph->names[v], name);
    return r->vertex_slot[at] = v;
}

static int join(struct reader *r, uint32_t a, uint32_t b) {
    if (a == b) return fail(r, "'%s' is joined to itself", r->graph->names[a]);
    if (make_room(r) != 0) return -1;
    uint64_t edge = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    size_t at = find_edge(r, edge);
    if (r->edge_slot[at]) return 0; /* it was given twice */
    if (r->graph->edge_count == EDGES_MAX) return fail(r, "more than %d edges", EDGES_MAX);
    r->edge_slot[at] = edge;
    uint32_t *ends = r->graph->edges[r->graph->edge_count++];
    ends[0] = (uint32_t)(edge >> 32), ends[1] = (uint32_t)edge;
    return 0;
}

/* ---- Tokens ---- */

static bool of_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* Skips blanks and comments, and with `across` also the ends of lines and statements. */
static void skip_blank(struct reader *r, bool across) {
    for (;;) {
        if (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
            r->at++;
        } else if (*r->at == '#' || strncmp(r->at, "//", 2) == 0) {
            r->at += strcspn(r->at, "\n");
        } else if (strncmp(r->at, "/*", 2) == 0) {
            for (; *r->at && strncmp(r->at, "*/", 2) != 0; r->at++) r->line += *r->at == '\n';
            r->at += *r->at ? 2 : 0;
        } else if (across && *r->at && strchr("\n;,", *r->at)) {
            r->line += *r->at++ == '\n';
        } else {
            return;
        }
    }
}

static bool at_name(const struct reader *r) { return of_name(*r->at) || *r->at == '"'; }

/* A name, bare or in quotes; 0 and an error when there is none. */
static uint32_t read_name(struct reader *r) {
    char name[ROSTER_NAME_MAX];
    bool quoted = *r->at == '"';
    const char *start = r->at + quoted, *end = start;
    while (quoted ? *end && *end != '"' && *end != '\n' : of_name(*end)) end++;
    size_t length = (size_t)(end - start);
    if (*r->at == '{')
        return (uint32_t)(fail(r, "sets of processes in braces are not understood"), 0);
    if (length == 0 || (quoted && *end != '"'))
        return (uint32_t)(fail(r, "a name was expected before '%.1s'", *start == '\n' ? "" : start),
                          0);
    if (length >= sizeof name)
        return (uint32_t)(fail(r, "a name of more than %zu letters", sizeof name - 1), 0);
    memcpy(name, start, length);
    name[length] = 0;
    r->at = end + quoted;
    return vertex(r, name);
}

/* Whether the next token is this word. */
static bool is_word(const struct reader *r, const char *word) {
    size_t length = strlen(word);
    return strncmp(r->at, word, length) == 0 && !of_name(r->at[length]);
}

static int skip_brackets(struct reader *r) {
    for (; *r->at && *r->at != ']'; r->at++) r->line += *r->at == '\n';
    if (!*r->at) return fail(r, "']' is missing");
    r->at++;
    return 0;
}

/* Skips "strict graph NAME {", or nothing when it is not complete. */
static int read_header(struct reader *r) {
    struct reader ahead = *r;
    skip_blank(&ahead, true);
    if (is_word(&ahead, "strict")) ahead.at += strlen("strict");
    skip_blank(&ahead, true);
    if (is_word(&ahead, "digraph")) return fail(r, "a directed graph; edges go both ways");
    if (!is_word(&ahead, "graph")) return 0;
    ahead.at += strlen("graph");
    skip_blank(&ahead, true);
    if (*ahead.at == '"') ahead.at += 1 + strcspn(ahead.at + 1, "\"");
    ahead.at += *ahead.at == '"';
    while (of_name(*ahead.at)) ahead.at++;
    skip_blank(&ahead, true);
    if (*ahead.at == '{') r->at = ahead.at + 1, r->line = ahead.line, r->graphviz = true;
    return 0;
}

static int end_graphviz(struct reader *r) {
    r->at++;
    r->graphviz = false;
    skip_blank(r, true);
    return *r->at ? fail(r, "there is more after the last '}'") : 1;
}

/* Skips what Graphviz has besides edges: returns 1 when it did, 0 when not, -1 on an error. */
static int skip_other(struct reader *r) {
    const char *start = r->at;
    if (*r->at == '}' && r->graphviz) return end_graphviz(r);
    if (*r->at == '[') return skip_brackets(r) == 0 ? 1 : -1;
    if (is_word(r, "subgraph")) return fail(r, "subgraphs are not understood");
    bool styled = is_word(r, "graph") || is_word(r, "node") || is_word(r, "edge");
    while (of_name(*r->at)) r->at++;
    skip_blank(r, false);
    if (styled && *r->at == '[') return 1;
    if (r->at > start && *r->at == '=') return r->at += strcspn(r->at, ";\n,"), 1;
    r->at = start;
    return 0;
}

/* "a b" on a line, except in Graphviz, a chain "a -- b - c", or a name without edges. */
static int read_edges(struct reader *r) {
    uint32_t a = read_name(r), b;
    if (!a) return -1;
    skip_blank(r, false);
    if (at_name(r) && !r->graphviz) {
        if (!(b = read_name(r)) || join(r, a, b) != 0) return -1;
        skip_blank(r, false);
        return at_name(r) || *r->at == '-' ? fail(r, "more than two names on a line") : 0;
    }
    while (*r->at == '-') {
        r->at += strspn(r->at, "-");
        if (*r->at == '>') return fail(r, "a directed edge; edges go both ways");
        skip_blank(r, false);
        if (!(b = read_name(r)) || join(r, a, b) != 0) return -1;
        a = b;
        skip_blank(r, false);
    }
    return 0;
}

static int read_text(struct reader *r) {
    if (read_header(r) != 0) return -1;
    for (skip_blank(r, true); *r->at; skip_blank(r, true)) {
        int other = skip_other(r);
        if (other < 0 || (other == 0 && read_edges(r) != 0)) return -1;
    }
    if (r->graphviz) return fail(r, "'}' is missing");
    if (r->graph->edge_count) return 0;
    return fail(r, "there is no edge in it; an edge is two names and what joins them, as in 1-2");
}

int graph_parse(struct graph *graph, const char *text, char error[GRAPH_ERROR_MAX]) {
    struct reader r = {.graph = graph, .at = text, .line = 1, .error = error};
    *graph = (struct graph){0};
    int failed = read_text(&r);
    free(r.vertex_slot);
    free(r.edge_slot);
    if (failed) graph_free(graph);
    return failed ? -r.line : 0;
}

int graph_read(struct graph *graph, const char *path, char error[GRAPH_ERROR_MAX]) {
    char why[GRAPH_ERROR_MAX], *text = NULL;
    size_t room = 0;
    *graph = (struct graph){0};
    FILE *file = fopen(path, "r");
    ssize_t length = file ? getdelim(&text, &room, 0, file) : -1;
    int problem = !file || (length < 0 && ferror(file)) ? errno : 0;
    if (file) fclose(file);
    int line = 0;
    if (problem)
        snprintf(error, GRAPH_ERROR_MAX, "%s: %s", path, strerror(problem));
    else if ((line = graph_parse(graph, length > 0 ? text : "", why)) != 0)
        snprintf(error, GRAPH_ERROR_MAX, "%s:%d: %s", path, -line, why);
    free(text);
    return problem || line ? -1 : 0;
}
