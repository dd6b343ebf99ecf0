/* Processes that need time for each message: one server each, first come, first served. */
#include "lab/sim/internal.h"

void service_open(struct sim *sim) {
    if (!sim->config->service_time) return;
    sim->service = arena_take(&sim->fixed, (sim->roster.processes + 1) * sizeof *sim->service);
}

bool service_queues(struct sim *sim, uint32_t index) {
    struct sim_event *event = &sim->event[index];
    struct sim_service *service = &sim->service[event->process];
    uint64_t now = sim_now(sim);
    if (event->type != EV_MESSAGE || event->flags & EVENT_OF_DETECTOR) return false;
    if (event->flags & EVENT_SERVED) {
        service->served++;
        return false;
    }
    if (network_loses(sim, event)) return false;
    uint64_t begins = service->free_us > now ? service->free_us : now;
    service->free_us = begins + sim->config->service_time;
    service->queued_us += begins - now;
    event->flags |= EVENT_SERVED;
    wheel_insert(&sim->wheel, index, service->free_us);
    return true;
}

double sim_busy(const struct sim *sim, cv_pid p) {
    double busy = (double)(sim->service[p].served * sim->config->service_time);
    double end = (double)sim->result.end_us;
    return end > 0 && busy < end ? busy / end : busy > 0;
}

cv_pid sim_busiest(const struct sim *sim) {
    cv_pid busiest = 1;
    for (cv_pid p = 2; p <= sim->roster.processes; p++)
        if (sim->service[p].served > sim->service[busiest].served) busiest = p;
    return busiest;
}
