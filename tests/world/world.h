/* A world in one thread: the servers of an ensemble, as they are built for production, and their
 * clients, on a simulated event loop, clock, network and disk.  All that happens follows from a
 * seed.
 *
 *   tasks.c   virtual time: tasks that wait, and what happens at a time
 *   wire.c    connections between hosts: delay, order, partitions, resets
 *   uv.c      libuv's loop, timers, signals and work;  uv_tcp.c: its streams, on wires
 *   disk.c    files that remember what was not synced, and lose it in a crash
 *   system.c  clocks, random numbers, processes;  machine.c: servers that start, stop and die
 *   user.c    clients: sessions, requests, replies;  load.c, lock.c: what they do
 *   faults.c  what goes wrong
 *   verdict.c what must hold;  main.c: the program
 *
 * The servers' object files are those of the program; functions of the system are replaced by the
 * linker (--wrap), and libuv by uv.c. */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>
#include <uv.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "judge/history.h"
#include "server/server.h"

typedef uint64_t nanos;
#define US     ((nanos)1000)
#define MS     ((nanos)1000000)
#define SECOND ((nanos)1000000000)
#define NEVER  UINT64_MAX

enum {
    SERVERS_MAX = 5,
    USERS_MAX = 8,
    HOSTS_MAX = SERVERS_MAX + USERS_MAX,
    TASKS_MAX = 64,
    CLIENT_PORT = 2181,
    PEER_PORT = 2888,
};

/* ---- Tasks and time (tasks.c) ---- */

struct task { /* something that waits now and then: a coroutine */
    ucontext_t context;
    char *stack;
    void (*body)(void *argument);
    void *argument;
    struct machine *machine; /* NULL: of a user */
    nanos wake;
    bool over;
};

struct task *task_start(struct machine *machine, void (*body)(void *argument), void *argument);
/* It is no more; not for the one that runs. */
void task_drop(struct task *task);
_Noreturn void task_end(void); /* the one that runs */
/* Waits until then, or until somebody wakes it. */
void task_wait(nanos until);
void task_sleep(nanos length); /* nobody wakes it */
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
    struct socket *queue; /* of a listener: who has come; and of those: who came next */
    enum socket_state state;
    unsigned number;
    int host, port, to_host, to_port;
    nanos patience; /* with bytes that are not confirmed; 0: any */
    size_t window;
    struct bytes in; /* has arrived */
    size_t in_read;
    bool ended;       /* the other end has closed, and that is known here */
    int error;        /* of libuv; 0: none */
    struct bytes out; /* on its way to the other end */
    struct piece *piece;
    size_t pieces, piece_room, unread;
    bool fin, fin_sent, pumping;
    nanos last_due, stalled, backoff;
    unsigned tries;
    void (*changed)(void *owner); /* something came, or there is room again */
    void *owner;
};

struct socket *wire_listen(int host, int port);
struct socket *wire_accept(struct socket *listener); /* NULL: nobody has come */
struct socket *wire_connect(int host, int to_host, int to_port);
size_t wire_room(const struct socket *socket);
size_t wire_send(struct socket *socket, const void *bytes, size_t size);
size_t wire_unread(const struct socket *socket);
size_t wire_read(struct socket *socket, void *bytes, size_t most);
void wire_close(struct socket *socket); /* its owner wants no more of it */
void wire_break(struct socket *socket); /* both ends notice */
void wire_process_ended(int host);      /* the system closes what it had open */
void wire_power_failed(int host);       /* nobody is told */
struct socket *wire_any_open(void);     /* by chance; NULL: there is none */
bool wire_is_passable(int from, int to);

/* ---- Disks (disk.c) ---- */

struct file { /* one that has changes that were not synced */
    struct file *next;
    uint64_t inode;
    int descriptor; /* our own */
};

enum change_kind { CHANGE_DATA, CHANGE_CREATE, CHANGE_RENAME, CHANGE_UNLINK };
enum { DISK_NAME_MAX = 64 };

struct change {
    enum change_kind kind;
    struct file *file; /* data: of which, and what was there */
    uint64_t at, size_before, size_after;
    struct bytes before, after;
    char name[DISK_NAME_MAX], to[DISK_NAME_MAX]; /* of a directory's entries */
    unsigned kept;                               /* where what it replaced is kept; 0: nothing */
};

