#include "service/settings/internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"

int settings_refuse(struct settings_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, error->size, format, arguments);
    va_end(arguments);
    return SETTINGS_BAD;
}

/* ---- Numbers, hosts and addresses ---- */

bool settings_has_control(const char *value) {
    for (; *value; value++)
        if (iscntrl((unsigned char)*value)) return true;
    return false;
}

bool settings_number(const char *text, int32_t min, int32_t max, int32_t *result) {
    bool negative = *text == '-';
    uint64_t size;
    if (parse_u64(text + negative, &size) != 0 || size > INT32_MAX) return false;
    int32_t number = negative ? -(int32_t)size : (int32_t)size;
    if (number < min || number > max) return false;
    *result = number;
    return true;
}

int settings_text(char *to, size_t room, const char *value, struct settings_error *error) {
    if (strlen(value) >= room)
        return settings_refuse(error, "longer than the allowed %zu bytes", room - 1);
    strcpy(to, value);
    return SETTINGS_SET;
}

bool scan_host(const char **at, char host[SETTINGS_HOST_MAX]) {
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

bool scan_number(const char **at, int32_t min, int32_t *number) {
    char digits[6];
    size_t size = strspn(*at, "0123456789");
    if (!size || size >= sizeof digits) return false;
    memcpy(digits, *at, size);
    digits[size] = 0;
    *at += size;
    return settings_number(digits, min, UINT16_MAX, number);
}

bool scan_word(const char **at, const char *word) {
    if (strncasecmp(*at, word, strlen(word)) != 0) return false;
    *at += strlen(word);
    return true;
}

bool scan_address(const char **at, int32_t port_min, struct settings_address *address) {
    return scan_host(at, address->host) && scan_word(at, ":") &&
           scan_number(at, port_min, &address->port);
}

/* ---- Values of keys ---- */

static int parse_addresses(struct settings_addresses *result, const char *value,
                           struct settings_error *error) {
    struct settings_addresses addresses = {0};
    const char *at = value;
    do {
        at += strspn(at, " ");
        if (addresses.count == SETTINGS_LISTEN_MAX)
            return settings_refuse(error, "more than the allowed %d addresses",
                                   SETTINGS_LISTEN_MAX);
        if (!scan_address(&at, 0, &addresses.at[addresses.count++]))
            return settings_refuse(
                error,
                "'%.60s' is not host:port, [address]:port or *:port, or several with commas "
                "between them",
                value);
        at += strspn(at, " ");
    } while (scan_word(&at, ","));
    if (*at)
        return settings_refuse(error, "'%.60s' has something other than a comma after a port",
                               value);
    *result = addresses;
    return SETTINGS_SET;
}

int settings_parse_listen(struct settings *s, const char *suffix, const char *value,
                          struct settings_error *error) {
    if (strcmp(suffix, "http") != 0)
        return parse_addresses(strcmp(suffix, "tls") == 0 ? &s->tls : &s->clients, value, error);
    bool off = strcmp(value, "off") == 0;
    if (off)
        s->http.count = 0;
    else if (parse_addresses(&s->http, value, error) != SETTINGS_SET)
        return SETTINGS_BAD;
    s->written.http_off = off;
    return SETTINGS_SET;
}

int settings_host(char host[SETTINGS_HOST_MAX], const char *value, struct settings_error *error) {
    char text[SETTINGS_HOST_MAX + 2];
    bool bare = strchr(value, ':') && *value != '[';
    const char *at = text;
    int size = snprintf(text, sizeof text, bare ? "[%s]" : "%s", *value ? value : "*");
    if ((size_t)size >= sizeof text || !scan_host(&at, host) || *at)
        return settings_refuse(error, "'%.60s' is not the name or address of a host", value);
    return SETTINGS_SET;
}

int settings_parse_ensemble(struct settings *s, const char *suffix, const char *value,
                            struct settings_error *error) {
    (void)suffix;
    if (member_list_set_short(&s->members, value, error) != SETTINGS_SET) return SETTINGS_BAD;
    s->standalone = false; /* a server that says where others find it wants to be found */
    return SETTINGS_SET;
}

int settings_parse_reads(struct settings *s, const char *suffix, const char *value,
                         struct settings_error *error) {
    (void)suffix;
    s->linearizable = strcmp(value, "linearizable") == 0;
    if (s->linearizable || strcmp(value, "sequential") == 0) return SETTINGS_SET;
    return settings_refuse(error, "'%.60s' is not sequential or linearizable", value);
}

int settings_parse_server(struct settings *s, const char *suffix, const char *value,
                          struct settings_error *error) {
    return member_list_set_server(&s->members, suffix, value, error);
}

int settings_parse_group(struct settings *s, const char *suffix, const char *value,
                         struct settings_error *error) {
    return member_list_set_group(&s->members, suffix, value, error);
}

int settings_parse_weight(struct settings *s, const char *suffix, const char *value,
                          struct settings_error *error) {
    return member_list_set_weight(&s->members, suffix, value, error);
}

/* Java's key stores: the PEM type is a plain file, with the certificates and the key in one. */
static int parse_store(const char *suffix, const char *value, char *authorities, char *certificate,
                       char *key, struct settings_error *error) {
    static const char *const others[] = {".jks", ".p12", ".bcfks"};
    const char *dot = strrchr(value, '.');
    for (size_t i = 0; dot && i < sizeof others / sizeof others[0]; i++)
        if (strcasecmp(dot, others[i]) == 0)
            return settings_refuse(
                error, "'%.60s' is not a PEM file; openssl pkcs12 or keytool can make one", value);
    if (strstr(suffix, "trustStore"))
        return settings_text(authorities, SETTINGS_PATH_MAX, value, error);
    if (settings_text(certificate, SETTINGS_PATH_MAX, value, error) != SETTINGS_SET)
        return SETTINGS_BAD;
    return settings_text(key, SETTINGS_PATH_MAX, value, error);
}

int settings_parse_store(struct settings *s, const char *suffix, const char *value,
                         struct settings_error *error) {
    return parse_store(suffix, value, s->tls_authorities, s->tls_certificate, s->tls_key, error);
}

int settings_parse_peer_store(struct settings *s, const char *suffix, const char *value,
                              struct settings_error *error) {
    return parse_store(suffix, value, s->peer_authorities, s->peer_certificate, s->peer_key, error);
}

int settings_parse_auth(struct settings *s, const char *suffix, const char *value,
                        struct settings_error *error) {
    static const char *const names[] = {[SETTINGS_AUTH_NONE] = "none",
                                        [SETTINGS_AUTH_WANT] = "want",
                                        [SETTINGS_AUTH_NEED] = "need"};
    (void)suffix;
    for (int i = SETTINGS_AUTH_NONE; i <= SETTINGS_AUTH_NEED; i++)
        if (strcasecmp(value, names[i]) == 0)
            return s->client_auth = (enum settings_client_auth)i, SETTINGS_SET;
    return settings_refuse(error, "'%.60s' is not need, want or none", value);
}

int settings_parse_metrics(struct settings *s, const char *suffix, const char *value,
                           struct settings_error *error) {
    (void)suffix;
    s->written.metrics_on = strstr(value, "Prometheus") != NULL;
    if (s->written.metrics_on || !*value || strstr(value, "NullMetricsProvider") ||
        strstr(value, "DefaultMetricsProvider"))
        return SETTINGS_SET;
    settings_refuse(error,
                    "ignored: '%.60s' is not known here; PrometheusMetricsProvider turns the port "
                    "for metrics on",
                    value);
    return SETTINGS_IGNORED;
}

int settings_parse_log_level(struct settings *s, const char *suffix, const char *value,
                             struct settings_error *error) {
    (void)suffix;
    if (logger_parse_level(value, &s->log_level)) return SETTINGS_SET;
    return settings_refuse(error, "'%.60s' is not error, warning, info or debug", value);
}

int settings_parse_log_format(struct settings *s, const char *suffix, const char *value,
                              struct settings_error *error) {
    (void)suffix;
    if (logger_parse_format(value, &s->log_format)) return SETTINGS_SET;
    return settings_refuse(error, "'%.60s' is not text or json", value);
}
