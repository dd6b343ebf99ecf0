/* Entries and reads in few steps at a time: the result is that of doing them at once, and no call
 * does more than its steps. */
#include "base/rng.h"
#include "tree_help.h"

enum { SESSIONS = 4, ROUNDS = 3000, OPS_MAX = 12 };

struct pair {
    struct world whole, sliced;
    struct bytes whole_events, sliced_events;
    struct rng rng;
    uint64_t unfinished, rolled_back, closed;
};

static void open_pair(struct pair *p) {
    struct world *w[] = {&p->whole, &p->sliced};
    for (int i = 0; i < 2; i++) {
        *w[i] = (struct world){.time = FIRST_TIME};
        assert_int_equal(tree_open(&w[i]->tree, 1), 0);
        w[i]->tree.rules = TREE_EXTENDED_TYPES;
    }
    rng_seed(&p->rng, 7);
}

static void close_pair(struct pair *p) {
    struct world *w[] = {&p->whole, &p->sliced};
    for (int i = 0; i < 2; i++) {
        tree_close(&w[i]->tree);
        bytes_close(&w[i]->body);
        bytes_close(&w[i]->reply);
    }
    bytes_close(&p->whole_events);
    bytes_close(&p->sliced_events);
}

static uint64_t below(struct pair *p, uint64_t bound) { return rng_below(&p->rng, bound); }

static void add_events(const struct tree *tree, struct bytes *to) {
    for (size_t i = 0; i < tree_certain_events(tree); i++) {
        struct zk_text path = tree_event_path(tree, &tree->event[i]);
        bytes_add(to, &tree->event[i].type, sizeof tree->event[i].type);
        bytes_add(to, path.at, (size_t)path.size);
    }
}

static void expect_bytes(const struct bytes *a, const struct bytes *b) {
    assert_int_equal(a->used, b->used);
    if (a->used) assert_memory_equal(a->at, b->at, a->used);
}

static int32_t apply_sliced(struct pair *p, const struct tree_entry *entry) {
    struct tree *tree = &p->sliced.tree;
    int64_t zxid = tree->zxid + 1;
    p->sliced.reply.used = p->sliced_events.used = 0;
    for (;;) {
        size_t max = 1 + below(p, 3), steps = max;
        int32_t err = tree_apply_some(tree, zxid, entry, &p->sliced.reply, &steps);
        assert_true(steps <= max);
        add_events(tree, &p->sliced_events);
        assert_true(tree_is_unfinished(tree) == (err == TREE_UNFINISHED));
        if (err != TREE_UNFINISHED) return err;
        assert_int_equal(steps, 0); /* it ends because they are used up */
        p->unfinished++;
        zxid = -1; /* that of the first call counts */
    }
}

/* The body of the request is in whole.body. */
static int32_t apply_both(struct pair *p, int64_t session, int32_t op) {
    struct tree_entry entry = {.time = ++p->whole.time,
                               .session = session,
                               .rules = p->whole.tree.rules,
                               .op = op,
                               .body = zk_in_of(p->whole.body.at, p->whole.body.used)};
    p->whole.reply.used = p->whole_events.used = 0;
    int32_t err = tree_apply(&p->whole.tree, p->whole.tree.zxid + 1, &entry, &p->whole.reply);
    add_events(&p->whole.tree, &p->whole_events);
    assert_int_equal(apply_sliced(p, &entry), err);
    expect_bytes(&p->whole.reply, &p->sliced.reply);
    expect_bytes(&p->whole_events, &p->sliced_events);
    return err;
}

/* ---- Entries ---- */

static int64_t any_session(struct pair *p) { return FIRST_SESSION + (int64_t)below(p, SESSIONS); }

static void any_path(struct pair *p, char path[64]) {
    static const char *const above[] = {"", "/a", "/a/b", "/c", "/zookeeper/quota/a"};
    sprintf(path, "%s/%c", above[below(p, COUNT(above))], "abcdefg"[below(p, 7)]);
}

