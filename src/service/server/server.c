/* Start and end, listeners, timers, signals, and the loop iteration. */
#include "service/server/server.h"

#include <signal.h>
#include <sys/random.h>

#include "base/logger.h"
#include "base/notify.h"
#include "service/server/internal.h"

/* ---- The loop iteration ---- */

static void do_not_block(uv_idle_t *idle) { (void)idle; }

void server_wake(struct server *s) {
    if (!s->stopping && !uv_is_active((uv_handle_t *)&s->busy))
        uv_idle_start(&s->busy, do_not_block);
}

/* Each iteration does so much of each kind of work, and leaves the rest to the next. */
static void renew_steps(struct server *s) {
    size_t each = (size_t)s->settings.loop_steps;
    const struct steps *left = &s->steps;
    bool all = left->apply && left->reading && left->send && left->forget && left->ask &&
               left->resume && left->read && left->reread && left->watch && left->rewatch &&
               left->handshakes;
    s->statistics.full_iterations += !all;
    s->steps = steps_of(each);
    memory_bound_steps(s);
}

static bool has_more(const struct server *s) {
    const struct connections *all = &s->connections;
    return reading_is_on(s) || all->deferred || all->dirty_count || all->ended_count ||
           s->sessions.check_next || (s->expirable_next && !ensemble_is_full(s->ensemble));
}

static void advance(struct server *s) {
    connections_flush(s); /* what was answered at once does not wait for the disk */
    uint64_t reads = s->statistics.reads.all.count;
    bool served_reads = reads != s->reads_before;
    s->reads_before = reads;
    if (ensemble_delays_commit(s->ensemble, served_reads)) return;
    ensemble_tell_memory(s->ensemble, memory_is_short(s));
    ensemble_advance(s->ensemble);
    copies_follow(s);
    if (ensemble_applied(s->ensemble) >= s->committed_then) s->reading_ended = false;
    answer_reconfigs(s);
    connections_resume(s);
    connections_bound_received(s);
    connections_flush(s);
    if (ensemble_has_work(s->ensemble) || has_more(s))
        server_wake(s);
    else
        uv_idle_stop(&s->busy);
}

static void note_busy(struct server *s) {
    enum { LONG_US = 100000, LOG_US = 1000000 };
    enum busy_kind mostly;
    uint64_t us = busy_iteration_ended(&s->work, uv_metrics_idle_time(&s->loop), &mostly);
    if (us < LONG_US) return;
    s->statistics.long_iterations++;
    clock_read(&s->clock);
    if (s->busy_logged_us && s->clock.monotonic_us - s->busy_logged_us < LOG_US) return;
    s->busy_logged_us = s->clock.monotonic_us;
    logger_warning("the server was busy for long, and heard nobody meanwhile; above half a second "
                   "a leader may be replaced",
                   LOGGER_UINT("duration_ms", us / 1000),
                   LOGGER_STRING("work", busy_kind_name(mostly)));
}

