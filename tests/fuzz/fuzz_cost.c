/* What clients can make a server do, for the bytes that they send.  Any bytes are a program of
 * requests, by the grammar below; each request is sent to a real server (fuzz_cost.h), and what it
 * costs is compared with its size.
 *
 *   make fuzz F=cost
 *   build/fuzz_cost FILE...           these inputs
 *   build/fuzz_cost --runs 1000 7     random ones, of seed 7 */
#include "fuzz_cost.h"

/* ---- Budgets ---- */

enum {
    COST_MAX = 100,    /* per byte of a request, of anything */
    STEPS_FREE = 8192, /* for a request, however short it is; a step is a basic block of code */
    STEPS_OF_BYTE = 4, /* of an answer to several reads */
    STEPS_OF_EVENT_BYTE = 16, /* events are short */
    STEPS_OF_ITERATION = 64,  /* of the loop itself: here it does little in each (LOOP_STEPS) */
    ITERATION_FREE = 1 << 20, /* steps of a loop iteration */
    READING_FREE = 1 << 18,   /* ... that changes nothing */
    LOG_FREE = 256,           /* bytes */
    ANSWER_FREE = 4096,
    MEMORY_FREE = 1 << 20,    /* for all requests together */
    NODE_BYTES = 256,         /* that others have paid for */
    MEMORY_PASSING = 8 << 20, /* while a request is handled, and for clients that do not read */
    SENT_AT_ONCE = 1 << 20,   /* bytes, in an iteration, and the last answer whole */
};

static size_t paid;  /* bytes of all requests */
static size_t given; /* ... and of what others have made */
static size_t memory_before;

static struct worst { /* of a run: per cent of what it may be */
    uint64_t steps, iteration, logged, answered, memory, passing;
} worst;

static void compare(const char *what, uint64_t cost, uint64_t max, int32_t op, size_t size,
                    uint64_t *highest) {
    uint64_t part = cost * 100 / max;
    if (part > *highest) *highest = part;
    if (cost <= max) return;
    fprintf(stderr, "%s: %llu where %llu are allowed, for operation %d in %zu bytes\n", what,
            (unsigned long long)cost, (unsigned long long)max, op, size);
    abort();
}

static size_t unsent_bytes(void) {
    size_t bytes = 0;
    for (uint32_t i = 1; i <= server.connections.slots; i++)
        if (server.connections.at[i]) bytes += net_unsent(&server.connections.at[i]->stream);
    return bytes;
}

static size_t memory_kept(void) {
    return costs.live + server.tree.node_arena.used + server.tree.totals.used;
}

/* What a request may cost.  The end of a session or of a connection, and a look at a session's
 * nodes, costs as much as what it has; a list costs as much as it is long; and several, as long as
 * any answer may become.  Whoever watches has asked for events, and is sent them. */
struct budget {
    size_t logged, answered, steps, iteration, memory;
};

static struct budget budget_of(int32_t op, size_t size, size_t answered, size_t sent, bool ends) {
    const size_t answer_max = 4 * (size_t)server.settings.packet_bytes_max;
    bool is_about_all = ends || op == ZK_OP_CLOSE_SESSION || op == ZK_OP_GET_EPHEMERALS;
    size_t budget = COST_MAX * (is_about_all ? size + paid : size);
    struct budget b = {budget + LOG_FREE, budget + ANSWER_FREE,
                       budget + STEPS_FREE + STEPS_OF_EVENT_BYTE * sent,
                       ITERATION_FREE + STEPS_OF_BYTE * size, COST_MAX * size + MEMORY_PASSING};
    if (!zk_op_of(op) || zk_op_of(op)->kind != ZK_KIND_READ) return b;
    b.answered += paid + given;
    b.steps += COST_MAX * answered;
    b.iteration = READING_FREE + STEPS_OF_BYTE * size;
    if (op == ZK_OP_MULTI_READ) b.answered += answer_max, b.steps += STEPS_OF_BYTE * answer_max;
    return b;
}

