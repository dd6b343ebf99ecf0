/* The C library's, and a function that it lacks. */
#ifndef CV_MODULE_STDLIB_H
#define CV_MODULE_STDLIB_H

#include_next <stdlib.h>

char *mkdtemp(char *template);

#endif
