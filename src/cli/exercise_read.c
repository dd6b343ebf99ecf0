#include "cli/exercise.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/parse.h"
#include "language/language.h"

enum { FILE_MAX_BYTES = 1 << 20, SECONDS_DEFAULT = 60, SECONDS_MAX = 3600 };
#define SMALL_NAME "abcdefghijklmnopqrstuvwxyz0123456789-"

const char *const answer_kind_name[] = {[ANSWER_NUMBER] = N_("number"),
                                        [ANSWER_TEXT] = N_("text"),
                                        [ANSWER_SCENARIO] = N_("scenario"),
                                        [ANSWER_LOCK] = N_("lock"),
                                        [ANSWER_ELECTION] = N_("election")};
enum { ANSWER_KINDS = sizeof answer_kind_name / sizeof answer_kind_name[0] };

const char *const relation_name[RELATIONS] = {N_("is"),    N_("not"),     N_("below"),
                                              N_("above"), N_("at-most"), N_("at-least")};

/* What a word takes: the rest of its line, indented lines after it; and how often it is there. */
enum { REST = 1, MAY_REST = 2, BLOCK = 4, MAY_BLOCK = 8, ONCE = 16, NEEDED = 32 };
static const struct {
    const char *name;
    unsigned takes;
} words[EX_WORDS] = {
    [EX_TITLE] = {"title", REST | ONCE | NEEDED},
    [EX_TOPIC] = {"topic", REST | ONCE | NEEDED},
    [EX_QUESTION] = {"question", BLOCK | ONCE | NEEDED},
    [EX_ANSWER] = {"answer", REST | ONCE | NEEDED},
    [EX_START] = {"start", MAY_REST | MAY_BLOCK | ONCE},
    [EX_HINT] = {"hint", BLOCK},
    [EX_LIMIT] = {"limit", REST | ONCE},
    [EX_RUN] = {"run", REST | NEEDED},
    [EX_KEEP] = {"keep", REST},
    [EX_EXPECT] = {"expect", REST | BLOCK | NEEDED},
    [EX_MISTAKE] = {"mistake", MAY_REST | MAY_BLOCK | NEEDED},
    [EX_SOLUTION] = {"solution", MAY_REST | MAY_BLOCK | ONCE},
    [EX_EXPLAIN] = {"explain", BLOCK | ONCE | NEEDED},
    [EX_PT] = {"pt", MAY_REST | MAY_BLOCK},
};

struct reader {
    struct exercise *exercise;
    char *error;
    int line;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct reader *r, const char *format,
                                                      ...) {
    int used = snprintf(r->error, EXERCISE_ERROR_MAX, "%s:%d: ", r->exercise->path, r->line);
    va_list arguments;
    va_start(arguments, format);
    if (used < EXERCISE_ERROR_MAX)
        vsnprintf(r->error + used, (size_t)(EXERCISE_ERROR_MAX - used), format, arguments);
    va_end(arguments);
    return -1;
}

char *exercise_slurp(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = file ? calloc(1, FILE_MAX_BYTES + 1) : NULL;
    size_t length = text ? fread(text, 1, FILE_MAX_BYTES, file) : 0;
    if (text && (ferror(file) || strlen(text) != length || !feof(file))) {
        if (!ferror(file)) errno = EFBIG;
        free(text);
        text = NULL;
    }
    int why = errno;
    if (file) fclose(file);
    errno = why;
    return text;
}

const struct exercise_item *exercise_find(const struct exercise *exercise, enum exercise_word word,
                                          size_t from) {
    for (size_t i = from; i < exercise->count; i++)
        if (exercise->items[i].word == word) return &exercise->items[i];
    return NULL;
}

/* A title and a topic stand in their line, other texts in the lines that follow. */
static bool is_one_line(enum exercise_word word) { return word == EX_TITLE || word == EX_TOPIC; }

const char *exercise_text(const struct exercise *exercise, const struct exercise_item *item) {
    const struct exercise_item *next = item + 1;
    bool translated = next < exercise->items + exercise->count && next->word == EX_PT;
    const struct exercise_item *shown = translated && language_chosen() == PORTUGUESE ? next : item;
    return is_one_line(item->word) ? shown->rest : shown->block;
}

