/* What a server says of its ensemble: GET /ensemble. */
#ifndef CV_CLI_ENSEMBLE_H
#define CV_CLI_ENSEMBLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { ENSEMBLE_MEMBERS_MAX = 32, ENSEMBLE_HOST_MAX = 256 };

struct ensemble_member {
    int id, weight, port;
    char host[ENSEMBLE_HOST_MAX];
    bool linked;
    bool learns;  /* is to have a vote, and has not got all yet */
    bool has_log; /* a leader knows that of the others */
    uint64_t log;
    char sending[16];
};

struct ensemble {
    int server, leader, heir; /* 0: nobody */
    char mode[16], role[16];
    uint64_t term, last, committed, applied, clients, sessions, requests;
    bool changing, dismissed;
    int count;
    struct ensemble_member member[ENSEMBLE_MEMBERS_MAX];
};

/* False: that is something else. */
bool ensemble_read(const json_t *json, struct ensemble *ensemble);
bool ensemble_parse(const char *text, struct ensemble *ensemble);
/* NULL: not a member. */
const struct ensemble_member *ensemble_member(const struct ensemble *ensemble, int id);

#endif
