#include "recipe/contend.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    enum contend_kind kind;
    enum contend_recipe recipe;
} kinds[] = {
    /* Longer ones before those that they end with. */
    {"-slot-lock-", CONTEND_SLOT, CONTEND_CURATOR},
    {"-upgrade-lock-", CONTEND_UPGRADE, CONTEND_CURATOR},
    {"-shared-lock-", CONTEND_SHARED, CONTEND_CURATOR},
    {"-lock-", CONTEND_EXCLUSIVE, CONTEND_CURATOR},
    {"lock-", CONTEND_EXCLUSIVE, CONTEND_CURATOR},
    {"-latch-", CONTEND_EXCLUSIVE, CONTEND_CURATOR_LATCH},
    {"__upgrade__WRIT__", CONTEND_UPGRADE, CONTEND_CURATOR_RW},
    {"__READ__", CONTEND_SHARED, CONTEND_CURATOR_RW},
    {"__WRIT__", CONTEND_EXCLUSIVE, CONTEND_CURATOR_RW},
    {"__slot__lock__", CONTEND_SLOT, CONTEND_KAZOO},
    {"__upgrade__lock__", CONTEND_UPGRADE, CONTEND_KAZOO},
    {"__rlock__", CONTEND_SHARED, CONTEND_KAZOO},
    {"__lock__", CONTEND_EXCLUSIVE, CONTEND_KAZOO},
    {"write-", CONTEND_EXCLUSIVE, CONTEND_OTHER},
    {"read-", CONTEND_SHARED, CONTEND_OTHER},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Where the kind's text begins, in a name that ends with it and a sequence number. */
static const char *find_kind(const char *name, const char *text, int32_t *sequence) {
    size_t size = strlen(text);
    for (const char *at = strstr(name, text); at; at = strstr(at + 1, text))
        if (sequence_parse(at + size, sequence)) return at;
    return NULL;
}

bool contend_parse(struct contender *contender, const char *name) {
    for (size_t i = 0; i < KINDS; i++) {
        int32_t sequence;
        const char *at = find_kind(name, kinds[i].text, &sequence);
        if (!at) continue;
        *contender = (struct contender){.name = name,
                                        .owner = name,
                                        .owner_size = (uint32_t)(at - name),
                                        .kind = kinds[i].kind,
                                        .recipe = kinds[i].recipe,
                                        .sequence = sequence};
        return true;
    }
    return false;
}

const char *contend_kind_text(enum contend_recipe recipe, enum contend_kind kind) {
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].recipe == recipe && kinds[i].kind == kind) return kinds[i].text;
    return NULL;
}

bool contend_is_owner(const struct contender *contender, const char *owner, size_t owner_size) {
    return contender->owner_size == owner_size && !memcmp(contender->owner, owner, owner_size);
}

static int by_rank(const void *a, const void *b) {
    const struct contender *one = a, *other = b;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return strcmp(one->name, other->name);
}

size_t contend_list(struct contender *contenders, const char *const *names, size_t count) {
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (contend_parse(&contenders[known], names[i])) known++;
    for (size_t i = 0; i < known; i++)
        contenders[i].rank = sequence_rank(contenders[i].sequence, contenders[0].sequence);
    if (known) qsort(contenders, known, sizeof *contenders, by_rank);
    return known;
}

/* The nearest one before `mine` of those that came up so far. */
static void take_nearer(struct contender **nearest, struct contender *candidate) {
    if (!*nearest || !sequence_before(candidate->sequence, (*nearest)->sequence))
        *nearest = candidate;
}

struct queue {
    struct contender *all;
    size_t count;
    const char *owner;
    size_t owner_size;
};

static bool is_mine(const struct queue *q, const struct contender *c) {
    return contend_is_owner(c, q->owner, q->owner_size);
}

static void find_mine(const struct queue *q, struct contend_verdict *v) {
    for (struct contender *c = q->all; c < q->all + q->count; c++) {
        c->watch = false;
        if (!is_mine(q, c)) continue;
        const struct contender **which = c->kind == CONTEND_UPGRADE ? &v->mark : &v->mine;
        if (!*which || sequence_before(c->sequence, (*which)->sequence)) {
            if (*which) v->extra = *which;
            *which = c;
        } else {
            v->extra = c;
        }
    }
}

