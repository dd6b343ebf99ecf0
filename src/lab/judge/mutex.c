#include "lab/judge/mutex.h"

#include <stdio.h>

#include "base/parse.h"
#include "language/language.h"

const char *const mutex_property_name[MUTEX_PROPERTIES] = {N_("exclusion"), N_("deadlock"),
                                                           N_("starvation"), N_("bounded_wait")};

typedef char name_text[ROSTER_NAME_MAX];

static char *name_of(const struct mutex_judge *judge, cv_pid p, char *buffer) {
    return roster_name(judge->roster, p, buffer);
}

void mutex_judge_open(struct mutex_judge *judge, struct arena *arena, const struct roster *roster,
                      const struct mutex_rules *rules) {
    *judge = (struct mutex_judge){.roster = roster, .rules = *rules};
    judge->of = arena_take(arena, (roster->processes + 1) * sizeof *judge->of);
    if (!judge->rules.starved_after) {
        uint64_t competitors = roster->processes - roster->servers;
        judge->rules.starved_after = competitors < 5 ? 100 : 20 * competitors;
    }
}

void mutex_judge_request(struct mutex_judge *judge, uint64_t now, cv_pid p) {
    struct mutex_competitor *c = &judge->of[p];
    c->waiting = true;
    c->requested_us = now;
    c->entries_before = judge->entries;
    judge->waiting++;
    judge->requests++;
}

static cv_pid other_inside(const struct mutex_judge *judge, cv_pid p) {
    for (cv_pid q = 1; q <= judge->roster->processes; q++)
        if (q != p && judge->of[q].inside) return q;
    return CV_NOBODY;
}

static void judge_overlap(struct mutex_judge *judge, uint64_t now, cv_pid p) {
    judge->overlaps++;
    if (judge->belief.value == VIOLATED) return;
    name_text first, second;
    cv_pid other = other_inside(judge, p);
    judge->culprit[0] = other, judge->culprit[1] = p;
    verdict_violated(&judge->belief, now, _("%s entered while %s was inside"),
                     name_of(judge, p, second), name_of(judge, other, first));
    if (!judge->rules.fencing) judge->verdict[EXCLUSION] = judge->belief;
}

static void judge_overtakes(struct mutex_judge *judge, uint64_t now, cv_pid p) {
    uint64_t overtakes = judge->entries - judge->of[p].entries_before;
    name_text name;
    bool unbounded = judge->rules.overtakes_bound && overtakes > judge->rules.overtakes_bound;
    bool starved = overtakes >= judge->rules.starved_after;
    if (!judge->overtaken && (unbounded || starved)) judge->overtaken = p;
    if (unbounded)
        verdict_violated(
            &judge->verdict[BOUNDED_WAIT], now,
            _("others entered %llu times while %s waited, more than the bound of %llu"),
            (unsigned long long)overtakes, name_of(judge, p, name),
            (unsigned long long)judge->rules.overtakes_bound);
    for (int i = STARVATION; starved && i <= BOUNDED_WAIT; i++)
        verdict_violated(&judge->verdict[i], now, _("others entered %llu times while %s waited"),
                         (unsigned long long)overtakes, name_of(judge, p, name));
}

static void judge_wait(struct mutex_judge *judge, uint64_t now, cv_pid p) {
    const struct mutex_competitor *c = &judge->of[p];
    uint64_t overtakes = judge->entries - c->entries_before, wait = now - c->requested_us;
    if (wait > judge->wait_us_max) judge->wait_us_max = wait;
    if (overtakes > judge->overtakes_max) {
        judge->overtakes_max = overtakes;
        judge->most_overtaken = p;
    }
    judge_overtakes(judge, now, p);
}

void mutex_judge_enter(struct mutex_judge *judge, uint64_t now, cv_pid p, uint64_t token) {
    struct mutex_competitor *c = &judge->of[p];
    if (c->waiting) {
        uint64_t free_since = c->requested_us > judge->left_us ? c->requested_us : judge->left_us;
        judge->delay_us_sum += now - free_since;
        judge->wait_us_sum += now - c->requested_us;
        judge_wait(judge, now, p);
        judge->waiting--;
    }
    if (judge->inside) judge_overlap(judge, now, p);
    judge->inside++;
    judge->entries++;
    *c = (struct mutex_competitor){
        .entry = judge->entries, .token = token, .entries = c->entries + 1, .inside = true};
}

void mutex_judge_leave(struct mutex_judge *judge, uint64_t now, cv_pid p) {
    if (!judge->of[p].inside) return;
    judge->of[p].inside = false;
    judge->inside--;
    judge->left_us = now;
}

void mutex_judge_crash(struct mutex_judge *judge, uint64_t now, cv_pid p) {
    mutex_judge_leave(judge, now, p);
    if (!judge->of[p].waiting) return;
    judge_overtakes(judge, now, p); /* what was too often before the crash was too often */
    judge->of[p].waiting = false;
    judge->waiting--;
}

