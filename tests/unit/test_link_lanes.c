/* Lanes of a link, and links that are silent: what the system says of a connection is made up
 * here. */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#include "base/crc32c.h"
#include "base/logger.h"
#include "file_help.h"
#include "patience.h"
#include "wire/net/link.h"

enum { SILENCE_MS = 40, MORE = 1u << 31, LAST = 1 << 30 };

/* ---- The system's account ---- */

static struct net_flow account;
static bool is_known, carries; /* carries: more is acknowledged each time */
static unsigned rooms;         /* how often it has room although much is queued */
static unsigned looks;         /* how often somebody has asked for it */

static bool flow_of_all(const struct net_stream *stream, struct net_flow *flow) {
    (void)stream;
    looks++;
    if (carries) account.acknowledged++;
    *flow = account;
    if (rooms && flow->queued) rooms--, flow->queued = 0;
    return is_known;
}

/* ---- The loop ---- */

static uv_loop_t loop;
static uv_timer_t tick;

static void on_tick(uv_timer_t *timer) { (void)timer; }
static void keep_quiet(void *arg, const char *line, size_t size) {
    (void)arg, (void)line, (void)size;
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void relay(void);

#define WAIT(CONDITION)                                                                            \
    for (uint64_t begun_ = now_ms(); !(CONDITION); relay()) {                                      \
        if (now_ms() - begun_ > PATIENCE_MS) fail_msg("not in time: %s", #CONDITION);              \
        uv_run(&loop, UV_RUN_ONCE);                                                                \
    }

static void run_for(uint64_t ms) {
    for (uint64_t begun = now_ms(); now_ms() - begun < ms; relay()) uv_run(&loop, UV_RUN_ONCE);
}

/* ---- Two servers, a dials b ---- */

struct end {
    struct links *links;
    int32_t port;
    unsigned up, broken, failed, drained, parts, frames, ended;
    uint32_t types[16];
    struct bytes last;
};

static struct end a, b;

static void on_frame(void *owner, uint64_t from, uint16_t version, uint32_t type,
                     const unsigned char *bytes, size_t size) {
    struct end *end = owner;
    (void)from, (void)version;
    if (end->frames < 16) end->types[end->frames] = type;
    end->frames++;
    end->last.used = 0;
    bytes_add(&end->last, bytes, size);
}

static void on_part(void *owner, uint64_t from) { (void)from, ((struct end *)owner)->parts++; }
static void on_up(void *owner, uint64_t id) { (void)id, ((struct end *)owner)->up++; }
static void on_drained(void *owner, uint64_t id) { (void)id, ((struct end *)owner)->drained++; }

static void on_down(void *owner, uint64_t id, enum link_reason reason) {
    struct end *end = owner;
    (void)id;
    *(reason == LINK_BROKEN ? &end->broken : &end->failed) += 1;
}

static void on_incoming(void *owner, uint64_t id, bool here, uint64_t incarnation) {
    (void)id, (void)incarnation;
    ((struct end *)owner)->ended += !here;
}

/* Between them: connections to `port` are continued to b, which can be told other things. */
static struct {
    int listener, near, far;
    int32_t port;
} between;

static int any_socket(void) {
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static struct sockaddr_in address_of(int32_t port) {
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void open_between(void) {
    struct sockaddr_in address = address_of(between.port);
    socklen_t size = sizeof address;
    int on = 1;
    between.listener = any_socket();
    setsockopt(between.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(between.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(between.listener, 4), 0);
    assert_int_equal(getsockname(between.listener, (struct sockaddr *)&address, &size), 0);
    between.port = ntohs(address.sin_port);
}

static void hang_up(void) {
    if (between.near >= 0) close(between.near), close(between.far);
    between.near = between.far = -1;
}

static void pass_on(int from, int to) {
    static unsigned char bytes[1 << 16];
    ssize_t size = from < 0 ? -1 : recv(from, bytes, sizeof bytes, 0);
    if (size == 0) hang_up();
    for (ssize_t at = 0; at < size;) {
        ssize_t done = send(to, bytes + at, (size_t)(size - at), MSG_NOSIGNAL);
        if (done < 0 && errno != EAGAIN) {
            hang_up();
            return;
        }
        at += done > 0 ? done : 0;
    }
}

static void relay(void) {
    struct sockaddr_in address = address_of(b.port);
    int next = between.listener >= 0 ? accept4(between.listener, NULL, NULL, SOCK_NONBLOCK) : -1;
    if (next >= 0) { /* it replaces the one before, which stays half-open at a */
        between.near = next;
        between.far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(between.far, (struct sockaddr *)&address, sizeof address), 0);
        fcntl(between.far, F_SETFL, O_NONBLOCK);
    }
    if (between.near < 0) return;
    pass_on(between.near, between.far);
    pass_on(between.far, between.near);
}

static void start(struct end *end, uint64_t id, uint16_t newest) {
    struct links_config config = {.version_newest = newest,
                                  .loop = &loop,
                                  .id = id,
                                  .seed = 1,
                                  .silence_ms = SILENCE_MS,
                                  .flow = flow_of_all,
                                  .owner = end,
                                  .on_frame = on_frame,
                                  .on_part = on_part,
                                  .on_up = on_up,
                                  .on_down = on_down,
                                  .on_incoming = on_incoming,
                                  .on_drained = on_drained};
    *end = (struct end){.links = links_open(&config)};
    for (int32_t i = 0; i < 1000; i++) {
        end->port = 24000 + ((int32_t)getpid() * 7 + i) % 1000;
        if (!links_listen(end->links, "127.0.0.1", &end->port)) return;
    }
    fail_msg("no port is free");
}

static void start_both(uint16_t version) {
    is_known = true;
    account = (struct net_flow){.bytes_per_s = 1000000};
    carries = true;
    between.near = between.far = -1;
    between.port = 0;
    start(&a, 1, version), start(&b, 2, 0);
    open_between();
    assert_null(links_set(a.links, 2, "127.0.0.1", between.port));
    WAIT(a.up == 1);
}

static void stop_both(void) {
    links_close(a.links), links_close(b.links);
    bytes_close(&a.last), bytes_close(&b.last);
    hang_up();
    if (between.listener >= 0) close(between.listener);
    uv_close((uv_handle_t *)&tick, NULL);
    between.listener = -1;
    uv_run(&loop, UV_RUN_DEFAULT);
    net_shut(&loop);
}

static int open_loop(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    logger_set_output(keep_quiet, NULL);
    assert_int_equal(net_open(&loop), 0);
    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, on_tick, 2, 2);
    return 0;
}

static unsigned char body[200000];

static void send_frame(uint32_t type, enum link_lane lane, size_t size) {
    struct bytes *out = link_begin(a.links, 2, type, lane);
    assert_non_null(out);
    for (size_t i = 0; i < size; i++) body[i] = (unsigned char)(i * 7 + type);
    bytes_add(out, body, size);
    link_end(a.links, 2);
}

static void check_last(uint32_t type, size_t size) {
    assert_int_equal(b.last.used, size);
    for (size_t i = 0; i < size; i++) assert_int_equal(b.last.at[i], (unsigned char)(i * 7 + type));
}

/* ---- Lanes ---- */

static void test_urgent_overtakes(void **state) {
    (void)state;
    start_both(0);
    account.queued = 1 << 30; /* the link is slow, and has enough to do */
    assert_true(link_takes_bulk(a.links, 2));
    assert_false(link_bulk_waits(a.links, 2));
    send_frame(1, LINK_BULK, sizeof body);
    send_frame(2, LINK_BULK, 10); /* in order, however small */
    links_flush(a.links);
    assert_true(link_bulk_waits(a.links, 2));
    assert_false(link_takes_bulk(a.links, 2));
    assert_true(link_unsent(a.links, 2) > sizeof body);
    send_frame(3, LINK_URGENT, 5);
    links_flush(a.links);
    WAIT(b.frames == 1);
    check_last(3, 5);
    run_for(30);
    assert_int_equal(b.frames, 1);
    assert_int_equal(a.drained, 0);
    account.queued = 0;
    WAIT(b.frames == 3 && a.drained > 0);
    assert_int_equal(b.types[1], 1);
    assert_int_equal(b.types[2], 2);
    check_last(2, 10);
    assert_false(link_bulk_waits(a.links, 2));
    assert_int_equal(link_unsent(a.links, 2), 0);
    stop_both();
}

/* In the midst of a large frame, too; what has arrived of that is a sign of life. */
static void test_between_fragments(void **state) {
    (void)state;
    start_both(0);
    account.queued = 1 << 30;
    account.bytes_per_s = 0; /* of no known speed */
    rooms = 3;
    send_frame(1, LINK_BULK, sizeof body);
    links_flush(a.links); /* some of it */
    WAIT(b.parts > 0);
    assert_int_equal(b.frames, 0);
    send_frame(2, LINK_URGENT, 100);
    links_flush(a.links);
    WAIT(b.frames == 1);
    check_last(2, 100);
    assert_true(link_unsent(a.links, 2) > sizeof body / 2);
    account.queued = 0;
    WAIT(b.frames == 2);
    check_last(1, sizeof body);
    stop_both();
}

/* Servers of version 3 know no fragments: all in order, and all at once. */
static void test_one_lane(void **state) {
    (void)state;
    start_both(3);
    account.queued = 1 << 30;
    send_frame(1, LINK_BULK, sizeof body);
    send_frame(2, LINK_URGENT, 5);
    links_flush(a.links);
    assert_true(link_takes_bulk(a.links, 2));
    WAIT(b.frames == 2);
    assert_int_equal(b.types[0], 1);
    assert_int_equal(b.types[1], 2);
    stop_both();
}

/* What is discarded does not arrive, whether it has begun to or not; what follows does. */
static void test_discarded(void **state) {
    (void)state;
    start_both(0);
    for (unsigned round = 0; round < 2; round++) {
        account.queued = 1 << 30;
        account.bytes_per_s = 0;
        rooms = 3 * round;
        send_frame(1, LINK_BULK, sizeof body);
        send_frame(2, LINK_BULK, sizeof body);
        links_flush(a.links);
        if (round) WAIT(b.parts > 0);
        link_discard_bulk(a.links, 2);
        assert_false(link_bulk_waits(a.links, 2));
        account.queued = 0;
        send_frame(3, LINK_BULK, 100000);
        links_flush(a.links);
        WAIT(b.frames == round + 1 || b.ended);
        assert_int_equal(b.ended, 0);
        check_last(3, 100000);
    }
    stop_both();
}

/* A link that ends takes with it what has waited. */
static void test_lane_ends(void **state) {
    (void)state;
    start_both(0);
    account.queued = 1 << 30;
    send_frame(1, LINK_BULK, sizeof body);
    links_flush(a.links);
    hang_up();
    WAIT(a.broken == 1 && a.up == 2);
    assert_int_equal(link_unsent(a.links, 2), 0);
    assert_false(link_bulk_waits(a.links, 2));
    send_frame(4, LINK_BULK, 3);
    links_flush(a.links);
    WAIT(b.frames == 1);
    check_last(4, 3);
    stop_both();
}

/* ---- Fragments that no server sends ---- */

static void inject(uint32_t type, size_t size) {
    uint32_t header[3] = {(uint32_t)size, type, 0};
    header[2] = crc32c(crc32c(0, header, 8), body, size);
    assert_int_equal(send(between.far, header, sizeof header, MSG_NOSIGNAL), sizeof header);
    for (size_t at = 0; at < size;) {
        ssize_t sent = send(between.far, body + at, size - at, MSG_NOSIGNAL);
        if (sent > 0) at += (size_t)sent;
        uv_run(&loop, UV_RUN_NOWAIT);
        if (b.ended) return;
    }
}

static void test_bad_fragments(void **state) {
    (void)state;
    static const uint32_t bad[][3] = {
        {LAST | 1, 0, 0},               /* ends nothing */
        {MORE | 1, LAST | 2, 0},        /* ends another one */
        {MORE | 1, MORE | 2, 0},        /* continues another one */
        {MORE | LAST | 1, LAST | 1, 0}, /* both */
    };
    start_both(0);
    inject(MORE | 5, 10), inject(6, 1), inject(MORE | 5, 10), inject(LAST | 5, 10);
    WAIT(b.frames == 2);
    assert_int_equal(b.types[0], 6);
    assert_int_equal(b.types[1], 5);
    assert_int_equal(b.last.used, 30);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        b.ended = 0;
        unsigned up = a.up;
        for (unsigned j = 0; bad[i][j]; j++) inject(bad[i][j], 10);
        WAIT(b.ended == 1 && a.up > up);
    }
    b.ended = 0;
    for (unsigned i = 0; i <= LINK_FRAME_MAX / sizeof body && !b.ended; i++)
        inject(MORE | 1, sizeof body);
    WAIT(b.ended == 1);
    assert_int_equal(b.frames, 2);
    stop_both();
}

/* ---- Silence ---- */

static void test_dialed_beside(void **state) {
    (void)state;
    start_both(0);
    carries = false;
    run_for(3 * SILENCE_MS); /* nothing is under way: that is no silence */
    assert_int_equal(a.up, 1);
    carries = true;
    account.queued = 1;
    run_for(3 * SILENCE_MS);
    assert_int_equal(a.up, 1);
    send_frame(1, LINK_URGENT, 3);
    links_flush(a.links);
    WAIT(b.frames == 1); /* before the other one is dialed, which takes the place of this one */
    carries = false;
    WAIT(a.up == 2);
    account.queued = 0;
    assert_int_equal(a.broken, 1);
    assert_int_equal(a.failed, 0);
    WAIT(b.ended == 1);
    send_frame(2, LINK_BULK, 4);
    links_flush(a.links);
    WAIT(b.frames == 2);
    check_last(2, 4);
    stop_both();
}

/* Nobody answers; the old link is used all the while, and is kept when it carries again. */
static void test_old_one_carries_again(void **state) {
    (void)state;
    start_both(0);
    carries = false;
    close(between.listener);
    between.listener = -1;
    account.queued = 1;
    run_for(5 * SILENCE_MS);
    assert_int_not_equal(link_version(a.links, 2), 0);
    assert_true(link_status(a.links, 2).up);
    send_frame(1, LINK_BULK, 50000);
    links_flush(a.links);
    WAIT(b.frames == 1);
    check_last(1, 50000);
    carries = true;
    unsigned before = looks;
    WAIT(looks != before);
    account.queued = 0;
    open_between();
    run_for(3 * SILENCE_MS);
    send_frame(2, LINK_BULK, 5);
    links_flush(a.links);
    WAIT(b.frames == 2);
    assert_int_equal(a.up, 1);
    assert_int_equal(a.broken + a.failed + b.ended, 0);
    stop_both();
}

/* The old one ends while another one is being dialed. */
static void test_old_one_ends(void **state) {
    (void)state;
    start_both(0);
    carries = false;
    close(between.listener);
    between.listener = -1;
    account.queued = 1;
    run_for(3 * SILENCE_MS);
    assert_int_equal(a.broken, 0);
    hang_up();
    WAIT(a.broken == 1);
    assert_null(link_begin(a.links, 2, 1, LINK_URGENT));
    account.queued = 0;
    open_between();
    WAIT(a.up == 2);
    assert_int_equal(a.broken, 1);
    stop_both();
}

int main(void) {
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* after a failure the loop is in no state to go on */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_urgent_overtakes, open_loop),
        cmocka_unit_test_setup(test_between_fragments, open_loop),
        cmocka_unit_test_setup(test_one_lane, open_loop),
        cmocka_unit_test_setup(test_discarded, open_loop),
        cmocka_unit_test_setup(test_lane_ends, open_loop),
        cmocka_unit_test_setup(test_bad_fragments, open_loop),
        cmocka_unit_test_setup(test_dialed_beside, open_loop),
        cmocka_unit_test_setup(test_old_one_carries_again, open_loop),
        cmocka_unit_test_setup(test_old_one_ends, open_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
