/* maekawa and ricart-agrawala-majority: each process has one vote, and gives it to one at a time.
 *
 *   requester                           each member of its quorum, itself among them
 *     idle    --REQUEST--> all          queues it by (clock, process); when its vote is free,
 *     waiting <--GRANT--                the first in the queue gets it
 *     inside  with enough votes; afterwards  --RELEASE--> all
 *
 * maekawa: the quorum is a set of about sqrt(N) processes, any two of which intersect, and all of
 * its votes are needed.  ricart-agrawala-majority: the quorum is everyone, and a majority of the
 * votes is enough.  GRANT is called OK there, and FAILED is NOT-OK.  So an OK is a vote, and is
 * held until it is released.
 *
 * Votes can split so that nobody has enough.  Then votes for later requests move to the earliest:
 *   - A request that must wait behind another is told FAILED: at once, or when it is overtaken in
 *     the queue.  The second case is Sanders's correction of Maekawa.
 *   - When a request precedes the one that has the vote, the voter sends  --INQUIRE-->  to the
 *     holder of its vote.  The holder answers  --YIELD-->  if it has FAILED elsewhere, or as soon
 *     as it has, unless it is inside by then.  Its request goes back into the queue, whose first
 *     gets the vote.
 * So the earliest request of all gets every vote that it needs, after at most those inside.  With
 * the option `plain` these messages are left out, and the split is a deadlock.
 *
 * Cost, for quorums of K (N for the majority): 3(K-1) messages per entry and exit when nobody else
 * wants in; 4(K-1) under a steady load, when everyone is told FAILED first; 6(K-1) at the worst,
 * when every vote has to be taken back from another.  2 message times before the entry.
 *
 * What it takes for granted: reliable channels.  Messages may overtake each other and arrive twice:
 * requests and votes have numbers.
 *
 * What breaks it: a crash blocks those that need the vote of the dead process, until it comes back.
 * With a majority it blocks nobody, as long as fewer than half are dead and none of them had asked.
 * The vote and the last request are the durable prefix.  A process that comes back releases what
 * it asked for and says BACK, and those that wait for its vote ask again.  One of them may have it
 * already, because the GRANT was lost in the crash; it gets the same vote again.  With amnesia the
 * process votes twice, and two may be inside. */
#include "algorithms/mutex/mutex.h"
#include "algorithms/mutex/quorum_sets.h"

enum { REQUEST, RELEASE, FAILED, BACK, GRANT, INQUIRE, YIELD, KINDS };
static const uint16_t first_about_a_vote = GRANT;
enum { PLAIN, OPTIONS }; /* the majority has no option; it reads as 0 */
enum { NOT_ASKED, ASKED, GRANTED, REFUSED };

#define NUMBERED_FIELDS(F, R) F(R, u64, number, SHOWN) /* the clock of the request */
#define VOTE_FIELDS(F, R)                                                                          \
    F(R, u64, number, SHOWN)                                                                       \
    F(R, u64, serial, INNER) /* of the vote, by its giver */
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, asked, INNER)  /* the clock of my newest request */                                  \
    F(R, u64, voted, INNER)  /* the clock of the request that has my vote */                       \
    F(R, u64, serial, INNER) /* of the vote */                                                     \
    F(R, pid, holder, SHOWN) /* of my vote; durable up to here */                                  \
    F(R, u32, phase, INNER)                                                                        \
    F(R, u64, clock, INNER)                                                                        \
    F(R, queue, queue, SHOWN)   /* of those that wait for my vote */                               \
    F(R, u32, inquired, INNER)  /* I have asked the holder to give it back */                      \
    F(R, u32, members, INNER)   /* of my quorum */                                                 \
    F(R, u32, needed, INNER)    /* votes to enter */                                               \
    F(R, u32, granted, IF_SET)  /* votes that I have */                                            \
    F(R, u32, refused, INNER)   /* members whose newest answer is FAILED, or that I yielded to */  \
    F(R, u32, inquiries, INNER) /* INQUIREs that I have not answered */
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, number, INNER)   /* the newest request seen from this process */                     \
    F(R, u64, serial, INNER)   /* the newest vote seen from it */                                  \
    F(R, u32, answer, INNER)   /* to my request */                                                 \
    F(R, u32, inquired, INNER) /* it wants its vote back */

