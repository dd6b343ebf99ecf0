/* What the verdicts of one run say about each other. */
#ifndef CV_LAB_JUDGE_IMPLICATIONS_H
#define CV_LAB_JUDGE_IMPLICATIONS_H

#include "lab/judge/judge.h"
#include "process/process.h"

struct implication { /* where one property is violated, so is another */
    enum cv_problem problem;
    int violated;
    unsigned others; /* bit per property: one of these is violated, too */
    bool chosen;     /* only where one process is the right leader */
    const char *because;
};

/* The table; the last has no reason. */
extern const struct implication implications[];

bool implication_applies(const struct implication *implication,
                         const struct cv_algorithm *algorithm);
/* The first implication of which the verdicts, in the order of the problem's judge, say the
 * opposite: the one is violated, and all others hold.  NULL: there is none. */
const struct implication *verdicts_contradict(const struct cv_algorithm *algorithm,
                                              const enum verdict_value *values);

#endif
