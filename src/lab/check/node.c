/* Nodes: the inbox of a process, and the flags of a node. */
#include "lab/check/system.h"

/* ---- Messages ---- */

uint32_t message_put(struct system *system, const struct message_text *text) {
    uint32_t number = pool_put(&system->messages, text,
                               (uint32_t)offsetof(struct message_text, body) + text->head.size);
    struct arena *heads = &system->head_arena;
    if (heads->used < (number + 1) * sizeof text->head)
        arena_extend(heads, (number + 1) * sizeof text->head - heads->used);
    memcpy(heads->base + number * sizeof text->head, &text->head, sizeof text->head);
    return number;
}

void message_get(const struct system *system, uint32_t number, struct message_text *text) {
    pool_get(&system->messages, number, text);
}

uint32_t system_notice(struct system *system, uint16_t kind, cv_pid about) {
    struct message_text text;
    text.head = (struct message){about, kind, 0};
    return message_put(system, &text);
}

static bool is_notice(struct message message) { return message.kind >= KIND_DOWN; }

/* Whether a new message is sorted before one that is in the inbox. */
static bool goes_before(const struct system *system, uint32_t number, uint32_t other) {
    struct message a = message_head(system, number), b = message_head(system, other);
    if (system->model->fifo) return a.from < b.from;
    if (is_notice(a) != is_notice(b)) return is_notice(a);
    if (is_notice(a)) return a.from < b.from;
    return number < other;
}

uint32_t node_inbox_add(const struct system *system, const uint32_t *inbox, uint32_t count,
                        uint32_t message, uint32_t *result) {
    uint32_t at = 0;
    cv_assert(count < NODE_INBOX_MAX);
    while (at < count && !goes_before(system, message, inbox[at])) at++;
    memmove(result + at + 1, inbox + at, (count - at) * sizeof *inbox);
    memmove(result, inbox, at * sizeof *inbox);
    result[at] = message;
    return count + 1;
}

/* ---- Nodes ---- */

static bool has_notice(const struct system *system, const uint32_t *inbox, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (is_notice(message_head(system, inbox[i]))) return true;
    return false;
}

bool node_cut_off(const struct system *system, uint32_t number, cv_pid from) {
    struct node node;
    if (!system->model->fifo || !(node_flags(system, number) & NODE_NOTICED)) return false;
    node_get(system, number, &node);
    for (uint32_t i = 0; i < node.count; i++) {
        struct message message = message_head(system, node.inbox[i]);
        if (message.kind == KIND_DOWN && message.from == from) return true;
    }
    return false;
}

/* The flags of a node with an empty inbox. */
static uint32_t flags_of(const struct check_model *model, const struct local *local) {
    uint32_t flags = 0;
    bool inside = local->phase == APP_INSIDE || local->phase == APP_LEAVING;
    if (local->flags & LOCAL_DOWN) return NODE_DOWN | NODE_QUIESCENT;
    if (local->phase == APP_WAITING) flags |= NODE_WAITING;
    if (inside) flags |= NODE_INSIDE;
    if (local->flags & LOCAL_LEADS) flags |= NODE_LEADS;
    if (model->algorithm->problem == CV_ELECTION && !(local->flags & LOCAL_DECIDED))
        flags |= NODE_UNDECIDED;
    if (local->phase != APP_INSIDE) flags |= NODE_QUIESCENT;
    if (local->timers) flags |= NODE_ARMED;
    if (local->flags & LOCAL_PENDING) flags |= NODE_PENDING;
    return flags;
}

uint32_t local_put(struct system *system, const struct local *local) {
    uint32_t number = pool_put(&system->locals, local, system->layout[local->self].size);
    struct arena *flags = &system->flag_arena;
    if (flags->used < (number + 1) * sizeof(uint32_t))
        arena_extend(flags, (number + 1) * sizeof(uint32_t) - flags->used);
    ((uint32_t *)(void *)flags->base)[number] = flags_of(system->model, local);
    return number;
}

