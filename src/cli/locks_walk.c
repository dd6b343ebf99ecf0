#include <stdlib.h>

#include "base/assert.h"
#include "cli/locks.h"
#include "cli/pipeline.h"
#include "recipe/contend.h"
#include "recipe/note.h"

static char *copy(const char *text) {
    char *result = strdup(text);
    cv_assert(result);
    return result;
}

/* ---- A page of locks ---- */

struct looking {
    struct locks_row *rows;
    size_t count;
    size_t *first; /* of a row's nodes, among all */
    char *path;
};

/* How many of the first may hold it: one that is exclusive, or a run of shared ones or slots. */
static size_t may_hold(const struct contender *all, size_t count) {
    size_t run = count > 0;
    if (count && all[0].kind != CONTEND_EXCLUSIVE)
        while (run < count && run < LOCKS_HOLDERS_MAX && all[run].kind == all[0].kind) run++;
    return run;
}

static bool ask_children(void *arg, size_t index, struct cv_op *op) {
    struct looking *looking = arg;
    if (index >= looking->count) return false;
    free(looking->path);
    looking->path = locks_path(looking->rows[index].name);
    *op = cv_op_children(looking->path);
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void take_inner(struct locks_row *row, const struct cv_result *result) {
    struct contender parsed;
    row->inner = calloc(result->name_count + 1, sizeof *row->inner);
    cv_assert(row->inner);
    for (size_t i = 0; i < result->name_count; i++)
        if (!contend_parse(&parsed, result->names[i]))
            row->inner[row->inner_count++] = copy(result->names[i]);
    qsort(row->inner, row->inner_count, sizeof *row->inner, by_name);
}

static void take_children(void *arg, size_t index, const struct cv_result *result) {
    struct locks_row *row = &((struct looking *)arg)->rows[index];
    row->error = result->error;
    if (result->error) return;
    struct contender *all = calloc(result->name_count + 1, sizeof *all);
    cv_assert(all);
    row->contenders = contend_list(all, result->names, result->name_count);
    row->node_count = may_hold(all, row->contenders);
    row->nodes = calloc(row->node_count + 1, sizeof *row->nodes);
    row->holders = calloc(row->node_count + 1, sizeof *row->holders);
    cv_assert(row->nodes && row->holders);
    for (size_t i = 0; i < row->node_count; i++) row->nodes[i] = copy(all[i].name);
    free(all);
    take_inner(row, result);
}

/* The row that a node of all rows is in. */
static struct locks_row *row_of(const struct looking *looking, size_t *index) {
    size_t low = 0, high = looking->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (looking->first[middle] <= *index)
            low = middle;
        else
            high = middle;
    }
    *index -= looking->first[low];
    return &looking->rows[low];
}

static bool ask_node(void *arg, size_t index, struct cv_op *op) {
    struct looking *looking = arg;
    if (index >= looking->first[looking->count]) return false;
    struct locks_row *row = row_of(looking, &index);
    free(looking->path);
    cv_assert(asprintf(&looking->path, NAME_LOCKS "/%s/%s", row->name, row->nodes[index]) > 0);
    *op = cv_op_get(looking->path);
    return true;
}

static void take_node(void *arg, size_t index, const struct cv_result *result) {
    struct locks_row *row = row_of(arg, &index);
    struct contender parsed;
    struct note note;
    if (result->error || !contend_parse(&parsed, row->nodes[index])) return;
    note_read(&note, result->data, result->data ? result->size : 0);
    int32_t slots = note.slots > 0 ? note.slots : 1;
    bool holds = parsed.kind != CONTEND_SLOT || index < (size_t)slots || note.held;
    if (!holds) return;
    row->holders[row->holder_count++] =
        (struct cv_contender){.node = copy(row->nodes[index]),
                              .label = copy(note.label),
                              .host = copy(note.host),
                              .pid = note.pid,
                              .session = result->stat.ephemeral_owner,
                              .token = note.token ? note.token : result->stat.czxid,
                              .since = note.since ? note.since : result->stat.ctime,
                              .held_since = note.held ? note.held : result->stat.ctime,
                              .kind = parsed.kind == CONTEND_SHARED ? CV_SHARED : CV_EXCLUSIVE,
                              .slots = slots,
                              .holds = true};
}

