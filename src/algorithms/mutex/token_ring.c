/* token-ring: the process that holds the token may enter; then the token goes on round the ring.
 *
 * Cost: 1 message per entry when everyone wants in, without bound when nobody does: the token never
 * rests.  0 to N-1 message times before the entry.
 *
 * What breaks it: the crash of the holder loses the token, and the crash of anyone else breaks the
 * ring; a duplicated message is a second token.  With the option `repair` the processes act on a
 * failure detector:
 *   - They skip the dead.
 *   - A token has an epoch, and each process destroys tokens older than the newest epoch that it
 *     has heard of.
 *   - A process whose successor died sends a PROBE round the ring, with a higher epoch that no
 *     other process can choose.  Every process that the PROBE visits has then heard of that epoch.
 *     The PROBE ends at the holder, whose token takes the epoch on, and at a process that knows a
 *     newer one.  If it comes back to its maker, no older token can let anybody in any more, and
 *     the maker makes a new one.  A process that destroys a token sends a PROBE too, and a PROBE
 *     that got lost is sent again after a random time.
 * A wrong suspicion still makes two tokens: the slow holder of the old one is not visited.  So do
 * two crashes close together, when some processes still skip one that is back and send a PROBE
 * past it.  An entry with the old token has an older epoch, so a resource that checks fencing
 * tokens refuses it.  Repair relies on connections that break in a crash: what was sent to one
 * incarnation of a process is not received by the next. */
#include "algorithms/mutex/mutex.h"

enum { TOKEN, PROBE, KINDS };
enum { REPAIR, AGAIN, OPTIONS };
enum { PROBE_TIMER, TIMERS };

#define TOKEN_FIELDS(F, R)                                                                         \
    F(R, u32, epoch, SHOWN)                                                                        \
    F(R, u32, entries, SHOWN) /* made with this token so far */
#define PROBE_FIELDS(F, R)                                                                         \
    F(R, u32, epoch, SHOWN)                                                                        \
    F(R, pid, maker, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u32, epoch, IF_SET)          /* the newest heard of; the durable prefix */                \
    F(R, u32, entries, INNER)         /* of the token here */                                      \
    F(R, u8, here, NAMED("no|token")) /* the token is here */                                      \
    F(R, u8, phase, INNER)                                                                         \
    F(R, u16, probing, INNER) /* a PROBE of mine is under way */
#define ROW_FIELDS(F, R) F(R, u8, down, INNER)

CV_RECORD(token, TOKEN_FIELDS);
CV_RECORD(probe, PROBE_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static cv_pid successor(struct state *s, const struct cv_env *env) {
    cv_pid p = env->self;
    do p = p % env->processes + 1;
    while (env->option[REPAIR] && p != env->self && row_of(s, p)->down);
    return p;
}

static void hear_of(struct state *s, uint32_t epoch, struct cv_out *out) {
    if (epoch == s->epoch) return;
    s->epoch = epoch;
    cv_save(out);
}

/* A token that is here takes the epoch on. */
static bool begin_epoch(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->epoch > UINT32_MAX - env->processes) return false; /* they are exhausted, or forged */
    hear_of(s, (uint32_t)next_epoch(s->epoch, env), out);
    s->entries = 0;
    return true;
}

static void enter(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->entries + 1 == TOKENS_PER_EPOCH) begin_epoch(s, env, out);
    s->phase = INSIDE;
    s->entries++;
    cv_tell(out, CV_ENTERED, fencing_token(s->epoch, s->entries));
}

/* The token is here: use it, or send it on.  The last live process keeps it. */
static void use_token(struct state *s, const struct cv_env *env, struct cv_out *out) {
    cv_pid next = successor(s, env);
    s->here = 1;
    if (s->phase == WAITING) {
        enter(s, env, out);
    } else if (s->phase == IDLE && next != env->self) {
        s->here = 0;
        cv_send(out, next, TOKEN, token, .epoch = s->epoch, .entries = s->entries);
    }
}

static void stop_probing(struct state *s, struct cv_out *out) {
    if (s->probing) cv_timer_cancel(out, PROBE_TIMER);
    s->probing = 0;
}

static void take_token(struct state *s, const struct cv_env *env, uint32_t epoch, uint32_t entries,
                       struct cv_out *out) {
    hear_of(s, epoch, out);
    s->entries = entries;
    stop_probing(s, out);
    use_token(s, env, out);
}

