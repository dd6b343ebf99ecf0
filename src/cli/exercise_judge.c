#include <math.h>
#include <stdlib.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/exercise.h"

/* What an exercise has found out so far. */
struct judging {
    const struct exercise *exercise;
    const struct answer *answer;
    struct judgement *result;
    json_t *report; /* of the last command */
    json_t *kept;   /* text by name */
};

static char *checked(char *text) {
    if (!text) system_error("out of memory");
    return text;
}

/* ---- Texts with braces ---- */

static void near_answer(const struct judging *j, double difference, FILE *out) {
    double number = 0;
    char text[64];
    if (j->answer->text) parse_real(j->answer->text, &number);
    fputs(format_real(text, sizeof text, number + difference), out);
}

static char *expand(const struct judging *j, const char *text) {
    char *expanded = NULL, name[EXERCISE_NAME_MAX + 1];
    size_t size;
    FILE *out = open_memstream(&expanded, &size);
    if (!out) system_error("out of memory");
    while (*text) {
        if (*text != '{') {
            fputc(*text++, out);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 1, "}"), text + 1);
        text += strcspn(text, "}") + 1;
        if (strcmp(name, "answer") == 0)
            fputs(j->answer->text ? j->answer->text : "", out);
        else if (strcmp(name, "answer+1") == 0)
            near_answer(j, 1, out);
        else if (strcmp(name, "answer-1") == 0)
            near_answer(j, -1, out);
        else if (strcmp(name, "here") == 0)
            fputs(j->exercise->directory, out);
        else
            fputs(json_string_value(json_object_get(j->kept, name)), out);
    }
    fclose(out);
    return checked(expanded);
}

/* ---- Commands ---- */

/* Braces are filled in after the words were told apart, so an answer is never more than one. */
static char **make_words(const struct judging *j, const char *command) {
    char *copy = checked(strdup(command)), *at = copy;
    char **words = calloc(EXERCISE_RUN_WORDS + 1, sizeof *words);
    size_t count = 0;
    if (!words) system_error("out of memory");
    words[count++] = checked(strdup("conclave"));
    while (*at && count < EXERCISE_RUN_WORDS) {
        const char *word = exercise_next_word(&at);
        if (*word) words[count++] = expand(j, word);
    }
    free(copy);
    return words;
}

static void free_words(char **words) {
    for (size_t i = 0; words && words[i]; i++) free(words[i]);
    free(words);
}

static char *shell_text(char **words) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=+.,:/@%^";
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) system_error("out of memory");
    for (size_t i = 0; words[i]; i++) {
        if (i) fputc(' ', out);
        bool safe = *words[i] && strspn(words[i], plain) == strlen(words[i]);
        if (!safe) fputc('\'', out);
        for (const char *c = words[i]; *c; c++) fputs(*c == '\'' ? "'\\''" : (char[]){*c, 0}, out);
        if (!safe) fputc('\'', out);
    }
    fclose(out);
    return checked(text);
}

/* The JSON report of a command; NULL when it has made none. */
static json_t *report_of(const struct judging *j, char **words, int *signal) {
    struct bytes output = {0};
    size_t count = 0;
    while (words[count]) count++;
    words[count] = "--json";
    *signal = exercise_run(words, j->exercise->seconds, j->answer, &output);
    words[count] = NULL;
    json_t *report = json_loadb((const char *)output.at, output.used, JSON_REJECT_DUPLICATES, NULL);
    bytes_close(&output);
    return report;
}

void judgement_show(const struct exercise *exercise, const struct judgement *judgement) {
    exercise_run(judgement->words, exercise->seconds, judgement->answer, NULL);
}

/* ---- Values ---- */

static char *value_text(json_t *value) {
    char text[64];
    if (json_is_string(value)) return checked(strdup(json_string_value(value)));
    if (json_is_integer(value))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        format_real(text, sizeof text, json_real_value(value));
    else
        snprintf(text, sizeof text, "%s",
                 json_is_true(value)    ? "true"
                 : json_is_false(value) ? "false"
                 : json_is_null(value)  ? "null"
                                        : "");
    return checked(strdup(text));
}

