/* Answers: as they are given, and as an exercise writes its own down. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/exercise.h"
#include "cli/own.h"

/* Says so in one line, and fails. */
#define complain(...) (notice(__VA_ARGS__), -1)

static char *copied(const char *text) {
    char *copy = strdup(text);
    if (!copy) system_error("out of memory");
    return copy;
}

static bool is_code(const struct exercise *exercise) {
    return exercise->kind == ANSWER_LOCK || exercise->kind == ANSWER_ELECTION;
}

static bool ends_in(const char *text, const char *suffix) {
    size_t length = strlen(text), size = strlen(suffix);
    return length > size && strcmp(text + length - size, suffix) == 0;
}

/* ---- Files of an answer ---- */

static void make_directory(struct answer *answer) {
    const char *given = getenv("TMPDIR"), *below = given && *given ? given : "/tmp";
    int length =
        snprintf(answer->directory, sizeof answer->directory, "%s/conclave-exercise-XXXXXX", below);
    if ((size_t)length >= sizeof answer->directory) errno = ENAMETOOLONG;
    answer_hold_signals(true);
    if ((size_t)length >= sizeof answer->directory || !mkdtemp(answer->directory))
        system_error("%s: %s", below, strerror(errno));
}

static char *file_in(const struct answer *answer, const char *file) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", answer->directory, file);
    return copied(path);
}

bool answer_remove_files(const struct answer *answer) {
    static const char *const files[] = {"answer.c", "answer.so", "answer.scenario"};
    for (size_t i = 0; *answer->directory && i < sizeof files / sizeof files[0]; i++) {
        char *path = file_in(answer, files[i]);
        unlink(path);
        free(path);
    }
    return !*answer->directory || rmdir(answer->directory) == 0 || errno == ENOENT;
}

void answer_free(struct answer *answer) {
    bool had_files = *answer->directory;
    answer_remove_files(answer);
    free(answer->text);
    free(answer->given);
    *answer = (struct answer){0};
    if (had_files) answer_hold_signals(false);
}

/* The words of CC, as make takes it: a compiler, perhaps with others before it and options. */
static size_t compiler_words(char *text, char *words[], size_t max) {
    size_t count = 0;
    while (*text && count < max) {
        char *word = exercise_next_word(&text);
        if (*word) words[count++] = word;
    }
    return count;
}

/* Compiles a source with the user's compiler, whose messages are shown. */
static int compile(struct answer *answer, const char *source) {
    enum { COMPILER_WORDS = 32 };
    char option[OWN_OPTION_BYTES];
    const char *given = getenv("CC"), *header = own_header_option(option);
    answer->text = file_in(answer, "answer.so");
    char *options[] = {
        "-O1",     "-g", "-Wall",      "-Wextra",      "-fPIC",
        "-shared", "-o", answer->text, (char *)source, *header ? (char *)header + 1 : NULL,
        NULL};
    char *words[COMPILER_WORDS + sizeof options / sizeof *options];
    char *text = copied(given && given[strspn(given, " \t")] ? given : "cc");
    size_t count = compiler_words(text, words, COMPILER_WORDS);
    memcpy(words + count, options, sizeof options);
    int status = exercise_compile(words, answer);
    bool missing = status == 127, good = status == 0;
    if (missing) notice("there is no compiler '%s'; install one, or set CC", words[0]);
    if (!missing && !good) notice("%s: it does not compile", answer->given);
    free(text);
    return good ? 0 : -1;
}

/* ---- As given ---- */

static int take_file(struct answer *answer, const struct exercise *exercise, const char *path) {
    struct stat file;
    const char *wanted = is_code(exercise) ? "a FILE.c or FILE.so" : "the FILE of a scenario";
    if (is_code(exercise) && !ends_in(path, ".c") && !ends_in(path, ".so"))
        return complain("answer: '%s' is not %s", path, wanted);
    if (stat(path, &file) != 0)
        return complain("answer: '%s' is not %s: %s", path, wanted, strerror(errno));
    if (S_ISDIR(file.st_mode)) return complain("answer: '%s' is not %s", path, wanted);
    /* It is a file for whatever command takes it, and never an option. */
    char *named = NULL;
    if (asprintf(&named, "%s%s", *path == '/' || *path == '.' ? "" : "./", path) < 0)
        system_error("out of memory");
    if (!ends_in(path, ".c")) {
        answer->text = named;
        return 0;
    }
    make_directory(answer);
    int failed = compile(answer, named);
    free(named);
    return failed;
}

