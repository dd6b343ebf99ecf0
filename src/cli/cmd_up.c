/* conclave up: a local ensemble in one terminal, for trying things out. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/up.h"

enum { KEY_SERVERS = 256, KEY_PORT, KEY_DATA };

static const struct argp_option options[] = {
    {"servers", KEY_SERVERS, "N", 0, "How many (3); up to 9", 0},
    {"port", KEY_PORT, "PORT", 0, "Where clients of server 1 connect (2181); the next ones follow",
     0},
    {"data", KEY_DATA, "DIR", 0,
     "Where the servers' data is kept, for another time too; else it goes at the end", 0},
    {0}};

static const char doc[] =
    "Starts an ensemble of servers on this machine and shows how they are: who leads, what is "
    "decided, who is connected, what each says in its log.  Kill some of them and see.\v"
    "Keys, each with the number of a server: k kills it (kill -9), s stops it (SIGSTOP), c lets it "
    "continue, r restarts it, t has it lead; q quits.  If standard input is no terminal, the same "
    "is read from there, one a line: kill 1, stop 1, continue 1, start 1, restart 1, transfer 2, "
    "status, quit; and if standard output is none, a line is printed whenever something "
    "changes.  Options behind -- are given to every server.\n\n"
    "Examples:\n"
    "  conclave up\n"
    "  conclave up --servers 5 --port 3181 --data ./ensemble\n"
    "  conclave up -- --reads linearizable\n"
    "  conclave ensemble status --at 127.0.0.1:PORT     a port of the column http\n";

struct request {
    uint64_t servers, port;
    const char *data;
    char *extra[32];
    size_t extras;
};

static uint64_t require_number(const char *name, const char *text, uint64_t least, uint64_t most) {
    uint64_t number;
    if (parse_u64(text, &number) != 0 || number < least || number > most)
        usage_error("%s: '%s' is not a number from %d to %d", name, text, (int)least, (int)most);
    return number;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_SERVERS:
        request->servers = require_number("servers", text, 1, UP_SERVERS_MAX);
        return 0;
    case KEY_PORT: request->port = require_number("port", text, 1, 60000); return 0;
    case KEY_DATA: request->data = text; return 0;
    case ARGP_KEY_ARG:
        if (request->extras + 1 == sizeof request->extra / sizeof request->extra[0])
            usage_error("too many options behind --");
        if (!request->extras && *text != '-')
            usage_error("'%s' is not an option; those of servers come behind --", text);
        request->extra[request->extras++] = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Ports ---- */

static bool is_free(uint64_t port) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool free_ = bind(socket_, (struct sockaddr *)&at, sizeof at) == 0 && listen(socket_, 1) == 0;
    close(socket_);
    return free_;
}

static void require_ports(const struct request *request) {
    for (uint64_t i = 0; i < request->servers; i++)
        if (!is_free(request->port + i))
            system_error("port %d is taken; --port says where to begin", (int)(request->port + i));
}

/* Where servers hear each other: near the clients' ports, and not where the system picks ports for
 * connections, as they are to be the same next time. */
static char *choose_ensemble(const struct request *request) {
    enum { AWAY = 700, TRIES = 500 };
    struct bytes text = {0};
    char member[48];
    uint64_t port = request->port + AWAY, last = port + TRIES;
    for (uint64_t i = 1; i <= request->servers; i++) {
        while (port < last && !is_free(port)) port++;
        snprintf(member, sizeof member, "%s%d=127.0.0.1:%d", i > 1 ? "," : "", (int)i, (int)port++);
        bytes_add(&text, member, strlen(member));
    }
    if (port > last) system_error("no free ports from %d on", (int)request->port + AWAY);
    bytes_add(&text, "", 1);
    return (char *)text.at;
}

/* ---- Directories ---- */

/* A directory that is kept remembers who its servers are. */
static char *recall_ensemble(const struct request *request) {
    char path[1100], *line = NULL;
    size_t room = 0;
    uint64_t servers = 1;
    snprintf(path, sizeof path, "%s/ensemble", request->data);
    FILE *file = fopen(path, "r");
    if (file) {
        if (getline(&line, &room, file) < 0) system_error("%s: cannot be read", path);
        line[strcspn(line, "\n")] = 0;
        for (const char *at = line; *at; at++) servers += *at == ',';
        if (servers != request->servers)
            usage_error("%s has the data of %d servers: --servers %d", request->data, (int)servers,
                        (int)servers);
        fclose(file);
        return line;
    }
    line = choose_ensemble(request);
    file = fopen(path, "w");
    if (!file || fprintf(file, "%s\n", line) < 0 || fclose(file) != 0)
        system_error("%s: %s", path, strerror(errno));
    return line;
}

static int remove_one(const char *path, const struct stat *file, int type, struct FTW *where) {
    (void)file, (void)type, (void)where;
    return remove(path);
}

static void make_directory(struct request *request, char *room, size_t size) {
    const char *above = getenv("TMPDIR");
    if (request->data) {
        if (mkdir(request->data, 0750) != 0 && errno != EEXIST)
            system_error("%s: %s", request->data, strerror(errno));
        return;
    }
    snprintf(room, size, "%s/conclave-up-XXXXXX", above && *above ? above : "/tmp");
    if (!mkdtemp(room)) system_error("%s: %s", room, strerror(errno));
    request->data = room;
}

/* ---- The loop ---- */

