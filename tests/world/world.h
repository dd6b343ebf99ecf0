/* A world in one thread: the servers of an ensemble, as they are built for production, and their
 * clients, on a simulated event loop, clock, network and disk.  All that happens follows from a
 * seed.
 *
 *   tasks.c   virtual time: coroutines, and calls that are scheduled
 *   wire.c    connections between hosts: delay, order, partitions, resets
 *   uv.c      libuv's loop, timers, signals and work;  uv_tcp.c: its streams, on wires
 *   disk.c    files that remember what was not synced, and lose it in a crash
 *   rot.c     disks that lose what was synced;  damage.c: all of them at once, each elsewhere
 *   system.c  clocks, random numbers, processes;  machine.c: servers that start, stop and die
 *   user.c    clients: sessions, requests, replies;  load.c, lock.c, multi.c, guard.c, lasting.c,
 *   ttl.c     what they do
 *   kinds.c   which kinds of things may happen in a world
 *   faults.c  what goes wrong;  members.c: an operator who changes the members meanwhile
 *   partial.c a lasting partial partition, judged while it lasts
 *   verdict.c what must hold;  main.c: the program
 *
 * The servers' object files are those of the program; functions of the system are replaced by the
 * linker (--wrap), and libuv by uv.c. */
#ifndef WORLD_H
#define WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>
#include <uv.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "lab/judge/history.h"
#include "service/admin/admin.h"
#include "service/log/snapshot.h"
#include "service/server/internal.h"

typedef uint64_t nanos;
#define US     ((nanos)1000)
#define MS     ((nanos)1000000)
#define SECOND ((nanos)1000000000)
#define NEVER  UINT64_MAX

enum {
    SERVERS_MAX = 8, /* with those that join later */
    USERS_MAX = 8,
    HOSTS_MAX = SERVERS_MAX + USERS_MAX,
    TASKS_MAX = 256,
    WORKS_MAX = 64,
    CLIENT_PORT = 2181,
    PEER_PORT = 2888,
    LIST_SIZE = 768,
};

/* ---- Kinds of worlds (kinds.c) ---- */

enum kind {
    KIND_MEMBERS, /* members are added and removed, and their weights change */
    KIND_WEIGHTS, /* members with more weight than others, observers, groups */
    KIND_SYNCS,   /* syncs fail */
    KIND_ROT,     /* bits flip in files of a minority */
    KIND_READS,   /* sectors of a minority cannot be read */
    KIND_WIPES,   /* disks of a minority are wiped */
    KIND_PARTIAL, /* a lasting partial partition, in which the ensemble has to go on */
    KIND_FLIPS,   /* bits flip between servers */
    KIND_STALLS,  /* disks and processes stand still for seconds */
    KIND_DRIFT,   /* clocks are fast or slow */
    KIND_SUSPEND, /* machines are suspended, and their monotonic clocks stand still meanwhile */
    KIND_TERMS,   /* leaders change all the time */
    KIND_CHUNKS,  /* snapshots are sent in many small parts */
    KIND_MULTI,   /* multis, and reads of several nodes at once */
    KIND_GUARD,   /* nodes with an ACL */
    KIND_LASTING, /* watches that are persistent, or recursive */
    KIND_TTL,     /* nodes with a TTL, and containers; walls' clocks agree */
    KIND_DAMAGE,  /* all disks are damaged, and every entry stays intact on one of them */
    KINDS
};

uint64_t kinds_default(void);
/* Reads "NAME,NAME"; false: there is no such kind, and `*end` is where it was found. */
bool kinds_read(const char *text, uint64_t *kinds, const char **end);
/* Those of the permitted ones that a world has, by its seed; or all of them. */
uint64_t kinds_choose(uint64_t seed, uint64_t permitted, bool all);
void kinds_print(void);

/* ---- Tasks and time (tasks.c) ---- */

struct task {           /* a coroutine */
    ucontext_t context; /* of its begin */
    jmp_buf place;      /* where it waits, once it has begun */
    bool begun;
    char *stack;
    void (*body)(void *argument);
    void *argument;
    struct machine *machine; /* NULL: of a user */
    nanos wake;
    bool over;
};

