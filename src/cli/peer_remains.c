#include "cli/peer_remains.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/remote.h"
#include "peer/peer.h"

/* Then the participant cannot start, and says so itself. */
static bool is_in_use(const char *data) {
    int file = peer_data_open(data, PEER_DURABLE, O_RDWR);
    bool used = file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0;
    if (file >= 0) close(file);
    return used;
}

int peer_remains_open(const char *data, int signals) {
    enum { LOOK_MS = 100 };
    struct pollfd end = {signals, POLLIN, 0};
    int file = peer_data_open(data, "commands", O_RDONLY | O_CREAT);
    bool said = false;
    while (file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0 && !is_in_use(data)) {
        if (!said)
            remote_say(0, "this participant waits until nothing is left of the commands that were "
                          "inside when the one before it ended");
        said = true;
        if (poll(&end, 1, LOOK_MS) <= 0) continue;
        close(file);
        errno = EINTR;
        return -1;
    }
    return file;
}
