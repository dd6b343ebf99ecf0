#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/settings_values.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* ---- The table ---- */

enum kind {
    NUMBER, /* within min and max; kept times `scale` */
    TRUTH,  /* true or false */
    YES,    /* yes or no: keys of which the original takes no other word, to the safe side */
    TEXT,
    HOST,
    TAKEN, /* by a function */
    NOTED, /* asks, unless it is as usual, for what is left out here */
    MUST,  /* the same, where leaving it out would not do: be as usual, or an error */
};

struct key {
    const char *name; /* ends in "*": all that begin so, unless listed above it */
    enum kind kind;
    size_t offset, size; /* of the value in struct settings */
    int32_t min, max, scale;
    settings_take *take;
    const char *usual, *because;
};

#define PLACE(FIELD) offsetof(struct settings, FIELD), sizeof((struct settings *)0)->FIELD
#define NUMBER_(NAME, FIELD, MIN, MAX)                                                             \
    { .name = NAME, NUMBER, PLACE(FIELD), MIN, MAX, 1 }
#define SCALED_(NAME, FIELD, MIN, MAX, SCALE)                                                      \
    { .name = NAME, NUMBER, PLACE(FIELD), MIN, MAX, SCALE }
#define TRUTH_(NAME, FIELD)                                                                        \
    { .name = NAME, TRUTH, PLACE(FIELD) }
#define YES_(NAME, FIELD)                                                                          \
    { .name = NAME, YES, PLACE(FIELD) }
#define TEXT_(NAME, FIELD)                                                                         \
    { .name = NAME, TEXT, PLACE(FIELD) }
#define HOST_(NAME, FIELD)                                                                         \
    { .name = NAME, HOST, PLACE(FIELD) }
