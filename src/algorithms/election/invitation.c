/* invitation: groups that find each other and merge; each has one coordinator, its leader.
 *
 *   look    a coordinator asks all that are not in its group now and then:
 *           --ARE_YOU_COORDINATOR-->, and only coordinators reply: <--COORDINATOR--
 *   merge   the best of those that found each other opens a new group and invites the others and
 *           its own members: --INVITATION-->, which a coordinator passes on to its members;
 *           <--ACCEPT--; after a while --READY--> all that accepted: they have a leader again
 *   check   a member asks its coordinator now and then: --ARE_YOU_THERE-->, <--HERE--; a member
 *           that gets no answer, or no READY, is alone in a group of its own, and looks; if it
 *           finds nobody, twice, it leads itself
 *
 * The best is the coordinator of the largest group, so that a process that comes back joins the
 * others and not the others it; then weight and id decide.  A coordinator that is not the best
 * waits for the better ones first.  One of weight 0 can be invited, but neither invites nor leads.
 *
 * Nothing here relies on timeouts being right.  A wrong one splits a group for a while, and never
 * confuses two: everything belongs to a group, and group numbers, which survive crashes, contain
 * the number of the process that opened it.
 *
 * Cost: N(N-1) ARE_YOU_COORDINATOR and as many answers when all start at once, then 3 per process
 * that joins; 2(N-1) for each check.
 *
 * What is promised: one leader in each group, and after a while one group in each part of the
 * network.  While groups merge there are several, and several leaders, so uniqueness is judged
 * within a group: the group's number is the term.  Two coordinators that are well become one when
 * they meet: such a merge is a change of leader that stability does not excuse.
 *
 * What breaks it: amnesia, for then a group's number is given out twice; and messages that mostly
 * take longer than the timeouts, for then groups fall apart as fast as they merge. */
#include "algorithms/election/election.h"

enum { ARE_YOU_COORDINATOR, COORDINATOR, ARE_YOU_THERE, HERE, INVITATION, ACCEPT, READY, KINDS };
enum { TRANSMISSION, PROCESSING, PERIOD, OPTIONS };
enum { PERIOD_TIMER, ANSWER_TIMER, TIMERS };
/* Phases; the first three are those of a coordinator that can be invited. */
enum {
    COORDINATES,
    LOOKS,     /* it waits for COORDINATOR */
    HESITATES, /* it lets better ones go first */
    GATHERS,   /* it waits for ACCEPT */
    JOINS,     /* it waits for READY */
    MEMBER,
    CHECKS, /* it waits for HERE */
};
enum { CHECKS_MAX = 3 }; /* consecutive checks without an answer */

#define GROUP_FIELDS(F, R) F(R, u32, group, SHOWN)
#define SIZE_FIELDS(F, R)                                                                          \
    F(R, u32, group, SHOWN)                                                                        \
    F(R, u32, members, SHOWN) /* without the coordinator */
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u32, counter, INNER) /* groups that I have opened; the durable prefix */                  \
    F(R, u32, group, SHOWN)                                                                        \
    F(R, pid, coordinator, SHOWN)                                                                  \
    F(R, u32, members, INNER) /* of my group, without me */                                        \
    F(R, u16, phase, INNER)                                                                        \
    F(R, u8, told, INNER)       /* the application knows its leader */                             \
    F(R, u8, unanswered, INNER) /* consecutive checks, or looks that found nobody */
#define ROW_FIELDS(F, R)                                                                           \
    F(R, u32, newest, INNER)     /* the newest of its groups that invited me */                    \
    F(R, u32, group_size, INNER) /* of a coordinator that was found; 0: none */                    \
    F(R, u32, member, INNER)     /* whether it is in my group */

CV_RECORD(group, GROUP_FIELDS);
CV_RECORD(size, SIZE_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static uint64_t answer_us(const struct cv_env *env) {
    return 2 * env->option[TRANSMISSION] + env->option[PROCESSING];
}

static void wait_for(struct state *s, const struct cv_env *env, uint16_t phase, uint64_t answers,
                     struct cv_out *out) {
    s->phase = phase;
    cv_timer(out, ANSWER_TIMER, answers * answer_us(env), answers * answer_us(env));
}

/* ---- Groups ---- */

static cv_pid opener(const struct cv_env *env, uint32_t group) {
    return (group - 1) % env->processes + 1;
}

static void open_group(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->counter++;
    cv_assert(s->counter < UINT32_MAX / env->processes); /* 4,000 groups of a million processes */
    s->group = s->counter * env->processes + env->self;
    s->coordinator = env->self;
    s->unanswered = 0;
    cv_save(out);
}

static void tell_leader(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->told || !env->weights[s->coordinator]) return;
    s->told = 1;
    cv_tell_term(out, s->coordinator == env->self ? CV_ELECTED : CV_FOLLOWS,
                 env->ids[s->coordinator], s->group);
}

