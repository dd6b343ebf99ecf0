/* A member among hostile ones, which have the right key: frames of any type, well-formed and with
 * any values, from a leader, a candidate or a follower, to the ensemble's own code.  No assertion
 * fails, and what is committed stays.
 *
 * The links are replaced: what the member sends is thrown away, and frames are what the input says.
 * Each number of a frame is either one that matters in the member's present state, or any.
 *
 *   event: one byte; then what it takes (see play) */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/logger.h"
#include "fuzz_raft.h"
#include "service/ensemble/internal.h"
#include "service/log/snapshot.h"

enum { VERSION = LINK_VERSION_NEWEST, EVENTS_MAX = 200, ENTRIES_MAX = 4 };

/* ---- What is replaced ---- */

struct links {
    struct links_config config;
    struct bytes out;
};
static struct links the_links;
static jmp_buf stopped;

/* The member stops itself, with a reason in its log, where the leader contradicts its data. */
void fuzz_exit(int status);
void fuzz_exit(int status) {
    (void)status;
    longjmp(stopped, 1);
}

struct links *links_open(const struct links_config *config) {
    the_links.config = *config;
    return &the_links;
}
void links_close(struct links *links) { bytes_close(&links->out); }
const char *links_listen(struct links *links, const char *host, int32_t *port) {
    (void)links, (void)host, (void)port;
    return NULL;
}
const char *links_set(struct links *links, uint64_t id, const char *host, int32_t port) {
    (void)links, (void)id, (void)host, (void)port;
    return NULL;
}
void links_set_ensemble(struct links *links, uint64_t ensemble) { (void)links, (void)ensemble; }
const char *links_judge(const struct links *links, const char *host, int32_t port) {
    (void)links, (void)host, (void)port;
    return NULL;
}
void links_drop(struct links *links, uint64_t id) { (void)links, (void)id; }
void links_learn(struct links *links, uint64_t id, const char *host, int32_t port) {
    (void)links, (void)id, (void)host, (void)port;
}
void links_redial(struct links *links) { (void)links; }
uint16_t link_version(const struct links *links, uint64_t id) {
    (void)links, (void)id;
    return VERSION;
}
struct bytes *link_begin(struct links *links, uint64_t id, uint32_t type, enum link_lane lane) {
    (void)id, (void)type, (void)lane;
    links->out.used = 0;
    return &links->out;
}
void link_end(struct links *links, uint64_t id) { (void)links, (void)id; }
void links_flush(struct links *links) { (void)links; }
size_t link_unsent(const struct links *links, uint64_t id) {
    (void)links, (void)id;
    return 0;
}
bool link_takes_bulk(struct links *links, uint64_t id) {
    (void)links, (void)id;
    return true;
}
void link_discard_bulk(struct links *links, uint64_t id) { (void)links, (void)id; }
bool link_bulk_waits(const struct links *links, uint64_t id) {
    (void)links, (void)id;
    return false;
}
uint64_t link_duration_ms(const struct links *links, uint64_t id, uint64_t bytes) {
    (void)links, (void)id, (void)bytes;
    return 0;
}
struct tls *tls_open_key(const char *path) {
    (void)path;
    return NULL;
}
struct tls *tls_open(const struct tls_files *files, enum tls_clients clients) {
    (void)files, (void)clients;
    return NULL;
}
bool tls_reload(struct tls *tls) { return tls; }
int64_t tls_expiry(const struct tls *tls) {
    (void)tls;
    return 0;
}
void tls_close(struct tls *tls) { (void)tls; }

/* ---- The owner of the member: no more than a tree ---- */

struct owner {
    struct ensemble *ensemble;
    struct tree tree;
    struct clock clock;
    struct busy busy;
    struct bytes reply, frame;
    uint64_t applied_index; /* the last */
};

static void wake(void *context) { (void)context; }

