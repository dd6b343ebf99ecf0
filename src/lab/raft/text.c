/* Messages as text, from their descriptions. */
#include <inttypes.h>

#include "lab/raft/lab.h"

static void add(char text[LAB_TEXT_MAX], size_t *at, const char *name, uint64_t value) {
    if (!value || *at >= LAB_TEXT_MAX) return;
    *at += (size_t)snprintf(text + *at, LAB_TEXT_MAX - *at, " %s=%" PRIu64, name, value);
}

const char *lab_message_text(const struct raft_message *m, char text[LAB_TEXT_MAX]) {
    size_t at = 0;
    switch (m->type) {
#define FIELD(TYPE, NAME, FROM) add(text, &at, #NAME, body->NAME);
#define MESSAGE(NUMBER, NAME, TITLE)                                                               \
    case NUMBER: {                                                                                 \
        const struct raft_##NAME *body = &m->NAME;                                                 \
        at = (size_t)snprintf(text, LAB_TEXT_MAX, "%s term=%" PRIu64, TITLE, m->term);             \
        RAFT_FIELDS_##NAME(FIELD) break;                                                           \
    }
        RAFT_MESSAGES(MESSAGE)
    default: snprintf(text, LAB_TEXT_MAX, "?");
    }
    return text;
}
