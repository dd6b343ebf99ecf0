/* A load generator for servers that speak ZooKeeper's protocol, Redis's, or etcd's.
 *
 * It shares the machine with the server that it measures, so what it costs is taken from that
 * server: one thread, one epoll loop, requests that are copied from ready-made bytes, one recv and
 * one send for as many answers and requests as there are.
 *
 * A connection has as many slots as it may have cycles outstanding.  A cycle is what is counted:
 * one request and its answer, or for a lock all that it takes to get it and to give it back.
 *
 *   load.c            options, the report
 *   load_run.c        connections, the loop, latencies
 *   load_zookeeper.c  ZooKeeper's protocol; get, set, create
 *   load_lock.c       locks and watchers
 *   load_fail_over.c  from the end of a server until a write succeeds at another
 *   load_etcd.c       etcd's protocol: as much of gRPC as its puts and locks need
 *   load_others.c     Redis; the limits of the machine: an echo, the disk */
#ifndef CV_BENCH_LOAD_H
#define CV_BENCH_LOAD_H

#include "wire/zk/zk.h"

enum { KEYS = 1000, PATH_ROOM = 64, PASSWORD_BYTES = 16, PORTS_MAX = 8 };

struct slot {
    uint64_t began; /* ns */
    int step;       /* where in its cycle; what that means is the operation's */
    char path[PATH_ROOM];
    struct bytes body; /* of an answer that comes in parts */
};

struct connection {
    int fd;
    unsigned index, port;
    bool blocked; /* the kernel did not take all of `out`: wait until it takes more */
    struct bytes out;
    unsigned char *in;
    size_t in_used;
    struct slot *slots;
    unsigned next_slot;  /* for protocols that answer in order and do not say which request */
    uint32_t made;       /* nodes created so far */
    struct bytes frames; /* ready-made requests of this connection */
    int64_t session;     /* ZooKeeper's; 0: none yet */
    char password[PASSWORD_BYTES];
    struct streams *streams; /* etcd's; or NULL */
};

enum { EVENT = UINT32_MAX };
struct reply {
    unsigned slot; /* EVENT: not an answer, a watch */
    int32_t err;
    struct zk_in body;
};

/* Latencies by size: 64 steps to each doubling, so that a quantile is off by 1.6% at most. */
enum { STEP_BITS = 6, BUCKETS = (64 - STEP_BITS + 1) << STEP_BITS };
struct latencies {
    uint64_t counts[BUCKETS], count, max;
};

struct load {
    const char *host, *directory;
    unsigned ports[PORTS_MAX], port_count; /* connections are spread over them */
    unsigned connections, outstanding, value;
    uint64_t requests; /* 0: no limit but the time */
    double seconds, warm;
    bool keep;          /* leave the created nodes */
    int victim, ending; /* the process that is ended, and how */
    const struct protocol *protocol;
    const struct operation *operation;

    struct connection *all;
    unsigned opened;
    int epoll;
    char *data;               /* the value that is written everywhere */
    struct bytes frames;      /* ready-made requests of all connections, */
    size_t frame_bytes;       /* of each, or of those of a slot */
    size_t path_end;          /* in a frame that creates a node */
    unsigned pending;         /* unmeasured requests that are not answered yet */
    unsigned armed, notified; /* watchers of this round */

    uint64_t now, start, end; /* ns */
    double own_cpu;           /* part of a core: near 1, the run has measured this program */
    uint64_t begun, going, done, errors;
    struct latencies latencies;
};

struct protocol {
    const char *name;
    void (*greet)(struct connection *); /* what a client says first; NULL: nothing, */
    /* and whether the answer to it is there, which it takes off what was received */
    bool (*greeted)(struct connection *, struct zk_in *received);
    /* Takes the next whole reply off what was received; false: there is none yet. */
    bool (*next)(struct load *, struct connection *, struct zk_in *received, struct reply *);
    void (*farewell)(struct connection *); /* what is answered before the peer closes; or NULL */
};

struct operation {
    const char *name;
    const struct protocol *protocol;
    void (*prepare)(struct load *); /* before the clock runs; or NULL */
    void (*begin)(struct load *, struct connection *, unsigned slot);
    /* Ends the cycle by cycle_done or cycle_failed when this was the last that it waited for. */
    void (*answer)(struct load *, struct connection *, const struct reply *);
    void (*finish)(struct load *); /* after the clock has stopped; or NULL */
    bool directed; /* a further connection, the first, begins the cycles; the others take part */
};

extern const struct protocol zookeeper, redis, etcd;
extern const struct operation zookeeper_get, zookeeper_set, zookeeper_create, zookeeper_lock,
    zookeeper_contended, zookeeper_watchers, redis_get, redis_set, etcd_set, etcd_contended,
    ping_pong;

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- load_run.c ---- */

uint64_t clock_ns(void);
void latencies_add(struct latencies *latencies, uint64_t ns);
double latencies_quantile(const struct latencies *latencies, double part); /* us */

void await_server(struct load *load); /* that may not be there yet */
/* Connects and greets; false: that failed.  The timeout is for each receive. */
bool dial(const struct load *load, struct connection *c, unsigned timeout_ms);
bool await_greeting(const struct load *load, struct connection *c);
void open_connections(struct load *load, unsigned count);
void close_connections(struct load *load);

void flush(struct load *load, struct connection *c); /* as far as the kernel takes it */
bool flush_all(struct connection *c); /* all of it; false: the connection has ended */
bool receive(struct connection *c,
             int flags); /* false: nothing arrived, or the connection has ended */
/* Keeps the rest of what was received, which is a part of an answer, or nothing. */
void keep_rest(struct connection *c, const struct zk_in *received);

void cycle_done(struct load *load, struct connection *c, unsigned slot);
void cycle_failed(struct load *load, struct connection *c, unsigned slot);
void run_cycles(struct load *load); /* the whole run, until the last cycle is done */

/* ---- load_zookeeper.c, for the other operations of ZooKeeper ---- */

/* A ready-made request, whose slot is put in. */
void send_frame(struct connection *c, const unsigned char *frame, unsigned slot);
size_t frame_size(const unsigned char *frame);

/* One that is made now: SEND(out, slot, opcode, record, fields...). */
#define SEND(OUT, SLOT, OPCODE, RECORD, ...)                                                       \
    do {                                                                                           \
        size_t frame_ = zk_frame_begin(OUT);                                                       \
        zk_write_request_header(OUT, &(struct zk_request_header){(int32_t)(SLOT), (OPCODE)});      \
        zk_write_##RECORD(OUT, &(struct zk_##RECORD){__VA_ARGS__});                                \
        zk_frame_end(OUT, frame_);                                                                 \
    } while (0)
void send_create(struct bytes *out, unsigned slot, const char *path, struct zk_text data,
                 int32_t flags);

/* Unmeasured, through the first connection, many at a time. */
void make_node(struct load *load, const char *path, struct zk_text data);
void remove_node(struct load *load, const char *path);
void settle(struct load *load); /* until all of them are answered */

/* ---- load_fail_over.c ---- */

void run_fail_over(struct load *load, bool only_first); /* write that succeeds, or all */

/* ---- load_others.c ---- */

unsigned start_echo(void); /* in a process that ends with this one; returns its port */
/* Records each of which is synced before the next; over the data of a file, or at its end. */
void write_records(struct load *load, bool overwrite);

#endif
