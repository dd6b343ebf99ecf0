/* tree-lock-queue: sequential nodes in the tree of a server, each watched by the next one's owner.
 *
 *   client                              server
 *     idle     --CREATE-->              makes a node with the next number
 *              <--CREATED--             its number, and that of its predecessor
 *     inside   when it has no predecessor
 *     watching --WATCH--> otherwise     remembers the watcher; when the predecessor is gone, it
 *              <--DELETED--             sends which node is now the predecessor, or that none is
 *     inside, afterwards  --DELETE-->   deletes its node
 *
 * CREATED answers two questions of the ZooKeeper recipe, create and list the children, in one step.
 *
 * Cost: 3 messages per entry and exit when nobody else wants in, 5 under load: a release wakes
 * exactly one client.  2 message times before the entry.  It is fair: clients enter in the order
 * of their nodes, whose numbers are fencing tokens.
 *
 * What it takes for granted: reliable channels.  Messages may overtake each other and arrive twice,
 * but must not outlive a crash of the server.
 *
 * What breaks it: the crash of the server blocks everyone until it comes back: it remembers the
 * first node and the last number, and tells every client that waits to create a node again.  The
 * node of a dead client stays, unless the server has a failure detector: then the node is
 * ephemeral, and goes with its client.  A client that is wrongly suspected while it waits creates
 * another node.  One that is inside stays there while the next one enters, and only fencing
 * contains that.  With amnesia the server numbers from 1 again, and not even fencing helps. */
#include "algorithms/mutex/mutex.h"

enum { CREATE, CREATED, WATCH, DELETED, DELETE, KINDS };
enum { WATCHING = GONE + 1 };
static const uint64_t any_attempt = 0; /* the server restarted: every node may be gone */

#define NUMBERED_FIELDS(F, R) F(R, u64, number, INNER) /* of the client's attempt */
#define CREATED_FIELDS(F, R)                                                                       \
    F(R, u64, number, INNER)                                                                       \
    F(R, u64, node, SHOWN)                                                                         \
    F(R, u64, before, SHOWN) /* its predecessor; 0: none */
#define BEFORE_FIELDS(F, R)                                                                        \
    F(R, u64, number, INNER)                                                                       \
    F(R, u64, before, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, number, INNER) /* of my last attempt; at the server, of the first node's */          \
    F(R, u64, first, INNER)  /* at the server: the first node */                                   \
    F(R, u64, newest, SHOWN) /* at the server: the newest node; at a client: its own */            \
    F(R, pid, owner, INNER)  /* of the first node; durable up to here */                           \
    F(R, u32, phase, INNER)                                                                        \
    F(R, queue, nodes, SHOWN)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, number, INNER) /* the newest attempt seen from this client */                        \
    F(R, u64, node, INNER)                                                                         \
    F(R, u64, watches, INNER) /* it watches the node before its own */

CV_RECORD(numbered, NUMBERED_FIELDS);
CV_RECORD(created, CREATED_FIELDS);
CV_RECORD(before, BEFORE_FIELDS);
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

static uint64_t node_before(struct state *s, cv_pid p) {
    cv_pid before = row_of(s, p)->link.prev;
    return before ? row_of(s, before)->node : 0;
}

static void save_first(struct state *s, struct cv_out *out) {
    s->owner = s->nodes.first;
    s->number = s->owner ? row_of(s, s->owner)->number : 0;
    s->first = s->owner ? row_of(s, s->owner)->node : 0;
    cv_save(out);
}

static void notify_watcher(struct state *s, cv_pid p, struct cv_out *out) {
    row_of(s, p)->watches = 0;
    cv_send(out, p, DELETED, before, .number = row_of(s, p)->number, .before = node_before(s, p));
}

static void delete_node(struct state *s, cv_pid p, struct cv_out *out) {
    cv_pid next = row_of(s, p)->link.next;
    cv_queue_remove(&s->nodes, links(s), p);
    row_of(s, p)->watches = 0;
    save_first(s, out);
    if (next && row_of(s, next)->watches) notify_watcher(s, next, out);
}

static void on_create(struct state *s, cv_pid p, uint64_t number, struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (number <= row->number) return;                             /* a duplicate */
    if (cv_queued(&s->nodes, links(s), p)) delete_node(s, p, out); /* its DELETE is on the way */
    row->number = number;
    row->node = ++s->newest;
    cv_queue_push(&s->nodes, links(s), p);
    save_first(s, out);
    cv_send(out, p, CREATED, created, .number = number, .node = row->node,
            .before = node_before(s, p));
}