static void add_op(struct pair *p, struct bytes *to) {
    static char path[64];
    any_path(p, path);
    if (below(p, 20) == 0) strcpy(path, "/zookeeper/quota/a/zookeeper_limits");
    if (below(p, 20) == 0) strcpy(path, "/zookeeper/quota/a/zookeeper_stats");
    static const int32_t flags[] = {ZK_PERSISTENT, ZK_EPHEMERAL, ZK_EPHEMERAL_SEQUENTIAL,
                                    ZK_SEQUENTIAL};
    union zk_request r = {.delete = {zk_text_of(path), -1}};
    int32_t op = ZK_OP_DELETE;
    switch (below(p, 6)) {
    case 0: break;
    case 1:
        op = ZK_OP_SET_DATA;
        r.set_data = (struct zk_set_data_request){zk_text_of(path), TEXT("xyz"), -1};
        break;
    default:
        op = ZK_OP_CREATE;
        r.create = (struct zk_create_request){zk_text_of(path), TEXT("count=9"), acls_of(OPEN),
                                              flags[below(p, COUNT(flags))]};
    }
    zk_write_multi_op(to, op, &r);
}

static void a_multi(struct pair *p) {
    struct bytes *body = &p->whole.body;
    int count = (int)below(p, OPS_MAX + 1);
    body->used = 0;
    for (int i = 0; i < count; i++) add_op(p, body);
    zk_write_multi_end(body);
    apply_both(p, any_session(p), ZK_OP_MULTI);
    struct zk_in reply = zk_in_of(p->whole.reply.at, p->whole.reply.used);
    struct zk_multi_header first = {0};
    if (p->whole.reply.used && zk_read_multi_header(&reply, &first) && first.type == ZK_OP_ERROR)
        p->rolled_back++;
}

static void a_creation(struct pair *p, int32_t op, int32_t flags, int64_t ttl) {
    char path[64];
    any_path(p, path);
    union zk_request r = {
        .create_ttl = {zk_text_of(path), TEXT("data"), acls_of(OPEN), flags, ttl}};
    p->whole.body.used = 0;
    zk_op_of(op)->request->write(&p->whole.body, &r);
    apply_both(p, any_session(p), op);
}

static void a_session(struct pair *p, int32_t op) {
    struct bytes *body = &p->whole.body;
    body->used = 0;
    if (op == ZK_OP_CREATE_SESSION) {
        zk_write_i32(body, 4000);
        memset(bytes_extend(body, TREE_PASSWORD_SIZE), 1, TREE_PASSWORD_SIZE);
    }
    int32_t err = apply_both(p, any_session(p), op);
    if (op == ZK_OP_CLOSE_SESSION && !err) p->closed++;
}

static void an_entry(struct pair *p) {
    switch (below(p, 10)) {
    case 0: a_session(p, ZK_OP_CREATE_SESSION); break;
    case 1:
        if (below(p, 4) == 0) a_session(p, ZK_OP_CLOSE_SESSION);
        break;
    case 2: a_creation(p, ZK_OP_CREATE_CONTAINER, ZK_CONTAINER, 0); break;
    case 3: a_creation(p, ZK_OP_CREATE_TTL, ZK_TTL, 5); break;
    case 4:
    case 5:
    case 6: a_creation(p, ZK_OP_CREATE, ZK_EPHEMERAL_SEQUENTIAL, 0); break;
    default: a_multi(p);
    }
}

/* ---- Reads ---- */

static void a_read(struct pair *p) {
    static const int32_t ops[] = {ZK_OP_GET_CHILDREN, ZK_OP_GET_CHILDREN2, ZK_OP_GET_EPHEMERALS,
                                  ZK_OP_GET_ALL_CHILDREN_NUMBER};
    static const char *const paths[] = {"/", "/a", "/a/b", "/c", "/none"};
    int32_t op = ops[below(p, COUNT(ops))];
    union zk_request r = {.get_children = {zk_text_of(paths[below(p, COUNT(paths))]), false}};
    struct zk_clients nobody = {0};
    struct tree_reading reading = {0};
    int64_t session = any_session(p);
    struct bytes *a = &p->whole.reply, *b = &p->sliced.reply;
    a->used = b->used = 3; /* it need not begin at the buffer's */
    int32_t err = tree_read(&p->whole.tree, op, &r, session, &nobody, a), again;
    do {
        size_t max = 1 + below(p, 3), steps = max;
        again = tree_read_some(&p->sliced.tree, op, &r, session, &nobody, b, &reading, &steps);
        assert_true(steps <= max);
        if (again == TREE_UNFINISHED) p->unfinished++;
    } while (again == TREE_UNFINISHED);
    assert_int_equal(again, err);
    expect_bytes(a, b);
}