static void check(int32_t op, size_t size, const struct costs *before, size_t unsent_before,
                  bool ends) {
    size_t answered = 0, sent = 0, unsent = unsent_bytes(), memory = memory_kept() - unsent;
    for (unsigned i = 0; i < NUMBERS_MAX; i++) {
        if (received_by[i] > answered) answered = received_by[i];
        sent += received_by[i];
    }
    if (unsent > unsent_before) answered += unsent - unsent_before, sent += unsent - unsent_before;
    struct budget b = budget_of(op, size, answered, sent, ends);
    compare("bytes of the log", costs.logged - before->logged, b.logged, op, size, &worst.logged);
    if (unsent <= unsent_before)
        compare("bytes of answers", answered, b.answered, op, size, &worst.answered);
    b.steps += STEPS_OF_ITERATION * (costs.iterations - before->iterations);
    compare("steps of work", costs.blocks - before->blocks, b.steps, op, size, &worst.steps);
    compare("steps of work in a loop iteration", costs.longest, b.iteration, op, size,
            &worst.iteration);
    compare("bytes of memory in between", costs.peak - before->live, b.memory, op, size,
            &worst.passing);
    compare("bytes of memory", memory > memory_before ? memory - memory_before : 0,
            COST_MAX * paid + 2 * given + MEMORY_FREE, op, size, &worst.memory);
}

/* ---- Clients ---- */

enum { CLIENTS_MAX = 40 };

static struct client {
    uint32_t number, serial; /* of its connection; 0: it has none */
    int32_t xid;
} client[CLIENTS_MAX];
static struct bytes frame;

static struct connection *connection_of(const struct client *c) {
    struct connection *connection = c->number ? server.connections.at[c->number] : NULL;
    return connection && connection->serial == c->serial ? connection : NULL;
}

static void deliver(struct client *c, int32_t op) {
    costs.peak = costs.live;
    costs.longest = 0;
    costs.ended = costs.blocks;
    struct costs before = costs;
    size_t unsent_before = unsent_bytes();
    uint32_t count_before = server.connections.count;
    struct connection *connection = connection_of(c);
    memset(received_by, 0, sizeof received_by);
    paid += frame.used;
    if (connection && connection->state != CONNECTION_ENDING) {
        connection_receive(connection, frame.at, frame.used);
        run_loop();
    }
    /* its own, or that of one who does not take the events that it has asked for */
    check(op, frame.used, &before, unsent_before, server.connections.count < count_before);
}

/* Requests of many at the same time take many iterations, and none is long or sends much. */
static void check_burst(int32_t op, size_t size, const struct costs *before) {
    compare("steps of work in a loop iteration of many", costs.longest,
            ITERATION_FREE + STEPS_OF_BYTE * size, op, size, &worst.iteration);
    compare("bytes sent in a loop iteration", costs.most_sent, SENT_AT_ONCE + paid + given, op,
            size, &worst.answered);
    compare("bytes of memory for many", costs.peak - before->live, COST_MAX * size + MEMORY_PASSING,
            op, size, &worst.passing);
}

/* So it is looked at again, while others' entries are applied. */
static void send_pings(struct client *c) {
    static const unsigned char ping[] = {0, 0, 0, 8, 255, 255, 255, 254, 0, 0, 0, ZK_OP_PING};
    enum { TIMES = 8 };
    for (int i = 0; i < TIMES; i++) {
        run_iteration();
        struct connection *connection = connection_of(c);
        if (!connection || connection->state == CONNECTION_ENDING) return;
        paid += sizeof ping;
        connection_receive(connection, ping, sizeof ping);
    }
}

static struct bytes afterwards; /* a request of client 0, after those of a burst */

