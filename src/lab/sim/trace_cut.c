/* Cutting a trace down to what led to a violation.
 *
 * Some entries decide it: that two processes are inside, that two lead, or what became of the
 * requests of those that wait for ever.  The cut is their causal past: what their processes did
 * before, the messages that these had received, and the past of the sendings.  So no message on
 * which the violation depends is missing.  In a long run the past is all of the run; then the cut
 * begins with the last attempts of those that are concerned, and says what is left out. */
#include <stdlib.h>
#include <string.h>

#include "lab/sim/trace.h"

enum { CUT_MAX = 400 }; /* entries that somebody would read */

struct cut {
    struct trace *trace;
    size_t end;    /* the last entry that matters */
    size_t begin;  /* of the earliest attempt that led here */
    bool *decides; /* by entry */
};

static bool is_fault(enum trace_type type) { return type >= TR_CRASH; }

static bool is_told(enum trace_type type) {
    return type == TR_ENTER || type == TR_LEAVE || type == TR_ELECTED || type == TR_FOLLOWS ||
           type == TR_LEADERLESS;
}

static void open_cut(struct cut *cut, struct trace *trace) {
    *cut = (struct cut){.trace = trace, .end = trace->count - 1, .begin = trace->count - 1};
    cut->decides = calloc(trace->count, sizeof *cut->decides);
    cv_assert(cut->decides);
}

static void decide(struct cut *cut, size_t index) { cut->decides[index] = true; }

static void begin_at(struct cut *cut, size_t index) {
    if (index < cut->begin) cut->begin = index;
}

/* ---- The past ---- */

/* A message that is lost happens to nobody. */
static bool happens_to(const struct trace_entry *entry, const bool *past) {
    return entry->process && entry->type != TR_LOST && past[entry->process];
}

/* Keeps the past of the entries that decide; returns how many entries that are. */
static size_t keep_past(struct cut *cut) {
    struct trace *trace = cut->trace;
    bool *past = calloc(trace->roster.processes + 1, 1); /* what they did before this matters */
    size_t count = 0;
    cv_assert(past);
    for (size_t i = cut->end; i > 0; i--) {
        struct trace_entry *entry = &trace->entry[i];
        if (!entry->kept && !cut->decides[i] && !happens_to(entry, past)) continue;
        entry->kept = true;
        count++;
        if (entry->type != TR_LOST) past[entry->process] = true;
        bool arrives = entry->type == TR_RECEIVE || entry->type == TR_LOST;
        if (arrives && entry->match) trace->entry[entry->match].kept = true;
    }
    free(past);
    return count;
}

/* What came before is left out, except for what was sent then and arrives later. */
static void leave_out(struct cut *cut) {
    struct trace *trace = cut->trace;
    bool *sent = calloc(cut->begin + 1, 1);
    cv_assert(sent);
    for (size_t i = cut->begin; i <= cut->end; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        if (entry->kept && entry->type == TR_RECEIVE && entry->match < cut->begin)
            sent[entry->match] = true;
    }
    for (size_t i = 1; i < cut->begin; i++) {
        trace->left_out += trace->entry[i].kept && !sent[i];
        trace->entry[i].kept = sent[i];
    }
    free(sent);
}

/* A fault that began before the cut does, and is not over by then, belongs to what led here: a
 * split of the network, and what decides or concerns a process in it. */
static void keep_lasting_faults(struct cut *cut, size_t first, const bool *involved) {
    struct trace *trace = cut->trace;
    size_t *fault = calloc(trace->roster.processes + 1, sizeof *fault); /* by pid; 0: a split */
    cv_assert(fault);
    for (size_t i = 1; i < first; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        switch (entry->type) {
        case TR_CRASH:
        case TR_PAUSE:
        case TR_PARTITION: fault[entry->process] = i; break;
        case TR_RECOVER:
        case TR_RESUME:
        case TR_HEAL: fault[entry->process] = 0; break;
        default: break;
        }
    }
    for (cv_pid p = 0; p <= trace->roster.processes; p++) {
        struct trace_entry *entry = &trace->entry[fault[p]];
        if (!fault[p] || entry->kept || (p && !involved[p] && !cut->decides[fault[p]])) continue;
        entry->kept = true;
        trace->left_out -= trace->left_out && cut->decides[fault[p]];
    }
    free(fault);
}

