/* conclave compare --load */
#ifndef CV_CLI_COMPARE_LOAD_H
#define CV_CLI_COMPARE_LOAD_H

#include "process/process.h"

struct compare_load_request {
    const struct cv_algorithm *const *locks; /* what is no lock is passed over */
    size_t lock_count;
    const uint64_t *sizes;
    size_t size_count;
    uint64_t service_us, seed;
    bool json, force;
    const char *plot; /* NULL: none */
};

int compare_load(const struct compare_load_request *request);

#endif
