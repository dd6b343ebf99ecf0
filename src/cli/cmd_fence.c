/* conclave fence: a proxy in front of a resource that only the holder of a lock may write to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/run.h"
#include "fence/proxy.h"

enum {
    KEY_LISTEN = 256,
    KEY_TO,
    KEY_LOCK,
    KEY_STATE,
    KEY_STRICT,
    KEY_READERS,
    KEY_PATIENCE,
    KEY_OFFLINE
};

static const struct argp_option options[] = {
    {"listen", KEY_LISTEN, "HOST:PORT", 0,
     "Where clients of the resource connect to.  * is every address, port 0 any free port", 0},
    {"to", KEY_TO, "redis://HOST[:PORT]|http://HOST[:PORT]", 0,
     "The resource.  Let it accept connections from the fence alone", 0},
    {"lock", KEY_LOCK, "NAME", 0,
     "The lock whose holder may write.  May be given several times: then each client says under "
     "which of them it writes, and those of different locks do not exclude each other",
     0},
    {"state", KEY_STATE, "FILE", 0,
     "Where the newest tokens are remembered, so that older ones stay refused after a restart "
     "(./conclave-fence.state)",
     0},
    {"strict", KEY_STRICT, NULL, 0,
     "Let nobody write while no server can be asked who holds the lock.  Without it, whoever shows "
     "the newest token so far, or a newer one, may",
     0},
    {"offline", KEY_OFFLINE, NULL, 0,
     "Never ask the servers: the newest token that was shown here decides alone", 0},
    {"readers", KEY_READERS, "allow|refuse", 0,
     "Whether a client that shows no token may read (allow)", 0},
    {"patience", KEY_PATIENCE, "TIME", 0,
     "How long a client waits for the servers' word, or until the resource is done with what older "
     "holders have sent, before it is told to try again (10s)",
     0},
    {0}};

static const char doc[] =
    "A proxy in front of a resource that lets a client write only while its token is the newest of "
    "its lock, and cuts off whoever holds an older one.  So a holder that was stopped, and wakes "
    "up when another one has the lock, cannot write any more; the application is not changed.\v"
    "The token is CONCLAVE_TOKEN in the environment of a command under 'conclave lock'.  Redis "
    "gets it as user and password (redis://NAME:TOKEN@HOST), HTTP as the header Conclave-Token.  "
    "docs/FENCING.md has the details, and the same for PostgreSQL without a proxy.\n\n"
    "Run it on the machine of the resource, one for each resource, and keep its file (--state).  "
    "It runs until SIGTERM or SIGINT; its log goes to standard error.\n\n"
    "Examples:\n"
    "  conclave fence --listen '*:6380' --to redis://127.0.0.1 --lock report \\\n"
    "      --server zk1,zk2,zk3 --state /var/lib/conclave/fence.state\n"
    "  conclave lock report -- sh -c \\\n"
    "      'redis-cli -u redis://report:$CONCLAVE_TOKEN@db:6380 incr reports'\n"
    "  conclave fence --listen 127.0.0.1:8081 --to http://127.0.0.1:8080 --lock billing\n"
    "  conclave lock billing -- sh -c \\\n"
    "      'curl -X POST -H \"Conclave-Token: $CONCLAVE_TOKEN\" localhost:8081/bills'\n";

struct request {
    struct remote remote;
    struct fence_settings settings;
    char *listen, *to;
    const char **locks;
    size_t lock_room;
    bool offline;
};

/* "HOST:PORT", "[HOST]:PORT"; the port may be missing if there is a default (not -1).  Cuts the
 * text. */
static bool parse_address(char *text, int32_t default_port, const char **host, int32_t *port) {
    char *colon = strrchr(text, ':'), *bracket = strchr(text, ']');
    uint64_t number;
    if (*text == '[' && bracket) {
        *bracket = 0;
        *host = text + 1;
        colon = bracket[1] == ':' ? bracket + 1 : NULL;
        if (bracket[1] && !colon) return false;
    } else {
        *host = text;
    }
    if (!colon && default_port < 0) return false;
    if (colon && (parse_u64(colon + 1, &number) != 0 || number > UINT16_MAX)) return false;
    *port = colon ? (int32_t)number : default_port;
    if (colon) *colon = 0;
    return **host != 0;
}

