/* Writing the record of a server while it works.  The server puts entries into a ring; a thread
 * makes blocks of what it finds there, some times a second, and writes them.  So a step costs the
 * server its hash and a few bytes, whatever the disk does; and a server that is killed loses what
 * it did in the last moments from its record. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/little.h"
#include "service/steps/record.h"

enum {
    RING = 8 << 20, /* a power of two, and no block is larger than STEPS_BLOCK_MAX */
    INTERVAL_NS = 20000000,
    CHUNK = 1 << 16,
    PROPOSED_MAX = 1 << 16,
    CHECKED = 64 << 20, /* bytes at the end of a file: more than a power failure loses */
};
#define NOWHERE UINT64_MAX

struct steps {
    /* The server's. */
    unsigned char *ring;
    uint64_t head, step, incarnation, ensemble, bytes_max;
    uint64_t room; /* in the ring: less of it where files are small */
    bool begun, missing;
    const struct raft *raft;
    uint64_t proposed, proposed_at; /* entries that are not in the record yet, and the first */
    struct bytes checkpoint;
    /* Shared: positions count all bytes that ever were in the ring. */
    _Atomic uint64_t published, taken; /* what lies between is the thread's */
    _Atomic uint64_t rotate_at;        /* another file begins there; NOWHERE: not yet */
    _Atomic uint64_t file_bytes;
    _Atomic bool ending;
    _Atomic int failed; /* an errno: the thread has ended */
    /* The thread's. */
    pthread_t thread;
    int fd;
    char *path, *path_before;
};

/* ---- Files ---- */

/* Not inherited by a process that writes a snapshot, which may live longer. */
static bool lock(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_SETLK, &whole) == 0;
}

/* So do power failures leave a file whose bytes were never written. */
static bool is_zeroed(int fd, off_t size) {
    static const unsigned char zeros[CHUNK];
    unsigned char chunk[CHUNK];
    for (off_t at = 0; at < size;) {
        ssize_t got = pread(fd, chunk, sizeof chunk, at);
        if (got <= 0 || memcmp(chunk, zeros, (size_t)got) != 0) return false;
        at += got;
    }
    return true;
}

/* Also one that is shorter than its beginning, as far as it goes. */
static bool is_record(int fd, off_t size) {
    unsigned char begin[STEPS_BLOCK_HEAD + 5] = {0}, expected[5] = {STEPS_CHECKPOINT};
    size_t length = size < (off_t)sizeof begin ? (size_t)size : sizeof begin;
    size_t known = length < STEPS_BLOCK_HEAD ? 0 : length - STEPS_BLOCK_HEAD;
    put32(expected + 1, STEPS_MAGIC);
    if (pread(fd, begin, length, 0) != (ssize_t)length) return false;
    if (known < sizeof expected && get32(begin) > STEPS_BLOCK_MAX) return false;
    return memcmp(begin + STEPS_BLOCK_HEAD, expected, known) == 0;
}

static bool is_intact(int fd, off_t at, size_t size, uint32_t sum) {
    unsigned char chunk[CHUNK];
    uint32_t found = 0;
    while (size) {
        ssize_t got = pread(fd, chunk, size < sizeof chunk ? size : sizeof chunk, at);
        if (got <= 0) return false;
        found = crc32c(found, chunk, (size_t)got);
        at += got;
        size -= (size_t)got;
    }
    return found == sum;
}

/* Where the blocks end that can be read.  What has been on the disk for long is taken for it. */
static off_t end_of_blocks(int fd, off_t size) {
    unsigned char head[STEPS_BLOCK_HEAD];
    off_t at = 0;
    while (pread(fd, head, sizeof head, at) == (ssize_t)sizeof head) {
        uint32_t bytes = get32(head);
        off_t begin = at + (off_t)sizeof head;
        if (!bytes || bytes > STEPS_BLOCK_MAX || bytes > size - begin) break;
        if (size - at <= CHECKED && !is_intact(fd, begin, bytes, get32(head + 4))) break;
        at = begin + bytes;
    }
    return at;
}

/* Cuts off what a crash has torn or damaged, so that what follows is found. */
static const char *cut_torn_end(int fd, uint64_t *size) {
    struct stat file;
    if (fstat(fd, &file) != 0) return strerror(errno);
    if (!S_ISREG(file.st_mode)) return "this is no file";
    if (!is_record(fd, file.st_size) && !is_zeroed(fd, file.st_size))
        return "this is no record of a server, and is left as it is";
    off_t at = end_of_blocks(fd, file.st_size);
    if (at != file.st_size && ftruncate(fd, at) != 0) return strerror(errno);
    *size = (uint64_t)at;
    return lseek(fd, at, SEEK_SET) < 0 ? strerror(errno) : NULL;
}

