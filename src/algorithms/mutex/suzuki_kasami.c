/* suzuki-kasami: a token that stays where it was last used, and a request that goes to everyone.
 *
 *   idle     if the token is here: inside, without a message.  Else  --REQUEST--> all others
 *   waiting  a process that has the token and is idle sends it on at once
 *   inside   afterwards every process with a request that the token has not served joins the
 *            queue that travels with the token, and the first in the queue gets both
 *
 * A request is the number of entries that its sender has asked for.  The token carries how many
 * of them it has served for each process, so everyone can tell whether a request is still open.
 *
 * Cost: 0 or N messages per entry and exit, the token of length N; 0 or 2 message times before the
 * entry.  At the start the token is at the first process.
 *
 * What it takes for granted: reliable channels.  Messages may overtake each other and arrive twice:
 * an old request is already served, and a token counts its moves, so that nobody takes it twice.
 *
 * A process that ends gives the token away before.
 *
 * What breaks it: the crash of the process that has the token, or is about to get it, blocks all
 * others for good.  Any other process may come back, if what was sent to its old incarnation does
 * not reach the new one: the number of its last request is the durable prefix.  But it has missed
 * the requests that were sent while it was down, and when it gets the token next, their senders
 * may wait on. */
#include "algorithms/mutex/mutex.h"

enum { REQUEST, TOKEN, KINDS };

#define REQUEST_FIELDS(F, R) F(R, u64, number, SHOWN)
#define TOKEN_FIELDS(F, R)                                                                         \
    F(R, u64, moves, INNER)                                                                        \
    F(R, u64, entries, SHOWN)                                                                      \
    F(R, queue, queue, SHOWN)
#define TOKEN_ROW_FIELDS(F, R)                                                                     \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, served, INNER) /* the newest request that the token has served */
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, number, INNER)   /* of my newest request; the durable prefix */                      \
    F(R, u64, moves, INNER)    /* of the token when it was last here */                            \
    F(R, u64, entries, INNER)  /* made with the token here */                                      \
    F(R, queue, queue, IF_SET) /* of the token here */                                             \
    F(R, u32, phase, INNER)                                                                        \
    F(R, u32, here, NAMED("no|token")) /* the token is here */
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, served, INNER) /* this and the link belong to the token here */                      \
    F(R, u64, asked, INNER)  /* the newest request heard of */

CV_RECORD(request, REQUEST_FIELDS);
CV_RECORD(token, TOKEN_FIELDS);
CV_RECORD(token_row, TOKEN_ROW_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static struct cv_links links(struct state *s) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), 1};
}

static void enter(struct state *s, struct cv_out *out) {
    s->phase = INSIDE;
    s->entries++;
    cv_tell(out, CV_ENTERED, s->entries);
}

/* What the token carries goes with it; nothing of it stays here. */
static void send_token(struct state *s, const struct cv_env *env, cv_pid to, struct cv_out *out) {
    struct token_row *written =
        cv_send_rows(out, to, TOKEN, token, token_row, env->processes, .moves = s->moves + 1,
                     .entries = s->entries, .queue = s->queue);
    for (cv_pid p = 1; p <= env->processes; p++) {
        struct row *row = row_of(s, p);
        written[p - 1] = (struct token_row){.link = row->link, .served = row->served};
        row->link = (struct cv_link){0};
        row->served = 0;
    }
    s->queue = (struct cv_queue){0};
    s->entries = 0;
    s->here = 0;
}

static bool is_open(const struct row *row) { return row->asked > row->served; }

/* The token is here and not needed.  Processes join the queue in the order of the ring, starting
 * after this one, so that no process is always the last. */
static void pass_on(struct state *s, const struct cv_env *env, struct cv_out *out) {
    row_of(s, env->self)->served = s->number;
    for (uint32_t i = 0; i + 1 < env->processes; i++) {
        cv_pid p = (env->self + i) % env->processes + 1;
        if (is_open(row_of(s, p)) && !cv_queued(&s->queue, links(s), p))
            cv_queue_push(&s->queue, links(s), p);
    }
    cv_pid next = cv_queue_pop(&s->queue, links(s));
    if (next == env->self)
        next = cv_queue_pop(&s->queue, links(s)); /* only a forged token says so */
    if (next) send_token(s, env, next, out);
}

static void acquire(struct state *s, struct cv_out *out) {
    s->phase = WAITING;
    s->number++;
    cv_save(out);
    if (s->here)
        enter(s, out);
    else
        cv_send(out, CV_OTHERS, REQUEST, request, .number = s->number);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (row->asked < number) row->asked = number;
    if (s->here && s->phase == IDLE && is_open(row)) send_token(s, env, p, out);
}

static void on_token(struct state *s, const struct cv_env *env, const struct token *m,
                     struct cv_out *out) {
    const struct token_row *written = (const void *)(m + 1);
    if (m->moves <= s->moves) return; /* a duplicate */
    s->here = 1;
    s->moves = m->moves;
    s->entries = m->entries;
    s->queue = m->queue;
    for (cv_pid p = 1; p <= env->processes; p++) {
        row_of(s, p)->link = written[p - 1].link;
        row_of(s, p)->served = written[p - 1].served;
    }
    if (s->phase == WAITING)
        enter(s, out);
    else /* its request was lost in a crash */
        pass_on(s, env, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RECV && e->kind == REQUEST) {
        const struct request *m = e->body;
        on_request(s, env, e->from, m->number, out);
    } else if (e->type == CV_RECV && e->kind == TOKEN) {
        on_token(s, env, e->body, out);
    } else if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        acquire(s, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        s->phase = IDLE;
        cv_tell(out, CV_LEFT, 0);
        pass_on(s, env, out);
    } else if (e->type == CV_HAND_ON) {
        if (s->here && s->phase == IDLE) send_token(s, env, e->arg, out);
    } else if (e->type == CV_START) {
        s->here = env->self == 1;
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->durable = offsetof(struct state, moves);
    layout->message_rows = env->processes;
    layout->patient = true;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("REQUEST", request),
                                                 CV_TABLE_ROWS("TOKEN", token, token_row)};

CV_ALGORITHM(suzuki_kasami) = {
    .name = "suzuki-kasami",
    .tolerates = "duplicates and disorder; the crash of the token's holder loses it",
    .summary = "a token that rests where it was last used; a request goes to everyone",
    .paper = "Suzuki & Kasami, A distributed mutual exclusion algorithm, ACM TOCS 3(4), 1985",
    .cost = "0 or N",
    .delay = "0 or 2",
    CV_MACHINE,
    .problem = CV_MUTEX,
    .traits = CV_FENCED | CV_HANDS_ON,
};
