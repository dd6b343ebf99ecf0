/* The settings of a server.  One table of keys, those of a zoo.cfg, serves files and the command
 * line alike:
 *
 *   settings_default, then settings_read and settings_set in any order, then settings_settle
 *
 * Until that last step some values are still as they were written: session timeouts that are
 * multiples of the tick, ports whose addresses are set by another key.  After it all are final. */
#ifndef CV_SERVICE_SETTINGS_SETTINGS_H
#define CV_SERVICE_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/logger.h"
#include "service/settings/address.h"
#include "service/settings/member_list.h"

enum {
    SETTINGS_TEXT_MAX = 256,
    SETTINGS_PATH_MAX = 1024,
    SETTINGS_ERROR_MAX = 512,
    SETTINGS_LISTEN_MAX = 4,
    SETTINGS_FILE_MAX = 1 << 20,
    SETTINGS_PACKET_MAX = 15 << 20, /* a request must fit into one frame between servers */
    SETTINGS_ELECTION_MS_MIN = 500, /* leases rely on it, whatever each server's timeout is */
};

struct settings_addresses {
    unsigned count;
    struct settings_address at[SETTINGS_LISTEN_MAX];
};

/* Whether clients must show a certificate. */
enum settings_client_auth {
    SETTINGS_AUTH_UNSET, /* settled: needed if there are authorities to check it against */
    SETTINGS_AUTH_NONE,
    SETTINGS_AUTH_WANT, /* checked when shown */
    SETTINGS_AUTH_NEED,
};

struct settings {
    struct settings_addresses clients, tls, http; /* where to listen; a count of 0: nowhere */
    struct settings_addresses metrics;            /* ... for metrics alone, over HTTP */
    bool same_port;                               /* the clients' ports take TLS too */
    int32_t backlog;                              /* of listening sockets; -1: the system's */

    char data_dir[SETTINGS_PATH_MAX];
    char log_dir[SETTINGS_PATH_MAX]; /* settled: the data directory unless set */

    int32_t tick_ms;
    int32_t session_ms_min, session_ms_max;       /* -1: settled by the tick */
    int32_t connections_per_address_max;          /* 0: no limit */
    int32_t connections_max;                      /* 0: no limit */
    int32_t outstanding_max;                      /* requests in flight of one connection */
    int32_t packet_bytes_max;                     /* of a request's frame */
    char words[SETTINGS_TEXT_MAX];                /* see settings_allows */
    bool extended_types, enforce_quota, skip_acl; /* TTL nodes; hard quotas; no ACLs */
    bool read_only_mode;                          /* serve reads without a quorum */
    char super_digest[SETTINGS_TEXT_MAX];         /* "super:<base64>"; empty: nobody */
    int32_t container_check_ms;                   /* 0: never */
    int32_t container_never_used_ms;              /* it has no effect */

    int32_t snapshot_count;   /* transactions between two snapshots ... */
    int32_t snapshot_kib_max; /* ... or so much log, if that is sooner; 0 or less: no bound */
    int32_t snapshots_kept;
    int32_t log_segment_bytes;
    bool force_sync;
    int32_t sync_warning_ms;
    int32_t kept_bytes;                  /* of applied entries, for members that lag */
    int32_t inflight_bytes;              /* of entries that a member has not acknowledged */
    int32_t memory_mib_max;              /* 0: what the system allows */
    int32_t loop_steps;                  /* of each kind of work, in one iteration of the loop */
    int32_t sync_wait_us;                /* a disk that takes longer is left to a thread */
    char record_file[SETTINGS_PATH_MAX]; /* steps of the consensus core; empty: none */
    int32_t record_mib_max;

    char tls_certificate[SETTINGS_PATH_MAX]; /* PEM files */
    char tls_key[SETTINGS_PATH_MAX];
    char tls_key_password[SETTINGS_TEXT_MAX];
    char tls_password_file[SETTINGS_PATH_MAX]; /* its first line, instead of that */
    char tls_authorities[SETTINGS_PATH_MAX];
    enum settings_client_auth client_auth;

