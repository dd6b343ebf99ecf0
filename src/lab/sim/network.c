/* The network: delay, order, loss, duplication and partitions. */
#include "lab/sim/internal.h"

enum { FIFO_SIZE_MIN = 1024 };

/* Whether messages are only delayed, and the run is not traced. */
static bool is_plain(const struct sim *sim) {
    const struct sim_config *config = sim->config;
    return !sim->trace && !sim->fifo && config->loss == 0 && config->duplicate == 0 &&
           config->partition_rate == 0 && config->action_count == 0;
}

void network_open(struct sim *sim) {
    bool may_overtake = sim->config->delay.kind != CONSTANT || sim->config->action_count;
    if (!sim->config->reorder && may_overtake) {
        sim->fifo_size = FIFO_SIZE_MIN;
        sim->fifo = arena_take(&sim->fixed, sim->fifo_size * sizeof *sim->fifo);
    }
    if (sim->config->partition_rate > 0)
        sim->random_side = arena_take(&sim->fixed, sim->roster.processes + 1);
    if (sim->config->action_count)
        sim->channel = arena_take(&sim->fixed, sim->config->action_count * sizeof *sim->channel);
    sim->plain = is_plain(sim);
}

/* ---- Bodies ---- */

/* Short bodies are stored in the event, long ones in body_arena, in pieces of 64 * 2^k bytes; a
 * free piece begins with the index of the next free one. */
static unsigned body_class(uint32_t size) {
    unsigned k = 0;
    while (((uint64_t)SIM_BODY_UNIT << k) < size) k++;
    return k;
}

static unsigned char *long_body(const struct sim *sim, uint32_t index) {
    return sim->body_arena.base + (size_t)index * SIM_BODY_UNIT;
}

static void body_store(struct sim *sim, struct sim_event *event, const void *body, uint32_t size) {
    unsigned char *at = event->body;
    event->size = size;
    if (size > SIM_BODY_MAX) {
        unsigned k = body_class(size);
        uint32_t index = sim->body_free[k];
        if (index) {
            memcpy(&sim->body_free[k], long_body(sim, index), sizeof index);
        } else {
            if (!sim->body_arena.used)
                arena_take(&sim->body_arena, SIM_BODY_UNIT); /* index 0 is none */
            unsigned char *piece = arena_take(&sim->body_arena, (size_t)SIM_BODY_UNIT << k);
            index = (uint32_t)((size_t)(piece - sim->body_arena.base) / SIM_BODY_UNIT);
        }
        event->arg = index;
        at = long_body(sim, index);
    }
    for (uint32_t i = 0; i < size; i += 8) memcpy(at + i, (const unsigned char *)body + i, 8);
}

void network_free_long(struct sim *sim, const struct sim_event *event) {
    unsigned k = body_class(event->size);
    memcpy(long_body(sim, event->arg), &sim->body_free[k], sizeof event->arg);
    sim->body_free[k] = event->arg;
}

/* ---- FIFO order ---- */

static struct fifo_slot *fifo_find(struct fifo_slot *table, uint64_t size, uint64_t channel) {
    uint64_t at = rng_mix(channel) & (size - 1);
    while (table[at].channel && table[at].channel != channel) at = (at + 1) & (size - 1);
    return &table[at];
}

/* A channel whose newest message has arrived needs no slot, so growing drops it. */
static void fifo_grow(struct sim *sim) {
    uint64_t now = sim_now(sim), live = 0;
    for (uint64_t i = 0; i < sim->fifo_size; i++)
        live += sim->fifo[i].channel && sim->fifo[i].arrives_us > now;
    uint64_t size = sim->fifo_size;
    while (size < 4 * live) size *= 2;
    struct fifo_slot *table = sim->fifo_spare; /* the two tables alternate */
    if (size > sim->fifo_size || !table)
        table = arena_take(&sim->fixed, size * sizeof *table);
    else
        memset(table, 0, size * sizeof *table);
    for (uint64_t i = 0; i < sim->fifo_size; i++)
        if (sim->fifo[i].channel && sim->fifo[i].arrives_us > now)
            *fifo_find(table, size, sim->fifo[i].channel) = sim->fifo[i];
    sim->fifo_spare = size == sim->fifo_size ? sim->fifo : NULL;
    sim->fifo = table, sim->fifo_size = size, sim->fifo_used = live;
}

