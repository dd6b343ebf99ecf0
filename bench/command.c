/* How long whole commands take, from fork to the end: `command ROUNDS PORT COMMAND [+ COMMAND]...`
 * prints a line of the median ms of each, in the order given, after two lines of its own:
 *
 *   protocol  what a lock takes on the wire at the server on PORT: connect, open a session, create
 *             an ephemeral sequential node, list, delete, close the session; each waits for its
 * answer fork      fork, exec and wait for true(1)
 *
 * Rounds take turns, so that whatever else the machine does hits all of them alike. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/zk/zk.h"

enum { COMMANDS_MAX = 16, ROUNDS_MAX = 1000, ANSWER_MAX = 4096, SESSION_MS = 10000 };

static double times[COMMANDS_MAX + 2][ROUNDS_MAX];

static _Noreturn void die(const char *what) {
    fprintf(stderr, "command: %s\n", what);
    exit(1);
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- The protocol ---- */

static unsigned char answer[ANSWER_MAX];

/* Sends what is in `out` and waits for the whole frame that answers it. */
static struct zk_in ask(int fd, struct bytes *out) {
    size_t have = 0;
    struct zk_in frame;
    if (write(fd, out->at, out->used) != (ssize_t)out->used) die("the server does not read");
    out->used = 0;
    for (;;) {
        ssize_t got = read(fd, answer + have, sizeof answer - have);
        if (got <= 0) die("the server has closed the connection");
        have += (size_t)got;
        struct zk_in received = zk_in_of(answer, have);
        if (zk_next_frame(&received, ANSWER_MAX, &frame) == 1) return frame;
    }
}

static struct zk_in ask_for(int fd, struct bytes *out, size_t frame) {
    struct zk_reply_header header;
    zk_frame_end(out, frame);
    struct zk_in body = ask(fd, out);
    if (!zk_read_reply_header(&body, &header) || (header.err && header.err != ZK_NODEEXISTS))
        die("a request has failed");
    return body;
}

#define ASK(OPCODE, RECORD, ...)                                                                   \
    (frame = zk_frame_begin(&out),                                                                 \
     zk_write_request_header(&out, &(struct zk_request_header){1, (OPCODE)}),                      \
     zk_write_##RECORD(&out, &(struct zk_##RECORD){__VA_ARGS__}), ask_for(fd, &out, frame))

static int dial(unsigned port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(0x7f000001)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) die("no server answers");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static void lock_by_protocol(unsigned port) {
    static struct bytes out, anyone;
    const char password[16] = "";
    if (!anyone.used)
        zk_write_acl(&anyone, &(struct zk_acl){31, {zk_text_of("world"), zk_text_of("anyone")}});
    struct zk_acls acl = {anyone.at, anyone.used, 1};
    struct zk_text path;
    int fd = dial(port);
    size_t frame = zk_frame_begin(&out);
    zk_write_connect_request(
        &out, &(struct zk_connect_request){.timeout = SESSION_MS, .passwd = {password, 16}});
    zk_frame_end(&out, frame);
    ask(fd, &out);
    struct zk_in body = ASK(ZK_OP_CREATE, create_request, zk_text_of("/bench-l-"), zk_null(), acl,
                            ZK_EPHEMERAL_SEQUENTIAL);
    if (!zk_read_text(&body, &path)) die("an answer has no path");
    char own[64];
    snprintf(own, sizeof own, "%.*s", path.size, path.at);
    ASK(ZK_OP_GET_CHILDREN, get_children_request, zk_text_of("/"), false);
    ASK(ZK_OP_DELETE, delete_request, zk_text_of(own), -1);
    frame = zk_frame_begin(&out);
    zk_write_request_header(&out, &(struct zk_request_header){2, ZK_OP_CLOSE_SESSION});
    ask_for(fd, &out, frame);
    close(fd);
}

/* ---- Commands ---- */

static void run(char **command) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(nowhere, STDIN_FILENO);
        dup2(nowhere, STDOUT_FILENO);
        execvp(command[0], command);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status))
        die(command[0]);
}

static int by_size(const void *a, const void *b) {
    return *(const double *)a > *(const double *)b ? 1 : -1;
}

int main(int count, char **argument) {
    char **commands[COMMANDS_MAX + 1], *nothing[] = {"true", NULL};
    int found = 0, rounds = count > 3 ? atoi(argument[1]) : 0;
    if (rounds < 1 || rounds > ROUNDS_MAX) die("usage: command ROUNDS PORT COMMAND [+ COMMAND]...");
    unsigned port = (unsigned)atoi(argument[2]);
    commands[found++] = nothing;
    for (int i = 3; i < count && found <= COMMANDS_MAX; i++) {
        if (i == 3 || !argument[i - 1]) commands[found++] = argument + i;
        if (!strcmp(argument[i], "+")) argument[i] = NULL;
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i <= found; i++) {
            double began = now_ms();
            if (i)
                run(commands[i - 1]);
            else
                lock_by_protocol(port);
            times[i][round] = now_ms() - began;
        }
    for (int i = 0; i <= found; i++) {
        qsort(times[i], (size_t)rounds, sizeof(double), by_size);
        printf("%.3f\n", times[i][rounds / 2]);
    }
    return 0;
}
