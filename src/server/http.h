/* What a server says of itself, over HTTP: metrics, status, and the commands of ZooKeeper's
 * AdminServer; and a person's commands to the ensemble.  It is on the server's own loop. */
#ifndef CV_SERVER_HTTP_H
#define CV_SERVER_HTTP_H

struct server;

/* Listens where the settings say.  What cannot be had is warned of and left out of the settings: a
 * server without it is better than none. */
void http_open(struct server *server);
void http_close(struct server *server); /* after the loop has ended */

#endif
