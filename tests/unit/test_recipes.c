/* The recipes of the client library, against a server: that of $RECIPES_SERVER, or one of its own.
 */
#include "client_help.h"

#include <sys/wait.h>

static struct cv_test_server *own_server;
static const char *server;
static int numbers;

static const char *fresh(const char *what) {
    static char path[8][64];
    char *text = path[numbers % 8];
    snprintf(text, sizeof path[0], "/test-%d/%s-%d", (int)getpid(), what, numbers++);
    return text;
}

static struct cv_client *client_at(const char *address, int32_t session_timeout) {
    struct cv_client *client;
    assert_int_equal(cv_open(&client, &(struct cv_options){.servers = address,
                                                           .session_timeout = session_timeout,
                                                           .connect_timeout = PATIENCE_MS}),
                     CV_OK);
    return client;
}
static struct cv_client *new_client(void) { return client_at(server, 30000); }

static struct cv_lock *lock_at(struct cv_client *client, const char *path,
                               struct cv_lock_options options) {
    struct cv_lock *lock;
    assert_int_equal(cv_lock_open(&lock, client, path, &options), CV_OK);
    return lock;
}
static struct cv_lock *exclusive(struct cv_client *client, const char *path) {
    return lock_at(client, path, (struct cv_lock_options){0});
}
static struct cv_lock *shared(struct cv_client *client, const char *path) {
    return lock_at(client, path, (struct cv_lock_options){.kind = CV_SHARED});
}

#define OK(CALL) assert_int_equal((CALL), CV_OK)

/* ---- Locks ---- */

static void a_lock_is_held_by_one(void **state) {
    (void)state;
    const char *path = fresh("lock");
    struct cv_client *one = new_client(), *two = new_client();
    struct cv_lock *a = exclusive(one, path), *b = exclusive(two, path);
    char node[256];
    assert_int_equal(cv_lock_state(a), CV_IDLE);
    assert_int_equal(cv_lock_release(a), CV_NOT_HELD);
    OK(cv_lock_acquire(a, CV_FOREVER));
    assert_int_equal(cv_lock_state(a), CV_HELD);
    assert_int_equal(cv_lock_position(a), 0);
    assert_true(cv_lock_deadline(a) > cv_now());
    assert_true(strstr(cv_lock_node(a, node, sizeof node), "-lock-") != NULL);
    int64_t token = cv_lock_token(a);
    assert_true(token > 0);
    assert_int_equal(cv_lock_acquire(b, 0), CV_BUSY);
    assert_int_equal(cv_lock_acquire(b, 50), CV_OPERATION_TIMEOUT);
    assert_int_equal(cv_lock_state(b), CV_IDLE);
    OK(cv_lock_start(b));
    AWAIT(cv_lock_position(b) == 1);
    OK(cv_lock_release(a));
    AWAIT(cv_lock_state(b) == CV_HELD);
    assert_true(cv_lock_token(b) > token);
    cv_lock_close(b); /* releases it */
    OK(cv_lock_acquire(a, CV_FOREVER));
    cv_lock_close(a);
    struct cv_result *left;
    OK(cv_children(one, path, &left));
    assert_int_equal(left->name_count, 0);
    cv_result_free(left);
    cv_close(one);
    cv_close(two);
}

static void locks_are_first_in_first_out(void **state) {
    (void)state;
    enum { COUNT = 6 };
    const char *path = fresh("fifo");
    struct cv_client *client = new_client();
    struct cv_lock *lock[COUNT];
    for (int i = 0; i < COUNT; i++) {
        lock[i] = exclusive(client, path);
        OK(cv_lock_start(lock[i]));
        AWAIT(cv_lock_position(lock[i]) == i);
    }
    int64_t token = 0;
    for (int i = 0; i < COUNT; i++) {
        AWAIT(cv_lock_state(lock[i]) == CV_HELD);
        assert_true(cv_lock_token(lock[i]) > token);
        token = cv_lock_token(lock[i]);
        for (int k = i + 1; k < COUNT; k++) assert_int_equal(cv_lock_state(lock[k]), CV_WAITING);
        OK(cv_lock_release(lock[i]));
    }
    for (int i = 0; i < COUNT; i++) cv_lock_close(lock[i]);
    cv_close(client);
}

struct heard {
    atomic_int held, lost, idle;
};
static void hear(struct cv_lock *lock, enum cv_lock_state state, void *arg) {
    struct heard *heard = arg;
    if (state == CV_HELD) heard->held++;
    if (state == CV_LOST_LOCK) heard->lost++;
    if (state == CV_IDLE) heard->idle++;
    assert_int_equal(cv_lock_acquire(lock, 0), CV_WOULD_DEADLOCK);
}

static void a_deleted_node_is_a_lost_lock(void **state) {
    (void)state;
    const char *path = fresh("deleted");
    struct heard heard = {0};
    struct cv_client *client = new_client(), *stranger = new_client();
    struct cv_lock *lock =
        lock_at(client, path, (struct cv_lock_options){.on_change = hear, .arg = &heard});
    char node[256], guard[256];
    OK(cv_lock_acquire(lock, CV_FOREVER));
    AWAIT(heard.held == 1);
    OK(cv_create(client, "/test-data", "0", 1, CV_PERSISTENT, NULL, 0) == CV_NODE_EXISTS ? 0 : 0);
    OK(cv_lock_set(lock, "/test-data", "1", 1, -1));
    cv_lock_node(lock, node, sizeof node);
    OK(cv_delete(stranger, node, -1));
    /* certain at once, even if nobody has told the holder yet */
    assert_int_equal(cv_lock_set(lock, "/test-data", "2", 1, -1), CV_LOST);
    AWAIT(cv_lock_state(lock) == CV_LOST_LOCK);
    AWAIT(heard.lost == 1);
    assert_int_equal(cv_lock_error(lock), CV_NO_NODE);
    struct cv_op ops[2] = {cv_lock_guard(lock, guard, sizeof guard),
                           cv_op_set("/test-data", "3", 1, -1)};
    struct cv_op multi = cv_op_multi(ops, 2);
    assert_int_not_equal(cv_call(client, &multi, NULL), CV_OK);
    assert_int_equal(cv_lock_release(lock), CV_LOST);
    OK(cv_lock_acquire(lock, CV_FOREVER));
    OK(cv_lock_set(lock, "/test-data", "4", 1, -1));
    cv_lock_close(lock);
    cv_close(client);
    cv_close(stranger);
}

