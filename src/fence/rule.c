#include "fence/rule.h"

#include "base/assert.h"

enum fence_verdict fence_judge(const struct fence_lock *lock, int64_t token, bool asked,
                               bool strict) {
    if (token < lock->highest) return FENCE_OLDER;
    switch (lock->reach) {
    case FENCE_CONNECTING: return FENCE_ASK;
    case FENCE_REACHED:
        if (token == lock->holder) return FENCE_ENTER;
        return asked ? FENCE_NOT_HELD : FENCE_ASK;
    case FENCE_UNREACHED: break;
    }
    return strict ? FENCE_UNSURE : FENCE_ENTER;
}

static void cut(struct fence_lock *lock, struct fence_pass *pass) {
    if (pass->is_cut) return;
    pass->is_cut = true;
    lock->cut(pass);
}

void fence_enter(struct fence_lock *lock, struct fence_pass *pass, int64_t token) {
    cv_assert(!pass->lock && token >= lock->highest);
    lock->highest = token;
    for (struct fence_pass *older = lock->passes, *next; older; older = next) {
        next = older->next;
        if (older->token < token) cut(lock, older);
    }
    *pass = (struct fence_pass){.lock = lock, .token = token, .next = lock->passes};
    if (lock->passes) lock->passes->previous = pass;
    lock->passes = pass;
}

bool fence_is_clear(const struct fence_pass *pass) {
    for (const struct fence_pass *other = pass->lock->passes; other; other = other->next)
        if (other->token < pass->token) return false;
    return true;
}

void fence_leave(struct fence_pass *pass) {
    if (!pass->lock) return;
    if (pass->previous)
        pass->previous->next = pass->next;
    else
        pass->lock->passes = pass->next;
    if (pass->next) pass->next->previous = pass->previous;
    *pass = (struct fence_pass){0};
}

void fence_hear(struct fence_lock *lock, int64_t holder) {
    lock->reach = FENCE_REACHED;
    lock->holder = holder;
    for (struct fence_pass *pass = lock->passes, *next; pass; pass = next) {
        next = pass->next;
        if (pass->token != holder) cut(lock, pass);
    }
}

bool fence_parse_token(const char *text, size_t size, int64_t *token) {
    int64_t value = 0;
    if (!size) return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value))
            return false;
    }
    if (value < 1) return false;
    *token = value;
    return true;
}
