/* Stands for election in the program's own loop, and says who leads until its input ends:
 * `peer_leader ALGORITHM PEERS ID`. */
#include <conclave/peer.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void changed(struct cv_peer *peer, enum cv_peer_role role, uint64_t leader, uint32_t term,
                    void *arg) {
    (void)peer, (void)arg;
    if (role == CV_PEER_LEADERLESS || role == CV_PEER_LOST)
        puts(role == CV_PEER_LOST ? "lost" : "leaderless");
    else
        printf("%s %" PRIu64 " term %" PRIu32 "\n", role == CV_PEER_LEADS ? "leads" : "follows",
               leader, term);
    fflush(stdout);
}

int main(int count, char **argument) {
    struct cv_peer *peer;
    char why[700], line[100];
    if (count != 4) return fprintf(stderr, "usage: peer_leader ALGORITHM PEERS ID\n"), 2;
    struct cv_peer_options options = {.algorithm = argument[1],
                                      .peers = argument[2],
                                      .id = (uint32_t)atoi(argument[3]),
                                      .flags = CV_PEER_OWN_LOOP,
                                      .on_leader = changed};
    int error = cv_peer_open(&peer, &options);
    if (!error) error = cv_peer_campaign(peer);
    while (!error) {
        struct pollfd wait[] = {{.fd = cv_peer_fd(peer), .events = POLLIN},
                                {.fd = STDIN_FILENO, .events = POLLIN}};
        poll(wait, 2, -1);
        if (wait[0].revents) error = cv_peer_process(peer);
        if (wait[1].revents && read(STDIN_FILENO, line, sizeof line) <= 0) break;
    }
    if (error)
        fprintf(stderr, "%s; %s\n", cv_error_text(error), cv_peer_explain(peer, why, sizeof why));
    cv_peer_close(peer);
    return error != 0;
}
