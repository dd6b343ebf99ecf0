/* An HTTP request to a server that does not block: for loops that have more to do, and for commands
 * that wait with a deadline. */
#ifndef CV_CLI_FETCH_H
#define CV_CLI_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/secret.h"

struct fetch_address {
    const char *data; /* of a server on this machine: its socket there.  NULL: the address below */
    struct sockaddr_storage at;
    socklen_t size;
    const struct secret *token; /* of an administrator; NULL: none is shown */
};

/* Resolves "HOST:PORT" or "[HOST]:PORT"; NULL, or what is wrong with it. */
const char *fetch_resolve(const char *text, struct fetch_address *address);

enum fetch_state { FETCH_IDLE, FETCH_UNDER_WAY, FETCH_DONE, FETCH_FAILED };

struct fetch {
    enum fetch_state state;
    int socket, error; /* error: an errno, when it failed; 0: the answer was not HTTP */
    struct bytes request, answer;
    size_t sent;
    const char *body; /* when done; ends with a zero */
    unsigned status;
};

void fetch_begin(struct fetch *fetch, const struct fetch_address *address, const char *method,
                 const char *path);
/* For poll. */
short fetch_events(const struct fetch *fetch);
void fetch_go_on(struct fetch *fetch);
/* Gives up what is under way; it is idle again. */
void fetch_end(struct fetch *fetch);
void fetch_close(struct fetch *fetch);
/* Waits until it is no longer under way, or fails with ETIMEDOUT. */
void fetch_wait(struct fetch *fetch, int timeout_ms);

/* By the monotonic clock. */
uint64_t fetch_now_ms(void);

#endif
