/* What the records of servers say together, judged: the properties of the Raft paper.  No order
 * among servers is needed for that, because each of them is about all times.
 *
 *   election safety       one leader in a term, as leaders and followers know it
 *   one vote              no server votes for two in a term, not even after a restart
 *   log matching          entries of one term begin at the same index after an entry of the same
 *                         term, in all logs; so logs that have an entry in common agree up to it
 *   state machine safety  an entry that is committed is of the same term everywhere and for ever
 *   leader completeness   a leader begins with all that was known to be committed in terms before
 */
#ifndef CV_LAB_SERVERS_JUDGE_H
#define CV_LAB_SERVERS_JUDGE_H

#include "base/table.h"
#include "raft/raft.h"

enum { JUDGE_WHY_MAX = 256 };

enum servers_property {
    SERVERS_ELECTION_SAFETY,
    SERVERS_ONE_VOTE,
    SERVERS_LOG_MATCHING,
    SERVERS_STATE_MACHINE_SAFETY,
    SERVERS_LEADER_COMPLETENESS,
    SERVERS_PROPERTIES,
};

/* As a leader began with it.  Up to `shared_index` it is as the log that was seen before it, so all
 * logs of a record together need no more space than its steps. */
struct judged_log {
    uint64_t term, snapshot_index, last_index, shared_index;
    size_t run, runs; /* what comes after: where it is among those of all logs */
};

struct judged_term {
    uint64_t term;          /* the first member: it is looked for by that */
    uint64_t first, before; /* where its entries begin, and the term before; 0: not known */
    uint64_t commit_index;  /* the highest that was known in this term */
    uint64_t commit_before; /* and in terms before, when all is finished */
    uint8_t leader, leader_by, first_by, commit_by; /* and who says so */
    uint8_t vote[256];
    bool has_log;
};

struct judged_entries { /* committed */
    uint64_t first, last, term;
    uint64_t order; /* in which they were seen */
    uint8_t by;
};

struct servers_judge {                           /* all zero: nothing yet */
    char why[SERVERS_PROPERTIES][JUDGE_WHY_MAX]; /* empty: it holds */
    struct judged_term *term;                    /* when all is finished: ascending */
    size_t terms, term_room;
    struct table term_index;          /* until then */
    struct judged_entries *committed; /* when all is finished: ascending, and apart */
    size_t committed_count, committed_room;
    struct judged_log *log; /* of leaders, as they were seen */
    size_t logs, log_room;
    struct raft_run *log_run;
    size_t log_runs, log_run_room;
    bool server[256];
    /* Of the record that is being read. */
    uint8_t self;
    uint64_t seen_term, seen_commit_index, newest_run, newest_first;
    uint8_t seen_vote, seen_leader;
    bool is_vote_counted;
    uint64_t shared_index; /* up to there the log is as that of the last leader */
};

/* The runs of the whole log of a server. */
struct judged_runs {
    const struct raft_run *at;
    size_t count;
};

/* A record begins, or goes on after a part that is missing. */
void servers_judge_begin(struct servers_judge *judge, const struct raft *raft,
                         struct judged_runs runs);
void servers_judge_step(struct servers_judge *judge, const struct raft *raft,
                        struct judged_runs runs);
/* When all records were read. */
void servers_judge_finish(struct servers_judge *judge);
bool servers_judge_is_violated(const struct servers_judge *judge);
const char *servers_judge_property_name(enum servers_property property);
void servers_judge_close(struct servers_judge *judge);

#endif
