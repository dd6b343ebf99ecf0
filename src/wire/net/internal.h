/* What link.c, link_dial.c, link_accept.c, link_send.c and link_hello.c share. */
#ifndef CV_WIRE_NET_INTERNAL_H
#define CV_WIRE_NET_INTERNAL_H

#include "base/rng.h"
#include "wire/net/link.h"

/* ---- Hellos (link_hello.c) ---- */

enum { HELLO_SIZE = 48 };

enum hello_verdict {
    HELLO_WELCOME,
    HELLO_OTHER_VERSION,
    HELLO_OTHER_ENSEMBLE,
    HELLO_OTHER_SERVER, /* the receiver that the hello names is not this server */
    HELLO_OWN_ID,       /* the dialer claims our id */
    HELLO_TOO_MANY,
    HELLO_OTHER_DIRECTORY, /* the member has another data directory than the one it came with */
    HELLO_TWICE,           /* another process of that id runs as well, and was here first */
};

struct hello {
    uint16_t version;
    uint64_t ensemble, from, to, incarnation;
    uint32_t verdict; /* the acceptor's; another version may have more of them */
};

struct hello hello_of(const struct links *links, uint64_t to, uint16_t version,
                      enum hello_verdict verdict);
void hello_write(struct bytes *out, const struct hello *hello);
/* Takes HELLO_SIZE bytes.  False: they are not a hello. */
bool hello_read(const unsigned char *bytes, struct hello *hello);
/* The version to answer an offer with: the nearest one that this server has. */
uint16_t hello_answer(const struct links *links, uint16_t offered);
/* This server's verdict on a hello that it received.  One that does not know its ensemble yet is
 * linked to one at a time: it would carry the terms of one to the other. */
enum hello_verdict hello_judge(const struct links *links, const struct hello *hello);
const char *hello_verdict_text(uint32_t verdict);

/* ---- Frames: a header, then the body ---- */

struct frame_header {    /* little-endian */
    uint32_t size, type; /* size: of the body */
    uint32_t checksum;   /* CRC32C of the two above and of the body */
};

uint32_t frame_checksum(const struct frame_header *header, const unsigned char *body, size_t size);

/* Bits of the type.  A large frame of the bulk lane travels in fragments, each with a header and a
 * checksum of its own; frames of the other lane come between them. */
#define FRAGMENT_MORE 0x80000000u /* more of the frame follows */
#define FRAGMENT_LAST                                                                              \
    0x40000000u /* it ends a frame that has begun; with both bits it discards it */

/* ---- Outgoing ---- */

enum { PEER_ADDRESSES_MAX = 8, LOG_AGAIN_MS = 60000 /* what does not change */ };

enum peer_state {
    PEER_WAITING,    /* for the next attempt */
    PEER_LOOKING_UP, /* its name */
    PEER_CONNECTING,
    PEER_GREETING, /* until its hello is received */
    PEER_UP,
    PEER_ENDED, /* was up; on_down is about to be called */
};

struct peer {
    struct links *links;
    struct peer *next;
    uint64_t id;
    char *host; /* where the owner says that it is */
    int32_t port;
    char *other_host; /* where else it may be; NULL: nowhere */
    int32_t other_port;
    bool elsewhere;       /* the link, or the attempt, is to the other one */
    bool found_elsewhere; /* the addresses are of the other one */
    const char *missed;   /* why there was no link to the first one, in this attempt */
    enum peer_state state;
    uv_timer_t timer; /* the next attempt, or the timeout of this one */
    struct lookup *lookup;
    struct outgoing *outgoing; /* the link, or the attempt to have one */
    struct outgoing *previous; /* the link, silent, beside which another one is being dialed */
    struct sockaddr_storage address[PEER_ADDRESSES_MAX]; /* of the name */
    unsigned addresses, tried;                           /* tried: in this attempt */
    enum link_reason worst;                              /* result of the addresses tried */
    char address_text[INET6_ADDRSTRLEN];                 /* of the last one tried */
    const char *why;                                     /* the attempt failed; may be NULL */
    const char *problem;                                 /* of the last attempt; NULL: none */
    const char *refusal;                                 /* of its links to us; see refused_ms */
    uint64_t refused_ms;                                 /* when the last one was refused */
    const char *logged;                                  /* last, and when */
    uint64_t logged_ms;
    uint16_t offer;    /* the version to dial with in this attempt; 0: the newest */
    unsigned attempts; /* since the link was last up for LINK_STEADY_MS */
    uint64_t up_ms;    /* when it came up */
    uint64_t bytes_out;
    struct bytes *frame; /* that is being written to; NULL: none */
    size_t frame_at;     /* its offset there */
    enum link_lane frame_lane;
    struct bytes bulk;        /* frames of that lane which wait for the link, from bulk_at on */
    size_t bulk_at, bulk_cut; /* bulk_cut: bytes of the first one that were sent in fragments */
    size_t window;            /* what the link carries in a moment; 0: not known */
    bool refused; /* the owner was told that the lane is full, and waits for on_drained */
    uint64_t acknowledged,
        acknowledged_ms; /* by the other system: bytes, and when they last were */
};

