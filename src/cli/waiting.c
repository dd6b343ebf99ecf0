#include "cli/waiting.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/lease.h"
#include "cli/remote.h"

enum { UNNOTICED = 500 }; /* ms: what takes no longer needs no line */

void waiting_begin(struct waiting *waiting, bool quiet, bool verbose) {
    *waiting = (struct waiting){
        .terminal = !quiet && isatty(STDERR_FILENO) == 1, .verbose = verbose, .since = lease_now()};
}

int64_t waiting_show(struct waiting *waiting, const char *name, int32_t position) {
    int64_t now = lease_now(), waited = now - waiting->since;
    if (waiting->verbose && !waiting->terminal && !waiting->said && position > 0) {
        waiting->said = true;
        remote_say(0, "waiting for %s: %d before us", name, position);
    }
    if (!waiting->terminal) return LEASE_NONE;
    if (waited < UNNOTICED) return waiting->since + UNNOTICED;
    char shown[256];
    fprintf(stderr, "\r\033[Kconclave: waiting for %s, ", remote_name(shown, sizeof shown, name));
    if (position < 0) fputs("no server answers", stderr);
    if (position >= 0) fprintf(stderr, "%d before us", position);
    fprintf(stderr, ", %lld s", (long long)(waited / 1000));
    fflush(stderr);
    waiting->shown = true;
    return now + 1000 - waited % 1000;
}

void waiting_end(struct waiting *waiting) {
    if (waiting->shown) fputs("\r\033[K", stderr);
    fflush(stderr);
    waiting->shown = false;
}
