#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/up.h"

/* ---- The process ---- */

static _Noreturn void become(struct up *up, struct up_server *s, int in, int out, int log,
                             pid_t parent) {
    enum { OPTIONS_MAX = 64 };
    char *options[OPTIONS_MAX];
    int count = up->kind->options(up, s, options);
    sigset_t none;
    for (char **extra = up->extra; *extra && count < OPTIONS_MAX - 4; extra++)
        options[count++] = *extra;
    if (up->kind->action) options[count++] = (char *)up->kind->action;
    options[count] = NULL;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* a key that sends a signal does not reach it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_SYSTEM); /* it ended before the call above */
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv("/proc/self/exe", options);
    dprintf(STDERR_FILENO, "cannot be started: %s\n", strerror(errno));
    _exit(EXIT_SYSTEM);
}

static void open_pipe(struct up_pipe *pipe, int ends[2]) {
    if (pipe->from >= 0) close(pipe->from);
    if (pipe2(ends, O_CLOEXEC) != 0) system_error("no pipe: %s", strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *pipe = (struct up_pipe){.from = ends[0]};
}

/* Says what the network between two is like, to one that was just started. */
static void server_part(const struct up *up, struct up_server *s, const struct up_server *other) {
    char line[32];
    if (!up->parted[s->number - 1][other->number - 1]) return;
    snprintf(line, sizeof line, "cut %d\n", other->number);
    server_tell(s, line);
}

const char *server_parted(const struct up *up, const struct up_server *s, char *buffer,
                          size_t size) {
    size_t used = 0;
    int parted = 0;
    *buffer = 0;
    for (int i = 0; i < up->count && used < size; i++)
        if (up->parted[s->number - 1][i])
            used +=
                (size_t)snprintf(buffer + used, size - used, "%s%d", parted++ ? ", " : "", i + 1);
    if (parted > 1 && parted == up->count - 1) snprintf(buffer, size, "all");
    return buffer;
}

void server_start(struct up *up, struct up_server *s) {
    int in[2], out[2], log[2];
    pid_t parent = getpid();
    if (s->in >= 0) close(s->in);
    if (pipe2(in, O_CLOEXEC) != 0) system_error("no pipe: %s", strerror(errno));
    s->in = in[1];
    fcntl(s->in, F_SETFL, O_NONBLOCK);
    open_pipe(&s->out, out);
    open_pipe(&s->log, log);
    fflush(stdout);
    s->kind = up->kind;
    s->process = fork();
    if (s->process < 0) system_error("no process: %s", strerror(errno));
    if (!s->process) become(up, s, in[0], out[1], log[1], parent);
    close(in[0]);
    close(out[1]);
    close(log[1]);
    s->has_http = s->stopped = s->continued = s->start_again = false;
    s->answered_ms = s->counted_ms = 0;
    s->rate = 0;
    *s->said = 0;
    fetch_end(&s->fetch);
    for (int i = 0; i < up->count; i++) server_part(up, s, &up->server[i]);
}

void server_signal(struct up_server *s, int number) {
    if (!s->process) return;
    kill(s->process, number);
    if (number == SIGSTOP) s->stopped = true;
    if (number == SIGCONT && s->stopped) {
        s->stopped = false;
        s->continued = true;
        s->answered_ms = 0; /* its last status is old */
    }
}

void server_tell(struct up_server *s, const char *line) {
    size_t size = strlen(line);
    if (s->in < 0 || write(s->in, line, size) == (ssize_t)size) return;
    close(s->in); /* it does not read: half a line is of no use */
    s->in = -1;
}

static void read_pipe(struct up_server *s, struct up_pipe *pipe);

void server_reap(struct up *up, struct up_server *s) {
    int status;
    if (!s->process || waitpid(s->process, &status, WNOHANG) != s->process) return;
    s->process = 0;
    s->stopped = false;
    s->failed = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    fetch_end(&s->fetch);
    read_pipe(s, &s->out);
    read_pipe(s, &s->log); /* what it logged last */
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        snprintf(s->ended, sizeof s->ended, "killed");
    else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM) /* which it is told to end with */
        snprintf(s->ended, sizeof s->ended, "crashed: %s", strsignal(WTERMSIG(status)));
    else if (s->failed)
        snprintf(s->ended, sizeof s->ended, "failed, status %d", s->failed);
    else
        snprintf(s->ended, sizeof s->ended, "ended");
    if (s->start_again && !up->ending) server_start(up, s);
}

/* ---- Its output ---- */

/* Removes what a terminal would take for a command. */
static void make_plain(char *line) {
    for (; *line; line++)
        if ((unsigned char)*line < ' ' || *line == 0x7f) *line = ' ';
}

/* "conclave: serving clients on 127.0.0.1:2181; HTTP on 127.0.0.1:43210; data in ..." */
static void note_address(struct up_server *s, const char *line) {
    static const char label[] = "; HTTP on ";
    char address[64];
    const char *at = strstr(line, label);
    if (!at) return;
    at += sizeof label - 1;
    snprintf(address, sizeof address, "%.*s", (int)strcspn(at, ";, "), at);
    s->has_http = !fetch_resolve(address, &s->http);
    if (s->has_http) s->http_port = atoi(strrchr(address, ':') + 1);
}

