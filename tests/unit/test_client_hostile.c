/* A server that is broken, or means ill: it speaks the protocol up to some point, and then sends
 * garbage, cuts answers short, answers what was not asked, claims huge sizes, or goes away.  The
 * client ends such connections, tells everybody who waits, and goes on with the next. */
#include "client_help.h"

#include "base/rng.h"
#include "wire/zk/zk.h"

enum { ROUNDS = 300, OPS = 12 };

struct hostile {
    int listener, port;
    pthread_t thread;
    atomic_bool over;
    atomic_int served;
    struct rng rng;
};

/* ---- The server ---- */

static void say(struct bytes *out, int32_t xid, const struct bytes *body) {
    size_t frame = zk_frame_begin(out);
    zk_write_reply_header(out, &(struct zk_reply_header){xid, 5, 0});
    bytes_add(out, body->at, body->used);
    zk_frame_end(out, frame);
}

static void greet(struct bytes *out, struct rng *rng) {
    static const char password[16] = "0123456789abcdef";
    size_t frame = zk_frame_begin(out);
    zk_write_connect_response(
        out, &(struct zk_connect_response){
                 .timeout = rng_chance(rng, 0.1) ? (int32_t)rng_next(rng) : 1000,
                 .session_id = rng_chance(rng, 0.1) ? 0 : 77,
                 .passwd = {password, rng_chance(rng, 0.1) ? (int32_t)rng_below(rng, 16) : 16},
                 .read_only = rng_chance(rng, 0.1)});
    zk_frame_end(out, frame);
}

/* Bytes that are often nearly right. */
static void garbage(struct bytes *out, struct rng *rng) {
    size_t size = rng_below(rng, 120);
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)rng_next(rng);
        byte = rng_chance(rng, 0.5) ? 0 : rng_chance(rng, 0.3) ? 0xff : byte;
        bytes_add(out, &byte, 1);
    }
}

static void answer(struct bytes *out, int32_t xid, int32_t type, struct rng *rng) {
    struct bytes body = {0};
    union zk_response of;
    memset(&of, 0, sizeof of);
    of.create2.path = zk_text_of("/x");
    switch (type) { /* of the requests below, the right answers */
    case ZK_OP_GET_DATA:
        zk_write_get_data_response(&body, &(struct zk_get_data_response){.data = zk_text_of("x")});
        break;
    case ZK_OP_EXISTS: zk_write_exists_response(&body, &of.exists); break;
    case ZK_OP_GET_CHILDREN2:
        zk_write_i32(&body, 2);
        zk_write_text(&body, zk_text_of("a"));
        zk_write_text(&body, zk_text_of("b"));
        bytes_add(&body, &(char[68]){0}, 68);
        break;
    case ZK_OP_CREATE2: zk_write_create2_response(&body, &of.create2); break;
    case ZK_OP_MULTI:
        zk_write_result(&body, ZK_OP_DELETE, &of);
        zk_write_multi_end(&body);
        break;
    default: break;
    }
    switch (rng_below(rng, 14)) {
    case 0: xid += 1 + (int32_t)rng_below(rng, 3); break;
    case 1: xid = (int32_t)rng_next(rng); break;
    case 2: xid = -(int32_t)rng_below(rng, 10); break;
    case 3:
        if (body.used) body.used = rng_below(rng, body.used);
        break;
    case 4:
        if (body.used) body.at[rng_below(rng, body.used)] = (unsigned char)rng_next(rng);
        break;
    case 5:
        body.used = 0;
        garbage(&body, rng);
        break;
    default: break;
    }
    say(out, xid, &body);
    if (rng_chance(rng, 0.05)) garbage(out, rng);
    if (rng_chance(rng, 0.02)) zk_write_i32(out, (int32_t)rng_next(rng)); /* a length */
    if (rng_chance(rng, 0.05) && out->used) out->used -= rng_below(rng, out->used);
    bytes_close(&body);
}

static bool send_bytes(int fd, struct bytes *out) {
    bool sent = send(fd, out->at, out->used, MSG_NOSIGNAL) == (ssize_t)out->used;
    out->used = 0;
    return sent;
}

