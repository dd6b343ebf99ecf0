/* ricart-agrawala: ask everyone, and enter when everyone has said OK.
 *
 *   idle     --REQUEST--> all others, with a logical clock that is above every clock heard of
 *   waiting  the receiver of a REQUEST says OK at once, unless it is inside, or waits with a
 *            request that precedes this one by (clock, process): then it defers the OK
 *   inside   when all others have said OK; afterwards  --OK--> those that were deferred
 *
 * Cost: 2(N-1) messages per entry and exit.  2(N-1) message times before the entry when they are
 * sent one after the other; 2 when all are sent at once, as here.
 *
 * What it takes for granted: reliable channels.  Messages may overtake each other and arrive twice:
 * an OK names the request that it answers, and no request is handled twice.
 *
 * What breaks it: everyone must answer, so the crash of any process blocks all others until it
 * comes back.  It has forgotten whose OK it deferred, so it says BACK, and a process that still
 * waits for its OK asks again.  Its own requests must come after those that it said OK to: a bound
 * on its clock is the durable prefix, saved ahead of the clock and not at each step.  With amnesia
 * it may ask with a clock from before an OK of its own, and two are inside. */
#include "algorithms/mutex/mutex.h"

enum { REQUEST, OK, BACK, KINDS };
enum { FIRST_CLOCK, CLOCK_APART, OPTIONS };
enum { CLOCK_AHEAD = 1000 }; /* how far the saved bound is ahead of the clock */

#define CLOCKED_FIELDS(F, R) F(R, u64, clock, SHOWN) /* of the request, or of the one answered */
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, clock_bound, INNER) /* the clock is not above it; durable up to here */              \
    F(R, u64, clock, INNER)                                                                        \
    F(R, u64, asked, IF_SET) /* the clock of my newest request */                                  \
    F(R, queue, deferred, IF_SET)                                                                  \
    F(R, u32, phase, NAMED(PHASES))                                                                \
    F(R, u32, missing, IF_SET) /* OKs that my request still needs */
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, asked, INNER)   /* the newest request seen */                                        \
    F(R, u64, allowed, INNER) /* my newest request that it said OK to */

CV_RECORD(clocked, CLOCKED_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static struct cv_links links(struct state *s) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), 1};
}

static void enter(struct state *s, struct cv_out *out) {
    s->phase = INSIDE;
    cv_tell(out, CV_ENTERED, 0);
}

static void move_clock(struct state *s, uint64_t clock, struct cv_out *out) {
    if (s->clock < clock) s->clock = clock;
    if (s->clock <= s->clock_bound) return;
    s->clock_bound = s->clock + CLOCK_AHEAD;
    cv_save(out);
}

static void acquire(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = WAITING;
    move_clock(s, s->clock + 1, out);
    s->asked = s->clock;
    s->missing = env->processes - 1;
    if (s->missing)
        cv_send(out, CV_OTHERS, REQUEST, clocked, .clock = s->asked);
    else
        enter(s, out);
}

static void release(struct state *s, struct cv_out *out) {
    s->phase = IDLE;
    cv_tell(out, CV_LEFT, 0);
    for (cv_pid p; (p = cv_queue_pop(&s->deferred, links(s)));)
        cv_send(out, p, OK, clocked, .clock = row_of(s, p)->asked);
}

static bool comes_first(const struct state *s, cv_pid self, uint64_t clock, cv_pid p) {
    if (s->phase != WAITING) return s->phase == INSIDE;
    return precedes(s->asked, self, clock, p);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t clock,
                       struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (clock <= row->asked) return; /* a duplicate */
    row->asked = clock;
    move_clock(s, clock, out);
    if (!comes_first(s, env->self, clock, p))
        cv_send(out, p, OK, clocked, .clock = clock);
    else if (!cv_queued(&s->deferred, links(s), p))
        cv_queue_push(&s->deferred, links(s), p);
}

static void on_ok(struct state *s, cv_pid p, uint64_t clock, struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (s->phase != WAITING || clock != s->asked || row->allowed == clock) return;
    row->allowed = clock;
    if (--s->missing == 0) enter(s, out);
}

static void on_back(struct state *s, cv_pid p, struct cv_out *out) {
    if (s->phase == WAITING && row_of(s, p)->allowed != s->asked)
        cv_send(out, p, REQUEST, clocked, .clock = s->asked);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    const struct clocked *m = e->body;
    if (e->type == CV_RECV && e->kind == REQUEST) {
        on_request(s, env, e->from, m->clock, out);
    } else if (e->type == CV_RECV && e->kind == OK) {
        on_ok(s, e->from, m->clock, out);
    } else if (e->type == CV_RECV && e->kind == BACK) {
        on_back(s, e->from, out);
    } else if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        acquire(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        release(s, out);
    } else if (e->type == CV_START) {
        s->clock = env->option[FIRST_CLOCK] + env->option[CLOCK_APART] * (env->self - 1);
    } else if (e->type == CV_RESTART) {
        s->clock = s->clock_bound;
        cv_send(out, CV_OTHERS, BACK, clocked, .clock = s->clock);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->durable = offsetof(struct state, clock);
    layout->sends = env->processes + CV_SENDS_DEFAULT;
    layout->patient = true;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("REQUEST", clocked),
    CV_TABLE("OK", clocked),
    CV_TABLE("BACK", clocked),
};
static const struct cv_option options[OPTIONS] = {
    [FIRST_CLOCK] = {"first-clock", "where the logical clock of the first process starts",
                     CV_NUMBER, 0, 0, 1000000000},
    [CLOCK_APART] = {"clock-apart", "how far ahead of its predecessor's each other clock starts",
                     CV_NUMBER, 0, 0, 1000000000},
};

CV_ALGORITHM(ricart_agrawala) = {
    .name = "ricart-agrawala",
    .tolerates = "duplicates, disorder and restarts; a crash blocks all until it is over",
    .summary = "everyone must say OK; a process that is inside or asked earlier defers it",
    .paper = "Ricart & Agrawala, An optimal algorithm for mutual exclusion, CACM 24(1), 1981",
    .cost = "2(N-1)",
    .delay = "2(N-1)",
    CV_MACHINE,
    CV_OPTIONS,
    .problem = CV_MUTEX,
};
