/* The command line: one file per command, and what they share. */
#ifndef CV_CLI_H
#define CV_CLI_H

#include <argp.h>
#include <jansson.h>
#include <stdio.h>

#include "process/process.h"

enum { EXIT_OK = 0, EXIT_VIOLATED = 1, EXIT_USAGE = 2, EXIT_SYSTEM = 3 };

struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
};

int cmd_serve(int argc, char **argv);
int cmd_ensemble(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_backup(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_recover(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_odds(int argc, char **argv);
int cmd_timeout(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_explain(int argc, char **argv);

/* Each says what is wrong in one line on stderr and ends the program. */
_Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void system_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The algorithm of that name; a usage error that names the nearest when there is none. */
const struct cv_algorithm *require_algorithm(const char *name);

/* "-" is standard output. */
FILE *open_output(const char *path);
void close_output(FILE *file, const char *path);

/* For a terminal, a bar on stderr that is gone when all is done; for anything else NULL. */
typedef void progress_fn(size_t done, size_t all);
progress_fn *progress_bar(void);

/* NAN has no place in JSON. */
json_t *real_or_null(double value);
/* Prints a report and lets go of it: the keys in the order in which they were set. */
void print_json(json_t *report);

#endif
