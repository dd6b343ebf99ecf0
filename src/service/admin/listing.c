/* Reports that list sessions, nodes, connections or watches.  There may be very many, so a listing
 * is written in steps, each an item or a part of a long one, and takes as many loop iterations as
 * it needs; the tree does not change meanwhile.  A listing is a row of parts, each of which is
 * called until it is done. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "service/admin/internal.h"

typedef bool part_fn(struct listing *l, size_t *steps); /* false: not done yet */

struct listing {
    const struct server *server;
    uint32_t asking; /* the connection; 0: none */
    struct bytes *out;
    part_fn *const *part; /* that is being written; NULL: there is none left */
    uint32_t at;          /* in it: the slot that is next, from 1; 0: it has just begun */
    node_id node;         /* of that slot; 0: the slot is next */
    uint32_t watch;       /* the same of watches */
    bool brief, any;      /* any: there is an item before */
    bool has_times;       /* of sessions: this server knows when they expire */
    struct expiry *list;
    size_t room, count, sorted, printed;
    size_t paid; /* bytes that steps were taken for */
};

/* ---- Pieces ---- */

/* An item is a step, and more if what was written before it is long. */
static void take_step(struct listing *l, size_t *steps) {
    tree_step_over(l->out->used - l->paid, steps);
    l->paid = l->out->used;
}

/* Goes to the next of the slots from 1 on; false: there is none, or steps are used up. */
static bool next_slot(struct listing *l, uint32_t slots, size_t *steps) {
    if (!*steps || l->at >= slots) return false;
    take_step(l, steps);
    l->at++;
    return true;
}

static void print_id(struct bytes *out, int64_t id) {
    report_print(out, "0x%" PRIx64, (uint64_t)id);
}

static void print_path(struct bytes *out, struct zk_text path) {
    bytes_add(out, path.at, (size_t)path.size);
}

static int add_text(const char *text, size_t size, void *to) {
    bytes_add(to, text, size);
    return 0;
}

/* A value that is not NULL, which would be one that JSON cannot hold. */
static void print_json(struct listing *l, json_t *value) {
    report_print(l->out, "%s", l->any ? ", " : "");
    json_dump_callback(value, add_text, l->out, JSON_ENCODE_ANY);
    json_decref(value);
    l->any = true;
}

/* ---- Expiries, in the order of their times: a heap, of which the last is taken to the end ---- */

static void swap(struct expiry *a, struct expiry *b) {
    struct expiry other = *a;
    *a = *b;
    *b = other;
}

static void sift_down(struct expiry *heap, size_t count) {
    for (size_t at = 0, below; (below = 2 * at + 1) < count; at = below) {
        if (below + 1 < count && report_is_before(&heap[below], &heap[below + 1])) below++;
        if (!report_is_before(&heap[at], &heap[below])) return;
        swap(&heap[at], &heap[below]);
    }
}

static void add_expiry(struct listing *l, struct expiry added) {
    size_t at = l->count++;
    l->list[at] = added;
    for (; at && report_is_before(&l->list[(at - 1) / 2], &l->list[at]); at = (at - 1) / 2)
        swap(&l->list[(at - 1) / 2], &l->list[at]);
}

static void begin_list(struct listing *l, size_t max) {
    free(l->list);
    l->list = malloc((max + 1) * sizeof *l->list);
    cv_assert(l->list);
    l->room = max;
    l->count = l->printed = 0;
}

static bool collect_sessions(struct listing *l, size_t *steps) {
    const struct sessions *sessions = &l->server->tree.sessions;
    if (!l->at) l->has_times = report_knows_expiries(l->server);
    if (!l->at) begin_list(l, sessions->count);
    while (next_slot(l, sessions->slots, steps))
        if (sessions->at[l->at].id && l->at < l->server->sessions.count)
            add_expiry(l, report_session_expiry(l->server, l->at));
    l->sorted = l->count;
    return l->at >= sessions->slots;
}