/* ---- All of it ---- */

static int keep(void *context, const void *bytes, size_t size) {
    bytes_add(context, bytes, size);
    return 0;
}

static void note(void *context, struct zk_text path) {
    bytes_add(context, path.at, (size_t)path.size);
}

static size_t count_expirables(const struct tree *tree) {
    size_t count = 0;
    uint32_t up;
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up))
        count += tree->node[id].owner == TREE_CONTAINER || node_is_ttl(&tree->node[id]);
    return count;
}

/* Of each node's subtree, against a count by hand. */
static void expect_totals(struct tree *tree) {
    const struct tree_total *total = (const void *)tree->totals.base;
    uint32_t up;
    for (node_id top = TREE_ROOT; top; top = tree_walk(tree, TREE_ROOT, top, &up)) {
        struct tree_total counted = {0};
        for (node_id id = top; id; id = tree_walk(tree, top, id, &up)) {
            counted.nodes++;
            counted.bytes += tree->node[id].data_size > 0 ? tree->node[id].data_size : 0;
        }
        assert_int_equal(total[top].nodes, counted.nodes);
        assert_int_equal(total[top].bytes, counted.bytes);
    }
}

static void expect_equal(struct pair *p) {
    struct bytes a = {0}, b = {0};
    assert_int_equal(tree_save(&p->whole.tree, keep, &a), 0);
    assert_int_equal(tree_save(&p->sliced.tree, keep, &b), 0);
    expect_bytes(&a, &b);
    assert_int_equal(p->whole.tree.quotas, p->sliced.tree.quotas);
    assert_int_equal(p->whole.tree.bytes, p->sliced.tree.bytes);
    assert_int_equal(p->whole.tree.expirables, count_expirables(&p->whole.tree));
    assert_int_equal(p->sliced.tree.expirables, count_expirables(&p->sliced.tree));
    if (p->whole.tree.totals_known) expect_totals(&p->whole.tree);
    if (p->sliced.tree.totals_known) expect_totals(&p->sliced.tree);
    a.used = b.used = 0;
    struct clock clock = {.now_ms = p->whole.time, .monotonic_us = (uint64_t)p->whole.time * 1000};
    tree_find_expired(&p->whole.tree, 1, SIZE_MAX, &clock, note, &a);
    for (node_id next = 1; next;)
        next = tree_find_expired(&p->whole.tree, next, 1, &clock, note, &b);
    expect_bytes(&a, &b);
    bytes_close(&a);
    bytes_close(&b);
}

static void in_slices_or_at_once(void **state) {
    static struct pair p;
    (void)state;
    open_pair(&p);
    memset(bytes_extend(&p.whole.reply, 3), 0, 3);
    memset(bytes_extend(&p.sliced.reply, 3), 0, 3);
    for (int i = 0; i < ROUNDS; i++) {
        an_entry(&p);
        if (below(&p, 2)) a_read(&p);
        if (i % 20 == 0) expect_equal(&p);
    }
    expect_equal(&p);
    assert_true(p.unfinished > ROUNDS && p.rolled_back > 100 && p.closed > 10);
    assert_true(p.whole.tree.totals_known && p.sliced.tree.totals_known);
    close_pair(&p);
}

/* How many calls it takes follows from the steps alone. */
static void steps_are_counted(void **state) {
    enum { NODES = 1000, STEPS = 10 };
    struct world w = {.session = FIRST_SESSION, .time = FIRST_TIME};
    struct tree_entry entry = {.session = FIRST_SESSION, .op = ZK_OP_CLOSE_SESSION};
    unsigned calls = 1;
    (void)state;
    assert_int_equal(tree_open(&w.tree, 1), 0);
    assert_int_equal(open_session(&w, FIRST_SESSION), ZK_OK);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(create(&w, "/n", ZK_EPHEMERAL_SEQUENTIAL), ZK_OK);
    size_t steps = STEPS;
    while (tree_apply_some(&w.tree, w.tree.zxid + 1, &entry, &w.reply, &steps) == TREE_UNFINISHED) {
        assert_int_equal(w.tree.ephemerals, NODES - calls * STEPS + 1); /* and the entry is one */
        assert_true(session_find(&w.tree, FIRST_SESSION));
        calls++;
        steps = STEPS;
    }
    assert_int_equal(calls, NODES / STEPS + 1);
    assert_false(session_find(&w.tree, FIRST_SESSION));
    tree_close(&w.tree);
    bytes_close(&w.body);
    bytes_close(&w.reply);
}

