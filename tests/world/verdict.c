/* What must hold: judged as it happens, and at the end. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "load.h"
#include "service/log/snapshot.h"
#include "service/log/vote.h"

/* ---- As it happens ---- */

/* What a power failure could take back is written again before a server acts on it. */
static void judge_start(struct machine *m) {
    if (m->judged == m->incarnation) return;
    m->judged = m->incarnation;
    m->withheld = false;
    if (disk_may_forget(&m->disk, VOTE_NAME))
        violated("server %u acts on a vote whose sync has failed", m->number);
}

/* A server without entries gets its vote where an ensemble is founded, and nowhere else: no voter
 * has had any since before it started. */
static void judge_founding(struct machine *m, const struct raft *raft) {
    bool founds = m->withheld && !raft->vote_withheld && !raft->last_index;
    m->withheld = raft->vote_withheld;
    if (!m->data_since && raft->durable_index) m->data_since = world->now;
    for (unsigned i = 1; founds && i <= world->servers; i++) {
        const struct machine *other = &world->machine[i];
        if (!raft_has_vote(&raft->config, (uint8_t)i) || other->rotten) continue;
        if (other->data_since && other->data_since < m->started)
            violated("server %u founds an ensemble of which server %u has entries", m->number, i);
    }
}

/* The log goes only while there is another snapshot beside the newest. */
void judge_removal(const struct machine *m, const char *name) {
    struct snapshots found;
    if (strncmp(name, "log.", 4) != 0) return;
    int directory = open(m->disk.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cv_assert(directory >= 0 && snapshots_list(&found, directory, m->disk.path) == 0);
    close(directory);
    if (found.count < 2)
        violated("server %u removes a part of its log, and has %zu snapshots", m->number,
                 found.count);
}

/* The id of the ensemble stays in the configuration once it is there, and stays the same. */
static void judge_identity(const struct machine *m) {
    const struct tree *tree = &m->server->tree;
    struct zk_text text = tree_members_text(tree);
    struct member_list list = {0};
    char why[256];
    if (text.size <= 0) return;
    cv_assert(member_list_parse(&list, text.at, (size_t)text.size, why, sizeof why));
    int64_t zxid = tree_members_zxid(tree);
    if (list.ensemble && (!world->ensemble || zxid < world->ensemble_zxid))
        world->ensemble_zxid = zxid;
    if (!world->ensemble) world->ensemble = list.ensemble;
    if (list.ensemble ? list.ensemble != world->ensemble
                      : world->ensemble && zxid > world->ensemble_zxid)
        violated("server %u has a configuration that %s the id of the ensemble", m->number,
                 list.ensemble ? "changes" : "loses");
}

/* There is one leader in a term. */
void judge_step(struct machine *m) {
    struct world *w = world;
    const struct raft *raft = core_of(m);
    if (!raft || !raft->self) return;
    judge_start(m);
    judge_founding(m, raft);
    if (raft->term != m->term || raft->leader != m->leader || raft->config.hash != m->members) {
        m->term = raft->term;
        m->leader = raft->leader;
        m->members = raft->config.hash;
        m->since = w->now;
        judge_identity(m);
    }
    m->has_data |= raft->commit_index > 0;
    if (!acts_as_leader(m->server->ensemble)) return;
    if (raft->term >= w->terms) {
        size_t before = w->terms;
        w->term_leader =
            grown(w->term_leader, &w->term_room, raft->term + 1, sizeof *w->term_leader);
        w->terms = raft->term + 1;
        memset(w->term_leader + before, 0, (w->terms - before) * sizeof *w->term_leader);
    }
    struct term_leader *leader = &w->term_leader[raft->term];
    if (!leader->server) {
        *leader = (struct term_leader){(uint8_t)m->number, w->now};
        w->coverage.elections++;
    }
    if (leader->server != m->number)
        violated("servers %u and %u both lead in term %llu", leader->server, m->number,
                 (unsigned long long)raft->term);
}

/* All servers have the same hash at an index. */
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

/* It does not depend on the order of nodes in memory. */
static uint64_t hash_of_tree(const struct tree *tree) {
    struct bytes path = {0};
    uint64_t sum = (uint64_t)tree->zxid;
    uint32_t up;
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up))
        sum += hash_of_node(tree, id, &path);
    for (uint32_t i = 1; i <= tree->sessions.slots; i++) {
        const struct session *s = &tree->sessions.at[i];
        int64_t numbers[] = {s->id, s->timeout_ms, s->server, s->moves, s->owned_count};
        if (s->id) sum += hash_long(numbers, sizeof numbers, hash_long(s->password, 16, 2));
    }
    for (unsigned i = 0; i < TREE_SERVERS_MAX; i++)
        if (tree->proposer[i].incarnation)
            sum += hash_long(&tree->proposer[i], sizeof tree->proposer[i], i);
    bytes_close(&path);
    return sum | 1;
}

