/* A lock's requests, and what comes of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/recipe/lock.h"
#include "client/recipe/recipe.h"
#include "recipe/name.h"

char *lock_child(const struct cv_lock *lock, const char *name) {
    return recipe_child(lock->path, name);
}

static void set_text(char **text, char *value) {
    free(*text);
    *text = value;
}

static enum lock_result result_of(int error) {
    if (!error) return STEP_OK;
    if (recipe_is_lost(error)) return STEP_LOSS;
    return error == CV_NO_NODE ? STEP_NO_NODE : STEP_FAILED;
}

/* An answer without more to it.  The end of the session is no answer. */
void lock_answer(struct cv_lock *lock, enum lock_event event, int error) {
    struct lock_input in = {.event = event, .result = result_of(error)};
    if (recipe_is_over(error)) {
        lock->error = error;
        in.event = LOCK_EXPIRED;
    } else if (in.result == STEP_FAILED) {
        lock->error = error;
    }
    lock_feed_input(lock, &in);
}

/* ---- Starting: a request has an answer for certain, and keeps the lock until then ---- */

static void start(struct cv_lock *lock, const struct cv_op *op, cv_done_fn *done, void *arg,
                  enum lock_event event) {
    int error = cv_start(lock->client, op, done, arg);
    if (!error)
        lock->references++;
    else /* it was not even started: to try again would be in vain */
        lock_answer(lock, event, recipe_is_lost(error) ? CV_SYSTEM_ERROR : error);
}

static struct cv_lock *begin(void *arg) {
    struct cv_lock *lock = arg;
    client_lock(lock->client);
    return lock;
}

static void finish(struct cv_lock *lock) {
    struct cv_client *client = lock->client;
    lock_unreference(lock);
    client_wake(client);
    client_unlock(client);
}

/* ---- Joining ---- */

static void on_created(const struct cv_result *r, void *arg) {
    struct cv_lock *lock = begin(arg);
    struct contender made;
    int error = r->error;
    bool is_ours = !error && contend_parse(&made, recipe_name(r->path));
    if (!error && !is_ours) error = CV_MARSHALLING_ERROR;
    if (is_ours && made.kind == CONTEND_UPGRADE) {
        set_text(&lock->mark, strdup(r->path));
    } else if (is_ours) {
        set_text(&lock->node, strdup(r->path));
        lock->token = r->has_stat ? r->stat.czxid : 0;
    }
    if (error) {
        lock_answer(lock, LOCK_CREATED, error);
    } else {
        struct lock_input in = {.event = LOCK_CREATED, .sequence = made.sequence};
        lock_feed_input(lock, &in);
    }
    finish(lock);
}

static void on_listed(const struct cv_result *r, void *arg) {
    struct cv_lock *lock = begin(arg);
    struct contender *contenders = calloc(r->name_count + 1, sizeof *contenders);
    if (r->error || !contenders) {
        lock_answer(lock, LOCK_LISTED, r->error ? r->error : CV_NO_MEMORY);
    } else {
        struct lock_input in = {.event = LOCK_LISTED,
                                .contenders = contenders,
                                .count = contend_list(contenders, r->names, r->name_count)};
        lock_feed_input(lock, &in);
    }
    free(contenders);
    finish(lock);
}

static void list(struct cv_lock *lock) {
    struct cv_op op = cv_op_children(lock->path);
    start(lock, &op, on_listed, lock, LOCK_LISTED);
}

static void create(struct cv_lock *lock, enum contend_kind kind) {
    char text[NOTE_MAX], name[OWNER_SIZE + 32];
    snprintf(name, sizeof name, "%s%s", lock->owner, contend_kind_text(lock->recipe, kind));
    char *path = lock_child(lock, name);
    struct cv_op op =
        cv_op_create(path, text, note_write(&lock->note, text), CV_EPHEMERAL | CV_SEQUENTIAL);
    if (path)
        start(lock, &op, on_created, lock, LOCK_CREATED);
    else
        lock_answer(lock, LOCK_CREATED, CV_NO_MEMORY);
    free(path);
    list(lock);
}

/* ---- The nodes above: all creates in one write, of which the last one counts ---- */