static void who_waits_cannot_write(void **state) {
    (void)state;
    const char *path = fresh("guard");
    struct cv_client *client = new_client();
    struct cv_lock *a = exclusive(client, path), *b = exclusive(client, path);
    (void)cv_create(client, "/test-data", NULL, 0, CV_PERSISTENT, NULL, 0);
    OK(cv_lock_acquire(a, CV_FOREVER));
    OK(cv_lock_start(b));
    AWAIT(cv_lock_position(b) == 1);
    assert_int_equal(cv_lock_set(b, "/test-data", "b", 1, -1), CV_LOST);
    cv_lock_close(a);
    cv_lock_close(b);
    cv_close(client);
}

/* The connection freezes: the lock is lost by the local clock, before the session can end. */
static void a_lock_is_lost_in_time(void **state) {
    (void)state;
    struct proxy *proxy = proxy_open(server);
    struct heard heard = {0};
    struct cv_client *client = client_at(proxy->address, 12000);
    struct cv_lock *lock =
        lock_at(client, fresh("lease"),
                (struct cv_lock_options){.on_change = hear, .arg = &heard, .margin = 500});
    OK(cv_lock_acquire(lock, CV_FOREVER));
    int64_t deadline = cv_lock_deadline(lock);
    assert_true(deadline <= cv_session_deadline(client) - 500 + 4000);
    AWAIT(cv_lock_deadline(lock) > deadline || cv_lock_state(lock) != CV_HELD); /* pings */
    assert_int_equal(cv_lock_state(lock), CV_HELD);
    proxy->mode = PROXY_FREEZES;
    AWAIT(heard.lost == 1);
    assert_int_equal(cv_lock_state(lock), CV_LOST_LOCK);
    assert_int_equal(cv_lock_error(lock), CV_LOST);
    proxy->mode = PROXY_PASSES;
    assert_int_equal(cv_lock_release(lock), CV_LOST);
    cv_lock_close(lock);
    cv_close(client);
    proxy_close(proxy);
}

/* The answer to the create is lost: the node is found again, and there is no other. */
static void a_lost_answer_makes_no_second_node(void **state) {
    (void)state;
    const char *path = fresh("answer");
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = client_at(proxy->address, 30000), *other = new_client();
    struct cv_lock *lock = exclusive(client, path);
    OK(cv_create_all(other, path, CV_PERSISTENT));
    for (int round = 0; round < 3; round++) {
        struct cv_result *names = NULL;
        proxy->mode = PROXY_DEAF;
        OK(cv_lock_start(lock));
        AWAIT((cv_result_free(names),
               cv_children(other, path, &names) == CV_OK && names->name_count == 1));
        proxy->mode = PROXY_CUTS;
        AWAIT(cv_state(client) == CV_CONNECTING);
        proxy->mode = PROXY_PASSES;
        AWAIT(cv_lock_state(lock) == CV_HELD);
        cv_result_free(names);
        OK(cv_children(other, path, &names));
        assert_int_equal(names->name_count, 1);
        struct cv_contender *contenders;
        size_t count;
        OK(cv_lock_contenders(other, path, &contenders, &count));
        assert_int_equal(count, 1);
        assert_int_equal(contenders[0].token, cv_lock_token(lock));
        assert_true(contenders[0].holds);
        free(contenders);
        cv_result_free(names);
        OK(cv_lock_release(lock));
    }
    cv_lock_close(lock);
    cv_close(client);
    cv_close(other);
    proxy_close(proxy);
}

/* The holder leaves between the look and the watch of the one behind it: its answers are held up
 * after the list, so the watch is asked for when the node is gone. */
static void a_release_between_look_and_watch(void **state) {
    (void)state;
    const char *path = fresh("race");
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = client_at(proxy->address, 30000), *other = new_client();
    struct cv_lock *late = exclusive(client, path), *first = exclusive(other, path);
    OK(cv_lock_acquire(first, CV_FOREVER));
    for (int round = 0; round < 5; round++) {
        struct cv_result *names = NULL;
        proxy->mode = PROXY_DEAF; /* it joins, and does not hear of it */
        OK(cv_lock_start(late));
        AWAIT((cv_result_free(names),
               cv_children(other, path, &names) == CV_OK && names->name_count == 2));
        cv_result_free(names);
        OK(cv_lock_release(first)); /* after it has looked, before it watches */
        proxy->mode = PROXY_PASSES;
        AWAIT(cv_lock_state(late) == CV_HELD);
        OK(cv_lock_start(first));
        OK(cv_lock_release(late));
        AWAIT(cv_lock_state(first) == CV_HELD);
    }
    cv_lock_close(late);
    cv_lock_close(first);
    cv_close(client);
    cv_close(other);
    proxy_close(proxy);
}

