/* Four-letter words: what an operator, or a monitoring agent, asks on a client's port, and is told
 * in plain text.  Formats are those of ZooKeeper 3.8, which programs take apart. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "server/report.h"

/* ---- Pieces ---- */

struct lines { /* how items are written */
    struct bytes *out;
    const char *begin, *between, *end;
};

static void print_item(void *context, const struct item *item) {
    const struct lines *lines = context;
    report_print(lines->out, "%s%s%s", lines->begin, item->word, lines->between);
    switch (item->kind) {
    case ITEM_TEXT: report_print(lines->out, "%s", item->text); break;
    case ITEM_NUMBER: report_print(lines->out, "%" PRId64, item->number); break;
    case ITEM_HEX: report_print(lines->out, "0x%" PRIx64, (uint64_t)item->number); break;
    case ITEM_REAL: report_print(lines->out, "%.3f", item->real); break;
    }
    report_print(lines->out, "%s", lines->end);
}

static void print_id(struct bytes *out, int64_t id) {
    report_print(out, "0x%" PRIx64, (uint64_t)id);
}

static void print_path(struct bytes *out, struct zk_text path) {
    bytes_add(out, path.at, (size_t)path.size);
}

/* ---- The server ---- */

static void print_version(struct bytes *out) {
    report_print(out, "Zookeeper version: %s\n", REPORT_VERSION);
}

static void print_state(const struct server *s, struct bytes *out) {
    struct tally latency = report_latency(s);
    report_print(out, "Latency min/avg/max: %" PRIu64 "/%.3f/%" PRIu64 "\n", latency.least / 1000,
                 tally_average(&latency) / 1000, latency.most / 1000);
    report_print(out, "Received: %" PRIu64 "\nSent: %" PRIu64 "\n", s->statistics.received,
                 s->statistics.sent);
    report_print(out, "Connections: %u\nOutstanding: %zu\n", s->connections, s->pending_count);
    report_print(out, "Zxid: 0x%" PRIx64 "\nMode: %s\nNode count: %u\n", (uint64_t)s->tree.zxid,
                 report_mode(s), s->tree.nodes);
}

static void word_srvr(struct connection *c, struct bytes *out) {
    print_version(out);
    print_state(c->server, out);
}

static void word_mntr(struct connection *c, struct bytes *out) {
    struct lines lines = {out, "zk_", "\t", "\n"};
    report_print(out, "zk_version\t%s\nzk_server_state\t%s\n", REPORT_VERSION,
                 report_mode(c->server));
    report_figures(c->server, print_item, &lines);
}

static void word_conf(struct connection *c, struct bytes *out) {
    struct lines lines = {out, "", "=", "\n"};
    report_configuration(c->server, print_item, &lines);
}

static void word_envi(struct connection *c, struct bytes *out) {
    struct lines lines = {out, "", "=", "\n"};
    (void)c;
    report_print(out, "Environment:\n");
    report_environment(print_item, &lines);
}

static void word_dirs(struct connection *c, struct bytes *out) {
    struct directory_sizes sizes = report_directories(c->server);
    report_print(out, "datadir_size: %" PRId64 "\nlogdir_size: %" PRId64 "\n", sizes.data,
                 sizes.log);
}

static void word_ruok(struct connection *c, struct bytes *out) {
    (void)c;
    report_print(out, "imok");
}

static void word_isro(struct connection *c, struct bytes *out) {
    report_print(out, replica_is_lost(c->server) ? "ro" : "rw");
}

/* ---- Connections ---- */

static void print_connections(const struct connection *asking, bool brief, struct bytes *out) {
    const struct server *s = asking->server;
    struct lines lines = {out, "", "=", ","};
    char address[REPORT_ADDRESS_MAX];
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        const struct connection *c = s->connection[i];
        if (!c) continue;
        report_address(c, address);
        report_print(out, " /%s[%d](", address, c == asking ? 0 : report_interest(c));
        report_connection(c, brief, print_item, &lines);
        out->used--; /* the last comma */
        report_print(out, ")\n");
    }
    report_print(out, "\n");
}

static void word_cons(struct connection *c, struct bytes *out) { print_connections(c, false, out); }

static void word_stat(struct connection *c, struct bytes *out) {
    print_version(out);
    report_print(out, "Clients:\n");
    print_connections(c, true, out);
    print_state(c->server, out);
}

/* ---- Sessions ---- */

/* Each set ends at one time. */
static void print_sets(struct bytes *out, const char *title, const struct expiry *list,
                       size_t count) {
    size_t sets = 0;
    char when[40], address[REPORT_ADDRESS_MAX];
    const struct expiry *end = list + count;
    for (const struct expiry *at = list; at < end; at += report_same_time(at, end)) sets++;
    report_print(out, "%s Sets (%zu)/(%zu):\n", title, sets, count);
    for (const struct expiry *at = list; at < end;) {
        size_t same = report_same_time(at, end);
        struct tm parts;
        gmtime_r(&(time_t){at->at_ms / 1000}, &parts);
        strftime(when, sizeof when, "%a %b %d %H:%M:%S UTC %Y", &parts);
        report_print(out, "%zu expire at %s:\n", same, when);
        for (const struct expiry *next = at + same; at < next; at++) {
            report_print(out, "\t");
            if (at->connection) {
                report_address(at->connection, address);
                report_print(out, "ip: /%s sessionId: ", address);
            }
            print_id(out, at->session);
            report_print(out, "\n");
        }
    }
}

