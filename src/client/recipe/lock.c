/* Locks, as programs use them. */
#include "client/recipe/lock.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "client/recipe/recipe.h"
#include "recipe/outer.h"

/* A lock that is held for longer than this is watched by its holder, and says since when it is. */
enum { SETTLED_AFTER = 200 };

/* ---- Steps ---- */

void lock_feed_input(struct cv_lock *lock, struct lock_input *in) {
    struct contend_verdict verdict = {0};
    in->owner = lock->owner;
    in->owner_size = OWNER_SIZE;
    bool judged = in->event == LOCK_LISTED && in->result != STEP_LOSS &&
                  in->result != STEP_FAILED && lock->steps.phase == LOCK_LISTING;
    uint32_t out = lock_step(&lock->steps, in, &verdict);
    if (judged) lock_adopt(lock, &verdict);
    lock_tell(lock, out);
    lock_perform(lock, out, in);
}

void lock_feed(struct cv_lock *lock, enum lock_event event) {
    lock_feed_input(lock, &(struct lock_input){.event = event});
}

/* ---- The callback: from the client's thread, with nothing locked ---- */

static void run_notify(struct client_task *task) {
    struct cv_lock *lock = (struct cv_lock *)((char *)task - offsetof(struct cv_lock, notify));
    struct cv_client *client = lock->client;
    client_lock(client);
    lock->notify_posted = false;
    bool wanted = lock->on_change && !lock->closing;
    enum cv_lock_state state = lock->state;
    lock->notifying = wanted;
    client_unlock(client);
    if (wanted) lock->on_change(lock, state, lock->arg);
    client_lock(client);
    lock->notifying = false;
    client_wake(client);
    lock_unreference(lock);
    client_unlock(client);
}

static void notify(struct cv_lock *lock) {
    if (!lock->on_change || lock->notify_posted || lock->closing) return;
    lock->notify_posted = true;
    lock->references++;
    client_post(lock->client, &lock->notify);
}

static void set_state(struct cv_lock *lock, enum cv_lock_state state) {
    bool changed = lock->state != state;
    lock->state = state;
    if (changed || state == CV_WAITING) notify(lock);
    client_wake(lock->client);
}

/* ---- The lease ---- */

static int64_t lease_end(struct cv_lock *lock) {
    return cv_session_deadline(lock->client) - lock->margin;
}

void lock_check_lease(struct cv_lock *lock) {
    if (!lock->steps.holds) return;
    int64_t end = lease_end(lock);
    if (cv_now() < end) {
        client_timer_set(lock->client, &lock->lease, end);
        return;
    }
    lock->error = CV_LOST;
    lock_feed(lock, LOCK_LATE);
}

static void on_lease(struct client_timer *timer) {
    struct cv_lock *lock = (struct cv_lock *)((char *)timer - offsetof(struct cv_lock, lease));
    struct cv_client *client = lock->client;
    client_lock(client);
    if (!lock->closing) lock_check_lease(lock);
    client_unlock(client);
}

static void on_settle(struct client_timer *timer) {
    struct cv_lock *lock = (struct cv_lock *)((char *)timer - offsetof(struct cv_lock, settle));
    struct cv_client *client = lock->client;
    client_lock(client);
    if (!lock->closing && lock->steps.phase == LOCK_HELD) {
        if (lock->waited && !lock->note.held)
            lock_perform(lock, OUT_NOTE, &(struct lock_input){.event = LOCK_NOTED});
        lock_watch_own(lock);
    }
    client_unlock(client);
}

/* ---- What steps tell ---- */

void lock_become_held(struct cv_lock *lock) {
    lock->error = CV_OK;
    set_state(lock, CV_HELD);
    client_timer_set(lock->client, &lock->settle, cv_now() + SETTLED_AFTER);
    lock_check_lease(lock);
}

static void stop_timers(struct cv_lock *lock) {
    client_timer_cancel(lock->client, &lock->lease);
    client_timer_cancel(lock->client, &lock->settle);
}

