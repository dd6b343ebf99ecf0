// Debian's C client against a server: calls that wait, calls that do not, watches, transactions.
//   c_client HOST:PORT NAME   runs one test;  c_client --list   names them.
// What is asserted about order needs this client: its one thread delivers events and answers in the
// order in which they came off the wire.
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

enum { LATE = 75, EVENTS_MOST = 256, PATH_ROOM = 128 }; // LATE as in patience.py

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) fail(__LINE__, #condition);                                              \
    } while (0)

// Events and answers in the order in which they came.
struct journal {
    pthread_mutex_t mutex;
    pthread_cond_t grew;
    int count;
    struct {
        char kind; // 'e': an event; 'a': an answer
        int type;  // of the event, or the answer's code
        int about; // which call was answered
        char path[PATH_ROOM];
    } entries[EVENTS_MOST];
};

struct site {
    const char *address;
    char root[PATH_ROOM];
};

static void fail(int line, const char *what) {
    fprintf(stderr, "line %d: not true: %s\n", line, what);
    exit(1);
}

static int patience_s(void) {
    const char *seconds = getenv("PATIENCE");
    return seconds ? atoi(seconds) : 120;
}

static void late(const char *what) {
    fprintf(stderr, "not within %d s: %s\n", patience_s(), what);
    exit(LATE);
}

static void note(struct journal *journal, char kind, int type, int about, const char *path) {
    pthread_mutex_lock(&journal->mutex);
    EXPECT(journal->count < EVENTS_MOST);
    int i = journal->count++;
    journal->entries[i].kind = kind;
    journal->entries[i].type = type;
    journal->entries[i].about = about;
    snprintf(journal->entries[i].path, PATH_ROOM, "%s", path ? path : "");
    pthread_cond_broadcast(&journal->grew);
    pthread_mutex_unlock(&journal->mutex);
}

static void await(struct journal *journal, int count) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += patience_s();
    pthread_mutex_lock(&journal->mutex);
    while (journal->count < count)
        if (pthread_cond_timedwait(&journal->grew, &journal->mutex, &end)) late("events");
    pthread_mutex_unlock(&journal->mutex);
}

static void start_journal(struct journal *journal) {
    memset(journal, 0, sizeof *journal);
    pthread_mutex_init(&journal->mutex, NULL);
    pthread_cond_init(&journal->grew, NULL);
}

static void watcher(zhandle_t *zh, int type, int state, const char *path, void *context) {
    (void)zh, (void)state;
    if (type != ZOO_SESSION_EVENT && context) note(context, 'e', type, 0, path);
}

static zhandle_t *resume(const struct site *site, const clientid_t *session) {
    char hosts[2 * PATH_ROOM];
    snprintf(hosts, sizeof hosts, "%s%s", site->address, site->root);
    zhandle_t *zh = zookeeper_init(hosts, watcher, 40000, session, NULL, 0);
    EXPECT(zh);
    for (int i = 0; zoo_state(zh) != ZOO_CONNECTED_STATE; i++) {
        EXPECT(zoo_state(zh) != ZOO_EXPIRED_SESSION_STATE);
        if (i == patience_s() * 100) late("a connection");
        usleep(10000);
    }
    return zh;
}

static zhandle_t *enter(const struct site *site) { return resume(site, NULL); }

static void make(zhandle_t *zh, const char *path, const char *data, int mode) {
    int length = (int)strlen(data);
    EXPECT(zoo_create(zh, path, data, length, &ZOO_OPEN_ACL_UNSAFE, mode, NULL, 0) == ZOK);
}

