/* Locks and elections as the page shows them: who holds each, who waits, and for whom.
 *
 * They are below two nodes, in folders or not, and are shown a page at a time: no request looks at
 * more than so many contenders, whatever clients have put there.  A lock with more of them than
 * that is only named.  So is one with a contender whose name is longer than any client makes it,
 * because names are repeated for each who waits; what is repeated ends with a number of bytes.  A
 * lock with such a name is not shown, nor are those in it: they could not be asked for. */
#include <inttypes.h>
#include <math.h>

#include "base/grow.h"
#include "recipe/cycles.h"
#include "recipe/election.h"
#include "recipe/holds.h"
#include "recipe/name.h"
#include "recipe/roll.h"
#include "service/admin/http.h"

enum {
    LOCKS = 100, /* of a page, unless the request says otherwise */
    LOCKS_MAX = 1000,
    CONTENDERS_MAX = 1000, /* that are looked at for a page */
    NAME_BYTES_MAX = 512,  /* of a lock, and of a contender */
    SKIPPED_MAX = 10000,   /* nodes that are no locks, after which the page ends */
    ESTIMATES_MAX = 16,    /* on a page: each takes some time */
    WAITS_MAX = 10000,     /* that are told */
    BYTES_MAX = 1 << 20,   /* of a page, after which no more waits are told, and no other lock */
    CIRCLES_BYTES_MAX = 256 << 10
};

static const char *const roots[] = {NAME_LOCKS, NAME_LEADERS};
enum { ROOTS = sizeof roots / sizeof *roots };

struct looking {
    struct server *server;
    const struct tree *tree;
    struct zk_clients identities;
    struct bytes *out;
    unsigned left, contenders_left; /* that may be shown */
    unsigned skipped;
    node_id last;  /* from which the next page goes on */
    node_id *lock; /* that are shown */
    size_t lock_count, lock_room;
    struct wait *waits; /* `at` is the number of a lock among them */
    size_t wait_count, wait_room;
    unsigned estimates;         /* that were made */
    size_t circles_begin;       /* where the circles begin in the text */
    bool any;                   /* circle was told */
    struct roll_entry *entries; /* of the lock that is being shown ... */
    size_t waits_for;           /* ... how many one of them waits for */
    int64_t inner;              /* for whom those wait whose command it is */
};

static bool may_read(const struct looking *l, node_id id) {
    return acl_allows(l->tree, l->tree->node[id].acl, ACL_READ, &l->identities);
}

/* ---- One lock ---- */

/* Texts of the tree do not end with a NUL byte, as the names of a roll do.  In front of each copy
 * is the number of its node. */
static char *copy_names(const struct looking *l, const struct node *lock, const char **names) {
    struct bytes text = {0};
    size_t count = 0, *begin = calloc(node_children(lock) + 1, sizeof *begin);
    cv_assert(begin);
    for (node_id id = node_children(lock) ? lock->first_child : 0; id;
         id = l->tree->node[id].next) {
        bytes_add(&text, &id, sizeof id);
        begin[count++] = text.used;
        bytes_add(&text, l->tree->node[id].text, l->tree->node[id].name_size);
        bytes_add(&text, "", 1);
    }
    for (size_t i = 0; i < count; i++) names[i] = (char *)text.at + begin[i];
    free(begin);
    return (char *)text.at;
}

static node_id node_of(const char *name) {
    node_id id;
    memcpy(&id, name - sizeof id, sizeof id);
    return id;
}

static void read_note(const struct looking *l, node_id id, struct note *note) {
    struct zk_text data = node_data(&l->tree->node[id]);
    *note = (struct note){0};
    if (may_read(l, id) && data.size > 0) note_read(note, data.at, (size_t)data.size);
}

static void read_entry(const struct looking *l, node_id id, struct roll_entry *entry) {
    const struct node *node = &l->tree->node[id];
    read_note(l, id, &entry->note);
    entry->session = node_is_ephemeral(node) ? node->owner : 0;
    entry->czxid = node->czxid;
    entry->ctime = node->ctime;
}

static void add_string(struct bytes *out, const char *key, const char *text) {
    report_print(out, ",\"%s\":", key);
    json_add_text(out, zk_text_of(text));
}

static void add_entry(struct bytes *out, const struct roll_entry *e) {
    report_print(out, "{\"session\":\"0x%" PRIx64 "\"", (uint64_t)e->session);
    add_string(out, "node", e->name);
    add_string(out, "label", e->note.label);
    add_string(out, "host", e->note.host);
    report_print(out, ",\"pid\":%" PRId64 ",\"since_ms\":%" PRId64 ",\"shared\":%s", e->note.pid,
                 e->holds ? e->held_since : e->since, e->kind == CONTEND_SHARED ? "true" : "false");
    if (e->holds) report_print(out, ",\"token\":%" PRId64, e->token);
    if (e->is_candidate) report_print(out, ",\"priority\":%" PRId32, e->priority);
}

