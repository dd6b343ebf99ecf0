/* The log of a member of an ensemble against a model: entries that are appended, replaced, decided,
 * torn, trimmed and overtaken by snapshots, in random order, come back as they must. */
#include <inttypes.h>

#include "base/rng.h"
#include "file_help.h"
#include "raft/log.h"
#include "raft/window.h"

enum { HISTORIES = 40, STEPS = 120, ENTRIES_MAX = 4096, SNAPSHOTS = 8, SEGMENT = 700 };

struct known {        /* an entry */
    uint64_t content; /* different for each */
    uint64_t term;
    size_t size;
    enum raft_kind kind;
};

struct model {
    struct place place;
    struct log log;
    struct rng rng;
    struct known entry[ENTRIES_MAX]; /* by index */
    uint64_t last, committed;        /* of what is durable; what its batches say is decided */
    uint64_t base;                   /* entries up to here are only in a snapshot */
    uint64_t term;                   /* the newest there was */
    uint64_t contents;
    struct {
        uint64_t index, term;
    } snapshot[SNAPSHOTS]; /* oldest first; there is always one, if only of nothing */
    size_t snapshots;
    struct bytes bytes;
    struct window window;
    uint64_t applied; /* when it is replayed: decided and compared with the model */
};

static uint64_t below(struct model *m, uint64_t bound) { return rng_below(&m->rng, bound); }

static void expect_known(const struct model *m, const struct raft_entry *entry) {
    const struct known *known = &m->entry[entry->index];
    assert_int_equal(entry->term, known->term);
    assert_int_equal(entry->kind, known->kind);
    assert_int_equal(entry->size, known->size);
    for (size_t i = 0; i < entry->size; i++)
        assert_int_equal(entry->bytes[i], (unsigned char)(known->content >> i % 8 * 8));
}

/* ---- Opening ---- */

static int take(void *context, const struct raft_batch *batch) {
    struct model *m = context;
    struct raft_entry entry;
    assert_true(window_append(&m->window, batch));
    while (m->applied < batch->committed) { /* is never taken back, so it must be right now */
        window_entry(&m->window, ++m->applied, &entry);
        expect_known(m, &entry);
    }
    window_trim(&m->window, m->applied);
    return 0;
}

/* From a snapshot: all behind it is there, what was decided first; and nothing else is. */
static void open_from(struct model *m, size_t snapshot, bool read_only, bool is_torn) {
    struct raft_entry entry;
    uint64_t after = m->snapshot[snapshot].index;
    bool cut;
    m->log = (struct log){.segment_bytes = SEGMENT, .no_sync = true, .read_only = read_only};
    window_open(&m->window, after);
    m->applied = after;
    if (log_open(&m->log, m->place.directory, m->place.path, after, m->snapshot[snapshot].term,
                 take, m, &cut) != 0)
        fail_msg("%s", m->log.message);
    assert_int_equal(cut, is_torn);
    uint64_t committed = m->committed > after ? m->committed : after;
    uint64_t last = m->last > after ? m->last : after;
    assert_int_equal(window_last(&m->window), last);
    assert_int_equal(m->log.end.next, last + 1);
    assert_int_equal(m->applied, committed < last ? committed : last);
    assert_true(m->log.end.committed >= committed);
    while (m->applied < last) {
        window_entry(&m->window, ++m->applied, &entry);
        expect_known(m, &entry);
    }
    window_close(&m->window);
}

static void reopen(struct model *m, bool is_torn) {
    log_close(&m->log);
    open_from(m, below(m, m->snapshots), true, is_torn);
    log_close(&m->log);
    open_from(m, m->snapshots - 1, false, is_torn);
}

/* ---- What happens ---- */

/* A batch from an entry on, of entries that the model does not know yet. */
static struct raft_batch make(struct model *m, uint64_t first, struct known *entry) {
    uint64_t least =
        first > m->base + 1 ? m->entry[first - 1].term : m->snapshot[m->snapshots - 1].term;
    enum raft_kind kind = below(m, 8) ? RAFT_NORMAL : RAFT_CONFIG;
    uint32_t count = kind == RAFT_CONFIG ? 1 : 1 + (uint32_t)below(m, 5);
    if (first == m->last + 1 && !below(m, 6)) m->term++;
    if (first <= m->last) m->term++;
    /* Entries that replace others may be older than those, if their leader came back. */
    uint64_t term = below(m, 3) || first == m->last + 1 ? m->term : least;
    m->bytes.used = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = below(m, 5) ? (uint32_t)below(m, 60) : 0;
        entry[i] = (struct known){++m->contents, term, size, kind};
        memcpy(bytes_extend(&m->bytes, sizeof size), &size, sizeof size);
        unsigned char *to = bytes_extend(&m->bytes, size);
        for (uint32_t j = 0; j < size; j++) to[j] = (unsigned char)(m->contents >> j % 8 * 8);
    }
    uint64_t decided = m->committed + below(m, first + count - m->committed);
    return (struct raft_batch){.first = first,
                               .term = term,
                               .committed = below(m, 4) ? decided : 0,
                               .count = count,
                               .kind = kind,
                               .bytes = m->bytes.at,
                               .size = m->bytes.used};
}

static void learn(struct model *m, const struct raft_batch *batch, const struct known *entry) {
    for (uint32_t i = 0; i < batch->count; i++) m->entry[batch->first + i] = entry[i];
    m->last = raft_batch_last(batch);
    if (batch->committed > m->committed) m->committed = batch->committed;
}

