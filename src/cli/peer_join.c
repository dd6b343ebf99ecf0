/* The connection of a command to a participant that stays. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/peer.h"

static const char *const calls[] = {[CV_ACQUIRE] = "acquire\n", [CV_RELEASE] = "release\n"};

/* ---- Lines ---- */

int tell_print(char *line, size_t size, const struct cv_tell *tell) {
    switch (tell->what) {
    case CV_ENTERED: return snprintf(line, size, "entered %" PRIu64 "\n", tell->arg);
    case CV_LEFT: return snprintf(line, size, "left\n");
    case CV_ELECTED:
        return snprintf(line, size, "elected %" PRIu64 " %" PRIu32 "\n", tell->arg, tell->term);
    case CV_FOLLOWS:
        return snprintf(line, size, "follows %" PRIu64 " %" PRIu32 "\n", tell->arg, tell->term);
    case CV_LEADERLESS: return snprintf(line, size, "leaderless\n");
    default: return 0;
    }
}

bool tell_read(const char *line, struct cv_tell *tell) {
    *tell = (struct cv_tell){0};
    if (strcmp(line, "left") == 0) tell->what = CV_LEFT;
    if (strcmp(line, "leaderless") == 0) tell->what = CV_LEADERLESS;
    if (sscanf(line, "entered %" SCNu64, &tell->arg) == 1) tell->what = CV_ENTERED;
    if (sscanf(line, "elected %" SCNu64 " %" SCNu32, &tell->arg, &tell->term) == 2)
        tell->what = CV_ELECTED;
    if (sscanf(line, "follows %" SCNu64 " %" SCNu32, &tell->arg, &tell->term) == 2)
        tell->what = CV_FOLLOWS;
    return tell->what;
}

/* ---- The place ---- */

const char *peer_socket_path(const char *given, char room[PEER_PATH_MAX]) {
    const char *directory = geteuid() == 0 ? "/run" : getenv("XDG_RUNTIME_DIR");
    if (!given) given = getenv("CONCLAVE_PEER_SOCKET");
    if (given && *given) return given;
    if (!directory || *directory != '/') return NULL;
    int size = snprintf(room, PEER_PATH_MAX, "%s/conclave-peer.socket", directory);
    return size < PEER_PATH_MAX ? room : NULL;
}

static bool set_address(struct sockaddr_un *address, const char *path) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (size_t)snprintf(address->sun_path, sizeof address->sun_path, "%s", path) <
           sizeof address->sun_path;
}

static int open_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

/* What a participant that was killed has left; false: there is something else, or somebody answers.
 */
static bool clear_place(const struct sockaddr_un *address, char *error) {
    struct stat status;
    if (lstat(address->sun_path, &status) != 0) return true; /* to bind says what is wrong */
    if (!S_ISSOCK(status.st_mode)) {
        snprintf(error, PEER_ERROR_MAX, "%s: there is a file of that name, which is no socket",
                 address->sun_path);
        return false;
    }
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool answers = connect(probe, (const void *)address, sizeof *address) == 0 || errno == EAGAIN;
    int why = errno;
    if (probe >= 0) close(probe);
    if (!answers && why == ECONNREFUSED) return unlink(address->sun_path) == 0 || errno == ENOENT;
    if (answers)
        snprintf(error, PEER_ERROR_MAX, "%s: another participant listens there; give --socket",
                 address->sun_path);
    else
        snprintf(error, PEER_ERROR_MAX, "%s: there is a socket of somebody else (%s)",
                 address->sun_path, strerror(why));
    return false;
}

int peer_socket_listen(const char *path, char error[PEER_ERROR_MAX]) {
    enum { BACKLOG = 64 };
    struct sockaddr_un address;
    if (!set_address(&address, path)) {
        snprintf(error, PEER_ERROR_MAX, "%.200s: the path of a socket has at most %d bytes", path,
                 PEER_PATH_MAX - 1);
        return -1;
    }
    if (!clear_place(&address, error)) return -1;
    int listener = open_socket();
    if (listener >= 0 && fchmod(listener, 0600) == 0 && /* the file gets this mode */
        bind(listener, (const void *)&address, sizeof address) == 0 &&
        listen(listener, BACKLOG) == 0 && fcntl(listener, F_SETFL, O_NONBLOCK) == 0)
        return listener;
    snprintf(error, PEER_ERROR_MAX, "%s: %s", path, strerror(errno));
    if (listener >= 0) close(listener);
    return -1;
}

/* ---- The connection ---- */

/* Where scripts open nothing. */
void peer_let_inherit(int *file) {
    enum { FIRST = 100 };
    int other = fcntl(*file, F_DUPFD, FIRST);
    if (other < 0) {
        fcntl(*file, F_SETFD, 0);
        return;
    }
    close(*file);
    *file = other;
}

/* Whose commands run what it says: this user's, or root's. */
static bool is_trusted(int socket) {
    struct ucred other;
    socklen_t size = sizeof other;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) return false;
    return other.uid == geteuid() || other.uid == 0;
}

