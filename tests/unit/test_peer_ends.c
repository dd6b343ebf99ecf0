/* What becomes of a lock that nobody wants any more, and of a peer that ends and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "patience.h"

#include "algorithms/catalogue.h"
#include "base/assert.h"
#include "base/logger.h"
#include "peer/internal.h"
#include "wire/net/stream.h"

enum { PEERS = 3 };

struct place {
    char directory[40], *data[PEERS + 1];
    uv_loop_t loop;
    struct group group;
    struct peer *peer[PEERS + 1]; /* by pid; NULL: it does not run */
    const char *record;           /* of those that are started from now on; NULL: none */
    unsigned entered, left;       /* what applications were told */
    uint64_t token;               /* of the last that entered */
    bool may_fail, has_failed;
};

static void told(void *owner, const struct cv_tell *tell) {
    struct place *place = owner;
    place->entered += tell->what == CV_ENTERED;
    if (tell->what == CV_ENTERED) place->token = tell->arg;
    place->left += tell->what == CV_LEFT;
}

static void failed(void *owner, const char *why) {
    struct place *place = owner;
    if (!place->may_fail) fail_msg("%s", why);
    place->has_failed = true;
}

static void all_done(void *owner) { (void)owner; }
static void ignore(void *arg, const char *line, size_t size) { (void)arg, (void)line, (void)size; }

static int begin(void **state) {
    struct place *place = calloc(1, sizeof *place);
    cv_assert(place);
    *state = place;
    strcpy(place->directory, "/tmp/test_peer_ends.XXXXXX");
    if (!mkdtemp(place->directory)) return -1;
    for (int p = 1; p <= PEERS; p++)
        if (asprintf(&place->data[p], "%s/%d", place->directory, p) < 0) return -1;
    return net_open(&place->loop);
}

static void form(struct place *place, const char *algorithm) {
    char text[128], error[GROUP_ERROR_MAX];
    int port = 18000 + (int)getpid() % 300 * PEERS; /* of no other test */
    snprintf(text, sizeof text, "1 127.0.0.1:%d\n2 127.0.0.1:%d\n3 127.0.0.1:%d\n", port, port + 1,
             port + 2);
    group_init(&place->group, catalogue_find(algorithm));
    assert_int_equal(group_parse(&place->group, "here", text, error), 0);
}

static struct peer *start(struct place *place, cv_pid self) {
    const struct peer_config config = {.loop = &place->loop,
                                       .group = &place->group,
                                       .self = self,
                                       .data = place->data[self],
                                       .record = place->record,
                                       .owner = place,
                                       .told = told,
                                       .all_done = all_done,
                                       .failed = failed};
    char error[PEER_ERROR_MAX];
    struct peer *peer = place->peer[self] = peer_open(&config, error);
    if (!peer) fail_msg("%s", error);
    return peer;
}

static void stop(struct place *place, cv_pid self) {
    if (place->peer[self]) peer_close(place->peer[self]);
    place->peer[self] = NULL;
}

static int end(void **state) {
    struct place *place = *state;
    char path[64];
    for (cv_pid p = 1; p <= PEERS; p++) stop(place, p);
    while (uv_run(&place->loop, UV_RUN_ONCE)) continue;
    net_shut(&place->loop);
    group_free(&place->group);
    for (cv_pid p = 1; p <= PEERS; p++) {
        snprintf(path, sizeof path, "%s/durable", place->data[p]);
        unlink(path);
        rmdir(place->data[p]);
        free(place->data[p]);
    }
    rmdir(place->directory);
    free(place);
    return 0;
}

/* ---- Locks: of a competitor whose coordinator is this test ---- */

enum { SELF = 2, COORDINATOR = 1, GRANT = 1 }; /* of central */

static struct peer *compete(struct place *place) {
    form(place, "central");
    return start(place, SELF);
}

static void grant_with(struct place *place, uint64_t number, uint64_t fence) {
    const uint64_t number_and_fence[] = {number, fence};
    const struct cv_event event = {.type = CV_RECV,
                                   .from = COORDINATOR,
                                   .kind = GRANT,
                                   .size = sizeof number_and_fence,
                                   .body = number_and_fence};
    peer_step(place->peer[SELF], ALGORITHM, &event);
}

static void grant(struct place *place) { grant_with(place, 1, 7); }

static void assert_at(const struct place *place, int phase, unsigned sent, unsigned entered,
                      unsigned left) {
    assert_int_equal(place->peer[SELF]->phase, phase);
    assert_int_equal(place->peer[SELF]->other[COORDINATOR].channel.last, sent);
    assert_int_equal(place->entered, entered);
    assert_int_equal(place->left, left);
}