static void connections_break_while_it_waits(void **state) {
    (void)state;
    const char *path = fresh("breaks");
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = client_at(proxy->address, 30000), *other = new_client();
    struct cv_lock *waits = exclusive(client, path), *first = exclusive(other, path);
    for (int round = 0; round < 3; round++) {
        OK(cv_lock_acquire(first, CV_FOREVER));
        OK(cv_lock_start(waits));
        AWAIT(cv_lock_position(waits) == 1);
        proxy->mode = PROXY_CUTS;
        AWAIT(cv_state(client) == CV_CONNECTING);
        if (round == 1) OK(cv_lock_release(first)); /* while nobody can tell it */
        proxy->mode = PROXY_PASSES;
        AWAIT(cv_state(client) == CV_CONNECTED);
        if (round != 1) OK(cv_lock_release(first));
        AWAIT(cv_lock_state(waits) == CV_HELD);
        OK(cv_lock_release(waits));
    }
    cv_lock_close(waits);
    cv_lock_close(first);
    cv_close(client);
    cv_close(other);
    proxy_close(proxy);
}

/* Who would not wait for it is not waited for, either. */
static void other_recipes_are_refused(void **state) {
    (void)state;
    const char *path = fresh("recipes");
    struct cv_client *client = new_client();
    struct cv_lock *lock[CV_ANY_RECIPE + 1];
    char node[256];
    for (int recipe = CV_CURATOR; recipe <= CV_ANY_RECIPE; recipe++)
        OK(cv_lock_open(&lock[recipe], client, path, &(struct cv_lock_options){.recipe = recipe}));
    OK(cv_lock_acquire(lock[CV_KAZOO], CV_FOREVER));
    assert_true(strstr(cv_lock_node(lock[CV_KAZOO], node, sizeof node), "__lock__") != NULL);
    assert_int_equal(cv_lock_acquire(lock[CV_CURATOR], CV_FOREVER), CV_OTHER_RECIPE);
    assert_int_equal(cv_lock_acquire(lock[CV_CURATOR_RW], CV_FOREVER), CV_OTHER_RECIPE);
    assert_int_equal(cv_lock_acquire(lock[CV_CURATOR_LATCH], CV_FOREVER), CV_OTHER_RECIPE);
    assert_int_equal(cv_lock_state(lock[CV_CURATOR]), CV_IDLE);
    OK(cv_lock_start(lock[CV_ANY_RECIPE]));
    AWAIT(cv_lock_position(lock[CV_ANY_RECIPE]) == 1);
    OK(cv_lock_release(lock[CV_KAZOO]));
    AWAIT(cv_lock_state(lock[CV_ANY_RECIPE]) == CV_HELD);
    OK(cv_lock_release(lock[CV_ANY_RECIPE]));
    OK(cv_lock_acquire(lock[CV_CURATOR], CV_FOREVER));
    for (int recipe = CV_CURATOR; recipe <= CV_ANY_RECIPE; recipe++) cv_lock_close(lock[recipe]);
    struct cv_lock *none;
    assert_int_equal(cv_lock_open(&none, client, path,
                                  &(struct cv_lock_options){.recipe = CV_CURATOR_RW, .slots = 2}),
                     CV_BAD_ARGUMENTS);
    assert_int_equal(
        cv_lock_open(&none, client, path,
                     &(struct cv_lock_options){.recipe = CV_CURATOR_LATCH, .kind = CV_SHARED}),
        CV_BAD_ARGUMENTS);
    cv_close(client);
}

static void readers_share(void **state) {
    (void)state;
    const char *path = fresh("shared");
    struct cv_client *client = new_client();
    struct cv_lock *a = shared(client, path), *b = shared(client, path),
                   *w = exclusive(client, path), *c = shared(client, path);
    OK(cv_lock_acquire(a, CV_FOREVER));
    OK(cv_lock_acquire(b, CV_FOREVER));
    OK(cv_lock_start(w));
    AWAIT(cv_lock_position(w) == 2);
    OK(cv_lock_start(c)); /* behind the writer: it must not starve */
    AWAIT(cv_lock_position(c) == 1);
    OK(cv_lock_release(b));
    AWAIT(cv_lock_position(w) == 1);
    OK(cv_lock_release(a));
    AWAIT(cv_lock_state(w) == CV_HELD);
    assert_int_equal(cv_lock_state(c), CV_WAITING);
    OK(cv_lock_downgrade(w));
    AWAIT(cv_lock_state(c) == CV_HELD);
    assert_int_equal(cv_lock_state(w), CV_HELD);
    (void)cv_create(client, "/test-data", NULL, 0, CV_PERSISTENT, NULL, 0);
    OK(cv_lock_set(w, "/test-data", "w", 1, -1)); /* still guards */
    struct cv_lock *all[] = {a, b, w, c};
    for (int i = 0; i < 4; i++) cv_lock_close(all[i]);
    cv_close(client);
}

struct upgrade {
    struct cv_lock *lock;
    pthread_t thread;
    atomic_int result; /* 1: not yet */
};
static void *run_upgrade(void *arg) {
    struct upgrade *upgrade = arg;
    upgrade->result = cv_lock_upgrade(upgrade->lock, CV_FOREVER);
    return NULL;
}