static void tell_no_leader(struct state *s, struct cv_out *out) {
    if (s->told) cv_tell(out, CV_LEADERLESS, 0);
    s->told = 0;
}

static bool can_be_invited(const struct state *s) { return s->phase <= HESITATES; }

/* ---- A coordinator ---- */

static void look(struct state *s, const struct cv_env *env, struct cv_out *out) {
    bool asked = false;
    s->phase = COORDINATES;
    for (cv_pid p = 1; p <= env->processes; p++) {
        row_of(s, p)->group_size = 0;
        if (p == env->self || row_of(s, p)->member) continue;
        cv_send(out, p, ARE_YOU_COORDINATOR, size, .group = s->group, .members = s->members);
        asked = true;
    }
    if (asked)
        wait_for(s, env, LOOKS, 1, out);
    else
        tell_leader(s, env, out);
}

/* Invites its members, and for a group of its own also the coordinators that it found. */
static void invite(struct state *s, const struct cv_env *env, uint32_t group, struct cv_out *out) {
    for (cv_pid p = 1; p <= env->processes; p++) {
        struct row *row = row_of(s, p);
        if (row->member || (group == s->group && row->group_size))
            cv_send(out, p, INVITATION, group, .group = group);
        row->member = row->group_size = 0;
    }
    s->members = 0;
}

static void merge(struct state *s, const struct cv_env *env, struct cv_out *out) {
    tell_no_leader(s, out);
    open_group(s, env, out);
    invite(s, env, s->group, out);
    wait_for(s, env, GATHERS, 2, out);
}

static bool is_better(struct state *s, const struct cv_env *env, cv_pid p) {
    uint32_t theirs = row_of(s, p)->group_size, mine = s->members + 1;
    if (!env->weight || !env->weights[p]) return !env->weight && env->weights[p];
    if (theirs != mine) return theirs > mine;
    return better_candidate(env->weights[p], env->ids[p], env->weight, env->id);
}

static void has_looked(struct state *s, const struct cv_env *env, struct cv_out *out) {
    uint32_t others = 0, better = 0;
    for (cv_pid p = 1; p <= env->processes; p++) {
        if (!row_of(s, p)->group_size) continue;
        others++;
        better += is_better(s, env, p);
    }
    if (better) {
        wait_for(s, env, HESITATES, 2 * (uint64_t)better, out);
    } else if (others && env->weight) {
        merge(s, env, out);
    } else {
        s->phase = COORDINATES;
        if (s->unanswered) tell_leader(s, env, out); /* others may be about to give up, too */
        s->unanswered = 1;
    }
}

static void has_gathered(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = COORDINATES;
    for (cv_pid p = 1; p <= env->processes; p++)
        if (row_of(s, p)->member) cv_send(out, p, READY, group, .group = s->group);
    tell_leader(s, env, out);
}

/* Only coordinators ask, so a member of this group that asks has left it. */
static void on_question(struct state *s, const struct cv_env *env, cv_pid p, uint32_t members,
                        struct cv_out *out) {
    struct row *row = row_of(s, p);
    s->members -= row->member;
    row->member = 0;
    if (!can_be_invited(s)) return;
    cv_send(out, p, COORDINATOR, size, .group = s->group, .members = s->members);
    if (s->phase == COORDINATES) look(s, env, out);
    row->group_size = members + 1;
}

static void on_accept(struct state *s, const struct cv_env *env, cv_pid p, uint32_t group,
                      struct cv_out *out) {
    if (s->coordinator != env->self || group != s->group || row_of(s, p)->member) return;
    row_of(s, p)->member = 1;
    s->members++;
    if (s->phase != GATHERS) cv_send(out, p, READY, group, .group = group); /* it came late */
}

/* ---- A member ---- */

static void stay_alone(struct state *s, const struct cv_env *env, struct cv_out *out) {
    tell_no_leader(s, out);
    open_group(s, env, out);
    look(s, env, out);
}

static void check(struct state *s, const struct cv_env *env, struct cv_out *out) {
    cv_send(out, s->coordinator, ARE_YOU_THERE, group, .group = s->group);
    wait_for(s, env, CHECKS, 1, out);
}

