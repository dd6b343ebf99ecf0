/* Snapshots on disk: they are read as written, or the damage is noticed. */
#include <inttypes.h>

#include "base/rng.h"
#include "file_help.h"
#include "service/log/snapshot.h"

enum { INDEX = 0x1234, TERM = 7 };
#define NAME "snapshot.0000000000001234"

/* A text that is different everywhere, and half of which can be compressed. */
static struct bytes text_of(size_t size) {
    struct bytes text = {malloc(size + 1), size, size + 1};
    struct rng rng;
    rng_seed(&rng, size);
    for (size_t i = 0; i < size; i++)
        text.at[i] = (unsigned char)(i / 512 % 2 ? i / 7 : rng_next(&rng));
    return text;
}

static void write_one(struct snapshots *s, uint64_t index, const struct bytes *text, size_t piece) {
    struct snapshot_writer *w = snapshot_begin(s, index, TERM);
    assert_non_null(w);
    for (size_t at = 0; at < text->used; at += piece)
        assert_int_equal(
            snapshot_write(w, text->at + at, text->used - at < piece ? text->used - at : piece), 0);
    assert_int_equal(snapshot_end(w, 1), 0);
}

/* 0: the snapshot is the text; -1: damage was noticed, at the latest at the end. */
static int read_one(struct snapshots *s, uint64_t index, const struct bytes *text, size_t piece) {
    uint64_t term;
    struct snapshot_reader *r = snapshot_open(s, index, &term);
    if (!r) return -1;
    assert_int_equal(term, TERM);
    unsigned char *found = malloc(text->used + 1);
    int status = 0;
    for (size_t at = 0; at < text->used && !status; at += piece)
        status = snapshot_read(r, found + at, text->used - at < piece ? text->used - at : piece);
    if (snapshot_close(r) != 0) status = -1;
    if (!status) assert_memory_equal(found, text->at, text->used);
    free(found);
    return status;
}

static void list(struct snapshots *s, const struct place *place) {
    assert_int_equal(snapshots_list(s, place->directory, place->path), 0);
}

static void a_snapshot_is_read_as_written(void **state) {
    static const size_t sizes[] = {0, 1, 1000, 131072, 131073, 1000000};
    static const size_t pieces[] = {1, 4096, 10000000};
    struct place place;
    struct snapshots s;
    (void)state;
    place_open(&place);
    list(&s, &place);
    assert_int_equal(s.count, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = sizes[i] > 1000 ? 1 : 0; j < sizeof pieces / sizeof *pieces; j++) {
            struct bytes text = text_of(sizes[i]);
            write_one(&s, INDEX, &text, pieces[j]); /* over the one before */
            for (size_t k = sizes[i] > 1000 ? 1 : 0; k < sizeof pieces / sizeof *pieces; k++)
                assert_int_equal(read_one(&s, INDEX, &text, pieces[k]), 0);
            bytes_close(&text);
        }
    list(&s, &place);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.index[0], INDEX);
    assert_int_equal(each_file(&place, NULL), 1);
    place_close(&place);
}

static void an_abandoned_snapshot_leaves_nothing(void **state) {
    struct place place;
    struct snapshots s;
    (void)state;
    place_open(&place);
    list(&s, &place);
    struct snapshot_writer *w = snapshot_begin(&s, INDEX, TERM);
    assert_non_null(w);
    assert_int_equal(snapshot_write(w, "text", 4), 0);
    list(&s, &place);
    assert_int_equal(s.count, 0); /* it is not there before it is complete */
    assert_int_equal(snapshot_end(w, 0), 0);
    assert_int_equal(each_file(&place, NULL), 0);
    uint64_t term;
    assert_null(snapshot_open(&s, INDEX, &term));
    assert_non_null(strstr(s.message, NAME));
    place_close(&place);
}

static void a_cut_is_noticed_at_any_byte(void **state) {
    struct place place;
    struct snapshots s;
    struct bytes text = text_of(3000);
    (void)state;
    place_open(&place);
    list(&s, &place);
    write_one(&s, INDEX, &text, 1000);
    struct bytes file = file_read(&place, NAME);
    for (size_t size = 0; size < file.used; size++) {
        file_write(&place, NAME, file.at, size);
        assert_int_equal(read_one(&s, INDEX, &text, 1000), -1);
    }
    file_write(&place, NAME, file.at, file.used);
    assert_int_equal(read_one(&s, INDEX, &text, 1000), 0);
    bytes_close(&file);
    bytes_close(&text);
    place_close(&place);
}

/* Some bits of compressed data have no effect: then the text must be right, which read_one checks.
 * Otherwise the damage must be noticed. */
