/* A step of an algorithm that was loaded from a file.  It is taken twice: first on a copy of the
 * state, between fences, then on the state itself.  So what it writes outside of its own is seen
 * before it does harm, and so is what it does by anything but its state and the event. */
#include <stdlib.h>

#include "base/assert.h"
#include "process/contract.h"

enum { FENCE = 256, FENCE_BYTE = 0xa5 };

_Thread_local struct contract_place contract_place;

/* Everything that a step may read and write: fence, state, fence, sends, fence. */
struct yard {
    unsigned char *memory, *state, *sends;
    size_t state_size;
    struct cv_env env;
    struct cv_event event;
    struct cv_out out;
};

static void open_yard(struct yard *yard, const struct cv_algorithm *code, const void *state,
                      const struct cv_env *env, const struct cv_event *event,
                      const struct cv_out *out) {
    size_t size =
        code->state->size + (size_t)contract_layout(code, env).rows * code->state->row_size;
    size_t padded = (size + 7) & ~(size_t)7;
    yard->memory = malloc(3 * FENCE + padded + out->room);
    cv_assert(yard->memory);
    yard->state_size = size;
    yard->state = yard->memory + FENCE;
    yard->sends = yard->state + padded + FENCE;
    memset(yard->memory, FENCE_BYTE, FENCE);
    memset(yard->state + size, FENCE_BYTE, padded - size + FENCE);
    memset(yard->sends + out->room, FENCE_BYTE, FENCE);
    memcpy(yard->state, state, size);
    memcpy(&yard->env, env, sizeof *env);
    memcpy(&yard->event, event, sizeof *event);
    memcpy(&yard->out, out, sizeof *out);
    yard->out.sends = yard->sends;
}

static bool is_whole(const unsigned char *from, const unsigned char *to) {
    /* equal to themselves, moved by one */
    return *from == FENCE_BYTE && memcmp(from, from + 1, (size_t)(to - from) - 1) == 0;
}

static bool same_bytes(const void *a, const void *b, size_t size) { return !memcmp(a, b, size); }

static void inspect_yard(const struct yard *yard, const struct cv_algorithm *code,
                         const struct cv_env *env, const struct cv_event *event,
                         const struct cv_out *before) {
    const struct cv_out *out = &yard->out;
    const unsigned char *end = yard->sends + before->room;
    if (!is_whole(yard->memory, yard->state) ||
        !is_whole(yard->state + yard->state_size, yard->sends))
        contract_break(code, env->self, "writes outside of its state, which has %zu bytes",
                       yard->state_size);
    if (!is_whole(end, end + FENCE) || out->sends != yard->sends || out->room != before->room ||
        out->used > out->room || out->used % 8 || out->tells > CV_TELLS_MAX)
        contract_break(code, env->self, "writes more effects than its 'out' has room for");
    if (!same_bytes(&yard->env, env, sizeof *env) ||
        !same_bytes(&yard->event, event, sizeof *event))
        contract_break(code, env->self, "changes its 'env' or its event, which are constant");
}

static void run(const struct cv_algorithm *code, void *state, const struct cv_env *env,
                const struct cv_event *event, struct cv_out *out) {
    cv_pid self = env->self;
    contract_place.algorithm = code->name;
    contract_place.process = self;
    code->step(state, env, event, out);
    contract_place.algorithm = NULL;
    contract_place.steps++;
}

static bool same_timers(const struct cv_out *a, const struct cv_out *b) {
    if (a->timers_set != b->timers_set || a->timers_cancelled != b->timers_cancelled) return false;
    for (unsigned t = 0; t < CV_TIMERS_MAX; t++)
        if (a->timers_set >> t & 1 &&
            (a->timer[t].min_us != b->timer[t].min_us || a->timer[t].max_us != b->timer[t].max_us))
            return false;
    return true;
}

static bool same_tells(const struct cv_out *a, const struct cv_out *b) {
    if (a->tells != b->tells) return false;
    for (unsigned t = 0; t < a->tells; t++)
        if (a->tell[t].what != b->tell[t].what || a->tell[t].arg != b->tell[t].arg ||
            a->tell[t].term != b->tell[t].term)
            return false;
    return true;
}

static bool same_effects(const struct cv_out *a, const struct cv_out *b) {
    return a->save == b->save && a->choose == b->choose && a->used == b->used &&
           memcmp(a->sends, b->sends, a->used) == 0 && same_timers(a, b) && same_tells(a, b);
}

void contract_step_loaded(const struct cv_algorithm *code, void *state, const struct cv_env *env,
                          const struct cv_event *event, struct cv_out *out) {
    struct yard yard;
    if (!contract_place.steps) contract_watch_thread();
    open_yard(&yard, code, state, env, event, out);
    run(code, yard.state, &yard.env, &yard.event, &yard.out);
    inspect_yard(&yard, code, env, event, out);
    run(code, state, env, event, out);
    if (memcmp(yard.state, state, yard.state_size) != 0 || !same_effects(&yard.out, out))
        contract_break(code, env->self,
                       "does something else when a step is repeated: it may depend on nothing but "
                       "its state, its 'env' and the event, so no rand(), no clock, no variables "
                       "of the file, and all bytes that it sends are set");
    free(yard.memory);
    contract_inspect(code, env, state, out);
}
