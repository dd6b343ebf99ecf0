/* The judge of failure detectors, by the quality of service of Chen, Toueg and Aguilera (2002): the
 * detection time, how often a process is suspected wrongly (a mistake), and how long mistakes last.
 * A process that is slow or cut off has not crashed: to suspect it is a mistake. */
#ifndef CV_LAB_JUDGE_DETECTOR_H
#define CV_LAB_JUDGE_DETECTOR_H

#include <stdbool.h>

#include "base/arena.h"
#include "process/process.h"

struct detector_pair { /* what a watcher thinks of a watched process */
    uint64_t suspected_us, heard_us;
    bool suspected, mistaken, undetected; /* undetected: it has crashed, and is not suspected yet */
};

struct detector_judge {
    uint32_t processes;
    struct detector_pair *pair; /* watcher by watched */
    uint64_t *crashed_us;       /* by pid; UINT64_MAX: it is up */
    uint64_t crashes_detected, detection_us_sum, detection_us_max;
    uint64_t mistakes, mistakes_ended, mistake_us_sum, mistake_us_max;
    uint64_t missed; /* crashes that a watcher had not detected before the recovery or the end of
                        the run */
    uint64_t *gap_us;
    size_t gap_count; /* between heartbeats, the first GAPS_MAX of them */
};
enum { DETECTOR_GAPS_MAX = 100000 };

void detector_judge_open(struct detector_judge *judge, struct arena *arena, uint32_t processes);
void detector_judge_heard(struct detector_judge *judge, uint64_t now, cv_pid watcher,
                          cv_pid watched);
void detector_judge_suspects(struct detector_judge *judge, uint64_t now, cv_pid watcher,
                             cv_pid watched);
void detector_judge_trusts(struct detector_judge *judge, uint64_t now, cv_pid watcher,
                           cv_pid watched);
void detector_judge_crash(struct detector_judge *judge, uint64_t now, cv_pid p);
void detector_judge_recover(struct detector_judge *judge, cv_pid p);
void detector_judge_close(struct detector_judge *judge, uint64_t now);

#endif
