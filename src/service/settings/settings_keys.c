#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/spelling.h"
#include "service/settings/internal.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* ---- The table ---- */

enum kind {
    NUMBER,  /* from min to max; stored times `scale` */
    NOTED,   /* the same, but it has no effect, of which a warning tells */
    BOOLEAN, /* true or false */
    YES_NO,  /* yes or no: ZooKeeper takes any other word of these keys for the default */
    TEXT,
    HOST,
    PARSED,      /* by a function */
    UNSUPPORTED, /* another value than the default is ignored, with a warning */
    FIXED,       /* another value than the default is an error: ignoring it would be unsafe */
};

struct key {
    const char *name; /* a final "*" stands for any ending; the first key that matches counts */
    enum kind kind;
    size_t offset, size; /* of the value in struct settings */
    int32_t min, max, scale;
    settings_parser *parse;
    const char *default_value, *reason; /* reason: why another value than that is not taken */
    const char *help;
};

#define FIELD_(FIELD) offsetof(struct settings, FIELD), sizeof((struct settings *)0)->FIELD
#define NUMBER_(NAME, FIELD, MIN, MAX, HELP)                                                       \
    { .name = NAME, NUMBER, FIELD_(FIELD), MIN, MAX, 1, .help = HELP }
#define SCALED_(NAME, FIELD, MIN, MAX, SCALE, HELP)                                                \
    { .name = NAME, NUMBER, FIELD_(FIELD), MIN, MAX, SCALE, .help = HELP }
#define NOTED_(NAME, FIELD, MIN, MAX, REASON)                                                      \
    { .name = NAME, NOTED, FIELD_(FIELD), MIN, MAX, 1, .reason = REASON }
#define BOOLEAN_(NAME, FIELD, HELP)                                                                \
    { .name = NAME, BOOLEAN, FIELD_(FIELD), .help = HELP }
#define YES_NO_(NAME, FIELD, HELP)                                                                 \
    { .name = NAME, YES_NO, FIELD_(FIELD), .help = HELP }
#define TEXT_(NAME, FIELD, HELP)                                                                   \
    { .name = NAME, TEXT, FIELD_(FIELD), .help = HELP }
#define HOST_(NAME, FIELD, HELP)                                                                   \
    { .name = NAME, HOST, FIELD_(FIELD), .help = HELP }
