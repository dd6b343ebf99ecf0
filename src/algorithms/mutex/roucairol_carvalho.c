/* roucairol-carvalho: Ricart-Agrawala in which an OK is kept until it is asked back.
 *
 * Each pair of processes shares one permission.  A process that holds the permissions of all its
 * pairs may enter, as often as it likes, without a message.
 *
 *   idle     --REQUEST--> those that hold the permission that they share with me
 *   waiting  the receiver of a REQUEST gives the permission up with OK, unless it is inside, or
 *            waits with a request that precedes this one by (clock, process): then it defers the
 *            OK.  If it gives the permission up while it waits, it asks for it back at once
 *   inside   with all permissions; afterwards  --OK--> those that were deferred
 *
 * Cost: 0 to 2(N-1) messages per entry and exit: in one wait each other process is asked at most
 * once, because a process that has answered a request cannot make an earlier one.  0 or 2 message
 * times before the entry.  At the start the lower numbered of each pair holds the permission.
 *
 * What it takes for granted: reliable channels.  Messages may overtake each other and arrive twice:
 * an OK names the request that it answers, and no request is handled twice.
 *
 * What breaks it: the crash of a process blocks, for good, those that need a permission that it
 * holds.  A process that comes back has forgotten which permissions it holds, so it must never ask
 * or answer again. */
#include "algorithms/mutex/mutex.h"

enum { REQUEST, OK, KINDS };

/* A row is in one of the two queues, or in none when the permission is here and not wanted. */
#define CLOCKED_FIELDS(F, R) F(R, u64, clock, SHOWN) /* of the request, or of the one answered */
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, clock, INNER)                                                                        \
    F(R, u64, asked, IF_SET)      /* the clock of my newest request */                             \
    F(R, queue, elsewhere, SHOWN) /* those that hold the shared permission */                      \
    F(R, queue, deferred, IF_SET) /* those that get it when I leave */                             \
    F(R, u64, phase, NAMED(PHASES))
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, asked, INNER)  /* the newest request seen */                                         \
    F(R, u32, here, INNER)   /* I hold the permission */                                           \
    F(R, u32, wanted, INNER) /* its newest request is not answered */

CV_RECORD(clocked, CLOCKED_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static struct cv_links links(struct state *s) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), 1};
}

static void start(struct state *s, const struct cv_env *env) {
    for (cv_pid p = 1; p <= env->processes; p++) {
        if (p < env->self) cv_queue_push(&s->elsewhere, links(s), p);
        row_of(s, p)->here = p > env->self;
    }
}

static void enter_if_complete(struct state *s, struct cv_out *out) {
    if (s->phase != WAITING || s->elsewhere.first) return;
    s->phase = INSIDE;
    cv_tell(out, CV_ENTERED, 0);
}

static void acquire(struct state *s, struct cv_out *out) {
    s->phase = WAITING;
    s->asked = ++s->clock;
    for (cv_pid p = s->elsewhere.first; p; p = row_of(s, p)->link.next)
        cv_send(out, p, REQUEST, clocked, .clock = s->asked);
    enter_if_complete(s, out);
}

static void give(struct state *s, cv_pid p, struct cv_out *out) {
    struct row *row = row_of(s, p);
    row->here = row->wanted = 0;
    cv_queue_push(&s->elsewhere, links(s), p);
    cv_send(out, p, OK, clocked, .clock = row->asked);
}

static void release(struct state *s, struct cv_out *out) {
    s->phase = IDLE;
    cv_tell(out, CV_LEFT, 0);
    for (cv_pid p; (p = cv_queue_pop(&s->deferred, links(s)));) give(s, p, out);
}

/* The permission is here, and p wants it. */
static void answer(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    bool waiting = s->phase == WAITING;
    if (s->phase == INSIDE || (waiting && precedes(s->asked, env->self, row_of(s, p)->asked, p))) {
        if (!cv_queued(&s->deferred, links(s), p)) cv_queue_push(&s->deferred, links(s), p);
        return;
    }
    give(s, p, out);
    if (waiting) cv_send(out, p, REQUEST, clocked, .clock = s->asked);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t clock,
                       struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (clock <= row->asked) return; /* a duplicate */
    row->asked = clock;
    row->wanted = 1;
    if (s->clock < clock) s->clock = clock;
    if (row->here) answer(s, env, p, out); /* else it overtook that OK */
}

static void on_ok(struct state *s, const struct cv_env *env, cv_pid p, uint64_t clock,
                  struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (s->phase != WAITING || clock != s->asked || row->here) return; /* a duplicate */
    row->here = 1;
    cv_queue_remove(&s->elsewhere, links(s), p);
    if (row->wanted) answer(s, env, p, out);
    enter_if_complete(s, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    const struct clocked *m = e->body;
    if (s->phase == GONE) return;
    if (e->type == CV_RECV && e->kind == REQUEST)
        on_request(s, env, e->from, m->clock, out);
    else if (e->type == CV_RECV && e->kind == OK)
        on_ok(s, env, e->from, m->clock, out);
    else if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE)
        acquire(s, out);
    else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE)
        release(s, out);
    else if (e->type == CV_START)
        start(s, env);
    else if (e->type == CV_RESTART)
        s->phase = GONE;
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->sends = env->processes + CV_SENDS_DEFAULT;
    layout->patient = true;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("REQUEST", clocked),
                                                 CV_TABLE("OK", clocked)};

CV_ALGORITHM(roucairol_carvalho) = {
    .name = "roucairol-carvalho",
    .tolerates = "duplicates and disorder; a crash blocks",
    .summary = "Ricart-Agrawala in which an OK is kept until it is asked back",
    .paper = "Carvalho & Roucairol, On mutual exclusion in computer networks, CACM 26(2), 1983",
    .cost = "0 .. 2(N-1)",
    .delay = "0 or 2",
    CV_MACHINE,
    .problem = CV_MUTEX,
    .traits = CV_NO_WAY_BACK,
};
