/* What the parts of links share: link.c, link_dial.c, link_accept.c, link_hello.c. */
#ifndef CV_NET_LINK_PARTS_H
#define CV_NET_LINK_PARTS_H

#include "base/rng.h"
#include "net/link.h"

/* ---- Hellos (link_hello.c) ---- */

enum { HELLO_SIZE = 48 };

enum hello_verdict {
    HELLO_WELCOME,
    HELLO_OTHER_VERSION,
    HELLO_OTHER_ENSEMBLE,
    HELLO_OTHER_SERVER, /* the one that was called is not this one */
    HELLO_OWN_ID,       /* the caller says that it is us */
    HELLO_TOO_MANY,
};

struct hello {
    uint16_t version;
    uint64_t ensemble, from, to, incarnation;
    uint32_t verdict; /* of who answers; may be one that we do not know yet */
};

struct hello hello_of(const struct links *links, uint64_t to, enum hello_verdict verdict);
void hello_write(struct bytes *out, const struct hello *hello);
/* HELLO_SIZE bytes.  False: that is no hello. */
bool hello_read(const unsigned char *bytes, struct hello *hello);
/* What this server thinks of one that has come. */
enum hello_verdict hello_judge(const struct links *links, const struct hello *hello);
const char *hello_says(uint32_t verdict);

/* ---- Frames: this, then the body ---- */

struct frame_header {    /* little-endian */
    uint32_t size, type; /* size: of the body */
    uint32_t checksum;   /* CRC32C of the two above and of the body */
};

uint32_t frame_checksum(const struct frame_header *header, const unsigned char *body, size_t size);

/* ---- Outgoing ---- */

enum { PEER_ADDRESSES_MAX = 8, SAID_AGAIN_MS = 60000 /* what does not change */ };

enum peer_state {
    PEER_WAITING,    /* for the time of the next attempt */
    PEER_LOOKING_UP, /* its name */
    PEER_CONNECTING,
    PEER_GREETING, /* until its hello is here */
    PEER_UP,
    PEER_ENDED, /* was up; the owner is about to be told */
};

struct peer {
    struct links *links;
    struct peer *next;
    uint64_t id;
    char *host;
    int32_t port;
    enum peer_state state;
    uv_timer_t timer; /* the next attempt, or the end of patience with this one */
    struct lookup *lookup;
    struct outgoing *outgoing;
    struct sockaddr_storage address[PEER_ADDRESSES_MAX]; /* of the name */
    unsigned addresses, tried;                           /* tried: in this attempt */
    enum link_reason worst;                              /* of those that were tried */
    char address_text[INET6_ADDRSTRLEN];                 /* of the last */
    const char *why;                                     /* rejected */
    const char *said;                                    /* last, and when */
    uint64_t said_ms;
    unsigned attempts; /* since it was up for a while */
    uint64_t up_ms;    /* since when */
    uint64_t bytes_out;
    size_t frame_at; /* where the frame that is being written begins */
    bool in_frame;
};

struct outgoing { /* its stream outlives its use by a little */
    struct net_stream stream;
    struct links *links;
    struct peer *peer; /* NULL then */
    unsigned char answer[HELLO_SIZE];
    size_t answered;
};

void peer_open(struct peer *peer);
void peer_close(struct peer *peer);
/* It is there from now on, and dialed there. */
void peer_move(struct peer *peer, const char *host, int32_t port);
/* An address, not a name. */
bool peer_literal(const char *host, int32_t port, struct sockaddr_storage *address);

/* ---- Incoming ---- */

struct incoming {
    struct net_stream stream;
    struct links *links;
    struct incoming *next;
    bool known;        /* its hello was welcome */
    uint64_t since_ms; /* accepted; or known */
    uint64_t id, incarnation, bytes_in;
    struct bytes in; /* what has come of a hello or of a frame */
    char address[INET6_ADDRSTRLEN];
};

/* Said of those who came: by the same address for the same reason not again for a while. */
enum { REFUSALS = 16 };

struct refusal {
    char address[INET6_ADDRSTRLEN];
    const char *why; /* NULL: none yet */
    uint64_t said_ms;
};

struct listener {
    struct net_listener net;
    struct links *links;
    struct listener *next;
};

void incoming_accept(struct net_listener *listener);
void incoming_end(struct incoming *incoming); /* nobody is told */
struct incoming *incoming_find(const struct links *links, uint64_t id);

/* ---- All ---- */

struct links {
    struct links_config is;
    struct rng rng;
    struct peer *peers;
    struct incoming *incoming;                     /* known */
    struct incoming *strangers, **strangers_after; /* the oldest first */
    unsigned incoming_count, stranger_count;
    struct listener *listeners;
    uv_timer_t patience;               /* with the oldest stranger */
    struct refusal refusals[REFUSALS]; /* the newest first */
    unsigned open;                     /* handles and lookups, each of which needs this memory */
    bool closing, flushing;
};

/* One of those that are open is not any more. */
void links_release(struct links *links);
/* Without proof of who is there, only this machine will do. */
bool links_may_use(const struct links *links, const struct sockaddr *address);
extern const char links_need_proof[];

#endif
