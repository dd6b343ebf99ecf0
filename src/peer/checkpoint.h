/* Where a process is that has ended in order: its state, and its channels with what others have not
 * acknowledged.  One that goes on from there is the same incarnation: to the others it was away, as
 * behind a network that was cut.
 *
 * A checkpoint counts only if the durable file says so, with the same sequence number: that is
 * written after it, and again before the process does anything else. */
#ifndef CV_PEER_CHECKPOINT_H
#define CV_PEER_CHECKPOINT_H

#include "peer/internal.h"

/* 0 or an errno. */
int checkpoint_write(struct peer *peer);
/* False: there is none that is whole, and nothing was changed. */
bool checkpoint_read(struct peer *peer);
/* It does not count any more, even if what says so should get lost. */
void checkpoint_remove(const struct peer *peer);

#endif
