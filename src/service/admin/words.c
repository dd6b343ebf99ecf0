/* Four-letter words: an operator, or a monitoring agent, sends one to a client port and gets plain
 * text.  Formats are those of ZooKeeper 3.8, which programs parse. */
#include <inttypes.h>
#include <stdio.h>

#include "service/admin/internal.h"

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

/* ---- The server ---- */

void word_print_version(struct bytes *out) {
    report_print(out, "Zookeeper version: %s\n", report_version);
}

void word_print_state(const struct server *s, struct bytes *out) {
    struct tally latency = report_latency(s);
    report_print(out, "Latency min/avg/max: %" PRIu64 "/%.3f/%" PRIu64 "\n", latency.min / 1000,
                 tally_average(&latency) / 1000, tally_max_ms(&latency));
    report_print(out, "Received: %" PRIu64 "\nSent: %" PRIu64 "\n", s->statistics.received,
                 s->statistics.sent);
    report_print(out, "Connections: %u\nOutstanding: %zu\n", s->connections.count,
                 ensemble_pending(s->ensemble));
    report_print(out, "Zxid: 0x%" PRIx64 "\nMode: %s\nNode count: %u\n", (uint64_t)s->tree.zxid,
                 report_mode(s), s->tree.nodes);
    if (ensemble_is_standalone(s->ensemble) || !ensemble_leads(s->ensemble)) return;
    const struct tally *sizes = &ensemble_statistics(s->ensemble)->proposal_sizes;
    uint64_t none = sizes->count ? 0 : UINT64_MAX; /* read as -1 */
    report_print(out, "Proposal sizes last/min/max: %" PRId64 "/%" PRId64 "/%" PRId64 "\n",
                 (int64_t)(sizes->last | none), (int64_t)(sizes->min | none),
                 (int64_t)(sizes->max | none));
}

static void word_srvr(struct connection *c, struct bytes *out) {
    word_print_version(out);
    word_print_state(c->server, out);
}

static void word_mntr(struct connection *c, struct bytes *out) {
    struct lines lines = {out, "zk_", "\t", "\n"};
    report_print(out, "zk_version\t%s\nzk_server_state\t%s\n", report_version,
                 report_mode(c->server));
    const char *peer_state = report_peer_state(c->server);
    if (peer_state) report_print(out, "zk_peer_state\t%s\n", peer_state);
    report_figures(c->server, print_item, &lines);
}

static void word_conf(struct connection *c, struct bytes *out) {
    struct lines lines = {out, "", "=", "\n"};
    report_configuration(c->server, print_item, &lines);
    struct zk_text members = report_membership(c->server);
    if (members.size > 0) report_print(out, "membership: \n%.*s", members.size, members.at);
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

/* Without a leader nothing is served, unless that is read-only; ZooKeeper calls that null. */
static void word_isro(struct connection *c, struct bytes *out) {
    const struct server *s = c->server;
    bool leaderless = ensemble_is_leaderless(s->ensemble);
    bool serves = !leaderless && strcmp(report_mode(s), "looking") != 0;
    report_print(out, "%s",
                 serves                                     ? "rw"
                 : leaderless && s->settings.read_only_mode ? "ro"
                                                            : "null");
}

void word_print_connection(const struct connection *c, bool brief, struct bytes *out) {
    struct lines lines = {out, "", "=", ","};
    report_connection(c, brief, print_item, &lines);
    out->used--; /* the last comma */
}

/* ---- Watches: as in ZooKeeper, those for data ---- */

static void word_wchs(struct connection *c, struct bytes *out) {
    struct watch_count count = report_watches(c->server);
    report_print(out, "%u connections watching %u paths\nTotal watches:%u\n", count.connections,
                 count.paths, count.watches);
}

/* ---- Those that change something ---- */

void word_reset_connections(const struct server *s) {
    for (uint32_t i = 1; i <= s->connections.slots; i++)
        if (s->connections.at[i]) connection_reset_statistics(s->connections.at[i]);
}

void word_reset_server(struct server *s) {
    s->statistics = (struct statistics){0};
    ensemble_reset_statistics(s->ensemble);
    busy_reset(&s->work);
}

static void word_crst(struct connection *c, struct bytes *out) {
    word_reset_connections(c->server);
    report_print(out, "Connection stats reset.\n");
}

static void word_srst(struct connection *c, struct bytes *out) {
    word_reset_server(c->server);
    report_print(out, "Server stats reset.\n");
}

/* Nothing is traced here, but the mask can be set and read back. */
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

#define WORDS(W, LISTING)                                                                          \
    W(conf)                                                                                        \
    LISTING(cons)                                                                                  \
    W(crst)                                                                                        \
    W(dirs)                                                                                        \
    LISTING(dump)                                                                                  \
    W(envi)                                                                                        \
    W(gtmk)                                                                                        \
    W(hash)                                                                                        \
    W(isro)                                                                                        \
    W(mntr)                                                                                        \
    W(ruok)                                                                                        \
    W(srst)                                                                                        \
    W(srvr)                                                                                        \
    LISTING(stat)                                                                                  \
    W(stmk)                                                                                        \
    LISTING(wchc)                                                                                  \
    LISTING(wchp)                                                                                  \
    W(wchs)

static const struct word {
    const char *name;
    void (*answer)(struct connection *c, struct bytes *out); /* NULL: it is a listing */
} words[] = {
#define WORD_ROW(NAME)    {#NAME, word_##NAME},
#define LISTING_ROW(NAME) {#NAME, NULL},
    WORDS(WORD_ROW, LISTING_ROW)};

static bool is_word(const char *name) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i].name) == 0) return true;
    return strcmp(name, "*") == 0;
}

