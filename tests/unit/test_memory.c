/* The limit of memory, and what counts as used. */
#include <ftw.h>
#include <malloc.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/ensemble/internal.h"
#include "service/server/internal.h"

/* ---- The limit ---- */

static char root[] = "/tmp/conclave-test.XXXXXX";

static void write_file(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int32_t set_mib;

static uint64_t limit_with(const char *groups) {
    char path[256];
    write_file("groups", groups);
    snprintf(path, sizeof path, "%s/groups", root);
    return memory_limit(set_mib, path, root);
}

static void a_group_has_the_least_limit_of_those_above_it(void **state) {
    (void)state;
    write_file("a/memory.max", "4000\n");
    write_file("a/b/memory.max", "7000\n");
    write_file("a/b/c/memory.max", "max\n");
    assert_true(limit_with("0::/a/b/c\n") == 4000);
    assert_true(limit_with("0::/elsewhere\n") == 0);
    write_file("a/b/memory.max", "3000\n");
    assert_true(limit_with("0::/a/b/c\n") == 3000);
    assert_true(limit_with("0::/a\n") == 4000);
}

static void the_first_version_of_groups_is_known(void **state) {
    (void)state;
    const char *lines = "4:cpu,cpuacct:/x\n3:freezer,memory:/m/n\n1:name=systemd:/y\n0::/z\n";
    write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("memory/m/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("memory/m/n/memory.limit_in_bytes", "5000\n");
    write_file("memory/x/memory.limit_in_bytes", "10\n"); /* not its group */
    assert_true(limit_with(lines) == 5000);
    write_file("memory/m/memory.limit_in_bytes", "2000\n");
    assert_true(limit_with(lines) == 2000);
    assert_true(limit_with("3:memory:/not/seen/in/a/container\n") == 0);
    write_file("memory/memory.limit_in_bytes", "1000\n");
    assert_true(limit_with("3:memory:/not/seen/in/a/container\n") == 1000);
    assert_true(limit_with("nonsense\n3:memory\n\n") == 1000);
}

static void the_smaller_limit_counts(void **state) {
    (void)state;
    enum { MIB = 1 << 20 };
    write_file("small/memory.max", "3145728\n");
    for (set_mib = 1; set_mib < 6; set_mib++)
        assert_true(limit_with("0::/small\n") == (uint64_t)(set_mib < 3 ? set_mib : 3) * MIB);
    set_mib = 0;
}

/* ---- What is used ---- */

static struct server server;
static struct ensemble ensemble;

static void open_server(uint64_t limit) {
    server = (struct server){.memory = {.limit = limit, .watches_max = limit / 4},
                             .tree.node_arena.used = sizeof(struct node)};
    memory_measure(&server);
}

static void watches_are_refused_before_they_take_it_all(void **state) {
    (void)state;
    struct connection c = {.server = &server, .number = 1};
    struct zk_text path = zk_text_of("/a");
    open_server(UINT64_C(1) << 40);
    assert_int_equal(watching_begin(&c, path, WATCH_DATA, WATCH_ONCE), ZK_OK);
    assert_int_equal(watching_begin(&c, path, WATCH_CHILDREN, WATCH_ONCE), ZK_OK);
    server.watches.path_bytes += server.memory.limit / 4; /* as if there were many more */
    memory_measure(&server);
    assert_int_equal(watching_begin(&c, path, WATCH_DATA, WATCH_PERSISTENT), ZK_OK);
    assert_int_equal(watching_begin(&c, zk_text_of("/b"), WATCH_DATA, WATCH_ONCE), ZK_SYSTEMERROR);
    server.watches.path_bytes -= server.memory.limit / 4;
    assert_int_equal(watching_begin(&c, zk_text_of("/b"), WATCH_DATA, WATCH_ONCE), ZK_OK);
    server.memory.resident = server.memory.used = server.memory.limit; /* others have taken it */
    server.memory.weight = UINT64_MAX / 4;
    assert_int_equal(watching_begin(&c, zk_text_of("/c"), WATCH_DATA, WATCH_ONCE), ZK_SYSTEMERROR);
    assert_false(memory_allows_watch(&server, true));
    server.memory.resident = server.memory.used = server.memory.limit / 100 * 92;
    assert_true(memory_allows_watch(&server, true)); /* one that it had before */
    assert_int_equal(server.statistics.refused[REFUSED_memory], 2);
    watches_close(&server.watches);
}

static void what_watches_keep_is_known(void **state) {
    (void)state;
    struct watches w = {.seed = 7};
    char path[32];
    size_t all = SIZE_MAX;
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(path, sizeof path, "/a-path-of-24-bytes-%04u", i);
        watches_add(&w, 1 + i % 3, zk_text_of(path), WATCH_DATA, WATCH_ONCE);
    }
    assert_in_range(watches_weight(&w), 1000 * (24 + sizeof *w.path + sizeof *w.watch), 1000 * 256);
    for (uint32_t i = 1; i <= 3; i++) assert_true(watches_forget(&w, i, &all));
    assert_int_equal(watches_weight(&w), 0);
    watches_close(&w);
}

static void connections_are_refused_before_they_take_the_last(void **state) {
    (void)state;
    enum { LIMIT = 1 << 30 };
    open_server(LIMIT);
    server.memory.used = LIMIT / 100 * 94;
    assert_true(memory_is_short(&server) && memory_allows_connection(&server));
    server.memory.used = LIMIT / 100 * 96;
    assert_false(memory_allows_connection(&server));
    server.connections.received = server.connections.unsent = LIMIT / 128; /* for a time */
    assert_true(memory_allows_connection(&server));
    server.connections.received = server.connections.unsent = 0;
    assert_false(memory_allows_connection(&server));
    server.connections.secure = LIMIT / 32 / (48 << 10); /* so it is measured again */
    assert_true(memory_allows_connection(&server));
}

/* What is used is here what the process has, so the limit is chosen by it. */
static void what_is_there_for_a_time_has_what_the_rest_leaves(void **state) {
    (void)state;
    size_t resident = 0;
    uv_resident_set_memory(&resident);
    open_server(8 * resident);
    assert_true(server.connections.received_max == server.memory.limit / 4);
    open_server(resident / 100 * 111);
    assert_in_range(server.connections.received_max, resident / 100, resident / 8);
    assert_in_range(server.connections.unsent_max, resident / 100, resident / 8);
    open_server(resident / 100 * 80);
    assert_in_range(server.connections.received_max, 1, resident / 64);
    assert_in_range(server.connections.unsent_max, 1, resident / 64);
}

/* What is between pieces that are in use serves small things only. */
static void what_was_freed_in_pieces_counts_at_last(void **state) {
    enum { COUNT = 20000, SIZE = 1000 };
    static unsigned char *piece[COUNT];
    size_t resident = 0;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        piece[i] = malloc(SIZE);
        assert_non_null(piece[i]);
        memset(piece[i], 1, SIZE);
    }
    for (size_t i = 0; i < COUNT; i += 2) free(piece[i]);
    uv_resident_set_memory(&resident);
    open_server(resident / 100 * 102);
    assert_true(memory_is_short(&server));
    open_server(resident / 100 * 400);
    assert_false(memory_is_short(&server));
    for (size_t i = 1; i < COUNT; i += 2) free(piece[i]);
}

