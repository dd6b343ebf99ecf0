#include "server/settings.h"

#include <stdio.h>
#include <string.h>

#include "server/settings_values.h"

void settings_default(struct settings *settings) {
    static const struct settings_address unsaid = {"", -1};
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
        .snapshots_kept = 3,
        .log_segment_bytes = 65536 * 1024,
        .force_sync = true,
        .sync_warning_ms = 1000,
        .sync_wait_us = 1000,
        .kept_bytes = 32 << 20,
        .server_id = -1,
        .init_ticks = 10,
        .sync_ticks = 5,
        .standalone = true,
        .written = {unsaid, unsaid, unsaid, unsaid, .admin_on = true},
    };
    for (int i = 0; i <= SETTINGS_ID_MAX; i++) settings->weight_of[i] = 1;
}

struct settings_member *settings_member(struct settings *settings, int32_t id) {
    for (unsigned i = 0; i < settings->member_count; i++)
        if (settings->members[i].id == id) return &settings->members[i];
    return NULL;
}

/* ---- Settling ---- */

/* A port that was written without an address is for all of them, as in the original; one that was
 * not written at all, for this machine only. */
static void listen_on(struct settings_addresses *addresses, const struct settings_address *written,
                      int32_t usual_port, const char *usual_host) {
    struct settings_address address = *written;
    if (!*address.host) strcpy(address.host, address.port < 0 ? usual_host : "*");
    if (address.port < 0) address.port = usual_port;
    if (!address.port) return;
    for (unsigned i = 0; i < addresses->count; i++)
        if (addresses->at[i].port == address.port &&
            strcmp(addresses->at[i].host, address.host) == 0)
            return;
    addresses->at[addresses->count++] = address;
}

static int settle_listeners(struct settings *s, struct why *why) {
    bool http = s->http.count || s->written.http_off;
    if (!s->tls.count) listen_on(&s->tls, &s->written.tls, 0, "*");
    /* Who asks for TLS and nothing else gets nothing else. */
    if (!s->clients.count)
        listen_on(&s->clients, &s->written.client, s->tls.count ? 0 : 2181, "127.0.0.1");
    if (!http && s->written.admin_on) listen_on(&s->http, &s->written.admin, 8080, "127.0.0.1");
    if (!http) listen_on(&s->http, &s->written.metrics, s->written.metrics_on ? 7000 : 0, "*");
    if (!s->clients.count && !s->tls.count)
        return settings_bad(why, "neither clientPort nor secureClientPort is a port to listen on");
    return 0;
}

static int settle_tls(struct settings *s, struct why *why) {
    if ((s->tls.count || s->same_port) && (!*s->tls_certificate || !*s->tls_key))
        return settings_bad(why, "TLS needs a certificate and its key: ssl.keyStore.location, or "
                                 "tls.certificate and tls.key");
    if (s->client_auth == SETTINGS_AUTH_UNSAID)
        s->client_auth = *s->tls_authorities ? SETTINGS_AUTH_NEED : SETTINGS_AUTH_NONE;
    if (s->client_auth != SETTINGS_AUTH_NONE && !*s->tls_authorities)
        return settings_bad(why,
                            "ssl.clientAuth needs ssl.trustStore.location: the authorities that "
                            "clients' certificates are checked against");
    return 0;
}

static int settle_sessions(struct settings *s, struct why *why) {
    if (s->session_ms_min < 0) s->session_ms_min = 2 * s->tick_ms;
    if (s->session_ms_max < 0) s->session_ms_max = 20 * s->tick_ms;
    if (s->session_ms_min > s->session_ms_max)
        return settings_bad(why,
                            "minSessionTimeout, %d ms, is longer than maxSessionTimeout, %d ms",
                            s->session_ms_min, s->session_ms_max);
    return 0;
}

static int settle_groups(struct settings *s, struct why *why) {
    bool groups = false;
    for (int32_t id = 0; id <= SETTINGS_ID_MAX; id++) {
        if (s->group_of[id] && !settings_member(s, id))
            return settings_bad(why, "group.%d has server %d, but there is no server.%d",
                                s->group_of[id], id, id);
        groups |= s->group_of[id] != 0;
    }
    for (unsigned i = 0; i < s->member_count; i++)
        if (groups && !s->members[i].observer && !s->group_of[s->members[i].id])
            return settings_bad(why, "server.%d is in no group", s->members[i].id);
    return 0;
}

/* Where the original keeps it; -1: it does not. */
static int32_t read_own_id(const struct settings *s) {
    char path[SETTINGS_PATH_MAX + 8], text[16] = "";
    int32_t id = -1;
    snprintf(path, sizeof path, "%s/myid", s->data_dir);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    if (fgets(text, sizeof text, file)) text[strcspn(text, " \r\n")] = 0;
    settings_number(text, 1, SETTINGS_ID_MAX, &id);
    fclose(file);
    return id;
}

/* Its line may say where clients come. */
static void take_own_address(struct settings *s, const struct settings_member *own) {
    if (s->written.client.port <= 0 && own->client.port) s->written.client = own->client;
}

static int settle_own_id(struct settings *s, struct why *why) {
    int32_t kept = read_own_id(s);
    if (s->server_id < 0) s->server_id = kept;
    if (s->server_id < 0)
        return settings_bad(why, "a server of an ensemble needs its number: --id, myid=N, or the "
                                 "file myid in the data directory");
    if (kept >= 0 && kept != s->server_id)
        return settings_bad(why, "this is to be server %d, but %.200s/myid says %d", s->server_id,
                            s->data_dir, kept);
    const struct settings_member *own = settings_member(s, s->server_id);
    if (!own)
        return settings_bad(why, "server %d is not among those of the ensemble", s->server_id);
    take_own_address(s, own);
    return 0;
}

static int settle_peers(struct settings *s, struct why *why) {
    bool certificates = *s->peer_certificate && *s->peer_key && *s->peer_authorities;
    bool some = *s->peer_certificate || *s->peer_key || *s->peer_authorities;
    if (*s->peer_secret && some)
        return settings_bad(why, "between servers: a shared key or certificates, not both");
    if ((some || s->peer_tls_wanted) && !certificates && !*s->peer_secret)
        return settings_bad(why, "between servers: TLS needs a certificate, its key and the "
                                 "authorities (ssl.quorum.keyStore.location, "
                                 "ssl.quorum.trustStore.location)");
    return 0;
}

static int settle_members(struct settings *s, struct why *why) {
    unsigned voters = 0;
    for (unsigned i = 0; i < s->member_count; i++) voters += !s->members[i].observer;
    if (s->member_count && !voters) return settings_bad(why, "every server.N is an observer");
    if (settle_groups(s, why) != 0) return SETTINGS_BAD;
    if (!s->member_count) return s->join ? settings_bad(why, "to join, say whom: --ensemble") : 0;
    if (s->member_count != 1 || !s->standalone)
        return settle_own_id(s, why) || settle_peers(s, why) ? SETTINGS_BAD : 0;
    take_own_address(s, &s->members[0]); /* an ensemble of one is a server like any other */
    s->member_count = 0;
    return 0;
}

int settings_settle(struct settings *settings, char *error, size_t size) {
    struct why why = {error, size};
    if (!*settings->data_dir) return settings_bad(&why, "dataDir is empty");
    if (!*settings->log_dir) strcpy(settings->log_dir, settings->data_dir);
    if (*settings->written.dynamic_file)
        return settings_bad(&why, "dynamicConfigFile: only a zoo.cfg can name another file");
    return settle_members(settings, &why) || settle_listeners(settings, &why) ||
                   settle_tls(settings, &why) || settle_sessions(settings, &why)
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
