/* The rule of a fence: who may write to the resource behind it.  No I/O, no clock.
 *
 * A pass is the right of one connection, or of one request, to write under a token of a lock.  It
 * lasts from when it is entered until the resource is done with all that was written under it,
 * which may be long after its owner has gone.
 *
 *   1. A token that is older than the highest that ever entered is refused, for ever: the owner
 *      makes the highest durable before anything passes.
 *   2. While the servers can be asked, only the token of the lock's holder enters.
 *   3. When a newer token enters, or the servers name another holder, all passes of other tokens
 *      are cut: nothing more is written under them.
 *   4. A pass is clear when no pass with an older token is left.  Only then is its first byte
 *      passed on: what was written under older tokens has taken effect by then, or never will. */
#ifndef CV_FENCE_RULE_H
#define CV_FENCE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fence_verdict {
    FENCE_ENTER,
    FENCE_ASK,      /* first ask the servers who holds the lock, or wait until they can be asked */
    FENCE_OLDER,    /* refused: a newer one was here */
    FENCE_NOT_HELD, /* refused: the servers know no holder with that token */
    FENCE_UNSURE,   /* refused: the servers cannot be asked, and must be */
};

enum fence_reach {
    FENCE_CONNECTING, /* perhaps soon */
    FENCE_REACHED,    /* `holder` is what they said last */
    FENCE_UNREACHED,
};

struct fence_pass {
    struct fence_lock *lock; /* NULL: not entered */
    int64_t token;
    bool is_cut;
    struct fence_pass *next, *previous;
};

struct fence_lock {
    const char *name;
    int64_t highest; /* token that ever entered */
    enum fence_reach reach;
    int64_t holder; /* its token; 0: nobody */
    struct fence_pass *passes;
    /* Nothing more is to be written under this pass, which leaves when the resource is done: at
     * once, or later.  No other pass enters or leaves meanwhile. */
    void (*cut)(struct fence_pass *pass);
};

/* `asked`: what the servers said last was asked for after this token came. */
enum fence_verdict fence_judge(const struct fence_lock *lock, int64_t token, bool asked,
                               bool strict);

/* After FENCE_ENTER.  The token is the highest now, and must be durable before anything passes. */
void fence_enter(struct fence_lock *lock, struct fence_pass *pass, int64_t token);
bool fence_is_clear(const struct fence_pass *pass);
/* Does nothing if it has not entered. */
void fence_leave(struct fence_pass *pass);

/* What the servers say. */
void fence_hear(struct fence_lock *lock, int64_t holder);

/* A token as people and programs write it: decimal, from 1 on.  False: it is none. */
bool fence_parse_token(const char *text, size_t size, int64_t *token);

#endif