struct task *task_start(struct machine *machine, void (*body)(void *argument), void *argument);
/* Ends a task other than the one that runs. */
void task_drop(struct task *task);
_Noreturn void task_end(void); /* the one that runs */
/* The running task waits until then, or until it is woken. */
void task_wait(nanos until);
void task_sleep(nanos length); /* it cannot be woken */
void task_wake(struct task *task);
struct task *task_now(void); /* the one that runs; NULL: none */

typedef void call_fn(void *context, uint64_t number);
void call_at(nanos when, call_fn *call, void *context, uint64_t number);

/* ---- Wires (wire.c) ---- */

enum socket_state { SOCKET_CONNECTING, SOCKET_OPEN, SOCKET_LISTENING, SOCKET_CLOSED };

struct piece {
    nanos due;
    size_t size;
};

struct socket { /* one end of a connection; or one that listens */
    struct socket *next;
    struct socket *other;
    struct socket *queue; /* of a listener: the first to accept; of that one: the next */
    enum socket_state state;
    unsigned number;
    int host, port, to_host, to_port;
    nanos user_timeout; /* of bytes that are not acknowledged; 0: none */
    size_t window;
    struct bytes in; /* has arrived */
    size_t in_read;
    bool ended;       /* the other end has closed, and that is known here */
    int error;        /* of libuv; 0: none */
    struct bytes out; /* on its way to the other end */
    struct piece *piece;
    size_t pieces, piece_room, unread;
    bool fin, fin_sent, pumping;
    bool probing; /* the window is closed: whether it still is, or the other end gone, is asked */
    nanos last_due, stalled, backoff;
    uint64_t delivered, acknowledged; /* bytes; the sender knows of the second */
    unsigned tries;
    void (*changed)(void *owner); /* something arrived, or there is room again */
    void *owner;
};

struct socket *wire_listen(int host, int port);
struct socket *wire_accept(struct socket *listener); /* NULL: there is none to accept */
struct socket *wire_connect(int host, int to_host, int to_port);
size_t wire_room(const struct socket *socket);
size_t wire_send(struct socket *socket, const void *bytes, size_t size);
size_t wire_unread(const struct socket *socket);
size_t wire_read(struct socket *socket, void *bytes, size_t max);
void wire_close(struct socket *socket); /* by its owner */
void wire_break(struct socket *socket); /* both ends notice */
void wire_process_ended(int host);      /* its sockets are closed */
void wire_power_failed(int host);       /* the other ends are not told */
struct socket *wire_any_open(void);     /* by chance; NULL: there is none */
bool wire_is_passable(int from, int to);
uint64_t wire_bytes_per_s(const struct socket *socket); /* as its sender may know it */

/* ---- Disks (disk.c) ---- */

struct file { /* with changes that were not synced */
    struct file *next;
    uint64_t inode;
    int descriptor; /* our own */
    bool synced;    /* no sync has failed since its size became durable */
    uint64_t synced_size;
};

enum change_kind { CHANGE_DATA, CHANGE_CREATE, CHANGE_RENAME, CHANGE_UNLINK };
enum { DISK_NAME_MAX = 64, SECTOR = 512 };

struct change {
    enum change_kind kind;
    uint64_t number;   /* in their order */
    struct file *file; /* data: whose, and what was there */
    uint64_t at, size_before, size_after;
    struct bytes before, after;
    char name[DISK_NAME_MAX], to[DISK_NAME_MAX]; /* of a directory entry */
    unsigned kept; /* the name in the graveyard of what it replaced; 0: nothing */
    bool dropped;  /* a sync failed, and the system takes it for written */
};

struct disk {
    char path[64], graveyard[64];
    int graveyard_directory;
    struct file *files;
    struct change *change;
    size_t changes, change_room;
    uint64_t numbered; /* changes so far */
    uint64_t syncing;  /* those up to this one are being synced ... */
    unsigned syncs;    /* ... by so many */
    unsigned buried;
    bool full, failing;         /* failing: syncs may fail */
    uint64_t bad_inode, bad_at; /* a sector that cannot be read; 0: none */
    nanos sync_min, sync_max;   /* how long a sync takes */
    nanos stall;                /* and the next one, in addition */
};

