/* Preloaded, it makes every sync take as long as on a slow disk that others use, too: up to
 * $SYNC_MS, and one of a hundred twenty times as long. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_US = 2000, STALL_OF = 100, STALL_TIMES = 20 };

static void wait_for_disk(void) {
    const char *given = getenv("SYNC_MS");
    uint32_t max_us = 1000 * (uint32_t)(given ? strtoul(given, NULL, 10) : 10), random = 0;
    getrandom(&random, sizeof random, 0);
    uint64_t us = LEAST_US + random % (max_us + 1);
    if (random % STALL_OF == 0) us = (uint64_t)max_us * STALL_TIMES;
    nanosleep(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000 * 1000)}, NULL);
}

static int sync_with(const char *name, int file) {
    int (*sync)(int);
    *(void **)&sync = dlsym(RTLD_NEXT, name);
    wait_for_disk();
    return sync(file);
}

int fsync(int file) { return sync_with("fsync", file); }

int fdatasync(int file) { return sync_with("fdatasync", file); }
