/* The consensus core in the laboratory: servers with simulated disks on a simulated network, in
 * virtual time, and judges that look at them after every event.
 *
 *   lab.h       what a laboratory is made of
 *   queue.c     events in the order of time
 *   disk.c      what is durable, what a crash leaves, how a server comes back
 *   node.c      the owner of a core: carries out its effects
 *   judge.c     the safety properties
 *   text.c      messages as text
 *   run.c       a run with random faults, from a seed
 *   schedule.c  a run in which every step is given
 *
 * Every order of events is explored by the model checker (conclave check raft). */
#ifndef CV_LAB_RAFT_RAFTLAB_H
#define CV_LAB_RAFT_RAFTLAB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LAB_TEXT_MAX = 256 };

struct lab_result {
    uint64_t hash; /* of all that happened: the same for the same seed */
    uint64_t events, time_us;
    uint64_t leaders, committed, crashes, torn, damaged, changes, installed, reads, lease_reads;
    uint64_t undecided_terms;  /* of one log, at most */
    char broken[LAB_TEXT_MAX]; /* which property was violated; "": none */
};

/* A run with random faults, all of it from the seed; then the faults end, and soon there must be a
 * leader that commits what is proposed.  `trace`: what happens, line by line, or NULL. */
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
