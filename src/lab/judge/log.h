/* The judge of logs: what the logs of two processes say about each other.
 *
 * It looks at processes that are up, whenever one of them has taken a step, and remembers nothing:
 * what a process knew to be committed is forgotten with its crash.  So none of the properties
 * follows from another one here. */
#ifndef CV_LAB_JUDGE_LOG_H
#define CV_LAB_JUDGE_LOG_H

#include "lab/judge/election.h"

/* The properties that two logs violate, a bit each. */
uint32_t logs_break(const struct cv_log *a, const struct cv_log *b);
/* The same, as verdicts. */
void log_judge_pair(struct election_judge *judge, uint64_t now, cv_pid p, const struct cv_log *a,
                    cv_pid q, const struct cv_log *b);

#endif
