/* A server that joins learns the id of its ensemble: what it tells the others then, and whom it
 * answers.  Its links are real, on loopback; the others are links alone.  A member without its
 * vote.  And who keeps an ensemble from being founded. */
#include <arpa/inet.h>
#include <sys/socket.h>
#include <time.h>

#include "file_help.h"
#include "patience.h"
#include "service/ensemble/codec.h"
#include "service/ensemble/internal.h"
#include "service/store/data.h"

enum { ENSEMBLE = 77, SELF = 1, MEMBER = 2, STRANGER = 3, ATTEMPTS = 20 };

static uv_loop_t loop;
static uv_timer_t tick; /* so that the loop never waits for long */

static void on_tick(uv_timer_t *timer) { (void)timer; }

static time_t now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

#define WAIT(CONDITION)                                                                            \
    for (time_t begun_ = now_s(); !(CONDITION);) {                                                 \
        if (now_s() - begun_ > PATIENCE_MS / 1000) fail_msg("not in time: %s", #CONDITION);        \
        uv_run(&loop, UV_RUN_ONCE);                                                                \
    }

/* ---- The others ---- */

struct other {
    uint64_t heard_ensemble; /* in the server's last hello */
    struct links *links;
    int32_t port;
};

static bool is_expected(void *owner, uint64_t id, uint64_t ensemble, uint32_t directory) {
    struct other *o = owner;
    (void)directory;
    if (id == SELF) o->heard_ensemble = ensemble;
    return true;
}

static void introduce(void *owner, uint64_t id) {
    struct other *o = owner;
    struct frame_introduction frame = {.port = (uint32_t)o->port};
    struct bytes *out = link_begin(o->links, id, FRAME_TYPE_introduction, LINK_URGENT);
    assert_non_null(out);
    codec_write_introduction(out, link_version(o->links, id), &frame);
    bytes_add(out, "127.0.0.1", 9);
    link_end(o->links, id);
    links_flush(o->links);
}

static void on_down(void *owner, uint64_t id, enum link_reason reason) {
    (void)owner, (void)id, (void)reason;
}

static void on_drained(void *owner, uint64_t id) { (void)owner, (void)id; }

static void on_frame(void *owner, uint64_t from, uint16_t version, uint32_t type,
                     const unsigned char *bytes, size_t size) {
    (void)owner, (void)from, (void)version, (void)type, (void)bytes, (void)size;
}

static struct other member, stranger;

static void other_open(struct other *o, uint64_t id) {
    o->links = links_open(&(struct links_config){.loop = &loop,
                                                 .id = id,
                                                 .ensemble = ENSEMBLE,
                                                 .incarnation = id << 32 | 1,
                                                 .seed = id,
                                                 .owner = o,
                                                 .is_expected = is_expected,
                                                 .on_frame = on_frame,
                                                 .on_up = introduce,
                                                 .on_down = on_down,
                                                 .on_drained = on_drained});
    assert_null(links_listen(o->links, "127.0.0.1", &o->port));
}

/* ---- The server ---- */

struct joining {
    struct ensemble ensemble;
    struct settings settings;
    struct clock clock;
    struct busy busy;
    struct place place;
    struct tree tree;
};

static void wake(void *owner) { (void)owner; }
static const struct ensemble_callbacks callbacks = {.wake = wake};

static int32_t unused_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(one, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(one, (struct sockaddr *)&address, &size), 0);
    close(one);
    return ntohs(address.sin_port);
}

static void set_members(struct member_list *list, int32_t own_port, int32_t member_port) {
    char text[256], why[256] = "";
    int size = snprintf(text, sizeof text,
                        "server.%d=127.0.0.1:%d:%d:participant\n"
                        "server.%d=127.0.0.1:%d:%d:participant\n",
                        SELF, own_port, own_port, MEMBER, member_port, member_port);
    *list = (struct member_list){0};
    if (!member_list_parse(list, text, (size_t)size, why, sizeof why)) fail_msg("%s", why);
}

