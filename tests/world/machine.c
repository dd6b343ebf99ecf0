/* Machines with a server each: they start, stop, and crash. */
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

static void set_members(struct settings *settings, const char *list) {
    char lines[LIST_SIZE], *end;
    memcpy(lines, list, sizeof lines);
    for (char *line = strtok_r(lines, "\n", &end); line; line = strtok_r(NULL, "\n", &end)) {
        char *value = strchr(line, '=');
        *value = 0;
        set(settings, line, value + 1);
    }
}

static void settle(struct machine *m) {
    char text[256], error[SETTINGS_ERROR_MAX];
    struct settings *settings = m->settings;
    settings_default(settings);
    set_members(settings, m->list);
    if (m->number > world->founders) set(settings, "ensemble.join", "true");
    set(settings, "ensemble.insecure", "true");
    snprintf(text, sizeof text, "%u", m->number);
    set(settings, "myid", text);
    snprintf(text, sizeof text, "127.0.0.%u:%d", m->number, CLIENT_PORT);
    set(settings, "listen", text);
    set(settings, "listen.http", "off");
    set(settings, "dataDir", m->disk.path);
    set(settings, "ensemble.reads", world->linearizable ? "linearizable" : "sequential");
    if (world->short_logs) set(settings, "ensemble.keptBytes", "300");
    if (world->few_in_flight) set(settings, "ensemble.inflightBytes", "300");
    snprintf(text, sizeof text, "%u", world->loop_steps);
    if (world->loop_steps) set(settings, "loop.steps", text);
    if (world_has(KIND_TTL)) set(settings, "extendedTypesEnabled", "true");
    if (world_has(KIND_TTL)) set(settings, "znode.container.checkIntervalMs", "300");
    set(settings, "tickTime", "200");
    set(settings, "preAllocSize", "16");
    set(settings, "snapCount", "60");
    set(settings, "autopurge.snapRetainCount", "1");
    cv_assert(settings_settle(settings, error, sizeof error) == 0);
}

/* ---- Beginning and end ---- */

static void restart(void *context, uint64_t incarnation) {
    struct machine *m = context;
    if (m->incarnation == incarnation && m->wanted && !m->running) machine_start(m);
}

/* Its process has ended by itself, or because it was told to. */
static void ended(struct machine *m, int status) {
    char who[16];
    snprintf(who, sizeof who, "s%u", m->number);
    trace(who, "has ended, status %d", status);
    m->running = false;
    m->task = NULL;
    m->works = 0;
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
    call_at(world->now + random_time(&world->faults, 100 * MS, SECOND), restart, m, m->incarnation);
}

/* Nobody administers these servers: there is no HTTP, and no socket in the data directory. */
static int open_nothing(struct server *server) { return (void)server, 0; }

static void serve(void *context) {
    struct machine *m = context;
    struct server *server = m->server;
    struct server_admin unattended = admin;
    unattended.open = open_nothing;
    int status = server_run(server, m->settings, &unattended);
    machine_drop_works(m);
    free(server);
    ended(m, status);
}

void machine_drop_works(struct machine *m) {
    for (unsigned i = 0; i < m->works; i++)
        if (!m->work[i].done && m->work[i].task != task_now()) task_drop(m->work[i].task);
}

void machine_exit(int status) {
    struct machine *m = machine_now();
    machine_drop_works(m);
    if (task_now() != m->task) task_drop(m->task);
    ended(m, status);
    task_end();
}

void machine_start(struct machine *m) {
    char who[16];
    if (m->running || m->left_out || !m->installed) return;
    snprintf(who, sizeof who, "s%u", m->number);
    trace(who, "starts");
    if (!m->settings) m->settings = malloc(sizeof *m->settings);
    m->server = calloc(1, sizeof *m->server);
    cv_assert(m->server && m->settings);
    settle(m);
    m->powered = m->running = m->wanted = true;
    m->incarnation++;
    m->started = world->now;
    m->child = 0;
    m->refused = false;
    *m->order.verb = 0;
    m->signals = 0;
    m->paused_until = m->suspended_since = m->suspended_until = m->stood_still = 0;
    m->disturbed = world->now;
    rng_seed(&m->random, world->seed * 1000003 + m->number * 1009 + m->incarnation);
    m->clock_offset = random_time(&m->random, SECOND, 1000 * SECOND) / MS * MS;
    m->task = task_start(m, serve, m);
}

static void drop_tasks(struct machine *m) {
    if (m->child && !m->child_done && rng_chance(&world->disk, 0.5))
        disk_unfinish(m, ensemble_status(m->server->ensemble).snapshot_in_progress);
    machine_drop_works(m);
    if (m->task) task_drop(m->task);
    m->task = NULL;
    m->works = 0;
    m->loop = NULL;
    m->server = NULL; /* its memory is not freed: nobody knows what is allocated */
    m->signals = 0;
    m->paused_until = 0;
    m->running = m->wanted = false;
    m->incarnation++;
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
    if (until < m->suspended_until) until = m->suspended_until;
    m->paused_until = until;
    m->disturbed = until;
}

/* How long the monotonic clock has stood still in all. */
static nanos stood_still(const struct machine *m) {
    nanos until = m->suspended_until < world->now ? m->suspended_until : world->now;
    return m->stood_still + until - m->suspended_since;
}

/* ---- Clocks ---- */

nanos machine_boottime(const struct machine *m) {
    int64_t drift = (int64_t)(world->now / 1000) * m->drift_ppm / 1000;
    return (nanos)((int64_t)(world->now + m->clock_offset) + drift);
}

nanos machine_monotonic(const struct machine *m) { return machine_boottime(m) - stood_still(m); }

/* Unless the machine is suspended before. */
nanos machine_when(const struct machine *m, nanos monotonic) {
    enum { MILLION = 1000000 };
    nanos shown = machine_monotonic(m);
    if (monotonic <= shown) return world->now;
    double ahead = (double)(monotonic - shown) * MILLION / (double)(MILLION + m->drift_ppm);
    return world->now + (nanos)ahead + (m->drift_ppm ? 1 : 0);
}

void machine_suspend(struct machine *m, nanos until) {
    m->stood_still = stood_still(m);
    m->suspended_since = world->now;
    m->suspended_until = until;
    machine_pause(m, until);
}

void machine_wake(struct machine *m) {
    m->paused_until = 0;
    if (m->suspended_until > world->now) m->suspended_until = world->now;
}
