/* conclave ls: the children of a node. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "cli/client_commands.h"
#include "cli/subtree.h"

static const struct argp_option options[] = {
    {"recursive", 'R', NULL, 0, "All nodes below, with their paths", 0},
    {"long", 'l', NULL, 0, "Also version, size, number of children, owner and time", 0},
    {"watch", 'w', NULL, 0, "Go on, and print '+ NAME' and '- NAME' when that changes", 0},
    {0}};

static const char doc[] =
    "Lists the children of a node (/), in the order of their names.\v"
    "Names are printed one in a line; what a terminal would obey, and backslashes, are escaped.  "
    "With -l: version of the data, bytes, children, session (of an ephemeral node) and when the "
    "data were written.  -w goes on until the node is removed.\n\n"
    "JSON: {path, children: [NAME]}, with -l {name, stat} for each; with -R {path, nodes: [PATH]}; "
    "with -w then {added, removed} in a line for each change.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave ls /\n"
    "  conclave ls -R /conclave/locks\n"
    "  conclave ls -l --server zk1:2181,zk2:2181/app /\n"
    "  conclave ls -w /workers\n";

struct request {
    struct remote *remote;
    const char *path;
    bool recursive, details, watch;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'R': request->recursive = true; return 0;
    case 'l': request->details = true; return 0;
    case 'w': request->watch = true; return 0;
    case ARGP_KEY_ARG:
        if (request->path) return remote_usage("one node at a time, not '%s' as well", text);
        request->path = text;
        return remote_path(text);
    case ARGP_KEY_END:
        if (!request->path) request->path = "/";
        if (request->watch && (request->recursive || request->details))
            return remote_usage("-w is for the names alone; 'conclave watch -R' sees all changes");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- One node, or all below it ---- */

