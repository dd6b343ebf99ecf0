/* What was proposed here and is not applied: the entry, for the leader, and whom to answer. */
#include "service/ensemble/internal.h"

enum { ROOM_MIN = 256 }; /* a power of two */

void outbox_open(struct outbox *o) { window_open(&o->entries, 0); }

void outbox_close(struct outbox *o) {
    window_close(&o->entries);
    free(o->proposal);
}

static struct proposal *proposal_at(const struct outbox *o, uint64_t sequence) {
    return &o->proposal[sequence & (o->room - 1)];
}

static void grow(struct outbox *o) {
    struct outbox larger = {.room = o->room ? 2 * o->room : ROOM_MIN};
    larger.proposal = malloc(larger.room * sizeof *larger.proposal);
    cv_assert(larger.proposal);
    for (uint64_t s = outbox_applied(o) + 1; s <= outbox_last(o); s++)
        *proposal_at(&larger, s) = *proposal_at(o, s);
    free(o->proposal);
    o->proposal = larger.proposal;
    o->room = larger.room;
}

uint64_t outbox_add(struct outbox *o, const struct tree_entry *entry,
                    const struct proposal *proposal) {
    if (o->entries.count == o->room) grow(o);
    size_t size = tree_entry_size(entry);
    tree_store_entry(window_room(&o->entries, size), entry);
    uint64_t sequence = window_add(&o->entries, 0, RAFT_NORMAL, size);
    *proposal_at(o, sequence) = *proposal;
    return sequence;
}

struct proposal outbox_remove(struct outbox *o, uint64_t sequence) {
    cv_assert(sequence > outbox_applied(o) && sequence <= outbox_last(o));
    window_trim(&o->entries, sequence);
    return *proposal_at(o, sequence);
}
