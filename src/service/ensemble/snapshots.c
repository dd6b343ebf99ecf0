/* The files of a server: a start from the newest good snapshot and the log after it, and new
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

#include "base/logger.h"
#include "service/ensemble/internal.h"
#include "service/log/salvage.h"
#include "service/store/data.h"

/* ---- Start ---- */

static int open_directory(const char *path) {
    if (mkdir(path, 0750) != 0 && errno != EEXIST) {
        logger_error("the directory cannot be created, so the server does not start; create it for "
                     "the user of the "
                     "server, or name another one (--data)",
                     LOGGER_STRING("path", path), LOGGER_STRING("reason", strerror(errno)));
        return -1;
    }
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        logger_error("the directory cannot be opened, so the server does not start; let the user "
                     "of the server read "
                     "and write it",
                     LOGGER_STRING("path", path), LOGGER_STRING("reason", strerror(errno)));
    if (directory >= 0 && flock(directory, LOCK_EX | LOCK_NB) != 0) {
        logger_error("another server is using the directory, so this one does not start; stop that "
                     "server, or name "
                     "another directory (--data)",
                     LOGGER_STRING("path", path));
        close(directory);
        return -1;
    }
    return directory;
}

struct start {            /* from which files */
    uint64_t newest;      /* index of the newest snapshot, good or not; 0: there is none */
    uint64_t index, term; /* of the newest good one; 0: none, and the log has to have everything */
    uint32_t origin;      /* its */
    bool unread;          /* the log could not be read to its end, which may be ... */
    enum log_state end;   /* ... damaged too */
};

static int load_newest(struct ensemble *e, struct start *start) {
    struct snapshots found;
    if (snapshots_list(&found, e->disk.data_directory, e->settings->data_dir) != 0) {
        logger_error("the snapshots cannot be listed, so the server does not start",
                     LOGGER_STRING("reason", found.message));
        return -1;
    }
    start->newest = found.count ? found.index[0] : 0;
    for (size_t i = 0; i < found.count; i++) {
        if (data_load(e->tree, &found, found.index[i], &start->term) == 0) {
            start->index = found.index[i];
            start->origin = found.origin;
            return 0;
        }
        if (file_may_be_good(found.error)) {
            logger_error("a snapshot cannot be read, and may be good, so the server does not start",
                         LOGGER_STRING("reason", found.message));
            return -1;
        }
        logger_warning("a snapshot cannot be loaded; an older one is tried, if there is one, and "
                       "the log before it",
                       LOGGER_UINT("snapshot_index", found.index[i]),
                       LOGGER_STRING("reason", found.message));
    }
    start->term = 0;
    if (found.count) data_clear(e->tree);
    return 0;
}

/* What could not be loaded is out of the way, and is replaced by the next snapshot. */
static void set_damaged_aside(struct ensemble *e, const struct start *start) {
    struct snapshots found;
    if (start->newest == start->index ||
        snapshots_list(&found, e->disk.data_directory, e->settings->data_dir) != 0)
        return;
    for (size_t i = 0; i < found.count && found.index[i] > start->index; i++)
        if (snapshot_set_aside(&found, found.index[i]) == 0)
            logger_warning("a damaged snapshot was renamed to damaged.*; nothing that it held is "
                           "lost, and another is taken in its place",
                           LOGGER_UINT("snapshot_index", found.index[i]));
}

/* Entries are kept for other members, if there are any. */
static void keep_batch(void *context, const struct raft_batch *batch) {
    struct ensemble *e = context;
    struct raft_entry entry;
    size_t kept = room_for_kept(e);
    bool appended = window_append(&e->log, batch);
    cv_assert(appended);
    while (window_bytes(&e->log) > kept && e->log.after < batch->commit_index) {
        window_entry(&e->log, e->log.after + 1, &entry);
        e->log_start_term = entry.term;
        window_trim(&e->log, e->log.after + 1);
    }
}

/* Whether nobody else could have what this server has lost. */
static bool is_only_voter(const struct ensemble *e) {
    struct zk_text text = members_committed(e);
    struct member_list list = e->settings->members;
    struct raft_config config;
    char why[256];
    if (text.size) members_read(text.at, (size_t)text.size, &config, &list, why, sizeof why);
    for (unsigned i = 0; i < list.count; i++)
        if (list.at[i].id != e->raft.self && !list.at[i].observer && list.at[i].weight)
            return false;
    return !e->settings->join;
}

