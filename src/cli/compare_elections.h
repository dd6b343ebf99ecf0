/* The part of `conclave compare` that is about elections. */
#ifndef CV_CLI_COMPARE_ELECTIONS_H
#define CV_CLI_COMPARE_ELECTIONS_H

#include <stdbool.h>
#include <stdint.h>

int compare_elections(uint64_t seed, bool as_json, const char *plot_path);

#endif
