/* Command lines of commands that take an algorithm: its own options, and settings of a run. */
#ifndef CV_CLI_OPTIONS_H
#define CV_CLI_OPTIONS_H

#include "cli/cli.h"
#include "sim/config.h"
#include "sim/trace.h"

/* Option keys; the first two ranges are indexed by the tables they come from. */
enum { KEY_SETTING = 0x1000, KEY_OPTION = 0x2000, KEY_OWN = 0x3000 };

/* The table for argp, and the texts that it points to. */
struct option_table {
    struct argp_option *options;
    char (*docs)[256];
    int count;
};

/* Room for all settings, the options of an algorithm and `own` more. */
void option_table_open(struct option_table *table, size_t own);
void option_table_close(struct option_table *table);
/* `usual`: the value that holds when none is given, or NULL. */
void option_add(struct option_table *table, struct argp_option option, const char *usual);
/* A setting, with its usual value for the algorithm, when that is known; else NULL. */
void option_add_setting(struct option_table *table, const struct setting *setting, int group,
                        const struct cv_algorithm *algorithm);
void option_add_algorithm(struct option_table *table, const struct cv_algorithm *algorithm,
                          int group);

/* Whether the key is that of a setting or of an algorithm's option, which is then applied. */
bool option_parse(struct sim_config *config, int key, const char *text);

enum trace_format require_format(const char *name);

#endif
