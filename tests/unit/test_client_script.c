/* A server that says what a test wants: what a client believes of its session, and how it leaves
 * what it holds, when servers have no leader, shorten the session or forget it. */
#include "client_help.h"

#include "wire/zk/zk.h"

enum { NAME_MAX_ = 200 };

struct script {
    int listener, port;
    pthread_t thread;
    char address[40];
    atomic_bool over, cut; /* cut: ends the connection, once */
    atomic_bool read_only;
    atomic_int timeout, session, greetings;
    atomic_int refusal, refusals; /* the error of all writes; how many there were */
    atomic_long node_session;     /* whose the contender is */
    atomic_bool has_node;
    char node[NAME_MAX_]; /* the contender's name */
};

/* ---- The server ---- */

static void greet(struct script *s, struct bytes *out) {
    static const char password[16] = "0123456789abcdef";
    zk_write_connect_response(out, &(struct zk_connect_response){.timeout = s->timeout,
                                                                 .session_id = s->session,
                                                                 .passwd = {password, 16},
                                                                 .read_only = s->read_only});
    s->greetings++;
}

static void keep_name(struct script *s, struct zk_text path) {
    int32_t from = path.size;
    while (from > 0 && path.at[from - 1] != '/') from--;
    snprintf(s->node, sizeof s->node, "%.*s0000000001", (int)(path.size - from), path.at + from);
    s->node_session = s->session;
    s->has_node = true;
}

static int32_t answer(struct script *s, int32_t type, struct zk_in *request, struct bytes *body) {
    union zk_request of;
    bool write = type == ZK_OP_CREATE2 || type == ZK_OP_CREATE_CONTAINER || type == ZK_OP_DELETE;
    if (write && s->refusal) {
        s->refusals++;
        return s->refusal;
    }
    if (type != ZK_OP_CLOSE_SESSION && !zk_op_of(type)->request->read(request, &of))
        return ZK_MARSHALLINGERROR;
    switch (type) {
    case ZK_OP_CREATE2: {
        char path[NAME_MAX_ + 10];
        keep_name(s, of.create.path);
        snprintf(path, sizeof path, "/lock/%s", s->node);
        zk_write_create2_response(body,
                                  &(struct zk_create2_response){zk_text_of(path), {.czxid = 7}});
        return ZK_OK;
    }
    case ZK_OP_DELETE: s->has_node = false; return ZK_OK;
    case ZK_OP_GET_CHILDREN2:
        zk_write_i32(body, s->has_node);
        if (s->has_node) zk_write_text(body, zk_text_of(s->node));
        bytes_add(body, &(char[68]){0}, 68);
        return ZK_OK;
    case ZK_OP_GET_DATA:
        zk_write_get_data_response(
            body, &(struct zk_get_data_response){zk_text_of(""),
                                                 {.czxid = 7, .ephemeral_owner = s->node_session}});
        return ZK_OK;
    case ZK_OP_SYNC: zk_write_sync_response(body, &(struct zk_sync_response){of.sync.path}); break;
    default: break;
    }
    return ZK_OK;
}

static void on_frame(struct script *s, struct zk_in *frame, bool greeted, struct bytes *out) {
    struct zk_request_header header = {0};
    struct bytes body = {0};
    size_t begin = zk_frame_begin(out);
    if (!greeted) {
        greet(s, out);
    } else if (zk_read_request_header(frame, &header)) {
        int32_t error = header.xid == ZK_XID_PING ? ZK_OK : answer(s, header.type, frame, &body);
        zk_write_reply_header(out, &(struct zk_reply_header){header.xid, 5, error});
        if (!error && body.used) bytes_add(out, body.at, body.used);
    }
    zk_frame_end(out, begin);
    bytes_close(&body);
}

static void serve(struct script *s, int fd) {
    struct bytes in = {0}, out = {0};
    bool greeted = false;
    while (!s->over && !atomic_exchange(&s->cut, false)) {
        struct pollfd readable = {fd, POLLIN, 0};
        if (poll(&readable, 1, 5) <= 0) continue;
        ssize_t part = recv(fd, bytes_reserve(&in, 4096), 4096, 0);
        if (part <= 0) break;
        in.used += (size_t)part;
        struct zk_in received = zk_in_of(in.at, in.used), frame;
        while (zk_next_frame(&received, 1 << 20, &frame) > 0) {
            on_frame(s, &frame, greeted, &out);
            greeted = true;
        }
        size_t rest = zk_left(&received);
        memmove(in.at, received.at, rest);
        in.used = rest;
        if (send(fd, out.at, out.used, MSG_NOSIGNAL) != (ssize_t)out.used) break;
        out.used = 0;
    }
    bytes_close(&in);
    bytes_close(&out);
    close(fd);
}

static void *run(void *arg) {
    struct script *s = arg;
    while (!s->over) {
        struct pollfd readable = {s->listener, POLLIN, 0};
        if (poll(&readable, 1, 5) <= 0) continue;
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) serve(s, fd);
    }
    return NULL;
}

static struct script *begin(int timeout) {
    struct script *s = calloc(1, sizeof *s);
    s->timeout = timeout;
    s->session = 77;
    s->listener = listen_anywhere(&s->port);
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", s->port);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
    return s;
}