static void upgrades_have_no_gap(void **state) {
    (void)state;
    const char *path = fresh("upgrade");
    struct cv_client *client = new_client();
    struct cv_lock *a = shared(client, path), *b = shared(client, path),
                   *w = exclusive(client, path), *c = shared(client, path);
    struct upgrade upgrade = {.lock = a, .result = 1};
    OK(cv_lock_acquire(a, CV_FOREVER));
    int64_t token = cv_lock_token(a);
    OK(cv_lock_upgrade(a, 0));
    assert_int_equal(cv_lock_token(a), token);
    OK(cv_lock_upgrade(a, 0)); /* it is already */
    OK(cv_lock_downgrade(a));
    OK(cv_lock_acquire(b, CV_FOREVER));
    OK(cv_lock_start(w));
    AWAIT(cv_lock_position(w) == 2);
    assert_int_equal(cv_lock_upgrade(a, 0), CV_BUSY);
    assert_int_equal(cv_lock_upgrade(a, 20), CV_OPERATION_TIMEOUT);
    assert_int_equal(cv_lock_state(a), CV_HELD);
    OK(pthread_create(&upgrade.thread, NULL, run_upgrade, &upgrade));
    /* the mark of the first is there before the second one asks */
    struct cv_result *names = NULL;
    bool marked = false;
    AWAIT(({
        cv_result_free(names);
        OK(cv_children(client, path, &names));
        for (size_t i = 0; i < names->name_count; i++)
            marked |= strstr(names->names[i], "-upgrade-") != NULL;
        marked;
    }));
    cv_result_free(names);
    assert_int_equal(cv_lock_upgrade(b, CV_FOREVER), CV_BUSY);
    assert_int_equal(cv_lock_state(b), CV_HELD);
    assert_int_equal(upgrade.result, 1);
    OK(cv_lock_start(c));
    AWAIT(cv_lock_position(c) > 0);
    OK(cv_lock_release(b));
    pthread_join(upgrade.thread, NULL);
    assert_int_equal(upgrade.result, CV_OK); /* before the writer, which came earlier */
    assert_int_equal(cv_lock_state(w), CV_WAITING);
    assert_int_equal(cv_lock_state(c), CV_WAITING);
    OK(cv_lock_release(a));
    AWAIT(cv_lock_state(w) == CV_HELD);
    assert_int_equal(cv_lock_upgrade(w, 0), CV_OK);
    OK(cv_lock_release(w));
    AWAIT(cv_lock_state(c) == CV_HELD);
    struct cv_lock *all[] = {a, b, w, c};
    for (int i = 0; i < 4; i++) cv_lock_close(all[i]);
    cv_close(client);
}

static void some_hold_slots(void **state) {
    (void)state;
    enum { COUNT = 7, SLOTS = 3 };
    const char *path = fresh("slots");
    struct cv_client *client = new_client();
    struct cv_lock *lock[COUNT];
    for (int i = 0; i < COUNT; i++) {
        lock[i] = lock_at(client, path, (struct cv_lock_options){.slots = SLOTS});
        OK(cv_lock_start(lock[i]));
        AWAIT(cv_lock_state(lock[i]) == (i < SLOTS ? CV_HELD : CV_WAITING) &&
              cv_lock_position(lock[i]) == (i < SLOTS ? 0 : i - SLOTS + 1));
    }
    /* out of order: the second, then the first, then the one that came in */
    int leaves[] = {1, 0, 3, 2, 4, 5, 6};
    for (int i = 0; i < COUNT; i++) {
        OK(cv_lock_release(lock[leaves[i]]));
        if (i + SLOTS < COUNT) AWAIT(cv_lock_state(lock[i + SLOTS]) == CV_HELD);
        int held = 0;
        for (int k = 0; k < COUNT; k++) held += cv_lock_state(lock[k]) == CV_HELD;
        assert_int_equal(held, COUNT - 1 - i < SLOTS ? COUNT - 1 - i : SLOTS);
    }
    for (int i = 0; i < COUNT; i++) cv_lock_close(lock[i]);
    cv_close(client);
}

static void several_are_taken_or_none(void **state) {
    (void)state;
    char path[3][80];
    const char *base = fresh("several");
    struct cv_client *client = new_client();
    struct cv_lock *lock[3], *other;
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "%s/%d", base, 2 - i);
        lock[i] = exclusive(client, path[i]);
    }
    OK(cv_locks_acquire(lock, 3, CV_FOREVER));
    for (int i = 0; i < 3; i++) assert_int_equal(cv_lock_state(lock[i]), CV_HELD);
    OK(cv_locks_release(lock, 3));
    other = exclusive(client, path[1]);
    OK(cv_lock_acquire(other, CV_FOREVER));
    assert_int_equal(cv_locks_acquire(lock, 3, 0), CV_BUSY);
    for (int i = 0; i < 3; i++) assert_int_equal(cv_lock_state(lock[i]), CV_IDLE);
    struct cv_lock *twice[] = {lock[0], lock[0]};
    assert_int_equal(cv_locks_acquire(twice, 2, 0), CV_BAD_ARGUMENTS);
    cv_lock_close(other);
    for (int i = 0; i < 3; i++) cv_lock_close(lock[i]);
    cv_close(client);
}

static void contenders_are_described(void **state) {
    (void)state;
    const char *path = fresh("who");
    struct cv_client *client = new_client();
    struct cv_lock *a = lock_at(client, path, (struct cv_lock_options){.label = "a \"label\""}),
                   *b = shared(client, path);
    struct cv_contender *all;
    size_t count;
    assert_int_equal(cv_lock_contenders(client, path, &all, &count), CV_NO_NODE);
    OK(cv_lock_acquire(a, CV_FOREVER));
    OK(cv_lock_start(b));
    AWAIT(cv_lock_position(b) == 1);
    char node[256];
    snprintf(node, sizeof node, "%s/deadbeef-lock-", path); /* another library's, plain text */
    OK(cv_create(client, node, "someone", 7, CV_EPHEMERAL | CV_SEQUENTIAL, NULL, 0));
    OK(cv_lock_contenders(client, path, &all, &count));
    assert_int_equal(count, 3);
    assert_true(all[0].holds && !all[1].holds && !all[2].holds);
    assert_string_equal(all[0].label, "a \"label\"");
    assert_int_equal(all[0].pid, getpid());
    assert_int_equal(all[0].token, cv_lock_token(a));
    assert_int_equal(all[0].session, cv_session_id(client));
    assert_true(all[0].held_since > 0 && all[1].since > 0 && !all[1].held_since);
    assert_int_equal(all[1].kind, CV_SHARED);
    assert_string_equal(all[2].label, "someone");
    free(all);
    cv_lock_close(a);
    cv_lock_close(b);
    cv_close(client);
}

struct passed_on {
    int64_t session, token;
    unsigned char password[16];
    char node[256];
};

