/* conclave multi: several changes, all or none. */
#include <stdlib.h>

#include "base/bytes.h"
#include "base/parse.h"
#include "cli/client_commands.h"
#include "cli/content.h"
#include "cli/words.h"

static const char doc[] =
    "Makes several changes in one transaction: all of them, or none.\v"
    "FILE (-: standard input) has one in each line:\n\n"
    "  create [-e] [-s] [-c] PATH [DATA]   a node; ephemeral, sequential, container\n"
    "  set [-v VERSION] PATH DATA          its data\n"
    "  rm [-v VERSION] PATH                it goes away\n"
    "  check [-v VERSION] PATH             it exists (and has this version)\n\n"
    "Words are parted by blanks.  'Data in single quotes' are taken as they are; in \"double "
    "quotes\", and without, \\n \\t \\r \\0 \\\\ \\\" \\' \\xNN and '\\ ' are one character.  # "
    "begins a comment.  If one fails, the line is named, and nothing was changed.\n\n"
    "JSON: {results: [{line, path, stat}]}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave multi changes.txt\n"
    "  printf 'check -v 3 /app/config\\nset /app/state \"two words\"\\n' | conclave multi -\n";

struct request {
    struct remote *remote;
    const char *file;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case ARGP_KEY_ARG:
        if (request->file) return remote_usage("one file at a time, not '%s' as well", text);
        request->file = text;
        return 0;
    case ARGP_KEY_END:
        return request->file ? 0 : remote_usage("which FILE has the changes? -: standard input");
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Lines ---- */

struct change {
    struct cv_op op;
    int line;
};

struct changes {
    struct change *at;
    size_t count, room;
};

static const struct kind {
    const char *name, *flags;
    enum cv_op_type type;
    int most; /* words after the flags */
} kinds[] = {
    {"create", "esc", CV_OP_CREATE, 2},
    {"set", "v", CV_OP_SET, 2},
    {"rm", "v", CV_OP_DELETE, 1},
    {"check", "v", CV_OP_CHECK, 1},
};

static const struct kind *find_kind(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

/* One flag, and its value; returns how many words it took, 0: it means nothing. */
static int take_flag(const struct kind *kind, struct words *words, int at, struct cv_op *op) {
    const char *flag = words->at[at];
    uint64_t version;
    if (!flag[1] || flag[2] || !strchr(kind->flags, flag[1])) return 0;
    switch (flag[1]) {
    case 'e': op->flags |= CV_EPHEMERAL; return 1;
    case 's': op->flags |= CV_SEQUENTIAL; return 1;
    case 'c': op->flags |= CV_CONTAINER; return 1;
    default:
        if (at + 1 == words->count || parse_u64(words->at[at + 1], &version) != 0 ||
            version > INT32_MAX)
            return 0;
        op->version = (int32_t)version;
        return 2;
    }
}

static const char *path_problem(struct words *words, int at, const struct cv_op *op) {
    char *last = &words->at[at][words->size[at] - (words->size[at] > 1)];
    bool bare = op->flags & CV_SEQUENTIAL && *last == '/'; /* its name is a number alone */
    if (bare) *last = 0;
    const char *problem = remote_path_problem(words->at[at]);
    if (bare) *last = '/';
    return problem;
}

/* 0, or EXIT_USAGE after one line. */
static int understand(struct words *words, int line, struct cv_op *op) {
    const struct kind *kind = find_kind(words->at[0]);
    if (!kind)
        return remote_say(EXIT_USAGE, "line %d: '%s' is neither create, set, rm nor check", line,
                          words->at[0]);
    *op = (struct cv_op){.type = kind->type, .version = -1, .data = ""};
    int at = 1;
    while (at < words->count && words->at[at][0] == '-') {
        int taken = take_flag(kind, words, at, op);
        if (!taken)
            return remote_say(EXIT_USAGE, "line %d: '%s' is no flag of %s, or lacks its number",
                              line, words->at[at], kind->name);
        at += taken;
    }
    int left = words->count - at;
    if (left < 1 || left > kind->most || (kind->type == CV_OP_SET && left != 2))
        return remote_say(EXIT_USAGE, "line %d: %s needs a PATH%s, and nothing else", line,
                          kind->name, kind->type == CV_OP_SET ? " and DATA" : "");
    op->path = words->at[at];
    if (left == 2) op->data = words->at[at + 1], op->size = words->size[at + 1];
    const char *problem = path_problem(words, at, op);
    return problem ? remote_say(EXIT_USAGE, "line %d: '%s': %s", line, op->path, problem) : 0;
}

static int read_changes(struct changes *changes, char *text) {
    char *rest = text;
    int number = 0;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        struct words words;
        number++;
        const char *problem = words_part(&words, line);
        if (problem) return remote_say(EXIT_USAGE, "line %d: %s", number, problem);
        if (!words.count) continue;
        changes->at = grown(changes->at, &changes->room, changes->count + 1, sizeof *changes->at);
        struct change *change = &changes->at[changes->count++];
        change->line = number;
        if (understand(&words, number, &change->op) != 0) return EXIT_USAGE;
    }
    return 0;
}

/* ---- The transaction ---- */

/* The one that failed: those before it would have succeeded, those after it were not tried. */
static int explain(struct remote *remote, const struct changes *changes,
                   const struct cv_result *result, int error) {
    enum { NOT_TRIED = -2 };
    for (size_t i = 0; result && i < result->result_count && i < changes->count; i++) {
        int own = result->results[i].error;
        if (own == CV_OK || own == NOT_TRIED) continue;
        char where[64];
        snprintf(where, sizeof where, "nothing was changed: line %d", changes->at[i].line);
        char *what = NULL;
        if (asprintf(&what, "%s: %s", where, changes->at[i].op.path) < 0) what = NULL;
        int status = remote_fail(remote, own, what ? what : where);
        free(what);
        return status;
    }
    return remote_fail(remote, error, NULL);
}

static void print(const struct remote *remote, const struct changes *changes,
                  const struct cv_result *result) {
    json_t *array = json_array();
    for (size_t i = 0; i < result->result_count && i < changes->count; i++) {
        const struct cv_result *own = &result->results[i];
        const char *path = own->path ? own->path : changes->at[i].op.path;
        if (remote->json) {
            json_array_append_new(
                array, json_pack("{s:i, s:o, s:o}", "line", changes->at[i].line, "path",
                                 remote_json_name(path), "stat",
                                 own->has_stat ? remote_json_stat(&own->stat) : json_null()));
        } else if (changes->at[i].op.type == CV_OP_CREATE) {
            remote_put(stdout, path, strlen(path), REMOTE_NAME);
            putchar('\n');
        }
    }
    if (remote->json) print_json(json_pack("{s:O}", "results", array));
    json_decref(array);
}

static int perform(struct remote *remote, const struct changes *changes) {
    struct cv_result *result = NULL;
    struct cv_op *ops = calloc(changes->count, sizeof *ops);
    cv_assert(ops);
    for (size_t i = 0; i < changes->count; i++) ops[i] = changes->at[i].op;
    struct cv_op multi = cv_op_multi(ops, changes->count);
    int error = cv_call(remote->client, &multi, &result), status = 0;
    if (error)
        status = explain(remote, changes, result, error);
    else
        print(remote, changes, result);
    cv_result_free(result);
    free(ops);
    return status;
}

int multi_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {NULL, parse, "FILE", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    struct changes changes = {0};
    struct content content = {0};
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    content.file = request.file;
    status = content_read(&content);
    if (!status) {
        *bytes_reserve(&content.read, 1) = 0;
        status = read_changes(&changes, (char *)content.read.at);
    }
    if (!status && !changes.count) status = remote_say(EXIT_USAGE, "%s: no change", request.file);
    if (!status) status = remote_connect(remote);
    if (!status) status = perform(remote, &changes);
    free(changes.at);
    content_close(&content);
    return status;
}
