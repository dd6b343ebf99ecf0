/* The log that was mended is written anew. */
#include <stdio.h>

#include "base/grow.h"
#include "service/log/internal.h"
#include "service/log/salvage.h"

static int write_piece(struct salvage *s, struct salvage_piece *p, int file, uint64_t key,
                       bool old_format, uint64_t *offset) {
    struct batch_form form;
    struct raft_batch batch;
    if (!salvage_read(s, p->first, p->first + p->count - 1, SIZE_MAX, &batch)) {
        errno = EIO;
        return -1;
    }
    uint64_t last = raft_batch_last(&batch);
    batch.commit_index = s->commit_index < last ? s->commit_index : last;
    segment_batch_form(&form, key, &batch, salvage_term_at(s, p->first - 1), *offset, old_format);
    struct iovec parts[] = {{form.header, form.header_size},
                            {(void *)batch.bytes, batch.size},
                            {form.end, form.end_size}};
    uint64_t at = *offset;
    *offset += segment_room(batch.size, old_format);
    return file < 0 ? 0 : log_write_all(file, parts, 3, at);
}

static int write_pieces(struct salvage *s, int file, uint64_t key, bool old_format,
                        uint64_t *offset) {
    for (size_t i = 0; i < s->pieces; i++)
        if (write_piece(s, &s->piece[i], file, key, old_format, offset) != 0) return -1;
    return 0;
}

int salvage_write(struct salvage *s, bool old_format, uint64_t segment_bytes, bool no_sync) {
    static const char unfinished[] = "new.log";
    struct log *log = &s->log;
    struct log_end end = {.next_index = s->after + 1, .commit_index = s->after, .term = s->term};
    struct segment_header header;
    unsigned char form[sizeof header];
    char name[SEGMENT_NAME_SIZE];
    uint64_t last = log->segments ? log->segment[log->segments - 1].sequence : 0;
    uint64_t sequence = (last > log->mark.sequence ? last : log->mark.sequence) + 1;
    uint64_t size = sizeof header;
    cv_assert(salvage_is_whole(s));
    if (write_pieces(s, -1, 0, old_format, &size) != 0)
        return log_fail_errno(log, "cannot be read any more", "log.*");
    if (size < segment_bytes) size = segment_bytes;
    if (segment_begin(&header, log, sequence, old_format ? 0 : size, &end) != 0)
        return log_fail_errno(log, "no random number for its key", unfinished);
    int file = file_open(log->directory, unfinished, O_RDWR | O_CREAT | O_TRUNC);
    if (file < 0) return log_fail_errno(log, "cannot be created", unfinished);
    struct iovec part = {form, segment_header_form(&header, form)};
    uint64_t offset = part.iov_len;
    segment_name(name, sequence);
    bool failed = (errno = posix_fallocate(file, 0, (off_t)size)) != 0 ||
                  log_write_all(file, &part, 1, 0) != 0 ||
                  write_pieces(s, file, header.key, old_format, &offset) != 0 ||
                  (!no_sync && fsync(file) != 0) ||
                  renameat(log->directory, unfinished, log->directory, name) != 0 ||
                  (!no_sync && fsync(log->directory) != 0);
    if (failed) log_fail_errno(log, "cannot be written", unfinished);
    close(file);
    for (size_t i = 0; i < log->segments && !failed; i++)
        if (s->damaged[i]) failed = log_set_aside(log, log->segment[i].sequence) != 0;
    if (failed || no_sync) return failed ? -1 : 0;
    log->segment = grown(log->segment, &log->segment_room, 1, sizeof *log->segment);
    log->segment[0] = (struct log_segment){sequence, header.key, header.next_index};
    log->segments = 1;
    log->end = (struct log_end){.next_index = salvage_last(s) + 1, .offset = offset};
    return mark_move(log, true);
}