void disk_open(struct disk *disk, const char *path, const char *graveyard);
/* A power failure: what was not synced may be lost, all or in part. */
void disk_crash(struct machine *machine);
void disk_process_ended(struct machine *machine); /* its descriptors are closed; nothing is lost */
/* The process that was writing this snapshot was killed half-way. */
void disk_unfinish(struct machine *machine, uint64_t index);
/* Whether the file of that name is there by a change of which the sync has failed. */
bool disk_may_forget(const struct disk *disk, const char *name);
/* Flips a bit in a segment that is not the last one; false: there is none. */
bool disk_rot_old(struct machine *machine);
/* Flips a bit in any file, or makes a sector of it unreadable; false: there is none. */
bool disk_rot(struct machine *machine, bool unreadable);
void disk_wipe(struct machine *machine, bool but_the_vote);
/* Damages the disks of all servers, none of which runs, so that they can mend each other. */
void damage_disks(void);

/* ---- Machines (machine.c, system.c) ---- */

struct machine {
    unsigned number; /* of the server, from 1; its host is one less */
    unsigned incarnation;
    struct task *task;
    struct server *server;
    struct settings *settings;
    uv_loop_t *loop;
    struct work { /* of a thread; from the oldest on */
        uv_work_t *of;
        struct task *task;
        bool done;
    } work[WORKS_MAX];
    unsigned works;
    bool running, wanted, powered, rotten, wiped, left_out, founded, has_data;
    bool installed;       /* it exists: a founder, or one that was to join */
    char list[LIST_SIZE]; /* of servers, as it was first started with */
    struct {              /* an operator's command that has arrived */
        char verb[16], argument[48];
    } order;
    nanos paused_until;
    nanos suspended_since, suspended_until; /* its monotonic clock stands still meanwhile */
    nanos stood_still;                      /* before that, in all */
    nanos waited;                           /* for events, by its loop */
    uint64_t signals;                       /* that are pending, by number */
    int child, child_status;
    bool child_done;
    int64_t skew_ms, drift_ppm;
    nanos clock_offset;
    nanos disturbed; /* when it last could not work */
    bool refused;    /* the disk had no room, in this incarnation */
    enum { UNHARMED, TO_BE_KILLED, TO_LOSE_POWER } fate; /* at one of the next syncs */
    uint64_t term; /* as last seen by the judge, with the leader, the members, and since when */
    uint8_t leader;
    uint64_t members;
    nanos since;
    unsigned judged;           /* the last incarnation that the judge has seen */
    nanos started, data_since; /* data_since: its log had an entry that was durable; 0: never */
    bool withheld;             /* its vote, as last seen by the judge */
    struct rng random;
    struct disk disk;
};

void machine_start(struct machine *machine);
void machine_kill(struct machine *machine);  /* SIGKILL */
void machine_crash(struct machine *machine); /* a power failure */
void machine_signal(struct machine *machine, int number);
void machine_pause(struct machine *machine, nanos until);
void machine_drop_works(struct machine *machine); /* but not the one that runs */
void machine_suspend(struct machine *machine, nanos until);
void machine_wake(struct machine *machine);
nanos machine_monotonic(const struct machine *machine); /* CLOCK_MONOTONIC */
_Noreturn void machine_exit(int status);                /* of the machine whose task runs */
nanos machine_boottime(const struct machine *machine);
nanos machine_when(const struct machine *machine, nanos monotonic); /* the clock will show that */
struct machine *machine_now(void); /* whose task runs; NULL: a user's, or none */

/* ---- Users (user.c) ---- */

enum { CALLS_MAX = 8, WATCHES_MAX = 8, PINGS_MAX = 8, PATH_SIZE = 64, KEYS = 4 };

