/* conclave serve: the server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "server/server.h"

enum {
    KEY_LISTEN = 256,
    KEY_DATA,
    KEY_LOG,
    KEY_HTTP,
    KEY_CONFIG,
    KEY_SET,
    KEY_TLS_LISTEN,
    KEY_TLS_CERT,
    KEY_TLS_KEY,
    KEY_TLS_PASSWORD,
    KEY_TLS_CA,
    KEY_TLS_CLIENTS,
    KEY_TLS_SAME_PORT,
    KEY_ID,
    KEY_ENSEMBLE,
    KEY_JOIN,
    KEY_READS,
    KEY_PEER_KEY,
    KEY_PEER_TLS_CERT,
    KEY_PEER_TLS_KEY,
    KEY_PEER_TLS_CA,
    KEY_INSECURE,
};

static const struct argp_option options[] = {
    {"listen", KEY_LISTEN, "HOST:PORT", 0,
     "Where clients connect (127.0.0.1:2181); * is every address, port 0 any free one; may be "
     "given several times",
     0},
    {"data", KEY_DATA, "DIR", 0, "Where snapshots and the log are kept (./conclave-data)", 0},
    {"log", KEY_LOG, "DIR", 0, "Where the log is kept, if elsewhere", 0},
    {"http", KEY_HTTP, "HOST:PORT|off", 0,
     "Where metrics and status are read over HTTP (127.0.0.1:8080)", 0},
    {"config", KEY_CONFIG, "FILE", 0, "Read a zoo.cfg; options behind it count more", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "One line of a zoo.cfg, such as tickTime=1000", 0},
    {"tls-listen", KEY_TLS_LISTEN, "HOST:PORT", 0,
     "Where clients connect with TLS; several with commas.  Without --listen there is no other "
     "place",
     1},
    {"tls-same-port", KEY_TLS_SAME_PORT, NULL, 0, "Clients may use TLS where --listen says, too",
     1},
    {"tls-cert", KEY_TLS_CERT, "FILE", 0, "The server's certificate and those above it, PEM", 1},
    {"tls-key", KEY_TLS_KEY, "FILE", 0, "The certificate's private key, PEM", 1},
    {"tls-password-file", KEY_TLS_PASSWORD, "FILE", 0,
     "Its first line is the key's password; or set CONCLAVE_TLS_PASSWORD in the environment", 1},
    {"tls-ca", KEY_TLS_CA, "FILE", 0, "Whose clients' certificates are trusted, PEM", 1},
    {"tls-clients", KEY_TLS_CLIENTS, "none|want|need", 0,
     "Whether clients show a certificate (need with --tls-ca, else none); who does is x509:NAME "
     "in ACLs",
     1},
    {"id", KEY_ID, "N", 0, "This server's number in the ensemble", 2},
    {"ensemble", KEY_ENSEMBLE, "N=HOST:PORT,...", 0,
     "All servers of the ensemble, this one too, and where each hears the others", 2},
    {"join", KEY_JOIN, NULL, 0,
     "The ensemble is there already: wait until it adds this server ('conclave ensemble add')", 2},
    {"reads", KEY_READS, "sequential|linearizable", 0,
     "Whether reads may be a little older than the newest write (sequential)", 2},
    {"peer-key", KEY_PEER_KEY, "FILE", 0,
     "A secret that all servers share, of 16 bytes or more, for their eyes only", 2},
    {"peer-tls-cert", KEY_PEER_TLS_CERT, "FILE", 0, "Or: this server's certificate, PEM", 2},
    {"peer-tls-key", KEY_PEER_TLS_KEY, "FILE", 0, "its private key", 2},
    {"peer-tls-ca", KEY_PEER_TLS_CA, "FILE", 0, "and whose certificates the others show", 2},
    {"insecure", KEY_INSECURE, NULL, 0,
     "Let servers on other machines be believed without a key or certificates", 2},
    {0}};

static const char doc[] =
    "A coordination server: a tree of versioned nodes with sessions, watches and transactions, for "
    "any client of ZooKeeper.  What it has acknowledged survives a crash.\v"
    "It runs until SIGTERM or SIGINT.  Log lines go to standard error.\n\n"
    "Examples:\n"
    "  conclave serve\n"
    "  conclave serve --listen '*:2181' --data /var/lib/conclave\n"
    "  conclave serve --tls-listen '*:2281' --tls-cert server.pem --tls-key server.key --tls-ca "
    "ca.pem\n"
    "  conclave serve --id 1 --ensemble 1=10.0.0.1:2888,2=10.0.0.2:2888,3=10.0.0.3:2888 "
    "--peer-key /etc/conclave/key\n"
    "  conclave serve --config /etc/zookeeper/zoo.cfg --set 4lw.commands.whitelist='*'\n";

struct request {
    struct settings settings;
    struct bytes listen; /* what --listen said, with commas */
};