/* The file that the next one to be put aside replaces. */
static const char *check_replaced(const char *path) {
    struct stat file;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? NULL : strerror(errno);
    bool replaceable = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
                       (is_record(fd, file.st_size) || is_zeroed(fd, file.st_size));
    close(fd);
    return replaceable ? NULL : "this is no record of a server, and the record would replace it";
}

static int rotate(struct steps *s) {
    int fd = -1;
    if (rename(s->path, s->path_before) == 0)
        fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    lock(fd);
    close(s->fd);
    s->fd = fd;
    atomic_store(&s->file_bytes, 0);
    return 0;
}

/* ---- The thread ---- */

static int write_all(int fd, struct iovec *part, int count) {
    while (count) {
        ssize_t done = writev(fd, part, count);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        for (; count && (size_t)done >= part->iov_len; part++, count--)
            done -= (ssize_t)part->iov_len;
        if (!count) break;
        part->iov_base = (unsigned char *)part->iov_base + done;
        part->iov_len -= (size_t)done;
    }
    return 0;
}

/* What lies in the ring up to there, as one block.  One that is not whole is cut off again. */
static int write_block(struct steps *s, uint64_t to) {
    uint64_t from = atomic_load(&s->taken);
    size_t size = (size_t)(to - from), at = from % RING;
    size_t until_end = RING - at < size ? RING - at : size;
    unsigned char head[STEPS_BLOCK_HEAD];
    struct iovec part[3] = {
        {head, sizeof head}, {s->ring + at, until_end}, {s->ring, size - until_end}};
    if (!size) return 0;
    uint32_t sum = crc32c(0, part[1].iov_base, until_end);
    if (size > until_end) sum = crc32c(sum, part[2].iov_base, size - until_end);
    put32(head, (uint32_t)size);
    put32(head + 4, sum);
    uint64_t whole = atomic_load(&s->file_bytes);
    int error = write_all(s->fd, part, size > until_end ? 3 : 2);
    if (error) {
        bool is_cut = ftruncate(s->fd, (off_t)whole) == 0;
        (void)is_cut; /* else a replay finds that the end is torn */
        return error;
    }
    atomic_store(&s->file_bytes, whole + sizeof head + size);
    atomic_store_explicit(&s->taken, to, memory_order_release);
    return 0;
}

static int write_published(struct steps *s) {
    uint64_t to = atomic_load_explicit(&s->published, memory_order_acquire);
    uint64_t at = atomic_load(&s->rotate_at);
    int error = 0;
    if (at <= to) {
        error = write_block(s, at);
        if (!error) error = rotate(s);
        if (!error) atomic_store(&s->rotate_at, NOWHERE);
    }
    return error ? error : write_block(s, to);
}

static void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = INTERVAL_NS}, NULL); }

static void *write_blocks(void *recorder) {
    struct steps *s = recorder;
    for (bool ending = false; !ending;) {
        ending = atomic_load(&s->ending);
        int error = write_published(s);
        if (error) {
            atomic_store(&s->failed, error);
            return NULL;
        }
        if (!ending) pause_briefly();
    }
    return NULL;
}

/* ---- The server's side ---- */

/* False: there is no room. */
static bool put(struct steps *s, const unsigned char *bytes, size_t size) {
    uint64_t used = s->head - atomic_load_explicit(&s->taken, memory_order_acquire);
    size_t at = s->head % RING, until_end = RING - at;
    if (used + size > s->room) return false;
    memcpy(s->ring + at, bytes, size < until_end ? size : until_end);
    if (size > until_end) memcpy(s->ring, bytes + until_end, size - until_end);
    s->head += size;
    return true;
}

static void publish(struct steps *s) {
    atomic_store_explicit(&s->published, s->head, memory_order_release);
}

static bool put_checkpoint(struct steps *s, const struct raft *raft, enum steps_reason reason) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct checkpoint checkpoint = {.reason = (uint8_t)reason,
                                    .incarnation = s->incarnation,
                                    .ensemble = s->ensemble,
                                    .step = s->step,
                                    .time_ms = (uint64_t)now.tv_sec * 1000 +
                                               (uint64_t)now.tv_nsec / 1000000};
    s->checkpoint.used = 0;
    steps_write_checkpoint(&s->checkpoint, &checkpoint, raft);
    return put(s, s->checkpoint.at, s->checkpoint.used);
}

void steps_begin(struct steps *s, const struct raft *raft, uint64_t ensemble) {
    s->ensemble = ensemble;
    s->raft = raft;
    s->begun = true;
    s->proposed = 0;
    s->missing = !put_checkpoint(s, raft, STEPS_BEGUN);
    publish(s);
}

