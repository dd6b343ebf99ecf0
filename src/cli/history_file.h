/* History files: a JSON object for each operation, on a line of its own. */
#ifndef CV_CLI_HISTORY_FILE_H
#define CV_CLI_HISTORY_FILE_H

#include "base/table.h"
#include "lab/judge/history.h"

struct names { /* texts, numbered from 0 */
    char **text;
    size_t count, room;
    struct table table;
};

struct history_file {
    struct history history;
    struct names clients, keys, values;
    size_t *line; /* of each operation */
    size_t line_room;
    size_t initials, unanswered;
};

/* "-" is standard input.  What cannot be read is a usage error that names the line. */
void history_file_read(struct history_file *file, const char *path);
void history_file_close(struct history_file *file);

#endif
