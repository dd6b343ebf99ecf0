/* Sessions, and the chain of ephemeral nodes of each. */
#include "base/grow.h"
#include "base/rng.h"
#include "service/tree/internal.h"

static uint32_t hash_of(int64_t id) { return (uint32_t)rng_mix((uint64_t)id); }

uint32_t session_find(const struct tree *tree, int64_t id) {
    const struct sessions *s = &tree->sessions;
    uint32_t slot;
    for (struct probe p = table_probe(&s->index, hash_of(id)); (slot = table_next(&s->index, &p));)
        if (s->at[slot].id == id) return slot;
    return 0;
}

static uint32_t free_slot(struct sessions *s) {
    uint32_t slot = s->free_slot;
    if (slot) {
        s->free_slot = s->at[slot].owned;
        return slot;
    }
    s->at = grown(s->at, &s->room, s->slots + 2, sizeof *s->at);
    return ++s->slots;
}

uint32_t session_add(struct tree *tree, int64_t id, int32_t timeout_ms,
                     const unsigned char password[TREE_PASSWORD_SIZE]) {
    struct sessions *s = &tree->sessions;
    uint32_t slot = free_slot(s);
    s->at[slot] = (struct session){.id = id, .timeout_ms = timeout_ms};
    memcpy(s->at[slot].password, password, TREE_PASSWORD_SIZE);
    table_add(&s->index, hash_of(id), slot);
    s->count++;
    return slot;
}

void session_remove(struct tree *tree, uint32_t slot) {
    struct sessions *s = &tree->sessions;
    table_remove(&s->index, hash_of(s->at[slot].id), slot);
    s->at[slot] = (struct session){.owned = s->free_slot};
    s->free_slot = slot;
    s->count--;
}

void session_own(struct tree *tree, node_id id) {
    struct node *node = &tree->node[id];
    uint32_t slot = session_find(tree, node->owner);
    cv_assert(slot);
    struct session *session = &tree->sessions.at[slot];
    node->prev_owned = 0;
    node->next_owned = session->owned;
    if (session->owned) tree->node[session->owned].prev_owned = id;
    session->owned = id;
    session->owned_count++;
}

void session_disown(struct tree *tree, node_id id) {
    struct node *node = &tree->node[id];
    struct session *session = &tree->sessions.at[session_find(tree, node->owner)];
    if (node->prev_owned)
        tree->node[node->prev_owned].next_owned = node->next_owned;
    else
        session->owned = node->next_owned;
    if (node->next_owned) tree->node[node->next_owned].prev_owned = node->prev_owned;
    session->owned_count--;
}
