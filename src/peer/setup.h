/* What a peer is told by its user, made into what it starts with: for the command and the library.
 */
#ifndef CV_PEER_SETUP_H
#define CV_PEER_SETUP_H

#include "peer/thread.h"

struct peer_setup {
    const char *peers;  /* the file of the list */
    struct group group; /* the options of the algorithm, before it is settled */
    struct peer_config config;
    struct peer_credentials credentials;
    bool detector_given;
    char *own_key, *own_data; /* paths that were not given */
};

void peer_setup_init(struct peer_setup *setup, const struct cv_algorithm *algorithm);
/* How often the detector's heartbeats are sent; false: that is too often. */
bool peer_setup_heartbeat(struct peer_setup *setup, uint64_t us);
/* What users call a detector; false: there is no such one. */
bool peer_setup_detector(struct peer_setup *setup, const char *text);
/* With everything that was given in its place: reads the list, checks what must fit together, and
 * fills in what was not given.  If not 0, a sentence is in `error`. */
enum { SETUP_WRONG = -1, SETUP_SYSTEM = -2 };
int peer_setup_settle(struct peer_setup *setup, char error[PEER_ERROR_MAX]);
void peer_setup_free(struct peer_setup *setup);

#endif
