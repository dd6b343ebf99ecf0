/* Snapshots on disk: a state as one compressed, checksummed file, complete or not there.
 *
 *   snapshot.<index of the last entry in it, 16 hexadecimal digits>
 *   header: magic, version; index; term; checksum.  Then one Zstandard frame with its own. */
#ifndef CV_RAFT_SNAPSHOT_H
#define CV_RAFT_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

enum { SNAPSHOT_MESSAGE_MAX = 512, SNAPSHOTS_MAX = 64, SNAPSHOT_NAME_SIZE = 32 };

struct snapshots { /* those in a directory */
    int directory;
    const char *path;
    uint64_t index[SNAPSHOTS_MAX]; /* newest first; older ones than these are as good as gone */
    size_t count;
    char message[SNAPSHOT_MESSAGE_MAX];
};

char *snapshot_name(char name[SNAPSHOT_NAME_SIZE], uint64_t index);
int snapshots_list(struct snapshots *snapshots, int directory, const char *path);
/* Removes all but the newest `keep`. */
void snapshots_trim(struct snapshots *snapshots, size_t keep);

/* Renames one to damaged.*, which no server reads. */
int snapshot_set_aside(struct snapshots *snapshots, uint64_t index);

/* ---- Writing ---- */

struct snapshot_writer;

/* Begins a snapshot; NULL, with a message, when it cannot. */
struct snapshot_writer *snapshot_begin(struct snapshots *snapshots, uint64_t index, uint64_t term);
/* The same under another name than its own, for what is kept elsewhere. */
struct snapshot_writer *snapshot_begin_as(struct snapshots *snapshots, const char *name,
                                          uint64_t index, uint64_t term);
int snapshot_write(void *writer, const void *bytes, size_t size);
/* Makes it durable and gives it its name, or throws it away (`keep` false).  Frees the writer. */
int snapshot_end(struct snapshot_writer *writer, int keep);

/* ---- Reading ---- */

struct snapshot_reader;

struct snapshot_reader *snapshot_open(struct snapshots *snapshots, uint64_t index, uint64_t *term);
struct snapshot_reader *snapshot_open_as(struct snapshots *snapshots, const char *name,
                                         uint64_t *index, uint64_t *term);
int snapshot_read(void *reader, void *bytes, size_t size);
/* -1: what was read was not all, or not what had been written. */
int snapshot_close(struct snapshot_reader *reader);

#endif