/* In a process of its own, which ends without giving back what it has. */
static void hold_and_detach(const char *path, struct passed_on *to) {
    struct cv_client *client = new_client();
    struct cv_lock *lock = exclusive(client, path);
    OK(cv_lock_acquire(lock, CV_FOREVER));
    cv_lock_node(lock, to->node, sizeof to->node);
    to->token = cv_lock_token(lock);
    to->session = cv_session_id(client);
    cv_session_password(client, to->password);
    cv_detach(client);
}

static void a_resumed_session_keeps_its_lock(void **state) {
    (void)state;
    const char *path = fresh("resumed");
    struct cv_client *client, *other = new_client();
    struct cv_options options = {
        .servers = server, .session_timeout = 30000, .connect_timeout = PATIENCE_MS};
    struct cv_lock *a, *b = exclusive(other, path);
    struct passed_on from;
    char again[256];
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        hold_and_detach(path, &from);
        _exit(write(pipes[1], &from, sizeof from) != (ssize_t)sizeof from);
    }
    assert_int_equal(read(pipes[0], &from, sizeof from), sizeof from);
    assert_int_equal(waitpid(child, &status, 0), child);
    options.session_id = from.session;
    memcpy(options.session_password, from.password, sizeof from.password);
    OK(cv_open(&client, &options));
    a = lock_at(client, path, (struct cv_lock_options){.node = from.node});
    OK(cv_lock_start(b));
    AWAIT(cv_lock_position(b) == 1);
    OK(cv_lock_acquire(a, CV_FOREVER));
    assert_int_equal(cv_lock_token(a), from.token);
    assert_string_equal(cv_lock_node(a, again, sizeof again), from.node);
    OK(cv_lock_release(a));
    AWAIT(cv_lock_state(b) == CV_HELD);
    close(pipes[0]);
    close(pipes[1]);
    cv_lock_close(a);
    cv_lock_close(b);
    cv_close(client);
    cv_close(other);
}

static void on_the_callers_loop(void **state) {
    (void)state;
    const char *path = fresh("loop");
    struct cv_client *client;
    OK(cv_open(&client, &(struct cv_options){.servers = server,
                                             .flags = CV_NO_THREAD,
                                             .connect_timeout = PATIENCE_MS}));
    struct cv_lock *a = exclusive(client, path), *b = exclusive(client, path);
    OK(cv_lock_acquire(a, CV_FOREVER));
    OK(cv_lock_start(b));
    for (int i = 0; i < 1000 && cv_lock_position(b) != 1; i++) cv_process_for(client, 100);
    assert_int_equal(cv_lock_position(b), 1);
    OK(cv_lock_release(a));
    for (int i = 0; i < 1000 && cv_lock_state(b) != CV_HELD; i++) cv_process_for(client, 100);
    assert_int_equal(cv_lock_state(b), CV_HELD);
    cv_lock_close(a);
    cv_lock_close(b);
    cv_close(client);
}

/* ---- Elections ---- */

static struct cv_election *candidate(struct cv_client *client, const char *path, int32_t priority,
                                     bool stable) {
    struct cv_election *e;
    OK(cv_election_open(&e, client, path,
                        &(struct cv_election_options){.priority = priority, .stable = stable}));
    return e;
}

static void a_leader_hands_over(void **state) {
    (void)state;
    const char *path = fresh("election");
    struct cv_client *one = new_client(), *two = new_client();
    struct cv_election *a = candidate(one, path, 0, false), *b = candidate(two, path, 0, false),
                       *c = candidate(two, path, 5, false);
    char node[256];
    (void)cv_create(one, "/test-data", NULL, 0, CV_PERSISTENT, NULL, 0);
    OK(cv_election_lead(a, CV_FOREVER));
    OK(cv_election_stand(b));
    int64_t token = cv_election_token(a);
    assert_true(token > 0 && cv_election_deadline(a) > cv_now());
    struct cv_op ops[2] = {cv_election_guard(a, node, sizeof node),
                           cv_op_set("/test-data", "a", 1, -1)};
    struct cv_op multi = cv_op_multi(ops, 2);
    OK(cv_call(one, &multi, NULL));
    OK(cv_election_stand(c)); /* preferred: asks */
    AWAIT(cv_election_state(a) == CV_SHOULD_RESIGN);
    assert_int_equal(cv_election_state(c), CV_STANDING);
    struct cv_contender *all;
    size_t count;
    OK(cv_lock_contenders(one, path, &all, &count));
    assert_int_equal(count, 3);
    assert_true(!all[0].holds && all[1].holds && all[0].priority == 5);
    assert_int_equal(all[1].token, token);
    free(all);
    OK(cv_election_resign(a));
    AWAIT(cv_election_state(c) == CV_LEADING);
    assert_true(cv_election_token(c) > token);
    assert_int_not_equal(cv_call(one, &multi, NULL), CV_OK);
    OK(cv_election_resign(c));
    AWAIT(cv_election_state(b) == CV_LEADING);
    OK(cv_election_ask_to_resign(one, path));
    AWAIT(cv_election_state(b) == CV_SHOULD_RESIGN);
    OK(cv_election_stand(a));
    cv_election_close(b);
    AWAIT(cv_election_state(a) == CV_LEADING);
    OK(cv_lock_contenders(one, path, &all, &count));
    assert_int_equal(count, 1);
    assert_true(all[0].holds);
    OK(cv_delete(one, strcat(strcat(strcpy(node, path), "/"), "leader"), -1));
    AWAIT(cv_election_state(a) == CV_LEADERSHIP_LOST);
    assert_int_equal(cv_election_error(a), CV_NO_NODE);
    free(all);
    cv_election_close(a);
    cv_election_close(c);
    assert_int_equal(cv_election_ask_to_resign(one, path), CV_NO_NODE);
    cv_close(one);
    cv_close(two);
}

