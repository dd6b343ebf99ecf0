/* Reading a command line from the same tables of options as the GNU C library does. */
#include <argp.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

const char *argp_program_version;
int argp_err_exit_status = 64;

static _Noreturn void refuse(const struct argp_state *state) {
    fprintf(stderr, "Try `%s --help' or `%s --usage' for more information.\n", state->argv[0],
            state->argv[0]);
    exit(argp_err_exit_status);
}

/* ---- Help ---- */

static void print_option(const struct argp_option *o) {
    char name[96], letter[8] = "    ";
    if (o->key > ' ' && o->key < 0x7f) snprintf(letter, sizeof letter, "-%c, ", o->key);
    snprintf(name, sizeof name, "%s--%s%s%s", letter, o->name, o->arg ? "=" : "",
             o->arg ? o->arg : "");
    printf("  %-28s %s\n", name, o->doc ? o->doc : "");
}

static _Noreturn void help(const struct argp_state *state) {
    const struct argp *argp = state->root_argp;
    const char *after = argp->doc ? strchr(argp->doc, '\v') : NULL;
    printf("Usage: %s [OPTION...] %s\n", state->argv[0], argp->args_doc ? argp->args_doc : "");
    if (argp->doc) printf("%.*s\n\n", after ? (int)(after - argp->doc) : -1, argp->doc);
    for (const struct argp_option *o = argp->options; o && (o->name || o->doc || o->key); o++) {
        if (o->flags & OPTION_HIDDEN) continue;
        if (o->name)
            print_option(o);
        else
            printf("\n %s\n", o->doc);
    }
    if (after) printf("\n%s", after + 1);
    exit(0);
}

/* ---- Parsing ---- */

static bool is_last(const struct argp_option *o) { return !o->name && !o->doc && !o->key; }

/* An option by its name or by a beginning that no other has. */
static const struct argp_option *find_long(struct argp_state *state, const char *word) {
    size_t length = strcspn(word, "=");
    const struct argp_option *found = NULL;
    bool ambiguous = false;
    for (const struct argp_option *o = state->root_argp->options; o && !is_last(o); o++) {
        if (!o->name || strncmp(o->name, word, length) != 0) continue;
        if (strlen(o->name) == length) return o;
        ambiguous |= found && found->key != o->key;
        found = o;
    }
    if (found && !ambiguous) return found;
    if (strncmp("help", word, length) == 0 || strncmp("usage", word, length) == 0) help(state);
    if (ambiguous)
        fprintf(stderr, "%s: option '--%.*s' is ambiguous\n", state->argv[0], (int)length, word);
    else
        fprintf(stderr, "%s: unrecognized option '--%s'\n", state->argv[0], word);
    refuse(state);
}

static const struct argp_option *find_short(struct argp_state *state, char letter) {
    for (const struct argp_option *o = state->root_argp->options; o && !is_last(o); o++)
        if (o->key == letter) return o;
    if (letter == '?') help(state);
    fprintf(stderr, "%s: invalid option -- '%c'\n", state->argv[0], letter);
    refuse(state);
}

static void call(struct argp_state *state, const struct argp_option *o, char *value) {
    int error = state->root_argp->parser(o->key, value, state);
    if (error && error != ARGP_ERR_UNKNOWN) exit(argp_err_exit_status);
}

static char *next_word(struct argp_state *state) {
    return state->next < state->argc ? state->argv[state->next++] : NULL;
}

static void parse_long(struct argp_state *state, char *word) {
    const struct argp_option *o = find_long(state, word);
    char *value = strchr(word, '=');
    if (value) value++;
    if (value && !o->arg) {
        fprintf(stderr, "%s: option '--%s' doesn't allow an argument\n", state->argv[0], o->name);
        refuse(state);
    }
    if (!value && o->arg && !(o->flags & OPTION_ARG_OPTIONAL) && !(value = next_word(state))) {
        fprintf(stderr, "%s: option '--%s' requires an argument\n", state->argv[0], o->name);
        refuse(state);
    }
    call(state, o, value);
}

static void parse_short(struct argp_state *state, char *word) {
    while (*word) {
        const struct argp_option *o = find_short(state, *word++);
        char *value = NULL;
        if (o->arg) {
            value = *word ? word : o->flags & OPTION_ARG_OPTIONAL ? NULL : next_word(state);
            if (!value && !(o->flags & OPTION_ARG_OPTIONAL)) {
                fprintf(stderr, "%s: option requires an argument -- '%c'\n", state->argv[0],
                        o->key);
                refuse(state);
            }
            word = "";
        }
        call(state, o, value);
    }
}

/* What is no option comes after all that are. */
static void parse_arguments(struct argp_state *state, char **words, int count) {
    argp_parser_t parser = state->root_argp->parser;
    for (int i = 0; i < count; i++) {
        int error = parser(ARGP_KEY_ARG, words[i], state);
        if (error == ARGP_ERR_UNKNOWN) {
            state->argv[--state->argc] = words[i];
            state->next = state->argc;
            if (parser(ARGP_KEY_ARGS, NULL, state) == 0) return;
            fprintf(stderr, "%s: Too many arguments\n", state->argv[0]);
            refuse(state);
        }
        if (error) exit(argp_err_exit_status);
        state->arg_num++;
    }
    if (!count) parser(ARGP_KEY_NO_ARGS, NULL, state);
}

int argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *index,
               void *input) {
    struct argp_state state = {
        .root_argp = argp, .argc = argc, .argv = argv, .next = 1, .flags = flags, .input = input};
    char **words = calloc((size_t)argc + 1, sizeof *words), *word;
    int count = 0;
    bool only_words = false;
    if (!words) exit(3);
    argp->parser(ARGP_KEY_INIT, NULL, &state);
    while ((word = next_word(&state))) {
        if (only_words || word[0] != '-' || !word[1])
            words[count++] = word;
        else if (strcmp(word, "--") == 0)
            only_words = true;
        else if (word[1] == '-')
            parse_long(&state, word + 2);
        else
            parse_short(&state, word + 1);
    }
    parse_arguments(&state, words, count);
    argp->parser(ARGP_KEY_END, NULL, &state);
    free(words);
    if (index) *index = state.next;
    return 0;
}
