#include "service/store/data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "service/log/log.h"

__attribute__((format(printf, 2, 3))) static int fail(struct data *data, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(data->message, sizeof data->message, format, arguments);
    va_end(arguments);
    return -1;
}

int data_open(struct data *data) {
    uint64_t seed = 0;
    *data = (struct data){0};
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed || tree_open(&data->tree, seed) != 0)
        return fail(data, "out of memory");
    return 0;
}

void data_close(struct data *data) { tree_close(&data->tree); }

void data_clear(struct tree *tree) {
    uint64_t seed = tree->seed;
    int32_t rules = tree->rules;
    tree_close(tree);
    int status = tree_open(tree, seed);
    cv_assert(status == 0);
    tree->rules = rules;
}

static void begin_again(struct data *data) {
    data_clear(&data->tree);
    data->index = data->term = 0;
}

/* ---- Reading ---- */

static int load(struct tree *tree, struct snapshots *found, struct snapshot_reader *reader,
                const char *name) {
    const char *why = NULL;
    if (!reader) return -1;
    found->error = 0;
    int status = tree_load(tree, snapshot_read, reader, &why);
    if (snapshot_close(reader) != 0) status = -1;
    if (status != 0)
        snprintf(found->message, sizeof found->message, "%s/%s: %s", found->path, name,
                 why ? why : "its checksum is wrong: the file is damaged");
    return status;
}

int data_load(struct tree *tree, struct snapshots *found, uint64_t index, uint64_t *term) {
    char name[SNAPSHOT_NAME_SIZE];
    return load(tree, found, snapshot_open(found, index, term), snapshot_name(name, index));
}

/* ---- The log ---- */

void data_replay_open(struct data_replay *r, struct tree *tree, uint64_t index, uint64_t term) {
    *r = (struct data_replay){.tree = tree, .term = term};
    window_open(&r->window, index);
}

void data_replay_close(struct data_replay *r) {
    bytes_close(&r->replies);
    window_close(&r->window);
}

static bool apply_entry(struct data_replay *r, const struct raft_entry *raw) {
    struct tree_entry entry;
    struct tree_members members;
    struct zk_in in = zk_in_of(raw->bytes, raw->size);
    int64_t zxid = tree_next_zxid(r->tree, raw->term);
    r->term = raw->term;
    if (raw->kind == RAFT_CONFIG) {
        if (!tree_read_members(in, &members)) return false;
        tree_configure(r->tree, zxid, &members);
        return true;
    }
    if (!tree_read_entry(&in, &entry)) return false;
    r->replies.used = 0;
    tree_apply(r->tree, zxid, &entry, &r->replies);
    return true;
}

/* Applies a batch that is known to be committed, with no uncommitted entry before it. */
static int apply_at_once(struct data_replay *r, const struct raft_batch *batch) {
    struct raft_entry raw;
    size_t at = 0;
    uint32_t count = 0;
    cv_assert(batch->first == r->window.after + 1);
    for (; raft_next(batch, &at, &raw); count++)
        if (!apply_entry(r, &raw)) return -1;
    window_reset(&r->window, batch->first + count - 1);
    return at == batch->size && count == batch->count ? 0 : -1;
}

static int apply_up_to(struct data_replay *r, uint64_t commit_index) {
    struct raft_entry raw;
    if (commit_index > window_last(&r->window)) commit_index = window_last(&r->window);
    for (uint64_t index = r->window.after + 1; index <= commit_index; index++) {
        window_entry(&r->window, index, &raw);
        if (!apply_entry(r, &raw)) return -1;
    }
    window_trim(&r->window, commit_index);
    return 0;
}

int data_apply(void *context, const struct raft_batch *batch) {
    struct data_replay *r = context;
    int status = -1;
    if (!r->window.count && batch->commit_index >= raft_batch_last(batch))
        status = apply_at_once(r, batch);
    else if (window_append(&r->window, batch))
        status = apply_up_to(r, batch->commit_index);
    if (status == 0 && r->each) r->each(r->context, batch);
    return status;
}

static int replay(struct data *data, int directory, const char *path, bool all) {
    struct data_replay r;
    struct log log = {.read_only = true};
    enum log_state end;
    data_replay_open(&r, &data->tree, data->index, data->term);
    int status = log_open(&log, directory, path, data->index, data->term, data_apply, &r, &end);
    if (status != 0 && *log.message)
        fail(data, "%s", log.message);
    else if (status != 0)
        fail(
            data,
            "%s: the batch after entry %llu of the log is malformed; 'conclave recover' shows what "
            "can be saved",
            path, (unsigned long long)r.window.after);
    log_close(&log);
    data->known_index = r.window.after;
    if (status == 0 && all && apply_up_to(&r, window_last(&r.window)) != 0)
        status = fail(data, "%s: an entry of the log is malformed", path);
    data->index = r.window.after;
    data->term = r.term;
    data_replay_close(&r);
    return status;
}

