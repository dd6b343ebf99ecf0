/* The sessions under whose locks a program runs, the outermost first: "0x1f 0x2e".
 *
 * A wrapper that holds a lock hands them to its command, which notes them at the locks that it
 * wants in turn.  So others can see that the wrapper waits for what its command waits for. */
#ifndef CV_RECIPE_OUTER_H
#define CV_RECIPE_OUTER_H

#include <stddef.h>
#include <stdint.h>

#include "recipe/note.h"

/* So many fit into a note. */
enum { OUTER_MAX = 13 };

/* Returns how many there are; 0 if the text (may be NULL) is anything else. */
size_t outer_read(const char *text, int64_t sessions[OUTER_MAX]);
/* Writes those of a text, and one more inside them.  Without room the outermost is left out. */
void outer_add(char to[NOTE_TEXT_MAX], const char *text, int64_t session);

#endif
