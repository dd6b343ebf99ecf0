/* A lock that comes when whoever wanted it does not want it any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "algorithms/catalogue.h"
#include "base/assert.h"
#include "peer/internal.h"
#include "wire/net/stream.h"

enum { SELF = 2, COORDINATOR = 1, GRANT = 1 }; /* of central */

/* A competitor whose coordinator is this test. */
struct place {
    char directory[40];
    uv_loop_t loop;
    struct group group;
    struct peer *peer;
    unsigned entered, left; /* what the application was told */
};

static void told(void *owner, const struct cv_tell *tell) {
    struct place *place = owner;
    place->entered += tell->what == CV_ENTERED;
    place->left += tell->what == CV_LEFT;
}

static void failed(void *owner, const char *why) {
    (void)owner;
    fail_msg("%s", why);
}

static int begin(void **state) {
    struct place *place = calloc(1, sizeof *place);
    char text[64], error[PEER_ERROR_MAX];
    cv_assert(place);
    *state = place;
    strcpy(place->directory, "/tmp/test_peer_lock.XXXXXX");
    int port = 18000 + (int)getpid() % 500 * 2; /* of no other test */
    snprintf(text, sizeof text, "1 127.0.0.1:%d\n2 127.0.0.1:%d\n", port, port + 1);
    group_init(&place->group, catalogue_find("central"));
    if (!mkdtemp(place->directory) || net_open(&place->loop) != 0 ||
        group_parse(&place->group, "here", text, error) != 0)
        return -1;
    const struct peer_config config = {.loop = &place->loop,
                                       .group = &place->group,
                                       .self = SELF,
                                       .data = place->directory,
                                       .owner = place,
                                       .told = told,
                                       .failed = failed};
    place->peer = peer_open(&config, error);
    if (!place->peer) print_error("%s\n", error);
    return place->peer ? 0 : -1;
}

static int end(void **state) {
    struct place *place = *state;
    char path[64];
    peer_close(place->peer);
    while (uv_run(&place->loop, UV_RUN_ONCE)) continue;
    net_shut(&place->loop);
    group_free(&place->group);
    snprintf(path, sizeof path, "%s/durable", place->directory);
    unlink(path);
    rmdir(place->directory);
    free(place);
    return 0;
}

static void grant(struct place *place) {
    const uint64_t number_and_fence[] = {1, 7};
    const struct cv_event event = {.type = CV_RECV,
                                   .from = COORDINATOR,
                                   .kind = GRANT,
                                   .size = sizeof number_and_fence,
                                   .body = number_and_fence};
    peer_step(place->peer, ALGORITHM, &event);
}

static void assert_at(const struct place *place, int phase, unsigned sent, unsigned entered,
                      unsigned left) {
    assert_int_equal(place->peer->phase, phase);
    assert_int_equal(place->peer->other[COORDINATOR].channel.last, sent);
    assert_int_equal(place->entered, entered);
    assert_int_equal(place->left, left);
}

static void what_is_wanted_is_told(void **state) {
    struct place *place = *state;
    peer_call(place->peer, CV_ACQUIRE);
    assert_at(place, WAITING, 1, 0, 0);
    grant(place);
    assert_at(place, INSIDE, 1, 1, 0);
    peer_call(place->peer, CV_RELEASE);
    assert_at(place, OUTSIDE, 2, 1, 1);
    peer_abandon(place->peer);
    assert_at(place, OUTSIDE, 2, 1, 1);
}

static void what_comes_too_late_is_given_back(void **state) {
    struct place *place = *state;
    peer_call(place->peer, CV_ACQUIRE);
    peer_abandon(place->peer);
    assert_at(place, WAITING, 1, 0, 0);
    grant(place);
    assert_at(place, OUTSIDE, 2, 0, 0);
}

static void one_wish_serves_for_the_next(void **state) {
    struct place *place = *state;
    peer_call(place->peer, CV_ACQUIRE);
    peer_abandon(place->peer);
    peer_call(place->peer, CV_ACQUIRE);
    assert_at(place, WAITING, 1, 0, 0);
    grant(place);
    assert_at(place, INSIDE, 1, 1, 0);
}

static void what_is_had_is_given_back(void **state) {
    struct place *place = *state;
    peer_call(place->peer, CV_ACQUIRE);
    grant(place);
    peer_abandon(place->peer);
    assert_at(place, OUTSIDE, 2, 1, 0);
    peer_call(place->peer, CV_ACQUIRE);
    assert_at(place, WAITING, 3, 1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_wanted_is_told, begin, end),
        cmocka_unit_test_setup_teardown(what_comes_too_late_is_given_back, begin, end),
        cmocka_unit_test_setup_teardown(one_wish_serves_for_the_next, begin, end),
        cmocka_unit_test_setup_teardown(what_is_had_is_given_back, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
