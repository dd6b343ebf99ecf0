/* A server for tests.  A shell guards it: when this process ends, whatever the reason, the shell's
 * input ends, and it ends the server and removes the data.  (A signal at the parent's death would
 * come when the thread ends that has started the server.) */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conclave.h"

enum { LINE_MAX_SIZE = 512, START_MS = 60000 };

struct cv_test_server {
    pid_t guard, server;
    int commands, lines; /* to the guard, and from it and the server */
    char address[64], directory[256];
    char received[4096];
    size_t used;
};

/* An address on its input starts the server there again. */
static const char GUARD[] =
    "trap '' INT TERM HUP QUIT\n"
    "program=$1 dir=$2\n"
    "exec 2>>\"$dir/log\"\n"
    "start() {\n"
    "    (\"$program\" serve --data \"$dir/data\" --listen \"$1\" --set listen.http=off"
    " --set tickTime=100 --set minSessionTimeout=200 --set maxSessionTimeout=120000"
    " --set forceSync=no --set extendedTypesEnabled=true </dev/null &\n"
    "    echo $! >\"$dir/pid\"; echo \"pid $!\"; wait $!; echo ended) &\n"
    "}\n"
    "while read -r address; do start \"$address\"; done\n"
    "kill -9 \"$(cat \"$dir/pid\")\" 2>/dev/null\n"
    "wait\n"
    "rm -rf \"$dir\"\n";

extern char **environ;

/* ---- Lines ---- */

/* The next line; false: none in time, or there will be none. */
static bool next_line(struct cv_test_server *server, char line[LINE_MAX_SIZE], int64_t until) {
    for (;;) {
        char *end = memchr(server->received, '\n', server->used);
        if (end) {
            size_t size = (size_t)(end - server->received);
            snprintf(line, LINE_MAX_SIZE, "%.*s", (int)size, server->received);
            server->used -= size + 1;
            memmove(server->received, end + 1, server->used);
            return true;
        }
        struct pollfd wait = {.fd = server->lines, .events = POLLIN};
        int64_t left = until - cv_now();
        if (left <= 0 || server->used == sizeof server->received) return false;
        if (poll(&wait, 1, (int)left) < 0 && errno != EINTR) return false;
        if (!wait.revents) continue;
        ssize_t part = read(server->lines, server->received + server->used,
                            sizeof server->received - server->used);
        if (part == 0 || (part < 0 && errno != EINTR)) return false;
        if (part > 0) server->used += (size_t)part;
    }
}

static bool await_end(struct cv_test_server *server) {
    char line[LINE_MAX_SIZE];
    while (next_line(server, line, cv_now() + START_MS))
        if (strcmp(line, "ended") == 0) return true;
    return false;
}

/* Starts the server and waits until it serves. */
static int start(struct cv_test_server *server, const char *address) {
    static const char serving[] = "conclave: serving clients on ";
    char line[LINE_MAX_SIZE];
    int64_t until = cv_now() + START_MS;
    if (dprintf(server->commands, "%s\n", address) < 0) return CV_SYSTEM_ERROR;
    while (next_line(server, line, until)) {
        if (strcmp(line, "ended") == 0) return CV_SYSTEM_ERROR;
        if (strncmp(line, "pid ", 4) == 0) server->server = (pid_t)strtol(line + 4, NULL, 10);
        if (strncmp(line, serving, sizeof serving - 1) != 0) continue;
        char *at = line + sizeof serving - 1;
        at[strcspn(at, "; ")] = 0;
        snprintf(server->address, sizeof server->address, "%s", at);
        return CV_OK;
    }
    return CV_SYSTEM_ERROR;
}

/* ---- The guard ---- */

static bool spawn_guard(struct cv_test_server *server, int commands, int lines) {
    const char *program = getenv("CONCLAVE");
    char *arguments[] = {"sh",
                         "-c",
                         (char *)(uintptr_t)GUARD,
                         "sh",
                         (char *)(uintptr_t)(program && program[0] ? program : "conclave"),
                         server->directory,
                         NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_adddup2(&files, commands, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, lines, STDOUT_FILENO);
    int error = posix_spawn(&server->guard, "/bin/sh", &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error == 0;
}

static bool open_guard(struct cv_test_server *server) {
    int commands[2], lines[2];
    if (pipe2(commands, O_CLOEXEC) != 0) return false;
    if (pipe2(lines, O_CLOEXEC) != 0) {
        close(commands[0]);
        close(commands[1]);
        return false;
    }
    bool done = spawn_guard(server, commands[0], lines[1]);
    close(commands[0]);
    close(lines[1]);
    server->commands = commands[1];
    server->lines = lines[0];
    if (done) return true;
    close(commands[1]);
    close(lines[0]);
    return false;
}

/* A test that cannot start its server should say why. */
static void show_log(const struct cv_test_server *server) {
    char path[sizeof server->directory + 8], text[1000];
    snprintf(path, sizeof path, "%s/log", server->directory);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text);
    if (file >= 0) close(file);
    fprintf(stderr, "conclave: the server for tests does not start: %.*s\n",
            size > 0 ? (int)size : 0, text);
}

struct cv_test_server *cv_test_server(void) {
    const char *temporary = getenv("TMPDIR");
    struct cv_test_server *server = calloc(1, sizeof *server);
    if (!server) return NULL;
    snprintf(server->directory, sizeof server->directory, "%s/conclave-test-XXXXXX",
             temporary && temporary[0] ? temporary : "/tmp");
    if (!mkdtemp(server->directory)) return free(server), NULL;
    if (!open_guard(server)) {
        rmdir(server->directory);
        free(server);
        return NULL;
    }
    if (start(server, "127.0.0.1:0") == CV_OK) return server;
    show_log(server);
    cv_test_server_stop(server);
    return NULL;
}

const char *cv_test_server_address(struct cv_test_server *server) { return server->address; }

int cv_test_server_kill(struct cv_test_server *server) {
    if (!server->server) return CV_OK;
    kill(server->server, SIGKILL);
    server->server = 0;
    return await_end(server) ? CV_OK : CV_SYSTEM_ERROR;
}

int cv_test_server_restart(struct cv_test_server *server) {
    char address[sizeof server->address];
    int error = cv_test_server_kill(server);
    snprintf(address, sizeof address, "%s", server->address);
    return error ? error : start(server, address);
}

void cv_test_server_stop(struct cv_test_server *server) {
    if (!server) return;
    close(server->commands);
    while (waitpid(server->guard, NULL, 0) < 0 && errno == EINTR) {
    }
    close(server->lines);
    free(server);
}
