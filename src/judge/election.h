/* The judge of elections.
 *
 * It hears who says that it leads, whom the others follow, and who crashed, at a constant cost each
 * (a second leader costs a look at everyone), and decides what an election owes its users. */
#ifndef CV_JUDGE_ELECTION_H
#define CV_JUDGE_ELECTION_H

#include "base/arena.h"
#include "judge/judge.h"
#include "process/roster.h"

enum election_property {
    SAFETY,      /* whoever follows somebody follows the right process */
    LIVENESS,    /* everyone ends with a leader, or crashes */
    TERMINATION, /* somebody comes to lead */
    UNIQUENESS,  /* nobody leads beside another (with terms: in the same term) */
    AGREEMENT,   /* all follow the same */
    STABILITY,   /* leadership changes only when the leader fails */
    ELECTION_PROPERTIES
};
extern const char *const election_property_name[ELECTION_PROPERTIES];

struct election_rules {
    enum cv_preference preference;
    bool terms, anonymous;
    const uint64_t *ids, *weights; /* by pid */
    /* Whether the network is split between the two. */
    bool (*apart)(const void *context, cv_pid a, cv_pid b);
    const void *context;
};

struct elector {
    uint64_t leader_id; /* that it follows; its own when it leads */
    uint32_t term;
    bool decided, leads, crashed;
    bool failed_since; /* crashed or cut off since it was elected */
};

struct election_judge {
    const struct roster *roster;
    struct election_rules rules;
    struct elector *of; /* by pid */
    uint32_t live, decided, leaders;
    uint64_t leading_sum; /* of the pids of those who lead: the leader, when there is one */
    uint64_t elections;   /* how often somebody came to lead */
    uint64_t unexplained; /* of those, how often although the leader was well */
    uint64_t rounds, decided_us;
    cv_pid latest; /* the last to be elected */
    bool split_brain;
    struct verdict verdict[ELECTION_PROPERTIES];
    struct verdict within_parts; /* uniqueness, each part of a split network by itself */
    cv_pid culprit[2];           /* two that led beside each other */
};

void election_judge_open(struct election_judge *judge, struct arena *arena,
                         const struct roster *roster, const struct election_rules *rules);
void election_judge_told(struct election_judge *judge, uint64_t now, cv_pid p,
                         const struct cv_tell *tell);
void election_judge_crash(struct election_judge *judge, cv_pid p);
void election_judge_recover(struct election_judge *judge, cv_pid p);
/* The network was split or healed: whoever leads has an excuse for losing its office. */
void election_judge_partition(struct election_judge *judge);
/* Everyone alive follows one leader that is alive. */
bool election_judge_settled(const struct election_judge *judge);
/* `part` numbers the parts of the network in which the run ended, by pid. */
void election_judge_close(struct election_judge *judge, uint64_t now, enum run_end end,
                          const uint32_t *part);
/* The one that leads at the end, CV_NOBODY when none or several do. */
cv_pid election_judge_leader(const struct election_judge *judge);

#endif
