/* The catalogue of algorithms, and those that are loaded from files. */
#ifndef CV_ALGORITHMS_CATALOGUE_H
#define CV_ALGORITHMS_CATALOGUE_H

#include "process/process.h"

/* Those that come with Conclave.  scripts/roll.awk makes the list from the sources: it is what they
 * name with CV_ALGORITHM. */
extern const struct cv_algorithm *const catalogue[];
extern const size_t catalogue_count;

enum { CATALOGUE_ERROR_MAX = 512 };

/* The algorithm of that name, or in that file, which ends in .so; NULL after one line about what is
 * wrong, which suggests names. */
const struct cv_algorithm *catalogue_open(const char *name, char error[CATALOGUE_ERROR_MAX]);
/* The same, without words. */
const struct cv_algorithm *catalogue_find(const char *name);

#endif
