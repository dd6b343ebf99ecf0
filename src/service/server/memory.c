/* The memory that the server may use.  The system ends a process that uses more than its group's
 * limit, so requests that need more are refused before. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/logger.h"
#include "service/server/internal.h"

static uint64_t resident_bytes(void) {
    size_t bytes = 0;
    uv_resident_set_memory(&bytes);
    return bytes;
}

/* Pages of files: the program and its libraries. */
static uint64_t file_bytes(void) {
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (!statm) return 0;
    int found = fscanf(statm, "%*u %*u %llu", &pages);
    fclose(statm);
    return found == 1 ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* The tables that become large. */
static uint64_t mapped_bytes(const struct server *s) {
    const struct tree *tree = &s->tree;
    const struct watches *w = &s->watches;
    const struct table *const table[] = {
        &tree->index,   &tree->sessions.index, &tree->acls.index,  &tree->quota_index,
        &w->path_index, &w->watch_index,       &w->recursive_index};
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) bytes += table_mapped(table[i]);
    return bytes;
}

/* What was freed is used again before the system is asked for more, by what fits into it.  Some of
 * it is not resident, so only the rest is counted: what was not freed. */
static uint64_t allocated_bytes(const struct server *s) {
    uint64_t bytes = 0;
#ifdef __GLIBC__
    struct mallinfo2 info = mallinfo2();
    bytes = info.uordblks + info.hblkhd;
#endif
    if (!bytes) return UINT64_MAX / 2; /* another allocator's, so that it is all that is resident */
    return bytes + mapped_bytes(s) + file_bytes() + s->tree.totals.used +
           (s->tree.nodes + 1) * sizeof(struct node);
}

/* ---- What may be used ---- */

/* What clients do not take waits in memory too: a part of it, and no more than is useful. */
static size_t unsent_max(uint64_t limit) {
    const uint64_t least = 16 << 20, most = 256 << 20;
    if (!limit || limit / 4 > most) return most;
    return limit / 4 < least ? least : limit / 4;
}

/* Watches cost nobody but this server, and have no quota: they leave most of the memory to the
 * rest, which without a limit is the machine's. */
static uint64_t watches_max(uint64_t limit) {
    uint64_t all = limit ? limit : uv_get_total_memory();
    return all ? all / 4 : UINT64_MAX;
}

/* How much of the limit may be used after what, in parts of 64.  What lasts, as nodes do, ends at
 * nine tenths; each of those goes further than what is less needed. */
enum { PARTS = 64, WITH_RESTORED_WATCHES = 60, WITH_PIECES = 61, WITH_ANSWERS = 62 };

static bool is_within(const struct server *s, uint64_t bytes, unsigned parts) {
    return bytes <= s->memory.limit / PARTS * parts;
}

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Bytes that are there for a time: parts of requests, answers that nobody takes, and entries. */
static uint64_t passing(const struct server *s) {
    return s->connections.received + s->connections.unsent +
           (s->ensemble ? ensemble_memory(s->ensemble) : 0);
}

/* They have what the rest leaves, a third each, or next to nothing. */
static void divide_the_rest(struct server *s) {
    uint64_t limit = s->memory.limit, all = limit / PARTS * WITH_ANSWERS;
    uint64_t lasting = s->memory.resident > passing(s) ? s->memory.resident - passing(s) : 0;
    uint64_t third = lasting < all ? (all - lasting) / 3 : 0;
    if (third < limit / PARTS) third = limit / PARTS;
    s->connections.received_max = (size_t)least_of(third, limit / 4);
    size_t largest = 2 * (size_t)s->settings.packet_bytes_max; /* buffers grow by doubling */
    if (s->connections.received_max < largest) s->connections.received_max = largest;
    s->connections.unsent_max = (size_t)least_of(third, unsent_max(limit));
    s->memory.entries_max = (size_t)third;
    if (s->ensemble) ensemble_limit_memory(s->ensemble, s->memory.entries_max);
}

