#include "server/settings_values.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"

int settings_bad(struct why *why, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->at, why->size, format, arguments);
    va_end(arguments);
    return SETTINGS_BAD;
}

/* ---- Numbers, hosts and addresses ---- */

bool settings_number(const char *text, int32_t min, int32_t max, int32_t *result) {
    bool negative = *text == '-';
    uint64_t size;
    if (parse_u64(text + negative, &size) != 0 || size > INT32_MAX) return false;
    int32_t number = negative ? -(int32_t)size : (int32_t)size;
    if (number < min || number > max) return false;
    *result = number;
    return true;
}

int settings_text(char *place, size_t room, const char *value, struct why *why) {
    if (strlen(value) >= room) return settings_bad(why, "longer than %zu bytes", room - 1);
    strcpy(place, value);
    return SETTINGS_SET;
}

/* Steps over a host: up to a colon, or in brackets because it has colons itself. */
static bool take_host(const char **at, char host[SETTINGS_HOST_MAX]) {
    bool brackets = **at == '[';
    const char *begin = *at + brackets, *end = begin;
    while (isalnum((unsigned char)*end) || (*end && strchr(brackets ? ".-_%:" : ".-_", *end)))
        end++;
    if (!brackets && end == begin && *end == '*') end++;
    size_t size = (size_t)(end - begin);
    if (!size || size >= SETTINGS_HOST_MAX || (brackets && *end != ']')) return false;
    memcpy(host, begin, size);
    host[size] = 0;
    *at = end + brackets;
    return true;
}

static bool take_port(const char **at, int32_t min, int32_t *port) {
    char digits[6];
    size_t size = strspn(*at, "0123456789");
    if (!size || size >= sizeof digits) return false;
    memcpy(digits, *at, size);
    digits[size] = 0;
    *at += size;
    return settings_number(digits, min, UINT16_MAX, port);
}

static bool take_word(const char **at, const char *word) {
    if (strncasecmp(*at, word, strlen(word)) != 0) return false;
    *at += strlen(word);
    return true;
}

static bool take_address(const char **at, int32_t port_min, struct settings_address *address) {
    return take_host(at, address->host) && take_word(at, ":") &&
           take_port(at, port_min, &address->port);
}

/* ---- What keys hold ---- */

/* host:port, and more of them behind commas. */
static int take_addresses(struct settings_addresses *result, const char *value, struct why *why) {
    struct settings_addresses addresses = {0};
    const char *at = value;
    do {
        at += strspn(at, " ");
        if (addresses.count == SETTINGS_LISTEN_MAX)
            return settings_bad(why, "more than %d addresses", SETTINGS_LISTEN_MAX);
        if (!take_address(&at, 0, &addresses.at[addresses.count++]))
            return settings_bad(
                why,
                "'%.60s' is not host:port, [address]:port or *:port, or several with commas "
                "between them",
                value);
        at += strspn(at, " ");
    } while (take_word(&at, ","));
    if (*at) return settings_bad(why, "'%.60s' has more than a port behind the host", value);
    *result = addresses;
    return SETTINGS_SET;
}

int settings_take_listen(struct settings *s, const char *of, const char *value, struct why *why) {
    if (strcmp(of, "http") != 0)
        return take_addresses(strcmp(of, "tls") == 0 ? &s->tls : &s->clients, value, why);
    bool off = strcmp(value, "off") == 0;
    if (off)
        s->http.count = 0;
    else if (take_addresses(&s->http, value, why) != SETTINGS_SET)
        return SETTINGS_BAD;
    s->written.http_off = off;
    return SETTINGS_SET;
}

int settings_host(char host[SETTINGS_HOST_MAX], const char *value, struct why *why) {
    char text[SETTINGS_HOST_MAX + 2];
    bool bare = strchr(value, ':') && *value != '[';
    const char *at = text;
    int size = snprintf(text, sizeof text, bare ? "[%s]" : "%s", *value ? value : "*");
    if ((size_t)size >= sizeof text || !take_host(&at, host) || *at)
        return settings_bad(why, "'%.60s' is not the name or address of a host", value);
    return SETTINGS_SET;
}

static bool take_server(const char *value, struct settings_member *member) {
    const char *at = value;
    if (!take_host(&at, member->host) || !take_word(&at, ":") ||
        !take_port(&at, 1, &member->peer_port) || !take_word(&at, ":") ||
        !take_port(&at, 1, &member->election_port))
        return false;
    if (take_word(&at, ":")) {
        member->observer = take_word(&at, "observer");
        if (!member->observer && !take_word(&at, "participant")) return false;
    }
    if (!take_word(&at, ";")) return *at == 0;
    strcpy(member->client.host, "*");
    bool alone = at[strspn(at, "0123456789")] == 0;
    return (alone ? take_port(&at, 1, &member->client.port)
                  : take_address(&at, 1, &member->client)) &&
           *at == 0;
}

static int add_member(struct settings *s, const struct settings_member *member, struct why *why) {
    struct settings_member *place = settings_member(s, member->id);
    if (!place && s->member_count == SETTINGS_MEMBERS_MAX)
        return settings_bad(why, "more than %d servers", SETTINGS_MEMBERS_MAX);
    if (!place) place = &s->members[s->member_count++];
    *place = *member;
    return SETTINGS_SET;
}

