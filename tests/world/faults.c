/* Random faults: processes and machines that crash or stop for a while, partitions, bad disks.  At
 * the end all of them are mended. */
#include <signal.h>
#include <stdio.h>

#include "world.h"

enum { DRIFT_PPM = 1000 };

static nanos faults_until;

static struct rng *rng(void) { return &world->faults; }
static nanos length(nanos min, nanos max) { return random_time(rng(), min, max); }

static struct machine *any_machine(void) {
    return &world->machine[1 + rng_below(rng(), world->servers)];
}

static struct machine *leader(void) {
    for (unsigned i = 1; i <= world->servers; i++) {
        struct machine *m = &world->machine[i];
        const struct raft *raft = core_of(m);
        if (raft && raft->role == RAFT_LEADER) return m;
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

static void end_process(struct machine *m, nanos min, nanos max) {
    if (!m->running) return;
    trace("", "kill server %u", m->number);
    world->coverage.kills++;
    machine_kill(m);
    call_at(world->now + length(min, max), start_again, m, 0);
}

static void end_machine(struct machine *m, nanos min, nanos max) {
    if (!m->running) return;
    trace("", "power fails at server %u", m->number);
    world->coverage.crashes++;
    machine_crash(m);
    call_at(world->now + length(min, max), start_again, m, 0);
}

/* At once, or during one of its next syncs.  A process that is killed there finds its write when it
 * starts again, although that is not durable yet, should power fail soon. */
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

static void carry_out_fate(void *context, uint64_t fate_and_incarnation) {
    struct machine *m = context;
    if (m->incarnation != fate_and_incarnation >> 8) return;
    if ((fate_and_incarnation & 0xff) == TO_BE_KILLED) {
        end_process(m, 20 * MS, 2 * SECOND);
        if (rng_chance(rng(), 0.5)) m->fate = TO_LOSE_POWER;
    } else {
        end_machine(m, 50 * MS, 4 * SECOND);
    }
}

void faults_doom(struct machine *m, nanos when) {
    call_at(when, carry_out_fate, m, (uint64_t)m->incarnation << 8 | m->fate);
    m->fate = UNHARMED;
}

static void crash_all(void) {
    for (unsigned i = 1; i <= world->servers; i++)
        end_machine(&world->machine[i], 50 * MS, 500 * MS);
}

/* Of all that run, if none is away: what is on its disk would not be known. */
static void damage_all(void) {
    if (world_has(KIND_MEMBERS)) return; /* whose entries count? */
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        if (!m->running || !m->has_data || m->wiped || m->left_out) return;
    }
    crash_all();
    damage_disks();
}

static void pause_one(void) {
    struct machine *m = victim();
    trace("", "stop server %u for a while", m->number);
    world->coverage.pauses++;
    nanos max = world_has(KIND_STALLS) ? 6 * SECOND : 3 * SECOND;
    machine_pause(m, world->now + length(20 * MS, max));
}

static void terminate_one(void) {
    struct machine *m = victim();
    if (!m->running) return;
    trace("", "tell server %u to end", m->number);
    world->coverage.rolling++;
    machine_signal(m, SIGTERM);
}

static void suspend_one(void) {
    struct machine *m = victim();
    trace("", "suspend server %u for a while", m->number);
    world->coverage.suspends++;
    bool longer = !world_has(KIND_SUSPEND); /* or just long enough for it to be replaced */
    machine_suspend(m, world->now + length(100 * MS, longer ? 5 * SECOND : 1500 * MS));
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

static void partition(void) {
    unsigned hosts = world->servers + world->users;
    nanos until = world->now + length(50 * MS, 4 * SECOND);
    uint64_t side = rng_next(rng());
    bool users_too = rng_chance(rng(), 0.5), one_way = rng_chance(rng(), 0.25);
    trace("", "the network is partitioned%s%s", users_too ? ", users too" : "",
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
    trace("", "server %u is cut off%s%s%s", m->number, all ? "" : " from one",
          out ? ", outward" : "", in ? ", inward" : "");
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
        trace("", "break the connection of hosts %d and %d", s->host, s->to_host);
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
    trace("", "the network is slow");
    world->jitter += added;
    call_at(world->now + length(100 * MS, 2 * SECOND), calm, NULL, added);
}

static void quicken(void *context, uint64_t number) {
    (void)context, (void)number;
    world->byte_time = 0;
}

static void slow_links(void) {
    world->byte_time = length(US, 200 * US);
    trace("", "links between servers carry %llu bytes per second",
          (unsigned long long)(SECOND / world->byte_time));
    world->coverage.slow_links++;
    call_at(world->now + length(500 * MS, 4 * SECOND), quicken, NULL, 0);
}

/* ---- Disks and clocks ---- */

static void mend_disk(void *context, uint64_t number) {
    struct machine *m = context;
    (void)number;
    m->disk.full = m->disk.failing = false;
    m->disk.sync_min = 50 * US;
    m->disk.sync_max = 500 * US;
}

static void fill_disk(void) {
    struct machine *m = victim();
    trace("", "the disk of server %u is full", m->number);
    world->coverage.full_disks++;
    m->disk.full = true;
    call_at(world->now + length(200 * MS, 3 * SECOND), mend_disk, m, 0);
}

static void slow_disk(void) {
    struct machine *m = victim();
    trace("", "the disk of server %u is slow", m->number);
    world->coverage.slow_disks++;
    m->disk.sync_min = MS;
    m->disk.sync_max = length(2 * MS, 2 * SECOND);
    call_at(world->now + length(200 * MS, 4 * SECOND), mend_disk, m, 0);
}

static void failing_disk(void) {
    struct machine *m = victim();
    trace("", "syncs of server %u fail", m->number);
    m->disk.failing = true;
    call_at(world->now + length(100 * MS, SECOND), mend_disk, m, 0);
}

static void power_fails(void *context, uint64_t number) {
    (void)number;
    if (!world->healed) end_machine(context, 50 * MS, SECOND);
}

/* The server ends and starts again, and then its power may fail. */
void faults_sync_failed(struct machine *m) {
    trace("", "a sync of server %u has failed", m->number);
    world->coverage.failed_syncs++;
    if (!world->healed && rng_chance(rng(), 0.6))
        call_at(world->now + length(200 * MS, 4 * SECOND), power_fails, m, 0);
}

static void stall_disk(void) {
    struct machine *m = victim();
    trace("", "the disk of server %u stands still", m->number);
    world->coverage.disk_stalls++;
    m->disk.stall = length(500 * MS, 4 * SECOND);
}

/* A minority of the servers may be lost for good, as long as the others are a quorum.  Before they
 * have any data, an ensemble that loses a voter has to be founded by hand; and one that has got the
 * first entries, but not its vote, cannot elect anybody. */
static bool may_lose(const struct machine *lost) {
    const struct raft *raft = NULL;
    uint32_t set = 0;
    if (world_has(KIND_MEMBERS)) return false; /* a minority of which members? */
    if (world_has(KIND_DAMAGE)) return false;  /* it may be the last to have something intact */
    for (unsigned i = 1; i <= world->servers && !raft; i++) raft = core_of(&world->machine[i]);
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct machine *m = &world->machine[i];
        if (m->has_data && !m->rotten && !m->withheld && m != lost) set |= 1u << (i - 1);
    }
    return raft && !lost->rotten && raft_is_quorum(&raft->config, set);
}

/* It has ended, and starts again soon. */
static void damage(struct machine *m) {
    bool any = world_has(KIND_ROT), reads = world_has(KIND_READS), wipes = world_has(KIND_WIPES);
    bool had_log = core_of(m) && knows_its_ensemble(m->server->ensemble);
    if (!may_lose(m)) return;
    end_process(m, 20 * MS, SECOND);
    if (m->running) return;
    if (wipes && rng_chance(rng(), 0.9)) {
        bool keeps_vote = had_log && rng_chance(rng(), 0.75);
        disk_wipe(m, keeps_vote);
        m->rotten = true;
        m->wiped = !keeps_vote; /* else it is the same member, and catches up */
        world->coverage.wipes += !keeps_vote;
        world->coverage.log_losses += keeps_vote;
    } else if (any || reads) {
        m->rotten = disk_rot(m, reads && (!any || rng_chance(rng(), 0.5)));
    } else if (disk_rot_old(m)) {
        m->rotten = true;
        world->coverage.rots++;
    }
}

static bool loses_disks(void) {
    return world_has(KIND_ROT) || world_has(KIND_READS) || world_has(KIND_WIPES);
}

static void rot(void) {
    if (loses_disks() || rng_chance(rng(), 0.3)) damage(any_machine());
}

static void damage_one(void) { damage(any_machine()); }

/* The others are back, and what they have missed is on these two only. */
static void corner_now(void *context, uint64_t leads) {
    struct machine *other = context, *leading = &world->machine[leads];
    if (world->now >= faults_until) return;
    end_machine(leading, SECOND, 4 * SECOND);
    if (loses_disks()) {
        damage(other);
    } else {
        end_machine(other, 20 * MS, 200 * MS);
    }
}

/* Leaves what is written for a while to half of the servers, then takes two of them. */
static void corner(void) {
    struct machine *leading = leader(), *other = any_machine();
    if (!leading || leading == other || !other->running) return;
    nanos until = world->now + length(100 * MS, 900 * MS);
    unsigned apart = (world->servers - 1) / 2;
    for (unsigned i = 1; i <= world->servers && apart; i++) {
        if (i == leading->number || i == other->number) continue;
        for (unsigned j = 0; j < world->servers; j++) {
            if (j == i - 1) continue;
            block(i - 1, j, until);
            block(j, i - 1, until);
        }
        apart--;
    }
    trace("", "servers %u and %u are to be the last", leading->number, other->number);
    if (world_has(KIND_SYNCS)) other->disk.failing = true;
    call_at(until, corner_now, other, leading->number);
    call_at(until, mend_disk, other, 0);
}

static void wipe_if_away(void *context, uint64_t number) {
    struct machine *m = context;
    (void)number;
    if (m->running || !may_lose(m)) return;
    disk_wipe(m, false);
    m->rotten = m->wiped = true;
    world->coverage.wipes++;
}

/* While an ensemble is founded: it comes back to one that has entries, and has none itself. */
static void leave_early(void *context, uint64_t number) {
    struct machine *m = any_machine();
    (void)context, (void)number;
    end_process(m, SECOND, 3 * SECOND);
    if (rng_chance(rng(), 0.5)) call_at(world->now + SECOND - MS, wipe_if_away, m, 0);
}

static void flip_bits(void) { world->flips = 1 + (unsigned)rng_below(rng(), 3); }

static void change_leader(void *context, uint64_t number) {
    struct machine *leading = leader();
    char argument[8];
    (void)context, (void)number;
    if (world->now >= faults_until) return;
    snprintf(argument, sizeof argument, "%u", any_machine()->number);
    if (leading) world->coverage.transfers += members_tell(leading, "transfer", argument);
    call_at(world->now + length(MS, 60 * MS), change_leader, NULL, 0);
}

static void set_clock(void) {
    if (!world_has(KIND_TTL)) any_machine()->skew_ms = (int64_t)rng_below(rng(), 20000) - 10000;
}

/* ---- All of them ---- */

static const struct {
    unsigned weight;
    void (*strike)(void);
    enum kind kind; /* of worlds in which it happens */
} faults[] = {
    {14, kill_one, KINDS},        {14, crash_one, KINDS},          {2, crash_all, KINDS},
    {10, pause_one, KINDS},       {10, terminate_one, KINDS},      {14, partition, KINDS},
    {14, isolate_one, KINDS},     {14, break_some, KINDS},         {6, delay_all, KINDS},
    {6, fill_disk, KINDS},        {10, slow_disk, KINDS},          {2, rot, KINDS},
    {3, set_clock, KINDS},        {4, slow_links, KINDS},          {6, failing_disk, KINDS},
    {6, suspend_one, KINDS},      {20, failing_disk, KIND_SYNCS},  {15, corner, KIND_SYNCS},
    {10, damage_one, KIND_ROT},   {10, corner, KIND_ROT},          {10, damage_one, KIND_READS},
    {10, damage_one, KIND_WIPES}, {10, corner, KIND_WIPES},        {10, stall_disk, KIND_STALLS},
    {15, flip_bits, KIND_FLIPS},  {25, suspend_one, KIND_SUSPEND}, {25, damage_all, KIND_DAMAGE},
};

static unsigned weight_of(size_t fault) {
    return faults[fault].kind == KINDS || world_has(faults[fault].kind) ? faults[fault].weight : 0;
}

static void strike(void *context, uint64_t number) {
    unsigned total = 0;
    (void)context, (void)number;
    if (world->now >= faults_until) return;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) total += weight_of(i);
    uint64_t chosen = rng_below(rng(), total);
    size_t at = 0;
    for (; chosen >= weight_of(at); at++) chosen -= weight_of(at);
    faults[at].strike();
    /* Often several at once, sometimes nothing for long. */
    nanos pause = rng_chance(rng(), 0.3) ? length(0, 100 * MS) : length(100 * MS, 2 * SECOND);
    call_at(world->now + pause, strike, NULL, 0);
}

void faults_start(nanos until) {
    faults_until = until;
    for (unsigned i = 1; world_has(KIND_DRIFT) && i <= world->servers; i++) {
        world->machine[i].drift_ppm = (int64_t)rng_below(rng(), 2 * DRIFT_PPM + 1) - DRIFT_PPM;
        world->coverage.drifts++;
    }
    if (world_has(KIND_TERMS)) call_at(world->now + SECOND, change_leader, NULL, 0);
    if (world_has(KIND_WIPES)) call_at(world->now + length(0, 600 * MS), leave_early, NULL, 0);
    call_at(world->now + length(200 * MS, 2 * SECOND), strike, NULL, 0);
}

void faults_heal(void) {
    trace("", "all faults are mended");
    memset(world->blocked, 0, sizeof world->blocked);
    world->flips = 0;
    members_heal();
    world->byte_time = 0;
    for (unsigned i = 1; i <= world->servers; i++) {
        struct machine *m = &world->machine[i];
        machine_wake(m);
        m->disk.stall = 0;
        m->fate = UNHARMED;
        mend_disk(m, 0);
        machine_start(m);
    }
}