struct outgoing {
    struct net_stream stream;
    struct links *links;
    struct peer *peer; /* NULL: abandoned, its stream is closing */
    uint16_t version;  /* of the link, once it is up */
    uint64_t ensemble; /* of the other end; 0: it does not know it */
    bool ended;        /* of a previous link: on_down is about to be called */
    unsigned char answer[HELLO_SIZE];
    size_t answered;
};

void dial_open(struct peer *peer);
void dial_close(struct peer *peer);
/* Ends its link and dials it at the new address; one that it has elsewhere stays. */
void peer_move(struct peer *peer, const char *host, int32_t port);
void peer_redial(struct peer *peer);
/* Another place where it may be; NULL: there is none. */
void peer_learn(struct peer *peer, const char *host, int32_t port);
const char *peer_host(const struct peer *peer);
int32_t peer_port(const struct peer *peer);
struct peer *peer_find(const struct links *links, uint64_t id);
/* Its link, while it is up; else NULL. */
struct outgoing *peer_link(const struct peer *peer);
/* Dials anew, beside the link, if nothing that it carries is acknowledged any more. */
void peer_check_silence(struct peer *peer);
/* Calls back for a previous link that ended during a flush. */
void peer_previous_ended(struct peer *peer);
/* False: the host is a name, not an address. */
bool peer_literal(const char *host, int32_t port, struct sockaddr_storage *address);

/* ---- Incoming ---- */

struct incoming {
    struct net_stream stream;
    struct links *links;
    struct incoming *next;
    bool known;        /* authenticated: its hello was accepted */
    uint16_t version;  /* of the link, once it is known */
    uint64_t since_ms; /* when the connection was accepted; once known, when its hello was */
    uint64_t id;       /* 0: that of no peer, as far as is known */
    uint64_t ensemble; /* 0: it does not know it */
    uint64_t incarnation, bytes_in;
    uint64_t heard_ms; /* when bytes were received last */
    uint64_t replaced; /* the incarnation of which the link was replaced by this one; 0: none */
    bool came_back;    /* that one had replaced this one's before: both run */
    struct bytes in;   /* the received part of a hello or of a frame ... */
    uint64_t frame_ms; /* ... and since when */
    struct bytes bulk; /* of a frame that comes in fragments: those received */
    uint32_t bulk_type;
    bool delivered; /* a frame, of the bytes at hand */
    char address[INET6_ADDRSTRLEN];
};

/* Refusals that were logged: the same end and reason is not logged again for a while. */
enum { REFUSALS = 16 };

struct refusal {
    char address[INET6_ADDRSTRLEN];
    const char *why; /* NULL: none yet */
    uint64_t id, logged_ms;
};

struct listener {
    struct net_listener net;
    struct links *links;
    struct listener *next;
};

void incoming_accept(struct net_listener *listener);
void incoming_end(struct incoming *incoming); /* without on_incoming */
struct incoming *incoming_find(const struct links *links, uint64_t id);

/* ---- Lanes (link_send.c) ---- */

/* The system has taken what it was given. */
void lanes_drained(struct peer *peer);
void lanes_clear(struct peer *peer); /* the link has ended, or another one replaces it */
/* Looks after all links soon. */
void lanes_wake(struct links *links, uint64_t delay_ms);

/* ---- All ---- */

struct links {
    struct links_config config;
    struct rng rng;
    struct peer *peers;
    struct incoming *incoming;                               /* known */
    struct incoming *unauthenticated, **unauthenticated_end; /* the oldest first */
    unsigned incoming_count, unauthenticated_count;
    struct listener *listeners;
    uv_timer_t handshake_timer; /* of the oldest unauthenticated connection */
    uv_timer_t lane_timer;      /* links that wait for acknowledgements */
    uv_timer_t silence_timer;
    struct refusal refusals[REFUSALS]; /* the newest first */
    unsigned open;                     /* handles and lookups that still refer to this */
    bool closing, flushing;
};

/* Counts one of those that are open as closed; the last one frees the links. */
void links_release(struct links *links);
/* Without authentication only loopback addresses may be used. */
bool links_may_use(const struct links *links, const struct sockaddr *address);
extern const char links_need_proof[];

/* As people number that server, or peer. */
uint64_t link_number(const struct links *links, uint64_t id);

/* A sentence of the log in the words of the links' owner. */
enum { LINK_WORDS_MAX = 512 };
const char *link_words(const struct links *links, const char *text, char buffer[LINK_WORDS_MAX]);

#endif