/* Connections come and go meanwhile. */
static bool collect_connections(struct listing *l, size_t *steps) {
    const struct connections *all = &l->server->connections;
    if (!l->at) begin_list(l, all->slots);
    while (next_slot(l, (uint32_t)l->room, steps))
        if (all->at[l->at]) add_expiry(l, report_connection_expiry(all->at[l->at]));
    l->sorted = l->count;
    return l->at >= l->room;
}

static bool sort(struct listing *l, size_t *steps) {
    for (; l->sorted > 1 && *steps; --*steps) {
        swap(&l->list[0], &l->list[--l->sorted]);
        sift_down(l->list, l->sorted);
    }
    return l->sorted <= 1;
}

static size_t sets(const struct listing *l) {
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) count += !i || l->list[i].at_ms != l->list[i - 1].at_ms;
    return count;
}

/* The next of them, and how many have its time if it is the first of those; NULL: there is none. */
static const struct expiry *next_expiry(struct listing *l, size_t *steps, size_t *same) {
    if (l->printed == l->count || !*steps) return NULL;
    --*steps;
    const struct expiry *at = &l->list[l->printed++];
    bool first = at == l->list || at[-1].at_ms != at->at_ms;
    *same = 0;
    while (first && at + *same < l->list + l->count && at[*same].at_ms == at->at_ms) ++*same;
    return at;
}

/* ---- Words: sessions ---- */

/* Each set ends at one time. */
static void print_sets(struct listing *l, size_t *steps) {
    char when[40];
    const struct expiry *at;
    for (size_t same; (at = next_expiry(l, steps, &same));) {
        if (same) {
            struct tm parts;
            gmtime_r(&(time_t){at->at_ms / 1000}, &parts);
            strftime(when, sizeof when, "%a %b %d %H:%M:%S UTC %Y", &parts);
            report_print(l->out, "%zu expire at %s:\n", same, when);
        }
        report_print(l->out, "\t");
        if (*at->address) report_print(l->out, "ip: /%s sessionId: ", at->address);
        print_id(l->out, at->session);
        report_print(l->out, "\n");
    }
}

/* As ZooKeeper has it of a server that is not the leader. */
static bool print_global_sessions(struct listing *l, size_t *steps) {
    if (!l->printed)
        report_print(l->out, "SessionTracker dump:\nGlobal Sessions(%zu):\n", l->count);
    for (; l->printed < l->count && *steps; l->printed++, --*steps) {
        print_id(l->out, l->list[l->printed].session);
        report_print(l->out, "\t%dms\n", (int)l->list[l->printed].timeout_ms);
    }
    return l->printed == l->count;
}

static bool print_session_sets(struct listing *l, size_t *steps) {
    if (!l->has_times) return print_global_sessions(l, steps);
    if (!l->printed)
        report_print(l->out, "SessionTracker dump:\nSession Sets (%zu)/(%zu):\n", sets(l),
                     l->count);
    print_sets(l, steps);
    return l->printed == l->count;
}

static bool print_connection_sets(struct listing *l, size_t *steps) {
    if (!l->printed)
        report_print(l->out, "Connections dump:\nConnections Sets (%zu)/(%zu):\n", sets(l),
                     l->count);
    print_sets(l, steps);
    return l->printed == l->count;
}

static bool print_ephemerals(struct listing *l, size_t *steps) {
    const struct tree *tree = &l->server->tree;
    const struct sessions *sessions = &tree->sessions;
    if (!l->at && !l->node) {
        uint32_t owners = 0;
        for (uint32_t i = 1; i <= sessions->slots; i++)
            owners += sessions->at[i].id && sessions->at[i].owned;
        report_print(l->out, "ephemeral nodes dump:\nSessions with Ephemerals (%u):\n", owners);
    }
    while (l->node || next_slot(l, sessions->slots, steps)) {
        if (!l->node && sessions->at[l->at].id && sessions->at[l->at].owned) {
            print_id(l->out, sessions->at[l->at].id);
            report_print(l->out, ":\n");
            l->node = sessions->at[l->at].owned;
        }
        for (; l->node && *steps; l->node = tree->node[l->node].next_owned, take_step(l, steps)) {
            report_print(l->out, "\t");
            tree_path(tree, l->node, l->out);
            report_print(l->out, "\n");
        }
        if (!*steps) break;
    }
    return !l->node && l->at >= sessions->slots;
}

