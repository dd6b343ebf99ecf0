/* conclave serve: the server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "service/admin/admin.h"

enum {
    KEY_LISTEN = 256,
    KEY_DATA,
    KEY_LOG,
    KEY_LOG_LEVEL,
    KEY_LOG_FORMAT,
    KEY_HTTP,
    KEY_ADMIN_TOKEN,
    KEY_WEB_WRITE,
    KEY_CONFIG,
    KEY_SET,
    KEY_SETTINGS,
    KEY_RECORD,
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
    KEY_FOUND,
    KEY_READS,
    KEY_PEER_KEY,
    KEY_PEER_TLS_CERT,
    KEY_PEER_TLS_KEY,
    KEY_PEER_TLS_CA,
    KEY_INSECURE,
};

static const struct argp_option options[] = {
    {"listen", KEY_LISTEN, "HOST:PORT", 0,
     "Address for clients (127.0.0.1:2181).  * is every address, port 0 any free port.  May be "
     "given several times",
     0},
    {"data", KEY_DATA, "DIR", 0, "Directory for snapshots and the log (./conclave-data)", 0},
    {"log", KEY_LOG, "DIR", 0, "Directory for the log, if other than --data", 0},
    {"log-level", KEY_LOG_LEVEL, "error|warning|info|debug", 0,
     "Write events of this severity and above to standard error (info)", 0},
    {"log-format", KEY_LOG_FORMAT, "text|json", 0,
     "Write each event as a sentence with key=value fields, or as a JSON object (text)", 0},
    {"http", KEY_HTTP, "HOST:PORT|off", 0,
     "Address for the page that browsers show, metrics and status over HTTP (127.0.0.1:8080)", 0},
    {"admin-token-file", KEY_ADMIN_TOKEN, "FILE", 0,
     "Let those who know the secret in this file change members over HTTP, and see all nodes on "
     "the page. Without it 'conclave ensemble' has to be run on this machine, by the server's user "
     "or root",
     0},
    {"web-write", KEY_WEB_WRITE, NULL, 0,
     "Let those who know the secret of --admin-token-file write nodes on the page that browsers "
     "show",
     0},
    {"config", KEY_CONFIG, "FILE", 0, "Read a zoo.cfg.  Options after it override what it says", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "Set one key of a zoo.cfg, such as tickTime=1000", 0},
    {"settings", KEY_SETTINGS, NULL, 0, "List all keys of a zoo.cfg, and end", 0},
    {"record", KEY_RECORD, "FILE", 0,
     "Record each step of the consensus core, for 'conclave trace' to replay and to judge.  At "
     "most 1 GiB is kept, in FILE and FILE.1; the key record.maxMiB sets another size",
     0},
    {NULL, 0, NULL, 0, "TLS for clients:", 1},
    {"tls-listen", KEY_TLS_LISTEN, "HOST:PORT", 0,
     "Address for clients that use TLS; commas separate several.  Without --listen, plain "
     "connections are not accepted",
     1},
    {"tls-same-port", KEY_TLS_SAME_PORT, NULL, 0, "Accept TLS at the addresses of --listen as well",
     1},
    {"tls-cert", KEY_TLS_CERT, "FILE", 0, "Certificate of the server, and the chain above it, PEM",
     1},
    {"tls-key", KEY_TLS_KEY, "FILE", 0, "Private key of --tls-cert, PEM", 1},
    {"tls-password-file", KEY_TLS_PASSWORD, "FILE", 0,
     "File whose first line is the password of --tls-key.  The environment variable "
     "CONCLAVE_TLS_PASSWORD can hold the password instead",
     1},
    {"tls-ca", KEY_TLS_CA, "FILE", 0, "Authorities that clients' certificates must come from, PEM",
     1},
    {"tls-clients", KEY_TLS_CLIENTS, "none|want|need", 0,
     "Whether clients have to show a certificate (need with --tls-ca, else none).  A client that "
     "shows one is x509:NAME in ACLs",
     1},
    {NULL, 0, NULL, 0, "Ensemble:", 2},
    {"id", KEY_ID, "N", 0, "Number of this server in the ensemble, 0 to 254", 2},
    {"ensemble", KEY_ENSEMBLE, "N=HOST:PORT,...", 0,
     "All servers of the ensemble, this one included, and the address at which each listens for "
     "the others",
     2},
    {"join", KEY_JOIN, NULL, 0,
     "Join an ensemble that runs already: wait until 'conclave ensemble add' names this server", 2},
    {"found", KEY_FOUND, NULL, 0,
     "Found the ensemble although some of its servers are not running yet: no server of --ensemble "
     "has any data.  Without it a server with an empty directory waits until it has heard that "
     "from all others, because one that has lost its data must not vote",
     2},
    {"reads", KEY_READS, "sequential|linearizable", 0,
     "A sequential read may miss the newest writes of other clients, as in ZooKeeper; a "
     "linearizable one never does (sequential)",
     2},
    {"peer-key", KEY_PEER_KEY, "FILE", 0,
     "File with a secret of 16 bytes or more that all servers share ('conclave key' makes one).  "
     "Only the server's user may be able to read it",
     2},
    {"peer-tls-cert", KEY_PEER_TLS_CERT, "FILE", 0,
     "Certificate of this server for the others, PEM, instead of --peer-key", 2},
    {"peer-tls-key", KEY_PEER_TLS_KEY, "FILE", 0, "Private key of --peer-tls-cert, PEM", 2},
    {"peer-tls-ca", KEY_PEER_TLS_CA, "FILE", 0,
     "Authority that has signed the certificates of all servers, PEM", 2},
    {"insecure", KEY_INSECURE, NULL, 0,
     "Do without a key and certificates: whoever can connect to a server's address in --ensemble "
     "is taken for a server, and can read and change all data",
     2},
    {0}};

static const char doc[] =
    "A coordination server: a tree of versioned nodes with sessions, watches and transactions, for "
    "any client of ZooKeeper.  What it has acknowledged survives a crash.\v"
    "The server runs until SIGTERM or SIGINT; SIGHUP makes it read certificates and keys again.  "
    "Its log goes to standard error, one event per line: "
    "time, severity, a sentence, and named fields.\n\n"
    "Examples:\n"
    "  conclave serve\n"
    "  conclave serve --listen '*:2181' --data /var/lib/conclave\n"
    "  conclave serve --tls-listen '*:2281' --tls-cert server.pem \\\n"
    "      --tls-key server.key --tls-ca ca.pem\n"
    "  conclave key /etc/conclave/key\n"
    "  conclave serve --id 1 --peer-key /etc/conclave/key \\\n"
    "      --ensemble 1=10.0.0.1:2888,2=10.0.0.2:2888,3=10.0.0.3:2888\n"
    "  conclave serve --settings\n"
    "  conclave serve --config /etc/zookeeper/zoo.cfg \\\n"
    "      --set 4lw.commands.whitelist='*'\n";

struct request {
    struct settings settings;
    struct bytes listen; /* all addresses of --listen, separated by commas */
};

