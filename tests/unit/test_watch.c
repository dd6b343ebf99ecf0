/* Watches: the events of each mode, and all of them against a model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/rng.h"
#include "service/tree/watch.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])
enum { CONNECTIONS = 8, HEARD_MAX = 4 };

/* ---- Notifications ---- */

struct heard { /* by one connection, of one change */
    int32_t type[HEARD_MAX];
    char path[HEARD_MAX][32];
    int count;
};

/* One at a time. */
static void forget_all(struct watches *w, uint32_t connection) {
    for (size_t steps = 1; !watches_forget(w, connection, &steps); steps = 1)
        assert_int_equal(steps, 0);
}

static void hear(struct heard heard[CONNECTIONS], uint32_t connection, int32_t type,
                 struct zk_text path) {
    assert_in_range(connection, 0, CONNECTIONS - 1);
    struct heard *h = &heard[connection];
    assert_in_range(h->count, 0, HEARD_MAX - 1);
    h->type[h->count] = type;
    snprintf(h->path[h->count++], sizeof h->path[0], "%.*s", (int)path.size, path.at);
}

static void tell(void *context, uint32_t connection, int32_t type, struct zk_text path) {
    hear(context, connection, type, path);
}

/* ---- Each kind by itself ---- */

static void add(struct watches *w, uint32_t connection, const char *path, enum watch_table table,
                enum watch_mode mode) {
    watches_add(w, connection, zk_text_of(path), table, mode);
}

/* The notifications of connection 1 for a change, as "1/a 4/": types and paths in order. */
static void expect_heard(struct watches *w, int32_t type, const char *path, const char *expected) {
    struct heard heard[CONNECTIONS] = {0};
    char text[128] = "", *at = text;
    watches_fire(w, type, zk_text_of(path), tell, heard);
    for (int i = 0; i < heard[1].count; i++)
        at += sprintf(at, "%s%d%s", i ? " " : "", heard[1].type[i], heard[1].path[i]);
    if (strcmp(text, expected) != 0)
        fail_msg("%d at %s: heard '%s', not '%s'", (int)type, path, text, expected);
}

static void a_data_watch_fires_once(void **state) {
    static const struct {
        int32_t type;
        const char *heard;
    } changes[] = {
        {ZK_NODE_CREATED, "1/a/b"}, {ZK_NODE_DELETED, "2/a/b"}, {ZK_NODE_DATA_CHANGED, "3/a/b"}};
    (void)state;
    for (size_t i = 0; i < COUNT(changes); i++) {
        struct watches w = {.seed = 1};
        add(&w, 1, "/a/b", WATCH_DATA, WATCH_ONCE);
        add(&w, 1, "/a/b", WATCH_DATA, WATCH_ONCE); /* twice is once */
        assert_int_equal(w.watches, 1);
        expect_heard(&w, changes[i].type, "/a", "");
        expect_heard(&w, changes[i].type, "/a/b/c", "");
        expect_heard(&w, changes[i].type, "/a/bb", "");
        expect_heard(&w, changes[i].type, "/a/b", changes[i].heard);
        assert_int_equal(w.watches, 0);
        assert_int_equal(w.paths, 0);
        expect_heard(&w, changes[i].type, "/a/b", "");
        watches_close(&w);
    }
}

static void a_child_watch_fires_once(void **state) {
    static const struct {
        int32_t type;
        const char *path, *heard;
    } changes[] = {{ZK_NODE_CREATED, "/a/b", "4/a"},
                   {ZK_NODE_DELETED, "/a/b", "4/a"},
                   {ZK_NODE_DELETED, "/a", "2/a"}};
    (void)state;
    for (size_t i = 0; i < COUNT(changes); i++) {
        struct watches w = {.seed = 1};
        add(&w, 1, "/a", WATCH_CHILDREN, WATCH_ONCE);
        expect_heard(&w, ZK_NODE_DATA_CHANGED, "/a", "");
        expect_heard(&w, ZK_NODE_DATA_CHANGED, "/a/b", "");
        expect_heard(&w, ZK_NODE_CREATED, "/a", "");
        expect_heard(&w, ZK_NODE_CREATED, "/a/b/c", "");
        expect_heard(&w, changes[i].type, changes[i].path, changes[i].heard);
        expect_heard(&w, changes[i].type, changes[i].path, "");
        watches_close(&w);
    }
}

static void a_deletion_is_notified_once(void **state) {
    struct watches w = {.seed = 1};
    (void)state;
    add(&w, 1, "/a", WATCH_DATA, WATCH_ONCE);
    add(&w, 1, "/a", WATCH_CHILDREN, WATCH_ONCE);
    add(&w, 1, "/", WATCH_CHILDREN, WATCH_ONCE);
    expect_heard(&w, ZK_NODE_DELETED, "/a", "2/a 4/");
    assert_int_equal(w.watches, 0); /* both one-time watches are used up */
    watches_close(&w);
}

