/* conclave new: an algorithm of one's own, to begin with. */
#include "cli/own.h"
#include "language/language.h"

enum { NAME_MAX_BYTES = 40 };

struct request {
    const char *kind, *name;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    if (key == KEY_LANG) return language_option(text);
    if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
    if (state->arg_num > 1) usage_error("new: one algorithm at a time");
    *(state->arg_num ? &request->name : &request->kind) = text;
    return 0;
}

static void check(const struct request *request) {
    const char *name = request->name;
    if (!request->kind || !name)
        usage_error("new: what, and what is it called? For instance: conclave new lock mine");
    if (!own_skeleton(request->kind))
        usage_error("new: '%s' is neither lock nor election", request->kind);
    if (*name < 'a' || *name > 'z' || strlen(name) > NAME_MAX_BYTES ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(name))
        usage_error("new: '%s' is not a name: up to %d small letters, digits, - and _, and a "
                    "letter first",
                    name, NAME_MAX_BYTES);
}

static void say_what_next(const struct request *request) {
    const char *name = request->name, *lang = language_words();
    printf(*request->kind == 'e'
               ? _("%s/%s.c    an election that works: change it\n%s/Makefile\n\nTry:\n")
               : _("%s/%s.c    a lock that works: change it\n%s/Makefile\n\nTry:\n"),
           name, name, name);
    printf("  make -C %s\n", name);
    printf("  conclave sim %s/%s.so%s\n", name, name, lang);
    printf("  conclave check %s/%s.so%s\n", name, name, lang);
    printf("  conclave sim %s/%s.so --trace svg --output %s/run.svg%s\n", name, name, name, lang);
    printf("  conclave explain %s/%s.so%s\n", name, name, lang);
}

int cmd_new(int argc, char **argv) {
    static const struct argp_option options[] = {LANG_OPTION(0), {0}};
    static const struct argp argp = {
        options,
        parse,
        "lock NAME\nelection NAME",
        "Begin an algorithm of your own: writes NAME/NAME.c, a small lock or election that works "
        "and explains itself, and NAME/Makefile.  Compiled, it is used by its file, wherever an "
        "algorithm is named.  Nothing is overwritten.\v"
        "Examples:\n"
        "  conclave new lock mine && make -C mine\n"
        "  conclave sim mine/mine.so --processes 5 --entries 100\n"
        "  conclave check mine/mine.so --crashes 1\n",
        0,
        0,
        0};
    struct request request = {0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    check(&request);
    own_begin("new", request.name, request.name, own_skeleton(request.kind), true);
    say_what_next(&request);
    return EXIT_OK;
}
