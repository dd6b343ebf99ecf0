/* What is left of a damaged log: journals as a member writes them under changing leaders, with
 * damage anywhere.  What is taken for intact is what the log held in the end; what is lacking can
 * be filled in by other logs, by the three rules of the ensemble; and the log that is written then
 * is the one that was there. */
#include <inttypes.h>
#include <string.h>

#include "base/rng.h"
#include "file_help.h"
#include "service/log/salvage.h"

enum {
    SEGMENT = 2048,
    ENTRIES_MAX = 400,
    TERMS_MAX = 40,
    BYTES_MAX = 200,
    STEPS = 30,
    SEGMENT_HEADER = 80
};

/* ---- Leaders, and a member that follows them ---- */

struct ledger { /* a log: the term of each entry, from 1 on */
    uint64_t term[ENTRIES_MAX + 1], last;
};

static struct place place;
static struct rng rng;
static struct ledger leader[TERMS_MAX + 1], own;
static uint64_t term, commit_index;

static uint32_t bytes_of(uint64_t index, uint64_t of_term, unsigned char *to) {
    uint32_t size = (uint32_t)((index * 31 + of_term * 7) % 90);
    memcpy(to, &size, sizeof size);
    memset(to + 4, (int)(1 + (index * 13 + of_term) % 250), size);
    return size + 4;
}

static struct raft_batch batch_of(const struct ledger *log, uint64_t first, uint64_t last) {
    static unsigned char bytes[16 * BYTES_MAX];
    struct raft_batch batch = {.first = first, .term = log->term[first], .bytes = bytes};
    for (uint64_t i = first; i <= last && log->term[i] == batch.term && batch.count < 8; i++) {
        batch.size += bytes_of(i, batch.term, bytes + batch.size);
        batch.count++;
    }
    return batch;
}

static bool agree(const struct ledger *a, const struct ledger *b, uint64_t last) {
    if (a->last < last || b->last < last) return false;
    return !last || memcmp(a->term + 1, b->term + 1, last * sizeof *a->term) == 0;
}

/* Its log begins as that of an earlier leader, or of this member, with all that is committed. */
static void new_leader(void) {
    const struct ledger *base = &own;
    uint64_t chosen = rng_below(&rng, term + 1);
    if (chosen && agree(&leader[chosen], &own, commit_index)) base = &leader[chosen];
    struct ledger *next = &leader[++term];
    *next = *base;
    next->last = commit_index + rng_below(&rng, base->last - commit_index + 1);
    next->term[++next->last] = term;
}

static void follow(struct log *log, uint64_t count) {
    struct ledger *from = &leader[term];
    uint64_t first = 1;
    while (count-- && from->last < ENTRIES_MAX) from->term[++from->last] = term;
    while (first <= own.last && first <= from->last && own.term[first] == from->term[first])
        first++;
    for (uint64_t stop = from->last - rng_below(&rng, 2); first <= stop;) {
        struct raft_batch batch = batch_of(from, first, stop);
        batch.commit_index = commit_index < raft_batch_last(&batch) ? commit_index : 0;
        if (!batch.commit_index) batch.commit_index = first - 1 < commit_index ? first - 1 : 0;
        assert_int_equal(log_append(log, &batch), 0);
        own.last = raft_batch_last(&batch);
        memcpy(own.term, from->term, sizeof own.term);
        first = own.last + 1;
    }
    bool is_leaders = agree(&own, from, own.last) && own.term[own.last] == term;
    if (is_leaders && rng_chance(&rng, 0.6)) commit_index = own.last;
}

static int ignore(void *context, const struct raft_batch *batch) {
    return (void)context, (void)batch, 0;
}