static uint64_t in_order(struct sim *sim, cv_pid from, cv_pid to, uint64_t arrives) {
    if (!sim->fifo) return arrives;
    if (2 * sim->fifo_used >= sim->fifo_size) fifo_grow(sim);
    struct fifo_slot *slot = fifo_find(sim->fifo, sim->fifo_size, (uint64_t)from << 32 | to);
    sim->fifo_used += slot->channel == 0;
    slot->channel = (uint64_t)from << 32 | to;
    if (slot->arrives_us < arrives) slot->arrives_us = arrives;
    return slot->arrives_us;
}

/* ---- Exceptions ---- */

static bool used_up(const struct channel *channel) { return !channel->stays && !channel->left; }

void network_except(struct sim *sim, const struct sim_action *action) {
    bool loses = action->type == ACT_LOSE;
    while (sim->channel_count && used_up(&sim->channel[sim->channel_count - 1]))
        sim->channel_count--;
    struct channel *channel = &sim->channel[sim->channel_count++];
    *channel =
        (struct channel){.from = action->process,
                         .to = action->other,
                         .loses = loses,
                         .stays = !loses && !action->once,
                         .left = loses ? action->amount : 1,
                         .delay = action->default_delay ? sim->config->delay : action->delay};
}

static bool concerns(const struct channel *channel, cv_pid from, cv_pid to) {
    return (!channel->from || channel->from == from) && (!channel->to || channel->to == to);
}

/* The exception for this message, or NULL.  Exceptions for a number of messages come first, the
 * oldest before the next; of those that stay, the newest counts. */
static const struct channel *exception_for(struct sim *sim, cv_pid from, cv_pid to) {
    const struct channel *staying = NULL;
    for (size_t i = 0; i < sim->channel_count; i++) {
        struct channel *channel = &sim->channel[i];
        if (used_up(channel) || !concerns(channel, from, to)) continue;
        if (!channel->stays) return channel->left--, channel;
        staying = channel;
    }
    return staying;
}

/* ---- Partitions ---- */

void network_partition(struct sim *sim, const unsigned char *side) {
    sim_cancel(sim, &sim->heal);
    sim->side = side;
    sim->load->partitioned(sim);
    if (!sim->trace) return;
    uint32_t entry =
        trace_add(sim->trace, (struct trace_entry){.type = side ? TR_PARTITION : TR_HEAL,
                                                   .time_us = sim_now(sim)});
    if (side) trace_body(sim->trace, entry, side, sim->roster.processes + 1);
}

void network_partition_at_random(struct sim *sim) {
    for (cv_pid p = 1; p <= sim->roster.processes; p++)
        sim->random_side[p] = (unsigned char)(rng_next(&sim->rng) & 1);
    network_partition(sim, sim->random_side);
}

/* ---- Sending ---- */

static void trace_lost(struct sim *sim, cv_pid from, cv_pid to, const struct cv_send *send,
                       uint32_t sending) {
    uint32_t entry = trace_add(sim->trace, (struct trace_entry){.type = TR_LOST,
                                                                .process = to,
                                                                .peer = from,
                                                                .match = sending,
                                                                .cause = sending,
                                                                .kind = send->kind,
                                                                .time_us = sim_now(sim)});
    trace_body(sim->trace, entry, send + 1, send->size);
}

/* A crash breaks the connections of a process: what was sent to an earlier incarnation, or to a
 * process that was down, does not reach the next incarnation.  Datagrams (`reorder`) do. */
static uint8_t receiving_incarnation(const struct sim *sim, cv_pid p) {
    if (!sim->result.crashes) return 0;
    return (uint8_t)(sim->process[p].incarnation - sim->process[p].crashed);
}

