/* Starting and ending: the loop, what it listens to, timers and signals. */
#include "server/server.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "server/http.h"

/* ---- For people ---- */

void server_say(const char *level, const char *format, ...) {
    char text[1024], when[40];
    struct timespec now;
    struct tm parts;
    va_list arguments;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &parts);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s.%03ldZ %s %s\n", when, now.tv_nsec / 1000000, level, text);
}

void server_read_clock(struct server *s) {
    struct timespec real, steady;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_MONOTONIC, &steady);
    s->now_ms = (int64_t)real.tv_sec * 1000 + real.tv_nsec / 1000000;
    s->clock_us = (uint64_t)steady.tv_sec * 1000000 + (uint64_t)steady.tv_nsec / 1000;
}

/* ---- What happens by itself ---- */

static void no_waiting(uv_idle_t *idle) { (void)idle; }

void server_wake(struct server *s) {
    if (!s->stopping && !uv_is_active((uv_handle_t *)&s->more)) uv_idle_start(&s->more, no_waiting);
}

void server_rest(struct server *s) {
    if (!replica_has_work(s)) uv_idle_stop(&s->more);
}

static void turn_ended(uv_check_t *check) {
    struct server *s = check->data;
    if (s->sessions_due) sessions_check(s);
    s->sessions_due = false;
    commit_turn(s);
}

/* Connections that are idle keep little; those that never say who they are do not stay, nor do
 * those that never take the last of what they asked for. */
static void look_after_connections(struct server *s) {
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        struct connection *c = s->connection[i];
        if (!c) continue;
        connection_rest(c);
        if (c->state != CONNECTION_NEW && c->state != CONNECTION_ENDING) continue;
        int64_t since_ms = c->state == CONNECTION_NEW ? c->established_ms : c->ending_ms;
        if (s->now_ms - since_ms <= CONNECTION_SILENCE_MS) continue;
        s->statistics.silent++;
        connection_end(c);
    }
}

static void age_summaries(struct server *s) {
    if (s->now_ms - s->summaries_ms < SUMMARY_PERIOD_MS) return;
    s->summaries_ms = s->now_ms;
    summary_age(&s->statistics.reads);
    summary_age(&s->statistics.writes);
    summary_age(&s->statistics.syncs);
    summary_age(&s->statistics.snapshots);
}

/* One that comes late says that the server stood still, as it does for a slow disk: nobody's time
 * went by meanwhile, and who has said something is heard first. */
static void tick(uv_timer_t *timer) {
    struct server *s = timer->data;
    server_read_clock(s);
    uint64_t due_us = s->ticked_us + (uint64_t)s->settings.tick_ms * 1000;
    if (s->clock_us > due_us) sessions_lengthen(s, (s->clock_us - due_us) / 1000);
    s->ticked_us = s->clock_us;
    s->sessions_due = true;
    server_wake(s);
    look_after_connections(s);
    age_summaries(s);
}

static void tell_leader(uv_timer_t *timer) {
    struct server *s = timer->data;
    server_read_clock(s);
    if (replica_is_lost(s)) sessions_without_leader(s);
    sessions_tell_leader(s);
    server_wake(s); /* what was asked of the leader may have to be asked again */
    peers_flush(s);
}