static void set(struct settings *settings, const char *key, const char *value) {
    char error[SETTINGS_ERROR_MAX];
    enum settings_outcome outcome = settings_set(settings, key, value, error, sizeof error);
    if (outcome == SETTINGS_BAD || outcome == SETTINGS_UNKNOWN) usage_error("%s", error);
    if (outcome == SETTINGS_IGNORED) fprintf(stderr, "conclave: warning: %s\n", error);
}

static void set_pair(struct settings *settings, char *pair) {
    char *equals = strchr(pair, '=');
    if (!equals) usage_error("set: '%s' is not KEY=VALUE", pair);
    *equals = 0;
    if (equals - pair > 8 && strcasecmp(equals - 8, "password") == 0)
        usage_error("set: %s: everybody can see a command line; let a file say it", pair);
    set(settings, pair, equals + 1);
}

static void read_password(struct settings *settings, const char *path) {
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    if (!file || getline(&line, &room, file) < 0)
        usage_error("tls-password-file: %s: %s", path, file ? "is empty" : strerror(errno));
    line[strcspn(line, "\r\n")] = 0;
    set(settings, "tls.keyPassword", line);
    free(line);
    fclose(file);
}

/* What is the same as a line of a zoo.cfg; NULL: another option. */
static const char *key_of(int option) {
    switch (option) {
    case KEY_DATA: return "dataDir";
    case KEY_LOG: return "dataLogDir";
    case KEY_HTTP: return "listen.http";
    case KEY_TLS_LISTEN: return "listen.tls";
    case KEY_TLS_CERT: return "tls.certificate";
    case KEY_TLS_KEY: return "tls.key";
    case KEY_TLS_CA: return "tls.authorities";
    case KEY_TLS_CLIENTS: return "ssl.clientAuth";
    case KEY_ID: return "myid";
    case KEY_ENSEMBLE: return "ensemble";
    case KEY_READS: return "ensemble.reads";
    case KEY_PEER_KEY: return "ensemble.keyFile";
    case KEY_PEER_TLS_CERT: return "ensemble.certificate";
    case KEY_PEER_TLS_KEY: return "ensemble.certificateKey";
    case KEY_PEER_TLS_CA: return "ensemble.authorities";
    default: return NULL;
    }
}

static void report(void *context, bool failed, const char *text) {
    (void)context;
    fprintf(stderr, "conclave: %s%s\n", failed ? "" : "warning: ", text);
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    if (key_of(key)) {
        set(&request->settings, key_of(key), text);
        return 0;
    }
    switch (key) {
    case KEY_LISTEN:
        if (request->listen.used) bytes_add(&request->listen, ",", 1);
        bytes_add(&request->listen, text, strlen(text));
        return 0;
    case KEY_TLS_SAME_PORT: request->settings.same_port = true; return 0;
    case KEY_JOIN: request->settings.join = true; return 0;
    case KEY_INSECURE: request->settings.insecure = true; return 0;
    case KEY_TLS_PASSWORD: read_password(&request->settings, text); return 0;
    case KEY_SET: set_pair(&request->settings, text); return 0;
    case KEY_CONFIG:
        if (settings_read(&request->settings, text, report, NULL) != 0) exit(EXIT_USAGE);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int cmd_serve(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    struct server *server = malloc(sizeof *server);
    struct request request = {0};
    char error[SETTINGS_ERROR_MAX];
    settings_default(&request.settings);
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    const char *password = getenv("CONCLAVE_TLS_PASSWORD");
    if (password && !*request.settings.tls_key_password)
        set(&request.settings, "tls.keyPassword", password);
    if (request.listen.used) {
        bytes_add(&request.listen, "", 1);
        set(&request.settings, "listen", (const char *)request.listen.at);
        bytes_close(&request.listen);
    }
    if (settings_settle(&request.settings, error, sizeof error) != 0) usage_error("%s", error);
    if (!server) system_error("no memory");
    int status = server_run(server, &request.settings);
    free(server);
    return status;
}
