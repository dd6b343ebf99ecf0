/* The socket in the data directory by which an administrator on this machine commands the server.
 * Its mode keeps other users out, and the system says who has connected. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/admin/internal.h"

void admin_socket_address(const char *path, int directory, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t room = sizeof address->sun_path;
    if ((size_t)snprintf(address->sun_path, room, "%s/" ADMIN_SOCKET, path) >= room)
        snprintf(address->sun_path, room, "/proc/self/fd/%d/" ADMIN_SOCKET, directory);
}

/* The data directory is this server's alone, so a socket there is that of a process that was
 * killed. */
static const char *clear_place(int directory) {
    struct stat status;
    if (fstatat(directory, ADMIN_SOCKET, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? NULL : strerror(errno);
    if (!S_ISSOCK(status.st_mode)) return "there is a file of that name, which is no socket";
    return unlinkat(directory, ADMIN_SOCKET, 0) == 0 ? NULL : strerror(errno);
}

static const char *listen_at(int socket_, const struct sockaddr_un *address) {
    enum { BACKLOG = 16 };
    bool listens = fchmod(socket_, 0600) == 0 && /* the file gets this mode when it is made */
                   bind(socket_, (const struct sockaddr *)address, sizeof *address) == 0 &&
                   listen(socket_, BACKLOG) == 0;
    return listens ? NULL : strerror(errno);
}

int socket_listen(const char *path, int directory, const char **problem) {
    struct sockaddr_un address;
    *problem = clear_place(directory);
    if (*problem) return -1;
    admin_socket_address(path, directory, &address);
    int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *problem = socket_ < 0 ? strerror(errno) : listen_at(socket_, &address);
    if (!*problem) return socket_;
    if (socket_ >= 0) close(socket_);
    return -1;
}

bool socket_user(int connection, uid_t *user) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    *user = peer.uid;
    return true;
}