static void remove_perished(void *context, struct zk_text path) {
    struct bytes body = {0};
    zk_write_text(&body, path);
    commit_propose(context, NULL, 0, 0, ZK_OP_DELETE_CONTAINER, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

static void look_for_perished(uv_timer_t *timer) {
    struct server *s = timer->data;
    server_read_clock(s);
    if (!replica_leads(s)) return;
    tree_perished(&s->tree, s->now_ms, remove_perished, s);
}

/* Who leaves finishes what its clients have asked for: alone, when the disk has it; in an ensemble
 * it also leaves leading to another, but not for long. */
static void leave(uv_timer_t *timer) {
    enum { PATIENCE_US = 700000 };
    struct server *s = timer->data;
    server_read_clock(s);
    bool alone = !s->replica.links;
    bool done = (alone || !replica_leads(s)) && !s->pending_count;
    bool patient = alone ? s->saving : s->clock_us - s->leaving_us <= PATIENCE_US;
    if (done || !patient) server_stop(s, 0);
}

static void told_to_end(uv_signal_t *signal, int number) {
    enum { LOOK_MS = 5 };
    struct server *s = signal->data;
    (void)number;
    if (s->leaving_us) return;
    server_read_clock(s);
    s->leaving_us = s->clock_us;
    for (uint32_t i = 1; i <= s->connection_places; i++)
        if (s->connection[i]) net_read(&s->connection[i]->stream, false);
    if (s->replica.links && replica_leads(s)) replica_hand_over(s);
    uv_timer_start(&s->leave, leave, 0, LOOK_MS);
}

static void child_ended(uv_signal_t *signal, int number) {
    (void)number;
    store_snapshot_done(signal->data);
}

static void start_handles(struct server *s) {
    uint64_t look_ms = (uint64_t)s->settings.container_check_ms;
    uv_check_init(&s->loop, &s->turn);
    uv_idle_init(&s->loop, &s->more);
    uv_timer_init(&s->loop, &s->tick);
    uv_timer_init(&s->loop, &s->containers);
    uv_timer_init(&s->loop, &s->touch);
    uv_timer_init(&s->loop, &s->leave);
    uv_signal_init(&s->loop, &s->terminate);
    uv_signal_init(&s->loop, &s->interrupt);
    uv_signal_init(&s->loop, &s->child);
    s->turn.data = s->tick.data = s->containers.data = s->touch.data = s->leave.data = s;
    s->terminate.data = s->interrupt.data = s->child.data = s;
    uv_check_start(&s->turn, turn_ended);
    uv_timer_start(&s->tick, tick, (uint64_t)s->settings.tick_ms, (uint64_t)s->settings.tick_ms);
    if (s->replica.links)
        uv_timer_start(&s->touch, tell_leader, SESSIONS_TOLD_MS, SESSIONS_TOLD_MS);
    if (look_ms) uv_timer_start(&s->containers, look_for_perished, look_ms, look_ms);
    uv_signal_start(&s->terminate, told_to_end, SIGTERM);
    uv_signal_start(&s->interrupt, told_to_end, SIGINT);
    uv_signal_start(&s->child, child_ended, SIGCHLD);
}

/* ---- Starting ---- */

static int open_tls(struct server *s) {
    static const enum tls_clients clients[] = {
        [SETTINGS_AUTH_NONE] = TLS_CLIENTS_ANY,
        [SETTINGS_AUTH_WANT] = TLS_CLIENTS_CHECKED_IF_SHOWN,
        [SETTINGS_AUTH_NEED] = TLS_CLIENTS_CERTIFIED,
    };
    struct tls_files files = {s->settings.tls_certificate, s->settings.tls_key,
                              s->settings.tls_key_password, s->settings.tls_authorities};
    if (!s->settings.tls.count && !s->settings.same_port) return 0;
    s->tls = tls_open(&files, clients[s->settings.client_auth], server_say);
    return s->tls ? 0 : SERVER_EXIT_TLS;
}

static int listen_on(struct server *s, struct settings_addresses *addresses,
                     void (*on_connection)(struct net_listener *listener)) {
    for (unsigned i = 0; i < addresses->count; i++) {
        struct settings_address *at = &addresses->at[i];
        struct net_listener *listener = &s->listener[s->listeners];
        listener->owner = s;
        listener->on_connection = on_connection;
        int error = net_listen(&s->loop, listener, at->host, &at->port, s->settings.backlog);
        if (error) {
            server_say("error", "%s:%d: cannot listen: %s", at->host, at->port, uv_strerror(error));
            return SERVER_EXIT_NETWORK;
        }
        s->listeners++;
    }
    return 0;
}

static void announce_addresses(const struct settings_addresses *addresses, const char *kind) {
    for (unsigned i = 0; i < addresses->count; i++) {
        bool six = strchr(addresses->at[i].host, ':') != NULL;
        printf("%s %s%s%s:%d%s", i ? "," : "", six ? "[" : "", addresses->at[i].host,
               six ? "]" : "", addresses->at[i].port, kind);
    }
}

static void announce(const struct server *s) {
    bool both = s->settings.clients.count && s->settings.tls.count;
    printf("conclave: serving clients on");
    announce_addresses(&s->settings.clients, s->settings.same_port ? " (plain or TLS)" : "");
    printf("%s", both ? "," : "");
    announce_addresses(&s->settings.tls, " (TLS)");
    printf("%s", s->settings.http.count ? "; HTTP on" : "");
    announce_addresses(&s->settings.http, "");
    printf("; data in %s\n", s->settings.data_dir);
    fflush(stdout);
    sd_notify(0, "READY=1");
    server_say("info", "started zxid=0x%llx nodes=%u sessions=%u", (unsigned long long)s->tree.zxid,
               s->tree.nodes, s->tree.sessions.count);
}

/* As many files as the system lets us have, of which clients' sockets leave some to us. */
static void claim_descriptors(struct server *s) {
    enum { OURS_MAX = 256 };
    struct rlimit limit = {INT32_MAX, INT32_MAX};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        struct rlimit most = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &most) == 0) limit = most;
    }
    int all = limit.rlim_cur < INT32_MAX ? (int)limit.rlim_cur : INT32_MAX;
    s->client_descriptors = all - (all / 4 < OURS_MAX ? all / 4 : OURS_MAX);
}

