#include "service/settings/settings.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "service/settings/internal.h"

void settings_default(struct settings *settings) {
    static const struct settings_address unset = {"", -1};
    *settings = (struct settings){
        .backlog = -1,
        .data_dir = "conclave-data",
        .tick_ms = 2000,
        .session_ms_min = -1,
        .session_ms_max = -1,
        .connections_per_address_max = 60,
        .outstanding_max = 1000,
        .packet_bytes_max = 1048575,
        .words = "srvr",
        .extended_types = true,
        .container_check_ms = 60000,
        .snapshot_count = 100000,
        .snapshot_kib_max = 65536,
        .snapshots_kept = 3,
        .log_segment_bytes = 65536 * 1024,
        .force_sync = true,
        .sync_warning_ms = 1000,
        .sync_wait_us = 1000,
        .kept_bytes = 32 << 20,
        .inflight_bytes = 16 << 20,
        .record_mib_max = 1024,
        .loop_steps = 4096,
        .log_level = LOGGER_INFO,
        .log_format = LOGGER_FORMAT_TEXT,
        .server_id = -1,
        .init_ticks = 10,
        .sync_ticks = 5,
        .election_timeout_ms = SETTINGS_ELECTION_MS_MIN,
        .heartbeat_ms = 50,
        .standalone = true,
        .written = {unset, unset, unset, unset, .admin_on = true},
    };
}

/* ---- Settling ---- */

static bool has_address(const struct settings_addresses *addresses,
                        const struct settings_address *address) {
    for (unsigned i = 0; i < addresses->count; i++)
        if (addresses->at[i].port == address->port &&
            strcmp(addresses->at[i].host, address->host) == 0)
            return true;
    return false;
}

/* A port without an address is open on all addresses, as ZooKeeper has it; the default port, on
 * this machine's own only. */
static void listen_on(struct settings_addresses *addresses, const struct settings_address *written,
                      int32_t default_port, const char *default_host) {
    struct settings_address address = *written;
    if (!*address.host) strcpy(address.host, address.port < 0 ? default_host : "*");
    if (address.port < 0) address.port = default_port;
    if (address.port) addresses->at[addresses->count++] = address;
}

/* An address for metrics alone that serves all of HTTP as well is HTTP's. */
static void settle_http(struct settings *s) {
    if (s->written.http_off) return;
    if (!s->http.count && s->written.admin_on)
        listen_on(&s->http, &s->written.admin, 8080, "127.0.0.1");
    listen_on(&s->metrics, &s->written.metrics, s->written.metrics_on ? 7000 : 0, "*");
    if (s->metrics.count && has_address(&s->http, &s->metrics.at[0])) s->metrics.count = 0;
}

static int settle_listeners(struct settings *s, struct settings_error *error) {
    if (!s->tls.count) listen_on(&s->tls, &s->written.tls, 0, "*");
    /* A port for TLS alone turns the default port for plain connections off. */
    if (!s->clients.count)
        listen_on(&s->clients, &s->written.client, s->tls.count ? 0 : 2181, "127.0.0.1");
    settle_http(s);
    if (!s->clients.count && !s->tls.count)
        return settings_refuse(error, "no port for clients: set clientPort or secureClientPort");
    return 0;
}

static int settle_tls(struct settings *s, struct settings_error *error) {
    if ((s->tls.count || s->same_port) && (!*s->tls_certificate || !*s->tls_key))
        return settings_refuse(error,
                               "TLS needs a certificate and its key: ssl.keyStore.location, or "
                               "tls.certificate and tls.key");
    if (s->client_auth == SETTINGS_AUTH_UNSET)
        s->client_auth = *s->tls_authorities ? SETTINGS_AUTH_NEED : SETTINGS_AUTH_NONE;
    if (s->client_auth != SETTINGS_AUTH_NONE && !*s->tls_authorities)
        return settings_refuse(error,
                               "ssl.clientAuth needs ssl.trustStore.location: the authorities that "
                               "clients' certificates are checked against");
    return 0;
}