struct disk {
    char path[64], graveyard[64];
    int graveyard_directory;
    struct file *files;
    struct change *change;
    size_t changes, change_room;
    unsigned buried;
    bool full;
    nanos sync_least, sync_most; /* how long a sync takes */
};

void disk_open(struct disk *disk, const char *path, const char *graveyard);
/* A power failure: what was not synced may be lost, all or in part. */
void disk_crash(struct machine *machine);
void disk_process_ended(struct machine *machine); /* its descriptors are closed; nothing is lost */
/* The process that was writing this snapshot was ended half-way. */
void disk_unfinish(struct machine *machine, uint64_t index);
/* Flips a bit in a segment that is not the last one; false: there is none. */
bool disk_rot(struct machine *machine);

/* ---- Machines (machine.c, system.c) ---- */

struct machine {
    unsigned number; /* of the server, from 1; its host is one less */
    unsigned life;
    struct task *task, *worker;
    struct server *server;
    struct settings *settings;
    uv_loop_t *loop;
    uv_work_t *work;
    bool work_done, running, wanted, powered, rotten, left_out;
    nanos paused_until;
    uint64_t signals; /* that are pending, by number */
    int child, child_status;
    bool child_done;
    int64_t skew_ms;
    nanos clock_offset;
    nanos disturbed; /* when it last could not do its work */
    bool refused;    /* the disk had no room, in this life */
    enum {
        UNHARMED,
        TO_BE_KILLED,
        TO_LOSE_POWER
    } fate;        /* some time soon when it waits for the disk */
    uint64_t term; /* as it was last looked at, with the leader, and since when */
    uint8_t leader;
    nanos since;
    struct rng random;
    struct disk disk;
};

void machine_start(struct machine *machine);
void machine_kill(struct machine *machine);  /* its process ends at once */
void machine_crash(struct machine *machine); /* with its machine: power is lost */
void machine_signal(struct machine *machine, int number);
void machine_pause(struct machine *machine, nanos until);
_Noreturn void machine_exit(int status); /* of the task that runs */
struct machine *machine_now(void);       /* whose task runs; NULL: nobody's */

/* ---- Users (user.c) ---- */

enum { CALLS_MAX = 8, WATCHES_MAX = 8, PATH_SIZE = 64, KEYS = 4 };

struct call {
    int32_t xid, op;
    nanos sent, came;
    bool done;
    int32_t err;
    struct bytes body;    /* of the answer */
    char path[PATH_SIZE]; /* of a read: what of */
    bool watch;
};

struct user_watch { /* on the data of a node */
    char path[PATH_SIZE];
    int64_t seen; /* its mzxid then; 0: it was not there */
    bool set;
};

struct user {
    unsigned number;
    int host, server; /* the server that it is connected to */
    struct task *task;
    struct socket *socket;
    struct bytes in, out;
    int32_t xid;
    bool attached; /* the server has taken its session on */
    int64_t session;
    char password[16];
    int32_t timeout_ms;
    int64_t zxid;                /* the newest seen */
    nanos heard, said;           /* something came; was sent */
    nanos alive;                 /* the session is known to have lived then */
    struct call call[CALLS_MAX]; /* of this round */
    unsigned calls, answered;
    struct user_watch watch[WATCHES_MAX];
    unsigned sessions; /* that it has had */
    unsigned fails;
    nanos heard_by[SERVERS_MAX + 1]; /* by server: when something of this session was read there */
    /* What it has in the tree: see load.c. */
    enum { HAS_NOT, HAS, MAY_HAVE } ephemeral;
    bool holds;
    unsigned attempt;
    int64_t version[KEYS]; /* last seen */
    bool idle;             /* it listens to rumours: */
    uint32_t rumour;       /* a key that somebody says it has written, from 1; 0: none */
    bool finished;
    struct rng rng;
};

/* Connected, with a session; false: the run is over. */
bool user_connect(struct user *user);
void user_begin(struct user *user); /* a round of requests */
struct call *user_ask(struct user *user, int32_t op, const void *record);
/* Waits for all answers; false: the connection was lost before. */
bool user_finish(struct user *user);
/* Until then or until a rumour; pings and events go on.  False: lost. */
bool user_pause(struct user *user, nanos length);
void user_disconnect(struct user *user);
/* Forgets its session, which others will see the end of. */
void user_forget(struct user *user);
/* The same for a read of a node's data or of whether it is there. */
struct call *user_look(struct user *user, int32_t op, const char *path, bool watch);
bool user_watches(const struct user *user, const char *path);
void user_unwatch(struct user *user, const char *path); /* if an event comes, nobody minds */