static void read_input(struct up *up, bool keys, bool *open_) {
    char part[256];
    ssize_t size = read(STDIN_FILENO, part, sizeof part);
    if (size <= 0) *open_ = false;
    for (ssize_t i = 0; i < size; i++) {
        if (keys) {
            command_key(up, part[i]);
        } else if (part[i] == '\n') {
            up->input[up->input_used] = 0;
            up->input_used = 0;
            command_line(up, up->input);
        } else if (up->input_used < sizeof up->input - 1) {
            up->input[up->input_used++] = part[i];
        }
    }
}

static void read_signal(struct up *up, int signals) {
    struct signalfd_siginfo signal;
    while (read(signals, &signal, sizeof signal) == sizeof signal)
        if (signal.ssi_signo == SIGINT || signal.ssi_signo == SIGTERM || signal.ssi_signo == SIGHUP)
            up->ending = true;
    for (int i = 0; i < up->count; i++) server_reap(up, &up->server[i]);
}

/* Whether all have ended. */
static bool end_servers(struct up *up, uint64_t now_ms) {
    bool any = false;
    for (int i = 0; i < up->count; i++) {
        struct up_server *s = &up->server[i];
        any |= s->process != 0;
        if (!up->ending_ms) server_signal(s, SIGCONT), server_signal(s, SIGTERM);
        if (up->ending_ms && now_ms - up->ending_ms > UP_END_MS) server_signal(s, SIGKILL);
    }
    if (!up->ending_ms) up->ending_ms = now_ms;
    return !any;
}

/* None was ever of use, and they will not be: the options are wrong, or the directory. */
static bool all_failed(const struct up *up) {
    for (int i = 0; i < up->count; i++) {
        const struct up_server *s = &up->server[i];
        if (s->process || s->served || !s->failed) return false;
    }
    return true;
}

static int say_failure(const struct up_server *s) {
    fprintf(stderr, "conclave: no server could be started; server %d said:\n", s->number);
    size_t first = s->lines < UP_LINES ? 0 : s->lines - UP_LINES;
    for (size_t i = first; i < s->lines; i++) fprintf(stderr, "  %s\n", s->line[i % UP_LINES]);
    return s->failed;
}

static void run(struct up *up, int signals, bool keys) {
    enum { OWN = 3, TURN_MS = 50 };
    struct pollfd ready[OWN + 3 * UP_SERVERS_MAX];
    uint64_t shown_ms = 0;
    bool input = true;
    for (;;) {
        uint64_t now = fetch_now_ms();
        if (!up->picture || now - shown_ms >= UP_LOOK_MS) view_show(up, shown_ms = now);
        if ((up->ending && end_servers(up, now)) || all_failed(up)) return;
        nfds_t count = 0;
        ready[count++] = (struct pollfd){signals, POLLIN, 0};
        ready[count++] = (struct pollfd){input ? STDIN_FILENO : -1, POLLIN, 0};
        ready[count++] = (struct pollfd){up->order.state == FETCH_UNDER_WAY ? up->order.socket : -1,
                                         fetch_events(&up->order), 0};
        for (int i = 0; i < up->count; i++) server_await(&up->server[i], ready, &count);
        poll(ready, count, TURN_MS);
        if (ready[0].revents) read_signal(up, signals);
        if (ready[1].revents) {
            read_input(up, keys, &input);
            shown_ms = 0; /* who pressed a key is answered at once */
        }
        if (ready[2].revents) command_go_on(up, now);
        for (int i = 0; i < up->count; i++) server_go_on(&up->server[i], fetch_now_ms());
    }
}

/* ---- Beginning and end ---- */

static int take_signals(void) {
    static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) sigaddset(&set, wanted[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0) system_error("signals: %s", strerror(errno));
    return signals;
}

static void prepare(struct up *up, const struct request *request) {
    for (int i = 0; i < up->count; i++) {
        struct up_server *s = &up->server[i];
        s->number = i + 1;
        s->client_port = (int)request->port + i;
        s->out.from = s->log.from = s->fetch.socket = -1;
        snprintf(s->data, sizeof s->data, "%s/server%d", request->data, i + 1);
    }
}

static void dispose(struct up *up) {
    for (int i = 0; i < up->count; i++) server_close(&up->server[i]);
    fetch_close(&up->order);
    free(up->ensemble);
    free(up);
}

int cmd_up(int argc, char **argv) {
    static const struct argp argp = {options, parse, "[-- OPTION...]", doc, NULL, NULL, NULL};
    struct request request = {.servers = 3, .port = 2181};
    struct termios before, now;
    char room[1024];
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    struct up *up = calloc(1, sizeof *up);
    if (!up) system_error("no memory");
    up->count = (int)request.servers;
    up->extra = request.extra;
    up->picture = isatty(STDOUT_FILENO);
    bool keeps = request.data != NULL, keys = isatty(STDIN_FILENO);
    require_ports(&request);
    make_directory(&request, room, sizeof room);
    prepare(up, &request);
    up->data = request.data;
    up->ensemble = keeps ? recall_ensemble(&request) : choose_ensemble(&request);
    int signals = take_signals();
    if (keys) {
        tcgetattr(STDIN_FILENO, &before);
        now = before;
        now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    view_open(up);
    for (int i = 0; i < up->count; i++) server_start(up, &up->server[i]);
    run(up, signals, keys);
    view_close(up);
    if (keys) tcsetattr(STDIN_FILENO, TCSANOW, &before);
    if (!keeps) nftw(up->data, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    int status = all_failed(up) ? say_failure(&up->server[0]) : EXIT_OK;
    if (!status)
        printf("conclave: %d servers have ended%s%s\n", up->count,
               keeps ? "; their data is in " : "", keeps ? up->data : "");
    dispose(up);
    close(signals);
    return status;
}
