/* Several locks at once, and who is at a lock. */
#include <stdlib.h>
#include <string.h>

#include "client/recipe/lock.h"
#include "client/recipe/recipe.h"
#include "recipe/election.h"
#include "recipe/roll.h"

/* ---- Several ---- */

static int by_path(const void *a, const void *b) {
    struct cv_lock *const *one = a, *const *other = b;
    return strcmp(cv_lock_path(*one), cv_lock_path(*other));
}

static struct cv_lock **sorted(struct cv_lock *const *locks, size_t count) {
    struct cv_lock **all = malloc(count * sizeof *all + 1);
    if (!all) return NULL;
    if (count) memcpy(all, locks, count * sizeof *all);
    if (count) qsort(all, count, sizeof *all, by_path);
    return all;
}

static int32_t time_left(int64_t until) {
    if (until == CV_FOREVER) return CV_FOREVER;
    int64_t left = until - cv_now();
    return left > 0 ? (int32_t)left : 0;
}

static int acquire_sorted(struct cv_lock **all, size_t count, int32_t timeout) {
    int64_t until = recipe_until(timeout);
    int error = CV_OK;
    size_t held = 0;
    for (size_t i = 1; i < count; i++)
        if (!by_path(&all[i - 1], &all[i])) return CV_BAD_ARGUMENTS; /* it would wait for itself */
    while (held < count && !error) {
        error = cv_lock_acquire(all[held], time_left(until));
        if (!error) held++;
    }
    if (error == CV_BUSY && timeout != 0) error = CV_OPERATION_TIMEOUT;
    /* those of the beginning may be lost by now */
    for (size_t i = 0; i < held && !error; i++)
        if (cv_lock_state(all[i]) != CV_HELD) error = CV_LOST;
    while (error && held > 0) (void)cv_lock_release(all[--held]);
    return error;
}

int cv_locks_acquire(struct cv_lock *const *locks, size_t count, int32_t timeout) {
    struct cv_lock **all = sorted(locks, count);
    if (!all) return CV_NO_MEMORY;
    int error = acquire_sorted(all, count, timeout);
    free(all);
    return error;
}

int cv_locks_release(struct cv_lock *const *locks, size_t count) {
    int first = CV_OK;
    for (size_t i = count; i > 0; i--) {
        int error = cv_lock_release(locks[i - 1]);
        if (!first) first = error;
    }
    return first;
}

/* ---- Contenders ---- */

enum { AT_ONCE = 256 }; /* reads in one request */

struct entry {
    char *path;
    int error;
};

struct roll {
    struct cv_client *client;
    struct entry *entry;
    struct roll_entry *about; /* each of them */
    size_t count;
    struct roll_leader leader; /* of an election */
};

static void take_entry(struct roll *roll, size_t i, const struct cv_result *r) {
    struct roll_entry *about = &roll->about[i];
    roll->entry[i].error = r->error;
    if (r->error) return;
    note_read(&about->note, r->data, r->data ? r->size : 0);
    about->session = r->stat.ephemeral_owner;
    about->czxid = r->stat.czxid;
    about->ctime = r->stat.ctime;
}

static int read_one(struct roll *roll, size_t i) {
    struct cv_result *r;
    int error = cv_get(roll->client, roll->entry[i].path, &r);
    roll->entry[i].error = error;
    if (r) take_entry(roll, i, r);
    cv_result_free(r);
    return error == CV_NO_NODE ? CV_OK : error;
}

/* Some in one request.  Servers before 3.6 read one at a time only. */
static int read_some(struct roll *roll, size_t first, size_t count) {
    struct cv_op ops[AT_ONCE];
    struct cv_result *r;
    for (size_t i = 0; i < count; i++) ops[i] = cv_op_get(roll->entry[first + i].path);
    struct cv_op multi = cv_op_multi(ops, count);
    int error = cv_call(roll->client, &multi, &r);
    bool complete = r && r->result_count == count;
    for (size_t i = 0; i < count && complete; i++) take_entry(roll, first + i, &r->results[i]);
    cv_result_free(r);
    if (complete) return CV_OK;
    if (error != CV_UNIMPLEMENTED) return error ? error : CV_MARSHALLING_ERROR;
    for (size_t i = 0; i < count; i++)
        if ((error = read_one(roll, first + i))) return error;
    return CV_OK;
}

