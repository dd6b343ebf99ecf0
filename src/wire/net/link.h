/* Links between the servers of an ensemble: frames from each to each, on the event loop.
 *
 * A link goes one way: the dialer sends frames, the acceptor reads them.  So two servers have two
 * connections, and it never matters which of them dialed first.  A link that breaks is dialed again
 * for as long as its peer is set.  Frames under way are lost then; the others arrive in order.
 *
 * Both ends are authenticated before any frame is accepted:
 *   - With certificates (tls_open, TLS_CLIENTS_CERTIFIED) both ends show one, and both check it
 *     against the authorities.  Every holder of such a certificate may claim to be any member, so
 *     issue them to members only.  The subject is not checked; if the certificate has an extended
 *     key usage, it must list both server and client authentication.
 *   - With a shared key (tls_open_key) both ends prove that they know it, and all is encrypted.
 *     Every holder of the key may claim to be any member.  A connection that is reflected to its
 *     dialer is refused, because a hello names both ends.
 *   - With neither, nothing is proven: only loopback addresses are listened on or dialed, unless
 *     the owner sets `insecure`.
 * Then each end sends a hello: version, ensemble, sender, receiver, incarnation, verdict.  From
 * version 4 on the upper half of the incarnation is the id of the sender's data directory, so the
 * owner can tell a member from a server that has only its number.
 * Unauthenticated connections, those without a valid hello, are limited in number, time and memory
 * by the constants below.
 *
 * The hellos negotiate the version of each link, so that servers can be upgraded one by one.  The
 * dialer offers its newest version.  The acceptor answers with that or with its own newest,
 * whichever is older; it refuses an offer older than its oldest, as the dialer refuses such an
 * answer.  Servers of version 2 refuse every other offer and answer with 2: the dialer then dials
 * again at once with version 2.  Every later attempt offers the newest one again, because the
 * server may have been upgraded meanwhile.
 *
 * Frames are written to one of two lanes.  Those of one lane arrive in order.  From version 4 on
 * the urgent lane (heartbeats, votes, responses) overtakes the bulk lane (entries, snapshots):
 * large frames are cut into fragments, and the system is given no more of them than the link
 * carries in a moment, as far as it can tell.  Older versions have one lane.
 *
 * A link on which nothing was acknowledged for silence_ms, although something was sent, is dialed
 * anew beside the old one: after an outage TCP would wait ever longer before it tries again.  The
 * new link replaces the old one when its hello is through (LINK_BROKEN, then on_up), unless the old
 * one carries again before that.
 *
 * A frame that is damaged on its way ends the link, which is dialed again.  If it is its length
 * that is damaged, all that follows looks like a part of it; so a link also ends, from version 4
 * on, if a frame has begun and is not complete in time, and at once if it is larger than a frame
 * can be that is not cut.
 *
 * No function here calls back before it returns. */
#ifndef CV_WIRE_NET_LINK_H
#define CV_WIRE_NET_LINK_H

#include "wire/net/tls.h"

enum {
    LINK_VERSION_OLDEST = 2,
    LINK_VERSION_LANES = 4, /* the first with two lanes */
    LINK_VERSION_NEWEST = 7,
    LINK_FRAME_MAX = 16 << 20,     /* the body of a frame */
    LINK_FRAGMENT_MAX = 16 << 10,  /* the body of a fragment */
    LINK_UNCUT_MAX = 1 << 20,      /* the body of an urgent frame, where there are two lanes */
    LINK_UNAUTHENTICATED_MAX = 64, /* beyond, the oldest is closed */
    LINK_INCOMING_MAX = 64,        /* links of other servers to this one, unless told otherwise */
    LINK_CONNECT_MS = 1000,        /* timeout of a connection */
    LINK_HANDSHAKE_MS = 5000,      /* timeout from there until both hellos are exchanged */
    LINK_RETRY_MIN_MS = 20,        /* delay between attempts: doubles up to ... */
    LINK_RETRY_MAX_MS = 500,       /* ... this; the jitter makes it up to a half shorter */
    LINK_STEADY_MS = 200,          /* a link that was up that long is dialed again at once */
    LINK_SILENCE_MS = 500,         /* without an acknowledgement, see above */
    LINK_FRAME_MS = 5000,          /* for all bytes of a frame, and more if it is large */
};

enum link_lane { LINK_URGENT, LINK_BULK };

enum link_reason {
    LINK_BROKEN,   /* the link was up, and ended */
    LINK_REFUSED,  /* connection refused: the server is not running, as far as the network knows */
    LINK_SILENT,   /* no answer in time, or no route */
    LINK_REJECTED, /* something answers there, but one of the two ends refused the other */
};

