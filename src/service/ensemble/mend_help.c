/* Helping a server whose files are damaged: entries and snapshots that this one has intact, whether
 * it leads, follows, or is damaged elsewhere itself.  Nobody counts anything by them: they are what
 * the other had before. */
#include <stdlib.h>
#include <unistd.h>

#include "service/ensemble/internal.h"
#include "service/log/reader.h"
#include "service/log/salvage.h"
#include "service/log/transfer.h"

enum {
    ENTRIES = 256 << 10, /* bytes of them in one answer */
    CHUNK = 256 << 10,
};

static void answer(struct ensemble *e, uint8_t to, const struct frame_mend_response *frame,
                   const struct raft_batch *batch) {
    uint16_t version;
    struct bytes *out = peers_begin(e, to, FRAME_TYPE_mend_response, LINK_BULK, &version);
    if (!out) return;
    codec_write_mend_response(out, version, frame);
    bytes_add(out, batch->bytes, batch->size);
    peers_end(e, to);
    e->statistics.helped_entries += batch->count;
    peers_flush(e);
}

static struct frame_mend_response response(uint64_t number, const struct raft_batch *batch) {
    return (struct frame_mend_response){
        .number = number, .term = batch->term, .count = batch->count, .kind = (uint8_t)batch->kind};
}

/* ---- From the log on disk ---- */

struct help { /* by a thread */
    uv_work_t work;
    struct ensemble *ensemble;
    uint8_t to;
    struct frame_mend_request request;
    struct frame_mend_response response;
    int log_directory, data_directory;
    const char *log_path, *data_path;
    uint64_t last, on_disk; /* on_disk: older than the entries in memory, and committed */
    struct log_reader *reader;
    struct raft_batch batch;
    uint64_t snapshot_index;
};

/* The newest snapshot that is good. */
static uint64_t find_snapshot(int directory, const char *path) {
    struct snapshots found;
    if (snapshots_list(&found, directory, path) != 0) return 0;
    for (size_t i = 0; i < found.count; i++)
        if (snapshot_verify(&found, found.index[i]) == 0) return found.index[i];
    return 0;
}

/* Whether the log on disk has the entry that is asked about. */
static bool has_pin(const struct help *help) {
    struct raft_batch batch;
    uint64_t previous_term, index = help->request.pin_index;
    if (!index || index > help->on_disk) return false;
    struct log_reader *reader = log_reader_open(help->log_directory, help->log_path, index);
    bool has = reader && log_reader_next(reader, index, 1, &batch, &previous_term) == 0 &&
               batch.count && batch.term == help->request.pin_term;
    log_reader_close(reader);
    return has;
}

static void look(uv_work_t *work) {
    struct help *help = work->data;
    if (!help->response.pinned) help->response.pinned = has_pin(help);
    uint64_t previous_term;
    help->reader = log_reader_open(help->log_directory, help->log_path, help->request.first);
    if (!help->reader ||
        log_reader_next(help->reader, help->last, ENTRIES, &help->batch, &previous_term) != 0)
        help->batch = (struct raft_batch){0};
    if (!help->batch.count)
        help->snapshot_index = find_snapshot(help->data_directory, help->data_path);
}

static void looked(uv_work_t *work, int status) {
    struct help *help = work->data;
    struct ensemble *e = help->ensemble;
    (void)status;
    e->peer[help->to].is_helped = false;
    if (!e->draining) {
        struct frame_mend_response frame = response(help->request.number, &help->batch);
        frame.commit_index = help->response.commit_index;
        frame.pinned = help->response.pinned;
        frame.snapshot_index = help->snapshot_index;
        answer(e, help->to, &frame, &help->batch);
    }
    log_reader_close(help->reader);
    free(help);
}

static void ask_disk(struct ensemble *e, uint8_t to, const struct frame_mend_request *request,
                     const struct frame_mend_response *known) {
    struct help *help = calloc(1, sizeof *help);
    cv_assert(help);
    *help = (struct help){.ensemble = e,
                          .to = to,
                          .request = *request,
                          .response = *known,
                          .log_directory = e->disk.log_directory,
                          .data_directory = e->disk.data_directory,
                          .log_path = e->settings->log_dir,
                          .data_path = e->settings->data_dir,
                          .last = request->last < e->log.after ? request->last : e->log.after,
                          .on_disk = e->log.after};
    help->work.data = help;
    e->peer[to].is_helped = true;
    uv_queue_work(e->loop, &help->work, look, looked);
}

