#include "cli/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/grow.h"
#include "cli/proc.h"

struct member {
    pid_t pid;
    struct proc proc;
    int hold; /* -1: none */
    bool found, sure;
};

/* Whose descendants are looked for. */
struct root {
    pid_t pid;
    int hold; /* -1: it is us, or a child whose end we have not asked for, so that the number is its
                 own */
};

struct census {
    struct member *members;
    size_t count, room;
};

static int by_pid(const void *one, const void *other) {
    pid_t a = ((const struct member *)one)->pid, b = ((const struct member *)other)->pid;
    return (a > b) - (a < b);
}

static void take_census(struct census *census) {
    DIR *processes = opendir("/proc");
    if (!processes) return;
    for (struct dirent *entry; (entry = readdir(processes));) {
        struct member member = {.hold = -1};
        char path[300];
        if (*entry->d_name < '1' || *entry->d_name > '9') continue;
        member.pid = (pid_t)strtol(entry->d_name, NULL, 10);
        snprintf(path, sizeof path, "%s/stat", entry->d_name);
        if (!proc_read(dirfd(processes), path, &member.proc)) continue;
        census->members =
            grown(census->members, &census->room, census->count + 1, sizeof *census->members);
        census->members[census->count++] = member;
    }
    closedir(processes);
    if (census->count) qsort(census->members, census->count, sizeof *census->members, by_pid);
}

static struct member *member_of(const struct census *census, pid_t pid) {
    struct member key = {.pid = pid};
    return census->count ? bsearch(&key, census->members, census->count, sizeof key, by_pid) : NULL;
}

static bool is_one(const struct census *census, pid_t pid, pid_t root) {
    const struct member *member = member_of(census, pid);
    return pid == root || (member && member->found);
}

static bool is_stranger(const struct family *family, const struct member *member) {
    for (size_t i = 0; i < family->count; i++)
        if (family->strangers[i].pid == member->pid &&
            family->strangers[i].start == member->proc.start)
            return true;
    return false;
}

static bool find_more(struct census *census, const struct family *family, pid_t root) {
    bool more = false;
    for (size_t i = 0; i < census->count; i++) {
        struct member *member = &census->members[i];
        if (member->found || member->pid == root || !is_one(census, member->proc.parent, root) ||
            is_stranger(family, member))
            continue;
        member->found = more = true;
    }
    return more;
}

static bool has_children(void) {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

static void find_all(struct census *census, const struct family *family, pid_t root) {
    take_census(census);
    while (find_more(census, family, root)) {
    }
}

static void remember_strangers(struct family *family) {
    struct census census = {0};
    size_t room = 0;
    *family = (struct family){0};
    if (!has_children()) return;
    find_all(&census, family, getpid());
    for (size_t i = 0; i < census.count; i++) {
        if (!census.members[i].found) continue;
        family->strangers =
            grown(family->strangers, &room, family->count + 1, sizeof *family->strangers);
        family->strangers[family->count++] =
            (struct stranger){census.members[i].pid, census.members[i].proc.start};
    }
    free(census.members);
}

void family_adopt(struct family *family) {
    remember_strangers(family);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* ---- Signals ----
 *
 * Numbers may have become others' since the look at them: we may have been stopped meanwhile.  So
 * everybody who was found is held first, and asked again then: it is one of the family if its
 * parent surely is, and has not ended by then. */

static bool lives(int hold) {
    struct proc proc;
    return proc_read(hold, "stat", &proc);
}

static bool is_sure(const struct census *census, pid_t pid, const struct root *root) {
    if (pid == root->pid) return root->hold < 0 || lives(root->hold);
    const struct member *member = member_of(census, pid);
    return member && member->sure && lives(member->hold);
}

static bool make_more_sure(struct census *census, const struct root *root) {
    bool more = false;
    for (size_t i = 0; i < census->count; i++) {
        struct member *member = &census->members[i];
        if (member->hold < 0 || member->sure || !proc_read(member->hold, "stat", &member->proc) ||
            !is_sure(census, member->proc.parent, root))
            continue;
        member->sure = more = true;
    }
    return more;
}

static void hold_all(struct census *census, const struct root *root) {
    for (size_t i = 0; i < census->count; i++) {
        struct member *member = &census->members[i];
        if (!member->found || member->proc.dead) continue;
        member->hold = proc_hold(member->pid);
        if (member->hold < 0 && errno == ENOENT) member->found = false;
    }
    while (make_more_sure(census, root)) {
    }
}

/* Who cannot be held, because there are too many, is told by its number. */
static int signal_one(const struct member *member, int signal) {
    if (member->hold < 0) return kill(member->pid, signal);
    return member->sure ? proc_signal(member->hold, member->pid, signal) : 0;
}

static int signal_all(struct family *family, const struct root *root, int signal) {
    struct census census = {0};
    int count = 0;
    find_all(&census, family, root->pid);
    hold_all(&census, root);
    family->unkillable = 0;
    if (root->hold >= 0) proc_signal(root->hold, root->pid, signal); /* before it sees an end */
    for (size_t i = 0; i < census.count; i++) {
        struct member *member = &census.members[i];
        bool told = member->found && !member->proc.dead;
        if (told && signal_one(member, signal) != 0 && errno == EPERM)
            family->unkillable = member->pid;
        if (member->hold >= 0) close(member->hold);
        count += told;
    }
    free(census.members);
    return count;
}

int family_signal(struct family *family, int signal) {
    return signal_all(family, &(struct root){getpid(), -1}, signal);
}

void family_signal_below(pid_t child, int signal) {
    signal_all(&(struct family){0}, &(struct root){child, -1}, signal);
}

void family_signal_too(pid_t root, int hold, int signal) {
    signal_all(&(struct family){0}, &(struct root){root, hold}, signal);
}

static bool reap(void) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0) {
    }
    return pid == 0 || errno != ECHILD;
}

/* Without strangers it ends when there are no children.  With them, when nobody was found several
 * times: one look can miss who changes its parent during it. */
void family_kill(struct family *family) {
    enum { LOOKS = 5 };
    for (int alone = 0; reap() && alone < LOOKS;) {
        int found = family_signal(family, SIGKILL);
        alone = family->count && !found ? alone + 1 : 0;
        poll(NULL, 0, family->unkillable ? 100 : 2);
    }
}
