/* The pre-shared key of the servers, derived from a file. */
#ifndef CV_WIRE_NET_TLS_KEY_H
#define CV_WIRE_NET_TLS_KEY_H

#include "wire/net/tls.h"

enum { TLS_KEY_SIZE = 32 };

/* False: it has logged why. */
bool tls_key_read(const char *path, unsigned char secret[TLS_KEY_SIZE]);

#endif
