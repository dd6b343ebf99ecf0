/* Where a process was that has ended in order, in a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "algorithms/catalogue.h"
#include "base/crc32c.h"
#include "base/logger.h"
#include "peer/checkpoint.h"

enum { PROCESSES = 3, STATE = 24 };
/* In the file. */
enum { CHECKSUM = 4, CHECKED_FROM = 8, RECORDED = 40, SIZE = 48, HEAD_SIZE = 56 };

struct place {
    char directory[40], path[64];
    struct group group;
    struct other other[PROCESSES + 1];
    struct peer peer;
};

static void ignore(void *arg, const char *line, size_t size) { (void)arg, (void)line, (void)size; }

static void begin(struct place *place) {
    struct peer *peer = &place->peer;
    for (cv_pid p = 1; p <= PROCESSES; p++) channel_free(&place->other[p].channel);
    memset(place->other, 0, sizeof place->other);
    memset(peer->machine[ALGORITHM].state, 0, STATE);
    peer->phase = OUTSIDE;
    peer->orphan = false;
}

static int make_place(void **state) {
    struct place *place = calloc(1, sizeof *place);
    strcpy(place->directory, "/tmp/test_checkpoint.XXXXXX");
    if (!mkdtemp(place->directory)) return -1;
    snprintf(place->path, sizeof place->path, "%s/checkpoint", place->directory);
    place->group = (struct group){.identity = 77, .processes = PROCESSES};
    place->peer = (struct peer){.config.data = place->directory,
                                .group = &place->group,
                                .self = 2,
                                .other = place->other,
                                .durable.sequence = 5,
                                .durable.fd = -1,
                                .recorder.fd = -1};
    place->peer.machine[ALGORITHM].code = catalogue_find("lamport");
    place->peer.machine[ALGORITHM].size = STATE;
    place->peer.machine[ALGORITHM].state = calloc(1, STATE);
    logger_set_output(ignore, NULL);
    *state = place;
    return 0;
}

static int remove_place(void **state) {
    struct place *place = *state;
    begin(place);
    unlink(place->path);
    rmdir(place->directory);
    free(place->peer.machine[ALGORITHM].state);
    free(place);
    logger_set_output(NULL, NULL);
    return 0;
}

/* Writes one of a process that waits, with two messages for process 3. */
static void write_one(struct place *place) {
    struct peer *peer = &place->peer;
    begin(place);
    strcpy(peer->machine[ALGORITHM].state, "a state");
    peer->phase = WAITING;
    place->other[1].cut_off = true;
    place->other[3].channel.incarnation = 9;
    place->other[3].channel.received = 4;
    memcpy(channel_push(&place->other[3].channel, 6), "first", 6);
    memcpy(channel_push(&place->other[3].channel, 7), "second", 7);
    peer->durable.sequence = 5;
    assert_int_equal(checkpoint_write(peer), 0);
    begin(place);
    peer->durable.sequence = 6; /* the file that says so was written since */
}

static size_t read_bytes(const struct place *place, unsigned char *bytes, size_t room) {
    FILE *file = fopen(place->path, "rb");
    size_t size = fread(bytes, 1, room, file);
    fclose(file);
    assert_in_range(size, 1, room - 1);
    return size;
}

