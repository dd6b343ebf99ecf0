/* Nodes that an operator writes on the page: POST /page/node.
 *
 * A write takes the setting admin.webWrite and the administrators' token.  A page of a stranger in
 * the operator's browser does not know the token, cannot send its header without asking first,
 * which is not answered, and says where it comes from.  A write goes through the log as a client's
 * does, and is answered when it is committed. */
#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>

#include "base/logger.h"
#include "base/parse.h"
#include "service/admin/http.h"

enum {
    WRITES_MAX = 16,     /* that wait for an answer */
    PATIENCE_MS = 10000, /* until one is answered that it is not known */
    PERIOD_MS = 1000,
    AROUND_DATA = 64 << 10, /* the rest of a request, as JSON */
};

struct writing {
    struct http_state state; /* first */
    struct writing *next;
    struct door *door;
    struct MHD_Connection *connection;
    size_t size; /* of the body, as its header says */
    struct bytes body;
    struct zk_text path; /* in there, when it was read */
    uint32_t ticket;     /* 0: it is not proposed */
    int32_t op;
    uint64_t since_us;
    struct answer answer; /* status 0: there is none yet */
};

/* ---- Errors ---- */

static const struct error {
    int32_t err;
    const char *code;
    unsigned status;
    const char *words;
} errors[] = {
    {ZK_NONODE, "NoNode", MHD_HTTP_NOT_FOUND, "there is no such node, or none above it"},
    {ZK_NOAUTH, "NoAuth", MHD_HTTP_FORBIDDEN, "that is not allowed"},
    {ZK_BADVERSION, "BadVersion", MHD_HTTP_CONFLICT, "the node has another version by now"},
    {ZK_NODEEXISTS, "NodeExists", MHD_HTTP_CONFLICT, "there is such a node already"},
    {ZK_NOTEMPTY, "NotEmpty", MHD_HTTP_CONFLICT, "the node has children"},
    {ZK_NOCHILDRENFOREPHEMERALS, "NoChildrenForEphemerals", MHD_HTTP_CONFLICT,
     "an ephemeral node has no children"},
    {ZK_QUOTAEXCEEDED, "QuotaExceeded", MHD_HTTP_CONFLICT, "a quota does not allow it"},
    {ZK_BADARGUMENTS, "BadArguments", MHD_HTTP_BAD_REQUEST, "that cannot be done to this path"},
    {ZK_NOTREADONLY, "NotReadOnly", MHD_HTTP_SERVICE_UNAVAILABLE, "there is no leader"},
    {ZK_THROTTLEDOP, "ThrottledOp", MHD_HTTP_SERVICE_UNAVAILABLE, "too much waits to be written"},
};

static struct answer in_error(int32_t err) {
    const char *name = zk_error_name(err);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].err == err)
            return page_error(errors[i].status, errors[i].code, errors[i].words);
    return page_error(MHD_HTTP_INTERNAL_SERVER_ERROR, name ? name : "Error",
                      "the server could not do it");
}

static struct answer malformed(const char *words) {
    return page_error(MHD_HTTP_BAD_REQUEST, "BadArguments", words);
}

/* ---- The body ---- */

struct order {
    const char *verb, *mode;
    struct zk_text path;
    struct bytes data;
    int32_t version;
};

/* The library takes padding anywhere, and space around it, for something: what is written has to be
 * what was sent. */
static bool decode(const char *text, size_t size, struct bytes *to) {
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t padding = 0;
    if (size % 4) return false;
    while (padding < 2 && padding < size && text[size - 1 - padding] == '=') padding++;
    if (strspn(text, alphabet) != size - padding) return false;
    if (!size) return true;
    int decoded =
        EVP_DecodeBlock(bytes_reserve(to, size / 4 * 3), (const unsigned char *)text, (int)size);
    if (decoded < 0 || (size_t)decoded < padding) return false;
    to->used = (size_t)decoded - padding;
    return true;
}

