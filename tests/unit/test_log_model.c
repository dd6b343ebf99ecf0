/* The log of a member of an ensemble against a model: entries that are appended, replaced,
 * committed, torn, trimmed and overtaken by snapshots, in random order, are read back as they must
 * be. */
#include <inttypes.h>

#include "base/rng.h"
#include "file_help.h"
#include "service/log/log.h"
#include "service/log/window.h"

enum { HISTORIES = 70, STEPS = 120, ENTRIES_MAX = 4096, SNAPSHOTS = 8, SEGMENT = 700 };

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
    uint64_t last, commit_index;     /* durable entries; commit index of their batches */
    uint64_t snapshot_index;         /* entries up to here are only in a snapshot */
    uint64_t term;                   /* the newest there was */
    uint64_t contents;
    struct {
        uint64_t index, term;
    } snapshot[SNAPSHOTS]; /* oldest first; the first may be of entry 0 */
    size_t snapshots;
    bool old_format; /* for some time */
    struct bytes bytes;
    struct window window;
    uint64_t applied; /* during a replay: committed and compared with the model */
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
    while (m->applied < batch->commit_index) { /* final, so compared at once */
        window_entry(&m->window, ++m->applied, &entry);
        expect_known(m, &entry);
    }
    window_trim(&m->window, m->applied);
    return 0;
}

/* Opens from a snapshot: exactly the entries after it are there. */
static void open_from(struct model *m, size_t snapshot, bool read_only, bool is_torn) {
    struct raft_entry entry;
    uint64_t after = m->snapshot[snapshot].index;
    enum log_state end;
    m->log = (struct log){.segment_bytes = SEGMENT,
                          .no_sync = true,
                          .read_only = read_only,
                          .old_format = m->old_format};
    window_open(&m->window, after);
    m->applied = after;
    if (log_open(&m->log, m->place.directory, m->place.path, after, m->snapshot[snapshot].term,
                 take, m, &end) != 0)
        fail_msg("%s", m->log.message);
    assert_int_equal(end, is_torn ? LOG_TORN : LOG_WHOLE);
    uint64_t expected = m->commit_index > after ? m->commit_index : after;
    uint64_t last = m->last > after ? m->last : after;
    assert_int_equal(window_last(&m->window), last);
    assert_int_equal(m->log.end.next_index, last + 1);
    assert_int_equal(m->applied, expected < last ? expected : last);
    assert_true(m->log.end.commit_index >= expected);
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

/* ---- Events ---- */

/* A batch of new entries from an index on. */
static struct raft_batch make(struct model *m, uint64_t first, struct known *entry) {
    uint64_t min_term = first > m->snapshot_index + 1 ? m->entry[first - 1].term
                                                      : m->snapshot[m->snapshots - 1].term;
    enum raft_kind kind = below(m, 8) ? RAFT_NORMAL : RAFT_CONFIG;
    uint32_t count = kind == RAFT_CONFIG ? 1 : 1 + (uint32_t)below(m, 5);
    if (first == m->last + 1 && !below(m, 6)) m->term++;
    if (first <= m->last) m->term++;
    /* Entries that replace others may be older than those, if their leader came back. */
    uint64_t term = below(m, 3) || first == m->last + 1 ? m->term : min_term;
    m->bytes.used = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = below(m, 5) ? (uint32_t)below(m, 60) : 0;
        entry[i] = (struct known){++m->contents, term, size, kind};
        memcpy(bytes_extend(&m->bytes, sizeof size), &size, sizeof size);
        unsigned char *to = bytes_extend(&m->bytes, size);
        for (uint32_t j = 0; j < size; j++) to[j] = (unsigned char)(m->contents >> j % 8 * 8);
    }
    uint64_t commit_index = m->commit_index + below(m, first + count - m->commit_index);
    return (struct raft_batch){.first = first,
                               .term = term,
                               .commit_index = below(m, 4) ? commit_index : 0,
                               .count = count,
                               .kind = kind,
                               .bytes = m->bytes.at,
                               .size = m->bytes.used};
}

