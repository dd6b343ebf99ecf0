#include "wire/net/flow.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

bool flow_of(int socket, struct net_flow *flow) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    int queued = 0;
    memset(&info, 0, sizeof info);
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_delivery_rate) + sizeof info.tcpi_delivery_rate ||
        ioctl(socket, SIOCOUTQ, &queued) != 0)
        return false;
    *flow = (struct net_flow){.acknowledged = info.tcpi_bytes_acked,
                              .queued = queued > 0 ? (uint64_t)queued : 0,
                              .bytes_per_s = info.tcpi_delivery_rate,
                              .round_trip_us = info.tcpi_min_rtt};
    return true;
}
