/* A participant that stays: for whoever types (conclave peer interactive), or for the commands that
 * come to its socket (conclave peer run). */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/notify.h"
#include "cli/cli.h"
#include "cli/lease.h"
#include "cli/lines.h"
#include "cli/peer_clients.h"
#include "cli/peer_remains.h"
#include "process/roster.h"

enum { LINE_MAX_ = 64, SHOW_MS = 200, FIELDS_MAX = 1024 };
enum { FAREWELL_MS = 2000 };

struct talk {
    struct peer_request *request;
    struct peer_thread *thread;
    struct clients *clients; /* NULL: somebody types */
    bool wants, inside;      /* who types */
    uint64_t token;          /* of the last stay */
    struct lines lines, errors;
    struct peer_remains remains;
    char line[LINE_MAX_];
    size_t used;
    bool quits;
};

static void wake(void *arg) {
    uint64_t one = 1;
    if (write(*(int *)arg, &one, sizeof one) < 0) return; /* it is awake */
}

static void take_tells(struct talk *talk) {
    struct cv_tell tell;
    while (peer_thread_next(talk->thread, &tell)) {
        char term[24] = "";
        if (tell.term) snprintf(term, sizeof term, " in term %u", tell.term);
        switch (tell.what) {
        case CV_ENTERED:
            talk->inside = true;
            talk->token = tell.arg;
            if (tell.arg)
                lines_say(&talk->lines, "inside, token %" PRIu64, tell.arg);
            else
                lines_say(&talk->lines, "inside");
            break;
        case CV_LEFT:
            talk->wants = talk->inside = false;
            lines_say(&talk->lines, "idle");
            break;
        case CV_ELECTED: lines_say(&talk->lines, "leads%s", term); break;
        case CV_FOLLOWS: lines_say(&talk->lines, "follows %" PRIu64 "%s", tell.arg, term); break;
        case CV_LEADERLESS: lines_say(&talk->lines, "leaderless"); break;
        default: continue;
        }
        if (talk->clients) clients_told(talk->clients, &tell);
    }
}

/* "cut 2" or "heal 2": the network between this peer and another. */
static bool take_parting(struct talk *talk, const char *line) {
    const struct peer_setup *setup = &talk->request->setup;
    char word[8], rest[2];
    unsigned other;
    if (sscanf(line, "%7s %u %1s", word, &other, rest) != 2) return false;
    bool cut = strcmp(word, "cut") == 0;
    if ((!cut && strcmp(word, "heal") != 0) || other == setup->config.self || !other ||
        other > setup->group.processes)
        return false;
    peer_thread_part(talk->thread, other, cut);
    return true;
}

static void take_command(struct talk *talk, const char *line) {
    const struct peer_request *request = talk->request;
    bool lock = request->setup.group.algorithm->problem == CV_MUTEX;
    bool serves = request->setup.config.self <= request->setup.group.servers;
    if (strcmp(line, "quit") == 0 || strcmp(line, "q") == 0) {
        talk->quits = true;
    } else if (strcmp(line, "acquire") == 0 && lock && !serves && !talk->wants) {
        talk->wants = true;
        lines_say(&talk->lines, "waits");
        peer_thread_call(talk->thread, CV_ACQUIRE);
    } else if (strcmp(line, "release") == 0 && talk->inside) {
        talk->inside = false;
        peer_thread_call(talk->thread, CV_RELEASE);
    } else if (strcmp(line, "campaign") == 0 && !lock) {
        peer_thread_call(talk->thread, CV_CAMPAIGN);
    } else if (*line && !take_parting(talk, line)) {
        lines_say(&talk->errors,
                  "conclave: '%s' is nothing that peer %u can do now; there are %s, cut N, heal N "
                  "and quit",
                  line, request->setup.config.self, lock ? "acquire, release" : "campaign");
    }
}

static void read_input(struct talk *talk) {
    char part[256];
    ssize_t size = read(STDIN_FILENO, part, sizeof part);
    if (size <= 0) talk->quits = true;
    for (ssize_t i = 0; i < size && !talk->quits; i++) {
        if (part[i] == '\n') {
            talk->line[talk->used] = 0;
            talk->used = 0;
            take_command(talk, talk->line);
        } else if (talk->used < sizeof talk->line - 1) {
            talk->line[talk->used++] = part[i];
        }
    }
}

/* Those that are ignored, as by nohup, stay so. */
static int take_signals(void) {
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < 3; i++)
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, ending[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0) system_error("signals: %s", strerror(errno));
    return signals;
}

/* Unless somebody else has put another one there. */
static void remove_socket(const struct clients *clients) {
    struct stat now;
    if (lstat(clients->path, &now) == 0 && now.st_ino == clients->place.st_ino &&
        now.st_dev == clients->place.st_dev)
        unlink(clients->path);
}

