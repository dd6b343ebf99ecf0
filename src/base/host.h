/* The host that a request over HTTP names.
 *
 * It is compared because of DNS rebinding: a browser that has loaded a page of a stranger, whose
 * name the stranger then lets point here, names that host in its requests.  An address cannot be
 * used so, because the browser would have to have connected to it as such, nor can localhost, which
 * no stranger can let point anywhere. */
#ifndef CV_BASE_HOST_H
#define CV_BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>

enum { HOST_NAME_SIZE = 256 }; /* with the byte 0 at its end */

/* NAME, NAME:PORT, [ADDRESS] or [ADDRESS]:PORT, without the port, the brackets, and the dot at the
 * end of a full name.  False: it is none of these. */
bool host_read(const char *text, size_t size, char name[HOST_NAME_SIZE]);
/* Of a name that was read: an address of IPv4 or IPv6. */
bool host_is_address(const char *name);
/* localhost, what is below it, and ip6-localhost. */
bool host_is_localhost(const char *name);

#endif