static void take_line(struct up_server *s, struct up_pipe *pipe) {
    pipe->part[pipe->used] = 0;
    pipe->used = 0;
    make_plain(pipe->part);
    s->served |= pipe == &s->out; /* its only output is the line above */
    if (pipe == &s->out && s->kind->speaks)
        snprintf(s->said, sizeof s->said, "%.*s", (int)sizeof s->said - 1, pipe->part);
    else if (pipe == &s->out)
        note_address(s, pipe->part);
    else
        memcpy(s->line[s->lines++ % UP_LINES], pipe->part, sizeof pipe->part);
}

static void read_pipe(struct up_server *s, struct up_pipe *pipe) {
    char part[4096];
    ssize_t size;
    if (pipe->from < 0) return;
    while ((size = read(pipe->from, part, sizeof part)) > 0) {
        for (ssize_t i = 0; i < size; i++) {
            if (part[i] == '\n')
                take_line(s, pipe);
            else if (pipe->used < sizeof pipe->part - 1)
                pipe->part[pipe->used++] = part[i];
        }
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    close(pipe->from);
    pipe->from = -1;
}

/* ---- Its status ---- */

static void count_requests(struct up_server *s, uint64_t now_ms) {
    enum { PERIOD_MS = 900 };
    if (s->counted_ms && now_ms - s->counted_ms < PERIOD_MS) return;
    if (s->counted_ms && s->status.requests >= s->counted)
        s->rate =
            1000.0 * (double)(s->status.requests - s->counted) / (double)(now_ms - s->counted_ms);
    s->counted = s->status.requests;
    s->counted_ms = now_ms;
}

static void ask_status(struct up_server *s, uint64_t now_ms) {
    struct fetch *f = &s->fetch;
    if (f->state == FETCH_DONE && ensemble_view_parse(f->body, &s->status)) {
        s->answered_ms = now_ms;
        count_requests(s, now_ms);
    }
    bool late = f->state == FETCH_UNDER_WAY && now_ms - s->asked_ms > UP_TIMEOUT_MS;
    if (f->state != FETCH_UNDER_WAY || late) fetch_end(f);
    if (f->state != FETCH_IDLE || !s->has_http || !s->process) return;
    if (now_ms - s->asked_ms < UP_REFRESH_MS) return;
    s->asked_ms = now_ms;
    fetch_begin(f, &s->http, "GET", "/ensemble");
}

bool server_answers(const struct up_server *s, uint64_t now_ms) {
    return s->process && !s->stopped && s->answered_ms &&
           now_ms - s->answered_ms <= 2 * UP_TIMEOUT_MS;
}

const char *server_state(const struct up_server *s, uint64_t now_ms) {
    if (!s->process) return s->ended;
    if (s->stopped) return "stopped";
    if (s->kind->speaks) return *s->said ? s->said : "starting";
    if (!s->answered_ms) return s->continued ? "continued" : "starting";
    if (!server_answers(s, now_ms)) return "no answer";
    return s->status.removed ? "removed" : s->status.mode;
}

void server_await(struct up_server *s, struct pollfd *poll, nfds_t *count) {
    if (s->out.from >= 0) poll[(*count)++] = (struct pollfd){s->out.from, POLLIN, 0};
    if (s->log.from >= 0) poll[(*count)++] = (struct pollfd){s->log.from, POLLIN, 0};
    if (s->fetch.state == FETCH_UNDER_WAY)
        poll[(*count)++] = (struct pollfd){s->fetch.socket, fetch_events(&s->fetch), 0};
}

void server_go_on(struct up_server *s, uint64_t now_ms) {
    read_pipe(s, &s->out);
    read_pipe(s, &s->log);
    fetch_go_on(&s->fetch);
    ask_status(s, now_ms);
}

void server_close(struct up_server *s) {
    if (s->out.from >= 0) close(s->out.from);
    if (s->log.from >= 0) close(s->log.from);
    if (s->in >= 0) close(s->in);
    fetch_close(&s->fetch);
}

/* ---- What is particular about servers ---- */

static int server_options(struct up *up, struct up_server *s, char **options) {
    int count = 0;
    snprintf(s->name, sizeof s->name, "%d", s->number);
    snprintf(s->listen, sizeof s->listen, "127.0.0.1:%d", s->client_port);
    char *own[] = {"conclave", "serve",   "--id",   s->name,       "--ensemble", up->ensemble,
                   "--listen", s->listen, "--http", "127.0.0.1:0", "--data",     s->data};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) options[count++] = own[i];
    if (up->key) options[count++] = "--peer-key", options[count++] = up->key;
    if (up->records) {
        snprintf(s->record, sizeof s->record, "%s.record", s->data);
        options[count++] = "--record", options[count++] = s->record;
    }
    return count;
}

static void servers_ended(const struct up *up) {
    printf("conclave: %d servers have ended", up->count);
    if (up->keeps) printf("; their data is in %s", up->data);
    if (up->records) printf("; 'conclave trace merge %s/*.record' judges what happened", up->data);
    putchar('\n');
}

const struct up_kind up_servers = {
    .noun = "server",
    .options = server_options,
    .ended = servers_ended,
    .commands = "kscrt",
};