/* It takes memory of the system to use it again. */
static void what_was_given_back_is_not_free(void **state) {
    enum { COUNT = 20000, SIZE = 1000, APART = 100, KEPT = 32 << 20 };
    static unsigned char *piece[COUNT];
    size_t resident = 0;
    (void)state;
    if (!mallinfo2().uordblks) skip(); /* a sanitizer's allocator */
    unsigned char *kept = malloc(KEPT);
    assert_non_null(kept);
    memset(kept, 1, KEPT);
    for (size_t i = 0; i < COUNT; i++) {
        piece[i] = malloc(SIZE);
        assert_non_null(piece[i]);
        memset(piece[i], 1, SIZE);
    }
    for (size_t i = 0; i < COUNT; i++)
        if (i % APART) free(piece[i]);
    malloc_trim(0);
    uv_resident_set_memory(&resident);
    assert_true(mallinfo2().fordblks > COUNT * SIZE / 2);
    open_server(resident);
    assert_in_range(server.memory.used, resident / 2, resident);
    for (size_t i = 0; i < COUNT; i += APART) free(piece[i]);
    free(kept);
}

/* They are the tree's largest things, after the nodes. */
static void what_large_tables_take_is_used(void **state) {
    enum { MANY = 1 << 22 };
    struct table *table = &server.tree.index;
    (void)state;
    if (!mallinfo2().uordblks) skip(); /* a sanitizer's allocator */
    open_server(0);
    table_reserve(table, MANY);
    for (uint32_t i = 1; i <= MANY; i++) table_add(table, i * 2654435761u, i);
    assert_true(table_mapped(table) >= MANY * sizeof(struct table_slot));
    uv_resident_set_memory(&server.memory.limit);
    memory_measure(&server);
    assert_in_range(server.memory.used, table_mapped(table), server.memory.limit);
    table_close(table);
    assert_int_equal(table_mapped(table), 0);
}

