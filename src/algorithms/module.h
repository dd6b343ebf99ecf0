/* An algorithm from a file: a shared library that was compiled alone. */
#ifndef CV_ALGORITHMS_MODULE_H
#define CV_ALGORITHMS_MODULE_H

#include "process/process.h"

enum { MODULE_ERROR_MAX = 512 };

/* Whether a name is that of a file: it ends in .so. */
bool module_is_named(const char *name);

/* Loads it for as long as the program runs.  The algorithm has the name of its file, as it was
 * first given; the same file gives the same algorithm.  NULL after one line about what is wrong. */
const struct cv_algorithm *module_load(const char *path, char error[MODULE_ERROR_MAX]);

/* Whether what a library exports can be used: 0, or -1 after one line about what is wrong. */
int module_inspect(const struct cv_module *module, const char *path, char error[MODULE_ERROR_MAX]);

/* The file that it was compiled from, beside its own; "" for one that comes with Conclave. */
const char *module_source(const struct cv_algorithm *algorithm, char *buffer, size_t size);

#endif
