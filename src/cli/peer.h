/* What `conclave peer` was asked for, and its run. */
#ifndef CV_CLI_PEER_H
#define CV_CLI_PEER_H

#include "cli/run.h"
#include "peer/setup.h"

enum peer_action { PEER_LOCK = 1, PEER_ELECT, PEER_SERVE, PEER_INTERACTIVE };

struct peer_request {
    struct run run; /* of a command; the rest of it is for clients of servers */
    int action;
    struct peer_setup setup;
    bool stay;
    uint64_t times;
    const char *on_leader, *on_follower;

    struct peer_thread *thread;
    bool interrupted; /* by a signal, or left alone, while no command ran */
};

/* Returns the exit code. */
int peer_run(struct peer_request *request);
int peer_interact(struct peer_request *request);
int peer_up(int argc, char **argv); /* conclave peer up */

#endif
