/* Reports over HTTP: metrics, status, the commands of ZooKeeper's AdminServer; and an operator's
 * commands to the ensemble.  It is on the server's own loop. */

#include "service/admin/http.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/dynlib.h"
#include "base/logger.h"

/* ---- The library ---- */

#define MHD_LIBRARY   "libmicrohttpd.so.12"
#define SYMBOL_(NAME) {"MHD_" #NAME, &mhd->NAME},

static bool load_library(struct mhd *mhd) {
    const struct dynlib_symbol symbols[] = {MHD_FUNCTIONS(SYMBOL_)};
    const char *problem = dynlib_load(MHD_LIBRARY, symbols, sizeof symbols / sizeof *symbols);
    if (problem)
        logger_warning("HTTP cannot be served, since its library is missing: there are no metrics, "
                       "no status, and no commands of an administrator; install libmicrohttpd12",
                       LOGGER_STRING("reason", problem));
    return !problem;
}

enum { CONNECTION_BYTES = 8192, TIMEOUT_S = 5 };

/* ---- Requests ---- */

const char *http_header(const struct http_request *request, const char *name) {
    return request->door->mhd->lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

struct zk_text http_argument(const struct http_request *request, const char *name) {
    const char *value = NULL;
    size_t size = 0;
    if (request->door->mhd->lookup_connection_value_n(request->connection, MHD_GET_ARGUMENT_KIND,
                                                      name, strlen(name), &value, &size) != MHD_YES)
        return (struct zk_text){NULL, -1};
    return (struct zk_text){value ? value : "", (int32_t)size};
}

int http_socket(const struct http_request *request) {
    return request->door->mhd
        ->get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
        ->connect_fd;
}

/* ---- Pages ---- */

struct answer http_in_words(unsigned status, const char *text) {
    struct answer answer = {status, HTTP_TEXT, {0}, NULL};
    report_print(&answer.text, "%s\n", text);
    return answer;
}

static int add_text(const char *text, size_t size, void *to) {
    bytes_add(to, text, size);
    return 0;
}

void http_add_json(struct bytes *out, const json_t *value, size_t flags) {
    json_dump_callback(value, add_text, out, flags);
}

struct answer http_in_json(json_t *value) {
    struct answer answer = {MHD_HTTP_OK, HTTP_JSON, {0}, NULL};
    http_add_json(&answer.text, value, JSON_INDENT(2));
    bytes_add(&answer.text, "\n", 1);
    json_decref(value);
    return answer;
}

static struct answer metrics(const struct server *s) {
    struct answer answer = {MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", {0}, NULL};
    report_metrics(s, &answer.text);
    return answer;
}

static struct answer list(void) {
    struct answer answer = {MHD_HTTP_OK, HTTP_HTML, {0}, NULL};
    report_print(&answer.text, "<!DOCTYPE html>\n<title>conclave</title>\n"
                               "<a href=\"/metrics\">metrics</a><br>\n"
                               "<a href=\"/status\">status</a><br>\n"
                               "<a href=\"/ensemble\">ensemble</a><br>\n");
    for (size_t i = 0; json_command_name(i); i++)
        report_print(&answer.text, "<a href=\"/commands/%s\">%s</a><br>\n", json_command_name(i),
                     json_command_name(i));
    return answer;
}

static const char commands[] = "/commands/";

/* The answer repeats nothing of the request. */
static struct answer answer_of(const struct server *s, const char *path) {
    if (strcmp(path, "/metrics") == 0) return metrics(s);
    if (strcmp(path, "/status") == 0) return http_in_json(json_status(s));
    if (strcmp(path, "/ensemble") == 0) return http_in_json(json_ensemble(s));
    if (strcmp(path, "/") == 0 || strcmp(path, "/commands") == 0 || strcmp(path, commands) == 0)
        return list();
    json_t *value = strncmp(path, commands, strlen(commands)) == 0
                        ? json_command(s, path + strlen(commands))
                        : NULL;
    return value ? http_in_json(value)
                 : http_in_words(MHD_HTTP_NOT_FOUND, "not found; / has a list");
}

/* ---- Answers ---- */

void http_add_headers(const struct mhd *mhd, struct MHD_Response *response, const char *type) {
    static const char *const always[][2] = {
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
         "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    };
    mhd->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        mhd->add_response_header(response, always[i][0], always[i][1]);
}

static struct MHD_Response *response_of(const struct mhd *mhd, struct answer *answer) {
    const struct asset *asset = answer->asset;
    if (!asset)
        return mhd->create_response_from_buffer(answer->text.used, answer->text.at,
                                                MHD_RESPMEM_MUST_FREE);
    return mhd->create_response_from_buffer((size_t)(asset->end - asset->begin),
                                            (void *)asset->begin, MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result http_send(const struct http_request *request, struct answer *answer) {
    const struct mhd *mhd = request->door->mhd;
    struct MHD_Response *response = response_of(mhd, answer);
    if (!response) {
        bytes_close(&answer->text);
        return MHD_NO;
    }
    http_add_headers(mhd, response, answer->type);
    if (answer->asset && answer->asset->encoding)
        mhd->add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING,
                                 answer->asset->encoding);
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        mhd->add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (answer->status == MHD_HTTP_UNAUTHORIZED)
        mhd->add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    enum MHD_Result queued = mhd->queue_response(request->connection, answer->status, response);
    mhd->destroy_response(response);
    return queued;
}

static enum MHD_Result send_words(const struct http_request *request, unsigned status,
                                  const char *text) {
    struct answer answer = http_in_words(status, text);
    return http_send(request, &answer);
}

/* ---- Visitors ---- */

static struct visitor *visitor_of(struct door *door, int socket) {
    for (unsigned i = 0; i < HTTP_CONNECTIONS_MAX; i++)
        if (door->visitor[i].socket == socket) return &door->visitor[i];
    return NULL;
}

static void note_visitor(void *context, struct MHD_Connection *connection, void **own,
                         enum MHD_ConnectionNotificationCode code) {
    struct door *door = context;
    bool comes = code == MHD_CONNECTION_NOTIFY_STARTED;
    int socket = http_socket(&(struct http_request){door, connection, NULL});
    struct visitor *visitor = visitor_of(door, comes ? 0 : socket);
    (void)own;
    if (!visitor) return;
    uint64_t now = door->server->clock.monotonic_us;
    *visitor = comes ? (struct visitor){socket, now} : (struct visitor){0};
    door->visitors += comes ? 1 : -1U;
}

void http_note_answer(struct door *door, struct MHD_Connection *connection) {
    struct http_request request = {door, connection, NULL};
    struct visitor *visitor = visitor_of(door, http_socket(&request));
    if (visitor) visitor->since_us = door->server->clock.monotonic_us;
}

/* Whoever sends a request byte by byte, or none, makes room for the next one. */
static void dismiss_oldest(struct door *door) {
    struct visitor *oldest = &door->visitor[0];
    for (unsigned i = 1; i < HTTP_CONNECTIONS_MAX; i++)
        if (door->visitor[i].since_us < oldest->since_us) oldest = &door->visitor[i];
    shutdown(oldest->socket, SHUT_RDWR);
    oldest->since_us = door->server->clock.monotonic_us; /* one that is suspended stays for now */
    door->mhd->run(door->daemon);
}

/* ---- Listings: the request is suspended while its answer is written ---- */

struct asked {
    struct http_state state; /* first */
    struct asked *next;
    struct door *door;
    struct MHD_Connection *connection;
    char path[64];
    struct bytes text;
    bool refused; /* it would take the last of the memory */
};

static const char *listing_of_path(const char *path) {
    if (strncmp(path, commands, strlen(commands)) != 0) return NULL;
    return listing_command_name(path + strlen(commands));
}

static enum MHD_Result end_listing(const struct http_request *request, struct http_state *state,
                                   const char *upload, size_t *upload_size) {
    struct asked *asked = (struct asked *)state;
    (void)upload, (void)upload_size;
    struct answer answer = {MHD_HTTP_OK, HTTP_JSON, asked->text, NULL};
    if (asked->refused)
        answer =
            http_in_words(MHD_HTTP_SERVICE_UNAVAILABLE, "the answer does not fit into the memory");
    asked->text = (struct bytes){0};
    return http_send(request, &answer);
}

static void free_listing(struct http_state *state) {
    struct asked *asked = (struct asked *)state;
    bytes_close(&asked->text);
    free(asked);
}

static enum MHD_Result begin_listing(const struct http_request *request, void **seen) {
    struct door *door = request->door;
    struct asked **last = &door->server->http->asked, *asked = calloc(1, sizeof *asked);
    cv_assert(asked);
    asked->state = (struct http_state){end_listing, free_listing};
    asked->door = door;
    asked->connection = request->connection;
    snprintf(asked->path, sizeof asked->path, "%s", request->path);
    while (*last) last = &(*last)->next;
    *last = *seen = asked;
    door->mhd->suspend_connection(request->connection);
    return MHD_YES;
}

static void request_ended(void *context, struct MHD_Connection *connection, void **seen,
                          enum MHD_RequestTerminationCode code) {
    struct door *door = context;
    struct http_state *state = *seen;
    (void)code;
    http_note_answer(door, connection);
    if (state && *seen != door->server) state->end(state);
}

void http_go_on(struct server *s) {
    struct asked *asked = s->http ? s->http->asked : NULL;
    if (!asked) return;
    if (!s->reading.listing) { /* it has not begun, or the tree is another one since */
        asked->text.used = 0;
        s->reading.listing = listing_of_command(s, listing_of_path(asked->path));
    }
    enum busy_kind before = busy_with(&s->work, BUSY_REPORTS);
    bool ended = listing_write(s->reading.listing, &asked->text, &s->steps.reading);
    memory_measure(s);
    asked->refused = !memory_allows_answer(s, asked->text.used);
    if (asked->refused) {
        s->statistics.refused[REFUSED_memory]++;
        bytes_close(&asked->text);
        memory_measure(s);
    }
    if (ended || asked->refused) {
        reading_drop(s);
        s->http->asked = asked->next;
        s->connections.deferred = true; /* there may be another one */
        asked->door->mhd->resume_connection(asked->connection);
        http_run(asked->door);
    }
    busy_with(&s->work, before);
}

static bool has_body(const struct http_request *request) {
    const char *length = http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length && strcmp(length, "0") != 0) ||
           http_header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static bool names_other_host(const struct http_request *request) {
    struct server *s = request->door->server;
    if (request->door == &s->http->socket ||
        host_is_known(s, http_header(request, MHD_HTTP_HEADER_HOST)))
        return false;
    s->statistics.refused[REFUSED_host]++;
    return true;
}

static enum MHD_Result answer_all(const struct http_request *request, bool reads, void **seen) {
    struct server *s = request->door->server;
    clock_read(&s->clock);
    if (reads && listing_of_path(request->path)) return begin_listing(request, seen);
    enum busy_kind before = busy_with(&s->work, BUSY_REPORTS);
    enum MHD_Result queued;
    if (reads && page_is_asked(request)) {
        queued = page_answer(request, seen);
    } else {
        bool changes = !reads || command_is_change(request->path);
        struct answer answer = changes ? command_answer(request) : answer_of(s, request->path);
        queued = http_send(request, &answer);
    }
    busy_with(&s->work, before);
    return queued;
}

/* Called when a request's header is there, with parts of its body, and again when all of it is. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **seen) {
    (void)version;
    struct http_request request = {context, connection, path};
    struct server *s = request.door->server;
    struct http_state *state = *seen;
    bool reads =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    bool is_command = strcmp(method, MHD_HTTP_METHOD_POST) == 0 && command_is_of_ensemble(path);
    bool writes = page_write_is_asked(method, path);
    if (state && *seen != s) return state->go_on(&request, state, upload, upload_size);
    if (request.door == &s->http->metrics && strcmp(path, "/metrics") != 0)
        return send_words(&request, MHD_HTTP_NOT_FOUND, "not found; /metrics is here");
    if (!reads && !is_command && !writes)
        return send_words(&request, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is answered");
    if (!state && names_other_host(&request))
        return send_words(&request, MHD_HTTP_MISDIRECTED_REQUEST,
                          "this server is not known by that name; use an address, or name "
                          "it in the server's setting admin.hosts");
    if (!state && writes) return page_write_begin(&request, (struct http_state **)seen);
    if (!state && has_body(&request))
        return send_words(&request, MHD_HTTP_BAD_REQUEST, "no request here has a body");
    if (!state) {
        *seen = s;
        return MHD_YES;
    }
    if (*upload_size) return MHD_NO;
    return answer_all(&request, reads, seen);
}

/* ---- On the loop ---- */

static void timer_fired(uv_timer_t *timer);

/* libmicrohttpd has an epoll set, which the loop polls as one descriptor, and a timeout. */
void http_run(struct door *door) {
    MHD_UNSIGNED_LONG_LONG ms;
    door->mhd->run(door->daemon);
    if (door->mhd->get_timeout(door->daemon, &ms) == MHD_YES)
        uv_timer_start(&door->timer, timer_fired, ms, 0);
    else
        uv_timer_stop(&door->timer);
}

static void timer_fired(uv_timer_t *timer) { http_run(timer->data); }

void http_run_soon(struct door *door) { uv_timer_start(&door->timer, timer_fired, 0, 0); }

static void became_ready(uv_poll_t *ready, int status, int events) {
    (void)status, (void)events;
    http_run(ready->data);
}

/* With a socket that listens, or with -1 for connections that are passed on. */
static bool open_door(struct door *door, int listener) {
    if (door->daemon) return true;
    unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (listener < 0 ? MHD_USE_NO_LISTEN_SOCKET : 0);
    struct MHD_OptionItem listens[] = {{MHD_OPTION_LISTEN_SOCKET, listener, NULL},
                                       {MHD_OPTION_END, 0, NULL}};
    door->daemon = door->mhd->start_daemon(
        flags, 0, NULL, NULL, handle, door, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)HTTP_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
        MHD_OPTION_NOTIFY_COMPLETED, request_ended, door, MHD_OPTION_NOTIFY_CONNECTION,
        note_visitor, door, MHD_OPTION_ARRAY, listens + (listener < 0), MHD_OPTION_END);
    if (!door->daemon) {
        logger_warning("HTTP cannot be served: there are no metrics and no status");
        return false;
    }
    int sockets = door->mhd->get_daemon_info(door->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    uv_poll_init(&door->server->loop, &door->ready, sockets);
    door->ready.data = door;
    uv_poll_start(&door->ready, UV_READABLE, became_ready);
    return true;
}

static void accepted_closed(uv_handle_t *handle) { free(handle); }

/* The loop accepts, as at all addresses of the server; the socket is then passed on. */
static void accept_one(struct net_listener *listener) {
    struct door *door = listener->owner;
    struct server *s = door->server;
    struct sockaddr_storage peer;
    int size = sizeof peer, own, passed = -1;
    uv_tcp_t *accepted = malloc(sizeof *accepted);
    cv_assert(accepted);
    uv_tcp_init(&s->loop, accepted);
    if (uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)accepted) == 0 &&
        open_door(door, -1) && uv_tcp_getpeername(accepted, (struct sockaddr *)&peer, &size) == 0 &&
        uv_fileno((uv_handle_t *)accepted, &own) == 0)
        passed = fcntl(own, F_DUPFD_CLOEXEC, 0);
    uv_close((uv_handle_t *)accepted, accepted_closed);
    if (passed < 0) return;
    if (door->visitors == HTTP_CONNECTIONS_MAX) dismiss_oldest(door);
    door->mhd->add_connection(door->daemon, passed, (struct sockaddr *)&peer, (socklen_t)size);
    http_run(door);
}

/* ---- Opening and closing ---- */

static void listen_at(struct door *door, struct settings_addresses *addresses,
                      const char *problem) {
    struct settings_addresses open = {0};
    for (unsigned i = 0; i < addresses->count; i++) {
        struct settings_address *at = &addresses->at[i];
        struct net_listener *listener = &door->listener[i];
        listener->owner = door;
        listener->on_connection = accept_one;
        int error =
            net_listen(&door->server->loop, listener, at->host, &at->port, HTTP_CONNECTIONS_MAX);
        if (error)
            logger_warning(problem, LOGGER_STRING("host", at->host), LOGGER_INT("port", at->port),
                           LOGGER_STRING("reason", uv_strerror(error)));
        else
            open.at[open.count++] = *at, net_accept_at_once(listener, 1);
    }
    *addresses = open; /* what is announced */
}

static void prepare_door(struct server *s, struct door *door) {
    door->server = s;
    door->mhd = &s->http->mhd;
    uv_timer_init(&s->loop, &door->timer);
    door->timer.data = door;
}

static int data_directory(const struct server *s) {
    return ensemble_status(s->ensemble).data_directory;
}

static void open_socket(struct server *s, struct door *door) {
    const char *problem;
    int listener = socket_listen(s->settings.data_dir, data_directory(s), &problem);
    if (listener < 0)
        logger_warning("there is no socket for the administrator in the data directory: 'conclave "
                       "ensemble --data' cannot command this server",
                       LOGGER_STRING("path", s->settings.data_dir),
                       LOGGER_STRING("name", ADMIN_SOCKET), LOGGER_STRING("reason", problem));
    else if (!open_door(door, listener))
        close(listener);
}

int http_open(struct server *s) {
    struct http *http = s->http = calloc(1, sizeof *http);
    cv_assert(http);
    prepare_door(s, &http->addresses);
    prepare_door(s, &http->metrics);
    prepare_door(s, &http->socket);
    page_events_open(s);
    page_writes_open(s);
    page_turns_open(s);
    zk_write_client(&http->super, &(struct zk_client){zk_text_of("super"), zk_text_of("")});
    if (!access_open(&s->settings, &http->token)) return SERVER_EXIT_FAILED;
    if (!load_library(&http->mhd)) {
        s->settings.http.count = s->settings.metrics.count = 0; /* what is announced */
        return 0;
    }
    listen_at(&http->addresses, &s->settings.http,
              "HTTP is not served at this address; name another one (--http) to have metrics and "
              "status");
    listen_at(&http->metrics, &s->settings.metrics,
              "metrics are not served at this address; name another one "
              "(metricsProvider.httpPort) to have them there");
    open_socket(s, &http->socket);
    return 0;
}

bool http_reload(struct server *s) { return access_open(&s->settings, &s->http->token); }

void http_close(struct http *http) {
    for (struct asked *asked = http->asked; asked; asked = asked->next)
        http->mhd.resume_connection(asked->connection);
    page_events_end(http);
    page_writes_end(http);
    page_turns_end(http);
    if (http->addresses.daemon) http->mhd.stop_daemon(http->addresses.daemon);
    if (http->metrics.daemon) http->mhd.stop_daemon(http->metrics.daemon);
    if (http->socket.daemon) {
        unlinkat(data_directory(http->socket.server), ADMIN_SOCKET, 0);
        http->mhd.stop_daemon(http->socket.daemon);
    }
    secret_forget(&http->token);
    bytes_close(&http->super);
    page_holds_forget(http);
    free(http);
}
