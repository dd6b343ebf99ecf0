/* A server without sockets, disk and loop, which counts what it is made to do: basic blocks that it
 * goes through, bytes that it keeps in memory, writes to its log, and sends to its clients.
 *
 * The files of src/service/server and all below them are the real ones, compiled with
 * -fsanitize-coverage=trace-pc; the functions that are wrapped here are named in the Makefile
 * (COST_WRAPS).  Clocks and random numbers stand still, so that an input costs the same each time.
 */
#ifndef CV_FUZZ_COST_H
#define CV_FUZZ_COST_H

#include <malloc.h>
#include <time.h>

#include "service/server/internal.h"
#include "service/tree/internal.h"

/* ---- What is counted ---- */

static struct costs {
    uint64_t blocks;  /* of code */
    uint64_t ended;   /* ... when the last loop iteration did */
    uint64_t longest; /* of an iteration, since it was last set */
    uint64_t iterations;
    size_t sent, sent_before, most_sent; /* bytes: of all, when the last iteration ended, in one */
    size_t live;                         /* bytes of memory ... */
    size_t peak;                         /* ... and the most of them, since it was last set */
    size_t logged;                       /* bytes */
} costs;

#ifdef __clang__
__attribute__((no_sanitize("coverage"))) /* it would call itself */
#endif
void __wrap___sanitizer_cov_trace_pc(void);
void __wrap___sanitizer_cov_trace_pc(void) { costs.blocks++; }

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *memory);

static void *counted(void *memory) {
    costs.live += malloc_usable_size(memory);
    if (costs.live > costs.peak) costs.peak = costs.live;
    return memory;
}

/* Memory that was not counted when it was taken would make all others look cheaper. */
static void given_back(void *memory) {
    size_t size = malloc_usable_size(memory);
    cv_assert(size <= costs.live);
    costs.live -= size;
}

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) { return counted(__real_malloc(size)); }
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) { return counted(__real_calloc(count, size)); }
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size) {
    given_back(memory);
    return counted(__real_realloc(memory, size));
}
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) { return counted(__real_strdup(text)); }
void __wrap_free(void *memory);
void __wrap_free(void *memory) {
    given_back(memory);
    __real_free(memory);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now) {
    (void)id;
    *now = (struct timespec){.tv_sec = 1000000};
    return 0;
}
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags) {
    (void)flags;
    memset(to, 7, size);
    return (ssize_t)size;
}

/* ---- Streams ---- */

enum { NUMBERS_MAX = 256 }; /* of connections */

static size_t received_by[NUMBERS_MAX]; /* bytes, since the last request was sent */
static struct net_stream *closed[NUMBERS_MAX], *over[NUMBERS_MAX];
static unsigned closed_count, over_count;
static bool next_is_deaf;
static char deaf; /* its address marks the streams of clients that take nothing */

int net_accept(struct net_listener *listener, struct net_stream *stream) {
    (void)listener;
    stream->tcp.data = next_is_deaf ? &deaf : NULL;
    return 0;
}
void net_read(struct net_stream *stream, bool wanted) { stream->reading = wanted; }

bool net_flow(const struct net_stream *stream, struct net_flow *flow) {
    return (void)stream, (void)flow, false; /* there is no socket */
}

void net_flush(struct net_stream *stream) {
    enum { KEPT_MAX = 1 << 16 };
    const struct connection *c = (const struct connection *)stream;
    if (stream->closing || stream->tcp.data == &deaf) return;
    cv_assert(c->number < NUMBERS_MAX);
    received_by[c->number] += stream->out.used;
    costs.sent += stream->out.used;
    stream->out.used = 0;
    if (stream->out.room > KEPT_MAX) bytes_close(&stream->out);
}

void net_close(struct net_stream *stream) {
    cv_assert(!stream->closing && closed_count < NUMBERS_MAX);
    net_flush(stream);
    stream->closing = true;
    bytes_close(&stream->out);
    closed[closed_count++] = stream;
}

void net_close_after(struct net_stream *stream) {
    cv_assert(over_count < NUMBERS_MAX);
    stream->reading = false;
    over[over_count++] = stream;
}

static void streams_end(void) {
    for (; over_count; over_count--)
        if (!over[over_count - 1]->closing) over[over_count - 1]->on_end(over[over_count - 1]);
    for (; closed_count; closed_count--)
        closed[closed_count - 1]->on_closed(closed[closed_count - 1]);
}