static void deliver_to_all(struct client *first, unsigned count, int32_t op) {
    costs.peak = costs.live;
    costs.longest = costs.most_sent = 0;
    costs.ended = costs.blocks;
    costs.sent_before = costs.sent;
    struct costs before = costs;
    for (unsigned i = 0; i < count; i++) {
        struct connection *connection = connection_of(&first[i]);
        paid += frame.used;
        if (connection && connection->state != CONNECTION_ENDING)
            connection_receive(connection, frame.at, frame.used);
    }
    struct connection *last = connection_of(&client[0]);
    if (afterwards.used && last && last->state != CONNECTION_ENDING) {
        paid += afterwards.used;
        connection_receive(last, afterwards.at, afterwards.used);
        send_pings(first);
    }
    run_loop();
    check_burst(op, count * frame.used + afterwards.used, &before);
    afterwards.used = 0;
}

static void open_session(struct client *c, bool is_deaf) {
    static const char password[TREE_PASSWORD_SIZE];
    struct zk_connect_request r = {
        .timeout = 10000, .passwd = {password, sizeof password}, .read_only = 0};
    struct connection *connection = connection_of(c);
    if (connection) {
        connection_end(connection);
        run_loop();
    }
    connection = server_accept(is_deaf);
    cv_assert(connection);
    *c = (struct client){connection->number, connection->serial, 0};
    frame.used = 0;
    size_t begin = zk_frame_begin(&frame);
    zk_write_connect_request(&frame, &r);
    zk_frame_end(&frame, begin);
    deliver(c, ZK_OP_CREATE_SESSION);
}

static size_t add_header(struct client *c, int32_t op) {
    size_t begin = zk_frame_begin(&frame);
    zk_write_request_header(&frame, &(struct zk_request_header){++c->xid, op});
    return begin;
}

static size_t begin_request(struct client *c, int32_t op) {
    frame.used = 0;
    return add_header(c, op);
}

static void request(struct client *c, int32_t op, const union zk_request *r) {
    size_t begin = begin_request(c, op);
    zk_op_of(op)->request->write(&frame, r);
    zk_frame_end(&frame, begin);
    deliver(c, op);
}

/* ---- The grammar ---- */

enum { DEPTH = 2000, CROWD = 8000 };

static struct zk_in program;
static struct bytes path_text, acl_text, data_text;

static unsigned take(void) { return zk_left(&program) ? *program.at++ : 0; }

static void create_for_others(struct zk_text path, node_id parent) {
    change_create(&server.tree, &(struct creation){.path = path,
                                                   .parent = parent,
                                                   .acl = acl_list(&server.tree, ACL_OPEN),
                                                   .zxid = server.tree.zxid,
                                                   .time = 1});
    changes_keep(&server.tree);
    tree_forget_events(&server.tree);
    given += NODE_BYTES + (size_t)path.size;
}

static void write_deep_path(unsigned depth) {
    path_text.used = 0;
    for (unsigned i = 0; i < depth; i++) bytes_add(&path_text, "/d", 2);
}

static struct zk_text path_as_text(void) {
    return (struct zk_text){(const char *)path_text.at, (int32_t)path_text.used};
}

/* What others have made before: nodes deep below each other, or many beside each other. */
static void make_deep(void) {
    write_deep_path(DEPTH);
    for (int32_t size = 2; size <= 2 * DEPTH; size += 2) {
        struct zk_text path = {(const char *)path_text.at, size};
        create_for_others(path, tree_find(&server.tree, (struct zk_text){path.at, size - 2}));
    }
}

static void make_crowd(void) {
    char name[32];
    node_id parent = tree_find(&server.tree, zk_text_of("/c"));
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof name, "/c/%d", i);
        create_for_others(zk_text_of(name), parent);
    }
}

