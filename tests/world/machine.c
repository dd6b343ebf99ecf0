/* Machines with a server each: they start, stop, and die. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "world.h"

struct machine *machine_now(void) {
    return world && world->current ? world->current->machine : NULL;
}

/* ---- Settings ---- */

static void set(struct settings *settings, const char *key, const char *value) {
    char error[SETTINGS_ERROR_MAX];
    if (settings_set(settings, key, value, error, sizeof error) == SETTINGS_SET) return;
    fprintf(stderr, "%s\n", error);
    abort();
}

static void settle(struct machine *m) {
    char text[256] = "", error[SETTINGS_ERROR_MAX];
    struct settings *settings = m->settings;
    size_t used = 0;
    settings_default(settings);
    for (unsigned i = 1; i <= world->servers; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u=127.0.0.%u:%d",
                                 i > 1 ? "," : "", i, i, PEER_PORT);
    set(settings, "ensemble", text);
    snprintf(text, sizeof text, "%u", m->number);
    set(settings, "myid", text);
    snprintf(text, sizeof text, "127.0.0.%u:%d", m->number, CLIENT_PORT);
    set(settings, "listen", text);
    set(settings, "listen.http", "off");
    set(settings, "dataDir", m->disk.path);
    set(settings, "ensemble.reads", world->fresh ? "linearizable" : "sequential");
    if (world->forgetful) set(settings, "ensemble.keptBytes", "300");
    set(settings, "tickTime", "200");
    set(settings, "preAllocSize", "16");
    set(settings, "snapCount", "60");
    set(settings, "autopurge.snapRetainCount", "1");
    cv_assert(settings_settle(settings, error, sizeof error) == 0);
}

/* ---- Beginning and end ---- */

static void restart(void *context, uint64_t life) {
    struct machine *m = context;
    if (m->life == life && m->wanted && !m->running) machine_start(m);
}

/* Its process has ended: by itself, or because it was told to. */
static void ended(struct machine *m, int status) {
    char who[16];
    snprintf(who, sizeof who, "s%u", m->number);
    say(who, "has ended, status %d", status);
    m->running = false;
    m->task = m->worker = NULL;
    m->work = NULL;
    m->loop = NULL;
    m->server = NULL;
    m->signals = 0;
    m->disturbed = world->now;
    wire_process_ended((int)m->number - 1);
    disk_process_ended(m);
    if (status && m->rotten) {
        m->left_out = true;
        return;
    }
    if (status && !m->refused)
        violated("server %u does not start, or ends by itself: status %d", m->number, status);
    call_at(world->now + random_time(&world->faults, 100 * MS, SECOND), restart, m, m->life);
}

static void serve(void *context) {
    struct machine *m = context;
    struct server *server = m->server;
    int status = server_run(server, m->settings);
    if (m->worker) task_drop(m->worker);
    free(server);
    ended(m, status);
}

void machine_exit(int status) {
    struct machine *m = machine_now();
    struct task *other = task_now() == m->task ? m->worker : m->task;
    if (other) task_drop(other);
    ended(m, status);
    task_end();
}

void machine_start(struct machine *m) {
    char who[16];
    if (m->running || m->left_out) return;
    snprintf(who, sizeof who, "s%u", m->number);
    say(who, "starts");
    if (!m->settings) m->settings = malloc(sizeof *m->settings);
    m->server = calloc(1, sizeof *m->server);
    cv_assert(m->server && m->settings);
    settle(m);
    m->powered = m->running = m->wanted = true;
    m->life++;
    m->child = 0;
    m->refused = false;
    m->signals = 0;
    m->paused_until = 0;
    m->disturbed = world->now;
    rng_seed(&m->random, world->seed * 1000003 + m->number * 1009 + m->life);
    m->clock_offset = random_time(&m->random, SECOND, 1000 * SECOND) / MS * MS;
    m->task = task_start(m, serve, m);
}

static void drop_tasks(struct machine *m) {
    if (m->child && !m->child_done && rng_chance(&world->disk, 0.5))
        disk_unfinish(m, m->server->snapshot_index);
    if (m->worker) task_drop(m->worker);
    if (m->task) task_drop(m->task);
    m->task = m->worker = NULL;
    m->work = NULL;
    m->loop = NULL;
    m->server = NULL; /* its memory is lost to us, as it is to it */
    m->signals = 0;
    m->paused_until = 0;
    m->running = m->wanted = false;
    m->life++;
    m->disturbed = world->now;
}

void machine_kill(struct machine *m) {
    if (!m->running) return;
    drop_tasks(m);
    wire_process_ended((int)m->number - 1);
    disk_process_ended(m);
}

void machine_crash(struct machine *m) {
    if (!m->running) return;
    drop_tasks(m);
    m->powered = false;
    wire_power_failed((int)m->number - 1);
    disk_crash(m);
}

void machine_signal(struct machine *m, int number) {
    m->signals |= (uint64_t)1 << number;
    task_wake(m->task);
}

void machine_pause(struct machine *m, nanos until) {
    m->paused_until = until;
    m->disturbed = until;
}