static void print_stat(const struct cv_stat *stat) {
    char when[32] = "-", owner[24] = "-";
    time_t seconds = (time_t)(stat->mtime / 1000);
    struct tm tm;
    if (localtime_r(&seconds, &tm)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
    if (stat->ephemeral_owner)
        snprintf(owner, sizeof owner, "0x%" PRIx64, (uint64_t)stat->ephemeral_owner);
    printf("%6" PRId32 " %8" PRId32 " %6" PRId32 " %18s  %s  ", stat->version, stat->data_length,
           stat->children, owner, when);
}

struct listing {
    bool json, details, paths;
    size_t printed;
};

static void print_node(struct subtree *tree, size_t node, void *arg) {
    struct listing *listing = arg;
    const struct subtree_node *at = &tree->nodes[node];
    if ((!listing->paths && node == 0) || at->gone) return;
    const char *name = listing->paths ? subtree_path(tree, node) : subtree_name(tree, node);
    if (listing->json) {
        json_t *item = remote_json_name(name);
        if (listing->details)
            item = json_pack("{s:o, s:o}", "name", item, "stat",
                             at->known ? remote_json_stat(&at->stat) : json_null());
        fputs(listing->printed ? ", " : "", stdout);
        json_dumpf(item, stdout, JSON_ENCODE_ANY);
        json_decref(item);
    } else {
        static const struct cv_stat unknown = {.version = -1, .children = -1, .data_length = -1};
        if (listing->details) print_stat(at->known ? &at->stat : &unknown);
        remote_put(stdout, name, strlen(name), REMOTE_NAME);
        putchar('\n');
    }
    listing->printed++;
}

static int list_nodes(struct request *request) {
    struct remote *remote = request->remote;
    struct subtree tree;
    uint32_t depth = request->recursive ? 0 : 1;
    int status = subtree_read(&tree, remote, request->path, depth);
    struct listing listing = {
        .json = remote->json, .details = request->details, .paths = request->recursive};
    if (!status && remote->json) {
        fputs("{\"path\": ", stdout);
        json_t *path = remote_json_name(request->path);
        json_dumpf(path, stdout, JSON_ENCODE_ANY);
        json_decref(path);
        fputs(request->recursive ? ", \"nodes\": [" : ", \"children\": [", stdout);
    }
    if (!status) subtree_visit(&tree, print_node, &listing);
    if (!status && remote->json) puts("]}");
    if (!status) status = subtree_report(&tree, remote);
    subtree_close(&tree);
    return status;
}

/* ---- Names alone, and how they change ---- */

struct names {
    struct cv_result *result;
    const char **sorted;
    size_t count;
};

static void names_close(struct names *names) {
    cv_result_free(names->result);
    free(names->sorted);
    *names = (struct names){0};
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void changed(enum cv_watch_type type, const char *path, void *arg) {
    (void)type, (void)path;
    *(bool *)arg = true;
}

static int read_names(struct request *request, struct names *names, bool *has_changed) {
    struct cv_op op = cv_op_children(request->path);
    if (request->watch) op.watch = changed, op.watch_arg = has_changed;
    *has_changed = false;
    int status = remote_do(request->remote, &op, &names->result);
    if (status) return status;
    names->count = names->result->name_count;
    names->sorted = malloc((names->count + 1) * sizeof *names->sorted);
    cv_assert(names->sorted);
    if (names->count)
        memcpy(names->sorted, names->result->names, names->count * sizeof *names->sorted);
    if (names->count) qsort(names->sorted, names->count, sizeof *names->sorted, by_name);
    return 0;
}

static void print_names(struct request *request, const struct names *names) {
    if (request->remote->json) {
        json_t *array = json_array();
        for (size_t i = 0; i < names->count; i++)
            json_array_append_new(array, remote_json_name(names->sorted[i]));
        remote_json_line(
            json_pack("{s:o, s:o}", "path", remote_json_name(request->path), "children", array));
        return;
    }
    for (size_t i = 0; i < names->count; i++) {
        remote_put(stdout, names->sorted[i], strlen(names->sorted[i]), REMOTE_NAME);
        putchar('\n');
    }
}

struct difference {
    bool json;
    json_t *added, *removed;
};

static void differ(struct difference *difference, const char *name, bool added) {
    if (difference->json) {
        json_array_append_new(added ? difference->added : difference->removed,
                              remote_json_name(name));
        return;
    }
    fputs(added ? "+ " : "- ", stdout);
    remote_put(stdout, name, strlen(name), REMOTE_NAME);
    putchar('\n');
}

static void print_difference(struct remote *remote, const struct names *old,
                             const struct names *new) {
    struct difference difference = {
        .json = remote->json, .added = json_array(), .removed = json_array()};
    for (size_t i = 0, j = 0; i < old->count || j < new->count;) {
        int order = i == old->count   ? 1
                    : j == new->count ? -1
                                      : strcmp(old->sorted[i], new->sorted[j]);
        if (order < 0)
            differ(&difference, old->sorted[i++], false);
        else if (order > 0)
            differ(&difference, new->sorted[j++], true);
        else
            i++, j++;
    }
    if (remote->json && (json_array_size(difference.added) || json_array_size(difference.removed)))
        remote_json_line(
            json_pack("{s:O, s:O}", "added", difference.added, "removed", difference.removed));
    json_decref(difference.added);
    json_decref(difference.removed);
}

static int follow(struct request *request, struct names *old, bool *has_changed) {
    remote_catch_signals(request->remote);
    for (;;) {
        struct names new = {0};
        int signal = 0;
        fflush(stdout);
        while (!*has_changed && !signal) signal = remote_wait(request->remote, CV_FOREVER);
        int status = signal ? 128 + signal : read_names(request, &new, has_changed);
        if (status) return status;
        print_difference(request->remote, old, &new);
        names_close(old);
        *old = new;
    }
}

static int list_names(struct request *request) {
    struct names names = {0};
    bool has_changed;
    int status = read_names(request, &names, &has_changed);
    if (!status) print_names(request, &names);
    if (!status && request->watch) status = follow(request, &names, &has_changed);
    if (request->watch) remote_unwatch(request->remote, request->path, changed, &has_changed);
    names_close(&names);
    return status;
}

int ls_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options, parse, "[PATH]", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = remote_connect(remote);
    if (status) return status;
    return request.details || request.recursive ? list_nodes(&request) : list_names(&request);
}
