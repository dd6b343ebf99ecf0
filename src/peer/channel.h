/* Channels between processes: reliable and first in, first out across reconnects, and broken with a
 * crash, as docs/decisions/0003 has it.
 *
 * A channel is one direction's sequence numbers, kept at both ends: messages are numbered from 1
 * for each pair of incarnations, kept until they are acknowledged, and sent again on the next link.
 * A receiver that has restarted has another incarnation: what was sent to the one before is
 * dropped.
 *
 * Nothing here does I/O: peer/channels.c gives it to links. */
#ifndef CV_PEER_CHANNEL_H
#define CV_PEER_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct channel {
    uint64_t incarnation; /* of the other end; 0: not heard of yet */
    /* Out: */
    uint64_t last;  /* number of the newest message */
    uint64_t given; /* to the current link, up to this number */
    uint64_t sent;  /* the highest that any link was given */
    uint64_t acknowledged;
    struct bytes kept; /* those after `acknowledged`, each after its size */
    size_t begin;      /* of the first of them in `kept` */
    size_t next;       /* of the first that was not given */
    /* In: */
    uint64_t received;
    uint64_t reported; /* the other end knows that it was received */
};

enum channel_arrival { CHANNEL_NEW, CHANNEL_DUPLICATE, CHANNEL_WRONG };

/* Begins a message of `size` bytes, which the caller writes to what is returned. */
unsigned char *channel_push(struct channel *channel, uint32_t size);
/* The next message for the current link, its number and its size; NULL: there is none.  None is
 * given before the other end is known. */
const unsigned char *channel_next(struct channel *channel, uint64_t *number, uint32_t *size);
/* Whether there is one. */
bool channel_waits(const struct channel *channel);
/* A new link is up: all that is not acknowledged goes over it again. */
void channel_rewind(struct channel *channel);
/* The other end has received all messages up to this one.  False: that was never sent. */
bool channel_acknowledge(struct channel *channel, uint64_t number);
enum channel_arrival channel_arrived(struct channel *channel, uint64_t number);
/* The other end is that incarnation.  True: it is another one than before, which has crashed; what
 * was sent to that one is dropped, and numbers begin anew. */
bool channel_meet(struct channel *channel, uint64_t incarnation);
/* Drops all that is kept: nothing more is sent to this incarnation. */
void channel_give_up(struct channel *channel);
/* What a process that is suspended keeps of it, and back.  False: the bytes make no sense; those
 * that were read are taken off. */
void channel_write(const struct channel *channel, struct bytes *to);
bool channel_read(struct channel *channel, const unsigned char **at, size_t *left);
/* Bytes that are kept. */
size_t channel_backlog(const struct channel *channel);
void channel_free(struct channel *channel);

#endif