static void calls_that_wait(const struct site *site) {
    zhandle_t *zh = enter(site);
    char path[PATH_ROOM], data[64];
    int length = sizeof data;
    struct Stat stat;
    struct String_vector names;
    EXPECT(zoo_create(zh, "/a", "one", 3, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path) == ZOK);
    EXPECT(strcmp(path, "/a") == 0);
    EXPECT(zoo_create(zh, "/a", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZNODEEXISTS);
    EXPECT(zoo_get(zh, "/a", 0, data, &length, &stat) == ZOK);
    EXPECT(length == 3 && memcmp(data, "one", 3) == 0 && stat.version == 0);
    EXPECT(zoo_set2(zh, "/a", "second", 6, 0, &stat) == ZOK);
    EXPECT(stat.version == 1 && stat.dataLength == 6 && stat.mzxid > stat.czxid);
    EXPECT(zoo_set(zh, "/a", "late", 4, 0) == ZBADVERSION);
    make(zh, "/a/child", "", 0);
    EXPECT(zoo_get_children2(zh, "/a", 0, &names, &stat) == ZOK);
    EXPECT(names.count == 1 && strcmp(names.data[0], "child") == 0 && stat.numChildren == 1);
    deallocate_String_vector(&names);
    EXPECT(zoo_get_children(zh, "/a/child", 0, &names) == ZOK && names.count == 0);
    deallocate_String_vector(&names);
    EXPECT(zoo_delete(zh, "/a", -1) == ZNOTEMPTY);
    EXPECT(zoo_delete(zh, "/a/child", 5) == ZBADVERSION);
    EXPECT(zoo_delete(zh, "/a/child", 0) == ZOK);
    EXPECT(zoo_delete(zh, "/a", 1) == ZOK);
    EXPECT(zoo_exists(zh, "/a", 0, &stat) == ZNONODE);
    EXPECT(zookeeper_close(zh) == ZOK);
}

static void sequence_and_ephemeral(const struct site *site) {
    zhandle_t *owner = enter(site), *other = enter(site);
    char path[PATH_ROOM];
    struct Stat stat;
    for (int i = 0; i < 3; i++) {
        char expected[PATH_ROOM];
        snprintf(expected, sizeof expected, "/s-%010d", i);
        EXPECT(zoo_create2(owner, "/s-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
                           path, sizeof path, &stat) == ZOK);
        EXPECT(strcmp(path, expected) == 0);
        EXPECT(stat.ephemeralOwner == zoo_client_id(owner)->client_id && stat.dataLength == 1);
    }
    EXPECT(zoo_create(other, "/s-0000000000/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) ==
           ZNOCHILDRENFOREPHEMERALS);
    EXPECT(zookeeper_close(owner) == ZOK);
    EXPECT(zoo_exists(other, "/s-0000000000", 0, NULL) == ZNONODE);
    EXPECT(zookeeper_close(other) == ZOK);
}

static void container(const struct site *site) {
    zhandle_t *zh = enter(site);
    struct Stat stat;
    make(zh, "/c", "box", ZOO_CONTAINER);
    EXPECT(zoo_exists(zh, "/c", 0, &stat) == ZOK && stat.ephemeralOwner == 0);
    make(zh, "/c/inside", "", ZOO_EPHEMERAL);
    EXPECT(zookeeper_close(zh) == ZOK);
}

static void time_to_live(const struct site *site) {
    zhandle_t *zh = enter(site);
    char path[PATH_ROOM];
    struct Stat stat;
    EXPECT(zoo_create2_ttl(zh, "/t", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 3600000,
                           path, sizeof path, &stat) == ZOK);
    EXPECT(strcmp(path, "/t") == 0 && stat.ephemeralOwner == 0);
    EXPECT(zoo_create_ttl(zh, "/t-", "", 0, &ZOO_OPEN_ACL_UNSAFE,
                          ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 1, path, sizeof path) == ZOK);
    EXPECT(strcmp(path, "/t-0000000001") == 0);
    make(zh, "/t/child", "", 0);
    EXPECT(zookeeper_close(zh) == ZOK);
}

static void acl(const struct site *site) {
    zhandle_t *zh = enter(site), *other = enter(site);
    struct ACL_vector list;
    struct Stat stat;
    EXPECT(zoo_create(zh, "/n", "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0) == ZINVALIDACL);
    EXPECT(zoo_add_auth(zh, "digest", "user1:12345", 11, NULL, NULL) == ZOK);
    EXPECT(zoo_create(zh, "/n", "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0) == ZOK);
    EXPECT(zoo_get_acl(zh, "/n", &list, &stat) == ZOK && list.count == 1);
    EXPECT(strcmp(list.data[0].id.id, "user1:+owfoSBn/am19roBPzR1/MfCblE=") == 0);
    deallocate_ACL_vector(&list);
    EXPECT(zoo_set(other, "/n", "", 0, -1) == ZNOAUTH);
    EXPECT(zoo_set_acl(other, "/n", -1, &ZOO_OPEN_ACL_UNSAFE) == ZNOAUTH);
    EXPECT(zoo_set_acl(zh, "/n", 0, &ZOO_READ_ACL_UNSAFE) == ZOK);
    char data[8];
    int length = sizeof data;
    EXPECT(zoo_get(other, "/n", 0, data, &length, &stat) == ZOK && stat.aversion == 1);
    EXPECT(zoo_set(zh, "/n", "", 0, -1) == ZNOAUTH);
    EXPECT(zookeeper_close(zh) == ZOK && zookeeper_close(other) == ZOK);
}

static void transaction(const struct site *site) {
    zhandle_t *zh = enter(site);
    char first[PATH_ROOM], second[PATH_ROOM];
    struct Stat stat;
    zoo_op_t ops[4];
    zoo_op_result_t results[4];
    zoo_create_op_init(&ops[0], "/a", "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, first, sizeof first);
    zoo_create_op_init(&ops[1], "/a/b-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, second,
                       sizeof second);
    zoo_set_op_init(&ops[2], "/a", "2", 1, 0, &stat);
    zoo_check_op_init(&ops[3], "/a", 1);
    EXPECT(zoo_multi(zh, 4, ops, results) == ZOK);
    EXPECT(strcmp(first, "/a") == 0 && strcmp(second, "/a/b-0000000000") == 0);
    EXPECT(stat.version == 1 && stat.czxid == stat.mzxid);
    zoo_delete_op_init(&ops[0], second, 0);
    zoo_check_op_init(&ops[1], "/a", 7);
    zoo_delete_op_init(&ops[2], "/a", -1);
    EXPECT(zoo_multi(zh, 3, ops, results) == ZBADVERSION);
    EXPECT(results[0].err == ZOK && results[1].err == ZBADVERSION);
    EXPECT(results[2].err == ZRUNTIMEINCONSISTENCY);
    EXPECT(zoo_exists(zh, second, 0, NULL) == ZOK);
    EXPECT(zookeeper_close(zh) == ZOK);
}

struct asked {
    struct journal *journal;
    int about;
};

static void answered(int code, const struct Stat *stat, const void *context) {
    const struct asked *asked = context;
    note(asked->journal, 'a', code, asked->about, stat ? "stat" : "");
}

static void got(int code, const char *data, int length, const struct Stat *stat,
                const void *context) {
    (void)data, (void)length;
    answered(code, stat, context);
}

// A client that watches a node and changes it gets the event before the answer.
static void events_before_answers(const struct site *site) {
    enum { ROUNDS = 40 };
    static struct journal journal;
    static struct asked asked[ROUNDS][2];
    zhandle_t *zh = enter(site);
    start_journal(&journal);
    make(zh, "/n", "", 0);
    for (int i = 0; i < ROUNDS; i++) {
        asked[i][0] = (struct asked){&journal, 2 * i};
        asked[i][1] = (struct asked){&journal, 2 * i + 1};
        EXPECT(zoo_awget(zh, "/n", watcher, &journal, got, &asked[i][0]) == ZOK);
        EXPECT(zoo_aset(zh, "/n", "x", 1, i, answered, &asked[i][1]) == ZOK);
    }
    await(&journal, 3 * ROUNDS);
    for (int i = 0; i < 3 * ROUNDS; i++) {
        char expected = "aea"[i % 3];
        EXPECT(journal.entries[i].kind == expected);
        if (expected == 'e')
            EXPECT(journal.entries[i].type == ZOO_CHANGED_EVENT);
        else
            EXPECT(journal.entries[i].type == ZOK &&
                   journal.entries[i].about == 2 * (i / 3) + (i % 3 == 2));
    }
    EXPECT(zookeeper_close(zh) == ZOK);
}

static void watches(const struct site *site) {
    static struct journal journal;
    zhandle_t *zh = enter(site), *writer = enter(site);
    struct String_vector names;
    char data[8];
    int length = sizeof data;
    start_journal(&journal);
    EXPECT(zoo_wexists(zh, "/n", watcher, &journal, NULL) == ZNONODE);
    make(writer, "/n", "", 0);
    await(&journal, 1);
    EXPECT(zoo_wget(zh, "/n", watcher, &journal, data, &length, NULL) == ZOK);
    EXPECT(zoo_wget_children(zh, "/n", watcher, &journal, &names) == ZOK);
    deallocate_String_vector(&names);
    EXPECT(zoo_set(writer, "/n", "", 0, -1) == ZOK);
    make(writer, "/n/c", "", 0);
    await(&journal, 3);
    EXPECT(zoo_wexists(zh, "/n/c", watcher, &journal, NULL) == ZOK);
    EXPECT(zoo_delete(writer, "/n/c", -1) == ZOK);
    await(&journal, 4);
    const int types[] = {ZOO_CREATED_EVENT, ZOO_CHANGED_EVENT, ZOO_CHILD_EVENT, ZOO_DELETED_EVENT};
    for (int i = 0; i < 4; i++) EXPECT(journal.entries[i].type == types[i]);
    EXPECT(zoo_wexists(zh, "/n", watcher, &journal, NULL) == ZOK);
    EXPECT(zoo_remove_watches(zh, "/n", ZWATCHTYPE_DATA, watcher, &journal, 0) == ZOK);
    EXPECT(zoo_remove_watches(zh, "/n", ZWATCHTYPE_DATA, watcher, &journal, 0) == ZNOWATCHER);
    EXPECT(zoo_set(writer, "/n", "", 0, -1) == ZOK);
    EXPECT(zoo_exists(zh, "/n", 0, NULL) == ZOK); // all that was sent before this answer has come
    EXPECT(journal.count == 4);
    EXPECT(zookeeper_close(zh) == ZOK && zookeeper_close(writer) == ZOK);
}

// Watches are set again on the next connection, and missed changes become events.
static void watches_after_a_takeover(const struct site *site) {
    static struct journal journal;
    zhandle_t *zh = enter(site), *writer = enter(site);
    start_journal(&journal);
    make(writer, "/same", "", 0);
    make(writer, "/changed", "", 0);
    make(writer, "/deleted", "", 0);
    const char *paths[] = {"/same", "/changed", "/deleted", "/created"};
    for (int i = 0; i < 4; i++) zoo_wexists(zh, paths[i], watcher, &journal, NULL);
    clientid_t session = *zoo_client_id(zh);
    zhandle_t *thief = resume(site, &session); // the server ends the older connection
    EXPECT(zoo_set(writer, "/changed", "", 0, -1) == ZOK);
    EXPECT(zoo_delete(writer, "/deleted", -1) == ZOK);
    make(writer, "/created", "", 0);
    await(&journal, 3); // the older client reconnects, and takes the session back
    EXPECT(zoo_set(writer, "/same", "", 0, -1) == ZOK);
    await(&journal, 4);
    EXPECT(journal.entries[3].type == ZOO_CHANGED_EVENT);
    zookeeper_close(thief);
    zookeeper_close(zh);
    EXPECT(zookeeper_close(writer) == ZOK);
}

// The session of a process that makes a node and is killed: it would take its session back.
static clientid_t abandoned(const struct site *site) {
    clientid_t session;
    int ends[2];
    EXPECT(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        zhandle_t *zh = enter(site);
        make(zh, "/e", "", ZOO_EPHEMERAL);
        EXPECT(write(ends[1], zoo_client_id(zh), sizeof session) == sizeof session);
        for (;;) pause();
    }
    EXPECT(child > 0);
    close(ends[1]);
    ssize_t size = read(ends[0], &session, sizeof session);
    int status;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    if (size == 0 && WIFEXITED(status)) exit(WEXITSTATUS(status)); // it has said why
    EXPECT(size == sizeof session);
    close(ends[0]);
    return session;
}

static void session_resumed(const struct site *site) {
    clientid_t session = abandoned(site);
    zhandle_t *second = resume(site, &session);
    struct Stat stat;
    EXPECT(zoo_client_id(second)->client_id == session.client_id);
    EXPECT(zoo_exists(second, "/e", 0, &stat) == ZOK && stat.ephemeralOwner == session.client_id);
    EXPECT(zookeeper_close(second) == ZOK);
    zhandle_t *third = enter(site);
    EXPECT(zoo_exists(third, "/e", 0, NULL) == ZNONODE);
    EXPECT(zookeeper_close(third) == ZOK);
}

static void in_the_pipeline(const struct site *site) {
    enum { CALLS = 200 };
    static struct journal journal;
    static struct asked asked[CALLS];
    zhandle_t *zh = enter(site);
    start_journal(&journal);
    make(zh, "/n", "", 0);
    for (int i = 0; i < CALLS; i++) {
        asked[i] = (struct asked){&journal, i};
        EXPECT(zoo_aset(zh, "/n", "x", 1, i, answered, &asked[i]) == ZOK);
    }
    await(&journal, CALLS);
    for (int i = 0; i < CALLS; i++)
        EXPECT(journal.entries[i].about == i && journal.entries[i].type == ZOK);
    EXPECT(zookeeper_close(zh) == ZOK);
}

static const struct {
    const char *name;
    void (*run)(const struct site *site);
} tests[] = {
    {"calls_that_wait", calls_that_wait},
    {"sequence_and_ephemeral", sequence_and_ephemeral},
    {"container", container},
    {"time_to_live", time_to_live},
    {"acl", acl},
    {"transaction", transaction},
    {"events_before_answers", events_before_answers},
    {"watches", watches},
    {"watches_after_a_takeover", watches_after_a_takeover},
    {"session_resumed", session_resumed},
    {"in_the_pipeline", in_the_pipeline},
};
enum { TESTS = sizeof tests / sizeof tests[0] };

int main(int count, char **words) {
    bool list = count == 2 && strcmp(words[1], "--list") == 0;
    if (!list && count != 3) return 2;
    zoo_set_debug_level(0);
    for (int i = 0; i < TESTS; i++) {
        if (list) puts(tests[i].name);
        if (list || strcmp(words[2], tests[i].name) != 0) continue;
        struct site site = {words[1], ""};
        zhandle_t *zh = enter(&site);
        snprintf(site.root, sizeof site.root, "/c-%s-%d", tests[i].name, (int)getpid());
        make(zh, site.root, "", 0);
        EXPECT(zookeeper_close(zh) == ZOK);
        tests[i].run(&site);
        return 0;
    }
    return list ? 0 : 2;
}
