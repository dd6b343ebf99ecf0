/* Who holds a lock, and who waits for whom: decided from the names of the lock's children alone.
 *
 * A name is OWNER KIND SEQUENCE.  OWNER is what its client has chosen, so that it finds its node
 * again when the answer to a create was lost; SEQUENCE is the server's, a 32-bit number that goes
 * on with the smallest one after the largest.  KIND is what the owner wants, as one of several
 * recipes writes it: Curator's mutex, which go-zookeeper's lock understands; Curator's read/write
 * lock; Curator's leader latch, which has -latch- alone; kazoo's lock; and ZooKeeper's
 * documentation. What these do not have ends with the text of their exclusive kind, so that their
 * clients wait for it:
 *
 *     curator        curator-rw         kazoo              others
 *     -lock-  lock-  __WRIT__           __lock__           write-   exclusive
 *     -shared-lock-  __READ__           __rlock__          read-    shared
 *     -slot-lock-                       __slot__lock__              one of some slots
 *     -upgrade-lock- __upgrade__WRIT__  __upgrade__lock__           the owner's shared node shall
 *                                                                   become exclusive
 *
 * The clients of one recipe do not wait for the nodes of another, so a lock has one recipe.
 *
 * Two contenders are in conflict unless both are shared, or both want slots.  Who came first goes
 * first: a contender waits only for those before it, and watches one of them, so that a release
 * wakes one client.  The rule for each kind is at contend_judge. */
#ifndef CV_RECIPE_CONTEND_H
#define CV_RECIPE_CONTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipe/sequence.h"

enum contend_kind { CONTEND_EXCLUSIVE, CONTEND_SHARED, CONTEND_SLOT, CONTEND_UPGRADE };
enum contend_recipe {
    CONTEND_CURATOR,
    CONTEND_CURATOR_RW,
    CONTEND_CURATOR_LATCH,
    CONTEND_KAZOO,
    CONTEND_OTHER
};

struct contender {
    const char *name;
    const char *owner; /* not terminated */
    uint32_t owner_size;
    enum contend_kind kind;
    enum contend_recipe recipe;
    int32_t sequence;
    int32_t rank; /* grows with the sequence, within one list */
    bool watch;   /* a verdict: the one who asked should watch it */
};

/* Whether a name is a contender's; `contender` then points into it. */
bool contend_parse(struct contender *contender, const char *name);
/* The text of a kind in the names that we make; NULL: that recipe does not have it. */
const char *contend_kind_text(enum contend_recipe recipe, enum contend_kind kind);

bool contend_is_owner(const struct contender *contender, const char *owner, size_t owner_size);

/* Parses names into `contenders`, which has room for all of them, in the order in which they are
 * served; returns how many there are. */
size_t contend_list(struct contender *contenders, const char *const *names, size_t count);

struct contend_verdict {
    const struct contender *mine;  /* my node, NULL: I have none */
    const struct contender *mark;  /* my node that asks for an upgrade */
    const struct contender *extra; /* another node of mine, which nobody needs */
    bool mixed;                    /* somebody is there by another recipe than mine */
    bool holds;
    bool chained;     /* the one to watch has to wait for a slot itself */
    bool hopeless;    /* another holder wants to upgrade as well, and was first */
    int32_t position; /* how many are before me and in my way */
    /* An upgrade that is due is right only while this one is still there; NULL: in any case. */
    const struct contender *blocker;
};

/* What the owner of a node has to do.  Sets `watch` of those contenders whose end, or whose note
 * that they hold a slot, it has to wait for.
 *
 * - Exclusive: holds when nobody is before it; else watches the nearest.
 * - Shared: holds when nobody but shared ones is before it; else watches the nearest other.
 * - Slots: holds when fewer than `slots` are before it, and only such as want slots.  The first
 *   that must wait watches all that hold one, because any of them may go first.  The others watch
 *   the one before them, which writes a note into its node when it holds a slot: then they are the
 *   first.  `impatient` makes them watch all: the one before them holds although by our count it
 *   must not, so it counts differently.
 * - Upgrade (with a mark): holds when it may become exclusive at its place, see below.
 *
 * An upgrade has three steps.  A mark is added at the end of the queue, which is in the way of
 * those who come later.  Its owner, who goes on holding its shared node, waits for every other
 * shared one before the mark that holds or may hold: those that no exclusive one precedes.  (An
 * exclusive one between the owner's shared node and the mark waits for that node, so to wait for it
 * or for those behind it would be a circle.)  Then one transaction replaces mark and shared node by
 * an exclusive node with the sequence number of the shared one, and checks that the first exclusive
 * one before the mark (`blocker`), if there was one, is still there.  Whoever is behind the blocker
 * does not hold at that moment, and will look again, and find the exclusive node, before it does.
 * Without a blocker nobody is between the two nodes, and those behind the mark look again in the
 * same way.  Of two holders that want to upgrade the one with the later mark gives up. */
struct contend_verdict contend_judge(struct contender *contenders, size_t count, const char *owner,
                                     size_t owner_size, int32_t slots, bool impatient);

#endif