static void make_parents(struct cv_lock *lock, int32_t flags);

static void on_parent(const struct cv_result *r, void *arg) {
    struct cv_lock *lock = begin(arg);
    int error = r->error == CV_NODE_EXISTS ? CV_OK : r->error;
    lock->parent_reached |= error == CV_OK;
    if (error && error != CV_NO_NODE) lock->parent_error = error;
    if (--lock->parents == 0) {
        bool removed = error == CV_NO_NODE && lock->parent_reached && !lock->parent_error;
        if (error == CV_UNIMPLEMENTED) /* a server without containers */
            make_parents(lock, CV_PERSISTENT);
        else if (removed) /* an empty container, by the server, between two of our creates */
            make_parents(lock, CV_CONTAINER);
        else
            lock_answer(lock, LOCK_PREPARED,
                        error != CV_NO_NODE  ? error
                        : lock->parent_error ? lock->parent_error
                                             : CV_NO_AUTH);
    }
    finish(lock);
}

static void make_parent(struct cv_lock *lock, const char *path, int32_t flags) {
    struct cv_op op = cv_op_create(path, NULL, 0, flags);
    lock->parents++;
    start(lock, &op, on_parent, lock, LOCK_PREPARED);
}

static void make_parents(struct cv_lock *lock, int32_t flags) {
    char *path = strdup(lock->path);
    lock->parents = 0;
    lock->parent_reached = false;
    lock->parent_error = CV_OK;
    for (char *slash = path ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        make_parent(lock, path, name_is_below_locks(path) ? flags : CV_PERSISTENT);
        *slash = '/';
    }
    free(path);
    make_parent(lock, lock->path, flags);
}

/* ---- Watching ---- */

enum { OWN, OTHER };

static bool is_current(const struct cv_lock *lock, const char *path) {
    return lock->node && !strcmp(lock->node, path);
}

static void on_fired(void *owner, int tag, const char *path, enum cv_watch_type type) {
    struct cv_lock *lock = owner;
    if (tag == OTHER) {
        lock_feed(lock, LOCK_FIRED);
    } else if (is_current(lock, path) && type == CV_NODE_DELETED) {
        lock->error = CV_NO_NODE;
        lock_feed(lock, LOCK_DELETED);
    } else if (is_current(lock, path)) {
        lock_watch_own(lock); /* only a note of ours, or somebody wrote to it */
    }
}

/* What the answer to a read of our own node means. */
static void on_own_read(struct cv_lock *lock, const struct cv_result *r) {
    struct note note;
    if (r->error == CV_NO_NODE) {
        lock->error = CV_NO_NODE;
        lock_feed(lock, LOCK_DELETED);
    } else if (recipe_is_lost(r->error)) {
        lock_watch_own(lock);
    } else if (!r->error && !lock->token &&
               r->stat.ephemeral_owner != cv_session_id(lock->client)) {
        lock->error = CV_NO_NODE; /* a node of another session does not end with ours */
        set_text(&lock->node, NULL);
        lock_feed(lock, LOCK_DELETED);
    } else if (!r->error && !lock->token && lock->steps.holds) {
        note_read(&note, r->data, r->data ? r->size : 0);
        lock->token = note.token ? note.token : r->stat.czxid;
        lock_become_held(lock);
    } else if (r->error && !recipe_is_over(r->error) && !lock->token) {
        lock->error = r->error;
        lock_feed(lock, LOCK_RELEASE);
    }
}

static void on_followed(void *owner, int tag, const char *path, const struct cv_result *r) {
    struct cv_lock *lock = owner;
    struct note note;
    if (tag == OWN) {
        if (is_current(lock, path)) on_own_read(lock, r);
    } else if (!r->error) {
        note_read(&note, r->data, r->data ? r->size : 0);
        lock_feed_input(lock, &(struct lock_input){.event = LOCK_WATCHED,
                                                   .result = note.held ? STEP_NOTED : STEP_OK});
    } else {
        lock_answer(lock, LOCK_WATCHED, r->error);
    }
    if (lock->closing) follow_forget(&lock->followers);
    lock_unreference(lock);
}

static void on_leave_again(struct client_timer *timer);