static void print_ephemerals(const struct server *s, struct bytes *out) {
    const struct sessions *sessions = &s->tree.sessions;
    uint32_t owners = 0;
    for (uint32_t i = 1; i <= sessions->places; i++)
        owners += sessions->at[i].id && sessions->at[i].owned;
    report_print(out, "ephemeral nodes dump:\nSessions with Ephemerals (%u):\n", owners);
    for (uint32_t i = 1; i <= sessions->places; i++) {
        if (!sessions->at[i].id || !sessions->at[i].owned) continue;
        print_id(out, sessions->at[i].id);
        report_print(out, ":\n");
        for (node_id id = sessions->at[i].owned; id; id = s->tree.node[id].next_owned) {
            report_print(out, "\t");
            tree_path(&s->tree, id, out);
            report_print(out, "\n");
        }
    }
}

static void word_dump(struct connection *c, struct bytes *out) {
    struct expiry *list;
    size_t count = report_sessions(c->server, &list);
    report_print(out, "SessionTracker dump:\n");
    print_sets(out, "Session", list, count);
    free(list);
    print_ephemerals(c->server, out);
    count = report_connections(c->server, &list);
    report_print(out, "Connections dump:\n");
    print_sets(out, "Connections", list, count);
    free(list);
}

/* ---- Watches: as in the original, those for data ---- */

static void word_wchs(struct connection *c, struct bytes *out) {
    struct watch_count count = report_watches(c->server);
    report_print(out, "%u connections watching %u paths\nTotal watches:%u\n", count.connections,
                 count.paths, count.watches);
}

static void word_wchc(struct connection *c, struct bytes *out) {
    const struct server *s = c->server;
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        uint32_t watch = report_watch_held(s, i, 0);
        if (!watch) continue;
        print_id(out, s->connection[i]->session_id);
        for (; watch; watch = report_watch_held(s, i, watch)) {
            report_print(out, "\n\t");
            print_path(out, report_watched(s, s->watches.watch[watch].path));
        }
        report_print(out, "\n");
    }
    report_print(out, "\n");
}

static void word_wchp(struct connection *c, struct bytes *out) {
    const struct server *s = c->server;
    for (uint32_t i = 1; i <= s->watches.path_places; i++) {
        uint32_t watch = report_watch_at(s, i, 0);
        if (!watch) continue;
        print_path(out, report_watched(s, i));
        for (; watch; watch = report_watch_at(s, i, watch)) {
            report_print(out, "\n\t");
            print_id(out, s->connection[s->watches.watch[watch].connection]->session_id);
        }
        report_print(out, "\n");
    }
    report_print(out, "\n");
}

/* ---- Those that change something ---- */

static void word_crst(struct connection *c, struct bytes *out) {
    const struct server *s = c->server;
    for (uint32_t i = 1; i <= s->connection_places; i++)
        if (s->connection[i]) connection_count_anew(s->connection[i]);
    report_print(out, "Connection stats reset.\n");
}

static void word_srst(struct connection *c, struct bytes *out) {
    c->server->statistics = (struct statistics){0};
    report_print(out, "Server stats reset.\n");
}

/* Nothing is traced here, but who sets the mask can read it back. */
static void word_gtmk(struct connection *c, struct bytes *out) {
    report_print(out, "%" PRId64, c->server->trace_mask);
}

static void word_stmk(struct connection *c, struct bytes *out) {
    struct zk_in in = zk_in_of(c->in.at + 4, c->in.used - 4);
    zk_read_i64(&in, &c->server->trace_mask);
    word_gtmk(c, out);
}

/* The digests of past states, of which there are none. */
static void word_hash(struct connection *c, struct bytes *out) { (void)c, (void)out; }

/* ---- All of them ---- */

#define WORDS(W)                                                                                   \
    W(conf)                                                                                        \
    W(cons)                                                                                        \
    W(crst)                                                                                        \
    W(dirs)                                                                                        \
    W(dump)                                                                                        \
    W(envi)                                                                                        \
    W(gtmk)                                                                                        \
    W(hash)                                                                                        \
    W(isro)                                                                                        \
    W(mntr)                                                                                        \
    W(ruok)                                                                                        \
    W(srst)                                                                                        \
    W(srvr)                                                                                        \
    W(stat)                                                                                        \
    W(stmk)                                                                                        \
    W(wchc)                                                                                        \
    W(wchp)                                                                                        \
    W(wchs)

static const struct word {
    const char *name;
    void (*answer)(struct connection *c, struct bytes *out);
} words[] = {
#define WORD_ROW(NAME) {#NAME, word_##NAME},
    WORDS(WORD_ROW)};

bool word_answer(struct connection *c, const unsigned char *bytes) {
    enum { MASK_SIZE = 8 };
    struct bytes *out = &c->stream.out;
    const struct word *word = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memcmp(bytes, words[i].name, 4) == 0) word = &words[i];
    if (!word) return false;
    if (word->answer == word_stmk && c->in.used < 4 + MASK_SIZE)
        return true; /* until it is all there */
    c->received++;
    c->server->statistics.received++;
    if (settings_allows(&c->server->settings, word->name))
        word->answer(c, out);
    else
        report_print(out, "%s is not executed because it is not in the whitelist.\n", word->name);
    connection_end_after(c);
    return true;
}