/* Entries are lost, at the end of the log or because a snapshot is damaged.  The other members have
 * what this one had acknowledged; it is made durable that this one does not vote until it has that
 * again. */
int snapshots_withhold_vote(struct ensemble *e, const char *why) {
    struct vote vote;
    if (is_only_voter(e)) {
        logger_error("files are damaged, and nobody else has what they held, so the server does "
                     "not start; 'conclave recover' says what is lost, and 'conclave recover "
                     "--cut' lets it start without that",
                     LOGGER_STRING("reason", why));
        return -1;
    }
    logger_warning("files are damaged; this server may have acknowledged what they held, so it "
                   "does not vote until the leader has sent it again",
                   LOGGER_STRING("reason", why));
    int status = vote_read(&vote, e->disk.log_directory, e->settings->log_dir);
    if (!status && !vote.directory_id) {
        snprintf(vote.message, sizeof vote.message, "%s/" VOTE_NAME ": is missing; " LOG_ADVICE,
                 e->settings->log_dir);
        status = -1;
    }
    vote.withheld = true;
    if (!status) status = vote_write(&vote);
    if (status)
        logger_error("the vote cannot be withheld, so the server does not start",
                     LOGGER_STRING("reason", vote.message));
    return status;
}

static int give_up_end(struct ensemble *e) {
    struct log *log = &e->disk.log;
    if (snapshots_withhold_vote(e, log->message) != 0) return -1;
    int status = log_give_up_end(log);
    if (status)
        logger_error("the log cannot be cut, so the server does not start",
                     LOGGER_STRING("reason", log->message));
    return status;
}

/* Without a snapshot that is there but damaged, the log has to lead as far. */
static int check_reach(struct ensemble *e, const struct start *start) {
    char why[128];
    if (start->newest <= window_last(&e->log)) return 0;
    snprintf(why, sizeof why, "the snapshot of entry %llu is damaged, and the log ends at %llu",
             (unsigned long long)start->newest, (unsigned long long)window_last(&e->log));
    return snapshots_withhold_vote(e, why);
}

static void replay_log(struct ensemble *e, struct data_replay *replay, struct start *start) {
    struct log *log = &e->disk.log;
    log->segment_bytes = (uint64_t)e->settings->log_segment_bytes;
    log->no_sync = !e->settings->force_sync;
    start->unread = log_open(log, e->disk.log_directory, e->settings->log_dir, replay->window.after,
                             replay->term, data_apply, replay, &start->end) != 0;
    if (start->unread && !*log->message)
        snprintf(log->message, sizeof log->message,
                 "%s: the batch after entry %llu of the log is malformed", e->settings->log_dir,
                 (unsigned long long)replay->window.after);
    if (!start->unread && start->end == LOG_TORN)
        logger_warning("the log ended in a write that a crash had interrupted, and was cut there; "
                       "nobody was told that it was done",
                       LOGGER_STRING("reason", log->message));
}

/* The vote is written once more, as the last batch of the log is (log.c): the system may have it in
 * memory only. */
static int renew_vote(struct ensemble *e) {
    struct vote vote;
    int status = vote_read(&vote, e->disk.log_directory, e->settings->log_dir);
    if (vote.mended)
        logger_warning("a copy of the vote was damaged, and is written again from the other one",
                       LOGGER_STRING("file", VOTE_NAME));
    bool needed = vote.mended || e->settings->force_sync;
    if (!status && vote.directory_id && needed) status = vote_write(&vote);
    if (status)
        logger_error("the vote cannot be read and written, so the server does not start",
                     LOGGER_STRING("reason", vote.message));
    return status;
}

static void open_log(struct ensemble *e, struct start *start) {
    struct data_replay replay;
    log_close(&e->disk.log);
    window_close(&e->log);
    e->snapshotting.last_zxid = e->tree->zxid;
    data_replay_open(&replay, e->tree, start->index, start->term);
    replay.context = e;
    if (e->settings->members.count) replay.each = keep_batch;
    window_open(&e->log, start->index);
    e->log_start_term = start->term;
    replay_log(e, &replay, start);
    e->applied_index = replay.window.after;
    e->applied_term = replay.term;
    if (!e->settings->members.count) { /* what a server alone has written is committed */
        struct window kept = e->log;
        e->log = replay.window;
        replay.window = kept;
        e->log_start_term = replay.term;
    }
    e->snapshotting.last_index = start->index;
    data_replay_close(&replay);
}

