#include "cli/descriptor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/family.h"
#include "cli/proc.h"

static struct flock bytes(const struct descriptor *descriptor, off_t count) {
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = descriptor->byte, .l_len = count};
}

const char *descriptor_mark(struct descriptor *descriptor, int number) {
    char path[64];
    uint64_t byte;
    if (fcntl(number, F_GETFD) != 0) /* nor is it one of our own, which are closed on exec */
        return "it is not open; 'exec 9>/dev/null' opens one";
    snprintf(path, sizeof path, "/proc/self/fd/%d", number);
    if (getrandom(&byte, sizeof byte, 0) != sizeof byte) return strerror(errno);
    *descriptor = (struct descriptor){.number = number, .byte = (int64_t)(byte >> 2)};
    descriptor->again = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct flock lock = bytes(descriptor, 1);
    if (descriptor->again < 0 || fcntl(number, F_OFD_SETLK, &lock) != 0)
        return "it must be open for writing; 'exec 9>/dev/null' opens one";
    return NULL;
}

static void *wait_for_close(void *arg) {
    struct descriptor *descriptor = arg;
    struct flock lock = bytes(descriptor, 2); /* not the mark: keeper and front are no users */
    while (fcntl(descriptor->again, F_OFD_SETLKW, &lock) != 0)
        if (errno != EINTR) poll(NULL, 0, 100); /* not closed for all we know */
    atomic_store(&descriptor->closed, 1);
    descriptor->on_close(descriptor->arg);
    return NULL;
}

int descriptor_watch(struct descriptor *descriptor, void (*on_close)(void *arg), void *arg) {
    descriptor->on_close = on_close;
    descriptor->arg = arg;
    return pthread_create(&descriptor->watcher, NULL, wait_for_close, descriptor);
}

/* "lock: 1: OFDLCK ADVISORY WRITE -1 08:01:123 BYTE BYTE" */
static bool has_mark(int directory, const char *name, const char *mark) {
    char text[4096];
    int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = 0;
    return strstr(text, mark) != NULL;
}

static bool is_user(int hold, const char *mark) {
    bool found = false;
    int folder = openat(hold, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = folder < 0 ? NULL : fdopendir(folder);
    if (!files) return folder >= 0 && (close(folder), false);
    for (struct dirent *entry; !found && (entry = readdir(files));)
        found = *entry->d_name != '.' && has_mark(dirfd(files), entry->d_name, mark);
    closedir(files);
    return found;
}

int descriptor_signal(const struct descriptor *descriptor, int signal) {
    char mark[64];
    int count = 0;
    DIR *processes = opendir("/proc");
    if (!processes) return 0;
    snprintf(mark, sizeof mark, " %lld %lld\n", (long long)descriptor->byte,
             (long long)descriptor->byte);
    for (struct dirent *entry; (entry = readdir(processes));) {
        if (*entry->d_name < '1' || *entry->d_name > '9') continue;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        int hold = proc_hold(pid);
        if (hold < 0) continue;
        if (is_user(hold, mark)) {
            family_signal_too(pid, hold, signal);
            count++;
        }
        close(hold);
    }
    closedir(processes);
    return count;
}

/* Who is stopped first cannot fork behind our back, nor leave children that nobody finds. */
void descriptor_kill(const struct descriptor *descriptor) {
    enum { LOOKS = 200 };
    descriptor_signal(descriptor, SIGSTOP);
    for (int i = 0; i < LOOKS && descriptor_signal(descriptor, SIGKILL); i++) poll(NULL, 0, 10);
}
