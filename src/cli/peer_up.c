/* conclave peer up: a group of peers in one terminal, for trying an algorithm out. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "cli/cli.h"
#include "cli/peer.h"
#include "cli/up.h"

enum { KEY_ALGORITHM = 256, KEY_PROCESSES, KEY_PORT, KEY_DATA };

static const struct argp_option options[] = {
    {"algorithm", KEY_ALGORITHM, "NAME", 0, "see conclave list", 0},
    {"processes", KEY_PROCESSES, "N", 0, "number of those that compete (5)", 0},
    {"port", KEY_PORT, "PORT", 0, "port of peer 1 (7101); the others have the ports after it", 0},
    {"data", KEY_DATA, "DIR", 0,
     "directory for the list, the data and the records of the peers, which are kept; without it "
     "they are removed at the end",
     0},
    {0}};

static const char doc[] =
    "Starts a group of peers on this machine and shows their states: who is inside, who waits, who "
    "leads. Kill one and watch what that does to the others.\v"
    "Keys, N being the number of a peer:\n"
    "  a N   acquire: it wants the lock\n"
    "  l N   release: it leaves\n"
    "  e N   campaign: it wants an election\n"
    "  k N   kill it (SIGKILL)\n"
    "  s N   stop it (SIGSTOP)\n"
    "  c N   let it continue (SIGCONT)\n"
    "  r N   restart it, or start it again\n"
    "  x N   cut it off from all others; X N M cuts the network between two\n"
    "  h N   heal what was cut; H N M between two\n"
    "  q     end all, and quit\n"
    "With more than nine peers, Enter ends a number.\n\n"
    "If standard input is not a terminal, commands are read from it, one per line: acquire 1, "
    "release 1, campaign 1, kill 1, stop 1, continue 1, start 1, restart 1, cut 1, cut 1 2, heal "
    "1, "
    "heal 1 2, heal, status, quit.  At the end of the input the peers go on until SIGTERM.  If "
    "standard output is not a terminal, a line is printed whenever the state of a peer changes.  "
    "Options after -- are given to every peer.\n\n"
    "Examples:\n"
    "  conclave peer up --algorithm lamport --processes 3\n"
    "  conclave peer up --algorithm bully --data ./group -- --detector phi:8\n"
    "  conclave trace merge ./group/*.record\n";

struct request {
    const struct cv_algorithm *algorithm;
    uint64_t processes, port;
    const char *data;
    struct up_options extra;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_ALGORITHM: request->algorithm = require_algorithm(text); return 0;
    case KEY_PROCESSES: request->processes = up_number("processes", text, 1, UP_MAX); return 0;
    case KEY_PORT: request->port = up_number("port", text, 1, 60000); return 0;
    case KEY_DATA: request->data = text; return 0;
    case ARGP_KEY_ARG: up_add_option(&request->extra, text, "peers"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- What is particular about peers ---- */

static int peer_options(struct up *up, struct up_server *s, char **words) {
    int count = 0;
    snprintf(s->name, sizeof s->name, "%d", s->number);
    snprintf(s->record, sizeof s->record, "%s/%d.record", up->data, s->number);
    char *own[] = {"conclave", "peer",   "--algorithm", up->group, "--id",     s->name,
                   "--peers",  up->list, "--data",      s->data,   "--record", s->record};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) words[count++] = own[i];
    return count;
}

static void peers_ended(const struct up *up) {
    printf("conclave: %d peers have ended", up->count);
    if (up->keeps) printf("; 'conclave trace merge %s/*.record' judges what happened", up->data);
    putchar('\n');
}

const struct up_kind up_peers = {
    .noun = "peer",
    .speaks = true,
    .action = "interactive",
    .commands = "kscralexh",
    .options = peer_options,
    .ended = peers_ended,
};

/* ---- The list ---- */

static void write_list(const struct request *request, struct up *up) {
    if (asprintf(&up->list, "%s/peers.conf", up->data) < 0) system_error("out of memory");
    FILE *file = fopen(up->list, "w");
    if (!file) system_error("%s: %s", up->list, strerror(errno));
    for (int i = 1; i <= up->count; i++)
        fprintf(file, "%d 127.0.0.1:%d\n", i, (int)request->port + i - 1);
    if (request->algorithm->topology == CV_GRAPH) { /* a ring */
        fputs("edges", file);
        for (int i = 1; i < up->count; i++) fprintf(file, " %d-%d", i, i + 1);
        fprintf(file, up->count > 2 ? " %d-1\n" : "\n", up->count);
    }
    if (ferror(file) || fclose(file) != 0) system_error("%s: %s", up->list, strerror(errno));
}

/* Before anything is made. */
static void check_ports(const struct up *up, const struct request *request) {
    for (uint64_t port = request->port; port < request->port + (uint64_t)up->count; port++)
        if (!up_port_is_free(port))
            system_error("port %d is in use; choose another first port with --port", (int)port);
}

static void prepare(struct up *up, const struct request *request) {
    for (int i = 0; i < up->count; i++) {
        struct up_server *s = &up->server[i];
        s->number = i + 1;
        s->client_port = (int)request->port + i;
        s->in = s->out.from = s->log.from = s->fetch.socket = -1;
        snprintf(s->data, sizeof s->data, "%s/peer%d", up->data, i + 1);
    }
}

int peer_up(int argc, char **argv) {
    static const struct argp argp = {options, parse, "[-- OPTION...]", doc, NULL, NULL, NULL};
    struct request request = {.processes = 5, .port = 7101};
    struct group group;
    char room[1024];
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (!request.algorithm)
        usage_error("peer up: which --algorithm? For instance lamport; see conclave list");
    group_init(&group, request.algorithm);
    uint64_t servers = request.algorithm->servers ? request.algorithm->servers(group.option) : 0;
    group_free(&group);
    if (servers + request.processes > UP_MAX)
        usage_error("processes: at most %d, servers included", UP_MAX);
    struct up *up = calloc(1, sizeof *up);
    if (!up) system_error("out of memory");
    up->kind = &up_peers;
    up->count = (int)(servers + request.processes);
    up->extra = request.extra.at;
    up->keeps = request.data != NULL;
    up->group = strdup(request.algorithm->name);
    if (!up->group) system_error("out of memory");
    check_ports(up, &request);
    up->data = up_directory(request.data, room, sizeof room);
    prepare(up, &request);
    write_list(&request, up);
    return up_run(up);
}
