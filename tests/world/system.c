/* What servers get from the system: clocks, random numbers, processes.  And hooks for the judges.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "service/log/transfer.h"
#include "world.h"

int __real_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __real_getrandom(void *bytes, size_t size, unsigned flags);
_Noreturn void __real__exit(int status);
int __real_fork(void);
int __real_waitpid(int process, int *status, int options);
int __real_flock(int fd, int operation);
long __real_sending_read(const struct sending *sending, uint64_t offset, void *bytes, size_t max);
long __wrap_sending_read(const struct sending *sending, uint64_t offset, void *bytes, size_t max);
void __real_propose_expiry(struct server *server, uint32_t slot);
enum ensemble_applied __real_apply_entry(struct server *server, const struct raft_entry *entry);

/* ---- Clocks: each machine has its own ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
    const struct machine *m = machine_now();
    if (!m) return __real_clock_gettime(clock, time);
    uint64_t at = machine_boottime(m);
    if (clock == CLOCK_MONOTONIC) at = machine_monotonic(m);
    if (clock == CLOCK_REALTIME)
        at = (uint64_t)((int64_t)(world->now + 1700000000 * SECOND) + m->skew_ms * (int64_t)MS);
    *time = (struct timespec){(time_t)(at / SECOND), (long)(at % SECOND)};
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags) {
    struct machine *m = machine_now();
    unsigned char *to = bytes;
    if (!m) return __real_getrandom(bytes, size, flags);
    for (size_t i = 0; i < size; i++) to[i] = (unsigned char)rng_next(&m->random);
    return (ssize_t)size;
}

/* Of the machine that simulates. */
uint64_t __wrap_memory_limit(int32_t set_mib, const char *groups, const char *root) {
    (void)set_mib, (void)groups, (void)root;
    return 0;
}

/* ---- Processes ---- */

void __wrap__exit(int status) {
    if (world && machine_now() && !world->in_child) machine_exit(status);
    __real__exit(status);
}

static void child_ended(void *context, uint64_t incarnation) {
    struct machine *m = context;
    if (m->incarnation != incarnation) return;
    m->child_done = true;
    disk_wrap_child_done(m);
    world->coverage.snapshots++;
    machine_signal(m, SIGCHLD);
}

/* The child runs to its end at once; the server gets its SIGCHLD later. */
int __wrap_fork(void) {
    struct machine *m = machine_now();
    fflush(stdout);
    int process = __real_fork();
    if (!m || process < 0) return process;
    if (process == 0) {
        world->in_child = true;
        return 0;
    }
    cv_assert(__real_waitpid(process, &m->child_status, 0) == process);
    m->child = 1000 + (int)m->incarnation;
    m->child_done = false;
    call_at(world->now + random_time(&world->random, 2 * MS, 300 * MS), child_ended, m,
            m->incarnation);
    return m->child;
}

int __wrap_waitpid(int process, int *status, int options) {
    struct machine *m = machine_now();
    if (!m) return __real_waitpid(process, status, options);
    if (process != m->child || !m->child_done) return 0;
    *status = m->child_status;
    m->child = 0;
    return process;
}

int __wrap_flock(int fd, int operation) { return machine_now() ? 0 : __real_flock(fd, operation); }

/* ---- Snapshots on their way ---- */

long __wrap_sending_read(const struct sending *sending, uint64_t offset, void *bytes, size_t max) {
    if (world->chunk && world->chunk < max) max = world->chunk;
    world->coverage.chunks += offset > 0;
    return __real_sending_read(sending, offset, bytes, max);
}

/* ---- Hooks: log lines, expiries, applied entries ---- */

void __wrap_logger_write(enum logger_level level, const char *message,
                         const struct logger_field *fields, size_t count) {
    char line[LOGGER_LINE_MAX], who[16];
    if (strcmp(message, "a snapshot of the leader was installed") == 0) world->coverage.installs++;
    if (strcmp(message, "the change of the members is complete") == 0) world->coverage.changes++;
    if (strcmp(message, "a server gets entries from the log on disk") == 0)
        world->coverage.catch_ups++;
    if (strstr(message, "asks the others for what it has lost")) world->coverage.mendings++;
    if (strstr(message, "the damaged files are mended")) world->coverage.mended_logs++;
    if (strstr(message, "takes the place of what is damaged")) world->coverage.mended_snapshots++;
    if (strstr(message, "that this one has lost, so it follows")) world->coverage.given_up++;
    if (strstr(message, "another one is dialed beside it")) world->coverage.redials++;
    if (!world->tracing || level > LOGGER_INFO) return;
    logger_describe(line, message, fields, count);
    snprintf(who, sizeof who, "s%u", machine_now() ? machine_now()->number : 0);
    trace(who, "%s: %s", logger_level_name(level), line);
}

void __wrap_propose_expiry(struct server *server, uint32_t slot) {
    judge_expiry(server, slot);
    __real_propose_expiry(server, slot);
}

/* The session that an entry would expire; NULL: none. */
static struct session_record *to_be_expired(const struct server *s, const struct raft_entry *raw,
                                            unsigned *by) {
    struct tree_entry entry;
    struct zk_in in = zk_in_of(raw->bytes, raw->size);
    if (!tree_read_entry(&in, &entry) || entry.op != ZK_OP_CLOSE_SESSION) return NULL;
    if (!(entry.rules & TREE_EXPIRES) || !session_find(&s->tree, entry.session)) return NULL;
    struct session_record *record = session_record(entry.session);
    *by = tree_server_of(entry.incarnation);
    return record && !record->ended ? record : NULL;
}

enum ensemble_applied __wrap_apply_entry(struct server *server, const struct raft_entry *entry) {
    unsigned by;
    struct session_record *record = to_be_expired(server, entry, &by);
    enum ensemble_applied applied = __real_apply_entry(server, entry);
    if (applied == ENSEMBLE_UNFINISHED) world->coverage.unfinished++;
    if (applied != ENSEMBLE_APPLIED) return applied;
    if (record && !session_find(&server->tree, record->id)) judge_end(record, entry->term, by);
    judge_applied(server, entry);
    return applied;
}