static void serve(struct hostile *hostile, int fd) {
    struct bytes in = {0}, out = {0};
    bool greeted = false;
    int left = (int)rng_below(&hostile->rng, 20);
    struct timeval patience = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (left >= 0 && !hostile->over) {
        ssize_t part = recv(fd, bytes_reserve(&in, 4096), 4096, 0);
        if (part <= 0) break;
        in.used += (size_t)part;
        struct zk_in received = zk_in_of(in.at, in.used), frame;
        while (left >= 0 && zk_next_frame(&received, 1 << 20, &frame) > 0) {
            struct zk_request_header header = {0};
            if (!greeted)
                greet(&out, &hostile->rng);
            else if (zk_read_request_header(&frame, &header))
                answer(&out, header.xid, header.type, &hostile->rng);
            greeted = true;
            left--;
        }
        size_t rest = zk_left(&received);
        memmove(in.at, received.at, rest);
        in.used = rest;
        if (!send_bytes(fd, &out)) break;
    }
    bytes_close(&in);
    bytes_close(&out);
    close(fd);
}

static void *run(void *arg) {
    struct hostile *hostile = arg;
    while (!hostile->over) {
        struct pollfd wait = {.fd = hostile->listener, .events = POLLIN};
        if (poll(&wait, 1, 20) <= 0) continue;
        int fd = accept4(hostile->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) serve(hostile, fd);
        hostile->served++;
    }
    return NULL;
}

/* ---- The client ---- */

static void answered(const struct cv_result *result, void *arg) {
    atomic_int *count = arg;
    volatile char sink = 0;
    /* All that it points to is there. */
    if (result->path) sink += result->path[strlen(result->path)];
    for (size_t i = 0; i < result->name_count; i++) sink += result->names[i][0];
    if (result->data) sink += ((const char *)result->data)[result->size];
    (void)sink;
    ++*count;
}

static void seen(enum cv_watch_type type, const char *path, void *arg) {
    (void)type, (void)path, (void)arg;
}

static void fill(struct cv_op ops[OPS], const struct cv_op *part) {
    for (int i = 0; i < OPS; i++) {
        ops[i] = i % 5 == 0   ? cv_op_get("/x")
                 : i % 5 == 1 ? cv_op_exists("/x")
                 : i % 5 == 2 ? cv_op_children("/x")
                 : i % 5 == 3 ? cv_op_create("/x", "x", 1, 0)
                              : cv_op_multi(part, 1);
        if (i % 5 < 3) ops[i].watch = seen;
    }
}

static void try_once(struct hostile *hostile, uint32_t flags) {
    struct cv_op part = cv_op_delete("/x", -1), ops[OPS];
    char address[40];
    struct cv_client *client;
    atomic_int count = 0;
    int started = 0;
    snprintf(address, sizeof address, "127.0.0.1:%d", hostile->port);
    struct cv_auth auth = {.scheme = "digest", .credential = "a:b"};
    struct cv_options options = {.servers = address,
                                 .session_timeout = 1000,
                                 .connect_timeout = 5,
                                 .flags = flags,
                                 .auth = &auth,
                                 .auth_count = 1};
    fill(ops, &part);
    cv_open(&client, &options);
    for (int i = 0; i < OPS; i++) started += cv_start(client, &ops[i], answered, &count) == CV_OK;
    if (flags & CV_NO_THREAD) cv_process_for(client, 2);
    cv_detach(client);
    assert_int_equal(count, started); /* each was told, once */
}

static void test_hostile(void **unused) {
    struct hostile hostile = {0};
    const char *seed = getenv("SEED");
    (void)unused;
    rng_seed(&hostile.rng, seed ? strtoull(seed, NULL, 10) : 1);
    hostile.listener = listen_anywhere(&hostile.port);
    assert_int_equal(pthread_create(&hostile.thread, NULL, run, &hostile), 0);
    /* A client does not wait for long: on a busy machine fewer of them get as far as the server. */
    int64_t end = cv_now() + PATIENCE_MS;
    for (int i = 0; i < ROUNDS || (hostile.served <= ROUNDS / 2 && cv_now() < end); i++)
        try_once(&hostile, i % 2 ? CV_NO_THREAD : 0);
    hostile.over = true;
    pthread_join(hostile.thread, NULL);
    close(hostile.listener);
    assert_true(hostile.served > ROUNDS / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hostile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