static struct joining *join(void) {
    struct joining *j = calloc(1, sizeof *j);
    assert_non_null(j);
    struct ensemble *e = &j->ensemble;
    settings_default(&j->settings);
    place_open(&j->place);
    assert_int_equal(vote_read(&e->vote, j->place.directory, j->place.path), 0);
    j->settings.join = true;
    assert_int_equal(tree_open_empty(&j->tree, 1), 0);
    e->settings = &j->settings;
    e->tree = &j->tree;
    e->loop = &loop;
    e->clock = &j->clock;
    e->busy = &j->busy;
    e->owner = j;
    e->callbacks = &callbacks;
    e->incarnation = 0x123456789;
    e->raft.self = SELF;
    e->raft.vote_withheld = 1;
    int status = -1;
    for (unsigned i = 0; i < ATTEMPTS && status; i++) { /* another may take the port */
        if (e->links) links_close(e->links);
        set_members(&j->settings.members, unused_port(), member.port);
        status = peers_open(e);
    }
    assert_int_equal(status, 0);
    return j;
}

/* A configuration with the id of the ensemble is committed. */
static void learn(struct joining *j) {
    struct member_list list = j->settings.members;
    struct bytes text = {0};
    list.ensemble = ENSEMBLE;
    member_list_write(&list, &text);
    identity_committed(&j->ensemble, (struct zk_text){(const char *)text.at, (int32_t)text.used});
    assert_int_equal(j->ensemble.vote.ensemble_id, ENSEMBLE);
    bytes_close(&text);
}

static int open_loop(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(net_open(&loop), 0);
    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, on_tick, 2, 2);
    return 0;
}

/* Also after a failure. */
static int close_loop(void **state) {
    struct joining *j = *state;
    if (j && j->ensemble.links) links_close(j->ensemble.links);
    if (member.links) links_close(member.links);
    if (stranger.links) links_close(stranger.links);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    net_shut(&loop);
    if (j) tree_close(&j->tree), place_close(&j->place);
    free(j);
    member = stranger = (struct other){0};
    return 0;
}

/* ---- Tests ---- */

/* It may come to lead members whose list does not name it: the id is what proves it to them. */
static void test_others_are_told(void **state) {
    other_open(&member, MEMBER);
    struct joining *j = *state = join();
    WAIT(j->ensemble.peer[MEMBER].up);
    assert_int_equal(member.heard_ensemble, 0);
    learn(j);
    WAIT(member.heard_ensemble == ENSEMBLE && j->ensemble.peer[MEMBER].up);
}

/* One that came before is no member by what was known then, and is answered all the same. */
static void test_others_are_answered(void **state) {
    other_open(&member, MEMBER);
    other_open(&stranger, STRANGER);
    struct joining *j = *state = join();
    const struct peer_state *peer = &j->ensemble.peer[STRANGER];
    assert_null(links_set(stranger.links, SELF, "127.0.0.1", j->settings.members.at[0].peer_port));
    WAIT(peer->introduced);
    assert_false(peer->guest);
    learn(j);
    WAIT(peer->guest && peer->up);
}

/* What the log of a new member may have: a configuration that nobody has called committed yet. */
static void add_config(struct joining *j) {
    struct bytes text = {0};
    struct log log = {.segment_bytes = 1 << 16, .no_sync = true};
    struct tree tree;
    struct data_replay replay;
    struct window window;
    struct raft_batch batch;
    enum log_state end;
    member_list_write(&j->settings.members, &text);
    struct tree_members members = {.text = {(const char *)text.at, (int32_t)text.used}};
    size_t size = tree_members_size(&members);
    assert_int_equal(tree_open(&tree, 1), 0);
    data_replay_open(&replay, &tree, 0, 0);
    int status = log_open(&log, j->place.directory, j->place.path, 0, 0, data_apply, &replay, &end);
    assert_int_equal(status, 0);
    window_open(&window, 0);
    tree_store_members(window_room(&window, size), &members);
    window_add(&window, 1, RAFT_CONFIG, size);
    window_read(&window, 1, SIZE_MAX, &batch);
    assert_int_equal(log_append(&log, &batch), 0);
    window_close(&window);
    log_close(&log);
    data_replay_close(&replay);
    tree_close(&tree);
    bytes_close(&text);
}

