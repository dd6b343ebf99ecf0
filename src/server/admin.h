/* What a server says of itself as JSON: the commands of ZooKeeper's AdminServer, under its names,
 * and a page of our own. */
#ifndef CV_SERVER_ADMIN_H
#define CV_SERVER_ADMIN_H

#include <jansson.h>

#include "server/server.h"

/* By its name or its four-letter word; NULL: there is no such command.  None of them changes
 * anything: what does is left to words, which have to be allowed. */
json_t *admin_command(const struct server *server, const char *name);
const char *admin_name(size_t i); /* of each command; NULL behind the last */
json_t *admin_status(const struct server *server);
json_t *admin_ensemble(const struct server *server);

#endif