static enum ensemble_applied apply(void *context, const struct raft_entry *raw) {
    struct owner *o = context;
    struct tree_entry entry;
    struct proposal proposal;
    struct zk_in in = zk_in_of(raw->bytes, raw->size);
    cv_assert(tree_read_entry(&in, &entry));
    cv_assert(raw->index == o->ensemble->applied_index && raw->index > o->applied_index);
    o->applied_index = raw->index;
    o->reply.used = 0;
    int32_t err = tree_apply(&o->tree, tree_next_zxid(&o->tree, raw->term), &entry, &o->reply);
    if (err == TREE_OUT_OF_SEQUENCE) return ENSEMBLE_APPLIED;
    if (entry.op == ZK_OP_RECONFIG && !err) ensemble_change_applied(o->ensemble, &entry);
    ensemble_take_proposal(o->ensemble, &entry, &proposal);
    return ENSEMBLE_APPLIED;
}

static void leader_changed(void *context, enum ensemble_event event) { (void)context, (void)event; }
static void session_touched(void *context, int64_t session) { (void)context, (void)session; }

/* ---- Input ---- */

static uint8_t byte(struct fuzz_bytes *in) { return (uint8_t)fuzz_read_number(in, 1); }

/* A number that matters to this member, or one beside it, or any. */
static uint64_t index_value(const struct ensemble *e, struct fuzz_bytes *in) {
    const struct raft *r = &e->raft;
    uint8_t which = byte(in);
    const uint64_t known[] = {r->last_index,
                              r->commit_index,
                              r->durable_index,
                              r->snapshot_index,
                              r->config_index,
                              r->verified_index,
                              r->round,
                              r->pledge,
                              outbox_last(&e->outbox),
                              0,
                              RAFT_INDEX_MAX};
    enum { KNOWN = sizeof known / sizeof *known };
    if (which >= 3 * KNOWN) return fuzz_read_number(in, which & 1 ? 8 : 1);
    return known[which / 3] + which % 3 - 1;
}

static uint64_t term_value(const struct ensemble *e, struct fuzz_bytes *in) {
    uint8_t which = byte(in);
    if (which < 128) return e->raft.term;
    if (which < 200) return e->raft.term + which % 3;
    return which < 240 ? which % 8 : fuzz_read_number(in, 8);
}

static bool is_term(const char *name) { return strstr(name, "term") != NULL; }

