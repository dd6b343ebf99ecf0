#include "cli/lease.h"

#include <string.h>
#include <unistd.h>

void lease_say_lost(struct lease *lease, const char *word) {
    if (!word || atomic_exchange(&lease->said, 1)) return;
    ssize_t written = write(STDOUT_FILENO, word, strlen(word));
    (void)written;
}

static int64_t moment_to_kill(const struct lease *lease) {
    int64_t deadline = atomic_load(&lease->deadline);
    return deadline == LEASE_NONE ? LEASE_NONE : deadline - atomic_load(&lease->margin);
}

enum lease_step lease_step(const struct lease *lease, int64_t now) {
    int64_t kill = moment_to_kill(lease);
    if (kill == LEASE_NONE) return LEASE_GOOD;
    if (now >= kill) return LEASE_KILL;
    return now >= kill - atomic_load(&lease->grace) ? LEASE_TELL : LEASE_GOOD;
}

int64_t lease_next(const struct lease *lease, int64_t now) {
    int64_t kill = moment_to_kill(lease);
    if (kill == LEASE_NONE) return LEASE_NONE;
    int64_t tell = kill - atomic_load(&lease->grace);
    return now < tell ? tell : kill;
}

int32_t lease_margin(int32_t session_timeout) {
    enum { LEAST = 20, MOST = 500 };
    int32_t margin = session_timeout / 20;
    return margin < LEAST ? LEAST : margin > MOST ? MOST : margin;
}

/* The deadline is two thirds of the timeout after the last answered request, and a request goes
 * out every sixth: with a third for the grace, one answer may still be late.  Of a short timeout
 * less is left: see cv_session_deadline. */
int32_t lease_most_grace(int32_t session_timeout) {
    enum { CUT_OFF_MIN = 700 };
    int32_t most = (session_timeout - CUT_OFF_MIN) / 2;
    return most > session_timeout / 3 ? session_timeout / 3 : most < 0 ? 0 : most;
}

int32_t lease_default_grace(int32_t session_timeout) {
    int32_t grace = session_timeout / 6, most = lease_most_grace(session_timeout);
    if (most > 5000) most = 5000;
    return grace > most ? most : grace;
}
