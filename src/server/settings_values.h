/* Inside settings: values that are more than a number or a word. */
#ifndef CV_SERVER_SETTINGS_VALUES_H
#define CV_SERVER_SETTINGS_VALUES_H

#include "server/settings.h"

/* Where it is said what is wrong. */
struct why {
    char *at;
    size_t size;
};

/* Says it, and returns SETTINGS_BAD. */
__attribute__((format(printf, 2, 3))) int settings_bad(struct why *why, const char *format, ...);

/* A whole number, within both. */
bool settings_number(const char *text, int32_t min, int32_t max, int32_t *result);

/* A text that fits; it is not repeated in what is said about it, as it may be a secret. */
int settings_text(char *place, size_t room, const char *value, struct why *why);

/* A host by itself, of a port that comes on another line; nothing means all addresses. */
int settings_host(char host[SETTINGS_HOST_MAX], const char *value, struct why *why);

/* Each takes the value of its key, of which `of` is what follows the first dot.  Returns
 * SETTINGS_SET, or SETTINGS_BAD and leaves the settings alone. */
typedef int settings_take(struct settings *settings, const char *of, const char *value,
                          struct why *why);

settings_take settings_take_listen;     /* host:port, and more of them behind commas */
settings_take settings_take_member;     /* server.N */
settings_take settings_take_ensemble;   /* 1=host:port,2=host:port */
settings_take settings_take_reads;      /* sequential, linearizable */
settings_take settings_take_peer_store; /* as take_store, for the links between servers */
settings_take settings_take_group;      /* group.N=1:2:3 */
settings_take settings_take_weight;     /* weight.N */
settings_take settings_take_store;      /* Java's stores of keys, of the PEM kind */
settings_take settings_take_auth;       /* need, want, none */
settings_take settings_take_metrics;    /* a class: does it want a port? */

#endif
