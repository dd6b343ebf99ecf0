/* One contender of a lock, as a pure step: what happened goes in, what is to be asked of the
 * servers comes out.
 *
 * Whoever runs it (client/recipe/lock.c, and an explorer in the tests) sends what `out` says, in
 * that order, and reports each answer as an event; answers come in the order of the requests.  A
 * request whose answer was lost with its connection is reported as STEP_LOSS, and may have taken
 * effect or not.  Names of nodes are kept by who runs it: `mine` and `mark` of the newest verdict,
 * or of the answer to a create. */
#ifndef CV_RECIPE_LOCK_STEPS_H
#define CV_RECIPE_LOCK_STEPS_H

#include "recipe/contend.h"

enum lock_phase {
    LOCK_IDLE,
    LOCK_PARENTS,    /* making the nodes above */
    LOCK_JOINING,    /* creating a node; the list comes after it */
    LOCK_LISTING,    /* asked who is there */
    LOCK_WAITING,    /* watching */
    LOCK_HELD,       /* at rest */
    LOCK_CONVERTING, /* replacing a node by one of the other kind */
    LOCK_LEAVING,    /* deleting */
};

struct lock_steps {
    enum contend_kind kind; /* what it is, or is to become */
    int32_t slots;
    bool mixes; /* also with those of other recipes, who are said to wait for it */
    enum lock_phase phase;
    int32_t sequence; /* of my place */
    int32_t position;
    bool has_node;
    bool has_mark;
    bool holds;     /* told that it does, and no end since */
    bool upgrading; /* until it is exclusive, or given up */
    bool unsure;    /* whether my last create or conversion took effect */
    bool leaving;   /* as soon as it is known what there is to delete */
    bool giving_up; /* the upgrade, in the same way */
    bool chained;   /* it watches one that holds no slot yet */
    bool impatient; /* see contend_judge */
};

enum lock_event {
    LOCK_START,     /* the caller wants it */
    LOCK_RESUME,    /* the caller wants it, and may have a node from before */
    LOCK_CREATED,   /* answer to JOIN, or MARK: the node's sequence number */
    LOCK_LISTED,    /* answer to the list of JOIN or MARK, or to LIST: the contenders */
    LOCK_PREPARED,  /* answer to PARENTS */
    LOCK_WATCHED,   /* answer to one of WATCH */
    LOCK_FIRED,     /* a watch did */
    LOCK_DELETED,   /* my node is gone; that is not an answer */
    LOCK_EXPIRED,   /* the session is over */
    LOCK_LATE,      /* by the local clock the session may be over soon */
    LOCK_RELEASE,   /* the caller does not want it any more */
    LOCK_LEFT,      /* answer to LEAVE */
    LOCK_UPGRADE,   /* the caller wants the shared lock to be exclusive */
    LOCK_DOWNGRADE, /* or the other way round */
    LOCK_STAY,      /* the caller does not want the upgrade any more */
    LOCK_CONVERTED, /* answer to CONVERT */
    LOCK_NOTED,     /* answer to NOTE */
};

enum lock_result {
    STEP_OK,
    STEP_NO_NODE, /* of CONVERT: it cannot be, because something has changed */
    STEP_NOTED,   /* of a watch: the node says that its owner holds */
    STEP_LOSS,
    STEP_FAILED, /* for a reason that will not go away */
};

enum lock_out {
    OUT_PARENTS = 1,    /* make the nodes above */
    OUT_JOIN = 2,       /* create my node, and list, in one write */
    OUT_MARK = 4,       /* create the mark of an upgrade, and list, in one write */
    OUT_SYNC = 8,       /* sync before the list; it has no answer */
    OUT_LIST = 16,      /* list */
    OUT_WATCH = 32,     /* read with a watch each contender that the verdict marks */
    OUT_NOTE = 64,      /* write into my node that I hold */
    OUT_CONVERT = 128,  /* replace: see contend.h for an upgrade */
    OUT_LEAVE = 256,    /* delete my node and my mark, or only my mark when `giving_up` */
    TELL_WAITING = 512, /* to the caller: the position is known */
    TELL_HELD = 1024,
    TELL_CONVERTED = 2048,
    TELL_HOPELESS = 4096, /* the conversion was given up, the lock is held as before */
    TELL_ENDED = 8192,    /* nothing is left of it: released, or after STEP_FAILED */
    TELL_LOST = 16384,    /* not held any more: expired, deleted, or late */
    TELL_MIXED = 32768,   /* it is given up: others are there by another recipe */
};

struct lock_input {
    enum lock_event event;
    enum lock_result result;
    int32_t sequence;             /* CREATED */
    struct contender *contenders; /* LISTED */
    size_t count;
    const char *owner;
    size_t owner_size;
};

/* Returns a set of enum lock_out; `verdict` is set with LOCK_LISTED. */
uint32_t lock_step(struct lock_steps *lock, const struct lock_input *in,
                   struct contend_verdict *verdict);

#endif
