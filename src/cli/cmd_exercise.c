/* conclave exercise: questions that the laboratory grades. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/spelling.h"
#include "cli/exercise.h"
#include "cli/own.h"
#include "language/language.h"

enum { KEY_ANSWER = 0x1000, KEY_HINT, KEY_SOLUTION, KEY_START, KEY_EXERCISES, KEY_VERIFY };

struct request {
    const char *name, *answer, *start, *directory;
    uint64_t hint;
    bool solution, verify;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_ANSWER: request->answer = text; return 0;
    case KEY_HINT:
        request->hint = 1;
        if (text && (parse_u64(text, &request->hint) != 0 || !request->hint))
            usage_error("hint: '%s' is not a whole number above 0", text);
        return 0;
    case KEY_SOLUTION: request->solution = true; return 0;
    case KEY_START: request->start = text; return 0;
    case KEY_EXERCISES: request->directory = text; return 0;
    case KEY_VERIFY: request->verify = true; return 0;
    case KEY_LANG: return language_option(text);
    case ARGP_KEY_ARG:
        if (request->name) usage_error("exercise: one at a time: %s or %s", request->name, text);
        request->name = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void check(const struct request *request) {
    int wanted = !!request->answer + !!request->hint + request->solution + !!request->start +
                 request->verify;
    if (wanted > 1)
        usage_error("exercise: one of --answer, --hint, --solution, --start and --verify");
    if (wanted && !request->name && !request->verify)
        usage_error("exercise: which? 'conclave exercise' lists them");
}

/* ---- Where they are ---- */

/* Beside the program, as in its source tree, or installed with it; or with a module that is in no
 * file. */
static char *find_directory(const char *given) {
    static const char *const places[] = {"exercises", "share/conclave/exercises"};
    char path[OWN_PATH_BYTES], *found = NULL;
    if (given) return strdup(given);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    for (int up = 0; up < 2; up++)
        if (strrchr(path, '/')) *strrchr(path, '/') = 0;
    for (size_t i = 0; !found && i < sizeof places / sizeof places[0]; i++) {
        if (asprintf(&found, "%s%s%s", path, *path ? "/" : "", places[i]) < 0)
            system_error("out of memory");
        if (access(found, R_OK | X_OK) == 0) break;
        free(found);
        found = NULL;
    }
    if (!found) usage_error("exercise: they are not installed here; give --exercises DIR");
    return found;
}

static int is_exercise(const struct dirent *entry) {
    size_t length = strlen(entry->d_name), suffix = strlen(EXERCISE_SUFFIX);
    return *entry->d_name != '.' && length > suffix &&
           strcmp(entry->d_name + length - suffix, EXERCISE_SUFFIX) == 0;
}

struct collection {
    char *directory;
    struct exercise *all;
    size_t count;
};

static void read_into(struct collection *c, const char *file) {
    char error[EXERCISE_ERROR_MAX], *path = NULL;
    if (asprintf(&path, "%s/%s", c->directory, file) < 0) system_error("out of memory");
    if (exercise_read(&c->all[c->count], path, error) != 0) usage_error("%s", error);
    c->count++;
    free(path);
}

static const char *text_of(const struct exercise *e, enum exercise_word word) {
    const struct exercise_item *item = exercise_find(e, word, 0);
    return item ? exercise_text(e, item) : "";
}

static int by_topic(const void *a, const void *b) {
    int order = strcmp(exercise_find(a, EX_TOPIC, 0)->rest, exercise_find(b, EX_TOPIC, 0)->rest);
    return order ? order
                 : strcmp(((const struct exercise *)a)->name, ((const struct exercise *)b)->name);
}