static void write_bytes(const struct place *place, const unsigned char *bytes, size_t size) {
    FILE *file = fopen(place->path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void all_of_it_is_there_again(void **state) {
    struct place *place = *state;
    struct peer *peer = &place->peer;
    struct channel *channel = &place->other[3].channel;
    uint64_t number;
    uint32_t size;
    write_one(place);
    assert_true(checkpoint_read(peer));
    assert_string_equal(peer->machine[ALGORITHM].state, "a state");
    assert_true(peer->phase == WAITING && peer->orphan && place->other[1].cut_off);
    assert_int_equal(channel->received, 4);
    assert_string_equal((const char *)channel_next(channel, &number, &size), "first");
    assert_int_equal(number, 1);
    assert_string_equal((const char *)channel_next(channel, &number, &size), "second");
    assert_null(channel_next(channel, &number, &size));
}

static void one_that_does_not_count_is_not_read(void **state) {
    struct place *place = *state;
    struct peer *peer = &place->peer;
    write_one(place);
    peer->durable.sequence = 7; /* it is of an earlier run */
    assert_false(checkpoint_read(peer));
    peer->durable.sequence = 6;
    peer->self = 3;
    assert_false(checkpoint_read(peer));
    peer->self = 2;
    place->group.identity++;
    assert_false(checkpoint_read(peer));
    place->group.identity--;
    peer->machine[ALGORITHM].size--;
    assert_false(checkpoint_read(peer));
    peer->machine[ALGORITHM].size++;
    peer->machine[ALGORITHM].code = catalogue_find("raymond"); /* another version */
    assert_false(checkpoint_read(peer));
    peer->machine[ALGORITHM].code = catalogue_find("lamport");
    assert_true(checkpoint_read(peer));
    begin(place);
    checkpoint_remove(peer);
    assert_false(checkpoint_read(peer));
    unlink(place->path);
    assert_false(checkpoint_read(peer));
    assert_int_equal(*(char *)peer->machine[ALGORITHM].state, 0);
}

/* The state has no wrong values, nor has the size of the record. */
static bool may_be_anything(size_t at) {
    return (at >= CHECKSUM && at < CHECKED_FROM) || (at >= RECORDED && at < SIZE) ||
           (at >= HEAD_SIZE && at < HEAD_SIZE + STATE);
}

/* Each byte is damaged: the checksum tells.  If that is right all the same, no other head is taken
 * for ours, and nothing is read that is not there. */
static void no_damaged_one_is_read(void **state) {
    struct place *place = *state;
    struct peer *peer = &place->peer;
    unsigned char whole[1024], bytes[1024];
    write_one(place);
    size_t size = read_bytes(place, whole, sizeof whole);
    for (size_t i = 0; i < size; i++) {
        memcpy(bytes, whole, size);
        bytes[i] ^= 0xff;
        write_bytes(place, bytes, size);
        assert_false(checkpoint_read(peer));
        uint32_t checksum = crc32c(0, bytes + CHECKED_FROM, size - CHECKED_FROM);
        memcpy(bytes + CHECKSUM, &checksum, sizeof checksum);
        write_bytes(place, bytes, size);
        bool read = checkpoint_read(peer);
        if (i < HEAD_SIZE + STATE) assert_int_equal(read, may_be_anything(i));
        begin(place);
        write_bytes(place, whole, i);
        assert_false(checkpoint_read(peer));
    }
    write_bytes(place, whole, size);
    assert_true(checkpoint_read(peer));
}

static bool leaves_one(struct place *place) {
    struct peer *peer = &place->peer;
    unlink(place->path);
    assert_int_equal(peer_suspend(peer), 0);
    bool left = access(place->path, F_OK) == 0;
    assert_int_equal(peer->suspended, left);
    peer->over = peer->suspended = false;
    return left;
}

/* What would bind it is in no checkpoint. */
static void not_everybody_leaves_one(void **state) {
    struct place *place = *state;
    struct peer *peer = &place->peer;
    peer->machine[ALGORITHM].layout.patient = true;
    assert_false(leaves_one(place)); /* it has not begun */
    peer->begun = true;
    assert_true(leaves_one(place));
    peer->phase = WAITING;
    assert_true(leaves_one(place));
    peer->phase = INSIDE;
    assert_false(leaves_one(place));
    peer->phase = LEAVING;
    assert_false(leaves_one(place));
    peer->phase = OUTSIDE;
    peer->done = true; /* when it is back, it says that it is not */
    assert_true(leaves_one(place));
    peer->over = true;
    assert_false(leaves_one(place));
    peer->machine[ALGORITHM].layout.patient = false;
    assert_false(leaves_one(place));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_of_it_is_there_again, make_place, remove_place),
        cmocka_unit_test_setup_teardown(one_that_does_not_count_is_not_read, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(no_damaged_one_is_read, make_place, remove_place),
        cmocka_unit_test_setup_teardown(not_everybody_leaves_one, make_place, remove_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
