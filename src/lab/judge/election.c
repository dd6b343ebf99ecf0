#include "lab/judge/election.h"

#include <stdlib.h>

#include "base/parse.h"
#include "language/language.h"

const char *const election_property_name[ELECTION_PROPERTIES] = {N_("safety"),
                                                                 N_("liveness"),
                                                                 N_("termination"),
                                                                 N_("uniqueness"),
                                                                 N_("agreement"),
                                                                 N_("stability"),
                                                                 N_("log_matching"),
                                                                 N_("leader_completeness"),
                                                                 N_("state_machine_safety")};

typedef char name_text[ROSTER_NAME_MAX];

static char *name_of(const struct election_judge *judge, cv_pid p, char *buffer) {
    return roster_name(judge->roster, p, buffer);
}

void election_judge_open(struct election_judge *judge, struct arena *arena,
                         const struct roster *roster, const struct election_rules *rules) {
    *judge = (struct election_judge){.roster = roster, .rules = *rules};
    judge->of = arena_take(arena, ((size_t)roster->processes + 1) * sizeof *judge->of);
    judge->live = roster->processes;
}

static void forget(struct election_judge *judge, cv_pid p) {
    struct elector *e = &judge->of[p];
    judge->decided -= e->decided;
    judge->leaders -= e->leads;
    judge->leading_sum -= e->leads ? p : 0;
    e->decided = e->leads = false;
}

/* Another leader; where terms count, of the same one, or else one that led in it. */
static cv_pid other_leader(const struct election_judge *judge, cv_pid p, uint32_t term) {
    cv_pid former = CV_NOBODY;
    for (cv_pid q = 1; q <= judge->roster->processes; q++) {
        const struct elector *e = &judge->of[q];
        if (q == p || (judge->rules.terms && e->term_led != term)) continue;
        if (e->leads) return q;
        if (judge->rules.terms) former = q;
    }
    return former;
}

static void judge_second(struct election_judge *judge, uint64_t now, cv_pid p, uint32_t term) {
    name_text first, second;
    bool looks = judge->leaders || (judge->rules.terms && judge->elections);
    cv_pid other = looks ? other_leader(judge, p, term) : CV_NOBODY;
    if (!other) return;
    name_of(judge, other, first);
    name_of(judge, p, second);
    if (!judge->of[other].leads) {
        verdict_violated(&judge->verdict[UNIQUENESS], now,
                         _("%s came to lead in term %u, in which %s had led"), second, term, first);
    } else if (judge->rules.apart(judge->rules.context, other, p)) {
        judge->split_brain = true;
        verdict_violated(&judge->verdict[UNIQUENESS], now,
                         _("split-brain: %s leads one part of the network and %s another"), first,
                         second);
    } else {
        verdict_violated(&judge->within_parts, now, _("%s and %s both lead"), first, second);
        verdict_violated(&judge->verdict[UNIQUENESS], now, _("%s came to lead while %s leads"),
                         second, first);
    }
    if (!judge->culprit[0]) judge->culprit[0] = other, judge->culprit[1] = p;
}

static void judge_change(struct election_judge *judge, uint64_t now, cv_pid p) {
    name_text before, after;
    cv_pid latest = judge->latest;
    judge->latest = p;
    judge->elections++;
    if (!latest || latest == p || judge->of[latest].crashed || judge->of[latest].failed_since ||
        judge->rules.apart(judge->rules.context, latest, p))
        return;
    judge->unexplained++;
    verdict_violated(&judge->verdict[STABILITY], now, _("%s took the lead from %s, which was well"),
                     name_of(judge, p, after), name_of(judge, latest, before));
}

static void decide(struct election_judge *judge, uint64_t now, cv_pid p, const struct cv_tell *tell,
                   bool leads) {
    struct elector *e = &judge->of[p];
    bool led = e->leads && e->term == tell->term;
    bool news =
        !e->decided || e->leader_id != tell->arg || e->leads != leads || e->term != tell->term;
    forget(judge, p);
    if (leads && !led) {
        judge_second(judge, now, p, tell->term);
        judge_change(judge, now, p);
        e->failed_since = false;
        e->term_led = tell->term;
    }
    e->decided = true;
    e->leads = leads;
    e->leader_id = tell->arg;
    e->term = tell->term;
    judge->decided++;
    judge->leaders += leads;
    judge->leading_sum += leads ? p : 0;
    if (news) judge->decided_us = now;
}

