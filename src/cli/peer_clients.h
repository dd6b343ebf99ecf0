/* The commands that a participant serves through its socket: they stand in a queue for the lock,
 * and hear who leads. */
#ifndef CV_CLI_PEER_CLIENTS_H
#define CV_CLI_PEER_CLIENTS_H

#include <poll.h>
#include <sys/stat.h>

#include "cli/peer.h"

enum { CLIENTS_MAX = 1000 };

struct client {
    int socket;
    uint64_t place;       /* in the queue; 0: it does not want the lock */
    bool watches, behind; /* the state; it has not got the latest */
    bool runs;            /* a command while the participant leads */
    bool parted;          /* nothing is told to it and taken from it any more */
    char line[16];
    size_t used;
};

struct clients {
    const struct peer_setup *setup;
    struct peer_thread *thread;
    int listener;
    const char *path; /* of its socket */
    struct stat place;
    int shared; /* a file that those inside have open as well, see cli/peer_remains.h */
    struct client client[CLIENTS_MAX];
    unsigned count;
    uint64_t places; /* that were given */
    /* Of the process; LEAVING: it has not told yet that it has left. */
    enum { OUTSIDE, ASKED, INSIDE, LEAVING } phase;
    uint64_t holder;     /* its place; 0: nobody */
    struct cv_tell role; /* in an election: what was told last */
    char *state;         /* that was told last to those who watch; NULL: none */
    bool ending;
    bool pausing; /* nobody could be accepted: that is tried again later */
};

/* Fills in what is waited for, and returns how many; room is for one more than CLIENTS_MAX. */
unsigned clients_poll(const struct clients *clients, struct pollfd *files);
/* How many want the lock, who holds it included. */
unsigned clients_queue(const struct clients *clients);
/* Whether somebody watches the state of the participant. */
bool clients_watch(const struct clients *clients);
/* Whether somebody may have a command that runs while the participant leads. */
bool clients_run(const struct clients *clients);
/* What has come of that. */
void clients_serve(struct clients *clients, const struct pollfd *files, unsigned count);
/* The algorithm has told something. */
void clients_told(struct clients *clients, const struct cv_tell *tell);
/* The state now, as JSON in a line that ends; for those who watch, if it is not what they know. */
void clients_show(struct clients *clients, const char *state);
/* No others come, and those who are there are asked to end. */
void clients_end(struct clients *clients);
void clients_close(struct clients *clients);

#endif
