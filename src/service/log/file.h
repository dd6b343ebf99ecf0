/* Opening the files of a data directory, and removing them.
 *
 * Whatever has the name of such a file is not to be trusted to be one: a FIFO would be waited for
 * without end.  So files are opened without waiting, and nothing but a regular file is accepted. */
#ifndef CV_SERVICE_LOG_FILE_H
#define CV_SERVICE_LOG_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -1 and errno, which is EMEDIUMTYPE for what is no regular file. */
int file_open(int directory, const char *name, int flags);
const char *file_error(int error);
/* Whether the error says nothing about the file, as when a permission is lacking: it may be good,
 * so it must not be taken for damaged. */
bool file_may_be_good(int error);

/* Renames a file to damaged.*, which no server reads; -1 and errno. */
int file_set_aside(int directory, const char *name);

#endif
