/* The judge of histories: whether one copy of each object could have given several clients the
 * answers that they got.
 *
 * Linearizable: there is one order of all operations on a key, each at some moment between its
 * start and its end, in which every answer is right.  Sequential: the same, but a read may show an
 * older state, as ZooKeeper's do.  A read comes after what its client did before, so that a client
 * never goes back in time and sees its own writes, and it shows nothing that begins after its end.
 * Each key is judged alone: a history is linearizable when each of its objects is (Herlihy and
 * Wing, 1990).
 *
 * A key names a node, as ZooKeeper has them: absent at first, version 0 when it is created, one
 * more with each write.  It also names a lock, which is another object: free at first, then held by
 * one client at a time.
 *
 *   struct history_operation o = history_begin(client, key, HISTORY_CAS, now);
 *   o.value = 7, o.expected = 3;
 *   ...when the answer comes:
 *   o.end = now, o.outcome = HISTORY_OK, o.version = 4;
 *   history_add(&history, &o);
 *
 * An operation without an answer is added too, with the outcome HISTORY_UNKNOWN: it takes effect at
 * any time after its start, or never.  The end of a session is written in the same way: add such a
 * delete of its ephemeral node, or such a release of its lock. */
#ifndef CV_LAB_JUDGE_HISTORY_H
#define CV_LAB_JUDGE_HISTORY_H

#include <stddef.h>

#include "lab/judge/judge.h"

enum history_action {
    HISTORY_INITIAL,   /* no operation: the value and version of the node at the beginning */
    HISTORY_READ,      /* OK, NO_NODE */
    HISTORY_WRITE,     /* OK, NO_NODE */
    HISTORY_CAS,       /* a write if the version is `expected`: OK, NO_NODE, BAD_VERSION */
    HISTORY_CAS_VALUE, /* a write if the value is `expected`: the same */
    HISTORY_CREATE,    /* OK, EXISTS */
    HISTORY_DELETE,    /* if the version is `expected`: OK, NO_NODE, BAD_VERSION */
    HISTORY_ACQUIRE,   /* OK; REFUSED: somebody holds it */
    HISTORY_RELEASE,   /* OK; REFUSED: the client does not hold it */
    HISTORY_ACTIONS
};

enum history_outcome {
    HISTORY_UNKNOWN,
    HISTORY_OK,
    HISTORY_NO_NODE,
    HISTORY_EXISTS,
    HISTORY_BAD_VERSION,
    HISTORY_REFUSED,
    HISTORY_OUTCOMES
};

enum { HISTORY_ANY = -1 }; /* a value, version or token that is not known, or may be any */

struct history_operation {
    int64_t start, end; /* in any unit; one that ends when another starts overlaps it */
    int64_t value;      /* that was written or read; a number from 0 */
    int64_t version;    /* of what was read, or after the write */
    int64_t expected;
    int64_t token; /* of an acquire: each is above those before it */
    uint32_t client, key;
    enum history_action action;
    enum history_outcome outcome;
};

/* An operation that has just begun: its outcome is unknown. */
static inline struct history_operation history_begin(uint32_t client, uint32_t key,
                                                     enum history_action action, int64_t start) {
    return (struct history_operation){.start = start,
                                      .end = start,
                                      .value = HISTORY_ANY,
                                      .version = HISTORY_ANY,
                                      .expected = HISTORY_ANY,
                                      .token = HISTORY_ANY,
                                      .client = client,
                                      .key = key,
                                      .action = action,
                                      .outcome = HISTORY_UNKNOWN};
}

struct history { /* all zero: empty */
    struct history_operation *operation;
    size_t count, room;
    /* Names by number, for explanations; NULL: the numbers themselves. */
    const char *const *client_name, *const *key_name, *const *value_name;
};

/* Adds it, in any order of time, and returns its index: it may be completed there later.  Of
 * operations of one client that start together, the first to be added came first. */
size_t history_add(struct history *history, const struct history_operation *operation);
void history_clear(struct history *history); /* empty again; the memory stays */
void history_close(struct history *history);

/* Why an operation is not well-formed, e.g. it ends before it starts; NULL: it is. */
const char *history_refuse(const struct history_operation *operation);

struct history_rules {
    bool sequential;
    uint64_t work_limit; /* steps tried and words kept, for each object; 0: HISTORY_WORK */
};
#define HISTORY_WORK 20000000 /* a second or so, and some hundred MB at most */

struct history_result {
    struct verdict verdict; /* UNKNOWN: some key was too much work and no other is violated */
    uint32_t key;           /* of the verdict, unless it held */
    uint64_t work;
    /* When violated: the longest order that was found, and the operations that had to be next and
     * could not; indices into the history. */
    size_t *order, *stuck;
    size_t ordered, stuck_count;
};

/* Every operation must be well-formed (history_refuse). */
void history_judge(const struct history *history, const struct history_rules *rules,
                   struct history_result *result);
void history_result_close(struct history_result *result);

enum { HISTORY_TEXT_MAX = 240 };
/* "client 3 reads 7, version 2 [10, 20]". */
char *history_describe(const struct history *history, size_t index, char *text);
/* Why a stuck operation could not follow the order: "the value is 8". */
char *history_why(const struct history *history, const struct history_result *result, size_t index,
                  char *text);

#endif