static void set(struct settings *settings, const char *key, const char *value) {
    char error[SETTINGS_ERROR_MAX];
    enum settings_outcome outcome = settings_set(settings, key, value, error, sizeof error);
    if (outcome == SETTINGS_BAD || outcome == SETTINGS_UNKNOWN) usage_error("%s", error);
    if (outcome == SETTINGS_IGNORED) notice("warning: %s", error);
}

static void set_pair(struct settings *settings, char *pair) {
    char *equals = strchr(pair, '=');
    if (!equals) usage_error("set: '%s' is not KEY=VALUE", pair);
    *equals = 0;
    if (equals - pair > 8 && strcasecmp(equals - 8, "password") == 0)
        usage_error("set: %s: everybody on this machine can see a command line; put the password "
                    "into a file, and use --config",
                    pair);
    set(settings, pair, equals + 1);
}

/* The server reads it, and reads it again when the key is replaced. */
static void set_password_file(struct settings *settings, const char *path) {
    if (access(path, R_OK) != 0) usage_error("tls-password-file: %s: %s", path, strerror(errno));
    set(settings, "tls.keyPasswordFile", path);
}

/* The key of a zoo.cfg that an option sets; NULL: it sets none. */
static const char *key_of(int option) {
    switch (option) {
    case KEY_DATA: return "dataDir";
    case KEY_LOG: return "dataLogDir";
    case KEY_LOG_LEVEL: return "log.level";
    case KEY_LOG_FORMAT: return "log.format";
    case KEY_HTTP: return "listen.http";
    case KEY_RECORD: return "record.file";
    case KEY_ADMIN_TOKEN: return "admin.tokenFile";
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
    notice("%s%s", failed ? "" : "warning: ", text);
}

static void list_setting(void *context, const struct settings_key *key) {
    const char *given = *key->default_value ? key->default_value : "-";
    (void)context;
    printf("%-42s %-20s %-15s %s\n", key->name, *key->values ? key->values : "-", given, key->help);
}

_Noreturn static void list_settings(void) {
    printf("%-42s %-20s %-15s %s\n", "KEY", "VALUES", "DEFAULT", "MEANING");
    settings_list(list_setting, NULL);
    exit(EXIT_SUCCESS);
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
    case KEY_FOUND: request->settings.found = true; return 0;
    case KEY_INSECURE: request->settings.insecure = true; return 0;
    case KEY_WEB_WRITE: request->settings.web_write = true; return 0;
    case KEY_TLS_PASSWORD: set_password_file(&request->settings, text); return 0;
    case KEY_SETTINGS: list_settings();
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
    if (password && !*request.settings.tls_key_password && !*request.settings.tls_password_file)
        set(&request.settings, "tls.keyPassword", password);
    if (request.listen.used) {
        bytes_add(&request.listen, "", 1);
        set(&request.settings, "listen", (const char *)request.listen.at);
        bytes_close(&request.listen); /* NOLINT(clang-analyzer-unix.Malloc): set() may exit */
    }
    if (settings_settle(&request.settings, error, sizeof error) != 0) usage_error("%s", error);
    if (!server) system_error("no memory");
    int status = server_run(server, &request.settings, &admin);
    free(server);
    return status;
}
