/* Messages of algorithms as bytes, by their tables of fields: each field in the order of the table,
 * little-endian, the rows after the head.
 *
 * What arrives is checked against the tables, so that step() gets well-formed messages only:
 *   - a kind that exists, of the size of its head and whole rows, and not more rows than the
 *     algorithm may send;
 *   - processes that exist, and named values that have a name;
 *   - a queue that travels with its links has a row for each process, and its links make one list.
 */
#ifndef CV_PEER_CODEC_H
#define CV_PEER_CODEC_H

#include "process/process.h"

struct codec {
    const struct cv_record *messages;
    uint32_t message_count, processes;
    uint32_t rows_max; /* of a message */
};

/* The largest body. */
uint32_t codec_room(const struct codec *codec);
/* Writes `size` bytes. */
void codec_write(const struct codec *codec, uint16_t kind, const void *body, uint32_t size,
                 unsigned char *bytes);
/* Reads a body of `size` bytes, which is aligned to 8 bytes and has codec_room.  NULL, or what is
 * wrong with the bytes. */
const char *codec_read(const struct codec *codec, uint32_t kind, const unsigned char *bytes,
                       size_t size, void *body);

#endif
