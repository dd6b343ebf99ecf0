/* One question to a server over HTTP, without waiting for the answer: for loops that have more to
 * do, and for commands that wait with a deadline. */
#ifndef CV_CLI_FETCH_H
#define CV_CLI_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/bytes.h"

struct fetch_address {
    struct sockaddr_storage at;
    socklen_t size;
};

/* "HOST:PORT" or "[HOST]:PORT"; NULL, or why it cannot be asked there. */
const char *fetch_resolve(const char *text, struct fetch_address *address);

enum fetch_state { FETCH_IDLE, FETCH_UNDER_WAY, FETCH_DONE, FETCH_FAILED };

struct fetch {
    enum fetch_state state;
    int socket, error; /* error: of the system, when it failed; 0: the answer made no sense */
    struct bytes request, answer;
    size_t sent;
    const char *body; /* when done, ended by a zero */
    unsigned status;
};

void fetch_begin(struct fetch *fetch, const struct fetch_address *address, const char *method,
                 const char *path);
/* For poll. */
short fetch_events(const struct fetch *fetch);
void fetch_go_on(struct fetch *fetch);
/* Idle again, whatever it was. */
void fetch_end(struct fetch *fetch);
void fetch_close(struct fetch *fetch);
/* Waits until it is no longer under way, or fails with ETIMEDOUT. */
void fetch_wait(struct fetch *fetch, int timeout_ms);

/* By the clock that only goes on. */
uint64_t fetch_now_ms(void);

#endif
