/* The durable prefix of a process, in a small file: what cv_save keeps is on the disk before
 * anything that depends on it is sent.
 *
 * The file has two slots, which are written in turn, each with a sequence number and a checksum: a
 * crash while one is written leaves the other.  In a slot are also the group and the process that
 * it belongs to, the newest incarnation, so that the next one is a higher number whatever the clock
 * says, and the number of the run (peer/runs.c). */
#ifndef CV_PEER_DURABLE_H
#define CV_PEER_DURABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { DURABLE_ERROR_MAX = 256 };

struct durable {
    int fd; /* -1: there is no file, and nothing is kept */
    uint64_t group;
    uint32_t process, size; /* of the prefix, bytes */
    uint32_t run;
    uint64_t sequence, incarnation;
    unsigned char *slot; /* one, as it is written */
};

enum durable_found { DURABLE_FAILED = -1, DURABLE_NEW, DURABLE_FOUND, DURABLE_SUSPENDED };

/* Opens or makes the file of that process of that group.  DURABLE_FOUND: the prefix was read into
 * `prefix`.  DURABLE_NEW: there was no run before, or the last one, of this group or of another,
 * has ended for good.  DURABLE_SUSPENDED: as DURABLE_FOUND, and it has left a checkpoint of that
 * sequence number.  DURABLE_FAILED: why is in `error`. */
enum durable_found durable_open(struct durable *durable, const char *path, uint64_t group,
                                uint32_t process, void *prefix, uint32_t size,
                                char error[DURABLE_ERROR_MAX]);
/* Writes a prefix (NULL: the last one) and waits for the disk.  0 or an errno. */
int durable_write(struct durable *durable, const void *prefix);
/* The process has ended its run for good; the next one, of that number, begins anew.  Writes the
 * incarnation as well. */
int durable_end(struct durable *durable, uint32_t next_run);
/* The process goes on later from a checkpoint, which has the next sequence number. */
int durable_suspend(struct durable *durable);
/* Locks a file for this process alone.  One that was killed may take a moment to go, so that is
 * waited for, for two seconds.  False: see errno. */
bool durable_lock(int fd);
/* Makes it durable that there is a file of that name: 0, or the error. */
int durable_sync_directory(const char *path);
void durable_close(struct durable *durable);

#endif