/* On its way a request is there many times: received, proposed, in the log, on links. */
static void bound_requests(struct server *s) {
    enum { TIMES = 32, LEAST = 1 << 20 };
    uint64_t max = s->memory.limit / TIMES;
    if (max < LEAST) max = LEAST;
    if (!s->memory.limit || (uint64_t)s->settings.packet_bytes_max <= max) return;
    logger_warning("jute.maxbuffer is too large for the memory: longer requests than this are "
                   "refused; give the server more",
                   LOGGER_INT("jute.maxbuffer", s->settings.packet_bytes_max),
                   LOGGER_UINT("bytes", max));
    s->settings.packet_bytes_max = (int32_t)max;
}

void memory_open(struct server *s) {
    s->memory.limit =
        memory_limit(s->settings.memory_mib_max, "/proc/self/cgroup", "/sys/fs/cgroup");
    bound_requests(s);
    s->connections.unsent_max = unsent_max(s->memory.limit);
    s->memory.watches_max = watches_max(s->memory.limit);
    s->connections.received_max = s->memory.entries_max = SIZE_MAX;
    uint64_t resident = resident_bytes(), allocated = allocated_bytes(s);
    s->memory.around = resident > allocated ? resident - allocated : 0;
    if (s->memory.limit && !resident)
        logger_warning("the system does not say how much memory is used, so it is not limited");
    else if (s->memory.limit)
        logger_info("memory is limited: with less than a tenth of it left, requests that need more "
                    "are refused",
                    LOGGER_UINT("bytes", s->memory.limit));
    memory_measure(s);
}

static uint64_t weight_of(const struct server *s) {
    enum { AROUND_A_TEXT = 32, INDEX = 16, TLS_SESSION = 48 << 10 };
    return (uint64_t)s->tree.bytes +
           (uint64_t)s->tree.nodes * (sizeof(struct node) + AROUND_A_TEXT + INDEX) +
           watches_weight(&s->watches) + passing(s) + s->reading.reply.used +
           (uint64_t)s->connections.count * sizeof(struct connection) +
           (uint64_t)s->connections.secure * TLS_SESSION;
}

static bool is_too_much(uint64_t used, uint64_t limit) { return used > limit / 10 * 9; }

/* To count it takes long if what was freed is in many pieces: it is done only where it matters, and
 * takes a hundredth of the time at most.  In between, what has grown may be new. */
static uint64_t known_used_bytes(struct server *s, uint64_t resident) {
    enum { PAUSE = 100 };
    uint64_t now_ns = uv_hrtime(), weight = weight_of(s);
    if (now_ns >= s->memory.count_after_ns) {
        s->memory.allocated = s->memory.around + allocated_bytes(s);
        s->memory.allocated_weight = weight;
        s->memory.count_after_ns = now_ns + PAUSE * (uv_hrtime() - now_ns);
    }
    uint64_t grown = weight > s->memory.allocated_weight ? weight - s->memory.allocated_weight : 0;
    return least_of(s->memory.allocated + grown, resident);
}

/* What was freed in between goes back to the system, where that is whole pages; it takes as long as
 * to count it. */
static void give_back(struct server *s) {
#ifdef __GLIBC__
    enum { PAUSE = 100 };
    uint64_t now_ns = uv_hrtime();
    if (now_ns < s->memory.give_after_ns) return;
    malloc_trim(0);
    s->memory.give_after_ns = now_ns + PAUSE * (uv_hrtime() - now_ns);
#else
    (void)s;
#endif
}

void memory_measure(struct server *s) {
    if (!s->memory.limit) return;
    uint64_t resident = resident_bytes();
    uint64_t copied = copies_bytes(s);
    if (!is_within(s, resident + copied, WITH_PIECES)) {
        give_back(s);
        resident = resident_bytes();
    }
    if (!s->memory.copies.known && copied > resident) copied = resident;
    s->memory.resident = s->memory.used = resident + copied;
    if (is_too_much(s->memory.used, s->memory.limit))
        s->memory.used = known_used_bytes(s, resident) + copied;
    s->memory.weight = weight_of(s) + copies_expected(s);
    divide_the_rest(s);
}

