/* Whether a process stays awake for the next message.
 *
 * To fall asleep and to be woken takes longer than a message does on a machine or between two that
 * are near.  So while messages follow closely upon each other a process looks for the next one
 * again and again, for a short while, and offers its processor to others each time.  If somebody
 * takes the offer for long, the processor is not idle, and the process sleeps as usual. */
#ifndef CV_PEER_AWAKE_H
#define CV_PEER_AWAKE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    AWAKE_CLOSE_NS = 150 * 1000,       /* messages follow closely: so long is one waited for */
    AWAKE_TAKEN_NS = 50 * 1000,        /* somebody else wants the processor ... */
    AWAKE_TAKEN_FOR_NS = 100000 * 1000 /* ... and probably for a while */
};

struct awake {
    uint64_t messages; /* that had come when it last was asked ... */
    uint64_t came_ns;  /* ... and when the last of them had */
    bool close;        /* it had followed closely */
    uint64_t taken_ns; /* when the processor was wanted by others; 0: never */
};

/* So many messages have come until now. */
bool awake_stays(struct awake *awake, uint64_t now_ns, uint64_t messages);
/* The processor was offered to others, and was back after that time. */
void awake_offered(struct awake *awake, uint64_t from_ns, uint64_t until_ns);

#endif
