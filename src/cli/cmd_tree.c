/* conclave tree: the nodes below a node, drawn. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/parse.h"
#include "cli/client_commands.h"
#include "cli/subtree.h"

static const struct argp_option options[] = {
    {"depth", 'L', "NUMBER", 0, "So many levels at most", 0}, {0}};

static const char doc[] =
    "Draws the nodes below a node, and counts them.\v"
    "Behind a name: its children, where they are not drawn (+N), bytes of data, and whether it is "
    "ephemeral.  All is read one after another, while others may change it.\n\n"
    "JSON: {path, nodes, ephemeral, bytes, tree: {name, stat, children: [...]}}; a node whose "
    "children are not known has no such field.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave tree\n"
    "  conclave tree /app -L 2\n";

struct request {
    struct remote *remote;
    char *path;
    uint32_t depth;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    uint64_t number;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'L':
        if (parse_u64(text, &number) != 0 || number < 1 || number > UINT32_MAX)
            return remote_usage("depth: '%s' is not a number from 1 on", text);
        request->depth = (uint32_t)number;
        return 0;
    case ARGP_KEY_ARG:
        if (request->path) return remote_usage("one node at a time, not '%s' as well", text);
        request->path = text;
        return remote_path(text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

struct drawing {
    uint64_t nodes, ephemeral, bytes;
    bool json;
    struct bytes lines; /* for each level above: is it the last there? */
};

static void count(struct drawing *drawing, const struct subtree_node *node) {
    drawing->nodes++;
    if (!node->known) return;
    drawing->ephemeral += node->stat.ephemeral_owner != 0;
    drawing->bytes += node->stat.data_length > 0 ? (uint64_t)node->stat.data_length : 0;
}

static void describe(const struct subtree_node *node) {
    if (node->error) fputs("  (not allowed)", stdout);
    if (!node->known) return;
    if (node->stat.children && !node->count) printf("  +%" PRId32, node->stat.children);
    if (node->stat.data_length) printf("  %" PRId32 " B", node->stat.data_length);
    if (node->stat.ephemeral_owner) printf("  ephemeral");
}

static void draw(struct subtree *tree, size_t index, void *arg) {
    struct drawing *drawing = arg;
    const struct subtree_node *node = &tree->nodes[index];
    if (node->gone) return;
    count(drawing, node);
    if (node->depth) {
        const struct subtree_node *parent = &tree->nodes[node->parent];
        bool last = index + 1 == (size_t)parent->first + parent->count;
        drawing->lines.used = node->depth - 1;
        for (size_t i = 1; i < node->depth; i++)
            fputs(drawing->lines.at[i - 1] ? "    " : "│   ", stdout);
        fputs(last ? "└── " : "├── ", stdout);
        *bytes_extend(&drawing->lines, 1) = last;
    }
    const char *name = subtree_name(tree, index);
    remote_put(stdout, name, strlen(name), REMOTE_NAME);
    describe(node);
    putchar('\n');
}

static void print_text(struct subtree *tree) {
    struct drawing drawing = {0};
    char size[32];
    subtree_visit(tree, draw, &drawing);
    printf("\n%" PRIu64 " node%s, %" PRIu64 " ephemeral, %s\n", drawing.nodes,
           drawing.nodes == 1 ? "" : "s", drawing.ephemeral,
           format_bytes(size, sizeof size, (double)drawing.bytes));
    bytes_close(&drawing.lines);
}

/* Children come after their parents: from the last on, each finds its own complete. */
static void print_as_json(struct subtree *tree) {
    struct drawing drawing = {0};
    json_t **nodes = calloc(tree->count, sizeof *nodes);
    cv_assert(nodes);
    for (size_t i = tree->count; i-- > 0;) {
        const struct subtree_node *node = &tree->nodes[i];
        if (node->gone) continue;
        count(&drawing, node);
        nodes[i] = json_pack("{s:o, s:o}", "name", remote_json_name(subtree_name(tree, i)), "stat",
                             node->known ? remote_json_stat(&node->stat) : json_null());
        if (node->error || (node->known && node->stat.children && !node->count)) continue;
        json_t *children = json_array();
        for (size_t j = 0; j < node->count; j++)
            if (nodes[node->first + j]) json_array_append_new(children, nodes[node->first + j]);
        json_object_set_new(nodes[i], "children", children);
    }
    print_json(json_pack("{s:o, s:I, s:I, s:I, s:o}", "path", remote_json_name(tree->path), "nodes",
                         (json_int_t)drawing.nodes, "ephemeral", (json_int_t)drawing.ephemeral,
                         "bytes", (json_int_t)drawing.bytes, "tree", nodes[0]));
    free(nodes);
}

int tree_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options, parse, "[PATH]", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    struct subtree tree = {0};
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = remote_connect(remote);
    if (!status)
        status = subtree_read(&tree, remote, request.path ? request.path : "/", request.depth);
    if (!status) (remote->json ? print_as_json : print_text)(&tree);
    if (!status) status = subtree_report(&tree, remote);
    subtree_close(&tree);
    return status;
}