/* ---- From memory ---- */

/* The longest part of a batch that ends with an entry or before it. */
static void end_at(struct raft_batch *batch, uint64_t last) {
    struct raft_entry entry;
    size_t at = 0;
    if (raft_batch_last(batch) <= last) return;
    batch->count = (uint32_t)(last - batch->first + 1);
    for (uint32_t i = 0; i < batch->count; i++) raft_next(batch, &at, &entry);
    batch->size = at;
}

static void help_healthy(struct ensemble *e, uint8_t to, const struct frame_mend_request *request) {
    const struct raft *raft = &e->raft;
    struct frame_mend_response known = {.commit_index = raft->commit_index};
    struct raft_batch batch = {0};
    if (request->pin_index >= raft->snapshot_index && request->pin_index <= raft->last_index)
        known.pinned =
            request->pin_index && raft_term_at(raft, request->pin_index) == request->pin_term;
    if (request->first <= e->log.after) {
        if (!e->peer[to].is_helped) ask_disk(e, to, request, &known);
        return;
    }
    if (request->first <= window_last(&e->log)) {
        window_read(&e->log, request->first, ENTRIES, &batch);
        end_at(&batch, request->last);
    }
    struct frame_mend_response frame = response(request->number, &batch);
    frame.commit_index = known.commit_index;
    frame.pinned = known.pinned;
    answer(e, to, &frame, &batch);
}

/* ---- From what is left ---- */

static void help_damaged(struct ensemble *e, uint8_t to, const struct frame_mend_request *request) {
    struct salvage *s = mend_salvage(e);
    struct raft_batch batch = {0};
    bool has = salvage_read(s, request->first, request->last, ENTRIES, &batch);
    if (!has && request->first > s->after && !salvage_term_at(s, request->first) &&
        salvage_read_dropped(s, request->first, request->last, ENTRIES, &batch)) {
        /* It may not have been in this log any more, so only its index and term say what it is. */
        struct frame_mend_response dropped = response(request->number, &batch);
        answer(e, to, &dropped, &batch);
        return;
    }
    if (!has) batch = (struct raft_batch){0};
    struct frame_mend_response frame = response(request->number, &batch);
    frame.commit_index = s->commit_index;
    frame.pinned = request->pin_index && request->pin_term &&
                   salvage_term_at(s, request->pin_index) == request->pin_term;
    if (!batch.count) {
        frame.snapshot_index = s->after;
        frame.known = salvage_run(s, request->first);
        frame.term = salvage_term_at(s, request->first);
    }
    answer(e, to, &frame, &batch);
}

void mend_help(struct ensemble *e, uint8_t to, const struct frame_mend_request *request) {
    if (e->mend)
        help_damaged(e, to, request);
    else
        help_healthy(e, to, request);
}

void mend_help_chunk(struct ensemble *e, uint8_t to,
                     const struct frame_mend_chunk_request *request) {
    struct snapshots from = {.directory = e->disk.data_directory, .path = e->settings->data_dir};
    struct frame_mend_chunk frame = {.snapshot_index = request->snapshot_index,
                                     .offset = request->offset};
    struct sending file;
    uint16_t version;
    unsigned char *bytes = malloc(CHUNK);
    long size = 0;
    cv_assert(bytes);
    if (sending_open(&file, &from, request->snapshot_index) == 0) {
        size = sending_read(&file, request->offset, bytes, CHUNK);
        if (size > 0) frame.file_size = file.size;
        sending_close(&file);
    }
    struct bytes *out = peers_begin(e, to, FRAME_TYPE_mend_chunk, LINK_BULK, &version);
    if (out) {
        codec_write_mend_chunk(out, version, &frame);
        bytes_add(out, bytes, size > 0 ? (size_t)size : 0);
        peers_end(e, to);
        peers_flush(e);
    }
    free(bytes);
}
