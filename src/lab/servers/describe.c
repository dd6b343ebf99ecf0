/* Describing the core: its messages follow from the list of their fields. */
#include "lab/servers/describe.h"

#include <stdio.h>

#include "base/assert.h"

static const struct cv_field state_fields[] = {
    {"role", offsetof(struct server_state, role), CV_U64, CV_SHOWN,
     "follower|pre-candidate|candidate|leader"},
    {"term", offsetof(struct server_state, term), CV_U64, CV_SHOWN, NULL},
    {"commit_index", offsetof(struct server_state, commit_index), CV_U64, CV_SHOWN, NULL},
    {"last_index", offsetof(struct server_state, last_index), CV_U64, CV_SHOWN, NULL},
};

static void add_field(struct servers_description *d, unsigned type, struct cv_field field) {
    struct cv_record *record = &d->messages[type];
    cv_assert(record->field_count < MESSAGE_FIELDS_MAX);
    d->fields[type][record->field_count++] = field;
}

/* In one word, as pictures have it. */
static const char *name_of(struct servers_description *d, unsigned type, const char *title) {
    snprintf(d->name[type], MESSAGE_NAME_MAX, "%s", title);
    for (char *at = d->name[type]; *at; at++)
        if (*at == ' ') *at = '-';
    return d->name[type];
}

/* Numbers of rounds are for the leader alone to tell its heartbeats apart. */
#define ADD_FIELD(TYPE, NAME, FROM)                                                                \
    add_field(d, type,                                                                             \
              (struct cv_field){                                                                   \
                  #NAME, (uint16_t)((const char *)&m->NAME - (const char *)&message),              \
                  CV_TAG_##TYPE, strcmp(#NAME, "round") == 0 ? CV_INNER : CV_IF_SET, NULL});
#define DESCRIBE(NUMBER, NAME, TITLE)                                                              \
    {                                                                                              \
        const struct raft_##NAME *m = &message.NAME;                                               \
        const unsigned type = NUMBER;                                                              \
        d->messages[type] = (struct cv_record){                                                    \
            .name = name_of(d, type, TITLE), .fields = d->fields[type], .size = sizeof message};   \
        add_field(d, type,                                                                         \
                  (struct cv_field){"term", offsetof(struct raft_message, term), CV_U64, CV_SHOWN, \
                                    NULL});                                                        \
        RAFT_FIELDS_##NAME(ADD_FIELD)                                                              \
    }

void servers_describe(struct servers_description *d) {
    static const struct raft_message message;
    *d = (struct servers_description){.state = {.name = "state",
                                                .fields = state_fields,
                                                .field_count = CV_COUNT_(state_fields),
                                                .size = sizeof(struct server_state)},
                                      .messages[0] = {.name = "none", .size = sizeof message}};
    RAFT_MESSAGES(DESCRIBE)
    d->algorithm = (struct cv_algorithm){.name = "raft",
                                         .summary = "the consensus of servers",
                                         .state = &d->state,
                                         .messages = d->messages,
                                         .message_count = RAFT_MESSAGE_TYPES,
                                         .traits = CV_TERMS,
                                         .problem = CV_ELECTION,
                                         .topology = CV_COMPLETE,
                                         .preference = CV_ANYONE};
}