static const char *kind_of(const struct roll_entry *entries, size_t count) {
    if (!count) return "lock";
    return entries->is_candidate             ? "election"
           : entries->kind == CONTEND_SLOT   ? "semaphore"
           : entries->kind == CONTEND_SHARED ? "shared"
                                             : "lock";
}

static void keep_wait(struct looking *l, struct wait wait) {
    if (l->wait_count == WAITS_MAX) return;
    wait.at = l->lock_count - 1;
    l->waits = grown(l->waits, &l->wait_room, l->wait_count + 1, sizeof *l->waits);
    l->waits[l->wait_count++] = wait;
}

static void add_wait(size_t waiter, size_t before, void *arg) {
    struct looking *l = arg;
    if (l->out->used <= BYTES_MAX) {
        if (l->waits_for++) bytes_add(l->out, ",", 1);
        json_add_text(l->out, zk_text_of(l->entries[before].name));
    }
    keep_wait(l, (struct wait){.waiter = l->entries[waiter].session,
                               .holder = l->entries[before].session});
}

static void add_outer(int64_t session, void *arg) {
    struct looking *l = arg;
    keep_wait(l, (struct wait){.waiter = session, .holder = l->inner, .outer = true});
}

static void add_estimate(struct looking *l, const struct holds *holds, size_t before) {
    struct waits_interval interval;
    double elapsed_ms = (double)l->server->clock.monotonic_us / 1000;
    if (holds) elapsed_ms -= (double)holds->since_ms;
    bool known = holds && l->estimates < ESTIMATES_MAX &&
                 waits_estimate(&holds->waits, before, elapsed_ms > 0 ? elapsed_ms : 0, &interval);
    l->estimates += known;
    if (!known)
        report_print(l->out, "null");
    else if (isfinite(interval.high_ms))
        report_print(l->out, "[%.0f,%.0f]", interval.low_ms, interval.high_ms);
    else
        report_print(l->out, "[%.0f,null]", interval.low_ms);
}

static void add_queue(struct looking *l, const struct wait_place *places, size_t count) {
    const struct holds *holds =
        page_holds_look(l->server, l->lock[l->lock_count - 1], l->entries, count);
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        if (l->entries[i].holds) continue;
        if (!first) bytes_add(l->out, ",", 1);
        first = false;
        add_entry(l->out, &l->entries[i]);
        report_print(l->out, ",\"waits_for\":[");
        l->waits_for = 0;
        cycles_waits(places, i, add_wait, l);
        l->inner = places[i].session;
        cycles_outer(&places[i], add_outer, l);
        report_print(l->out, "],\"estimate_ms\":");
        add_estimate(l, holds, i);
        report_print(l->out, "}");
    }
}

static void add_holders(struct looking *l, size_t count) {
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        if (!l->entries[i].holds) continue;
        if (!first) bytes_add(l->out, ",", 1);
        first = false;
        add_entry(l->out, &l->entries[i]);
        report_print(l->out, "}");
    }
}

static void add_contenders(struct looking *l, size_t count) {
    struct wait_place *places = calloc(count + 1, sizeof *places);
    int32_t slots = 0;
    cv_assert(places);
    for (size_t i = 0; i < count; i++) {
        const struct roll_entry *e = &l->entries[i];
        places[i] = (struct wait_place){.session = e->session,
                                        .holds = e->holds,
                                        .shared = e->kind == CONTEND_SHARED,
                                        .slots = e->slots,
                                        .outer = e->note.outer};
        if (e->kind == CONTEND_SLOT && e->slots > slots) slots = e->slots;
    }
    report_print(l->out, ",\"kind\":\"%s\",\"contenders\":%zu", kind_of(l->entries, count), count);
    if (slots) report_print(l->out, ",\"slots\":%" PRId32, slots);
    report_print(l->out, ",\"holders\":[");
    add_holders(l, count);
    report_print(l->out, "],\"queue\":[");
    add_queue(l, places, count);
    report_print(l->out, "]}");
    free(places);
}