static void a_stable_leader_stays(void **state) {
    (void)state;
    const char *path = fresh("stable");
    struct cv_client *client = new_client();
    struct cv_election *a = candidate(client, path, 0, true), *b = candidate(client, path, 9, true),
                       *c = candidate(client, path, 3, true);
    OK(cv_election_lead(a, CV_FOREVER));
    OK(cv_election_stand(c));
    OK(cv_election_stand(b));
    struct cv_contender *all = NULL;
    size_t count = 0;
    AWAIT((free(all), cv_lock_contenders(client, path, &all, &count) == CV_OK && count == 3));
    free(all);
    char leader[100];
    snprintf(leader, sizeof leader, "%s/leader", path);
    OK(cv_set(client, leader, "whatever", 8, -1)); /* whoever writes to it, it is its leader's */
    struct cv_op sync = cv_op_sync(path);
    for (int i = 0; i < 20; i++) OK(cv_call(client, &sync, NULL));
    assert_int_equal(cv_election_state(a), CV_LEADING);
    OK(cv_election_resign(a));
    AWAIT(cv_election_state(b) == CV_LEADING); /* priorities count among those who wait */
    assert_int_equal(cv_election_state(c), CV_STANDING);
    cv_election_close(b);
    AWAIT(cv_election_state(c) == CV_LEADING);
    cv_election_close(a);
    cv_election_close(c);
    cv_close(client);
}

static void a_leader_without_server_is_lost_in_time(void **state) {
    (void)state;
    const char *path = fresh("leader");
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = client_at(proxy->address, 12000), *other = new_client();
    struct cv_election *a = candidate(client, path, 0, false),
                       *b = candidate(other, path, 0, false);
    OK(cv_election_lead(a, CV_FOREVER));
    OK(cv_election_stand(b));
    proxy->mode = PROXY_FREEZES;
    for (;;) { /* whoever leads after we have looked at the other one has led all the while */
        enum cv_candidate_state behind = cv_election_state(b);
        if (cv_election_state(a) != CV_LEADING) break;
        assert_int_equal(behind, CV_STANDING);
    }
    assert_int_equal(cv_election_state(a), CV_LEADERSHIP_LOST);
    AWAIT(cv_election_state(b) == CV_LEADING);
    assert_true(cv_election_token(b) > cv_election_token(a));
    proxy->mode = PROXY_PASSES;
    cv_election_close(a);
    cv_election_close(b);
    cv_close(client);
    cv_close(other);
    proxy_close(proxy);
}

static void a_claim_whose_answer_is_lost(void **state) {
    (void)state;
    const char *path = fresh("claim");
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = client_at(proxy->address, 30000), *other = new_client();
    struct cv_election *a = candidate(client, path, 0, false),
                       *b = candidate(other, path, 0, false);
    OK(cv_election_lead(b, CV_FOREVER));
    OK(cv_election_stand(a));
    struct cv_contender *all = NULL;
    size_t count = 0;
    AWAIT((free(all), cv_lock_contenders(other, path, &all, &count) == CV_OK && count == 2));
    free(all);
    struct cv_stat stat;
    char leader[128];
    snprintf(leader, sizeof leader, "%s/leader", path);
    /* it hears of the end, claims, and does not hear of that: requests pass, answers do not */
    OK(cv_election_resign(b));
    for (int i = 0; i < 3; i++) {
        proxy->mode = PROXY_DEAF;
        usleep(2000);
        proxy->mode = PROXY_CUTS;
        usleep(2000);
        proxy->mode = PROXY_PASSES;
        usleep(2000);
    }
    AWAIT(cv_election_state(a) == CV_LEADING);
    OK(cv_exists(other, leader, &stat));
    assert_int_equal(stat.czxid, cv_election_token(a));
    assert_int_equal(stat.ephemeral_owner, cv_session_id(client));
    cv_election_close(a);
    cv_election_close(b);
    cv_close(client);
    cv_close(other);
    proxy_close(proxy);
}

/* ---- The others ---- */

struct waiter {
    pthread_t thread;
    struct cv_client *client;
    const char *path;
    atomic_int result; /* 1: not yet */
    atomic_int stage;
    int32_t count;
};

static void *wait_at_barrier(void *arg) {
    struct waiter *w = arg;
    w->result = cv_barrier_wait(w->client, w->path, CV_FOREVER);
    return NULL;
}

static void a_barrier_holds_until_it_is_gone(void **state) {
    (void)state;
    const char *path = fresh("barrier");
    struct cv_client *client = new_client();
    struct waiter w = {.client = client, .path = path, .result = 1};
    OK(cv_barrier_wait(client, path, CV_FOREVER)); /* there is none */
    OK(cv_create_all(client, path, CV_PERSISTENT));
    assert_int_equal(cv_barrier_wait(client, path, 20), CV_OPERATION_TIMEOUT);
    OK(pthread_create(&w.thread, NULL, wait_at_barrier, &w));
    OK(cv_set(client, path, "x", 1, -1)); /* is not its end */
    assert_int_equal(w.result, 1);
    OK(cv_delete(client, path, -1));
    pthread_join(w.thread, NULL);
    assert_int_equal(w.result, CV_OK);
    cv_close(client);
}

static void *pass_double_barrier(void *arg) {
    struct waiter *w = arg;
    struct cv_double_barrier *barrier;
    w->result = cv_double_barrier_enter(&barrier, w->client, w->path, w->count, CV_FOREVER);
    if (w->result) return NULL;
    w->stage = 1;
    w->result = 1;
    w->result = cv_double_barrier_leave(barrier, CV_FOREVER);
    w->stage = 2;
    return NULL;
}