/* ---- Words: connections, watches ---- */

static bool print_connections(struct listing *l, size_t *steps) {
    const struct server *s = l->server;
    char address[REPORT_ADDRESS_MAX];
    while (next_slot(l, s->connections.slots, steps)) {
        const struct connection *c = s->connections.at[l->at];
        if (!c) continue;
        report_address(c, address);
        report_print(l->out, " /%s[%d](", address, l->at == l->asking ? 0 : report_interest(c));
        word_print_connection(c, l->brief, l->out);
        report_print(l->out, ")\n");
    }
    if (l->at < s->connections.slots) return false;
    report_print(l->out, "\n");
    return true;
}

static bool print_clients(struct listing *l, size_t *steps) {
    (void)steps;
    l->brief = true;
    word_print_version(l->out);
    report_print(l->out, "Clients:\n");
    return true;
}

static bool print_state(struct listing *l, size_t *steps) {
    (void)steps;
    word_print_state(l->server, l->out);
    return true;
}

/* The watches of a slot, from l->watch on; one that was removed meanwhile ends them.  True: there
 * is a watch, and a step for it. */
static bool is_watch(struct listing *l, bool same, size_t *steps) {
    if (!same) l->watch = 0;
    if (!l->watch || !*steps) return false;
    take_step(l, steps);
    return true;
}

static bool held_by(const struct listing *l) {
    const struct watch *watch = &l->server->watches.watch[l->watch];
    return l->watch && watch->path && watch->connection == l->at &&
           l->server->connections.at[l->at];
}

static bool held_at(const struct listing *l) {
    const struct watch *watch = &l->server->watches.watch[l->watch];
    return l->watch && watch->path == l->at && watch->table == WATCH_DATA &&
           l->server->connections.at[watch->connection];
}

static bool print_watches_held(struct listing *l, size_t *steps) {
    const struct server *s = l->server;
    while (l->watch || next_slot(l, s->connections.slots, steps)) {
        if (!l->watch && !(l->watch = report_watch_held(s, l->at, 0))) continue;
        if (!l->any) print_id(l->out, s->connections.at[l->at]->session_id);
        for (; is_watch(l, held_by(l), steps); l->watch = report_watch_held(s, l->at, l->watch)) {
            report_print(l->out, "\n\t");
            print_path(l->out, report_watched(s, s->watches.watch[l->watch].path));
        }
        l->any = l->watch;
        if (l->any) return false;
        report_print(l->out, "\n");
    }
    if (l->at < s->connections.slots) return false;
    report_print(l->out, "\n");
    return true;
}

static bool print_watches_at(struct listing *l, size_t *steps) {
    const struct server *s = l->server;
    while (l->watch || next_slot(l, s->watches.path_slots, steps)) {
        if (!l->watch && !(l->watch = report_watch_at(s, l->at, 0))) continue;
        if (!l->any) print_path(l->out, report_watched(s, l->at));
        for (; is_watch(l, held_at(l), steps); l->watch = report_watch_at(s, l->at, l->watch)) {
            report_print(l->out, "\n\t");
            print_id(l->out, s->connections.at[s->watches.watch[l->watch].connection]->session_id);
        }
        l->any = l->watch;
        if (l->any) return false;
        report_print(l->out, "\n");
    }
    if (l->at < s->watches.path_slots) return false;
    report_print(l->out, "\n");
    return true;
}

/* ---- JSON ---- */

static bool json_begin(struct listing *l, size_t *steps) {
    (void)steps;
    report_print(l->out, "{");
    return true;
}