static void a_changed_bit_never_gives_another_text(void **state) {
    enum { HEADER = 40, HAS_CHECKSUM = 8 * 44 + 2 };
    struct place place;
    struct snapshots s;
    struct bytes text = text_of(3000);
    (void)state;
    place_open(&place);
    list(&s, &place);
    write_one(&s, INDEX, &text, 1000);
    struct bytes file = file_read(&place, NAME);
    for (size_t bit = 0; bit < 8 * file.used; bit++) {
        file.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        file_write(&place, NAME, file.at, file.used);
        int status = read_one(&s, INDEX, &text, 1000);
        if (bit < 8 * HEADER || bit == HAS_CHECKSUM) assert_int_equal(status, -1);
        file.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    bytes_close(&file);
    bytes_close(&text);
    place_close(&place);
}

static void trailing_bytes_and_partial_reads_are_noticed(void **state) {
    struct place place;
    struct snapshots s;
    struct bytes text = text_of(300000);
    char part[100];
    uint64_t term;
    (void)state;
    place_open(&place);
    list(&s, &place);
    write_one(&s, INDEX, &text, 1000);
    struct snapshot_reader *r = snapshot_open(&s, INDEX, &term);
    assert_non_null(r);
    assert_int_equal(snapshot_read(r, part, sizeof part), 0);
    assert_int_equal(snapshot_close(r), -1);
    text.used--; /* all but one byte */
    assert_int_equal(read_one(&s, INDEX, &text, 1000), -1);
    text.used++;
    struct bytes file = file_read(&place, NAME);
    bytes_add(&file, "more", 4);
    file_write(&place, NAME, file.at, file.used);
    assert_int_equal(read_one(&s, INDEX, &text, 1000), -1);
    file.used -= 4; /* the file of another snapshot */
    file_write(&place, "snapshot.0000000000001235", file.at, file.used);
    assert_int_equal(read_one(&s, INDEX + 1, &text, 1000), -1);
    bytes_close(&file);
    bytes_close(&text);
    place_close(&place);
}

static void the_newest_are_kept(void **state) {
    static const char *const others[] = {"snapshot.1", "snapshot.xyz", "new.snapshot",
                                         "log.0000000000000001"};
    enum { MANY = SNAPSHOTS_MAX + 10 };
    struct place place;
    struct snapshots s;
    char name[40];
    (void)state;
    place_open(&place);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        file_write(&place, others[i], "x", 1);
    for (uint64_t i = 1; i <= MANY; i++) { /* in the order in which the directory has them */
        snprintf(name, sizeof name, "snapshot.%016" PRIx64, i * 31 % (MANY + 1) * 1000);
        file_write(&place, name, "x", 1);
    }
    list(&s, &place);
    assert_int_equal(s.count, SNAPSHOTS_MAX);
    for (size_t i = 0; i < s.count; i++) assert_int_equal(s.index[i], (MANY - i) * 1000);
    for (size_t keep = SNAPSHOTS_MAX; keep; keep /= 3) {
        snapshots_trim(&s, keep);
        assert_int_equal(s.count, keep);
        list(&s, &place);
        for (size_t i = 0; i < keep; i++) assert_int_equal(s.index[i], (MANY - i) * 1000);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(file_exists(&place, others[i]));
    place_close(&place);
}

/* On a full disk the previous snapshot stays, and nothing of the new one. */
static void a_full_disk_keeps_the_previous_snapshot(void **state) {
    struct place place;
    struct snapshots s;
    struct bytes text = text_of(400000), old = text_of(10);
    (void)state;
    place_open(&place);
    list(&s, &place);
    write_one(&s, INDEX, &old, 10);
    for (rlim_t limit = 0; limit < 200000; limit += 20011) {
        limit_files(limit);
        struct snapshot_writer *w = snapshot_begin(&s, INDEX + 1, TERM);
        int status = 0;
        if (w) {
            for (size_t at = 0; at < text.used; at += 1000)
                if (snapshot_write(w, text.at + at, 1000) != 0) status = -1;
            if (snapshot_end(w, 1) != 0) status = -1;
        }
        limit_files(RLIM_INFINITY);
        assert_int_equal(status, -1);
        assert_non_null(strstr(s.message, "cannot be written"));
        assert_int_equal(each_file(&place, NULL), 1);
        assert_int_equal(read_one(&s, INDEX, &old, 10), 0);
    }
    bytes_close(&text);
    bytes_close(&old);
    place_close(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_is_read_as_written),
        cmocka_unit_test(an_abandoned_snapshot_leaves_nothing),
        cmocka_unit_test(a_cut_is_noticed_at_any_byte),
        cmocka_unit_test(a_changed_bit_never_gives_another_text),
        cmocka_unit_test(trailing_bytes_and_partial_reads_are_noticed),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(a_full_disk_keeps_the_previous_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