void lock_open_io(struct cv_lock *lock) {
    lock->followers = (struct followers){
        .client = lock->client, .owner = lock, .answered = on_followed, .fired = on_fired};
    lock->leave_again.fire = on_leave_again;
}

static void watch_node(struct cv_lock *lock, const char *path, int tag) {
    int error = follow_start(&lock->followers, path, tag);
    if (!error)
        lock->references++;
    else if (tag == OTHER)
        lock_answer(lock, LOCK_WATCHED, recipe_is_lost(error) ? CV_SYSTEM_ERROR : error);
}

void lock_watch_own(struct cv_lock *lock) {
    if (lock->node) watch_node(lock, lock->node, OWN);
}

static void watch_all(struct cv_lock *lock, const struct lock_input *in) {
    for (size_t i = 0; i < in->count && lock->steps.phase == LOCK_WAITING; i++) {
        if (!in->contenders[i].watch) continue;
        char *path = lock_child(lock, in->contenders[i].name);
        if (path)
            watch_node(lock, path, OTHER);
        else
            lock_answer(lock, LOCK_WATCHED, CV_NO_MEMORY);
        free(path);
    }
}

/* ---- Notes ---- */

static void on_noted(const struct cv_result *r, void *arg) {
    struct cv_lock *lock = begin(arg);
    if (recipe_is_lost(r->error)) lock_answer(lock, LOCK_NOTED, r->error);
    finish(lock);
}

static void write_note(struct cv_lock *lock) {
    char text[NOTE_MAX];
    if (!lock->node) return;
    if (!lock->note.held) lock->note.held = recipe_wall_clock();
    struct cv_op op = cv_op_set(lock->node, text, note_write(&lock->note, text), -1);
    if (!cv_start(lock->client, &op, on_noted, lock)) lock->references++;
}

/* ---- Converting ---- */

static void on_converted(const struct cv_result *r, void *arg) {
    struct cv_lock *lock = begin(arg);
    int error = r->error;
    if (!error && lock->node) {
        const struct cv_result *made = NULL;
        for (size_t i = 0; i < r->result_count; i++)
            if (r->results[i].path) made = &r->results[i];
        if (made) set_text(&lock->node, strdup(made->path));
        set_text(&lock->mark, NULL);
        lock_watch_own(lock);
    }
    if (error == CV_NODE_EXISTS) error = CV_NO_NODE; /* look again what there is */
    lock_answer(lock, LOCK_CONVERTED, error);
    finish(lock);
}

/* The same place, as the other kind: see recipe/contend.h. */
static void convert(struct cv_lock *lock) {
    char text[NOTE_MAX], name[OWNER_SIZE + 48];
    bool upgrade = lock->steps.upgrading;
    enum contend_kind kind = upgrade ? CONTEND_EXCLUSIVE : CONTEND_SHARED;
    struct note note = lock->note;
    note.token = lock->token;
    snprintf(name, sizeof name, "%s%s%010d", lock->owner, contend_kind_text(lock->recipe, kind),
             lock->steps.sequence);
    char *path = lock_child(lock, name);
    struct cv_op ops[4];
    size_t count = 0;
    if (upgrade && lock->blocker) ops[count++] = cv_op_check(lock->blocker, -1);
    ops[count++] = cv_op_create(path, text, note_write(&note, text), CV_EPHEMERAL);
    ops[count++] = cv_op_delete(lock->node, -1);
    if (upgrade) ops[count++] = cv_op_delete(lock->mark, -1);
    struct cv_op multi = cv_op_multi(ops, count);
    bool complete = path && lock->node && (!upgrade || lock->mark);
    if (complete)
        start(lock, &multi, on_converted, lock, LOCK_CONVERTED);
    else
        lock_answer(lock, LOCK_CONVERTED, CV_NO_MEMORY);
    free(path);
}

/* ---- Leaving ---- */

static void left(struct cv_lock *lock) {
    lock_feed_input(lock, &(struct lock_input){.event = LOCK_LEFT, .result = lock->deleted});
}