/* The value at a path such as verdicts.exclusion or 0.messages; NULL when there is none. */
static char *look_up(json_t *at, const char *path) {
    while (at && *path) {
        char key[64];
        uint64_t index;
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        bool listed = json_is_array(at) && parse_u64(key, &index) == 0;
        at = listed ? json_array_get(at, (size_t)index) : json_object_get(at, key);
        path += length + (path[length] == '.');
    }
    return at && !json_is_object(at) && !json_is_array(at) ? value_text(at) : NULL;
}

static bool close_to(double a, double b, double tolerance) {
    double allowed = (tolerance > 1e-9 ? tolerance : 1e-9) * fabs(b);
    return fabs(a - b) <= allowed;
}

static bool holds(const char *is, enum relation relation, const char *wanted, double tolerance) {
    double a, b;
    bool numbers = parse_real(is, &a) == 0 && parse_real(wanted, &b) == 0;
    if (!numbers)
        return relation == REL_NOT ? strcmp(is, wanted) != 0
                                   : relation == REL_IS && strcmp(is, wanted) == 0;
    switch (relation) {
    case REL_IS: return close_to(b, a, tolerance);
    case REL_NOT: return !close_to(b, a, tolerance);
    case REL_BELOW: return a < b;
    case REL_ABOVE: return a > b;
    case REL_AT_MOST: return a <= b;
    case REL_AT_LEAST: return a >= b;
    default: return false;
    }
}

/* Texts are the same whatever spaces they have. */
bool exercise_same(const struct exercise *exercise, const char *a, const char *b) {
    double x, y;
    if (exercise->kind == ANSWER_NUMBER && parse_real(a, &x) == 0 && parse_real(b, &y) == 0)
        return close_to(x, y, exercise->tolerance);
    for (;; a++, b++) {
        a += strspn(a, " \t");
        b += strspn(b, " \t");
        if (*a != *b) return false;
        if (!*a) return true;
    }
}

/* ---- Items ---- */

static bool run_item(struct judging *j, const struct exercise_item *item) {
    struct judgement *result = j->result;
    json_decref(j->report);
    free_words(result->words);
    free(result->command);
    result->words = make_words(j, item->rest);
    result->command = shell_text(result->words);
    j->report = report_of(j, result->words, &result->signal);
    result->unusable = !j->report && !result->signal;
    return j->report && !result->signal;
}

static bool keep_item(struct judging *j, const struct exercise_item *item) {
    size_t length = strcspn(item->rest, " \t");
    char name[EXERCISE_NAME_MAX + 1];
    char *value = look_up(j->report, item->rest + length + strspn(item->rest + length, " \t"));
    snprintf(name, sizeof name, "%.*s", (int)length, item->rest);
    if (!value)
        system_error("%s:%d: the command reports no such thing", j->exercise->path, item->line);
    json_object_set_new(j->kept, name, json_string(value));
    free(value);
    return true;
}

static bool expect_item(struct judging *j, const struct exercise_item *item) {
    struct expected expected;
    if (exercise_expected(item, &expected) != 0) return false;
    char *is = look_up(j->report, expected.path), *wanted = expand(j, expected.value);
    if (!is) is = checked(strdup("nothing")); /* such as a flag that is not set */
    bool asked = exercise_asks_value(&expected);
    if (asked) {
        free(j->result->truth);
        j->result->truth = checked(strdup(is));
    }
    bool met = (asked && !j->answer->text) ||
               holds(is, expected.relation, wanted, asked ? j->exercise->tolerance : 0);
    if (!met)
        j->result->is = is;
    else
        free(is);
    free(wanted);
    free(expected.path);
    return met;
}

void exercise_judge(const struct exercise *exercise, const struct answer *answer,
                    struct judgement *judgement) {
    struct judging j = {exercise, answer, judgement, NULL, json_object()};
    *judgement = (struct judgement){.answer = answer, .right = true};
    for (size_t i = 0; i < exercise->count && judgement->right; i++) {
        const struct exercise_item *item = &exercise->items[i];
        judgement->item = item;
        if (item->word == EX_RUN) judgement->right = run_item(&j, item);
        if (item->word == EX_KEEP) judgement->right = keep_item(&j, item);
        if (item->word == EX_EXPECT) judgement->right = expect_item(&j, item);
    }
    json_decref(j.report);
    json_decref(j.kept);
}

void judgement_free(struct judgement *judgement) {
    free_words(judgement->words);
    free(judgement->command);
    free(judgement->is);
    free(judgement->truth);
    *judgement = (struct judgement){0};
}
