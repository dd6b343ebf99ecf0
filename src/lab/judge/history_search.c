/* Operations that change nothing are linearized as soon as their answers are right: moved to the
 * front, they block no other.  Only operations that change the object are choices; required ones
 * are tried before optional ones. */
#include "lab/judge/history_search.h"

#include "base/hash.h"

struct frame { /* a configuration whose choices are tried */
    struct history_state state;
    uint32_t ordered, choices, choice;
};

struct search {
    struct items *items;
    struct history_state state;
    uint32_t first;   /* the earliest required operation that is not linearized */
    uint32_t left;    /* required operations that are not linearized */
    uint32_t deletes; /* deletes that are not linearized, required or optional */
    uint32_t *order;  /* the items that are linearized */
    uint32_t ordered;
    uint64_t *done; /* a bit for each required operation */
    struct frame *frame;
    size_t frames, frame_room;
    uint32_t *choice;
    size_t choices, choice_room;
    struct bytes seen; /* the configurations so far, one after the other */
    size_t *seen_at;
    size_t seen_count, seen_room;
    struct table table;
    uint64_t work;
    uint32_t longest; /* the most required operations that were ever linearized */
};

static void search_open(struct search *s, struct items *items) {
    *s = (struct search){.items = items, .state = items->first};
    s->left = items->required;
    s->first = items->required ? 0 : NO_ITEM;
    s->order = calloc(items->count + 1, sizeof *s->order);
    s->done = calloc(items->required / 64 + 1, sizeof *s->done);
    cv_assert(s->order && s->done);
    for (uint32_t i = 0; i < items->count; i++)
        s->deletes += items->item[i].o.action == HISTORY_DELETE;
    for (uint32_t i = 0; i < items->required; i++) {
        items->item[i].before = i ? i - 1 : NO_ITEM;
        items->item[i].after = i + 1 < items->required ? i + 1 : NO_ITEM;
    }
}

static void search_close(struct search *s) {
    free(s->order);
    free(s->done);
    free(s->frame);
    free(s->choice);
    free(s->seen_at);
    bytes_close(&s->seen);
    table_close(&s->table);
}

/* ---- One step forward or back ---- */

static void linearize(struct search *s, uint32_t i) {
    struct item *item = &s->items->item[i];
    s->order[s->ordered++] = i;
    s->deletes -= item->o.action == HISTORY_DELETE;
    if (item->queue != NO_QUEUE) s->items->queue[item->queue].at++;
    if (i >= s->items->required) return;
    s->done[i / 64] |= (uint64_t)1 << i % 64;
    s->left--;
    *(item->before == NO_ITEM ? &s->first : &s->items->item[item->before].after) = item->after;
    if (item->after != NO_ITEM) s->items->item[item->after].before = item->before;
}

/* In reverse, so that each item finds its neighbours as it left them. */
static void undo_to(struct search *s, uint32_t ordered) {
    while (s->ordered > ordered) {
        uint32_t i = s->order[--s->ordered];
        struct item *item = &s->items->item[i];
        s->deletes += item->o.action == HISTORY_DELETE;
        if (item->queue != NO_QUEUE) s->items->queue[item->queue].at--;
        if (i >= s->items->required) continue;
        s->done[i / 64] &= ~((uint64_t)1 << i % 64);
        s->left++;
        *(item->before == NO_ITEM ? &s->first : &s->items->item[item->before].after) = i;
        if (item->after != NO_ITEM) s->items->item[item->after].before = i;
    }
}

/* ---- Candidates for the next operation ---- */

/* The earliest end of a required operation that is not linearized: an operation that starts later
 * must come after it.  Operations that start after the bound end after it, too, so the loop stops.
 */
static int64_t bound_of(const struct search *s) {
    const struct item *item = s->items->item;
    int64_t bound = INT64_MAX;
    for (uint32_t i = s->first; i != NO_ITEM && item[i].o.start <= bound; i = item[i].after)
        if (item[i].o.end < bound) bound = item[i].o.end;
    return bound;
}

static uint32_t head_of(const struct items *items, const struct queue *queue) {
    return queue->at < queue->end ? items->queued[queue->at] : NO_ITEM;
}

static bool is_at_head(const struct items *items, uint32_t i) {
    uint32_t queue = items->item[i].queue;
    return queue == NO_QUEUE || head_of(items, &items->queue[queue]) == i;
}

