/* The members: how an ensemble is founded, and an operator who changes it while it serves and while
 * things go wrong.  Commands go to any server; some are refused, some are lost with a leader. */
#include <stdio.h>

#include "world.h"

static nanos orders_until;

static struct rng *rng(void) { return &world->orders; }

/* ---- Lists: lines of a zoo.cfg ---- */

static void add_server(char list[LIST_SIZE], unsigned number, bool observer) {
    size_t used = strlen(list);
    used +=
        (size_t)snprintf(list + used, LIST_SIZE - used, "server.%u=127.0.0.%u:%d:%d:%s\n", number,
                         number, PEER_PORT, PEER_PORT, observer ? "observer" : "participant");
    cv_assert(used < LIST_SIZE);
}

static void add_line(char list[LIST_SIZE], const char *key, unsigned number, const char *value) {
    size_t used = strlen(list);
    used += (size_t)snprintf(list + used, LIST_SIZE - used, "%s.%u=%s\n", key, number, value);
    cv_assert(used < LIST_SIZE);
}

/* Three groups, or two and a server that is in none and observes. */
static void add_groups(char list[LIST_SIZE]) {
    add_line(list, "group", 1, "1");
    add_line(list, "group", 2, world->founders == 3 ? "2" : "2:3");
    add_line(list, "group", 3, world->founders == 3 ? "3" : "4:5");
}

void members_found(void) {
    char list[LIST_SIZE] = "";
    /* Members in groups cannot be changed. */
    bool grouped = world_has(KIND_WEIGHTS) && !world_has(KIND_MEMBERS) && rng_chance(rng(), 0.5);
    bool weighted = world_has(KIND_WEIGHTS) && !grouped;
    unsigned observer = weighted ? (unsigned)rng_below(rng(), world->founders + 1) : 0;
    for (unsigned i = 1; i <= world->founders; i++) {
        char weight[2] = {(char)('1' + rng_below(rng(), 3)), 0};
        add_server(list, i, i == observer);
        if (weighted && i != observer) add_line(list, "weight", i, weight);
        world->coverage.weighings += weighted;
    }
    if (grouped) {
        add_groups(list);
        world->coverage.groups++;
    }
    for (unsigned i = 1; i <= world->founders; i++) memcpy(world->machine[i].list, list, LIST_SIZE);
}

/* ---- The operator ---- */

void members_obey(struct machine *m) {
    char why[512] = "";
    struct ensemble *e = m->server->ensemble;
    if (e && !m->server->stopping) {
        clock_read(&m->server->clock);
        bool begun = ensemble_command(e, m->order.verb, m->order.argument, why, sizeof why);
        trace("", "server %u is told: %s %s: %s", m->number, m->order.verb, m->order.argument,
              begun ? "begun" : why);
        world->coverage.orders += begun;
    }
    *m->order.verb = 0;
}

/* One that runs, and is not busy with another command; NULL: there is none. */
static struct machine *contact(void) {
    for (unsigned tries = 0; tries < 20; tries++) {
        struct machine *m = &world->machine[1 + rng_below(rng(), world->servers)];
        if (core_of(m) && core_of(m)->config.count && !*m->order.verb) return m;
    }
    return NULL;
}

bool members_tell(struct machine *m, const char *verb, const char *argument) {
    if (!core_of(m) || *m->order.verb) return false;
    snprintf(m->order.verb, sizeof m->order.verb, "%s", verb);
    snprintf(m->order.argument, sizeof m->order.argument, "%s", argument);
    task_wake(m->task);
    return true;
}

static void switch_on(void *context, uint64_t number) {
    (void)number;
    machine_start(context);
}

