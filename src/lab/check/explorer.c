/* Opening and closing an explorer and its workers. */
#include "lab/check/explore.h"
#include "lab/judge/election.h"
#include "lab/judge/mutex.h"

/* Bounded wait takes longer, and is judged when it is asked for; who waits for ever violates it,
 * so that is judged with it. */
static unsigned judged(const struct check_model *model, const struct check_search *search) {
    unsigned asked = search->judged ? search->judged : ~0u;
    if (model->algorithm->problem == CV_ELECTION)
        return asked & ((1u << election_properties(model->algorithm)) - 1);
    bool bounded = search->judged & 1u << BOUNDED_WAIT || model->wait_bound || model->starved_after;
    if (bounded)
        return (asked & 1u << EXCLUSION) | 1u << DEADLOCK | 1u << STARVATION | 1u << BOUNDED_WAIT;
    return asked & (1u << EXCLUSION | 1u << DEADLOCK | 1u << STARVATION);
}

int explorer_open(struct explorer *e, const struct check_model *model,
                  const struct check_search *search) {
    *e = (struct explorer){.model = model, .search = search, .hashed = search->compact};
    e->judged = judged(model, search);
    e->width[0] = (int)model->processes + 1;
    for (e->levels = 1; e->width[e->levels - 1] > 2; e->levels++)
        e->width[e->levels] = (e->width[e->levels - 1] + 1) / 2;
    if (system_open(&e->system, model, search) != 0) return -1;
    if (pairs_open(&e->states) != 0 || pairs_open(&e->inner) != 0 || pairs_open(&e->budgets) != 0) {
        explorer_close(e);
        return -1;
    }
    for (cv_pid p = 1; p <= model->processes; p++)
        e->down_notice[p] = system_notice(&e->system, KIND_DOWN, p);
    explorer_choose_bits(e);
    return 0;
}

void explorer_close(struct explorer *e) {
    system_close(&e->system);
    pairs_close(&e->states);
    pairs_close(&e->inner);
    pairs_close(&e->budgets);
}

bool explorer_crowded(const struct explorer *e) {
    return atomic_load_explicit(&e->system.crowded, memory_order_relaxed) ||
           pairs_crowded(&e->states) || pairs_crowded(&e->inner) || pairs_crowded(&e->system.memo);
}

void explorer_grow(struct explorer *e) {
    struct pairs *all[] = {&e->states, &e->inner, &e->system.memo};
    bool anew = atomic_load(&e->system.crowded);
    if (anew) explorer_write_anew(e);
    for (int i = 0; i < 3; i++) {
        bool crowded = pairs_crowded(all[i]);
        e->growing[i] = crowded || (anew && all[i] == &e->states);
        if (e->growing[i]) pairs_make_room(all[i], crowded);
    }
}

void explorer_put_back(struct explorer *e, unsigned share, unsigned of) {
    struct pairs *all[] = {&e->states, &e->inner, &e->system.memo};
    for (int i = 0; i < 3; i++)
        if (e->growing[i]) pairs_put_back(all[i], share, of);
}

bool explorer_make_room(struct explorer *e) {
    if (!explorer_crowded(e)) return false;
    explorer_grow(e);
    explorer_put_back(e, 0, 1);
    return true;
}

/* The bytes by which crowded sets are about to grow. */
uint64_t explorer_growth(const struct explorer *e) {
    const struct pairs *all[] = {&e->states, &e->inner, &e->system.memo};
    uint64_t bytes = 0;
    for (int i = 0; i < 3; i++)
        if (pairs_crowded(all[i])) bytes += all[i]->slots / 2 * sizeof *all[i]->slot;
    /* States that are packed into one pair are about to become trees, with about one more pair for
     * each level that is not shared with others. */
    if (e->packed && atomic_load(&e->system.crowded))
        bytes += (uint64_t)(e->levels - 1) * pairs_bytes(&e->states);
    return bytes;
}

uint64_t explorer_bytes(const struct explorer *e) {
    return pairs_bytes(&e->states) + pairs_bytes(&e->inner) + system_bytes(&e->system);
}

uint64_t explorer_visited_bytes(const struct explorer *e) {
    return pairs_bytes(&e->states) + (e->packed ? 0 : pairs_bytes(&e->inner)) +
           system_node_bytes(&e->system);
}
