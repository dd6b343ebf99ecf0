/* What clients write into their nodes for others to read: a flat JSON object.
 *
 *     {"label":"nightly report","host":"db1","pid":4711,"since":1770000000000}
 *
 * Whatever else is in a node is shown as its label. */
#ifndef CV_RECIPE_NOTE_H
#define CV_RECIPE_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NOTE_TEXT_MAX = 256, NOTE_MAX = 4 * 1024 };

struct note {
    char label[NOTE_TEXT_MAX], host[NOTE_TEXT_MAX];
    char node[NOTE_TEXT_MAX];  /* of a leader: its candidate; of a claim: its owner */
    char outer[NOTE_TEXT_MAX]; /* of a contender: see recipe/outer.h */
    int64_t pid;
    int64_t since, held; /* wall clock, ms: when it came, and when it got what it wanted; 0: no */
    int64_t token;       /* of a node that replaced another, whose token it keeps */
    int32_t slots, priority;
    bool stable, resign; /* of a leader: keeps the lead; was asked to resign */
};

/* Returns the size; the text is also terminated.  What is empty, zero or false is left out. */
size_t note_write(const struct note *note, char text[NOTE_MAX]);
/* False: these bytes are no note; then they are the label, as far as they fit. */
bool note_read(struct note *note, const void *data, size_t size);
/* Copies as much as fits of a text, whole characters only. */
void note_copy(char to[NOTE_TEXT_MAX], const char *from, size_t size);

#endif