static void end_conversion(struct cv_lock *lock, bool converted) {
    lock->converting = false;
    lock->converted = converted;
    client_wake(lock->client);
}

void lock_tell(struct cv_lock *lock, uint32_t out) {
    if (out & TELL_WAITING) {
        lock->waited = true;
        if (lock->state != CV_HELD) set_state(lock, CV_WAITING);
    }
    if (out & TELL_HELD) {
        if (lock->token)
            lock_become_held(lock);
        else
            lock_watch_own(lock); /* the answer has the token */
    }
    if (out & (TELL_CONVERTED | TELL_HOPELESS)) end_conversion(lock, out & TELL_CONVERTED);
    if (out & TELL_MIXED) lock->error = CV_OTHER_RECIPE;
    if (out & (TELL_LOST | TELL_ENDED)) {
        stop_timers(lock);
        if (lock->converting) end_conversion(lock, false);
        follow_forget(&lock->followers);
    }
    if (out & TELL_LOST) {
        if (!lock->error) lock->error = CV_LOST;
        set_state(lock, lock->state == CV_HELD ? CV_LOST_LOCK : CV_IDLE);
    } else if (out & TELL_ENDED) {
        if (lock->state != CV_LOST_LOCK) set_state(lock, CV_IDLE);
    }
    client_wake(lock->client);
}

static void on_state(struct client_listener *listener, enum cv_state state) {
    struct cv_lock *lock =
        (struct cv_lock *)((char *)listener - offsetof(struct cv_lock, listener));
    struct cv_client *client = lock->client;
    if (state != CV_EXPIRED && state != CV_REFUSED && state != CV_CLOSED) return;
    client_lock(client);
    if (!lock->closing && lock->steps.phase != LOCK_IDLE) {
        lock->error = state == CV_EXPIRED   ? CV_SESSION_EXPIRED
                      : state == CV_REFUSED ? CV_AUTH_FAILED
                                            : CV_CLOSING;
        lock_feed(lock, LOCK_EXPIRED);
    }
    client_unlock(client);
}

/* ---- Opening and closing ---- */

static bool set_options(struct cv_lock *lock, const struct cv_lock_options *given, size_t size) {
    struct cv_lock_options options = {0};
    int64_t outer[OUTER_MAX];
    if (given) memcpy(&options, given, size < sizeof options ? size : sizeof options);
    lock->slots = options.slots > 0 ? options.slots : 1;
    lock->kind = options.kind == CV_SHARED ? CONTEND_SHARED
                 : lock->slots > 1         ? CONTEND_SLOT
                                           : CONTEND_EXCLUSIVE;
    lock->mixes = options.recipe == CV_ANY_RECIPE;
    lock->recipe = options.recipe == CV_CURATOR_RW      ? CONTEND_CURATOR_RW
                   : options.recipe == CV_CURATOR_LATCH ? CONTEND_CURATOR_LATCH
                   : options.recipe == CV_KAZOO         ? CONTEND_KAZOO
                                                        : CONTEND_CURATOR;
    lock->margin = options.margin;
    lock->on_change = options.on_change;
    lock->arg = options.arg;
    recipe_note(&lock->note, options.label);
    if (options.outer && outer_read(options.outer, outer))
        note_copy(lock->note.outer, options.outer, strlen(options.outer));
    if (lock->slots > 1) lock->note.slots = lock->slots;
    if (options.node && *options.node && !(lock->resumed = strdup(options.node))) return false;
    return options.slots >= 0 && options.margin >= 0 &&
           !(options.kind == CV_SHARED && options.slots > 1) &&
           contend_kind_text(lock->recipe, lock->kind);
}

static void free_lock(struct cv_lock *lock) {
    free(lock->path);
    free(lock->resumed);
    free(lock->node);
    free(lock->mark);
    free(lock->blocker);
    free(lock);
}