/* A disk is waited for in few of them: without that there is no mark. */
static void write_journal(uint64_t seed, bool synced) {
    struct log log = {.segment_bytes = SEGMENT};
    enum log_state end;
    rng_seed(&rng, seed);
    own = (struct ledger){0};
    term = commit_index = 0;
    log.old_format = rng_chance(&rng, 0.2);
    log.no_sync = !synced;
    assert_int_equal(log_open(&log, place.directory, place.path, 0, 0, ignore, NULL, &end), 0);
    double changes = rng_unit(&rng) * 0.6;
    for (unsigned i = 0; i < STEPS && term < TERMS_MAX && own.last < ENTRIES_MAX - 20; i++) {
        if (!term || rng_chance(&rng, changes)) new_leader();
        follow(&log, rng_below(&rng, 8));
    }
    log_close(&log);
}

/* ---- Damage ---- */

static char names[64][32];
static unsigned name_count;

static void note_segment(int directory, const char *name) {
    (void)directory;
    if (strncmp(name, "log.", 4) == 0) snprintf(names[name_count++], sizeof *names, "%.31s", name);
}

static void damage(void) {
    name_count = 0;
    each_file(&place, note_segment);
    const char *name = names[rng_below(&rng, name_count)];
    struct bytes file = file_read(&place, name);
    size_t used = file.used;
    while (used && !file.at[used - 1]) used--;
    size_t at = (size_t)rng_below(&rng, used), length = 1;
    if (rng_chance(&rng, 0.3)) length = 1 + (size_t)rng_below(&rng, 400);
    for (size_t i = at; i < used && i < at + length; i++)
        file.at[i] ^= (unsigned char)(1 + rng_below(&rng, 255));
    if (rng_chance(&rng, 0.05))
        remove_file(place.directory, name);
    else
        file_write(&place, name, file.at, file.used);
    bytes_close(&file);
}

static bool open_salvage(struct salvage *s) {
    assert_int_equal(salvage_open(s, place.directory, place.path, 0, 0, 0, term), 0);
    assert_false(s->illogical);
    return !s->tail_lost;
}

static void expect_entry(const struct raft_batch *batch, uint64_t index, uint64_t of_term) {
    unsigned char bytes[BYTES_MAX];
    assert_int_equal(batch->first, index);
    assert_int_equal(batch->term, of_term);
    assert_int_equal(batch->size, bytes_of(index, of_term, bytes));
    assert_memory_equal(batch->bytes, bytes, batch->size);
}

/* Whatever is known of an entry is right. */
static void expect_sound(struct salvage *s) {
    struct raft_batch batch;
    assert_int_equal(salvage_last(s), own.last);
    assert_true(s->commit_index <= commit_index);
    for (uint64_t i = 1; i <= own.last; i++) {
        uint64_t known = salvage_term_at(s, i);
        if (known) assert_int_equal(known, own.term[i]);
        if (salvage_read(s, i, i, SIZE_MAX, &batch)) expect_entry(&batch, i, own.term[i]);
    }
}

/* Another log fills what it can prove to have; false: nothing. */
static bool fill(struct salvage *s, const struct ledger *from, uint64_t from_commit) {
    struct salvage_hole hole;
    bool filled = false;
    for (uint64_t at = 0; salvage_find_hole(s, at, &hole); at = hole.last + 1) {
        if (from->last < hole.first) continue;
        bool pinned = hole.pin_index && hole.pin_index <= from->last &&
                      from->term[hole.pin_index] == hole.pin_term;
        uint64_t stop = hole.last < from->last ? hole.last : from->last;
        struct raft_batch batch = batch_of(from, hole.first, stop);
        uint64_t last = salvage_recognize(s, &hole, &batch, pinned, from_commit);
        if (!last) continue;
        for (uint64_t i = hole.first; i <= last && i <= hole.last; i++)
            assert_int_equal(from->term[i], own.term[i]); /* it is the one that was lost */
        salvage_fill(s, &batch, last);
        filled = true;
    }
    return filled;
}

static struct ledger replayed;