static bool json_times(struct listing *l, size_t *steps) {
    const struct expiry *at;
    if (!l->has_times) l->count = 0;
    if (!l->printed) report_print(l->out, "\n  \"expiry_time_to_session_ids\": {");
    for (size_t same; (at = next_expiry(l, steps, &same));) {
        if (same) {
            report_print(l->out, "%s\n    \"%" PRId64 "\": [", at == l->list ? "" : "],",
                         at->at_ms);
            l->any = false;
        }
        print_json(l, json_integer(at->session));
    }
    if (l->printed < l->count) return false;
    report_print(l->out, "%s},", l->count ? "]" : "");
    return true;
}

static bool json_owners(struct listing *l, size_t *steps) {
    const struct tree *tree = &l->server->tree;
    const struct sessions *sessions = &tree->sessions;
    struct bytes path = {0};
    if (!l->at) report_print(l->out, "\n  \"session_id_to_ephemeral_paths\": {");
    if (!l->at) l->brief = false; /* whether an owner was written */
    while (l->node || next_slot(l, sessions->slots, steps)) {
        if (!l->node && sessions->at[l->at].id && sessions->at[l->at].owned) {
            report_print(l->out, "%s\n    \"%" PRId64 "\": [", l->brief ? "]," : "",
                         sessions->at[l->at].id);
            l->node = sessions->at[l->at].owned;
            l->brief = true;
            l->any = false;
        }
        for (; l->node && *steps; l->node = tree->node[l->node].next_owned, take_step(l, steps)) {
            path.used = 0;
            tree_path(tree, l->node, &path);
            json_t *text = json_stringn((char *)path.at, path.used);
            if (text) print_json(l, text);
        }
        if (!*steps) break;
    }
    bytes_close(&path);
    if (l->node || l->at < sessions->slots) return false;
    report_print(l->out, "%s},", l->brief ? "]" : "");
    return true;
}

static bool json_watches_held(struct listing *l, size_t *steps) {
    const struct server *s = l->server;
    if (!l->at) report_print(l->out, "\n  \"session_id_to_watched_paths\": {");
    if (!l->at) l->brief = false; /* whether there is a connection before */
    while (l->watch || next_slot(l, s->connections.slots, steps)) {
        if (!l->watch) {
            if (!(l->watch = report_watch_held(s, l->at, 0))) continue;
            report_print(l->out, "%s\n    \"%" PRId64 "\": [", l->brief ? "," : "",
                         s->connections.at[l->at]->session_id);
            l->brief = true;
            l->any = false;
        }
        for (; is_watch(l, held_by(l), steps); l->watch = report_watch_held(s, l->at, l->watch)) {
            struct zk_text path = report_watched(s, s->watches.watch[l->watch].path);
            json_t *text = json_stringn(path.at, (size_t)path.size);
            if (text) print_json(l, text);
        }
        if (l->watch) return false;
        report_print(l->out, "]");
    }
    if (l->at < s->connections.slots) return false;
    report_print(l->out, "},");
    return true;
}

static bool json_watches_at(struct listing *l, size_t *steps) {
    const struct server *s = l->server;
    if (!l->at) report_print(l->out, "\n  \"path_to_session_ids\": {");
    if (!l->at) l->brief = false; /* whether there is a path before */
    while (l->watch || next_slot(l, s->watches.path_slots, steps)) {
        if (!l->watch) {
            uint32_t watch = report_watch_at(s, l->at, 0);
            struct zk_text path = report_watched(s, l->at);
            json_t *text = watch ? json_stringn(path.at, (size_t)path.size) : NULL;
            if (!text) continue;
            report_print(l->out, "%s\n    ", l->brief ? "," : "");
            l->brief = true;
            l->any = false;
            print_json(l, text);
            report_print(l->out, ": [");
            l->any = false;
            l->watch = watch;
        }
        for (; is_watch(l, held_at(l), steps); l->watch = report_watch_at(s, l->at, l->watch))
            print_json(
                l,
                json_integer(s->connections.at[s->watches.watch[l->watch].connection]->session_id));
        if (l->watch) return false;
        report_print(l->out, "]");
    }
    if (l->at < s->watches.path_slots) return false;
    report_print(l->out, "},");
    return true;
}

