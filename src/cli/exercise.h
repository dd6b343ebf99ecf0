/* Exercises: questions in files, with what decides whether an answer is right.
 *
 * A file is a list of items, in the order in which they are written.  The commands of `run` are the
 * laboratory's own: what is true is what they report.  docs/EXERCISES.md describes the format. */
#ifndef CV_CLI_EXERCISE_H
#define CV_CLI_EXERCISE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

enum exercise_word {
    EX_TITLE,
    EX_TOPIC,
    EX_QUESTION,
    EX_ANSWER,
    EX_START,
    EX_HINT,
    EX_LIMIT,
    EX_RUN,
    EX_KEEP,
    EX_EXPECT,
    EX_MISTAKE,
    EX_SOLUTION,
    EX_EXPLAIN,
    EX_PT, /* the text of the item before it, in Portuguese */
    EX_WORDS
};

enum answer_kind { ANSWER_NUMBER, ANSWER_TEXT, ANSWER_SCENARIO, ANSWER_LOCK, ANSWER_ELECTION };
extern const char *const answer_kind_name[];

struct exercise_item {
    enum exercise_word word;
    int line;
    char *rest;  /* of its line; may be empty */
    char *block; /* the indented lines that follow, without their indentation; may be empty */
};

struct exercise {
    char name[64];
    char *path, *directory; /* of its file */
    enum answer_kind kind;
    double tolerance;      /* of a number, relative */
    unsigned long seconds; /* of CPU time, for each command */
    struct exercise_item *items;
    size_t count, room;
};

enum { EXERCISE_ERROR_MAX = 512, EXERCISE_NAME_MAX = 48, EXERCISE_RUN_WORDS = 64 };
#define EXERCISE_SUFFIX ".exercise"

/* Returns 0, or -1 and "FILE:LINE: what is wrong" in `error`. */
int exercise_read(struct exercise *exercise, const char *path, char error[EXERCISE_ERROR_MAX]);
void exercise_free(struct exercise *exercise);
/* The first item with that word at or after `from`, or NULL. */
/* Takes the next word off a command line; one in single quotes may contain spaces. */
char *exercise_next_word(char **line);

const struct exercise_item *exercise_find(const struct exercise *exercise, enum exercise_word word,
                                          size_t from);
/* What an item says to people, in their language if the exercise has it. */
const char *exercise_text(const struct exercise *exercise, const struct exercise_item *item);
/* A text file of at most a megabyte; NULL and errno when it is not. */
char *exercise_slurp(const char *path);

/* "PATH RELATION VALUE" of an item `expect`, as parts of one copy, which the caller frees. */
enum relation { REL_IS, REL_NOT, REL_BELOW, REL_ABOVE, REL_AT_MOST, REL_AT_LEAST, RELATIONS };
extern const char *const relation_name[RELATIONS];
struct expected {
    char *path, *value;
    enum relation relation;
};
/* Returns 0, or -1 when it is none. */
int exercise_expected(const struct exercise_item *item, struct expected *expected);
/* Whether a value is the answer itself, so that the command decides what is right. */
bool exercise_asks_value(const struct expected *expected);

/* ---- Judging ---- */

/* An answer as commands take it. */
struct answer {
    char *text;          /* the number, the text, or a file; NULL: the values that are asked for */
    char *given;         /* what its author gave; for messages */
    char directory[128]; /* of files that were made for it; "": none */
};

struct judgement {
    const struct answer *answer; /* that was judged */
    bool right;
    bool unusable;                    /* a command refused the answer, and has said why */
    const struct exercise_item *item; /* the expectation that failed, or the command */
    char *command;                    /* as typed in a shell; of the last `run` */
    char **words;                     /* the same, and NULL; for another run */
    char *is;                         /* what was reported in place of what was expected */
    char *truth;                      /* the value that was asked for, when there is one */
    int signal;                       /* that ended the command, or 0 */
};

/* Takes what was given as an answer; compiles it if it is C.  Returns 0, or -1 after one line. */
int answer_take(struct answer *answer, const struct exercise *exercise, const char *given);
/* The answer of an item `solution` or `mistake`, or the one that commands compute.  Likewise. */
int answer_of_item(struct answer *answer, const struct exercise *exercise,
                   const struct exercise_item *item);
void answer_free(struct answer *answer);
/* Those that were made for it; false: some are still there. */
bool answer_remove_files(const struct answer *answer);

void exercise_judge(const struct exercise *exercise, const struct answer *answer,
                    struct judgement *judgement);
void judgement_free(struct judgement *judgement);
/* Whether a number or a text is the same answer as another. */
bool exercise_same(const struct exercise *exercise, const char *a, const char *b);
/* Runs the last command again, for people to read. */
void judgement_show(const struct exercise *exercise, const struct judgement *judgement);

/* ---- Commands that are run for it ---- */

/* Whether signals that would end the exercise wait, because it has files to remove first. */
void answer_hold_signals(bool hold);
/* Runs a command of this program, which has so many seconds.  Its output is kept; without `output`
 * it is shown, in the reader's language.  Returns the signal that has ended it, or 0. */
int exercise_run(char **words, unsigned long seconds, const struct answer *answer,
                 struct bytes *output);
/* Runs a compiler, whose messages are shown.  Returns its exit status; 127: there is none. */
int exercise_compile(char **words, const struct answer *answer);
/* Neither returns if a signal ends the exercise meanwhile. */

/* The source that a lock or an election begins with; the caller frees it.  NULL after one line. */
char *exercise_start(const struct exercise *exercise);

#endif
