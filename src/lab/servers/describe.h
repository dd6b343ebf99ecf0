/* The consensus core described as algorithms are, for the trace of a run of servers. */
#ifndef CV_LAB_SERVERS_DESCRIBE_H
#define CV_LAB_SERVERS_DESCRIBE_H

#include "process/roster.h"
#include "raft/raft.h"

struct server_state { /* what a reader sees of it */
    uint64_t role;    /* enum raft_role */
    uint64_t term, commit_index, last_index;
};

enum { MESSAGE_FIELDS_MAX = 16, MESSAGE_NAME_MAX = 40 };

struct servers_description {
    struct cv_record state, messages[RAFT_MESSAGE_TYPES];
    char name[RAFT_MESSAGE_TYPES][MESSAGE_NAME_MAX];
    struct cv_field fields[RAFT_MESSAGE_TYPES][MESSAGE_FIELDS_MAX];
    struct cv_algorithm algorithm; /* messages are by enum raft_message_type; a body is whole */
};

void servers_describe(struct servers_description *description);

#endif
