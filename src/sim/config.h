/* What a run is made of: everything that decides it, and nothing else.
 *
 * One table describes the settings; the command line, scenario files, the JSON report and the
 * command that replays a run are all read from or written with it. */
#ifndef CV_SIM_CONFIG_H
#define CV_SIM_CONFIG_H

#include <stdio.h>

#include "base/distribution.h"
#include "process/roster.h"
#include "sim/graph.h"

#define SIM_TIME_MAX_US 1000000000000000000u /* thirty thousand years: then every run ends */
enum { SIM_PROCESSES_MAX = 4000000, SIM_ERROR_MAX = 256, SIM_ANY_PID = 0 };

enum sim_action_type {
    ACT_ACQUIRE,   /* process; amount_us: how long it holds */
    ACT_CAMPAIGN,  /* process */
    ACT_CRASH,     /* process */
    ACT_RECOVER,   /* process; amnesia */
    ACT_PAUSE,     /* process; amount_us, 0: until ACT_RESUME */
    ACT_RESUME,    /* process */
    ACT_DRIFT,     /* process; factor: how fast its clock runs */
    ACT_SUSPECT,   /* process, other */
    ACT_TRUST,     /* process, other */
    ACT_PARTITION, /* side of each process */
    ACT_HEAL,
    ACT_DELAY, /* process to other (SIM_ANY_PID: any); delay, or the run's own when `usual`; once */
    ACT_LOSE,  /* process to other; amount_us: how many messages */
    ACT_TIMEOUT, /* process; amount_us: timer */
    ACT_CHOOSE,  /* process; amount_us: the answer to its next choice */
};

struct sim_action {
    uint64_t at_us;
    enum sim_action_type type;
    cv_pid process, other;
    uint64_t amount_us;
    double factor;
    bool amnesia, usual, once;
    struct distribution delay;
    unsigned char *side; /* by pid, owned */
    char *text;          /* as typed, owned */
};

/* How processes hear of failures: from an oracle with a delay, or from detectors of their own. */
struct sim_detector {
    uint64_t oracle_us;
    const struct cv_algorithm *code;
    uint64_t option[CV_OPTIONS_MAX];
    char text[32]; /* as typed; "": none */
};

struct sim_config {
    const struct cv_algorithm *algorithm;
    uint64_t option[CV_OPTIONS_MAX];
    char (*names)[ROSTER_NAME_MAX]; /* by pid, owned; NULL: the usual ones */
    struct sim_action *actions;     /* in order of time, owned */
    size_t action_count;
    struct graph network;                        /* that was read, owned; no vertices: none */
    bool network_names_ids;                      /* its names are numbers, so they are the ids */
    uint32_t settled_processes, settled_servers; /* what names and actions were read for; 0: none */
    bool processes_given;
    /* The settings: */
    uint64_t processes, entries, seed;
    struct distribution delay, think, hold;
    double arrivals;
    bool scripted, reorder, recover, amnesia, fencing;
    double loss, duplicate;
    double partition_rate, crash_rate, pause_rate, drift;
    struct distribution partition_for, recover_after, pause_for;
    struct distribution start;
    uint64_t initiators, settle;
    char *topology, *ids, *attribute; /* as typed, owned; NULL: the usual */
    struct sim_detector detector;
    uint64_t patience, time_limit, event_limit, wait_bound, starved_after;
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
    SET_EDGES, /* a network, as words */
    SET_GRAPH, /* a network, from a file */
};
enum setting_group { FOR_RUN, FOR_LOAD, FOR_NETWORK, FOR_FAULTS, FOR_JUDGE, SETTING_GROUPS };
extern const char *const setting_group_name[SETTING_GROUPS];

struct setting {
    const char *name, *value, *help; /* as typed; what to type behind it; for --help */
    enum setting_kind kind;
    enum setting_group group;
    unsigned problems; /* cv_problem bits: what it is a setting of */
    size_t offset;
    uint64_t least, most; /* SET_COUNT */
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
const struct cv_option *option_find(const struct cv_algorithm *algorithm, const char *name);
/* The value as it could be typed ("" for a flag that is off). */
char *setting_format(const struct sim_config *config, const struct setting *setting, char *buffer,
                     size_t size);
char *option_format(const struct sim_config *config, const struct cv_option *option, char *buffer,
                    size_t size);
/* Takes each setting and option of the run, in the order of the tables, as it could be typed. */
struct config_word {
    const char *name, *value;
    bool flag;  /* the name says it all */
    bool usual; /* nobody need say it */
};
void config_words(const struct sim_config *config,
                  void (*take)(void *context, const struct config_word *word), void *context);
/* Writes the words behind `conclave sim` that make this run again. */
void config_command(const struct sim_config *config, FILE *out);

struct roster config_roster(const struct sim_config *config);
/* From now on the number of processes may not change: names and actions rely on it. */
void config_settle(struct sim_config *config);

/* Whether faults are drawn at a rate: then they never end. */
bool config_keeps_failing(const struct sim_config *config);
/* Whether the schedule has an action of that type. */
bool config_schedules(const struct sim_config *config, enum sim_action_type type);
/* Reads what stands behind "at", for instance "5ms p2 crash", and appends it. */
int action_parse(struct sim_config *config, const char *text, char error[SIM_ERROR_MAX]);

#endif