void judge_applied(struct server *s, const struct raft_entry *entry) {
    enum { EVERY = 32 };
    struct world *w = world;
    uint64_t index = applied_index_of(s->ensemble);
    compare(&w->entry_hash, &w->entries, &w->entry_room, index,
            hash_long(entry->bytes, entry->size, entry->term) | 1, "entry");
    if (index % EVERY) return;
    compare(&w->tree_hash, &w->trees, &w->tree_room, index / EVERY, hash_of_tree(&s->tree),
            "tree after so many times 32 entries:");
}

/* ---- Sessions ---- */

/* A session's timeout, as short as a clock may make it. */
static nanos timeout_of(const struct session_record *record) {
    nanos length = (nanos)record->timeout_ms * MS;
    return world_has(KIND_DRIFT) ? length - length / 500 : length;
}

static const struct machine *newest_leader(void) {
    const struct machine *found = NULL;
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        if (m->running && m->leader == i && (!found || m->term > found->term)) found = m;
    }
    return found;
}

const struct raft *core_of_server(unsigned number) { return core_of(&world->machine[number]); }

/* Whether a server could report to the leader all the while, so that the leader knows its clients.
 */
static bool was_in_touch(const struct machine *leader, const struct machine *m, nanos heard) {
    enum { MARGIN_MS = 1500 }; /* for links to come back */
    int a = (int)leader->number - 1, b = (int)m->number - 1;
    nanos margin = MARGIN_MS * MS;
    if (leader->disturbed + margin > heard || leader->since + margin > heard) return false;
    if (m == leader) return true;
    return m->leader == leader->number && m->term == leader->term && m->since + margin < heard &&
           m->disturbed + margin < heard && world->disturbed[a][b] + margin < heard;
}

/* No session expires whose client was heard within its timeout, by the leader or by a server that
 * has followed it since before then and could reach it all the while.  (A former leader that does
 * not know of the new one may propose an expiry, which is never applied.) */
void judge_expiry(struct server *s, uint32_t slot) {
    int64_t id = s->tree.sessions.at[slot].id;
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
        if (!heard || world->now - heard >= timeout_of(record)) continue;
        if (!was_in_touch(leader, &world->machine[i], heard)) continue;
        record->early[by].server = i;
        record->early[by].heard = heard;
        record->early[by].at = world->now;
    }
}

/* A session has its full timeout from when it is attached to a server ... */
void judge_attached(struct session_record *record) {
    if (record->ended && record->ended < record->attached + timeout_of(record))
        violated("session 0x%llx of user %u expires %.0f ms after it was attached to a server",
                 (unsigned long long)record->id, record->user,
                 ((double)record->ended - (double)record->attached) / 1e6);
}

/* ... and from when there is a new leader. */
void judge_end(struct session_record *record, uint64_t term, unsigned by) {
    nanos since = term < world->terms ? world->term_leader[term].since : 0;
    record->ended = world->now;
    if (since && world->now - since < timeout_of(record))
        violated("session 0x%llx of user %u is expired by a leader of %.0f ms",
                 (unsigned long long)record->id, record->user, (double)(world->now - since) / 1e6);
    if (record->early[by].server)
        violated(
            "server %u has expired session 0x%llx of user %u, with a timeout of %d ms, and server "
            "%u had heard from it %.0f ms before",
            by, (unsigned long long)record->id, record->user, record->timeout_ms,
            record->early[by].server,
            (double)(record->early[by].at - record->early[by].heard) / 1e6);
    judge_attached(record);
}

