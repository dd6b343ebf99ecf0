#include "recipe/roll.h"

#include <stdlib.h>
#include <string.h>

#include "recipe/election.h"

static bool list_lock(struct roll_entry *entries, const char *const *names, size_t count,
                      size_t *listed) {
    struct contender *all = calloc(count + 1, sizeof *all);
    if (!all) return false;
    count = contend_list(all, names, count);
    for (size_t i = 0; i < count; i++)
        if (all[i].kind != CONTEND_UPGRADE)
            entries[(*listed)++] = (struct roll_entry){.name = all[i].name, .kind = all[i].kind};
    free(all);
    return true;
}

static bool list_election(struct roll_entry *entries, const char *const *names, size_t count,
                          size_t *listed) {
    struct candidate *all = calloc(count + 1, sizeof *all);
    if (!all) return false;
    count = election_list(all, names, count);
    for (size_t i = 0; i < count; i++)
        entries[(*listed)++] = (struct roll_entry){.name = all[i].name,
                                                   .kind = CONTEND_EXCLUSIVE,
                                                   .is_candidate = true,
                                                   .priority = all[i].priority};
    free(all);
    return true;
}

bool roll_list(struct roll_entry *entries, const char *const *names, size_t count, size_t *listed) {
    *listed = 0;
    return list_lock(entries, names, count, listed) &&
           (*listed || list_election(entries, names, count, listed));
}

struct before { /* what those before it take */
    int32_t slots;
    bool other_than_shared, other_than_slots, any;
};

static bool holds(const struct roll_entry *entry, struct before *before) {
    bool result = entry->kind == CONTEND_SHARED ? !before->other_than_shared
                  : entry->kind == CONTEND_SLOT
                      ? !before->other_than_slots && before->slots < entry->slots
                      : !before->any;
    before->any = true;
    before->other_than_shared |= entry->kind != CONTEND_SHARED;
    before->other_than_slots |= entry->kind != CONTEND_SLOT;
    before->slots += entry->kind == CONTEND_SLOT;
    return result;
}

void roll_judge(struct roll_entry *entries, size_t count, const struct roll_leader *leader) {
    struct before before = {0};
    for (struct roll_entry *e = entries; e < entries + count; e++) {
        const struct note *note = &e->note;
        e->slots = note->slots > 0 ? note->slots : 1;
        e->token = note->token ? note->token : e->czxid;
        e->since = note->since ? note->since : e->ctime;
        e->holds = e->is_candidate ? !strcmp(leader->note.node, e->name) : holds(e, &before);
        e->held_known = e->holds && (note->held || e->is_candidate);
        if (e->holds) e->held_since = note->held ? note->held : e->ctime;
        if (!e->holds || !e->is_candidate) continue;
        e->token = leader->czxid;
        e->held_since = leader->ctime;
    }
}
