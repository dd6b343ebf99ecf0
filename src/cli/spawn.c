#include "cli/spawn.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A file without a name: the command reads it at its own pace, or not at all. */
static int file_with(const void *data, size_t size) {
    int file = memfd_create("conclave", MFD_CLOEXEC);
    if (file < 0) return -1;
    for (size_t done = 0; done < size;) {
        ssize_t written = write(file, (const char *)data + done, size - done);
        if (written < 0) return close(file), -1;
        done += (size_t)written;
    }
    lseek(file, 0, SEEK_SET);
    return file;
}

static int start(pid_t *pid, char **command, int input) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    int error = posix_spawnp(pid, command[0], &actions, &attributes, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

int spawn_run(struct remote *remote, char **command, const void *data, size_t size,
              bool needs_session) {
    pid_t pid = 0;
    int input = data ? file_with(data, size) : -1, status = 0;
    if (data && input < 0) return remote_say(EXIT_SYSTEM, "memory: %s", strerror(errno));
    fflush(stdout);
    int error = start(&pid, command, input);
    if (input >= 0) close(input);
    if (error)
        return remote_say(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "%s: %s", command[0],
                          error == ENOENT ? "there is no such command" : strerror(error));
    bool told = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        int signal = remote_wait(remote, 1000);
        if (signal && !remote->by_terminal) kill(pid, signal);
        enum cv_state state = cv_state(remote->client);
        if (!told && needs_session && (state == CV_EXPIRED || state == CV_REFUSED)) {
            kill(pid, SIGTERM);
            told = true;
        }
    }
    if (told) return remote_fail(remote, CV_SESSION_EXPIRED, NULL);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