/* A client whose pings are answered believes that they keep its session alive. */
void judge_ping(struct user *u) {
    const struct session_record *record = session_record(u->session);
    nanos sent = u->ping_sent[u->pings_answered++ % PINGS_MAX];
    if (record && record->ended && record->ended < sent)
        violated("a ping of user %u is answered, sent %.0f ms after session 0x%llx has expired",
                 u->number, (double)(sent - record->ended) / 1e6, (unsigned long long)record->id);
}

/* ---- At the end ---- */

/* Whether it must be like the others: it is a member, and its disk was not lost. */
static bool counts(const struct machine *m) {
    const struct machine *leader = newest_leader();
    const struct raft *raft = leader ? core_of(leader) : NULL;
    return raft && raft_find_member(&raft->config, (uint8_t)m->number) && !m->left_out && !m->wiped;
}

bool may_serve(const struct machine *m) {
    return world->healed && newest_leader() ? counts(m) : m->installed;
}

static struct machine *first_machine(void) {
    for (unsigned i = 1; i <= world->servers; i++)
        if (counts(&world->machine[i])) return &world->machine[i];
    return NULL;
}

bool trees_agree(void) {
    const struct machine *first = first_machine();
    if (!first || !core_of(first)) return false;
    if (ensemble_status(newest_leader()->server->ensemble).changing) return false;
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        if (!counts(m)) continue;
        const struct raft *raft = core_of(m);
        if (!raft || !raft->leader) return false;
        uint64_t applied = applied_index_of(m->server->ensemble);
        if (applied != raft->last_index || raft->durable_index != raft->last_index) return false;
        if (applied != applied_index_of(first->server->ensemble)) return false;
        if (m->server->tree.sessions.count) return false;
        if (world_has(KIND_TTL) && !ttl_all_gone(&m->server->tree)) return false;
    }
    return true;
}

bool nobody_is_helped(void) {
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        if (counts(m) && core_of(m) && helps_others(m->server->ensemble)) return false;
    }
    return trees_agree();
}

/* Shows why they do not agree. */
void trace_servers(void) {
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        char who[16];
        snprintf(who, sizeof who, "s%u", i);
        if (!core_of(m)) {
            trace(who, "%s",
                  m->left_out    ? "is left out"
                  : m->installed ? "is down"
                                 : "is not there");
            continue;
        }
        struct ensemble_status status = ensemble_status(m->server->ensemble);
        const struct raft *raft = status.raft;
        trace(who,
              "term %llu leader %u last %llu durable %llu committed %llu applied %llu sessions %u",
              (unsigned long long)raft->term, raft->leader, (unsigned long long)raft->last_index,
              (unsigned long long)raft->durable_index, (unsigned long long)raft->commit_index,
              (unsigned long long)status.applied_index, m->server->tree.sessions.count);
        if (status.changing) trace(who, "  its members are changing");
        for (unsigned j = 0; raft->leader == i && j < raft->config.count; j++) {
            const struct raft_peer *peer = &raft->peer[j];
            trace(who, "  to s%u: mode %u match %llu next %llu waiting %u due %u up %d",
                  raft->config.at[j].id, peer->mode, (unsigned long long)peer->match_index,
                  (unsigned long long)peer->next_index, peer->probe_pending, peer->heartbeat_due,
                  ensemble_is_linked(m->server->ensemble, raft->config.at[j].id));
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
        if (!counts(m)) continue;
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
    if (result.verdict.value == UNKNOWN)
        violated("key %u: the history is too long to judge", result.key);
    if (result.verdict.value == VIOLATED) {
        violated("key %u is not %s: %s", result.key,
                 sequential ? "sequentially consistent" : "linearizable", result.verdict.why);
        for (size_t i = 0; i < result.ordered; i++)
            trace("", "  in order: %s", history_describe(history, result.order[i], text));
        for (size_t i = 0; i < result.stuck_count; i++)
            trace("", "  cannot follow: %s: %s", history_describe(history, result.stuck[i], text),
                  history_why(history, &result, result.stuck[i], why));
    }
    history_result_close(&result);
}

void judge_histories(void) {
    judge_history(&world->strong, false);
    judge_history(&world->weak, true);
}
