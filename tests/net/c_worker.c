// Debian's C client at work while servers fail: reads after a sync, writes and changes by version,
// each printed as a line for `conclave history`, until standard input ends.
//   c_worker HOSTS NAME TIMEOUT_MS KEY...
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

enum { VALUE_MAX = 64, RUN_MAX_S = 3600, LATE = 75, PAUSE_US = 100000 };

struct worker {
    const char *hosts, *name;
    int timeout_ms;
    zhandle_t *zh;
    int sessions, number;
    unsigned seed;
    sem_t synced;
    int sync_result;
};

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void watcher(zhandle_t *zh, int type, int state, const char *path, void *context) {
    (void)zh, (void)type, (void)state, (void)path, (void)context;
}

// A handle whose session has ended is of no use any more.
static void ensure_handle(struct worker *w) {
    if (w->zh && zoo_state(w->zh) == ZOO_EXPIRED_SESSION_STATE) {
        zookeeper_close(w->zh);
        w->zh = NULL;
    }
    if (w->zh) return;
    w->sessions++;
    w->zh = zookeeper_init(w->hosts, watcher, w->timeout_ms, NULL, NULL, 0);
    if (!w->zh) exit(2);
}

static void synced(int result, const char *value, const void *context) {
    struct worker *w = (struct worker *)context;
    (void)value;
    w->sync_result = result;
    sem_post(&w->synced);
}

static bool sync_first(struct worker *w, const char *key) {
    struct timespec end;
    if (zoo_async(w->zh, key, synced, w) != ZOK) return false;
    clock_gettime(CLOCK_REALTIME, &end);
    const char *patience = getenv("PATIENCE");
    end.tv_sec += patience ? atoi(patience) : 120;
    if (sem_timedwait(&w->synced, &end) != 0) exit(LATE); // as in patience.py
    return w->sync_result == ZOK;
}

static void begin_line(const struct worker *w, const char *key, const char *op, long long start) {
    printf("{\"client\": \"%s.%d\", \"key\": \"%s\", \"op\": \"%s\", \"start\": %lld", w->name,
           w->sessions, key, op, start);
}

static void read_register(struct worker *w, const char *key) {
    char value[VALUE_MAX];
    int size = sizeof value;
    struct Stat stat;
    long long start = now_ns();
    if (!sync_first(w, key) || zoo_get(w->zh, key, 0, value, &size, &stat) != ZOK) return;
    begin_line(w, key, "read", start);
    printf(", \"value\": \"%.*s\", \"version\": %d, \"end\": %lld}\n", size, value, stat.version,
           now_ns());
}

static void write_register(struct worker *w, const char *key, bool by_version) {
    char value[VALUE_MAX];
    struct Stat stat = {.version = -1};
    int expected = -1;
    if (by_version) {
        if (zoo_exists(w->zh, key, 0, &stat) != ZOK) return;
        expected = stat.version;
    }
    int size = snprintf(value, sizeof value, "%s.%d", w->name, w->number++);
    long long start = now_ns();
    int result = zoo_set2(w->zh, key, value, size, expected, &stat);
    if (result == ZINVALIDSTATE) return; // nothing was sent
    begin_line(w, key, by_version ? "cas" : "write", start);
    printf(", \"value\": \"%s\"", value);
    if (by_version) printf(", \"expected\": %d", expected);
    if (result == ZOK) printf(", \"version\": %d, \"end\": %lld", stat.version, now_ns());
    if (result == ZBADVERSION) printf(", \"result\": \"bad_version\", \"end\": %lld", now_ns());
    printf("}\n");
    if (result != ZOK && result != ZBADVERSION)
        usleep(PAUSE_US); // few of them: each makes the history harder to judge
}

static bool told_to_end(void) {
    struct pollfd in = {.fd = 0, .events = POLLIN};
    return poll(&in, 1, 0) != 0;
}

int main(int count, char **words) {
    if (count < 5) return 2;
    struct worker w = {.hosts = words[1], .name = words[2], .timeout_ms = atoi(words[3])};
    time_t end = time(NULL) + RUN_MAX_S;
    zoo_set_debug_level(0);
    setlinebuf(stdout); // the test counts the answers
    sem_init(&w.synced, 0, 0);
    while (!told_to_end() && time(NULL) < end) {
        const char *key = words[4 + rand_r(&w.seed) % (count - 4)];
        ensure_handle(&w);
        switch (rand_r(&w.seed) % 3) {
        case 0: read_register(&w, key); break;
        case 1: write_register(&w, key, false); break;
        case 2: write_register(&w, key, true); break;
        }
        usleep(rand_r(&w.seed) % 8000);
    }
    zookeeper_close(w.zh);
    return 0;
}