/* Since it was measured, or since there was least after that: what was freed may not be resident.
 */
static uint64_t grown_bytes(struct server *s) {
    uint64_t weight = weight_of(s) + copies_expected(s);
    if (weight < s->memory.weight) s->memory.weight = weight;
    return weight - s->memory.weight;
}

bool memory_is_short(struct server *s) {
    enum { GROWTH_PARTS = 64 }; /* of the limit: it is measured again when that much has grown */
    if (!s->memory.limit) return false;
    if (grown_bytes(s) > s->memory.limit / GROWTH_PARTS) memory_measure(s);
    uint64_t used = s->memory.used, limit = s->memory.limit;
    bool is_short = is_too_much(used, limit) || !is_within(s, s->memory.resident, WITH_PIECES);
    if (is_short && !s->memory.is_short)
        logger_warning("memory is short, so requests that need more are refused; delete nodes, or "
                       "give the server more",
                       LOGGER_UINT("used", used), LOGGER_UINT("resident", s->memory.resident),
                       LOGGER_UINT("limit", limit));
    if (!is_short && s->memory.is_short) logger_info("there is enough memory again");
    return s->memory.is_short = is_short;
}

/* Whatever an entry changes is there twice while a snapshot is written, also what it deletes. */
bool memory_holds_entries(struct server *s) {
    if (!s->memory.limit || !s->memory.copies.process || s->stopping) return false;
    return !is_within(s, s->memory.resident + grown_bytes(s), WITH_ANSWERS);
}

bool memory_is_short_anywhere(struct server *s) {
    return memory_is_short(s) || (s->ensemble && ensemble_memory_is_short(s->ensemble));
}

/* Those that a client had before may come back when memory is short, or it would be cut off for
 * good; but not until there is none. */
bool memory_allows_watch(struct server *s, bool is_restored) {
    return watches_weight(&s->watches) < s->memory.watches_max &&
           (!memory_is_short(s) ||
            (is_restored && is_within(s, s->memory.resident, WITH_RESTORED_WATCHES)));
}

/* A list is as long as what it tells of, and is there twice while it is moved to a larger place or
 * encrypted. */
bool memory_allows_answer(struct server *s, size_t size) {
    if (!s->memory.limit) return true;
    memory_is_short(s); /* so it is measured again, if need be */
    return is_within(s, s->memory.resident + grown_bytes(s) + size, WITH_ANSWERS);
}

/* Before an answer is refused it has grown by what these steps have found: that fits, too.  Short
 * lists are always answered. */
void memory_bound_steps(struct server *s) {
    enum { KINDS = 3, TIMES = 2, LEAST = 64 }; /* a list is there twice, as above */
    struct steps *steps = &s->steps;
    if (!s->memory.limit) return;
    uint64_t all = s->memory.limit / PARTS * WITH_ANSWERS;
    uint64_t there = s->memory.resident + grown_bytes(s) + s->reading.reply.used;
    uint64_t max = there < all ? (all - there) / KINDS / TIMES / TREE_STEP_BYTES : 0;
    if (max < LEAST) max = LEAST;
    steps->reading = (size_t)least_of(steps->reading, max);
    steps->read = (size_t)least_of(steps->read, max);
    steps->reread = (size_t)least_of(steps->reread, max);
}

/* Each connection takes some, and it may be the last: those that are there go on.  What they leave
 * here for a time keeps nobody out: there are limits for that. */
bool memory_allows_connection(struct server *s) {
    return !memory_is_short(s) || s->memory.used <= s->memory.limit / 20 * 19 + passing(s);
}
