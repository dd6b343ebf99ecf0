/* Who a connection is: what it says and proves of itself. */
#ifndef CV_SERVER_IDENTITY_H
#define CV_SERVER_IDENTITY_H

#include "server/server.h"

/* Takes an auth packet; false when it proves nothing. */
bool identity_prove(struct connection *connection, const struct zk_auth_request *request);

#endif
