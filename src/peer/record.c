/* Writing the record of a process. */
#include "peer/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/little.h"

enum { BLOCK_MAX = 1 << 16 }; /* bytes that are kept before they are written */

static int fail(struct recorder *recorder, char *error, const char *path, const char *why) {
    snprintf(error, RECORD_ERROR_MAX, "%.200s: %s", path, why);
    recorder_close(recorder);
    return -1;
}

/* Cuts off what a crash has torn, so that what follows is found. */
static const char *cut_torn_end(int fd) {
    struct stat file;
    unsigned char head[RECORD_BLOCK_HEAD];
    off_t at = 0;
    if (fstat(fd, &file) != 0) return strerror(errno);
    if (!S_ISREG(file.st_mode)) return "this is no file";
    while (pread(fd, head, sizeof head, at) == (ssize_t)sizeof head) {
        unsigned char first[1 + 4];
        uint32_t size = get32(head);
        if (!at && (pread(fd, first, sizeof first, sizeof head) != (ssize_t)sizeof first ||
                    first[0] != RECORD_RUN || get32(first + 1) != RECORD_MAGIC))
            return "this is no record, and is left as it is";
        if (size > file.st_size - at - (off_t)sizeof head) break;
        at += (off_t)sizeof head + size;
    }
    if (!at && file.st_size) return "this is no record, and is left as it is";
    if (at != file.st_size && ftruncate(fd, at) != 0) return strerror(errno);
    return lseek(fd, at, SEEK_SET) < 0 ? strerror(errno) : NULL;
}

int recorder_open(struct recorder *recorder, const char *path, char error[RECORD_ERROR_MAX]) {
    *recorder = (struct recorder){.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    if (recorder->fd < 0) return fail(recorder, error, path, strerror(errno));
    if (flock(recorder->fd, LOCK_EX | LOCK_NB) != 0)
        return fail(recorder, error, path, "another peer writes this record");
    const char *problem = cut_torn_end(recorder->fd);
    return problem ? fail(recorder, error, path, problem) : 0;
}

/* ---- Entries ---- */

static unsigned char *begin(struct recorder *recorder, enum record_entry entry, size_t size) {
    if (!recorder->block.used) bytes_extend(&recorder->block, RECORD_BLOCK_HEAD);
    unsigned char *at = bytes_extend(&recorder->block, size);
    *at = (unsigned char)entry;
    return at;
}

/* Since the newest entry that has a time; this one is the newest then. */
static uint32_t time_since(struct recorder *recorder, uint64_t now_us) {
    uint64_t passed = now_us > recorder->written_us ? now_us - recorder->written_us : 0;
    if (passed > UINT32_MAX) passed = UINT32_MAX;
    recorder->written_us += passed;
    return (uint32_t)passed;
}

static void write_group(struct bytes *to, const struct group *group) {
    const struct cv_algorithm *code = group->algorithm;
    size_t length = strlen(code->name) < 255 ? strlen(code->name) : 255;
    *bytes_extend(to, 1) = (unsigned char)length;
    bytes_add(to, code->name, length);
    *bytes_extend(to, 1) = code->option_count;
    for (unsigned i = 0; i < code->option_count; i++) put64(bytes_extend(to, 8), group->option[i]);
    group_write(group, to);
}

void recorder_run(struct recorder *recorder, const struct recorder_run *run) {
    if (recorder->fd < 0) return;
    unsigned char *at = begin(recorder, RECORD_RUN, RECORD_RUN_SIZE);
    put32(at + 1, RECORD_MAGIC);
    at[5] = (unsigned char)run->flags;
    put32(at + 6, run->self);
    put64(at + 10, run->incarnation);
    put64(at + 18, run->wall_us);
    put64(at + 26, run->prefix);
    put32(at + 34, run->group_run);
    size_t size_at = (size_t)(at + 38 - recorder->block.at), before = recorder->block.used;
    write_group(&recorder->block, run->group);
    put32(recorder->block.at + size_at, (uint32_t)(recorder->block.used - before));
    recorder->written_us = run->now_us;
}

void recorder_step(struct recorder *recorder, uint64_t now_us, const struct codec *codec,
                   const struct cv_event *event, uint64_t number, uint64_t hash) {
    if (recorder->fd < 0) return;
    bool message = event->type == CV_RECV;
    unsigned char *at = begin(
        recorder, RECORD_STEP,
        RECORD_STEP_SIZE + (message ? RECORD_MESSAGE_SIZE + event->size : RECORD_ARGUMENT_SIZE));
    put32(at + 2, time_since(recorder, now_us));
    at[1] = (unsigned char)event->type;
    put64(at + 6, hash);
    at += RECORD_STEP_SIZE;
    if (message) {
        put32(at, event->from);
        put64(at + 4, number);
        put16(at + 12, event->kind);
        put32(at + 14, event->size);
        codec_write(codec, event->kind, event->body, event->size, at + RECORD_MESSAGE_SIZE);
    } else {
        put32(at, event->arg);
    }
}

bool recorder_is_full(const struct recorder *recorder) { return recorder->block.used >= BLOCK_MAX; }

void recorder_sent(struct recorder *recorder, cv_pid to, uint64_t number) {
    if (recorder->fd < 0) return;
    unsigned char *at = begin(recorder, RECORD_SENT, RECORD_SENT_SIZE);
    put32(at + 1, to);
    put64(at + 5, number);
}

void recorder_met(struct recorder *recorder, cv_pid p, uint64_t incarnation) {
    if (recorder->fd < 0) return;
    unsigned char *at = begin(recorder, RECORD_MET, RECORD_MET_SIZE);
    put32(at + 1, p);
    put64(at + 5, incarnation);
}

void recorder_end(struct recorder *recorder, uint64_t now_us, bool in_order) {
    if (recorder->fd < 0) return;
    unsigned char *at = begin(recorder, RECORD_END, RECORD_END_SIZE);
    at[1] = in_order;
    put32(at + 2, time_since(recorder, now_us));
}

/* ---- Blocks ---- */

int recorder_flush(struct recorder *recorder) {
    struct bytes *block = &recorder->block;
    if (!block->used) return 0;
    size_t size = block->used - RECORD_BLOCK_HEAD;
    put32(block->at, (uint32_t)size);
    put32(block->at + 4, crc32c(0, block->at + RECORD_BLOCK_HEAD, size));
    for (size_t done = 0; done < block->used;) {
        ssize_t count = write(recorder->fd, block->at + done, block->used - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            int error = errno;
            recorder_close(recorder);
            return error;
        }
        done += (size_t)count;
    }
    block->used = 0;
    return 0;
}

uint64_t recorder_size(const struct recorder *recorder) {
    off_t size = recorder->fd >= 0 ? lseek(recorder->fd, 0, SEEK_CUR) : 0;
    return size > 0 ? (uint64_t)size : 0;
}

void recorder_close(struct recorder *recorder) {
    if (recorder->fd >= 0) close(recorder->fd);
    bytes_close(&recorder->block);
    recorder->fd = -1;
}
