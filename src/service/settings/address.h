/* A host and a port, as settings and members name them. */
#ifndef CV_SERVICE_SETTINGS_ADDRESS_H
#define CV_SERVICE_SETTINGS_ADDRESS_H

#include <stdint.h>

enum { SETTINGS_HOST_MAX = 256 };

struct settings_address {
    char host[SETTINGS_HOST_MAX]; /* a name or an address without brackets; "*": all addresses */
    int32_t port;                 /* 0: any free one */
};

#endif
