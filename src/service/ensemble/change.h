/* What the files of membership changes share. */
#ifndef CV_SERVICE_ENSEMBLE_CHANGE_H
#define CV_SERVICE_ENSEMBLE_CHANGE_H

#include "service/ensemble/internal.h"

struct plan { /* what a change is worked out with; all zero at first */
    struct member_list target, now;
    struct raft_config target_config, config;
    struct bytes text;
    uint64_t round, since_us; /* who responded to it, and was heard since then, is counted on */
    bool needs_newcomers;     /* a server without a vote is counted on only if it is reachable */
    bool counts_on_voters;    /* those with a vote are, whoever was heard */
    char why[CHANGE_REASON_MAX];
};

static inline struct zk_text change_text(const struct bytes *text) {
    return (struct zk_text){(const char *)text->at, (int32_t)text->used};
}

/* A request of this server's own; `reason` says why a change is given up. */
void change_propose(struct ensemble *ensemble, const struct zk_reconfig_request *request,
                    const char *reason);
/* Whether some step from here to the target has no quorum; `why` says which members are missing. */
bool change_is_blocked(const struct ensemble *ensemble, struct plan *plan);
/* Whether the target brings an address that links may not use; `why` has the reason. */
bool change_has_unusable_address(const struct ensemble *ensemble, struct plan *plan);

struct spelling { /* the texts of a request, written anew; all zero at first */
    struct bytes joining, leaving, members;
};

/* Writes a client's request as the tree takes it.  Returns ZooKeeper's error where it cannot be
 * read: BADARGUMENTS or MARSHALLINGERROR. */
int32_t change_respell(struct zk_reconfig_request *request, struct spelling *text);
void change_close_spelling(struct spelling *text);

#endif
