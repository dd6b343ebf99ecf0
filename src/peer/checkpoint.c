#include "peer/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/logger.h"

/* Head, state, and for each other process whether it is cut off and its channel.  The byte order is
 * in the magic. */
enum { MAGIC = 0x4356434c };
#define FILE_MAX ((off_t)1 << 36) /* more than all that a process keeps for others */
struct head {
    uint32_t magic, checksum; /* of what follows it */
    uint32_t process, phase;
    uint64_t group, sequence, tables, recorded, size; /* of the state */
};
_Static_assert(sizeof(struct head) == 56, "no padding");

enum { PATH_ROOM = 4096, FLAGS = O_CLOEXEC | O_NONBLOCK /* whatever it is */ };
static const char *path_of(const struct peer *peer, char path[PATH_ROOM]) {
    snprintf(path, PATH_ROOM, "%s/checkpoint", peer->config.data);
    return path;
}

static uint32_t checksum_of(const unsigned char *at, size_t size) {
    const size_t from = offsetof(struct head, process);
    return crc32c(0, at + from, size - from);
}

/* What the bytes mean: another version of the same algorithm may have other fields. */
static uint64_t hash_fields(const struct cv_field *fields, unsigned count, uint64_t hash) {
    for (unsigned i = 0; i < count; i++) {
        const uint32_t place[] = {fields[i].offset, fields[i].type};
        hash = hash_long(place, sizeof place, hash);
        hash = hash_long(fields[i].name, strlen(fields[i].name), hash);
    }
    return hash;
}

static uint64_t hash_record(const struct cv_record *record, uint64_t hash) {
    const uint32_t sizes[] = {record->size, record->row_size, record->field_count};
    hash = hash_long(sizes, sizeof sizes, hash);
    hash = hash_fields(record->fields, record->field_count, hash);
    return hash_fields(record->row_fields, record->row_field_count, hash);
}

static uint64_t hash_tables(const struct cv_algorithm *code) {
    uint64_t hash = hash_record(code->state, 0);
    for (unsigned i = 0; i < code->message_count; i++) hash = hash_record(&code->messages[i], hash);
    return hash;
}

/* ---- Writing ---- */

static int write_all(int file, const unsigned char *at, size_t size) {
    while (size) {
        ssize_t count = write(file, at, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count ? errno : ENOSPC;
        at += count;
        size -= (size_t)count;
    }
    return fsync(file) ? errno : 0;
}

int checkpoint_write(struct peer *peer) {
    const struct machine *machine = &peer->machine[ALGORITHM];
    struct head head = {.magic = MAGIC,
                        .process = peer->self,
                        .phase = peer->phase,
                        .group = peer->group->identity,
                        .sequence = peer->durable.sequence + 1,
                        .tables = hash_tables(machine->code),
                        .recorded = recorder_size(&peer->recorder),
                        .size = machine->size};
    struct bytes text = {0};
    bytes_add(&text, &head, sizeof head);
    bytes_add(&text, machine->state, machine->size);
    for (cv_pid p = 1; p <= peer->group->processes; p++) {
        if (p == peer->self) continue;
        *bytes_extend(&text, 1) = peer->other[p].cut_off;
        channel_write(&peer->other[p].channel, &text);
    }
    head.checksum = checksum_of(text.at, text.used);
    memcpy(text.at, &head, sizeof head);
    char path[PATH_ROOM];
    int file = open(path_of(peer, path), O_WRONLY | O_CREAT | O_TRUNC | FLAGS, 0600);
    int failed = file < 0 ? errno : write_all(file, text.at, text.used);
    if (file >= 0 && close(file) != 0 && !failed) failed = errno;
    bytes_close(&text);
    return failed ? failed : durable_sync_directory(path);
}

/* ---- Reading ---- */

static bool read_file(const char *path, struct bytes *text) {
    struct stat status;
    int file = open(path, O_RDONLY | FLAGS);
    bool whole = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                 status.st_size < FILE_MAX;
    size_t size = whole ? (size_t)status.st_size : 0;
    unsigned char *at = bytes_extend(text, size);
    ssize_t got = 0;
    text->used = 0;
    while (text->used < size && (got = read(file, at + text->used, size - text->used)) > 0)
        text->used += (size_t)got;
    if (file >= 0) close(file);
    return whole && text->used == size;
}

/* The channels go to `other`, of which there is one for each process. */
static bool read_others(const struct peer *peer, struct other *other, const unsigned char *at,
                        size_t left) {
    for (cv_pid p = 1; p <= peer->group->processes; p++) {
        if (p == peer->self) continue;
        if (!left--) return false;
        other[p].cut_off = *at++;
        if (!channel_read(&other[p].channel, &at, &left)) return false;
        other[p].incarnation = other[p].channel.incarnation;
    }
    return !left;
}

static bool parse(struct peer *peer, const struct bytes *text) {
    struct machine *machine = &peer->machine[ALGORITHM];
    struct head head;
    if (!text->at || text->used < sizeof head + machine->size) return false;
    memcpy(&head, text->at, sizeof head);
    if (head.magic != MAGIC || head.checksum != checksum_of(text->at, text->used) ||
        head.process != peer->self || head.group != peer->group->identity ||
        head.sequence != peer->durable.sequence || head.size != machine->size ||
        head.tables != hash_tables(machine->code) || head.phase > WAITING)
        return false;
    const unsigned char *state = text->at + sizeof head;
    uint32_t n = peer->group->processes;
    struct other *other = calloc((size_t)n + 1, sizeof *other);
    cv_assert(other);
    bool whole =
        read_others(peer, other, state + machine->size, text->used - sizeof head - machine->size);
    if (whole) {
        memcpy(machine->state, state, machine->size);
        memcpy(peer->other, other, ((size_t)n + 1) * sizeof *other);
        peer->phase = head.phase;
        peer->recorded = head.recorded;
        peer->orphan = head.phase != OUTSIDE;
    } else {
        for (cv_pid p = 1; p <= n; p++) channel_free(&other[p].channel);
    }
    free(other);
    return whole;
}

void checkpoint_remove(const struct peer *peer) {
    char path[PATH_ROOM];
    if (unlink(path_of(peer, path)) == 0) durable_sync_directory(path);
}

bool checkpoint_read(struct peer *peer) {
    struct bytes text = {0};
    char path[PATH_ROOM];
    bool whole = read_file(path_of(peer, path), &text) && parse(peer, &text);
    bytes_close(&text);
    if (!whole)
        logger_error("where this peer was when it ended is damaged or lost: it is one that has "
                     "crashed",
                     LOGGER_STRING("file", path));
    return whole;
}
