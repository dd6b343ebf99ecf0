#include "lab/sim/trace_standing.h"

#include "language/language.h"

#include <stdio.h>
#include <string.h>

static uint8_t of_value(uint8_t value) {
    unsigned standing = STANDING_VALUES + (value - 1u);
    return value == 0 ? STANDING_NONE : standing < STANDINGS ? (uint8_t)standing : STANDINGS - 1;
}

/* A process that comes to rest while it has a leader goes on leading or following. */
void standing_follow(const struct trace *trace, size_t index, struct standing *of) {
    const struct trace_entry *entry = &trace->entry[index];
    struct standing *s = &of[entry->process];
    if (trace->algorithm->problem != CV_ELECTION || !entry->process) return;
    if (entry->round) s->round = entry->round;
    if (entry->standing && entry->standing != s->value) {
        s->value = entry->standing;
        s->now = s->value == 1 && s->role ? s->role : of_value(s->value);
    }
    switch (entry->type) {
    case TR_ELECTED: s->now = s->role = STANDING_LEADS; break;
    case TR_FOLLOWS: s->now = s->role = STANDING_FOLLOWS; break;
    case TR_LEADERLESS: s->role = STANDING_NONE, s->now = of_value(s->value); break;
    case TR_CRASH: *s = (struct standing){0}; break;
    default: break;
    }
}

static const struct cv_field *named_field(const struct cv_record *record) {
    for (unsigned i = 0; i < record->field_count; i++)
        if (record->fields[i].values) return &record->fields[i];
    return NULL;
}

static unsigned count_names(const char *values) {
    unsigned count = 1;
    for (; *values; values++) count += *values == '|';
    return count;
}

const char *standing_name(const struct trace *trace, uint8_t standing,
                          char buffer[STANDING_NAME_MAX]) {
    static const char *const of_edges[] = {N_("cut off"), N_("source"),
                                           N_("between sources and sinks"), N_("sink")};
    const struct cv_field *field = named_field(trace->algorithm->state);
    if (standing == STANDING_NONE) return _("asleep");
    if (standing == STANDING_LEADS) return _("leads");
    if (standing == STANDING_FOLLOWS) return _("follows");
    unsigned value = standing - STANDING_VALUES;
    if (value + 1 == STANDINGS - STANDING_VALUES && field && count_names(field->values) > value + 1)
        return _("others");
    if (!field) return _(of_edges[value]);
    if (strcmp(field->name, "active") == 0) return value ? _("active") : _("passive");
    const char *name = field->values;
    for (unsigned i = 0; i < value && *name; i++) {
        name += strcspn(name, "|");
        name += *name == '|';
    }
    if (strcmp(field->values, "no|yes") == 0)
        snprintf(buffer, STANDING_NAME_MAX, "%s%s", value ? "" : "not ", field->name);
    else
        snprintf(buffer, STANDING_NAME_MAX, "%.*s", (int)strcspn(name, "|"), name);
    return language_name(buffer);
}

const char *standing_colour(uint8_t standing, uint32_t round) {
    static const char *const colours[STANDINGS] = {"#ffffff", "#3b82f6", "#bfdbfe", "#fde68a",
                                                   NULL,      "#fdba74", "#d8b4fe"};
    static const char *const active[] = {"#bbf7d0", "#86efac", "#4ade80", "#22c55e"};
    if (standing != STANDING_VALUES + 1) return colours[standing];
    return active[round == 0 ? 0 : round > 4 ? 3 : round - 1];
}