bool network_loses(const struct sim *sim, const struct sim_event *event) {
    cv_pid p = event->process;
    if (!sim->result.crashes && !sim->side) return false; /* nothing can lose it */
    if (sim->process[event->from].unsent & 1u << event->flags / EVENT_SENDER) return true;
    if (sim->process[p].crashed || network_cut(sim, event->from, p)) return true;
    return !sim->config->reorder && event->incarnation != receiving_incarnation(sim, p);
}

static inline void enqueue(struct sim *sim, cv_pid from, cv_pid to, enum sim_machine machine,
                           const struct cv_send *send, uint64_t arrives, uint32_t sending) {
    uint32_t index = sim_schedule(sim, arrives, EV_MESSAGE, to);
    struct sim_event *event = &sim->event[index];
    if (machine == DETECTOR) event->flags |= EVENT_OF_DETECTOR;
    if (sim->result.crashes)
        event->flags |= (uint8_t)(sim->process[from].incarnation % 8 * EVENT_SENDER);
    event->from = from;
    event->kind = (uint8_t)send->kind;
    event->incarnation = receiving_incarnation(sim, to);
    event->cause = sending;
    body_store(sim, event, send + 1, send->size);
}

static void deliver(struct sim *sim, cv_pid from, cv_pid to, enum sim_machine machine,
                    const struct cv_send *send, uint32_t sending,
                    const struct distribution *delay) {
    uint64_t takes = distribution_draw(delay, &sim->rng);
    uint64_t arrives = in_order(sim, from, to, sim_now(sim) + takes);
    enqueue(sim, from, to, machine, send, arrives, sending);
}

static inline void count(struct sim *sim, enum sim_machine machine, const struct cv_send *send,
                         uint64_t copies) {
    if (machine == ALGORITHM) {
        sim->result.messages += copies;
        sim->result.bytes += copies * send->size;
        sim->result.by_kind[send->kind] += copies;
    } else {
        sim->result.heartbeats += copies;
    }
}

static void send_to(struct sim *sim, cv_pid from, cv_pid to, enum sim_machine machine,
                    const struct cv_send *send, uint32_t cause) {
    uint32_t sending = 0;
    bool traced = sim->trace && machine == ALGORITHM;
    count(sim, machine, send, 1);
    if (traced) {
        sending = trace_add(sim->trace, (struct trace_entry){.type = TR_SEND,
                                                             .process = from,
                                                             .peer = to,
                                                             .cause = cause,
                                                             .kind = send->kind,
                                                             .time_us = sim_now(sim)});
        trace_body(sim->trace, sending, send + 1, send->size);
    }
    bool cut = network_cut(sim, from, to);
    const struct channel *exception = cut ? NULL : exception_for(sim, from, to);
    if (cut || (exception && exception->loses) || rng_chance(&sim->rng, sim->config->loss)) {
        sim->result.lost++;
        if (traced) trace_lost(sim, from, to, send, sending);
        return;
    }
    const struct distribution *delay = exception ? &exception->delay : &sim->config->delay;
    deliver(sim, from, to, machine, send, sending, delay);
    if (rng_chance(&sim->rng, sim->config->duplicate))
        deliver(sim, from, to, machine, send, sending, delay);
}

static inline void send_plain(struct sim *sim, cv_pid from, cv_pid to, enum sim_machine machine,
                              const struct cv_send *send) {
    uint64_t delay = distribution_draw(&sim->config->delay, &sim->rng);
    count(sim, machine, send, 1);
    enqueue(sim, from, to, machine, send, sim_now(sim) + delay, 0);
}

void network_send(struct sim *sim, cv_pid from, enum sim_machine machine,
                  const struct cv_send *send, uint32_t cause) {
    cv_assert(send->kind < sim->machine[machine].code->message_count);
    cv_pid first = send->to, last = send->to;
    if (send->to >= CV_SERVERS) {
        first = 1;
        last = send->to == CV_SERVERS ? sim->roster.servers : sim->roster.processes;
    } else {
        cv_assert(send->to && send->to <= sim->roster.processes && send->to != from);
    }
    for (cv_pid to = first; to <= last; to++) {
        if (to == from) continue;
        if (sim->plain)
            send_plain(sim, from, to, machine, send);
        else
            send_to(sim, from, to, machine, send, cause);
    }
}