static bool is_mixed(const struct queue *q, const struct contender *mine) {
    for (const struct contender *c = q->all; c < q->all + q->count; c++)
        if (c->recipe != mine->recipe) return true;
    return false;
}

static void judge_exclusive_or_shared(const struct queue *q, struct contend_verdict *v) {
    struct contender *nearest = NULL;
    for (struct contender *c = q->all; c < q->all + q->count; c++) {
        if (is_mine(q, c) || !sequence_before(c->sequence, v->mine->sequence)) continue;
        if (v->mine->kind == CONTEND_SHARED && c->kind == CONTEND_SHARED) continue;
        take_nearer(&nearest, c);
        v->position++;
    }
    if (nearest) nearest->watch = true;
    v->holds = !nearest;
}

static void watch_slots_before(const struct queue *q, int32_t sequence) {
    for (struct contender *c = q->all; c < q->all + q->count; c++)
        c->watch |=
            c->kind == CONTEND_SLOT && !is_mine(q, c) && sequence_before(c->sequence, sequence);
}

static void judge_slots(const struct queue *q, struct contend_verdict *v, int32_t slots,
                        bool impatient) {
    struct contender *slot = NULL, *other = NULL;
    int32_t before = 0;
    for (struct contender *c = q->all; c < q->all + q->count; c++) {
        if (is_mine(q, c) || !sequence_before(c->sequence, v->mine->sequence)) continue;
        take_nearer(c->kind == CONTEND_SLOT ? &slot : &other, c);
        before += c->kind == CONTEND_SLOT;
        v->position += c->kind != CONTEND_SLOT;
    }
    if (before >= slots) v->position += before - slots + 1;
    v->holds = before < slots && !other;
    if (v->holds) return;
    if (before > slots && !impatient)
        v->chained = slot->watch = true;
    else if (other)
        other->watch = true;
    else
        watch_slots_before(q, v->mine->sequence);
}

/* The first of the others that keeps shared ones behind it from holding. */
static const struct contender *first_blocker(const struct queue *q) {
    const struct contender *first = NULL;
    for (const struct contender *c = q->all; c < q->all + q->count; c++)
        if (!is_mine(q, c) && c->kind != CONTEND_SHARED &&
            (!first || sequence_before(c->sequence, first->sequence)))
            first = c;
    return first;
}

static void judge_upgrade(const struct queue *q, struct contend_verdict *v) {
    const struct contender *blocker = first_blocker(q);
    int32_t end = v->mark->sequence;
    if (blocker && sequence_before(blocker->sequence, end))
        end = blocker->sequence;
    else
        blocker = NULL;
    struct contender *nearest = NULL;
    for (struct contender *c = q->all; c < q->all + q->count; c++) {
        if (is_mine(q, c)) continue;
        if (c->kind == CONTEND_UPGRADE && sequence_before(c->sequence, v->mark->sequence))
            v->hopeless = true;
        bool before_me = sequence_before(c->sequence, v->mine->sequence);
        bool may_hold = c->kind == CONTEND_SHARED && sequence_before(c->sequence, end);
        if (!before_me && !may_hold) continue;
        take_nearer(&nearest, c);
        v->position++;
    }
    if (nearest) nearest->watch = true;
    v->holds = !nearest && !v->hopeless;
    v->blocker = blocker;
}

struct contend_verdict contend_judge(struct contender *contenders, size_t count, const char *owner,
                                     size_t owner_size, int32_t slots, bool impatient) {
    struct queue q = {contenders, count, owner, owner_size};
    struct contend_verdict v = {0};
    find_mine(&q, &v);
    if (!v.mine) return v;
    v.mixed = is_mixed(&q, v.mine);
    if (v.mark)
        judge_upgrade(&q, &v);
    else if (v.mine->kind == CONTEND_SLOT)
        judge_slots(&q, &v, slots, impatient);
    else
        judge_exclusive_or_shared(&q, &v);
    return v;
}
