/* What must hold: looked at as it happens, and at the end. */
#include <stdio.h>

#include "base/hash.h"
#include "load.h"

/* ---- As it happens ---- */

/* One leader in a term. */
void judge_turn(struct machine *m) {
    struct world *w = world;
    const struct raft *raft = m->running && m->server ? &m->server->replica.raft : NULL;
    if (!raft || !raft->self) return;
    if (raft->term != m->term || raft->leader != m->leader) {
        m->term = raft->term;
        m->leader = raft->leader;
        m->since = w->now;
    }
    if (raft->role != RAFT_LEADER) return;
    if (raft->term >= w->terms) {
        size_t before = w->terms;
        w->reign = grown(w->reign, &w->term_room, raft->term + 1, sizeof *w->reign);
        w->terms = raft->term + 1;
        memset(w->reign + before, 0, (w->terms - before) * sizeof *w->reign);
    }
    struct reign *reign = &w->reign[raft->term];
    if (!reign->server) {
        *reign = (struct reign){(uint8_t)m->number, w->now};
        w->coverage.elections++;
    }
    if (reign->server != m->number)
        violated("servers %u and %u both lead in term %llu", reign->server, m->number,
                 (unsigned long long)raft->term);
}

/* The hash of something that all servers have at an index; they have the same. */
static void compare(uint64_t **list, size_t *count, size_t *room, uint64_t index, uint64_t hash,
                    const char *what) {
    if (index >= *count) {
        *list = grown(*list, room, index + 1, sizeof **list);
        memset(*list + *count, 0, (index + 1 - *count) * sizeof **list);
        *count = index + 1;
    }
    if (!(*list)[index]) (*list)[index] = hash;
    if ((*list)[index] != hash)
        violated("server %u has another %s %llu than others", machine_now()->number, what,
                 (unsigned long long)index);
}

static uint64_t hash_of_node(const struct tree *tree, node_id id, struct bytes *path) {
    const struct node *n = &tree->node[id];
    struct zk_text data = node_data(n);
    struct zk_acls acl = acl_list(tree, n->acl);
    int64_t numbers[] = {n->czxid,    n->mzxid,  n->pzxid,   n->ctime,
                         n->mtime,    n->owner,  n->version, n->creates,
                         n->aversion, data.size, acl.count,  node_children(n)};
    path->used = 0;
    tree_path(tree, id, path);
    uint64_t hash = hash_long(path->at, path->used, 1);
    hash = hash_long(numbers, sizeof numbers, hash);
    if (data.size > 0) hash = hash_long(data.at, (size_t)data.size, hash);
    return hash_long(acl.at, acl.size, hash);
}

/* Of all of the tree, whatever the order in which it has it. */
static uint64_t hash_of_tree(const struct tree *tree) {
    struct bytes path = {0};
    uint64_t sum = (uint64_t)tree->zxid;
    uint32_t up;
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up))
        sum += hash_of_node(tree, id, &path);
    for (uint32_t i = 1; i <= tree->sessions.places; i++) {
        const struct session *s = &tree->sessions.at[i];
        int64_t numbers[] = {s->id, s->timeout_ms, s->server, s->moves, s->owned_count};
        if (s->id) sum += hash_long(numbers, sizeof numbers, hash_long(s->password, 16, 2));
    }
    for (unsigned i = 0; i < TREE_SERVERS_MAX; i++)
        if (tree->origin[i].life) sum += hash_long(&tree->origin[i], sizeof tree->origin[i], i);
    bytes_close(&path);
    return sum | 1;
}

void judge_applied(struct server *s, const struct raft_entry *entry) {
    enum { EVERY = 32 };
    struct world *w = world;
    uint64_t index = s->replica.applied;
    compare(&w->entry_hash, &w->entries, &w->entry_room, index,
            hash_long(entry->bytes, entry->size, entry->term) | 1, "entry");
    if (index % EVERY) return;
    compare(&w->tree_hash, &w->trees, &w->tree_room, index / EVERY, hash_of_tree(&s->tree),
            "tree after so many times 32 entries:");
}

/* ---- Sessions ---- */

static const struct machine *newest_leader(void) {
    const struct machine *found = NULL;
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        if (m->running && m->leader == i && (!found || m->term > found->term)) found = m;
    }
    return found;
}

/* Whether a server has heard of the leader's clients all the while, so that the leader knows. */
static bool was_in_touch(const struct machine *leader, const struct machine *m, nanos heard) {
    enum { MARGIN_MS = 1500 }; /* for links to come back */
    int a = (int)leader->number - 1, b = (int)m->number - 1;
    nanos margin = MARGIN_MS * MS;
    if (leader->disturbed + margin > heard || leader->since + margin > heard) return false;
    if (m == leader) return true;
    return m->leader == leader->number && m->term == leader->term && m->since + margin < heard &&
           m->disturbed + margin < heard && world->disturbed[a][b] + margin < heard;
}

/* No session is ended whose client was heard within the session's time, by the leader or by a
 * server that has followed it since before then and could reach it all the while.  (Who puts that
 * forward may have been a leader and not know that it is none any more; then it comes to nothing.)
 */
void judge_expiry(struct server *s, uint32_t place) {
    int64_t id = s->tree.sessions.at[place].id;
    struct session_record *record = session_record(id);
    const struct machine *leader = newest_leader();
    world->coverage.expirations++;
    if (!record) return;
    record->expired = true;
    const struct user *u = &world->user[record->user];
    unsigned by = machine_now()->number;
    record->early[by].server = 0;
    for (unsigned i = 1; leader && u->session == id && i <= world->servers; i++) {
        nanos heard = u->heard_by[i];
        if (!heard || world->now - heard >= (nanos)record->timeout_ms * MS) continue;
        if (!was_in_touch(leader, &world->machine[i], heard)) continue;
        record->early[by].server = i;
        record->early[by].heard = heard;
        record->early[by].at = world->now;
    }
}

