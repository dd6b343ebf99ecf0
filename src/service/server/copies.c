/* What a snapshot takes while it is written.  Its process shares all memory with the server; a page
 * that the server changes or gives back is from then on that process's own.  The system counts
 * those, but looks at every page for it, so a thread asks it, and now and then. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "service/server/internal.h"

enum {
    PAUSE_MS = 50,    /* between two looks, at least, ... */
    PAUSE_TIMES = 10, /* ... and so many times as long as one takes */
};

uint64_t copies_counted(int process) {
    char path[64], line[256];
    uint64_t kib, bytes = COPIES_UNKNOWN;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", process);
    FILE *stream = fopen(path, "re");
    if (!stream) return COPIES_UNKNOWN;
    while (bytes == COPIES_UNKNOWN && fgets(line, sizeof line, stream))
        if (sscanf(line, "Private_Dirty: %" SCNu64, &kib) == 1) bytes = kib << 10;
    fclose(stream);
    return bytes;
}

static uint64_t page_bytes(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

static uint64_t page_faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_minflt : 0;
}

static struct activity activity_now(const struct server *s) {
    return (struct activity){page_faults(), s->statistics.commits,
                             ensemble_statistics(s->ensemble)->log_bytes};
}

uint64_t copies_expected(const struct server *s) {
    enum { PAGES_FOR_ENTRY = 8, TIMES_ITS_BYTES = 1024 }; /* each of many deletes changes some */
    const struct copies *copies = &s->memory.copies;
    if (!copies->process) return 0;
    uint64_t entries = s->statistics.commits - copies->then.entries;
    uint64_t bytes = ensemble_statistics(s->ensemble)->log_bytes - copies->then.log_bytes;
    return entries * PAGES_FOR_ENTRY * page_bytes() + bytes * TIMES_ITS_BYTES;
}

/* What is copied causes page faults, but new memory does too, and large answers are that. */
uint64_t copies_bytes(const struct server *s) {
    const struct copies *copies = &s->memory.copies;
    if (!copies->process) return 0;
    uint64_t since = (page_faults() - copies->then.faults) * page_bytes();
    uint64_t expected = copies_expected(s);
    return copies->bytes + (copies->known && expected < since ? expected : since);
}

/* ---- Looking ---- */

static void look(uv_work_t *work) {
    struct copies *copies = work->data;
    uint64_t begun_ns = uv_hrtime();
    copies->counted = copies_counted(copies->looked_at);
    copies->took_ms = (uv_hrtime() - begun_ns) / 1000000;
}

static void look_soon(uv_timer_t *timer);

static void looked(uv_work_t *work, int status) {
    struct copies *copies = work->data;
    struct server *s = copies->timer.data;
    copies->looking = false;
    if (status != 0 || s->stopping || !copies->process) return;
    if (copies->looked_at == copies->process && copies->counted != COPIES_UNKNOWN) {
        copies->known = true;
        copies->bytes = copies->counted;
        copies->then = copies->begun;
    }
    uint64_t pause_ms = PAUSE_TIMES * copies->took_ms;
    uv_timer_start(&copies->timer, look_soon, pause_ms > PAUSE_MS ? pause_ms : PAUSE_MS, 0);
    memory_measure(s);
}

static void look_soon(uv_timer_t *timer) {
    struct server *s = timer->data;
    struct copies *copies = &s->memory.copies;
    if (copies->looking || !copies->process) return;
    copies->looking = true;
    copies->looked_at = copies->process;
    copies->begun = activity_now(s);
    copies->work.data = copies;
    if (uv_queue_work(&s->loop, &copies->work, look, looked) != 0) copies->looking = false;
}

void copies_open(struct server *s) {
    uv_timer_init(&s->loop, &s->memory.copies.timer);
    s->memory.copies.timer.data = s;
}

void copies_follow(struct server *s) {
    struct copies *copies = &s->memory.copies;
    int process = s->memory.limit ? ensemble_snapshot_process(s->ensemble) : 0;
    if (process == copies->process || s->stopping) return;
    copies->process = process;
    copies->known = false;
    copies->bytes = 0;
    if (process) {
        copies->then = activity_now(s);
        uv_timer_start(&copies->timer, look_soon, 0, 0);
    } else
        uv_timer_stop(&copies->timer);
}
