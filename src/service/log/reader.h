/* Entries of the log on disk, in order, for members that need some which are no longer in memory.
 *
 * A reader only looks at files, so it may work beside the thread that writes the log.  What it
 * hands out is committed: its caller says up to where, and no later batch replaces that. */
#ifndef CV_SERVICE_LOG_READER_H
#define CV_SERVICE_LOG_READER_H

#include "service/log/window.h"

struct log_reader;

/* Begins with an entry; NULL: the log does not go back so far, or cannot be read. */
struct log_reader *log_reader_open(int directory, const char *path, uint64_t index);
/* Begins after the last entry, up to `index`, of which the term is not above `term`: another log
 * that has this term at `index` can agree with this one up to there, and not further.  The entry
 * after `index` is committed and durable. */
struct log_reader *log_reader_open_after(int directory, const char *path, uint64_t index,
                                         uint64_t term);
void log_reader_close(struct log_reader *reader);

/* The index of the next entry. */
uint64_t log_reader_next_index(const struct log_reader *reader);
/* The next entries, of one term and kind, at most bytes_max of them or one, none after `last`,
 * which is committed and durable.  They are valid until the next call.  previous_term: of the entry
 * before them.  A batch without entries: there are no more.  -1: the log cannot be read there. */
int log_reader_next(struct log_reader *reader, uint64_t last, size_t bytes_max,
                    struct raft_batch *batch, uint64_t *previous_term);

#endif
