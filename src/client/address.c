/* The list of servers: "host:port,host:port/chroot". */
#include <stdio.h>
#include <stdlib.h>

#include "client/internal.h"

static const char DEFAULT_PORT[] = "2181";

static bool fail(char reason[REASON_MAX], const char *what, const char *at, size_t size) {
    snprintf(reason, REASON_MAX, "'%.*s' %s", (int)(size < 120 ? size : 120), at, what);
    return false;
}

static bool is_port(const char *at, size_t size) {
    long value = 0;
    for (size_t i = 0; i < size; i++) {
        if (at[i] < '0' || at[i] > '9') return false;
        value = value * 10 + (at[i] - '0');
        if (value > 65535) return false;
    }
    return size > 0 && value > 0;
}

/* One server: host, host:port, [v6], [v6]:port, or a bare v6 without a port. */
static bool parse_entry(struct server_entry *entry, const char *at, size_t size,
                        char reason[REASON_MAX]) {
    const char *host = at, *port = DEFAULT_PORT, *end = at + size;
    size_t host_size = size, port_size = sizeof DEFAULT_PORT - 1;
    const char *close = size && at[0] == '[' ? memchr(at, ']', size) : NULL;
    const char *colon = memrchr(at, ':', size);
    if (size && at[0] == '[') {
        if (!close) return fail(reason, "has no ']'", at, size);
        host = at + 1;
        host_size = (size_t)(close - host);
        if (close + 1 < end && close[1] != ':')
            return fail(reason, "is not an address such as [::1]:2181", at, size);
        colon = close + 1 < end ? close + 1 : NULL;
    } else if (colon && memchr(at, ':', (size_t)(colon - at))) {
        colon = NULL; /* several: an IPv6 address without a port */
    } else if (colon) {
        host_size = (size_t)(colon - at);
    }
    if (colon) port = colon + 1, port_size = (size_t)(end - port);
    if (!host_size || host_size >= HOST_MAX)
        return fail(reason, "is not an address such as localhost:2181", at, size);
    if (!is_port(port, port_size) || port_size >= PORT_MAX)
        return fail(reason, "has no port between 1 and 65535 after its colon", at, size);
    memcpy(entry->host, host, host_size);
    memcpy(entry->port, port, port_size);
    return true;
}

static bool parse_chroot(struct servers *servers, const char *at, char reason[REASON_MAX]) {
    size_t size = strlen(at);
    if (size == 1) size = 0; /* "/" is none */
    if (size && !zk_path_valid((struct zk_text){at, (int32_t)size}))
        return fail(reason, "is not a path to work below", at, size);
    servers->chroot = strndup(at, size);
    return servers->chroot != NULL;
}

bool servers_parse(struct servers *servers, const char *text, char reason[REASON_MAX]) {
    const char *slash = strchr(text, '/'), *end = slash ? slash : text + strlen(text);
    size_t most = 1;
    *servers = (struct servers){0};
    for (const char *at = text; at < end; at++) most += *at == ',';
    servers->entry = calloc(most, sizeof *servers->entry);
    if (!servers->entry) return fail(reason, "takes more memory than there is", text, 20);
    for (const char *at = text; at < end;) {
        while (at < end && (*at == ' ' || *at == ',')) at++;
        const char *stop = at;
        while (stop < end && *stop != ',') stop++;
        const char *next = stop;
        while (stop > at && stop[-1] == ' ') stop--;
        if (stop == at) break;
        if (!parse_entry(&servers->entry[servers->count], at, (size_t)(stop - at), reason))
            return false;
        servers->count++;
        at = next;
    }
    if (!servers->count) return fail(reason, "names no server", text, strlen(text));
    return parse_chroot(servers, slash ? slash : "", reason);
}

void servers_shuffle(struct servers *servers, struct rng *rng) {
    for (size_t i = servers->count; i-- > 1;) {
        size_t j = rng_below(rng, i + 1);
        struct server_entry entry = servers->entry[i];
        servers->entry[i] = servers->entry[j];
        servers->entry[j] = entry;
    }
}

void servers_close(struct servers *servers) {
    free(servers->entry);
    free(servers->chroot);
    *servers = (struct servers){0};
}

void server_name(const struct server_entry *entry, char *text, size_t size) {
    bool v6 = strchr(entry->host, ':');
    snprintf(text, size, "%s%s%s:%s", v6 ? "[" : "", entry->host, v6 ? "]" : "", entry->port);
}