static int read_entries(struct roll *roll) {
    int error = CV_OK;
    for (size_t i = 0; i < roll->count && !error; i += AT_ONCE)
        error = read_some(roll, i, roll->count - i < AT_ONCE ? roll->count - i : AT_ONCE);
    for (size_t i = 0; i < roll->count && !error; i++)
        if (roll->entry[i].error != CV_NO_NODE) error = roll->entry[i].error;
    return error;
}

static bool has_paths(const struct roll *roll) {
    for (size_t i = 0; i < roll->count; i++)
        if (!roll->entry[i].path) return false;
    return true;
}

static int read_leader(struct roll *roll, const char *path) {
    struct cv_result *leader;
    char *at = recipe_child(path, ELECTION_LEADER);
    int error = at ? cv_get(roll->client, at, &leader) : CV_NO_MEMORY;
    if (at && !error) {
        note_read(&roll->leader.note, leader->data, leader->data ? leader->size : 0);
        roll->leader.czxid = leader->stat.czxid;
        roll->leader.ctime = leader->stat.ctime;
    }
    if (at) cv_result_free(leader);
    free(at);
    return error == CV_NO_NODE ? CV_OK : error;
}

/* Fills in the paths. */
static int list(struct roll *roll, const char *path, const struct cv_result *names) {
    roll->entry = calloc(names->name_count + 1, sizeof *roll->entry);
    roll->about = calloc(names->name_count + 1, sizeof *roll->about);
    if (!roll->entry || !roll->about ||
        !roll_list(roll->about, names->names, names->name_count, &roll->count))
        return CV_NO_MEMORY;
    for (size_t i = 0; i < roll->count; i++)
        roll->entry[i].path = recipe_child(path, roll->about[i].name);
    if (!has_paths(roll)) return CV_NO_MEMORY;
    return roll->count && roll->about->is_candidate ? read_leader(roll, path) : CV_OK;
}

/* Those that have gone meanwhile are not there. */
static void leave_out_lost(struct roll *roll) {
    size_t left = 0;
    for (size_t i = 0; i < roll->count; i++)
        if (!roll->entry[i].error) roll->about[left++] = roll->about[i];
    for (size_t i = 0; i < roll->count; i++) free(roll->entry[i].path);
    roll->count = left;
}

/* ---- What the caller gets: one block, with the texts behind the array ---- */

static const char *put_text(char **at, const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

static struct cv_contender describe(const struct roll_entry *from, char **text) {
    return (struct cv_contender){.node = put_text(text, from->name),
                                 .label = put_text(text, from->note.label),
                                 .host = put_text(text, from->note.host),
                                 .pid = from->note.pid,
                                 .session = from->session,
                                 .token = from->token,
                                 .since = from->since,
                                 .held_since = from->held_since,
                                 .kind = from->kind == CONTEND_SHARED ? CV_SHARED : CV_EXCLUSIVE,
                                 .slots = from->slots,
                                 .priority = from->is_candidate && from->priority
                                                 ? from->priority /* that of the name counts */
                                                 : from->note.priority,
                                 .holds = from->holds,
                                 .held_known = from->held_known,
                                 .outer = put_text(text, from->note.outer)};
}

static int describe_all(const struct roll *roll, struct cv_contender **contenders, size_t *count) {
    size_t size = 1;
    for (size_t i = 0; i < roll->count; i++)
        size += sizeof **contenders + strlen(roll->about[i].name) +
                strlen(roll->about[i].note.label) + strlen(roll->about[i].note.host) +
                strlen(roll->about[i].note.outer) + 4;
    *contenders = malloc(size);
    if (!*contenders) return CV_NO_MEMORY;
    char *text = (char *)(*contenders + roll->count);
    for (; *count < roll->count; ++*count)
        (*contenders)[*count] = describe(&roll->about[*count], &text);
    return CV_OK;
}

int cv_lock_contenders(struct cv_client *client, const char *path, struct cv_contender **contenders,
                       size_t *count) {
    struct cv_result *names;
    struct roll roll = {.client = client};
    *contenders = NULL;
    *count = 0;
    int error = cv_children(client, path, &names);
    if (!error) {
        error = list(&roll, path, names);
        if (!error) error = read_entries(&roll);
        leave_out_lost(&roll);
        roll_judge(roll.about, roll.count, &roll.leader);
        if (!error) error = describe_all(&roll, contenders, count);
    }
    cv_result_free(names);
    free(roll.entry);
    free(roll.about);
    return error;
}
