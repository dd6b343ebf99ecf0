#include "sim/graph.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((format(printf, 2, 3))) static int fail(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, GRAPH_ERROR_MAX, format, arguments);
    va_end(arguments);
    return -1;
}

void graph_free(struct graph *graph) {
    free(graph->names);
    free(graph->edges);
    *graph = (struct graph){0};
}

/* The vertex of that name, made when it is new; 0 when that cannot be. */
static uint32_t vertex(struct graph *graph, const char *name, size_t length) {
    enum { VERTICES_MAX = 100000 };
    if (length == 0 || length >= ROSTER_NAME_MAX || graph->vertices == VERTICES_MAX) return 0;
    for (uint32_t v = 1; v <= graph->vertices; v++)
        if (strlen(graph->names[v]) == length && memcmp(graph->names[v], name, length) == 0)
            return v;
    uint32_t v = graph->vertices + 1;
    if ((v & (v - 1)) == 0 || !graph->names) { /* room for twice as many at each power of two */
        void *grown = realloc(graph->names, (2 * (size_t)v + 1) * sizeof *graph->names);
        if (!grown) return 0;
        graph->names = grown;
    }
    memset(graph->names[v], 0, ROSTER_NAME_MAX);
    memcpy(graph->names[v], name, length);
    graph->vertices = v;
    return v;
}

static int edge(struct graph *graph, uint32_t a, uint32_t b, char *error) {
    if (a == b) return fail(error, "'%s' is joined to itself", graph->names[a]);
    for (size_t i = 0; i < graph->edge_count; i++)
        if ((graph->edges[i][0] == a && graph->edges[i][1] == b) ||
            (graph->edges[i][0] == b && graph->edges[i][1] == a))
            return 0;
    size_t n = graph->edge_count + 1;
    if ((n & (n - 1)) == 0) {
        void *grown = realloc(graph->edges, 2 * n * sizeof *graph->edges);
        if (!grown) return fail(error, "out of memory");
        graph->edges = grown;
    }
    graph->edges[graph->edge_count][0] = a, graph->edges[graph->edge_count][1] = b;
    graph->edge_count = n;
    return 0;
}

static bool of_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

static const char *skip(const char *at, const char *what) { return at + strspn(at, what); }

/* A name, bare or in quotes; moves `at` behind it.  0 when there is none. */
static uint32_t read_vertex(struct graph *graph, const char **at) {
    const char *start = *at, *end;
    if (*start == '"') {
        end = strchr(++start, '"');
        if (!end) return 0;
        *at = end + 1;
    } else {
        for (end = start; of_name(*end);) end++;
        *at = end;
    }
    return vertex(graph, start, (size_t)(end - start));
}

/* Behind "node [...]", "edge [...]" and "rankdir=LR", which say how a picture looks; else NULL. */
static const char *skip_statement(const char *at) {
    const char *end = at;
    while (of_name(*end)) end++;
    size_t length = (size_t)(end - at);
    const char *next = skip(end, " \t");
    bool style = (length == 4 && (strncmp(at, "node", 4) == 0 || strncmp(at, "edge", 4) == 0)) ||
                 (length == 5 && strncmp(at, "graph", 5) == 0);
    if (*next == '[' && style) return next;
    return length && *next == '=' ? next + strcspn(next, ";\n") : NULL;
}

/* A line of pairs "a b" or of chains "a -- b -- c", what Graphviz writes around them left out. */
static int read_line(struct graph *graph, const char *at, char *error) {
    static const char blank[] = " \t\r\n;,";
    at = skip(at, blank);
    if (strncmp(at, "strict", 6) == 0) at = skip(at + 6, blank);
    if (strncmp(at, "digraph", 7) == 0) return fail(error, "a directed graph; edges go both ways");
    if (strncmp(at, "graph", 5) == 0 && !of_name(at[5])) {
        at = strchr(at, '{');
        if (!at) return 0;
    }
    for (at = skip(at, "{ \t"); *(at = skip(at, blank));) {
        if (*at == '}' || *at == '#' || strncmp(at, "//", 2) == 0) return 0;
        if (*at == '[') { /* attributes mean nothing here */
            at = strchr(at, ']');
            if (!at) return fail(error, "']' is missing");
            at++;
            continue;
        }
        const char *skipped = skip_statement(at);
        if (skipped) {
            at = skipped;
            continue;
        }
        uint32_t a = read_vertex(graph, &at);
        if (!a) return fail(error, "a name was expected at '%.20s'", at);
        for (bool first = true;; first = false) {
            at = skip(at, " \t");
            bool joined = *at == '-';
            if (strncmp(at, "->", 2) == 0)
                return fail(error, "a directed edge; edges go both ways");
            at = skip(at, "-");
            at = skip(at, " \t");
            if (!joined && (!first || !(of_name(*at) || *at == '"'))) break;
            uint32_t b = read_vertex(graph, &at);
            if (!b) return fail(error, "a name was expected at '%.20s'", at);
            if (edge(graph, a, b, error) != 0) return -1;
            a = b;
            if (!joined) break;
        }
    }
    return 0;
}

static int finish(struct graph *graph, char *error) {
    if (graph->vertices == 0) return fail(error, "there is no edge in it");
    return 0;
}

int graph_parse(struct graph *graph, const char *text, char error[GRAPH_ERROR_MAX]) {
    *graph = (struct graph){0};
    if (read_line(graph, text, error) == 0 && finish(graph, error) == 0) return 0;
    graph_free(graph);
    return -1;
}

int graph_read(struct graph *graph, const char *path, char error[GRAPH_ERROR_MAX]) {
    char line[4096], why[GRAPH_ERROR_MAX];
    int number = 0, failed = 0;
    *graph = (struct graph){0};
    FILE *file = fopen(path, "r");
    if (!file) return fail(error, "%s: %s", path, strerror(errno));
    while (!failed && fgets(line, sizeof line, file)) {
        number++;
        failed = read_line(graph, line, why);
    }
    if (failed)
        fail(error, "%s:%d: %s", path, number, why);
    else if ((failed = finish(graph, why)) != 0)
        fail(error, "%s: %s", path, why);
    fclose(file);
    if (failed) graph_free(graph);
    return failed;
}
