/* A group of peers: who they are, where they are, and which algorithm they run.
 *
 * peers.conf has a line for each process, in the order of the ring.  A network that is neither
 * complete nor a ring has its edges there as well, or in lines of their own:
 *
 *     # pid  address        what else is known of it
 *     1      10.0.0.1:7101  edges=2
 *     2      10.0.0.2:7101  id=17 weight=3
 *     3      10.0.0.3:7101
 *     edges 2-3
 *
 * Pids are 1, 2, 3, ...; servers (a coordinator) come first, as in the laboratory. */
#ifndef CV_PEER_GROUP_H
#define CV_PEER_GROUP_H

#include "base/bytes.h"
#include "process/process.h"

enum { GROUP_PROCESSES_MAX = 1000, GROUP_HOST_MAX = 256, GROUP_ERROR_MAX = 512 };

struct group_member {
    char host[GROUP_HOST_MAX];
    int32_t port;
};

struct group {
    const struct cv_algorithm *algorithm;
    uint64_t option[CV_OPTIONS_MAX];
    uint32_t processes, servers;
    struct group_member *member; /* by pid */
    uint64_t *ids, *weights;     /* by pid */
    cv_pid *neighbour;           /* those of each process, one list after the other; NULL: all */
    uint32_t *first;             /* by pid: where its list begins; one more at the end */
    cv_pid (*edges)[2];          /* as given */
    uint32_t edge_count;
    uint64_t identity; /* a hash of all of it: processes of other groups are refused */
};

/* With the options at their defaults, where times are those for a network.  Set those that were
 * given, and then read the file. */
void group_init(struct group *group, const struct cv_algorithm *algorithm);
/* 0, or -1 and a sentence in `error`.  A text is read as a file would be. */
int group_read(struct group *group, const char *path, char error[GROUP_ERROR_MAX]);
int group_parse(struct group *group, const char *name, char *text, char error[GROUP_ERROR_MAX]);
/* Appends the text that group_parse reads. */
void group_write(const struct group *group, struct bytes *to);
/* What a process knows of its group. */
struct cv_env group_env(const struct group *group, cv_pid self);
/* Whether `from` may send messages to `to`: on a graph only to neighbours.  A ring is a logical
 * one, on which a failed process can be left out. */
bool group_reaches(const struct group *group, cv_pid from, cv_pid to);
void group_free(struct group *group);

#endif