/* The short form of all server.N lines: one port serves elections and everything else. */
int settings_take_ensemble(struct settings *s, const char *of, const char *value, struct why *why) {
    const char *at = value;
    bool named[SETTINGS_ID_MAX + 1] = {false};
    (void)of;
    do {
        struct settings_member member = {0};
        at += strspn(at, " ");
        if (!take_port(&at, 1, &member.id) || member.id > SETTINGS_ID_MAX || !take_word(&at, "=") ||
            !take_host(&at, member.host) || !take_word(&at, ":") ||
            !take_port(&at, 1, &member.peer_port))
            return settings_bad(
                why, "'%.60s' is not 1=host:port,2=host:port,... with the servers' numbers", value);
        if (named[member.id])
            return settings_bad(why, "'%.60s' has server %d twice", value, member.id);
        named[member.id] = true;
        member.election_port = member.peer_port;
        if (take_word(&at, ":observer")) member.observer = true;
        if (add_member(s, &member, why) != SETTINGS_SET) return SETTINGS_BAD;
        at += strspn(at, " ");
    } while (take_word(&at, ","));
    if (*at) return settings_bad(why, "'%.60s' has more than a port behind a host", value);
    s->standalone = false; /* one that says where others find it wants to be found */
    return SETTINGS_SET;
}

int settings_take_reads(struct settings *s, const char *of, const char *value, struct why *why) {
    (void)of;
    s->linearizable = strcmp(value, "linearizable") == 0;
    if (s->linearizable || strcmp(value, "sequential") == 0) return SETTINGS_SET;
    return settings_bad(why, "'%.60s' is not sequential or linearizable", value);
}

int settings_take_member(struct settings *s, const char *of, const char *value, struct why *why) {
    struct settings_member member = {0};
    if (!settings_number(of, 0, SETTINGS_ID_MAX, &member.id))
        return settings_bad(why, "a server's number is from 0 to %d", SETTINGS_ID_MAX);
    if (!take_server(value, &member))
        return settings_bad(why,
                            "'%.60s' is not host:port:port[:participant or :observer]"
                            "[;[host:]client port], with one host",
                            value);
    return add_member(s, &member, why);
}

int settings_take_group(struct settings *s, const char *of, const char *value, struct why *why) {
    uint8_t group_of[sizeof s->group_of];
    int32_t group, id;
    if (!settings_number(of, 1, UINT8_MAX, &group))
        return settings_bad(why, "a group's number is from 1 to %d", UINT8_MAX);
    for (size_t i = 0; i < sizeof group_of; i++)
        group_of[i] = s->group_of[i] == group ? 0 : s->group_of[i];
    const char *at = value;
    do {
        if (!take_port(&at, 0, &id) || id > SETTINGS_ID_MAX)
            return settings_bad(why, "'%.60s' is not servers' numbers with colons between them",
                                value);
        if (group_of[id]) return settings_bad(why, "server %d is in a group already", id);
        group_of[id] = (uint8_t)group;
    } while (take_word(&at, ":"));
    if (*at)
        return settings_bad(why, "'%.60s' is not servers' numbers with colons between them", value);
    memcpy(s->group_of, group_of, sizeof group_of);
    return SETTINGS_SET;
}

int settings_take_weight(struct settings *s, const char *of, const char *value, struct why *why) {
    enum { WEIGHT_MAX = 1000000 };
    int32_t id;
    if (!settings_number(of, 0, SETTINGS_ID_MAX, &id))
        return settings_bad(why, "a server's number is from 0 to %d", SETTINGS_ID_MAX);
    if (!settings_number(value, 0, WEIGHT_MAX, &s->weight_of[id]))
        return settings_bad(why, "'%.60s' is not a whole number from 0 to %d", value, WEIGHT_MAX);
    return SETTINGS_SET;
}

/* Java's stores of keys: the PEM kind is a plain file, with the certificates and the key in one. */
static int take_store(const char *of, const char *value, char *authorities, char *certificate,
                      char *key, struct why *why) {
    static const char *const others[] = {".jks", ".p12", ".bcfks"};
    const char *dot = strrchr(value, '.');
    for (size_t i = 0; dot && i < sizeof others / sizeof others[0]; i++)
        if (strcasecmp(dot, others[i]) == 0)
            return settings_bad(
                why, "'%.60s' is not a PEM file; openssl pkcs12 or keytool can make one", value);
    if (strstr(of, "trustStore")) return settings_text(authorities, SETTINGS_PATH_MAX, value, why);
    if (settings_text(certificate, SETTINGS_PATH_MAX, value, why) != SETTINGS_SET)
        return SETTINGS_BAD;
    return settings_text(key, SETTINGS_PATH_MAX, value, why);
}

int settings_take_store(struct settings *s, const char *of, const char *value, struct why *why) {
    return take_store(of, value, s->tls_authorities, s->tls_certificate, s->tls_key, why);
}

int settings_take_peer_store(struct settings *s, const char *of, const char *value,
                             struct why *why) {
    return take_store(of, value, s->peer_authorities, s->peer_certificate, s->peer_key, why);
}

int settings_take_auth(struct settings *s, const char *of, const char *value, struct why *why) {
    static const char *const names[] = {[SETTINGS_AUTH_NONE] = "none",
                                        [SETTINGS_AUTH_WANT] = "want",
                                        [SETTINGS_AUTH_NEED] = "need"};
    (void)of;
    for (int i = SETTINGS_AUTH_NONE; i <= SETTINGS_AUTH_NEED; i++)
        if (strcasecmp(value, names[i]) == 0)
            return s->client_auth = (enum settings_client_auth)i, SETTINGS_SET;
    return settings_bad(why, "'%.60s' is not need, want or none", value);
}

int settings_take_metrics(struct settings *s, const char *of, const char *value, struct why *why) {
    (void)of, (void)why;
    s->written.metrics_on = strstr(value, "Prometheus") != NULL;
    return SETTINGS_SET;
}
