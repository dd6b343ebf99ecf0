/* What the system knows of the sending half of a connection.  Apart from stream.h, because the
 * headers of the kernel and of the C library describe the same in different ways. */
#ifndef CV_WIRE_NET_FLOW_H
#define CV_WIRE_NET_FLOW_H

#include <stdbool.h>
#include <stdint.h>

struct net_flow {
    uint64_t acknowledged;  /* bytes, since it was opened */
    uint64_t queued;        /* bytes that the system has taken and that are not acknowledged,
                               also those for which the other end has no room */
    uint64_t bytes_per_s;   /* that were lately acknowledged; 0: not known */
    uint64_t round_trip_us; /* the shortest */
};

/* False: it does not tell. */
bool flow_of(int socket, struct net_flow *flow);

#endif