int cv_lock_open_sized(struct cv_lock **opened, struct cv_client *client, const char *path,
                       const struct cv_lock_options *options, size_t size) {
    *opened = NULL;
    if (!path || path[0] != '/' || !path[1]) return CV_BAD_ARGUMENTS;
    struct cv_lock *lock = calloc(1, sizeof *lock);
    if (!lock) return CV_NO_MEMORY;
    *lock = (struct cv_lock){.client = client,
                             .path = strdup(path),
                             .lease = {.fire = on_lease},
                             .settle = {.fire = on_settle},
                             .listener = {.changed = on_state},
                             .notify = {.run = run_notify},
                             .references = 1};
    lock_open_io(lock);
    bool good = set_options(lock, options, size);
    if (!good || !lock->path) {
        int error = good ? CV_NO_MEMORY : CV_BAD_ARGUMENTS;
        free_lock(lock);
        return error;
    }
    client_listen(client, &lock->listener);
    *opened = lock;
    return CV_OK;
}

static void run_end(struct client_task *task) {
    free_lock((struct cv_lock *)((char *)task - offsetof(struct cv_lock, end)));
}

void lock_unreference(struct cv_lock *lock) {
    if (--lock->references) return;
    cv_assert(lock->closing);
    lock->end.run = run_end; /* after whatever callback uses it now */
    client_post(lock->client, &lock->end);
}

static bool is_quiet(void *arg) { return !((struct cv_lock *)arg)->notifying; }

void cv_lock_close(struct cv_lock *lock) {
    if (!lock) return;
    struct cv_client *client = lock->client;
    if (lock->state != CV_IDLE || lock->steps.phase != LOCK_IDLE) (void)cv_lock_release(lock);
    client_lock(client);
    (void)client_wait(client, is_quiet, lock, CV_FOREVER); /* not in a callback of its own */
    lock->closing = true;
    stop_timers(lock);
    client_unlisten(client, &lock->listener);
    follow_forget(&lock->followers);
    lock_unreference(lock);
    client_unlock(client);
}

/* ---- Acquiring ---- */

/* With the client's lock.  Another attempt of the same lock may still be leaving. */
static int begin_attempt(struct cv_lock *lock) {
    if (lock->state == CV_WAITING || lock->state == CV_HELD) return CV_BAD_ARGUMENTS;
    if (lock->steps.phase != LOCK_IDLE) return CV_BUSY;
    enum cv_state state = cv_state(lock->client);
    if (state == CV_EXPIRED) return CV_SESSION_EXPIRED;
    if (state == CV_CLOSED) return CV_CLOSING;
    struct contender resumed;
    lock->steps =
        (struct lock_steps){.kind = lock->kind, .slots = lock->slots, .mixes = lock->mixes};
    lock->error = CV_OK;
    lock->token = 0;
    lock->deleted = STEP_OK;
    lock->waited = lock->node_was_gone = lock->converting = false;
    lock->note.since = recipe_wall_clock();
    lock->note.held = 0;
    bool resumes = lock->resumed && contend_parse(&resumed, recipe_name(lock->resumed)) &&
                   resumed.owner_size == OWNER_SIZE;
    if (resumes)
        memcpy(lock->owner, resumed.owner, OWNER_SIZE), lock->recipe = resumed.recipe;
    else
        recipe_guid(lock->owner);
    free(lock->resumed);
    lock->resumed = NULL;
    free(lock->node);
    lock->node = NULL;
    lock->state = CV_WAITING;
    lock_feed(lock, resumes ? LOCK_RESUME : LOCK_START);
    return CV_OK;
}

int cv_lock_start(struct cv_lock *lock) {
    client_lock(lock->client);
    int error = begin_attempt(lock);
    client_unlock(lock->client);
    return error;
}

static bool has_left(void *arg) { return ((struct cv_lock *)arg)->steps.phase == LOCK_IDLE; }
static bool is_decided(void *arg) { return ((struct cv_lock *)arg)->state != CV_WAITING; }
static bool is_known(void *arg) {
    const struct cv_lock *lock = arg;
    return lock->state != CV_WAITING || lock->waited;
}

