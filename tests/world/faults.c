/* What goes wrong, by chance: processes and machines end, stop for a while, cannot reach each
 * other, or have bad disks.  Then all is well again. */
#include <signal.h>
#include <stdio.h>

#include "world.h"

static nanos faults_until;

static struct rng *rng(void) { return &world->faults; }
static nanos length(nanos least, nanos most) { return random_time(rng(), least, most); }

static struct machine *any_machine(void) {
    return &world->machine[1 + rng_below(rng(), world->servers)];
}

static struct machine *leader(void) {
    for (unsigned i = 1; i <= world->servers; i++) {
        struct machine *m = &world->machine[i];
        if (m->running && m->server && m->server->replica.raft.role == RAFT_LEADER) return m;
    }
    return NULL;
}

/* The leader more often than others. */
static struct machine *victim(void) {
    struct machine *m = rng_chance(rng(), 0.4) ? leader() : NULL;
    return m ? m : any_machine();
}

/* ---- Processes and machines ---- */

static void start_again(void *context, uint64_t number) {
    (void)number;
    machine_start(context);
}

static void end_process(struct machine *m, nanos least, nanos most) {
    if (!m->running) return;
    say("", "kill server %u", m->number);
    world->coverage.kills++;
    machine_kill(m);
    call_at(world->now + length(least, most), start_again, m, 0);
}

static void end_machine(struct machine *m, nanos least, nanos most) {
    if (!m->running) return;
    say("", "power fails at server %u", m->number);
    world->coverage.crashes++;
    machine_crash(m);
    call_at(world->now + length(least, most), start_again, m, 0);
}

/* At once, or the next time that it waits for its disk.  Who is killed then finds what it wrote
 * when it comes back; but that is not durable, should power fail soon. */
static void kill_one(void) {
    struct machine *m = victim();
    if (rng_chance(rng(), 0.5))
        m->fate = TO_BE_KILLED;
    else
        end_process(m, 20 * MS, 4 * SECOND);
}

static void crash_one(void) {
    struct machine *m = victim();
    if (rng_chance(rng(), 0.7))
        m->fate = TO_LOSE_POWER;
    else
        end_machine(m, 50 * MS, 4 * SECOND);
}

static void come_true(void *context, uint64_t fate_and_life) {
    struct machine *m = context;
    if (m->life != fate_and_life >> 8) return;
    if ((fate_and_life & 0xff) == TO_BE_KILLED) {
        end_process(m, 20 * MS, 2 * SECOND);
        if (rng_chance(rng(), 0.5)) m->fate = TO_LOSE_POWER;
    } else {
        end_machine(m, 50 * MS, 4 * SECOND);
    }
}

void faults_doom(struct machine *m, nanos when) {
    call_at(when, come_true, m, (uint64_t)m->life << 8 | m->fate);
    m->fate = UNHARMED;
}

static void crash_all(void) {
    for (unsigned i = 1; i <= world->servers; i++)
        end_machine(&world->machine[i], 50 * MS, 500 * MS);
}

static void pause_one(void) {
    struct machine *m = victim();
    say("", "stop server %u for a while", m->number);
    world->coverage.pauses++;
    machine_pause(m, world->now + length(20 * MS, 3 * SECOND));
}

static void terminate_one(void) {
    struct machine *m = victim();
    if (!m->running) return;
    say("", "tell server %u to end", m->number);
    world->coverage.rolling++;
    machine_signal(m, SIGTERM);
}

/* ---- The network ---- */

static void unblock(void *context, uint64_t pair) {
    (void)context;
    world->blocked[pair / HOSTS_MAX][pair % HOSTS_MAX] = false;
}

static void block(unsigned from, unsigned to, nanos until) {
    world->blocked[from][to] = true;
    call_at(until, unblock, NULL, from * HOSTS_MAX + to);
}

static void part(void) {
    unsigned hosts = world->servers + world->users;
    nanos until = world->now + length(50 * MS, 4 * SECOND);
    uint64_t side = rng_next(rng());
    bool users_too = rng_chance(rng(), 0.5), one_way = rng_chance(rng(), 0.25);
    say("", "the network is parted%s%s", users_too ? ", users too" : "",
        one_way ? ", one way" : "");
    world->coverage.partitions++;
    for (unsigned a = 0; a < hosts; a++) {
        for (unsigned b = 0; b < hosts; b++) {
            bool apart = (side >> a & 1) && !(side >> b & 1);
            if (!apart || (!users_too && (a >= world->servers || b >= world->servers))) continue;
            block(a, b, until);
            if (!one_way) block(b, a, until);
        }
    }
}

