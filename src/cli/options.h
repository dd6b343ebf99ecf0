/* Command lines with an algorithm: its own options, and the settings of a run. */
#ifndef CV_CLI_OPTIONS_H
#define CV_CLI_OPTIONS_H

#include "cli/cli.h"
#include "lab/sim/config.h"
#include "lab/sim/trace.h"

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
/* `default_value` is shown in the help; it may be NULL. */
void option_add(struct option_table *table, struct argp_option option, const char *default_value);
/* A setting, with its default for the algorithm, which may be NULL when it is not known yet. */
void option_add_setting(struct option_table *table, const struct setting *setting, int group,
                        const struct cv_algorithm *algorithm);
void option_add_algorithm(struct option_table *table, const struct cv_algorithm *algorithm,
                          const uint64_t *defaults, int group);

/* Applies a setting or an option of the algorithm; returns whether the key was one of these. */
bool option_parse(struct sim_config *config, int key, const char *text);

void set_count(const char *name, const char *text, uint64_t *result); /* above 0 */

/* `central --coordinator elected:bully` is another name of central-elected.  Puts that in its place
 * and returns how many words are left. */
int option_coordinator(int argc, char **argv);
#define COORDINATOR_HELP                                                                           \
    "of central: elected:bully, the leader that a bully elects (central-elected)"

enum trace_format require_format(const char *name);

#endif
