/* What `conclave check` says. */
#ifndef CV_CLI_CHECK_REPORT_H
#define CV_CLI_CHECK_REPORT_H

#include "check/check.h"
#include "cli/cli.h"
#include "sim/sim.h"

enum { EXIT_LIMIT = 4 };

struct check_request {
    struct sim_config config; /* the algorithm, its options, the network */
    struct check_model model;
    struct check_search search;
    bool json, traced;
    enum trace_format format;
    const char *output, *scenario;
};

/* Reports, writes the trace and the scenario that were asked for, and returns the exit status. */
int check_report(const struct check_request *request, const struct check_result *result);

#endif
