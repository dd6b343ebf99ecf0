/* conclave trace, of records of servers. */
#ifndef CV_CLI_TRACE_SERVERS_H
#define CV_CLI_TRACE_SERVERS_H

#include <stdbool.h>

#include "lab/sim/trace.h"

struct trace_servers {
    char **paths;
    int count;
    bool replay; /* each by itself, and not judged */
    bool json, picture, force;
    enum trace_format format; /* of the picture */
    uint64_t page;
    const char *output; /* NULL: standard output */
};

/* Whether a file is a record of a server. */
bool trace_is_of_server(const char *path);
/* Replays the records, and judges them.  Returns the exit status. */
int trace_servers(const struct trace_servers *request);

#endif
