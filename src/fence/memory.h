/* What a fence must not forget: the highest token of each lock that ever entered, in a small file
 * of text with a checksum.  One process at a time may have it open. */
#ifndef CV_FENCE_MEMORY_H
#define CV_FENCE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct fence_memory_entry {
    char *lock;
    int64_t token;
};

struct fence_memory {
    const char *path;
    int directory, guard; /* guard: locked as long as this process uses the file */
    struct fence_memory_entry *entries;
    size_t count, room;
    char message[512]; /* after a failure */
};

/* Reads the file, if there is one.  0, or -1 and a message; close it in any case. */
int fence_memory_open(struct fence_memory *memory, const char *path);
void fence_memory_close(struct fence_memory *memory);

int64_t fence_memory_of(const struct fence_memory *memory, const char *lock); /* 0: none */
/* Durable when it returns 0. */
int fence_memory_raise(struct fence_memory *memory, const char *lock, int64_t token);

#endif
