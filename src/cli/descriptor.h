/* A file descriptor of the calling shell that stands for a lock (--fd): as long as anybody has it
 * open, the lock is held.
 *
 * To learn when the last copy is closed, the open file gets a record lock of its own, on a byte
 * that nobody else uses; such a lock (F_OFD_SETLK) goes with the last copy, whatever kind of file
 * it is.  Who has the descriptor open is found by the same lock, in /proc. */
#ifndef CV_CLI_DESCRIPTOR_H
#define CV_CLI_DESCRIPTOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct descriptor {
    int number, again; /* the same file, opened again */
    int64_t byte;
    _Atomic int closed;
    void (*on_close)(void *arg);
    void *arg;
    pthread_t watcher;
};

/* Marks it.  NULL, or why that is not possible. */
const char *descriptor_mark(struct descriptor *descriptor, int number);
/* Waits in a thread until all copies are closed; ours must be. */
int descriptor_watch(struct descriptor *descriptor, void (*on_close)(void *arg), void *arg);
/* Sends a signal to all who have it open, and to what they have started.  Returns how many have. */
int descriptor_signal(const struct descriptor *descriptor, int signal);
/* Kills them, and returns when nobody has it open, or those who have cannot be killed. */
void descriptor_kill(const struct descriptor *descriptor);

#endif