static int opened(struct joining *j) {
    struct tree tree;
    int status = -1;
    assert_int_equal(tree_open(&tree, 1), 0);
    struct ensemble *e = ensemble_open(&(struct ensemble_config){.settings = &j->settings,
                                                                 .loop = &loop,
                                                                 .clock = &j->clock,
                                                                 .busy = &j->busy,
                                                                 .tree = &tree,
                                                                 .owner = j,
                                                                 .callbacks = &callbacks},
                                       &status);
    ensemble_end_links(e);
    ensemble_free(e);
    tree_close(&tree);
    return status;
}

/* It may have voted, and would vote once more. */
static void test_without_its_vote(void **state) {
    struct joining *j = *state = calloc(1, sizeof *j);
    assert_non_null(j);
    settings_default(&j->settings);
    place_open(&j->place);
    j->settings.server_id = SELF;
    j->settings.insecure = true;
    snprintf(j->settings.data_dir, sizeof j->settings.data_dir, "%s", j->place.path);
    snprintf(j->settings.log_dir, sizeof j->settings.log_dir, "%s", j->place.path);
    int status = -1;
    for (unsigned i = 0; i < ATTEMPTS && status; i++) { /* another may take the port */
        struct vote vote;
        each_file(&j->place, remove_file);
        set_members(&j->settings.members, unused_port(), unused_port());
        assert_int_equal(vote_read(&vote, j->place.directory, j->place.path), 0);
        assert_int_equal(vote_write(&vote), 0);
        add_config(j);
        status = opened(j);
    }
    assert_int_equal(status, 0);
    remove_file(j->place.directory, VOTE_NAME);
    assert_int_equal(opened(j), ENSEMBLE_EXIT_FAILED);
}

/* A server that the configuration does not name counts while it runs, and some time longer; one
 * that it names counts for ever. */
static void test_data_of_another_server(void **state) {
    struct joining *j = *state = calloc(1, sizeof *j);
    assert_non_null(j);
    place_open(&j->place);
    struct ensemble *e = &j->ensemble;
    e->settings = &j->settings;
    e->clock = &j->clock;
    e->raft.self = SELF;
    e->raft.config = (struct raft_config){.count = 2, .at = {{SELF, 0, 1}, {MEMBER, 0, 1}}};
    j->clock.monotonic_us = 1000000000;
    assert_int_equal(identity_knows_data(e), 0);
    e->peer[STRANGER] = (struct peer_state){.ensemble = ENSEMBLE, .introduced = true};
    assert_int_equal(identity_knows_data(e), STRANGER);
    identity_gone(e, STRANGER);
    assert_int_equal(identity_knows_data(e), STRANGER);
    j->clock.monotonic_us += 9000000;
    assert_int_equal(identity_knows_data(e), STRANGER);
    j->clock.monotonic_us += 2000000;
    assert_int_equal(identity_knows_data(e), 0);
    e->peer[MEMBER].ensemble = ENSEMBLE;
    assert_int_equal(identity_knows_data(e), MEMBER);
    e->raft.config.count = 1; /* the others may be members of what it has lost */
    assert_int_equal(identity_knows_data(e), MEMBER);
    j->settings.found = true;
    assert_int_equal(identity_knows_data(e), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_others_are_told, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(test_others_are_answered, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(test_without_its_vote, open_loop, close_loop),
        cmocka_unit_test_setup_teardown(test_data_of_another_server, open_loop, close_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
