/* What the commands share, those of a module without a system included. */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "algorithms/catalogue.h"
#include "algorithms/module.h"
#include "cli/remote.h"
#include "language/language.h"

/* What was typed, or stands in a file, may hold what a terminal obeys. */
static void report(const char *format, va_list arguments) {
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) return;
    fputs("conclave: ", stderr);
    remote_put(stderr, text, strlen(text), REMOTE_LINE);
    fputc('\n', stderr);
    free(text);
}

void notice(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    va_end(arguments);
}

void exit_from_64(void) { argp_err_exit_status = EX_USAGE; }

int exit_code(int code) {
    static const int others[] = {
        [EXIT_VIOLATED] = EX_DATAERR, [EXIT_USAGE] = EX_USAGE, [EXIT_SYSTEM] = EX_OSERR};
    bool from_64 = argp_err_exit_status == EX_USAGE;
    return from_64 && code > 0 && code <= EXIT_SYSTEM ? others[code] : code;
}

void usage_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    exit(exit_code(EXIT_USAGE));
}

void system_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    exit(exit_code(EXIT_SYSTEM));
}

int language_option(const char *text) {
    enum language language;
    if (language_parse(text, &language) != 0) usage_error("lang: '%s' is not en or pt", text);
    language_choose(language);
    return 0;
}

const char *language_words(void) { return language_chosen() == PORTUGUESE ? " --lang pt" : ""; }

const struct cv_algorithm *require_algorithm(const char *name) {
    char error[CATALOGUE_ERROR_MAX];
    const struct cv_algorithm *algorithm = catalogue_open(name, error);
    if (!algorithm) usage_error("%s", error);
    if (algorithm->traits & CV_FROM_FILE) language_keep_names();
    return algorithm;
}

const struct cv_algorithm *algorithm_among(int count, char **words) {
    for (int i = 1; i < count; i++) {
        if (*words[i] == '-') continue;
        if (module_is_named(words[i])) return require_algorithm(words[i]);
        if (catalogue_find(words[i])) return catalogue_find(words[i]);
    }
    if (count > 1 && words[1][0] != '-') require_algorithm(words[1]); /* an error that suggests */
    return NULL;
}

/* What is no regular file, such as a terminal or a pipe, has nothing to be lost. */
void require_output(const char *path, bool force) {
    struct stat file;
    if (path && !force && strcmp(path, "-") != 0 && stat(path, &file) == 0 && S_ISREG(file.st_mode))
        usage_error("%s exists; --force overwrites it", path);
}

void require_two_files(const char *name, const char *path, const char *other, const char *its) {
    if (path && its && strcmp(path, "-") != 0 && strcmp(path, its) == 0)
        usage_error("%s: --%s writes to %s as well", name, other, path);
}

FILE *open_output(const char *path, bool force) {
    if (strcmp(path, "-") == 0) return stdout;
    FILE *file = fopen(path, force ? "w" : "wx");
    if (!file && errno == EEXIST) {
        require_output(path, force);
        file = fopen(path, "w");
    }
    if (!file) system_error("%s: %s", path, strerror(errno));
    return file;
}

void close_output(FILE *file, const char *path) {
    if (fflush(file) != 0 || ferror(file) || (file != stdout && fclose(file) != 0))
        system_error("%s: %s", path, strerror(errno));
}

void print_json(json_t *report) {
    if (json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) != 0)
        system_error("the report cannot be written: %s", strerror(errno));
    putchar('\n');
    json_decref(report);
}

static void draw_bar(size_t done, size_t all) {
    enum { WIDTH = 40 };
    char bar[WIDTH + 1];
    size_t full = all ? done * WIDTH / all : WIDTH;
    for (size_t i = 0; i < WIDTH; i++) bar[i] = i < full ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r[%s] %zu of %zu%s", bar, done, all, done == all ? "\r\033[K" : "");
}

progress_fn *progress_bar(void) { return isatty(STDERR_FILENO) ? draw_bar : NULL; }

json_t *real_or_null(double value) { return isnan(value) ? json_null() : json_real(value); }
