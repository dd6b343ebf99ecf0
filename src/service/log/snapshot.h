/* Snapshots on disk: a state as one compressed, checksummed file that appears when it is complete.
 *
 *   snapshot.<index of the last entry in it, 16 hexadecimal digits>
 *   header: magic, version; index; term; origin; checksum.  Then one Zstandard frame with its own
 *   checksum. */
#ifndef CV_SERVICE_LOG_SNAPSHOT_H
#define CV_SERVICE_LOG_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include "service/log/file.h"

enum { SNAPSHOT_MESSAGE_MAX = 512, SNAPSHOTS_MAX = 64, SNAPSHOT_NAME_SIZE = 32 };

struct snapshots { /* of a directory */
    int directory;
    const char *path;
    uint64_t index[SNAPSHOTS_MAX]; /* newest first; older ones than these are ignored */
    size_t count;
    uint32_t origin; /* of the log (log.h) beside which one is written, or was written that is read;
                        0: there was none, or it is not known */
    int error;       /* with a message: errno; 0: what is wrong is in the file */
    char message[SNAPSHOT_MESSAGE_MAX];
};

char *snapshot_name(char name[SNAPSHOT_NAME_SIZE], uint64_t index);
int snapshots_list(struct snapshots *snapshots, int directory, const char *path);
/* Removes all but the newest `keep`. */
void snapshots_trim(struct snapshots *snapshots, size_t keep);

/* Renames a snapshot to damaged.*, which no server reads. */
int snapshot_set_aside(struct snapshots *snapshots, uint64_t index);

/* ---- Writing ---- */

struct snapshot_writer;

/* Begins a snapshot; NULL, with a message, on failure. */
struct snapshot_writer *snapshot_begin(struct snapshots *snapshots, uint64_t index, uint64_t term);
/* The same under any name: for backups. */
struct snapshot_writer *snapshot_begin_as(struct snapshots *snapshots, const char *name,
                                          uint64_t index, uint64_t term);
int snapshot_write(void *writer, const void *bytes, size_t size);
/* Makes the snapshot durable and gives it its name, or discards it (`keep` false).  Frees the
 * writer.
 */
int snapshot_end(struct snapshot_writer *writer, int keep);

/* ---- Reading ---- */

struct snapshot_reader;

struct snapshot_reader *snapshot_open(struct snapshots *snapshots, uint64_t index, uint64_t *term);
struct snapshot_reader *snapshot_open_as(struct snapshots *snapshots, const char *name,
                                         uint64_t *index, uint64_t *term);
int snapshot_read(void *reader, void *bytes, size_t size);
/* -1: not everything was read, or the checksum is wrong. */
int snapshot_close(struct snapshot_reader *reader);
/* Reads a whole snapshot from the disk, and only checks it; -1, with a message: it is damaged. */
int snapshot_verify(struct snapshots *snapshots, uint64_t index);

#endif