bool mutex_judge_write(struct mutex_judge *judge, uint64_t now, cv_pid p) {
    const struct mutex_competitor *c = &judge->of[p];
    name_text name, newest;
    judge->writes++;
    if (judge->rules.fencing && c->token < judge->newest_token) {
        judge->writes_refused++;
        return false;
    }
    if (c->entry < judge->newest_entry) judge->writes_late++;
    if (c->entry < judge->newest_entry && judge->rules.fencing)
        verdict_violated(
            &judge->verdict[EXCLUSION], now,
            _("%s wrote to the resource with token %llu although %s, which entered later, had "
              "written with token %llu"),
            name_of(judge, p, name), (unsigned long long)c->token,
            name_of(judge, judge->newest_writer, newest), (unsigned long long)judge->newest_token);
    if (c->entry >= judge->newest_entry) {
        judge->newest_entry = c->entry;
        judge->newest_writer = p;
    }
    if (c->token > judge->newest_token) judge->newest_token = c->token;
    return true;
}

/* "p1 waits", "p1 and p2 wait", "p1, p2 and 7 more wait". */
static char *waiting_names(const struct mutex_judge *judge, char *buffer, size_t size) {
    name_text names[2];
    unsigned found = 0;
    for (cv_pid p = 1; p <= judge->roster->processes && found < 2; p++)
        if (judge->of[p].waiting) name_of(judge, p, names[found++]);
    if (judge->waiting == 1)
        snprintf(buffer, size, _("%s waits"), names[0]);
    else if (judge->waiting == 2)
        snprintf(buffer, size, _("%s and %s wait"), names[0], names[1]);
    else
        snprintf(buffer, size, _("%s, %s and %u more wait"), names[0], names[1],
                 judge->waiting - 2);
    return buffer;
}

static void all(struct mutex_judge *judge, enum mutex_property first, enum verdict_value value,
                uint64_t now, const char *why) {
    for (int i = first; i < MUTEX_PROPERTIES; i++)
        verdict_set(&judge->verdict[i], value, now, "%s", why);
}

/* Some process still waits: for ever, for too long, or because the run was cut short. */
static void judge_unserved(struct mutex_judge *judge, uint64_t now, enum run_end end) {
    char who[120], why[VERDICT_WHY_MAX];
    waiting_names(judge, who, sizeof who);
    if (judge->inside && end != QUIESCENT) {
        snprintf(why, sizeof why, _("the run ended while %s and somebody is inside"), who);
        all(judge, DEADLOCK, UNKNOWN, now, why);
    } else if (end == QUIESCENT) {
        snprintf(why, sizeof why, _("%s for ever: nothing is under way that could let anyone in"),
                 who);
        all(judge, DEADLOCK, VIOLATED, now, why);
    } else if (end == NO_PROGRESS) {
        char stalled[32];
        uint64_t asked = UINT64_MAX;
        for (cv_pid p = 1; p <= judge->roster->processes; p++)
            if (judge->of[p].waiting && judge->of[p].requested_us < asked)
                asked = judge->of[p].requested_us;
        uint64_t since = asked > judge->left_us ? asked : judge->left_us;
        snprintf(why, sizeof why, _("%s, and nobody has entered for %s"), who,
                 format_duration(stalled, sizeof stalled, (double)(now - since)));
        all(judge, DEADLOCK, VIOLATED, now, why);
    } else {
        snprintf(why, sizeof why, _("the run ended while %s"), who);
        all(judge, DEADLOCK, UNKNOWN, now, why);
    }
}

/* A run that was cut short says nothing about what would have come. */
static void doubt_what_held(struct mutex_judge *judge, uint64_t now) {
    char lasted[32];
    format_duration(lasted, sizeof lasted, (double)now);
    for (int i = EXCLUSION; i < MUTEX_PROPERTIES; i++)
        if (judge->verdict[i].value == HELD)
            verdict_set(&judge->verdict[i], UNKNOWN, now,
                        _("not violated within %s, when the run was cut short"), lasted);
}

void mutex_judge_close(struct mutex_judge *judge, uint64_t now, enum run_end end) {
    name_text name;
    char wait[32];
    struct verdict *exclusion = &judge->verdict[EXCLUSION],
                   *bounded = &judge->verdict[BOUNDED_WAIT];
    for (cv_pid p = 1; p <= judge->roster->processes; p++)
        if (judge->of[p].waiting) judge_wait(judge, now, p);
    if (judge->waiting)
        judge_unserved(judge, now, end);
    else
        all(judge, DEADLOCK, HELD, now, "");
    if (exclusion->value != VIOLATED) exclusion->value = HELD;
    if (!run_is_whole(end)) doubt_what_held(judge, now);
    if (exclusion->value == HELD && judge->overlaps)
        snprintf(exclusion->why, sizeof exclusion->why,
                 _("%s, but the resource refused the older token (%llu of %llu writes refused)"),
                 judge->belief.why, (unsigned long long)judge->writes_refused,
                 (unsigned long long)judge->writes);
    if (bounded->value == HELD)
        snprintf(
            bounded->why, sizeof bounded->why,
            judge->overtakes_max == 1
                ? _("nobody waited longer than %s or was overtaken more than %llu time%s%s%s")
                : _("nobody waited longer than %s or was overtaken more than %llu times%s%s%s"),
            format_duration(wait, sizeof wait, (double)judge->wait_us_max),
            (unsigned long long)judge->overtakes_max, judge->most_overtaken ? " (" : "",
            judge->most_overtaken ? name_of(judge, judge->most_overtaken, name) : "",
            judge->most_overtaken ? ")" : "");
}

uint64_t mutex_judge_squares(const struct mutex_judge *judge) {
    uint64_t squares = 0;
    for (cv_pid p = judge->roster->servers + 1; p <= judge->roster->processes; p++)
        squares += (uint64_t)judge->of[p].entries * judge->of[p].entries;
    return squares;
}
