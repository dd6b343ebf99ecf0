/* What a server can be told.  One table of keys, those of a zoo.cfg, serves files and the command
 * line alike:
 *
 *   settings_default, then settings_read and settings_set in any order, then settings_settle
 *
 * Until that last step some values are still as they were written: sessions that are to last a
 * number of ticks, ports whose addresses come on another line.  After it all are final. */
#ifndef CV_SERVER_SETTINGS_H
#define CV_SERVER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SETTINGS_HOST_MAX = 256,
    SETTINGS_TEXT_MAX = 256,
    SETTINGS_PATH_MAX = 1024,
    SETTINGS_ERROR_MAX = 512,
    SETTINGS_LISTEN_MAX = 4,
    SETTINGS_MEMBERS_MAX = 32,
    SETTINGS_ID_MAX = 255, /* of a server: it is one byte of every session's number */
    SETTINGS_FILE_MAX = 1 << 20,
    SETTINGS_PACKET_MAX = 15 << 20, /* a request must fit into one frame between servers */
};

struct settings_address {
    char host[SETTINGS_HOST_MAX]; /* a name or an address without brackets; "*": all addresses */
    int32_t port;                 /* 0: any free one */
};

struct settings_addresses {
    unsigned count;
    struct settings_address at[SETTINGS_LISTEN_MAX];
};

/* A server of an ensemble: server.N=host:peers:election[:role][;[client host:]client port] */
struct settings_member {
    int32_t id;
    char host[SETTINGS_HOST_MAX];
    int32_t peer_port, election_port;
    bool observer;
    struct settings_address client; /* port 0: not said */
};

enum settings_client_auth {                       /* whether clients must show a certificate */
                            SETTINGS_AUTH_UNSAID, /* settled: needed if there are authorities to
                                                     check it against */
                            SETTINGS_AUTH_NONE,
                            SETTINGS_AUTH_WANT, /* checked when shown */
                            SETTINGS_AUTH_NEED,
};

struct settings {
    struct settings_addresses clients, tls, http; /* where to listen; a count of 0: nowhere */
    bool same_port;                               /* the clients' ports take TLS too */
    int32_t backlog;                              /* of listening sockets; -1: the system's */

    char data_dir[SETTINGS_PATH_MAX];
    char log_dir[SETTINGS_PATH_MAX]; /* settled: the data directory unless said */

    int32_t tick_ms;
    int32_t session_ms_min, session_ms_max;              /* -1 until settled: by the tick */
    int32_t connections_per_address_max;                 /* 0: no limit */
    int32_t connections_max;                             /* 0: no limit */
    int32_t outstanding_max;                             /* requests in flight of one connection */
    int32_t packet_bytes_max;                            /* of a request's frame */
    char words[SETTINGS_TEXT_MAX];                       /* see settings_allows */
    bool extended_types, enforce_quota, skip_acl;        /* TTL nodes; hard quotas; no ACLs */
    bool read_only_mode;                                 /* serve reads without a quorum */
    char super_digest[SETTINGS_TEXT_MAX];                /* "super:<base64>"; empty: nobody */
    int32_t container_check_ms, container_never_used_ms; /* 0: never */

    int32_t snapshot_count; /* transactions between two */
    int32_t snapshots_kept;
    int32_t log_segment_bytes;
    bool force_sync;
    int32_t sync_warning_ms;
    int32_t kept_bytes;   /* of applied entries, for members that are behind */
    int32_t sync_wait_us; /* a disk that was quicker is waited for, else a thread does it */

    char tls_certificate[SETTINGS_PATH_MAX]; /* PEM files */
    char tls_key[SETTINGS_PATH_MAX];
    char tls_key_password[SETTINGS_TEXT_MAX];
    char tls_authorities[SETTINGS_PATH_MAX];
    enum settings_client_auth client_auth;

    /* Between servers: a secret that they share, or certificates; neither: on one machine only. */
    char peer_secret[SETTINGS_PATH_MAX];
    char peer_certificate[SETTINGS_PATH_MAX];
    char peer_key[SETTINGS_PATH_MAX];
    char peer_authorities[SETTINGS_PATH_MAX];
    bool peer_tls_wanted, insecure;
    bool join;         /* wait to be added to an ensemble that is there */
    bool linearizable; /* reads are as new as any write before them */
    bool reconfig;     /* clients may change the members */

    int32_t server_id; /* -1: not said */
    int32_t init_ticks, sync_ticks;
    bool standalone; /* a single member needs no ensemble; settled, it is no member any more */
    unsigned member_count;
    struct settings_member members[SETTINGS_MEMBERS_MAX];
    uint8_t group_of[SETTINGS_ID_MAX + 1]; /* by server id; 0: in none */
    int32_t weight_of[SETTINGS_ID_MAX + 1];

    /* As written; settings_settle makes listeners of them, and readers files.  Port -1: not said;
     * 0: none, as in a zoo.cfg. */
    struct {
        struct settings_address client, tls, admin, metrics;
        bool admin_on, metrics_on, http_off;
        char dynamic_file[SETTINGS_PATH_MAX];
    } written;
};

void settings_default(struct settings *settings);

enum settings_outcome {
    SETTINGS_BAD = -1, /* the value is not allowed */
    SETTINGS_SET,      /* taken, or it makes no difference here */
    SETTINGS_IGNORED,  /* the value asks for what this server does not do */
    SETTINGS_UNKNOWN,  /* there is no such key */
};

/* Keys may have the prefix "zookeeper.".  Unless all is well, `error` says why, with the key. */
enum settings_outcome settings_set(struct settings *settings, const char *key, const char *value,
                                   char *error, size_t size);

/* Makes the values final, and checks those that depend on each other.  Returns 0, or -1 and
 * why. */
int settings_settle(struct settings *settings, char *error, size_t size);

/* NULL: there is none of that number. */
struct settings_member *settings_member(struct settings *settings, int32_t id);

/* Whether a four-letter word is answered. */
bool settings_allows(const struct settings *settings, const char *word);

/* Hears of each line that is wrong (`failed`) or ignored: "FILE:LINE: key: why". */
typedef void settings_report(void *context, bool failed, const char *text);

/* Reads a zoo.cfg, and the file of members that it names, if it does.  Returns 0, or -1 if there
 * was any error; all are reported. */
int settings_read(struct settings *settings, const char *path, settings_report *report,
                  void *context);
/* The same from memory, where no other file is read; `name` is for the reports. */
int settings_parse(struct settings *settings, const char *name, const char *text, size_t size,
                   settings_report *report, void *context);

#endif
