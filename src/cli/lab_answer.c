/* What the laboratory's web server answers. */
#include <string.h>
#include <strings.h>

#include "base/host.h"
#include "cli/lab_server.h"
#include "cli/pages.h"
#include "fence/http.h"

/* The value of the one field `Host`; nothing when there is none, or another. */
static struct http_text host_of(const unsigned char *head, size_t size) {
    static const char name[] = "host:";
    struct http_text host = {NULL, 0};
    const char *at = (const char *)head, *end = at + size;
    for (const char *next; (next = memchr(at, '\n', (size_t)(end - at))); at = next + 1) {
        size_t length = (size_t)(next - at);
        if (length && at[length - 1] == '\r') length--;
        if (length < sizeof name - 1 || strncasecmp(at, name, sizeof name - 1) != 0) continue;
        if (host.at) return (struct http_text){NULL, 0};
        host = (struct http_text){at + sizeof name - 1, length - (sizeof name - 1)};
        while (host.size && strchr(" \t", *host.at)) host.at++, host.size--;
        while (host.size && strchr(" \t", host.at[host.size - 1])) host.size--;
    }
    return host;
}

static bool is_known(struct http_text host, const char *listen_host) {
    char name[HOST_NAME_SIZE];
    if (!host_read(host.at, host.size, name)) return false;
    return host_is_address(name) || host_is_localhost(name) || strcasecmp(name, listen_host) == 0;
}

static const struct asset *find_page(struct http_text target) {
    const char *query = memchr(target.at, '?', target.size);
    if (query) target.size = (size_t)(query - target.at);
    if (!target.size || *target.at != '/') return NULL;
    target.at++, target.size--;
    if (!target.size) target = (struct http_text){"index.html", strlen("index.html")};
    for (const struct asset *p = lab_pages; p->name; p++)
        if (http_is(target, p->name)) return p;
    return NULL;
}

int lab_answer(const unsigned char *text, size_t size, const char *listen_host,
               const struct asset **page, bool *head_only) {
    struct http_head head;
    *page = NULL;
    *head_only = false;
    int got = http_read_request(text, size, &head);
    if (got == 0) return 0;
    if (got < 0) return head.error;
    if (!is_known(host_of(text, head.size), listen_host)) return 421;
    *head_only = http_is(head.method, "HEAD");
    if (!*head_only && !http_is(head.method, "GET")) return 405;
    *page = find_page(head.target);
    return *page ? 200 : 404;
}
