/* What servers ask of the system: clocks, random numbers, processes.  And where the judges look in
 * as things happen. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

int __real_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __real_getrandom(void *bytes, size_t size, unsigned flags);
_Noreturn void __real__exit(int status);
int __real_fork(void);
int __real_waitpid(int process, int *status, int options);
int __real_flock(int fd, int operation);
void __real_server_say(const char *level, const char *format, ...);
void __real_commit_expire(struct server *server, uint32_t place);
void __real_commit_apply(struct server *server, const struct raft_entry *entry);

/* ---- Clocks: of each machine its own ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
    const struct machine *m = machine_now();
    if (!m) return __real_clock_gettime(clock, time);
    uint64_t at = world->now + m->clock_offset;
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

/* ---- Processes ---- */

void __wrap__exit(int status) {
    if (world && machine_now() && !world->in_child) machine_exit(status);
    __real__exit(status);
}

static void child_ended(void *context, uint64_t life) {
    struct machine *m = context;
    if (m->life != life) return;
    m->child_done = true;
    disk_wrap_child_done(m);
    world->coverage.snapshots++;
    machine_signal(m, SIGCHLD);
}

/* The child does its work at once, and the server hears of its end later. */
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
    m->child = 1000 + (int)m->life;
    m->child_done = false;
    call_at(world->now + random_time(&world->random, 2 * MS, 300 * MS), child_ended, m, m->life);
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

/* ---- What is said, and what is decided ---- */

void __wrap_server_say(const char *level, const char *format, ...) {
    char text[512], who[16];
    va_list arguments;
    if (strncmp(format, "a snapshot has come", 19) == 0) world->coverage.installs++;
    if (!world->tracing) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(who, sizeof who, "s%u", machine_now() ? machine_now()->number : 0);
    say(who, "%s: %s", level, text);
}

void __wrap_commit_expire(struct server *server, uint32_t place) {
    judge_expiry(server, place);
    __real_commit_expire(server, place);
}

/* The session that an entry would end by a leader's decision; NULL: none. */
static struct session_record *to_be_ended(const struct server *s, const struct raft_entry *raw,
                                          unsigned *by) {
    struct tree_entry entry;
    struct zk_in in = zk_in_of(raw->bytes, raw->size);
    if (!tree_read_entry(&in, &entry) || entry.op != ZK_OP_CLOSE_SESSION) return NULL;
    if (!(entry.rules & TREE_EXPIRES) || !session_find(&s->tree, entry.session)) return NULL;
    struct session_record *record = session_record(entry.session);
    *by = tree_server_of(entry.life);
    return record && !record->ended ? record : NULL;
}

void __wrap_commit_apply(struct server *server, const struct raft_entry *entry) {
    unsigned by;
    struct session_record *record = to_be_ended(server, entry, &by);
    __real_commit_apply(server, entry);
    if (record && !session_find(&server->tree, record->id)) judge_end(record, entry->term, by);
    judge_applied(server, entry);
}
