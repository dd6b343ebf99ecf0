/* Events in the order of time, then of when they were added: a binary heap. */
#include "base/grow.h"
#include "lab/raft/lab.h"

static bool is_before(const struct lab_key *a, const struct lab_key *b) {
    return a->time != b->time ? a->time < b->time : a->sequence < b->sequence;
}

static uint32_t new_event(struct lab *lab) {
    uint32_t number = lab->free_event;
    if (number) {
        lab->free_event = lab->event[number].next_free;
        return number;
    }
    if (!lab->events) lab->events = 1; /* 0 is none */
    lab->event = grown(lab->event, &lab->event_room, lab->events + 1, sizeof *lab->event);
    return (uint32_t)lab->events++;
}

struct lab_event *lab_after(struct lab *lab, uint64_t us, enum lab_event_type type, uint8_t node) {
    uint32_t number = new_event(lab);
    struct lab_key key = {lab->now + us, lab->sequence++, number};
    lab->heap = grown(lab->heap, &lab->heap_room, lab->pending + 1, sizeof *lab->heap);
    size_t at = lab->pending++;
    for (; at && is_before(&key, &lab->heap[(at - 1) / 2]); at = (at - 1) / 2)
        lab->heap[at] = lab->heap[(at - 1) / 2];
    lab->heap[at] = key;
    lab->event[number] = (struct lab_event){.type = (uint8_t)type, .node = node};
    if (node) {
        lab->event[number].incarnation = lab->node[node].incarnation;
        lab->event[number].timer = lab->node[node].timer;
    }
    return &lab->event[number];
}

struct lab_event *lab_next(struct lab *lab, uint64_t until) {
    if (!lab->pending || lab->heap[0].time > until) return NULL;
    struct lab_key first = lab->heap[0], last = lab->heap[--lab->pending];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < lab->pending) {
        if (child + 1 < lab->pending && is_before(&lab->heap[child + 1], &lab->heap[child]))
            child++;
        if (!is_before(&lab->heap[child], &last)) break;
        lab->heap[at] = lab->heap[child];
        at = child;
    }
    lab->heap[at] = last;
    lab->now = first.time;
    lab->event[first.event].next_free = lab->free_event;
    lab->free_event = first.event;
    return &lab->event[first.event];
}