int uv_tcp_getpeername(const uv_tcp_t *tcp, struct sockaddr *address, int *size) {
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)tcp;
    memcpy(address, &peer, *size = sizeof peer);
    return 0;
}
int uv_fileno(const uv_handle_t *handle, uv_os_fd_t *number) {
    return (void)handle, (void)number, -1;
}

bool net_has_ended(const struct net_stream *stream) { return (void)stream, false; }
bool tls_begin(struct tls *tls, struct net_stream *stream) {
    return (void)tls, (void)stream, false;
}
void tls_receive(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    (void)stream, (void)bytes, (void)size;
}
bool tls_subject(const struct net_stream *stream, struct bytes *subject) {
    return (void)stream, (void)subject, false;
}

/* ---- An ensemble whose log is committed at once ---- */

enum { INCARNATION = 0x101, OUTBOX_MAX = 1000 };

static struct {
    struct {
        unsigned char *entry;
        size_t size;
        struct proposal proposal;
    } at[OUTBOX_MAX];
    size_t first, end;
    uint64_t sequence;
} outbox;

void ensemble_propose(struct ensemble *e, struct tree_entry *entry, const struct proposal *p) {
    (void)e;
    entry->incarnation = INCARNATION;
    entry->sequence = ++outbox.sequence;
    size_t size = tree_entry_size(entry), to = outbox.end++ % OUTBOX_MAX;
    cv_assert(outbox.end - outbox.first <= OUTBOX_MAX);
    outbox.at[to].entry = __real_malloc(size);
    outbox.at[to].size = size;
    outbox.at[to].proposal = *p;
    cv_assert(outbox.at[to].entry);
    tree_store_entry(outbox.at[to].entry, entry);
    costs.logged += size;
}
bool ensemble_take_proposal(struct ensemble *e, const struct tree_entry *entry,
                            struct proposal *p) {
    (void)e, (void)entry;
    *p = outbox.at[outbox.first % OUTBOX_MAX].proposal;
    return true;
}
uint64_t ensemble_committed(const struct ensemble *e) { return (void)e, outbox.end; }
uint64_t ensemble_applied(const struct ensemble *e) { return (void)e, outbox.first; }
bool ensemble_is_full(const struct ensemble *e) {
    (void)e;
    return outbox.end - outbox.first >= OUTBOX_MAX / 2;
}
bool ensemble_is_standalone(const struct ensemble *e) { return (void)e, false; }
bool ensemble_is_leaderless(const struct ensemble *e) { return (void)e, false; }
bool ensemble_leads(const struct ensemble *e) { return (void)e, true; }
uint64_t ensemble_term(const struct ensemble *e) { return (void)e, 1; }
uint64_t ensemble_out_of_touch_us(const struct ensemble *e) { return (void)e, 0; }
uint64_t ensemble_request_read_index(struct ensemble *e) { return (void)e, 1; }
bool ensemble_read_index_reached(const struct ensemble *e, uint64_t number) {
    return (void)e, (void)number, true;
}
void ensemble_touch_sessions(struct ensemble *e, const int64_t *sessions, size_t count) {
    (void)e, (void)sessions, (void)count;
}
void ensemble_change_applied(struct ensemble *e, const struct tree_entry *entry) {
    (void)e, (void)entry;
}
bool ensemble_change_ended(const struct ensemble *e, int32_t *error) {
    (void)e;
    *error = ZK_NEWCONFIGNOQUORUM;
    return true;
}

/* ---- The server ---- */

static struct server server;

bool memory_is_short(struct server *s) { return (void)s, false; }
bool memory_holds_entries(struct server *s) { return (void)s, false; }
bool memory_is_short_anywhere(struct server *s) { return (void)s, false; }
bool memory_allows_watch(struct server *s, bool is_restored) {
    return (void)s, (void)is_restored, true;
}
bool memory_allows_connection(struct server *s) { return (void)s, true; }
bool memory_allows_answer(struct server *s, size_t size) { return (void)s, (void)size, true; }
void memory_measure(struct server *s) { (void)s; }
static bool answer_word(struct connection *c, const unsigned char *bytes) {
    return (void)c, (void)bytes, false;
}
static void go_on(struct server *s) { (void)s; }
static const struct server_admin admin = {.answer_word = answer_word, .go_on = go_on};

/* Nobody sees the tree in the middle of an entry. */
enum request_status __real_request_answer(struct connection *c, const struct zk_request_header *h,
                                          struct zk_in *body);
