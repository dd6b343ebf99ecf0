/* What the files of this folder share: reading values that are more than a number or a word. */
#ifndef CV_SERVICE_SETTINGS_INTERNAL_H
#define CV_SERVICE_SETTINGS_INTERNAL_H

#include "service/settings/settings.h"

/* Room for a message that says why a value is refused. */
struct settings_error {
    char *text;
    size_t size;
};

/* Writes the message, and returns SETTINGS_BAD. */
__attribute__((format(printf, 2, 3))) int settings_refuse(struct settings_error *error,
                                                          const char *format, ...);

/* A whole number from min to max. */
bool settings_number(const char *text, int32_t min, int32_t max, int32_t *result);

/* A text that fits; the message does not repeat it, as it may be a secret. */
int settings_text(char *to, size_t room, const char *value, struct settings_error *error);

/* A host whose port is set by another key; an empty value means all addresses. */
int settings_host(char host[SETTINGS_HOST_MAX], const char *value, struct settings_error *error);

bool settings_has_control(const char *value);

/* ---- Scanners: each steps over what it reads, or returns false ---- */

/* A host ends at a colon, or is in brackets because it has colons itself. */
bool scan_host(const char **at, char host[SETTINGS_HOST_MAX]);
/* A decimal number of at most five digits, from min to 65535: a port or an id. */
bool scan_number(const char **at, int32_t min, int32_t *number);
bool scan_word(const char **at, const char *word);
bool scan_address(const char **at, int32_t port_min, struct settings_address *address);

/* ---- Members: the value of one key, of which `id` or `group` follows the dot ---- */

int member_list_set_server(struct member_list *list, const char *id, const char *value,
                           struct settings_error *error);
int member_list_set_group(struct member_list *list, const char *group, const char *value,
                          struct settings_error *error);
int member_list_set_weight(struct member_list *list, const char *id, const char *value,
                           struct settings_error *error);
int member_list_set_short(struct member_list *list, const char *value,
                          struct settings_error *error);
/* Whether groups and weights name members only, and groups all voters if there are any. */
int member_list_check_groups(const struct member_list *list, struct settings_error *error);

/* ---- Parsers of a key's value ---- */

/* `suffix` is what follows the first dot of the key.  Returns SETTINGS_SET or SETTINGS_IGNORED, or
 * SETTINGS_BAD and leaves the settings as they were. */
typedef int settings_parser(struct settings *settings, const char *suffix, const char *value,
                            struct settings_error *error);

settings_parser settings_parse_listen;     /* host:port,host:port */
settings_parser settings_parse_server;     /* server.N */
settings_parser settings_parse_group;      /* group.N */
settings_parser settings_parse_weight;     /* weight.N */
settings_parser settings_parse_ensemble;   /* 1=host:port,2=host:port */
settings_parser settings_parse_reads;      /* sequential, linearizable */
settings_parser settings_parse_store;      /* Java's key stores, of the PEM type */
settings_parser settings_parse_peer_store; /* the same, for the links between servers */
settings_parser settings_parse_auth;       /* need, want, none */
settings_parser settings_parse_log_level;  /* error, warning, info, debug */
settings_parser settings_parse_log_format; /* text, json */
settings_parser settings_parse_metrics;    /* a class: only Prometheus' needs a port */

/* ---- Keys of ZooKeeper that mean nothing here ---- */

/* Why it has no effect; NULL: it is none of these. */
const char *zookeeper_key_reason(const char *key);
void zookeeper_keys_list(settings_lister *each, void *context);

#endif
