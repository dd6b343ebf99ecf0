/* What servers have recorded of their consensus, joined by their messages to one run, as a trace:
 * text, mermaid, JSON or a picture, as of peers.
 *
 * A message is sent before it arrives, and each server does one thing after the other.  Steps have
 * no time in a record, so a moment of the trace is a place in an order that the messages allow: a
 * server that was started later begins as late as they do. */
#ifndef CV_LAB_SERVERS_PICTURE_H
#define CV_LAB_SERVERS_PICTURE_H

#include "lab/sim/trace.h"
#include "service/steps/record.h"

struct servers_picture; /* of some records */

struct servers_picture *servers_picture_open(void);
/* A server is at a checkpoint; its steps follow. */
void servers_picture_begin(struct servers_picture *picture, const struct checkpoint *checkpoint);
/* A step was taken, and this is what came of it: the messages that a server has sent are in no
 * record.  False: so many messages are too many. */
bool servers_picture_step(struct servers_picture *picture, const struct raft *raft,
                          const struct step *step, const struct raft_out *out, uint64_t result);
/* When all records are replayed.  `violated` is what the judges say, a line each. */
void servers_picture_write(struct servers_picture *picture, const char *violated,
                           enum trace_format format, uint64_t page, FILE *out);
/* When it is written: messages that arrived, and that no record has sent. */
uint64_t servers_picture_unsent(const struct servers_picture *picture);
void servers_picture_close(struct servers_picture *picture);

#endif