CV_RECORD(numbered, NUMBERED_FIELDS);
CV_RECORD(vote, VOTE_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static struct cv_links links(struct state *s) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), 1};
}

/* ---- Messages; those to itself are handled at once ---- */

static void handle(struct state *s, const struct cv_env *env, cv_pid from, uint16_t kind,
                   uint64_t number, uint64_t serial, struct cv_out *out);

static void send_or_handle(struct state *s, const struct cv_env *env, cv_pid to, uint16_t kind,
                           uint64_t number, uint64_t serial, struct cv_out *out) {
    if (to == env->self)
        handle(s, env, to, kind, number, serial, out);
    else if (kind >= first_about_a_vote)
        cv_send(out, to, kind, vote, .number = number, .serial = serial);
    else
        cv_send(out, to, kind, numbered, .number = number);
}

static struct quorum_set my_quorum(const struct state *s, const struct cv_env *env) {
    bool all = s->members == env->processes;
    return all ? quorum_of_all(env->processes) : quorum_set(env->processes);
}

static void send_to_quorum(struct state *s, const struct cv_env *env, uint16_t kind,
                           struct cv_out *out) {
    struct quorum_set set = my_quorum(s, env);
    for (uint32_t i = 0; i < set.size; i++)
        send_or_handle(s, env, quorum_member(&set, env->processes, env->self, i), kind, s->asked, 0,
                       out);
}

/* ---- The voter ---- */

/* Later requests mostly arrive later, so the search starts at the end. */
static void enqueue(struct state *s, cv_pid p) {
    struct cv_links l = links(s);
    uint64_t number = row_of(s, p)->number;
    cv_pid before = s->queue.last;
    while (before && precedes(number, p, row_of(s, before)->number, before))
        before = cv_link(l, before)->prev;
    cv_pid after = before ? cv_link(l, before)->next : s->queue.first;
    *cv_link(l, p) = (struct cv_link){.next = after, .prev = before};
    *(before ? &cv_link(l, before)->next : &s->queue.first) = p;
    *(after ? &cv_link(l, after)->prev : &s->queue.last) = p;
}

static bool before_holder(struct state *s, cv_pid p) {
    return precedes(row_of(s, p)->number, p, s->voted, s->holder);
}

static void vote_for_next(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->holder || !s->queue.first) return;
    s->holder = cv_queue_pop(&s->queue, links(s));
    s->voted = row_of(s, s->holder)->number;
    s->serial++;
    s->inquired = 0;
    cv_save(out);
    send_or_handle(s, env, s->holder, GRANT, s->voted, s->serial, out);
}

/* p has joined the queue while another process has the vote. */
static void refuse_or_inquire(struct state *s, const struct cv_env *env, cv_pid p,
                              struct cv_out *out) {
    if (s->queue.first != p || !before_holder(s, p)) {
        send_or_handle(s, env, p, FAILED, row_of(s, p)->number, 0, out);
        return;
    }
    bool inquire = !s->inquired;
    cv_pid overtaken = row_of(s, p)->link.next;
    s->inquired = 1;
    if (overtaken && before_holder(s, overtaken)) /* it has not been told FAILED yet */
        send_or_handle(s, env, overtaken, FAILED, row_of(s, overtaken)->number, 0, out);
    if (inquire) send_or_handle(s, env, s->holder, INQUIRE, s->voted, s->serial, out);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (number <= row->number) return; /* a duplicate, or released already */
    if (s->holder == p && number < s->voted) return;
    if (s->holder == p && number == s->voted) { /* the vote was saved, and lost in my crash */
        row->number = number;
        send_or_handle(s, env, p, GRANT, number, s->serial, out);
        return;
    }
    if (s->clock < number) s->clock = number;
    if (s->holder == p) s->holder = CV_NOBODY; /* its RELEASE is on the way, or was lost */
    if (cv_queued(&s->queue, links(s), p)) cv_queue_remove(&s->queue, links(s), p);
    row->number = number;
    enqueue(s, p);
    vote_for_next(s, env, out);
    if (s->holder != p && !env->option[PLAIN]) refuse_or_inquire(s, env, p, out);
}

