/* The term and the vote on disk: they are read as written, and a damaged file never counts as
 * missing.
 */
#include "base/crc32c.h"
#include "file_help.h"
#include "service/log/vote.h"

static void expect(const struct place *place, uint64_t term, uint64_t server, uint64_t number) {
    struct vote vote;
    if (vote_read(&vote, place->directory, place->path) != 0) fail_msg("%s", vote.message);
    assert_int_equal(vote.term, term);
    assert_int_equal(vote.voted_for, server);
    assert_int_equal(vote.directory_id, number);
}

static uint64_t write_one(const struct place *place, uint64_t term, uint64_t server) {
    struct vote vote;
    assert_int_equal(vote_read(&vote, place->directory, place->path), 0);
    vote.term = term;
    vote.voted_for = server;
    if (vote_write(&vote) != 0) fail_msg("%s", vote.message);
    return vote.directory_id;
}

static void a_vote_is_read_as_written(void **state) {
    struct place place, other;
    (void)state;
    place_open(&place);
    place_open(&other);
    expect(&place, 0, 0, 0);
    uint64_t number = write_one(&place, 0, 0);
    assert_true(number);
    for (uint64_t term = 1; term < 100; term++) {
        assert_int_equal(write_one(&place, term << 30, term % 5), number);
        expect(&place, term << 30, term % 5, number);
    }
    assert_int_equal(each_file(&place, NULL), 1);
    assert_true(write_one(&other, 1, 1) != number);
    place_close(&place);
    place_close(&other);
}

static void whose_data_it_is_is_read_as_written(void **state) {
    struct place place;
    struct vote vote, again;
    (void)state;
    place_open(&place);
    assert_int_equal(vote_read(&vote, place.directory, place.path), 0);
    vote.server_id = 254;
    vote.ensemble_id = UINT64_C(0x0123456789abcdef);
    for (int i = 0; i < 3; i++) {
        vote.withheld = i == 1;
        vote.ensemble_id = i == 2 ? 0 : UINT64_C(0x0123456789abcdef);
        assert_int_equal(vote_write(&vote), 0);
        assert_int_equal(vote_read(&again, place.directory, place.path), 0);
        assert_int_equal(again.server_id, 254);
        assert_int_equal(again.ensemble_id, vote.ensemble_id);
        assert_int_equal(again.withheld, i == 1);
    }
    place_close(&place);
}

/* Version 1 had no ids of the server and of the ensemble. */
static void a_vote_of_version_1_is_read(void **state) {
    struct place place;
    struct vote vote;
    unsigned char old[48] = "conclave vote 1";
    uint64_t numbers[] = {7, 2, 0x1234};
    (void)state;
    memcpy(old + 16, numbers, sizeof numbers);
    uint32_t crc = crc32c(0, old, 44);
    memcpy(old + 44, &crc, sizeof crc);
    place_open(&place);
    file_write(&place, "vote", old, sizeof old);
    expect(&place, 7, 2, 0x1234);
    assert_int_equal(vote_read(&vote, place.directory, place.path), 0);
    assert_int_equal(vote.server_id, 0);
    assert_int_equal(vote.ensemble_id, 0);
    assert_false(vote.withheld);
    old[20] ^= 1;
    file_write(&place, "vote", old, sizeof old);
    assert_int_equal(vote_read(&vote, place.directory, place.path), -1);
    place_close(&place);
}

/* The file is refused, and the message says what to do. */
static void expect_damage(const struct place *place, const void *bytes, size_t size) {
    struct vote vote;
    file_write(place, "vote", bytes, size);
    assert_int_equal(vote_read(&vote, place->directory, place->path), -1);
    assert_non_null(strstr(vote.message, place->path));
    assert_non_null(strstr(vote.message, "with an empty directory"));
    assert_int_equal(vote.term, 0);
    assert_int_equal(vote.voted_for, 0);
}

