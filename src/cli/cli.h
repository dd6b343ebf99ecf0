/* The command line: one file per command, and what they share. */
#ifndef CV_CLI_CLI_H
#define CV_CLI_CLI_H

#include <argp.h>
#include <jansson.h>
#include <stdio.h>

#include "process/process.h"

enum { EXIT_OK = 0, EXIT_VIOLATED = 1, EXIT_USAGE = 2, EXIT_SYSTEM = 3 };

/* A command that runs another passes on that one's exit code.  After this call its own are those of
 * sysexits.h, from 64 on, also where argp ends the program. */
void exit_from_64(void);
/* The code with which this program ends, for one of those above. */
int exit_code(int code);

struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
};

int cmd_serve(int argc, char **argv);
int cmd_ensemble(int argc, char **argv);
int cmd_lock(int argc, char **argv);
int cmd_once(int argc, char **argv);
int cmd_elect(int argc, char **argv);
int cmd_leader(int argc, char **argv);
int cmd_candidates(int argc, char **argv);
int cmd_resign(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_locks(int argc, char **argv);
int cmd_unlock(int argc, char **argv);
int cmd_fence(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_backup(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_recover(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_create(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_acl(int argc, char **argv);
int cmd_tree(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_multi(int argc, char **argv);
int cmd_barrier(int argc, char **argv);
int cmd_counter(int argc, char **argv);
int cmd_queue(int argc, char **argv);
int cmd_context(int argc, char **argv);
int cmd_shell(int argc, char **argv);
int cmd_cheat(int argc, char **argv);
int cmd_peer(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_odds(int argc, char **argv);
int cmd_timeout(int argc, char **argv);
int cmd_exercise(int argc, char **argv);
int cmd_museum(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_lab(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_explain(int argc, char **argv);

/* Prints one line on stderr, in which control characters are escaped. */
void notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Each does the same and ends the program. */
_Noreturn void usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void system_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The algorithm of that name, or in that file; else a usage error that suggests the nearest names.
 */
const struct cv_algorithm *require_algorithm(const char *name);
/* The first algorithm on a command line, whose options are not known yet; NULL when none is named.
 */
const struct cv_algorithm *algorithm_among(int count, char **words);

/* Files that a command of the laboratory writes.  "-" is standard output; a file that is there is
 * overwritten only with `force`, which is every such command's option --force. */
FILE *open_output(const char *path, bool force);
/* Refuses such a file before anything is computed; `path` may be NULL. */
void require_output(const char *path, bool force);
/* Refuses one file for the results of two options; each path may be NULL. */
void require_two_files(const char *name, const char *path, const char *other, const char *its);
#define FORCE_HELP "overwrite files that are there already"
void close_output(FILE *file, const char *path);

/* The laboratory's commands speak the language of the environment or of this option.  JSON is
 * English always, which a command sees to after it has read its options. */
enum { KEY_LANG = 0x4c00 };
#define LANG_OPTION(GROUP)                                                                         \
    {                                                                                              \
        "lang", KEY_LANG, "en|pt", 0,                                                              \
            "language of what is printed (that of LC_ALL, LC_MESSAGES or LANG, if it is one of "   \
            "these)",                                                                              \
            (GROUP)                                                                                \
    }
int language_option(const char *text); /* returns 0, for a parser of argp */
/* The end of a command that is printed: " --lang pt" for a reader of Portuguese, or "". */
const char *language_words(void);

/* A progress bar on stderr when that is a terminal, erased when all is done; else NULL. */
typedef void progress_fn(size_t done, size_t all);
progress_fn *progress_bar(void);

/* NAN becomes null, because JSON has no NAN. */
json_t *real_or_null(double value);
/* Prints a report, with its keys in the order in which they were set, and frees it. */
void print_json(json_t *report);

#endif