void election_judge_told(struct election_judge *judge, uint64_t now, cv_pid p,
                         const struct cv_tell *tell) {
    switch (tell->what) {
    case CV_ELECTED: decide(judge, now, p, tell, true); break;
    case CV_FOLLOWS: decide(judge, now, p, tell, false); break;
    case CV_LEADERLESS: forget(judge, p); break;
    case CV_ROUND:
        if (tell->arg > judge->rounds) judge->rounds = tell->arg;
        break;
    default: cv_assert(!"what an election tells");
    }
}

void election_judge_crash(struct election_judge *judge, cv_pid p) {
    forget(judge, p);
    judge->of[p].crashed = judge->of[p].failed_since = true;
    judge->live--;
}

void election_judge_recover(struct election_judge *judge, cv_pid p) {
    judge->of[p].crashed = false;
    judge->live++;
}

void election_judge_partition(struct election_judge *judge) {
    for (cv_pid p = 1; p <= judge->roster->processes; p++)
        if (judge->of[p].leads) judge->of[p].failed_since = true;
}

cv_pid election_judge_leader(const struct election_judge *judge) {
    return judge->leaders == 1 ? (cv_pid)judge->leading_sum : CV_NOBODY;
}

bool election_judge_settled(const struct election_judge *judge) {
    return judge->leaders == 1 && judge->decided == judge->live;
}

/* ---- The end ---- */

/* Whether a is the better candidate. */
static bool better(const struct election_judge *judge, cv_pid a, cv_pid b) {
    const struct election_rules *rules = &judge->rules;
    if (!rules->weights[a] || !rules->weights[b]) return rules->weights[a]; /* 0 may not lead */
    bool above = rules->weights[a] != rules->weights[b] ? rules->weights[a] > rules->weights[b]
                                                        : rules->ids[a] > rules->ids[b];
    return rules->preference == CV_LOWEST ? !above : above;
}

static cv_pid process_of(const struct election_judge *judge, uint64_t id) {
    for (cv_pid p = 1; p <= judge->roster->processes; p++)
        if (judge->rules.ids[p] == id) return p;
    return CV_NOBODY;
}

/* A part of the network: the process that ought to lead it, and the first follower found in it with
 * its leader. */
struct part {
    cv_pid best, example, leader;
    uint64_t leader_id;
};

/* Judges whether p follows the right process; `leader` is CV_NOBODY when it is unknown.  Where the
 * run was cut short it may follow another one soon: `value` is what a wrong one amounts to. */
static void judge_follower(struct election_judge *judge, uint64_t now, const uint32_t *part,
                           cv_pid p, cv_pid leader, cv_pid best, enum verdict_value value) {
    name_text who, whom, right;
    struct verdict *safety = &judge->verdict[SAFETY];
    if (leader && !judge->of[leader].crashed && part[leader] == part[p] &&
        judge->rules.weights[leader] && (judge->rules.preference == CV_ANYONE || leader == best))
        return;
    name_of(judge, p, who);
    name_of(judge, leader, whom);
    if (!leader || judge->of[leader].crashed)
        verdict_set(safety, value, now, _("%s follows %s, which is down"), who, _(whom));
    else if (part[leader] != part[p])
        verdict_set(safety, value, now, _("%s follows %s, which it cannot reach"), who, whom);
    else if (!judge->rules.weights[leader])
        verdict_set(safety, value, now, _("%s follows %s, whose weight is 0"), who, whom);
    else
        verdict_set(safety, value, now, _("%s follows %s, but %s is the right one"), who, whom,
                    name_of(judge, best, right));
}