enum request_status __wrap_request_answer(struct connection *c, const struct zk_request_header *h,
                                          struct zk_in *body);
enum request_status __wrap_request_answer(struct connection *c, const struct zk_request_header *h,
                                          struct zk_in *body) {
    cv_assert(!server.applying.begun || h->type == ZK_OP_PING);
    return __real_request_answer(c, h, body);
}

static void renew_steps(void) { server.steps = steps_of((size_t)server.settings.loop_steps); }

static void apply_all(void) {
    while (outbox.first < outbox.end) {
        size_t at = outbox.first % OUTBOX_MAX;
        struct raft_entry entry = {.index = outbox.first + 1,
                                   .term = 1,
                                   .size = outbox.at[at].size,
                                   .bytes = outbox.at[at].entry};
        if (apply_entry(&server, &entry) != ENSEMBLE_APPLIED) return;
        __real_free(outbox.at[at].entry);
        outbox.first++;
    }
}

static bool is_quiet(void) {
    const struct connections *all = &server.connections;
    return outbox.first == outbox.end && !reading_is_on(&server) && !all->deferred &&
           !all->dirty_count && !all->ended_count && !over_count && !closed_count;
}

static void iteration_ended(void) {
    uint64_t blocks = costs.blocks - costs.ended;
    if (blocks > costs.longest) costs.longest = blocks;
    costs.ended = costs.blocks;
    costs.iterations++;
    if (costs.sent - costs.sent_before > costs.most_sent)
        costs.most_sent = costs.sent - costs.sent_before;
    costs.sent_before = costs.sent;
}

static void run_iteration(void) {
    renew_steps();
    if (server.connections.ended_count) connections_forget(&server);
    reading_go_on(&server);
    connections_flush(&server);
    apply_all();
    if (outbox.first >= server.committed_then) server.reading_ended = false;
    answer_reconfigs(&server);
    connections_resume(&server);
    connections_flush(&server);
    iteration_ended();
    streams_end();
}

/* Until there is nothing more to do. */
static void run_loop(void) {
    enum { ITERATIONS_MAX = 1 << 18 };
    for (int i = 0; i == 0 || !is_quiet(); i++) {
        cv_assert(i < ITERATIONS_MAX);
        run_iteration();
    }
}

static struct connection *server_accept(bool is_deaf) {
    struct net_listener listener = {.owner = &server};
    next_is_deaf = is_deaf;
    connection_accept(&listener);
    for (uint32_t i = 1; i <= server.connections.slots; i++) {
        struct connection *c = server.connections.at[i];
        if (c && c->serial == server.connections.serial) return c;
    }
    return NULL;
}

enum { LOOP_STEPS = 64 }; /* less than a request asks for */

static void server_open(void) {
    enum { SEED = 7, MEMBERS_ZXID = 0x100000001, PACKET_BYTES = 1 << 16, UNSENT_BYTES = 1 << 20 };
    struct tree_members members = {
        .time = 1, .text = zk_text_of("server.1=127.0.0.1:2888:3888:participant;127.0.0.1:2181")};
    size_t all = SIZE_MAX;
    server = (struct server){.admin = &admin, .seed = SEED};
    settings_default(&server.settings);
    server.settings.packet_bytes_max = PACKET_BYTES;
    server.settings.loop_steps = LOOP_STEPS;
    server.settings.connections_per_address_max = 0;
    server.settings.reconfig = true;
    server.watches.seed = server.connections.crowds.seed = SEED;
    server.connections.descriptors_max = INT32_MAX;
    server.connections.unsent_max = UNSENT_BYTES;
    server.connections.received_max = SIZE_MAX;
    cv_assert(tree_open(&server.tree, SEED) == 0);
    server.tree.rules = TREE_EXTENDED_TYPES | TREE_ENFORCE_QUOTA | TREE_RECONFIG;
    tree_configure(&server.tree, MEMBERS_ZXID, &members);
    tree_forget_events(&server.tree);
    totals_count_some(&server.tree, &all); /* as the first quota ever does, and no other */
    outbox.first = outbox.end = outbox.sequence = 0;
    clock_read(&server.clock);
    sessions_start(&server);
    renew_steps();
}

static void server_close(void) {
    connections_end(&server);
    streams_end();
    tree_close(&server.tree);
    watches_close(&server.watches);
    bytes_close(&server.reply);
    bytes_close(&server.reading.reply);
    connections_close(&server.connections);
    free(server.sessions.at);
    free(server.sessions.touched);
}

#endif