static int settle_sessions(struct settings *s, struct settings_error *error) {
    if (s->session_ms_min < 0) s->session_ms_min = 2 * s->tick_ms;
    if (s->session_ms_max < 0) s->session_ms_max = 20 * s->tick_ms;
    if (s->session_ms_min > s->session_ms_max)
        return settings_refuse(error,
                               "minSessionTimeout, %d ms, is longer than maxSessionTimeout, %d ms",
                               s->session_ms_min, s->session_ms_max);
    return 0;
}

/* From the file myid, where ZooKeeper keeps it; -1: there is none. */
static int32_t read_myid(const struct settings *s) {
    char path[SETTINGS_PATH_MAX + 8], text[16] = "";
    int32_t id = -1;
    snprintf(path, sizeof path, "%s/myid", s->data_dir);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    if (fgets(text, sizeof text, file)) text[strcspn(text, " \r\n")] = 0;
    settings_number(text, 0, MEMBER_NUMBER_MAX, &id);
    fclose(file);
    return id;
}

/* The server.N line may have the port for clients, unless `listen` says where they connect. */
static int take_own_address(struct settings *s, const struct member *own,
                            struct settings_error *error) {
    int32_t written = s->written.client.port;
    if (s->clients.count || !own->client.port) return 0;
    if (written > 0 && written != own->client.port)
        return settings_refuse(
            error, "clientPort, %d, is different from the port for clients of server.%d, %d",
            written, member_number(own->id), own->client.port);
    if (written <= 0) s->written.client = own->client;
    return 0;
}

static int settle_id(struct settings *s, struct settings_error *error) {
    int32_t stored = read_myid(s);
    if (s->server_id < 0) s->server_id = stored;
    if (s->server_id < 0)
        return settings_refuse(error, "a server of an ensemble needs its id: --id, myid=N, or the "
                                      "file myid in the data directory");
    if (stored >= 0 && stored != s->server_id)
        return settings_refuse(error, "this is server %d, but the file %.200s/myid has the id %d",
                               s->server_id, s->data_dir, stored);
    const struct member *own = member_list_find(&s->members, member_id(s->server_id));
    if (!own)
        return settings_refuse(error, "server %d is not among the servers of the ensemble",
                               s->server_id);
    return take_own_address(s, own, error);
}

static int settle_peers(struct settings *s, struct settings_error *error) {
    bool certificates = *s->peer_certificate && *s->peer_key && *s->peer_authorities;
    bool any = *s->peer_certificate || *s->peer_key || *s->peer_authorities;
    if (s->insecure && (any || *s->peer_secret))
        return settings_refuse(error, "between servers: a key or certificates (--peer-key, "
                                      "--peer-tls-cert), or neither (--insecure), but not both");
    if (*s->peer_secret && any)
        return settings_refuse(error,
                               "between servers: set a shared key or certificates, not both");
    if ((any || s->peer_tls_wanted) && !certificates && !*s->peer_secret)
        return settings_refuse(error, "between servers: TLS needs a certificate, its key and the "
                                      "authorities (ssl.quorum.keyStore.location, "
                                      "ssl.quorum.trustStore.location)");
    /* Loopback addresses are no exception: every user of the machine can connect to them. */
    if (!any && !*s->peer_secret && !s->insecure)
        return settings_refuse(
            error, "the servers of an ensemble need a secret by which they know each other: make "
                   "one with 'conclave key FILE', give every server a copy that only its user can "
                   "read, and start each with --peer-key FILE (ensemble.keyFile=FILE); or use "
                   "certificates (--peer-tls-cert); or, if nobody else can reach their ports, "
                   "--insecure (ensemble.insecure=true)");
    return 0;
}

