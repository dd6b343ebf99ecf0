/* A tree from a log with uncommitted entries: committed entries are applied, once and in order, and
 * replaced ones never are. */
#include "base/rng.h"
#include "file_help.h"
#include "service/log/log.h"
#include "service/store/data.h"
#include "tree_help.h"

enum { SESSION = 77, ENTRIES = 400, BATCH_MAX = 6 };

struct known { /* an entry of the log as it must be */
    uint64_t term;
    enum raft_kind kind;
    unsigned name; /* of the node that it makes, if it is not about members */
};

struct history {
    struct rng rng;
    struct known entry[ENTRIES];
    uint64_t last, commit_index, term;
    unsigned names;
    struct bytes bytes;
    uint64_t batches, reported; /* by data_replay.each */
};

/* ---- Entries ---- */

static void add_tree_entry(struct bytes *to, unsigned name, int32_t op) {
    struct bytes body = {0};
    char path[32];
    snprintf(path, sizeof path, "/n%u", name);
    if (op == ZK_OP_CREATE_SESSION) {
        zk_write_i32(&body, 4000);
        memset(bytes_extend(&body, TREE_PASSWORD_SIZE), 1, TREE_PASSWORD_SIZE);
    } else {
        struct zk_create_request r = {zk_text_of(path), zk_text_of("x"), acls_of(OPEN), 0};
        zk_op_of(op)->request->write(&body, &r);
    }
    struct tree_entry entry = {
        .time = 1000, .session = SESSION, .op = op, .body = zk_in_of(body.at, body.used)};
    uint32_t size = (uint32_t)tree_entry_size(&entry);
    bytes_add(to, &size, sizeof size);
    tree_store_entry(bytes_extend(to, size), &entry);
    bytes_close(&body);
}

static struct tree_members members_of(uint64_t term) {
    return (struct tree_members){.time = (int64_t)term,
                                 .text = term % 2 ? TEXT("one") : TEXT("one and two")};
}

static void add_members(struct bytes *to, uint64_t term) {
    struct tree_members members = members_of(term);
    uint32_t size = (uint32_t)tree_members_size(&members);
    bytes_add(to, &size, sizeof size);
    tree_store_members(bytes_extend(to, size), &members);
}

static void add_entry(struct bytes *to, const struct known *known) {
    if (known->kind == RAFT_CONFIG)
        add_members(to, known->term);
    else
        add_tree_entry(to, known->name, known->name == 1 ? ZK_OP_CREATE_SESSION : ZK_OP_CREATE);
}

/* The next batch of a history, which may replace uncommitted entries. */
static struct raft_batch next_batch(struct history *h) {
    uint64_t first = h->last + 1;
    uint32_t count = 1 + (uint32_t)rng_below(&h->rng, BATCH_MAX);
    enum raft_kind kind = RAFT_NORMAL;
    if (h->last && !rng_below(&h->rng, 3)) /* once there is a session */
        first = h->commit_index + 1 + rng_below(&h->rng, h->last - h->commit_index + 1);
    if (first <= h->last || !rng_below(&h->rng, 8)) h->term++;
    if (h->last && !rng_below(&h->rng, 8)) kind = RAFT_CONFIG, count = 1;
    h->bytes.used = 0;
    for (uint32_t i = 0; i < count; i++) {
        unsigned name = kind == RAFT_CONFIG ? 0 : ++h->names;
        h->entry[first + i] = (struct known){h->term, kind, name};
        add_entry(&h->bytes, &h->entry[first + i]);
    }
    h->last = first + count - 1;
    uint64_t commit_index = h->commit_index + rng_below(&h->rng, h->last - h->commit_index + 1);
    if (!rng_below(&h->rng, 2)) commit_index = h->last; /* as on a standalone server */
    if (!h->commit_index) commit_index = commit_index ? commit_index : 1;
    if (rng_below(&h->rng, 4)) h->commit_index = commit_index;
    if (!h->commit_index) h->commit_index = 1;
    return (struct raft_batch){.first = first,
                               .term = h->term,
                               .commit_index = h->commit_index,
                               .count = count,
                               .kind = kind,
                               .bytes = h->bytes.at,
                               .size = h->bytes.used};
}

/* ---- Comparing ---- */

static int keep(void *context, const void *bytes, size_t size) {
    bytes_add(context, bytes, size);
    return 0;
}

static struct bytes image_of(const struct tree *tree) {
    struct bytes image = {0};
    assert_int_equal(tree_save((struct tree *)tree, keep, &image), 0);
    return image;
}

