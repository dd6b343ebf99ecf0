#include "lab/judge/history_model.h"

static enum history_outcome set_value(const struct history_operation *o,
                                      struct history_state *state) {
    state->value = o->value;
    state->version++;
    return HISTORY_OK;
}

static enum history_outcome act_on_lock(const struct history_operation *o,
                                        struct history_state *state) {
    if (o->action == HISTORY_RELEASE) {
        if (state->holder != o->client) return HISTORY_REFUSED;
        state->holder = LOCK_FREE;
        return HISTORY_OK;
    }
    if (state->holder != LOCK_FREE) return HISTORY_REFUSED;
    state->holder = o->client;
    /* An unknown token is at least the next one, and the next one restricts the future least. */
    state->token = o->token == HISTORY_ANY ? state->token + 1 : o->token;
    return HISTORY_OK;
}

enum history_outcome history_act(const struct history_operation *o, struct history_state *state) {
    bool other_version = o->expected != HISTORY_ANY && o->expected != state->version;
    if (history_is_of_lock(o)) return act_on_lock(o, state);
    if (o->action == HISTORY_CREATE) {
        if (state->value != NODE_ABSENT) return HISTORY_EXISTS;
        state->value = o->value;
        state->version = 0;
        return HISTORY_OK;
    }
    if (state->value == NODE_ABSENT) return HISTORY_NO_NODE;
    switch (o->action) {
    case HISTORY_WRITE: return set_value(o, state);
    case HISTORY_CAS: return other_version ? HISTORY_BAD_VERSION : set_value(o, state);
    case HISTORY_CAS_VALUE:
        return o->expected != state->value ? HISTORY_BAD_VERSION : set_value(o, state);
    case HISTORY_DELETE:
        if (other_version) return HISTORY_BAD_VERSION;
        state->value = NODE_ABSENT;
        state->version = 0;
        return HISTORY_OK;
    default: return HISTORY_OK;
    }
}

bool history_step(const struct history_operation *o, struct history_state *state) {
    struct history_state after = *state;
    enum history_outcome outcome = history_act(o, &after);
    if (o->outcome == HISTORY_UNKNOWN) {
        if (outcome != HISTORY_OK) return false;
        *state = after;
        return true;
    }
    if (outcome != o->outcome) return false;
    if (outcome == HISTORY_OK) {
        bool node_stays = !history_is_of_lock(o) && o->action != HISTORY_DELETE;
        if (node_stays && o->version != HISTORY_ANY && o->version != after.version) return false;
        if (o->action == HISTORY_READ && o->value != HISTORY_ANY && o->value != after.value)
            return false;
        if (o->action == HISTORY_ACQUIRE && after.token <= state->token) return false;
    }
    *state = after;
    return true;
}