static void what_is_wanted_is_told(void **state) {
    struct place *place = *state;
    struct peer *peer = compete(place);
    peer_call(peer, CV_ACQUIRE);
    assert_at(place, WAITING, 1, 0, 0);
    grant(place);
    assert_at(place, INSIDE, 1, 1, 0);
    peer_call(peer, CV_RELEASE);
    assert_at(place, OUTSIDE, 2, 1, 1);
    peer_abandon(peer);
    assert_at(place, OUTSIDE, 2, 1, 1);
}

static void what_comes_too_late_is_given_back(void **state) {
    struct place *place = *state;
    struct peer *peer = compete(place);
    peer_call(peer, CV_ACQUIRE);
    peer_abandon(peer);
    assert_at(place, WAITING, 1, 0, 0);
    grant(place);
    assert_at(place, OUTSIDE, 2, 0, 0);
}

static void one_wish_serves_for_the_next(void **state) {
    struct place *place = *state;
    struct peer *peer = compete(place);
    peer_call(peer, CV_ACQUIRE);
    peer_abandon(peer);
    peer_call(peer, CV_ACQUIRE);
    assert_at(place, WAITING, 1, 0, 0);
    grant(place);
    assert_at(place, INSIDE, 1, 1, 0);
}

static void what_is_had_is_given_back(void **state) {
    struct place *place = *state;
    struct peer *peer = compete(place);
    peer_call(peer, CV_ACQUIRE);
    grant(place);
    peer_abandon(peer);
    assert_at(place, OUTSIDE, 2, 1, 0);
    peer_call(peer, CV_ACQUIRE);
    assert_at(place, WAITING, 3, 1, 0);
}

/* ---- The end of a group ---- */

