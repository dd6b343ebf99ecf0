#include "cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/grow.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "cli/contexts.h"

/* What the options of a client point to. */
struct remote_texts {
    struct contexts contexts;
    struct cv_tls tls;
    struct cv_auth *auth;
    size_t auth_count, auth_room;
    struct bytes auth_text, sasl_password;
};

/* ---- Options ---- */

enum { KEY_CONTEXT = 0x5000, KEY_CONNECT_TIMEOUT, KEY_SESSION_TIMEOUT, KEY_JSON, KEY_SETTING };

const char *const remote_setting_names[REMOTE_SETTINGS] = {
    [REMOTE_SERVER] = "server",
    [REMOTE_TLS] = "tls",
    [REMOTE_TLS_CA] = "tls-ca",
    [REMOTE_TLS_CERT] = "tls-cert",
    [REMOTE_TLS_KEY] = "tls-key",
    [REMOTE_TLS_ANY_HOST] = "tls-any-host",
    [REMOTE_AUTH_FILE] = "auth-file",
    [REMOTE_SASL_USER] = "sasl-user",
    [REMOTE_SASL_PASSWORD_FILE] = "sasl-password-file",
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Which server, and who is asking:", 10},
    {"server", KEY_SETTING + REMOTE_SERVER, "HOST:PORT[,...][/PATH]", 0,
     "Servers of one ensemble, and the node below which all paths are (default: "
     "$CONCLAVE_SERVER, the context, or localhost:2181)",
     10},
    {"context", KEY_CONTEXT, "NAME", 0,
     "What 'conclave context add NAME' has noted (default: $CONCLAVE_CONTEXT, or that of "
     "'conclave context use')",
     10},
    {"connect-timeout", KEY_CONNECT_TIMEOUT, "TIME", 0,
     "How long to try before there is no server (default: 10s)", 10},
    {"session-timeout", KEY_SESSION_TIMEOUT, "TIME", 0,
     "When the server may take us for dead (default: 15s)", 10},
    {"tls", KEY_SETTING + REMOTE_TLS, NULL, 0, "Use TLS, also without the options that follow", 10},
    {"tls-ca", KEY_SETTING + REMOTE_TLS_CA, "FILE", 0,
     "Authorities to trust (default: the system's)", 10},
    {"tls-cert", KEY_SETTING + REMOTE_TLS_CERT, "FILE", 0, "Our certificate", 10},
    {"tls-key", KEY_SETTING + REMOTE_TLS_KEY, "FILE", 0, "Its key", 10},
    {"tls-any-host", KEY_SETTING + REMOTE_TLS_ANY_HOST, NULL, 0,
     "The server's certificate may be for another host", 10},
    {"auth-file", KEY_SETTING + REMOTE_AUTH_FILE, "FILE", 0,
     "Lines of user:password for the scheme digest, which nobody else can read (or in "
     "$CONCLAVE_AUTH)",
     10},
    {"sasl-user", KEY_SETTING + REMOTE_SASL_USER, "NAME", 0, "User for SASL (DIGEST-MD5)", 10},
    {"sasl-password-file", KEY_SETTING + REMOTE_SASL_PASSWORD_FILE, "FILE", 0,
     "The password of that user", 10},
    {NULL, 0, NULL, 0, "Output:", 11},
    {"json", KEY_JSON, NULL, 0, "Print JSON; streams have one document in each line", 11},
    {0}};

int remote_duration(const char *option, const char *text, int64_t *ms) {
    uint64_t us;
    double seconds;
    if (parse_real(text, &seconds) == 0 && seconds >= 0 && seconds < 1e9)
        *ms = (int64_t)(seconds * 1000 + 0.5);
    else if (parse_duration(text, &us) == 0)
        *ms = (int64_t)((us + 999) / 1000);
    else
        return remote_usage("%s: '%s' is not a time such as 250ms, 3s or 2min", option, text);
    return 0;
}

int remote_version(const char *text, int32_t *version) {
    uint64_t number;
    if (parse_u64(text, &number) != 0 || number > INT32_MAX)
        return remote_usage("version: '%s' is not the version of a node, such as 7", text);
    *version = (int32_t)number;
    return 0;
}