static int parse_resource(struct fence_settings *settings, const char *text) {
    static const struct {
        const char *prefix;
        int32_t port;
        const struct fence_protocol *protocol;
    } kinds[] = {{"redis://", 6379, &fence_redis}, {"http://", 80, &fence_web}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t size = strlen(kinds[i].prefix);
        if (strncmp(text, kinds[i].prefix, size) != 0) continue;
        char *address = strdup(text + size); /* as long as the program runs */
        if (!address) system_error("no memory");
        size = strlen(address);
        if (size && address[size - 1] == '/') address[size - 1] = 0;
        settings->protocol = kinds[i].protocol;
        settings->to_text = text;
        if (!strpbrk(address, "/@?#") &&
            parse_address(address, kinds[i].port, &settings->to_host, &settings->to_port))
            return 0;
        free(address);
        return remote_usage("to: '%s' is not %sHOST[:PORT]", text, kinds[i].prefix);
    }
    if (strncmp(text, "postgres", 8) == 0)
        return remote_usage("to: PostgreSQL needs no proxy: see contrib/postgresql/fence.sql and "
                            "docs/FENCING.md");
    return remote_usage("to: '%s' is neither redis://HOST[:PORT] nor http://HOST[:PORT]", text);
}

static int add_lock(struct request *request, const char *name) {
    const char *problem =
        strlen(name) > 255 ? "it is too long" : run_name_problem(NAME_LOCKS, name);
    if (problem) return remote_usage("lock: '%s' is no name of a lock: %s", name, problem);
    size_t *count = &request->settings.lock_count;
    for (size_t i = 0; i < *count; i++)
        if (strcmp(request->locks[i], name) == 0) return 0;
    request->locks = grown(request->locks, &request->lock_room, *count + 1, sizeof *request->locks);
    request->locks[(*count)++] = name;
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    struct fence_settings *settings = &request->settings;
    int64_t ms;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &request->remote; return 0;
    case KEY_LISTEN: request->listen = text; return 0;
    case KEY_TO: request->to = text; return 0;
    case KEY_LOCK: return add_lock(request, text);
    case KEY_STATE: settings->state = text; return 0;
    case KEY_STRICT: settings->strict = true; return 0;
    case KEY_OFFLINE: request->offline = true; return 0;
    case KEY_READERS:
        settings->refuse_readers = strcmp(text, "refuse") == 0;
        if (!settings->refuse_readers && strcmp(text, "allow") != 0)
            return remote_usage("readers: '%s' is neither allow nor refuse", text);
        return 0;
    case KEY_PATIENCE:
        if (remote_duration("patience", text, &ms) != 0) return EINVAL;
        if (ms < 1 || ms > INT32_MAX) return remote_usage("patience: '%s' is out of range", text);
        settings->patience_ms = (int32_t)ms;
        return 0;
    case ARGP_KEY_ARG: return remote_usage("'%s' is not an option", text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int check(struct request *request) {
    struct fence_settings *settings = &request->settings;
    if (!request->listen || !request->to || !settings->lock_count)
        return remote_usage("give --listen, --to and --lock: 'conclave fence --help' has examples");
    if (!parse_address(request->listen, -1, &settings->listen_host, &settings->listen_port))
        return remote_usage("listen: '%s' is not HOST:PORT", request->listen);
    if (request->offline && settings->strict)
        return remote_usage("--strict asks the servers, and --offline never does");
    return parse_resource(settings, request->to);
}

int cmd_fence(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, remote_children, NULL, NULL};
    struct request request = {
        .settings = {.root = NAME_LOCKS, .state = "conclave-fence.state", .patience_ms = 10000},
        .remote.options.flags = CV_DO_NOT_WAIT};
    int status;
    if (!remote_parse(&request.remote, &argp, 0, argc, argv, &request, &status)) return status;
    if (check(&request) != 0) return EXIT_USAGE;
    request.settings.locks = request.locks;
    if (!request.offline) {
        status = remote_connect(&request.remote); /* checks names and secrets; waits for nothing */
        if (status) return status;
        cv_close(request.remote.client);
        request.remote.client = NULL;
        request.settings.servers = &request.remote.options;
    }
    status = fence_run(&request.settings);
    remote_close(&request.remote);
    free(request.locks);
    return status;
}