static void a_double_barrier_lets_all_in_and_out(void **state) {
    (void)state;
    enum { COUNT = 4 };
    const char *path = fresh("double");
    struct cv_client *client = new_client();
    struct cv_double_barrier *barrier;
    struct waiter w[COUNT];
    assert_int_equal(cv_double_barrier_enter(&barrier, client, path, 2, 20), CV_OPERATION_TIMEOUT);
    for (int i = 0; i < COUNT - 1; i++) {
        w[i] = (struct waiter){.client = client, .path = path, .result = 1, .count = COUNT};
        OK(pthread_create(&w[i].thread, NULL, pass_double_barrier, &w[i]));
    }
    usleep(20000);
    for (int i = 0; i < COUNT - 1; i++) assert_int_equal(w[i].stage, 0);
    OK(cv_double_barrier_enter(&barrier, client, path, COUNT, CV_FOREVER));
    for (int i = 0; i < COUNT - 1; i++) AWAIT(w[i].stage == 1);
    usleep(20000);
    for (int i = 0; i < COUNT - 1; i++) assert_int_equal(w[i].stage, 1); /* waits for us */
    OK(cv_double_barrier_leave(barrier, CV_FOREVER));
    for (int i = 0; i < COUNT - 1; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].result, CV_OK);
    }
    cv_close(client);
}

static void *pass_again_and_again(void *arg) {
    struct waiter *w = arg;
    struct cv_double_barrier *barrier;
    for (int round = 0; round < 30; round++) {
        w->result = cv_double_barrier_enter(&barrier, w->client, w->path, w->count, CV_FOREVER);
        if (!w->result) w->result = cv_double_barrier_leave(barrier, CV_FOREVER);
        if (w->result) break;
        w->stage++;
    }
    return NULL;
}

static void a_double_barrier_is_used_again(void **state) {
    (void)state;
    const char *path = fresh("again");
    struct cv_client *client = new_client();
    struct waiter w[2];
    for (int i = 0; i < 2; i++) {
        w[i] = (struct waiter){.client = client, .path = path, .result = 1, .count = 2};
        OK(pthread_create(&w[i].thread, NULL, pass_again_and_again, &w[i]));
    }
    for (int i = 0; i < 2; i++) {
        AWAIT(w[i].stage == 30);
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].result, CV_OK);
    }
    cv_close(client);
}