static void finish(struct script *s) {
    s->over = true;
    pthread_join(s->thread, NULL);
    close(s->listener);
    free(s);
}

static struct cv_client *client_of(struct script *s) {
    struct cv_client *client;
    struct cv_options options = {.servers = s->address,
                                 .session_timeout = s->timeout,
                                 .connect_timeout = PATIENCE_MS,
                                 .flags = CV_ALLOW_READ_ONLY};
    assert_int_equal(cv_open(&client, &options), CV_OK);
    return client;
}

/* ---- What a client believes ---- */

static void a_server_without_a_leader_proves_nothing(void **unused) {
    (void)unused;
    struct script *s = begin(600000); /* no ping comes between */
    struct cv_client *client = client_of(s);
    int64_t before = cv_session_deadline(client);
    assert_true(before > 0);
    usleep(5000);
    s->read_only = true;
    s->cut = true;
    AWAIT(cv_state(client) == CV_READ_ONLY);
    assert_int_equal(cv_get(client, "/x", NULL), CV_OK);
    assert_int_equal(cv_session_deadline(client), before);
    cv_detach(client);
    finish(s);
}

static void a_shorter_timeout_shortens_the_lease(void **unused) {
    (void)unused;
    struct script *s = begin(600000);
    struct cv_client *client = client_of(s);
    assert_true(cv_session_deadline(client) > cv_now() + 100000);
    s->timeout = 6000;
    s->cut = true;
    AWAIT(s->greetings >= 2 && cv_state(client) == CV_CONNECTED);
    assert_int_equal(cv_session_timeout(client), 6000);
    assert_true(cv_session_deadline(client) <= cv_now() + 4000);
    cv_detach(client);
    s->timeout = 1000; /* a server that is cut off answers for 700 ms */
    client = client_of(s);
    assert_true(cv_session_deadline(client) <= cv_now() + 300);
    cv_detach(client);
    finish(s);
}

static void an_answer_ends_the_session(void **unused) {
    (void)unused;
    struct script *s = begin(60000);
    struct cv_client *client = client_of(s);
    s->refusal = ZK_SESSIONEXPIRED;
    assert_int_equal(cv_delete(client, "/x", -1), CV_SESSION_EXPIRED);
    AWAIT(cv_state(client) == CV_EXPIRED);
    cv_close(client);
    s->refusal = 0;
    client = client_of(s);
    s->session = 78; /* another than was to be resumed */
    s->cut = true;
    AWAIT(cv_state(client) == CV_EXPIRED);
    cv_close(client);
    finish(s);
}

/* ---- Leaving ---- */

static struct cv_lock *lock_of(struct cv_client *client, const char *node) {
    struct cv_lock *lock;
    struct cv_lock_options options = {.node = node};
    assert_int_equal(cv_lock_open(&lock, client, "/lock", &options), CV_OK);
    return lock;
}

static void *stop_refusing(void *arg) {
    struct script *s = arg;
    AWAIT(s->refusals >= 2);
    assert_true(s->has_node);
    s->refusal = 0;
    return NULL;
}

static void a_release_that_is_refused_is_repeated(void **unused) {
    (void)unused;
    struct script *s = begin(600000);
    struct cv_client *client = client_of(s);
    struct cv_lock *lock = lock_of(client, NULL);
    pthread_t thread;
    assert_int_equal(cv_lock_acquire(lock, CV_FOREVER), CV_OK);
    s->refusal = CV_NOT_READ_ONLY;
    assert_int_equal(pthread_create(&thread, NULL, stop_refusing, s), 0);
    assert_int_equal(cv_lock_release(lock), CV_OK);
    pthread_join(thread, NULL);
    assert_false(s->has_node);
    assert_int_equal(cv_lock_acquire(lock, CV_FOREVER), CV_OK);
    s->refusal = CV_NO_AUTH;
    assert_int_equal(cv_lock_release(lock), CV_NO_AUTH);
    s->refusal = 0;
    assert_int_equal(cv_lock_acquire(lock, CV_FOREVER), CV_OK);
    cv_lock_close(lock);
    cv_detach(client);
    finish(s);
}

static void a_node_of_another_session_is_not_resumed(void **unused) {
    (void)unused;
    struct script *s = begin(600000);
    struct cv_client *client = client_of(s);
    struct cv_lock *lock = lock_of(client, NULL);
    assert_int_equal(cv_lock_acquire(lock, CV_FOREVER), CV_OK);
    struct cv_lock *again = lock_of(client, s->node);
    assert_int_equal(cv_lock_acquire(again, CV_FOREVER), CV_OK);
    struct cv_lock *other = lock_of(client, s->node);
    s->node_session = 5;
    assert_int_equal(cv_lock_acquire(other, CV_FOREVER), CV_NO_NODE);
    assert_true(s->has_node);
    cv_lock_close(other);
    cv_lock_close(again);
    cv_lock_close(lock);
    cv_close(client);
    finish(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_without_a_leader_proves_nothing),
        cmocka_unit_test(a_shorter_timeout_shortens_the_lease),
        cmocka_unit_test(an_answer_ends_the_session),
        cmocka_unit_test(a_release_that_is_refused_is_repeated),
        cmocka_unit_test(a_node_of_another_session_is_not_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