static void a_list_grows_by_what_is_left(void **state) {
    (void)state;
    enum { LIMIT = 1 << 30, STEPS = 4096 };
    open_server(LIMIT);
    server.steps = steps_of(STEPS);
    memory_bound_steps(&server);
    assert_int_equal(server.steps.reading, STEPS);
    server.memory.resident = LIMIT / 64 * 61;
    memory_bound_steps(&server);
    assert_in_range(server.steps.reading, STEPS / 4, LIMIT / 64 / 2 / TREE_STEP_BYTES);
    server.reading.reply.used = LIMIT;
    memory_bound_steps(&server);
    assert_in_range(server.steps.reading, 1, 100);
    assert_int_equal(server.steps.read, server.steps.reading);
    assert_int_equal(server.steps.reread, server.steps.reading);
    assert_int_equal(server.steps.apply, STEPS);
}

static void an_answer_leaves_some_of_it(void **state) {
    (void)state;
    enum { LIMIT = 1 << 30, LONG = LIMIT / 8 };
    open_server(LIMIT);
    server.memory.resident = LIMIT / 100 * 92;
    assert_true(memory_allows_answer(&server, LIMIT / 64));
    assert_false(memory_allows_answer(&server, LONG));
    server.reading.reply.used = LONG; /* so it is measured again */
    assert_true(memory_allows_answer(&server, LONG));
    open_server(0);
    assert_true(memory_allows_answer(&server, LONG));
}

/* Then it is the machine's memory that they leave. */
static void watches_are_bounded_without_a_limit(void **state) {
    (void)state;
    open_server(0);
    server.settings.memory_mib_max = 0;
    memory_open(&server);
    assert_in_range(server.memory.watches_max, 1 << 20, uv_get_total_memory() / 4);
    assert_true(memory_allows_watch(&server, false));
    server.watches.path_bytes = server.memory.watches_max;
    assert_false(memory_allows_watch(&server, false));
    assert_false(memory_allows_watch(&server, true));
}

static void a_request_is_a_small_part_of_it(void **state) {
    (void)state;
    enum { MIB = 1 << 20 };
    open_server(0);
    server.settings.memory_mib_max = 64;
    server.settings.packet_bytes_max = 15 * MIB;
    memory_open(&server);
    assert_in_range(server.settings.packet_bytes_max, MIB, 2 * MIB);
    server.settings.packet_bytes_max = MIB / 2;
    memory_open(&server);
    assert_int_equal(server.settings.packet_bytes_max, MIB / 2);
}

/* It is measured again when something has grown. */
static void what_is_received_and_not_sent_counts(void **state) {
    (void)state;
    enum { LIMIT = 1 << 30 };
    open_server(LIMIT);
    server.memory.used = LIMIT;
    assert_true(memory_is_short(&server));
    server.connections.received = LIMIT / 32;
    assert_false(memory_is_short(&server));
    server.memory.used = LIMIT;
    assert_true(memory_is_short(&server));
    server.connections.unsent = LIMIT / 32;
    assert_false(memory_is_short(&server));
    server.memory.used = LIMIT;
    server.connections.unsent = 0;
    assert_true(memory_is_short(&server));
    server.connections.unsent = LIMIT / 32; /* again */
    assert_false(memory_is_short(&server));
}

enum { PAGES = 4000 };
static size_t page;

