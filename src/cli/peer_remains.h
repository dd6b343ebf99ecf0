/* What the commands of a participant have left behind when that has ended.
 *
 * A participant shares a locked file of its data with each command that it lets in, and with
 * whatever that starts.  If the participant is killed, the next one does not take part before these
 * are gone: to the others they are inside.  Another file is locked by the participant alone, before
 * it looks at the first: so there is one at most that waits. */
#ifndef CV_CLI_PEER_REMAINS_H
#define CV_CLI_PEER_REMAINS_H

#include "peer/peer.h"

struct peer_remains {
    int running; /* the file that the participant has alone */
    int shared;  /* the one for its commands */
};

enum { REMAINS_LOOK_MS = 100 };
#define REMAINS_WAIT                                                                               \
    "this participant waits until nothing is left of the commands that were inside when the one "  \
    "before it ended"

/* 0; -1: why not is in `error`, for example that another participant runs with that data. */
int peer_remains_open(struct peer_remains *remains, const char *data, char error[PEER_ERROR_MAX]);
/* 1: nothing is left of the commands of earlier participants, and only now this one may take part;
 * 0: something is, and who looks is not told when that changes; -1: that cannot be known, see errno
 * (a file system without locks, for example). */
int peer_remains_are_gone(const struct peer_remains *remains);
void peer_remains_close(struct peer_remains *remains);

#endif
