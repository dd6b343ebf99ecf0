/* Options of algorithms, as people type them. */
#ifndef CV_PROCESS_OPTION_H
#define CV_PROCESS_OPTION_H

#include "process/process.h"

#define DURATION_SYNTAX "a time such as 250us, 1.5ms, 3s or 2min"

const struct cv_option *option_find(const struct cv_algorithm *algorithm, const char *name);
/* A whole number from min to max.  0, or -1 and a sentence in `error`. */
int count_parse(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *result,
                char *error, size_t size);
/* The value of an option; a flag has no text.  0, or -1 and a sentence in `error`. */
int option_value(const struct cv_option *option, const char *text, uint64_t *result, char *error,
                 size_t size);

#endif