static bool is_file_full(struct steps *s) {
    if (atomic_load(&s->rotate_at) != NOWHERE) return false; /* else the bytes are the new file's */
    uint64_t waits = s->head - atomic_load(&s->taken);
    return atomic_load(&s->file_bytes) + waits >= s->bytes_max / 2;
}

static void begin_file(struct steps *s, const struct raft *raft) {
    uint64_t at = s->head;
    if (put_checkpoint(s, raft, s->missing ? STEPS_MISSED : STEPS_ROTATED)) {
        s->missing = false;
        atomic_store(&s->rotate_at, at);
    }
}

/* What is missing ends with a checkpoint, once the thread has made good progress. */
static void resume(struct steps *s, const struct raft *raft) {
    if (s->head - atomic_load(&s->taken) <= s->room / 2)
        s->missing = !put_checkpoint(s, raft, STEPS_MISSED);
}

static void add(struct steps *s, const struct raft *raft, const struct step *step,
                const struct raft_out *out, uint64_t result) {
    unsigned char entry[STEPS_ENTRY_MAX];
    s->step++;
    if (s->missing)
        resume(s, raft);
    else
        s->missing = !put(s, entry, steps_write(entry, step, step_hash(raft, step, out, result)));
    if (is_file_full(s)) begin_file(s, raft);
    publish(s);
}

/* The core must be as the last proposal has left it. */
static void add_proposed(struct steps *s) {
    struct step step = {.type = STEP_PROPOSE, .number = {s->proposed}};
    if (!s->proposed) return;
    s->proposed = 0;
    add(s, s->raft, &step, NULL, s->proposed_at);
}

void steps_before(struct steps *s, const struct step *step) {
    if (step->type != STEP_PROPOSE) add_proposed(s);
}

bool steps_add(struct steps *s, const struct raft *raft, const struct step *step,
               const struct raft_out *out, uint64_t result) {
    if (!s->begun) return true;
    if (atomic_load_explicit(&s->failed, memory_order_relaxed)) return false;
    if (step->type != STEP_PROPOSE || !result) { /* a proposal that was refused changes nothing */
        cv_assert(!s->proposed || step->type == STEP_PROPOSE);
        add_proposed(s);
        add(s, raft, step, out, result);
        return true;
    }
    if (!s->proposed) s->proposed_at = result;
    s->proposed += step->number[0];
    if (s->proposed >= PROPOSED_MAX) add_proposed(s);
    return true;
}

int steps_error(const struct steps *s) { return atomic_load(&s->failed); }

/* ---- Start and end ---- */

static char *joined(const char *a, const char *b) {
    size_t size = strlen(a) + strlen(b) + 1;
    char *text = malloc(size);
    cv_assert(text);
    snprintf(text, size, "%s%s", a, b);
    return text;
}

static void discard(struct steps *s) {
    if (s->fd >= 0) close(s->fd);
    free(s->ring);
    free(s->path);
    free(s->path_before);
    bytes_close(&s->checkpoint);
    free(s);
}

static const char *start(struct steps *s, const char **where) {
    sigset_t all, before;
    uint64_t size = 0;
    *where = s->path_before;
    const char *problem = check_replaced(s->path_before);
    if (problem) return problem;
    *where = s->path;
    s->fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->fd < 0) return strerror(errno);
    if (!lock(s->fd)) return "another server writes this record";
    problem = cut_torn_end(s->fd, &size);
    if (problem) return problem;
    s->file_bytes = size;
    s->ring = malloc(RING);
    if (!s->ring) return strerror(ENOMEM);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&s->thread, NULL, write_blocks, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? strerror(error) : NULL;
}

struct steps *steps_open(const char *path, uint64_t bytes_max, uint64_t incarnation,
                         char error[STEPS_ERROR_MAX]) {
    struct steps *s = calloc(1, sizeof *s);
    cv_assert(s);
    s->path = joined(path, "");
    s->path_before = joined(path, ".1");
    s->incarnation = incarnation;
    s->bytes_max = bytes_max;
    s->room = bytes_max / 8 < RING ? bytes_max / 8 : RING;
    s->rotate_at = NOWHERE;
    const char *where, *problem = start(s, &where);
    if (!problem) return s;
    snprintf(error, STEPS_ERROR_MAX, "%.300s: %s", where, problem);
    discard(s);
    return NULL;
}

void steps_close(struct steps *s) {
    unsigned char end = STEPS_END;
    if (!s) return;
    add_proposed(s);
    if (s->missing) end = STEPS_END_MISSED;
    while (s->begun && !put(s, &end, 1) && !atomic_load(&s->failed)) pause_briefly();
    publish(s);
    atomic_store(&s->ending, true);
    pthread_join(s->thread, NULL);
    discard(s);
}