int answer_take(struct answer *answer, const struct exercise *exercise, const char *given) {
    double number;
    *answer = (struct answer){.given = copied(given)};
    if (exercise->kind == ANSWER_NUMBER && parse_real(given, &number) != 0)
        return complain("answer: '%s' is not a number", given);
    if (exercise->kind == ANSWER_TEXT && !*given) return complain("answer: it is empty");
    if (exercise->kind != ANSWER_NUMBER && exercise->kind != ANSWER_TEXT)
        return take_file(answer, exercise, given);
    answer->text = copied(given);
    return 0;
}

/* ---- As an exercise has it ---- */

/* The line of a text that has the same words; its indentation is its own.  NULL when there is none,
 * or more than one. */
static char *find_line(char *text, const char *wanted) {
    char *found = NULL;
    size_t length = strlen(wanted);
    for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char *begin = line + strspn(line, " \t");
        size_t size = strcspn(begin, "\n");
        while (size && isspace((unsigned char)begin[size - 1])) size--;
        if (size != length || strncmp(begin, wanted, size) != 0) continue;
        if (found) return NULL;
        found = line;
    }
    return found;
}

static void replace(char **text, char *at, size_t length, const char *by) {
    char *longer = NULL;
    if (asprintf(&longer, "%.*s%s%s", (int)(at - *text), *text, by, at + length) < 0)
        system_error("out of memory");
    free(*text);
    *text = longer;
}

/* Where lines are changed: after the line that was taken out last. */
struct place {
    bool known;
    size_t at;
    int indented;
};

static int take_out(char **text, const char *line, struct place *place) {
    char *found = find_line(*text, line);
    if (!found) return -1;
    size_t length = strcspn(found, "\n");
    *place = (struct place){true, (size_t)(found - *text), (int)strspn(found, " \t")};
    replace(text, found, length + (found[length] == '\n'), "");
    return 0;
}

/* A line that is indented by more than one space is so in the text, too. */
static void put_in(char **text, const char *line, struct place *place) {
    char *added = NULL;
    int depth = place->indented + (int)strspn(line, " ") - 1;
    if (asprintf(&added, "%*s%s\n", depth > 0 ? depth : 0, "", line + strspn(line, " \t")) < 0)
        system_error("out of memory");
    replace(text, *text + place->at, 0, added);
    place->at += strlen(added);
    free(added);
}

/* "- line" is taken out of the text, and each "+ line" after it put in its place. */
static int edit(char **text, const struct exercise *exercise, const struct exercise_item *item) {
    char *copy = copied(item->block), *rest = copy;
    struct place place = {0};
    int failed = 0;
    for (char *line; !failed && (line = strsep(&rest, "\n"));) {
        if (*line == '-') {
            failed = take_out(text, line + 1 + strspn(line + 1, " \t"), &place);
            if (failed)
                notice("%s:%d: not one line of the start is: %s", exercise->path, item->line,
                       line + 1);
        } else if (*line == '+' && place.known) {
            put_in(text, line + 1, &place);
        } else {
            failed = complain("%s:%d: a change is '- line' and then '+ line'", exercise->path,
                              item->line);
        }
    }
    free(copy);
    return failed;
}

char *exercise_start(const struct exercise *exercise) {
    const struct exercise_item *item = exercise_find(exercise, EX_START, 0);
    char path[OWN_PATH_BYTES], *text;
    if (item && !is_code(exercise)) {
        if (asprintf(&text, "%s\n", item->block) < 0) system_error("out of memory");
        return text;
    }
    if (item && *item->rest) {
        snprintf(path, sizeof path, "%s/%s", exercise->directory, item->rest);
        text = exercise_slurp(path);
        if (!text) notice("%s:%d: %s: %s", exercise->path, item->line, path, strerror(errno));
        return text;
    }
    text = copied(own_skeleton(answer_kind_name[exercise->kind]));
    if (item && edit(&text, exercise, item) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int make_code(struct answer *answer, const struct exercise *exercise,
                     const struct exercise_item *item) {
    char *text = exercise_start(exercise);
    int failed = !text || (*item->block && edit(&text, exercise, item) != 0) ? -1 : 0;
    if (!failed) {
        make_directory(answer);
        own_write(answer->directory, "answer.c", text);
        char *source = file_in(answer, "answer.c");
        failed = compile(answer, source);
        free(source);
    }
    free(text);
    return failed;
}

int answer_of_item(struct answer *answer, const struct exercise *exercise,
                   const struct exercise_item *item) {
    *answer = (struct answer){0};
    if (!item) return 0; /* the commands know */
    answer->given = copied(*item->rest ? item->rest : exercise->name);
    if (is_code(exercise)) return make_code(answer, exercise, item);
    if (exercise->kind != ANSWER_SCENARIO) {
        answer->text = copied(item->rest);
        return 0;
    }
    make_directory(answer);
    own_write(answer->directory, "answer.scenario", item->block);
    answer->text = file_in(answer, "answer.scenario");
    return 0;
}
