/* The reports of `conclave sim` and `conclave merge`: of one run, and of many. */
#ifndef CV_CLI_REPORT_H
#define CV_CLI_REPORT_H

#include "cli/cli.h"
#include "lab/experiments/batch.h"
#include "lab/sim/sim.h"

/* "  entries              100 in 5 s": a figure with its name, in columns; without the end of the
 * line.  Both are in the reader's language already. */
void figure(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

json_t *report_run_json(const struct sim *sim);
void report_run_text(const struct sim *sim, FILE *out);

/* `head` describes the batch (see batch_head); the caller keeps ownership. */
json_t *batch_head(const struct batch *batch);
json_t *report_batch_json(json_t *head, const struct batch_row *rows, size_t count,
                          const struct batch_summary *summary);
void report_batch_text(json_t *head, size_t count, const struct batch_summary *summary, FILE *out);
/* Reads a row of the "results" of a batch with that head; returns 0 or -1. */
int batch_row_read(json_t *head, json_t *columns, struct batch_row *row);

#endif