static void flip(struct bytes *file, size_t bit) {
    file->at[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

static void damage_is_noticed_at_any_bit(void **state) {
    struct place place;
    (void)state;
    place_open(&place);
    uint64_t number = write_one(&place, 0x123456789, 3);
    struct bytes file = file_read(&place, "vote");
    for (size_t bit = 0; bit < 8 * file.used; bit++) {
        flip(&file, bit);
        expect_damage(&place, file.at, file.used);
        flip(&file, bit);
    }
    for (size_t size = 0; size < file.used; size++) expect_damage(&place, file.at, size);
    bytes_add(&file, "", 1);
    expect_damage(&place, file.at, file.used);
    file_write(&place, "vote", file.at, file.used - 1);
    expect(&place, 0x123456789, 3, number);
    bytes_close(&file);
    place_close(&place);
}

enum { FORM = 64, COPY_AT = 4096 };

static uint64_t write_member(const struct place *place, uint64_t term, uint64_t server) {
    struct vote vote;
    assert_int_equal(vote_read(&vote, place->directory, place->path), 0);
    vote.term = term;
    vote.voted_for = server;
    vote.ensemble_id = 77;
    assert_int_equal(vote_write(&vote), 0);
    return vote.directory_id;
}

static void expect_mended(const struct place *place, const struct bytes *file, uint64_t number) {
    struct vote vote;
    file_write(place, "vote", file->at, file->used);
    expect(place, 0x123456789, 3, number);
    assert_int_equal(vote_read(&vote, place->directory, place->path), 0);
    assert_true(vote.mended);
    assert_int_equal(vote.ensemble_id, 77);
    assert_int_equal(vote_write(&vote), 0);
    assert_int_equal(vote_read(&vote, place->directory, place->path), 0);
    assert_false(vote.mended);
}

/* Whatever happens to one of them. */
static void a_member_s_vote_has_two_copies(void **state) {
    struct place place;
    (void)state;
    place_open(&place);
    uint64_t number = write_member(&place, 0x123456789, 3);
    struct bytes file = file_read(&place, "vote"), damaged = {0};
    assert_int_equal(file.used, COPY_AT + FORM);
    for (size_t copy = 0; copy <= COPY_AT; copy += COPY_AT)
        for (size_t bit = 8 * copy; bit < 8 * (copy + FORM); bit++) {
            flip(&file, bit);
            expect_mended(&place, &file, number);
            flip(&file, 8 * (COPY_AT - copy) + bit % (size_t)(8 * FORM));
            expect_damage(&place, file.at, file.used); /* both are damaged */
            flip(&file, 8 * (COPY_AT - copy) + bit % (size_t)(8 * FORM));
            flip(&file, bit);
        }
    for (size_t size = 0; size < file.used; size += size < 100 || size >= COPY_AT ? 1 : 100) {
        damaged.used = 0;
        bytes_add(&damaged, file.at, size);
        if (size < FORM)
            expect_damage(&place, damaged.at, size);
        else if (size > FORM)
            expect_mended(&place, &damaged, number);
    }
    bytes_close(&file);
    bytes_close(&damaged);
    place_close(&place);
}

/* That is what an older program has written: nothing is wrong with it. */
static void one_copy_alone_is_whole(void **state) {
    struct place place;
    struct vote vote;
    (void)state;
    place_open(&place);
    uint64_t number = write_member(&place, 7, 1);
    struct bytes file = file_read(&place, "vote");
    file_write(&place, "vote", file.at, FORM);
    expect(&place, 7, 1, number);
    assert_int_equal(vote_read(&vote, place.directory, place.path), 0);
    assert_false(vote.mended);
    assert_int_equal(vote_write(&vote), 0);
    bytes_close(&file);
    file = file_read(&place, "vote");
    assert_int_equal(file.used, COPY_AT + FORM);
    bytes_close(&file);
    place_close(&place);
}

/* They are written at once, so that is nothing that this program has done. */
static void copies_that_differ_are_not_believed(void **state) {
    struct place place;
    (void)state;
    place_open(&place);
    write_member(&place, 7, 1);
    struct bytes before = file_read(&place, "vote");
    write_member(&place, 8, 2);
    struct bytes after = file_read(&place, "vote");
    memcpy(after.at + COPY_AT, before.at + COPY_AT, FORM);
    expect_damage(&place, after.at, after.used);
    bytes_close(&before);
    bytes_close(&after);
    place_close(&place);
}

/* A crash in the middle, or a full disk, leaves the previous vote. */
static void an_incomplete_write_changes_nothing(void **state) {
    struct place place;
    struct vote vote;
    (void)state;
    place_open(&place);
    uint64_t number = write_one(&place, 7, 2);
    file_write(&place, "new.vote", "half", 4);
    expect(&place, 7, 2, number);
    assert_int_equal(vote_read(&vote, place.directory, place.path), 0);
    vote.term = 8;
    for (rlim_t limit = 0; limit < 48; limit += 5) {
        limit_files(limit);
        int status = vote_write(&vote);
        limit_files(RLIM_INFINITY);
        assert_int_equal(status, -1);
        assert_non_null(strstr(vote.message, "new.vote: cannot be written"));
        expect(&place, 7, 2, number);
    }
    assert_int_equal(vote_write(&vote), 0);
    expect(&place, 8, 2, number);
    assert_int_equal(mkdirat(place.directory, "sub", 0700), 0); /* a directory in its place */
    remove_file(place.directory, "vote");
    assert_int_equal(renameat(place.directory, "sub", place.directory, "vote"), 0);
    assert_int_equal(vote_read(&vote, place.directory, place.path), -1);
    assert_non_null(strstr(vote.message, "cannot be read"));
    assert_int_equal(unlinkat(place.directory, "vote", AT_REMOVEDIR), 0);
    assert_int_equal(symlinkat("vote", place.directory, "vote"), 0); /* a loop */
    assert_int_equal(vote_read(&vote, place.directory, place.path), -1);
    assert_non_null(strstr(vote.message, "cannot be read"));
    place_close(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vote_is_read_as_written),
        cmocka_unit_test(whose_data_it_is_is_read_as_written),
        cmocka_unit_test(a_vote_of_version_1_is_read),
        cmocka_unit_test(damage_is_noticed_at_any_bit),
        cmocka_unit_test(a_member_s_vote_has_two_copies),
        cmocka_unit_test(one_copy_alone_is_whole),
        cmocka_unit_test(copies_that_differ_are_not_believed),
        cmocka_unit_test(an_incomplete_write_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