/* It gets the list that the contact has, with itself. */
static void install(struct machine *m, const struct machine *from, bool observer) {
    struct member_list members;
    ensemble_members(from->server->ensemble, &members);
    *m->list = 0;
    for (unsigned i = 0; i < members.count; i++)
        add_server(m->list, (unsigned)members.at[i].id, members.at[i].observer);
    add_server(m->list, m->number, observer);
    m->installed = true;
    world->coverage.joins++;
    nanos when = rng_chance(rng(), 0.6) ? 0 : random_time(rng(), 0, 3 * SECOND);
    call_at(world->now + when, switch_on, m, 0);
}

/* A server that is to join hears no stranger on plain links, so one whose list has become too old
 * needs another: all servers that there are. */
void members_heal(void) {
    for (unsigned i = world->founders + 1; i <= world->servers; i++) {
        struct machine *m = &world->machine[i];
        if (!m->installed || (core_of(m) && knows_its_ensemble(m->server->ensemble))) continue;
        *m->list = 0;
        for (unsigned j = 1; j <= world->servers; j++)
            if (world->machine[j].installed) add_server(m->list, j, false);
        machine_kill(m);
    }
}

/* One that is new, or one that was removed before. */
static void add_one(struct machine *from) {
    char argument[48];
    bool observer = rng_chance(rng(), 0.2);
    for (unsigned tries = 0; tries < 20; tries++) {
        struct machine *m = &world->machine[1 + rng_below(rng(), world->servers)];
        if (raft_find_member(&core_of(from)->config, (uint8_t)m->number)) continue;
        if (!m->installed) install(m, from, observer);
        snprintf(argument, sizeof argument, "%u=127.0.0.%u:%d%s", m->number, m->number, PEER_PORT,
                 observer ? ":observer" : "");
        members_tell(from, "add", argument);
        return;
    }
}

/* The leader more often than others. */
static unsigned any_member(const struct machine *from) {
    const struct raft *raft = core_of(from);
    if (raft->leader && rng_chance(rng(), 0.3)) return raft->leader;
    return raft->config.at[rng_below(rng(), raft->config.count)].id;
}

static void remove_one(struct machine *from) {
    char argument[8];
    unsigned number = any_member(from);
    if (core_of(from)->config.count <= 2) return;
    snprintf(argument, sizeof argument, "%u", number);
    world->coverage.removals++;
    world->coverage.leader_removals += number == core_of(from)->leader;
    members_tell(from, "remove", argument);
}

static void weigh_one(struct machine *from) {
    char argument[16];
    snprintf(argument, sizeof argument, "%u=%u", any_member(from), (unsigned)rng_below(rng(), 4));
    world->coverage.weighings++;
    members_tell(from, "weight", argument);
}

static void transfer(struct machine *from) {
    char argument[8];
    snprintf(argument, sizeof argument, "%u", any_member(from));
    members_tell(from, "transfer", argument);
}

/* On plain links it is the ensemble's id that proves a leader to a founder whose list does not name
 * it, so the operator waits until all of them have it. */
static bool is_founded(void) {
    for (unsigned i = 1; i <= world->founders; i++) {
        struct machine *m = &world->machine[i];
        m->founded |= core_of(m) && knows_its_ensemble(m->server->ensemble);
        if (!m->founded) return false;
    }
    return true;
}

static void give_order(void *context, uint64_t number) {
    (void)context, (void)number;
    if (world->now >= orders_until) return;
    struct machine *from = contact();
    uint64_t chosen = is_founded() ? rng_below(rng(), 10) : 7 + rng_below(rng(), 3);
    if (from && chosen < 4)
        add_one(from);
    else if (from && chosen < 7)
        remove_one(from);
    else if (from && chosen < 9)
        weigh_one(from);
    else if (from)
        transfer(from);
    nanos pause = rng_chance(rng(), 0.4) ? random_time(rng(), 0, 200 * MS)
                                         : random_time(rng(), 200 * MS, 3 * SECOND);
    call_at(world->now + pause, give_order, NULL, 0);
}

void members_start(nanos until) {
    orders_until = until;
    call_at(world->now + random_time(rng(), 500 * MS, 2 * SECOND), give_order, NULL, 0);
}