/* The tree of the committed entries, applied one by one. */
static void expect_decided(const struct history *h, const struct tree *tree) {
    struct tree reference;
    struct bytes entry = {0}, reply = {0};
    assert_int_equal(tree_open(&reference, tree->seed), 0);
    for (uint64_t index = 1; index <= h->commit_index; index++) {
        struct tree_entry read;
        int64_t zxid = tree_next_zxid(&reference, h->entry[index].term);
        if (h->entry[index].kind == RAFT_CONFIG) {
            struct tree_members members = members_of(h->entry[index].term);
            tree_configure(&reference, zxid, &members);
            continue;
        }
        entry.used = reply.used = 0;
        add_entry(&entry, &h->entry[index]);
        struct zk_in in = zk_in_of(entry.at + 4, entry.used - 4);
        assert_true(tree_read_entry(&in, &read));
        assert_int_equal(tree_apply(&reference, zxid, &read, &reply), ZK_OK);
    }
    struct bytes expected = image_of(&reference), found = image_of(tree);
    assert_int_equal(found.used, expected.used);
    assert_memory_equal(found.at, expected.at, expected.used);
    bytes_close(&expected);
    bytes_close(&found);
    bytes_close(&entry);
    bytes_close(&reply);
    tree_close(&reference);
}

static void note_batch(void *context, const struct raft_batch *batch) {
    struct history *h = context;
    h->batches++;
    h->reported = raft_batch_last(batch);
}

static void expect_rest(const struct history *h, const struct data_replay *r) {
    struct raft_entry entry;
    assert_int_equal(r->window.after, h->commit_index);
    assert_int_equal(window_last(&r->window), h->last);
    assert_int_equal(r->term, h->entry[h->commit_index].term);
    assert_int_equal(h->reported, h->last);
    for (uint64_t index = h->commit_index + 1; index <= h->last; index++) {
        window_entry(&r->window, index, &entry);
        assert_int_equal(entry.term, h->entry[index].term);
        assert_int_equal(entry.kind, h->entry[index].kind);
    }
}

static void committed_entries_are_applied(void **state) {
    struct history *h = malloc(sizeof *h);
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct tree tree;
        struct data_replay r;
        *h = (struct history){.term = 1};
        rng_seed(&h->rng, seed);
        assert_int_equal(tree_open(&tree, seed), 0);
        data_replay_open(&r, &tree, 0, 0);
        r.each = note_batch;
        r.context = h;
        uint64_t batches = 0;
        while (h->last + BATCH_MAX < ENTRIES && batches < 120) {
            struct raft_batch batch = next_batch(h);
            assert_int_equal(data_apply(&r, &batch), 0);
            assert_int_equal(h->batches, ++batches);
            if (batches % 7 == 0) expect_decided(h, &tree);
            expect_rest(h, &r);
        }
        expect_decided(h, &tree);
        data_replay_close(&r);
        bytes_close(&h->bytes);
        tree_close(&tree);
    }
    free(h);
}

/* Read from the files of a server: only the committed entries, whatever follows them. */
static void a_directory_is_read_up_to_the_commit_index(void **state) {
    struct history *h = calloc(1, sizeof *h);
    struct place place;
    struct log log = {.segment_bytes = 2000, .no_sync = true};
    struct tree tree;
    struct data_replay r;
    enum log_state end;
    (void)state;
    place_open(&place);
    h->term = 1;
    rng_seed(&h->rng, 99);
    assert_int_equal(tree_open(&tree, 1), 0);
    data_replay_open(&r, &tree, 0, 0);
    assert_int_equal(log_open(&log, place.directory, place.path, 0, 0, data_apply, &r, &end), 0);
    data_replay_close(&r);
    tree_close(&tree);
    for (int i = 0; i < 100 && h->last + BATCH_MAX < ENTRIES; i++) {
        struct raft_batch batch = next_batch(h);
        assert_int_equal(log_append(&log, &batch), 0);
        if (i % 10 != 9) continue;
        struct data data;
        assert_int_equal(data_open(&data), 0);
        if (data_read(&data, place.path, NULL) != 0) fail_msg("%s", data.message);
        assert_int_equal(data.index, h->commit_index);
        assert_int_equal(data.term, h->entry[h->commit_index].term);
        expect_decided(h, &data.tree);
        data_close(&data);
    }
    log_close(&log);
    bytes_close(&h->bytes);
    free(h);
    place_close(&place);
}

static void never(void *context, const struct raft_batch *batch) {
    (void)context, (void)batch;
    fail_msg("it was told of what is no batch");
}

static void malformed_batches_are_refused(void **state) {
    static const unsigned char two[] = {1, 0, 0, 0, 'x', 2, 0, 0, 0, 'y'}; /* the second is cut */
    (void)state;
    for (uint64_t commit_index = 0; commit_index < 3; commit_index++)
        for (int whole = 0; whole < 2; whole++) {
            struct tree tree;
            struct data_replay r;
            struct raft_batch batch = {.first = 1,
                                       .term = 1,
                                       .commit_index = commit_index,
                                       .count = whole ? 1 : 2,
                                       .bytes = two,
                                       .size = whole ? 5 : sizeof two};
            assert_int_equal(tree_open(&tree, 1), 0);
            data_replay_open(&r, &tree, 0, 0);
            if (!whole) r.each = never;
            /* Uncommitted entries are not decoded. */
            assert_int_equal(data_apply(&r, &batch), whole && !commit_index ? 0 : -1);
            data_replay_close(&r);
            tree_close(&tree);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_entries_are_applied),
        cmocka_unit_test(a_directory_is_read_up_to_the_commit_index),
        cmocka_unit_test(malformed_batches_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