static struct zk_text take_path(void) {
    static const char *const paths[] = {
        "/a", "/a", "/a", "/a/b", "/c", "/c/7", "/n", "/", "/zookeeper/quota"};
    enum { PATHS = sizeof paths / sizeof *paths };
    unsigned kind = take() % (PATHS + 4);
    char name[16];
    path_text.used = 0;
    if (kind < PATHS) {
        bytes_add(&path_text, paths[kind], strlen(paths[kind]));
        return path_as_text();
    }
    unsigned size = take();
    if (kind == PATHS || kind == PATHS + 1) write_deep_path(1 + size * DEPTH / 256);
    if (kind == PATHS + 2) /* a long name */
        memset(bytes_extend(&path_text, 1 + 32 * (size_t)size), '/', 1),
            memset(path_text.at + 1, 'l', 32 * (size_t)size);
    if (kind == PATHS + 1 || kind == PATHS + 3) {
        int length = snprintf(name, sizeof name, "/n%u", size);
        bytes_add(&path_text, name, (size_t)length);
    }
    return path_as_text();
}

static struct zk_text take_data(void) {
    size_t size = 16 * (size_t)take();
    data_text.used = 0;
    memset(bytes_extend(&data_text, size + 1), 'd', size + 1);
    return (struct zk_text){(const char *)data_text.at, (int32_t)size};
}

static struct zk_acls take_acls(void) {
    static const char *const schemes[] = {"world", "auth", "digest", "ip"};
    unsigned kind = take(), count = 1 + (kind & 4 ? 8 * take() : take() % 8);
    const char *scheme = schemes[kind % 4];
    char id[32];
    acl_text.used = 0;
    for (unsigned i = 0; i < count; i++) {
        snprintf(id, sizeof id, kind % 4 == 2 ? "u%u:x%u" : "10.0.%u.7/%u", i % 256, i % 33);
        if (kind % 4 == 0) snprintf(id, sizeof id, "anyone");
        if (kind % 4 == 1) *id = 0;
        int32_t perms = kind % 4 == 1 ? (int32_t)(ACL_ALL + (i << 5)) : ACL_ALL;
        zk_write_acl(&acl_text, &(struct zk_acl){perms, {zk_text_of(scheme), zk_text_of(id)}});
    }
    if (kind & 8) {
        struct zk_id anyone = {zk_text_of("world"), zk_text_of("anyone")};
        zk_write_acl(&acl_text, &(struct zk_acl){ACL_ALL, anyone});
    }
    return (struct zk_acls){acl_text.at, acl_text.used, (int32_t)(count + (kind & 8 ? 1 : 0))};
}

static const int32_t writes[] = {ZK_OP_CREATE,  ZK_OP_SET_DATA, ZK_OP_CHECK,
                                 ZK_OP_SET_ACL, ZK_OP_DELETE,   ZK_OP_CREATE_CONTAINER};

static int32_t take_write(union zk_request *r) {
    int32_t op = writes[take() % (sizeof writes / sizeof *writes)];
    struct zk_text path = take_path();
    switch (op) {
    case ZK_OP_SET_DATA: *r = (union zk_request){.set_data = {path, take_data(), -1}}; break;
    case ZK_OP_CHECK: *r = (union zk_request){.check = {path, -1}}; break;
    case ZK_OP_SET_ACL: *r = (union zk_request){.set_acl = {path, take_acls(), -1}}; break;
    case ZK_OP_DELETE: *r = (union zk_request){.delete = {path, -1}}; break;
    default:
        *r = (union zk_request){.create = {path, take_data(), take_acls(), (int32_t)(take() % 5)}};
    }
    return op;
}

static void take_multi(struct client *c) {
    union zk_request r;
    unsigned times = 1 + take();
    int32_t op = take_write(&r);
    size_t begin = begin_request(c, ZK_OP_MULTI);
    for (unsigned i = 0; i < times; i++) zk_write_multi_op(&frame, op, &r);
    zk_write_multi_end(&frame);
    zk_frame_end(&frame, begin);
    deliver(c, ZK_OP_MULTI);
}

/* A list of permissions, and operations that are checked against it. */
static void take_checks(struct client *c) {
    union zk_request r = {.set_acl = {zk_text_of("/a"), take_acls(), -1}};
    request(c, ZK_OP_SET_ACL, &r);
    unsigned times = 1 + take();
    size_t begin = begin_request(c, ZK_OP_MULTI);
    r = (union zk_request){.check = {zk_text_of("/a"), -1}};
    for (unsigned i = 0; i < times; i++) zk_write_multi_op(&frame, ZK_OP_CHECK, &r);
    zk_write_multi_end(&frame);
    zk_frame_end(&frame, begin);
    deliver(c, ZK_OP_MULTI);
}

