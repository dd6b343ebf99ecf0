/* Opening a system: its parts and its initial state. */
#include "lab/check/system.h"

#include <stdlib.h>

#include "process/contract.h"

#define RESERVE ((uint64_t)1 << 36)

static void lay_out(struct system *system, cv_pid p) {
    const struct check_model *model = system->model;
    const struct cv_algorithm *code = model->algorithm;
    struct local_layout *layout = &system->layout[p];
    struct cv_layout of_state = contract_layout(code, &model->env[p]);
    layout->rows = of_state.rows;
    layout->first = of_state.first;
    layout->durable = of_state.durable;
    layout->state_size = code->state->size + of_state.rows * code->state->row_size;
    layout->size = (uint32_t)sizeof(struct local) + ((layout->state_size + 7) & ~7u);
    if (model->crashes && !model->amnesia && of_state.durable) {
        layout->saved = layout->size;
        layout->size += (of_state.durable + 7) & ~7u;
    }
    uint32_t room = cv_out_room(code, &of_state);
    if (room > system->out.room) system->out.room = room;
    if (layout->size > system->local_size) system->local_size = layout->size;
}

/* The first step of a process; what it sends is kept apart until all have started. */
static void start(struct system *system, cv_pid p) {
    const struct check_model *model = system->model;
    struct drafts *d = &system->drafts;
    struct trial trial = {.first_send = (uint32_t)d->sends};
    struct cv_event event = {.type = CV_START};
    struct local *local = local_scratch(system, 0);
    memset(local, 0, system->local_size);
    local->self = p;
    if (model->algorithm->problem == CV_ELECTION)
        local->flags = LOCAL_PENDING;
    else if (p > model->servers)
        local->entries = model->entries;
    size_t before = d->count;
    local_step(system, &trial, &event);
    cv_assert(d->count == before + 1); /* a first step makes no choice */
    system->start[p] = d->draft[before].outcome.node;
}

static void start_all(struct system *system) {
    struct drafts *d = &system->drafts;
    for (cv_pid p = 1; p <= system->model->processes; p++) start(system, p);
    for (size_t i = 0; i < d->sends; i++)
        system->start[d->send[i].to] =
            node_add(system, system->start[d->send[i].to], d->send[i].message);
    arena_extend(&system->word_arena, 8); /* so that no index is 0 */
    system->start_sends = (uint32_t)d->sends;
    system->start_send_at = (uint32_t)(system->word_arena.used / 8);
    size_t bytes = d->sends * sizeof *d->send;
    void *kept = arena_extend(&system->word_arena, bytes);
    if (bytes) memcpy(kept, d->send, bytes);
    d->count = d->sends = 0;
}

int system_open(struct system *system, const struct check_model *model,
                const struct check_search *search) {
    *system = (struct system){.model = model, .order = search->order};
    pthread_mutexattr_t briefly; /* the lock is held for less time than sleeping takes */
    pthread_mutexattr_init(&briefly);
#ifdef __GLIBC__
    pthread_mutexattr_settype(&briefly, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    pthread_mutex_init(&system->lock, &briefly);
    pthread_mutexattr_destroy(&briefly);
    bool failed = pool_open(&system->locals) != 0 || pool_open(&system->messages) != 0 ||
                  pairs_open(&system->memo) != 0 || arena_open(&system->word_arena, RESERVE) != 0 ||
                  arena_open(&system->head_arena, RESERVE) != 0 ||
                  arena_open(&system->flag_arena, RESERVE) != 0 ||
                  pairs_open(&system->reactions) != 0;
    system->reaction_block.size = 1;
    system->words = system->word_arena.base;
    for (cv_pid p = 1; p <= model->processes && !failed; p++) {
        failed =
            pool_open(&system->nodes[p]) != 0 || arena_open(&system->info_arena[p], RESERVE) != 0;
        system->infos[p] = (struct node_info *)(void *)system->info_arena[p].base;
    }
    if (failed) {
        system_close(system);
        return -1;
    }
    for (cv_pid p = 1; p <= model->processes; p++) lay_out(system, p);
    system->out.sends = malloc(system->out.room ? system->out.room : 1);
    system->scratch = calloc(CHECK_CHOICES_MAX + 1, system->local_size);
    cv_assert(system->out.sends && system->scratch);
    if (search->symmetry) renamings_open(&system->renamings, model);
    system->tokens = 1; /* the resource begins with token 0 */
    start_all(system);
    return 0;
}

void system_close(struct system *system) {
    pool_close(&system->locals);
    pool_close(&system->messages);
    pairs_close(&system->memo);
    for (cv_pid p = 1; p <= system->model->processes; p++) {
        pool_close(&system->nodes[p]);
        arena_close(&system->info_arena[p]);
    }
    arena_close(&system->word_arena);
    arena_close(&system->head_arena);
    arena_close(&system->flag_arena);
    pairs_close(&system->reactions);
    renamings_close(&system->renamings);
    free(system->out.sends);
    free(system->scratch);
    free(system->drafts.draft);
    free(system->drafts.send);
    pthread_mutex_destroy(&system->lock);
}

uint64_t system_node_bytes(const struct system *system) {
    uint64_t bytes = pool_bytes(&system->locals) + pool_bytes(&system->messages);
    for (cv_pid p = 1; p <= system->model->processes; p++) bytes += pool_bytes(&system->nodes[p]);
    return bytes;
}

uint64_t system_bytes(const struct system *system) {
    uint64_t bytes = system_node_bytes(system) + pairs_bytes(&system->memo) +
                     system->word_arena.used + system->head_arena.used + system->flag_arena.used +
                     pairs_bytes(&system->reactions);
    for (cv_pid p = 1; p <= system->model->processes; p++) bytes += system->info_arena[p].used;
    return bytes;
}
