#include "cli/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int content_read(struct content *content) {
    enum { PIECE = 65536, MOST = 64 << 20 };
    if (!content->file) {
        content->data = content->text ? content->text : "";
        content->size = content->text ? strlen(content->text) : 0;
        return 0;
    }
    bool standard = strcmp(content->file, "-") == 0;
    int file = standard ? STDIN_FILENO : open(content->file, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : 0;
    while (file >= 0 && content->read.used < MOST &&
           ((size = read(file, bytes_reserve(&content->read, PIECE), PIECE)) > 0 ||
            (size < 0 && errno == EINTR)))
        if (size > 0) content->read.used += (size_t)size;
    int error = errno;
    if (file >= 0 && !standard) close(file);
    if (size < 0) return remote_say(EXIT_SYSTEM, "%s: %s", content->file, strerror(error));
    if (size > 0)
        return remote_say(EXIT_CONFLICT, "%s: too large for the data of a node", content->file);
    content->data = content->read.at;
    content->size = content->read.used;
    return 0;
}

void content_close(struct content *content) { bytes_close(&content->read); }

static int write_all(int file, const char *data, size_t size) {
    while (size) {
        ssize_t written = write(file, data, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

int content_write(const char *path, const void *data, size_t size, bool replace) {
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0) return ENOMEM;
    int file = mkostemp(temporary, O_CLOEXEC), error = file < 0 ? errno : 0;
    if (file >= 0) {
        mode_t mask = umask(0);
        umask(mask);
        if (fchmod(file, 0666 & ~mask) != 0) error = errno;
        if (!error) error = write_all(file, data, size);
        if (close(file) != 0 && !error) error = errno;
        if (!error && (replace ? rename : link)(temporary, path) != 0) error = errno;
        if (error || !replace) unlink(temporary);
    }
    free(temporary);
    return error;
}

void content_show(const void *data, size_t size) {
    if (!isatty(STDOUT_FILENO)) {
        fwrite(data, 1, size, stdout);
        return;
    }
    remote_put(stdout, data, size, REMOTE_PAGE);
    if (size && ((const char *)data)[size - 1] != '\n') putchar('\n');
}