static uint64_t any_place(struct model *m) { /* for a batch to begin */
    uint64_t decided = m->committed > m->base ? m->committed : m->base;
    return below(m, 3) ? m->last + 1 : decided + 1 + below(m, m->last - decided + 1);
}

static void append(struct model *m) {
    struct known entry[8];
    struct raft_batch batch = make(m, any_place(m), entry);
    assert_int_equal(log_append(&m->log, &batch), 0);
    learn(m, &batch, entry);
}

/* A crash while a batch is written: any part of it may be on the disk, but not all. */
static void tear(struct model *m) {
    struct known entry[8];
    struct raft_batch batch = make(m, any_place(m), entry);
    char name[32];
    assert_int_equal(log_append(&m->log, &batch), 0);
    uint64_t end = m->log.end.at, begin = end - (48 + batch.size + 7) / 8 * 8;
    snprintf(name, sizeof name, "log.%016" PRIx64, m->log.segment[m->log.segments - 1].sequence);
    struct bytes file = file_read(&m->place, name);
    uint64_t from = begin + below(m, 40);
    bool is_torn = false;
    for (uint64_t i = from; i < end; i++)
        file.at[i] = below(m, 2) ? 0 : (unsigned char)below(m, 256);
    file.at[begin + 36] ^= 1; /* the kind, so that something is missing for sure */
    for (uint64_t i = begin; i < end; i++) is_torn |= file.at[i];
    file_write(&m->place, name, file.at, file.used);
    bytes_close(&file);
    log_close(&m->log);
    open_from(m, m->snapshots - 1, false, is_torn);
}

static void add_snapshot(struct model *m, uint64_t index, uint64_t term) {
    if (m->snapshots == SNAPSHOTS)
        memmove(m->snapshot, m->snapshot + 1, --m->snapshots * sizeof *m->snapshot);
    m->snapshot[m->snapshots].index = index;
    m->snapshot[m->snapshots++].term = term;
}

static void take_snapshot(struct model *m) {
    uint64_t newest = m->snapshot[m->snapshots - 1].index;
    if (m->committed <= newest) return;
    uint64_t index = newest + 1 + below(m, m->committed - newest);
    add_snapshot(m, index, m->entry[index].term);
}

static void trim(struct model *m) {
    size_t gone = below(m, m->snapshots);
    m->snapshots -= gone;
    memmove(m->snapshot, m->snapshot + gone, m->snapshots * sizeof *m->snapshot);
    assert_int_equal(log_trim(&m->log, m->snapshot[0].index), 0);
    for (size_t i = 1; i < m->log.segments; i++)
        assert_true(m->log.segment[i].next > m->snapshot[0].index + 1);
}

/* A snapshot comes from another server, and then perhaps a crash. */
static void install(struct model *m) {
    uint64_t decided = m->committed > m->base ? m->committed : m->base;
    uint64_t index = decided + 1 + below(m, m->last - decided + 5);
    bool agrees = index <= m->last && below(m, 2), crash = below(m, 2);
    uint64_t term = agrees ? m->entry[index].term : ++m->term;
    m->snapshots = 0;
    add_snapshot(m, index, term);
    m->committed = m->base = index;
    if (!crash) log_reset(&m->log, index, term);
    if (!crash || !agrees) m->last = index;
    if (crash) log_close(&m->log);
    if (crash) open_from(m, 0, false, false);
    if (!crash && agrees)
        append(m); /* only from then on is what follows in the log gone for good */
}

/* ---- Looking ---- */

struct looked {
    uint64_t next;
    size_t segments, bad, gaps;
};

static void look(void *context, const struct log_finding *found) {
    struct looked *l = context;
    l->next = found->next;
    l->bad += found->state != LOG_WHOLE;
    l->gaps += l->segments++ && !found->leads_on;
}

static void examine(struct model *m, size_t gaps_max) {
    struct looked l = {0};
    struct log log;
    assert_int_equal(log_examine(&log, m->place.directory, m->place.path, look, &l), 0);
    log_close(&log);
    assert_int_equal(l.bad, 0);
    assert_true(l.gaps <= gaps_max);
    if (m->log.file >= 0) assert_int_equal(l.next, m->last + 1);
}

/* ---- Histories ---- */

static void run(struct model *m, uint64_t seed, bool installs) {
    place_open(&m->place);
    rng_seed(&m->rng, seed);
    m->snapshots = 1;
    m->term = 1;
    open_from(m, 0, false, false);
    size_t installed = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t what = below(m, 40);
        if (what < 30) append(m);
        if (what == 30 || what == 31) tear(m);
        if (what == 32 || what == 33) take_snapshot(m);
        if (what == 34) trim(m);
        if (what == 35 && installs) install(m), installed++;
        if (what >= 36) reopen(m, false);
        if (what == 36) examine(m, installed);
    }
    reopen(m, false);
    log_close(&m->log);
    bytes_close(&m->bytes);
    place_close(&m->place);
}

static void histories(bool installs) {
    struct model *m = malloc(sizeof *m);
    assert_non_null(m);
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        memset(m, 0, sizeof *m);
        run(m, seed, installs);
    }
    free(m);
}

static void what_is_replaced_is_gone(void **state) {
    (void)state;
    histories(false);
}

static void snapshots_of_others_overtake_it(void **state) {
    (void)state;
    histories(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_replaced_is_gone),
        cmocka_unit_test(snapshots_of_others_overtake_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
