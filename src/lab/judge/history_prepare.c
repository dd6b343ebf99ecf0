/* The operations on one key, with everything removed that makes no difference, so that the search
 * has fewer configurations to tell apart:
 *
 * - A read of unknown outcome is left out.
 * - All values that no operation observes are one value; versions that none observes are not
 *   counted.
 * - An operation of unknown outcome whose value was observed, and that alone can have written it,
 *   did happen, before the first observer had ended.
 * - Other operations of unknown outcome that are now equal are interchangeable, so those that
 *   started earlier are used first. */
#include "lab/judge/history_search.h"

enum { UNOBSERVED = -2 }; /* a value that no operation observes */

struct value_use { /* of one value, by one operation */
    int64_t value, end;
    bool seen, observed; /* seen: it was there; observed: it makes a difference */
};

struct uses {
    struct value_use *use; /* by value */
    size_t count;
};

static int by_value(const void *a, const void *b) {
    int64_t x = ((const struct value_use *)a)->value, y = ((const struct value_use *)b)->value;
    return (x > y) - (x < y);
}

static struct uses uses_of(const struct history *history, const size_t *indices, size_t count) {
    struct uses uses = {calloc(2 * count + 1, sizeof *uses.use), 0};
    cv_assert(uses.use);
    for (size_t i = 0; i < count; i++) {
        const struct history_operation *o = &history->operation[indices[i]];
        bool ok = o->outcome == HISTORY_OK, reads = o->action == HISTORY_READ;
        if (history_sets_value(o) || o->action == HISTORY_INITIAL)
            uses.use[uses.count++] = (struct value_use){.value = o->value};
        if (reads && ok && o->value != HISTORY_ANY)
            uses.use[uses.count++] = (struct value_use){o->value, o->end, true, true};
        if (o->action == HISTORY_CAS_VALUE)
            uses.use[uses.count++] = (struct value_use){o->expected, o->end, ok, true};
    }
    qsort(uses.use, uses.count, sizeof *uses.use, by_value);
    return uses;
}

struct value_summary {
    unsigned writers;
    bool seen, observed;
    int64_t seen_first; /* the earliest end of those that saw it */
};

static struct value_summary summary_of(const struct uses *uses, int64_t value) {
    struct value_summary summary = {.seen_first = INT64_MAX};
    size_t low = 0, high = uses->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (uses->use[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < uses->count && uses->use[low].value == value; low++) {
        const struct value_use *use = &uses->use[low];
        summary.writers += !use->observed;
        summary.observed |= use->observed;
        summary.seen |= use->seen;
        if (use->seen && use->end < summary.seen_first) summary.seen_first = use->end;
    }
    return summary;
}

static void simplify(struct history_operation *o, const struct uses *uses) {
    if (o->outcome == HISTORY_UNKNOWN) o->end = INT64_MAX;
    if (!history_sets_value(o)) return;
    struct value_summary value = summary_of(uses, o->value);
    if (!value.observed) o->value = UNOBSERVED;
    if (o->outcome == HISTORY_UNKNOWN && value.seen && value.writers == 1) {
        o->outcome = HISTORY_OK;
        o->end = value.seen_first > o->start ? value.seen_first : o->start;
    }
}

static bool observes_version(const struct history_operation *o) {
    bool compares = o->action == HISTORY_CAS || o->action == HISTORY_DELETE;
    return o->version != HISTORY_ANY || (compares && o->expected != HISTORY_ANY);
}

/* Required operations come first, optional ones (of unknown outcome) after them, each in order. */
static void fill(struct items *items, const struct history *history, const size_t *indices,
                 size_t count) {
    struct uses uses = uses_of(history, indices, count);
    uint32_t optional_count = 0;
    struct item *optional = calloc(count + 1, sizeof *optional);
    items->item = calloc(count + 1, sizeof *items->item);
    cv_assert(optional && items->item);
    for (size_t i = 0; i < count; i++) {
        struct item item = {
            .o = history->operation[indices[i]], .index = indices[i], .queue = NO_QUEUE};
        if (item.o.action == HISTORY_INITIAL) {
            items->first.value = item.o.value;
            items->first.version = item.o.version == HISTORY_ANY ? 0 : item.o.version;
            continue;
        }
        simplify(&item.o, &uses);
        items->versioned |= observes_version(&item.o);
        if (item.o.outcome != HISTORY_UNKNOWN)
            items->item[items->required++] = item;
        else if (item.o.action != HISTORY_READ)
            optional[optional_count++] = item;
    }
    memcpy(items->item + items->required, optional, optional_count * sizeof *optional);
    items->count = items->required + optional_count;
    free(optional);
    free(uses.use);
}

#define ORDER(A, B)                                                                                \
    if ((A) != (B)) return (A) < (B) ? -1 : 1

/* By client, and in the order of the client. */
static int by_client(const void *a, const void *b, void *context) {
    const struct items *items = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    ORDER(items->item[x].o.client, items->item[y].o.client);
    ORDER(x, y);
    return 0;
}

/* Operations that are possible at few moments come before those that are possible at any. */
static int compare_effects(const struct history_operation *a, const struct history_operation *b) {
    ORDER(b->action, a->action);
    ORDER(a->value, b->value);
    ORDER(a->expected, b->expected);
    if (history_is_of_lock(a)) ORDER(a->client, b->client);
    return 0;
}

static int by_effect(const void *a, const void *b, void *context) {
    const struct items *items = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare_effects(&items->item[x].o, &items->item[y].o);
    if (order) return order;
    ORDER(x, y);
    return 0;
}

static void enqueue(struct items *items, uint32_t at, bool with_last) {
    if (!with_last) items->queue[items->queues++] = (struct queue){at, at, at};
    items->queue[items->queues - 1].end = at + 1;
    items->item[items->queued[at]].queue = items->queues - 1;
}

/* An operation that did happen although its client got no answer is in no queue, because its client
 * may have gone on before it took effect. */
static void queue_clients(struct items *items, const struct history *history) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < items->required; i++)
        if (history->operation[items->item[i].index].outcome != HISTORY_UNKNOWN)
            items->queued[count++] = i;
    qsort_r(items->queued, count, sizeof *items->queued, by_client, items);
    for (uint32_t at = 0; at < count; at++) {
        const uint32_t *i = &items->queued[at];
        enqueue(items, at, at && items->item[i[0]].o.client == items->item[i[-1]].o.client);
    }
    items->clients = items->queues;
}

static void queue_equal_operations(struct items *items) {
    uint32_t count = items->count - items->required;
    for (uint32_t i = 0; i < count; i++) items->queued[items->required + i] = items->required + i;
    qsort_r(items->queued + items->required, count, sizeof *items->queued, by_effect, items);
    for (uint32_t at = items->required; at < items->count; at++) {
        const uint32_t *i = &items->queued[at];
        enqueue(items, at,
                at > items->required &&
                    compare_effects(&items->item[i[0]].o, &items->item[i[-1]].o) == 0);
    }
}

void items_open(struct items *items, const struct history *history, const size_t *indices,
                size_t count, bool sequential) {
    cv_assert(count < NO_ITEM);
    *items = (struct items){.first = history_state_first()};
    fill(items, history, indices, count);
    items->queue = calloc(items->count + 1, sizeof *items->queue);
    items->queued = calloc(items->count + 1, sizeof *items->queued);
    cv_assert(items->queue && items->queued);
    if (sequential) queue_clients(items, history);
    queue_equal_operations(items);
    if (!items->versioned) items->first.version = 0;
}

void items_close(struct items *items) {
    free(items->item);
    free(items->queue);
    free(items->queued);
    *items = (struct items){0};
}