static void on_release(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (s->holder == p && s->voted <= number) {
        s->holder = CV_NOBODY;
        cv_save(out);
    } else if (cv_queued(&s->queue, links(s), p) && row->number <= number) {
        cv_queue_remove(&s->queue, links(s), p); /* it had enough votes without mine, or crashed */
    }
    if (row->number < number) row->number = number; /* its REQUEST may still be on the way */
    vote_for_next(s, env, out);
}

static void on_yield(struct state *s, const struct cv_env *env, cv_pid p, uint64_t serial,
                     struct cv_out *out) {
    if (s->holder != p || s->serial != serial) return;
    s->holder = CV_NOBODY;
    row_of(s, p)->number = s->voted; /* the voter may have forgotten it in a crash */
    enqueue(s, p);
    vote_for_next(s, env, out);
}

/* ---- The requester ---- */

static void acquire(struct state *s, const struct cv_env *env, struct cv_out *out) {
    struct quorum_set set = my_quorum(s, env);
    s->phase = WAITING;
    s->asked = ++s->clock;
    s->granted = s->refused = s->inquiries = 0;
    for (uint32_t i = 0; i < set.size; i++) {
        struct row *row = row_of(s, quorum_member(&set, env->processes, env->self, i));
        row->answer = ASKED;
        row->inquired = 0;
    }
    cv_save(out);
    send_to_quorum(s, env, REQUEST, out);
}

static void yield_to(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    struct row *row = row_of(s, p);
    s->granted--, s->refused++;
    s->inquiries -= row->inquired;
    row->answer = REFUSED;
    row->inquired = 0;
    send_or_handle(s, env, p, YIELD, s->asked, row->serial, out);
}

/* After a first refusal, every member that has inquired gets its vote back. */
static void yield_to_all(struct state *s, const struct cv_env *env, struct cv_out *out) {
    struct quorum_set set = my_quorum(s, env);
    for (uint32_t i = 0; i < set.size && s->inquiries; i++) {
        cv_pid p = quorum_member(&set, env->processes, env->self, i);
        if (s->phase == WAITING && row_of(s, p)->inquired) yield_to(s, env, p, out);
    }
}

static void on_failed(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (row->answer != ASKED) return; /* overtaken by the vote, or a duplicate */
    row->answer = REFUSED;
    s->refused++;
    yield_to_all(s, env, out);
}

static void on_grant(struct state *s, cv_pid p, uint64_t serial, struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (row->answer == NOT_ASKED || serial <= row->serial) return; /* a duplicate */
    row->serial = serial;
    if (row->answer == GRANTED) return; /* it was given again, and is still one vote */
    s->refused -= row->answer == REFUSED;
    row->answer = GRANTED;
    if (++s->granted < s->needed) return;
    s->phase = INSIDE;
    cv_tell(out, CV_ENTERED, 0);
}

static void on_inquire(struct state *s, const struct cv_env *env, cv_pid p, uint64_t serial,
                       struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (serial > row->serial) on_grant(s, p, serial, out); /* the INQUIRE overtook the GRANT */
    if (s->phase != WAITING || serial < row->serial || row->answer != GRANTED || row->inquired)
        return;
    if (s->refused) {
        yield_to(s, env, p, out);
    } else {
        row->inquired = 1;
        s->inquiries++;
    }
}

/* p has lost its queue, and everything that was sent to it while it was down. */
static void on_back(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (s->phase == WAITING && row->answer == REFUSED)
        send_or_handle(s, env, p, YIELD, s->asked, row->serial,
                       out); /* p may believe that I have its vote */
    if (s->phase == WAITING && (row->answer == ASKED || row->answer == REFUSED))
        send_or_handle(s, env, p, REQUEST, s->asked, 0, out);
    if (s->phase == IDLE && s->asked) send_or_handle(s, env, p, RELEASE, s->asked, 0, out);
}

/* ---- Both ---- */