static bool json_connections_of(struct listing *l, bool secure, size_t *steps) {
    const struct server *s = l->server;
    if (!l->at)
        report_print(l->out, "\n  \"%s\": [", secure ? "secure_connections" : "connections");
    if (!l->at) l->any = false;
    while (next_slot(l, s->connections.slots, steps)) {
        const struct connection *c = s->connections.at[l->at];
        if (c && (c->stream.tls != NULL) == secure) print_json(l, json_connection(c, l->brief));
    }
    if (l->at < s->connections.slots) return false;
    report_print(l->out, "],");
    return true;
}

static bool json_plain(struct listing *l, size_t *steps) {
    return json_connections_of(l, false, steps);
}

static bool json_secure(struct listing *l, size_t *steps) {
    return json_connections_of(l, true, steps);
}

/* The members of an object, without its braces. */
static bool json_stats(struct listing *l, size_t *steps) {
    json_t *object = json_server_stats(l->server);
    size_t begin = l->out->used;
    (void)steps;
    json_dump_callback(object, add_text, l->out, 0);
    json_decref(object);
    l->out->at[begin] = '\n';
    l->out->at[l->out->used - 1] = ',';
    l->brief = true;
    return true;
}

/* ---- All of them ---- */

static bool json_end(struct listing *l, const char *name) {
    report_print(l->out, "\n  \"command\": \"%s\",\n  \"error\": null\n}\n", name);
    return true;
}

#define JSON_END(NAME)                                                                             \
    static bool json_end_##NAME(struct listing *l, size_t *steps) {                                \
        return (void)steps, json_end(l, #NAME);                                                    \
    }
JSON_END(dump)
JSON_END(connections)
JSON_END(stats)
JSON_END(watches)
JSON_END(watches_by_path)

static const struct kind {
    const char *word, *name; /* in words; in JSON: NULL, it is a word */
    part_fn *part[8];
} kinds[] = {
    {"dump",
     NULL,
     {collect_sessions, sort, print_session_sets, print_ephemerals, collect_connections, sort,
      print_connection_sets}},
    {"cons", NULL, {print_connections}},
    {"stat", NULL, {print_clients, print_connections, print_state}},
    {"wchc", NULL, {print_watches_held}},
    {"wchp", NULL, {print_watches_at}},
    {"dump", "dump", {json_begin, collect_sessions, sort, json_times, json_owners, json_end_dump}},
    {"cons", "connections", {json_begin, json_plain, json_secure, json_end_connections}},
    {"stat", "stats", {json_begin, json_stats, json_plain, json_secure, json_end_stats}},
    {"wchc", "watches", {json_begin, json_watches_held, json_end_watches}},
    {"wchp", "watches_by_path", {json_begin, json_watches_at, json_end_watches_by_path}},
};

static struct listing *open_listing(const struct server *s, uint32_t asking,
                                    const struct kind *kind) {
    struct listing *l = calloc(1, sizeof *l);
    cv_assert(l);
    *l = (struct listing){.server = s, .asking = asking, .part = kind->part};
    return l;
}

struct listing *listing_of_word(const struct connection *asking, const char *word) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!kinds[i].name && strcmp(word, kinds[i].word) == 0)
            return open_listing(asking->server, asking->number, &kinds[i]);
    return NULL;
}

const char *listing_command_name(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].name && (strcmp(name, kinds[i].word) == 0 || strcmp(name, kinds[i].name) == 0))
            return kinds[i].name;
    return NULL;
}

struct listing *listing_of_command(const struct server *s, const char *name) {
    size_t i = 0;
    while (!kinds[i].name || strcmp(name, kinds[i].name) != 0) i++;
    return open_listing(s, 0, &kinds[i]);
}

bool listing_write(struct listing *l, struct bytes *out, size_t *steps) {
    l->out = out;
    l->paid = out->used;
    while (*l->part && *steps) {
        if (!(*l->part)(l, steps)) continue;
        l->part++;
        l->at = l->node = l->watch = 0;
        l->any = false;
    }
    return !*l->part;
}

void listing_close(struct listing *l) {
    if (l) free(l->list);
    free(l);
}
