/* How long locks are held, for the estimates on the page.  While somebody looks at them, the server
 * follows who comes and goes at some of them: a bounded number, each with a bounded queue. */
#include "recipe/contend.h"
#include "recipe/holds.h"
#include "recipe/name.h"
#include "recipe/roll.h"
#include "service/admin/http.h"

enum {
    FOLLOWED_MAX = 32,
    KEPT_US = 10000000,      /* one that was looked at is not replaced by another before ... */
    FORGOTTEN_US = 60000000, /* ... and when nobody looks for so long, all are forgotten */
};

struct page_holds {
    uint64_t asked_us; /* when somebody looked last */
    unsigned count;
    struct followed {
        node_id lock;
        int64_t czxid; /* numbers of nodes are used again */
        uint64_t asked_us;
        struct holds holds;
    } lock[FOLLOWED_MAX];
};

static int64_t now_ms(const struct server *s) { return (int64_t)(s->clock.monotonic_us / 1000); }

static struct followed *find(struct page_holds *all, const struct tree *tree, node_id lock) {
    for (unsigned i = 0; i < all->count; i++)
        if (all->lock[i].lock == lock && all->lock[i].czxid == tree->node[lock].czxid)
            return &all->lock[i];
    return NULL;
}

/* A place for one more; NULL: all are looked at. */
static struct followed *take(struct page_holds *all, uint64_t now_us) {
    struct followed *oldest = &all->lock[0];
    if (all->count < FOLLOWED_MAX) return &all->lock[all->count++];
    for (unsigned i = 1; i < all->count; i++)
        if (all->lock[i].asked_us < oldest->asked_us) oldest = &all->lock[i];
    return now_us - oldest->asked_us > KEPT_US ? oldest : NULL;
}

static bool is_plain(const struct roll_entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (entries[i].kind != CONTEND_EXCLUSIVE || entries[i].is_candidate) return false;
    return count && count <= HOLDS_QUEUE_MAX;
}

const struct holds *page_holds_look(struct server *s, node_id lock,
                                    const struct roll_entry *entries, size_t count) {
    struct page_holds *all = s->http->holds;
    int32_t queue[HOLDS_QUEUE_MAX];
    struct contender parsed;
    if (!is_plain(entries, count)) return NULL;
    if (!all) all = s->http->holds = calloc(1, sizeof *all);
    cv_assert(all);
    s->is_observed = true;
    all->asked_us = s->clock.monotonic_us;
    struct followed *followed = find(all, &s->tree, lock);
    if (!followed) {
        if (!(followed = take(all, s->clock.monotonic_us))) return NULL;
        *followed = (struct followed){.lock = lock, .czxid = s->tree.node[lock].czxid};
    }
    followed->asked_us = s->clock.monotonic_us;
    for (size_t i = 0; i < count; i++)
        queue[i] = contend_parse(&parsed, entries[i].name) ? parsed.sequence : 0;
    int64_t held_ms = s->clock.now_ms - entries->held_since;
    holds_look(&followed->holds, queue, count, now_ms(s) - (held_ms > 0 ? held_ms : 0));
    return &followed->holds;
}

/* The lock, and the sequence number of a contender; 0: the path is that of none. */
static node_id lock_of(const struct tree *tree, struct zk_text path, struct contender *contender,
                       char name[256]) {
    static const char root[] = NAME_LOCKS "/";
    if (path.size <= (int32_t)strlen(root) || memcmp(path.at, root, strlen(root)) != 0) return 0;
    const char *slash = memrchr(path.at, '/', (size_t)path.size);
    size_t size = (size_t)(path.at + path.size - slash - 1);
    if (slash < path.at + strlen(root) || size >= 256) return 0;
    memcpy(name, slash + 1, size);
    name[size] = 0;
    if (!contend_parse(contender, name)) return 0;
    return tree_find(tree, (struct zk_text){path.at, (int32_t)(slash - path.at)});
}

void page_holds_changed(struct server *s, int32_t type, struct zk_text path) {
    struct page_holds *all = s->http->holds;
    struct contender contender;
    char name[256];
    if (!all || s->clock.monotonic_us - all->asked_us > FORGOTTEN_US) {
        page_holds_forget(s->http);
        s->is_observed = false;
        return;
    }
    if (type == ZK_NODE_DATA_CHANGED) return;
    node_id lock = lock_of(&s->tree, path, &contender, name);
    struct followed *followed = lock ? find(all, &s->tree, lock) : NULL;
    if (followed && type == ZK_NODE_CREATED)
        holds_join(&followed->holds, contender.sequence, now_ms(s));
    else if (followed)
        holds_leave(&followed->holds, contender.sequence, now_ms(s));
}

void page_holds_forget(struct http *http) {
    free(http->holds);
    http->holds = NULL;
}
