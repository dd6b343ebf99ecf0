/* The consensus core in a laboratory: servers with simulated disks on a simulated network, in
 * virtual time, and judges that look at them after every event.
 *
 *   lab.h       what a laboratory is made of
 *   queue.c     events in the order of time
 *   disk.c      what is durable, what a crash leaves, how a server comes back
 *   node.c      the owner of a core: carries out what it wants
 *   judge.c     what must always hold
 *   run.c       a run with random faults, from a seed
 *   schedule.c  runs in which every step is given
 *   explore.c   every order of events, at small bounds */
#ifndef CV_RAFTLAB_H
#define CV_RAFTLAB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LAB_TEXT_MAX = 200 };

struct lab_result {
    uint64_t hash; /* of all that happened: the same for the same seed */
    uint64_t events, time_us;
    uint64_t leaders, decided, crashes, torn, damaged, changes, installed, reads, lease_reads;
    char broken[LAB_TEXT_MAX]; /* what did not hold; "": all did */
};

/* A run with everything that can go wrong, as the seed has it; then all is mended, and soon there
 * must be a leader, and what it is given be decided.  `trace`: what happens, line by line, or NULL.
 */
void lab_run(uint64_t seed, FILE *trace, struct lab_result *result);

struct lab;
struct lab_schedule {
    const char *name, *what;
    void (*run)(struct lab *lab);
};
extern const struct lab_schedule lab_schedules[];
extern const uint32_t lab_schedule_count;
void lab_follow(const struct lab_schedule *schedule, FILE *trace, struct lab_result *result);

#endif
