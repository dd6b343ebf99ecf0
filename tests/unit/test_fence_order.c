/* In which order a fence passes things on.  The resource is this test: it answers and closes when
 * it wants to, so what comes too early is seen.  What must not come yet is told from what has come
 * by an order, not by waiting: connections to the resource come in the order in which they were
 * made, and an innocent one is made last. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fence/proxy.h"
#include "file_help.h"
#include "patience.h"

struct scene {
    struct place place;
    char state[128];
    int listener; /* of the resource */
    int port;     /* of the fence */
    pid_t fence;
};

static int listen_somewhere(int *port) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(socket_, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(socket_, 64), 0);
    assert_int_equal(getsockname(socket_, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return socket_;
}

static void start_with(struct scene *scene, const struct fence_protocol *protocol, rlim_t files) {
    static const char *const locks[] = {"job", "other"};
    struct fence_settings settings = {.listen_host = "127.0.0.1",
                                      .to_host = "127.0.0.1",
                                      .to_text = "the test",
                                      .protocol = protocol,
                                      .locks = locks,
                                      .lock_count = protocol == &fence_redis ? 2 : 1,
                                      .root = "/conclave/locks",
                                      .state = scene->state,
                                      .patience_ms = PATIENCE_MS};
    int pipe_[2];
    char line[200] = "";
    place_open(&scene->place);
    snprintf(scene->state, sizeof scene->state, "%s/state", scene->place.path);
    scene->listener = listen_somewhere(&settings.to_port);
    assert_int_equal(pipe(pipe_), 0);
    fflush(NULL);
    scene->fence = fork();
    if (scene->fence == 0) {
        dup2(pipe_[1], STDOUT_FILENO);
        freopen("/dev/null", "w", stderr);
        close(scene->listener);
        alarm(4 * PATIENCE_MS / 1000);
        if (files) setrlimit(RLIMIT_NOFILE, &(struct rlimit){files, files});
        _exit(fence_run(&settings));
    }
    close(pipe_[1]);
    FILE *said = fdopen(pipe_[0], "r");
    assert_non_null(fgets(line, sizeof line, said));
    fclose(said);
    scene->port = atoi(strrchr(line, ':') + 1);
    assert_true(scene->port > 0);
}

static void start(struct scene *scene, const struct fence_protocol *protocol) {
    start_with(scene, protocol, 0);
}

static void stop(struct scene *scene) {
    int status;
    close(scene->listener);
    kill(scene->fence, SIGTERM);
    assert_int_equal(waitpid(scene->fence, &status, 0), scene->fence);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    place_close(&scene->place);
}

static void be_patient(int socket_) {
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

static int connect_to(const struct scene *scene) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)scene->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    be_patient(socket_);
    assert_int_equal(connect(socket_, (struct sockaddr *)&address, sizeof address), 0);
    return socket_;
}

