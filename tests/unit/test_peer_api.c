/* Peers for programs: several of them in one process, over loopback. */
#include "client_help.h"

#include <ftw.h>
#include <limits.h>
#include <sys/resource.h>

#include "conclave/peer.h"

enum { PEERS = 3 };

struct group {
    char directory[64], list[96];
    struct cv_peer *peer[PEERS + 1]; /* by id */
};

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

/* Ports that were free a moment ago.  Not of those that the system hands out, to others as well. */
static void write_list(const struct group *group) {
    int listener[PEERS], used = 0;
    FILE *file = fopen(group->list, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000 && used < PEERS; i++) {
        int port = 19000 + ((int)getpid() * 7 + i) % 1000;
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
        listener[used] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(listener[used], (struct sockaddr *)&at, sizeof at) == 0)
            fprintf(file, "%d 127.0.0.1:%d\n", ++used, port);
        else
            close(listener[used]);
    }
    assert_int_equal(used, PEERS);
    while (used) close(listener[--used]);
    fclose(file);
}

static void group_begin(struct group *group) {
    *group = (struct group){.directory = "/tmp/conclave-test.XXXXXX"};
    assert_non_null(mkdtemp(group->directory));
    snprintf(group->list, sizeof group->list, "%s/peers.conf", group->directory);
    write_list(group);
}

static int join(struct group *group, uint32_t id, struct cv_peer_options options) {
    char data[96];
    snprintf(data, sizeof data, "%s/%u", group->directory, id);
    options.peers = group->list;
    options.id = id;
    options.data = data;
    return cv_peer_open(&group->peer[id], &options);
}

static void join_all(struct group *group, const char *algorithm) {
    for (uint32_t id = 1; id <= PEERS; id++)
        assert_int_equal(join(group, id, (struct cv_peer_options){.algorithm = algorithm}), CV_OK);
}