static int replay(void *context, const struct raft_batch *batch) {
    struct raft_batch one = *batch;
    struct raft_entry entry;
    size_t at = 0;
    (void)context;
    replayed.last = batch->first - 1;
    while (raft_next(batch, &at, &entry)) {
        one.first = ++replayed.last;
        one.bytes = entry.bytes - RAFT_SIZE_BYTES;
        one.size = entry.size + RAFT_SIZE_BYTES;
        expect_entry(&one, replayed.last, batch->term);
        replayed.term[replayed.last] = batch->term;
    }
    return 0;
}

/* The log is as it was, and goes on. */
static void expect_mended(struct salvage *s) {
    struct log log = {.segment_bytes = SEGMENT, .no_sync = true};
    enum log_state end;
    assert_int_equal(salvage_write(s, rng_chance(&rng, 0.5), SEGMENT, true), 0);
    replayed = (struct ledger){0};
    assert_int_equal(log_open(&log, place.directory, place.path, 0, 0, replay, NULL, &end), 0);
    assert_int_equal(end, LOG_WHOLE);
    assert_int_equal(replayed.last, own.last);
    assert_true(agree(&replayed, &own, own.last));
    assert_true(log.end.commit_index <= commit_index);
    log_close(&log);
}

static void test_journals(void **state) {
    unsigned mended = 0, unknown = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct salvage s;
        place_open(&place);
        write_journal(seed, seed % 100 == 0);
        for (uint64_t i = 1 + rng_below(&rng, 4); i; i--) damage();
        bool known = open_salvage(&s);
        bool cut = salvage_last(&s) != own.last; /* a damaged header may look like a torn one */
        if (known && !cut) {
            expect_sound(&s);
            if (term < TERMS_MAX) { /* others went on without this member, and replaced its end */
                new_leader();
                while (leader[term].last < own.last) leader[term].term[++leader[term].last] = term;
                fill(&s, &leader[term], leader[term].last);
            }
            for (unsigned i = 0; i < 3; i++)
                for (uint64_t t = 1; t <= term; t++) {
                    bool knows = agree(&leader[t], &own, commit_index);
                    fill(&s, &leader[t], knows ? commit_index : 0);
                }
            fill(&s, &own, commit_index);
            if (salvage_is_whole(&s)) mended++, expect_mended(&s);
        }
        unknown += !known;
        salvage_close(&s);
        place_close(&place);
    }
    assert_true(mended > 500 && unknown > 50);
}

/* ---- By hand ---- */

static void append(struct log *log, uint64_t first, uint64_t of_term, uint64_t commit) {
    unsigned char bytes[BYTES_MAX];
    struct raft_batch batch = {
        .first = first, .term = of_term, .count = 1, .bytes = bytes, .commit_index = commit};
    batch.size = bytes_of(first, of_term, bytes);
    assert_int_equal(log_append(log, &batch), 0);
}

static struct log begin(void) {
    struct log log = {.segment_bytes = 1 << 16, .no_sync = true};
    enum log_state end;
    place_open(&place);
    assert_int_equal(log_open(&log, place.directory, place.path, 0, 0, ignore, NULL, &end), 0);
    return log;
}

static void flip(uint64_t offset) {
    struct bytes file = file_read(&place, "log.0000000000000001");
    file.at[offset] ^= 0x55;
    file_write(&place, "log.0000000000000001", file.at, file.used);
    bytes_close(&file);
}

/* A lost batch may have replaced what comes before it. */
static void test_replaced(void **state) {
    struct log log = begin();
    struct salvage s;
    struct salvage_hole hole;
    (void)state;
    append(&log, 1, 1, 0);
    append(&log, 2, 1, 1);
    append(&log, 3, 1, 1);
    uint64_t lost = log.end.offset;
    append(&log, 2, 2, 1); /* of another leader */
    append(&log, 3, 3, 1);
    log_close(&log);
    flip(lost + 8);
    assert_int_equal(salvage_open(&s, place.directory, place.path, 0, 0, 0, 3), 0);
    assert_true(salvage_find_hole(&s, 0, &hole));
    assert_int_equal(hole.first, 2); /* what was there of term 1 is gone */
    assert_int_equal(hole.last, 2);
    assert_int_equal(hole.term, 2); /* says the batch after it */
    salvage_close(&s);
    place_close(&place);
}