static int start(struct server *s) {
    if (getrandom(&s->seed, sizeof s->seed, 0) != sizeof s->seed) return SERVER_EXIT_DISK;
    s->watches.seed = s->seed;
    cv_assert(tree_open(&s->tree, s->seed) == 0);
    claim_descriptors(s);
    server_read_clock(s);
    s->started_ms = s->summaries_ms = s->now_ms;
    s->ticked_us = s->clock_us;
    int status = open_tls(s);
    if (!status) status = store_open(s);
    if (!status) status = replica_open(s);
    if (!status) status = peers_open(s);
    if (status) return status;
    s->tree.rules = (s->settings.extended_types ? TREE_EXTENDED_TYPES : 0) |
                    (s->settings.enforce_quota ? TREE_ENFORCE_QUOTA : 0) |
                    (s->settings.skip_acl ? TREE_SKIP_ACL : 0) |
                    (s->settings.client_auth > SETTINGS_AUTH_NONE ? TREE_X509 : 0) |
                    (s->settings.reconfig && s->replica.links ? TREE_RECONFIG : 0);
    sessions_start(s);
    start_handles(s);
    replica_start(s);
    status = listen_on(s, &s->settings.clients, connection_accept);
    if (!status) status = listen_on(s, &s->settings.tls, connection_accept_tls);
    if (status) return status;
    http_open(s);
    announce(s);
    return 0;
}

/* ---- Ending ---- */

static void close_handle(uv_handle_t *handle, void *context) {
    (void)context;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

void server_stop(struct server *s, int status) {
    if (s->stopping) return;
    s->stopping = true;
    s->exit_status = status;
    sd_notify(0, "STOPPING=1");
    commit_turn(s); /* what has come is written and answered */
    server_say("info", "ending; %u connections are closed", s->connections);
    for (uint32_t i = 1; i <= s->connection_places; i++)
        if (s->connection[i]) connection_end(s->connection[i]);
    peers_close(s);
    uv_walk(&s->loop, close_handle, NULL);
}

static void free_all(struct server *s) {
    http_close(s);
    tls_close(s->tls);
    tree_close(&s->tree);
    watches_close(&s->watches);
    bytes_close(&s->reply);
    free(s->connection);
    free(s->dirty);
    free(s->free_number);
    free(s->live);
    free(s->touched);
    bytes_close(&s->saved_bytes);
    replica_close(s);
    tls_close(s->peer_tls);
    free(s->pending);
}

int server_run(struct server *s, const struct settings *settings) {
    enum { TRACE_MASK = 306 }; /* the original's */
    *s = (struct server){
        .settings = *settings, .data_directory = -1, .log_directory = -1, .trace_mask = TRACE_MASK};
    cv_assert(net_open(&s->loop) == 0);
    signal(SIGPIPE, SIG_IGN);
    s->exit_status = start(s);
    if (s->exit_status) {
        peers_close(s);
        uv_walk(&s->loop, close_handle, NULL);
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    net_shut(&s->loop);
    if (s->data_directory >= 0) store_close(s);
    free_all(s);
    return s->exit_status;
}