/* Whether it is at the head of its queue and its answer is right; sets the state after it. Versions
 * that no operation observes are not counted. */
static bool can_be_next(struct search *s, uint32_t i, struct history_state *after) {
    s->work++;
    *after = s->state;
    if (!is_at_head(s->items, i) || !history_step(&s->items->item[i].o, after)) return false;
    if (!s->items->versioned) after->version = 0;
    return true;
}

/* A write of the present value is not one of these: later, it would change the value. */
static bool changes_nothing(const struct history_operation *o) {
    return o->action == HISTORY_READ || o->outcome != HISTORY_OK;
}

static bool linearize_unchanging(struct search *s, uint32_t i) {
    struct history_state after;
    if (!changes_nothing(&s->items->item[i].o) || !can_be_next(s, i, &after)) return false;
    linearize(s, i);
    return true;
}

/* Reads that have to wait for their client alone. */
static bool linearize_stale_reads(struct search *s) {
    const struct items *items = s->items;
    uint32_t before = s->ordered, head;
    for (uint32_t q = 0; q < items->clients; q++)
        while ((head = head_of(items, &items->queue[q])) != NO_ITEM &&
               items->item[head].o.action == HISTORY_READ)
            if (!linearize_unchanging(s, head)) break;
    return s->ordered > before;
}

static void linearize_all_unchanging(struct search *s) {
    const struct item *item = s->items->item;
    bool more = true;
    while (more) {
        int64_t bound = bound_of(s);
        more = linearize_stale_reads(s);
        for (uint32_t i = s->first; i != NO_ITEM && item[i].o.start <= bound; i = item[i].after)
            more |= linearize_unchanging(s, i);
    }
}

static void add_choice(struct search *s, uint32_t i) {
    struct history_state after;
    if (!can_be_next(s, i, &after)) return;
    s->choice = grown(s->choice, &s->choice_room, s->choices + 1, sizeof *s->choice);
    s->choice[s->choices++] = i;
}

static void gather_choices(struct search *s) {
    const struct items *items = s->items;
    const struct item *item = items->item;
    int64_t bound = bound_of(s);
    for (uint32_t i = s->first; i != NO_ITEM && item[i].o.start <= bound; i = item[i].after)
        add_choice(s, i);
    for (uint32_t q = items->clients; q < items->queues; q++) {
        uint32_t i = head_of(items, &items->queue[q]);
        if (i != NO_ITEM && item[i].o.start <= bound) add_choice(s, i);
    }
}

/* ---- Configurations that were visited ---- */

/* A configuration as it is kept: its key, which is the state and the bits of the required
 * operations from the first that is not linearized on; then how many of each optional queue are
 * used up. */
struct configuration {
    unsigned char *bytes;
    size_t key_size, size;
};

/* How many operations of a queue are used up.  A queue whose operations expect a version that will
 * not come back counts as used up. */
static uint32_t used_up(const struct search *s, const struct queue *queue) {
    uint32_t head = head_of(s->items, queue);
    if (head == NO_ITEM) return queue->at;
    const struct history_operation *o = &s->items->item[head].o;
    bool too_late = o->action == HISTORY_CAS && o->expected != HISTORY_ANY &&
                    o->expected < s->state.version && !s->deletes;
    return too_late ? queue->end : queue->at;
}

static struct configuration write_configuration(struct search *s) {
    const struct items *items = s->items;
    size_t from = s->first / 64, to = items->required / 64 + 1;
    while (to > from && !s->done[to - 1]) to--;
    size_t words = (to - from) * sizeof *s->done;
    size_t key_size = sizeof s->state + sizeof s->first + words;
    size_t size = key_size + (items->queues - items->clients) * sizeof(uint32_t);
    unsigned char *at = bytes_reserve(&s->seen, size);
    struct configuration configuration = {at, key_size, size};
    memcpy(at, &s->state, sizeof s->state), at += sizeof s->state;
    memcpy(at, &s->first, sizeof s->first), at += sizeof s->first;
    memcpy(at, s->done + from, words), at += words;
    for (uint32_t q = items->clients; q < items->queues; q++, at += sizeof(uint32_t)) {
        uint32_t used = used_up(s, &items->queue[q]);
        memcpy(at, &used, sizeof used);
    }
    return configuration;
}