static void group_end(struct group *group) {
    for (int id = 1; id <= PEERS; id++) cv_peer_close(group->peer[id]);
    assert_int_equal(nftw(group->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void explained(struct cv_peer *peer, const char *part) {
    char why[700];
    if (!strstr(cv_peer_explain(peer, why, sizeof why), part)) fail_msg("%s: not %s", why, part);
}

/* ---- Locks ---- */

enum { ENTRIES = 40 };
struct counting {
    struct cv_peer *peer;
    int *counter;
};

static void *count(void *arg) {
    const struct counting *counting = arg;
    for (int i = 0; i < ENTRIES; i++) {
        if (cv_peer_acquire(counting->peer, PATIENCE_MS) != CV_OK) return NULL;
        int value = *(volatile int *)counting->counter;
        sched_yield();
        *(volatile int *)counting->counter = value + 1;
        if (cv_peer_release(counting->peer) != CV_OK) return NULL;
    }
    return cv_peer_finish(counting->peer, PATIENCE_MS) == CV_OK ? arg : NULL;
}

static void test_exclusion(void **state) {
    (void)state;
    struct group group;
    struct counting counting[PEERS];
    pthread_t thread[PEERS];
    int counter = 0;
    group_begin(&group);
    join_all(&group, "ricart-agrawala");
    for (int i = 0; i < PEERS; i++) {
        counting[i] = (struct counting){group.peer[i + 1], &counter};
        assert_int_equal(pthread_create(&thread[i], NULL, count, &counting[i]), 0);
    }
    for (int i = 0; i < PEERS; i++) {
        void *result;
        pthread_join(thread[i], &result);
        assert_non_null(result);
    }
    assert_int_equal(counter, PEERS * ENTRIES);
    assert_int_equal(cv_peer_acquire(group.peer[1], 0), CV_CLOSING);
    group_end(&group);
}

static void test_waiting_ends(void **state) {
    (void)state;
    struct group group;
    group_begin(&group);
    join_all(&group, "central");
    struct cv_peer *one = group.peer[2], *other = group.peer[3];
    assert_int_equal(cv_peer_acquire(group.peer[1], 0), CV_UNIMPLEMENTED); /* it coordinates */
    assert_int_equal(cv_peer_campaign(one), CV_UNIMPLEMENTED);
    assert_int_equal(cv_peer_release(one), CV_NOT_HELD);
    assert_int_equal(cv_peer_acquire(other, PATIENCE_MS), CV_OK); /* its link is up from now on */
    assert_int_equal(cv_peer_release(other), CV_OK);
    assert_int_equal(cv_peer_acquire(one, PATIENCE_MS), CV_OK);
    uint64_t token = cv_peer_token(one);
    assert_true(token > 0);
    assert_int_equal(cv_peer_start(one), CV_BUSY);
    assert_int_equal(cv_peer_acquire(other, 20), CV_OPERATION_TIMEOUT);
    assert_int_equal(cv_peer_state(other), CV_IDLE);
    assert_int_equal(cv_peer_token(other), 0);
    /* What comes too late is given back by itself. */
    assert_int_equal(cv_peer_release(one), CV_OK);
    assert_int_equal(cv_peer_state(one), CV_IDLE);
    assert_int_equal(cv_peer_acquire(one, PATIENCE_MS), CV_OK);
    assert_true(cv_peer_token(one) > token);
    /* One that was given up is taken up again. */
    assert_int_equal(cv_peer_start(other), CV_OK);
    assert_int_equal(cv_peer_state(other), CV_WAITING);
    assert_int_equal(cv_peer_release(other), CV_OK);
    assert_int_equal(cv_peer_start(other), CV_OK);
    assert_int_equal(cv_peer_release(one), CV_OK);
    AWAIT(cv_peer_state(other) == CV_HELD);
    group_end(&group);
}

/* Whoever ends gives back what it holds. */
static void test_close_releases(void **state) {
    (void)state;
    struct group group;
    group_begin(&group);
    join_all(&group, "central");
    assert_int_equal(cv_peer_acquire(group.peer[2], PATIENCE_MS), CV_OK);
    cv_peer_close(group.peer[2]);
    group.peer[2] = NULL;
    assert_int_equal(cv_peer_acquire(group.peer[3], PATIENCE_MS), CV_OK);
    group_end(&group);
}

/* ---- Callbacks ---- */

struct chain {
    atomic_int inside, entries, wrong;
    int wanted;
    pthread_t caller;
};

/* Enters again and again, from the callback. */
static void step(struct cv_peer *peer, enum cv_lock_state state, void *arg) {
    struct chain *chain = arg;
    if (atomic_fetch_add(&chain->inside, 1)) atomic_fetch_add(&chain->wrong, 1);
    chain->caller = pthread_self();
    if (state == CV_HELD) {
        if (cv_peer_acquire(peer, 0) != CV_WOULD_DEADLOCK) atomic_fetch_add(&chain->wrong, 1);
        if (cv_peer_release(peer) != CV_OK) atomic_fetch_add(&chain->wrong, 1);
    }
    if (state == CV_IDLE && atomic_fetch_add(&chain->entries, 1) + 1 < chain->wanted &&
        cv_peer_start(peer) != CV_OK)
        atomic_fetch_add(&chain->wrong, 1);
    atomic_fetch_sub(&chain->inside, 1);
}

static void test_callbacks(void **state) {
    (void)state;
    struct group group;
    struct chain chain = {.wanted = 100};
    group_begin(&group);
    assert_int_equal(join(&group, 1, (struct cv_peer_options){.algorithm = "central"}), CV_OK);
    assert_int_equal(
        join(&group, 2,
             (struct cv_peer_options){.algorithm = "central", .on_lock = step, .arg = &chain}),
        CV_OK);
    assert_int_equal(join(&group, 3, (struct cv_peer_options){.algorithm = "central"}), CV_OK);
    assert_int_equal(cv_peer_fd(group.peer[2]), -1);
    assert_int_equal(cv_peer_process(group.peer[2]), CV_BAD_ARGUMENTS);
    assert_int_equal(cv_peer_start(group.peer[2]), CV_OK);
    AWAIT(atomic_load(&chain.entries) >= chain.wanted);
    cv_peer_close(group.peer[2]);
    group.peer[2] = NULL;
    assert_int_equal(chain.wrong, 0);
    assert_false(pthread_equal(chain.caller, pthread_self()));
    group_end(&group);
}

struct seen {
    enum cv_lock_state state[8];
    int count;
    pthread_t caller;
};

static void see(struct cv_peer *peer, enum cv_lock_state state, void *arg) {
    struct seen *seen = arg;
    (void)peer;
    seen->caller = pthread_self();
    seen->state[seen->count++] = state;
}

static void test_own_loop(void **state) {
    (void)state;
    struct group group;
    struct seen seen = {.count = 0};
    group_begin(&group);
    for (uint32_t id = 2; id <= PEERS; id++)
        assert_int_equal(join(&group, id, (struct cv_peer_options){.algorithm = "lamport"}), CV_OK);
    assert_int_equal(
        join(&group, 1,
             (struct cv_peer_options){
                 .algorithm = "lamport", .flags = CV_PEER_OWN_LOOP, .on_lock = see, .arg = &seen}),
        CV_OK);
    assert_int_equal(cv_peer_start(group.peer[1]), CV_OK);
    struct pollfd wait = {.fd = cv_peer_fd(group.peer[1]), .events = POLLIN};
    while (seen.count < 2) {
        assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
        assert_int_equal(cv_peer_process(group.peer[1]), CV_OK);
    }
    assert_int_equal(cv_peer_release(group.peer[1]), CV_OK);
    assert_int_equal(seen.count, 2); /* not before it is asked for */
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_int_equal(cv_peer_process(group.peer[1]), CV_OK);
    assert_int_equal(seen.count, 3);
    assert_int_equal(poll(&wait, 1, 0), 0);
    assert_int_equal(seen.state[0], CV_WAITING);
    assert_int_equal(seen.state[1], CV_HELD);
    assert_int_equal(seen.state[2], CV_IDLE);
    assert_true(pthread_equal(seen.caller, pthread_self()));
    group_end(&group);
}

/* ---- Elections ---- */

static void elected(struct cv_peer *peer, enum cv_peer_role role, uint64_t leader, uint32_t term,
                    void *arg) {
    (void)peer, (void)role, (void)term;
    atomic_store((atomic_uint_fast64_t *)arg, leader);
}

static void test_election(void **state) {
    (void)state;
    struct group group;
    atomic_uint_fast64_t leader[PEERS + 1] = {0};
    group_begin(&group);
    for (uint32_t id = 1; id <= PEERS; id++)
        assert_int_equal(join(&group, id,
                              (struct cv_peer_options){
                                  .algorithm = "chang-roberts",
                                  .on_leader = elected,
                                  .arg = &leader[id],
                                  .detector = "none",
                              }),
                         CV_OK);
    assert_int_equal(cv_peer_leader(group.peer[1], NULL, NULL), CV_PEER_LEADERLESS);
    assert_int_equal(cv_peer_acquire(group.peer[1], 0), CV_UNIMPLEMENTED);
    assert_int_equal(cv_peer_campaign(group.peer[2]), CV_OK);
    for (uint32_t id = 1; id <= PEERS; id++) {
        uint64_t who = 0;
        AWAIT(atomic_load(&leader[id]) == PEERS);
        assert_int_equal(cv_peer_leader(group.peer[id], &who, NULL),
                         id == PEERS ? CV_PEER_LEADS : CV_PEER_FOLLOWS);
        assert_int_equal(who, PEERS);
    }
    group_end(&group);
}

/* ---- A loss ---- */

struct losses {
    atomic_int lock, leader, after;
};

static void lost_lock(struct cv_peer *peer, enum cv_lock_state state, void *arg) {
    struct losses *losses = arg;
    (void)peer;
    if (atomic_load(&losses->lock)) atomic_fetch_add(&losses->after, 1);
    if (state == CV_LOST_LOCK) atomic_fetch_add(&losses->lock, 1);
}

static void lost_leader(struct cv_peer *peer, enum cv_peer_role role, uint64_t leader,
                        uint32_t term, void *arg) {
    struct losses *losses = arg;
    (void)peer, (void)leader, (void)term;
    if (atomic_load(&losses->leader)) atomic_fetch_add(&losses->after, 1);
    if (role == CV_PEER_LOST) atomic_fetch_add(&losses->leader, 1);
}

/* Whatever is written to a file meanwhile fails, also what a test reports. */
static void disks_fail(bool fail) {
    static struct rlimit before;
    if (fail) assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit none = {0, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, fail ? &none : &before);
}

/* A coordinator, which asks for nothing, must save a grant. */
static void test_loss_is_told(void **state) {
    (void)state;
    struct group group;
    struct losses losses[] = {{0}, {0}};
    struct cv_peer_options options[] = {
        {.algorithm = "central", .on_lock = lost_lock, .on_leader = lost_leader, .arg = &losses[0]},
        {.algorithm = "central", .flags = CV_PEER_OWN_LOOP},
        {.algorithm = "central",
         .flags = CV_PEER_OWN_LOOP,
         .on_lock = lost_lock,
         .on_leader = lost_leader,
         .arg = &losses[1]}};
    for (int i = 0; i < 3; i++) {
        bool own_loop = options[i].flags & CV_PEER_OWN_LOOP;
        const struct losses *seen = options[i].arg;
        group_begin(&group);
        assert_int_equal(join(&group, 1, options[i]), CV_OK);
        struct cv_peer *peer = group.peer[1];
        assert_int_equal(join(&group, 2, (struct cv_peer_options){.algorithm = "central"}), CV_OK);
        assert_int_equal(cv_peer_acquire(group.peer[2], PATIENCE_MS), CV_OK);
        assert_int_equal(cv_peer_state(peer), CV_IDLE);
        if (own_loop) assert_int_equal(cv_peer_process(peer), CV_OK);
        disks_fail(true);
        cv_peer_release(group.peer[2]);
        cv_peer_start(group.peer[2]);
        struct pollfd wait = {.fd = cv_peer_fd(peer), .events = POLLIN};
        int ready = own_loop ? poll(&wait, 1, PATIENCE_MS) : 1;
        AWAIT(cv_peer_state(peer) == CV_LOST_LOCK);
        disks_fail(false);
        assert_int_equal(ready, 1);
        if (own_loop) assert_int_equal(cv_peer_process(peer), CV_LOST);
        if (own_loop) assert_int_equal(poll(&wait, 1, 0), 0);
        if (own_loop) assert_int_equal(cv_peer_process(peer), CV_LOST);
        assert_int_equal(cv_peer_leader(peer, NULL, NULL), CV_PEER_LOST);
        AWAIT(!seen || atomic_load(&seen->leader));
        explained(peer, strerror(EFBIG));
        group_end(&group);
        if (!seen) continue;
        assert_int_equal(seen->lock, 1);
        assert_int_equal(seen->leader, 1);
        assert_int_equal(seen->after, 0);
    }
}

/* ---- What is refused ---- */

static void refused(struct group *group, struct cv_peer_options options, uint32_t id, int error,
                    const char *why) {
    assert_int_equal(join(group, id, options), error);
    explained(group->peer[id], why);
    assert_int_equal(cv_peer_acquire(group->peer[id], 0), CV_CLOSING);
    cv_peer_close(group->peer[id]);
    group->peer[id] = NULL;
}

#define WITH(...)                                                                                  \
    (struct cv_peer_options) { .algorithm = "bully", __VA_ARGS__ }

static void test_refused(void **state) {
    (void)state;
    struct group group;
    struct cv_tls half = {.certificate = "x"};
    struct cv_tls absent = {
        .certificate = "/nonexistent/c", .key = "/nonexistent/k", .authorities = "/nonexistent/a"};
    struct cv_peer *none;
    group_begin(&group);
    assert_int_equal(cv_peer_open_sized(&none, NULL, 0), CV_BAD_ARGUMENTS);
    explained(none, "have to be given");
    cv_peer_close(none);
    assert_string_equal(cv_peer_explain(NULL, (char[]){"as it was"}, 10), "");
    refused(&group, (struct cv_peer_options){.algorithm = "buly"}, 2, CV_BAD_ARGUMENTS,
            "did you mean bully");
    refused(&group, WITH(.options = (const char *[]){"speed=1", NULL}), 2, CV_BAD_ARGUMENTS,
            "bully: there is no option 'speed'");
    refused(&group, WITH(.options = (const char *[]){"transmission=soon", NULL}), 2,
            CV_BAD_ARGUMENTS, "'soon' is not a time");
    refused(&group, WITH(.options = (const char *[]){"transmission", NULL}), 2, CV_BAD_ARGUMENTS,
            "a value is missing");
    refused(&group, WITH(.detector = "luck"), 2, CV_BAD_ARGUMENTS, "fixed:TIME");
    refused(&group, WITH(.heartbeat = 1), 2, CV_BAD_ARGUMENTS, "at least 4 ms");
    refused(&group, WITH(.tls = &half), 2, CV_BAD_ARGUMENTS, "go together");
    refused(&group, WITH(.key = "/nonexistent/key"), 2, CV_SYSTEM_ERROR,
            "key cannot be used: /nonexistent/key: No such file");
    refused(&group, WITH(.tls = &absent), 2, CV_SYSTEM_ERROR, "/nonexistent/c: No such file");
    refused(&group, (struct cv_peer_options){.algorithm = "central", .detector = "fixed:1s"}, 2,
            CV_BAD_ARGUMENTS, "does not use");
    assert_int_equal(join(&group, 1, WITH(.record = "/nonexistent/record")), CV_SYSTEM_ERROR);
    explained(group.peer[1], "/nonexistent/record");
    cv_peer_close(group.peer[1]);
    assert_int_equal(join(&group, 1, WITH(.flags = CV_PEER_INSECURE)), CV_OK);
    struct cv_peer *running = group.peer[1];
    refused(&group, WITH(.flags = CV_PEER_INSECURE), 1, CV_SYSTEM_ERROR, "another process uses it");
    group.peer[1] = running;
    group_end(&group);
}

/* A key that is there is used where none could be made: its name leaves no room for a longer one.
 */
static void test_key_is_there(void **state) {
    (void)state;
    struct group group;
    char list[400], key[400], made[400];
    group_begin(&group);
    snprintf(list, sizeof list, "%s/%0*d", group.directory, NAME_MAX - 4, 0);
    snprintf(key, sizeof key, "%s.key", list);
    snprintf(made, sizeof made, "%s.key", group.list);
    assert_int_equal(join(&group, 1, WITH()), CV_OK);
    cv_peer_close(group.peer[1]);
    struct cv_peer_options options = WITH(.peers = list, .id = 1, .data = group.directory);
    assert_int_equal(link(group.list, list), 0);
    assert_int_equal(cv_peer_open(&group.peer[1], &options), CV_SYSTEM_ERROR);
    cv_peer_close(group.peer[1]);
    assert_int_equal(link(made, key), 0);
    assert_int_equal(cv_peer_open(&group.peer[1], &options), CV_OK);
    group_end(&group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusion),      cmocka_unit_test(test_waiting_ends),
        cmocka_unit_test(test_close_releases), cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_own_loop),       cmocka_unit_test(test_election),
        cmocka_unit_test(test_loss_is_told),   cmocka_unit_test(test_key_is_there),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