/* Gives up, and waits a while until nothing is left. */
static void withdraw(struct cv_lock *lock) {
    lock_feed(lock, LOCK_RELEASE);
    (void)client_wait(lock->client, has_left, lock, cv_now() + cv_session_timeout(lock->client));
}

static int acquire(struct cv_lock *lock, int32_t timeout) {
    struct cv_client *client = lock->client;
    int64_t patience = cv_now() + cv_session_timeout(client);
    int64_t until = timeout == 0 ? patience : recipe_until(timeout);
    int error = client_wait(client, has_left, lock, until);
    if (!error) error = begin_attempt(lock);
    if (error) return error;
    error = client_wait(client, timeout == 0 ? is_known : is_decided, lock, until);
    lock_check_lease(lock); /* it may be long ago that it was decided */
    if (lock->state == CV_HELD) return CV_OK;
    if (lock->state == CV_LOST_LOCK) return CV_LOST;
    if (lock->state == CV_IDLE) return lock->error ? lock->error : CV_LOST;
    withdraw(lock);
    if (timeout == 0) return error ? CV_NO_SERVER : CV_BUSY;
    return error;
}

int cv_lock_acquire(struct cv_lock *lock, int32_t timeout) {
    if (client_in_callback(lock->client)) return CV_WOULD_DEADLOCK;
    client_lock(lock->client);
    int error = acquire(lock, timeout);
    client_unlock(lock->client);
    return error;
}

int cv_lock_release(struct cv_lock *lock) {
    struct cv_client *client = lock->client;
    client_lock(client);
    lock_check_lease(lock);
    enum cv_lock_state state = lock->state;
    int error = state == CV_LOST_LOCK ? CV_LOST : state == CV_IDLE ? CV_NOT_HELD : CV_OK;
    if (!error) {
        lock_feed(lock, LOCK_RELEASE);
        lock->state = CV_IDLE;
        int waited = client_wait(client, has_left, lock, cv_now() + cv_session_timeout(client));
        if (waited == CV_OPERATION_TIMEOUT) error = CV_CONNECTION_LOSS;
        if (!waited && lock->deleted == STEP_FAILED && !recipe_is_over(lock->error))
            error = lock->error; /* it stays until the session ends */
        if (!waited && state == CV_HELD && lock->node_was_gone) error = CV_LOST;
    }
    lock->state = CV_IDLE;
    client_unlock(client);
    return error;
}

/* ---- Asking ---- */

enum cv_lock_state cv_lock_state(struct cv_lock *lock) {
    client_lock(lock->client);
    lock_check_lease(lock); /* who was stopped asks before the timer can tell */
    enum cv_lock_state state = lock->state;
    client_unlock(lock->client);
    return state;
}

int64_t cv_lock_token(struct cv_lock *lock) {
    client_lock(lock->client);
    int64_t token = lock->token;
    client_unlock(lock->client);
    return token;
}

int64_t cv_lock_deadline(struct cv_lock *lock) {
    client_lock(lock->client);
    int64_t end = lock->state == CV_HELD ? lease_end(lock) : 0;
    client_unlock(lock->client);
    return end;
}

int32_t cv_lock_position(struct cv_lock *lock) {
    client_lock(lock->client);
    int32_t position = lock->state == CV_HELD                      ? 0
                       : lock->steps.phase == LOCK_WAITING         ? lock->steps.position
                       : lock->waited && lock->state == CV_WAITING ? lock->steps.position
                                                                   : -1;
    client_unlock(lock->client);
    return position;
}

const char *cv_lock_path(struct cv_lock *lock) { return lock->path; }

static void copy_text(char *to, size_t size, const char *from) {
    if (!size) return;
    size_t length = from ? strnlen(from, size - 1) : 0;
    if (length) memcpy(to, from, length);
    to[length] = 0;
}

const char *cv_lock_node(struct cv_lock *lock, char *text, size_t size) {
    client_lock(lock->client);
    copy_text(text, size, lock->steps.has_node ? lock->node : NULL);
    client_unlock(lock->client);
    return text;
}

