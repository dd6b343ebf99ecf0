/* A client of a server, for commands that have one thing to do and wait for it.
 *
 * Requests are put forward with client_send and answered in the same order: any number of small
 * ones may be on their way before the first answer is waited for. */
#ifndef CV_SERVER_CLIENT_H
#define CV_SERVER_CLIENT_H

#include "zk/zk.h"

enum { CLIENT_MESSAGE_MAX = 512 };

struct client {
    int socket;
    struct bytes out, in;
    size_t taken; /* of `in` */
    int32_t xid;
    char message[CLIENT_MESSAGE_MAX]; /* after -1 */
};

/* Connects to HOST:PORT and opens a session. */
int client_open(struct client *client, const char *address);
/* Shows who is asking: "user:password". */
int client_authenticate(struct client *client, const char *secret);
/* Ends the session. */
void client_close(struct client *client);

/* `record` is the operation's request, NULL if it has none. */
void client_send(struct client *client, int32_t op, const void *record);
/* The same for a body that is written already. */
void client_send_body(struct client *client, int32_t op, const struct bytes *body);
/* The next answer: its error, and the body, which lives until the next call.  -1: there is none. */
int client_receive(struct client *client, int32_t *err, struct zk_in *body);

#endif