/* Also of a lock that is closed by now. */
static void on_leave_again(struct client_timer *timer) {
    struct cv_lock *lock =
        (struct cv_lock *)((char *)timer - offsetof(struct cv_lock, leave_again));
    struct cv_client *client = lock->client;
    client_lock(client);
    left(lock);
    lock_unreference(lock);
    client_unlock(client);
}

static void deleted(struct cv_lock *lock, int error) {
    bool postponed = recipe_is_postponed(error);
    enum lock_result result = postponed ? STEP_LOSS : result_of(error);
    lock->postponed |= postponed;
    if (recipe_is_over(error)) {
        lock_answer(lock, LOCK_LEFT, error);
    } else {
        if (result == STEP_LOSS || result == STEP_FAILED) lock->deleted = result;
        if (result == STEP_FAILED) lock->error = error;
    }
    if (--lock->deleting) return;
    if (lock->postponed && lock->deleted == STEP_LOSS && lock->steps.phase == LOCK_LEAVING) {
        lock->references++;
        client_timer_set(lock->client, &lock->leave_again, cv_now() + RECIPE_PAUSE);
    } else {
        left(lock);
    }
}

static void on_mark_deleted(const struct cv_result *r, void *arg) {
    struct cv_lock *lock = begin(arg);
    if (!r->error || r->error == CV_NO_NODE) set_text(&lock->mark, NULL);
    deleted(lock, r->error);
    finish(lock);
}

static void on_node_deleted(const struct cv_result *r, void *arg) {
    struct cv_lock *lock = begin(arg);
    lock->node_was_gone |= r->error == CV_NO_NODE;
    deleted(lock, r->error);
    finish(lock);
}

static void delete_node(struct cv_lock *lock, const char *path, cv_done_fn *done) {
    struct cv_op op = cv_op_delete(path, -1);
    int error = cv_start(lock->client, &op, done, lock);
    if (error) {
        lock->deleted = STEP_FAILED;
        lock->error = error;
        return;
    }
    lock->deleting++;
    lock->references++;
}

static void leave(struct cv_lock *lock) {
    lock->deleting = 0;
    lock->deleted = STEP_OK;
    lock->postponed = false;
    if (lock->mark) delete_node(lock, lock->mark, on_mark_deleted);
    if (lock->node && !lock->steps.giving_up) delete_node(lock, lock->node, on_node_deleted);
    if (lock->deleting == 0) left(lock);
}

/* ---- What a step wants ---- */

void lock_adopt(struct cv_lock *lock, const struct contend_verdict *verdict) {
    const struct contender *mine = verdict->mine;
    if (mine && (!lock->node || strcmp(recipe_name(lock->node), mine->name) != 0)) {
        if (lock->node && lock->state != CV_HELD) lock->token = 0; /* it was that of another node */
        set_text(&lock->node, lock_child(lock, mine->name));
    }
    if (!mine) set_text(&lock->node, NULL);
    set_text(&lock->mark, verdict->mark ? lock_child(lock, verdict->mark->name) : NULL);
    set_text(&lock->blocker, verdict->blocker ? lock_child(lock, verdict->blocker->name) : NULL);
    if (verdict->extra) { /* a create that came late, after it had been given up */
        char *path = lock_child(lock, verdict->extra->name);
        struct cv_op op = cv_op_delete(path, -1);
        if (path) (void)cv_start(lock->client, &op, NULL, NULL);
        free(path);
    }
}

void lock_perform(struct cv_lock *lock, uint32_t out, const struct lock_input *in) {
    client_cork(lock->client);
    if (out & OUT_PARENTS) make_parents(lock, CV_CONTAINER);
    if (out & OUT_JOIN) create(lock, lock->steps.kind);
    if (out & OUT_MARK) create(lock, CONTEND_UPGRADE);
    if (out & OUT_SYNC) {
        struct cv_op op = cv_op_sync(lock->path);
        (void)cv_start(lock->client, &op, NULL, NULL);
    }
    if (out & OUT_LIST) list(lock);
    if (out & OUT_WATCH) watch_all(lock, in);
    if (out & OUT_NOTE) write_note(lock);
    if (out & OUT_CONVERT) convert(lock);
    if (out & OUT_LEAVE) leave(lock);
    client_uncork(lock->client);
}
