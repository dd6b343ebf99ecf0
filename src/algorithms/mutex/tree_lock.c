/* tree-lock-naive and tree-lock: the client that creates the node /lock on a server holds the lock.
 *
 *   client                            server
 *     idle     --CREATE-->            there is no /lock: it is the client's now
 *     inside   <--CREATED--
 *     waiting  <--EXISTS--            there is one
 *     watching --WATCH-->             remembers the watcher
 *              <--DELETED--           sent to all watchers when /lock is gone: they CREATE again
 *     inside, afterwards  --DELETE--> deletes it
 *
 * tree-lock-naive: when the deletion falls between EXISTS and WATCH, the client watches for
 * something that has already happened, and waits until somebody else comes and goes, or for ever.
 * tree-lock: EXISTS carries the version of the node, and WATCH names it; a WATCH for a version that
 * is gone is answered with DELETED at once.
 *
 * Cost: 3 messages per entry and exit when nobody else wants in, and 4 more for each time that a
 * client watches: a release wakes the whole herd, and all but one come back to EXISTS and WATCH.
 * So with N-1 watchers one entry costs 4N-1 messages.  2 message times before the entry, 3 for a
 * client that was woken.  The version of the node is a fencing token.
 *
 * What it takes for granted: reliable channels.  Messages may overtake each other and arrive twice,
 * but must not outlive a crash of the server.
 *
 * What breaks it: it is not fair, and starves.  A client that leaves and comes back at once is
 * ahead of all that must be notified first.  The crash of the server blocks everyone until it
 * comes back: it remembers the node, and tells everyone to look again.  The node of a dead client
 * stays, unless the server has a failure detector: then the node is ephemeral, and goes with its
 * client.  A client that is wrongly suspected stays inside while the next one enters, and only
 * fencing contains that.  With amnesia the server numbers from 1 again, and not even fencing helps.
 */
#include "algorithms/mutex/mutex.h"

enum { CREATE, CREATED, EXISTS, WATCH, DELETED, DELETE, KINDS };
enum { WATCHING = GONE + 1 };
static const uint64_t any_version = 0; /* the server restarted: every version may be gone */

#define NUMBERED_FIELDS(F, R) F(R, u64, number, INNER) /* of the client's attempt */
#define VERSIONED_FIELDS(F, R)                                                                     \
    F(R, u64, number, INNER)                                                                       \
    F(R, u64, version, SHOWN)
#define DELETED_FIELDS(F, R) F(R, u64, version, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, number, INNER)  /* of my last attempt; at the server, of the one that created */     \
    F(R, u64, version, SHOWN) /* of the node; at a client, as last seen */                         \
    F(R, pid, lock, SHOWN)    /* the owner of the node; durable up to here */                      \
    F(R, u32, phase, INNER)                                                                        \
    F(R, queue, watchers, SHOWN)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, number, INNER) /* the newest attempt seen from this client */

CV_RECORD(numbered, NUMBERED_FIELDS);
CV_RECORD(versioned, VERSIONED_FIELDS);
CV_RECORD(deleted, DELETED_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static const cv_pid server = 1;

/* ---- The server ---- */

static struct row *row_of(struct state *s, cv_pid p) {
    return (struct row *)(s + 1) + (p - server - 1);
}

static struct cv_links links(struct state *s) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), server + 1};
}

static void delete_node(struct state *s, struct cv_out *out) {
    s->lock = CV_NOBODY;
    cv_save(out);
    for (cv_pid p; (p = cv_queue_pop(&s->watchers, links(s)));)
        cv_send(out, p, DELETED, deleted, .version = s->version);
}

static void answer(struct cv_out *out, bool naive, cv_pid to, uint16_t kind, uint64_t number,
                   uint64_t version) {
    if (naive && kind == EXISTS)
        cv_send(out, to, kind, numbered, .number = number);
    else
        cv_send(out, to, kind, versioned, .number = number, .version = version);
}

static void on_create(struct state *s, bool naive, cv_pid p, uint64_t number, struct cv_out *out) {
    if (number <= row_of(s, p)->number) return; /* a duplicate */
    row_of(s, p)->number = number;
    if (s->lock == p) delete_node(s, out); /* it asks again, so its DELETE is on the way, or lost */
    if (s->lock) {
        answer(out, naive, p, EXISTS, number, s->version);
        return;
    }
    s->lock = p;
    s->number = number;
    s->version++;
    cv_save(out);
    answer(out, naive, p, CREATED, number, s->version);
}

static void on_watch(struct state *s, bool naive, cv_pid p, const struct versioned *m,
                     struct cv_out *out) {
    if (m->number < row_of(s, p)->number) return; /* a duplicate */
    bool there = naive || (s->lock && m->version == s->version);
    if (!there)
        cv_send(out, p, DELETED, deleted, .version = m->version);
    else if (!cv_queued(&s->watchers, links(s), p))
        cv_queue_push(&s->watchers, links(s), p);
}