/* ---- Lines ---- */

static int add_item(struct reader *r, char *line) {
    struct exercise *e = r->exercise;
    char *rest = line + strcspn(line, " \t");
    if (*rest) *rest++ = 0;
    rest += strspn(rest, " \t");
    int word = 0;
    while (word < EX_WORDS && strcmp(line, words[word].name) != 0) word++;
    if (word == EX_WORDS) return fail(r, "unknown word '%.40s'; see docs/EXERCISES.md", line);
    if (words[word].takes & ONCE && exercise_find(e, (enum exercise_word)word, 0))
        return fail(r, "%s: there is one already", line);
    if (*rest && !(words[word].takes & (REST | MAY_REST)))
        return fail(r, "%s: its text is in indented lines that follow", line);
    if (!*rest && words[word].takes & REST) return fail(r, "%s: something must follow it", line);
    e->items = grown(e->items, &e->room, e->count + 1, sizeof *e->items);
    struct exercise_item *item = &e->items[e->count];
    *item = (struct exercise_item){(enum exercise_word)word, r->line, strdup(rest), strdup("")};
    e->count++;
    return item->rest && item->block ? 0 : fail(r, "out of memory");
}

/* The first line of a block determines its indentation. */
static int add_to_block(struct reader *r, const char *line, size_t *indentation) {
    struct exercise *e = r->exercise;
    size_t indented = strspn(line, " ");
    if (line[indented] == '\t') return fail(r, "indent with spaces");
    if (!e->count) return fail(r, "an indented line, and no word before it");
    struct exercise_item *item = &e->items[e->count - 1];
    if (!(words[item->word].takes & (BLOCK | MAY_BLOCK)))
        return fail(r, "%s: no indented lines may follow it", words[item->word].name);
    if (line[indented] && !*item->block) *indentation = indented;
    if (!line[indented] && !*item->block) return 0;
    if (line[indented] && indented < *indentation)
        return fail(r, "it is indented less than the first line of its text");
    const char *text = line[indented] ? line + *indentation : "";
    char *longer = realloc(item->block, strlen(item->block) + strlen(text) + 2);
    if (!longer) return fail(r, "out of memory");
    item->block = longer;
    strcat(strcat(longer, text), "\n");
    return 0;
}

static void trim_end(char *text) {
    for (size_t at = strlen(text); at && isspace((unsigned char)text[at - 1]);) text[--at] = 0;
}

static int read_lines(struct reader *r, char *text) {
    size_t indentation = 0;
    for (char *line; (line = strsep(&text, "\n"));) {
        r->line++;
        trim_end(line);
        if (*line == '#') continue;
        bool blank = !*line, inside = *line == ' ' || *line == '\t';
        if (blank &&
            (!r->exercise->count ||
             !(words[r->exercise->items[r->exercise->count - 1].word].takes & (BLOCK | MAY_BLOCK))))
            continue;
        int failed = blank || inside ? add_to_block(r, line, &indentation) : add_item(r, line);
        if (failed) return -1;
    }
    for (size_t i = 0; i < r->exercise->count; i++) trim_end(r->exercise->items[i].block);
    return 0;
}

/* ---- What the items mean ---- */

int exercise_expected(const struct exercise_item *item, struct expected *expected) {
    char *at = strdup(item->rest), *relation = NULL;
    *expected = (struct expected){.path = at};
    if (at) strsep(&at, " \t");
    if (at) relation = strsep(&at, " \t");
    for (int i = 0; relation && at && i < RELATIONS; i++)
        if (strcmp(relation, relation_name[i]) == 0) {
            expected->relation = (enum relation)i;
            expected->value = at + strspn(at, " \t");
        }
    if (expected->value && *expected->value) return 0;
    free(expected->path);
    expected->path = NULL;
    return -1;
}

bool exercise_asks_value(const struct expected *expected) {
    return expected->relation == REL_IS && strcmp(expected->value, "{answer}") == 0;
}

