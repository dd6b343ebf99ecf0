/* The secret that servers share, from a file. */
#ifndef CV_NET_TLS_KEY_H
#define CV_NET_TLS_KEY_H

#include "net/tls.h"

enum { TLS_KEY_SIZE = 32 };

/* False: it has said why. */
bool tls_key_read(const char *path, unsigned char secret[TLS_KEY_SIZE], tls_say *say);

#endif
