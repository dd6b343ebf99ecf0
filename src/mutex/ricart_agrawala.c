/* ricart-agrawala: ask everyone, and enter when everyone has said OK.
 *
 *   idle     --REQUEST--> all others, with a logical clock that is above every clock heard of
 *   waiting  who gets a REQUEST says OK at once unless it is inside, or waits with a request that
 *            precedes this one by (clock, process): then the OK is deferred
 *   inside   when all others have said OK; afterwards  --OK--> those that were deferred
 *
 * Cost: 2(N-1) messages per entry and exit.  2(N-1) message times before the entry when they are
 * sent one after the other; 2 when all are sent at once, as here.
 *
 * What it takes for granted: reliable channels.  Messages may overtake each other and arrive twice:
 * an OK names the request that it answers, and no request is looked at twice.
 *
 * What breaks it: everyone must answer, so the crash of any process blocks all others.  Who comes
 * back says OK to whatever was asked of it, which ends that; the clock of its last request is the
 * durable prefix, so that its next one is new to the others.  They defer that one while they wait
 * with the OK of its sender, whatever the clocks: it may have forgotten how late it is.  This
 * relies on channels that are in order and break in a crash.  With amnesia its requests seem old,
 * and it waits for ever. */
#include "mutex/mutex.h"
#include "process/queue.h"

enum { REQUEST, OK, KINDS };
enum { FIRST_CLOCK, CLOCK_APART, OPTIONS };
static const uint64_t whatever_you_asked = 0; /* no request has this clock */

#define CLOCKED_FIELDS(F, R) F(R, u64, clock, SHOWN) /* of the request, or of the one answered */
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, asked, INNER) /* the clock of my newest request */                                   \
    F(R, u64, clock, INNER) /* durable up to here */                                               \
    F(R, queue, deferred, INNER)                                                                   \
    F(R, u32, phase, INNER)                                                                        \
    F(R, u32, missing, INNER) /* OKs for my request */
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

static void acquire(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = WAITING;
    s->asked = ++s->clock;
    s->missing = env->processes - 1;
    cv_save(out);
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

static bool comes_first(const struct state *s, const struct row *row, cv_pid self, cv_pid p) {
    if (s->phase != WAITING) return s->phase == INSIDE;
    return row->allowed == s->asked || precedes(s->asked, self, row->asked, p);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t clock,
                       struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (clock <= row->asked) return; /* a duplicate */
    row->asked = clock;
    if (s->clock < clock) s->clock = clock;
    if (!comes_first(s, row, env->self, p))
        cv_send(out, p, OK, clocked, .clock = clock);
    else if (!cv_queued(&s->deferred, links(s), p))
        cv_queue_push(&s->deferred, links(s), p);
}

static void on_ok(struct state *s, cv_pid p, uint64_t clock, struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (clock == whatever_you_asked) clock = s->asked; /* it came back from a crash */
    if (s->phase != WAITING || clock != s->asked || row->allowed == clock) return;
    row->allowed = clock;
    if (--s->missing == 0) enter(s, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    const struct clocked *m = e->body;
    if (e->type == CV_RECV && e->kind == REQUEST) {
        on_request(s, env, e->from, m->clock, out);
    } else if (e->type == CV_RECV && e->kind == OK) {
        on_ok(s, e->from, m->clock, out);
    } else if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        acquire(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        release(s, out);
    } else if (e->type == CV_START) {
        s->clock = env->option[FIRST_CLOCK] + env->option[CLOCK_APART] * (env->self - 1);
    } else if (e->type == CV_RESTART) {
        s->clock = s->asked;
        cv_send(out, CV_OTHERS, OK, clocked, .clock = whatever_you_asked);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->durable = offsetof(struct state, clock);
    layout->sends = env->processes + CV_SENDS_USUAL;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("REQUEST", clocked),
                                                 CV_TABLE("OK", clocked)};
static const struct cv_option options[OPTIONS] = {
    [FIRST_CLOCK] = {"first-clock", "where the logical clock of the first process starts",
                     CV_NUMBER, 0, 0, 1000000000},
    [CLOCK_APART] = {"clock-apart", "how far ahead of it, per process, those of the others start",
                     CV_NUMBER, 0, 0, 1000000000},
};

const struct cv_algorithm cv_ricart_agrawala = {
    .name = "ricart-agrawala",
    .summary = "everyone must say OK; who is inside or asked earlier says it later",
    .paper = "Ricart & Agrawala, An optimal algorithm for mutual exclusion, CACM 24(1), 1981",
    .cost = "2(N-1)",
    .delay = "2(N-1)",
    .state = &state_table,
    .messages = messages,
    .message_count = KINDS,
    .options = options,
    .option_count = OPTIONS,
    .layout = layout,
    .step = step,
    .problem = CV_MUTEX,
};