/* A session has all of its time from when it comes to a server. */
void judge_attached(struct session_record *record) {
    if (record->ended && record->ended < record->attached + (nanos)record->timeout_ms * MS)
        violated("session 0x%llx of user %u ends %.0f ms after it came to a server",
                 (unsigned long long)record->id, record->user,
                 ((double)record->ended - (double)record->attached) / 1e6);
}

/* ... and from when there is a new leader. */
void judge_end(struct session_record *record, uint64_t term, unsigned by) {
    nanos since = term < world->terms ? world->reign[term].since : 0;
    record->ended = world->now;
    if (since && world->now - since < (nanos)record->timeout_ms * MS)
        violated("session 0x%llx of user %u is ended by a leader of %.0f ms",
                 (unsigned long long)record->id, record->user, (double)(world->now - since) / 1e6);
    if (record->early[by].server)
        violated("server %u has ended session 0x%llx of user %u after %d ms, and server %u had "
                 "heard of it %.0f ms before",
                 by, (unsigned long long)record->id, record->user, record->timeout_ms,
                 record->early[by].server,
                 (double)(record->early[by].at - record->early[by].heard) / 1e6);
    judge_attached(record);
}

/* ---- At the end ---- */

static struct machine *first_machine(void) {
    for (unsigned i = 1; i <= world->servers; i++)
        if (!world->machine[i].left_out) return &world->machine[i];
    return NULL;
}

bool trees_agree(void) {
    const struct machine *first = first_machine();
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        if (m->left_out) continue;
        if (!m->running || !m->server->replica.raft.leader) return false;
        const struct replica *r = &m->server->replica;
        if (r->applied != r->raft.last || r->raft.saved != r->raft.last) return false;
        if (r->applied != first->server->replica.applied) return false;
        if (m->server->tree.sessions.count) return false;
    }
    return true;
}

/* For whoever wonders why they do not. */
void say_servers(void) {
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        char who[16];
        snprintf(who, sizeof who, "s%u", i);
        if (!m->running) {
            say(who, "%s", m->left_out ? "is left out" : "is down");
            continue;
        }
        const struct replica *r = &m->server->replica;
        say(who, "term %llu leader %u last %llu saved %llu committed %llu applied %llu sessions %u",
            (unsigned long long)r->raft.term, r->raft.leader, (unsigned long long)r->raft.last,
            (unsigned long long)r->raft.saved, (unsigned long long)r->raft.committed,
            (unsigned long long)r->applied, m->server->tree.sessions.count);
        for (unsigned j = 0; r->raft.leader == i && j < r->raft.config.count; j++) {
            const struct raft_peer *peer = &r->raft.peer[j];
            say(who, "  to s%u: mode %u match %llu next %llu waiting %u due %u up %d",
                r->raft.config.at[j].id, peer->mode, (unsigned long long)peer->match,
                (unsigned long long)peer->next, peer->waiting, peer->due,
                r->up[r->raft.config.at[j].id]);
        }
    }
}

static void judge_additions(const struct tree *tree) {
    unsigned *found = calloc(world->additions + 1, sizeof *found);
    node_id parent = tree_find(tree, zk_text_of("/q"));
    cv_assert(found);
    for (node_id id = parent ? tree->node[parent].first_child : 0; id; id = tree->node[id].next) {
        struct zk_text data = node_data(&tree->node[id]);
        char text[24];
        snprintf(text, sizeof text, "%.*s", data.size, data.at);
        size_t number = (size_t)strtoull(text, NULL, 10);
        if (number >= world->additions || found[number]++)
            violated("node %zu was added twice, or by nobody", number);
    }
    for (size_t i = 0; i < world->additions; i++)
        if (world->addition[i].acknowledged && !found[i])
            violated("node %zu was added and acknowledged, and is not there", i);
    free(found);
}

void judge_trees(void) {
    const struct machine *first = first_machine();
    uint64_t hash = hash_of_tree(&first->server->tree);
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        if (m->left_out) continue;
        if (hash_of_tree(&m->server->tree) != hash)
            violated("the trees of servers %u and %u differ", first->number, i);
        if (m->server->tree.ephemerals)
            violated("server %u has %u ephemeral nodes, and no session", i,
                     m->server->tree.ephemerals);
    }
    judge_additions(&first->server->tree);
}

static void judge_history(const struct history *history, bool sequential) {
    struct history_rules rules = {.sequential = sequential};
    struct history_result result;
    char text[HISTORY_TEXT_MAX], why[HISTORY_TEXT_MAX];
    history_judge(history, &rules, &result);
    if (result.verdict.value == UNKNOWN) violated("key %u: too much to judge", result.key);
    if (result.verdict.value == VIOLATED) {
        violated("key %u is not %s: %s", result.key,
                 sequential ? "sequentially consistent" : "linearizable", result.verdict.why);
        for (size_t i = 0; i < result.ordered; i++)
            say("", "  in order: %s", history_describe(history, result.order[i], text));
        for (size_t i = 0; i < result.stuck_count; i++)
            say("", "  cannot follow: %s: %s", history_describe(history, result.stuck[i], text),
                history_why(history, &result, result.stuck[i], why));
    }
    history_result_close(&result);
}

void judge_histories(void) {
    judge_history(&world->strong, false);
    judge_history(&world->weak, true);
}
