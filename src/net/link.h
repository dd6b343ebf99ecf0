/* Links between the servers of an ensemble: frames from each to each, on the event loop.
 *
 * A link goes one way: who dials sends, who accepts reads.  So two servers have two connections,
 * and it never matters who called first.  A link that breaks is dialed again for as long as its
 * peer is set; frames that had not arrived are lost, and those that arrive do so in their order.
 *
 * Who is at the other end is proven before any frame is believed:
 *   - with certificates (tls_open, TLS_CLIENTS_CERTIFIED) both ends show one, and both check it
 *     against the authorities.  Who has a certificate of these is a member, and believed when it
 *     says which one: give them to nobody else.  The names in it are not looked at; if it lists
 *     what it is for, it must list both servers and clients.
 *   - with a shared key (tls_open_key) both ends prove that they know it, and all is encrypted.
 *     Whoever knows it is a member.  A caller that is sent back to itself notices: a hello names
 *     both ends.
 *   - with neither, nothing is proven: only loopback addresses are listened on or dialed, unless
 *     the owner says `insecure`.
 * Then each end says a hello: version, ensemble, who calls whom.  Strangers, who have not got that
 * far, are few, have little time, and fill no memory; see the limits below.
 *
 * No function here calls back before it returns. */
#ifndef CV_NET_LINK_H
#define CV_NET_LINK_H

#include "net/tls.h"

enum {
    LINK_FRAME_MAX = 16 << 20, /* the body of a frame */
    LINK_STRANGERS_MAX = 64,   /* accepted, not known yet; one more, and the oldest goes */
    LINK_INCOMING_MAX = 64,    /* accepted and known */
    LINK_CONNECT_MS = 1000,    /* until a connection stands */
    LINK_HANDSHAKE_MS = 5000,  /* from then until both hellos are said */
    LINK_RETRY_MIN_MS = 20,    /* between attempts: doubles up to ... */
    LINK_RETRY_MAX_MS = 500,   /* ... this; the jitter makes it up to a half shorter */
    LINK_STEADY_MS = 200,      /* one that was up that long is dialed again at once */
};

enum link_reason {
    LINK_BROKEN,   /* it was up, and ended */
    LINK_REFUSED,  /* nobody listens there: as far as the network says, the server is not running */
    LINK_SILENT,   /* no answer in time, or no way to get there */
    LINK_REJECTED, /* somebody is there, but one of the two does not want the other */
};

struct links_config {
    uv_loop_t *loop;       /* of net_open */
    uint64_t id;           /* this server's */
    uint64_t ensemble;     /* all members have the same; who has another is refused */
    uint64_t incarnation;  /* random, new at each start */
    uint64_t seed;         /* of the jitter */
    struct tls *tls;       /* NULL: plain.  Outlives the loop's handles, as those of clients do. */
    bool insecure;         /* plain links to other machines are fine */
    uint32_t handshake_ms; /* 0: LINK_HANDSHAKE_MS */
    tls_say *say;          /* what a person should know, each thing now and then */

    /* Called from the loop only.  All of them may call all functions here. */
    void *owner;
    /* The bytes are aligned to nothing, and valid until it returns. */
    void (*on_frame)(void *owner, uint64_t from, uint32_t type, const unsigned char *bytes,
                     size_t size);
    /* Our link to that server is ready. */
    void (*on_up)(void *owner, uint64_t id);
    /* It ended (LINK_BROKEN, after on_up only), or an attempt failed (all others; after each). */
    void (*on_down)(void *owner, uint64_t id, enum link_reason reason);
    /* That server's link to us is here, or has gone.  One that comes while the last is still here
     * replaces it: that one goes first, and what it had sent and was not read is dropped.  NULL:
     * nobody wants to know. */
    void (*on_incoming)(void *owner, uint64_t id, bool here, uint64_t incarnation);
    /* All has been taken by the system, after some had not been at once. */
    void (*on_drained)(void *owner, uint64_t id);
};

struct links;

struct links *links_open(const struct links_config *config);
/* All ends, and nothing is called back any more.  The memory goes while the loop runs on, which it
 * does until names that are being looked up are found or not. */
void links_close(struct links *links);

/* Both return NULL, or why not.  links_listen may be called for several addresses; port 0 takes a
 * free one, *port says which.  links_set adds a peer, which is dialed from now on, or gives it
 * another address: then its link ends without on_down.  A name is looked up at each attempt. */
const char *links_listen(struct links *links, const char *host, int32_t *port);
const char *links_set(struct links *links, uint64_t id, const char *host, int32_t port);
/* What links_set would say of an address, for whoever has to know before. */
const char *links_judge(const struct links *links, const char *host, int32_t port);
/* Ends the links to and from that server, without a call back.  It may still dial us again. */
void links_drop(struct links *links, uint64_t id);

/* Begins a frame: its body is appended to what is returned, and link_end ends it, before anything
 * else is called here.  NULL: the link is not up. */
struct bytes *link_begin(struct links *links, uint64_t id, uint32_t type);
void link_end(struct links *links, uint64_t id);
/* Sends what was written since: one write for each link.  For the end of a turn of the loop. */
void links_flush(struct links *links);
/* Bytes written that the system has not taken.  To bound them is up to the owner. */
size_t link_unsent(const struct links *links, uint64_t id);

/* For status reports: of the links that are there now, not of those before them. */
struct link_figures {
    bool up, incoming;            /* ours to them, theirs to us */
    uint64_t up_ms, incoming_ms;  /* for how long */
    uint64_t bytes_out, bytes_in; /* frames, without TLS */
    const char *host;             /* as it was set; NULL: it was not */
    int32_t port;
    char address[INET6_ADDRSTRLEN]; /* of the last attempt; empty before one */
};
struct link_figures link_says(const struct links *links, uint64_t id);

#endif
