/* filtered-gossip: a random few are candidates, gossip finds the best of them, all decide.
 *
 *   filter  a hash of its id and of the election's number decides whether a process is a
 *           candidate: K of the N are, on average, and others in the next election
 *   gossip  for a number of rounds each process sends the best candidate that it has heard of,
 *           the one with the least hash, to a few random processes: --GOSSIP-->
 *   decide  after the last round each process follows the best candidate that it knows
 *
 * The first GOSSIP of an election makes a process take part, in the round that it names, so one
 * initiator is enough.  Only the first half of the rounds brings new candidates; the second is for
 * agreement.  A process that has decided tells those that still gossip what it has decided:
 * --LEADER-->.
 *
 * Cost: `fanout` messages per process and round, whatever N is.  The rounds must grow with log N
 * for the same certainty, and are 2 log2 N + 6 by default: O(N log N) messages in all, O(N) when
 * `rounds` is fixed.  Memory is constant, too.
 *
 * What breaks it: chance.  A process that the best candidate has not reached decides for another
 * one, so that two lead; each additional round makes this less likely by a factor.  With
 * probability exp(-K) nobody passes the filter: a process that has heard of no candidate asks on
 * for as many rounds again, and then starts the next election, in which other processes pass.  A
 * process that comes back from a crash is no candidate in an election that went on without it, and
 * asks.  Leaders are unique only within an election, with the probability that `filter`, `fanout`
 * and `rounds` buy; each part of a split network elects for itself. */
#include "algorithms/election/election.h"
#include "base/rng.h"

enum { GOSSIP, LEADER, KINDS };
enum { FILTER, FANOUT, ROUNDS, ROUND_TIME, OPTIONS };
enum { ROUND_TIMER, TIMERS };
enum { IDLE, GOSSIPING, DECIDED };

#define GOSSIP_FIELDS(F, R)                                                                        \
    F(R, u32, election, SHOWN)                                                                     \
    F(R, pid, candidate, SHOWN)                                                                    \
    F(R, u32, round, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u32, election, SHOWN) /* its number; the durable prefix */                                \
    F(R, pid, best, SHOWN)     /* candidate heard of; the leader once it has decided */            \
    F(R, u32, phase, DRAWN("idle|gossiping|decided"))                                              \
    F(R, u32, round, SHOWN)                                                                        \
    F(R, u32, unsent, INNER) /* messages that are left in this round */

CV_RECORD(gossip, GOSSIP_FIELDS);
CV_RECORD(state, STATE_FIELDS);

/* ---- The filter ---- */

static uint64_t hash_of(const struct cv_env *env, cv_pid p, uint32_t election) {
    return rng_mix(env->ids[p] + rng_mix(election));
}

static bool passes(const struct cv_env *env, cv_pid p, uint32_t election) {
    if (!env->weights[p]) return false; /* it cannot lead */
    if (env->option[FILTER] >= env->processes) return true;
    return hash_of(env, p, election) < UINT64_MAX / env->processes * env->option[FILTER];
}

static void hear_of(struct state *s, const struct cv_env *env, cv_pid candidate) {
    if (!candidate || candidate > env->processes) return;
    if (!s->best || hash_of(env, candidate, s->election) < hash_of(env, s->best, s->election))
        s->best = candidate;
}

/* ---- Rounds ---- */

static uint64_t rounds(const struct cv_env *env) {
    uint64_t count = 6;
    if (env->option[ROUNDS] != CV_UNSET) return env->option[ROUNDS];
    for (uint32_t n = 1; n < env->processes && n < (uint32_t)1 << 31; n *= 2) count += 2;
    return count;
}

static void gossip_to(const struct state *s, cv_pid p, struct cv_out *out) {
    cv_send(out, p, GOSSIP, gossip, .election = s->election, .candidate = s->best,
            .round = s->round);
}

static void next_round(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->round++;
    cv_tell(out, CV_ROUND, s->round);
    cv_timer(out, ROUND_TIMER, env->option[ROUND_TIME], env->option[ROUND_TIME]);
    s->unsent = env->processes > 1 ? (uint32_t)env->option[FANOUT] : 0;
    if (s->unsent) cv_choose(out, env->processes - 1);
}

/* Sends its candidate to the process that was drawn. */
static void on_choice(struct state *s, const struct cv_env *env, uint32_t drawn,
                      struct cv_out *out) {
    cv_pid p = drawn + 1 < env->self ? drawn + 1 : drawn + 2;
    if (!s->unsent || s->phase != GOSSIPING || p > env->processes) return;
    gossip_to(s, p, out);
    if (--s->unsent) cv_choose(out, env->processes - 1);
}

static void give_up_leader(struct state *s, struct cv_out *out) {
    if (s->phase == DECIDED) cv_tell(out, CV_LEADERLESS, 0);
    s->phase = IDLE;
}