static int parse_timeout(const char *option, const char *text, int32_t *to) {
    int64_t ms = 0;
    if (remote_duration(option, text, &ms) != 0) return EINVAL;
    if (ms < 1 || ms > INT32_MAX)
        return remote_usage("%s: '%s' is not between 1ms and 24d", option, text);
    *to = (int32_t)ms;
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct remote *remote = state->input;
    if (key == KEY_JSON) return remote->json = true, 0;
    bool ours = key == KEY_CONTEXT || key == KEY_CONNECT_TIMEOUT || key == KEY_SESSION_TIMEOUT ||
                (key >= KEY_SETTING && key < KEY_SETTING + REMOTE_SETTINGS);
    if (!ours) return ARGP_ERR_UNKNOWN;
    if (remote->shared)
        return remote_usage("the shell has chosen its server and who is asking when it was "
                            "started; give that option to 'conclave shell'");
    switch (key) {
    case KEY_CONTEXT: remote->context = text; return 0;
    case KEY_CONNECT_TIMEOUT:
        return parse_timeout("connect-timeout", text, &remote->options.connect_timeout);
    case KEY_SESSION_TIMEOUT:
        return parse_timeout("session-timeout", text, &remote->options.session_timeout);
    default: remote->settings[key - KEY_SETTING] = text ? text : ""; return 0;
    }
}

static const struct argp argp_of_remote = {options, parse, NULL, NULL, NULL, NULL, NULL};
const struct argp_child remote_children[] = {{&argp_of_remote, 0, NULL, 0}, {0}};

static bool asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0) return true;
    return false;
}

bool remote_parse(struct remote *remote, const struct argp *argp, unsigned flags, int argc,
                  char **argv, void *input, int *status) {
    *status = EXIT_OK;
    if (remote->shared && asks_for_help(argc, argv))
        return argp_help(argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, argv[0]), false;
    if (remote->shared) flags |= ARGP_NO_EXIT;
    for (const struct argp_option *option = argp->options; option && option->key; option++)
        if (option->name && strcmp(option->name, "version") == 0)
            argp_program_version = NULL; /* it is the version of a node there */
    if (argp_parse(argp, argc, argv, flags, NULL, input) == 0) return true;
    *status = exit_code(EXIT_USAGE);
    return false;
}

/* ---- Paths ---- */

/* What ZooKeeper's servers and clients refuse. */
static bool is_forbidden(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0xd800 && code <= 0xf8ff) ||
           code >= 0xfff0;
}

const char *remote_path_problem(const char *path) {
    if (*path != '/') return "the path of a node begins with a slash";
    for (const char *at = path; *at; at += strcspn(at, "/")) {
        at++;
        size_t size = strcspn(at, "/");
        if (size == 0 && at > path + 1) return "there is nothing between or after its slashes";
        if (size == 0 && *at) return "there is nothing between its slashes";
        if ((size == 1 && at[0] == '.') || (size == 2 && at[0] == '.' && at[1] == '.'))
            return "'.' and '..' have no meaning in the path of a node";
    }
    for (const char *at = path; *at;)
        if (is_forbidden(utf8_next(&at))) return "it has characters that no path may have";
    return NULL;
}

int remote_path(char *path) {
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') path[--size] = 0;
    const char *problem = remote_path_problem(path);
    return problem ? remote_usage("'%s': %s", path, problem) : 0;
}

/* ---- Who is asking ---- */

static int read_secret(const char *path, struct bytes *to) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        if (file >= 0) close(file);
        return remote_say(EXIT_SYSTEM, "%s: %s", path, strerror(errno));
    }
    if (S_ISREG(status.st_mode) && status.st_mode & (S_IRWXG | S_IRWXO)) {
        close(file);
        return remote_say(EXIT_USAGE, "%s: only its owner may be able to read it (chmod 600)",
                          path);
    }
    enum { MOST = 65536 };
    ssize_t size;
    while ((size = read(file, bytes_reserve(to, MOST), MOST)) > 0 && to->used < MOST)
        to->used += (size_t)size;
    close(file);
    if (size != 0)
        return remote_say(EXIT_SYSTEM, "%s: %s", path, size < 0 ? strerror(errno) : "too long");
    *bytes_reserve(to, 1) = 0;
    return 0;
}

/* Lines of user:password, which are parted in place. */
static int take_identities(struct remote_texts *texts, char *text, const char *from) {
    for (char *line = strtok_r(text, "\r\n", &text); line; line = strtok_r(NULL, "\r\n", &text)) {
        if (*line == '#') continue;
        if (!strchr(line, ':'))
            return remote_say(EXIT_USAGE, "%s: a line is not user:password", from);
        texts->auth =
            grown(texts->auth, &texts->auth_room, texts->auth_count + 1, sizeof *texts->auth);
        texts->auth[texts->auth_count++] = (struct cv_auth){.scheme = "digest", .credential = line};
    }
    return 0;
}