static void take_and_expect(struct cv_client *client, const char *path, const char *text,
                            struct cv_work **work) {
    size_t size;
    OK(cv_work_take(work, client, path, CV_FOREVER));
    const void *data = cv_work_data(*work, &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
}

static void work_is_done_once(void **state) {
    (void)state;
    const char *path = fresh("work");
    struct cv_client *client = new_client();
    struct cv_work *two, *three, *none;
    int status;
    assert_int_equal(cv_work_take(&none, client, path, 20), CV_OPERATION_TIMEOUT);
    OK(cv_work_put(client, path, "b", 1, 0));
    OK(cv_work_put(client, path, "c", 1, 0));
    OK(cv_work_put(client, path, "a", 1, -3));
    pid_t dies = fork();
    if (dies == 0) {
        struct cv_client *own = new_client();
        take_and_expect(own, path, "a", &none);
        cv_close(own); /* its entry is offered again */
        _exit(0);
    }
    assert_int_equal(waitpid(dies, &status, 0), dies);
    assert_int_equal(status, 0);
    take_and_expect(client, path, "a", &two);
    take_and_expect(client, path, "b", &three);
    OK(cv_work_done(three));
    take_and_expect(client, path, "c", &three);
    assert_int_equal(cv_work_take(&none, client, path, 20), CV_OPERATION_TIMEOUT);
    OK(cv_work_done(three));
    OK(cv_work_put_back(two));
    take_and_expect(client, path, "a", &two);
    OK(cv_work_done(two));
    assert_int_equal(cv_work_take(&none, client, path, 20), CV_OPERATION_TIMEOUT);
    cv_close(client);
}

static void counters_count(void **state) {
    (void)state;
    const char *path = fresh("counter");
    struct cv_client *client = new_client();
    int64_t value = -1;
    OK(cv_counter_add(client, path, 0, &value));
    assert_int_equal(value, 0);
    OK(cv_counter_add(client, path, 5, &value));
    OK(cv_counter_add(client, path, -7, NULL));
    OK(cv_counter_add(client, path, 0, &value));
    assert_int_equal(value, -2);
    OK(cv_set(client, path, "no number", 9, -1));
    assert_int_equal(cv_counter_add(client, path, 1, &value), CV_BAD_ARGUMENTS);
    OK(cv_set(client, path, "9223372036854775807", 19, -1));
    assert_int_equal(cv_counter_add(client, path, 1, &value), CV_BAD_ARGUMENTS);
    cv_close(client);
}

static void one_claims_it_for_good(void **state) {
    (void)state;
    const char *path = fresh("once");
    struct cv_client *client = new_client();
    struct cv_result *owner;
    OK(cv_once(client, path, "me", &owner));
    assert_null(owner);
    assert_int_equal(cv_once(client, path, "you", &owner), CV_NODE_EXISTS);
    assert_non_null(strstr(owner->data, "\"label\":\"me\""));
    cv_result_free(owner);
    assert_int_equal(cv_once(client, path, "you", NULL), CV_NODE_EXISTS);
    cv_close(client);
}

static atomic_int changes;
static void on_change(enum cv_watch_type type, const char *path, void *arg) {
    (void)type;
    (void)path;
    (void)arg;
    changes++;
}

static bool cache_has(struct cv_cache *cache, const char *path, const char *text) {
    struct cv_result *r;
    int error = cv_cache_get(cache, path, &r);
    bool equal = text ? !error && r->size == strlen(text) && !memcmp(r->data, text, r->size)
                      : error == CV_NO_NODE;
    cv_result_free(r);
    return equal;
}

static void a_cache_follows_its_subtree(void **state) {
    (void)state;
    char top[80], a[100], first[100], b[100], other[100];
    snprintf(top, sizeof top, "%s", fresh("cache"));
    snprintf(a, sizeof a, "%s/a", top);
    snprintf(first, sizeof first, "%s/a/a", top);
    snprintf(b, sizeof b, "%s/a/b", top);
    snprintf(other, sizeof other, "%s-other", top); /* sorts between, and is not below it */
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = client_at(proxy->address, 30000), *writer = new_client();
    struct cv_cache *cache;
    struct cv_result *r;
    OK(cv_create_all(writer, a, CV_PERSISTENT));
    OK(cv_set(writer, a, "1", 1, -1));
    OK(cv_create(writer, other, "x", 1, CV_PERSISTENT, NULL, 0));
    OK(cv_cache_open(&cache, client, top, on_change, NULL));
    assert_true(cache_has(cache, a, "1") && cache_has(cache, other, NULL));
    int before = changes;
    OK(cv_create(writer, first, "5", 1, CV_PERSISTENT, NULL, 0));
    OK(cv_create(writer, b, "2", 1, CV_PERSISTENT, NULL, 0));
    OK(cv_set(writer, a, "3", 1, -1));
    AWAIT(cache_has(cache, first, "5") && cache_has(cache, b, "2") && cache_has(cache, a, "3"));
    AWAIT(changes >= before + 2);
    OK(cv_cache_children(cache, top, &r));
    assert_int_equal(r->name_count, 1);
    assert_string_equal(r->names[0], "a");
    cv_result_free(r);
    assert_int_equal(cv_cache_children(cache, other, &r), CV_NO_NODE);
    /* what happens without a connection is found after it */
    proxy->mode = PROXY_CUTS;
    AWAIT(cv_state(client) == CV_CONNECTING);
    OK(cv_delete(writer, first, -1)); /* others come after it in the cache */
    OK(cv_set(writer, a, "4", 1, -1));
    proxy->mode = PROXY_PASSES;
    AWAIT(cache_has(cache, first, NULL) && cache_has(cache, a, "4"));
    assert_true(cache_has(cache, b, "2"));
    OK(cv_delete(writer, b, -1));
    AWAIT(cache_has(cache, b, NULL));
    OK(cv_delete(writer, a, -1));
    AWAIT(cache_has(cache, a, NULL));
    cv_cache_close(cache);
    OK(cv_delete(writer, top, -1));
    OK(cv_delete(writer, other, -1));
    cv_close(client);
    cv_close(writer);
    proxy_close(proxy);
}

/* ---- Every order that threads find ---- */

static int unguarded;
static atomic_int inside_now;
static void *compete(void *arg) {
    const char *path = arg;
    struct cv_client *client = new_client();
    struct cv_lock *lock = exclusive(client, path);
    for (int i = 0; i < 50; i++) {
        if (cv_lock_acquire(lock, CV_FOREVER)) return (void *)1;
        if (inside_now++) return (void *)1;
        int seen = unguarded;
        if (i % 8 == 0) usleep(100);
        unguarded = seen + 1;
        inside_now--;
        if (cv_lock_release(lock)) return (void *)1;
    }
    cv_lock_close(lock);
    cv_close(client);
    return NULL;
}

static void threads_compete(void **state) {
    (void)state;
    enum { COUNT = 6 };
    pthread_t thread[COUNT];
    char *path = strdup(fresh("compete"));
    for (int i = 0; i < COUNT; i++) OK(pthread_create(&thread[i], NULL, compete, path));
    for (int i = 0; i < COUNT; i++) {
        void *result;
        pthread_join(thread[i], &result);
        assert_null(result);
    }
    assert_int_equal(unguarded, COUNT * 50);
    free(path);
}

static int start_server(void **state) {
    (void)state;
    server = getenv("RECIPES_SERVER");
    if (server) return 0;
    name_program();
    own_server = cv_test_server();
    server = own_server ? cv_test_server_address(own_server) : NULL;
    return server ? 0 : -1;
}

static int stop_server(void **state) {
    (void)state;
    cv_test_server_stop(own_server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_held_by_one),
        cmocka_unit_test(locks_are_first_in_first_out),
        cmocka_unit_test(a_deleted_node_is_a_lost_lock),
        cmocka_unit_test(who_waits_cannot_write),
        cmocka_unit_test(a_lock_is_lost_in_time),
        cmocka_unit_test(a_lost_answer_makes_no_second_node),
        cmocka_unit_test(a_release_between_look_and_watch),
        cmocka_unit_test(connections_break_while_it_waits),
        cmocka_unit_test(other_recipes_are_refused),
        cmocka_unit_test(readers_share),
        cmocka_unit_test(upgrades_have_no_gap),
        cmocka_unit_test(some_hold_slots),
        cmocka_unit_test(several_are_taken_or_none),
        cmocka_unit_test(contenders_are_described),
        cmocka_unit_test(a_resumed_session_keeps_its_lock),
        cmocka_unit_test(on_the_callers_loop),
        cmocka_unit_test(a_leader_hands_over),
        cmocka_unit_test(a_stable_leader_stays),
        cmocka_unit_test(a_leader_without_server_is_lost_in_time),
        cmocka_unit_test(a_claim_whose_answer_is_lost),
        cmocka_unit_test(a_barrier_holds_until_it_is_gone),
        cmocka_unit_test(a_double_barrier_lets_all_in_and_out),
        cmocka_unit_test(a_double_barrier_is_used_again),
        cmocka_unit_test(work_is_done_once),
        cmocka_unit_test(counters_count),
        cmocka_unit_test(one_claims_it_for_good),
        cmocka_unit_test(a_cache_follows_its_subtree),
        cmocka_unit_test(threads_compete),
    };
    return cmocka_run_group_tests_name("recipes", tests, start_server, stop_server);
}