void load_run(void *user);
/* The session has ended, at some time after `since`; `until`: known to have ended by then; 0: not
 * known to have ended. */
void load_session_ended(struct user *user, nanos since, nanos until);
void lock_cycle(struct user *user);
void lock_session_ended(struct user *user, nanos since, nanos until);

/* ---- All ---- */

struct session_record { /* what is known of a session from outside */
    int64_t id;
    unsigned user;
    int32_t timeout_ms;
    bool expired, closed, abandoned; /* expired: some leader has put that forward */
    nanos attached;                  /* it was known to be at a server then */
    nanos ended;                     /* by a leader's decision, which was applied; 0: not */
    /* By server that put its end forward: by whom its client had been heard then, and when. */
    struct {
        unsigned server;
        nanos heard, at;
    } early[SERVERS_MAX + 1];
};

struct addition { /* a node that was created once, by whoever */
    uint32_t number;
    bool acknowledged;
};

struct coverage {
    uint64_t operations, unknown, elections, expirations, snapshots, installs, kills, crashes,
        pauses, partitions, breaks, full_disks, slow_disks, rots, terms, lost_changes, torn_changes,
        moves, events, rolling;
};

struct world {
    uint64_t seed;
    nanos now;
    uint64_t hash;
    bool tracing;
    char root[64];
    struct rng net, disk, faults, random;
    unsigned servers, users;
    struct machine machine[SERVERS_MAX + 1]; /* from 1 */
    struct user user[USERS_MAX];
    ucontext_t scheduler;
    struct task *task[TASKS_MAX], *current;
    unsigned tasks;
    struct call_entry *call;
    size_t calls, call_room;
    uint64_t call_count;
    struct socket *sockets;
    unsigned socket_count;
    bool blocked[HOSTS_MAX][HOSTS_MAX];
    nanos delay[HOSTS_MAX][HOSTS_MAX], jitter;
    nanos disturbed[HOSTS_MAX][HOSTS_MAX]; /* when bytes could not pass, or a connection broke */
    bool fresh;        /* a setting of the servers: every read is linearizable */
    bool forgetful;    /* another: entries are hardly kept for those who are behind */
    bool healed, over; /* over: users have nothing more to do */
    bool in_child;
    struct history strong, weak;
    int64_t last_value;
    struct session_record *session;
    size_t sessions, session_room;
    struct addition *addition;
    size_t additions, addition_room;
    uint64_t *entry_hash; /* of applied entries, by index */
    size_t entries, entry_room;
    uint64_t *tree_hash; /* now and then, by index */
    size_t trees, tree_room;
    struct reign { /* by term */
        uint8_t server;
        nanos since;
    } * reign;
    size_t terms, term_room;
    struct coverage coverage;
    char violation[512];
};

extern struct world *world;

__attribute__((format(printf, 2, 3))) void say(const char *who, const char *format, ...);
/* The first is kept, and ends the run. */
__attribute__((format(printf, 1, 2))) void violated(const char *format, ...);
void note(uint64_t a, uint64_t b); /* into the hash of the run */
nanos random_time(struct rng *rng, nanos least, nanos most);

/* Until it is true, or violated, or that time: false. */
bool world_run(bool (*done)(void), nanos until);

void faults_start(nanos until);
void faults_heal(void);
void faults_doom(struct machine *machine, nanos when); /* its fate comes true then */

struct session_record *session_record(int64_t id); /* NULL: nobody has heard of it */
/* Called as it happens. */
void judge_applied(struct server *server, const struct raft_entry *entry);
void judge_expiry(struct server *server, uint32_t place);
/* The session has been ended by a leader's decision, at the first server that applies it. */
void judge_end(struct session_record *record, uint64_t term, unsigned by);
void judge_attached(struct session_record *record);
void judge_turn(struct machine *machine);
/* At the end. */
bool trees_agree(void); /* all have applied the same, and nobody has a session */
void say_servers(void);
void judge_trees(void);
void judge_histories(void);

void disk_wrap_child_done(struct machine *machine); /* what a snapshot's process wrote is durable */

#endif