static void run_once(struct place *place, uint64_t began, const char *what) {
    if ((uv_hrtime() - began) / 1000000 > PATIENCE_MS) fail_msg("not in time: %s", what);
    uv_run(&place->loop, UV_RUN_NOWAIT);
    usleep(1000);
}
#define RUN_UNTIL(CONDITION)                                                                       \
    for (uint64_t began = uv_hrtime(); !(CONDITION);) run_once(place, began, #CONDITION)

/* Nobody ends on the word of one that was done, has ended in order, and is back. */
static void who_is_back_is_not_done(void **state) {
    struct place *place = *state;
    form(place, "ricart-agrawala");
    struct peer *back = start(place, 1), *one = start(place, 2), *other = start(place, 3);
    peer_done(back, true);
    peer_done(one, false);
    RUN_UNTIL(one->other[1].done && one->other[1].knows_us_done && other->other[1].done);
    assert_int_equal(peer_suspend(back), 0);
    stop(place, 1);
    RUN_UNTIL(!one->other[1].up && !other->other[1].up);
    back = start(place, 1);
    assert_true(back->resumed);
    RUN_UNTIL(!one->other[1].done && !other->other[1].done);
    peer_done(other, false);
    RUN_UNTIL(one->other[3].done && one->other[3].knows_us_done);
    assert_false(one->over);
    peer_done(back, false);
    RUN_UNTIL(one->over && other->over && back->over);
}

/* ---- The next run ---- */

static void run_a_while(struct place *place) {
    for (int i = 0; i < 100; i++) {
        uv_run(&place->loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
}

static bool are_connected(const struct peer *a, const struct peer *b) {
    return a->other[b->self].up && b->other[a->self].up &&
           a->other[b->self].incarnation == b->incarnation &&
           b->other[a->self].incarnation == a->incarnation;
}

/* The others end while the third, which was done, is back and not done any more: it is
 * inside, or waits. */
static void end_without_the_third(struct place *place, bool waits) {
    form(place, "suzuki-kasami");
    struct peer *one = start(place, 1), *two = start(place, 2), *three = start(place, 3);
    peer_call(two, CV_ACQUIRE);
    RUN_UNTIL(two->phase == INSIDE);
    peer_done(one, false);
    peer_done(three, false);
    RUN_UNTIL(one->other[3].done && one->other[3].knows_us_done);
    peer_part(one, 3, true);
    stop(place, 3);
    RUN_UNTIL(!two->other[3].up && two->other[3].gone);
    if (waits) peer_part(two, 3, true);
    three = start(place, 3);
    peer_call(three, CV_ACQUIRE);
    if (!waits) RUN_UNTIL(three->other[2].channel.acknowledged);
    peer_call(two, CV_RELEASE);
    if (!waits) RUN_UNTIL(three->phase == INSIDE);
    peer_done(two, false);
    RUN_UNTIL(one->over && two->over);
    assert_true(one->ended && two->ended);
    assert_int_equal(three->phase, waits ? WAITING : INSIDE);
    stop(place, 1);
    stop(place, 2);
    RUN_UNTIL(three->other[1].gone && three->other[2].gone);
    peer_done(start(place, 2), false);
}

/* A fencing token that does not fit beside the number of the run would be a lower one. */
static void nobody_enters_without_a_token_that_is_higher(void **state) {
    struct place *place = *state;
    const uint64_t used_up = (uint64_t)1 << PEER_TOKEN_RUN;
    struct peer *peer = compete(place);
    place->may_fail = true;
    peer_call(peer, CV_ACQUIRE);
    grant_with(place, 1, used_up - 1);
    assert_true(place->token == used_up - 1 && !place->has_failed);
    peer_call(peer, CV_RELEASE);
    peer_call(peer, CV_ACQUIRE);
    grant_with(place, 2, used_up);
    assert_int_equal(place->entered, 1);
    assert_true(place->has_failed);
}

/* Nobody enters in the next run while somebody is inside in this one. */
static void runs_do_not_overlap(void **state) {
    struct place *place = *state;
    end_without_the_third(place, false);
    struct peer *one = start(place, 1), *three = place->peer[3];
    uint64_t token = place->token;
    peer_call(one, CV_ACQUIRE);
    RUN_UNTIL(are_connected(one, place->peer[3]) && one->other[2].run == 1);
    run_a_while(place);
    assert_int_equal(three->phase, INSIDE);
    assert_false(one->begun);
    assert_int_equal(place->entered, 2);
    peer_call(three, CV_RELEASE);
    peer_done(three, false);
    RUN_UNTIL(three->over);
    RUN_UNTIL(one->phase == INSIDE);
    assert_true(place->token > token);
    assert_int_equal(one->run, 1);
}

/* Who waits for a lock whose run is over gets it in the next one. */
static void what_is_wanted_is_wanted_in_the_next_run(void **state) {
    struct place *place = *state;
    end_without_the_third(place, true);
    struct peer *one = start(place, 1), *three = place->peer[3];
    peer_call(one, CV_ACQUIRE);
    RUN_UNTIL(one->phase == INSIDE);
    assert_int_equal(three->phase, WAITING);
    peer_call(one, CV_RELEASE);
    RUN_UNTIL(three->phase == INSIDE);
    assert_int_equal(three->run, 1);
}

/* A run that has not begun is begun, and not gone on with, by a process that is back. */
static void a_run_begins_once(void **state) {
    struct place *place = *state;
    end_without_the_third(place, false);
    for (int i = 0; i < 2; i++) {
        assert_false(start(place, 1)->begun);
        run_a_while(place);
        stop(place, 1);
        run_a_while(place);
    }
    struct peer *one = start(place, 1);
    RUN_UNTIL(are_connected(one, place->peer[3]));
    peer_call(place->peer[3], CV_RELEASE);
    peer_done(place->peer[3], false);
    RUN_UNTIL(one->begun);
    peer_call(one, CV_ACQUIRE); /* the token is where it is at first */
    RUN_UNTIL(one->phase == INSIDE);
}

static bool is_recorded_when_back(struct place *place, const char *record) {
    assert_int_equal(peer_suspend(place->peer[1]), 0);
    stop(place, 1);
    for (int i = 0; i < 10; i++) uv_run(&place->loop, UV_RUN_NOWAIT); /* its files are closed */
    place->record = record;
    const struct peer *back = start(place, 1);
    assert_true(back->resumed);
    return back->recorder.fd >= 0;
}

/* A record goes on with the run that was suspended, or not at all. */
static void no_record_begins_in_the_middle(void **state) {
    struct place *place = *state;
    char record[64], other[64];
    snprintf(record, sizeof record, "%s/record", place->directory);
    snprintf(other, sizeof other, "%s/other", place->directory);
    logger_set_output(ignore, NULL);
    form(place, "ricart-agrawala");
    place->record = record;
    start(place, 1);
    assert_true(is_recorded_when_back(place, record));
    assert_false(is_recorded_when_back(place, other));
    assert_false(is_recorded_when_back(place, other)); /* it is empty, as before */
    assert_false(is_recorded_when_back(place, record));
    logger_set_output(NULL, NULL);
    unlink(record);
    unlink(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_wanted_is_told, begin, end),
        cmocka_unit_test_setup_teardown(what_comes_too_late_is_given_back, begin, end),
        cmocka_unit_test_setup_teardown(one_wish_serves_for_the_next, begin, end),
        cmocka_unit_test_setup_teardown(what_is_had_is_given_back, begin, end),
        cmocka_unit_test_setup_teardown(who_is_back_is_not_done, begin, end),
        cmocka_unit_test_setup_teardown(nobody_enters_without_a_token_that_is_higher, begin, end),
        cmocka_unit_test_setup_teardown(runs_do_not_overlap, begin, end),
        cmocka_unit_test_setup_teardown(what_is_wanted_is_wanted_in_the_next_run, begin, end),
        cmocka_unit_test_setup_teardown(a_run_begins_once, begin, end),
        cmocka_unit_test_setup_teardown(no_record_begins_in_the_middle, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
