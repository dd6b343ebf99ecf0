/* A queue of work.
 *
 *     PATH/entries/entry-PRIORITY-SEQUENCE   what is to be done
 *     PATH/taken/NAME                        ephemeral: somebody does that entry
 *     PATH/takers                            a lock: only its holder looks for an entry
 *
 * An entry is offered while nobody has taken it, so again when its taker dies.  Takers queue at the
 * lock, so a new entry wakes one of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/recipe/recipe.h"
#include "recipe/sequence.h"

struct cv_work {
    struct cv_client *client;
    char *entry, *taken;
    bool lost;                /* whether it is done is not known */
    struct cv_result *result; /* the entry's */
};

struct queue {
    struct cv_client *client;
    char *entries, *taken, *takers;
};

static void close_queue(struct queue *q) {
    free(q->entries);
    free(q->taken);
    free(q->takers);
}

static int open_queue(struct queue *q, struct cv_client *client, const char *path) {
    *q = (struct queue){.client = client};
    if (!path || path[0] != '/' || !path[1]) return CV_BAD_ARGUMENTS;
    q->entries = recipe_child(path, "entries");
    q->taken = recipe_child(path, "taken");
    q->takers = recipe_child(path, "takers");
    return q->entries && q->taken && q->takers ? CV_OK : CV_NO_MEMORY;
}

/* A put whose answer was lost is found again by the random digits in its name. */
static int find_put(struct queue *q, const char *prefix, bool *found) {
    struct cv_result *r;
    struct cv_op sync = cv_op_sync(q->entries);
    int error = cv_call(q->client, &sync, NULL);
    *found = false;
    if (error && error != CV_NO_NODE) return error;
    error = cv_children(q->client, q->entries, &r);
    for (size_t i = 0; r && i < r->name_count; i++)
        *found |= strncmp(r->names[i], prefix, strlen(prefix)) == 0;
    cv_result_free(r);
    return error == CV_NO_NODE ? CV_OK : error;
}

int cv_work_put(struct cv_client *client, const char *path, const void *data, size_t size,
                int32_t priority) {
    struct queue q;
    char guid[GUID_SIZE + 1], name[GUID_SIZE + 48];
    bool found = false, lost = false;
    int error = open_queue(&q, client, path);
    recipe_guid(guid);
    snprintf(name, sizeof name, "entry%d-%s-", priority, guid);
    char *entry = error ? NULL : recipe_child(q.entries, name);
    if (!error && !entry) error = CV_NO_MEMORY;
    while (!error && !found) {
        error = cv_create(client, entry, data, size, CV_PERSISTENT | CV_SEQUENTIAL, NULL, 0);
        if (!error) break;
        if (error == CV_NO_NODE)
            error = cv_create_all(client, q.entries, CV_PERSISTENT);
        else if (recipe_is_lost(error) && error != CV_NO_SERVER) {
            lost = true;
            error = find_put(&q, name, &found);
        }
        if (recipe_is_lost(error)) break; /* it is not known whether it is in the queue */
    }
    free(entry);
    close_queue(&q);
    return recipe_after_loss(lost, error);
}

/* ---- Taking ---- */

struct work_name {
    const char *name;
    int32_t priority, sequence, rank;
};

static bool parse_name(struct work_name *to, const char *name) {
    int32_t priority;
    int read = 0;
    if (sscanf(name, "entry%d-%n", &priority, &read) != 1 || !read) return false;
    const char *dash = strchr(name + read, '-');
    if (!dash || dash - (name + read) != GUID_SIZE) return false;
    *to = (struct work_name){.name = name, .priority = priority};
    return sequence_parse(dash + 1, &to->sequence);
}