static void remove_expired(void *context, struct zk_text path) {
    struct bytes body = {0};
    zk_write_text(&body, path);
    propose(context, NULL, 0, 0, ZK_OP_DELETE_CONTAINER, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

/* Containers and nodes with a ttl.  Every server looks: it may lead when a ttl is over that it has
 * seen begin.  An entry that deletes nothing does no harm, so what is applied between two
 * iterations does not matter. */
static void look_for_expired(struct server *s) {
    bool removes = s->removes_expired && ensemble_leads(s->ensemble);
    if (removes && ensemble_is_full(s->ensemble)) return;
    s->expirable_next =
        tree_find_expired(&s->tree, s->expirable_next, (size_t)s->settings.loop_steps, &s->clock,
                          removes ? remove_expired : NULL, s);
}

static void waits(uv_prepare_t *prepare) {
    struct server *s = prepare->data;
    busy_waits(&s->work);
}

static void iteration_ended(uv_check_t *check) {
    struct server *s = check->data;
    enum busy_kind before = busy_with(&s->work, BUSY_EXPIRY);
    if (s->sessions_due && !s->sessions.check_next) s->sessions.check_next = 1;
    s->sessions_due = false;
    if (s->sessions.check_next) sessions_check(s);
    if (s->expirable_next) look_for_expired(s);
    busy_with(&s->work, before);
    if (s->connections.ended_count) connections_forget(s);
    reading_go_on(s);
    advance(s);
    note_busy(s);
    renew_steps(s);
}

/* ---- What the ensemble calls ---- */

static void wake(void *owner) { server_wake(owner); }

static enum ensemble_applied apply(void *owner, const struct raft_entry *entry) {
    return apply_entry(owner, entry);
}

static void flush(void *owner) { connections_flush(owner); }

static void leader_changed(void *owner, enum ensemble_event event) {
    switch (event) {
    case ENSEMBLE_ELECTED: sessions_renew(owner); break;
    case ENSEMBLE_LEADER_KNOWN: sessions_with_leader(owner); break;
    case ENSEMBLE_REMOVED: sessions_without_leader(owner); break;
    }
}

/* The connections missed what changed. */
static void snapshot_installed(void *owner) {
    struct server *s = owner;
    s->applying = (struct applying){0};
    s->expirable_next = 0;
    reading_drop(s);
    connections_end(s);
    sessions_restart(s);
}

static void members_changed(void *owner) { notify_watchers(owner); }

static void read_index_reached(void *owner) { connections_serve_reads(owner); }

static void touched(void *owner, int64_t session) { session_touched(owner, session); }

static const struct ensemble_callbacks callbacks = {.wake = wake,
                                                    .apply = apply,
                                                    .flush = flush,
                                                    .leader_changed = leader_changed,
                                                    .snapshot_installed = snapshot_installed,
                                                    .members_changed = members_changed,
                                                    .read_index_reached = read_index_reached,
                                                    .session_touched = touched};

/* ---- Timers ---- */

static void age_summaries(struct server *s) {
    if (s->clock.monotonic_us - s->summaries_us < (uint64_t)SUMMARY_PERIOD_MS * 1000) return;
    s->summaries_us = s->clock.monotonic_us;
    summary_age(&s->statistics.reads);
    summary_age(&s->statistics.writes);
    ensemble_age_statistics(s->ensemble);
}

/* The first time is when the server has applied what it had on its disk. */
static void begin_to_look_for_expired(struct server *s, bool removes) {
    if (s->expirable_next || !ensemble_is_restored(s->ensemble)) return;
    s->expirable_next = 1;
    s->removes_expired = removes;
    server_wake(s);
}

/* A tick that comes late says that the server stood still, as it does for a slow disk: sessions get
 * that time back, and what has arrived meanwhile is read before any is expired. */
static void ticked(uv_timer_t *timer) {
    struct server *s = timer->data;
    clock_read(&s->clock);
    uint64_t due_us = s->ticked_us + (uint64_t)s->settings.tick_ms * 1000;
    if (s->clock.monotonic_us > due_us) sessions_extend(s, (s->clock.monotonic_us - due_us) / 1000);
    s->ticked_us = s->clock.monotonic_us;
    s->sessions_due = true;
    server_wake(s);
    age_summaries(s);
    if (!s->tree.expirables_known) begin_to_look_for_expired(s, false);
}

static void report_sessions(uv_timer_t *timer) {
    struct server *s = timer->data;
    clock_read(&s->clock);
    if (ensemble_is_leaderless(s->ensemble)) sessions_without_leader(s);
    sessions_end_out_of_touch(s);
    sessions_report(s);
    server_wake(s); /* a request to the leader may have to be repeated */
}

/* What must not wait for a tick, which may be long. */
static void swept(uv_timer_t *timer) {
    struct server *s = timer->data;
    clock_read(&s->clock);
    connections_check(s);
    memory_measure(s);
}

static void look_at_credentials(uv_timer_t *timer) { credentials_check(timer->data); }

static void expiry_due(uv_timer_t *timer) {
    struct server *s = timer->data;
    clock_read(&s->clock);
    begin_to_look_for_expired(s, true);
}

/* A server that ends finishes what its clients have asked for: alone, when the disk has it; in an
 * ensemble it also transfers leadership, but does not wait for long. */
static void leave(uv_timer_t *timer) {
    enum { GRACE_US = 700000 };
    struct server *s = timer->data;
    clock_read(&s->clock);
    bool alone = ensemble_is_standalone(s->ensemble);
    bool done = (alone || !ensemble_leads(s->ensemble)) && !ensemble_pending(s->ensemble);
    bool in_grace = alone ? ensemble_is_writing(s->ensemble)
                          : s->clock.monotonic_us - s->leaving_us <= GRACE_US;
    if (done || !in_grace) server_stop(s, 0);
}

static void interrupted(struct server *s) {
    busy_interrupted(&s->work, uv_now(&s->loop) * 1000000);
}

static void told_to_end(uv_signal_t *signal, int number) {
    enum { CHECK_MS = 5 };
    struct server *s = signal->data;
    (void)number;
    interrupted(s);
    if (s->leaving_us) return;
    clock_read(&s->clock);
    s->leaving_us = s->clock.monotonic_us;
    for (uint32_t i = 1; i <= s->connections.slots; i++)
        if (s->connections.at[i]) net_read(&s->connections.at[i]->stream, false);
    if (!ensemble_is_standalone(s->ensemble) && ensemble_leads(s->ensemble))
        ensemble_transfer_leadership(s->ensemble);
    uv_timer_start(&s->leave, leave, 0, CHECK_MS);
}

static void told_to_reload(uv_signal_t *signal, int number) {
    struct server *s = signal->data;
    (void)number;
    interrupted(s);
    credentials_reload(s);
}

static void child_ended(uv_signal_t *signal, int number) {
    struct server *s = signal->data;
    (void)number;
    interrupted(s);
    ensemble_child_ended(s->ensemble);
}

static void start_handles(struct server *s) {
    enum { SWEEP_MS = 1000 };
    uint64_t tick_ms = (uint64_t)s->settings.tick_ms;
    uint64_t sweep_ms = tick_ms < SWEEP_MS ? tick_ms : SWEEP_MS;
    uint64_t expiry_ms = (uint64_t)s->settings.container_check_ms;
    uv_prepare_init(&s->loop, &s->waiting);
    uv_check_init(&s->loop, &s->iteration);
    uv_idle_init(&s->loop, &s->busy);
    uv_timer_init(&s->loop, &s->tick);
    uv_timer_init(&s->loop, &s->expiry);
    uv_timer_init(&s->loop, &s->touch);
    uv_timer_init(&s->loop, &s->leave);
    uv_timer_init(&s->loop, &s->sweep);
    uv_timer_init(&s->loop, &s->look);
    copies_open(s);
    uv_signal_init(&s->loop, &s->terminate);
    uv_signal_init(&s->loop, &s->interrupt);
    uv_signal_init(&s->loop, &s->child);
    uv_signal_init(&s->loop, &s->hangup);
    s->waiting.data = s->iteration.data = s->tick.data = s->expiry.data = s->touch.data =
        s->leave.data = s;
    s->sweep.data = s->look.data = s;
    s->terminate.data = s->interrupt.data = s->child.data = s->hangup.data = s;
    uv_prepare_start(&s->waiting, waits);
    uv_check_start(&s->iteration, iteration_ended);
    uv_timer_start(&s->tick, ticked, tick_ms, tick_ms);
    uv_timer_start(&s->sweep, swept, sweep_ms, sweep_ms);
    if (!ensemble_is_standalone(s->ensemble))
        uv_timer_start(&s->touch, report_sessions, SESSIONS_REPORT_MS, SESSIONS_REPORT_MS);
    if (credentials_are_used(s))
        uv_timer_start(&s->look, look_at_credentials, CREDENTIALS_LOOK_MS, CREDENTIALS_LOOK_MS);
    if (expiry_ms) uv_timer_start(&s->expiry, expiry_due, expiry_ms, expiry_ms);
    uv_signal_start(&s->terminate, told_to_end, SIGTERM);
    uv_signal_start(&s->interrupt, told_to_end, SIGINT);
    uv_signal_start(&s->child, child_ended, SIGCHLD);
    uv_signal_start(&s->hangup, told_to_reload, SIGHUP);
}

/* ---- Start ---- */

static int open_tls(struct server *s) {
    static const enum tls_clients clients[] = {
        [SETTINGS_AUTH_NONE] = TLS_CLIENTS_ANY,
        [SETTINGS_AUTH_WANT] = TLS_CLIENTS_CHECKED_IF_SHOWN,
        [SETTINGS_AUTH_NEED] = TLS_CLIENTS_CERTIFIED,
    };
    struct tls_files files = {s->settings.tls_certificate, s->settings.tls_key,
                              s->settings.tls_key_password, s->settings.tls_authorities,
                              s->settings.tls_password_file};
    if (!s->settings.tls.count && !s->settings.same_port) return 0;
    s->tls = tls_open(&files, clients[s->settings.client_auth]);
    return s->tls ? 0 : SERVER_EXIT_FAILED;
}

static int listen_on(struct server *s, struct settings_addresses *addresses,
                     void (*on_connection)(struct net_listener *listener)) {
    enum { ACCEPTED_AT_ONCE = 64 };
    for (unsigned i = 0; i < addresses->count; i++) {
        struct settings_address *at = &addresses->at[i];
        struct net_listener *listener = &s->listener[s->listeners];
        listener->owner = s;
        listener->on_connection = on_connection;
        int error = net_listen(&s->loop, listener, at->host, &at->port, s->settings.backlog);
        if (error) {
            logger_error("the server cannot listen for clients at this address, so it does not "
                         "start; stop what uses it, or name another one (--listen)",
                         LOGGER_STRING("host", at->host), LOGGER_INT("port", at->port),
                         LOGGER_STRING("reason", uv_strerror(error)));
            return SERVER_EXIT_FAILED;
        }
        net_accept_at_once(listener, ACCEPTED_AT_ONCE);
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
    printf("%s", s->settings.metrics.count ? "; metrics on" : "");
    announce_addresses(&s->settings.metrics, "");
    printf("; data in %s\n", s->settings.data_dir);
    fflush(stdout);
    notify_service_manager("READY=1");
    logger_info("the server has started", LOGGER_HEX("zxid", s->tree.zxid),
                LOGGER_UINT("nodes", s->tree.nodes),
                LOGGER_UINT("sessions", s->tree.sessions.count));
}

static int open_ensemble(struct server *s) {
    struct ensemble_config config = {.settings = &s->settings,
                                     .loop = &s->loop,
                                     .clock = &s->clock,
                                     .busy = &s->work,
                                     .tree = &s->tree,
                                     .owner = s,
                                     .callbacks = &callbacks,
                                     .memory_max = s->memory.entries_max};
    int status;
    s->ensemble = ensemble_open(&config, &status);
    return status;
}

static int32_t tree_rules(const struct server *s) {
    const struct settings *set = &s->settings;
    return (set->extended_types ? TREE_EXTENDED_TYPES : 0) |
           (set->enforce_quota ? TREE_ENFORCE_QUOTA : 0) | (set->skip_acl ? TREE_SKIP_ACL : 0) |
           (set->client_auth > SETTINGS_AUTH_NONE ? TREE_X509 : 0) |
           (set->reconfig && !ensemble_is_standalone(s->ensemble) ? TREE_RECONFIG : 0);
}

static int start(struct server *s) {
    if (getrandom(&s->seed, sizeof s->seed, 0) != sizeof s->seed) {
        logger_error("the system gives no random numbers, so the server does not start");
        return SERVER_EXIT_FAILED;
    }
    s->watches.seed = s->connections.crowds.seed = s->seed;
    if (tree_open(&s->tree, s->seed) != 0) {
        logger_error("there is no memory for the tree, so the server does not start");
        return SERVER_EXIT_FAILED;
    }
    connections_claim_descriptors(s);
    memory_open(s);
    clock_read(&s->clock);
    s->started_ms = s->clock.now_ms;
    s->started_us = s->summaries_us = s->ticked_us = s->clock.monotonic_us;
    credentials_open(s);
    int status = open_tls(s);
    if (!status) status = open_ensemble(s);
    if (status) return status;
    s->tree.rules = tree_rules(s);
    sessions_start(s);
    start_handles(s);
    ensemble_start(s->ensemble);
    status = listen_on(s, &s->settings.clients, connection_accept);
    if (!status) status = listen_on(s, &s->settings.tls, connection_accept_tls);
    if (!status) status = s->admin->open(s);
    if (status) return status;
    announce(s);
    busy_begin(&s->work);
    return 0;
}

/* ---- End ---- */

static void close_handle(uv_handle_t *handle, void *context) {
    (void)context;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

static void close_all(struct server *s) {
    if (s->ensemble) ensemble_end_links(s->ensemble);
    uv_walk(&s->loop, close_handle, NULL);
}

void server_stop(struct server *s, int status) {
    if (s->stopping) return;
    s->stopping = true;
    s->exit_status = status;
    reading_drop(s);
    notify_service_manager("STOPPING=1");
    ensemble_drain(s->ensemble);
    advance(s); /* what was received is written and answered */
    logger_info("the server is stopping; its connections are closed",
                LOGGER_UINT("connections", s->connections.count));
    connections_end(s);
    close_all(s);
}

static void free_all(struct server *s) {
    if (s->http) s->admin->close(s->http);
    tls_close(s->tls);
    if (s->ensemble) ensemble_free(s->ensemble);
    tree_close(&s->tree);
    watches_close(&s->watches);
    bytes_close(&s->reply);
    connections_close(&s->connections);
    free(s->sessions.at);
    free(s->sessions.touched);
}

static void warn_of_setting(void *context, const char *what, const char *key) {
    (void)context;
    logger_warning(what, LOGGER_STRING("setting", key));
}

int server_run(struct server *s, const struct settings *settings,
               const struct server_admin *admin) {
    enum { TRACE_MASK = 306 }; /* ZooKeeper's default */
    *s = (struct server){.settings = *settings, .admin = admin, .trace_mask = TRACE_MASK};
    logger_set(settings->log_level, settings->log_format);
    if (settings->server_id >= 0 && !settings->members.count)
        logger_warning("this server has an id but no ensemble, so it serves alone, and the id only "
                       "numbers its sessions; --ensemble names the members of an ensemble",
                       LOGGER_INT("id", settings->server_id));
    settings_exposures(settings, warn_of_setting, NULL);
    settings_doubts(settings, warn_of_setting, NULL);
    admin->check_words(settings);
    int error = net_open(&s->loop);
    cv_assert(error == 0);
    uv_loop_configure(&s->loop, UV_METRICS_IDLE_TIME);
    signal(SIGPIPE, SIG_IGN);
    renew_steps(s);
    s->exit_status = start(s);
    if (s->exit_status) { /* the disk's thread may still be busy: nothing begins anew after it */
        s->stopping = true;
        if (s->ensemble) ensemble_drain(s->ensemble);
        close_all(s);
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    net_shut(&s->loop);
    free_all(s);
    return s->exit_status;
}
