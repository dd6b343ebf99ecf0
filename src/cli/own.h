/* Algorithms of one's own: the files that one begins with, and what a compiler needs to be told. */
#ifndef CV_CLI_OWN_H
#define CV_CLI_OWN_H

#include "cli/cli.h"

enum { OWN_PATH_BYTES = 4096, OWN_OPTION_BYTES = OWN_PATH_BYTES + 64 };

/* The source that a lock or an election begins with; NULL when `kind` is neither. */
const char *own_skeleton(const char *kind);
/* " -IDIR" where the compiler would not find the header by itself, else "". */
const char *own_header_option(char option[OWN_OPTION_BYTES]);
/* Makes `directory` with NAME.c and a Makefile, for a command of that name.  In a skeleton, `mine`
 * becomes the name.  A directory that is there already is an error, and nothing is written then. */
void own_begin(const char *command, const char *directory, const char *name, const char *source,
               bool is_skeleton);
/* A new file with that text; one that is there already is an error. */
void own_write(const char *directory, const char *file, const char *text);

#endif
