/* Makes the seeds of the corpora for the server's files: a small tree with one of everything, as an
 * image, as the entries that make it, as a log of those entries and as a snapshot; and of the
 * corpora for the consensus core, for the frames between servers and for the cost of requests.
 *
 *   gcc -std=gnu17 -Isrc -Iinclude -D_GNU_SOURCE -o seeds tests/fuzz/seeds.c \
 *       src/{base,raft,wire/zk}/?*.c src/service/{tree,log,settings}/?*.c \
 *       src/service/ensemble/codec*.c -lm -lzstd -lcrypto
 *   ./seeds tests/fuzz/corpus */
#include "fuzz_files.h"
#include "fuzz_raft.h"
#include "fuzz_tree.h"
#include "service/ensemble/codec.h"
#include "service/log/log.h"
#include "service/log/snapshot.h"
#include "service/log/window.h"

enum { SESSION = 1, SEGMENT_BYTES = 2048 };

static const char *corpus;
static struct tree tree;
static struct bytes entries; /* each after its size, as fuzz_entry.c reads them */
static struct window window;

static void keep(const char *target, const char *name, const void *bytes, size_t size) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", corpus, target, name);
    FILE *file = fopen(path, "wb");
    cv_assert(file && fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

static void add(int32_t op, struct zk_in body) {
    struct bytes reply = {0}, identities = {0};
    zk_write_client(&identities, &(struct zk_client){zk_text_of("digest"), zk_text_of("u:p")});
    struct tree_entry entry = {.time = 1000,
                               .session = SESSION,
                               .identities = {identities.at, identities.used, 1},
                               .rules = TREE_EXTENDED_TYPES | TREE_ENFORCE_QUOTA,
                               .op = op,
                               .body = body};
    size_t size = tree_entry_size(&entry);
    cv_assert(size <= UINT16_MAX);
    unsigned char *to = bytes_extend(&entries, size + 2);
    to[0] = (unsigned char)(size >> 8);
    to[1] = (unsigned char)size;
    tree_store_entry(to + 2, &entry);
    tree_store_entry(window_room(&window, size), &entry);
    window_add(&window, 1, RAFT_NORMAL, size);
    cv_assert(tree_apply(&tree, tree.zxid + 1, &entry, &reply) == ZK_OK);
    bytes_close(&reply);
    bytes_close(&identities);
}

static void ask(int32_t op, const union zk_request *request) {
    struct bytes body = {0};
    zk_op_of(op)->request->write(&body, request);
    add(op, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

static void create(int32_t op, const char *path, const char *data, const char *scheme,
                   const char *id, int32_t flags) {
    struct bytes acl = {0};
    zk_write_acl(&acl, &(struct zk_acl){ACL_ALL, {zk_text_of(scheme), zk_text_of(id)}});
    union zk_request r = {
        .create_ttl = {zk_text_of(path), zk_text_of(data), {acl.at, acl.used, 1}, flags, 60000}};
    ask(op, &r);
    bytes_close(&acl);
}

static void add_multi(void) {
    struct bytes body = {0};
    union zk_request set = {.set_data = {zk_text_of("/a"), zk_text_of("more"), -1}};
    union zk_request check = {.check = {zk_text_of("/a"), 1}};
    union zk_request gone = {.delete = {zk_text_of("/none"), -1}};
    zk_write_multi_op(&body, ZK_OP_SET_DATA, &set);
    zk_write_multi_op(&body, ZK_OP_CHECK, &check);
    zk_write_multi_op(&body, ZK_OP_DELETE, &gone); /* and all is rolled back */
    zk_write_multi_end(&body);
    add(ZK_OP_MULTI, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

static void make_tree(void) {
    unsigned char session[4 + TREE_PASSWORD_SIZE] = {0, 0, 16};
    add(ZK_OP_CREATE_SESSION, zk_in_of(session, sizeof session));
    create(ZK_OP_CREATE, "/a", "data", "world", "anyone", ZK_PERSISTENT);
    create(ZK_OP_CREATE2, "/a/s", "", "auth", "", ZK_EPHEMERAL_SEQUENTIAL);
    create(ZK_OP_CREATE_CONTAINER, "/c", "", "digest", "u:p", ZK_CONTAINER);
    create(ZK_OP_CREATE_TTL, "/t", "", "ip", "10.0.0.0/8", ZK_TTL);
    create(ZK_OP_CREATE, "/zookeeper/quota/a", "", "world", "anyone", ZK_PERSISTENT);
    create(ZK_OP_CREATE, "/zookeeper/quota/a/zookeeper_limits",
           "count=5,bytes=5=;byteHardLimit=9;countHardLimit=9", "world", "anyone", ZK_PERSISTENT);
    create(ZK_OP_CREATE, "/zookeeper/quota/a/zookeeper_stats", "", "world", "anyone",
           ZK_PERSISTENT);
    add_multi();
}

static int ignore(void *context, const struct raft_batch *batch) {
    return (void)context, (void)batch, 0;
}

/* A segment in a new directory, after the byte that makes fuzz_log.c correct checksums. */
static void keep_log(const char *name, const struct raft_batch *batch, size_t batches, long more) {
    struct log log = {.segment_bytes = SEGMENT_BYTES};
    unsigned char file[1 + SEGMENT_BYTES] = {3};
    enum log_state end;
    fuzz_file("none", "", 0);
    cv_assert(log_open(&log, fuzz_directory, fuzz_path, 0, 0, ignore, NULL, &end) == 0);
    for (size_t i = 0; i < batches; i++) cv_assert(log_append(&log, &batch[i]) == 0);
    cv_assert(log.segments == 1 && log.end.offset + 500 < sizeof file);
    size_t used = log.end.offset;
    log_close(&log);
    int segment = openat(fuzz_directory, "log.0000000000000001", O_RDONLY | O_CLOEXEC);
    cv_assert(segment >= 0 && read(segment, file + 1, SEGMENT_BYTES) > 0);
    close(segment);
    keep("log", name, file, (size_t)((long)used + 1 + more));
}

static void keep_logs(void) {
    struct raft_batch batch[4];
    window_read(&window, 1, SIZE_MAX, &batch[0]);
    uint64_t last = raft_batch_last(&batch[0]);
    const unsigned char *text = (const unsigned char *)"\1\0\0\0x\1\0\0\0y";
    batch[0].commit_index = last;
    batch[1] = (struct raft_batch){last + 1, 2, last, 2, RAFT_NORMAL, text, 10};
    batch[2] = (struct raft_batch){last + 2, 3, last, 1, RAFT_CONFIG, text, 5}; /* replaces */
    batch[3] = (struct raft_batch){last + 3, 3, last + 2, 1, RAFT_NORMAL, text, 5};
    keep_log("whole", batch, 1, 0);
    keep_log("torn", batch, 1, -20);
    keep_log("room-left", batch, 1, 500);
    keep_log("replaced", batch, 4, 0);
}

static void keep_snapshot(const struct bytes *image) {
    struct snapshots s = {.directory = fuzz_directory, .path = fuzz_path};
    struct snapshot_writer *writer = snapshot_begin(&s, 1, 1);
    unsigned char file[8192] = {1};
    cv_assert(writer && snapshot_write(writer, image->at, image->used) == 0);
    cv_assert(snapshot_end(writer, 1) == 0);
    int snapshot = openat(fuzz_directory, "snapshot.0000000000000001", O_RDONLY | O_CLOEXEC);
    ssize_t size = read(snapshot, file + 1, sizeof file - 1);
    cv_assert(snapshot >= 0 && size > 0);
    close(snapshot);
    keep("snapshot", "tree", file, 1 + (size_t)size);
    keep("snapshot", "cut", file, (size_t)size - 9);
}

/* ---- The consensus core ---- */

/* Events as fuzz_raft.c numbers them, twice: an odd number is a message. */
enum {
    MESSAGE = 1,
    TIMER = 0,
    HEARTBEAT = 2,
    DURABLE = 4,
    PROPOSE = 6,
    TRANSFER = 14,
    COMPACT = 16
};

static struct bytes events;

static void add_event(uint8_t event, uint8_t argument) {
    unsigned char *to = bytes_extend(&events, 2);
    to[0] = event;
    to[1] = argument;
}

static void add_message(struct raft_message m) {
    uint8_t bytes[FUZZ_MESSAGE_MAX];
    size_t size = fuzz_write_message(bytes, &m);
    add_event(MESSAGE, 0);
    memcpy(bytes_extend(&events, size), bytes, size);
}

static struct raft_message message(enum raft_message_type type, uint8_t from, uint64_t term) {
    return (struct raft_message){.type = (uint8_t)type, .from = from, .term = term};
}

static void add_vote_request(uint8_t from, uint64_t term, struct raft_request_vote body) {
    struct raft_message m = message(RAFT_REQUEST_VOTE, from, term);
    m.request_vote = body;
    add_message(m);
}

static void add_vote_response(uint64_t term, uint8_t pre_vote) {
    struct raft_message m = message(RAFT_REQUEST_VOTE_RESPONSE, 2, term);
    m.request_vote_response = (struct raft_request_vote_response){1, pre_vote};
    add_message(m);
}

static void add_append(uint8_t from, uint64_t term, struct raft_append_entries body) {
    struct raft_message m = message(RAFT_APPEND_ENTRIES, from, term);
    m.append_entries = body;
    add_message(m);
}

static void add_append_response(struct raft_append_entries_response body) {
    struct raft_message m = message(RAFT_APPEND_ENTRIES_RESPONSE, 2, 1);
    m.append_entries_response = body;
    add_message(m);
}

static void keep_events(const char *name) {
    keep("raft", name, events.at, events.used);
    events.used = 0;
}

static void keep_leader(void) {
    add_event(TIMER, 0);
    add_event(TIMER, 0);
    add_vote_response(0, 1);
    add_vote_response(1, 0);
    add_event(DURABLE, 0);
    add_event(PROPOSE, 3);
    add_event(HEARTBEAT, 0);
    add_event(DURABLE, 0);
    add_append_response((struct raft_append_entries_response){.match_index = 1, .round = 1});
    add_append_response((struct raft_append_entries_response){
        .match_index = 3, .match_term = 1, .rejected_index = 5, .rejected = 1});
    add_append_response((struct raft_append_entries_response){.match_index = 5, .round = 1});
    add_event(COMPACT, 0);
    struct raft_message chunk = message(RAFT_INSTALL_SNAPSHOT_RESPONSE, 3, 1);
    chunk.install_snapshot_response.last_included_index = 5;
    add_message(chunk);
    add_event(TRANSFER, 1);
    keep_events("leads");
}

static void keep_follower(void) {
    add_append(2, 1, (struct raft_append_entries){.entries_term = 1, .round = 1, .entry_count = 3});
    add_event(DURABLE, 0);
    add_append(2, 1,
               (struct raft_append_entries){.prev_log_index = 3,
                                            .prev_log_term = 1,
                                            .leader_commit = 3,
                                            .pledge = 4,
                                            .entries_term = 1,
                                            .entry_count = 2,
                                            .lease = 1});
    add_append(
        2, 1,
        (struct raft_append_entries){
            .prev_log_index = 5, .prev_log_term = 1, .leader_commit = 4, .commit_notification = 1});
    add_append(3, 2,
               (struct raft_append_entries){.prev_log_index = 4, /* replaces 5 */
                                            .prev_log_term = 1,
                                            .leader_commit = 4,
                                            .pledge = 6,
                                            .entries_term = 2,
                                            .entry_count = 2});
    add_event(DURABLE, 0);
    add_append(3, 2,
               (struct raft_append_entries){.prev_log_index = 6,
                                            .prev_log_term = 2,
                                            .leader_commit = 6,
                                            .entries_term = 2,
                                            .entry_count = 1,
                                            .entry_kind = RAFT_CONFIG});
    add_event(COMPACT, 0);
    add_message(message(RAFT_TIMEOUT_NOW, 3, 2));
    keep_events("follows");
}

static void keep_voter(void) {
    add_event(TIMER, 0);
    add_vote_request(3, 1, (struct raft_request_vote){9, 1, 0, 0});
    add_vote_request(2, 5, (struct raft_request_vote){9, 4, 1, 0});
    add_vote_request(2, 6, (struct raft_request_vote){9, 4, 0, 0});
    add_vote_request(3, 7, (struct raft_request_vote){9, 6, 0, 1});
    struct raft_message chunk = message(RAFT_INSTALL_SNAPSHOT, 2, 8);
    chunk.install_snapshot = (struct raft_install_snapshot){7, 3, 0, 100};
    add_message(chunk);
    keep_events("votes");
}

/* ---- Frames between servers: the version, the type, the fields, a payload ---- */

static void keep_frame(const char *name, uint16_t version, uint8_t type,
                       const struct bytes *fields) {
    struct bytes frame = {0};
    char path[64];
    snprintf(path, sizeof path, "v%u-%s", version, name);
    bytes_add(&frame, (unsigned char[]){(unsigned char)version, type}, 2);
    bytes_add(&frame, fields->at, fields->used);
    bytes_add(&frame, "0123456789abcdef", 16);
    keep("codec", path, frame.at, frame.used);
    bytes_close(&frame);
}

static void keep_frames(uint16_t version) {
    struct bytes fields = {0};
    keep_frame("numbers", version, 0, &fields);
#define SET_FIELD(TYPE, NAME, FROM) body->NAME = ++value;
#define KEEP_MESSAGE(NUMBER, NAME, TITLE)                                                          \
    {                                                                                              \
        struct raft_message m = message(NUMBER, 1, 3);                                             \
        struct raft_##NAME *body = &m.NAME;                                                        \
        uint8_t value = 4;                                                                         \
        RAFT_FIELDS_##NAME(SET_FIELD) fields.used = 0;                                             \
        codec_write_message(&fields, version, &m);                                                 \
        keep_frame(#NAME, version, FRAME_MESSAGE, &fields);                                        \
    }
    RAFT_MESSAGES(KEEP_MESSAGE)
#define KEEP_FRAME(TYPE, NAME)                                                                     \
    {                                                                                              \
        struct frame_##NAME frame, *body = &frame;                                                 \
        uint8_t value = 4;                                                                         \
        (void)body, (void)value;                                                                   \
        FRAME_FIELDS_##NAME(SET_FIELD) fields.used = 0;                                            \
        codec_write_##NAME(&fields, version, &frame);                                              \
        keep_frame(#NAME, version, TYPE, &fields);                                                 \
    }
    FRAMES(KEEP_FRAME)
    bytes_close(&fields);
}

/* Programs of fuzz_cost.c, each of which is costly where something is not bounded. */
static void keep_costs(void) {
    static const struct {
        const char *name;
        size_t size;
        unsigned char program[16];
    } costs[] = {
        {"identities_in_lists", 9, {4, 1, 39, 0, 13, 3, 0, 5, 255}},
        {"identities_in_the_log", 8, {0, 0, 1, 0, 255, 0, 13, 4}},
        {"long_lists", 13, {4, 1, 39, 0, 0, 6, 255, 16, 0, 11, 1, 0, 0}},
        {"open_lists", 8, {4, 1, 39, 0, 0, 14, 255, 255}},
        {"quota_of_many", 4, {2, 0, 4, 4}},
        {"quota_of_deep", 13, {1, 0, 4, 0, 0, 13, 0, 10, 255, 0, 0, 0, 0}},
        {"watchers_of_deep", 14, {1, 0, 5, 1, 1, 0, 13, 0, 10, 255, 0, 0, 0, 0}},
        {"deaf_watchers", 8, {0, 0, 8, 3, 255, 255, 3, 39}},
        {"numbers_of_children", 12, {2, 0, 11, 5, 4, 0, 0, 11, 5, 4, 0, 0}},
    };
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        keep("cost", costs[i].name, costs[i].program, costs[i].size);
}

int main(int count, char **arguments) {
    struct bytes image = {0};
    if (count != 2) return 2;
    corpus = arguments[1];
    window_open(&window, 0);
    cv_assert(tree_open(&tree, 1) == 0 && tree_save(&tree, fuzz_write, &image) == 0);
    keep("tree_image", "new", image.at, image.used);
    make_tree();
    image.used = 0;
    cv_assert(tree_save(&tree, fuzz_write, &image) == 0);
    keep("tree_image", "one-of-everything", image.at, image.used);
    keep("entry", "one-of-everything", entries.at, entries.used);
    keep_logs();
    keep_snapshot(&image);
    keep_leader();
    keep_follower();
    keep_voter();
    keep_frames(2);
    keep_frames(3);
    keep_costs();
    return 0;
}
