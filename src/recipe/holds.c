#include "recipe/holds.h"

#include <string.h>

bool holds_look(struct holds *h, const int32_t *queue, size_t count, int64_t since_ms) {
    if (count > HOLDS_QUEUE_MAX) return false;
    if (count == h->count && !memcmp(queue, h->queue, count * sizeof *queue)) return true;
    if (count) memcpy(h->queue, queue, count * sizeof *queue);
    h->count = count;
    h->since_ms = since_ms;
    h->seen = false;
    return true;
}

/* With too many it waits for the next look, which finds others than it knows. */
void holds_join(struct holds *h, int32_t sequence, int64_t now_ms) {
    if (h->count == HOLDS_QUEUE_MAX) return;
    h->queue[h->count++] = sequence;
    if (h->count > 1) return;
    h->since_ms = now_ms;
    h->seen = true;
}

void holds_leave(struct holds *h, int32_t sequence, int64_t now_ms) {
    size_t at = 0;
    while (at < h->count && h->queue[at] != sequence) at++;
    if (at == h->count) return;
    memmove(&h->queue[at], &h->queue[at + 1], (--h->count - at) * sizeof *h->queue);
    if (at) return;
    if (h->seen) waits_add(&h->waits, (double)(now_ms > h->since_ms ? now_ms - h->since_ms : 0));
    h->since_ms = now_ms;
    h->seen = true;
}
