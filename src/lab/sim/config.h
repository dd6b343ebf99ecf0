/* The configuration of a run: everything that determines it, and nothing else.
 *
 * One table describes the settings.  The command line and scenario files are read with it, and the
 * JSON report and the command that replays a run are written with it. */
#ifndef CV_LAB_SIM_CONFIG_H
#define CV_LAB_SIM_CONFIG_H

#include <stdio.h>

#include "base/distribution.h"
#include "lab/sim/graph.h"
#include "process/option.h"
#include "process/roster.h"

#define SIM_TIME_MAX_US 1000000000000000000u /* thirty thousand years: every run ends then */
enum { SIM_PROCESSES_MAX = 4000000, SIM_ERROR_MAX = 256, SIM_ANY_PID = 0 };

enum sim_action_type {
    ACT_ACQUIRE,   /* process; amount: how long it holds, in us */
    ACT_CAMPAIGN,  /* process */
    ACT_CRASH,     /* process */
    ACT_RECOVER,   /* process; amnesia */
    ACT_PAUSE,     /* process; amount: us, 0: until ACT_RESUME */
    ACT_RESUME,    /* process */
    ACT_DRIFT,     /* process; factor: the rate of its clock */
    ACT_SUSPECT,   /* process, other */
    ACT_TRUST,     /* process, other */
    ACT_PARTITION, /* side of each process */
    ACT_HEAL,
    ACT_DELAY, /* process to other (SIM_ANY_PID: any); delay, or the run's own when `usual`; once */
    ACT_LOSE,  /* process to other; amount: how many messages */
    ACT_TIMEOUT, /* process; amount: timer */
    ACT_CHOOSE,  /* process; amount: the answer to its next choice */
};

struct sim_action {
    uint64_t at_us;
    enum sim_action_type type;
    cv_pid process, other;
    uint64_t amount;
    double factor;
    bool amnesia, default_delay, once;
    struct distribution delay;
    unsigned char *side; /* by pid, owned */
    char *text;          /* as typed, owned */
};

/* How processes learn of failures: from an oracle with a delay, or from failure detectors. */
struct sim_detector {
    uint64_t oracle_us;
    const struct cv_algorithm *code;
    uint64_t option[CV_OPTIONS_MAX];
    char text[32]; /* as typed; "": none */
};

struct sim_config {
    const struct cv_algorithm *algorithm;
    uint64_t option[CV_OPTIONS_MAX];
    char (*names)[ROSTER_NAME_MAX]; /* by pid, owned; NULL: default names */
    struct sim_action *actions;     /* in order of time, owned */
    size_t action_count;
    struct graph network;                        /* as given, owned; no vertices: none */
    bool network_names_ids;                      /* its names are numbers, and serve as ids */
    uint32_t settled_processes, settled_servers; /* that names and actions rely on; 0: none */
    uint64_t settled_first;
    bool processes_given;
    /* The settings: */
    uint64_t processes, first, entries, seed;
    struct distribution delay, think, hold;
    double arrivals;
    bool scripted, reorder, recover, amnesia, fencing;
    double loss, duplicate;
    double partition_rate, crash_rate, pause_rate, drift;
    struct distribution partition_for, recover_after, pause_for;
    struct distribution start;
    uint64_t initiators, settle, service_time;
    char *topology, *ids, *attribute; /* as typed, owned; NULL: default */
    struct sim_detector detector;
    uint64_t progress_timeout, time_limit, event_limit, wait_bound, starved_after;
};

enum setting_kind {
    SET_COUNT,
    SET_DURATION,
    SET_PROBABILITY,
    SET_RATE,
    SET_SPREAD,
    SET_FLAG,
    SET_TEXT,
    SET_DETECTOR,
    SET_EDGES, /* a network, edge by edge */
    SET_GRAPH, /* a network, from a file */
};
enum setting_group { FOR_RUN, FOR_LOAD, FOR_NETWORK, FOR_FAULTS, FOR_JUDGE, SETTING_GROUPS };
extern const char *const setting_group_name[SETTING_GROUPS];

struct setting {
    const char *name, *value, *help; /* as typed; its argument; for --help */
    enum setting_kind kind;
    enum setting_group group;
    unsigned problems; /* cv_problem bits that it applies to */
    size_t offset;
    uint64_t min, max; /* SET_COUNT */
};

extern const struct setting sim_settings[];
extern const size_t sim_setting_count;

void config_init(struct sim_config *config, const struct cv_algorithm *algorithm);
void config_free(struct sim_config *config);

/* Each returns 0, or -1 and a sentence in `error`. */
int setting_apply(struct sim_config *config, const struct setting *setting, const char *text,
                  char error[SIM_ERROR_MAX]);
int option_apply(struct sim_config *config, const struct cv_option *option, const char *text,
                 char error[SIM_ERROR_MAX]);
int config_check(const struct sim_config *config, char error[SIM_ERROR_MAX]);

const struct setting *setting_find(const char *name);
/* The value as it could be typed ("" for a flag that is off). */
char *setting_format(const struct sim_config *config, const struct setting *setting, char *buffer,
                     size_t size);
char *option_format(const struct sim_config *config, const struct cv_option *option, char *buffer,
                    size_t size);
/* Calls `take` with each setting and option of the run, in the order of the tables. */
struct config_word {
    const char *name, *value;
    bool flag;       /* it has no value */
    bool is_default; /* it need not be typed */
};
void config_words(const struct sim_config *config,
                  void (*take)(void *context, const struct config_word *word), void *context);
/* Writes the arguments of `conclave sim` that repeat this run. */
void config_command(const struct sim_config *config, FILE *out);

struct roster config_roster(const struct sim_config *config);
/* Fixes the number of processes, because names and actions rely on it. */
void config_settle(struct sim_config *config);

/* Whether faults are drawn at a rate, and so never end. */
bool config_keeps_failing(const struct sim_config *config);
/* Whether the schedule has an action of that type. */
bool config_schedules(const struct sim_config *config, enum sim_action_type type);
/* Parses the argument of "at", for instance "5ms p2 crash", and appends the action. */
int action_parse(struct sim_config *config, const char *text, char error[SIM_ERROR_MAX]);

#endif
