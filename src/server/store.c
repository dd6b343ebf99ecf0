/* The files of a server: a start from the newest good snapshot and the log behind it, and new
 * snapshots, each written by a child process that has the tree as it was at that moment. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/server.h"
#include "store/data.h"

/* ---- Starting ---- */

static int open_directory(const char *path) {
    if (mkdir(path, 0750) != 0 && errno != EEXIST) {
        server_say("error", "%s: cannot be created: %s", path, strerror(errno));
        return -1;
    }
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) server_say("error", "%s: cannot be opened: %s", path, strerror(errno));
    if (directory >= 0 && flock(directory, LOCK_EX | LOCK_NB) != 0) {
        server_say("error", "%s: another server is using it", path);
        close(directory);
        return -1;
    }
    return directory;
}

/* The newest that is good; -1 when there are some, and none is. */
static int load_newest(struct server *s, uint64_t *index, uint64_t *term) {
    struct snapshots found;
    if (snapshots_list(&found, s->data_directory, s->settings.data_dir) != 0) {
        server_say("error", "%s", found.message);
        return -1;
    }
    for (size_t i = 0; i < found.count; i++) {
        if (data_load(&s->tree, &found, found.index[i], term) == 0)
            return *index = found.index[i], 0;
        server_say("warning", "%s", found.message);
    }
    if (found.count)
        server_say("error",
                   "%s: none of the snapshots is good; 'conclave recover' says what can "
                   "be saved",
                   s->settings.data_dir);
    return found.count ? -1 : 0;
}

/* Entries are kept for other servers, if there are any. */
static void keep_batch(void *context, const struct raft_batch *batch) {
    struct server *s = context;
    struct replica *r = &s->replica;
    struct raft_entry entry;
    size_t kept = (size_t)s->settings.kept_bytes;
    cv_assert(window_append(&r->log, batch));
    while (window_bytes(&r->log) > kept && r->log.after < batch->committed) {
        window_entry(&r->log, r->log.after + 1, &entry);
        r->base_term = entry.term;
        window_trim(&r->log, r->log.after + 1);
    }
}

static int replay_log(struct server *s, struct data_replay *r) {
    bool cut;
    s->log.segment_bytes = (uint64_t)s->settings.log_segment_bytes;
    s->log.no_sync = !s->settings.force_sync;
    int status = log_open(&s->log, s->log_directory, s->settings.log_dir, r->window.after, r->term,
                          data_apply, r, &cut);
    if (status != 0 && !*s->log.message)
        snprintf(s->log.message, sizeof s->log.message,
                 "%s: the batch behind entry %llu of the log holds what is no entry",
                 s->settings.log_dir, (unsigned long long)r->window.after);
    if (status != 0 || cut) server_say(status ? "error" : "warning", "%s", s->log.message);
    return status;
}

static int open_log(struct server *s, uint64_t index, uint64_t term) {
    struct replica *r = &s->replica;
    struct data_replay replay;
    data_replay_open(&replay, &s->tree, index, term);
    replay.context = s;
    if (s->settings.member_count) replay.each = keep_batch;
    window_open(&r->log, index);
    r->base_term = term;
    int status = replay_log(s, &replay);
    r->applied = replay.window.after;
    r->applied_term = replay.term;
    if (!s->settings.member_count) { /* all that a server alone has written is decided */
        struct window kept = r->log;
        r->log = replay.window;
        replay.window = kept;
        r->base_term = replay.term;
    }
    s->index_at_snapshot = index;
    data_replay_close(&replay);
    return status;
}

/* What a process before this one has renamed and not lived to sync is relied on from here on. */
int store_open(struct server *s) {
    uint64_t index = 0, term = 0;
    bool same = strcmp(s->settings.data_dir, s->settings.log_dir) == 0;
    s->data_directory = open_directory(s->settings.data_dir);
    if (s->data_directory < 0) return SERVER_EXIT_DISK;
    s->log_directory = same ? s->data_directory : open_directory(s->settings.log_dir);
    if (s->log_directory < 0) return SERVER_EXIT_DISK;
    if (s->settings.force_sync && (fsync(s->data_directory) != 0 || fsync(s->log_directory) != 0)) {
        server_say("error", "%s: cannot be made durable: %s", s->settings.data_dir,
                   strerror(errno));
        return SERVER_EXIT_DISK;
    }
    if (load_newest(s, &index, &term) != 0 || open_log(s, index, term) != 0)
        return SERVER_EXIT_DISK;
    return 0;
}

