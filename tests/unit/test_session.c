/* How long a server that does not reach its leader keeps its clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "service/ensemble/internal.h"
#include "service/server/internal.h"

enum { LAST_US = 5000000 };

static struct clock now;
static struct ensemble ensemble = {.clock = &now, .contact.last_us = LAST_US};
static struct tracked_session tracked[3];
static struct server server = {.ensemble = &ensemble,
                               .settings.election_timeout_ms = 500,
                               .sessions.at = tracked,
                               .sessions.room = 3,
                               .sessions.count = 3};

static bool is_let_go(int32_t timeout_ms, uint64_t silent_ms) {
    struct connection connection = {.server = &server, .session = 2};
    tracked[2].timeout_ms = timeout_ms;
    now.monotonic_us = LAST_US + silent_ms * 1000;
    return session_is_out_of_touch(&connection);
}

static void a_client_may_leave_while_its_session_lasts(void **state) {
    (void)state;
    for (int32_t timeout_ms = 3000; timeout_ms < 60000; timeout_ms += 3000) {
        assert_false(is_let_go(timeout_ms, (uint64_t)timeout_ms / 3));
        assert_true(is_let_go(timeout_ms, (uint64_t)timeout_ms / 3 + 1));
    }
}

static void an_election_disconnects_nobody(void **state) {
    (void)state;
    for (int32_t ms = 500; ms <= 4000; ms *= 2) {
        server.settings.election_timeout_ms = ms;
        assert_false(is_let_go(200, (uint64_t)ms * 14 / 10));
        assert_true(is_let_go(200, (uint64_t)ms * 14 / 10 + 1));
    }
    server.settings.election_timeout_ms = 500;
}

static void who_has_no_session_stays(void **state) {
    struct connection connection = {.server = &server};
    (void)state;
    now.monotonic_us = LAST_US + 3600 * UINT64_C(1000000);
    assert_false(session_is_out_of_touch(&connection));
}

static void a_server_alone_is_its_own_leader(void **state) {
    (void)state;
    ensemble.standalone = true;
    assert_false(is_let_go(2000, 3600000));
    ensemble.standalone = false;
    assert_true(is_let_go(2000, 3600000));
}

static bool is_renewed_by(int64_t id, const char password[TREE_PASSWORD_SIZE], int32_t size) {
    struct zk_connect_request r = {.session_id = id, .passwd = {password, size}};
    tracked[1] = (struct tracked_session){.timeout_ms = 2000};
    session_touch_proven(&server, &r);
    return tracked[1].deadline_ms >= server.clock.monotonic_us / 1000 + 2000;
}

static void who_resumes_a_session_has_been_heard_from(void **state) {
    static const char own[TREE_PASSWORD_SIZE] = "its own password", other[TREE_PASSWORD_SIZE];
    (void)state;
    assert_int_equal(tree_open(&server.tree, 1), 0);
    assert_int_equal(session_add(&server.tree, 7, 2000, (const unsigned char *)own), 1);
    assert_true(is_renewed_by(7, own, TREE_PASSWORD_SIZE));
    assert_int_equal(server.sessions.touched_count, 1);
    assert_int_equal(server.sessions.touched[0], 7);
    assert_false(is_renewed_by(7, other, TREE_PASSWORD_SIZE));
    assert_false(is_renewed_by(7, own, TREE_PASSWORD_SIZE - 1));
    assert_false(is_renewed_by(8, own, TREE_PASSWORD_SIZE));
    free(server.sessions.touched);
    tree_close(&server.tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_may_leave_while_its_session_lasts),
        cmocka_unit_test(an_election_disconnects_nobody),
        cmocka_unit_test(who_has_no_session_stays),
        cmocka_unit_test(a_server_alone_is_its_own_leader),
        cmocka_unit_test(who_resumes_a_session_has_been_heard_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