void words_check(const struct settings *settings) {
    char name[SETTINGS_TEXT_MAX];
    for (const char *at = settings->words; *at; at += strcspn(at, ",")) {
        at += strspn(at, ", ");
        size_t size = strcspn(at, ",");
        while (size && at[size - 1] == ' ') size--;
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        if (size && !is_word(name))
            logger_warning("there is no such four-letter word", LOGGER_STRING("word", name),
                           LOGGER_STRING("setting", "4lw.commands.whitelist"));
    }
}

static void note(struct connection *c) {
    c->received++;
    c->server->statistics.received++;
}

/* Goes on with a listing; false: not all of it is there yet, and it takes another iteration. */
static bool list(struct connection *c, const struct word *word) {
    struct server *s = c->server;
    struct reading *reading = &s->reading;
    bool begun = reading->connection == c->number;
    connection_wait(c);
    net_read(&c->stream, false); /* who asks may have closed its end, and waits for the answer */
    if (!begun && reading_is_on(s)) return false;
    if (!begun) {
        note(c);
        *reading =
            (struct reading){.connection = c->number, .listing = listing_of_word(c, word->name)};
    }
    bool ended = listing_write(reading->listing, &reading->reply, &s->steps.reading);
    if (!memory_allows_answer(s, reading->reply.used)) {
        s->statistics.refused[REFUSED_memory]++;
        bytes_close(&reading->reply);
        memory_measure(s);
        report_print(&reading->reply, "The answer does not fit into the memory.\n");
        ended = true;
    }
    if (!ended) return false;
    bytes_close(&c->stream.out);
    c->stream.out = reading->reply;
    reading->reply = (struct bytes){0};
    reading_drop(s);
    return true;
}

/* False: it is not complete, or its answer is not. */
static bool answer(struct connection *c, const struct word *word) {
    enum { MASK_SIZE = 8 };
    bool allowed = settings_allows(&c->server->settings, word->name);
    if (word->answer == word_stmk && c->in.used < 4 + MASK_SIZE)
        return false; /* until it is complete */
    if (allowed && !word->answer) return list(c, word);
    note(c);
    if (!allowed)
        report_print(&c->stream.out, "%s is not executed because it is not in the whitelist.\n",
                     word->name);
    else
        word->answer(c, &c->stream.out);
    return true;
}

bool word_answer(struct connection *c, const unsigned char *bytes) {
    const struct word *word = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memcmp(bytes, words[i].name, 4) == 0) word = &words[i];
    if (!word) return false;
    enum busy_kind before = busy_with(&c->server->work, BUSY_REPORTS);
    bool answered = answer(c, word);
    busy_with(&c->server->work, before);
    if (answered) connection_end_after(c);
    return true;
}
