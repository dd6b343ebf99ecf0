/* The records of all peers of a group, joined by their messages to one run, which is replayed,
 * traced and judged.
 *
 * A message is sent before it arrives, and a process does one thing after the other: no clock
 * decides more than which of several things that may come next does.  Exclusion is judged in the
 * order in which those who are inside stay there for as long as anything else can happen.  If two
 * stays overlap in any order that the messages allow, they do in that one. */
#ifndef CV_LAB_PEERS_MERGE_H
#define CV_LAB_PEERS_MERGE_H

#include "lab/judge/election.h"
#include "lab/judge/mutex.h"
#include "lab/sim/trace.h"
#include "peer/record.h"

struct merge_result {
    uint64_t steps, messages, entries, restarts;
    uint64_t unsent;  /* messages whose sender's record ends before it sends them */
    uint64_t torn;    /* records whose end is torn */
    bool late_leaves; /* the order is the one in which stays last */
    struct verdict verdict[PROPERTIES_MAX];
};

struct merge {
    const struct records *records; /* sorted */
    struct roster roster;
    struct arena arena;
    struct mutex_judge mutex;
    struct election_judge election;
    struct trace trace;
    struct merge_result result;
};

/* Replays, traces and judges.  0, or -1 and a sentence in `error`; merge_close in both cases. */
int merge_run(struct merge *merge, const struct records *records, char error[RECORD_ERROR_MAX]);
/* Replays each record by itself: whether the states are equal. */
int merge_replay(struct merge *merge, const struct records *records, char error[RECORD_ERROR_MAX]);
bool merge_violated(const struct merge *merge);
/* Cuts the trace down to what led to the violation. */
void merge_cut(struct merge *merge);
void merge_close(struct merge *merge);

#endif
