#include "peer/awake.h"

bool awake_stays(struct awake *awake, uint64_t now_ns, uint64_t messages) {
    if (messages != awake->messages) {
        awake->close = now_ns - awake->came_ns <= AWAKE_CLOSE_NS;
        awake->messages = messages;
        awake->came_ns = now_ns;
    }
    bool taken = awake->taken_ns && now_ns - awake->taken_ns <= AWAKE_TAKEN_FOR_NS;
    return awake->close && !taken && now_ns - awake->came_ns <= AWAKE_CLOSE_NS;
}

void awake_offered(struct awake *awake, uint64_t from_ns, uint64_t until_ns) {
    if (until_ns - from_ns > AWAKE_TAKEN_NS) awake->taken_ns = until_ns;
}
