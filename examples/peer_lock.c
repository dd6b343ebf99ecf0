/* Counts in a file together with others, with no server: `peer_lock ALGORITHM PEERS ID TIMES FILE`.
 * Run one for each line of PEERS at the same time, with TIMES 0 for those that only serve. */
#include <conclave/peer.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(struct cv_peer *peer, const char *what, int error) {
    char why[700] = "";
    fprintf(stderr, "%s: %s; %s\n", what, cv_error_text(error),
            cv_peer_explain(peer, why, sizeof why));
    cv_peer_close(peer);
    return 1;
}

/* Without any care: that is what the lock is for. */
static void count_one(const char *path) {
    long value = 0;
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%ld", &value) != 1) value = 0;
    if (file) fclose(file);
    file = fopen(path, "w");
    if (!file) return;
    fprintf(file, "%ld\n", value + 1);
    fclose(file);
}

int main(int count, char **argument) {
    struct cv_peer *peer;
    int error = 0;
    if (count != 6) return fprintf(stderr, "usage: peer_lock ALGORITHM PEERS ID TIMES FILE\n"), 2;
    struct cv_peer_options options = {
        .algorithm = argument[1], .peers = argument[2], .id = (uint32_t)atoi(argument[3])};
    if ((error = cv_peer_open(&peer, &options))) return fail(peer, "open", error);
    for (int i = 0; i < atoi(argument[4]); i++) {
        if ((error = cv_peer_acquire(peer, CV_FOREVER))) return fail(peer, "acquire", error);
        count_one(argument[5]);
        cv_peer_release(peer);
    }
    if ((error = cv_peer_finish(peer, CV_FOREVER))) return fail(peer, "finish", error);
    cv_peer_close(peer);
    return 0;
}
