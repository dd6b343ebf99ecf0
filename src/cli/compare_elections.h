/* `conclave compare` of elections. */
#ifndef CV_CLI_COMPARE_ELECTIONS_H
#define CV_CLI_COMPARE_ELECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "process/process.h"

/* Those among the chosen that are elections. */
int compare_elections(const struct cv_algorithm *const *chosen, size_t count, uint64_t seed,
                      bool as_json, const char *plot_path, bool force);

#endif
