/* Who is who in a run: how many processes, which of them serve, and what people call them. */
#ifndef CV_ROSTER_H
#define CV_ROSTER_H

#include "process/process.h"

enum { ROSTER_NAME_MAX = 32 };

struct roster {
    uint32_t processes, servers;
    const char *server_name;
    char (*names)[ROSTER_NAME_MAX]; /* by pid; NULL: "p1", "c1", "coordinator" */
};

/* Writes the name of a process ("nobody" for 0) and returns the buffer. */
char *roster_name(const struct roster *roster, cv_pid p, char buffer[ROSTER_NAME_MAX]);
/* The process of that name, or CV_NOBODY. */
cv_pid roster_find(const struct roster *roster, const char *name);

/* Writes the fields of a record that `audience` may see, as "name=value name=[p1, p2]", and returns
 * how long that is (as snprintf does).  `rows` follow the head, the first about process `first`. */
int record_print(char *buffer, size_t size, const struct cv_record *record, const void *bytes,
                 uint32_t rows, cv_pid first, enum cv_audience audience,
                 const struct roster *roster);

#endif
