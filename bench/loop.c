/* Large things for one server, for bench/loop: nodes, children, ephemeral nodes, sessions.
 *
 *   loop ADDRESS nodes COUNT            in groups of a thousand below /nodes
 *   loop ADDRESS wide COUNT             children of one node, /wide
 *   loop ADDRESS children PATH          reads the children of a node
 *   loop ADDRESS descendants PATH       counts all nodes below one
 *   loop ADDRESS ephemerals COUNT       of one session, and closes it after a line of input
 *   loop ADDRESS owners COUNT           sessions with an ephemeral node each, ended without a word
 *   loop ADDRESS containers COUNT       that stay
 *   loop ADDRESS watches COUNT          of one connection; it ends after a line of input
 *   loop ADDRESS checks COUNT           in one transaction */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conclave.h"

enum { GROUP = 1000, AT_ONCE = 500, IN_FLIGHT = 16, PATH_ROOM = 64 };

static struct cv_client *client;
static size_t in_flight; /* with CV_NO_THREAD all calls are from one thread */

static void fail(const char *what, int error) {
    char why[512];
    fprintf(stderr, "loop: %s: %s; %s\n", what, cv_error_text(error),
            cv_explain(client, why, sizeof why));
    exit(1);
}

static void answered(const struct cv_result *result, void *what) {
    in_flight--;
    if (result->error) fail(what, result->error);
}

/* Waits until fewer than so many operations are on their way. */
static void wait_for_room(size_t max) {
    while (in_flight >= max) cv_process_for(client, CV_FOREVER);
}

static void start(const struct cv_op *op, size_t max, const char *what) {
    wait_for_room(max);
    int error = cv_start(client, op, answered, (void *)what);
    if (error) fail(what, error);
    in_flight++;
}

static struct cv_op creation(const char *path, int32_t flags) {
    return cv_op_create(path, "0123456789", 10, flags);
}

static void create(const char *path) {
    struct cv_op op = creation(path, CV_PERSISTENT);
    int error = cv_call(client, &op, NULL);
    if (error) fail(path, error);
}

/* Many creations in few transactions. */
static void create_many(const char *format, uint64_t count, int32_t flags) {
    static char path[AT_ONCE][PATH_ROOM];
    static struct cv_op ops[AT_ONCE];
    for (uint64_t at = 0; at < count;) {
        size_t part = 0;
        for (; part < AT_ONCE && at < count; part++, at++) {
            snprintf(path[part], PATH_ROOM, format, (unsigned long long)at);
            ops[part] = creation(path[part], flags);
        }
        struct cv_op multi = cv_op_multi(ops, part);
        start(&multi, IN_FLIGHT, "creations");
    }
    wait_for_room(1);
}

static void nodes(uint64_t count) {
    create("/nodes");
    create_many("/nodes/%llu", (count + GROUP - 1) / GROUP, CV_PERSISTENT);
    for (uint64_t i = 0; i < count / GROUP; i++) {
        char format[PATH_ROOM];
        snprintf(format, sizeof format, "/nodes/%llu/%%06llu", (unsigned long long)i);
        create_many(format, GROUP, CV_PERSISTENT);
    }
}

static void wait_for_input(void) {
    printf("ready\n");
    fflush(stdout);
    while (getchar() != '\n' && !feof(stdin)) continue;
}

static void read_children(const char *path) {
    struct cv_result *result;
    int error = cv_children(client, path, &result);
    if (error) fail(path, error);
    printf("%zu children\n", result->name_count);
    cv_result_free(result);
}

static void count_descendants(const char *path) {
    struct cv_op op = {.type = CV_OP_COUNT_ALL, .path = path};
    struct cv_result *result;
    int error = cv_call(client, &op, &result);
    if (error) fail(path, error);
    printf("%" PRId32 " nodes\n", result->count);
    cv_result_free(result);
}

static void owners(const struct cv_options *options, uint64_t count) {
    create("/owners");
    for (uint64_t i = 0; i < count; i++) {
        struct cv_client *owner;
        struct cv_op op = creation("/owners/n", CV_EPHEMERAL | CV_SEQUENTIAL);
        int error = cv_open(&owner, options);
        if (!error) error = cv_call(owner, &op, NULL);
        if (error) fail("an owner", error);
        cv_detach(owner);
    }
}

static void ignore(enum cv_watch_type type, const char *path, void *arg) {
    (void)type, (void)path, (void)arg;
}

static void watches(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "/watched/%llu", (unsigned long long)i);
        struct cv_op op = cv_op_add_watch(path, CV_WATCH_PERSISTENT, ignore, NULL);
        start(&op, GROUP, "a watch");
    }
    wait_for_room(1);
    wait_for_input();
}

static void checks(uint64_t count) {
    struct cv_op *ops = calloc(count + 1, sizeof *ops);
    for (uint64_t i = 0; ops && i < count; i++) ops[i] = cv_op_check("/", -1);
    struct cv_op multi = cv_op_multi(ops, count);
    int error = cv_call(client, &multi, NULL);
    if (error) fail("checks", error);
    free(ops);
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "loop ADDRESS WHAT COUNT|PATH\n"), 2;
    const char *what = argv[2];
    uint64_t count = strtoull(argv[3], NULL, 10);
    struct cv_options options = {
        .servers = argv[1], .session_timeout = 30000, .flags = CV_NO_THREAD};
    int error = cv_open(&client, &options);
    if (error) fail(argv[1], error);
    if (strcmp(what, "nodes") == 0) nodes(count);
    if (strcmp(what, "children") == 0) read_children(argv[3]);
    if (strcmp(what, "descendants") == 0) count_descendants(argv[3]);
    if (strcmp(what, "owners") == 0) owners(&options, count);
    if (strcmp(what, "watches") == 0) watches(count);
    if (strcmp(what, "checks") == 0) checks(count);
    if (strcmp(what, "wide") == 0) {
        create("/wide");
        create_many("/wide/%010llu", count, CV_PERSISTENT);
    }
    if (strcmp(what, "containers") == 0) {
        create("/containers");
        create_many("/containers/%llu", count, CV_CONTAINER);
    }
    if (strcmp(what, "ephemerals") == 0) {
        create("/ephemerals");
        create_many("/ephemerals/%010llu", count, CV_EPHEMERAL);
        wait_for_input();
    }
    cv_close(client);
    return 0;
}