/* A configuration is dominated by a visited one with the same key that had as many optional
 * operations left, or more: what was impossible there is impossible here. */
static bool is_dominated(struct search *s, const struct configuration *c, const unsigned char *seen,
                         size_t seen_size) {
    uint32_t used, used_then;
    s->work += c->size / sizeof(uint64_t);
    if (seen_size != c->size || memcmp(seen, c->bytes, c->key_size) != 0) return false;
    for (size_t at = c->key_size; at < c->size; at += sizeof used) {
        memcpy(&used, c->bytes + at, sizeof used);
        memcpy(&used_then, seen + at, sizeof used_then);
        if (used < used_then) return false;
    }
    return true;
}

static bool is_new(struct search *s) {
    struct configuration here = write_configuration(s);
    uint32_t hash = hash_bytes(here.bytes, here.key_size, 0), number;
    for (struct probe p = table_probe(&s->table, hash); (number = table_next(&s->table, &p));) {
        size_t at = s->seen_at[number - 1];
        if (is_dominated(s, &here, s->seen.at + at, s->seen_at[number] - at)) return false;
    }
    s->seen_at = grown(s->seen_at, &s->seen_room, s->seen_count + 2, sizeof *s->seen_at);
    s->seen_at[s->seen_count] = s->seen.used;
    bytes_extend(&s->seen, here.size);
    s->seen_at[++s->seen_count] = s->seen.used;
    table_add(&s->table, hash, (uint32_t)s->seen_count);
    s->work += here.size / sizeof(uint64_t);
    return true;
}

/* ---- What to show when there is no linearization ---- */

static void note_stuck(struct search *s, struct history_result *result) {
    const struct items *items = s->items;
    int64_t bound = bound_of(s);
    result->stuck_count = 0;
    for (uint32_t i = s->first; i != NO_ITEM; i = items->item[i].after)
        if (is_at_head(items, i) && items->item[i].o.start <= bound)
            result->stuck[result->stuck_count++] = items->item[i].index;
}

/* Keeps the longest order: the more required operations the better, then the fewer optional ones.
 */
static void note_longest(struct search *s, struct history_result *result) {
    uint32_t done = s->items->required - s->left;
    bool shorter = done == s->longest && s->ordered < result->ordered;
    if (result->order && done <= s->longest && !shorter) return;
    if (!result->order) {
        result->order = calloc(s->items->count + 1, sizeof *result->order);
        result->stuck = calloc(s->items->count + 1, sizeof *result->stuck);
        cv_assert(result->order && result->stuck);
    }
    s->longest = done;
    result->ordered = s->ordered;
    for (uint32_t i = 0; i < s->ordered; i++) result->order[i] = s->items->item[s->order[i]].index;
    note_stuck(s, result);
}

/* ---- The search ---- */

static void enter(struct search *s) {
    s->frame = grown(s->frame, &s->frame_room, s->frames + 1, sizeof *s->frame);
    s->frame[s->frames++] =
        (struct frame){s->state, s->ordered, (uint32_t)s->choices, (uint32_t)s->choices};
    gather_choices(s);
}

/* Makes the next choice of the newest frame that has one. */
static bool choose(struct search *s, struct history_result *result) {
    while (s->frames) {
        struct frame *frame = &s->frame[s->frames - 1];
        undo_to(s, frame->ordered);
        s->state = frame->state;
        if (frame->choice < s->choices) {
            uint32_t i = s->choice[frame->choice++];
            can_be_next(s, i, &s->state);
            linearize(s, i);
            return true;
        }
        note_longest(s, result);
        s->choices = frame->choices;
        s->frames--;
    }
    return false;
}

enum verdict_value history_search(struct items *items, uint64_t work_limit,
                                  struct history_result *result) {
    struct search search, *s = &search;
    enum verdict_value verdict = UNKNOWN;
    search_open(s, items);
    do {
        linearize_all_unchanging(s);
        if (!s->left)
            verdict = HELD;
        else if (is_new(s))
            enter(s);
        if (verdict != HELD && !choose(s, result)) verdict = VIOLATED;
    } while (verdict == UNKNOWN && s->work <= work_limit);
    result->work += s->work;
    search_close(s);
    return verdict;
}