/* Anyone may invite a coordinator, but only its coordinator may invite a member. */
static void on_invitation(struct state *s, const struct cv_env *env, cv_pid from, uint32_t group,
                          struct cv_out *out) {
    cv_pid inviter = opener(env, group);
    bool by_my_own = (s->phase == MEMBER || s->phase == CHECKS) && from == s->coordinator;
    if (!group || inviter == env->self || group <= row_of(s, inviter)->newest) return;
    if (!can_be_invited(s) && !by_my_own) return;
    row_of(s, inviter)->newest = group;
    invite(s, env, group, out);
    tell_no_leader(s, out);
    s->group = group;
    s->coordinator = inviter;
    cv_send(out, inviter, ACCEPT, group, .group = group);
    wait_for(s, env, JOINS, 4, out);
}

static void become_member(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = MEMBER;
    s->unanswered = 0;
    cv_timer_cancel(out, ANSWER_TIMER);
    tell_leader(s, env, out);
}

static void on_message(struct state *s, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    const struct size *m = e->body; /* every message begins with its group */
    bool mine = m->group == s->group && e->from == s->coordinator;
    switch (e->kind) {
    case ARE_YOU_COORDINATOR: on_question(s, env, e->from, m->members, out); break;
    case COORDINATOR:
        if (s->phase == LOOKS) row_of(s, e->from)->group_size = m->members + 1;
        break;
    case ARE_YOU_THERE:
        if (s->coordinator == env->self && m->group == s->group && row_of(s, e->from)->member)
            cv_send(out, e->from, HERE, group, .group = s->group);
        break;
    case HERE:
    case READY:
        if (mine && s->phase == (e->kind == HERE ? CHECKS : JOINS)) become_member(s, env, out);
        break;
    case INVITATION: on_invitation(s, env, e->from, m->group, out); break;
    case ACCEPT: on_accept(s, env, e->from, m->group, out); break;
    }
}

/* ---- Events ---- */

static void on_answer_timeout(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase == LOOKS)
        has_looked(s, env, out);
    else if (s->phase == HESITATES && !env->weight)
        s->phase = COORDINATES;
    else if (s->phase == HESITATES)
        merge(s, env, out);
    else if (s->phase == GATHERS)
        has_gathered(s, env, out);
    else if (s->phase == CHECKS && ++s->unanswered < CHECKS_MAX)
        check(s, env, out);
    else if (s->phase == JOINS || s->phase == CHECKS)
        stay_alone(s, env, out);
}

static void look_around(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase == COORDINATES)
        look(s, env, out);
    else if (s->phase == MEMBER)
        check(s, env, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    bool boots = e->type == CV_START || e->type == CV_RESTART;
    bool period_ends = e->type == CV_TIMEOUT && e->arg == PERIOD_TIMER;
    if (boots || period_ends)
        cv_timer(out, PERIOD_TIMER, (env->option[PERIOD] + 1) / 2, env->option[PERIOD]);
    if (boots) open_group(s, env, out);
    if (e->type == CV_RECV)
        on_message(s, env, e, out);
    else if (e->type == CV_TIMEOUT && e->arg == ANSWER_TIMER)
        on_answer_timeout(s, env, out);
    else if (period_ends || e->type == CV_RESTART || (e->type == CV_CALL && e->arg == CV_CAMPAIGN))
        look_around(s, env, out);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->durable = offsetof(struct state, group);
    layout->sends = env->processes + CV_SENDS_DEFAULT;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("ARE_YOU_COORDINATOR", size),
                                                 CV_TABLE("COORDINATOR", size),
                                                 CV_TABLE("ARE_YOU_THERE", group),
                                                 CV_TABLE("HERE", group),
                                                 CV_TABLE("INVITATION", group),
                                                 CV_TABLE("ACCEPT", group),
                                                 CV_TABLE("READY", group)};
static const struct cv_option options[OPTIONS] = {
    [TRANSMISSION] = {"transmission", "Tt: the longest that a message usually takes", CV_DURATION,
                      10000, 0, 1000000000},
    [PROCESSING] = {"processing", "Tp: the longest that an answer usually takes", CV_DURATION, 1000,
                    1, 1000000000},
    [PERIOD] = {"period", "how often to look and to check", CV_DURATION, 200000, 1, 1000000000000},
};

CV_ALGORITHM(invitation) = {
    .name = "invitation",
    .summary = "groups that merge, each with its leader; for networks that split",
    .paper = "Garcia-Molina, Elections in a distributed computing system, IEEE ToC 1982",
    .tolerates = "crashes, loss and partitions; restarts, not amnesia",
    .cost = "O(N^2), and 2(N-1) per period",
    .delay = "3T",
    CV_MACHINE,
    CV_OPTIONS,
    .timers = TIMERS,
    .problem = CV_ELECTION,
    .topology = CV_COMPLETE,
    .preference = CV_ANYONE,
    .traits = CV_TERMS | CV_NEVER_QUIESCENT | CV_UNBOUNDED,
};
