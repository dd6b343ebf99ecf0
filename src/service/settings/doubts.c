/* What an operator can hardly have meant: settings without effect beside others, and values that do
 * not suit each other. */
#include <ctype.h>
#include <string.h>

#include "service/settings/internal.h"

struct teller {
    settings_warning *each;
    void *context;
};

static void tell(const struct teller *to, const char *what, const char *key) {
    to->each(to->context, what, key);
}

/* ---- Addresses: the key of a port, and that of its host ---- */

static bool has_port(const struct settings_addresses *addresses, int32_t port) {
    for (unsigned i = 0; i < addresses->count; i++)
        if (addresses->at[i].port == port) return true;
    return false;
}

static bool has_host(const struct settings_addresses *addresses, const char *host) {
    for (unsigned i = 0; i < addresses->count; i++)
        if (strcmp(addresses->at[i].host, host) == 0) return true;
    return false;
}

static void doubt_address(const struct teller *to, const struct settings_address *written,
                          const struct settings_addresses *settled, const char *const keys[2],
                          const char *what) {
    if (written->port > 0 && !has_port(settled, written->port)) tell(to, what, keys[0]);
    if (*written->host && !has_host(settled, written->host)) tell(to, what, keys[1]);
}

static void doubt_http(const struct teller *to, const struct settings *s) {
    static const char *const admin[] = {"admin.serverPort", "admin.serverAddress"};
    static const char *const metrics[] = {"metricsProvider.httpPort", "metricsProvider.httpHost"};
    if (s->http.count || s->written.http_off)
        doubt_address(to, &s->written.admin, &s->http, admin,
                      "listen.http says where HTTP is served, so this has no effect");
    if (s->http.count && !s->written.admin_on)
        tell(to, "listen.http has HTTP served, so this has no effect", "admin.enableServer");
    /* Of the two that may serve them, HTTP's is there only if metrics have none of their own. */
    doubt_address(to, &s->written.metrics, s->metrics.count ? &s->metrics : &s->http, metrics,
                  "nothing listens there, so this has no effect: listen.http says otherwise, or "
                  "neither metricsProvider.httpPort nor the class of Prometheus is set");
}

static void doubt_addresses(const struct teller *to, const struct settings *s) {
    static const char *const clients[] = {"clientPort", "clientPortAddress"};
    static const char *const tls[] = {"secureClientPort", "secureClientPortAddress"};
    doubt_address(to, &s->written.client, &s->clients, clients,
                  "no client is served there, so this has no effect: listen says where, or there "
                  "is a port for TLS alone");
    doubt_address(to, &s->written.tls, &s->tls, tls,
                  "no client is served there, so this has no effect: listen.tls says where, or "
                  "there is no secureClientPort");
    doubt_http(to, s);
}

/* ---- Credentials and the ensemble ---- */

static void doubt_files(const struct teller *to, const char *const files[3],
                        const char *const keys[3], const char *what) {
    for (int i = 0; i < 3; i++)
        if (*files[i]) tell(to, what, keys[i]);
}

static void doubt_tls(const struct teller *to, const struct settings *s) {
    static const char *const keys[] = {"tls.certificate", "tls.key", "tls.authorities"};
    const char *const files[] = {s->tls_certificate, s->tls_key, s->tls_authorities};
    if (!s->tls.count && !s->same_port)
        doubt_files(to, files, keys,
                    "there is no port for TLS, so this file, or the store that names it, has no "
                    "effect: set secureClientPort or listen.tls");
}

static void doubt_ensemble(const struct teller *to, const struct settings *s) {
    static const char alone[] = "this server is alone, so this has no effect: --ensemble, or "
                                "several server.N, name the members of an ensemble";
    static const char *const keys[] = {"ensemble.certificate", "ensemble.certificateKey",
                                       "ensemble.authorities"};
    const char *const files[] = {s->peer_certificate, s->peer_key, s->peer_authorities};
    if (s->members.count) return;
    if (s->peer_tls_wanted) tell(to, alone, "sslQuorum");
    if (*s->peer_secret) tell(to, alone, "ensemble.keyFile");
    if (s->found) tell(to, alone, "ensemble.found");
    if (s->join) tell(to, alone, "ensemble.join");
    doubt_files(to, files, keys, alone);
}

/* ---- The super user ---- */

/* USER:DIGEST, of 20 bytes in base64. */
static bool is_digest(const char *value) {
    enum { LETTERS = 27 };
    const char *digest = strchr(value, ':');
    if (!digest || digest == value) return false;
    size_t letters = 0;
    while (isalnum((unsigned char)*++digest) || *digest == '+' || *digest == '/') letters++;
    return letters == LETTERS && strcmp(digest, "=") == 0;
}

void settings_doubts(const struct settings *s, settings_warning *each, void *context) {
    const struct teller to = {each, context};
    doubt_addresses(&to, s);
    doubt_tls(&to, s);
    doubt_ensemble(&to, s);
    if (s->members.count && s->session_ms_min / 2 < s->election_timeout_ms)
        tell(&to,
             "sessions of the shortest timeout may expire during an election: it should be twice "
             "ensemble.electionTimeoutMs at least",
             "minSessionTimeout");
    if (*s->super_digest && !is_digest(s->super_digest))
        tell(&to,
             "nobody can be this user: it is not USER:DIGEST, with the SHA-1 of USER:PASSWORD in "
             "base64",
             "DigestAuthenticationProvider.superDigest");
}