static int check_answer(struct reader *r, const char *rest) {
    struct exercise *e = r->exercise;
    size_t length = strcspn(rest, " \t");
    const char *more = rest + length + strspn(rest + length, " \t");
    int kind = 0;
    while (kind < ANSWER_KINDS && (strlen(answer_kind_name[kind]) != length ||
                                   strncmp(rest, answer_kind_name[kind], length) != 0))
        kind++;
    if (kind == ANSWER_KINDS)
        return fail(r, "answer: '%.40s' is not number, text, scenario, lock or election", rest);
    e->kind = (enum answer_kind)kind;
    if (!*more) return 0;
    char number[32], *end;
    double percent;
    snprintf(number, sizeof number, "%s", more);
    end = strchr(number, '%');
    if (kind != ANSWER_NUMBER || !end || end[1]) return fail(r, "answer: '%.40s'?", more);
    *end = 0;
    if (parse_real(number, &percent) != 0 || percent < 0 || percent > 50)
        return fail(r, "answer: a tolerance is from 0%% to 50%%, not '%.40s'", more);
    e->tolerance = percent / 100;
    return 0;
}

static bool is_kept(const struct exercise *e, size_t before, const char *name, size_t length) {
    for (size_t i = 0; i < before; i++)
        if (e->items[i].word == EX_KEEP && strcspn(e->items[i].rest, " \t") == length &&
            strncmp(e->items[i].rest, name, length) == 0)
            return true;
    return false;
}

/* {answer}, {answer+1}, {answer-1}, {here}, or what was kept before. */
static int check_braces(const struct reader *r, size_t before, const char *text) {
    const struct exercise *e = r->exercise;
    for (const char *at = strchr(text, '{'); at; at = strchr(at, '{')) {
        size_t length = strcspn(++at, "}");
        if (!at[length]) return fail(r, "'{' without '}'");
        bool near = strncmp(at, "answer+1}", 9) == 0 || strncmp(at, "answer-1}", 9) == 0;
        if (near && e->kind != ANSWER_NUMBER) return fail(r, "the answer is not a number");
        if (!near && strncmp(at, "answer}", 7) != 0 && strncmp(at, "here}", 5) != 0 &&
            !is_kept(e, before, at, length))
            return fail(r, "{%.*s} was not kept before", (int)length, at);
    }
    return 0;
}

char *exercise_next_word(char **line) {
    char *word = *line + strspn(*line, " \t");
    bool quoted = *word == '\'';
    word += quoted;
    char *end = word + strcspn(word, quoted ? "'" : " \t");
    *line = *end ? end + 1 : end;
    *end = 0;
    return word;
}

/* Whether a word could be an option that writes a file or changes what is printed: options may be
 * shortened, and those of one letter joined. */
static const char *refused_option(const char *word) {
    static const char *const refused[] = {"--output", "--save-scenario", "--gaps", "--plot",
                                          "--trace",  "--force",         "--json", "--step"};
    size_t size = strcspn(word, "=");
    if (size == 3 && strncmp(word, "--p", 3) == 0) return NULL; /* an option of odds */
    if (word[0] == '-' && word[1] != '-' && strpbrk(word, "oj")) return word;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (size > 2 && strncmp(word, refused[i], size) == 0) return refused[i];
    return NULL;
}

static int check_run(const struct reader *r, size_t at) {
    static const char *const commands[] = {"sim", "check", "odds", "timeout", "compare"};
    const char *text = r->exercise->items[at].rest, *refused = NULL;
    bool known = false, quoted = false;
    size_t length = strcspn(text, " \t"), count = 0;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        known |= strlen(commands[i]) == length && strncmp(text, commands[i], length) == 0;
    if (!known)
        return fail(r, "run: '%.*s' is not sim, check, odds, timeout or compare", (int)length,
                    text);
    for (const char *c = text; *c; c++) quoted ^= *c == '\'';
    if (quoted) return fail(r, "run: a quote is not closed");
    char *copy = strdup(text), *rest = copy;
    if (!copy) return fail(r, "out of memory");
    for (; *rest && !refused; count++) refused = refused_option(exercise_next_word(&rest));
    int failed = refused ? fail(r, "run: %s is not for exercises", refused) : 0;
    free(copy);
    if (failed) return failed;
    if (count + 2 >= EXERCISE_RUN_WORDS) return fail(r, "run: too many words");
    return check_braces(r, at, text);
}