static void persistent_watches_stay(void **state) {
    struct watches w = {.seed = 1};
    (void)state;
    add(&w, 1, "/a", WATCH_DATA, WATCH_PERSISTENT);
    add(&w, 1, "/a", WATCH_CHILDREN, WATCH_PERSISTENT);
    for (int i = 0; i < 2; i++) {
        expect_heard(&w, ZK_NODE_CREATED, "/a", "1/a");
        expect_heard(&w, ZK_NODE_DATA_CHANGED, "/a", "3/a");
        expect_heard(&w, ZK_NODE_CREATED, "/a/b", "4/a");
        expect_heard(&w, ZK_NODE_DATA_CHANGED, "/a/b", "");
        expect_heard(&w, ZK_NODE_DELETED, "/a/b", "4/a");
        expect_heard(&w, ZK_NODE_DELETED, "/a", "2/a");
    }
    add(&w, 1, "/a", WATCH_DATA, WATCH_ONCE); /* the latest mode holds */
    expect_heard(&w, ZK_NODE_DATA_CHANGED, "/a", "3/a");
    expect_heard(&w, ZK_NODE_DATA_CHANGED, "/a", "");
    watches_close(&w);
}

static void recursive_watches_see_the_subtree(void **state) {
    static const char *const slots[] = {"/a", "/"};
    (void)state;
    for (size_t i = 0; i < COUNT(slots); i++) {
        struct watches w = {.seed = 1};
        add(&w, 1, slots[i], WATCH_DATA, WATCH_RECURSIVE);
        add(&w, 1, slots[i], WATCH_CHILDREN, WATCH_RECURSIVE);
        for (int again = 0; again < 2; again++) {
            expect_heard(&w, ZK_NODE_CREATED, "/a", "1/a");
            expect_heard(&w, ZK_NODE_CREATED, "/a/b/c", "1/a/b/c");
            expect_heard(&w, ZK_NODE_DATA_CHANGED, "/a/b/c", "3/a/b/c");
            expect_heard(&w, ZK_NODE_DELETED, "/a/b/c", "2/a/b/c");
            expect_heard(&w, ZK_NODE_DELETED, "/a", "2/a");
        }
        expect_heard(&w, ZK_NODE_CREATED, "/ab", i ? "1/ab" : "");
        add(&w, 1, slots[i], WATCH_DATA, WATCH_PERSISTENT);
        add(&w, 1, slots[i], WATCH_CHILDREN, WATCH_PERSISTENT);
        assert_int_equal(w.recursive, 0);
        expect_heard(&w, ZK_NODE_CREATED, "/a/b/c", "");
        watches_close(&w);
    }
}

/* ---- Against a model ---- */

static const char *const paths[] = {"/",   "/a", "/a/b", "/a/b/c", "/a/b/d",  "/a/bb",
                                    "/aa", "/b", "/b/a", "/a/c",   "/a/b/c/e"};

struct model { /* mode by connection, path and table; -1: none */
    int mode[CONNECTIONS][COUNT(paths)][2];
};

static bool is_above(const char *above, const char *path) {
    size_t size = strcmp(above, "/") == 0 ? 0 : strlen(above);
    return strcmp(above, path) != 0 && strncmp(above, path, size) == 0 && path[size] == '/';
}

/* Sets notified[] for the connections that a change at a path concerns, in one table. */
static void model_search(struct model *m, int table, int32_t type, const char *path,
                         bool notified[CONNECTIONS]) {
    for (int c = 0; c < CONNECTIONS; c++)
        for (size_t i = 0; i < COUNT(paths); i++) {
            int *mode = &m->mode[c][i][table];
            bool here = strcmp(paths[i], path) == 0;
            bool recursive = *mode == WATCH_RECURSIVE && type != ZK_NODE_CHILDREN_CHANGED &&
                             (here || is_above(paths[i], path));
            bool plain = here && (*mode == WATCH_ONCE || *mode == WATCH_PERSISTENT);
            if (recursive || plain) notified[c] = true;
            if (plain && *mode == WATCH_ONCE) *mode = -1;
        }
}

static void model_fire(struct model *m, int32_t type, const char *path,
                       struct heard heard[CONNECTIONS]) {
    bool notified[CONNECTIONS] = {0}, parent_told[CONNECTIONS] = {0};
    char parent[32];
    model_search(m, WATCH_DATA, type, path, notified);
    if (type == ZK_NODE_DELETED) model_search(m, WATCH_CHILDREN, type, path, notified);
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (!*parent) strcpy(parent, "/");
    if (type != ZK_NODE_DATA_CHANGED && strcmp(path, "/") != 0)
        model_search(m, WATCH_CHILDREN, ZK_NODE_CHILDREN_CHANGED, parent, parent_told);
    for (uint32_t c = 0; c < CONNECTIONS; c++) {
        if (notified[c]) hear(heard, c, type, zk_text_of(path));
        if (parent_told[c]) hear(heard, c, ZK_NODE_CHILDREN_CHANGED, zk_text_of(parent));
    }
}