    /* Between servers: a shared secret, or certificates; neither only if `insecure`. */
    char peer_secret[SETTINGS_PATH_MAX];
    char peer_certificate[SETTINGS_PATH_MAX];
    char peer_key[SETTINGS_PATH_MAX];
    char peer_key_password[SETTINGS_TEXT_MAX];
    char peer_password_file[SETTINGS_PATH_MAX];
    char peer_authorities[SETTINGS_PATH_MAX];
    bool peer_tls_wanted, insecure;
    char http_hosts[SETTINGS_PATH_MAX];  /* names of this server in HTTP requests; *: any */
    char admin_token[SETTINGS_PATH_MAX]; /* file; empty: nobody changes anything over HTTP */
    bool web_write;                      /* administrators may write nodes by the page */
    bool join;                           /* wait to be added to an ensemble that exists */
    bool found;                          /* no member has any data, as the operator says */
    bool linearizable;                   /* reads are as new as any write before them */
    bool reconfig;                       /* clients may change the members */

    enum logger_level log_level; /* events above it are left out */
    enum logger_format log_format;

    int32_t server_id;              /* as people number it; -1: not set */
    int32_t init_ticks, sync_ticks; /* of a zoo.cfg, for those who ask; they have no effect */
    int32_t election_timeout_ms, heartbeat_ms;
    bool standalone; /* a single member is no ensemble: settled, `members` is then empty */
    struct member_list members;

    /* As written: settings_settle makes listeners of the addresses, settings_read reads the file.
     * Port -1: not set; 0: none, as in a zoo.cfg. */
    struct {
        struct settings_address client, tls, admin, metrics;
        bool admin_on, metrics_on, http_off;
        char dynamic_file[SETTINGS_PATH_MAX];
    } written;
};

void settings_default(struct settings *settings);

enum settings_outcome {
    SETTINGS_BAD = -1, /* the value is not allowed */
    SETTINGS_SET,      /* set, or the key has no effect here */
    SETTINGS_IGNORED,  /* the value asks for something that this server does not have */
    SETTINGS_UNKNOWN,  /* there is no such key */
};

/* Keys may have the prefix "zookeeper.".  Unless the outcome is SETTINGS_SET, `error` has the key
 * and the reason. */
enum settings_outcome settings_set(struct settings *settings, const char *key, const char *value,
                                   char *error, size_t size);

/* Makes the values final, and checks those that depend on each other.  Returns 0, or -1 with
 * the reason in `error`. */
int settings_settle(struct settings *settings, char *error, size_t size);

/* Is called for each setting that an operator should look at: why, and its key.  Exposures let
 * strangers in; doubts are about what can hardly be meant. */
typedef void settings_warning(void *context, const char *what, const char *key);
void settings_exposures(const struct settings *settings, settings_warning *each, void *context);
void settings_doubts(const struct settings *settings, settings_warning *each, void *context);

/* Is called for each key: what values it takes, its default (empty: none), and what it is for. */
struct settings_key {
    const char *name, *values, *default_value, *help;
};
typedef void settings_lister(void *context, const struct settings_key *key);
void settings_list(settings_lister *each, void *context);

/* Whether a four-letter word is answered. */
bool settings_allows(const struct settings *settings, const char *word);

/* Is called for each line that is wrong (`failed`) or ignored: "FILE:LINE: key: reason". */
typedef void settings_report(void *context, bool failed, const char *text);

/* Reads a zoo.cfg and the dynamic configuration file that it may name.  Returns 0, or -1 if there
 * were errors; all are reported. */
int settings_read(struct settings *settings, const char *path, settings_report *report,
                  void *context);
/* The same from memory, where no other file is read; `name` is for the reports. */
int settings_parse(struct settings *settings, const char *name, const char *text, size_t size,
                   settings_report *report, void *context);

#endif