static int lose(struct joined *joined, const char *why) {
    snprintf(joined->why, sizeof joined->why, "%s", why);
    return -1;
}

/* Reads, and takes a file that comes with it. */
static ssize_t receive(struct joined *joined, size_t room, int flags) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec text = {joined->text + joined->used, room};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t size = recvmsg(joined->socket, &message, flags | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *part = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
        part->cmsg_len == CMSG_LEN(sizeof(int))) {
        if (joined->shared >= 0) close(joined->shared);
        memcpy(&joined->shared, CMSG_DATA(part), sizeof(int));
        peer_let_inherit(&joined->shared);
    }
    return size;
}

/* Reads what there is.  It is lost with what it says too much, or not in lines. */
static void fill(struct joined *joined) {
    while (!*joined->why) {
        size_t room = sizeof joined->text - joined->used;
        if (!room && !memchr(joined->text, '\n', joined->used))
            lose(joined, "it is no participant");
        if (!room) return;
        ssize_t size = receive(joined, room, MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size <= 0)
            lose(joined, "the participant has ended");
        else
            joined->used += (size_t)size;
    }
}

/* Takes a line off what was read. */
static bool take_line(struct joined *joined, char line[sizeof joined->text]) {
    char *end = memchr(joined->text, '\n', joined->used);
    if (!end) return false;
    size_t size = (size_t)(end - joined->text);
    memcpy(line, joined->text, size);
    line[size] = 0;
    joined->used -= size + 1;
    memmove(joined->text, end + 1, joined->used);
    return true;
}

/* Whoever is started from now on is not inside. */
static void close_shared(struct joined *joined) {
    if (joined->shared >= 0) close(joined->shared);
    joined->shared = -1;
}

bool joined_next(struct joined *joined, struct cv_tell *tell) {
    char line[sizeof joined->text];
    fill(joined);
    while (take_line(joined, line)) {
        if (tell_read(line, tell)) {
            if (tell->what == CV_LEFT) close_shared(joined);
            return true;
        }
        joined->ends |= strcmp(line, "ends") == 0;
        if (strncmp(line, "state ", 6) != 0) continue;
        free(joined->state);
        joined->state = strdup(line + 6);
        cv_assert(joined->state);
    }
    return false;
}

const char *joined_failure(struct joined *joined) {
    fill(joined);
    return *joined->why ? joined->why : NULL;
}

void joined_say(struct joined *joined, const char *line) {
    if (send(joined->socket, line, strlen(line), MSG_NOSIGNAL) < 0) fill(joined);
}

void joined_call(struct joined *joined, uint32_t what) { joined_say(joined, calls[what]); }

static const char *explain(int error) {
    return error == EAGAIN || error == EINPROGRESS ? "it does not answer" : strerror(error);
}

static int greet(struct joined *joined) {
    char line[sizeof joined->text];
    while (!take_line(joined, line)) {
        ssize_t size = receive(joined, sizeof joined->text - joined->used, 0);
        if (size <= 0) return lose(joined, size ? explain(errno) : "it has ended");
        joined->used += (size_t)size;
    }
    joined->full = strcmp(line, "full") == 0;
    if (joined->full) return lose(joined, "it serves as many commands as it can; try again later");
    if (sscanf(line, "peer %" SCNu32 " %63s %15s", &joined->id, joined->algorithm, joined->gives) ==
        3)
        return 0;
    return lose(joined, "it is no participant");
}

int joined_open(struct joined *joined, const char *path, int64_t wait) {
    enum { USUAL_MS = 10000 };
    struct sockaddr_un address;
    *joined = (struct joined){.socket = open_socket(), .shared = -1};
    if (joined->socket < 0) return remote_say(EXIT_SYSTEM, "no socket: %s", strerror(errno));
    if (wait < 0 || wait > USUAL_MS) wait = USUAL_MS;
    struct timeval patience = {wait / 1000, wait % 1000 * 1000};
    setsockopt(joined->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(joined->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!set_address(&address, path)) {
        lose(joined, "the path is too long for a socket");
    } else if (connect(joined->socket, (const void *)&address, sizeof address) != 0) {
        int code = errno == EACCES || errno == EPERM ? EXIT_NOT_ALLOWED : EXIT_NO_SERVER;
        return remote_say(code, "no participant at %s (%s); 'conclave peer run' starts one", path,
                          explain(errno));
    } else if (!is_trusted(joined->socket)) {
        return remote_say(EXIT_NOT_ALLOWED, "the participant at %s is somebody else's", path);
    }
    if (!*joined->why && greet(joined) == 0) return 0;
    return remote_say(joined->full ? EXIT_BUSY : EXIT_NO_SERVER, "the participant at %s: %s", path,
                      joined->why);
}

void joined_let_inherit(struct joined *joined) { peer_let_inherit(&joined->socket); }

void joined_close(struct joined *joined) {
    if (joined->socket >= 0) close(joined->socket);
    joined->socket = -1;
    close_shared(joined);
    free(joined->state);
    joined->state = NULL;
}