static int identify(struct remote *remote) {
    struct remote_texts *texts = remote->texts;
    const char *file = remote->settings[REMOTE_AUTH_FILE], *from = file;
    const char *user = remote->settings[REMOTE_SASL_USER];
    const char *password = remote->settings[REMOTE_SASL_PASSWORD_FILE];
    if (!user != !password)
        return remote_say(EXIT_USAGE, "--sasl-user and --sasl-password-file go together");
    int status = file ? read_secret(file, &texts->auth_text) : 0;
    const char *environment = file || remote->alone ? NULL : getenv("CONCLAVE_AUTH");
    if (environment) {
        from = "CONCLAVE_AUTH";
        bytes_add(&texts->auth_text, environment, strlen(environment) + 1);
    }
    if (!status && from) status = take_identities(texts, (char *)texts->auth_text.at, from);
    if (!status && password) status = read_secret(password, &texts->sasl_password);
    if (status || !password) return status;
    char *secret = (char *)texts->sasl_password.at;
    secret[strcspn(secret, "\r\n")] = 0;
    remote->options.sasl_user = user;
    remote->options.sasl_password = secret;
    return 0;
}

/* ---- Which server ---- */

/* A server that is named alone has nothing of a context, in particular not its credentials. */
static const char *chosen_context(const struct remote *remote) {
    const char *from_environment = getenv("CONCLAVE_CONTEXT"), *server = getenv("CONCLAVE_SERVER");
    if (remote->context) return remote->context;
    if (remote->settings[REMOTE_SERVER]) return NULL;
    if (from_environment && *from_environment) return from_environment;
    return server && *server ? NULL : remote->texts->contexts.current;
}

static int choose(struct remote *remote) {
    struct contexts *contexts = &remote->texts->contexts;
    if (!remote->context && remote->settings[REMOTE_SERVER]) return 0;
    int status = contexts_read(contexts);
    remote->context = chosen_context(remote);
    if (status || !remote->context) return status;
    const struct context *context = contexts_find(contexts, remote->context);
    if (!context)
        return remote_say(EXIT_USAGE,
                          "there is no context '%s'; 'conclave context list' shows them, and "
                          "'conclave context add %s --server ...' makes it",
                          remote->context, remote->context);
    for (int i = 0; i < REMOTE_SETTINGS; i++)
        if (!remote->settings[i]) remote->settings[i] = context->settings[i];
    return 0;
}

const char *remote_servers(const struct remote *remote) {
    const char *environment = getenv("CONCLAVE_SERVER");
    if (remote->settings[REMOTE_SERVER]) return remote->settings[REMOTE_SERVER];
    return environment && *environment ? environment : "localhost:2181";
}

void remote_export(const struct remote *remote) {
    setenv("CONCLAVE_SERVER", remote_servers(remote), 1);
    if (remote->context)
        setenv("CONCLAVE_CONTEXT", remote->context, 1);
    else
        unsetenv("CONCLAVE_CONTEXT");
}

static void use_tls(struct remote *remote) {
    bool wanted = false;
    for (int i = REMOTE_TLS; i <= REMOTE_TLS_ANY_HOST; i++) wanted |= remote->settings[i] != NULL;
    if (!wanted) return;
    remote->texts->tls = (struct cv_tls){.authorities = remote->settings[REMOTE_TLS_CA],
                                         .certificate = remote->settings[REMOTE_TLS_CERT],
                                         .key = remote->settings[REMOTE_TLS_KEY],
                                         .any_host = remote->settings[REMOTE_TLS_ANY_HOST]};
    remote->options.tls = &remote->texts->tls;
}

/* ---- The session ---- */

int remote_connect(struct remote *remote) {
    if (remote->client) return 0;
    if (!remote->texts) remote->texts = calloc(1, sizeof *remote->texts);
    if (!remote->texts) return remote_fail(remote, CV_NO_MEMORY, NULL);
    int status = choose(remote);
    if (!status) status = identify(remote);
    if (status) return status;
    use_tls(remote);
    remote->options.servers = remote_servers(remote);
    remote->options.auth = remote->texts->auth;
    remote->options.auth_count = remote->texts->auth_count;
    int error = cv_open(&remote->client, &remote->options);
    if (error == CV_OK) return 0;
    status = error == CV_BAD_ARGUMENTS
                 ? remote_say(EXIT_USAGE, "server: '%s' is not HOST:PORT[,HOST:PORT...][/PATH]",
                              remote->options.servers)
                 : remote_fail(remote, error, NULL);
    if (remote->client) cv_close(remote->client);
    remote->client = NULL;
    return status;
}