/* Whether the other members have what is lost here, as far as is known what that was. */
static bool let_others_mend(struct ensemble *e, const struct start *start) {
    struct vote vote;
    struct salvage salvage;
    if (!e->settings->members.count || is_only_voter(e) ||
        vote_read(&vote, e->disk.log_directory, e->settings->log_dir) != 0 || !vote.directory_id)
        return false;
    uint64_t lost = start->newest > start->index ? start->newest : 0;
    bool mendable = salvage_open(&salvage, e->disk.log_directory, e->settings->log_dir,
                                 start->index, start->term, lost, vote.term) == 0 &&
                    *salvage.what && !salvage.illogical &&
                    (start->unread || !salvage_is_whole(&salvage) || !salvage.tail_lost);
    if (mendable)
        mend_open(e, &salvage);
    else
        salvage_close(&salvage);
    return mendable;
}

static bool is_damaged(const struct ensemble *e, const struct start *start) {
    return start->unread || start->end == LOG_END_DAMAGED || start->newest > window_last(&e->log);
}

static int read_files(struct ensemble *e, struct start *start) {
    *start = (struct start){0};
    data_clear(e->tree);
    if (load_newest(e, start) != 0) return -1;
    open_log(e, start);
    return 0;
}

/* A disk that fails may give at the second attempt what it did not at the first. */
static int read_patiently(struct ensemble *e, struct start *start) {
    if (read_files(e, start) != 0) return -1;
    if (!is_damaged(e, start)) return 0;
    if (read_files(e, start) != 0) return -1;
    if (!is_damaged(e, start))
        logger_warning("the files could be read at the second attempt only; check the disk",
                       LOGGER_STRING("path", e->settings->data_dir));
    return 0;
}

/* What was never an ensemble's has no other id: its snapshots were written beside this log, or
 * beside none. */
static int check_origin(const struct ensemble *e, const struct start *start) {
    const struct log *log = &e->disk.log;
    if (!start->origin || members_committed(e).size) return 0;
    if (!log->segments) {
        logger_error("there is no log, and there was one beside the snapshots, so the server does "
                     "not start; is its disk mounted, and is --log as it was? 'conclave recover "
                     "--cut' lets it start without what only the log had",
                     LOGGER_STRING("path", e->settings->log_dir));
        return -1;
    }
    if (!log->origin || log->origin == start->origin) return 0;
    logger_error("the snapshots and the log are of different servers, so the server does not "
                 "start; put back those that belong together, or correct --data and --log",
                 LOGGER_STRING("data", e->settings->data_dir),
                 LOGGER_STRING("log", e->settings->log_dir));
    return -1;
}

int snapshots_restore(struct ensemble *e) {
    struct start start;
    if (read_patiently(e, &start) != 0 || check_origin(e, &start) != 0) return -1;
    if (is_damaged(e, &start) && let_others_mend(e, &start)) return renew_vote(e);
    if (start.unread)
        logger_error("the log cannot be replayed, so the server does not start",
                     LOGGER_STRING("reason", e->disk.log.message));
    if (start.unread || (start.end == LOG_END_DAMAGED && give_up_end(e) != 0) ||
        check_reach(e, &start) != 0 || renew_vote(e) != 0)
        return -1;
    set_damaged_aside(e, &start);
    return 0;
}

int snapshots_open(struct ensemble *e) {
    const struct settings *set = e->settings;
    struct disk *d = &e->disk;
    bool same = strcmp(set->data_dir, set->log_dir) == 0;
    d->log.file = d->log.mark_file = -1; /* also if it comes to no log */
    d->data_directory = open_directory(set->data_dir);
    if (d->data_directory < 0) return ENSEMBLE_EXIT_FAILED;
    d->log_directory = same ? d->data_directory : open_directory(set->log_dir);
    if (d->log_directory < 0) return ENSEMBLE_EXIT_FAILED;
    /* An earlier process may have renamed a file and crashed before that was durable. */
    if (set->force_sync && (fsync(d->data_directory) != 0 || fsync(d->log_directory) != 0)) {
        logger_error("the directory cannot be made durable, so the server does not start",
                     LOGGER_STRING("path", set->data_dir),
                     LOGGER_STRING("reason", strerror(errno)));
        return ENSEMBLE_EXIT_FAILED;
    }
    return snapshots_restore(e) == 0 ? 0 : ENSEMBLE_EXIT_FAILED;
}