static unsigned char *touched_pages(unsigned char *memory) {
    if (!memory) memory = malloc(PAGES * page);
    assert_non_null(memory);
    for (size_t i = 0; i < PAGES; i++) ((volatile unsigned char *)memory)[i * page]++;
    return memory;
}

/* The pages that this process writes to, while a child has the old ones; not those that are new. */
static void what_a_snapshot_keeps_counts(void **state) {
    (void)state;
    page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *shared = touched_pages(NULL);
    int child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    assert_true(child > 0);
    uint64_t before = copies_counted(child);
    assert_true(before != COPIES_UNKNOWN);
    unsigned char *fresh = touched_pages(NULL);
    assert_in_range(copies_counted(child), 0, before + PAGES * page / 2);
    touched_pages(shared);
    assert_true(copies_counted(child) >= before + PAGES * page / 2);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(copies_counted(child) == COPIES_UNKNOWN);
    free(shared);
    free(fresh);
}

static void entries_wait_for_what_a_snapshot_keeps(void **state) {
    (void)state;
    enum { LIMIT = 1 << 30 };
    open_server(LIMIT);
    server.memory.resident = LIMIT / 64 * 63;
    assert_false(memory_holds_entries(&server));
    server.memory.copies.process = 1;
    server.ensemble = &ensemble;
    server.memory.weight = UINT64_MAX; /* nothing has grown since */
    assert_true(memory_holds_entries(&server));
    server.stopping = true;
    assert_false(memory_holds_entries(&server));
    server.stopping = false;
    server.memory.resident = LIMIT / 64 * 58;
    assert_false(memory_holds_entries(&server));
    ensemble.statistics.log_bytes += LIMIT / 1024 / 8; /* many deletes */
    assert_true(memory_holds_entries(&server));
    ensemble.statistics.log_bytes = 0;
    server.memory.copies.process = 0;
    server.ensemble = NULL;
}

static void what_a_snapshot_keeps_is_used(void **state) {
    (void)state;
    enum { COUNTED = 1 << 30 };
    open_server(UINT64_C(1) << 40);
    server.ensemble = &ensemble;
    struct copies *copies = &server.memory.copies;
    uint64_t without = server.memory.used;
    copies->process = 1; /* and it was never looked at */
    uint64_t guessed = copies_bytes(&server);
    unsigned char *fresh = touched_pages(NULL);
    assert_true(copies_bytes(&server) > guessed);
    copies->known = true;
    copies->bytes = COUNTED;
    assert_int_equal(copies_bytes(&server), COUNTED); /* nothing was written since */
    memory_measure(&server);
    assert_true(server.memory.used > without + COUNTED / 2);
    server.statistics.commits += PAGES;
    assert_true(copies_bytes(&server) > COUNTED);
    copies->process = 0;
    assert_int_equal(copies_bytes(&server), 0);
    free(fresh);
}

/* ---- Clients that take nothing, or send nothing whole ---- */

static uv_loop_t loop;
static unsigned closed;

static void stream_closed(struct net_stream *stream) {
    struct connection *c = (struct connection *)stream;
    bytes_close(&c->in);
    free(c);
    closed++;
}

static void connect_clients(struct connection **client, uint32_t count) {
    assert_int_equal(net_open(&loop), 0);
    server.connections.at = calloc(count + 1, sizeof(struct connection *));
    assert_non_null(server.connections.at);
    server.settings.packet_bytes_max = 1 << 20;
    server.connections.slots = server.connections.count = count;
    closed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct connection *c = client[i] = calloc(1, sizeof *c);
        assert_non_null(c);
        *c = (struct connection){.server = &server, .number = i + 1, .state = CONNECTION_OPEN};
        c->stream.on_closed = stream_closed;
        c->stream.reading = true;
        assert_int_equal(uv_tcp_init(&loop, &c->stream.tcp), 0);
        crowd_join(&server.connections.crowds, c->network);
        server.connections.at[c->number] = c;
    }
}

static bool is_there(uint32_t number) { return server.connections.at[number] != NULL; }

static void disconnect_clients(struct connection **client, uint32_t count) {
    connections_end(&server);
    for (uint32_t i = 0; i < count; i++)
        if (!client[i]->stream.write.data) /* nothing was really written */
            client[i]->stream.tcp.write_queue_size = 0;
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, count);
    net_shut(&loop);
    connections_close(&server.connections);
}