/* NULL, or what is wrong. */
static const char *read_order(const json_t *object, struct order *order) {
    const json_t *verb = json_object_get(object, "op"), *path = json_object_get(object, "path");
    const json_t *data = json_object_get(object, "data"), *mode = json_object_get(object, "mode");
    const json_t *version = json_object_get(object, "version");
    *order = (struct order){.verb = json_string_value(verb), .version = -1, .mode = "persistent"};
    if (!order->verb || !json_is_string(path)) return "op and path are missing";
    order->path = (struct zk_text){json_string_value(path), (int32_t)json_string_length(path)};
    if (!zk_path_valid(order->path)) return "that is no path of a node";
    if (data && (!json_is_string(data) ||
                 !decode(json_string_value(data), json_string_length(data), &order->data)))
        return "the data are not base64";
    if (!data && strcmp(order->verb, "set") == 0) return "the data are missing";
    if (mode && !(order->mode = json_string_value(mode))) return "the mode is no text";
    if (!version) return NULL;
    json_int_t number = json_integer_value(version);
    if (!json_is_integer(version) || number < -1 || number > INT32_MAX)
        return "the version is no number";
    order->version = (int32_t)number;
    return NULL;
}

/* ---- Requests as clients send them ---- */

static struct zk_text data_of(const struct order *order) {
    return (struct zk_text){order->data.at ? (char *)order->data.at : "",
                            (int32_t)order->data.used};
}

static int32_t write_create(const struct order *order, struct bytes *body) {
    struct zk_acl open = {ACL_ALL, {zk_text_of("world"), zk_text_of("anyone")}};
    struct bytes list = {0};
    bool container = strcmp(order->mode, "container") == 0;
    bool sequential = strcmp(order->mode, "sequential") == 0;
    if (!container && !sequential && strcmp(order->mode, "persistent") != 0) return 0;
    zk_write_acl(&list, &open);
    zk_write_create_request(body, &(struct zk_create_request){order->path,
                                                              data_of(order),
                                                              {list.at, list.used, 1},
                                                              container    ? ZK_CONTAINER
                                                              : sequential ? ZK_SEQUENTIAL
                                                                           : ZK_PERSISTENT});
    bytes_close(&list);
    return container ? ZK_OP_CREATE_CONTAINER : ZK_OP_CREATE2;
}

/* The operation; 0: there is no such one. */
static int32_t write_request(const struct order *order, struct bytes *body) {
    if (strcmp(order->verb, "create") == 0) return write_create(order, body);
    if (strcmp(order->verb, "set") == 0) {
        zk_write_set_data_request(
            body, &(struct zk_set_data_request){order->path, data_of(order), order->version});
        return ZK_OP_SET_DATA;
    }
    if (strcmp(order->verb, "delete") == 0) {
        zk_write_delete_request(body, &(struct zk_delete_request){order->path, order->version});
        return ZK_OP_DELETE;
    }
    return 0;
}

/* ---- Waiting for the answer ---- */

static void ticked(uv_timer_t *timer);

static void wait_for_answer(struct writing *w) {
    struct server *s = w->door->server;
    struct page_writes *writes = &s->http->writes;
    w->since_us = s->clock.monotonic_us;
    w->next = writes->first;
    writes->first = w;
    if (!writes->count++) uv_timer_start(&writes->timer, ticked, PERIOD_MS, PERIOD_MS);
    w->door->mhd->suspend_connection(w->connection);
}

/* False: it does not wait. */
static bool wait_no_more(struct writing *w) {
    struct page_writes *writes = &w->door->server->http->writes;
    struct writing **at = &writes->first;
    while (*at && *at != w) at = &(*at)->next;
    if (!*at) return false;
    *at = w->next;
    if (!--writes->count) uv_timer_stop(&writes->timer);
    return true;
}

static void answer(struct writing *w, struct answer made) {
    wait_no_more(w);
    w->answer = made;
    w->door->mhd->resume_connection(w->connection);
    http_run_soon(w->door);
}