void snapshots_close(struct ensemble *e) {
    struct disk *d = &e->disk;
    if (d->data_directory < 0) return;
    log_close(&d->log);
    if (d->log_directory >= 0 && d->log_directory != d->data_directory) close(d->log_directory);
    close(d->data_directory);
}

/* ---- Taking snapshots ---- */

static void retry_later(struct ensemble *e) {
    enum { RETRY_US = 10000000 };
    e->statistics.snapshots_failed++;
    e->snapshotting.retry_us = e->clock->monotonic_us + RETRY_US;
}

/* How the child ends. */
enum { WRITTEN, NOT_WRITTEN, BASE_DAMAGED };

static int write_new(struct ensemble *e, struct snapshots *into) {
    struct snapshot_writer *writer = snapshot_begin(into, e->applied_index, e->applied_term);
    int status = writer ? tree_save(e->tree, snapshot_write, writer) : -1;
    if (writer && snapshot_end(writer, status == 0) != 0) status = -1;
    if (status != 0)
        logger_error("a snapshot failed while it was written",
                     LOGGER_STRING("reason", into->message));
    return status;
}

/* The log before a snapshot goes only after that has been read back. */
static int read_back(struct snapshots *from, uint64_t index) {
    if (!index || snapshot_verify(from, index) == 0) return 0;
    if (file_may_be_good(from->error)) return -1;
    logger_error("an older snapshot is damaged: it is renamed to damaged.*, and the log that leads "
                 "to newer ones is kept; the disk may be failing",
                 LOGGER_UINT("snapshot_index", index), LOGGER_STRING("reason", from->message));
    snapshot_set_aside(from, index);
    return -1;
}

/* In the child: all descriptors but the directory's are closed, so that nothing outlives the
 * server. */
_Noreturn static void write_snapshot(struct ensemble *e) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Opened anew: the inherited descriptor holds the server's lock. */
    int own = openat(e->disk.data_directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int directory = dup3(own, 3, O_CLOEXEC);
    close_range(4, ~0u, 0);
    struct snapshots into = {
        .directory = directory, .path = e->settings->data_dir, .origin = e->disk.log.origin};
    if (write_new(e, &into) != 0) _exit(NOT_WRITTEN);
    _exit(read_back(&into, e->snapshotting.base_index) == 0 ? WRITTEN : BASE_DAMAGED);
}

/* The snapshot from which the log will be kept once there is a new one: the oldest of those that
 * are kept, never the new one itself.  0: there is none. */
static uint64_t choose_base(const struct ensemble *e) {
    struct snapshots found;
    size_t older = e->settings->snapshots_kept > 2 ? (size_t)e->settings->snapshots_kept - 1 : 1;
    if (snapshots_list(&found, e->disk.data_directory, e->settings->data_dir) != 0 || !found.count)
        return 0;
    uint64_t base = found.index[older < found.count ? older - 1 : found.count - 1];
    return base < e->applied_index ? base : 0;
}

/* A directory that was removed or replaced can be written to as ever. */
static void check_directory(const struct ensemble *e) {
    struct stat here, there;
    if (fstat(e->disk.data_directory, &here) == 0 && stat(e->settings->data_dir, &there) == 0 &&
        here.st_ino == there.st_ino && here.st_dev == there.st_dev)
        return;
    logger_error("the data directory was removed, moved or replaced while the server was using it, "
                 "so the server stops; put it back and start it again",
                 LOGGER_STRING("path", e->settings->data_dir));
    _exit(ENSEMBLE_EXIT_FAILED);
}

/* One is due after many entries, or many bytes, of which a few entries may have as many: the next
 * start would take as long as they did.  But it is not written for less log than it is long itself,
 * and the server rests for some time in proportion to what the last one took. */