static void learn(struct model *m, const struct raft_batch *batch, const struct known *entry) {
    for (uint32_t i = 0; i < batch->count; i++) m->entry[batch->first + i] = entry[i];
    m->last = raft_batch_last(batch);
    if (batch->commit_index > m->commit_index) m->commit_index = batch->commit_index;
}

static uint64_t any_first(struct model *m) { /* for a batch to begin */
    uint64_t commit_index =
        m->commit_index > m->snapshot_index ? m->commit_index : m->snapshot_index;
    return below(m, 3) ? m->last + 1 : commit_index + 1 + below(m, m->last - commit_index + 1);
}

static void append(struct model *m) {
    struct known entry[8];
    struct raft_batch batch = make(m, any_first(m), entry);
    assert_int_equal(log_append(&m->log, &batch), 0);
    learn(m, &batch, entry);
}

/* A crash while a batch is written: the end is missing, or the first of its sectors. */
static void tear(struct model *m) {
    enum { HEADER = 56, OLD_HEADER = 48, END_MARK = 8, SECTOR = 512 };
    struct known entry[8];
    struct raft_batch batch = make(m, any_first(m), entry);
    char name[32];
    assert_int_equal(log_append(&m->log, &batch), 0);
    uint64_t end = m->log.end.offset;
    uint64_t header = m->log.old_segment ? OLD_HEADER : HEADER;
    uint64_t begin = end - (header + batch.size + 7) / 8 * 8;
    if (!m->log.old_segment) begin -= END_MARK;
    uint64_t second = begin / SECTOR * SECTOR + SECTOR;
    snprintf(name, sizeof name, "log.%016" PRIx64, m->log.segment[m->log.segments - 1].sequence);
    struct bytes file = file_read(&m->place, name);
    bool is_torn = false;
    if (second < end && below(m, 2)) {
        memset(file.at + begin, 0, second - begin);
    } else {
        uint64_t from = begin + below(m, header - 3); /* without the header's checksum */
        memset(file.at + from, 0, end - from);
    }
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
    if (m->commit_index <= newest) return;
    uint64_t index = newest + 1 + below(m, m->commit_index - newest);
    add_snapshot(m, index, m->entry[index].term);
}

static void trim(struct model *m) {
    size_t gone = below(m, m->snapshots);
    m->snapshots -= gone;
    memmove(m->snapshot, m->snapshot + gone, m->snapshots * sizeof *m->snapshot);
    assert_int_equal(log_trim(&m->log, m->snapshot[0].index), 0);
    for (size_t i = 1; i < m->log.segments; i++)
        assert_true(m->log.segment[i].next_index > m->snapshot[0].index + 1);
}

/* A snapshot comes from another server, and then perhaps a crash. */
static void install(struct model *m) {
    uint64_t commit_index =
        m->commit_index > m->snapshot_index ? m->commit_index : m->snapshot_index;
    uint64_t index = commit_index + 1 + below(m, m->last - commit_index + 5);
    bool agrees = index <= m->last && below(m, 2), crash = below(m, 2);
    uint64_t term = agrees ? m->entry[index].term : ++m->term;
    m->snapshots = 0;
    add_snapshot(m, index, term);
    m->commit_index = m->snapshot_index = index;
    if (!crash) log_reset(&m->log, index, term);
    if (!crash || !agrees) m->last = index;
    if (crash) log_close(&m->log);
    if (crash) open_from(m, 0, false, false);
    if (!crash && agrees) append(m); /* only this removes the later entries for good */
}

/* ---- Examining ---- */

struct looked {
    uint64_t next;
    size_t segments, bad, gaps;
};

static void look(void *context, const struct log_finding *found) {
    struct looked *l = context;
    l->next = found->next_index;
    l->bad += found->state != LOG_WHOLE;
    l->gaps += l->segments++ && !found->continues;
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
    m->old_format = seed % 2;
    open_from(m, 0, false, false);
    size_t installed = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t what = below(m, 40);
        if (step == STEPS / 2) m->log.old_format = m->old_format = false;
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

static void replaced_entries_are_gone(void **state) {
    (void)state;
    histories(false);
}

static void snapshots_of_others_overtake_the_log(void **state) {
    (void)state;
    histories(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaced_entries_are_gone),
        cmocka_unit_test(snapshots_of_others_overtake_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