static void open_thread(struct talk *talk, int *woken) {
    const struct peer_setup *setup = &talk->request->setup;
    char error[PEER_ERROR_MAX];
    *woken = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (*woken < 0) system_error("no descriptor: %s", strerror(errno));
    talk->thread = peer_thread_open(&setup->config, &setup->credentials, wake, woken, error);
    if (talk->thread) return;
    if (talk->clients) remove_socket(talk->clients);
    system_error("peer %u cannot start: %s", setup->config.self, error);
}

static void close_files(struct talk *talk, int signals) {
    peer_remains_close(&talk->remains);
    lines_close(&talk->lines);
    lines_close(&talk->errors);
    close(signals);
}

/* What it writes to, and its data; false: a signal came meanwhile, and all is closed. */
static bool open_files(struct talk *talk, int signals) {
    const struct peer_setup *setup = &talk->request->setup;
    struct pollfd end = {signals, POLLIN, 0};
    char error[PEER_ERROR_MAX];
    bool said = false;
    int gone;
    lines_open(&talk->lines, STDOUT_FILENO);
    lines_open(&talk->errors, STDERR_FILENO);
    lines_take_log(&talk->errors);
    if (peer_remains_open(&talk->remains, setup->config.data, error) != 0)
        system_error("peer %u cannot start: %s", setup->config.self, error);
    while (!(gone = peer_remains_are_gone(&talk->remains))) {
        if (!said) lines_say(&talk->errors, "conclave: " REMAINS_WAIT);
        said = true;
        if (poll(&end, 1, REMAINS_LOOK_MS) > 0) return close_files(talk, signals), false;
    }
    if (gone < 0) system_error("peer %u cannot start: %s", setup->config.self, strerror(errno));
    return true;
}

static bool all_is_said(struct talk *talk) {
    bool lines = lines_flush(&talk->lines);
    return lines_flush(&talk->errors) && lines;
}

/* Returns the exit code.  Whoever types is not inside any more, nor is a command that was turned
 * away; one that is, is left alone. */
static int close_thread(struct talk *talk, int signals, int woken) {
    if (!talk->clients || talk->clients->phase == ASKED) peer_thread_abandon(talk->thread);
    peer_thread_farewell(talk->thread);
    const char *failure = peer_thread_failure(talk->thread);
    if (failure)
        lines_say(&talk->errors, "conclave: peer %u ends: %s", talk->request->setup.config.self,
                  failure);
    int code = failure ? exit_code(EXIT_SYSTEM) : EXIT_OK;
    if (peer_thread_close(talk->thread)) code = exit_code(EXIT_SYSTEM); /* which is logged */
    close_files(talk, signals);
    close(woken);
    return code;
}

static void drain(int file) {
    char part[256];
    while (read(file, part, sizeof part) > 0) continue;
}

