/* The status of an ensemble, as a server reports it: GET /ensemble. */
#ifndef CV_CLI_ENSEMBLE_H
#define CV_CLI_ENSEMBLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/member_id.h"

enum { ENSEMBLE_MEMBERS_MAX = 32, ENSEMBLE_HOST_MAX = 256 };

struct ensemble_view_member {
    int id, weight, port;
    char host[ENSEMBLE_HOST_MAX];
    bool linked;
    char link_problem[512]; /* empty: none that the server knows of */
    bool is_learner;        /* it will have a vote when it has caught up */
    bool has_match_index;   /* only a leader knows those of others */
    uint64_t match_index;
    char sending[16];
    bool vote_withheld; /* as a leader knows it */
};

struct ensemble_view {
    int server, leader, transferee, mended_by, founded_by; /* 0: nobody */
    char mode[16], role[16];
    uint64_t term, last, committed, applied, clients, sessions, requests;
    bool changing, removed, vote_withheld;
    bool mending; /* its files are damaged, and the others mend them */
    uint64_t entries_lost, first_lost, last_lost, entries_mended, snapshot;
    char damage[512];
    char awaited[128]; /* voters for which the founding of the ensemble waits */
    uint64_t changes_refused;
    char refusal[512]; /* why the last of them was */
    int count;
    struct ensemble_view_member member[ENSEMBLE_MEMBERS_MAX];
};

/* False: this is not such a status. */
bool ensemble_view_read(const json_t *json, struct ensemble_view *ensemble);
bool ensemble_view_parse(const char *text, struct ensemble_view *ensemble);
/* NULL: not a member. */
const struct ensemble_view_member *ensemble_view_member(const struct ensemble_view *ensemble,
                                                        int id);

#endif
