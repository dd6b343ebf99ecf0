/* The transfer of a snapshot: it arrives as it was sent, or the fault is noticed. */
#include <inttypes.h>

#include "base/rng.h"
#include "file_help.h"
#include "service/log/transfer.h"

enum { INDEX = 0x77, TERM = 5, TEXT = 30000, CHUNK = 1000 };
#define NAME "snapshot.0000000000000077"

struct two {
    struct place from, to;
    struct snapshots snapshots;
    struct sending sending;
    struct receiving receiving;
    struct bytes file; /* what is sent */
};

static int read_all(void *context, struct snapshot_reader *reader) {
    unsigned char part[4096];
    (void)context;
    while (snapshot_read(reader, part, sizeof part) == 0) continue;
    return 0;
}

static int finish(struct receiving *receiving, uint64_t *term) {
    int status = receiving_check(receiving, term, read_all, NULL);
    return status ? status : receiving_end(receiving);
}

static void write_snapshot(struct snapshots *s, uint64_t index, size_t size) {
    struct rng rng;
    rng_seed(&rng, index);
    struct snapshot_writer *w = snapshot_begin(s, index, TERM);
    assert_non_null(w);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t part = rng_next(&rng);
        assert_int_equal(snapshot_write(w, &part, sizeof part), 0);
    }
    assert_int_equal(snapshot_end(w, 1), 0);
}

static void two_open(struct two *t) {
    place_open(&t->from);
    place_open(&t->to);
    assert_int_equal(snapshots_list(&t->snapshots, t->from.directory, t->from.path), 0);
    write_snapshot(&t->snapshots, INDEX, TEXT);
    t->file = file_read(&t->from, NAME);
    if (sending_open(&t->sending, &t->snapshots, INDEX) != 0) fail_msg("%s", t->snapshots.message);
    assert_int_equal(t->sending.size, t->file.used);
}

static void begin(struct two *t) {
    if (receiving_open(&t->receiving, t->to.directory, t->to.path, INDEX, t->file.used) != 0)
        fail_msg("%s", t->receiving.message);
}

static void two_close(struct two *t) {
    receiving_close(&t->receiving);
    sending_close(&t->sending);
    bytes_close(&t->file);
    place_close(&t->from);
    place_close(&t->to);
}

/* Chunk by chunk, up to an offset. */
static void carry(struct two *t, uint64_t up_to) {
    unsigned char chunk[CHUNK];
    while (t->receiving.offset < up_to) {
        uint64_t offset = t->receiving.offset;
        size_t most = up_to - offset < CHUNK ? (size_t)(up_to - offset) : CHUNK;
        long size = sending_read(&t->sending, offset, chunk, most);
        assert_int_equal(size, most);
        assert_int_equal(receiving_add(&t->receiving, offset, chunk, most), RECEIVING_TAKEN);
        assert_int_equal(t->receiving.offset, offset + most);
    }
}

static void expect_arrived(struct two *t) {
    uint64_t term = 0;
    if (finish(&t->receiving, &term) != 0) fail_msg("%s", t->receiving.message);
    assert_int_equal(term, TERM);
    struct bytes file = file_read(&t->to, NAME);
    assert_int_equal(file.used, t->file.used);
    assert_memory_equal(file.at, t->file.at, file.used);
    assert_int_equal(each_file(&t->to, NULL), 1);
    bytes_close(&file);
}

static void it_arrives_as_it_was_sent(void **state) {
    struct two t;
    unsigned char byte;
    (void)state;
    two_open(&t);
    begin(&t);
    remove_file(t.from.directory, NAME); /* trimmed meanwhile */
    carry(&t, t.file.used);
    expect_arrived(&t);
    assert_int_equal(sending_read(&t.sending, t.file.used, &byte, 1), 0);
    assert_int_equal(sending_read(&t.sending, UINT64_MAX, &byte, 1), 0);
    two_close(&t);
}

static void it_continues_after_a_restart(void **state) {
    struct two t;
    (void)state;
    two_open(&t);
    for (uint64_t at = 0; at < t.file.used; at += 3001) { /* a restart after each part */
        begin(&t);
        assert_int_equal(t.receiving.offset, at);
        carry(&t, at + 3001 < t.file.used ? at + 3001 : t.file.used);
        receiving_close(&t.receiving);
    }
    begin(&t);
    assert_int_equal(t.receiving.offset, t.file.used);
    expect_arrived(&t);
    two_close(&t);
}

/* Chunks that come twice, too early, or reach too far change nothing. */
static void chunks_at_other_offsets_are_refused(void **state) {
    struct two t;
    (void)state;
    two_open(&t);
    begin(&t);
    carry(&t, 5 * CHUNK);
    for (uint64_t offset = 0; offset < t.file.used; offset += CHUNK / 2)
        if (offset != 5 * CHUNK)
            assert_int_equal(receiving_add(&t.receiving, offset, "x", 1), RECEIVING_WRONG_OFFSET);
    assert_int_equal(receiving_add(&t.receiving, UINT64_MAX, "x", 1), RECEIVING_WRONG_OFFSET);
    assert_int_equal(t.receiving.offset, 5 * CHUNK);
    assert_int_equal(receiving_add(&t.receiving, 5 * CHUNK, t.file.at, t.file.used - 5 * CHUNK + 1),
                     RECEIVING_FAILED);
    assert_int_equal(receiving_add(&t.receiving, 5 * CHUNK, t.file.at, SIZE_MAX), RECEIVING_FAILED);
    assert_non_null(strstr(t.receiving.message, "beyond its end"));
    assert_int_equal(receiving_add(&t.receiving, 5 * CHUNK, "", 0), RECEIVING_TAKEN);
    carry(&t, t.file.used);
    assert_int_equal(receiving_add(&t.receiving, t.file.used, "x", 1), RECEIVING_FAILED);
    expect_arrived(&t);
    two_close(&t);
}