static struct raft_message message_value(const struct ensemble *e, struct fuzz_bytes *in) {
    struct raft_message m;
    memset(&m, 0, sizeof m);
    m.type = 1 + byte(in) % (RAFT_MESSAGE_TYPES - 1);
    m.term = term_value(e, in);
    switch (m.type) {
#define VALUE_u8  byte(in)
#define VALUE_u32 byte(in)
#define VALUE_u64 index_value(e, in)
#define READ_FIELD(TYPE, NAME, FROM)                                                               \
    body->NAME = (RAFT_CTYPE_##TYPE)(is_term(#NAME) ? term_value(e, in) : VALUE_##TYPE);
#define READ_MESSAGE(NUMBER, NAME, TITLE)                                                          \
    case NUMBER: {                                                                                 \
        struct raft_##NAME *body = &m.NAME;                                                        \
        RAFT_FIELDS_##NAME(READ_FIELD) break;                                                      \
    }
        RAFT_MESSAGES(READ_MESSAGE)
    }
    return m;
}

static void add_entry(struct bytes *out, const void *bytes, size_t size) {
    uint32_t stored = (uint32_t)size;
    bytes_add(out, &stored, sizeof stored);
    if (size) bytes_add(out, bytes, size);
}

static const char *const configs[] = {
    "server.1=a:1:1:participant\nserver.2=b:1:1:participant\nserver.3=c:1:1:participant",
    "server.1=a:1:1:participant\nserver.2=b:1:1:participant",
    "server.2=b:1:1:participant\nserver.3=c:1:1:participant",
    "server.1=a:1:1:participant",
    "server.1=a:1:1:observer\nserver.2=b:1:1:participant\nweight.2=3",
    "version=0000000100000000\nserver.1=a:1:1:participant\nserver.9=z:1:1:participant",
    "server.1=a:1:1:participant\nserver.2=b:1:1:participant\ngroup.1=1:2",
    "server.1=a:1:1:participant\ndirectory.1=00000001\nensemble=0000000000000001",
    "server.1=a:1:1:participant\ndirectory.1=00000002\nensemble=0000000000000002",
    "",
    "nonsense",
    "server.0=a:1:1:participant",
};

/* An entry in anybody's name, also in this member's own. */
static void add_value(const struct ensemble *e, struct fuzz_bytes *in, bool config,
                      struct bytes *out) {
    unsigned char room[512];
    struct bytes body = {0};
    if (config) {
        const char *text = configs[byte(in) % (sizeof configs / sizeof *configs)];
        struct tree_members members = {.text = zk_text_of(text)};
        tree_store_members(room, &members);
        add_entry(out, room, tree_members_size(&members));
        return;
    }
    uint8_t who = byte(in);
    static const int32_t ops[] = {ZK_OP_CREATE_SESSION,  ZK_OP_RECONFIG, ZK_OP_CREATE,
                                  ZK_OP_CLOSE_SESSION,   ZK_OP_SYNC,     ZK_OP_ERROR,
                                  ZK_OP_DELETE_CONTAINER};
    struct tree_entry entry = {.incarnation =
                                   who & 1 ? e->incarnation : (uint64_t)who << 8 | (who >> 1) % 4,
                               .sequence = index_value(e, in),
                               .session = byte(in),
                               .rules = byte(in),
                               .op = ops[byte(in) % (sizeof ops / sizeof *ops)]};
    if (entry.op == ZK_OP_RECONFIG) {
        const char *joining = configs[byte(in) % (sizeof configs / sizeof *configs)];
        struct zk_reconfig_request r = {.joining = zk_text_of(who & 2 ? joining : ""),
                                        .leaving = zk_text_of(who & 4 ? "2,9" : ""),
                                        .members = zk_text_of(who & 8 ? joining : ""),
                                        .config_id = -1};
        zk_write_reconfig_request(&body, &r);
        if (who & 16) zk_write_text(&body, zk_text_of("why not"));
    } else {
        size_t size = byte(in) % 32;
        for (size_t i = 0; i < size; i++) bytes_add(&body, &(uint8_t){byte(in)}, 1);
    }
    entry.body = zk_in_of(body.at, body.used);
    cv_assert(tree_entry_size(&entry) <= sizeof room);
    tree_store_entry(room, &entry);
    add_entry(out, room, tree_entry_size(&entry));
    bytes_close(&body);
}

/* Entries that follow this member's log, from some index on, as those of a leader do. */
static void follow_log(const struct ensemble *e, struct fuzz_bytes *in, struct raft_message *m) {
    struct raft_append_entries *append = &m->append_entries;
    uint64_t prev = index_value(e, in), last = e->raft.last_index;
    if (prev < e->raft.snapshot_index || prev > last) prev = last;
    *m = (struct raft_message){.type = RAFT_APPEND_ENTRIES, .append_entries = *append};
    m->term = e->raft.term + (byte(in) < 8 || !e->raft.term);
    append->prev_log_index = prev;
    append->prev_log_term = raft_term_at(&e->raft, prev);
    append->entries_term = m->term;
    append->round %= RAFT_INDEX_MAX;
    append->pledge %= RAFT_INDEX_MAX;
    append->last_log_index %= RAFT_INDEX_MAX;
    append->entry_kind %= 2;
}

/* Snapshots whose bytes are sound, of an index and a term that the fuzzer's leader may make up. */
enum { SNAPSHOTS = 6 };
static struct bytes snapshot[SNAPSHOTS];
static const uint64_t snapshot_index[SNAPSHOTS] = {1, 5, 5, 40, 1000, RAFT_INDEX_MAX};
static const uint64_t snapshot_term[SNAPSHOTS] = {1, 1, 2, 1, INT32_MAX, 3};

static void make_snapshots(const char *path) {
    int directory = open(path, O_RDONLY | O_DIRECTORY);
    struct snapshots into = {.directory = directory, .path = path};
    char name[SNAPSHOT_NAME_SIZE];
    for (int i = 0; i < SNAPSHOTS; i++) {
        struct tree tree;
        struct tree_members members = {.text = zk_text_of(configs[i])};
        cv_assert(tree_open(&tree, 1) == 0);
        tree_configure(&tree, tree_next_zxid(&tree, snapshot_term[i]), &members);
        struct snapshot_writer *writer = snapshot_begin(&into, snapshot_index[i], snapshot_term[i]);
        cv_assert(writer && tree_save(&tree, snapshot_write, writer) == 0);
        cv_assert(snapshot_end(writer, true) == 0);
        snapshot_name(name, snapshot_index[i]);
        int file = openat(directory, name, O_RDONLY);
        struct stat stat;
        cv_assert(file >= 0 && fstat(file, &stat) == 0);
        ssize_t size =
            read(file, bytes_extend(&snapshot[i], (size_t)stat.st_size), (size_t)stat.st_size);
        cv_assert(size == stat.st_size);
        close(file);
        unlinkat(directory, name, 0);
        tree_close(&tree);
    }
    close(directory);
}

static void write_snapshot(const struct ensemble *e, struct fuzz_bytes *in, struct bytes *frame) {
    uint8_t which = byte(in) % SNAPSHOTS;
    struct raft_message m = {.type = RAFT_INSTALL_SNAPSHOT,
                             .term = term_value(e, in),
                             .install_snapshot = {.last_included_index = snapshot_index[which],
                                                  .last_included_term = term_value(e, in),
                                                  .file_size = snapshot[which].used}};
    codec_write_message(frame, VERSION, &m);
    bytes_add(frame, snapshot[which].at, snapshot[which].used);
}

static void write_message(const struct ensemble *e, struct fuzz_bytes *in, struct bytes *frame) {
    struct raft_message m = message_value(e, in);
    struct raft_append_entries *append = &m.append_entries;
    bool is_append = m.type == RAFT_APPEND_ENTRIES;
    if (is_append && byte(in) < 200) follow_log(e, in, &m);
    if (is_append) {
        append->entry_kind %= 3;
        append->entry_count = append->entry_kind == RAFT_CONFIG ? 1 : append->entry_count % 5;
    }
    codec_write_message(frame, VERSION, &m);
    for (uint32_t i = 0; is_append && i < append->entry_count; i++)
        add_value(e, in, append->entry_kind == RAFT_CONFIG, frame);
    if (m.type == RAFT_INSTALL_SNAPSHOT) bytes_add(frame, "snapshot", byte(in) % 9);
}

/* What follows the fields of a frame. */
static void write_payload(const struct ensemble *e, struct fuzz_bytes *in, uint32_t type,
                          struct bytes *frame) {
    if (type == FRAME_TYPE_introduction) bytes_add(frame, "host", 4);
    if (type == FRAME_TYPE_introduction || type == FRAME_TYPE_removed) return;
    for (int i = byte(in) % ENTRIES_MAX; i > 0; i--) add_value(e, in, byte(in) & 1, frame);
}

static uint32_t write_frame(const struct ensemble *e, struct fuzz_bytes *in, struct bytes *frame) {
    uint32_t type = byte(in) % 32;
    switch (type) {
#define WRITE_FRAME(TYPE, NAME)                                                                    \
    case TYPE: {                                                                                   \
        struct frame_##NAME fields = {0}, *body = &fields;                                         \
        FRAME_FIELDS_##NAME(READ_FIELD) codec_write_##NAME(frame, VERSION, body);                  \
        break;                                                                                     \
    }
        FRAMES(WRITE_FRAME)
    case FRAME_MESSAGE: write_snapshot(e, in, frame); return FRAME_MESSAGE;
    default: write_message(e, in, frame); return FRAME_MESSAGE;
    }
    write_payload(e, in, type, frame);
    return type;
}

/* ---- Events ---- */

static void propose(struct owner *o, struct fuzz_bytes *in) {
    struct bytes bytes = {0};
    struct tree_entry entry;
    add_value(o->ensemble, in, false, &bytes);
    struct zk_in one = zk_in_of(bytes.at + sizeof(uint32_t), bytes.used - sizeof(uint32_t));
    cv_assert(tree_read_entry(&one, &entry));
    ensemble_propose(o->ensemble, &entry, &(struct proposal){.op = entry.op});
    bytes_close(&bytes);
}

static void advance(struct owner *o) {
    ensemble_advance(o->ensemble);
    for (int i = 0; i < 100 && o->ensemble->loop->active_reqs.count; i++)
        uv_run(o->ensemble->loop, UV_RUN_ONCE);
}

static void play(struct owner *o, struct fuzz_bytes *in) {
    struct ensemble *e = o->ensemble;
    const struct links_config *links = &the_links.config;
    struct raft_out out = {0};
    uint8_t event = byte(in);
    uint64_t from = 2 + (event >> 7), commit_index = e->raft.commit_index;
    switch (event % 16) {
    case 0: raft_timer_fired(&e->raft, &out), ensemble_perform(e, &out, NULL); break;
    case 1: advance(o); break;
    case 2: propose(o, in); break;
    case 3: links->on_up(e, from); break;
    case 4: links->on_down(e, from, (enum link_reason)(byte(in) % 3)); break;
    case 5: links->on_incoming(e, from, byte(in) & 1, byte(in)); break;
    case 6: links->is_expected(e, byte(in), byte(in), byte(in)); break;
    case 7: ensemble_heartbeat(e); break;
    default: {
        struct bytes *frame = &o->frame;
        frame->used = 0;
        uint32_t type = write_frame(e, in, frame);
        links->on_frame(e, event % 16 == 8 ? byte(in) : from, VERSION, type, frame->at,
                        frame->used);
        if (event & 64) advance(o);
    }
    }
    cv_assert(e->raft.commit_index >= commit_index);
}

static void close_handle(uv_handle_t *handle, void *context) {
    (void)context;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

static void ignore(void *arg, const char *line, size_t size) { (void)arg, (void)line, (void)size; }

static void empty(const char *path) {
    DIR *directory = opendir(path);
    struct dirent *file;
    while (directory && (file = readdir(directory)))
        if (file->d_name[0] != '.') unlinkat(dirfd(directory), file->d_name, 0);
    if (directory) closedir(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const struct ensemble_callbacks callbacks = {.wake = wake,
                                                        .apply = apply,
                                                        .flush = wake,
                                                        .leader_changed = leader_changed,
                                                        .snapshot_installed = wake,
                                                        .members_changed = wake,
                                                        .read_index_reached = wake,
                                                        .session_touched = session_touched};
    static char path[] = "/dev/shm/conclave-fuzz-XXXXXX";
    static struct settings settings;
    static struct owner o;
    static uv_loop_t loop;
    static bool made;
    if (!made) {
        char why[SETTINGS_ERROR_MAX];
        made = mkdtemp(path);
        cv_assert(made);
        make_snapshots(path);
        logger_set_output(ignore, NULL);
        settings_default(&settings);
        settings.server_id = 1;
        settings.insecure = settings.found = settings.reconfig = true;
        settings.force_sync = false;
        snprintf(settings.data_dir, sizeof settings.data_dir, "%s", path);
        snprintf(settings.log_dir, sizeof settings.log_dir, "%s", path);
        cv_assert(
            member_list_parse(&settings.members, configs[0], strlen(configs[0]), why, sizeof why));
    }
    int status;
    struct fuzz_bytes in = {bytes, size};
    memset(&o, 0, sizeof o);
    empty(path);
    uv_loop_init(&loop);
    clock_read(&o.clock);
    cv_assert(tree_open(&o.tree, 1) == 0);
    o.tree.rules = TREE_RECONFIG;
    struct ensemble_config config = {.settings = &settings,
                                     .loop = &loop,
                                     .clock = &o.clock,
                                     .busy = &o.busy,
                                     .tree = &o.tree,
                                     .owner = &o,
                                     .callbacks = &callbacks};
    if (setjmp(stopped) == 0) {
        o.ensemble = ensemble_open(&config, &status);
        cv_assert(!status);
        ensemble_start(o.ensemble);
        o.ensemble->leaderless_us = 1; /* for so long that it is founded */
        identity_found(o.ensemble);
        for (int i = 0; in.left && i < EVENTS_MAX; i++) play(&o, &in);
        advance(&o);
    }
    ensemble_drain(o.ensemble);
    ensemble_end_links(o.ensemble);
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ensemble_free(o.ensemble);
    uv_loop_close(&loop);
    tree_close(&o.tree);
    bytes_close(&o.reply);
    bytes_close(&o.frame);
    return 0;
}