static void add_roll(struct looking *l, const struct node *lock) {
    size_t children = node_children(lock), count;
    const char **names = calloc(children + 1, sizeof *names);
    struct roll_leader leader = {0};
    l->entries = calloc(children + 1, sizeof *l->entries);
    cv_assert(names && l->entries);
    char *text = copy_names(l, lock, names);
    bool listed = roll_list(l->entries, names, children, &count);
    cv_assert(listed);
    for (size_t i = 0; i < count; i++) read_entry(l, node_of(l->entries[i].name), &l->entries[i]);
    for (size_t i = 0; i < children; i++) {
        if (strcmp(names[i], ELECTION_LEADER) != 0) continue;
        const struct node *node = &l->tree->node[node_of(names[i])];
        read_note(l, node_of(names[i]), &leader.note);
        leader.czxid = node->czxid;
        leader.ctime = node->ctime;
    }
    roll_judge(l->entries, count, &leader);
    add_contenders(l, count);
    free(text);
    free(names);
    free(l->entries);
}

static bool has_long_names(const struct tree *tree, const struct node *lock) {
    for (node_id id = node_children(lock) ? lock->first_child : 0; id; id = tree->node[id].next)
        if (tree->node[id].name_size > NAME_BYTES_MAX) return true;
    return false;
}

/* A child of a lock or an election that belongs to it, and is none itself. */
static bool is_entry(const struct node *node) {
    char name[NAME_BYTES_MAX + 1];
    struct contender contender;
    struct candidate candidate;
    if (node_is_ephemeral(node)) return true;
    if (node->name_size > NAME_BYTES_MAX) return false;
    memcpy(name, node->text, node->name_size);
    name[node->name_size] = 0;
    return contend_parse(&contender, name) || election_parse(&candidate, name);
}

/* A node with children, and no contender among the first of them. */
static bool is_folder(const struct looking *l, const struct node *lock) {
    unsigned seen = 0;
    node_id id = node_children(lock) ? lock->first_child : 0;
    for (; id && seen < CONTENDERS_MAX; id = l->tree->node[id].next, seen++)
        if (is_entry(&l->tree->node[id])) return false;
    return seen > 0;
}

/* The bytes of its name, slashes included; more than NAME_BYTES_MAX: it is too long. */
static unsigned name_bytes(const struct looking *l, node_id id, node_id top) {
    unsigned bytes = 0;
    for (; id != top && bytes <= NAME_BYTES_MAX; id = l->tree->node[id].parent)
        bytes += l->tree->node[id].name_size + 1U;
    return bytes - 1;
}

/* The name of a lock, as clients say it. */
static void add_name(const struct looking *l, node_id id) {
    struct bytes path = {0};
    size_t size = 0;
    tree_path(l->tree, id, &path);
    for (unsigned i = 0; i < ROOTS; i++) {
        size_t root = strlen(roots[i]);
        if (path.used > root && memcmp(path.at, roots[i], root) == 0 && path.at[root] == '/')
            size = root + 1;
    }
    json_add_text(l->out, (struct zk_text){(char *)path.at + size, (int32_t)(path.used - size)});
    bytes_close(&path);
}

/* False: it has to be on the next page. */
static bool add_lock(struct looking *l, node_id id, node_id top) {
    const struct node *lock = &l->tree->node[id];
    uint32_t children = node_children(lock);
    bool refused = !may_read(l, id), looked_at = !refused && children <= CONTENDERS_MAX;
    if (!l->left || l->out->used > BYTES_MAX) return false;
    if (name_bytes(l, id, top) > NAME_BYTES_MAX || (!refused && is_folder(l, lock)))
        return l->skipped++ < SKIPPED_MAX;
    if (looked_at && children > l->contenders_left) return false;
    bool shown = looked_at && !has_long_names(l->tree, lock);
    l->left--;
    if (looked_at) l->contenders_left -= children;
    l->lock = grown(l->lock, &l->lock_room, l->lock_count + 1, sizeof *l->lock);
    l->lock[l->lock_count++] = id;
    report_print(l->out, l->lock_count > 1 ? ",\n{\"name\":" : "\n{\"name\":");
    add_name(l, id);
    if (shown)
        add_roll(l, lock);
    else
        report_print(l->out,
                     ",\"kind\":\"lock\",\"contenders\":%" PRIu32
                     ",\"%s\":true,\"holders\":[],\"queue\":[]}",
                     children, refused ? "refused" : "crowded");
    return true;
}

/* ---- Circles ---- */

static void add_session(struct bytes *out, int64_t session) {
    report_print(out, "\"0x%" PRIx64 "\"", (uint64_t)session);
}

static void add_circle(const struct wait *const *circle, size_t size, void *arg) {
    struct looking *l = arg;
    if (l->out->used - l->circles_begin > CIRCLES_BYTES_MAX) return;
    if (l->any) bytes_add(l->out, ",", 1);
    l->any = true;
    for (size_t i = 0; i < size; i++) {
        bytes_add(l->out, i ? "," : "[", 1);
        add_session(l->out, circle[i]->waiter);
    }
    bytes_add(l->out, "]", 1);
}

