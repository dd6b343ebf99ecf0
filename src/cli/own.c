#include "cli/own.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/skeletons.h"

#define HEADER "conclave/algorithm.h"

static const char *text_of(const char *file) {
    for (const struct skeleton *s = skeletons; s->name; s++)
        if (strcmp(s->name, file) == 0) return s->text;
    return NULL;
}

const char *own_skeleton(const char *kind) {
    char file[64];
    snprintf(file, sizeof file, "%.40s.c", kind);
    return text_of(file);
}

/* ---- Where the header is ---- */

static bool has_header(const char *directory) {
    char path[OWN_OPTION_BYTES];
    snprintf(path, sizeof path, "%s/%s", directory, HEADER);
    return access(path, R_OK) == 0;
}

/* Whether neither make nor a shell takes any part of it for something else. */
static bool is_plain(const char *path) {
    for (; *path; path++)
        if (!isalnum((unsigned char)*path) && !strchr("/._+-", *path)) return false;
    return true;
}

/* The header of this very program is in ../include of it, installed or not. */
const char *own_header_option(char option[OWN_OPTION_BYTES]) {
    char path[OWN_PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
    path[length > 0 ? length : 0] = 0;
    for (int up = 0; up < 2; up++)
        if (strrchr(path, '/')) *strrchr(path, '/') = 0;
    strcat(path, "/include");
    *option = 0;
    bool usual = strcmp(path, "/usr/include") == 0 || strcmp(path, "/usr/local/include") == 0;
    if (has_header(path) && (usual || is_plain(path))) {
        if (!usual) snprintf(option, OWN_OPTION_BYTES, " -I%s", path);
    } else if (!has_header("/usr/include") && !has_header("/usr/local/include")) {
        fprintf(stderr, "conclave: " HEADER " is not where the compiler looks: install it (Debian: "
                        "libconclave-dev), or add CPPFLAGS=-IDIR to make\n");
    }
    return option;
}

/* ---- Writing ---- */

static FILE *create(const char *directory, const char *file, char path[OWN_PATH_BYTES]) {
    snprintf(path, OWN_PATH_BYTES, "%s/%s", directory, file);
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = to < 0 ? NULL : fdopen(to, "w");
    if (!out) system_error("%s: %s", path, strerror(errno));
    return out;
}

void own_write(const char *directory, const char *file, const char *text) {
    char path[OWN_PATH_BYTES];
    FILE *out = create(directory, file, path);
    fputs(text, out);
    close_output(out, path);
}

/* In the text `mine` becomes the name; as a part of C, it has no hyphens. */
static void write_named(FILE *out, const char *text, size_t length, const char *name) {
    const char *end = text + length;
    for (const char *at; (at = strstr(text, "mine")) && at < end; text = at + strlen("mine")) {
        fwrite(text, 1, (size_t)(at - text), out);
        for (const char *c = name; *c; c++) fputc(*c == '-' && at[-1] == '(' ? '_' : *c, out);
    }
    fwrite(text, 1, (size_t)(end - text), out);
}

/* The option for the header follows -shared. */
static void write_makefile(const char *directory, const char *name) {
    char path[OWN_PATH_BYTES], option[OWN_OPTION_BYTES];
    FILE *out = create(directory, "Makefile", path);
    const char *text = text_of("Makefile"), *shared = strstr(text, "-shared");
    size_t before = (size_t)(shared - text) + strlen("-shared");
    write_named(out, text, before, name);
    fputs(own_header_option(option), out);
    write_named(out, text + before, strlen(text + before), name);
    close_output(out, path);
}

void own_begin(const char *command, const char *directory, const char *name, const char *source,
               bool is_skeleton) {
    char file[128], path[OWN_PATH_BYTES];
    if (mkdir(directory, 0777) != 0) {
        if (errno == EEXIST)
            usage_error("%s: %s is there already, and nothing was written", command, directory);
        system_error("%s: %s", directory, strerror(errno));
    }
    snprintf(file, sizeof file, "%s.c", name);
    if (is_skeleton) {
        FILE *out = create(directory, file, path);
        write_named(out, source, strlen(source), name);
        close_output(out, path);
    } else {
        own_write(directory, file, source);
    }
    write_makefile(directory, name);
}
