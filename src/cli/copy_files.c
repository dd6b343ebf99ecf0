/* The side of a copy that is files. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/content.h"
#include "cli/copy.h"

static const char DATA_NAME[] = "/%data";

static int complain(const char *path, int error) {
    if (error == EEXIST)
        return remote_say(EXIT_CONFLICT, "%s: it is there already; --force overwrites it", path);
    return remote_say(EXIT_SYSTEM, "%s: %s", path, strerror(error));
}

/* ---- Names ---- */

static void encode(struct bytes *to, const char *relative) {
    for (; *relative; relative++) {
        unsigned char c = (unsigned char)*relative;
        char code[4];
        bool plain = c != '%' && !iscntrl(c);
        snprintf(code, sizeof code, "%%%02X", c);
        bytes_add(to, plain ? relative : code, plain ? 1 : 3);
    }
}

/* In place; false: it is no name of a node. */
static bool decode(char *name) {
    char *to = name;
    for (const char *from = name; *from; to++) {
        unsigned code;
        if (*from != '%')
            *to = *from++;
        else if (isxdigit((unsigned char)from[1]) && isxdigit((unsigned char)from[2]) &&
                 sscanf(from + 1, "%2x", &code) == 1 && code)
            *to = (char)code, from += 3;
        else
            return false;
    }
    *to = 0;
    return true;
}

static char *file_path(struct copy *copy, const struct copy_place *place, size_t item,
                       bool of_data) {
    struct bytes *path = &copy->file;
    path->used = 0;
    bytes_add(path, place->path, strlen(place->path));
    encode(path, copy->items[item].relative);
    if (of_data) bytes_add(path, DATA_NAME, sizeof DATA_NAME - 1);
    *bytes_extend(path, 1) = 0;
    return (char *)path->at;
}

/* ---- Reading ---- */

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_entry(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
           strcmp(entry->d_name, DATA_NAME + 1) != 0;
}

/* A link to a file is one; links to directories could go round in circles. */
static int kind_of(const char *path, bool *is_directory) {
    struct stat status;
    if (lstat(path, &status) != 0) return complain(path, errno);
    *is_directory = S_ISDIR(status.st_mode);
    if (S_ISLNK(status.st_mode) && stat(path, &status) != 0) return complain(path, errno);
    if (*is_directory || S_ISREG(status.st_mode)) return 0;
    return remote_say(EXIT_CONFLICT, "%s: it is neither a file nor a directory", path);
}

static int list_directory(struct copy *copy, size_t parent) {
    struct dirent **entries = NULL;
    char *directory = strdup(file_path(copy, &copy->from, parent, false)), *relative = NULL;
    int count = scandir(directory, &entries, is_entry, by_name), status = 0;
    if (count < 0) status = complain(directory, errno);
    for (int i = 0; i < count; i++) {
        if (!status && !decode(entries[i]->d_name))
            status = remote_say(EXIT_CONFLICT,
                                "%s/%s: a %% in the name of a file stands for a "
                                "character, such as %%25",
                                directory, entries[i]->d_name);
        if (!status &&
            asprintf(&relative, "%s/%s", copy->items[parent].relative, entries[i]->d_name) >= 0) {
            copy_add(copy, relative, false);
            const char *problem = remote_path_problem(relative);
            if (problem) status = remote_say(EXIT_USAGE, "'%s': %s", relative, problem);
            free(relative);
        }
        free(entries[i]);
    }
    free(entries);
    free(directory);
    return status;
}

int copy_list_files(struct copy *copy) {
    int status = 0;
    copy_add(copy, "", false);
    for (size_t i = 0; i < copy->count && !status; i++) {
        const char *path = file_path(copy, &copy->from, i, false);
        bool is_directory = false;
        status = kind_of(path, &is_directory);
        copy->items[i].has_children = is_directory;
        if (!status && is_directory && !copy->recursive)
            return remote_say(EXIT_USAGE, "%s: it is a directory; -r copies these", path);
        if (!status && is_directory) status = list_directory(copy, i);
    }
    return status;
}

int copy_load_file(struct copy *copy, size_t item, struct copy_load *load) {
    bool is_directory = copy->items[item].has_children;
    struct content content = {.file = file_path(copy, &copy->from, item, is_directory)};
    if (is_directory && access(content.file, F_OK) != 0) return 0;
    int status = content_read(&content);
    if (!status) bytes_add(&load->data, content.data, content.size);
    content_close(&content);
    return status;
}

/* ---- Writing ---- */

int copy_store_file(struct copy *copy, size_t item, const struct copy_load *load) {
    bool is_directory = copy->items[item].has_children;
    const char *path = file_path(copy, &copy->to, item, false);
    if (is_directory && mkdir(path, 0777) != 0 && (errno != EEXIST || !copy->force))
        return complain(path, errno);
    if (is_directory && !load->data.used) return 0;
    path = file_path(copy, &copy->to, item, is_directory);
    int error = content_write(path, load->data.at, load->data.used, copy->force);
    return error ? complain(path, error) : 0;
}
