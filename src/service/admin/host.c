/* Which names of this server HTTP requests may use; base/host.h says why not all. */
#include <strings.h>
#include <unistd.h>

#include "base/host.h"
#include "service/admin/internal.h"

static bool is_of_machine(const char *name) {
    char own[HOST_NAME_SIZE] = "";
    return gethostname(own, sizeof own - 1) == 0 && strcasecmp(name, own) == 0;
}

static bool is_among(const struct settings_addresses *addresses, const char *name) {
    for (unsigned i = 0; i < addresses->count; i++)
        if (strcasecmp(addresses->at[i].host, name) == 0) return true;
    return false;
}

static bool is_named(const struct settings *settings, const char *name) {
    size_t size = strlen(name);
    if (is_among(&settings->http, name) || is_among(&settings->metrics, name)) return true;
    for (const char *at = settings->http_hosts; *at; at += strcspn(at, ", ")) {
        at += strspn(at, ", ");
        size_t item = strcspn(at, ", ");
        if ((item == 1 && *at == '*') || (item == size && strncasecmp(at, name, size) == 0))
            return true;
    }
    return false;
}

static bool is_of_member(const struct server *s, const char *name) {
    struct member_list members = {0};
    ensemble_members(s->ensemble, &members);
    for (unsigned i = 0; i < members.count; i++)
        if (strcasecmp(members.at[i].host, name) == 0) return true;
    return false;
}

bool host_is_known(const struct server *s, const char *host) {
    char name[HOST_NAME_SIZE];
    if (!host) return true; /* whoever sends none is no browser */
    if (!host_read(host, strlen(host), name)) return false;
    return host_is_address(name) || host_is_localhost(name) || is_of_machine(name) ||
           is_named(&s->settings, name) || is_of_member(s, name);
}
