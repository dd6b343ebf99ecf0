#include "lab/judge/log.h"

#include "language/language.h"

static const struct cv_log_entry *entry_at(const struct cv_log *log, uint64_t index) {
    return &log->entry[index - log->first];
}

static bool differ(const struct cv_log *a, const struct cv_log *b, uint64_t index) {
    return memcmp(entry_at(a, index), entry_at(b, index), sizeof *a->entry) != 0;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Where both logs have their first entry. */
static uint64_t common_first(const struct cv_log *a, const struct cv_log *b) {
    return a->first > b->first ? a->first : b->first;
}

/* The last index at which both have entries of one term; 0: there is none. */
static uint64_t last_match(const struct cv_log *a, const struct cv_log *b) {
    for (uint64_t i = least(a->last, b->last); i >= common_first(a, b); i--)
        if (entry_at(a, i)->term == entry_at(b, i)->term) return i;
    return 0;
}

/* Each of these finds the first index at which a property is violated; 0: it is not. */

static uint64_t breaks_matching(const struct cv_log *a, const struct cv_log *b) {
    uint64_t match = last_match(a, b);
    for (uint64_t i = common_first(a, b); i <= match; i++)
        if (differ(a, b, i)) return i;
    return 0;
}

static uint64_t breaks_machines(const struct cv_log *a, const struct cv_log *b) {
    for (uint64_t i = common_first(a, b); i <= least(a->commit, b->commit); i++)
        if (differ(a, b, i)) return i;
    return 0;
}

/* What another one of its term, or of an older one, knows to be committed. */
static uint64_t breaks_completeness(const struct cv_log *leader, const struct cv_log *other) {
    if (!leader->leads || other->term > leader->term) return 0;
    if (other->commit > leader->last) return leader->last + 1;
    for (uint64_t i = common_first(leader, other); i <= other->commit; i++)
        if (differ(leader, other, i)) return i;
    return 0;
}

uint32_t logs_break(const struct cv_log *a, const struct cv_log *b) {
    uint32_t broken = 0;
    if (breaks_matching(a, b)) broken |= 1u << LOG_MATCHING;
    if (breaks_machines(a, b)) broken |= 1u << STATE_MACHINE_SAFETY;
    if (breaks_completeness(a, b) || breaks_completeness(b, a)) broken |= 1u << LEADER_COMPLETENESS;
    return broken;
}

static void judge_leader(struct election_judge *judge, uint64_t now, cv_pid p,
                         const struct cv_log *leader, cv_pid q, const struct cv_log *other) {
    char first[ROSTER_NAME_MAX], second[ROSTER_NAME_MAX];
    uint64_t index = breaks_completeness(leader, other);
    if (index)
        verdict_violated(
            &judge->verdict[LEADER_COMPLETENESS], now,
            _("%s leads in term %u without entry %llu, which %s knows to be committed"),
            roster_name(judge->roster, p, first), leader->term, (unsigned long long)index,
            roster_name(judge->roster, q, second));
}

void log_judge_pair(struct election_judge *judge, uint64_t now, cv_pid p, const struct cv_log *a,
                    cv_pid q, const struct cv_log *b) {
    char first[ROSTER_NAME_MAX], second[ROSTER_NAME_MAX];
    uint64_t index;
    if (!logs_break(a, b)) return;
    roster_name(judge->roster, p, first);
    roster_name(judge->roster, q, second);
    if ((index = breaks_matching(a, b)))
        verdict_violated(&judge->verdict[LOG_MATCHING], now,
                         _("the logs of %s and %s have entry %llu of one term, but not the same "
                           "entry %llu"),
                         first, second, (unsigned long long)last_match(a, b),
                         (unsigned long long)index);
    if ((index = breaks_machines(a, b)))
        verdict_violated(&judge->verdict[STATE_MACHINE_SAFETY], now,
                         _("%s and %s know different entries %llu to be committed, of terms %u and "
                           "%u"),
                         first, second, (unsigned long long)index, entry_at(a, index)->term,
                         entry_at(b, index)->term);
    judge_leader(judge, now, p, a, q, b);
    judge_leader(judge, now, q, b, p, a);
}
