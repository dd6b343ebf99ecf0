/* lamport: every process keeps the whole queue, ordered by logical clocks.
 *
 *   idle     --REQUEST--> all others, which queue it  --ACK--> its sender
 *   waiting  until its request is the first in its own queue, and every other process has sent it
 *            something later, so that no earlier request can still be on the way
 *   inside   afterwards  --RELEASE--> all others, which take the request out of their queues
 *
 * Every message carries its sender's clock.  The queue is never sorted: all that matters is how
 * many other processes still block my request, and each message changes that for its sender alone.
 *
 * Cost: 3(N-1) messages per entry and exit, 2 message times before the entry.  Under load it is 1,
 * because the ACKs have arrived long ago and only the RELEASE of the previous holder is missing.
 *
 * What it takes for granted: reliable FIFO channels.  Where an ACK can overtake an earlier REQUEST
 * of its sender, two processes are inside.  Adjacent duplicates do no harm.
 *
 * What breaks it: the crash of any process blocks all others for good.  A process that comes back
 * has forgotten a queue that the others believe it keeps, so it must never ask or answer again. */
#include "algorithms/mutex/mutex.h"

enum { REQUEST, ACK, RELEASE, KINDS };

#define CLOCKED_FIELDS(F, R) F(R, u64, clock, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, clock, INNER)                                                                        \
    F(R, u64, asked, IF_SET) /* the clock of my newest request */                                  \
    F(R, u32, phase, NAMED(PHASES))                                                                \
    F(R, u32, ahead, INNER) /* processes that block my request */
#define ROW_FIELDS(F, R)                                                                           \
    F(R, u64, later, INNER)   /* whether it has sent something later than my request */            \
    F(R, u64, queued, IF_SET) /* the clock of its request in the queue; 0: none */

CV_RECORD(clocked, CLOCKED_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static void enter(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = INSIDE;
    for (cv_pid p = 1; p <= env->processes; p++) row_of(s, p)->later = 0;
    cv_tell(out, CV_ENTERED, 0);
}

static void acquire(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = WAITING;
    s->asked = ++s->clock;
    s->ahead = env->processes - 1; /* nobody can have sent anything later */
    if (s->ahead)
        cv_send(out, CV_OTHERS, REQUEST, clocked, .clock = s->asked);
    else
        enter(s, env, out);
}

static void release(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = IDLE;
    s->asked = 0;
    cv_tell(out, CV_LEFT, 0);
    if (env->processes > 1) cv_send(out, CV_OTHERS, RELEASE, clocked, .clock = s->clock);
}

static bool holds_up(const struct state *s, const struct row *row, cv_pid p, cv_pid self) {
    if (!row->later) return true; /* an earlier request may be on the way */
    return row->queued && precedes(row->queued, p, s->asked, self);
}

static void receive(struct state *s, const struct cv_env *env, const struct cv_event *e,
                    struct cv_out *out) {
    const struct clocked *m = e->body;
    struct row *row = row_of(s, e->from);
    bool held_up = s->phase == WAITING && holds_up(s, row, e->from, env->self);
    if (s->phase == WAITING && m->clock > s->asked) row->later = 1;
    if (s->clock <= m->clock) s->clock = m->clock + 1;
    if (e->kind == REQUEST) {
        row->queued = m->clock;
        cv_send(out, e->from, ACK, clocked, .clock = s->clock);
    } else if (e->kind == RELEASE) {
        row->queued = 0;
    }
    if (held_up && !holds_up(s, row, e->from, env->self) && --s->ahead == 0) enter(s, env, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (s->phase == GONE) return;
    if (e->type == CV_RECV)
        receive(s, env, e, out);
    else if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE)
        acquire(s, env, out);
    else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE)
        release(s, env, out);
    else if (e->type == CV_RESTART)
        s->phase = GONE;
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->patient = true;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("REQUEST", clocked),
    CV_TABLE("ACK", clocked),
    CV_TABLE("RELEASE", clocked),
};

CV_ALGORITHM(lamport) = {
    .name = "lamport",
    .summary = "everyone keeps the queue, ordered by logical clocks; channels must keep the order",
    .tolerates = "nothing: needs reliable channels in order; a crash blocks all",
    .paper = "Lamport, Time, clocks, and the ordering of events, CACM 21(7), 1978",
    .cost = "3(N-1)",
    .delay = "2",
    CV_MACHINE,
    .problem = CV_MUTEX,
    .traits = CV_NO_WAY_BACK,
};