/* With a bounded number of requests under way.  0, or the exit code. */
static int look(struct remote *remote, char *const *names, size_t count, struct locks_row **rows) {
    struct looking looking = {.count = count};
    struct pipeline children = {ask_children, take_children, &looking, true};
    struct pipeline nodes = {ask_node, take_node, &looking, true};
    *rows = looking.rows = calloc(count + 1, sizeof *looking.rows);
    looking.first = calloc(count + 1, sizeof *looking.first);
    cv_assert(looking.rows && looking.first);
    for (size_t i = 0; i < count; i++) looking.rows[i].name = names[i];
    int error = pipeline_run(remote, &children);
    for (size_t i = 0; i < count; i++)
        looking.first[i + 1] = looking.first[i] + looking.rows[i].node_count;
    if (!error && looking.first[count]) error = pipeline_run(remote, &nodes);
    for (size_t i = 0; i < count; i++) {
        struct locks_row *row = &looking.rows[i];
        if (row->contenders > row->holder_count) row->waiting = row->contenders - row->holder_count;
        if (!error && row->error != CV_NO_NODE && row->error != CV_NO_AUTH) error = row->error;
    }
    free(looking.first);
    free(looking.path);
    return error ? remote_fail(remote, error, NAME_LOCKS) : 0;
}

static void rows_free(struct locks_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < rows[i].holder_count; j++) {
            free((char *)rows[i].holders[j].node);
            free((char *)rows[i].holders[j].label);
            free((char *)rows[i].holders[j].host);
        }
        for (size_t j = 0; j < rows[i].node_count; j++) free(rows[i].nodes[j]);
        for (size_t j = 0; j < rows[i].inner_count; j++) free(rows[i].inner[j]);
        free(rows[i].inner);
        free(rows[i].holders);
        free(rows[i].nodes);
    }
    free(rows);
}

/* ---- All of them ---- */

/* The order of names: that of their parts, one after the other. */
static int compare(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    unsigned char one = *a == '/' ? 1 : (unsigned char)*a,
                  other = *b == '/' ? 1 : (unsigned char)*b;
    return one - other;
}

static bool is_inside(const char *name, const char *folder) {
    size_t size = strlen(folder);
    return strncmp(name, folder, size) == 0 && name[size] == '/';
}

static int tell_level(const struct locks_walk *walk, const char *folder, const char *const *names,
                      size_t count);

static int tell(const struct locks_walk *walk, const struct locks_row *row) {
    bool is_lock = row->contenders || !row->inner_count; /* not only a folder */
    bool due = !walk->after || compare(row->name, walk->after) > 0;
    int status = 0;
    if (row->error == CV_NO_NODE) return 0;
    if (is_lock && due) status = walk->each(row, walk->arg);
    if (!status && row->inner_count)
        status = tell_level(walk, row->name, (const char *const *)row->inner, row->inner_count);
    return status;
}

static int tell_page(const struct locks_walk *walk, char *const *names, size_t count) {
    struct locks_row *rows;
    int status = look(walk->remote, names, count, &rows);
    for (size_t i = 0; i < count && !status; i++) status = tell(walk, &rows[i]);
    rows_free(rows, count);
    return status;
}

/* Whether it, or what is inside of it, has to be told. */
static bool is_wanted(const struct locks_walk *walk, const char *name) {
    if (strlen(name) > NAME_MAX_BYTES) return false; /* nobody can ask for it */
    return !walk->after || compare(name, walk->after) >= 0 || is_inside(walk->after, name);
}

static int tell_level(const struct locks_walk *walk, const char *folder, const char *const *names,
                      size_t count) {
    size_t page = walk->page ? walk->page : LOCKS_PAGE, wanted = 0;
    char **full = calloc(page, sizeof *full);
    int status = 0;
    cv_assert(full);
    for (size_t i = 0; i < count && !status; i++) {
        char *name;
        cv_assert(asprintf(&name, "%s%s%s", folder, *folder ? "/" : "", names[i]) >= 0);
        if (is_wanted(walk, name))
            full[wanted++] = name;
        else
            free(name);
        if (wanted < page && i + 1 < count) continue;
        status = tell_page(walk, full, wanted);
        while (wanted) free(full[--wanted]);
    }
    free(full);
    return status;
}

int locks_walk(const struct locks_walk *walk) {
    struct cv_op op = cv_op_children(NAME_LOCKS);
    struct cv_result *top = NULL;
    int error = remote_call(walk->remote, &op, &top);
    if (error) cv_result_free(top);
    if (error == CV_NO_NODE) return 0; /* no lock was ever taken */
    if (error) return remote_fail(walk->remote, error, NAME_LOCKS);
    const char **names = calloc(top->name_count + 1, sizeof *names);
    cv_assert(names);
    memcpy(names, top->names, top->name_count * sizeof *names);
    qsort(names, top->name_count, sizeof *names, by_name);
    int status = tell_level(walk, "", names, top->name_count);
    free(names);
    cv_result_free(top);
    return status;
}