/* So much is on its way to a client. */
static void answer_with(struct connection *c, size_t bytes) {
    c->stream.sending.used = c->stream.handed = c->stream.tcp.write_queue_size = bytes;
    connection_dirty(c);
    connections_flush(&server);
}

static void who_takes_a_long_answer_is_not_deaf(void **state) {
    (void)state;
    enum { MIB = 1 << 20, LONG_US = 61000000 };
    struct connection *c;
    open_server(0);
    connect_clients(&c, 1);
    server.connections.unsent_max = 16 * MIB;
    server.steps = steps_of(100);
    answer_with(c, 30 * MIB);
    for (int i = 0; i < 10; i++) {
        assert_true(is_there(1));
        server.clock.monotonic_us += LONG_US;
        c->stream.tcp.write_queue_size -= MIB;
        assert_false(connection_is_deaf(c));
    }
    server.clock.monotonic_us += LONG_US;
    c->stream.tcp.write_queue_size -= 10; /* as if it were alive */
    assert_true(connection_is_deaf(c));
    connections_check(&server);
    assert_false(is_there(1));
    assert_int_equal(server.statistics.refused[REFUSED_deafness], 1);
    disconnect_clients(&c, 1);
}

/* A connection of TCP, of which the client takes what it is told to. */
static int connect_really(struct connection *c) {
    enum { SMALL = 1 << 17 };
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(client, SOL_SOCKET, SO_RCVBUF, &(int){SMALL}, sizeof(int));
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    int accepted = accept(listener, NULL, NULL);
    assert_true(accepted >= 0);
    close(listener);
    assert_int_equal(uv_tcp_open(&c->stream.tcp, accepted), 0);
    return client;
}

static uint64_t acknowledged(const struct connection *c) {
    struct net_flow flow = {0};
    assert_true(net_flow(&c->stream, &flow));
    return flow.acknowledged;
}

/* Until the other end has acknowledged what it can: there may be more on its way. */
static void take(struct connection *c, int client, size_t bytes) {
    static char room[1 << 20];
    uint64_t before = acknowledged(c);
    while (acknowledged(c) - before < bytes) {
        assert_true(recv(client, room, sizeof room, 0) > 0);
        usleep(1000);
    }
}

static void who_takes_little_by_little_is_not_deaf(void **state) {
    (void)state;
    enum { MIB = 1 << 20, LONG = 32 * MIB, MOST_US = 40000000 };
    struct connection *c;
    open_server(0);
    connect_clients(&c, 1);
    int client = connect_really(c);
    server.connections.unsent_max = 16 * MIB;
    server.steps = steps_of(100);
    bytes_extend(&c->stream.out, LONG);
    memset(c->stream.out.at, 0, LONG);
    connection_dirty(c);
    connections_flush(&server);
    uint64_t handed = net_taken(&c->stream);
    for (int i = 0; i < 10; i++) {
        assert_false(connection_is_deaf(c)); /* as it is looked at every second */
        take(c, client, 1 << 17);
        server.clock.monotonic_us += MOST_US;
        assert_false(connection_is_deaf(c));
    }
    assert_true(net_taken(&c->stream) ==
                handed); /* it has nothing more, and the client took some */
    server.clock.monotonic_us += 2 * MOST_US;
    assert_true(connection_is_deaf(c));
    close(client);
    disconnect_clients(&c, 1);
}

/* The session of who takes a long answer lives by its pings. */
static void who_takes_a_long_answer_is_heard(void **state) {
    (void)state;
    enum { MIB = 1 << 20, PINGS = 1000 };
    static const unsigned char ping[12] = {0, 0, 0, 8, 255, 255, 255, 254, 0, 0, 0, 11};
    struct connection *c;
    open_server(0);
    connect_clients(&c, 1);
    server.connections.received_max = SIZE_MAX;
    c->stream.sending.used = c->unsent = 4 * MIB;
    for (int i = 0; i < PINGS; i++) connection_receive(c, ping, sizeof ping);
    assert_true(c->stream.reading);
    static const unsigned char much[1 << 16];
    connection_receive(c, much, sizeof much);
    assert_false(c->stream.reading);
    disconnect_clients(&c, 1);
}