static int32_t count_below(struct world *w, const char *path, size_t steps) {
    union zk_request r = {.get_all_children_number = {zk_text_of(path)}};
    struct zk_clients nobody = {0};
    struct tree_reading reading = {0};
    w->reply.used = 0;
    return tree_read_some(&w->tree, ZK_OP_GET_ALL_CHILDREN_NUMBER, &r, FIRST_SESSION, &nobody,
                          &w->reply, &reading, &steps);
}

/* Whoever asked has gone before all was counted, and the tree has changed since. */
static void a_count_that_was_left_begins_anew(void **state) {
    enum { NODES = 100 };
    struct world w = {.session = FIRST_SESSION, .time = FIRST_TIME};
    int32_t count;
    (void)state;
    assert_int_equal(tree_open(&w.tree, 1), 0);
    assert_int_equal(open_session(&w, FIRST_SESSION), ZK_OK);
    assert_int_equal(create(&w, "/a", ZK_PERSISTENT), ZK_OK);
    for (int i = 0; i < NODES; i++) assert_int_equal(create(&w, "/a/n", ZK_SEQUENTIAL), ZK_OK);
    for (size_t steps = 1; steps < NODES; steps++) {
        assert_int_equal(count_below(&w, "/a", steps), TREE_UNFINISHED);
        assert_int_equal(create(&w, "/a/m", ZK_SEQUENTIAL), ZK_OK);
    }
    assert_int_equal(count_below(&w, "/a", SIZE_MAX), ZK_OK);
    struct zk_in reply = zk_in_of(w.reply.at, w.reply.used);
    assert_true(zk_read_i32(&reply, &count));
    assert_int_equal(count, 2 * NODES - 1);
    expect_totals(&w.tree);
    assert_int_equal(count_below(&w, "/a", 1), ZK_OK); /* it is known now */
    tree_close(&w.tree);
    bytes_close(&w.body);
    bytes_close(&w.reply);
}

/* A step writes so many bytes, and not as many as somebody has made names long. */
static void long_names_take_more_steps(void **state) {
    enum { NODES = 8, LONG = 100000, STEPS = 10 };
    struct world w = {.session = FIRST_SESSION, .time = FIRST_TIME};
    struct zk_clients nobody = {0};
    struct tree_reading reading = {0};
    static char path[LONG + 1];
    size_t calls = 0, steps, before;
    int32_t err;
    (void)state;
    assert_int_equal(tree_open(&w.tree, 1), 0);
    assert_int_equal(open_session(&w, FIRST_SESSION), ZK_OK);
    memset(path, 'x', LONG);
    memcpy(path, "/a/", 3);
    assert_int_equal(create(&w, "/a", ZK_PERSISTENT), ZK_OK);
    for (int i = 0; i < NODES; i++) assert_int_equal(create(&w, path, ZK_SEQUENTIAL), ZK_OK);
    union zk_request r = {.get_children = {zk_text_of("/a"), false}};
    w.reply.used = 0;
    do {
        steps = STEPS;
        before = w.reply.used;
        err = tree_read_some(&w.tree, ZK_OP_GET_CHILDREN, &r, FIRST_SESSION, &nobody, &w.reply,
                             &reading, &steps);
        assert_true(w.reply.used - before < 2 * LONG);
        calls++;
    } while (err == TREE_UNFINISHED);
    assert_int_equal(err, ZK_OK);
    assert_int_equal(calls, NODES);
    tree_close(&w.tree);
    bytes_close(&w.body);
    bytes_close(&w.reply);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_slices_or_at_once),
        cmocka_unit_test(steps_are_counted),
        cmocka_unit_test(a_count_that_was_left_begins_anew),
        cmocka_unit_test(long_names_take_more_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