void store_close(struct server *s) {
    log_close(&s->log);
    if (s->log_directory != s->data_directory) close(s->log_directory);
    close(s->data_directory);
}

/* ---- Snapshots ---- */

/* After one, so many times as long as it took: a busy server has other things to do. */
enum { SNAPSHOT_REST = 10 };

/* What has failed is tried again, but not all the time. */
static void put_off(struct server *s) {
    enum { RETRY_US = 10000000 };
    s->statistics.snapshots_failed++;
    s->snapshot_retry_us = s->clock_us + RETRY_US;
}

/* In the child: everything but the directory is let go, so that nothing outlives the server. */
_Noreturn static void write_snapshot(struct server *s) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Opened anew: the one that it came with holds the server's lock. */
    int own = openat(s->data_directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int directory = dup3(own, 3, O_CLOEXEC);
    close_range(4, ~0u, 0);
    struct snapshots into = {.directory = directory, .path = s->settings.data_dir};
    struct snapshot_writer *writer =
        snapshot_begin(&into, s->replica.applied, s->replica.applied_term);
    int status = writer ? tree_save(&s->tree, snapshot_write, writer) : -1;
    if (writer && snapshot_end(writer, status == 0) != 0) status = -1;
    if (status != 0) server_say("error", "%s", into.message);
    _exit(status == 0 ? 0 : 1);
}

void store_snapshot(struct server *s, bool now) {
    uint64_t entries = s->replica.applied - s->index_at_snapshot;
    uint64_t bytes = s->log.bytes_written - s->log_bytes_at_snapshot;
    uint64_t wanted = (uint64_t)s->settings.snapshot_count;
    bool rested = s->clock_us - s->snapshot_begun_us >= SNAPSHOT_REST * s->snapshot_us;
    bool due = entries >= wanted && bytes >= s->image_bytes && rested;
    if (s->snapshot_process || !entries || !(due || now)) return;
    if (s->clock_us < s->snapshot_retry_us) return;
    int process = fork();
    if (process == 0) write_snapshot(s);
    if (process < 0) {
        server_say("error", "no snapshot: %s", strerror(errno));
        put_off(s);
        return;
    }
    s->snapshot_process = process;
    s->snapshot_begun_us = s->clock_us;
    s->snapshot_index = s->replica.applied;
    s->snapshot_log_bytes = s->log.bytes_written;
    s->image_bytes = (uint64_t)s->tree.bytes + (uint64_t)s->tree.nodes * 80;
}

/* The log is kept from the oldest snapshot on, in case newer ones cannot be read. */
void store_trim(struct server *s) {
    struct snapshots found;
    if (!s->trim_due || s->saving) return;
    s->trim_due = false;
    if (snapshots_list(&found, s->data_directory, s->settings.data_dir) != 0 || !found.count)
        return;
    snapshots_trim(&found, (size_t)s->settings.snapshots_kept);
    if (log_trim(&s->log, found.index[found.count - 1]) != 0)
        server_say("warning", "%s", s->log.message);
}

void store_snapshot_done(struct server *s) {
    int status = 0;
    if (!s->snapshot_process || waitpid(s->snapshot_process, &status, WNOHANG) <= 0) return;
    s->snapshot_process = 0;
    server_read_clock(s);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        if (s->index_at_snapshot < s->snapshot_index) s->index_at_snapshot = s->snapshot_index;
        s->log_bytes_at_snapshot = s->snapshot_log_bytes;
        s->snapshot_us = s->clock_us - s->snapshot_begun_us;
        summary_add(&s->statistics.snapshots, s->snapshot_us, 1);
        s->trim_due = true;
    } else {
        put_off(s);
        server_say("error", "the snapshot was not written; the log is kept instead");
    }
}
