/* What the commands share that run several processes in one terminal: ports, directories, the loop.
 */
#include <arpa/inet.h>
#include <errno.h>
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

void up_add_option(struct up_options *options, char *text, const char *whose) {
    if (options->count + 1 == sizeof options->at / sizeof options->at[0])
        usage_error("too many options after --");
    if (!options->count && *text != '-')
        usage_error("'%s' is not an option; options of %s come after --", text, whose);
    options->at[options->count++] = text;
}

uint64_t up_number(const char *name, const char *text, uint64_t min, uint64_t max) {
    uint64_t number;
    if (parse_u64(text, &number) != 0 || number < min || number > max)
        usage_error("%s: '%s' is not a number from %d to %d", name, text, (int)min, (int)max);
    return number;
}

/* ---- Ports and directories ---- */

bool up_port_is_free(uint64_t port) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool free_ = bind(socket_, (struct sockaddr *)&at, sizeof at) == 0 && listen(socket_, 1) == 0;
    close(socket_);
    return free_;
}

static int remove_one(const char *path, const struct stat *file, int type, struct FTW *where) {
    (void)file, (void)type, (void)where;
    return remove(path);
}

const char *up_directory(const char *given, char *room, size_t size) {
    const char *above = getenv("TMPDIR");
    if (given) {
        if (mkdir(given, 0750) != 0 && errno != EEXIST)
            system_error("%s: %s", given, strerror(errno));
        return given;
    }
    snprintf(room, size, "%s/conclave-up-XXXXXX", above && *above ? above : "/tmp");
    if (!mkdtemp(room)) system_error("%s: %s", room, strerror(errno));
    return room;
}

/* ---- The loop ---- */

static void take_line(struct up *up) {
    up->input[up->input_used] = 0;
    up->input_used = 0;
    command_line(up, up->input);
}

/* The end of the input ends nothing: a script may have written all that it wants to happen. */
static void read_input(struct up *up, bool keys, bool *open_) {
    char part[256];
    ssize_t size = read(STDIN_FILENO, part, sizeof part);
    if (size <= 0) {
        *open_ = false;
        take_line(up);
    }
    for (ssize_t i = 0; i < size; i++) {
        if (keys) {
            command_key(up, part[i]);
        } else if (part[i] == '\n') {
            take_line(up);
        } else if (up->input_used < sizeof up->input - 1) {
            up->input[up->input_used++] = part[i];
        }
    }
}

static void read_signal(struct up *up, int signals) {
    struct signalfd_siginfo signal;
    while (read(signals, &signal, sizeof signal) == sizeof signal)
        if (signal.ssi_signo != SIGCHLD && signal.ssi_signo != SIGWINCH) up->ending = true;
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

static bool never_served(const struct up_server *s) {
    return !s->process && !s->served && s->failed;
}

/* No server ever served, and none will: the options are wrong, or the directory. */
static bool all_failed(const struct up *up) {
    for (int i = 0; i < up->count; i++)
        if (!never_served(&up->server[i])) return false;
    return true;
}

/* Of the first that could not be started, if there is one.  Returns the exit status. */
static int print_failure(const struct up *up) {
    const struct up_server *s = up->server, *end = s + up->count;
    while (s < end && !never_served(s)) s++;
    if (s == end) return EXIT_OK;
    if (all_failed(up))
        fprintf(stderr, "conclave: no %s could be started; the log of %s %d:\n", up->kind->noun,
                up->kind->noun, s->number);
    else
        fprintf(stderr, "conclave: %s %d could not be started; its log:\n", up->kind->noun,
                s->number);
    size_t first = s->lines < UP_LINES ? 0 : s->lines - UP_LINES;
    for (size_t i = first; i < s->lines; i++) fprintf(stderr, "  %s\n", s->line[i % UP_LINES]);
    return s->failed;
}

static void go_on(struct up *up, int signals, bool keys) {
    enum { OWN = 3, POLL_MS = 50 };
    struct pollfd ready[OWN + 3 * UP_MAX];
    uint64_t shown_ms = 0;
    bool input = true;
    for (;;) {
        uint64_t now = fetch_now_ms();
        if (!up->picture || now - shown_ms >= UP_REFRESH_MS) view_show(up, shown_ms = now);
        if ((up->ending && end_servers(up, now)) || all_failed(up)) return;
        nfds_t count = 0;
        ready[count++] = (struct pollfd){signals, POLLIN, 0};
        ready[count++] = (struct pollfd){input ? STDIN_FILENO : -1, POLLIN, 0};
        ready[count++] =
            (struct pollfd){up->transfer.state == FETCH_UNDER_WAY ? up->transfer.socket : -1,
                            fetch_events(&up->transfer), 0};
        for (int i = 0; i < up->count; i++) server_await(&up->server[i], ready, &count);
        poll(ready, count, POLL_MS);
        if (ready[0].revents) read_signal(up, signals);
        if (ready[1].revents) {
            read_input(up, keys, &input);
            shown_ms = 0; /* a key takes effect at once */
        }
        if (ready[2].revents) command_go_on(up, now);
        command_watch_transfer(up, now);
        for (int i = 0; i < up->count; i++) server_go_on(&up->server[i], fetch_now_ms());
    }
}

/* ---- Beginning and end ---- */

static int take_signals(void) {
    static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) sigaddset(&set, wanted[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0) system_error("signals: %s", strerror(errno));
    return signals;
}

static void dispose(struct up *up) {
    for (int i = 0; i < up->count; i++) server_close(&up->server[i]);
    fetch_close(&up->transfer);
    free(up->ensemble);
    free(up->key);
    free(up->group);
    free(up->list);
    free(up);
}

int up_run(struct up *up) {
    struct termios before, now;
    bool keys = isatty(STDIN_FILENO);
    up->picture = isatty(STDOUT_FILENO);
    int signals = take_signals();
    if (keys) {
        tcgetattr(STDIN_FILENO, &before);
        now = before;
        now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    view_open(up);
    for (int i = 0; i < up->count; i++) server_start(up, &up->server[i]);
    go_on(up, signals, keys);
    view_close(up);
    if (keys) tcsetattr(STDIN_FILENO, TCSANOW, &before);
    if (!up->keeps) nftw(up->data, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (!all_failed(up)) up->kind->ended(up);
    int status = print_failure(up);
    dispose(up);
    close(signals);
    return status;
}