struct call {
    int32_t xid, op;
    nanos sent, received;
    bool done;
    int32_t err;
    struct bytes body;    /* of the answer */
    char path[PATH_SIZE]; /* of a read of data */
    bool watch;
    unsigned lasting; /* it looks at the node of one of these watches, from 1; 0: it does not */
};

struct lasting { /* a watch that lasts as long as the connection */
    bool set, looked;
    int64_t changes, events; /* of the node, when last looked at; and events since then */
};

struct transient { /* a node with a TTL */
    char path[PATH_SIZE];
    bool set;
    nanos since;
    int64_t ttl_ms;
};

struct user_watch { /* on the data of a node */
    char path[PATH_SIZE];
    int64_t seen; /* the mzxid when it was set; 0: there was no node */
    bool set;
};

struct user {
    unsigned number;
    int host, server;           /* the server that it is connected to */
    nanos ping_sent[PINGS_MAX]; /* of this connection, by number */
    unsigned pings, pings_answered;
    struct task *task;
    struct socket *socket;
    struct bytes in, out;
    int32_t xid;
    bool attached; /* the server has accepted its session */
    int64_t session;
    char password[16];
    int32_t timeout_ms;
    int64_t zxid;                /* the newest seen */
    nanos heard, sent;           /* when something was last received; sent */
    nanos alive;                 /* the session is known to have existed then */
    struct call call[CALLS_MAX]; /* of this round */
    unsigned calls, answered;
    struct user_watch watch[WATCHES_MAX];
    unsigned sessions; /* so far */
    unsigned fails;
    nanos heard_by[SERVERS_MAX + 1]; /* by server: when it last read something of this session */
    /* What it has in the tree: see load.c. */
    enum { HAS_NOT, HAS, MAY_HAVE } ephemeral;
    nanos releasing; /* of a holder: since when; 0: it is not */
    bool holds;
    unsigned attempt;
    int64_t version[KEYS], pair_version; /* last seen */
    bool guards;                         /* its node with an ACL exists */
    struct lasting lasting[2];
    struct transient transient;
    bool idle;       /* it can be told of writes outside of the servers: */
    uint32_t rumour; /* a key that another user has written, from 1; 0: none */
    bool finished;
    struct rng rng;
};

/* Connects, with a session; false: the run is over. */
bool user_connect(struct user *user);
void user_begin(struct user *user); /* a round of requests */
struct call *user_ask(struct user *user, int32_t op, const void *record);
/* Waits for all answers; false: the connection was lost before. */
bool user_finish(struct user *user);
/* Waits so long, or until a rumour; pings and events go on.  False: the connection was lost. */
bool user_pause(struct user *user, nanos length);
void user_disconnect(struct user *user);
/* Forgets its session, which will expire. */
void user_forget(struct user *user);
/* Like user_ask, for getData and exists. */
struct call *user_look(struct user *user, int32_t op, const char *path, bool watch);
bool user_watches(const struct user *user, const char *path);
void user_unwatch(struct user *user, const char *path); /* an event may still come */

void load_run(void *user);
/* The session has ended, at some time after `since`; `until`: known to have ended by then; 0: not
 * known to have ended. */
void load_session_ended(struct user *user, nanos since, nanos until);
void lock_cycle(struct user *user);
void multi_act(struct user *user);
void guard_act(struct user *user);
bool guard_authenticate(struct user *user); /* false: the connection was lost */
void lasting_act(struct user *user);
void lasting_event(struct user *user, int32_t type, struct zk_text path);
void lasting_answered(struct user *user, const struct call *call);
void lasting_lost(struct user *user); /* with the connection */
void ttl_act(struct user *user);
bool ttl_all_gone(const struct tree *tree);
void lock_session_ended(struct user *user, nanos since, nanos until);

/* ---- All ---- */

struct session_record { /* what is known of a session from outside */
    int64_t id;
    unsigned user;
    int32_t timeout_ms;
    bool expired, closed, abandoned; /* expired: some leader has proposed that */
    nanos attached;                  /* it was known to be at a server then */
    nanos ended;                     /* when its expiry was first applied; 0: it was not */
    /* By the server that proposed its expiry: a server that had heard of its client, and when. */
    struct {
        unsigned server;
        nanos heard, at;
    } early[SERVERS_MAX + 1];
};