struct cv_client *remote_open(struct remote *remote) {
    int status = remote_connect(remote);
    if (status) exit(status);
    return remote->client;
}

void remote_close(struct remote *remote) {
    if (remote->shared) return;
    if (remote->client) cv_close(remote->client);
    remote->client = NULL;
    struct remote_texts *texts = remote->texts;
    remote->texts = NULL;
    if (!texts) return;
    if (texts->auth_text.at) explicit_bzero(texts->auth_text.at, texts->auth_text.room);
    if (texts->sasl_password.at) explicit_bzero(texts->sasl_password.at, texts->sasl_password.room);
    bytes_close(&texts->auth_text);
    bytes_close(&texts->sasl_password);
    contexts_close(&texts->contexts);
    free(texts->auth);
    free(texts);
}

/* ---- What went wrong ---- */

static const struct failure {
    int error, code;
    const char *text; /* NULL: cv_error_text */
} failures[] = {
    {CV_NO_NODE, EXIT_CONFLICT, "there is no such node"},
    {CV_NODE_EXISTS, EXIT_CONFLICT, "there is such a node already"},
    {CV_NOT_EMPTY, EXIT_CONFLICT, "it has children; 'rm -r' removes them as well"},
    {CV_BAD_VERSION, EXIT_CONFLICT,
     "it has another version: somebody has changed it; look at it again ('stat')"},
    {CV_NO_CHILDREN_FOR_EPHEMERALS, EXIT_CONFLICT,
     "the node above is ephemeral, and can have no children"},
    {CV_INVALID_ACL, EXIT_CONFLICT,
     "the server does not accept this ACL; with 'auth' somebody must be identified (--auth-file)"},
    {CV_QUOTA_EXCEEDED, EXIT_CONFLICT, "the quota of a node above would be exceeded"},
    {CV_SYSTEM_ERROR, EXIT_CONFLICT,
     "the server refuses it, most likely because its memory is short; its log says why"},
    {CV_BAD_ARGUMENTS, EXIT_CONFLICT, "the server does not accept these arguments"},
    {CV_UNIMPLEMENTED, EXIT_CONFLICT, "the server does not know how to do this"},
    {CV_NOT_READ_ONLY, EXIT_CONFLICT, "the server has no leader, and only answers reads"},
    {CV_NO_AUTH, EXIT_NOT_ALLOWED,
     "its ACL does not allow this; say who is asking with --auth-file or CONCLAVE_AUTH"},
    {CV_AUTH_FAILED, EXIT_NOT_ALLOWED, "the server does not accept who we say we are"},
    {CV_CONNECTION_LOSS, EXIT_NO_SERVER, "the connection broke; whether it was done is not known"},
    {CV_SESSION_EXPIRED, EXIT_NO_SERVER,
     "the session has expired, because no server was reached in time"},
    {CV_CLOSING, EXIT_NO_SERVER, "the session was closed meanwhile"},
    {CV_OPERATION_TIMEOUT, EXIT_BUSY, "the time is over"},
    {CV_BUSY, EXIT_BUSY, "somebody else holds it"},
    {CV_OTHER_RECIPE, EXIT_CONFLICT,
     "others compete for this lock by another recipe, and would not wait for ours; 'conclave "
     "locks' "
     "shows their nodes, and --recipe joins them"},
    {CV_LOST, EXIT_LOST, "it was lost: the session could not be renewed in time"},
};

static const struct failure *find_failure(int error) {
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        if (failures[i].error == error) return &failures[i];
    return NULL;
}

int remote_exit_code(int error) {
    const struct failure *failure = find_failure(error);
    if (error == CV_OK) return EXIT_OK;
    if (error == CV_NO_SERVER || error == CV_TLS_FAILED) return EXIT_NO_SERVER;
    return exit_code(failure ? failure->code : EXIT_SYSTEM);
}

int remote_fail(struct remote *remote, int error, const char *path) {
    const struct failure *failure = find_failure(error);
    const char *text = failure ? failure->text : cv_error_text(error);
    int code = remote_exit_code(error);
    char why[1024] = "";
    if (remote->client && (code == EXIT_NO_SERVER || error == CV_AUTH_FAILED))
        cv_explain(remote->client, why, sizeof why);
    if (error == CV_NO_SERVER)
        return remote_say(code, "%s (--server, CONCLAVE_SERVER or a context say which to ask)",
                          *why ? why : "no server could be reached");
    return remote_say(code, "%s%s%s%s%s", path ? path : "", path ? ": " : "", text,
                      *why ? ": " : "", why);
}