static void enter_election(struct state *s, uint32_t election, struct cv_out *out) {
    s->election = election;
    s->best = CV_NOBODY;
    s->round = s->unsent = 0;
    cv_save(out);
}

static void take_part(struct state *s, const struct cv_env *env, uint32_t election, uint32_t round,
                      struct cv_out *out) {
    give_up_leader(s, out);
    enter_election(s, election, out);
    s->phase = GOSSIPING;
    s->round = round;
    if (2 * (uint64_t)round <= rounds(env) && passes(env, env->self, election)) s->best = env->self;
    next_round(s, env, out);
}

static void start_next(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->election < UINT32_MAX) take_part(s, env, s->election + 1, 0, out);
}

static void decide(struct state *s, const struct cv_env *env, cv_pid leader, struct cv_out *out) {
    s->phase = DECIDED;
    s->best = leader;
    s->unsent = 0;
    cv_timer_cancel(out, ROUND_TIMER);
    if (leader == env->self)
        cv_tell_term(out, CV_ELECTED, env->id, s->election);
    else
        cv_tell_term(out, CV_FOLLOWS, env->ids[leader], s->election);
}

/* ---- Events ---- */

static void on_gossip(struct state *s, const struct cv_env *env, cv_pid from,
                      const struct gossip *m, struct cv_out *out) {
    if (m->election > s->election) take_part(s, env, m->election, m->round, out);
    if (s->phase == DECIDED)
        cv_send(out, from, LEADER, gossip, .election = s->election, .candidate = s->best);
    else if (m->election == s->election)
        hear_of(s, env, m->candidate);
    else if (s->phase == GOSSIPING)
        gossip_to(s, from, out);
}

static void on_leader(struct state *s, const struct cv_env *env, const struct gossip *m,
                      struct cv_out *out) {
    bool newer = m->election > s->election;
    if (!m->candidate || m->candidate > env->processes) return;
    if (!newer && (m->election < s->election || s->phase == DECIDED)) return;
    if (newer) {
        give_up_leader(s, out);
        enter_election(s, m->election, out);
    }
    decide(s, env, m->candidate, out);
}

static void on_round_end(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->round < rounds(env))
        next_round(s, env, out);
    else if (s->best)
        decide(s, env, s->best, out);
    else if (s->round < 2 * rounds(env))
        next_round(s, env, out);
    else
        start_next(s, env, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    bool follows = s->phase == DECIDED && s->best != env->self;
    if (e->type == CV_RECV && e->kind == GOSSIP) {
        on_gossip(s, env, e->from, e->body, out);
    } else if (e->type == CV_RECV && e->kind == LEADER) {
        on_leader(s, env, e->body, out);
    } else if (e->type == CV_CHOICE) {
        on_choice(s, env, e->arg, out);
    } else if (e->type == CV_TIMEOUT && s->phase == GOSSIPING) {
        on_round_end(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_CAMPAIGN) {
        if (s->phase == IDLE || follows) start_next(s, env, out);
    } else if (e->type == CV_DOWN) {
        if (follows && e->arg == s->best) start_next(s, env, out);
    } else if (e->type == CV_RESTART) {
        s->phase = GOSSIPING; /* without a candidate: it only asks */
        next_round(s, env, out);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    (void)env;
    layout->durable = offsetof(struct state, best);
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE("GOSSIP", gossip),
                                                 CV_TABLE("LEADER", gossip)};
static const struct cv_option options[OPTIONS] = {
    [FILTER] = {"filter", "how many candidates to expect", CV_NUMBER, 8, 1, 1000000},
    [FANOUT] = {"fanout", "how many processes to tell in each round", CV_NUMBER, 2, 1, 1000},
    [ROUNDS] = {"rounds", "how many rounds to gossip (2 log2 N + 6)", CV_NUMBER, CV_UNSET, 1,
                1000000},
    [ROUND_TIME] = {"round-time", "how long a round lasts", CV_DURATION, 5000, 1, 1000000000000},
};

CV_ALGORITHM(filtered_gossip) = {
    .name = "filtered-gossip",
    .summary = "a random few are candidates, gossip finds the best; right with high probability",
    .paper =
        "Gupta, van Renesse & Birman, A probabilistically correct leader election protocol for "
        "large groups, DISC 2000",
    .tolerates = "loss, crashes and restarts, each with high probability; no partition",
    .cost = "N fanout rounds",
    .delay = "rounds",
    CV_MACHINE,
    CV_OPTIONS,
    .timers = TIMERS,
    .problem = CV_ELECTION,
    .topology = CV_COMPLETE,
    .preference = CV_ANYONE,
    .traits = CV_TERMS | CV_USES_DETECTOR,
};