static void judge_followers(struct election_judge *judge, uint64_t now, const uint32_t *part,
                            struct part *parts, enum verdict_value value) {
    name_text who, other;
    for (cv_pid p = 1; p <= judge->roster->processes; p++) {
        const struct elector *e = &judge->of[p];
        struct part *home = &parts[part[p]];
        if (e->crashed || !e->decided || !e->leader_id) continue;
        if (!home->example) {
            home->example = p;
            home->leader_id = e->leader_id;
            home->leader = process_of(judge, e->leader_id);
        }
        bool agrees = home->leader_id == e->leader_id;
        if (!agrees)
            verdict_set(&judge->verdict[AGREEMENT], value, now,
                        _("%s and %s follow different leaders"),
                        name_of(judge, home->example, other), name_of(judge, p, who));
        if (!judge->rules.anonymous)
            judge_follower(judge, now, part, p,
                           agrees ? home->leader : process_of(judge, e->leader_id), home->best,
                           value);
    }
}

/* Some process has no leader: for ever, for too long, or because the run was cut short. */
static void judge_undecided(struct election_judge *judge, uint64_t now, enum run_end end) {
    static const char *const reasons[] = {[QUIESCENT] =
                                              N_("nothing is under way that could change it"),
                                          [NO_PROGRESS] = N_("nothing has changed for too long"),
                                          [TIME_LIMIT] = N_("the run ended"),
                                          [EVENT_LIMIT] = N_("the run ended"),
                                          [LASTED] = N_("the run ended"),
                                          [ALL_SERVED] = N_("the run ended")};
    enum verdict_value value = end == QUIESCENT || end == NO_PROGRESS ? VIOLATED : UNKNOWN;
    uint32_t undecided = judge->live - judge->decided;
    struct verdict *liveness = &judge->verdict[LIVENESS],
                   *termination = &judge->verdict[TERMINATION];
    if (undecided)
        verdict_set(liveness, value, now, _("%u of %u live processes have no leader, and %s"),
                    undecided, judge->live, _(reasons[end]));
    if (judge->live == 0 && run_is_whole(end))
        verdict_set(termination, HELD, now, _("nobody is left that could lead"));
    else if (judge->elections == 0)
        verdict_set(termination, value, now, _("nobody has come to lead, and %s"), _(reasons[end]));
}

/* A run that was cut short says nothing about what would have come. */
static void hold_the_rest(struct election_judge *judge, uint64_t now, enum run_end end) {
    char lasted[32];
    format_duration(lasted, sizeof lasted, (double)now);
    for (int i = 0; i < ELECTION_PROPERTIES; i++) {
        struct verdict *verdict = &judge->verdict[i];
        if (verdict->value != UNKNOWN || *verdict->why) continue;
        bool done = i == TERMINATION && judge->elections;
        if (run_is_settled(end) || done)
            verdict->value = HELD;
        else if (run_is_whole(end)) /* it would never have ended */
            verdict_set(verdict, HELD, now, _("not violated within %s"), lasted);
        else
            verdict_set(verdict, UNKNOWN, now,
                        _("not violated within %s, when the run was cut short"), lasted);
    }
}

void election_judge_close(struct election_judge *judge, uint64_t now, enum run_end end,
                          const uint32_t *part) {
    uint32_t n = judge->roster->processes;
    struct part *parts = calloc((size_t)n + 1, sizeof *parts);
    cv_assert(parts);
    for (cv_pid p = 1; p <= n; p++) {
        cv_assert(part[p] <= n);
        if (!judge->of[p].crashed &&
            (!parts[part[p]].best || better(judge, p, parts[part[p]].best)))
            parts[part[p]].best = p;
    }
    judge_followers(judge, now, part, parts, run_is_settled(end) ? VIOLATED : UNKNOWN);
    judge_undecided(judge, now, end);
    hold_the_rest(judge, now, end);
    if (judge->rules.anonymous && judge->verdict[SAFETY].value == HELD)
        verdict_set(&judge->verdict[SAFETY], HELD, now,
                    _("without ids no process is the right one"));
    if (judge->rules.anonymous && judge->leaders > 1 && judge->verdict[AGREEMENT].value == HELD)
        verdict_set(&judge->verdict[AGREEMENT], HELD, now,
                    _("without ids nobody can tell one leader from another"));
    free(parts);
}
