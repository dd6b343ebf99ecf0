/* A listener that many connect to at once leaves the loop to others. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/net/stream.h"

enum { AT_ONCE = 2, CLIENTS = 12 };

struct door {
    struct net_listener listener; /* first */
    unsigned accepted;
};

static void was_closed(struct net_stream *stream) { free(stream); }

static void let_in(struct net_listener *listener) {
    struct door *door = (struct door *)listener;
    struct net_stream *stream = calloc(1, sizeof *stream);
    assert_non_null(stream);
    stream->on_closed = was_closed;
    assert_int_equal(net_accept(listener, stream), 0);
    net_close(stream);
    door->accepted++;
}

static int connect_to(int32_t port) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(socket_ >= 0);
    assert_int_equal(connect(socket_, (struct sockaddr *)&to, sizeof to), 0);
    return socket_;
}

/* Connected is what waits in the system, so it is all there at once. */
static void few_are_accepted_in_an_iteration(void **state) {
    uv_loop_t loop;
    struct door door = {.listener.on_connection = let_in};
    int32_t port = 0;
    int client[CLIENTS];
    (void)state;
    assert_int_equal(net_open(&loop), 0);
    assert_int_equal(net_listen(&loop, &door.listener, "127.0.0.1", &port, CLIENTS), 0);
    net_accept_at_once(&door.listener, AT_ONCE);
    for (int i = 0; i < CLIENTS; i++) client[i] = connect_to(port);
    for (unsigned before = 0; before < CLIENTS; before = door.accepted) {
        uv_run(&loop, UV_RUN_ONCE);
        assert_in_range(door.accepted - before, 0, AT_ONCE + 1); /* and the one that waited */
    }
    assert_int_equal(door.accepted, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) close(client[i]);

    int last = connect_to(port);
    while (door.accepted == CLIENTS) uv_run(&loop, UV_RUN_ONCE);
    close(last);
    uv_close((uv_handle_t *)&door.listener.tcp, NULL);
    uv_close((uv_handle_t *)&door.listener.iteration, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    net_shut(&loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_are_accepted_in_an_iteration)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