static void what_is_to_be_encrypted_counts_twice(void **state) {
    (void)state;
    enum { ANSWER = 1000 };
    struct net_stream stream = {.out.used = ANSWER, .sending.used = 10};
    assert_int_equal(net_kept(&stream), ANSWER + 10);
    stream.tls = (struct tls_session *)&stream;
    assert_int_equal(net_kept(&stream), 2 * ANSWER + 10);
    assert_int_equal(net_unsent(&stream), ANSWER + 10);
}

static void who_takes_nothing_gives_way(void **state) {
    (void)state;
    enum { MIB = 1 << 20 };
    struct connection *c[3];
    open_server(0);
    connect_clients(c, 3);
    server.connections.unsent_max = 16 * MIB;
    server.steps = steps_of(100);
    for (int i = 0; i < 2; i++, server.clock.monotonic_us++) answer_with(c[i], 7 * MIB);
    c[0]->stream.tcp.write_queue_size -= MIB;
    server.clock.monotonic_us++;
    answer_with(c[2], 7 * MIB);
    assert_true(is_there(1));
    assert_false(is_there(2));
    assert_true(is_there(3));
    disconnect_clients(c, 3);
}

/* Of one change, however many watch it. */
static void events_that_are_not_taken_are_bounded(void **state) {
    (void)state;
    enum { PATH = 100000, MAX = 1 << 20 };
    static char path[PATH];
    struct connection *c[3];
    open_server(0);
    connect_clients(c, 3);
    server.connections.unsent_max = MAX;
    server.steps = steps_of(100);
    for (int i = 0; i < 300; i++) {
        connection_notify(c[i % 3], ZK_NODE_CREATED, (struct zk_text){path, PATH});
        assert_in_range(server.connections.unsent, 0, MAX + PATH + 100);
    }
    for (int i = 0; i < 3; i++) assert_true(c[i]->misses_events);
    size_t told = c[0]->stream.out.used;
    reply_end(c[0], reply_begin(c[0]), 1, 7, ZK_OK); /* an answer would say that it has all */
    assert_int_equal(c[0]->stream.out.used, told);
    for (int i = 0; i < 3; i++) c[i]->stream.sending.used = 1; /* the system takes nothing */
    connections_flush(&server);
    for (uint32_t i = 1; i <= 3; i++) assert_false(is_there(i));
    disconnect_clients(c, 3);
}

static void who_is_slow_to_ask_gives_way(void **state) {
    (void)state;
    enum { PART = 300 << 10 };
    static const unsigned char part[PART] = {0, 15, 0, 0}; /* of a frame that is longer */
    struct connection *c[3];
    open_server(0);
    connect_clients(c, 3);
    for (int i = 0; i < 3; i++) {
        server.connections.received_max = i < 2 ? SIZE_MAX : 2 * PART;
        connection_receive(c[i], part, sizeof part);
        if (i < 2) c[i]->met_us = 2 - (uint64_t)i; /* the second is at it for longer */
    }
    connections_bound_received(&server);
    assert_true(is_there(1));
    assert_false(is_there(2));
    assert_true(is_there(3));
    disconnect_clients(c, 3);
}

/* To find them takes as long as there are connections. */
static void some_give_way_at_a_time(void **state) {
    (void)state;
    enum { MANY = 40, PART = 2000 };
    static const unsigned char part[PART] = {0, 15, 0, 0};
    struct connection *c[MANY];
    open_server(0);
    connect_clients(c, MANY);
    server.connections.received_max = SIZE_MAX;
    for (uint64_t i = 0; i < MANY; i++) {
        connection_receive(c[i], part, sizeof part);
        c[i]->met_us = (i * 7 + 3) % MANY;
    }
    server.connections.received_max = PART;
    for (unsigned ended = 0; server.connections.count > 1;) {
        server.connections.deferred = false;
        connections_bound_received(&server);
        assert_in_range(MANY - server.connections.count, ended + 1, ended + MANY / 2);
        assert_true(server.connections.deferred || server.connections.count == 1);
        ended = MANY - server.connections.count;
        for (uint32_t i = 0; i < MANY; i++)
            assert_true(is_there(i + 1) == ((i * 7 + 3) % MANY >= ended));
    }
    disconnect_clients(c, MANY);
}

