#include "cli/acl_text.h"

#include <stdlib.h>

#include "base/grow.h"

static const char letters[] = "rwcda"; /* by bit */

const char *acl_permissions(int32_t permissions, char text[8]) {
    char *to = text;
    for (const char *at = "cdrwa"; *at; at++)
        if (permissions & 1 << (strchr(letters, *at) - letters)) *to++ = *at;
    *to = 0;
    return text;
}

static int parse_permissions(const char *text) {
    int result = 0;
    for (; *text; text++) {
        const char *at = strchr(letters, *text);
        if (!at) return 0;
        result |= 1 << (at - letters);
    }
    return result;
}

int acl_parse(struct acl_text *acl, const char *text) {
    *acl = (struct acl_text){.copy = strdup(text)};
    cv_assert(acl->copy);
    char *rest = acl->copy;
    for (char *entry = strsep(&rest, ","); entry; entry = strsep(&rest, ",")) {
        char *id = strchr(entry, ':'), *last = strrchr(entry, ':');
        int permissions = last ? parse_permissions(last + 1) : 0;
        if (!id || id == last || !permissions)
            return remote_usage("acl: '%s' is not SCHEME:ID:PERMISSIONS such as world:anyone:cdrwa",
                                entry);
        *id++ = 0;
        *last = 0;
        acl->entries = grown(acl->entries, &acl->room, acl->count + 1, sizeof *acl->entries);
        acl->entries[acl->count++] =
            (struct cv_acl){.permissions = permissions, .scheme = entry, .id = id};
    }
    return 0;
}

void acl_copy(struct acl_text *acl, const struct cv_acl *entries, size_t count) {
    size_t size = 1;
    for (size_t i = 0; i < count; i++)
        size += strlen(entries[i].scheme) + strlen(entries[i].id) + 2;
    *acl = (struct acl_text){.copy = malloc(size)};
    char *to = acl->copy;
    cv_assert(to);
    for (size_t i = 0; i < count; i++) {
        acl->entries = grown(acl->entries, &acl->room, acl->count + 1, sizeof *acl->entries);
        struct cv_acl *entry = &acl->entries[acl->count++];
        entry->permissions = entries[i].permissions;
        entry->scheme = to;
        to = stpcpy(to, entries[i].scheme) + 1;
        entry->id = to;
        to = stpcpy(to, entries[i].id) + 1;
    }
}

void acl_close(struct acl_text *acl) {
    free(acl->copy);
    free(acl->entries);
    *acl = (struct acl_text){0};
}