/* From the other servers, or from one of them; its users still reach it. */
static void isolate_one(void) {
    struct machine *m = victim();
    unsigned host = m->number - 1, only = (unsigned)rng_below(rng(), world->servers);
    nanos until = world->now + length(100 * MS, 5 * SECOND);
    bool all = rng_chance(rng(), 0.6), out = rng_chance(rng(), 0.7),
         in = !out || rng_chance(rng(), 0.6);
    say("", "server %u is cut off%s%s%s", m->number, all ? "" : " from one", out ? ", outward" : "",
        in ? ", inward" : "");
    world->coverage.partitions++;
    for (unsigned other = 0; other < world->servers; other++) {
        if (other == host || (!all && other != only)) continue;
        if (out) block(host, other, until);
        if (in) block(other, host, until);
    }
}

static void break_some(void) {
    for (uint64_t i = 1 + rng_below(rng(), 4); i; i--) {
        struct socket *s = wire_any_open();
        if (!s) return;
        say("", "break the connection of hosts %d and %d", s->host, s->to_host);
        world->coverage.breaks++;
        wire_break(s);
    }
}

static void calm(void *context, uint64_t added) {
    (void)context;
    world->jitter -= added;
}

static void delay_all(void) {
    nanos added = length(MS, 80 * MS);
    say("", "the network is slow");
    world->jitter += added;
    call_at(world->now + length(100 * MS, 2 * SECOND), calm, NULL, added);
}

/* ---- Disks and clocks ---- */

static void mend_disk(void *context, uint64_t number) {
    struct machine *m = context;
    (void)number;
    m->disk.full = false;
    m->disk.sync_least = 50 * US;
    m->disk.sync_most = 500 * US;
}

static void fill_disk(void) {
    struct machine *m = victim();
    say("", "the disk of server %u is full", m->number);
    world->coverage.full_disks++;
    m->disk.full = true;
    call_at(world->now + length(200 * MS, 3 * SECOND), mend_disk, m, 0);
}

static void slow_disk(void) {
    struct machine *m = victim();
    say("", "the disk of server %u is slow", m->number);
    world->coverage.slow_disks++;
    m->disk.sync_least = MS;
    m->disk.sync_most = length(2 * MS, 60 * MS);
    call_at(world->now + length(200 * MS, 4 * SECOND), mend_disk, m, 0);
}

/* One server of three may be lost for good, two of five. */
static void rot(void) {
    unsigned lost = 0;
    struct machine *m = any_machine();
    for (unsigned i = 1; i <= world->servers; i++) lost += world->machine[i].rotten;
    if (2 * (lost + 1) >= world->servers || m->rotten || rng_chance(rng(), 0.7)) return;
    end_process(m, 20 * MS, SECOND);
    if (!m->running && disk_rot(m)) {
        say("", "a bit of server %u flips", m->number);
        world->coverage.rots++;
        m->rotten = true;
    }
}

static void set_clock(void) { any_machine()->skew_ms = (int64_t)rng_below(rng(), 20000) - 10000; }

/* ---- All of them ---- */

static const struct {
    unsigned weight;
    void (*strike)(void);
} faults[] = {
    {14, kill_one},  {14, crash_one},   {2, crash_all},   {10, pause_one}, {10, terminate_one},
    {14, part},      {14, isolate_one}, {14, break_some}, {6, delay_all},  {6, fill_disk},
    {10, slow_disk}, {2, rot},          {3, set_clock},
};

static void strike(void *context, uint64_t number) {
    unsigned total = 0;
    (void)context, (void)number;
    if (world->now >= faults_until) return;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) total += faults[i].weight;
    uint64_t chosen = rng_below(rng(), total);
    size_t at = 0;
    for (; chosen >= faults[at].weight; at++) chosen -= faults[at].weight;
    faults[at].strike();
    /* Often several at once, sometimes nothing for long. */
    nanos pause = rng_chance(rng(), 0.3) ? length(0, 100 * MS) : length(100 * MS, 2 * SECOND);
    call_at(world->now + pause, strike, NULL, 0);
}

void faults_start(nanos until) {
    faults_until = until;
    call_at(world->now + length(200 * MS, 2 * SECOND), strike, NULL, 0);
}

void faults_heal(void) {
    say("", "all is well again");
    memset(world->blocked, 0, sizeof world->blocked);
    for (unsigned i = 1; i <= world->servers; i++) {
        struct machine *m = &world->machine[i];
        m->paused_until = 0;
        m->fate = UNHARMED;
        mend_disk(m, 0);
        machine_start(m);
    }
}
