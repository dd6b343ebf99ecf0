/* The client library under load: `library SERVER get|set|call|lock OUTSTANDING SECONDS` prints how
 * many cycles a second one client makes, and how much of a core it takes.
 *
 *   get, set  as the operations of load.c: each answer starts the next request
 *   call      gets that are waited for, one after another
 *   lock      a lock that nobody else wants: acquired and released */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "conclave.h"

enum { KEYS = 1000, PATH_ROOM = 32, VALUE = 100, OUTSTANDING_MAX = 4096 };

struct run {
    struct cv_client *client;
    bool writes;
    int64_t end;
    uint64_t begun, done, errors;
    unsigned going;
    char path[KEYS][PATH_ROOM], value[VALUE];
};

static void die(const char *what, int error) {
    fprintf(stderr, "library: %s: %s\n", what, cv_error_text(error));
    exit(1);
}

static void answered(const struct cv_result *result, void *arg);

static struct cv_op next_op(struct run *run) {
    const char *path = run->path[run->begun++ * 7919 % KEYS];
    return run->writes ? cv_op_set(path, run->value, VALUE, -1) : cv_op_get(path);
}

static void begin(struct run *run) {
    struct cv_op op = next_op(run);
    int error = cv_start(run->client, &op, answered, run);
    if (error) die(op.path, error);
    run->going++;
}

/* The first of them in one write, as those will be that follow them. */
static void begin_all(struct run *run, unsigned outstanding) {
    static struct cv_op ops[OUTSTANDING_MAX];
    static cv_done_fn *done[OUTSTANDING_MAX];
    static void *args[OUTSTANDING_MAX];
    for (unsigned i = 0; i < outstanding; i++)
        ops[i] = next_op(run), done[i] = answered, args[i] = run;
    int error = cv_start_all(run->client, ops, outstanding, done, args);
    if (error) die("start", error);
    run->going = outstanding;
}

static void answered(const struct cv_result *result, void *arg) {
    struct run *run = arg;
    run->going--;
    run->done++;
    run->errors += result->error != CV_OK;
    if ((run->done & 63) || cv_now() < run->end) begin(run);
}

static void prepare(struct run *run) {
    int error = cv_create_all(run->client, "/load/data", CV_PERSISTENT);
    if (error) die("/load/data", error);
    for (int i = 0; i < KEYS; i++) {
        snprintf(run->path[i], PATH_ROOM, "/load/data/%04d", i);
        error = cv_create(run->client, run->path[i], run->value, VALUE, 0, NULL, 0);
        if (error && error != CV_NODE_EXISTS) die(run->path[i], error);
    }
}

static void wait_for_each(struct run *run) {
    struct cv_result *result;
    while (cv_now() < run->end) {
        run->errors += cv_get(run->client, run->path[run->done++ % KEYS], &result) != CV_OK;
        cv_result_free(result);
    }
}

static void lock_again_and_again(struct run *run) {
    struct cv_lock *lock;
    int error = cv_lock_open(&lock, run->client, "/locks/bench", NULL);
    if (error) die("/locks/bench", error);
    for (; cv_now() < run->end; run->done++) {
        if ((error = cv_lock_acquire(lock, CV_FOREVER))) die("acquire", error);
        if ((error = cv_lock_release(lock))) die("release", error);
    }
    cv_lock_close(lock);
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **argument) {
    static struct run run;
    if (count != 5) return fprintf(stderr, "usage: library SERVER WHAT OUTSTANDING SECONDS\n"), 2;
    const char *what = argument[2];
    bool pipelined = !strcmp(what, "get") || !strcmp(what, "set");
    int outstanding = atoi(argument[3]);
    if (outstanding < 1 || outstanding > OUTSTANDING_MAX) die(argument[3], CV_BAD_ARGUMENTS);
    struct cv_options options = {.servers = argument[1], .flags = pipelined ? CV_NO_THREAD : 0};
    int error = cv_open(&run.client, &options);
    if (error) die(argument[1], error);
    prepare(&run);
    double used = cpu();
    int64_t start = cv_now();
    run.end = start + (int64_t)(atof(argument[4]) * 1000);
    run.writes = strcmp(what, "set") == 0;
    if (!strcmp(what, "call")) wait_for_each(&run);
    if (!strcmp(what, "lock")) lock_again_and_again(&run);
    if (pipelined) begin_all(&run, (unsigned)outstanding);
    while (run.going) cv_process_for(run.client, -1);
    double seconds = (double)(cv_now() - start) / 1000;
    printf("{\"rate\": %.0f, \"errors\": %" PRIu64 ", \"cpu\": %.2f}\n", (double)run.done / seconds,
           run.errors, (cpu() - used) / seconds);
    cv_close(run.client);
    return 0;
}
