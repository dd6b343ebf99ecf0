#include "cli/peer_remains.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "peer/durable.h"

int peer_remains_open(struct peer_remains *remains, const char *data, char error[PEER_ERROR_MAX]) {
    remains->running = peer_data_open(data, "running", O_RDWR | O_CREAT);
    remains->shared =
        remains->running < 0 ? -1 : peer_data_open(data, "commands", O_RDWR | O_CREAT);
    if (remains->shared >= 0 && durable_lock(remains->running)) return 0;
    snprintf(error, PEER_ERROR_MAX, "%.400s: %s", data,
             errno == EWOULDBLOCK ? "another process uses it" : strerror(errno));
    peer_remains_close(remains);
    return -1;
}

int peer_remains_are_gone(const struct peer_remains *remains) {
    if (flock(remains->shared, LOCK_EX | LOCK_NB) == 0) return 1;
    return errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

void peer_remains_close(struct peer_remains *remains) {
    if (remains->running >= 0) close(remains->running);
    if (remains->shared >= 0) close(remains->shared);
    remains->running = remains->shared = -1;
}
