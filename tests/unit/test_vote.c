/* The term and the vote on disk: what was written is read, and damage is never taken for nothing.
 */
#include "file_help.h"
#include "raft/vote.h"

static void expect(const struct place *place, uint64_t term, uint64_t server, uint64_t number) {
    struct vote vote;
    if (vote_read(&vote, place->directory, place->path) != 0) fail_msg("%s", vote.message);
    assert_int_equal(vote.term, term);
    assert_int_equal(vote.server, server);
    assert_int_equal(vote.directory_number, number);
}

static uint64_t write_one(const struct place *place, uint64_t term, uint64_t server) {
    struct vote vote;
    assert_int_equal(vote_read(&vote, place->directory, place->path), 0);
    vote.term = term;
    vote.server = server;
    if (vote_write(&vote) != 0) fail_msg("%s", vote.message);
    return vote.directory_number;
}

static void what_was_written_is_read(void **state) {
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

/* It is refused, and the message says what to do. */
static void expect_damage(const struct place *place, const void *bytes, size_t size) {
    struct vote vote;
    file_write(place, "vote", bytes, size);
    assert_int_equal(vote_read(&vote, place->directory, place->path), -1);
    assert_non_null(strstr(vote.message, place->path));
    assert_non_null(strstr(vote.message, "under a new number"));
    assert_int_equal(vote.term, 0);
    assert_int_equal(vote.server, 0);
}

static void damage_is_noticed_at_any_bit(void **state) {
    struct place place;
    (void)state;
    place_open(&place);
    uint64_t number = write_one(&place, 0x123456789, 3);
    struct bytes file = file_read(&place, "vote");
    for (size_t bit = 0; bit < 8 * file.used; bit++) {
        file.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        expect_damage(&place, file.at, file.used);
        file.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t size = 0; size < file.used; size++) expect_damage(&place, file.at, size);
    bytes_add(&file, "", 1);
    expect_damage(&place, file.at, file.used);
    file_write(&place, "vote", file.at, file.used - 1);
    expect(&place, 0x123456789, 3, number);
    bytes_close(&file);
    place_close(&place);
}

/* A crash in the middle, and a full disk, leave the one before. */
static void one_that_is_not_complete_changes_nothing(void **state) {
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
    assert_int_equal(symlinkat("vote", place.directory, "vote"), 0); /* that leads to itself */
    assert_int_equal(vote_read(&vote, place.directory, place.path), -1);
    assert_non_null(strstr(vote.message, "cannot be read"));
    place_close(&place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(damage_is_noticed_at_any_bit),
        cmocka_unit_test(one_that_is_not_complete_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
