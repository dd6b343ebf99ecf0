/* A candidate of an election, and its steps. */
#ifndef CV_CLIENT_RECIPE_ELECTION_H
#define CV_CLIENT_RECIPE_ELECTION_H

#include "client/recipe/follow.h"
#include "client/recipe/recipe.h"
#include "recipe/election.h"

enum election_phase {
    OUT,
    JOINING,  /* creating the candidate's node; the list comes after it */
    LOOKING,  /* listing */
    PLACED,   /* following somebody */
    CLAIMING, /* creating the leader's node */
    LEADS,
    LEAVING,
};

enum { AHEAD, LEADER, OWN_LEADERSHIP, OWN_CANDIDACY }; /* whom it follows */

struct cv_election {
    struct cv_client *client;
    char *path, *leader; /* the paths of the election, and of the leader's node */
    char guid[GUID_SIZE + 1];
    int32_t priority, margin;
    bool stable;
    cv_election_fn *on_change;
    void *arg;

    enum election_phase phase;
    enum cv_candidate_state state;
    int error;
    bool unsure;  /* whether a create took effect */
    bool leaving; /* as soon as it is known what there is to delete */
    char *node;   /* the candidate's */
    int64_t token;
    struct note note;
    bool leaves_lead; /* the deletion under way is that of a leader */

    struct followers followers;
    struct client_timer lease, sweep_again;
    struct client_listener listener;
    struct client_task notify, end;
    bool notify_posted, notifying, closing;
    uint32_t references;
};

/* All of these with the client's lock. */
void election_init(struct cv_election *e);
void election_join(struct cv_election *e);
void election_leave(struct cv_election *e);
void election_check_lease(struct cv_election *e);
void election_set_state(struct cv_election *e, enum cv_candidate_state state);
bool election_is_leader(const struct cv_election *e);
int64_t election_lease_end(struct cv_election *e);
void election_unreference(struct cv_election *e);
void election_free(struct cv_election *e);

#endif
