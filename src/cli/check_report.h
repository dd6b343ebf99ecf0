/* The report of `conclave check`. */
#ifndef CV_CLI_CHECK_REPORT_H
#define CV_CLI_CHECK_REPORT_H

#include "cli/cli.h"
#include "lab/check/check.h"
#include "lab/sim/sim.h"

enum { EXIT_LIMIT = 4 };

struct check_request {
    struct sim_config config; /* the algorithm, its options, the network */
    struct check_model model;
    struct check_search search;
    bool json, traced, force;
    enum trace_format format;
    const char *output, *scenario; /* files to write, or NULL */
    const char *walk;              /* steps to take, or NULL */
};

/* Reports, writes the requested trace and scenario, and returns the exit status. */
int check_report(const struct check_request *request, const struct check_result *result);

#endif
