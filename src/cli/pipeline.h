/* Many operations, in their order, many of them under way at once. */
#ifndef CV_CLI_PIPELINE_H
#define CV_CLI_PIPELINE_H

#include "cli/remote.h"

struct pipeline {
    /* Describes operation number `index`, from 0 on.  False: there are no more for now; asked again
     * when one has ended.  What `op` points to is copied at once. */
    bool (*describe)(void *arg, size_t index, struct cv_op *op);
    /* Called for each, in their order. */
    void (*done)(void *arg, size_t index, const struct cv_result *result);
    void *arg;
    /* Whether to ask once more when the connection broke before the answer: for what may happen
     * twice.  These come out of order. */
    bool again;
};

/* Returns when all have ended: CV_OK, or the error because of which some could not be started. */
int pipeline_run(struct remote *remote, const struct pipeline *pipeline);

#endif