#define PARSED_(NAME, PARSER, HELP)                                                                \
    { .name = NAME, PARSED, .parse = settings_parse_##PARSER, .help = HELP }
#define UNSUPPORTED_(NAME, DEFAULT, REASON)                                                        \
    { .name = NAME, UNSUPPORTED, .default_value = DEFAULT, .reason = REASON }
#define FIXED_(NAME, DEFAULT, REASON)                                                              \
    { .name = NAME, FIXED, .default_value = DEFAULT, .reason = REASON }

static const struct key keys[] = {
    PARSED_("listen", listen,
            "Where clients connect: HOST:PORT, several with commas; * is every address"),
    PARSED_("listen.tls", listen, "The same for clients that use TLS"),
    PARSED_("listen.http", listen,
            "Where metrics and status are served over HTTP; off: nowhere, nor metrics alone"),
    NUMBER_("clientPort", written.client.port, 0, UINT16_MAX,
            "Port for clients, at clientPortAddress or else at every address"),
    HOST_("clientPortAddress", written.client.host, "Address of clientPort"),
    NUMBER_("secureClientPort", written.tls.port, 0, UINT16_MAX, "Port for clients that use TLS"),
    HOST_("secureClientPortAddress", written.tls.host, "Address of secureClientPort"),
    NUMBER_("admin.serverPort", written.admin.port, 0, UINT16_MAX,
            "Port for metrics and status over HTTP"),
    HOST_("admin.serverAddress", written.admin.host, "Address of admin.serverPort"),
    BOOLEAN_("admin.enableServer", written.admin_on,
             "Whether metrics and status are served over HTTP"),
    NUMBER_("metricsProvider.httpPort", written.metrics.port, 0, UINT16_MAX,
            "Port for metrics alone, which serves /metrics and nothing else"),
    HOST_("metricsProvider.httpHost", written.metrics.host, "Address of metricsProvider.httpPort"),
    PARSED_("metricsProvider.className", metrics,
            "A class; that of Prometheus turns metricsProvider.httpPort on"),
    BOOLEAN_("client.portUnification", same_port, "Whether the clients' ports take TLS as well"),
    NUMBER_("clientPortListenBacklog", backlog, -1, INT32_MAX,
            "Connections that wait to be accepted; -1: the system's number"),

    PARSED_("log.level", log_level, "error, warning, info or debug: what is logged"),
    PARSED_("log.format", log_format, "text or json: how it is logged"),

    TEXT_("dataDir", data_dir, "Directory for snapshots, and for the log unless dataLogDir is set"),
    TEXT_("dataLogDir", log_dir, "Directory for the log"),
    NUMBER_("tickTime", tick_ms, 1, 100000000,
            "The unit of session timeouts, ms; timeouts are checked once in it"), /* 20 ticks fit
                                                                                     into 32 bits */
    NUMBER_("minSessionTimeout", session_ms_min, -1, INT32_MAX,
            "Shortest timeout of a session, ms; -1: two ticks"),
    NUMBER_("maxSessionTimeout", session_ms_max, -1, INT32_MAX,
            "Longest timeout of a session, ms; -1: twenty ticks"),
    NUMBER_("maxClientCnxns", connections_per_address_max, 0, INT32_MAX,
            "Connections from one address; 0: no limit"),
    NUMBER_("maxCnxns", connections_max, 0, INT32_MAX, "Connections in all; 0: no limit"),
    NUMBER_("globalOutstandingLimit", outstanding_max, 1, INT32_MAX,
            "Writes of one connection that are not answered yet"),
    NUMBER_("jute.maxbuffer", packet_bytes_max, 1024, SETTINGS_PACKET_MAX,
            "Bytes of the largest request"),
    TEXT_("4lw.commands.whitelist", words,
          "Four-letter words that are answered, with commas; *: all"),
    BOOLEAN_("extendedTypesEnabled", extended_types, "Whether there are nodes with a TTL"),
    BOOLEAN_("enforceQuota", enforce_quota, "Whether hard quotas refuse what exceeds them"),
    YES_NO_("skipACL", skip_acl, "yes: permissions are not checked"),
    BOOLEAN_("readonlymode.enabled", read_only_mode,
             "Whether a server without a leader serves reads to clients that accept that"),
    TEXT_("DigestAuthenticationProvider.superDigest", super_digest,
          "super:DIGEST of the user who may do everything"),
    NUMBER_("znode.container.checkIntervalMs", container_check_ms, 0, INT32_MAX,
            "Time between looks for empty containers and nodes whose TTL is over, ms; 0: never"),
    NOTED_("znode.container.maxNeverUsedIntervalMs", container_never_used_ms, 0, INT32_MAX,
           "a container is kept until it has had a child"),

    NUMBER_("snapCount", snapshot_count, 2, INT32_MAX, "Transactions between two snapshots"),
    NUMBER_("snapSizeLimitInKb", snapshot_kib_max, -1, INT32_MAX,
            "KiB of log between two snapshots, if that comes first; 0 or -1: no bound"),
    NUMBER_("autopurge.snapRetainCount", snapshots_kept, 1, INT32_MAX, "Snapshots that are kept"),
    SCALED_("preAllocSize", log_segment_bytes, 1, 1 << 20, 1024, "Size of a file of the log, KiB"),
    YES_NO_("forceSync", force_sync,
            "no: a write is acknowledged before it is on the disk, and a power failure loses it"),
    NUMBER_("fsync.warningthresholdms", sync_warning_ms, 0, INT32_MAX,
            "A sync of the log that takes longer is logged, ms"),
    NUMBER_("fsync.waitmicros", sync_wait_us, 0, INT32_MAX,
            "A disk that takes longer is left to a thread, us"),
    NUMBER_("ensemble.keptBytes", kept_bytes, 0, INT32_MAX,
            "Bytes of applied entries that are kept in memory for members that lag"),
    NUMBER_("ensemble.inflightBytes", inflight_bytes, 0, INT32_MAX,
            "Bytes of entries that a member is sent before it has acknowledged any of them"),
    TEXT_("record.file", record_file,
          "Where each step of the consensus core is recorded, for 'conclave trace'"),
    NUMBER_("record.maxMiB", record_mib_max, 2, INT32_MAX,
            "Size of the record, MiB: its older half goes to the file of that name with .1"),
    NUMBER_("loop.steps", loop_steps, 1, INT32_MAX,
            "Steps of each kind of work before others get their turn"),
    NUMBER_(
        "memory.maxMiB", memory_mib_max, 0, INT32_MAX,
        "Memory that the server may use, MiB; 0, or more than that: what its control group allows"),

    TEXT_("tls.certificate", tls_certificate,
          "The server's certificate for clients, and the chain above it, PEM"),
    TEXT_("tls.key", tls_key, "Its private key, PEM"),
    TEXT_("tls.keyPassword", tls_key_password, "Password of tls.key"),
    TEXT_("tls.keyPasswordFile", tls_password_file,
          "File whose first line is that password, read again as the key is"),
    TEXT_("tls.authorities", tls_authorities,
          "Authorities that clients' certificates must come from, PEM"),
    PARSED_("ssl.clientAuth", auth, "need, want or none: whether clients must show a certificate"),
    PARSED_("ssl.keyStore.location", store, "Certificate and key in one file, PEM"),
    TEXT_("ssl.keyStore.password", tls_key_password, "Password of the key in it"),
    TEXT_("ssl.keyStore.passwordPath", tls_password_file, "As tls.keyPasswordFile"),
    PARSED_("ssl.trustStore.location", store, "As tls.authorities"),
    FIXED_("ssl.keyStore.type", "PEM", "stores of other types cannot be read"),
    FIXED_("ssl.trustStore.type", "PEM", "stores of other types cannot be read"),

    NUMBER_("myid", server_id, 0, 255, "Number of this server in the ensemble"),
    NOTED_("initLimit", init_ticks, 1, 1000000,
           "a server may take as long as it needs to catch up with the leader"),
    NOTED_("syncLimit", sync_ticks, 1, 1000000,
           "a leader that is silent for ensemble.electionTimeoutMs is replaced"),
    NUMBER_("ensemble.electionTimeoutMs", election_timeout_ms, SETTINGS_ELECTION_MS_MIN, 60000,
            "A leader that is silent for so long is replaced, ms; the same on all servers"),
    NUMBER_("ensemble.heartbeatMs", heartbeat_ms, 10, 15000,
            "A leader is heard at least so often, ms; at most a quarter of the election timeout"),
    BOOLEAN_("standaloneEnabled", standalone,
             "Whether a single server.N is a server alone, without links"),
    TEXT_("dynamicConfigFile", written.dynamic_file,
          "Another file, with the lines server.N, group.N and weight.N"),
    PARSED_("ensemble", ensemble, "All servers: N=HOST:PORT, with commas"),
    BOOLEAN_("ensemble.join", join, "Wait to be added to an ensemble that runs"),
    BOOLEAN_("ensemble.found", found, "Found the ensemble although some servers do not run yet"),
    PARSED_("ensemble.reads", reads, "sequential or linearizable"),
    BOOLEAN_("ensemble.insecure", insecure, "Do without a key and certificates between servers"),
    TEXT_("ensemble.keyFile", peer_secret, "File with the secret that all servers share"),
    TEXT_("admin.hosts", http_hosts,
          "Names of this server in HTTP requests, beside its own and those of members; *: any"),
    TEXT_("admin.tokenFile", admin_token,
          "File with the secret of those who may change members over HTTP"),
    BOOLEAN_("admin.webWrite", web_write,
             "Whether those who have it may also write nodes, on the page that browsers show"),
    TEXT_("ensemble.certificate", peer_certificate,
          "This server's certificate for the other servers, PEM"),
    TEXT_("ensemble.certificateKey", peer_key, "Its private key, PEM"),
    TEXT_("ensemble.certificateKeyPassword", peer_key_password,
          "Password of ensemble.certificateKey"),
    TEXT_("ensemble.certificateKeyPasswordFile", peer_password_file,
          "File whose first line is that password, read again as the key is"),
    TEXT_("ensemble.authorities", peer_authorities, "Authority of all servers' certificates, PEM"),
    PARSED_("ssl.quorum.keyStore.location", peer_store,
            "As ensemble.certificate and ensemble.certificateKey in one file"),
    TEXT_("ssl.quorum.keyStore.password", peer_key_password, "Password of the key in it"),
    TEXT_("ssl.quorum.keyStore.passwordPath", peer_password_file,
          "As ensemble.certificateKeyPasswordFile"),
    PARSED_("ssl.quorum.trustStore.location", peer_store, "As ensemble.authorities"),
    FIXED_("ssl.quorum.keyStore.type", "PEM", "stores of other types cannot be read"),
    FIXED_("ssl.quorum.trustStore.type", "PEM", "stores of other types cannot be read"),
    PARSED_("server.*", server,
            "server.N=HOST:PORT:PORT[:observer][;CLIENTPORT], a server of the ensemble"),
    PARSED_("group.*", group, "group.N=A:B:C, servers whose majority counts as one"),
    PARSED_("weight.*", weight, "weight.N=W, what the vote of server N counts"),

    FIXED_("sessionRequireClientSASLAuth", "false", "there is no SASL"),
    FIXED_("enforce.auth.enabled", "false", "clients cannot be made to authenticate"),
    FIXED_("DigestAuthenticationProvider.enabled", "true", "the digest scheme cannot be disabled"),
    FIXED_("DigestAuthenticationProvider.digestAlg", "SHA1", "there is no other algorithm"),
    FIXED_("electionAlg", "3", "there is no other algorithm"),
    UNSUPPORTED_("autopurge.purgeInterval", "",
                 "old snapshots are removed whenever a new one is written"),
    UNSUPPORTED_("localSessionsEnabled", "false", "every session is known to all servers"),
    UNSUPPORTED_("peerType", "participant", "a server's role is in its server.N line"),
    BOOLEAN_("reconfigEnabled", reconfig,
             "Whether clients may change the members (ZooKeeper's reconfig)"),
    BOOLEAN_(
        "sslQuorum", peer_tls_wanted,
        "Whether links between servers must be encrypted, by certificates or by ensemble.keyFile"),
    UNSUPPORTED_("quorum.auth.enableSasl", "false", "there is no SASL"),
    UNSUPPORTED_("X509AuthenticationProvider.superUser", "", "only a digest makes a super user"),
    UNSUPPORTED_("SASLAuthenticationProvider.superPassword", "", "there is no SASL"),
    UNSUPPORTED_("superUser", "", "only a digest makes a super user"),
    UNSUPPORTED_("authProvider.*", "", "schemes cannot be added"),
    UNSUPPORTED_("requireClientAuthScheme", "", "there is no SASL"),
    UNSUPPORTED_("audit.enable", "false", "there is no audit log"),
    UNSUPPORTED_("largeRequestMaxBytes", "-1", "jute.maxbuffer bounds each request"),
    UNSUPPORTED_("largeRequestThreshold", "-1", "jute.maxbuffer bounds each request"),
    UNSUPPORTED_("connection_throttle_tokens", "0",
                 "maxCnxns and maxClientCnxns bound connections"),
    UNSUPPORTED_("request_throttle_max_requests", "0", "globalOutstandingLimit bounds requests"),
    UNSUPPORTED_("leaderServes", "yes", "a leader serves clients as all servers do"),
    UNSUPPORTED_("observerMasterPort", "0", "observers get the log from the leader"),
    UNSUPPORTED_("quorumListenOnAllIPs", "false",
                 "a server listens for others at the address of its server.N line"),
    UNSUPPORTED_("sslQuorumReloadCertFiles", "true", "files that change are always read again"),
    UNSUPPORTED_("client.certReload", "true", "files that change are always read again"),
    UNSUPPORTED_("znode.container.maxPerMinute", "10000", "nodes expire in steps of loop.steps"),
    UNSUPPORTED_("ssl.hostnameVerification", "false", "names in certificates are not checked"),
    UNSUPPORTED_("ssl.quorum.hostnameVerification", "false",
                 "names in certificates are not checked"),
    UNSUPPORTED_("ssl.crl", "false", "certificates are not checked for revocation"),
    UNSUPPORTED_("ssl.ocsp", "false", "certificates are not checked for revocation"),
    UNSUPPORTED_("ssl.protocol", "", "the TLS library decides"),
    UNSUPPORTED_("ssl.enabledProtocols", "", "the TLS library decides"),
    UNSUPPORTED_("ssl.ciphersuites", "", "the TLS library decides"),
};

/* ---- Setting ---- */

static bool matches(const char *name, const char *key) {
    size_t size = strlen(name);
    return name[size - 1] == '*' ? strncmp(name, key, size - 1) == 0 : strcmp(name, key) == 0;
}

static const struct key *key_of(const char *name) {
    for (size_t i = 0; i < COUNT(keys); i++)
        if (matches(keys[i].name, name)) return &keys[i];
    return NULL;
}

/* The key that was probably meant; NULL: none is near. */
static const char *nearest_key(const char *name) {
    const char *nearest = NULL;
    size_t letters = strlen(name);
    unsigned best = letters < 4 ? 2 : letters < 8 ? 3 : 4;
    for (size_t i = 0; i < COUNT(keys); i++) {
        if (strcasecmp(keys[i].name, name) == 0) return keys[i].name;
        unsigned distance = word_distance(keys[i].name, name);
        if (distance < best && !strchr(keys[i].name, '*')) best = distance, nearest = keys[i].name;
    }
    return nearest;
}

static enum settings_outcome unknown(const char *key, struct settings_error *error) {
    const char *meant = nearest_key(key);
    settings_refuse(error, "is not known here and has no effect%s%s",
                    meant ? "; did you mean " : "", meant ? meant : "");
    return SETTINGS_UNKNOWN;
}

static enum settings_outcome without_effect(const char *reason, struct settings_error *error) {
    settings_refuse(error, "has no effect: %s", reason);
    return SETTINGS_IGNORED;
}

static int set_boolean(bool *to, const char *value, const char *yes, const char *no,
                       struct settings_error *error) {
    bool is_yes = strcasecmp(value, yes) == 0;
    if (!is_yes && strcasecmp(value, no) != 0)
        return settings_refuse(error, "'%.60s' is not %s or %s", value, yes, no);
    *to = is_yes;
    return SETTINGS_SET;
}

static int set_number(const struct key *key, int32_t *to, const char *value,
                      struct settings_error *error) {
    if (!settings_number(value, key->min, key->max, to))
        return settings_refuse(error, "'%.60s' is not a whole number from %d to %d", value,
                               key->min, key->max);
    *to *= key->scale;
    return SETTINGS_SET;
}

static int note_number(const struct key *key, int32_t *to, const char *value,
                       struct settings_error *error) {
    if (set_number(key, to, value, error) != SETTINGS_SET) return SETTINGS_BAD;
    if (!*to) return SETTINGS_SET; /* that is what 0 means in ZooKeeper, too */
    return without_effect(key->reason, error);
}

static int require_default(const struct key *key, const char *value, struct settings_error *error) {
    if (strcasecmp(value, key->default_value) == 0) return SETTINGS_SET;
    if (key->kind == FIXED)
        return settings_refuse(error, "'%.60s' is not %s: %s", value, key->default_value,
                               key->reason);
    settings_refuse(error, "ignored: %s", key->reason);
    return SETTINGS_IGNORED;
}

static int set(struct settings *s, const struct key *key, const char *name, const char *value,
               struct settings_error *error) {
    void *field = (char *)s + key->offset;
    const char *dot = strchr(name, '.');
    if (settings_has_control(value))
        return settings_refuse(error, "control characters are not allowed");
    switch (key->kind) {
    case NUMBER: return set_number(key, field, value, error);
    case NOTED: return note_number(key, field, value, error);
    case BOOLEAN: return set_boolean(field, value, "true", "false", error);
    case YES_NO: return set_boolean(field, value, "yes", "no", error);
    case TEXT: return settings_text(field, key->size, value, error);
    case HOST: return settings_host(field, value, error);
    case PARSED: return key->parse(s, dot ? dot + 1 : "", value, error);
    case UNSUPPORTED:
    case FIXED: break;
    }
    return require_default(key, value, error);
}

enum settings_outcome settings_set(struct settings *settings, const char *key, const char *value,
                                   char *error, size_t size) {
    static const char prefix[] = "zookeeper.";
    if (strncmp(key, prefix, strlen(prefix)) == 0) key += strlen(prefix);
    int used = snprintf(error, size, "%.60s: ", key);
    size_t skipped = (size_t)used < size ? (size_t)used : size;
    struct settings_error message = {error + skipped, size - skipped};
    const char *reason = zookeeper_key_reason(key);
    if (reason) return without_effect(reason, &message);
    const struct key *found = key_of(key);
    return found ? (enum settings_outcome)set(settings, found, key, value, &message)
                 : unknown(key, &message);
}

/* ---- Listing ---- */

static void describe(const struct key *key, const struct settings *s, char values[64],
                     char default_value[SETTINGS_PATH_MAX], settings_lister *each, void *context) {
    const void *field = (const char *)s + key->offset;
    struct settings_key told = {key->name, values, default_value, key->help};
    int32_t number = key->scale ? *(const int32_t *)field / key->scale : 0;
    *values = *default_value = 0;
    switch (key->kind) {
    case NUMBER:
    case NOTED:
        snprintf(values, 64, "%d..%d", key->min, key->max);
        /* A port that is not set is none. */
        if (number >= key->min) snprintf(default_value, SETTINGS_PATH_MAX, "%d", number);
        if (key->kind == NOTED) told.help = key->reason, told.values = "without effect";
        break;
    case BOOLEAN:
        strcpy(values, "true|false");
        strcpy(default_value, *(const bool *)field ? "true" : "false");
        break;
    case YES_NO:
        strcpy(values, "yes|no");
        strcpy(default_value, *(const bool *)field ? "yes" : "no");
        break;
    case TEXT: snprintf(default_value, SETTINGS_PATH_MAX, "%s", (const char *)field); break;
    case HOST:
    case PARSED: break;
    case UNSUPPORTED:
    case FIXED:
        strcpy(values, key->kind == FIXED ? "only the default" : "without effect");
        told.default_value = key->default_value;
        told.help = key->reason;
    }
    each(context, &told);
}

void settings_list(settings_lister *each, void *context) {
    struct settings defaults;
    char values[64], default_value[SETTINGS_PATH_MAX];
    settings_default(&defaults);
    for (size_t i = 0; i < COUNT(keys); i++)
        describe(&keys[i], &defaults, values, default_value, each, context);
    zookeeper_keys_list(each, context);
}