static void handle(struct state *s, const struct cv_env *env, cv_pid from, uint16_t kind,
                   uint64_t number, uint64_t serial, struct cv_out *out) {
    bool wanted = s->phase == WAITING && number == s->asked;
    if (kind == REQUEST)
        on_request(s, env, from, number, out);
    else if (kind == RELEASE)
        on_release(s, env, from, number, out);
    else if (kind == YIELD)
        on_yield(s, env, from, serial, out);
    else if (kind == BACK)
        on_back(s, env, from, out);
    else if (kind == FAILED && wanted)
        on_failed(s, env, from, out);
    else if (kind == GRANT && wanted) /* a later one is released with the others */
        on_grant(s, from, serial, out);
    else if (kind == INQUIRE && wanted)
        on_inquire(s, env, from, serial, out);
}

static void receive(struct state *s, const struct cv_env *env, const struct cv_event *e,
                    struct cv_out *out) {
    const struct numbered *m = e->body;
    const struct vote *vote = e->body;
    handle(s, env, e->from, e->kind, m->number, e->kind >= first_about_a_vote ? vote->serial : 0,
           out);
}

static void step(struct state *s, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (e->type == CV_RECV) {
        receive(s, env, e, out);
    } else if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        acquire(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        s->phase = IDLE;
        cv_tell(out, CV_LEFT, 0);
        send_to_quorum(s, env, RELEASE, out);
    } else if (e->type == CV_RESTART) {
        s->clock = s->asked > s->voted ? s->asked : s->voted;
        if (s->asked) send_to_quorum(s, env, RELEASE, out); /* what it asked for or held before */
        cv_send(out, CV_OTHERS, BACK, numbered, .number = s->asked);
    }
}

static void step_maekawa(void *state, const struct cv_env *env, const struct cv_event *e,
                         struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_START || e->type == CV_RESTART)
        s->members = s->needed = quorum_set(env->processes).size;
    step(s, env, e, out);
}

static void step_majority(void *state, const struct cv_env *env, const struct cv_event *e,
                          struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_START || e->type == CV_RESTART)
        s->members = env->processes, s->needed = env->processes / 2 + 1;
    step(s, env, e, out);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->durable = offsetof(struct state, phase);
    layout->sends = env->processes + CV_SENDS_DEFAULT;
    layout->patient = true;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages_maekawa[KINDS] = {
    CV_TABLE("REQUEST", numbered), CV_TABLE("RELEASE", numbered), CV_TABLE("FAILED", numbered),
    CV_TABLE("BACK", numbered),    CV_TABLE("GRANT", vote),       CV_TABLE("INQUIRE", vote),
    CV_TABLE("YIELD", vote),
};
static const struct cv_record messages_majority[KINDS] = {
    CV_TABLE("REQUEST", numbered), CV_TABLE("RELEASE", numbered), CV_TABLE("NOT-OK", numbered),
    CV_TABLE("BACK", numbered),    CV_TABLE("OK", vote),          CV_TABLE("INQUIRE", vote),
    CV_TABLE("YIELD", vote),
};
static const struct cv_option options[OPTIONS] = {
    [PLAIN] = {"plain", "without FAILED, INQUIRE and YIELD: it deadlocks", CV_FLAG, 0, 0, 1},
};

CV_ALGORITHM(maekawa) = {
    .name = "maekawa",
    .tolerates = "duplicates, disorder and restarts; a crash blocks those whose quorum it is in",
    .summary = "all votes of a quorum of about sqrt(N) processes",
    .paper =
        "Maekawa, A sqrt(N) algorithm for mutual exclusion, ACM TOCS 3(2), 1985; Sanders, 1987",
    .cost = "3(K-1) .. 6(K-1)",
    .delay = "2",
    .state = &state_table,
    .messages = messages_maekawa,
    .message_count = KINDS,
    CV_OPTIONS,
    .layout = layout,
    .step = step_maekawa,
    .problem = CV_MUTEX,
};
CV_ALGORITHM(ricart_agrawala_majority) = {
    .name = "ricart-agrawala-majority",
    .tolerates = "duplicates, disorder and restarts; a dead minority",
    .summary =
        "OK or NOT-OK from everyone; a majority of OKs is enough, and each is held until release",
    .paper =
        "the lecture's mitigation of Ricart-Agrawala; Tanenbaum & van Steen; votes as in Maekawa",
    .cost = "3(N-1) .. 6(N-1)",
    .delay = "2",
    .state = &state_table,
    .messages = messages_majority,
    .message_count = KINDS,
    .layout = layout,
    .step = step_majority,
    .problem = CV_MUTEX,
};
