#include "server/http.h"

#include <microhttpd.h>
#include <strings.h>
#include <unistd.h>

#include "server/admin.h"
#include "server/report.h"

enum { CONNECTIONS_MAX = 32, CONNECTION_BYTES = 8192, TIMEOUT_S = 5 };

struct http {
    struct MHD_Daemon *daemon; /* started with the first connection: few servers are ever asked */
    uv_poll_t ready;
    uv_timer_t timer;
    struct net_listener listener[SETTINGS_LISTEN_MAX];
};

/* ---- Pages ---- */

#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain; charset=utf-8"
#define HTML_TYPE "text/html; charset=utf-8"

struct page {
    unsigned status;
    const char *type;
    struct bytes text;
};

static struct page in_words(unsigned status, const char *text) {
    struct page page = {status, TEXT_TYPE, {0}};
    report_print(&page.text, "%s\n", text);
    return page;
}

static int add_text(const char *text, size_t size, void *to) {
    bytes_add(to, text, size);
    return 0;
}

static struct page in_json(json_t *value) {
    struct page page = {MHD_HTTP_OK, JSON_TYPE, {0}};
    json_dump_callback(value, add_text, &page.text, JSON_INDENT(2));
    bytes_add(&page.text, "\n", 1);
    json_decref(value);
    return page;
}

static struct page metrics(const struct server *s) {
    struct page page = {MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", {0}};
    report_metrics(s, &page.text);
    return page;
}

static struct page list(void) {
    struct page page = {MHD_HTTP_OK, HTML_TYPE, {0}};
    report_print(&page.text, "<!DOCTYPE html>\n<title>conclave</title>\n"
                             "<a href=\"/metrics\">metrics</a><br>\n"
                             "<a href=\"/status\">status</a><br>\n"
                             "<a href=\"/ensemble\">ensemble</a><br>\n");
    for (size_t i = 0; admin_name(i); i++)
        report_print(&page.text, "<a href=\"/commands/%s\">%s</a><br>\n", admin_name(i),
                     admin_name(i));
    return page;
}

/* Nothing of what was asked is in the answer. */
static struct page page_of(const struct server *s, const char *path) {
    static const char commands[] = "/commands/";
    if (strcmp(path, "/metrics") == 0) return metrics(s);
    if (strcmp(path, "/status") == 0) return in_json(admin_status(s));
    if (strcmp(path, "/ensemble") == 0) return in_json(admin_ensemble(s));
    if (strcmp(path, "/") == 0 || strcmp(path, "/commands") == 0 || strcmp(path, commands) == 0)
        return list();
    json_t *answer = strncmp(path, commands, strlen(commands)) == 0
                         ? admin_command(s, path + strlen(commands))
                         : NULL;
    return answer ? in_json(answer) : in_words(MHD_HTTP_NOT_FOUND, "not found; / has a list");
}

/* Whether a request was meant for this machine.  A page from elsewhere may have given its own name
 * our address, but then it asks for that name. */
static bool is_own_name(const char *host) {
    char name[INET6_ADDRSTRLEN];
    struct sockaddr_storage address = {0};
    if (!host) return true; /* no browser */
    bool brackets = *host == '[';
    size_t size = strcspn(host += brackets, brackets ? "]" : ":");
    if (size >= sizeof name) return false;
    memcpy(name, host, size);
    name[size] = 0;
    if (strcasecmp(name, "localhost") == 0) return true;
    return (uv_ip4_addr(name, 0, (struct sockaddr_in *)&address) == 0 ||
            uv_ip6_addr(name, 0, (struct sockaddr_in6 *)&address) == 0) &&
           net_is_loopback((struct sockaddr *)&address);
}

/* /ensemble/VERB/ARGUMENT: what changes something is asked for by a person on this machine, and not
 * by a page that a browser happens to show, which cannot send that header. */
static struct page command(struct server *s, struct MHD_Connection *connection, const char *path) {
    static const char prefix[] = "/ensemble/";
    const union MHD_ConnectionInfo *peer =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const char *header = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Conclave");
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    char verb[16], why[512];
    const char *argument =
        strncmp(path, prefix, strlen(prefix)) == 0 ? strchr(path + strlen(prefix), '/') : NULL;
    size_t size = argument ? (size_t)(argument - path) - strlen(prefix) : 0;
    if (!argument || size >= sizeof verb) return in_words(MHD_HTTP_NOT_FOUND, "not found");
    if (!header || !is_own_name(host) || !peer || !net_is_loopback(peer->client_addr))
        return in_words(MHD_HTTP_FORBIDDEN, "only 'conclave ensemble' on this machine may do that");
    memcpy(verb, path + strlen(prefix), size);
    verb[size] = 0;
    bool begun = change_command(s, verb, argument + 1, why, sizeof why);
    return begun ? in_json(admin_ensemble(s)) : in_words(MHD_HTTP_CONFLICT, why);
}

static enum MHD_Result send_page(struct MHD_Connection *connection, struct page *page) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(page->text.used, page->text.at, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        bytes_close(&page->text);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (page->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result queued = MHD_queue_response(connection, page->status, response);
    MHD_destroy_response(response);
    return queued;
}

/* Called when a request's header is there, and again when all of it is. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **seen) {
    (void)version, (void)upload;
    struct server *s = context;
    bool reads =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    bool commands =
        strcmp(method, MHD_HTTP_METHOD_POST) == 0 && strncmp(path, "/ensemble/", 10) == 0;
    if (!reads && !commands) {
        struct page page = in_words(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is answered");
        return send_page(connection, &page);
    }
    if (!*seen) {
        *seen = s;
        return MHD_YES;
    }
    if (*upload_size) return MHD_NO; /* whoever reads has nothing to say */
    server_read_clock(s);
    struct page page = commands ? command(s, connection, path) : page_of(s, path);
    return send_page(connection, &page);
}

/* ---- On the loop ---- */

static void timer_fired(uv_timer_t *timer);

/* It has its own set of sockets, which is one socket to the loop, and may want to be woken. */
static void run(struct http *http) {
    MHD_UNSIGNED_LONG_LONG ms;
    MHD_run(http->daemon);
    if (MHD_get_timeout(http->daemon, &ms) == MHD_YES)
        uv_timer_start(&http->timer, timer_fired, ms, 0);
    else
        uv_timer_stop(&http->timer);
}

static void timer_fired(uv_timer_t *timer) { run(timer->data); }

static void became_ready(uv_poll_t *ready, int status, int events) {
    (void)status, (void)events;
    run(ready->data);
}

static bool start(struct server *s) {
    struct http *http = s->http;
    if (http->daemon) return true;
    http->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, answer, s,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S, MHD_OPTION_END);
    if (!http->daemon) {
        server_say("warning", "HTTP cannot be served");
        return false;
    }
    int sockets = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    uv_poll_init(&s->loop, &http->ready, sockets);
    http->ready.data = http;
    uv_poll_start(&http->ready, UV_READABLE, became_ready);
    return true;
}

