/* raymond: a token on a tree; each process knows which neighbour is nearer to it.
 *
 * The tree has the shape of a heap: the parent of process p is p/2.  The token starts at the root.
 *
 *   - Each process queues those that want the token through it: neighbours, and itself.
 *   - A process with a queue but no token  --REQUEST--> the neighbour toward the token, once.
 *   - A process that has the token and is not inside gives it to the first in its queue.  If that
 *     is itself, it enters.  Else  --TOKEN--> that neighbour, toward which the token is from now
 *     on; if more are in the queue, a REQUEST follows.
 *
 * Cost: 2 messages for each edge between the token and the process that wants it, O(log N) per
 * entry and exit; under load a REQUEST serves many, and about 4 messages are enough.  O(log N)
 * message times before the entry, 0 when the token is here.  A queue has four entries at most.
 *
 * What it takes for granted: reliable channels.  Messages may overtake each other and arrive twice.
 * The token counts its moves, so nobody takes it twice; and a REQUEST names the last move over
 * its edge, so one that was served is not queued again.
 *
 * A process that ends gives the token to a neighbour before.  The others go on if it was a leaf.
 *
 * What breaks it: the crash of any process cuts the tree, and the crash of the token's holder
 * loses the token: the processes that need it wait for good.  A process that comes back does not
 * know where the token is, so it takes no part any more. */
#include "algorithms/mutex/mutex.h"

enum { REQUEST, TOKEN, KINDS };

#define REQUEST_FIELDS(F, R) F(R, u64, crossed, SHOWN) /* the last move over this edge */
#define TOKEN_FIELDS(F, R)                                                                         \
    F(R, u64, moves, SHOWN)                                                                        \
    F(R, u64, entries, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, moves, INNER)         /* of the token when it was last here */                       \
    F(R, u64, entries, INNER)       /* made with it by then */                                     \
    F(R, u64, crossed_up, INNER)    /* the last move over the edge to the parent, */               \
    F(R, u64, crossed_left, INNER)  /* to the first child, */                                      \
    F(R, u64, crossed_right, INNER) /* and to the second */                                        \
    F(R, pid, toward, SHOWN) /* the neighbour nearer to the token; myself when it is here */       \
    F(R, u32, phase, INNER)                                                                        \
    F(R, pid, first, IF_SET) /* the queue, CV_NOBODY after its end: */                             \
    F(R, pid, second, IF_SET)                                                                      \
    F(R, pid, third, IF_SET)                                                                       \
    F(R, pid, fourth, IF_SET)                                                                      \
    F(R, u64, asked, INNER) /* a REQUEST of mine is under way */

CV_RECORD(request, REQUEST_FIELDS);
CV_RECORD(token, TOKEN_FIELDS);
CV_RECORD(state, STATE_FIELDS);

/* ---- The queue: at most two children, the parent and myself, each once ---- */

static bool queued(const struct state *s, cv_pid p) {
    return s->first == p || s->second == p || s->third == p || s->fourth == p;
}

static void push(struct state *s, cv_pid p) {
    cv_pid *end = !s->first    ? &s->first
                  : !s->second ? &s->second
                  : !s->third  ? &s->third
                               : &s->fourth;
    cv_assert(*end == CV_NOBODY);
    *end = p;
}

static cv_pid pop(struct state *s) {
    cv_pid p = s->first;
    s->first = s->second, s->second = s->third, s->third = s->fourth, s->fourth = CV_NOBODY;
    return p;
}

/* ---- The tree ---- */

static cv_pid parent(cv_pid p) { return p / 2; }

static bool adjacent(cv_pid p, cv_pid q) { return parent(p) == q || parent(q) == p; }

static uint64_t *crossed(struct state *s, cv_pid self, cv_pid neighbour) {
    if (neighbour == parent(self)) return &s->crossed_up;
    return neighbour == 2 * self ? &s->crossed_left : &s->crossed_right;
}

/* The token starts at the root, so it is upward of every other process. */
static void start(struct state *s, const struct cv_env *env) {
    s->toward = env->self == 1 ? env->self : parent(env->self);
}

/* ---- The token ---- */

static void use_token(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->toward != env->self || s->phase == INSIDE || !s->first) return;
    cv_pid next = pop(s);
    s->asked = 0;
    if (next == env->self) {
        s->phase = INSIDE;
        s->entries++;
        cv_tell(out, CV_ENTERED, s->entries);
        return;
    }
    s->toward = next;
    *crossed(s, env->self, next) = ++s->moves;
    cv_send(out, next, TOKEN, token, .moves = s->moves, .entries = s->entries);
}

/* Somebody who asks for it is in the queue, and has got it. */
static void hand_on(struct state *s, const struct cv_env *env, cv_pid to, struct cv_out *out) {
    if (s->toward != env->self || s->phase != IDLE || !adjacent(to, env->self)) return;
    push(s, to);
    use_token(s, env, out);
}

static void ask_for_token(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->toward == env->self || !s->first || s->asked) return;
    s->asked = 1;
    cv_send(out, s->toward, REQUEST, request, .crossed = *crossed(s, env->self, s->toward));
}

static void receive(struct state *s, const struct cv_env *env, const struct cv_event *e,
                    struct cv_out *out) {
    uint64_t *last = crossed(s, env->self, e->from);
    if (e->kind == REQUEST) {
        const struct request *m = e->body;
        if (m->crossed < *last || queued(s, e->from)) return; /* a duplicate */
        push(s, e->from);
    } else {
        const struct token *m = e->body;
        if (m->moves <= s->moves) return; /* a duplicate */
        s->toward = env->self;
        s->moves = *last = m->moves;
        s->entries = m->entries;
    }
    use_token(s, env, out);
    ask_for_token(s, env, out);
}

static void on_call(struct state *s, const struct cv_env *env, uint32_t what, struct cv_out *out) {
    if (what == CV_ACQUIRE && s->phase == IDLE) {
        s->phase = WAITING;
        push(s, env->self);
    } else if (what == CV_RELEASE && s->phase == INSIDE) {
        s->phase = IDLE;
        cv_tell(out, CV_LEFT, 0);
    }
    use_token(s, env, out);
    ask_for_token(s, env, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (s->phase == GONE) return;
    if (e->type == CV_RECV && adjacent(e->from, env->self))
        receive(s, env, e, out);
    else if (e->type == CV_CALL)
        on_call(s, env, e->arg, out);
    else if (e->type == CV_HAND_ON)
        hand_on(s, env, e->arg, out);
    else if (e->type == CV_START)
        start(s, env);
    else if (e->type == CV_RESTART)
        s->phase = GONE;
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    (void)env;
    layout->patient = true;
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE("REQUEST", request),
                                                 CV_TABLE("TOKEN", token)};

CV_ALGORITHM(raymond) = {
    .name = "raymond",
    .tolerates = "duplicates and disorder; a crash blocks",
    .summary = "a token on a tree, asked for along the path to it",
    .paper =
        "Raymond, A tree-based algorithm for distributed mutual exclusion, ACM TOCS 7(1), 1989",
    .cost = "O(log N)",
    .delay = "O(log N)",
    CV_MACHINE,
    .problem = CV_MUTEX,
    .traits = CV_FENCED | CV_HANDS_ON | CV_NO_WAY_BACK,
};
