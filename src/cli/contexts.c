#include "cli/contexts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"

static char *file_path(void) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int size = -1;
    if (config && *config == '/')
        size = asprintf(&path, "%s/conclave/contexts", config);
    else if (home && *home == '/')
        size = asprintf(&path, "%s/.config/conclave/contexts", home);
    return size < 0 ? NULL : path;
}

struct context *contexts_find(struct contexts *contexts, const char *name) {
    for (size_t i = 0; i < contexts->count; i++)
        if (strcmp(contexts->at[i].name, name) == 0) return &contexts->at[i];
    return NULL;
}

struct context *contexts_add(struct contexts *contexts, const char *name) {
    contexts->at = grown(contexts->at, &contexts->room, contexts->count + 1, sizeof *contexts->at);
    struct context *context = &contexts->at[contexts->count++];
    *context = (struct context){.name = strdup(name)};
    return context;
}

static void free_context(struct context *context) {
    free(context->name);
    for (int i = 0; i < REMOTE_SETTINGS; i++) free(context->settings[i]);
}

void contexts_remove(struct contexts *contexts, struct context *context) {
    free_context(context);
    contexts->count--;
    size_t after = (size_t)(contexts->at + contexts->count - context);
    memmove(context, context + 1, after * sizeof *context);
}

void contexts_close(struct contexts *contexts) {
    for (size_t i = 0; i < contexts->count; i++) free_context(&contexts->at[i]);
    free(contexts->at);
    free(contexts->current);
    free(contexts->path);
    *contexts = (struct contexts){0};
}

/* ---- Reading ---- */

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text)) text++;
    size_t size = strlen(text);
    while (size && isspace((unsigned char)text[size - 1])) text[--size] = 0;
    return text;
}

/* One line of the file; false: it means nothing. */
static bool read_line(struct contexts *contexts, char *line) {
    size_t size = strlen(line);
    if (*line == 0 || *line == '#') return true;
    if (*line == '[') {
        if (size < 3 || line[size - 1] != ']') return false;
        line[size - 1] = 0;
        if (contexts_find(contexts, line + 1)) return false;
        contexts_add(contexts, line + 1);
        return true;
    }
    char *value = strchr(line, '=');
    if (!value) return false;
    *value++ = 0;
    const char *name = trimmed(line);
    char **to = NULL;
    if (!contexts->count && strcmp(name, "current") == 0) to = &contexts->current;
    for (int i = 0; i < REMOTE_SETTINGS && contexts->count; i++)
        if (strcmp(name, remote_setting_names[i]) == 0)
            to = &contexts->at[contexts->count - 1].settings[i];
    if (!to || *to) return false;
    *to = strdup(trimmed(value));
    return true;
}

int contexts_read(struct contexts *contexts) {
    *contexts = (struct contexts){.path = file_path()};
    FILE *file = contexts->path ? fopen(contexts->path, "re") : NULL;
    if (!file && contexts->path && errno != ENOENT)
        return remote_say(EXIT_SYSTEM, "%s: %s", contexts->path, strerror(errno));
    if (!file) return 0;
    char *line = NULL;
    size_t room = 0;
    int status = 0;
    for (int number = 1; !status && getline(&line, &room, file) >= 0; number++)
        if (!read_line(contexts, trimmed(line)))
            status = remote_say(EXIT_USAGE,
                                "%s, line %d: this is neither [NAME], a new NAME = VALUE nor a "
                                "comment; mend or remove it",
                                contexts->path, number);
    free(line);
    fclose(file);
    return status;
}

/* ---- Writing ---- */

static bool make_directories(char *path) {
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = '/';
        if (!made) return false;
    }
    return true;
}

static void print(const struct contexts *contexts, FILE *file) {
    if (contexts->current) fprintf(file, "current = %s\n", contexts->current);
    for (size_t i = 0; i < contexts->count; i++) {
        const struct context *context = &contexts->at[i];
        fprintf(file, "\n[%s]\n", context->name);
        for (int j = 0; j < REMOTE_SETTINGS; j++)
            if (context->settings[j])
                fprintf(file, "%s = %s\n", remote_setting_names[j], context->settings[j]);
    }
}

int contexts_write(const struct contexts *contexts) {
    char *temporary = NULL;
    if (!contexts->path)
        return remote_say(EXIT_SYSTEM, "neither XDG_CONFIG_HOME nor HOME says where to keep it");
    if (!make_directories(contexts->path) || asprintf(&temporary, "%s.XXXXXX", contexts->path) < 0)
        return remote_say(EXIT_SYSTEM, "%s: %s", contexts->path, strerror(errno));
    int descriptor = mkostemp(temporary, O_CLOEXEC); /* mode 600 */
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    bool written = false;
    if (file) {
        print(contexts, file);
        written = fflush(file) == 0 && fsync(descriptor) == 0;
        written = fclose(file) == 0 && written && rename(temporary, contexts->path) == 0;
    }
    int error = errno;
    if (!written && descriptor >= 0) unlink(temporary);
    free(temporary);
    return written ? 0 : remote_say(EXIT_SYSTEM, "%s: %s", contexts->path, strerror(error));
}
