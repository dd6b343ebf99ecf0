/* Sessions, and the chain of ephemeral nodes of each. */
#include "base/grow.h"
#include "base/rng.h"
#include "tree/tree.h"

static uint32_t hash_of(int64_t id) { return (uint32_t)rng_mix((uint64_t)id); }

uint32_t session_find(const struct tree *tree, int64_t id) {
    const struct sessions *s = &tree->sessions;
    uint32_t place;
    for (struct probe p = table_probe(&s->index, hash_of(id)); (place = table_next(&s->index, &p));)
        if (s->at[place].id == id) return place;
    return 0;
}

static uint32_t free_place(struct sessions *s) {
    uint32_t place = s->free_place;
    if (place) {
        s->free_place = s->at[place].owned;
        return place;
    }
    s->at = grown(s->at, &s->room, s->places + 2, sizeof *s->at);
    return ++s->places;
}

uint32_t session_add(struct tree *tree, int64_t id, int32_t timeout_ms,
                     const unsigned char password[TREE_PASSWORD_SIZE]) {
    struct sessions *s = &tree->sessions;
    uint32_t place = free_place(s);
    s->at[place] = (struct session){.id = id, .timeout_ms = timeout_ms};
    memcpy(s->at[place].password, password, TREE_PASSWORD_SIZE);
    table_add(&s->index, hash_of(id), place);
    s->count++;
    return place;
}

void session_remove(struct tree *tree, uint32_t place) {
    struct sessions *s = &tree->sessions;
    table_remove(&s->index, hash_of(s->at[place].id), place);
    s->at[place] = (struct session){.owned = s->free_place};
    s->free_place = place;
    s->count--;
}

void session_own(struct tree *tree, node_id id) {
    struct node *node = &tree->node[id];
    uint32_t place = session_find(tree, node->owner);
    cv_assert(place);
    struct session *session = &tree->sessions.at[place];
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
