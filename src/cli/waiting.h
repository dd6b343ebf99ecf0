/* The line that shows on a terminal what is waited for. */
#ifndef CV_CLI_WAITING_H
#define CV_CLI_WAITING_H

#include <stdbool.h>
#include <stdint.h>

struct waiting {
    bool terminal, verbose, shown, said;
    int64_t since;
};

void waiting_begin(struct waiting *waiting, bool quiet, bool verbose);
/* Shows it; returns the moment at which it should be shown again. */
int64_t waiting_show(struct waiting *waiting, const char *name, int32_t position);
/* Takes the line off the terminal. */
void waiting_end(struct waiting *waiting);

#endif
