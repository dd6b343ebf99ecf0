/* How much memory entries may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/ensemble/internal.h"
#include "service/server/internal.h"

static struct server server;
static struct ensemble ensemble;

enum { MIB = 1 << 20 };

static void open_ensemble(void) {
    ensemble = (struct ensemble){
        .settings = &server.settings, .raft.role = RAFT_LEADER, .memory_max = SIZE_MAX};
    window_open(&ensemble.log, 0);
    outbox_open(&ensemble.outbox);
}

static void close_ensemble(void) {
    window_close(&ensemble.log);
    outbox_close(&ensemble.outbox);
    ensemble = (struct ensemble){0};
}

static void fill(struct window *w, size_t bytes) {
    enum { SIZE = 1000 };
    while (window_bytes(w) < bytes) {
        memset(window_room(w, SIZE), 1, SIZE);
        window_add(w, 1, RAFT_NORMAL, SIZE);
    }
    if (w == &ensemble.log) ensemble.raft.last_index = window_last(w);
}

static void entries_take_no_more_than_they_may(void **state) {
    (void)state;
    server.settings.kept_bytes = 1 << 30;
    open_ensemble();
    fill(&ensemble.log, 8 * MIB);
    fill(&ensemble.outbox.entries, 4 * MIB);
    assert_true(ensemble_can_append(&ensemble) && !ensemble_is_full(&ensemble));
    assert_int_equal(room_for_kept(&ensemble), 1 << 30);
    ensemble_limit_memory(&ensemble, 32 * MIB);
    assert_true(!ensemble_can_append(&ensemble) && ensemble_is_full(&ensemble));
    assert_in_range(room_for_kept(&ensemble), MIB, 8 * MIB);
    assert_false(room_for_forwarded(&ensemble));
    ensemble.raft.config.count = 3;
    assert_true(room_for_forwarded(&ensemble)); /* by followers that did not know */
    ensemble.applied_index = ensemble.raft.last_index;
    window_trim(&ensemble.log, ensemble.applied_index);
    window_trim(&ensemble.outbox.entries, outbox_last(&ensemble.outbox));
    assert_true(ensemble_can_append(&ensemble) && !ensemble_is_full(&ensemble));
    room_shrink(&ensemble); /* they are within what they may take, and may come again */
    assert_true(ensemble.log.bytes.room >= 8 * MIB);
    ensemble_limit_memory(&ensemble, MIB);
    room_shrink(&ensemble);
    assert_in_range(ensemble.log.bytes.room, 1, MIB);
    assert_in_range(ensemble.outbox.entries.bytes.room, 1, MIB);
    fill(&ensemble.log, MIB); /* what was given back comes back */
    assert_false(ensemble_can_append(&ensemble));
    close_ensemble();
}

static void entries_have_what_the_rest_leaves(void **state) {
    (void)state;
    enum { LIMIT = 1 << 30 };
    server = (struct server){.memory.limit = LIMIT, .tree.node_arena.used = sizeof(struct node)};
    open_ensemble();
    server.ensemble = &ensemble;
    memory_measure(&server);
    size_t before = ensemble.memory_max;
    assert_in_range(before, LIMIT / 5, LIMIT / 3);
    fill(&ensemble.log, LIMIT / 16); /* for a time */
    server.memory.used = LIMIT;
    assert_false(memory_is_short(&server)); /* they have grown, so it is measured again */
    assert_in_range(ensemble.memory_max, before - LIMIT / 64, before + LIMIT / 64);
    ensemble.log.bytes.used -= LIMIT / 16; /* as if something else had grown */
    memory_measure(&server);
    assert_in_range(ensemble.memory_max, LIMIT / 8, before - LIMIT / 64);
    close_ensemble();
}

/* What is durable is acknowledged, so the leader sends more. */
static void what_is_not_applied_is_bounded(void **state) {
    (void)state;
    server.settings.inflight_bytes = 16 * MIB;
    open_ensemble();
    ensemble.raft.role = RAFT_FOLLOWER;
    fill(&ensemble.log, 8 * MIB);
    ensemble.raft.durable_index = ensemble.raft.last_index;
    assert_true(room_for_received(&ensemble));
    assert_int_equal(room_in_flight(&ensemble), 16 * MIB);
    ensemble_limit_memory(&ensemble, 32 * MIB);
    assert_in_range(room_in_flight(&ensemble), MIB, 8 * MIB);
    assert_true(room_for_received(&ensemble)); /* nothing can be applied before more is committed */
    ensemble.raft.commit_index = ensemble.raft.last_index;
    assert_false(room_for_received(&ensemble));
    ensemble.raft.last_index++;
    assert_false(disk_has_work(&ensemble) || disk_write(&ensemble));
    ensemble.draining = true;
    assert_true(disk_has_work(&ensemble));
    ensemble.applied_index = ensemble.raft.commit_index / 4 * 3;
    assert_true(room_for_received(&ensemble));
    close_ensemble();
}

static void members_hear_of_each_other(void **state) {
    (void)state;
    open_ensemble();
    room_heard(&ensemble, 2, true);
    assert_false(ensemble_memory_is_short(&ensemble)); /* it is alone */
    ensemble.links = (struct links *)&ensemble;        /* nothing is sent */
    assert_false(ensemble_memory_is_short(&ensemble));
    ensemble.peer[2].linked = true;
    assert_true(ensemble_memory_is_short(&ensemble));
    room_heard(&ensemble, 2, false);
    assert_false(ensemble_memory_is_short(&ensemble));
    close_ensemble();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_take_no_more_than_they_may),
        cmocka_unit_test(entries_have_what_the_rest_leaves),
        cmocka_unit_test(what_is_not_applied_is_bounded),
        cmocka_unit_test(members_hear_of_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
