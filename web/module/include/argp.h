/* The part of the GNU C library's argp that the laboratory's commands use. */
#ifndef CV_MODULE_ARGP_H
#define CV_MODULE_ARGP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct argp_option {
    const char *name;
    int key;
    const char *arg;
    int flags;
    const char *doc;
    int group;
};

enum { OPTION_ARG_OPTIONAL = 1, OPTION_HIDDEN = 2, OPTION_ALIAS = 4 };
enum {
    ARGP_KEY_ARG = 0,
    ARGP_KEY_ARGS = 0x1000006,
    ARGP_KEY_END = 0x1000001,
    ARGP_KEY_NO_ARGS = 0x1000002,
    ARGP_KEY_INIT = 0x1000003
};
enum { ARGP_ERR_UNKNOWN = E2BIG };

struct argp;
struct argp_state {
    const struct argp *root_argp;
    int argc;
    char **argv;
    int next;
    unsigned flags, arg_num;
    void *input;
};
typedef int (*argp_parser_t)(int key, char *argument, struct argp_state *state);

struct argp_child {
    const struct argp *argp;
};

struct argp {
    const struct argp_option *options;
    argp_parser_t parser;
    const char *args_doc, *doc;
    const void *children, *help_filter, *argp_domain;
};

extern const char *argp_program_version;
extern int argp_err_exit_status;

int argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *index,
               void *input);

#endif