/* A bad file is noticed when it is decoded, and the transfer can begin anew. */
static void a_bad_file_gets_no_name(void **state) {
    struct two t;
    uint64_t term;
    (void)state;
    two_open(&t);
    begin(&t);
    for (size_t i = 0; i < t.file.used; i += t.file.used / 50) {
        t.file.at[i] ^= 0x41;
        assert_int_equal(receiving_add(&t.receiving, 0, t.file.at, t.file.used), RECEIVING_TAKEN);
        t.file.at[i] ^= 0x41;
        assert_int_equal(finish(&t.receiving, &term), -1);
        assert_non_null(strstr(t.receiving.message, "not that snapshot"));
        assert_int_equal(t.receiving.offset, 0);
        assert_false(file_exists(&t.to, NAME));
    }
    carry(&t, t.file.used);
    expect_arrived(&t);
    two_close(&t);
}

static void a_snapshot_of_another_entry_gets_no_name(void **state) {
    struct two t;
    uint64_t term;
    (void)state;
    two_open(&t);
    assert_int_equal(
        receiving_open(&t.receiving, t.to.directory, t.to.path, INDEX + 1, t.file.used), 0);
    carry(&t, t.file.used);
    assert_int_equal(finish(&t.receiving, &term), -1);
    two_close(&t);
}

/* Incomplete files of other snapshots are removed, and nothing else. */
static void other_incoming_files_are_removed(void **state) {
    struct two t;
    (void)state;
    two_open(&t);
    file_write(&t.to, "incoming.0000000000000001.0000000000000009", "x", 1);
    file_write(&t.to, "incoming.0000000000000077.0000000000000009", "x", 1);
    file_write(&t.to, "incoming.", "x", 1);
    file_write(&t.to, "log.0000000000000001", "x", 1);
    file_write(&t.to, "snapshot.0000000000000001", "x", 1);
    begin(&t);
    assert_int_equal(t.receiving.offset, 0);
    assert_int_equal(each_file(&t.to, NULL), 3);
    assert_true(file_exists(&t.to, "log.0000000000000001"));
    assert_true(file_exists(&t.to, "snapshot.0000000000000001"));
    two_close(&t);
}

static void impossible_sizes_are_refused(void **state) {
    struct two t;
    char name[64];
    (void)state;
    two_open(&t);
    for (int i = 0; i < 2; i++) {
        uint64_t size = i ? UINT64_MAX : 0;
        assert_int_equal(receiving_open(&t.receiving, t.to.directory, t.to.path, INDEX, size), -1);
        assert_non_null(strstr(t.receiving.message, "size"));
        assert_int_equal(each_file(&t.to, NULL), 0);
    }
    /* The incomplete file is too long. */
    snprintf(name, sizeof name, "incoming.%016x.%016" PRIx64, INDEX, (uint64_t)t.file.used);
    bytes_add(&t.file, "more", 4);
    file_write(&t.to, name, t.file.at, t.file.used);
    t.file.used -= 4;
    begin(&t);
    assert_int_equal(t.receiving.offset, 0);
    carry(&t, t.file.used);
    expect_arrived(&t);
    assert_int_equal(sending_open(&t.sending, &t.snapshots, INDEX + 1), -1);
    assert_non_null(strstr(t.snapshots.message, "cannot be read"));
    two_close(&t);
}

static void a_full_disk_is_reported(void **state) {
    struct two t;
    (void)state;
    two_open(&t);
    begin(&t);
    carry(&t, 2 * CHUNK);
    limit_files(2 * CHUNK + 100);
    int answer = receiving_add(&t.receiving, 2 * CHUNK, t.file.at + 2 * CHUNK, CHUNK);
    limit_files(RLIM_INFINITY);
    assert_int_equal(answer, RECEIVING_FAILED);
    assert_non_null(strstr(t.receiving.message, "cannot be written"));
    receiving_close(&t.receiving);
    begin(&t); /* with the part that was written */
    assert_int_equal(t.receiving.offset, 2 * CHUNK + 100);
    carry(&t, t.file.used);
    expect_arrived(&t);
    two_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_arrives_as_it_was_sent),
        cmocka_unit_test(it_continues_after_a_restart),
        cmocka_unit_test(chunks_at_other_offsets_are_refused),
        cmocka_unit_test(a_bad_file_gets_no_name),
        cmocka_unit_test(a_snapshot_of_another_entry_gets_no_name),
        cmocka_unit_test(other_incoming_files_are_removed),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(a_full_disk_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
