#include "lab/judge/implications.h"

#include "lab/judge/election.h"
#include "lab/judge/mutex.h"

const struct implication implications[] = {
    {CV_MUTEX, DEADLOCK, 1u << STARVATION, false, "who waits for ever in a deadlock, starves"},
    {CV_MUTEX, STARVATION, 1u << BOUNDED_WAIT, false, "who starves, waits beyond every bound"},
    {CV_ELECTION, TERMINATION, 1u << LIVENESS | 1u << SAFETY, false,
     "where nobody ever led, processes have no leader, or one that is none"},
    {CV_ELECTION, AGREEMENT, 1u << SAFETY, true,
     "of two that follow different leaders one follows the wrong one"},
    {0},
};

bool implication_applies(const struct implication *implication,
                         const struct cv_algorithm *algorithm) {
    bool chosen = algorithm->preference != CV_ANYONE && !(algorithm->traits & CV_ANONYMOUS);
    return implication->problem == algorithm->problem && (chosen || !implication->chosen);
}

static bool all_hold(unsigned properties, const enum verdict_value *values) {
    for (; properties; properties &= properties - 1)
        if (values[__builtin_ctz(properties)] != HELD) return false;
    return true;
}

const struct implication *verdicts_contradict(const struct cv_algorithm *algorithm,
                                              const enum verdict_value *values) {
    for (const struct implication *i = implications; i->because; i++)
        if (implication_applies(i, algorithm) && values[i->violated] == VIOLATED &&
            all_hold(i->others, values))
            return i;
    return NULL;
}