static bool is_due(const struct ensemble *e) {
    enum { REST_TIMES = 10 };
    const struct snapshotting *s = &e->snapshotting;
    int32_t kib_max = e->settings->snapshot_kib_max;
    uint64_t entries = e->applied_index - s->last_index;
    uint64_t bytes = e->disk.log.bytes_written - s->last_log_bytes;
    uint64_t bytes_max = (uint64_t)(kib_max > 0 ? kib_max : INT32_MAX) * 1024;
    bool many = entries >= (uint64_t)e->settings->snapshot_count || bytes >= bytes_max;
    return many && bytes >= s->image_bytes &&
           e->clock->monotonic_us - s->begun_us >= REST_TIMES * s->last_us;
}

/* It may have been removed, or found damaged. */
static bool is_there(const struct ensemble *e, uint64_t index) {
    char name[SNAPSHOT_NAME_SIZE];
    return faccessat(e->disk.data_directory, snapshot_name(name, index), F_OK, 0) == 0;
}

static bool is_up_to_date(const struct ensemble *e, bool now) {
    uint64_t index = e->applied_index;
    return !index || (index == e->snapshotting.last_index && (!now || is_there(e, index)));
}

int ensemble_snapshot_process(const struct ensemble *e) { return e->snapshotting.process; }

void snapshots_take(struct ensemble *e, bool now) {
    struct snapshotting *s = &e->snapshotting;
    if (s->process || is_up_to_date(e, now) || !(now || is_due(e))) return;
    if (e->unfinished) return; /* the tree is as it was after no entry */
    if (tidy_removes(e) && !now) return;
    if (e->clock->monotonic_us < s->retry_us) return;
    enum busy_kind before = busy_with(e->busy, BUSY_SNAPSHOT);
    check_directory(e);
    s->base_index = choose_base(e);
    int process = fork();
    if (process == 0) write_snapshot(e);
    busy_with(e->busy, before);
    if (process < 0) {
        logger_error("a snapshot cannot be started; the log is kept instead, and it is tried again",
                     LOGGER_STRING("reason", strerror(errno)));
        retry_later(e);
        return;
    }
    s->process = process;
    s->begun_us = e->clock->monotonic_us;
    s->index = e->applied_index;
    s->zxid = e->tree->zxid;
    s->log_bytes = e->disk.log.bytes_written;
    s->image_bytes = (uint64_t)e->tree->bytes + (uint64_t)e->tree->nodes * 80;
}

/* The log before it is still there from the snapshot before it on, so nothing is lost yet. */
bool snapshots_replace_damaged(struct ensemble *e, uint64_t index, const char *reason) {
    struct snapshots found;
    bool aside = snapshots_list(&found, e->disk.data_directory, e->settings->data_dir) == 0 &&
                 snapshot_set_aside(&found, index) == 0;
    e->statistics.snapshots_damaged++;
    logger_error(aside ? "a snapshot is damaged; it was renamed to damaged.*, and a new one is "
                         "written now; check the disk"
                       : "a snapshot is damaged, and is replaced by a new one now; check the disk",
                 LOGGER_UINT("snapshot_index", index), LOGGER_STRING("reason", reason));
    e->snapshotting.last_index = 0;
    for (size_t i = found.count; i-- > 0;)
        if (found.index[i] < index) e->snapshotting.last_index = found.index[i];
    e->snapshotting.retry_us = 0;
    snapshots_take(e, true);
    return aside;
}

void ensemble_child_ended(struct ensemble *e) {
    struct snapshotting *s = &e->snapshotting;
    int status = 0;
    if (!s->process || waitpid(s->process, &status, WNOHANG) <= 0) return;
    s->process = 0;
    clock_read(e->clock);
    bool ended = WIFEXITED(status);
    if (ended && (WEXITSTATUS(status) == WRITTEN || WEXITSTATUS(status) == BASE_DAMAGED)) {
        if (s->last_index < s->index) {
            s->last_index = s->index;
            s->last_zxid = s->zxid;
        }
        s->last_log_bytes = s->log_bytes;
        s->last_us = e->clock->monotonic_us - s->begun_us;
        if (WEXITSTATUS(status) == WRITTEN) s->trim_index = s->base_index;
        summary_add(&e->statistics.snapshots, s->last_us, 1);
        logger_debug("a snapshot was written", LOGGER_UINT("snapshot_index", s->index),
                     LOGGER_UINT("duration_ms", s->last_us / 1000));
    } else {
        retry_later(e);
        logger_error("the snapshot was not written; the log is kept instead, and it is tried again",
                     LOGGER_UINT("snapshot_index", s->index));
    }
}