static void collection_read(struct collection *c, const char *given) {
    struct dirent **entries = NULL;
    *c = (struct collection){.directory = find_directory(given)};
    int count = c->directory ? scandir(c->directory, &entries, is_exercise, alphasort) : -1;
    if (count < 0) usage_error("exercises: %s: %s", given, strerror(errno));
    c->all = calloc((size_t)count + 1, sizeof *c->all);
    if (!c->all) system_error("out of memory");
    for (int i = 0; i < count; i++) {
        read_into(c, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (!count)
        usage_error("exercises: %s has no file that ends in " EXERCISE_SUFFIX, c->directory);
    qsort(c->all, c->count, sizeof *c->all, by_topic);
}

static void collection_free(struct collection *c) {
    for (size_t i = 0; i < c->count; i++) exercise_free(&c->all[i]);
    free(c->all);
    free(c->directory);
}

static const struct exercise *require_exercise(const struct collection *c, const char *name) {
    const char *nearest = NULL;
    unsigned best = 4;
    for (size_t i = 0; i < c->count; i++) {
        if (strcmp(c->all[i].name, name) == 0) return &c->all[i];
        unsigned distance = word_distance(name, c->all[i].name);
        if (distance < best) best = distance, nearest = c->all[i].name;
    }
    if (nearest) usage_error("there is no exercise '%s'; did you mean %s?", name, nearest);
    usage_error("there is no exercise '%s'; 'conclave exercise' lists them", name);
}

/* ---- Questions ---- */

static void list(const struct collection *c) {
    const char *topic = "";
    for (size_t i = 0; i < c->count; i++) {
        const struct exercise *e = &c->all[i];
        if (strcmp(topic, text_of(e, EX_TOPIC)) != 0)
            printf("%s%s\n", i ? "\n" : "", text_of(e, EX_TOPIC));
        topic = text_of(e, EX_TOPIC);
        printf("  %-24s %-*s %s\n", e->name, COLUMN(9, _(answer_kind_name[e->kind])),
               text_of(e, EX_TITLE));
    }
    puts(_("\n'conclave exercise NAME' asks; 'conclave exercise NAME --answer ANSWER' grades."));
}

static size_t hint_count(const struct exercise *e) {
    size_t count = 0;
    for (size_t i = 0; i < e->count; i++) count += e->items[i].word == EX_HINT;
    return count;
}

static void ask(const struct exercise *e) {
    static const char *const how[] = {
        [ANSWER_NUMBER] = N_("--answer NUMBER"),          [ANSWER_TEXT] = N_("--answer TEXT"),
        [ANSWER_SCENARIO] = N_("--answer FILE.scenario"), [ANSWER_LOCK] = N_("--answer FILE.c"),
        [ANSWER_ELECTION] = N_("--answer FILE.c"),
    };
    bool begun =
        e->kind == ANSWER_LOCK || e->kind == ANSWER_ELECTION || exercise_find(e, EX_START, 0);
    printf("%s\n\n%s\n\n", text_of(e, EX_TITLE), text_of(e, EX_QUESTION));
    if (begun) printf(_("Begin:   conclave exercise %s --start DIR\n"), e->name);
    printf(_("Answer:  conclave exercise %s %s\n"), e->name, _(how[e->kind]));
    if (hint_count(e)) printf(_("Stuck?   conclave exercise %s --hint\n"), e->name);
}

static void give_hint(const struct exercise *e, uint64_t wanted) {
    size_t count = hint_count(e), at = 0;
    if (wanted > count)
        usage_error("hint: %s has %zu hint%s", e->name, count, count == 1 ? "" : "s");
    for (size_t i = 0; i < e->count; i++)
        if (e->items[i].word == EX_HINT && ++at == wanted) puts(exercise_text(e, &e->items[i]));
    if (wanted < count) printf(_("\nThe next one: --hint=%llu\n"), (unsigned long long)wanted + 1);
}

static void start(const struct exercise *e, const char *directory) {
    bool code = e->kind == ANSWER_LOCK || e->kind == ANSWER_ELECTION;
    const struct exercise_item *given = exercise_find(e, EX_START, 0);
    if (!code && !given)
        usage_error("start: the answer of %s is a %s, which begins with nothing", e->name,
                    answer_kind_name[e->kind]);
    char *text = exercise_start(e), file[EXERCISE_NAME_MAX + 16];
    if (!text) exit(EXIT_SYSTEM);
    if (code) {
        own_begin("start", directory, e->name, text, !given || !*given->rest);
        printf("%s/%s.c\n%s/Makefile\n\n", directory, e->name, directory);
        printf(_("Change it, then: conclave exercise %s --answer %s/%s.c\n"), e->name, directory,
               e->name);
    } else {
        if (mkdir(directory, 0777) != 0)
            usage_error("start: %s: %s; nothing was written", directory, strerror(errno));
        snprintf(file, sizeof file, "%s.scenario", e->name);
        own_write(directory, file, text);
        printf(_("%s/%s\n\nGo on with it, then: conclave exercise %s --answer %s/%s\n"), directory,
               file, e->name, directory, file);
    }
    free(text);
}

/* ---- Answers ---- */

/* What the author of the exercise says to this very answer, or else to whatever fails here. */
static const char *comment_on(const struct exercise *e, const struct judgement *j,
                              const struct answer *answer) {
    bool file = e->kind != ANSWER_NUMBER && e->kind != ANSWER_TEXT;
    for (size_t i = 0; !file && i < e->count; i++)
        if (e->items[i].word == EX_MISTAKE && exercise_same(e, e->items[i].rest, answer->given))
            return exercise_text(e, &e->items[i]);
    return exercise_text(e, j->item);
}

/* A path of a report as it is; for who does not read English, the name at its end. */
static const char *path_text(const char *path) {
    const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path, *text = _(name);
    return text == name ? path : text;
}

/* A value that is asked for is not told, nor the command that tells it. */
static void say_what_failed(const struct judgement *j, const struct answer *answer) {
    struct expected expected;
    if (exercise_expected(j->item, &expected) != 0) return;
    if (exercise_asks_value(&expected))
        printf(_("Wrong: it is not %s.\n"), answer->given);
    else if (strchr(expected.value, '{'))
        printf(_("Wrong: %s is %s.\n"), path_text(expected.path), _(j->is));
    else
        printf(_("Wrong: %s is %s, and should be%s%s %s.\n"), path_text(expected.path), _(j->is),
               expected.relation == REL_IS ? "" : " ",
               expected.relation == REL_IS ? "" : _(relation_name[expected.relation]),
               _(expected.value));
    free(expected.path);
}

static bool is_shown(const struct judgement *j) {
    bool drawn = strcmp(j->words[1], "sim") == 0 || strcmp(j->words[1], "check") == 0;
    return drawn && strncmp(j->item->rest, "verdicts.", strlen("verdicts.")) == 0;
}

/* Files that were made for the answer are gone by the time that a command is typed. */
static void print_command(const struct judgement *j, const struct answer *answer,
                          const char *before, const char *after) {
    const char *made = *answer->directory ? strstr(j->command, answer->directory) : NULL;
    if (!made) {
        printf("%s%s%s%s\n", before, j->command, after, language_words());
        return;
    }
    bool compiled = strstr(made, "answer.so") != NULL;
    int length = (int)strlen(answer->given) - (compiled ? 2 : 0);
    const char *rest = made + strcspn(made, " ");
    printf("%s%.*s%s%.*s%s%s%s%s\n", before, (int)(made - j->command), j->command,
           strchr(answer->given, '/') ? "" : "./", length, answer->given, compiled ? ".so" : "",
           rest, after, language_words());
}

static void explain_wrong(const struct exercise *e, const struct judgement *j,
                          const struct answer *answer) {
    struct expected expected;
    if (j->item->word == EX_RUN) {
        printf(_("Wrong: %s.\n"), j->signal == SIGXCPU || j->signal == SIGKILL
                                      ? _("it did not come to an end in time")
                                      : _("it crashed"));
        print_command(j, answer, _("\nSee for yourself:\n  "), "");
        return;
    }
    say_what_failed(j, answer);
    printf("\n%s\n", comment_on(e, j, answer));
    bool secret = exercise_expected(j->item, &expected) == 0 && exercise_asks_value(&expected);
    free(expected.path);
    if (secret) return;
    if (is_shown(j)) {
        puts("\n----");
        judgement_show(e, j);
        puts("----");
        print_command(j, answer,
                      *answer->directory ? _("\nAs a picture, once it is compiled (make):\n  ")
                                         : _("\nAs a picture:\n  "),
                      " --trace svg --output why.svg");
    } else {
        print_command(j, answer, _("\nSee for yourself:\n  "), "");
    }
}

static int grade(const struct exercise *e, const char *given) {
    struct answer answer;
    struct judgement j;
    int status = EXIT_USAGE;
    if (answer_take(&answer, e, given) == 0) {
        exercise_judge(e, &answer, &j);
        status = j.unusable ? EXIT_USAGE : j.right ? EXIT_OK : EXIT_VIOLATED;
        if (status == EXIT_OK) {
            printf(_("Right.\n\n%s\n"), text_of(e, EX_EXPLAIN));
            print_command(&j, &answer, _("\nSee for yourself:\n  "), "");
        } else if (status == EXIT_VIOLATED) {
            explain_wrong(e, &j, &answer);
        }
        judgement_free(&j);
    }
    answer_free(&answer);
    return status;
}

static int show_solution(const struct exercise *e) {
    const struct exercise_item *item = exercise_find(e, EX_SOLUTION, 0);
    struct answer answer = {0};
    struct judgement j = {0};
    if (!item) {
        exercise_judge(e, &answer, &j);
        printf(_("%s\n  by: %s%s\n"), j.truth ? j.truth : "?", j.command, language_words());
    } else if (*item->rest) {
        puts(item->rest);
    } else {
        if (e->kind != ANSWER_SCENARIO) puts(_("What changes in the file of --start:\n"));
        puts(item->block);
    }
    printf("\n%s\n", text_of(e, EX_EXPLAIN));
    judgement_free(&j);
    return EXIT_OK;
}

/* ---- For those who write exercises ---- */

/* Judges an answer of the exercise's own: right when `fails_at` is NULL, else wrong just there. */
static bool verify_answer(const struct exercise *e, const struct exercise_item *item,
                          const struct exercise_item *fails_at) {
    struct answer answer;
    struct judgement j = {0};
    bool judged = answer_of_item(&answer, e, item) == 0, well = false;
    if (judged) {
        exercise_judge(e, &answer, &j);
        well = fails_at ? !j.right && j.item == fails_at : j.right;
    }
    int line = item ? item->line : exercise_find(e, EX_ANSWER, 0)->line;
    if (judged && !well && j.right)
        printf("%s:%d: this mistake is right\n", e->path, line);
    else if (judged && !well && j.item->word == EX_RUN)
        printf("%s:%d: the command of line %d failed: %s\n", e->path, line, j.item->line,
               j.command);
    else if (judged && !well)
        printf("%s:%d: it fails at line %d, where the report has %s: %s\n", e->path, line,
               j.item->line, j.is, j.command);
    judgement_free(&j);
    answer_free(&answer);
    return well;
}

static bool verify(const struct exercise *e) {
    const struct exercise_item *expectation = NULL;
    bool well = verify_answer(e, exercise_find(e, EX_SOLUTION, 0), NULL);
    for (size_t i = 0; i < e->count; i++) {
        if (e->items[i].word == EX_EXPECT) expectation = &e->items[i];
        if (e->items[i].word != EX_MISTAKE) continue;
        well &= verify_answer(e, &e->items[i], expectation);
    }
    printf("%-24s %s\n", e->name, well ? "as it should be" : "WRONG");
    return well;
}

static int verify_all(const struct collection *c, const char *name) {
    bool well = true;
    if (name) return verify(require_exercise(c, name)) ? EXIT_OK : EXIT_VIOLATED;
    for (size_t i = 0; i < c->count; i++) well &= verify(&c->all[i]);
    return well ? EXIT_OK : EXIT_VIOLATED;
}

static int serve(const struct request *request, const struct collection *c) {
    if (request->verify) return verify_all(c, request->name);
    if (!request->name) return list(c), EXIT_OK;
    const struct exercise *e = require_exercise(c, request->name);
    if (request->answer) return grade(e, request->answer);
    if (request->solution) return show_solution(e);
    if (request->hint)
        give_hint(e, request->hint);
    else if (request->start)
        start(e, request->start);
    else
        ask(e);
    return EXIT_OK;
}

int cmd_exercise(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"answer", KEY_ANSWER, "ANSWER", 0,
         "grade an answer: a number, a text, or the file of a scenario or of an algorithm", 0},
        {"hint", KEY_HINT, "K", OPTION_ARG_OPTIONAL, "a hint; --hint=2 is the next", 0},
        {"start", KEY_START, "DIR", 0,
         "write the files to begin with into a new directory; nothing is overwritten", 0},
        {"solution", KEY_SOLUTION, 0, 0, "show a right answer, and why it is right", 0},
        {"exercises", KEY_EXERCISES, "DIR", 0,
         "take the exercises of this directory: files of your own", 0},
        {"verify", KEY_VERIFY, 0, 0,
         "for authors: the solution of each exercise is right, and each of its mistakes wrong "
         "where it should be",
         0},
        LANG_OPTION(0),
        {0}};
    static const struct argp argp = {
        options,
        parse,
        "[NAME]",
        "Exercises that grade themselves: without NAME their list, with NAME the question.  An "
        "answer is judged by running it in the simulator or the checker; a wrong one is explained "
        "by the run or the counterexample that shows it.\v"
        "Exit status: 0 the answer is right, 1 it is wrong, 2 wrong usage, or it is no answer.\n\n"
        "Examples:\n"
        "  conclave exercise\n"
        "  conclave exercise chang-roberts-worst --answer 1,2,3,4,5,6,7,8\n"
        "  conclave exercise mend-coordinator --start mine\n"
        "  conclave exercise mend-coordinator --answer mine/mend-coordinator.c\n"
        "  conclave exercise --exercises homework --verify\n",
        0,
        0,
        0};
    struct request request = {0};
    struct collection collection;
    argp_parse(&argp, argc, argv, 0, 0, &request);
    check(&request);
    collection_read(&collection, request.directory);
    int status = serve(&request, &collection);
    collection_free(&collection);
    return status;
}