/* A leader may be lost meanwhile, or the entry in a change of leaders. */
static void ticked(uv_timer_t *timer) {
    struct server *s = timer->data;
    clock_read(&s->clock);
    for (struct writing *w = s->http->writes.first, *next; w; w = next) {
        next = w->next;
        if (s->clock.monotonic_us - w->since_us < (uint64_t)PATIENCE_MS * 1000) continue;
        answer(w, page_error(MHD_HTTP_GATEWAY_TIMEOUT, "OperationTimeout",
                             "it takes long, and may still be done: look again"));
    }
}

static struct answer in_success(const struct writing *w, const struct bytes *reply) {
    struct answer made = {MHD_HTTP_OK, HTTP_JSON, {0}, NULL};
    struct zk_in in = zk_in_of(reply->at, reply->used);
    struct zk_create2_response created = {.path = zk_null()};
    bool creates = w->op == ZK_OP_CREATE2 || w->op == ZK_OP_CREATE_CONTAINER;
    bool known = creates ? zk_read_create2_response(&in, &created)
                         : w->op == ZK_OP_SET_DATA && zk_read_stat(&in, &created.stat);
    report_print(&made.text, "{\"path\":");
    json_add_text(&made.text, creates ? created.path : w->path);
    report_print(&made.text, ",\"stat\":");
    if (known)
        page_add_stat(&made.text, &created.stat, NULL);
    else
        report_print(&made.text, "null");
    report_print(&made.text, "}\n");
    return made;
}

void page_write_answered(struct server *s, uint32_t ticket, int32_t err,
                         const struct bytes *reply) {
    struct writing *w = s->http ? s->http->writes.first : NULL;
    while (w && w->ticket != ticket) w = w->next;
    if (w) answer(w, err ? in_error(err) : in_success(w, reply));
}

/* ---- Writing ---- */

/* Who did what is for the log of the server. */
static void log_write(const struct order *order) {
    char path[256];
    snprintf(path, sizeof path, "%.*s", (int)order->path.size, order->path.at);
    logger_info("an administrator writes a node on the page",
                LOGGER_STRING("operation", order->verb), LOGGER_STRING("path", path));
}

/* Proposes it; or it has an answer now. */
static void propose(struct writing *w, const struct order *order) {
    struct server *s = w->door->server;
    struct page_writes *writes = &s->http->writes;
    struct zk_clients super = {s->http->super.at, s->http->super.used, 1};
    struct bytes body = {0};
    w->op = write_request(order, &body);
    if (!w->op) {
        w->answer = malformed("there is no such operation, or no such mode");
    } else if (body.used > (size_t)s->settings.packet_bytes_max) {
        w->answer = page_error(MHD_HTTP_CONTENT_TOO_LARGE, "BadArguments", "it is too long");
    } else {
        w->ticket = ++writes->ticket ? writes->ticket : ++writes->ticket; /* not 0 */
        int32_t err = server_propose(s, w->ticket, &super, w->op, zk_in_of(body.at, body.used));
        if (err) w->answer = in_error(err);
        if (!err) log_write(order);
        if (!err) wait_for_answer(w);
    }
    bytes_close(&body);
}

static void begin_write(struct writing *w) {
    struct order order = {0};
    json_error_t error;
    json_t *object = json_loadb((char *)w->body.at, w->body.used, JSON_REJECT_DUPLICATES, &error);
    const char *problem = object ? read_order(object, &order) : "that is no JSON";
    bytes_close(&w->body);
    if (problem) {
        w->answer = malformed(problem);
    } else {
        bytes_add(&w->body, order.path.at, (size_t)order.path.size); /* it stays known */
        w->path = (struct zk_text){(char *)w->body.at, order.path.size};
        propose(w, &order);
    }
    bytes_close(&order.data);
    json_decref(object);
}

/* ---- The request ---- */