static int read_once(struct data *data, int directory, const char *path, int log_directory,
                     const char *log_path, bool all) {
    struct snapshots found;
    begin_again(data);
    if (snapshots_list(&found, directory, path) != 0) return fail(data, "%s", found.message);
    for (size_t i = 0; i < found.count && !data->index; i++) {
        if (data_load(&data->tree, &found, found.index[i], &data->term) == 0)
            data->index = found.index[i];
        else
            begin_again(data);
    }
    bool is_damaged = found.count && data->index < found.index[0];
    if (replay(data, log_directory, log_path, all) != 0) return -1;
    if (is_damaged && data->index < found.index[0]) return fail(data, "%s", found.message);
    if (!data->index)
        return fail(data, "%s: there is no data in it; is it the data directory of a server?",
                    path);
    return 0;
}

/* A running server may remove a file between the listing and the reading, or be in the middle of a
 * batch: another try a moment later succeeds. */
static int read_directory(struct data *data, const char *path, const char *log_path, bool all) {
    enum { TRIES = 5, PAUSE_NS = 100000000 };
    int status = -1;
    if (!log_path) log_path = path;
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return fail(data, "%s: %s", path, strerror(errno));
    int log_directory = open(log_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (log_directory < 0) fail(data, "%s: %s", log_path, strerror(errno));
    for (int i = 0; i < TRIES && log_directory >= 0 && status != 0; i++) {
        if (i) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        status = read_once(data, directory, path, log_directory, log_path, all);
    }
    if (log_directory >= 0) close(log_directory);
    close(directory);
    return status;
}

int data_read(struct data *data, const char *path, const char *log_path) {
    return read_directory(data, path, log_path, false);
}

int data_read_all(struct data *data, const char *path, const char *log_path) {
    return read_directory(data, path, log_path, true);
}

/* ---- Writing ---- */

static int save(struct data *data, struct snapshots *into, struct snapshot_writer *writer) {
    int status = writer ? tree_save(&data->tree, snapshot_write, writer) : -1;
    if (writer && snapshot_end(writer, status == 0) != 0) status = -1;
    return status == 0 ? 0 : fail(data, "%s", into->message);
}

static bool is_empty(int directory) {
    bool empty = true;
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    if (!listing) return false;
    for (struct dirent *found; (found = readdir(listing));)
        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0 &&
            strcmp(found->d_name, "lost+found") != 0)
            empty = false;
    closedir(listing);
    return empty;
}

int data_write_snapshot(struct data *data, int directory, const char *path) {
    struct snapshots into = {.directory = directory, .path = path};
    return save(data, &into, snapshot_begin(&into, data->index, data->term));
}

int data_write(struct data *data, const char *path) {
    int status = -1;
    if (mkdir(path, 0750) != 0 && errno != EEXIST)
        return fail(data, "%s: cannot be created: %s", path, strerror(errno));
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return fail(data, "%s: cannot be opened: %s", path, strerror(errno));
    if (flock(directory, LOCK_EX | LOCK_NB) != 0)
        fail(data, "%s: a server is using it; choose another directory, or stop the server", path);
    else if (!is_empty(directory))
        fail(data, "%s: is not empty; data is only written into a new or an empty directory", path);
    else
        status = data_write_snapshot(data, directory, path);
    close(directory);
    return status;
}

/* ---- One file ---- */

struct location {
    char parent[PATH_MAX], own[PATH_MAX]; /* copies that dirname and basename may change */
    const char *name;
    struct snapshots in;
};

static int open_location(struct data *data, const char *file, struct location *location) {
    snprintf(location->parent, sizeof location->parent, "%s", file);
    snprintf(location->own, sizeof location->own, "%s", file);
    location->name = basename(location->own);
    location->in = (struct snapshots){.path = dirname(location->parent)};
    location->in.directory = open(location->in.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (location->in.directory < 0) return fail(data, "%s: %s", location->in.path, strerror(errno));
    return 0;
}

int data_read_file(struct data *data, const char *file) {
    struct location location;
    if (open_location(data, file, &location) != 0) return -1;
    struct snapshot_reader *reader =
        snapshot_open_as(&location.in, location.name, &data->index, &data->term);
    int status = load(&data->tree, &location.in, reader, location.name);
    close(location.in.directory);
    return status == 0 ? 0 : fail(data, "%s", location.in.message);
}

int data_write_file(struct data *data, const char *file) {
    struct location location;
    if (open_location(data, file, &location) != 0) return -1;
    int status = save(data, &location.in,
                      snapshot_begin_as(&location.in, location.name, data->index, data->term));
    close(location.in.directory);
    return status;
}