static int check_keep(const struct reader *r, size_t at) {
    const char *text = r->exercise->items[at].rest;
    size_t length = strcspn(text, " \t");
    if (strspn(text, SMALL_NAME) != length || !text[length] ||
        is_kept(r->exercise, at, text, length) || (length == 4 && strncmp(text, "here", 4) == 0) ||
        strncmp(text, "answer", 6) == 0)
        return fail(r, "keep: expected a new name and a path, such as: keep most messages");
    return 0;
}

static int check_expect(const struct reader *r, size_t at) {
    struct expected expected;
    if (exercise_expected(&r->exercise->items[at], &expected) != 0)
        return fail(r, "expect: expected PATH is|not|below|above|at-most|at-least VALUE");
    int failed = check_braces(r, at, expected.value);
    free(expected.path);
    return failed;
}

static bool is_made_of_file(enum answer_kind kind) {
    return kind == ANSWER_LOCK || kind == ANSWER_ELECTION || kind == ANSWER_SCENARIO;
}

/* A number and a text stand in the line, a file's text is indented. */
static int check_given(const struct reader *r, const struct exercise_item *item) {
    const char *name = words[item->word].name;
    bool file = is_made_of_file(r->exercise->kind);
    double number;
    if (file && *item->rest) return fail(r, "%s: it is written in indented lines", name);
    if (!file && !*item->rest) return fail(r, "%s: which?", name);
    if (r->exercise->kind == ANSWER_SCENARIO && !*item->block)
        return fail(r, "%s: the lines of a scenario must follow", name);
    if (item->word == EX_MISTAKE && !file && !*item->block)
        return fail(r, "mistake: say in indented lines what is wrong with it");
    if (r->exercise->kind == ANSWER_NUMBER && parse_real(item->rest, &number) != 0)
        return fail(r, "%s: '%.40s' is not a number", name, item->rest);
    return 0;
}

static int check_start(const struct reader *r, const struct exercise_item *item) {
    bool code = r->exercise->kind == ANSWER_LOCK || r->exercise->kind == ANSWER_ELECTION;
    if (code ? !*item->rest == !*item->block : *item->rest || !*item->block)
        return fail(r, "start: a lock and an election have a FILE.c or changes to the one of "
                       "conclave new, a scenario its lines");
    if (!code && r->exercise->kind != ANSWER_SCENARIO)
        return fail(r, "start: a %s has none", answer_kind_name[r->exercise->kind]);
    if (code && (strchr(item->rest, '/') || strlen(item->rest) > 200))
        return fail(r, "start: the file is beside the exercise: it has no folder");
    return 0;
}

static int check_translation(const struct reader *r, size_t at) {
    static const unsigned texts = 1 << EX_TITLE | 1 << EX_TOPIC | 1 << EX_QUESTION | 1 << EX_HINT |
                                  1 << EX_EXPECT | 1 << EX_EXPLAIN;
    const struct exercise_item *item = &r->exercise->items[at], *of = at ? item - 1 : item;
    bool mistake = of->word == EX_MISTAKE && !is_made_of_file(r->exercise->kind);
    if (!mistake && !(texts >> of->word & 1))
        return fail(r, "pt: there is no text before it that it could translate");
    bool line = is_one_line(of->word);
    if (line ? !*item->rest || *item->block : *item->rest || !*item->block)
        return fail(r, "pt: it is written as what it translates: %s",
                    line ? "in its line" : "in indented lines");
    return 0;
}

static int check_limit(struct reader *r, const char *text) {
    uint64_t us;
    if (parse_duration(text, &us) != 0 || us < 1000000 || us / 1000000 > SECONDS_MAX)
        return fail(r, "limit: '%.40s' is not a time from 1s to 1h", text);
    r->exercise->seconds = (unsigned long)(us / 1000000);
    return 0;
}

