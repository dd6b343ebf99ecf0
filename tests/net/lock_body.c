/* What runs under a lock in tests: notices whether another one runs at the same time.
 *
 *     lock_body DIRECTORY MILLISECONDS [deaf] [family] [leaves]
 *
 * It counts in DIRECTORY/count without any care, and writes lines to DIRECTORY/records.  Whether
 * another body lives, or anything that one has started, is found by a file lock that all of these
 * inherit and that ends with them. deaf: ignores SIGTERM.  family: has grandchildren in other
 * groups and sessions, which would live on for an hour. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static int open_in(const char *directory, const char *name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int file = open(path, flags | O_CREAT, 0600);
    if (file < 0) perror(path), exit(99);
    return file;
}

static void record(int records, const char *what) {
    struct timespec now;
    char line[256];
    const char *token = getenv("CONCLAVE_TOKEN");
    clock_gettime(CLOCK_BOOTTIME, &now);
    int size = snprintf(line, sizeof line, "%s %s %d %lld%09ld\n", what, token ? token : "0",
                        getpid(), (long long)now.tv_sec, now.tv_nsec);
    if (write(records, line, (size_t)size) != size) exit(99);
}

static void rest(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

static void have_family(void) {
    for (int i = 0; i < 3; i++) {
        if (fork() != 0) continue;
        if (i == 0) setsid();
        if (i == 1) setpgid(0, 0);
        if (fork() != 0) _exit(0);
        rest(3600000);
        _exit(0);
    }
}

static void leave_behind(int records) {
    if (fork() != 0) return;
    setsid();
    rest(700);
    record(records, "left");
    _exit(0);
}

static void count_once(const char *directory) {
    char text[32] = "";
    int count = open_in(directory, "count", O_RDWR);
    ssize_t size = pread(count, text, sizeof text - 1, 0);
    long value = size > 0 ? strtol(text, NULL, 10) : 0;
    int length = snprintf(text, sizeof text, "%ld\n", value + 1);
    if (pwrite(count, text, (size_t)length, 0) != length) exit(99);
    close(count);
}

int main(int argc, char **argv) {
    if (argc < 3) return 99;
    int arena = open_in(argv[1], "arena", O_RDWR),
        records = open_in(argv[1], "records", O_WRONLY | O_APPEND);
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], "deaf") == 0) signal(SIGTERM, SIG_IGN);
    record(records, flock(arena, LOCK_EX | LOCK_NB) == 0 ? "begin" : "OVERLAP");
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], "family") == 0) have_family();
    count_once(argv[1]);
    for (int i = 3; i < argc; i++)
        if (strcmp(argv[i], "leaves") == 0) leave_behind(records);
    rest(strtol(argv[2], NULL, 10));
    record(records, "end");
    return 0;
}
