/* The limit of memory: what is set, or what the system allows the process's control group. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "service/server/internal.h"

/* Of one control group; UINT64_MAX: none. */
static uint64_t limit_in(const char *root, const char *group, const char *file) {
    char path[PATH_MAX], text[32] = "";
    snprintf(path, sizeof path, "%s%s/%s", root, group, file);
    FILE *stream = fopen(path, "re");
    if (!stream) return UINT64_MAX;
    bool read = fgets(text, sizeof text, stream);
    fclose(stream);
    return read && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* The least of a group and all above it. */
static uint64_t least_of(const char *root, char *group, const char *file) {
    uint64_t least = UINT64_MAX;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = 0;
        uint64_t limit = limit_in(root, group, file);
        if (limit < least) least = limit;
    }
    return least;
}

static bool has_memory(char *controllers) {
    char *rest = NULL;
    for (char *name = strtok_r(controllers, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, "memory") == 0) return true;
    return false;
}

/* A line is NUMBER:CONTROLLERS:GROUP; where there is one hierarchy for all controllers, as the
 * second version of the file system has it, they are not named. */
static uint64_t limit_of_line(char *line, const char *root) {
    char first_root[PATH_MAX], *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return UINT64_MAX;
    *controllers++ = *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (!*controllers) return least_of(root, group, "memory.max");
    if (!has_memory(controllers)) return UINT64_MAX;
    snprintf(first_root, sizeof first_root, "%s/memory", root);
    return least_of(first_root, group, "memory.limit_in_bytes");
}

static uint64_t limit_of_groups(const char *groups, const char *root) {
    char line[PATH_MAX], none[1] = "";
    uint64_t least = least_of(root, none, "memory/memory.limit_in_bytes");
    FILE *stream = fopen(groups, "re");
    if (!stream) return least;
    while (fgets(line, sizeof line, stream)) {
        uint64_t limit = limit_of_line(line, root);
        if (limit < least) least = limit;
    }
    fclose(stream);
    return least;
}

uint64_t memory_limit(int32_t set_mib, const char *groups, const char *root) {
    enum { ABSURD_BITS = 50 }; /* what a group without a limit says */
    uint64_t limit = limit_of_groups(groups, root), set = (uint64_t)set_mib << 20;
    if (set && set < limit) limit = set;
    return limit >> ABSURD_BITS ? 0 : limit;
}