/* Completes the cut: the arrivals of what was sent, what the applications were told then, and the
 * faults of the processes in it. */
static void keep_context(struct cut *cut) {
    struct trace *trace = cut->trace;
    bool *involved = calloc(trace->roster.processes + 1, 1);
    size_t first = 0;
    cv_assert(involved);
    for (size_t i = 1; i <= cut->end; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        if (!entry->kept) continue;
        if (!first) first = i;
        involved[entry->process] = true;
        if (entry->type == TR_SEND && entry->match && entry->match <= cut->end)
            trace->entry[entry->match].kept = true;
    }
    for (size_t i = first ? first : 1; i <= cut->end; i++) {
        struct trace_entry *entry = &trace->entry[i];
        bool fault = is_fault(entry->type) || entry->type == TR_REFUSED;
        if (fault && (!entry->process || involved[entry->process])) entry->kept = true;
        if (is_told(entry->type) && trace->entry[entry->cause].kept) entry->kept = true;
    }
    keep_lasting_faults(cut, first, involved);
    free(involved);
}

/* A long wait repeats itself: its beginning is shown, and the faults after that. */
static void shorten(struct trace *trace) {
    size_t count = 0;
    for (size_t i = 1; i < trace->count; i++) {
        struct trace_entry *entry = &trace->entry[i];
        if (!entry->kept || ++count <= CUT_MAX || is_fault(entry->type)) continue;
        entry->kept = false;
        trace->left_later++;
    }
}

static void close_cut(struct cut *cut) {
    cut->trace->cut = true;
    if (keep_past(cut) > CUT_MAX) leave_out(cut);
    keep_context(cut);
    cut->trace->entry[0].kept = false;
    free(cut->decides);
}

/* ---- Locks ---- */

/* The last entry of that type of a process up to `end`; 0: none. */
static size_t last_of(const struct trace *trace, enum trace_type type, cv_pid p, size_t end) {
    size_t i = end;
    while (i > 0 && (trace->entry[i].type != type || trace->entry[i].process != p)) i--;
    return i;
}

/* A process waits for ever: what it did since it asked, and all that came of it, decides. */
static void decide_wait(struct cut *cut, cv_pid p, bool *follows) {
    const struct trace *trace = cut->trace;
    size_t asked = last_of(trace, TR_ASK, p, cut->end);
    begin_at(cut, asked ? asked : 1);
    for (size_t i = asked ? asked : 1; i <= cut->end; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        follows[i] = follows[i] || entry->process == p || follows[entry->cause];
        if (follows[i]) decide(cut, i);
    }
}

/* When nobody enters any more: the crashes, the pauses that do not end, and what was lost since the
 * last entry. */
static void decide_losses(struct cut *cut) {
    const struct trace *trace = cut->trace;
    bool entered = false, *resumed = calloc(trace->roster.processes + 1, 1);
    cv_assert(resumed);
    for (size_t i = cut->end; i > 0; i--) {
        const struct trace_entry *entry = &trace->entry[i];
        bool lost = entry->type == TR_LOST && !entered;
        bool paused = entry->type == TR_PAUSE && !resumed[entry->process];
        if (lost || paused || entry->type == TR_CRASH) decide(cut, i);
        entered |= entry->type == TR_ENTER;
        resumed[entry->process] |= entry->type == TR_RESUME;
    }
    free(resumed);
}

static void decide_waits(struct cut *cut, const struct mutex_judge *judge) {
    bool *follows = calloc(cut->trace->count, sizeof *follows);
    cv_assert(follows);
    for (cv_pid p = 1; p <= cut->trace->roster.processes; p++)
        if (judge->of[p].waiting) decide_wait(cut, p, follows);
    free(follows);
    decide_losses(cut);
}

static size_t overlap_at(const struct trace *trace, const struct mutex_judge *judge) {
    for (size_t i = 1; i < trace->count; i++)
        if (trace->entry[i].type == TR_ENTER && trace->entry[i].process == judge->culprit[1] &&
            trace->entry[i].time_us == judge->belief.at_us)
            return i;
    return trace->count - 1;
}