static void serve(struct state *s, bool naive, const struct cv_event *e, struct cv_out *out) {
    const struct numbered *m = e->body;
    if (e->type == CV_RECV && e->from != server) {
        if (e->kind == CREATE) on_create(s, naive, e->from, m->number, out);
        if (e->kind == WATCH) on_watch(s, naive, e->from, e->body, out);
        if (e->kind == DELETE && s->lock == e->from && s->number <= m->number) delete_node(s, out);
    } else if (e->type == CV_DOWN && s->lock == e->arg) {
        delete_node(s, out); /* its client's session has ended */
    } else if (e->type == CV_RESTART) {
        if (s->lock) row_of(s, s->lock)->number = s->number;
        cv_send(out, CV_OTHERS, DELETED, deleted, .version = any_version);
    }
}

/* ---- A client ---- */

static void attempt(struct state *s, struct cv_out *out) {
    s->phase = WAITING;
    s->number++;
    cv_save(out);
    cv_send(out, server, CREATE, numbered, .number = s->number);
}

static void on_created(struct state *s, const struct versioned *m, struct cv_out *out) {
    if (s->phase != WAITING || m->number != s->number) return;
    s->phase = INSIDE;
    cv_tell(out, CV_ENTERED, m->version);
}

static void on_exists(struct state *s, bool naive, const struct versioned *m, struct cv_out *out) {
    if (s->phase != WAITING || m->number != s->number) return;
    s->phase = WATCHING;
    s->version = naive ? any_version : m->version;
    if (naive)
        cv_send(out, server, WATCH, numbered, .number = s->number);
    else
        cv_send(out, server, WATCH, versioned, .number = s->number, .version = s->version);
}

static void on_deleted(struct state *s, bool naive, uint64_t version, struct cv_out *out) {
    bool watched = s->phase == WATCHING && (naive || version == s->version);
    if (watched || (version == any_version && (s->phase == WAITING || s->phase == WATCHING))) {
        cv_tell(out, CV_WOKEN, 0);
        attempt(s, out);
    } else if (version == any_version && s->phase == IDLE && s->number) {
        cv_send(out, server, DELETE, numbered, .number = s->number); /* the first one may be lost */
    }
}

static void receive(struct state *s, bool naive, const struct cv_event *e, struct cv_out *out) {
    if (e->kind == CREATED) {
        on_created(s, e->body, out);
    } else if (e->kind == EXISTS) {
        on_exists(s, naive, e->body, out);
    } else if (e->kind == DELETED) {
        const struct deleted *m = e->body;
        on_deleted(s, naive, m->version, out);
    }
}

static void compete(struct state *s, bool naive, const struct cv_event *e, struct cv_out *out) {
    if (e->type == CV_RECV && e->from == server) {
        receive(s, naive, e, out);
    } else if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        attempt(s, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        s->phase = IDLE;
        cv_tell(out, CV_LEFT, 0);
        cv_send(out, server, DELETE, numbered, .number = s->number);
    } else if (e->type == CV_RESTART && s->number) { /* deletes the node from before the crash */
        cv_send(out, server, DELETE, numbered, .number = s->number);
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (cv_serves(env))
        serve(state, false, e, out);
    else
        compete(state, false, e, out);
}

static void step_naive(void *state, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    if (cv_serves(env))
        serve(state, true, e, out);
    else
        compete(state, true, e, out);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = cv_serves(env) ? env->processes - env->servers : 0;
    layout->first = env->servers + 1;
    layout->durable = offsetof(struct state, phase);
    layout->sends = cv_serves(env) ? env->processes + CV_SENDS_DEFAULT : CV_SENDS_DEFAULT;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("CREATE", numbered), CV_TABLE("CREATED", versioned), CV_TABLE("EXISTS", versioned),
    CV_TABLE("WATCH", versioned), CV_TABLE("DELETED", deleted),   CV_TABLE("DELETE", numbered),
};
static const struct cv_record messages_naive[KINDS] = {
    CV_TABLE("CREATE", numbered), CV_TABLE("CREATED", versioned), CV_TABLE("EXISTS", numbered),
    CV_TABLE("WATCH", numbered),  CV_TABLE("DELETED", deleted),   CV_TABLE("DELETE", numbered),
};

#define TREE_LOCK                                                                                  \
    .paper = "the lecture's /lock; Hunt, Konar, Junqueira & Reed, ZooKeeper, USENIX ATC 2010",     \
    .cost = "3 + 4w", .delay = "2 .. 3", .server_name = "tree", .state = &state_table,             \
    .message_count = KINDS, .servers = one_server, .layout = layout, .problem = CV_MUTEX,          \
    .traits = CV_FENCED | CV_USES_DETECTOR | CV_SYMMETRIC

CV_ALGORITHM(tree_lock_naive) = {
    .name = "tree-lock-naive",
    .tolerates = "nothing: a wake-up between test and subscription is lost",
    .summary = "create /lock, or else watch it: a deletion between the two is missed",
    TREE_LOCK,
    .messages = messages_naive,
    .step = step_naive,
};
CV_ALGORITHM(tree_lock) = {
    .name = "tree-lock",
    .tolerates = "restarts of the tree; with a detector dead clients, slow ones only with fencing",
    .summary = "create /lock, or else watch the version that was there; a release wakes everyone",
    TREE_LOCK,
    .messages = messages,
    .step = step,
};
