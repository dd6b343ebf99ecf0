/* What lets strangers in. */
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "service/settings/internal.h"

/* However it is written: 0, 0x0 and ::0 are, too. */
static bool is_every_address(const char *host) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;
    if (strcmp(host, "*") == 0) return true;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(void *)found->ai_addr)->sin6_addr;
    const struct in_addr *four = &((const struct sockaddr_in *)(void *)found->ai_addr)->sin_addr;
    struct in_addr mapped;
    bool every = found->ai_family == AF_INET && four->s_addr == INADDR_ANY;
    if (found->ai_family == AF_INET6) {
        memcpy(&mapped, &six->s6_addr[12], sizeof mapped);
        every = IN6_IS_ADDR_UNSPECIFIED(six) ||
                (IN6_IS_ADDR_V4MAPPED(six) && mapped.s_addr == INADDR_ANY);
    }
    freeaddrinfo(found);
    return every;
}

/* The first of them that is every address of the machine; NULL: none is. */
static const char *open_to_all(const struct settings_addresses *addresses) {
    for (unsigned i = 0; i < addresses->count; i++)
        if (is_every_address(addresses->at[i].host)) return addresses->at[i].host;
    return NULL;
}

static bool has_word(const char *words, const char *word) {
    size_t size = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, ", ")) {
        at += strspn(at, ", ");
        if (strcspn(at, ", ") == size && memcmp(at, word, size) == 0) return true;
    }
    return false;
}

void settings_exposures(const struct settings *s, settings_warning *each, void *context) {
    bool certified = s->client_auth == SETTINGS_AUTH_NEED;
    if (open_to_all(&s->clients) || (open_to_all(&s->tls) && !certified))
        each(context,
             "clients can connect from anywhere without proving who they are, and may do what ACLs "
             "allow to anyone; listen at one address, or use --tls-listen with --tls-ca, or have a "
             "firewall",
             "listen");
    if (open_to_all(&s->http))
        each(
            context,
            "metrics, status and nodes that anyone may read are served over HTTP to anyone; listen "
            "at one address, or have a firewall",
            "listen.http");
    if (open_to_all(&s->metrics))
        each(context,
             "metrics are served over HTTP to anyone; listen at one address, or have a firewall",
             "metricsProvider.httpHost");
    if (s->skip_acl)
        each(context, "permissions are not checked: every client may read and change everything",
             "skipACL");
    if (has_word(s->words, "*"))
        each(
            context,
            "every client may use all four-letter words, which list sessions and watches and reset "
            "statistics; name those that are needed",
            "4lw.commands.whitelist");
    if (s->insecure && s->members.count)
        each(context,
             "servers do not prove to each other who they are: whoever can connect to their ports "
             "can read and change everything; use --peer-key",
             "ensemble.insecure");
    if (has_word(s->http_hosts, "*") && (s->http.count || s->metrics.count))
        each(context,
             "HTTP is answered whatever host a request names, so a page in an administrator's "
             "browser can read metrics and status; name the hosts",
             "admin.hosts");
}