static int accept_from(const struct scene *scene) {
    struct pollfd ready = {.fd = scene->listener, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    int socket_ = accept(scene->listener, NULL, NULL);
    be_patient(socket_);
    return socket_;
}

static void say(int socket_, const char *text) {
    assert_int_equal(send(socket_, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Exactly this text comes. */
static void hear(int socket_, const char *text) {
    char got[1024] = "";
    size_t size = 0;
    while (size < strlen(text)) {
        ssize_t more = recv(socket_, got + size, strlen(text) - size, 0);
        if (more <= 0) fail_msg("'%s' instead of '%s'", got, text);
        size += (size_t)more;
    }
    assert_string_equal(got, text);
}

static void hear_end(int socket_) {
    char byte;
    ssize_t size = recv(socket_, &byte, 1, 0);
    assert_true(size == 0 || (size < 0 && errno == ECONNRESET));
    close(socket_);
}

static void remembers(const struct scene *scene, const char *text) {
    struct bytes file = file_read(&scene->place, "state");
    bytes_add(&file, "", 1);
    if (!strstr((char *)file.at, text)) fail_msg("'%s' is not in '%s'", text, file.at);
    bytes_close(&file);
}

#define NAMED(TOKEN) "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$11\r\nfence:job:" TOKEN "\r\n"
#define AUTH(TOKEN)  "*3\r\n$4\r\nAUTH\r\n$3\r\njob\r\n$1\r\n" TOKEN "\r\n"
#define SET          "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n"
#define PING         "*1\r\n$4\r\nPING\r\n"

/* A connection without a token; its end at the resource.  Whatever the fence did before, it did. */
static void innocent(const struct scene *scene) {
    int reader = connect_to(scene);
    say(reader, PING);
    int at_resource = accept_from(scene);
    hear(at_resource, PING);
    close(reader);
    hear_end(at_resource);
}

static void test_redis_order(void **state) {
    struct scene scene;
    (void)state;
    start(&scene, &fence_redis);
    int older = connect_to(&scene);
    say(older, AUTH("5") SET);
    int older_there = accept_from(&scene);
    hear(older_there, NAMED("5") SET);
    remembers(&scene, "5 job");
    int newer = connect_to(&scene);
    say(newer, AUTH("7") SET);
    hear_end(older);
    innocent(&scene); /* and not the newer one, as long as the resource has not closed */
    char byte;
    assert_int_equal(recv(older_there, &byte, 1, 0), 0); /* half-closed: no byte more */
    say(older_there, "+OK\r\n");
    close(older_there);
    int newer_there = accept_from(&scene);
    hear(newer_there, NAMED("7") SET);
    remembers(&scene, "7 job");
    say(newer_there, "+OK\r\n+OK\r\n");
    hear(newer, "+OK\r\n+OK\r\n");
    int late = connect_to(&scene);
    say(late, AUTH("5") SET);
    hear(late, "-FENCED token 5 is older than 7");
    close(late);
    innocent(&scene); /* nothing of the late one came */
    close(newer);
    hear_end(newer_there);
    stop(&scene);
}

/* A holder that has gone by itself counts until the resource is done with what it sent. */
static void test_redis_gone(void **state) {
    struct scene scene;
    (void)state;
    start(&scene, &fence_redis);
    int older = connect_to(&scene);
    say(older, AUTH("5") SET);
    int older_there = accept_from(&scene);
    hear(older_there, NAMED("5") SET);
    close(older);
    char byte;
    assert_int_equal(recv(older_there, &byte, 1, 0), 0);
    int newer = connect_to(&scene);
    say(newer, AUTH("7"));
    innocent(&scene);
    close(older_there);
    int newer_there = accept_from(&scene);
    hear(newer_there, NAMED("7"));
    close(newer);
    hear_end(newer_there);
    stop(&scene);
}

/* One that waits for an older one is overtaken by a newer one. */
static void test_redis_overtaken(void **state) {
    struct scene scene;
    (void)state;
    start(&scene, &fence_redis);
    int first = connect_to(&scene), second = connect_to(&scene), third = connect_to(&scene);
    say(first, AUTH("5"));
    int first_there = accept_from(&scene);
    hear(first_there, NAMED("5"));
    say(second, AUTH("6") SET);
    hear_end(first);
    say(third, AUTH("7"));
    hear(second, "-FENCED token 6 is older than 7");
    close(second);
    close(first_there);
    int third_there = accept_from(&scene);
    hear(third_there, NAMED("7"));
    close(third);
    hear_end(third_there);
    stop(&scene);
}

/* A client that has said all gets its answers, also if it had to wait for an older token. */
static void test_redis_half_closed(void **state) {
    struct scene scene;
    char byte;
    (void)state;
    start(&scene, &fence_redis);
    int older = connect_to(&scene), newer = connect_to(&scene);
    say(older, AUTH("5") SET);
    int older_there = accept_from(&scene);
    hear(older_there, NAMED("5") SET);
    shutdown(older, SHUT_WR);
    assert_int_equal(recv(older_there, &byte, 1, 0), 0);
    say(older_there, "+OK\r\n");
    hear(older, "+OK\r\n");
    say(newer, AUTH("7") SET);
    shutdown(newer, SHUT_WR);
    hear_end(older); /* it is cut off, and counts until the resource is done with it */
    innocent(&scene);
    close(older_there);
    int newer_there = accept_from(&scene);
    hear(newer_there, NAMED("7") SET);
    assert_int_equal(recv(newer_there, &byte, 1, 0), 0);
    say(newer_there, "+OK\r\n+OK\r\n");
    close(newer_there);
    hear(newer, "+OK\r\n+OK\r\n");
    hear_end(newer);
    stop(&scene);
}

static int connect_reader(const struct scene *scene, int *there) {
    int reader = connect_to(scene);
    say(reader, PING);
    *there = accept_from(scene);
    hear(*there, PING);
    return reader;
}

/* There is room for three: the reader that was not heard of for longest makes room for others. */
static void test_crowd(void **state) {
    struct scene scene;
    int there[5];
    (void)state;
    start_with(&scene, &fence_redis, 64 + 2 * 3);
    int holder = connect_to(&scene);
    say(holder, AUTH("5"));
    there[0] = accept_from(&scene);
    hear(there[0], NAMED("5"));
    int first = connect_reader(&scene, &there[1]), second = connect_reader(&scene, &there[2]);
    say(first, PING);
    hear(there[1], PING);
    int third = connect_reader(&scene, &there[3]);
    hear_end(second);
    hear_end(there[2]);
    int newer = connect_to(&scene);
    say(newer, AUTH("7"));
    hear_end(first);
    hear_end(there[1]);
    hear_end(holder);
    close(there[0]);
    there[4] = accept_from(&scene);
    hear(there[4], NAMED("7"));
    remembers(&scene, "7 job");
    say(third, PING); /* nobody needs its place */
    hear(there[3], PING);
    close(third);
    close(newer);
    hear_end(there[3]);
    hear_end(there[4]);
    stop(&scene);
}

/* What a command with a token is replaced by, and what a reader may not do. */
static void test_redis_commands(void **state) {
    struct scene scene;
    (void)state;
    start(&scene, &fence_redis);
    int client = connect_to(&scene);
    say(client, "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$8\r\njob/anna\r\n$5\r\n5:x:y\r\n"
                "$7\r\nSETNAME\r\n$1\r\nn\r\n");
    int there = accept_from(&scene);
    hear(there, "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$4\r\nanna\r\n$3\r\nx:y\r\n"
                "$7\r\nSETNAME\r\n$1\r\nn\r\n");
    say(client, AUTH("5") SET); /* the same again */
    hear(there, NAMED("5") SET);
    say(client, AUTH("6")); /* another one on the same connection */
    hear_end(client);
    hear_end(there);
    client = connect_to(&scene);
    say(client, "*2\r\n$4\r\nAUTH\r\n$9\r\njob:5:abc\r\n");
    there = accept_from(&scene);
    hear(there, "*2\r\n$4\r\nAUTH\r\n$3\r\nabc\r\n");
    close(client);
    hear_end(there);
    client = connect_to(&scene);
    say(client, "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$18\r\nlock=other,token=1\r\n" SET);
    there = accept_from(&scene); /* another lock */
    hear(there, "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$18\r\nlock=other,token=1\r\n" SET);
    close(client);
    hear_end(there);
    client = connect_to(&scene);
    say(client, SET PING);
    there = accept_from(&scene);
    hear(there, "*3\r\n$4\r\nEVAL\r\n");
    char rest[200];
    ssize_t size = recv(there, rest, sizeof rest - 1, 0);
    rest[size > 0 ? size : 0] = 0;
    assert_null(strstr(rest, "SET\r\n$1"));
    close(client);
    close(there);
    client = connect_to(&scene);
    say(client, "*3\r\n$4\r\nAUTH\r\n$3\r\njob\r\n$1\r\nx\r\n");
    hear(client, "-WRONGPASS");
    close(client);
    client = connect_to(&scene);
    say(client, "PING\r\n");
    hear(client, "-ERR Protocol error");
    close(client);
    stop(&scene);
}

#define PUT(TOKEN, LENGTH)                                                                         \
    "PUT /x HTTP/1.1\r\nHost: a\r\nConclave-Token: " TOKEN "\r\nContent-Length: " LENGTH "\r\n\r"  \
    "\n"
#define GET   "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
#define DONE  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define STALE "HTTP/1.1 412 Precondition Failed\r\n"

static void innocent_get(const struct scene *scene) {
    int reader = connect_to(scene);
    say(reader, GET);
    int there = accept_from(scene);
    hear(there, GET);
    close(reader);
    hear_end(there);
}

static void test_http_order(void **state) {
    struct scene scene;
    (void)state;
    start(&scene, &fence_web);
    int older = connect_to(&scene);
    say(older, PUT("5", "2") "ab" GET); /* the second request waits for the first */
    int older_there = accept_from(&scene);
    hear(older_there, PUT("5", "2") "ab");
    int newer = connect_to(&scene);
    say(newer, PUT("7", "1") "c");
    hear_end(older);
    innocent_get(&scene); /* the older one is not answered yet */
    say(older_there, DONE);
    int newer_there = accept_from(&scene);
    hear(newer_there, PUT("7", "1") "c");
    remembers(&scene, "7 job");
    say(newer_there, DONE);
    hear(newer, DONE);
    say(newer, PUT("7", "1")); /* the same connection, a part of the body */
    hear(newer_there, PUT("7", "1"));
    int newest = connect_to(&scene);
    say(newest, PUT("8", "0"));
    char byte;
    assert_int_equal(recv(newer_there, &byte, 1, 0), 0); /* it will not become whole */
    innocent_get(&scene);
    close(newer_there);
    int newest_there = accept_from(&scene);
    hear(newest_there, PUT("8", "0"));
    say(newest_there, DONE);
    hear(newest, DONE);
    say(newest, PUT("5", "0"));
    hear(newest, STALE);
    close(newest);
    hear_end(newest_there);
    hear_end(older_there);
    hear_end(newer);
    stop(&scene);
}

static void test_http_requests(void **state) {
    struct scene scene;
    (void)state;
    start(&scene, &fence_web);
    int client = connect_to(&scene);
    say(client, "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n");
    hear(client, STALE); /* no token */
    close(client);
    client = connect_to(&scene);
    say(client, GET GET); /* one connection for both, and a response in chunks */
    int there = accept_from(&scene);
    hear(there, GET);
    say(there, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
    hear(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
    hear(there, GET);
    say(there, DONE);
    hear(client, DONE);
    close(there); /* the resource closes an idle connection; the next request gets another */
    say(client, PUT("5", "3"));
    there = accept_from(&scene);
    hear(there, PUT("5", "3"));
    say(there, "HTTP/1.1 100 Continue\r\n\r\n");
    hear(client, "HTTP/1.1 100 Continue\r\n\r\n");
    say(client, "abc");
    hear(there, "abc");
    say(there, "HTTP/1.0 200 OK\r\n\r\nuntil the end");
    close(there);
    hear(client, "HTTP/1.0 200 OK\r\n\r\nuntil the end");
    hear_end(client);
    client = connect_to(&scene);
    say(client, GET);
    there = accept_from(&scene);
    hear(there, GET);
    say(there, DONE "HTTP/1.1 200 OK\r\n"); /* what nobody has asked for is not passed on */
    hear(client, DONE);
    hear_end(client);
    hear_end(there);
    stop(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redis_order),       cmocka_unit_test(test_redis_gone),
        cmocka_unit_test(test_redis_overtaken),   cmocka_unit_test(test_redis_commands),
        cmocka_unit_test(test_redis_half_closed), cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_http_order),        cmocka_unit_test(test_http_requests),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