static int check_ensemble(const struct settings *s, struct settings_error *error) {
    char why[SETTINGS_ERROR_MAX];
    if (member_list_is_ensemble(&s->members, why, sizeof why)) return 0;
    return settings_refuse(error, "%s", why);
}

static int check_addresses(const struct settings *s, struct settings_error *error) {
    for (unsigned i = 0; i < s->members.count; i++)
        for (unsigned j = 0; j < i; j++) {
            const struct member *one = &s->members.at[j], *other = &s->members.at[i];
            if (one->peer_port == other->peer_port && strcasecmp(one->host, other->host) == 0)
                return settings_refuse(error, "server.%d and server.%d have the same host and port",
                                       member_number(one->id), member_number(other->id));
        }
    return 0;
}

static int settle_members(struct settings *s, struct settings_error *error) {
    unsigned voters = 0;
    for (unsigned i = 0; i < s->members.count; i++) voters += !s->members.at[i].observer;
    if (s->members.count && !voters)
        return settings_refuse(error,
                               "every server.N is an observer; an ensemble needs a participant");
    if (member_list_check_groups(&s->members, error) != SETTINGS_SET) return SETTINGS_BAD;
    if (!s->members.count)
        return s->join ? settings_refuse(error, "to join an ensemble, name its servers: --ensemble")
                       : 0;
    if (s->members.count != 1 || !s->standalone)
        return check_ensemble(s, error) || check_addresses(s, error) || settle_id(s, error) ||
                       settle_peers(s, error)
                   ? SETTINGS_BAD
                   : 0;
    /* An ensemble of one is a standalone server. */
    if (take_own_address(s, &s->members.at[0], error) != 0) return SETTINGS_BAD;
    s->members = (struct member_list){0};
    return 0;
}

/* A heartbeat or two may be lost without an election.  An election that somebody has made longer
 * must be over before the shortest session is. */
static int settle_timeouts(const struct settings *s, struct settings_error *error) {
    if (s->heartbeat_ms > s->election_timeout_ms / 4)
        return settings_refuse(
            error,
            "ensemble.heartbeatMs, %d, is more than a quarter of ensemble.electionTimeoutMs, %d",
            s->heartbeat_ms, s->election_timeout_ms);
    if (s->members.count && s->election_timeout_ms > SETTINGS_ELECTION_MS_MIN &&
        s->election_timeout_ms > s->session_ms_min / 2)
        return settings_refuse(
            error, "ensemble.electionTimeoutMs, %d, is more than half of minSessionTimeout, %d",
            s->election_timeout_ms, s->session_ms_min);
    return 0;
}

int settings_settle(struct settings *settings, char *error, size_t size) {
    struct settings_error message = {error, size};
    if (!*settings->data_dir) return settings_refuse(&message, "dataDir is empty");
    if (!*settings->log_dir) strcpy(settings->log_dir, settings->data_dir);
    if (*settings->written.dynamic_file)
        return settings_refuse(&message, "dynamicConfigFile: only a zoo.cfg can name another file");
    if (settings->web_write && !*settings->admin_token)
        return settings_refuse(&message, "admin.webWrite: whoever writes on the page has a secret; "
                                         "name its file (admin.tokenFile, --admin-token-file)");
    return settle_members(settings, &message) || settle_listeners(settings, &message) ||
                   settle_tls(settings, &message) || settle_sessions(settings, &message) ||
                   settle_timeouts(settings, &message)
               ? -1
               : 0;
}

bool settings_allows(const struct settings *settings, const char *word) {
    size_t size = strlen(word);
    if (settings->read_only_mode && strcmp(word, "isro") == 0) return true;
    for (const char *at = settings->words; *at; at += strcspn(at, ",")) {
        at += strspn(at, ", ");
        size_t item = strcspn(at, ", ");
        if ((item == 1 && *at == '*') || (item == size && memcmp(at, word, size) == 0)) return true;
    }
    return false;
}
