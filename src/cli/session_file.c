#include "cli/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/remote.h"

enum { PASSWORD = 16 };

static int open_private(const char *path, int flags) {
    return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
}

/* The command inherits the lock: what is left of it keeps the next wrapper out.  It does not
 * inherit the session's password, so that is in another file. */
int session_file_open(struct session_file *file, const char *path) {
    char lock[4096];
    struct stat status;
    if (snprintf(lock, sizeof lock, "%s.lock", path) >= (int)sizeof lock)
        return remote_say(EXIT_USAGE, "%s: it is too long", path);
    *file = (struct session_file){.path = path, .file = open_private(path, O_CLOEXEC)};
    if (file->file < 0 || fstat(file->file, &status) != 0)
        return remote_say(EXIT_SYSTEM, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_mode & (S_IRWXG | S_IRWXO) ||
        status.st_uid != geteuid())
        return remote_say(EXIT_USAGE,
                          "%s: it must be a file of yours that nobody else can read "
                          "(chmod 600)",
                          path);
    file->lock = open_private(lock, 0);
    if (file->lock < 0) return remote_say(EXIT_SYSTEM, "%s: %s", lock, strerror(errno));
    if (flock(file->lock, LOCK_EX | LOCK_NB) != 0)
        return remote_say(EXIT_BUSY, "%s: another 'conclave lock', or its command, still uses it",
                          path);
    FILE *in = fdopen(fcntl(file->file, F_DUPFD_CLOEXEC, 0), "r");
    file->content = in ? json_loadf(in, 0, NULL) : NULL;
    if (in) fclose(in);
    return 0;
}

static bool read_password(const char *hex, unsigned char password[PASSWORD]) {
    if (!hex || strlen(hex) != 2 * PASSWORD) return false;
    for (int i = 0; i < PASSWORD; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1) return false;
        password[i] = (unsigned char)byte;
    }
    return true;
}

void session_file_resume(struct session_file *file, struct cv_options *options) {
    options->session_id = 0;
    const char *password = json_string_value(json_object_get(file->content, "password"));
    if (!read_password(password, options->session_password)) return;
    options->session_id = json_integer_value(json_object_get(file->content, "session"));
}

const char *session_file_node(const struct session_file *file, const char *lock_path) {
    size_t index, size = strlen(lock_path);
    json_t *node;
    json_array_foreach(json_object_get(file->content, "nodes"), index, node) {
        const char *path = json_string_value(node);
        if (path && strncmp(path, lock_path, size) == 0 && path[size] == '/' &&
            !strchr(path + size + 1, '/'))
            return path + size + 1;
    }
    return NULL;
}

static void write_file(const struct session_file *file, json_t *content) {
    char *text = json_dumps(content, JSON_INDENT(2));
    if (!text) return;
    size_t size = strlen(text);
    if (pwrite(file->file, text, size, 0) != (ssize_t)size || ftruncate(file->file, size) != 0)
        remote_say(0, "%s: %s; the session cannot be resumed", file->path, strerror(errno));
    free(text);
}

void session_file_note(struct session_file *file, struct cv_client *client,
                       struct cv_lock *const *locks, size_t count) {
    if (!file->path) return;
    json_t *nodes = json_array();
    for (size_t i = 0; i < count; i++) {
        char node[4096];
        if (*cv_lock_node(locks[i], node, sizeof node))
            json_array_append_new(nodes, json_string(node));
    }
    if (file->noted && json_equal(file->noted, nodes)) {
        json_decref(nodes);
        return;
    }
    unsigned char password[PASSWORD];
    char hex[2 * PASSWORD + 1];
    cv_session_password(client, password);
    for (int i = 0; i < PASSWORD; i++) snprintf(hex + 2 * i, 3, "%02x", password[i]);
    json_decref(file->noted);
    file->noted = nodes;
    json_t *content = json_pack("{s:I, s:s, s:O}", "session", (json_int_t)cv_session_id(client),
                                "password", hex, "nodes", nodes);
    write_file(file, content);
    json_decref(content);
}

void session_file_forget(struct session_file *file) {
    if (!file->path) return;
    json_decref(file->content);
    json_decref(file->noted);
    file->content = file->noted = NULL;
    if (ftruncate(file->file, 0) != 0)
        remote_say(0, "%s: %s; it still has an old session", file->path, strerror(errno));
}
