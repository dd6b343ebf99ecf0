/* The page of a browser: its files, which are a part of the program, and what they ask for. */
#include "base/parse.h"
#include "service/admin/http.h"

static const char prefix[] = "/page/";

struct answer page_error(unsigned status, const char *code, const char *words) {
    json_t *object = json_object();
    json_object_set_new(object, "error", json_string(words));
    json_object_set_new(object, "code", json_string(code));
    struct answer answer = http_in_json(object);
    answer.status = status;
    return answer;
}

/* The words are those of any command. */
struct answer page_refuse(const struct http_request *request, const char *verb) {
    struct answer refusal = command_refuse(request, verb);
    struct zk_text words = {(char *)refusal.text.at, (int32_t)refusal.text.used - 1};
    struct answer answer = {refusal.status, HTTP_JSON, {0}, NULL};
    report_print(&answer.text, "{\"error\":");
    json_add_text(&answer.text, words);
    report_print(&answer.text, ",\"code\":\"NoAuth\"}\n");
    bytes_close(&refusal.text);
    return answer;
}

static struct answer state(const struct http_request *request) {
    return http_in_json(page_state(request->door->server, NULL, NULL));
}

/* ---- Who reads, and how much ---- */

/* Where every client has to show a certificate, who has none reads nothing here either. */
static bool strangers_may_read(const struct settings *settings) {
    return settings->clients.count || settings->client_auth != SETTINGS_AUTH_NEED;
}

/* The tree is between two states while a large entry is applied, and a client does not see it so.
 */
bool page_reader(const struct http_request *request, struct zk_clients *identities,
                 struct answer *error) {
    struct server *s = request->door->server;
    const struct bytes *super = &s->http->super;
    bool is_operator = http_is_operator(request);
    bool claims_to_be = http_header(request, MHD_HTTP_HEADER_AUTHORIZATION) != NULL;
    *identities = is_operator ? (struct zk_clients){super->at, super->used, 1}
                              : (struct zk_clients){NULL, 0, 0};
    if (!is_operator && (claims_to_be || !strangers_may_read(&s->settings)))
        *error = page_refuse(request, "read");
    else if (tree_is_unfinished(&s->tree))
        *error = page_error(MHD_HTTP_SERVICE_UNAVAILABLE, "Busy", "the tree is being changed");
    else
        return true;
    return false;
}

unsigned page_limit(const struct http_request *request, unsigned usual, unsigned max) {
    struct zk_text text = http_argument(request, "limit");
    uint64_t limit;
    if (text.size < 0 || parse_u64(text.at, &limit) != 0 || !limit) return usual;
    return limit < max ? (unsigned)limit : max;
}

/* ---- Parts ---- */

static const struct part {
    const char *name;
    struct answer (*make)(const struct http_request *request);
} parts[] = {
    {"locks", page_locks},
    {"node", page_node},
    {"state", state},
    {"tree", page_tree},
};

static struct answer file(const char *name) {
    for (const struct asset *asset = server_pages; asset->name; asset++)
        if (strcmp(asset->name, name) == 0)
            return (struct answer){MHD_HTTP_OK, asset->type, {0}, asset};
    return page_error(MHD_HTTP_NOT_FOUND, "NotFound", "the page has no such part");
}

bool page_is_asked(const struct http_request *request) {
    if (strncmp(request->path, prefix, strlen(prefix)) == 0) return true;
    const char *accepted = http_header(request, MHD_HTTP_HEADER_ACCEPT);
    return strcmp(request->path, "/") == 0 && server_pages[0].name && accepted &&
           strstr(accepted, "text/html");
}

/* As any answer, unless it would take the last of the memory. */
static struct answer in_memory(struct server *s, struct answer answer) {
    if (memory_allows_answer(s, answer.text.used)) return answer;
    s->statistics.refused[REFUSED_memory]++;
    bytes_close(&answer.text);
    return page_error(MHD_HTTP_SERVICE_UNAVAILABLE, "Busy",
                      "the answer does not fit into the memory");
}

static const char *name_of(const struct http_request *request) {
    return strcmp(request->path, "/") == 0 ? "index.html" : request->path + strlen(prefix);
}

/* NULL: it is a file, or nothing. */
static const struct part *part_of(const struct http_request *request) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(name_of(request), parts[i].name) == 0) return &parts[i];
    return NULL;
}

enum MHD_Result page_answer_now(const struct http_request *request) {
    struct server *s = request->door->server;
    uint64_t since_ns = uv_hrtime();
    enum busy_kind before = busy_with(&s->work, BUSY_REPORTS);
    struct answer answer = in_memory(s, part_of(request)->make(request));
    page_turn_took(s, since_ns);
    busy_with(&s->work, before);
    return http_send(request, &answer);
}

enum MHD_Result page_answer(const struct http_request *request, void **seen) {
    if (strcmp(name_of(request), "events") == 0) return page_events_begin(request);
    if (part_of(request))
        return page_turn_waits(request, seen) ? MHD_YES : page_answer_now(request);
    struct answer answer = file(name_of(request));
    return http_send(request, &answer);
}