static void probe_ring(struct state *s, const struct cv_env *env, struct cv_out *out) {
    cv_pid next = successor(s, env);
    if (!begin_epoch(s, env, out) || s->here) return;
    if (next == env->self) {
        take_token(s, env, s->epoch, 0, out);
        return;
    }
    s->probing = 1;
    uint64_t round_us = env->processes * env->option[AGAIN];
    cv_timer(out, PROBE_TIMER, round_us, 2 * round_us);
    cv_send(out, next, PROBE, probe, .epoch = s->epoch, .maker = env->self);
}

/* A process that destroys a token probes the ring, because the token may have been the last.
 * Without repairs there is one epoch only, and another one is forged. */
static void on_token(struct state *s, const struct cv_env *env, const struct token *m,
                     struct cv_out *out) {
    if (s->here) {
        if (m->epoch > s->epoch) { /* it replaces the one here */
            hear_of(s, m->epoch, out);
            s->entries = m->entries;
        }
    } else if (m->epoch >= s->epoch) {
        take_token(s, env, m->epoch, m->entries, out);
    } else if (env->option[REPAIR] && !s->probing) {
        probe_ring(s, env, out);
    }
}

static void on_down(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    bool was_successor = successor(s, env) == p;
    row_of(s, p)->down = 1;
    if (was_successor) probe_ring(s, env, out);
}

static void on_probe(struct state *s, const struct cv_env *env, const struct probe *m,
                     struct cv_out *out) {
    if (m->maker == env->self) {
        if (s->probing && m->epoch == s->epoch) take_token(s, env, s->epoch, 0, out);
        return;
    }
    if (m->epoch <= s->epoch) return;
    hear_of(s, m->epoch, out); /* my own PROBE stays open: this one's maker may be dead */
    cv_pid next = successor(s, env);
    if (!s->here && next != env->self)
        cv_send(out, next, PROBE, probe, .epoch = m->epoch, .maker = m->maker);
}

static void on_call(struct state *s, const struct cv_env *env, uint32_t what, struct cv_out *out) {
    if (what == CV_ACQUIRE && s->phase == IDLE) {
        s->phase = WAITING;
        if (s->here) enter(s, env, out);
    } else if (what == CV_RELEASE && s->phase == INSIDE) {
        s->phase = IDLE;
        cv_tell(out, CV_LEFT, 0);
        use_token(s, env, out);
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RECV && e->kind == TOKEN) {
        on_token(s, env, e->body, out);
    } else if (e->type == CV_RECV && e->kind == PROBE && env->option[REPAIR]) {
        on_probe(s, env, e->body, out);
    } else if (e->type == CV_CALL) {
        on_call(s, env, e->arg, out);
    } else if (e->type == CV_START && env->self == 1) {
        take_token(s, env, 0, 0, out);
    } else if (e->type == CV_TIMEOUT && s->probing) {
        probe_ring(s, env, out);
    } else if (e->type == CV_DOWN && env->option[REPAIR]) {
        on_down(s, env, e->arg, out);
    } else if (e->type == CV_UP && env->option[REPAIR]) {
        row_of(s, e->arg)->down = 0;
        if (s->here && s->phase == IDLE) use_token(s, env, out);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->option[REPAIR] ? env->processes : 0;
    layout->first = 1;
    layout->durable = env->option[REPAIR] ? offsetof(struct state, entries) : 0;
    layout->patient = !env->option[REPAIR];
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("TOKEN", token),
                                                 CV_TABLE("PROBE", probe)};
static const struct cv_option options[OPTIONS] = {
    [REPAIR] = {"repair", "act on the failure detector: skip the dead, replace a lost token",
                CV_FLAG, 0, 0, 1},
    [AGAIN] = {"probe-again", "send a lost PROBE again after this time per process", CV_DURATION,
               10000, 1, 1000000000},
};

CV_ALGORITHM(token_ring) = {
    .name = "token-ring",
    .summary = "a token goes round; its holder may enter",
    .tolerates =
        "with repair and a right detector one crash at a time, more with fencing; else nothing",
    .paper = "Le Lann, IFIP Congress 1977; the repair after Chang, Singhal & Liu's token recovery",
    .cost = "1 .. unbounded",
    .delay = "0 .. N-1",
    CV_MACHINE,
    CV_OPTIONS,
    .timers = TIMERS,
    .problem = CV_MUTEX,
    .traits = CV_FENCED | CV_USES_DETECTOR | CV_NEVER_QUIESCENT,
};