static int32_t take_read(union zk_request *r) {
    static const int32_t reads[] = {ZK_OP_EXISTS,        ZK_OP_GET_DATA,
                                    ZK_OP_GET_CHILDREN,  ZK_OP_GET_CHILDREN2,
                                    ZK_OP_GET_ACL,       ZK_OP_GET_ALL_CHILDREN_NUMBER,
                                    ZK_OP_GET_EPHEMERALS};
    int32_t op = reads[take() % (sizeof reads / sizeof *reads)];
    *r = (union zk_request){.exists = {take_path(), take() & 1}};
    return op;
}

static void take_multi_read(struct client *c) {
    union zk_request r;
    unsigned times = 1 + take();
    int32_t op = take() & 1 ? ZK_OP_GET_DATA : ZK_OP_GET_CHILDREN;
    take_read(&r);
    size_t begin = begin_request(c, ZK_OP_MULTI_READ);
    for (unsigned i = 0; i < times; i++) zk_write_multi_op(&frame, op, &r);
    zk_write_multi_end(&frame);
    zk_frame_end(&frame, begin);
    deliver(c, ZK_OP_MULTI_READ);
}

/* Most often as many as one may have: whoever has too many loses them all. */
static void take_identities(struct client *c) {
    unsigned count = take() % 4 ? take() % 40 : take();
    char secret[16];
    for (unsigned i = 0; i <= count && connection_of(c); i++) {
        snprintf(secret, sizeof secret, "u%u:p", i);
        request(c, ZK_OP_AUTH,
                &(union zk_request){.auth = {0, zk_text_of("digest"), zk_text_of(secret)}});
    }
}

static void take_state(void) {
    unsigned state = take();
    create_for_others(zk_text_of("/a"), TREE_ROOT);
    create_for_others(zk_text_of("/c"), TREE_ROOT);
    if (state % 4 == 1) make_deep();
    if (state % 4 == 2) make_crowd();
    if (!(state & 4)) return;
    open_session(&client[0], false);
    take_identities(&client[0]);
}

/* Ephemeral nodes, or others, one by one. */
static void take_many(struct client *c) {
    unsigned count = take();
    union zk_request r = {.create = {.path = take_path()}};
    r.create.data = take_data();
    r.create.acl = take_acls();
    r.create.flags = take() & 1 ? ZK_EPHEMERAL_SEQUENTIAL : ZK_SEQUENTIAL;
    for (unsigned i = 0; i <= count; i++) request(c, ZK_OP_CREATE, &r);
}

/* A quota for a path: the nodes of its path below /zookeeper/quota, limits and statistics. */
static void take_quota(struct client *c) {
    static const char *const ends[] = {"/zookeeper_limits", "/zookeeper_stats"};
    struct bytes path = {0}, acl = {0};
    struct zk_text target = take_path();
    zk_write_acl(&acl, &(struct zk_acl){ACL_ALL, {zk_text_of("world"), zk_text_of("anyone")}});
    union zk_request r = {.create = {.acl = {acl.at, acl.used, 1}}};
    bytes_add(&path, "/zookeeper/quota", strlen("/zookeeper/quota"));
    size_t root = path.used;
    if (target.size > 1) bytes_add(&path, target.at, (size_t)target.size);
    for (size_t i = root + 1; i <= path.used; i++) {
        if (i < path.used && path.at[i] != '/') continue;
        r.create.path = (struct zk_text){(const char *)path.at, (int32_t)i};
        if (path.used - root < 64) request(c, ZK_OP_CREATE, &r);
    }
    for (unsigned i = 0; i < 2; i++) {
        path.used = root + (target.size > 1 ? (size_t)target.size : 0);
        bytes_add(&path, ends[i], strlen(ends[i]));
        r.create.path = (struct zk_text){(const char *)path.at, (int32_t)path.used};
        r.create.data = zk_text_of(i ? "" : "count=5,bytes=-1");
        request(c, ZK_OP_CREATE, &r);
        request(c, ZK_OP_DELETE, &(union zk_request){.delete = {r.create.path, -1}});
        request(c, ZK_OP_CREATE, &r);
    }
    bytes_close(&path);
    bytes_close(&acl);
}

