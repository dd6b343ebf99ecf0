/* What an operator sees of a server, and how an operator asks: four-letter words on the clients'
 * ports, metrics and JSON over HTTP.
 *
 *   report.c   what is reported, each thing described once
 *   metrics.c  figures, as text, JSON and Prometheus metrics
 *   words.c    four-letter words
 *   listing.c  reports that list much, in steps
 *   json.c     ZooKeeper's AdminServer commands; status and ensemble
 *   http.c     the HTTP server (libmicrohttpd, on the server's loop); http.h has the page's files
 *   socket.c   the same for an administrator on this machine, by a socket in the data directory
 *   access.c   who may change something */
#ifndef CV_SERVICE_ADMIN_ADMIN_H
#define CV_SERVICE_ADMIN_ADMIN_H

#include <sys/un.h>

#include "base/secret.h"
#include "service/server/server.h"

extern const struct server_admin admin;

#define ADMIN_SOCKET "admin.socket" /* in the data directory */
/* The address of the socket in a directory whose path is this one and which is open; the system
 * limits the length of an address, and a longer path is replaced by that descriptor. */
void admin_socket_address(const char *path, int directory, struct sockaddr_un *address);

/* The token by which an administrator who is elsewhere commands a server over HTTP.  NULL, or why
 * that file cannot be used. */
const char *admin_token_read(const char *path, struct secret *token);

#endif