static void on_watch(struct state *s, cv_pid p, uint64_t before, struct cv_out *out) {
    if (before && before == node_before(s, p))
        row_of(s, p)->watches = 1;
    else
        notify_watcher(s, p, out);
}

static void restart(struct state *s, struct cv_out *out) {
    if (s->owner) {
        row_of(s, s->owner)->number = s->number;
        row_of(s, s->owner)->node = s->first;
        cv_queue_push(&s->nodes, links(s), s->owner);
    }
    cv_send(out, CV_OTHERS, DELETED, before, .number = any_attempt);
}

static void serve(struct state *s, const struct cv_event *e, struct cv_out *out) {
    if (e->type == CV_RECV && e->from != server) {
        const struct numbered *m = e->body;
        const struct before *watch = e->body;
        bool has_node = cv_queued(&s->nodes, links(s), e->from);
        uint64_t number = row_of(s, e->from)->number;
        if (e->kind == CREATE) on_create(s, e->from, m->number, out);
        if (e->kind == WATCH && has_node && number == m->number)
            on_watch(s, e->from, watch->before, out);
        if (e->kind == DELETE && has_node && number <= m->number) delete_node(s, e->from, out);
    } else if (e->type == CV_DOWN && cv_queued(&s->nodes, links(s), e->arg)) {
        delete_node(s, e->arg, out); /* its client's session has ended */
    } else if (e->type == CV_UP) {
        cv_send(out, e->arg, DELETED, before, .number = any_attempt); /* its session had ended */
    } else if (e->type == CV_RESTART) {
        restart(s, out);
    }
}

/* ---- A client ---- */

static void attempt(struct state *s, struct cv_out *out) {
    s->phase = WAITING;
    s->number++;
    cv_save(out);
    cv_send(out, server, CREATE, numbered, .number = s->number);
}

static void enter_or_watch(struct state *s, uint64_t before, struct cv_out *out) {
    if (before) {
        s->phase = WATCHING;
        cv_send(out, server, WATCH, before, .number = s->number, .before = before);
    } else {
        s->phase = INSIDE;
        cv_tell(out, CV_ENTERED, s->newest);
    }
}

static void on_created(struct state *s, const struct created *m, struct cv_out *out) {
    if (s->phase != WAITING || m->number != s->number) return;
    s->newest = m->node;
    enter_or_watch(s, m->before, out);
}

static void on_deleted(struct state *s, const struct before *m, struct cv_out *out) {
    bool waits = s->phase == WAITING || s->phase == WATCHING;
    if (m->number == any_attempt) {
        if (waits)
            attempt(s, out);
        else if (s->phase == IDLE && s->number) /* the first one may be lost */
            cv_send(out, server, DELETE, numbered, .number = s->number);
    } else if (s->phase == WATCHING && m->number == s->number) {
        cv_tell(out, CV_WOKEN, 0);
        enter_or_watch(s, m->before, out);
    }
}

static void compete(struct state *s, const struct cv_event *e, struct cv_out *out) {
    if (e->type == CV_RECV && e->from == server) {
        if (e->kind == CREATED) on_created(s, e->body, out);
        if (e->kind == DELETED) on_deleted(s, e->body, out);
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
        serve(state, e, out);
    else
        compete(state, e, out);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = cv_serves(env) ? env->processes - env->servers : 0;
    layout->first = env->servers + 1;
    layout->durable = offsetof(struct state, phase);
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("CREATE", numbered), CV_TABLE("CREATED", created), CV_TABLE("WATCH", before),
    CV_TABLE("DELETED", before),  CV_TABLE("DELETE", numbered),
};

CV_ALGORITHM(tree_lock_queue) = {
    .name = "tree-lock-queue",
    .tolerates = "restarts of the tree; with a detector dead clients, slow ones only with fencing",
    .summary = "numbered nodes in a tree, each watched by the next: a release wakes exactly one",
    .paper = "Hunt, Konar, Junqueira & Reed, ZooKeeper, USENIX ATC 2010, section 2.4",
    .cost = "3 + 2w",
    .delay = "2",
    .server_name = "tree",
    CV_MACHINE,
    .servers = one_server,
    .problem = CV_MUTEX,
    .traits = CV_FENCED | CV_USES_DETECTOR | CV_SYMMETRIC,
};
