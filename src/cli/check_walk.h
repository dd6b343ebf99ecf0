/* `conclave check --walk`: the state graph, one state at a time. */
#ifndef CV_CLI_CHECK_WALK_H
#define CV_CLI_CHECK_WALK_H

#include "cli/check_report.h"

/* Takes the steps of a text such as "2,1,4" ("0": none), shows the state that they lead to and the
 * steps from there, and returns the exit status. */
int check_walk_report(const struct check_request *request, const char *steps);

#endif