struct links_config {
    /* 0: LINK_VERSION_OLDEST, LINK_VERSION_NEWEST */
    uint16_t version_oldest, version_newest;
    uv_loop_t *loop;      /* of net_open */
    uint64_t id;          /* this server's */
    uint64_t ensemble;    /* see links_set_ensemble */
    uint64_t incarnation; /* the directory's id in its upper half; else random, new at each start */
    uint64_t seed;        /* of the jitter */
    struct tls *tls;      /* NULL: plain.  Must outlive the loop's handles. */
    bool insecure;        /* plain links to other machines are allowed */
    bool of_group;        /* the log speaks of peers of a group, not of servers of an ensemble */
    uint32_t incoming_max;        /* 0: LINK_INCOMING_MAX */
    uint32_t unauthenticated_max; /* 0: LINK_UNAUTHENTICATED_MAX */
    uint32_t connect_ms;          /* 0: LINK_CONNECT_MS */
    uint32_t handshake_ms;        /* 0: LINK_HANDSHAKE_MS */
    uint32_t silence_ms;          /* 0: LINK_SILENCE_MS */
    uint32_t frame_ms;            /* 0: LINK_FRAME_MS */
    /* What the system knows of a connection; NULL: net_flow. */
    bool (*flow)(const struct net_stream *stream, struct net_flow *flow);

    /* Called from the loop only.  All of them may call all functions here. */
    void *owner;
    /* Whether that server may have that data directory (0: its version does not say); it is of the
     * ensemble, or does not know of which (0).  May be NULL. */
    bool (*is_expected)(void *owner, uint64_t id, uint64_t ensemble, uint32_t directory);
    /* The version is that of the link.  The bytes are unaligned, and valid until it returns. */
    void (*on_frame)(void *owner, uint64_t from, uint16_t version, uint32_t type,
                     const unsigned char *bytes, size_t size);
    /* Bytes of a frame were received, which is not complete yet.  May be NULL. */
    void (*on_part)(void *owner, uint64_t from);
    /* Our link to that server is ready. */
    void (*on_up)(void *owner, uint64_t id);
    /* It ended (LINK_BROKEN, only after on_up), or an attempt failed (all other reasons). */
    void (*on_down)(void *owner, uint64_t id, enum link_reason reason);
    /* That server's link to us was accepted, or has ended.  A new link replaces the previous one,
     * which ends first; what that one had sent and was not read is dropped.  May be NULL. */
    void (*on_incoming)(void *owner, uint64_t id, bool here, uint64_t incarnation);
    /* The system has taken all that was unsent, or the bulk lane has room again. */
    void (*on_drained)(void *owner, uint64_t id);
};

struct links;

struct links *links_open(const struct links_config *config);
/* Ends all links; nothing is called back any more.  The memory is freed while the loop runs on,
 * after the last pending name lookup. */
void links_close(struct links *links);

/* Both return NULL, or what is wrong.  links_listen may be called for several addresses; port 0
 * takes a free one and stores it in *port.  links_set adds a peer, which is dialed from now on, or
 * gives it another address: then its link ends without on_down.  A name is looked up at each
 * attempt. */
const char *links_listen(struct links *links, const char *host, int32_t *port);
const char *links_set(struct links *links, uint64_t id, const char *host, int32_t port);
/* Where else that server may be, if it does not answer where links_set says; NULL: nowhere. */
void links_learn(struct links *links, uint64_t id, const char *host, int32_t port);
/* Servers of another ensemble are refused.  0, here or there: not known yet. */
void links_set_ensemble(struct links *links, uint64_t ensemble);
/* For the hellos from now on; links_redial sends them. */
void links_set_incarnation(struct links *links, uint64_t incarnation);
/* What links_set would return for an address. */
const char *links_judge(const struct links *links, const char *host, int32_t port);
/* Ends the links to and from that server, without a callback.  It may still dial us again. */
void links_drop(struct links *links, uint64_t id);
/* Dials the other servers anew, so that they get another hello. */
void links_redial(struct links *links);

/* The version of our link to that server; 0: the link is not up. */
uint16_t link_version(const struct links *links, uint64_t id);
/* Begins a frame: its body is appended to what is returned, and link_end ends it, before anything
 * else is called here.  NULL: the link is not up. */
struct bytes *link_begin(struct links *links, uint64_t id, uint32_t type, enum link_lane lane);
void link_end(struct links *links, uint64_t id);
/* Sends what was written since: one write for each link.  For the end of a loop iteration. */
void links_flush(struct links *links);
/* Bytes written that the system has not taken.  The owner has to bound them. */
size_t link_unsent(const struct links *links, uint64_t id);
/* Whether the bulk lane is to get more now: what waits there is less than the link carries in a
 * moment.  False: on_drained follows when it is. */
bool link_takes_bulk(struct links *links, uint64_t id);
/* Drops what waits in the bulk lane. */
void link_discard_bulk(struct links *links, uint64_t id);
/* Whether frames of the bulk lane wait, so that urgent ones overtake them. */
bool link_bulk_waits(const struct links *links, uint64_t id);
/* How long the link takes for so many bytes; 0: not known. */
uint64_t link_duration_ms(const struct links *links, uint64_t id, uint64_t bytes);

/* For status reports: of the current links, not of those before them. */
struct link_status {
    bool up, incoming;            /* ours to them, theirs to us */
    uint64_t up_ms, incoming_ms;  /* for how long */
    uint64_t bytes_out, bytes_in; /* of frames, without TLS */
    const char *host;             /* as it was set; NULL: not set */
    int32_t port;
    char address[INET6_ADDRSTRLEN]; /* of the last attempt; empty before one */
    const char *problem; /* why there is no link to it, or why its own was refused; NULL: neither */
};
struct link_status link_status(const struct links *links, uint64_t id);

#endif