static void take_watchers(void) {
    unsigned mode = take(), count = take() % CLIENTS_MAX;
    struct zk_text path = mode & 4 ? take_path() : zk_text_of("/");
    for (unsigned i = 1; i <= count; i++) {
        if (!connection_of(&client[i])) open_session(&client[i], mode & 2);
        request(&client[i], ZK_OP_ADD_WATCH, &(union zk_request){.add_watch = {path, mode & 1}});
    }
}

/* One path again and again, or many below it. */
static void write_paths(struct bytes *texts, struct zk_text path, unsigned count, bool differ) {
    struct bytes text = {0};
    for (unsigned i = 0; i < count; i++) {
        text.used = 0;
        bytes_add(&text, path.at, (size_t)path.size);
        if (differ) text.used += (size_t)snprintf((char *)bytes_reserve(&text, 16), 16, "%x", i);
        zk_write_text(texts, (struct zk_text){(const char *)text.at, (int32_t)text.used});
    }
    bytes_close(&text);
}

static void take_set_watches(struct client *c) {
    enum { BYTES_MAX = 60000 };
    struct bytes texts = {0};
    unsigned count = 1 + take();
    struct zk_text path = take_path();
    struct zk_set_watches2_request r = {.relative_zxid = (int64_t)take()};
    struct zk_texts *lists[] = {&r.data, &r.exist, &r.child, &r.persistent,
                                &r.persistent_recursive};
    unsigned list = take();
    bool many = list >= 128;
    if (many) count = BYTES_MAX / ((unsigned)path.size + 8);
    write_paths(&texts, path, count, many);
    *lists[list % 5] = (struct zk_texts){texts.at, texts.used, (int32_t)count};
    request(c, ZK_OP_SET_WATCHES2, &(union zk_request){.set_watches2 = r});
    bytes_close(&texts);
}

static void take_reconfig(struct client *c) {
    struct bytes text = {0};
    unsigned count = 1 + take();
    char server_line[64];
    for (unsigned i = 0; i < count; i++) {
        int size =
            snprintf(server_line, sizeof server_line, "%sserver.%u=h:1:2;3", i ? "," : "", i);
        bytes_add(&text, server_line, (size_t)size);
    }
    struct zk_text given_text = {(const char *)text.at, (int32_t)text.used}, null = {NULL, -1};
    bool joins = take() & 1;
    union zk_request r = {
        .reconfig = {joins ? given_text : null, null, joins ? null : given_text, -1}};
    request(c, ZK_OP_RECONFIG, &r);
    bytes_close(&text);
}

static void add_request(struct client *c, int32_t op, const union zk_request *r) {
    size_t begin = add_header(c, op);
    zk_op_of(op)->request->write(&frame, r);
    zk_frame_end(&frame, begin);
}

/* Many clients send many reads at the same time, after a write or between two. */
/* It takes several loop iterations, and others have asked before. */
static void write_multi_afterwards(void) {
    enum { TIMES = 500 };
    union zk_request write = {.set_data = {zk_text_of("/a"), {NULL, -1}, -1}};
    if (!connection_of(&client[0])) open_session(&client[0], false);
    size_t begin = begin_request(&client[0], ZK_OP_MULTI);
    for (unsigned i = 0; i < TIMES; i++) zk_write_multi_op(&frame, ZK_OP_SET_DATA, &write);
    zk_write_multi_end(&frame);
    zk_frame_end(&frame, begin);
    bytes_add(&afterwards, frame.at, frame.used);
}