static void who_asks_for_little_is_heard(void **state) {
    (void)state;
    enum { PART = 300 << 10, FEW = 10, LITTLE = 1 << 10 };
    static const unsigned char part[PART] = {0, 15, 0, 0};
    struct connection *c[3];
    open_server(0);
    connect_clients(c, 3);
    server.connections.received_max = SIZE_MAX;
    assert_true(connection_room(&c[2]->stream) == SIZE_MAX);
    connection_receive(c[0], part, sizeof part);
    server.connections.received_max = PART;
    connection_receive(c[1], part, sizeof part);
    connection_receive(c[2], part, FEW);
    assert_int_equal(connection_room(&c[0]->stream), 0);
    assert_false(c[1]->stream.reading);
    assert_true(c[2]->stream.reading);
    assert_int_equal(connection_room(&c[2]->stream), LITTLE - FEW);
    for (int i = 0; i < 2; i++)
        c[i]->scanned = 4; /* as if a request of theirs were answered soon */
    connections_bound_received(&server);
    assert_int_equal(server.connections.count, 3);
    server.connections.received_max = SIZE_MAX;
    for (int i = 0; i < 2; i++) c[i]->scanned = 0;
    connections_bound_received(&server);
    for (int i = 0; i < 3; i++) assert_true(c[i]->stream.reading);
    disconnect_clients(c, 3);
}

static void empty_buffers_are_given_back_first(void **state) {
    (void)state;
    enum { PART = 10000 };
    static const unsigned char part[PART] = {0, 15, 0, 0};
    struct connection *c[2];
    open_server(0);
    connect_clients(c, 2);
    server.connections.received_max = SIZE_MAX;
    for (int i = 0; i < 2; i++) connection_receive(c[i], part, sizeof part);
    c[1]->in.used = 0; /* as if it had been answered */
    server.connections.received_max = c[0]->kept;
    connections_bound_received(&server);
    assert_int_equal(server.connections.count, 2);
    assert_int_equal(c[1]->in.room, 0);
    assert_int_equal(server.connections.received, c[0]->kept);
    disconnect_clients(c, 2);
}

static int make_root(void **state) {
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static int remove_root(void **state) {
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_has_the_least_limit_of_those_above_it),
        cmocka_unit_test(the_smaller_limit_counts),
        cmocka_unit_test(the_first_version_of_groups_is_known),
        cmocka_unit_test(watches_are_refused_before_they_take_it_all),
        cmocka_unit_test(what_watches_keep_is_known),
        cmocka_unit_test(watches_are_bounded_without_a_limit),
        cmocka_unit_test(connections_are_refused_before_they_take_the_last),
        cmocka_unit_test(what_is_there_for_a_time_has_what_the_rest_leaves),
        cmocka_unit_test(what_was_freed_in_pieces_counts_at_last),
        cmocka_unit_test(what_was_given_back_is_not_free),
        cmocka_unit_test(what_large_tables_take_is_used),
        cmocka_unit_test(a_list_grows_by_what_is_left),
        cmocka_unit_test(an_answer_leaves_some_of_it),
        cmocka_unit_test(a_request_is_a_small_part_of_it),
        cmocka_unit_test(what_is_received_and_not_sent_counts),
        cmocka_unit_test(what_a_snapshot_keeps_counts),
        cmocka_unit_test(entries_wait_for_what_a_snapshot_keeps),
        cmocka_unit_test(what_a_snapshot_keeps_is_used),
        cmocka_unit_test(who_takes_a_long_answer_is_not_deaf),
        cmocka_unit_test(who_takes_little_by_little_is_not_deaf),
        cmocka_unit_test(who_takes_a_long_answer_is_heard),
        cmocka_unit_test(what_is_to_be_encrypted_counts_twice),
        cmocka_unit_test(who_takes_nothing_gives_way),
        cmocka_unit_test(events_that_are_not_taken_are_bounded),
        cmocka_unit_test(who_is_slow_to_ask_gives_way),
        cmocka_unit_test(some_give_way_at_a_time),
        cmocka_unit_test(who_asks_for_little_is_heard),
        cmocka_unit_test(empty_buffers_are_given_back_first),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
