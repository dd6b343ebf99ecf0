/* Operations, and why they cannot be linearized, in words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lab/judge/history_model.h"

/* Appends to a text of HISTORY_TEXT_MAX bytes; what does not fit is cut off. */
static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *text, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, HISTORY_TEXT_MAX - used, format, arguments);
    va_end(arguments);
}

static void append_value(const struct history *history, int64_t value, char *text) {
    if (history->value_name)
        append(text, "%.60s", history->value_name[value]);
    else
        append(text, "%lld", (long long)value);
}

static void append_client(const struct history *history, uint32_t client, char *text) {
    if (history->client_name)
        append(text, "%.60s", history->client_name[client]);
    else
        append(text, "client %u", client);
}

static const char *const verbs[HISTORY_ACTIONS] = {
    [HISTORY_INITIAL] = "begins with", [HISTORY_READ] = "reads",
    [HISTORY_WRITE] = "writes",        [HISTORY_CAS] = "writes",
    [HISTORY_CAS_VALUE] = "writes",    [HISTORY_CREATE] = "creates",
    [HISTORY_DELETE] = "deletes",      [HISTORY_ACQUIRE] = "acquires",
    [HISTORY_RELEASE] = "releases",
};

static const char *const answers[HISTORY_OUTCOMES] = {
    [HISTORY_UNKNOWN] = ": no answer",       [HISTORY_OK] = "",
    [HISTORY_NO_NODE] = ": no node",         [HISTORY_EXISTS] = ": exists",
    [HISTORY_BAD_VERSION] = ": bad version", [HISTORY_REFUSED] = ": refused",
};

char *history_describe(const struct history *history, size_t index, char *text) {
    const struct history_operation *o = &history->operation[index];
    *text = 0;
    append_client(history, o->client, text);
    append(text, " %s", verbs[o->action]);
    if (o->value != HISTORY_ANY) append(text, " "), append_value(history, o->value, text);
    if (o->action == HISTORY_CAS_VALUE) {
        append(text, " if it is ");
        append_value(history, o->expected, text);
    } else if (o->expected != HISTORY_ANY) {
        append(text, " if the version is %lld", (long long)o->expected);
    }
    append(text, "%s", answers[o->outcome]);
    if (o->version != HISTORY_ANY)
        append(text, "%s version %lld", history_sets_value(o) ? ":" : ",", (long long)o->version);
    if (o->token != HISTORY_ANY) append(text, " with token %lld", (long long)o->token);
    if (o->outcome == HISTORY_UNKNOWN)
        append(text, " [%lld, ...]", (long long)o->start);
    else
        append(text, " [%lld, %lld]", (long long)o->start, (long long)o->end);
    return text;
}

static struct history_state state_after(const struct history *history,
                                        const struct history_result *result) {
    struct history_state state = history_state_first();
    for (size_t i = 0; i < history->count; i++) {
        const struct history_operation *o = &history->operation[i];
        if (o->key != result->key || o->action != HISTORY_INITIAL) continue;
        state.value = o->value;
        state.version = o->version == HISTORY_ANY ? 0 : o->version;
    }
    for (size_t i = 0; i < result->ordered; i++)
        history_act(&history->operation[result->order[i]], &state);
    return state;
}

char *history_why(const struct history *history, const struct history_result *result, size_t index,
                  char *text) {
    const struct history_operation *o = &history->operation[index];
    struct history_state state = state_after(history, result);
    *text = 0;
    if (history_is_of_lock(o)) {
        if (state.holder == LOCK_FREE)
            append(text, "nobody holds it");
        else
            append_client(history, (uint32_t)state.holder, text), append(text, " holds it");
        if (o->token != HISTORY_ANY && o->token <= state.token)
            append(text, "%s token %lld was given out", *text ? " and" : "",
                   (long long)state.token);
    } else if (state.value == NODE_ABSENT) {
        append(text, "there is no node");
    } else {
        append(text, "the value is ");
        append_value(history, state.value, text);
        append(text, ", version %lld", (long long)state.version);
    }
    return text;
}
