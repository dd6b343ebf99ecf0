/* The mark: a small file beside the log that says up to where the log was durable.
 *
 * It is moved after each sync of the log, and is itself synced only when a segment begins.  So it
 * may be old, by as much as the system keeps in memory when the power fails, but it is never wrong:
 * what it says was durable was durable.  If that much is no longer there, it was lost after it was
 * acknowledged.
 *
 *   mark   two slots, each in a sector of its own and written in turn: magic, version; number; the
 *          segment (sequence, key) and the offset in it; next index of the log; checksum (CRC32C)
 */
#include <stdio.h>

#include "base/crc32c.h"
#include "service/log/file.h"
#include "service/log/internal.h"

static const char NAME[] = MARK_NAME, MAGIC[16] = "conclave mark 1";

struct slot {
    char magic[16];
    struct log_mark mark;
    uint32_t reserved, crc; /* of all before it */
};
_Static_assert(sizeof(struct slot) == 64, "it is what is on disk");

static uint32_t crc_of(const struct slot *slot) {
    return crc32c(0, slot, offsetof(struct slot, crc));
}

int mark_read(struct log *log) {
    struct log_mark *mark = &log->mark;
    struct slot slot;
    int file = file_open(log->directory, NAME, O_RDONLY);
    *mark = (struct log_mark){0};
    if (file < 0 && file_may_be_good(errno)) return log_fail_errno(log, "cannot be read", NAME);
    if (file < 0) return 0;
    for (int i = 0; i < 2; i++)
        if (pread(file, &slot, sizeof slot, (off_t)i * SECTOR) == sizeof slot &&
            memcmp(slot.magic, MAGIC, sizeof MAGIC) == 0 && slot.crc == crc_of(&slot) &&
            slot.mark.number > mark->number)
            *mark = slot.mark;
    close(file);
    return 0;
}

static int open_file(struct log *log) {
    log->mark_file = file_open(log->directory, NAME, O_RDWR);
    if (log->mark_file >= 0 || errno != ENOENT) return log->mark_file;
    log->mark_file = file_open(log->directory, NAME, O_RDWR | O_CREAT);
    if (log->mark_file >= 0 && fsync(log->directory) != 0) {
        close(log->mark_file);
        log->mark_file = -1;
    }
    return log->mark_file;
}

int mark_move(struct log *log, bool durable) {
    const struct log_segment *last = log->segments ? &log->segment[log->segments - 1] : NULL;
    struct slot slot = {.mark = {.number = log->mark.number + 1,
                                 .sequence = last ? last->sequence : 0,
                                 .key = last ? last->key : 0,
                                 .offset = last ? log->end.offset : 0,
                                 .next_index = log->end.next_index}};
    if (log->mark_file < 0 && open_file(log) < 0)
        return log_fail_errno(log, "cannot be created", NAME);
    memcpy(slot.magic, MAGIC, sizeof MAGIC);
    slot.crc = crc_of(&slot);
    off_t at = (off_t)(slot.mark.number % 2) * SECTOR;
    if (pwrite(log->mark_file, &slot, sizeof slot, at) != sizeof slot ||
        (durable && fsync(log->mark_file) != 0))
        return log_fail_errno(log, "cannot be written", NAME);
    log->mark = slot.mark;
    return 0;
}
