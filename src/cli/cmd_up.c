/* conclave up: a local ensemble in one terminal, for trying things out. */
#include <errno.h>
#include <stdlib.h>

#include "base/secret.h"
#include "cli/cli.h"
#include "cli/up.h"

enum { KEY_SERVERS = 256, KEY_PORT, KEY_DATA, KEY_RECORD };

static const struct argp_option options[] = {
    {"servers", KEY_SERVERS, "N", 0, "Number of servers, 1 to 9 (3)", 0},
    {"port", KEY_PORT, "PORT", 0,
     "Client port of server 1 (2181).  The other servers have the ports after it", 0},
    {"data", KEY_DATA, "DIR", 0,
     "Directory for the servers' data, which is kept for the next time.  Without it the data is "
     "removed at the end",
     0},
    {"record", KEY_RECORD, NULL, 0,
     "Let each server record its consensus in DIR/serverN.record, for 'conclave trace' to replay "
     "and to judge; with --data",
     0},
    {0}};

static const char doc[] =
    "Starts an ensemble on this machine and shows its state: which server leads, what is "
    "committed, how many clients are connected, and the end of each server's log.  Kill a server "
    "and watch the others go on.\v"
    "Keys, N being the number of a server:\n"
    "  k N   kill it (SIGKILL)\n"
    "  s N   stop it (SIGSTOP)\n"
    "  c N   let it continue (SIGCONT)\n"
    "  r N   restart it, or start it again\n"
    "  t N   transfer leadership to it\n"
    "  q     end all servers, and quit\n\n"
    "If standard input is not a terminal, commands are read from it, one per line: kill 1, stop 1, "
    "continue 1, start 1, restart 1, transfer 2, status, quit.  At the end of the input the "
    "servers go on until SIGTERM.  If standard output is not a "
    "terminal, a line is printed whenever the state of a server changes.  Options after -- are "
    "given to every server.\n\n"
    "The column 'http' has the ports for browsers, which get the server's page there, and for "
    "'conclave ensemble --at'.\n\n"
    "Examples:\n"
    "  conclave up\n"
    "  conclave up --servers 5 --port 3181 --data ./ensemble\n"
    "  conclave up -- --reads linearizable\n"
    "  conclave ensemble status --at 127.0.0.1:38539\n"
    "  conclave up --data ./ensemble --record\n"
    "  conclave trace merge --trace svg --output run.svg ./ensemble/*.record\n";

struct request {
    uint64_t servers, port;
    const char *data;
    bool records;
    struct up_options extra;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_SERVERS: request->servers = up_number("servers", text, 1, UP_SERVERS_MAX); return 0;
    case KEY_PORT: request->port = up_number("port", text, 1, 60000); return 0;
    case KEY_DATA: request->data = text; return 0;
    case KEY_RECORD: request->records = true; return 0;
    case ARGP_KEY_ARG: up_add_option(&request->extra, text, "servers"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Ports ---- */

static void require_ports(const struct request *request) {
    for (uint64_t i = 0; i < request->servers; i++)
        if (!up_port_is_free(request->port + i))
            system_error("port %d is in use; choose another first port with --port",
                         (int)(request->port + i));
}

/* The ports for links between servers are near those for clients, and not in the range from which
 * the system picks ports for connections: they have to be free the next time, too. */
static char *choose_ensemble(const struct request *request) {
    enum { DISTANCE = 700, TRIES = 500 };
    struct bytes text = {0};
    char member[48];
    uint64_t port = request->port + DISTANCE, last = port + TRIES;
    for (uint64_t i = 1; i <= request->servers; i++) {
        while (port < last && !up_port_is_free(port)) port++;
        snprintf(member, sizeof member, "%s%d=127.0.0.1:%d", i > 1 ? "," : "", (int)i, (int)port++);
        bytes_add(&text, member, strlen(member));
    }
    if (port > last) system_error("no free ports from %d on", (int)request->port + DISTANCE);
    bytes_add(&text, "", 1);
    return (char *)text.at;
}

/* ---- Directories ---- */

/* A directory that is kept has a file with the addresses of its servers. */
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
            usage_error("%s has the data of %d servers; start them with --servers %d",
                        request->data, (int)servers, (int)servers);
        fclose(file);
        return line;
    }
    line = choose_ensemble(request);
    file = fopen(path, "w");
    if (!file || fprintf(file, "%s\n", line) < 0 || fclose(file) != 0)
        system_error("%s: %s", path, strerror(errno));
    return line;
}

/* Whether the options after -- say how these servers know each other. */
static bool has_credentials(const struct request *request) {
    for (size_t i = 0; i < request->extra.count; i++)
        if (strncmp(request->extra.at[i], "--peer-", 7) == 0 ||
            strcmp(request->extra.at[i], "--insecure") == 0)
            return true;
    return false;
}

/* A secret of these servers alone, made once. */
static char *make_key(const struct request *request) {
    char *path;
    if (has_credentials(request)) return NULL;
    if (asprintf(&path, "%s/key", request->data) < 0) system_error("no memory");
    int error = secret_make(path);
    if (error && error != EEXIST) system_error("%s: %s", path, strerror(error));
    return path;
}

static void prepare(struct up *up, const struct request *request) {
    for (int i = 0; i < up->count; i++) {
        struct up_server *s = &up->server[i];
        s->number = i + 1;
        s->client_port = (int)request->port + i;
        s->in = s->out.from = s->log.from = s->fetch.socket = -1;
        snprintf(s->data, sizeof s->data, "%s/server%d", request->data, i + 1);
    }
}

int cmd_up(int argc, char **argv) {
    static const struct argp argp = {options, parse, "[-- OPTION...]", doc, NULL, NULL, NULL};
    struct request request = {.servers = 3, .port = 2181};
    char room[1024];
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    struct up *up = calloc(1, sizeof *up);
    if (!up) system_error("no memory");
    if (request.records && !request.data)
        usage_error("--record goes with --data DIR: without it the records would be removed, too");
    up->kind = &up_servers;
    up->count = (int)request.servers;
    up->extra = request.extra.at;
    up->keeps = request.data != NULL;
    up->records = request.records;
    require_ports(&request);
    request.data = up_directory(request.data, room, sizeof room);
    prepare(up, &request);
    up->data = request.data;
    up->key = make_key(&request);
    up->ensemble = up->keeps ? recall_ensemble(&request) : choose_ensemble(&request);
    return up_run(up);
}