static int by_priority(const void *a, const void *b) {
    const struct work_name *one = a, *other = b;
    if (one->priority != other->priority) return one->priority < other->priority ? -1 : 1;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return strcmp(one->name, other->name);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A create whose answer was lost is ours if the node is our session's: it was not there before. */
static int create_taken(struct cv_client *client, const char *path) {
    struct cv_stat stat;
    bool again = false;
    int error;
    while ((error = cv_create(client, path, NULL, 0, CV_EPHEMERAL, NULL, 0)) == CV_CONNECTION_LOSS)
        again = true;
    if (error == CV_NODE_EXISTS && again && cv_exists(client, path, &stat) == CV_OK &&
        stat.ephemeral_owner == cv_session_id(client))
        return CV_OK;
    return recipe_after_loss(again, error);
}

static int delete_taken(struct cv_client *client, const char *path) {
    bool lost = false;
    int error;
    while (recipe_is_lost(error = cv_delete(client, path, -1)) && error != CV_NO_SERVER)
        lost = true;
    return recipe_after_loss(lost, error);
}

/* CV_OK and `*work`, or CV_NOTHING if the entry is another's. */
static int claim(struct queue *q, const char *name, struct cv_work **work) {
    struct cv_work *w = calloc(1, sizeof *w);
    if (!w) return CV_NO_MEMORY;
    *w = (struct cv_work){.client = q->client,
                          .entry = recipe_child(q->entries, name),
                          .taken = recipe_child(q->taken, name)};
    int error = w->entry && w->taken ? CV_OK : CV_NO_MEMORY;
    if (!error) error = create_taken(q->client, w->taken);
    if (!error) {
        error = cv_get(q->client, w->entry, &w->result);
        if (error) (void)delete_taken(q->client, w->taken);
    }
    if (!error) {
        *work = w;
        return CV_OK;
    }
    free(w->entry);
    free(w->taken);
    free(w);
    /* done by now, or taken just now */
    return error == CV_NO_NODE || error == CV_NODE_EXISTS ? CV_NOTHING : error;
}

/* The first entry that is free. */
static int claim_first(struct queue *q, const struct cv_result *entries, struct cv_result *taken,
                       struct cv_work **work) {
    struct work_name *all = calloc(entries->name_count + 1, sizeof *all);
    const char **names = calloc(taken->name_count + 1, sizeof *names);
    size_t count = 0;
    int error = all && names ? CV_NOTHING : CV_NO_MEMORY;
    for (size_t i = 0; all && i < entries->name_count; i++)
        if (parse_name(&all[count], entries->names[i])) count++;
    for (size_t i = 0; i < count; i++)
        all[i].rank = sequence_rank(all[i].sequence, all[0].sequence);
    if (count) qsort(all, count, sizeof *all, by_priority);
    if (names && taken->name_count) {
        memcpy(names, taken->names, taken->name_count * sizeof *names);
        qsort(names, taken->name_count, sizeof *names, by_text);
    }
    for (size_t i = 0; i < count && error == CV_NOTHING; i++)
        if (!bsearch(&all[i].name, names, taken->name_count, sizeof *names, by_text))
            error = claim(q, all[i].name, work);
    free(all);
    free(names);
    return error;
}

static int make_queue(struct queue *q) {
    int error = cv_create_all(q->client, q->entries, CV_PERSISTENT);
    return error ? error : cv_create_all(q->client, q->taken, CV_PERSISTENT);
}

/* With the lock: looks, and waits for a change. */
static int look_and_wait(struct queue *q, struct recipe_signal *signal, struct cv_work **work,
                         int64_t until) {
    struct cv_result *entries = NULL, *taken = NULL;
    int error = recipe_call_watching(q->client, signal, cv_op_children(q->entries), &entries);
    if (!error) error = recipe_call_watching(q->client, signal, cv_op_children(q->taken), &taken);
    if (error == CV_NO_NODE)
        error = make_queue(q);
    else if (!error)
        error = claim_first(q, entries, taken, work);
    cv_result_free(entries);
    cv_result_free(taken);
    return error == CV_NOTHING ? recipe_signal_wait(signal, until) : error;
}

static int take(struct queue *q, struct cv_work **work, int64_t until) {
    struct recipe_signal *signal = recipe_signal_new(q->client);
    int error = signal ? CV_OK : CV_NO_MEMORY;
    while (!error && !*work) error = look_and_wait(q, signal, work, until);
    recipe_signal_free(signal);
    return error;
}

int cv_work_take(struct cv_work **work, struct cv_client *client, const char *path,
                 int32_t timeout) {
    struct queue q;
    struct cv_lock *lock = NULL;
    int64_t until = recipe_until(timeout);
    *work = NULL;
    int error = open_queue(&q, client, path);
    if (!error) error = cv_lock_open(&lock, client, q.takers, NULL);
    if (!error) error = cv_lock_acquire(lock, timeout);
    if (!error) error = take(&q, work, until);
    cv_lock_close(lock);
    close_queue(&q);
    return error == CV_BUSY ? CV_OPERATION_TIMEOUT : error;
}

const void *cv_work_data(struct cv_work *work, size_t *size) {
    if (size) *size = work->result->size;
    return work->result->data;
}

void cv_work_free(struct cv_work *work) {
    if (!work) return;
    cv_result_free(work->result);
    free(work->entry);
    free(work->taken);
    free(work);
}

/* Whoever has no answer may ask again. */
static int end_work(struct cv_work *work, int error) {
    if (!recipe_is_lost(error)) cv_work_free(work);
    return error;
}

/* Both or neither: an entry is done only by who has taken it, which the session's own node proves.
 * If the answer is lost, the node tells whether it was served. */
int cv_work_done(struct cv_work *work) {
    struct cv_op ops[2] = {cv_op_delete(work->taken, -1), cv_op_delete(work->entry, -1)};
    struct cv_op multi = cv_op_multi(ops, 2);
    int error;
    while (recipe_is_lost(error = cv_call(work->client, &multi, NULL)) && error != CV_NO_SERVER)
        work->lost = true;
    if (error == CV_NO_NODE) error = work->lost ? CV_OK : CV_LOST;
    if (error == CV_SESSION_EXPIRED) error = CV_LOST;
    return end_work(work, recipe_after_loss(work->lost, error));
}

int cv_work_put_back(struct cv_work *work) {
    int error = delete_taken(work->client, work->taken);
    if (error == CV_NO_NODE || error == CV_SESSION_EXPIRED) error = CV_OK; /* it is free */
    return end_work(work, error);
}
