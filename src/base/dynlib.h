/* Libraries that few commands need are loaded by those commands: every library that a program is
 * linked with costs each of its starts time. */
#ifndef CV_BASE_DYNLIB_H
#define CV_BASE_DYNLIB_H

#include <stddef.h>

struct dynlib_symbol {
    const char *name;
    void *at; /* a pointer to a function */
};

/* Loads a library for good, and finds the symbols.  Returns NULL, or why it cannot be loaded. */
const char *dynlib_load(const char *file, const struct dynlib_symbol *symbols, size_t count);

#endif
