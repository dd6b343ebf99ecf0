/* The record of a server, with any entries in a block whose checksum is right: it is refused, or
 * replayed, judged and drawn, in one form or another.  Hashes of states are not compared, because
 * no input would get beyond the first. */
#include "base/crc32c.h"
#include "base/little.h"
#include "lab/servers/picture.h"
#include "lab/servers/replay.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void draw(struct servers_picture *picture, enum trace_format format) {
    FILE *out = fopen("/dev/null", "we");
    cv_assert(out);
    servers_picture_write(picture, "", format, 1, out);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    struct servers_judge judge = {0};
    struct servers_picture *picture = servers_picture_open();
    struct servers_replay replay = {.judge = &judge, .picture = picture, .any_hash = true};
    struct bytes bytes = {0};
    unsigned char head[STEPS_BLOCK_HEAD];
    put32(head, (uint32_t)size);
    put32(head + 4, crc32c(0, data, size));
    bytes_add(&bytes, head, sizeof head);
    bytes_add(&bytes, data, size);
    FILE *file = fmemopen(bytes.at, bytes.used, "r");
    cv_assert(file);
    bool replayed = servers_replay_file(&replay, "record", file) == 0;
    servers_judge_finish(&judge);
    if (replayed) draw(picture, (enum trace_format)(size % TRACE_FORMATS));
    servers_picture_close(picture);
    servers_replay_close(&replay);
    servers_judge_close(&judge);
    bytes_close(&bytes);
    return 0;
}