int cv_lock_error(struct cv_lock *lock) {
    client_lock(lock->client);
    int error = lock->error;
    client_unlock(lock->client);
    return error;
}

/* ---- Guarded writes ---- */

/* Who does not hold it gets a check that nothing can pass: the version of a node is never that. */
struct cv_op cv_lock_guard(struct cv_lock *lock, char *node, size_t size) {
    client_lock(lock->client);
    bool held = lock->steps.holds && lock->node && strlen(lock->node) < size;
    copy_text(node, size, held ? lock->node : lock->path);
    client_unlock(lock->client);
    return cv_op_check(node, held ? -1 : INT32_MIN);
}

int cv_lock_set(struct cv_lock *lock, const char *path, const void *data, size_t size,
                int32_t version) {
    size_t room = strlen(lock->path) + OWNER_SIZE + 64;
    char *node = malloc(room);
    if (!node) return CV_NO_MEMORY;
    struct cv_op ops[2] = {cv_lock_guard(lock, node, room), cv_op_set(path, data, size, version)};
    struct cv_op multi = cv_op_multi(ops, 2);
    struct cv_result *result;
    int error = cv_call(lock->client, &multi, &result);
    if (result && result->result_count == 2) {
        int guard = result->results[0].error, set = result->results[1].error;
        if (guard == CV_NO_NODE || guard == CV_BAD_VERSION)
            error = CV_LOST;
        else if (set)
            error = set;
    }
    if (error == CV_SESSION_EXPIRED) error = CV_LOST;
    cv_result_free(result);
    free(node);
    return error;
}

/* ---- Shared and exclusive ---- */

static bool is_converted(void *arg) { return !((struct cv_lock *)arg)->converting; }
static bool is_converted_or_waits(void *arg) {
    const struct cv_lock *lock = arg;
    return !lock->converting || lock->steps.phase == LOCK_WAITING;
}

/* With the client's lock, after the step has begun. */
static int await_conversion(struct cv_lock *lock, int32_t timeout) {
    struct cv_client *client = lock->client;
    int error = client_wait(client, timeout == 0 ? is_converted_or_waits : is_converted, lock,
                            timeout == 0 ? CV_FOREVER : recipe_until(timeout));
    if (lock->converting) {
        lock_feed(lock, LOCK_STAY);
        int waited = client_wait(client, is_converted, lock, CV_FOREVER);
        if (waited) return waited;
        if (!error) error = CV_BUSY;
    }
    if (lock->state != CV_HELD) return CV_LOST;
    if (lock->converted) return CV_OK;
    if (error) return error;
    return lock->error ? lock->error : CV_BUSY;
}

static int change_kind(struct cv_lock *lock, enum contend_kind from, enum lock_event event,
                       int32_t timeout) {
    if (client_in_callback(lock->client)) return CV_WOULD_DEADLOCK;
    client_lock(lock->client);
    lock_check_lease(lock);
    int error = CV_OK;
    if (lock->state != CV_HELD) {
        error = lock->state == CV_LOST_LOCK ? CV_LOST : CV_NOT_HELD;
    } else if (lock->converting || lock->steps.phase != LOCK_HELD || lock->kind == CONTEND_SLOT) {
        error = CV_BAD_ARGUMENTS;
    } else if (lock->steps.kind == from) {
        lock->converting = true;
        lock->error = CV_OK;
        lock_feed(lock, event);
        error = await_conversion(lock, timeout);
    }
    client_unlock(lock->client);
    return error;
}

int cv_lock_upgrade(struct cv_lock *lock, int32_t timeout) {
    return change_kind(lock, CONTEND_SHARED, LOCK_UPGRADE, timeout);
}

int cv_lock_downgrade(struct cv_lock *lock) {
    return change_kind(lock, CONTEND_EXCLUSIVE, LOCK_DOWNGRADE, CV_FOREVER);
}