/* What may have been replaced is kept for whoever knows the term of what was there. */
static void test_dropped(void **state) {
    struct log log = begin();
    struct salvage s;
    struct salvage_hole hole;
    struct raft_batch batch;
    (void)state;
    for (uint64_t i = 1; i <= 3; i++) append(&log, i, 1, 1);
    uint64_t lost = log.end.offset;
    append(&log, 4, 2, 1);
    append(&log, 5, 2, 1);
    log_close(&log);
    flip(lost + 8); /* it may have begun with the entry 2 */
    assert_int_equal(salvage_open(&s, place.directory, place.path, 0, 0, 0, 3), 0);
    assert_true(salvage_find_hole(&s, 0, &hole));
    assert_int_equal(hole.first, 2);
    assert_int_equal(hole.last, 3);
    assert_int_equal(hole.term, 0);
    assert_int_equal(hole.pin_index, 4);
    assert_int_equal(hole.pin_term, 2);
    assert_false(salvage_read(&s, 2, 3, SIZE_MAX, &batch));
    assert_true(salvage_read_dropped(&s, 3, 9, SIZE_MAX, &batch));
    assert_int_equal(batch.term, 1);
    expect_entry(&batch, 3, 1);
    assert_false(salvage_read_dropped(&s, 1, 9, SIZE_MAX, &batch));
    assert_false(salvage_read_dropped(&s, 4, 9, SIZE_MAX, &batch));
    salvage_learn(&s, 2, 2, 1);
    assert_true(salvage_read(&s, 2, 3, SIZE_MAX, &batch));
    expect_entry(&batch, 2, 1);
    assert_int_equal(salvage_lacking(&s), 1);
    assert_true(salvage_find_hole(&s, 0, &hole));
    assert_int_equal(hole.first, 4);
    salvage_close(&s);
    place_close(&place);
}

/* An entry of another term is not what was dropped, and takes the place of a part of the hole. */
static void test_dropped_of_another_term(void **state) {
    struct log log = begin();
    struct salvage s;
    struct raft_batch batch;
    (void)state;
    for (uint64_t i = 1; i <= 4; i++) append(&log, i, 1, 1);
    uint64_t lost = log.end.offset;
    append(&log, 5, 4, 1);
    append(&log, 6, 4, 1);
    log_close(&log);
    flip(lost + 8);
    assert_int_equal(salvage_open(&s, place.directory, place.path, 0, 0, 0, 4), 0);
    salvage_learn(&s, 2, 1, 1);
    salvage_learn(&s, 3, 2, 3);
    assert_true(salvage_read(&s, 2, 4, SIZE_MAX, &batch));
    assert_int_equal(batch.count, 1);
    assert_false(salvage_read(&s, 3, 4, SIZE_MAX, &batch));
    assert_int_equal(salvage_term_at(&s, 3), 3);
    salvage_close(&s);
    place_close(&place);
}

/* Headers say what entries were there. */
static void test_entries_only(void **state) {
    struct log log = begin();
    struct salvage s;
    struct salvage_hole hole;
    uint64_t offset[4];
    (void)state;
    for (uint64_t i = 1; i <= 3; i++) {
        offset[i] = i > 1 ? log.end.offset : SEGMENT_HEADER;
        append(&log, i, i, i - 1);
    }
    log_close(&log);
    flip(offset[1] + 60);
    flip(offset[3] + 60);
    assert_int_equal(salvage_open(&s, place.directory, place.path, 0, 0, 0, 3), 0);
    assert_int_equal(salvage_lacking(&s), 2);
    assert_false(s.tail_lost);
    for (uint64_t i = 1; i <= 3; i += 2) {
        assert_true(salvage_find_hole(&s, i, &hole));
        assert_int_equal(hole.first, i);
        assert_int_equal(hole.term, i);
    }
    salvage_cut(&s, 1);
    assert_int_equal(salvage_last(&s), 0);
    salvage_close(&s);
    place_close(&place);
}

