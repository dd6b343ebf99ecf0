#include "recipe/election.h"

#include <stdlib.h>
#include <string.h>

#include "recipe/sequence.h"

static const char marker[] = "__candidate";

/* A number of at most ten digits, and what follows it; NULL: there is none. */
static const char *parse_priority(const char *text, int32_t *priority) {
    bool negative = *text == '-';
    int64_t value = 0;
    const char *at = text + negative;
    if (*at < '0' || *at > '9') return NULL;
    for (int digits = 0; *at >= '0' && *at <= '9'; at++, digits++) {
        if (digits == 10) return NULL;
        value = value * 10 + (*at - '0');
    }
    if (negative) value = -value;
    if (value > INT32_MAX || value < INT32_MIN) return NULL;
    *priority = (int32_t)value;
    return at;
}

bool election_parse(struct candidate *candidate, const char *name) {
    const char *at = strstr(name, marker);
    struct candidate c = {.name = name, .owner = name};
    if (!at) return false;
    c.owner_size = (uint32_t)(at - name);
    at = parse_priority(at + sizeof marker - 1, &c.priority);
    if (!at || strncmp(at, "__", 2) || !sequence_parse(at + 2, &c.sequence)) return false;
    *candidate = c;
    return true;
}

static int by_priority(const void *a, const void *b) {
    const struct candidate *one = a, *other = b;
    if (one->priority != other->priority) return one->priority > other->priority ? -1 : 1;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return strcmp(one->name, other->name);
}

size_t election_list(struct candidate *candidates, const char *const *names, size_t count) {
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (election_parse(&candidates[known], names[i])) known++;
    for (size_t i = 0; i < known; i++)
        candidates[i].rank = sequence_rank(candidates[i].sequence, candidates[0].sequence);
    if (known) qsort(candidates, known, sizeof *candidates, by_priority);
    return known;
}

struct election_verdict election_judge(const struct candidate *candidates, size_t count,
                                       const char *owner, size_t owner_size) {
    for (size_t i = 0; i < count; i++)
        if (candidates[i].owner_size == owner_size &&
            !memcmp(candidates[i].owner, owner, owner_size))
            return (struct election_verdict){.mine = &candidates[i],
                                             .ahead = i ? &candidates[i - 1] : NULL,
                                             .position = (int32_t)i};
    return (struct election_verdict){0};
}

bool election_asks(const struct election_term *term, int32_t my_priority, bool i_am_patient) {
    return !i_am_patient && !term->stable && !term->asked && term->priority < my_priority;
}