static void add_waits(struct looking *l) {
    report_print(l->out, "],\"waits\":[");
    for (size_t i = 0; i < l->wait_count && l->out->used <= BYTES_MAX; i++) {
        report_print(l->out, i ? ",{\"from\":" : "{\"from\":");
        add_session(l->out, l->waits[i].waiter);
        report_print(l->out, ",\"to\":");
        add_session(l->out, l->waits[i].holder);
        report_print(l->out, ",\"lock\":");
        if (l->waits[i].outer)
            json_add_text(l->out, zk_null());
        else
            add_name(l, l->lock[l->waits[i].at]);
        bytes_add(l->out, "}", 1);
    }
    report_print(l->out, "],\"deadlocks\":[");
    l->circles_begin = l->out->used;
    cycles_find(l->waits, l->wait_count, add_circle, l);
    report_print(l->out, "]");
}

/* ---- A page of them ---- */

/* A root whose locks may be shown; 0: there is none. */
static node_id top_of(const struct looking *l, unsigned root) {
    node_id top = tree_find(l->tree, zk_text_of(roots[root]));
    return top && may_read(l, top) ? top : 0;
}

/* The node of a cursor, and below which root it is; 0: it is gone. */
static node_id node_named(const struct looking *l, struct zk_text cursor, unsigned *root) {
    struct bytes path = {0};
    bytes_add(&path, "/", 1);
    bytes_add(&path, cursor.at, (size_t)cursor.size);
    node_id id = tree_find(l->tree, (struct zk_text){(char *)path.at, (int32_t)path.used});
    bytes_close(&path);
    for (*root = 0; id && *root < ROOTS; ++*root) {
        node_id top = top_of(l, *root), at = id;
        while (top && at && at != top && may_read(l, l->tree->node[at].parent))
            at = l->tree->node[at].parent;
        if (top && at == top && id != top) return id;
    }
    return 0;
}

/* The node after this one, in the order of a walk through the tree below `top`; 0: none. */
static node_id next_of(const struct looking *l, node_id id, node_id top) {
    const struct node *node = &l->tree->node[id];
    bool open = id == top ||
                (!is_entry(node) && may_read(l, id) && name_bytes(l, id, top) <= NAME_BYTES_MAX);
    if (open && node_children(node)) return node->first_child;
    while (id != top && !l->tree->node[id].next) id = l->tree->node[id].parent;
    return id == top ? 0 : l->tree->node[id].next;
}

static bool is_lock(const struct looking *l, node_id id, node_id top) {
    const struct node *node = &l->tree->node[id];
    return node->parent == top || !is_entry(node);
}

/* Shows what comes after a node (0: the first); returns whether there is more. */
static bool add_page(struct looking *l, unsigned root, node_id after) {
    report_print(l->out, "{\"locks\":[");
    for (; root < ROOTS; root++, after = 0) {
        node_id top = top_of(l, root);
        node_id id = top ? next_of(l, after ? after : top, top) : 0;
        for (; id; id = next_of(l, id, top)) {
            bool lock = is_lock(l, id, top), named = name_bytes(l, id, top) <= NAME_BYTES_MAX;
            if (lock && !add_lock(l, id, top)) return l->last != 0;
            bool over = !lock && l->skipped++ >= SKIPPED_MAX;
            if (named && (lock || over)) l->last = id; /* contenders come and go */
            if (over) return l->last != 0;
        }
    }
    return false;
}

static void add_end(struct looking *l, bool more) {
    struct bytes path = {0};
    report_print(l->out, ",\"more\":%s,\"cursor\":", more ? "true" : "false");
    if (l->last) tree_path(l->tree, l->last, &path);
    json_add_text(l->out, path.used ? (struct zk_text){(char *)path.at + 1, (int32_t)path.used - 1}
                                    : zk_null());
    report_print(l->out, "}\n");
    bytes_close(&path);
}

struct answer page_locks(const struct http_request *request) {
    struct answer answer = {MHD_HTTP_OK, HTTP_JSON, {0}, NULL};
    struct looking looking = {.server = request->door->server,
                              .tree = &request->door->server->tree,
                              .out = &answer.text,
                              .left = page_limit(request, LOCKS, LOCKS_MAX),
                              .contenders_left = CONTENDERS_MAX};
    struct zk_text after = http_argument(request, "after");
    unsigned root = 0;
    if (!page_reader(request, &looking.identities, &answer)) return answer;
    node_id last = after.size < 0 ? 0 : node_named(&looking, after, &root);
    if (after.size >= 0 && !last)
        return page_error(MHD_HTTP_GONE, "Gone", "the last lock of the page before is gone");
    bool more = add_page(&looking, root, last);
    add_waits(&looking);
    add_end(&looking, more);
    free(looking.waits);
    free(looking.lock);
    return answer;
}
