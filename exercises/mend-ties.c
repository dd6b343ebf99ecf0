/* Ask everybody, and enter when everybody has said OK (Ricart & Agrawala).
 *
 *   idle     --REQUEST--> all others, with a clock above every clock heard of
 *   waiting  the receiver of a REQUEST says OK at once, unless it is inside, or waits with a
 *            request that comes first: then it defers the OK
 *   inside   when all others have said OK; afterwards  --OK--> those that were deferred
 *
 * What is wrong: who comes first when both clocks are the same? */
#include <conclave/algorithm.h>

/* ---- What is sent and what is remembered ---- */

enum { REQUEST, OK, KINDS };
enum { IDLE, WAITING, INSIDE };

#define CLOCKED_FIELDS(F, R) F(R, u64, clock, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, clock, INNER)                                                                        \
    F(R, u64, asked, SHOWN) /* the clock of my request */                                          \
    F(R, queue, deferred, SHOWN)                                                                   \
    F(R, u32, phase, NAMED("idle|waiting|inside"))                                                 \
    F(R, u32, missing, INNER) /* OKs that my request still needs */
#define ROW_FIELDS(F, R) F(R, link, link, INNER)

CV_RECORD(clocked, CLOCKED_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS); /* one for each process */

static struct cv_links links(struct state *s) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), 1};
}

/* ---- What happens ---- */

static void enter(struct state *s, struct cv_out *out) {
    s->phase = INSIDE;
    cv_tell(out, CV_ENTERED, 0);
}

static void acquire(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = WAITING;
    s->asked = ++s->clock;
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
        cv_send(out, p, OK, clocked, .clock = s->clock);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t clock,
                       struct cv_out *out) {
    (void)env;
    if (s->clock < clock) s->clock = clock;
    bool mine_first = s->phase == INSIDE || (s->phase == WAITING && s->asked < clock);
    if (mine_first)
        cv_queue_push(&s->deferred, links(s), p);
    else
        cv_send(out, p, OK, clocked, .clock = s->clock);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RECV && e->kind == REQUEST) {
        const struct clocked *m = e->body;
        on_request(s, env, e->from, m->clock, out);
    } else if (e->type == CV_RECV && e->kind == OK && s->phase == WAITING) {
        if (--s->missing == 0) enter(s, out);
    } else if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        acquire(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        release(s, out);
    }
}

/* ---- The description ---- */

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->sends = env->processes + CV_SENDS_DEFAULT;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("REQUEST", clocked),
    CV_TABLE("OK", clocked),
};

CV_ALGORITHM(ties) = {
    .name = "ties",
    .summary = "everybody must say OK; ties are not broken",
    .tolerates = "nothing",
    .paper = "Ricart & Agrawala, CACM 24(1), 1981, without its order of ties",
    .cost = "2(N-1)",
    .delay = "2(N-1)",
    CV_MACHINE,
    .problem = CV_MUTEX,
};
