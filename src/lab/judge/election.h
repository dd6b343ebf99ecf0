/* The judge of elections.
 *
 * It observes which processes lead, follow and crash, in constant time each (a second leader takes
 * linear time), and decides the properties that an election owes its users. */
#ifndef CV_LAB_JUDGE_ELECTION_H
#define CV_LAB_JUDGE_ELECTION_H

#include "base/arena.h"
#include "lab/judge/judge.h"
#include "process/roster.h"

enum election_property {
    SAFETY,      /* a process that follows a leader follows the right one */
    LIVENESS,    /* every process ends with a leader, or crashes */
    TERMINATION, /* some process comes to lead */
    UNIQUENESS,  /* no two processes lead at once (with terms: in the same term) */
    AGREEMENT,   /* all follow the same leader */
    STABILITY,   /* leadership changes only when the leader fails */
    /* Of those that replicate a log: */
    LOG_MATCHING,         /* two logs with one entry are the same up to there */
    LEADER_COMPLETENESS,  /* a leader has all that was committed before */
    STATE_MACHINE_SAFETY, /* what is committed is the same for all */
    ELECTION_PROPERTIES
};
static inline int election_properties(const struct cv_algorithm *algorithm) {
    return algorithm->log ? ELECTION_PROPERTIES : LOG_MATCHING;
}
extern const char *const election_property_name[ELECTION_PROPERTIES];

struct election_rules {
    enum cv_preference preference;
    bool terms, anonymous;
    const uint64_t *ids, *weights; /* by pid */
    /* Whether the network is split between the two processes. */
    bool (*apart)(const void *context, cv_pid a, cv_pid b);
    const void *context;
};

struct elector {
    uint64_t leader_id; /* that it follows; its own when it leads */
    uint32_t term;
    uint32_t term_led; /* the last in which it led, also before a crash */
    bool decided, leads, crashed;
    bool failed_since; /* crashed or cut off since it was elected */
};

struct election_judge {
    const struct roster *roster;
    struct election_rules rules;
    struct elector *of; /* by pid */
    uint32_t live, decided, leaders;
    uint64_t leading_sum; /* of the pids of all leaders: the pid of the leader when there is one */
    uint64_t elections;   /* how often a process came to lead */
    uint64_t unexplained; /* how many of these although the leader was well */
    uint64_t rounds, decided_us;
    cv_pid latest; /* the last to be elected */
    bool split_brain;
    struct verdict verdict[ELECTION_PROPERTIES];
    struct verdict within_parts; /* uniqueness, each part of a split network by itself */
    cv_pid culprit[2];           /* two that led at once */
};

void election_judge_open(struct election_judge *judge, struct arena *arena,
                         const struct roster *roster, const struct election_rules *rules);
void election_judge_told(struct election_judge *judge, uint64_t now, cv_pid p,
                         const struct cv_tell *tell);
void election_judge_crash(struct election_judge *judge, cv_pid p);
void election_judge_recover(struct election_judge *judge, cv_pid p);
/* The network was split or healed, which excuses a leader that loses its leadership. */
void election_judge_partition(struct election_judge *judge);
/* Whether all live processes follow one live leader. */
bool election_judge_settled(const struct election_judge *judge);
/* `part` numbers the parts of the network in which the run ended, by pid. */
void election_judge_close(struct election_judge *judge, uint64_t now, enum run_end end,
                          const uint32_t *part);
/* The leader at the end; CV_NOBODY when there is none or more than one. */
cv_pid election_judge_leader(const struct election_judge *judge);

#endif
