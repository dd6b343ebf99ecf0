/* What a fence hears from a server about the holders.  The loop is this test's, which decides what
 * happens on the server between two of its steps. */
#include "client_help.h"

#include "fence/view.h"
#include "wire/net/stream.h"

#define CONTENDER "/0123456789abcdef0123456789abcdef__lock__0000000000"

static struct cv_test_server *server;
static struct cv_client *other;

struct scene {
    uv_loop_t loop;
    struct cv_options options;
    struct fence_view *view;
    struct {
        int times, unreached;
        uint64_t question;
        int64_t holder;
    } heard[2]; /* of each lock */
};

static void heard(void *owner, size_t lock, uint64_t question, int64_t holder) {
    struct scene *scene = owner;
    scene->heard[lock].times++;
    scene->heard[lock].question = question;
    scene->heard[lock].holder = holder;
}

static void reached(void *owner, size_t lock, bool reached) {
    struct scene *scene = owner;
    scene->heard[lock].unreached += !reached;
}

static void start(struct scene *scene, const char *const *locks, size_t count) {
    static const struct fence_view_calls calls = {heard, reached};
    char message[200];
    *scene = (struct scene){.options.servers = cv_test_server_address(server),
                            .options.session_timeout = 60000};
    assert_int_equal(net_open(&scene->loop), 0);
    scene->view = fence_view_open(&scene->loop, &scene->options, "/conclave/locks", locks, count,
                                  &calls, scene, message, sizeof message);
    assert_non_null(scene->view);
}

static void stop(struct scene *scene) {
    fence_view_close(scene->view);
    uv_run(&scene->loop, UV_RUN_DEFAULT);
    net_shut(&scene->loop);
}

/* Steps of the loop until the expression is true. */
#define STEP_UNTIL(SCENE, EXPRESSION) AWAIT((uv_run(&(SCENE)->loop, UV_RUN_NOWAIT), (EXPRESSION)))

/* Something has come for the loop, which has not seen it yet. */
static void await_news(struct scene *scene) {
    struct pollfd ready = {.fd = uv_backend_fd(&scene->loop), .events = POLLIN};
    assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
}

static void create(const char *path) {
    assert_int_equal(cv_create(other, path, NULL, 0, 0, NULL, 0), CV_OK);
}

/* The lock's node comes between the two looks that are needed to find out that there is none: what
 * happens below it is watched all the same. */
static void test_node_comes_in_between(void **state) {
    static const char *const locks[] = {"between"};
    struct scene scene;
    struct cv_stat stat;
    (void)state;
    start(&scene, locks, 1);
    STEP_UNTIL(&scene, scene.heard[0].times == 1);
    assert_int_equal(scene.heard[0].holder, 0);
    create("/conclave/locks/between");
    assert_int_equal(cv_delete(other, "/conclave/locks/between", -1), CV_OK);
    await_news(&scene); /* it came */
    uv_run(&scene.loop, UV_RUN_NOWAIT);
    await_news(&scene); /* but it is not there */
    create("/conclave/locks/between");
    STEP_UNTIL(&scene, scene.heard[0].times == 2);
    assert_int_equal(scene.heard[0].holder, 0);
    /* A watch fires before the servers answer what is asked after the change: then the fence looks
     * once more for its sake, before it looks for the sake of the second question. */
    create("/conclave/locks/between" CONTENDER);
    assert_int_equal(fence_view_ask(scene.view, 0), 1);
    STEP_UNTIL(&scene, scene.heard[0].times == 3);
    assert_int_equal(fence_view_ask(scene.view, 0), 2);
    STEP_UNTIL(&scene, scene.heard[0].times == 4);
    assert_int_equal(scene.heard[0].question, 1);
    assert_int_equal(cv_exists(other, "/conclave/locks/between" CONTENDER, &stat), CV_OK);
    assert_int_equal(scene.heard[0].holder, stat.czxid);
    stop(&scene);
}

/* Each way from no node to a holder and back is heard of without a question. */
static void test_node_comes_and_goes(void **state) {
    static const char *const locks[] = {"comes"};
    struct scene scene;
    (void)state;
    start(&scene, locks, 1);
    for (int round = 0; round < 3; round++) {
        STEP_UNTIL(&scene, scene.heard[0].times && !scene.heard[0].holder);
        int times = scene.heard[0].times;
        fence_view_ask(scene.view, 0); /* there is none, and that is watched already */
        STEP_UNTIL(&scene, scene.heard[0].times > times);
        create("/conclave/locks/comes");
        create("/conclave/locks/comes" CONTENDER);
        STEP_UNTIL(&scene, scene.heard[0].holder);
        assert_int_equal(cv_delete(other, "/conclave/locks/comes" CONTENDER, -1), CV_OK);
        assert_int_equal(cv_delete(other, "/conclave/locks/comes", -1), CV_OK);
    }
    stop(&scene);
}

/* A lock that the fence may not look at does not hide another one. */
static void test_one_cannot_be_read(void **state) {
    static const char *const locks[] = {"open", "shut"};
    static const struct cv_acl nobody = {CV_DELETE, "world", "anyone"};
    struct scene scene;
    struct cv_op op = cv_op_create("/conclave/locks/shut", NULL, 0, 0);
    (void)state;
    op.acl = &nobody;
    op.acl_count = 1;
    assert_int_equal(cv_call(other, &op, NULL), CV_OK);
    start(&scene, locks, 2);
    STEP_UNTIL(&scene, scene.heard[0].times && scene.heard[1].unreached);
    int before = scene.heard[0].unreached;
    STEP_UNTIL(&scene, scene.heard[1].unreached > 2);
    assert_int_equal(scene.heard[0].unreached, before);
    assert_int_equal(scene.heard[1].times, 0);
    stop(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_comes_in_between),
        cmocka_unit_test(test_node_comes_and_goes),
        cmocka_unit_test(test_one_cannot_be_read),
    };
    name_program();
    server = cv_test_server();
    if (!server) return 1;
    struct cv_options options = {.servers = cv_test_server_address(server),
                                 .session_timeout = 60000,
                                 .connect_timeout = PATIENCE_MS};
    if (cv_open(&other, &options) != CV_OK) return 1;
    if (cv_create_all(other, "/conclave/locks", 0) != CV_OK) return 1;
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cv_close(other);
    cv_test_server_stop(server);
    return failures;
}