#define TAKEN_(NAME, TAKE)                                                                         \
    { .name = NAME, TAKEN, .take = settings_take_##TAKE }
#define NOTED_(NAME, USUAL, BECAUSE)                                                               \
    { .name = NAME, NOTED, .usual = USUAL, .because = BECAUSE }
#define MUST_(NAME, USUAL, BECAUSE)                                                                \
    { .name = NAME, MUST, .usual = USUAL, .because = BECAUSE }

static const struct key keys[] = {
    TAKEN_("listen", listen),
    TAKEN_("listen.tls", listen),
    TAKEN_("listen.http", listen),
    NUMBER_("clientPort", written.client.port, 0, UINT16_MAX),
    HOST_("clientPortAddress", written.client.host),
    NUMBER_("secureClientPort", written.tls.port, 0, UINT16_MAX),
    HOST_("secureClientPortAddress", written.tls.host),
    NUMBER_("admin.serverPort", written.admin.port, 0, UINT16_MAX),
    HOST_("admin.serverAddress", written.admin.host),
    TRUTH_("admin.enableServer", written.admin_on),
    NUMBER_("metricsProvider.httpPort", written.metrics.port, 0, UINT16_MAX),
    HOST_("metricsProvider.httpHost", written.metrics.host),
    TAKEN_("metricsProvider.className", metrics),
    TRUTH_("client.portUnification", same_port),
    NUMBER_("clientPortListenBacklog", backlog, -1, INT32_MAX),

    TEXT_("dataDir", data_dir),
    TEXT_("dataLogDir", log_dir),
    NUMBER_("tickTime", tick_ms, 1, 100000000), /* 20 ticks are a session's 32 bits at most */
    NUMBER_("minSessionTimeout", session_ms_min, -1, INT32_MAX),
    NUMBER_("maxSessionTimeout", session_ms_max, -1, INT32_MAX),
    NUMBER_("maxClientCnxns", connections_per_address_max, 0, INT32_MAX),
    NUMBER_("maxCnxns", connections_max, 0, INT32_MAX),
    NUMBER_("globalOutstandingLimit", outstanding_max, 1, INT32_MAX),
    NUMBER_("jute.maxbuffer", packet_bytes_max, 1024, SETTINGS_PACKET_MAX),
    TEXT_("4lw.commands.whitelist", words),
    TRUTH_("extendedTypesEnabled", extended_types),
    TRUTH_("enforceQuota", enforce_quota),
    YES_("skipACL", skip_acl),
    TRUTH_("readonlymode.enabled", read_only_mode),
    TEXT_("DigestAuthenticationProvider.superDigest", super_digest),
    NUMBER_("znode.container.checkIntervalMs", container_check_ms, 0, INT32_MAX),
    NUMBER_("znode.container.maxNeverUsedIntervalMs", container_never_used_ms, 0, INT32_MAX),

    NUMBER_("snapCount", snapshot_count, 2, INT32_MAX),
    NUMBER_("autopurge.snapRetainCount", snapshots_kept, 1, INT32_MAX),
    SCALED_("preAllocSize", log_segment_bytes, 1, 1 << 20, 1024),
    YES_("forceSync", force_sync),
    NUMBER_("fsync.warningthresholdms", sync_warning_ms, 0, INT32_MAX),
    NUMBER_("fsync.waitmicros", sync_wait_us, 0, INT32_MAX),
    NUMBER_("ensemble.keptBytes", kept_bytes, 0, INT32_MAX),

    TEXT_("tls.certificate", tls_certificate),
    TEXT_("tls.key", tls_key),
    TEXT_("tls.keyPassword", tls_key_password),
    TEXT_("tls.authorities", tls_authorities),
    TAKEN_("ssl.clientAuth", auth),
    TAKEN_("ssl.keyStore.location", store),
    TEXT_("ssl.keyStore.password", tls_key_password),
    TAKEN_("ssl.trustStore.location", store),
    MUST_("ssl.keyStore.type", "PEM", "stores of other kinds are not read"),
    MUST_("ssl.trustStore.type", "PEM", "stores of other kinds are not read"),

    NUMBER_("myid", server_id, 0, SETTINGS_ID_MAX),
    NUMBER_("initLimit", init_ticks, 1, 1000000),
    NUMBER_("syncLimit", sync_ticks, 1, 1000000),
    TRUTH_("standaloneEnabled", standalone),
    TEXT_("dynamicConfigFile", written.dynamic_file),
    TAKEN_("ensemble", ensemble),
    TRUTH_("ensemble.join", join),
    TAKEN_("ensemble.reads", reads),
    TRUTH_("ensemble.insecure", insecure),
    TEXT_("ensemble.keyFile", peer_secret),
    TEXT_("ensemble.certificate", peer_certificate),
    TEXT_("ensemble.certificateKey", peer_key),
    TEXT_("ensemble.authorities", peer_authorities),
    TAKEN_("ssl.quorum.keyStore.location", peer_store),
    TAKEN_("ssl.quorum.trustStore.location", peer_store),
    MUST_("ssl.quorum.keyStore.type", "PEM", "stores of other kinds are not read"),
    MUST_("ssl.quorum.trustStore.type", "PEM", "stores of other kinds are not read"),
    TAKEN_("server.*", member),
    TAKEN_("group.*", group),
    TAKEN_("weight.*", weight),

    MUST_("sessionRequireClientSASLAuth", "false", "there is no SASL"),
    MUST_("enforce.auth.enabled", "false", "clients cannot be made to authenticate"),
    MUST_("DigestAuthenticationProvider.enabled", "true", "the digest scheme is always there"),
    MUST_("DigestAuthenticationProvider.digestAlg", "SHA1", "digests are of that kind"),
    MUST_("electionAlg", "3", "there is no other"),
    NOTED_("autopurge.purgeInterval", "", "old snapshots go when a new one is there"),
    NOTED_("localSessionsEnabled", "false", "every session is known to all servers"),
    NOTED_("peerType", "participant", "a server's role is in its server.N line"),
    TRUTH_("reconfigEnabled", reconfig),
    TRUTH_("sslQuorum", peer_tls_wanted),
    NOTED_("quorum.auth.enableSasl", "false", "there is no SASL"),
    NOTED_("X509AuthenticationProvider.superUser", "", "only a digest makes a super user"),
    NOTED_("SASLAuthenticationProvider.superPassword", "", "there is no SASL"),
    NOTED_("superUser", "", "only a digest makes a super user"),
    NOTED_("authProvider.*", "", "schemes cannot be added"),
    NOTED_("requireClientAuthScheme", "", "there is no SASL"),
    NOTED_("audit.enable", "false", "there is no audit log"),
    NOTED_("ssl.crl", "false", "certificates are not checked for revocation"),
    NOTED_("ssl.ocsp", "false", "certificates are not checked for revocation"),
    NOTED_("ssl.protocol", "", "the TLS library decides"),
    NOTED_("ssl.enabledProtocols", "", "the TLS library decides"),
    NOTED_("ssl.ciphersuites", "", "the TLS library decides"),
};

/* Of the original's inner life: they may be there, and nothing follows from them. */
static const char *const silent[] = {
    "admin.*",
    "allowSaslFailedClients",
    "audit.*",
    "bitHashCacheSize",
    "closeSessionTxn.enabled",
    "cnxTimeout",
    "commitLogCount",
    "commitProcessor.*",
    "connection_throttle_*",
    "connectToLearnerMasterLimit",
    "db.autocreate",
    "digest.enabled",
    "electionPortBindRetry",
    "emulate353TTLNodes",
    "enableEagerACLCheck",
    "enforce.auth.schemes",
    "ensembleAuthName",
    "fastleader.*",
    "flushDelay",
    "follower.*",
    "forceSnapshotSync",
    "forward_learner_requests_to_commit_processor_disabled",
    "intBufferStartingSizeBytes",
    "jaasLoginRenew",
    "jmx.*",
    "jute.maxbuffer.extrasize",
    "jvm.*",
    "kerberos.*",
    "kinit",
    "largeRequest*",
    "leader.*",
    "leaderConnectDelayDuringRetryMs",
    "leaderServes",
    "learner.*",
    "localSessionsUpgradingEnabled",
    "maxBatchSize",
    "maxGetChildrenResponseCacheSize",
    "maxInProcessingDeadWatchers",
    "maxResponseCacheSize",
    "maxWriteQueuePollTime",
    "messageTracker.*",
    "metricsProvider.*",
    "multiAddress.*",
    "netty.*",
    "nio.*",
    "observer.*",
    "observerMaster*",
    "oraclePath",
    "pathStats.*",
    "portUnification",
    "quorum.*",
    "quorumListenOnAllIPs",
    "request_*",
    "sasl.*",
    "security.auth_to_local",
    "serverCnxnFactory",
    "snapshot.*",
    "snapshotSizeFactor",
    "snapSizeLimitInKb",
    "ssl.*",
    "sslQuorumReloadCertFiles",
    "syncEnabled",
    "tcpKeepAlive",
    "throttled_op_wait_time",
    "version",
    "watcherClean*",
    "watchManagerName",
    "znode.container.maxPerMinute",
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

static enum settings_outcome unknown(const char *key, struct why *why) {
    for (size_t i = 0; i < COUNT(silent); i++)
        if (matches(silent[i], key)) return SETTINGS_SET;
    const char *meant = NULL;
    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcasecmp(keys[i].name, key) == 0) meant = keys[i].name;
    settings_bad(why, "unknown%s%s", meant ? "; did you mean " : "", meant ? meant : "");
    return SETTINGS_UNKNOWN;
}

/* One of two words. */
static int set_truth(bool *place, const char *value, const char *yes, const char *no,
                     struct why *why) {
    bool truth = strcasecmp(value, yes) == 0;
    if (!truth && strcasecmp(value, no) != 0)
        return settings_bad(why, "'%.60s' is not %s or %s", value, yes, no);
    *place = truth;
    return SETTINGS_SET;
}

static int set_number(const struct key *key, int32_t *place, const char *value, struct why *why) {
    if (!settings_number(value, key->min, key->max, place))
        return settings_bad(why, "'%.60s' is not a whole number from %d to %d", value, key->min,
                            key->max);
    *place *= key->scale;
    return SETTINGS_SET;
}

static int set_as_usual(const struct key *key, const char *value, struct why *why) {
    if (strcasecmp(value, key->usual) == 0) return SETTINGS_SET;
    if (key->kind == MUST)
        return settings_bad(why, "'%.60s' is not %s: %s", value, key->usual, key->because);
    settings_bad(why, "ignored: %s", key->because);
    return SETTINGS_IGNORED;
}

static int set(struct settings *s, const struct key *key, const char *name, const char *value,
               struct why *why) {
    void *place = (char *)s + key->offset;
    const char *dot = strchr(name, '.');
    for (const char *at = value; *at; at++)
        if (iscntrl((unsigned char)*at))
            return settings_bad(why, "control characters are not allowed");
    switch (key->kind) {
    case NUMBER: return set_number(key, place, value, why);
    case TRUTH: return set_truth(place, value, "true", "false", why);
    case YES: return set_truth(place, value, "yes", "no", why);
    case TEXT: return settings_text(place, key->size, value, why);
    case HOST: return settings_host(place, value, why);
    case TAKEN: return key->take(s, dot ? dot + 1 : "", value, why);
    case NOTED:
    case MUST: break;
    }
    return set_as_usual(key, value, why);
}

enum settings_outcome settings_set(struct settings *settings, const char *key, const char *value,
                                   char *error, size_t size) {
    static const char prefix[] = "zookeeper.";
    if (strncmp(key, prefix, strlen(prefix)) == 0) key += strlen(prefix);
    int used = snprintf(error, size, "%.60s: ", key);
    size_t skipped = (size_t)used < size ? (size_t)used : size;
    struct why why = {error + skipped, size - skipped};
    const struct key *found = key_of(key);
    return found ? (enum settings_outcome)set(settings, found, key, value, &why)
                 : unknown(key, &why);
}