static int check_item(struct reader *r, size_t at) {
    const struct exercise_item *item = &r->exercise->items[at];
    bool ran = false, expected = false;
    for (size_t i = 0; i < at; i++) {
        ran |= r->exercise->items[i].word == EX_RUN;
        expected |= r->exercise->items[i].word == EX_EXPECT;
    }
    r->line = item->line;
    if (words[item->word].takes & BLOCK && !*item->block)
        return fail(r, "%s: indented lines with its text must follow", words[item->word].name);
    if ((item->word == EX_KEEP || item->word == EX_EXPECT) && !ran)
        return fail(r, "%s: of which run?", words[item->word].name);
    if (item->word == EX_MISTAKE && !expected)
        return fail(r, "mistake: it follows the expectation that it fails");
    switch (item->word) {
    case EX_START: return check_start(r, item);
    case EX_LIMIT: return check_limit(r, item->rest);
    case EX_RUN: return check_run(r, at);
    case EX_KEEP: return check_keep(r, at);
    case EX_EXPECT: return check_expect(r, at);
    case EX_MISTAKE:
    case EX_SOLUTION: return check_given(r, item);
    case EX_PT: return check_translation(r, at);
    default: return 0;
    }
}

/* How many expectations ask for the value that a command reports. */
static size_t values_asked(const struct exercise *e) {
    size_t asked = 0;
    for (size_t i = 0; i < e->count; i++) {
        struct expected expected;
        if (e->items[i].word != EX_EXPECT || exercise_expected(&e->items[i], &expected) != 0)
            continue;
        asked += exercise_asks_value(&expected);
        free(expected.path);
    }
    return asked;
}

static int check_all(struct reader *r) {
    struct exercise *e = r->exercise;
    for (int word = 0; word < EX_WORDS; word++)
        if (words[word].takes & NEEDED && !exercise_find(e, (enum exercise_word)word, 0))
            return fail(r, "there is no '%s'", words[word].name);
    const struct exercise_item *answer = exercise_find(e, EX_ANSWER, 0);
    r->line = answer->line;
    if (check_answer(r, answer->rest) != 0) return -1;
    for (size_t i = 0; i < e->count; i++)
        if (check_item(r, i) != 0) return -1;
    size_t asked = values_asked(e);
    bool solved = exercise_find(e, EX_SOLUTION, 0) != NULL;
    r->line = answer->line;
    if (asked > 1 || (asked && e->kind != ANSWER_NUMBER))
        return fail(r, "answer: one expectation of a number may be 'is {answer}'");
    if (asked && solved) return fail(r, "solution: the command knows it; leave it out");
    if (!asked && !solved) return fail(r, "there is no 'solution'");
    return 0;
}

/* ---- Files ---- */

static int set_name(struct exercise *e, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = strlen(base), suffix = strlen(EXERCISE_SUFFIX);
    e->path = strdup(path);
    e->directory = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    bool named = length > suffix && length - suffix <= EXERCISE_NAME_MAX &&
                 strspn(base, SMALL_NAME) == length - suffix &&
                 strcmp(base + length - suffix, EXERCISE_SUFFIX) == 0;
    if (named) snprintf(e->name, sizeof e->name, "%.*s", (int)(length - suffix), base);
    return named ? 0 : -1;
}

int exercise_read(struct exercise *exercise, const char *path, char error[EXERCISE_ERROR_MAX]) {
    struct reader r = {.exercise = exercise, .error = error};
    *exercise = (struct exercise){.seconds = SECONDS_DEFAULT};
    int failed = set_name(exercise, path);
    if (failed)
        snprintf(error, EXERCISE_ERROR_MAX,
                 "%s: a name is up to %d small letters, digits and -, and ends in " EXERCISE_SUFFIX,
                 path, EXERCISE_NAME_MAX);
    char *text = failed ? NULL : exercise_slurp(path);
    if (!failed && !text) {
        failed = -1;
        snprintf(error, EXERCISE_ERROR_MAX, "%s: %s", path,
                 errno == EFBIG ? "not an exercise: too large, or not text" : strerror(errno));
    }
    if (!failed) failed = read_lines(&r, text);
    if (!failed) failed = check_all(&r);
    free(text);
    if (failed) exercise_free(exercise);
    return failed;
}

void exercise_free(struct exercise *exercise) {
    for (size_t i = 0; i < exercise->count; i++) {
        free(exercise->items[i].rest);
        free(exercise->items[i].block);
    }
    free(exercise->items);
    free(exercise->path);
    free(exercise->directory);
    *exercise = (struct exercise){0};
}