static void take_burst(void) {
    union zk_request r, write = {.set_data = {zk_text_of("/a"), {NULL, -1}, -1}};
    unsigned kind = take(), count = 1 + take() % (CLIENTS_MAX - 1), reads = 1 + take() % 32;
    struct client *first = &client[1];
    for (unsigned i = 0; i < count; i++)
        if (!connection_of(&first[i])) open_session(&first[i], kind & 8);
    if (kind & 4) {
        write.set_data.data = take_data();
        request(first, ZK_OP_SET_DATA, &write);
    }
    int32_t op = take_read(&r);
    if (kind & 32) write_multi_afterwards();
    write.set_data.version = INT32_MAX; /* it changes nothing */
    frame.used = 0;
    if (kind & 1) add_request(first, ZK_OP_SET_DATA, &write);
    for (unsigned i = 0; i < reads; i++) add_request(first, op, &r);
    if (kind & 2) add_request(first, ZK_OP_SET_DATA, &write);
    if (kind & 16) zk_frame_end(&frame, add_header(first, ZK_OP_CLOSE_SESSION));
    deliver_to_all(first, count, op);
}

/* The rest of the program, or some of it, as it is. */
static void take_raw(struct client *c) {
    size_t size = take();
    if (size > zk_left(&program)) size = zk_left(&program);
    size_t begin = begin_request(c, (int32_t)take());
    if (size > zk_left(&program)) size = zk_left(&program);
    bytes_add(&frame, program.at, size);
    program.at += size;
    zk_frame_end(&frame, begin);
    deliver(c, ZK_OP_ERROR);
}

/* Of a session whose nodes are watched, perhaps. */
static void take_end(struct client *c) {
    unsigned state = take();
    unsigned count = state & 1 ? take() : 0;
    path_text.used = 0;
    bytes_add(&path_text, "/", 1);
    for (unsigned i = count ? take() : 0; i; i--)
        bytes_add(&path_text, "a-long-part-of-a-long-name-", 27);
    union zk_request r = {
        .create = {.path = path_as_text(), .acl = acl_list(&server.tree, ACL_OPEN)}};
    r.create.flags = ZK_EPHEMERAL_SEQUENTIAL;
    for (; count; count--) request(c, ZK_OP_CREATE, &r);
    if (state & 2) take_watchers();
    size_t begin = begin_request(c, ZK_OP_CLOSE_SESSION);
    zk_frame_end(&frame, begin);
    deliver(c, ZK_OP_CLOSE_SESSION);
}

static void take_request(struct client *c) {
    union zk_request r;
    int32_t op;
    if (!connection_of(c)) open_session(c, false);
    switch (take() % 17) {
    case 0: take_checks(c); break;
    case 1:
    case 2: take_identities(c); break;
    case 3: take_many(c); break;
    case 4: take_quota(c); break;
    case 5: take_watchers(); break;
    case 6: take_set_watches(c); break;
    case 7: take_multi_read(c); break;
    case 8: take_end(c); break;
    case 9: take_raw(c); break;
    case 10: take_reconfig(c); break;
    case 11:
    case 12: op = take_read(&r), request(c, op, &r); break;
    case 13: op = take_write(&r), request(c, op, &r); break;
    case 16: take_burst(); break;
    default: take_multi(c);
    }
}

static void run(const uint8_t *bytes, size_t size) {
    enum { REQUESTS_MAX = 64 };
    program = zk_in_of(bytes, size);
    memset(client, 0, sizeof client);
    paid = given = 0;
    server_open();
    memory_before = memory_kept();
    take_state();
    for (int i = 0; i < REQUESTS_MAX && zk_left(&program); i++) {
        unsigned who = take();
        take_request(&client[who < 192 ? 0 : who % CLIENTS_MAX]);
    }
    server_close();
    bytes_close(&frame);
    bytes_close(&path_text);
    bytes_close(&acl_text);
    bytes_close(&data_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    run(bytes, size);
    return 0;
}
