#include "lab/judge/history.h"

#include "lab/judge/history_search.h"

size_t history_add(struct history *history, const struct history_operation *operation) {
    history->operation =
        grown(history->operation, &history->room, history->count + 1, sizeof *history->operation);
    history->operation[history->count] = *operation;
    return history->count++;
}

void history_clear(struct history *history) { history->count = 0; }

void history_close(struct history *history) {
    free(history->operation);
    *history = (struct history){0};
}

/* ---- Well-formed operations ---- */

#define OUTCOME(NAME) (1u << HISTORY_##NAME)

static const unsigned char outcomes_of[HISTORY_ACTIONS] = {
    [HISTORY_INITIAL] = OUTCOME(OK),
    [HISTORY_READ] = OUTCOME(UNKNOWN) | OUTCOME(OK) | OUTCOME(NO_NODE),
    [HISTORY_WRITE] = OUTCOME(UNKNOWN) | OUTCOME(OK) | OUTCOME(NO_NODE),
    [HISTORY_CAS] = OUTCOME(UNKNOWN) | OUTCOME(OK) | OUTCOME(NO_NODE) | OUTCOME(BAD_VERSION),
    [HISTORY_CAS_VALUE] = OUTCOME(UNKNOWN) | OUTCOME(OK) | OUTCOME(NO_NODE) | OUTCOME(BAD_VERSION),
    [HISTORY_CREATE] = OUTCOME(UNKNOWN) | OUTCOME(OK) | OUTCOME(EXISTS),
    [HISTORY_DELETE] = OUTCOME(UNKNOWN) | OUTCOME(OK) | OUTCOME(NO_NODE) | OUTCOME(BAD_VERSION),
    [HISTORY_ACQUIRE] = OUTCOME(UNKNOWN) | OUTCOME(OK) | OUTCOME(REFUSED),
    [HISTORY_RELEASE] = OUTCOME(UNKNOWN) | OUTCOME(OK) | OUTCOME(REFUSED),
};

const char *history_refuse(const struct history_operation *o) {
    const int64_t most = INT64_MAX / 2; /* so that there is always a next one */
    if ((unsigned)o->action >= HISTORY_ACTIONS || (unsigned)o->outcome >= HISTORY_OUTCOMES ||
        !(outcomes_of[o->action] & 1u << o->outcome))
        return "this operation cannot have this outcome";
    if (o->outcome != HISTORY_UNKNOWN && o->end < o->start) return "it ends before it starts";
    if (o->value < HISTORY_ANY || o->version < HISTORY_ANY || o->expected < HISTORY_ANY ||
        o->token < HISTORY_ANY)
        return "values, versions and tokens are not below 0";
    if (o->version > most || o->token > most) return "versions and tokens are below 2^62";
    if (history_sets_value(o) && o->value == HISTORY_ANY) return "it needs a value";
    if (o->action == HISTORY_CAS_VALUE && o->expected == HISTORY_ANY)
        return "it needs an expected value";
    if (o->outcome == HISTORY_UNKNOWN && (o->version != HISTORY_ANY || o->token != HISTORY_ANY))
        return "an operation of unknown outcome has no version or token";
    return NULL;
}

/* ---- Judging ---- */

/* A node and a lock of the same name are two objects. */
static bool same_object(const struct history_operation *a, const struct history_operation *b) {
    return a->key == b->key && history_is_of_lock(a) == history_is_of_lock(b);
}

static int by_object_and_start(const void *a, const void *b, void *context) {
    const struct history_operation *operation = context;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    const struct history_operation *x = &operation[i], *y = &operation[j];
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (!same_object(x, y)) return history_is_of_lock(x) ? 1 : -1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return i < j ? -1 : i > j;
}

static size_t *indices_by_object(const struct history *history) {
    size_t *indices = calloc(history->count + 1, sizeof *indices);
    cv_assert(indices);
    for (size_t i = 0; i < history->count; i++) {
        cv_assert(!history_refuse(&history->operation[i]));
        indices[i] = i;
    }
    qsort_r(indices, history->count, sizeof *indices, by_object_and_start, history->operation);
    return indices;
}

/* The stuck operation that ended first explains the violation best. */
static void explain(const struct history *history, struct history_result *result) {
    char what[HISTORY_TEXT_MAX], why[HISTORY_TEXT_MAX];
    cv_assert(result->stuck_count);
    size_t first = result->stuck[0];
    for (size_t i = 1; i < result->stuck_count; i++)
        if (history->operation[result->stuck[i]].end < history->operation[first].end)
            first = result->stuck[i];
    uint64_t at = (uint64_t)history->operation[first].end;
    verdict_violated(&result->verdict, at, "%s, but %s", history_describe(history, first, what),
                     history_why(history, result, first, why));
}

static enum verdict_value judge_object(const struct history *history, const size_t *indices,
                                       size_t count, const struct history_rules *rules,
                                       struct history_result *result) {
    struct items items;
    items_open(&items, history, indices, count, rules->sequential);
    uint64_t work_limit = rules->work_limit ? rules->work_limit : HISTORY_WORK;
    enum verdict_value value = history_search(&items, work_limit, result);
    items_close(&items);
    return value;
}

static void forget_order(struct history_result *result) {
    free(result->order);
    free(result->stuck);
    result->order = result->stuck = NULL;
    result->ordered = result->stuck_count = 0;
}

void history_judge(const struct history *history, const struct history_rules *rules,
                   struct history_result *result) {
    size_t *indices = indices_by_object(history), end;
    *result = (struct history_result){.verdict.value = HELD};
    for (size_t begin = 0; begin < history->count; begin = end) {
        const struct history_operation *first = &history->operation[indices[begin]];
        uint32_t key = first->key;
        for (end = begin + 1; end < history->count; end++)
            if (!same_object(first, &history->operation[indices[end]])) break;
        enum verdict_value value =
            judge_object(history, indices + begin, end - begin, rules, result);
        if (value == VIOLATED) {
            result->key = key;
            explain(history, result);
            break;
        }
        if (value == UNKNOWN && result->verdict.value == HELD) {
            result->key = key;
            verdict_set(&result->verdict, UNKNOWN, 0, "too much work, given up after %llu steps",
                        (unsigned long long)result->work);
        }
        forget_order(result);
    }
    free(indices);
}

void history_result_close(struct history_result *result) {
    forget_order(result);
    *result = (struct history_result){0};
}
