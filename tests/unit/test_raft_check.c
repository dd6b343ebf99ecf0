/* The consensus core, model checked at small bounds: every order of events.  By hand:
 *   test_raft_check TERMS ENTRIES CRASHES [LOG LOG LOG] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>

#include "raftlab/explore.h"

static struct explore_result explored(const struct explore_bounds *bounds) {
    struct explore_result result;
    lab_explore(bounds, stderr, &result);
    printf("%" PRIu64 " states, %" PRIu64 " transitions, %" PRIu64 " MiB, %" PRIu64
           " with a leader, up to %" PRIu64 " decided%s%s\n",
           result.states, result.transitions, result.bytes >> 20, result.leaders, result.decided,
           result.broken[0] ? ": " : "", result.broken);
    return result;
}

int main(int argc, char **argv) {
    if (argc > 3) {
        struct explore_bounds bounds = {{"", "", ""},
                                        (uint32_t)atoi(argv[1]),
                                        (uint32_t)atoi(argv[2]),
                                        (uint32_t)atoi(argv[3])};
        for (int i = 4; i < argc && i < 7; i++) bounds.start[i - 4] = argv[i];
        return explored(&bounds).broken[0] ? 1 : 0;
    }
    return 0;
}