uint32_t node_put(struct system *system, cv_pid p, uint32_t local, const uint32_t *inbox,
                  uint32_t count) {
    uint32_t bytes[NODE_INBOX_MAX + 2];
    cv_assert(count <= NODE_INBOX_MAX);
    bytes[0] = local;
    if (count) memcpy(bytes + 1, inbox, count * sizeof *inbox);
    uint32_t index = pool_put(&system->nodes[p], bytes, (count + 1) * (uint32_t)sizeof *bytes);
    uint32_t number = p << NODE_INDEX_BITS | index;
    cv_assert(index < 1u << NODE_INDEX_BITS);
    if (index >= system->many[p])
        atomic_store_explicit(&system->crowded, true, memory_order_relaxed);
    struct arena *info = &system->info_arena[p];
    if (info->used >= (index + 1) * sizeof(struct node_info)) return number;
    arena_extend(info, (index + 1) * sizeof(struct node_info) - info->used);
    uint32_t flags = ((const uint32_t *)(const void *)system->flag_arena.base)[local];
    if (count && !(flags & NODE_DOWN)) flags &= ~(uint32_t)NODE_QUIESCENT;
    if (has_notice(system, inbox, count)) flags |= NODE_NOTICED;
    node_info(system, number)->flags = flags;
    return number;
}

void node_get(const struct system *system, uint32_t number, struct node *node) {
    _Alignas(8) uint32_t bytes[NODE_INBOX_MAX + 4];
    bytes[0] = 0; /* every node has a local state, but compilers cannot know that */
    uint32_t size = pool_get(&system->nodes[node_process(number)], node_index(number), bytes);
    node->process = node_process(number);
    node->local = bytes[0];
    node->count = size / (uint32_t)sizeof *bytes - 1;
    cv_assert(node->count <= NODE_INBOX_MAX);
    memcpy(node->inbox, bytes + 1, node->count * sizeof *bytes);
}

struct local *local_get(struct system *system, uint32_t number) {
    struct local *local = local_scratch(system, 0);
    pool_get(&system->locals, number, local);
    return local;
}

void node_local_bytes(const struct system *system, uint32_t number, unsigned char *local) {
    struct node node;
    node_get(system, number, &node);
    pool_get(&system->locals, node.local, local);
}

struct local node_local(const struct system *system, uint32_t number) {
    _Alignas(8) unsigned char local[POOL_BYTES_MAX];
    node_local_bytes(system, number, local);
    return *(const struct local *)(void *)local;
}

/* ---- Changes of a node ---- */

/* A process that is down has no connections and hears no notices. */
uint32_t node_add(struct system *system, uint32_t number, uint32_t message) {
    struct node node;
    bool deaf = system->model->fifo || is_notice(message_head(system, message));
    if (node_flags(system, number) & NODE_DOWN && deaf) return number;
    node_get(system, number, &node);
    node.count = node_inbox_add(system, node.inbox, node.count, message, node.inbox);
    return node_put(system, node.process, node.local, node.inbox, node.count);
}

uint32_t node_supersede(struct system *system, uint32_t number, uint32_t what) {
    struct node node;
    (void)what;
    node_get(system, number, &node);
    struct local *local = local_get(system, node.local);
    local->flags |= LOCAL_SUPERSEDED;
    return node_put(system, node.process, local_put(system, local), node.inbox, node.count);
}

uint32_t system_change(struct system *system, struct pairs_block *block, uint32_t node,
                       uint32_t what, change_fn *change) {
    uint64_t key = pair_of(node, what);
    bool is_new;
    uint32_t number = pairs_put(&system->memo, block, key, pair_hash(key), &is_new);
    uint32_t result = atomic_load_explicit(&system->memo.note[number], memory_order_acquire);
    if (result) return result;
    system_lock(system);
    result = change(system, node, what);
    pthread_mutex_unlock(&system->lock);
    atomic_store_explicit(&system->memo.note[number], result, memory_order_release);
    return result;
}