/* Every query agrees, and nothing is left over. */
static void expect_equal(const struct watches *w, const struct model *m) {
    uint32_t watches = 0, watched = 0, recursive = 0;
    for (size_t i = 0; i < COUNT(paths); i++) {
        bool any = false;
        for (int c = 0; c < CONNECTIONS; c++)
            for (int table = 0; table < 2; table++) {
                int mode = m->mode[c][i][table];
                assert_int_equal(
                    watches_has(w, (uint32_t)c, zk_text_of(paths[i]), (enum watch_table)table),
                    mode >= 0);
                watches += mode >= 0;
                recursive += mode == WATCH_RECURSIVE;
                any |= mode >= 0;
            }
        watched += any;
    }
    assert_int_equal(w->watches, watches);
    assert_int_equal(w->paths, watched);
    assert_int_equal(w->recursive, recursive);
    assert_int_equal(w->watch_index.used, watches);
    assert_int_equal(w->path_index.used, watched);
}

static void watches_are_their_model(void **state) {
    static const int32_t types[] = {ZK_NODE_CREATED, ZK_NODE_DELETED, ZK_NODE_DATA_CHANGED};
    static struct model m;
    struct watches w = {.seed = 3};
    struct rng rng;
    (void)state;
    rng_seed(&rng, 11);
    memset(&m, -1, sizeof m);
    for (int step = 0; step < 100000; step++) {
        uint32_t c = (uint32_t)rng_below(&rng, CONNECTIONS);
        size_t i = rng_below(&rng, COUNT(paths));
        int table = (int)rng_below(&rng, 2), mode = (int)rng_below(&rng, 3);
        struct heard expected[CONNECTIONS] = {0}, found[CONNECTIONS] = {0};
        switch (rng_below(&rng, 12)) {
        case 0: /* the connection is closed */
            forget_all(&w, c);
            memset(&m.mode[c], -1, sizeof m.mode[c]);
            break;
        case 1:
        case 2:
            assert_int_equal(watches_remove(&w, c, zk_text_of(paths[i]), (enum watch_table)table),
                             m.mode[c][i][table] >= 0);
            m.mode[c][i][table] = -1;
            break;
        case 3:
        case 4:
        case 5: {
            int32_t type = types[rng_below(&rng, COUNT(types))];
            model_fire(&m, type, paths[i], expected);
            watches_fire(&w, type, zk_text_of(paths[i]), tell, found);
            assert_memory_equal(found, expected, sizeof found);
            break;
        }
        default:
            add(&w, c, paths[i], (enum watch_table)table, (enum watch_mode)mode);
            m.mode[c][i][table] = mode;
        }
        if (step % 50 == 0) expect_equal(&w, &m);
    }
    for (uint32_t c = 0; c < CONNECTIONS + 5; c++) forget_all(&w, c);
    assert_int_equal(w.watches | w.paths | w.recursive, 0);
    watches_close(&w);
}

/* Far more than fit into the first tables, and out again. */
static void there_may_be_many(void **state) {
    enum { MANY = 20000 };
    struct watches w = {.seed = 7};
    char path[32];
    (void)state;
    for (uint32_t i = 0; i < MANY; i++) {
        sprintf(path, "/node/%u", i);
        add(&w, i % 1000, path, WATCH_DATA, WATCH_ONCE);
        add(&w, 1 + i % 1000, path, WATCH_CHILDREN, WATCH_PERSISTENT);
    }
    assert_int_equal(w.watches, 2 * MANY);
    for (uint32_t c = 0; c <= 1000; c += 2) forget_all(&w, c);
    assert_int_equal(w.watches, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        sprintf(path, "/node/%u", i);
        assert_int_equal(watches_has(&w, i % 1000, zk_text_of(path), WATCH_DATA), i % 2);
        assert_int_equal(watches_has(&w, 1 + i % 1000, zk_text_of(path), WATCH_CHILDREN),
                         i % 2 == 0);
    }
    uint32_t slots = w.watch_slots;
    for (uint32_t i = 0; i < MANY; i++) add(&w, 2, "/again", WATCH_DATA, WATCH_ONCE);
    assert_int_equal(w.watch_slots, slots); /* freed slots are reused */
    watches_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_data_watch_fires_once),
        cmocka_unit_test(a_child_watch_fires_once),
        cmocka_unit_test(a_deletion_is_notified_once),
        cmocka_unit_test(persistent_watches_stay),
        cmocka_unit_test(recursive_watches_see_the_subtree),
        cmocka_unit_test(watches_are_their_model),
        cmocka_unit_test(there_may_be_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