/* Of an entry nothing is left but the terms of its neighbours. */
static void test_recognized(void **state) {
    struct log log = begin();
    struct salvage s;
    struct salvage_hole hole;
    unsigned char bytes[BYTES_MAX];
    (void)state;
    append(&log, 1, 1, 1);
    uint64_t lost = log.end.offset;
    append(&log, 2, 2, 1);
    uint64_t lost_too = log.end.offset;
    append(&log, 3, 3, 1);
    append(&log, 4, 3, 1);
    log_close(&log);
    flip(lost + 8);
    flip(lost_too + 8);
    assert_int_equal(salvage_open(&s, place.directory, place.path, 0, 0, 0, 3), 0);
    assert_true(salvage_find_hole(&s, 0, &hole));
    assert_int_equal(hole.first, 2);
    assert_int_equal(hole.last, 2);
    assert_int_equal(hole.term, 0);
    assert_int_equal(hole.pin_index, 3);
    assert_int_equal(hole.pin_term, 3);
    assert_int_equal(s.commit_index, 1);
    struct raft_batch other = {.first = 2, .term = 1, .count = 1, .bytes = bytes};
    other.size = bytes_of(2, 1, bytes);
    assert_int_equal(salvage_recognize(&s, &hole, &other, false, 9), 0); /* not known here */
    s.commit_index = 2;
    assert_int_equal(salvage_recognize(&s, &hole, &other, false, 1), 0); /* not known there */
    assert_int_equal(salvage_recognize(&s, &hole, &other, false, 2), 2);
    s.commit_index = 1;
    assert_int_equal(salvage_recognize(&s, &hole, &other, true, 1), 2);
    other.term = 4; /* newer than what follows */
    assert_int_equal(salvage_recognize(&s, &hole, &other, true, 9), 0);
    salvage_close(&s);
    place_close(&place);
}

/* A segment without its header, a snapshot that is gone. */
static void test_begin_is_lost(void **state) {
    struct log log = begin();
    struct salvage s;
    struct salvage_hole hole;
    (void)state;
    append(&log, 1, 1, 0);
    log_reset(&log, 10, 4); /* after a snapshot from elsewhere */
    append(&log, 11, 4, 10);
    log_close(&log);
    assert_int_equal(salvage_open(&s, place.directory, place.path, 0, 0, 10, 4), 0);
    assert_true(salvage_find_hole(&s, 0, &hole));
    assert_int_equal(hole.first, 1);
    assert_int_equal(hole.last, 9);
    assert_int_equal(salvage_term_at(&s, 10), 4);
    assert_int_equal(s.commit_index, 10);
    assert_int_equal(salvage_last(&s), 11);
    salvage_close(&s);
    assert_int_equal(salvage_open(&s, place.directory, place.path, 10, 4, 0, 4), 0);
    assert_true(salvage_is_whole(&s));
    assert_string_equal(s.what, "");
    salvage_close(&s);
    /* The snapshot is newer than the log, and that is all that is known. */
    assert_int_equal(salvage_open(&s, place.directory, place.path, 0, 0, 20, 5), 0);
    assert_int_equal(salvage_last(&s), 20);
    assert_int_equal(s.commit_index, 20);
    salvage_close(&s);
    place_close(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_only), cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_dropped),      cmocka_unit_test(test_dropped_of_another_term),
        cmocka_unit_test(test_recognized),   cmocka_unit_test(test_begin_is_lost),
        cmocka_unit_test(test_journals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