static void accepted_closed(uv_handle_t *handle) { free(handle); }

/* The loop accepts, so that all addresses are listened to in one way; the socket is then passed on.
 */
static void accept_one(struct net_listener *listener) {
    struct server *s = listener->owner;
    struct sockaddr_storage peer;
    int size = sizeof peer, own, passed = -1;
    uv_tcp_t *accepted = malloc(sizeof *accepted);
    cv_assert(accepted);
    uv_tcp_init(&s->loop, accepted);
    if (uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)accepted) == 0 && start(s) &&
        uv_tcp_getpeername(accepted, (struct sockaddr *)&peer, &size) == 0 &&
        uv_fileno((uv_handle_t *)accepted, &own) == 0)
        passed = fcntl(own, F_DUPFD_CLOEXEC, 0);
    uv_close((uv_handle_t *)accepted, accepted_closed);
    if (passed < 0) return;
    MHD_add_connection(s->http->daemon, passed, (struct sockaddr *)&peer, (socklen_t)size);
    run(s->http);
}

/* ---- Opening and closing ---- */

void http_open(struct server *s) {
    struct settings_addresses *addresses = &s->settings.http, open = {0};
    if (!addresses->count) return;
    struct http *http = s->http = calloc(1, sizeof *http);
    cv_assert(http);
    uv_timer_init(&s->loop, &http->timer);
    http->timer.data = http;
    for (unsigned i = 0; i < addresses->count; i++) {
        struct settings_address *at = &addresses->at[i];
        struct net_listener *listener = &http->listener[i];
        listener->owner = s;
        listener->on_connection = accept_one;
        int error = net_listen(&s->loop, listener, at->host, &at->port, CONNECTIONS_MAX);
        if (error)
            server_say("warning", "HTTP is not served on %s:%d: %s", at->host, at->port,
                       uv_strerror(error));
        else
            open.at[open.count++] = *at;
    }
    *addresses = open;
}

void http_close(struct server *s) {
    if (s->http && s->http->daemon) MHD_stop_daemon(s->http->daemon);
    free(s->http);
    s->http = NULL;
}
