/* The processes of a run: how many there are, how many of them are servers, and their names. */
#ifndef CV_PROCESS_ROSTER_H
#define CV_PROCESS_ROSTER_H

#include "process/process.h"

enum { ROSTER_NAME_MAX = 32 };

struct roster {
    uint32_t processes, servers;
    const char *server_name;
    char (*names)[ROSTER_NAME_MAX]; /* by pid; NULL: "p1", "c1", "coordinator" */
    bool names_from_zero;           /* "p0" is the first */
    bool ids_from_zero; /* an id is kept one higher than it is written, because 0 is none */
};

/* An id as it is written; it is not 0. */
static inline uint64_t roster_id(const struct roster *roster, uint64_t id) {
    return id - roster->ids_from_zero;
}

/* Writes the name of a process ("nobody" for 0) and returns the buffer. */
char *roster_name(const struct roster *roster, cv_pid p, char buffer[ROSTER_NAME_MAX]);
/* The process of that name, or CV_NOBODY. */
cv_pid roster_find(const struct roster *roster, const char *name);

/* The field of the head with which the list of this column begins, or NULL. */
const struct cv_field *record_begins_list(const struct cv_record *record,
                                          const struct cv_field *column);
/* The value of a number or a pid of the head or the row at `bytes`. */
uint64_t record_number(const struct cv_field *field, const void *bytes);
/* The column of the rows that says which way the edge to each neighbour goes, or NULL. */
const struct cv_field *record_way(const struct cv_record *record);
/* Whether a queue of the head contains the process. */
bool record_queues(const struct cv_record *record, const void *bytes, cv_pid first, cv_pid p);
/* The first process that the head shows, or CV_NOBODY. */
cv_pid record_shown_pid(const struct cv_record *record, const void *bytes);
/* Writes the fields of a record that `audience` may see, as "name=value name=[p1, p2]" in the
 * reader's language, and returns
 * how long that is (as snprintf does).  `rows` follow the head, the first about process `first`.
 * A list may begin in the head, in a field of the name that its rows have. */
int record_print(char *buffer, size_t size, const struct cv_record *record, const void *bytes,
                 uint32_t rows, cv_pid first, enum cv_audience audience,
                 const struct roster *roster);

#endif