struct addition { /* a sequential node that a user has created */
    uint32_t number;
    bool acknowledged;
};

/* What is counted. */
#define COVERAGE(X)                                                                                \
    X(operations)                                                                                  \
    X(unknown)                                                                                     \
    X(events)                                                                                      \
    X(moves)                                                                                       \
    X(expirations)                                                                                 \
    X(elections)                                                                                   \
    X(terms)                                                                                       \
    X(snapshots)                                                                                   \
    X(installs)                                                                                    \
    X(kills)                                                                                       \
    X(crashes)                                                                                     \
    X(lost_changes)                                                                                \
    X(torn_changes)                                                                                \
    X(recycled_segments)                                                                           \
    X(used_spares)                                                                                 \
    X(rolling)                                                                                     \
    X(pauses)                                                                                      \
    X(partitions)                                                                                  \
    X(breaks)                                                                                      \
    X(slow_disks)                                                                                  \
    X(full_disks)                                                                                  \
    X(rots)                                                                                        \
    X(orders)                                                                                      \
    X(joins)                                                                                       \
    X(removals)                                                                                    \
    X(leader_removals)                                                                             \
    X(weighings)                                                                                   \
    X(groups)                                                                                      \
    X(changes)                                                                                     \
    X(failed_syncs)                                                                                \
    X(read_errors)                                                                                 \
    X(vote_rots)                                                                                   \
    X(mended_votes)                                                                                \
    X(snapshot_rots)                                                                               \
    X(last_rots)                                                                                   \
    X(damages)                                                                                     \
    X(damaged_logs)                                                                                \
    X(damaged_headers)                                                                             \
    X(damaged_images)                                                                              \
    X(damaged_votes)                                                                               \
    X(damaged_bits)                                                                                \
    X(damaged_ranges)                                                                              \
    X(removed_files)                                                                               \
    X(survived)                                                                                    \
    X(mendings)                                                                                    \
    X(mended_logs)                                                                                 \
    X(mended_snapshots)                                                                            \
    X(given_up)                                                                                    \
    X(wipes)                                                                                       \
    X(log_losses)                                                                                  \
    X(partials)                                                                                    \
    X(flips)                                                                                       \
    X(disk_stalls)                                                                                 \
    X(drifts)                                                                                      \
    X(suspends)                                                                                    \
    X(transfers)                                                                                   \
    X(chunks)                                                                                      \
    X(multis)                                                                                      \
    X(failed_multis)                                                                               \
    X(trespasses)                                                                                  \
    X(lasting_events)                                                                              \
    X(ttls)                                                                                        \
    X(containers)                                                                                  \
    X(redials)                                                                                     \
    X(slow_links)                                                                                  \
    X(catch_ups)                                                                                   \
    X(unfinished)

struct coverage {
#define COUNT(NAME) uint64_t NAME;
    COVERAGE(COUNT)
#undef COUNT
};