/* Two are inside.  With fencing the cut ends where the resource refuses the write. */
static void decide_overlap(struct cut *cut, const struct mutex_judge *judge) {
    struct trace *trace = cut->trace;
    size_t overlap = overlap_at(trace, judge), end = overlap;
    for (size_t i = overlap; judge->rules.fencing && i < trace->count && end == overlap; i++)
        if (trace->entry[i].type == TR_REFUSED && trace->entry[i].process == judge->culprit[0])
            end = i;
    for (int k = 0; k < 2; k++) {
        size_t entered = last_of(trace, TR_ENTER, judge->culprit[k], overlap);
        size_t asked = last_of(trace, TR_ASK, judge->culprit[k], entered);
        if (entered) decide(cut, entered);
        begin_at(cut, asked ? asked : 1);
    }
    if (end != overlap) trace->entry[end].kept = true;
    cut->end = end;
}

/* Shows the wait of a process that had become too long at that time, and the entries of others
 * during it: that they came decides, not why. */
static void keep_wait(struct trace *trace, cv_pid p, uint64_t at_us) {
    size_t to = trace->count - 1;
    for (size_t i = to; i > 0 && trace->entry[i].time_us >= at_us; i--)
        if (trace->entry[i].type == TR_ENTER && trace->entry[i].process == p) to = i;
    for (size_t i = last_of(trace, TR_ASK, p, to); i <= to; i++) {
        struct trace_entry *entry = &trace->entry[i];
        if (entry->process == p || entry->type == TR_ENTER || entry->type == TR_LEAVE)
            entry->kept = true;
    }
}

void trace_cut_lock(struct trace *trace, const struct mutex_judge *judge) {
    struct cut cut;
    if (trace->count < 2) return;
    open_cut(&cut, trace);
    if (judge->belief.value == VIOLATED) {
        decide_overlap(&cut, judge);
    } else if (judge->overtaken && judge->verdict[DEADLOCK].value != VIOLATED) {
        keep_wait(trace, judge->overtaken, judge->verdict[BOUNDED_WAIT].at_us);
        trace->cut = true;
        keep_context(&cut);
        free(cut.decides);
        shorten(trace);
        return;
    } else {
        decide_waits(&cut, judge);
    }
    close_cut(&cut);
    if (judge->belief.value != VIOLATED) shorten(trace);
}

/* ---- Elections ---- */

/* Where a process began to look for a leader, before it came to lead. */
static size_t candidacy_of(const struct trace *trace, cv_pid p, size_t leads) {
    for (size_t i = leads - 1; i > 0; i--) {
        const struct trace_entry *entry = &trace->entry[i];
        if (entry->process != p) continue;
        switch (entry->type) {
        case TR_CAMPAIGN:
        case TR_RECOVER:
        case TR_FOLLOWS:
        case TR_SUSPECT:
        case TR_ELECTED: return i;
        default: break;
        }
    }
    return 1;
}

/* Shows how both leaders came to lead; without two leaders, everything is shown. */
void trace_cut_election(struct trace *trace, const struct election_judge *judge) {
    size_t leads[2] = {0, 0};
    struct cut cut;
    if (trace->count < 2 || !judge->culprit[0]) return;
    for (size_t i = 1; i < trace->count; i++)
        for (int k = 0; k < 2; k++)
            if (trace->entry[i].type == TR_ELECTED &&
                trace->entry[i].process == judge->culprit[k] &&
                trace->entry[i].time_us <= judge->verdict[UNIQUENESS].at_us)
                leads[k] = i;
    if (!leads[0] || !leads[1]) return;
    open_cut(&cut, trace);
    size_t first = leads[0] < leads[1] ? leads[0] : leads[1];
    cut.end = leads[0] + leads[1] - first;
    for (int k = 0; k < 2; k++) {
        decide(&cut, leads[k]);
        begin_at(&cut, candidacy_of(trace, judge->culprit[k], leads[k]));
    }
    for (size_t i = first; i <= cut.end; i++) /* and what happened between the two */
        if (is_fault(trace->entry[i].type) || trace->entry[i].type == TR_FOLLOWS) decide(&cut, i);
    close_cut(&cut);
}
