/* Every algorithm there is. */
#ifndef CV_CATALOGUE_H
#define CV_CATALOGUE_H

#include "process/process.h"

extern const struct cv_algorithm *const catalogue[];
extern const size_t catalogue_count;

/* The algorithm of that name, or NULL. */
const struct cv_algorithm *catalogue_find(const char *name);
/* How many letters must be typed, left out or changed to make one word of the other. */
unsigned word_distance(const char *a, const char *b);
/* The names nearest to a mistyped one, as "central or central-lease"; "" when none is near. */
char *catalogue_nearest(const char *name, char *buffer, size_t size);

#endif