struct world {
    uint64_t seed, kinds;
    nanos now;
    uint64_t hash;
    bool tracing;
    char root[64];
    struct rng net, disk, faults, random, orders;
    unsigned servers, founders, users;       /* servers: with those that may join */
    struct machine machine[SERVERS_MAX + 1]; /* from 1 */
    struct user user[USERS_MAX];
    ucontext_t scheduler;
    jmp_buf place;          /* the scheduler's */
    char *stack[TASKS_MAX]; /* without tasks */
    unsigned stacks;
    struct task *task[TASKS_MAX], *current;
    unsigned tasks;
    struct call_entry *call;
    size_t calls, call_room;
    uint64_t call_count;
    struct socket *sockets;
    unsigned socket_count;
    bool blocked[HOSTS_MAX][HOSTS_MAX];
    nanos delay[HOSTS_MAX][HOSTS_MAX], jitter;
    nanos byte_time;                       /* of links between servers */
    nanos disturbed[HOSTS_MAX][HOSTS_MAX]; /* when bytes could not pass, or a connection broke */
    bool linearizable;                     /* a setting of the servers: --reads linearizable */
    bool short_logs;     /* another: few entries are kept in memory for members that lag */
    bool few_in_flight;  /* another: few are sent before they are acknowledged */
    unsigned loop_steps; /* another: how much is done in one iteration; 0: the default */
    unsigned flips;      /* bits that are to flip */
    size_t chunk;        /* the most that is sent of a snapshot at once; 0: the servers' own */
    bool healed, over;   /* over: users have nothing more to do */
    bool in_child;
    struct history strong, weak;
    int64_t last_value;
    struct session_record *session;
    size_t sessions, session_room;
    struct addition *addition;
    size_t additions, addition_room;
    uint64_t *entry_hash; /* of applied entries, by index */
    uint64_t ensemble;    /* its id, and the first configuration that was seen with it */
    int64_t ensemble_zxid;
    size_t entries, entry_room;
    uint64_t *tree_hash; /* by index, for some of them */
    size_t trees, tree_room;
    struct term_leader { /* by term */
        uint8_t server;
        nanos since;
    } * term_leader;
    size_t terms, term_room;
    struct coverage coverage;
    char violation[512];
};

extern struct world *world;

__attribute__((format(printf, 2, 3))) void trace(const char *who, const char *format, ...);
/* The first violation is kept, and ends the run. */
__attribute__((format(printf, 1, 2))) void violated(const char *format, ...);
void hash_event(uint64_t a, uint64_t b); /* into the hash of the run */
nanos random_time(struct rng *rng, nanos min, nanos max);

/* Runs until `done`; false: until a violation, or that time. */
bool world_run(bool (*done)(void), nanos until);

void members_start(nanos until);
void members_heal(void); /* those that cannot join are told of all others; then they start again */
void members_obey(struct machine *machine); /* in its task: its order is carried out */
void members_found(void);                   /* the founders' list */

/* Tells a server something, as an operator would; false: it does not listen. */
bool members_tell(struct machine *machine, const char *verb, const char *argument);

void partial_run(void);

void faults_start(nanos until);
void faults_heal(void);
void faults_doom(struct machine *machine, nanos when); /* carries out its fate */
void faults_sync_failed(struct machine *machine);

struct session_record *session_record(int64_t id); /* NULL: no user has it */
/* Called as it happens. */
void judge_applied(struct server *server, const struct raft_entry *entry);
void judge_expiry(struct server *server, uint32_t slot);
/* The first server has applied the expiry of a session. */
void judge_end(struct session_record *record, uint64_t term, unsigned by);
void judge_attached(struct session_record *record);
void judge_ping(struct user *user); /* one of its pings was answered */
void judge_step(struct machine *machine);
void judge_removal(const struct machine *machine, const char *name); /* of a file */
/* It leads, and has made that durable: one whose power fails before that has never led. */
bool acts_as_leader(const struct ensemble *ensemble);
bool knows_its_ensemble(const struct ensemble *ensemble); /* by its id */
bool helps_others(const struct ensemble *ensemble);       /* to catch up */
const struct raft *core_of_server(unsigned number);       /* core_of, for messages.c */
const struct raft *raft_of(const struct ensemble *ensemble);
uint64_t applied_index_of(const struct ensemble *ensemble);
/* Whether users know it: they learn who is a member at last. */
bool may_serve(const struct machine *machine);
/* At the end. */
bool trees_agree(void);      /* all have applied the same, and there is no session */
bool nobody_is_helped(void); /* ... and nothing is sent to a member that lags, or is lost */
void trace_servers(void);
void judge_trees(void);
void judge_histories(void);

void disk_wrap_child_done(struct machine *machine); /* a snapshot that was written is durable */

static inline bool world_has(enum kind kind) { return world->kinds >> kind & 1; }

/* The consensus core of a machine that runs; NULL: it is down, or has not opened its data. */
static inline const struct raft *core_of(const struct machine *m) {
    bool up = m->running && m->server && m->server->ensemble;
    return up ? raft_of(m->server->ensemble) : NULL;
}

#endif
