/* Sessions as ZooKeeper stores them: an id and a timeout.  The password with which a client
 * reconnects is not stored, but derived from the id. */
#include "service/store/internal.h"

#define SECRET 0xb3415c00ll
#define MULTIPLIER                                                                                 \
    0x5deece66dull /* of java.util.Random: 48 bits of state, the upper 32 come out                 \
                    */
#define INCREMENT  11
#define STATE_MASK ((1ull << 48) - 1)

void import_password(int64_t session, unsigned char password[TREE_PASSWORD_SIZE]) {
    uint64_t state = ((uint64_t)(session ^ SECRET) ^ MULTIPLIER) & STATE_MASK;
    for (int i = 0; i < TREE_PASSWORD_SIZE; i++) {
        if (i % 4 == 0) state = (state * MULTIPLIER + INCREMENT) & STATE_MASK;
        password[i] = (unsigned char)(state >> (16 + i % 4 * 8));
    }
}

struct session *import_session(struct tree *tree, int64_t id) {
    unsigned char password[TREE_PASSWORD_SIZE];
    uint32_t slot = session_find(tree, id);
    import_password(id, password);
    if (!slot) slot = session_add(tree, id, IMPORT_TIMEOUT_UNKNOWN, password);
    return &tree->sessions.at[slot];
}
