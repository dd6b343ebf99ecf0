/* Steps: which function of the core takes them, and what came of them. */
#include "service/steps/step.h"

#include <string.h>

#define SHAPE_(NAME, IDS, NUMBERS, EFFECTS) {IDS, NUMBERS, EFFECTS},
const struct step_shape step_shapes[STEP_TYPES] = {{0, 0, 0}, STEPS(SHAPE_)};

uint64_t step_take(struct raft *raft, const struct step *step, struct raft_out *out) {
    const uint64_t *number = step->number;
    switch ((enum step_type)step->type) {
    case STEP_START: raft_start(raft, number[0], out); return 0;
    case STEP_RECEIVE: return raft_receive(raft, step->message, step->config, out);
    case STEP_TIMER: raft_timer_fired(raft, out); return 0;
    case STEP_ALIVE: raft_peer_alive(raft, step->id, out); return 0;
    case STEP_HEARTBEAT: return raft_heartbeat(raft);
    case STEP_PROPOSE: return raft_propose(raft, (uint32_t)number[0]);
    case STEP_DURABLE: raft_entries_durable(raft, number[0], number[1], out); return 0;
    case STEP_CONNECTED: raft_peer_connected(raft, step->id); return 0;
    case STEP_DISCONNECTED: raft_peer_disconnected(raft, step->id); return 0;
    case STEP_RESTARTED: raft_peer_restarted(raft, step->id); return 0;
    case STEP_DOWN: raft_peer_down(raft, step->id, out); return 0;
    case STEP_TRANSFER: return raft_transfer_leadership(raft, step->id, out);
    case STEP_SENT: raft_append_sent(raft, step->message); return 0;
    case STEP_OVERTAKE: return raft_overtaking_heartbeat(raft, step->id, step->message);
    case STEP_COMPACTED: raft_compacted(raft, number[0]); return 0;
    case STEP_INSTALLED:
        return raft_snapshot_installed(raft, number[0], number[1], step->config, out);
    case STEP_CHANGE: return raft_change_config(raft, step->config, number[0]);
    case STEP_ADMIT: return raft_admit_absent(raft, step->config, number[0]);
    case STEP_MAY_VOTE: raft->vote_withheld = 0; return 0;
    case STEP_NONE:
    case STEP_TYPES: break;
    }
    cv_assert(!"a step that does not exist");
    return 0;
}

/* ---- What came of it ---- */

/* Each step of a server is hashed, so this has to be quick; nobody has to be kept from finding two
 * states with one hash.  Words are added to two lanes that turn, and one of them flows into the
 * other. */
struct sum {
    uint64_t a, b;
};

static inline uint64_t turned(uint64_t word, unsigned bits) {
    return word << bits | word >> (64 - bits);
}

static inline void add_pair(struct sum *sum, uint64_t a, uint64_t b) {
    sum->b = turned(sum->b + b, 17);
    sum->a = turned(sum->a ^ a, 29) + sum->b;
}

static inline void add_words(struct sum *sum, const void *bytes, size_t size) {
    const unsigned char *end = (const unsigned char *)bytes + size;
    for (const unsigned char *at = bytes; at < end; at += 16) {
        uint64_t a, b;
        memcpy(&a, at, sizeof a);
        memcpy(&b, at + 8, sizeof b);
        add_pair(sum, a, b);
    }
}

#define IN_PAIRS(SIZE, WHAT) _Static_assert((SIZE) % 16 == 0, WHAT " is made of pairs of words")
IN_PAIRS(sizeof(struct raft_message), "a message");
IN_PAIRS(offsetof(struct raft, config), "the state up to the members");
IN_PAIRS(offsetof(struct raft_config, at), "a configuration up to its members");
IN_PAIRS(sizeof(struct raft_peer), "what is known of a member");
IN_PAIRS(sizeof(struct raft_run), "a run");
IN_PAIRS(sizeof(struct raft) - offsetof(struct raft, runs), "the end of the state");

/* The kind of its entries is the owner's to know. */
static void add_message(struct sum *sum, const struct raft_message *message) {
    struct raft_message copy;
    memcpy(&copy, message, sizeof copy); /* all of its bytes */
    if (copy.type == RAFT_APPEND_ENTRIES) copy.append_entries.entry_kind = 0;
    add_words(sum, &copy, sizeof copy);
}

static void add_effects(struct sum *sum, const struct raft_out *out) {
    uint64_t flags = (uint64_t)out->persist_vote | (uint64_t)out->append_entries << 1 |
                     (uint64_t)out->append_config << 2 | (uint64_t)out->contradiction << 3 |
                     (uint64_t)out->snapshot_chunk << 4 | (uint64_t)out->timer << 8 |
                     (uint64_t)out->messages << 16;
    add_pair(sum, flags, out->append_entries ? out->append_from : 0);
    for (uint32_t i = 0; i < out->messages; i++) add_message(sum, &out->message[i]);
}

/* Of what the owner has no pointers to, and of members and runs that there are.  The hash of a
 * configuration stands for all of it. */
static void add_state(struct sum *sum, const struct raft *raft) {
    add_words(sum, raft, offsetof(struct raft, config));
    add_words(sum, &raft->config, offsetof(struct raft_config, at));
    add_words(sum, &raft->previous_config, offsetof(struct raft_config, at));
    add_words(sum, raft->peer, raft->config.count * sizeof raft->peer[0]);
    add_words(sum, raft->run, raft->runs * sizeof raft->run[0]);
    add_words(sum, &raft->runs, sizeof *raft - offsetof(struct raft, runs));
}

#define PRIME 0x9e3779b185ebca87

uint32_t step_hash(const struct raft *raft, const struct step *step, const struct raft_out *out,
                   uint64_t result) {
    struct sum sum = {.a = result, .b = step->type};
    if (step_is_sending(step, result)) add_message(&sum, step->message);
    if (step_shapes[step->type].effects) add_effects(&sum, out);
    add_state(&sum, raft);
    uint64_t mixed = (sum.a ^ sum.a >> 32) * PRIME + turned(sum.b, 32);
    mixed = (mixed ^ mixed >> 29) * PRIME;
    return (uint32_t)(mixed >> 32);
}

const char *step_name(uint8_t type) {
#define NAME_(NAME, IDS, NUMBERS, EFFECTS) #NAME,
    static const char *const names[] = {"NONE", STEPS(NAME_)};
    return type < STEP_TYPES ? names[type] : names[0];
}