int peer_interact(struct peer_request *request) {
    struct talk talk = {.request = request};
    const struct peer_setup *setup = &request->setup;
    int signals = take_signals(), woken;
    if (!open_files(&talk, signals)) return EXIT_OK;
    open_thread(&talk, &woken);
    lines_say(&talk.lines, "%s",
              setup->config.self <= setup->group.servers    ? "serves"
              : setup->group.algorithm->problem == CV_MUTEX ? "idle"
                                                            : "leaderless");
    struct pollfd ready[] = {{woken, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
    while (!talk.quits && !peer_thread_failure(talk.thread)) {
        if (poll(ready, 3, all_is_said(&talk) ? -1 : SHOW_MS) < 0) continue;
        if (ready[0].revents) drain(woken);
        take_tells(&talk);
        if (ready[1].revents) read_input(&talk);
        if (ready[2].revents) talk.quits = true;
    }
    return close_thread(&talk, signals, woken);
}

/* ---- For commands ---- */

static void take_part(struct talk *talk) {
    const struct peer_setup *setup = &talk->request->setup;
    const struct cv_algorithm *code = setup->group.algorithm;
    lines_say(&talk->lines, "ready id=%u algorithm=%s", setup->config.self, code->name);
    notify_service_manager("READY=1");
    bool serves = setup->config.self <= setup->group.servers;
    if (serves) peer_thread_done(talk->thread, true); /* who is done need not wait for it */
    if (code->problem != CV_ELECTION) return;
    talk->clients->role.what = CV_LEADERLESS;
    if (!serves) peer_thread_call(talk->thread, CV_CAMPAIGN);
}

static const char *state_word(const struct talk *talk) {
    static const char *const of_lock[] = {"idle", "waits", "inside", "leaves"};
    const struct peer_setup *setup = &talk->request->setup;
    if (setup->config.self <= setup->group.servers) return "serves";
    if (setup->group.algorithm->problem == CV_MUTEX) return of_lock[talk->clients->phase];
    uint32_t role = talk->clients->role.what;
    return role == CV_ELECTED ? "leads" : role == CV_FOLLOWS ? "follows" : "leaderless";
}

static json_t *pids(const struct peer_view *view, uint32_t processes, uint8_t bit) {
    json_t *list = json_array();
    for (cv_pid p = 1; p <= processes; p++)
        if (view->other[p] & bit) json_array_append_new(list, json_integer(p));
    return list;
}

/* What a trace would show of it. */
static char *fields_of(const struct group *group, const struct peer_view *view,
                       char text[FIELDS_MAX]) {
    struct roster roster = {.processes = group->processes}; /* by number, coordinators as well */
    *text = 0;
    record_print(text, FIELDS_MAX, group->algorithm->state, view->state, view->rows, view->first,
                 CV_SHOWN, &roster);
    return text;
}

static json_t *describe(const struct talk *talk, const struct peer_view *view) {
    const struct group *group = &talk->request->setup.group;
    const struct clients *clients = talk->clients;
    char fields[FIELDS_MAX];
    json_t *state = json_object();
    json_object_set_new(state, "id", json_integer(talk->request->setup.config.self));
    json_object_set_new(state, "algorithm", json_string(group->algorithm->name));
    json_object_set_new(state, "processes", json_integer(group->processes));
    json_object_set_new(state, "state", json_string(state_word(talk)));
    if (clients->phase == INSIDE && talk->token)
        json_object_set_new(state, "token", json_integer((json_int_t)talk->token));
    if (clients->role.what == CV_ELECTED || clients->role.what == CV_FOLLOWS) {
        json_object_set_new(state, "leader", json_integer((json_int_t)clients->role.arg));
        json_object_set_new(state, "term", json_integer(clients->role.term));
    }
    json_object_set_new(state, "queue", json_integer(clients_queue(clients)));
    json_object_set_new(state, "fields", remote_json_name(fields_of(group, view, fields)));
    json_object_set_new(state, "connected", pids(view, group->processes, PEER_CONNECTED));
    json_object_set_new(state, "suspected", pids(view, group->processes, PEER_SUSPECTED));
    return state;
}

static void show(struct talk *talk) {
    struct peer_view view;
    peer_thread_view(talk->thread, &view);
    json_t *state = describe(talk, &view);
    char *text = json_dumps(state, JSON_COMPACT), *line;
    if (!text || asprintf(&line, "state %s\n", text) < 0) system_error("out of memory");
    clients_show(talk->clients, line);
    free(line);
    free(text);
    json_decref(state);
    free(view.state);
}

/* Who is inside is waited for, and so is a command that runs while it leads: each has the grace
 * that it was started with.  The others have some time to answer what nobody here wants any more.
 */
static bool may_end(const struct clients *clients, int64_t asked_at) {
    int64_t passed = lease_now() - asked_at;
    return clients->ending && !clients_run(clients) &&
           (clients->phase == OUTSIDE || (clients->phase == ASKED && passed >= FAREWELL_MS));
}

static void stay(struct talk *talk, int signals, int woken) {
    struct clients *clients = talk->clients;
    struct pollfd files[CLIENTS_MAX + 3] = {{woken, POLLIN, 0}, {signals, POLLIN, 0}};
    int64_t asked_at = 0;
    unsigned asked_to = 0;
    while (!may_end(clients, asked_at) && asked_to < 2 && !peer_thread_failure(talk->thread)) {
        unsigned count = clients_poll(clients, files + 2);
        bool soon =
            clients->ending || clients->pausing || clients_watch(clients) || !all_is_said(talk);
        if (poll(files, count + 2, soon ? SHOW_MS : -1) < 0) continue;
        bool asked = clients->phase == ASKED;
        clients_serve(clients, files + 2, count);
        if (files[0].revents) drain(woken);
        take_tells(talk);
        if (!asked && clients->phase == ASKED) lines_say(&talk->lines, "waits");
        if (clients_watch(clients)) show(talk);
        if (!files[1].revents) continue;
        drain(signals);
        asked_to++;
        asked_at = lease_now();
        clients_end(clients);
    }
}

int peer_stay(struct peer_request *request) {
    char room[PEER_PATH_MAX], error[PEER_ERROR_MAX];
    const char *path = peer_socket_path(request->socket, room);
    struct clients clients = {.setup = &request->setup};
    struct talk talk = {.request = request, .clients = &clients};
    int signals = take_signals(), woken;
    if (!path) usage_error("run: there is no directory for the socket; give --socket PATH");
    if (!open_files(&talk, signals)) return EXIT_OK;
    clients.shared = talk.remains.shared;
    clients.path = path;
    clients.listener = peer_socket_listen(path, error);
    if (clients.listener < 0) system_error("%s", error);
    lstat(path, &clients.place);
    open_thread(&talk, &woken);
    clients.thread = talk.thread;
    take_part(&talk);
    stay(&talk, signals, woken);
    clients_close(&clients);
    remove_socket(&clients);
    return close_thread(&talk, signals, woken);
}