static enum MHD_Result go_on(const struct http_request *request, struct http_state *state,
                             const char *upload, size_t *upload_size) {
    struct writing *w = (struct writing *)state;
    struct server *s = request->door->server;
    if (*upload_size) {
        if (w->body.used + *upload_size > w->size) return MHD_NO;
        bytes_add(&w->body, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (!w->answer.status) {
        clock_read(&s->clock);
        enum busy_kind before = busy_with(&s->work, BUSY_REPORTS);
        begin_write(w);
        busy_with(&s->work, before);
    }
    if (!w->answer.status) return MHD_YES; /* it is suspended */
    struct answer made = w->answer;
    w->answer = (struct answer){0};
    return http_send(request, &made);
}

static void end(struct http_state *state) {
    struct writing *w = (struct writing *)state;
    wait_no_more(w);
    bytes_close(&w->body);
    bytes_close(&w->answer.text);
    free(w);
}

/* Browsers say where a request comes from that could change something. */
static bool is_of_another_site(const struct http_request *request) {
    const char *origin = http_header(request, MHD_HTTP_HEADER_ORIGIN);
    const char *host = http_header(request, MHD_HTTP_HEADER_HOST);
    const char *site = http_header(request, "Sec-Fetch-Site");
    if (site && strcmp(site, "same-origin") != 0) return true;
    if (!origin) return false;
    const char *name = strstr(origin, "://");
    return !host || !name || strcasecmp(name + 3, host) != 0;
}

static bool is_json(const char *type) {
    size_t size = strlen(HTTP_JSON);
    return type && strncasecmp(type, HTTP_JSON, size) == 0 && (!type[size] || type[size] == ';');
}

static size_t longest_body(const struct server *s) {
    return (size_t)s->settings.packet_bytes_max / 3 * 4 + AROUND_DATA;
}

/* False: `error` says why not. */
static bool is_allowed(const struct http_request *request, struct answer *error) {
    struct server *s = request->door->server;
    if (!s->settings.web_write)
        *error = page_error(MHD_HTTP_FORBIDDEN, "ReadOnly",
                            "the server was not started with --web-write");
    else if (is_of_another_site(request))
        *error = page_error(MHD_HTTP_FORBIDDEN, "NoAuth", "the request comes from another site");
    else if (!http_is_operator(request))
        *error = page_refuse(request, "write");
    else if (!is_json(http_header(request, MHD_HTTP_HEADER_CONTENT_TYPE)))
        *error = page_error(MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "BadArguments",
                            "the body has to be application/json");
    else if (s->http->writes.count == WRITES_MAX)
        *error = page_error(MHD_HTTP_SERVICE_UNAVAILABLE, "Busy",
                            "as many writes wait as may wait: try again");
    else
        return true;
    return false;
}

bool page_write_is_asked(const char *method, const char *path) {
    return strcmp(method, MHD_HTTP_METHOD_POST) == 0 && strcmp(path, "/page/node") == 0;
}

enum MHD_Result page_write_begin(const struct http_request *request, struct http_state **state) {
    const char *length = http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t size = 0;
    struct answer error;
    bool allowed = is_allowed(request, &error);
    if (allowed && (!length || parse_u64(length, &size) != 0))
        error = page_error(MHD_HTTP_LENGTH_REQUIRED, "BadArguments", "how long is the body?");
    else if (allowed && size > longest_body(request->door->server))
        error = page_error(MHD_HTTP_CONTENT_TOO_LARGE, "BadArguments", "the body is too long");
    else if (allowed) {
        struct writing *w = calloc(1, sizeof *w);
        cv_assert(w);
        *w = (struct writing){.state = {go_on, end},
                              .door = request->door,
                              .connection = request->connection,
                              .size = (size_t)size};
        *state = &w->state;
        return MHD_YES;
    }
    return http_send(request, &error);
}

void page_writes_open(struct server *s) {
    uv_timer_init(&s->loop, &s->http->writes.timer);
    s->http->writes.timer.data = s;
}

void page_writes_end(struct http *http) {
    for (struct writing *w = http->writes.first; w; w = w->next)
        http->mhd.resume_connection(w->connection);
}
