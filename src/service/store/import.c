/* Finds the files of ZooKeeper, and reads the newest whole snapshot and the logs with the
 * transactions after it. */
#include "service/store/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

struct file {
    int64_t zxid; /* in its name: of a snapshot the last, of a log the first */
    char name[IMPORT_NAME_MAX];
};

struct files {
    char path[512];  /* of the directory */
    struct file *at; /* oldest first */
    size_t count, room;
};

struct content {
    struct zk_in in;
    struct bytes unpacked;
    void *map;
};

__attribute__((format(printf, 2, 3))) static int fail(struct import *import, const char *format,
                                                      ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(import->message, sizeof import->message, format, arguments);
    va_end(arguments);
    return -1;
}

__attribute__((format(printf, 2, 3))) static void note(struct import *import, const char *format,
                                                       ...) {
    char text[IMPORT_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    import->note(text);
}

static void advance(void *context, size_t done) {
    struct import *import = context;
    if (import->progress) import->progress(import->bytes_done + done, import->bytes_all);
}

/* ---- Finding them ---- */

static int by_zxid(const void *a, const void *b) {
    const struct file *x = a, *y = b;
    return x->zxid < y->zxid ? -1 : x->zxid > y->zxid;
}

/* "snapshot.1f", "snapshot.1f.gz", "log.20". */
static bool parse_name(const char *name, const char *prefix, struct file *file) {
    size_t size = strlen(prefix);
    char *end;
    if (strncmp(name, prefix, size) != 0 || name[size] != '.' || strlen(name) >= IMPORT_NAME_MAX)
        return false;
    const char *digits = name + size + 1;
    if (strspn(digits, "0123456789abcdefABCDEF") == 0) return false;
    errno = 0;
    file->zxid = strtoll(digits, &end, 16);
    snprintf(file->name, sizeof file->name, "%s", name);
    return errno == 0 && (!*end || strcmp(end, ".gz") == 0 || strcmp(end, ".snappy") == 0);
}

static int list(struct import *import, const char *directory, const char *prefix,
                struct files *files) {
    /* ZooKeeper writes to a directory below; the user may name either. */
    snprintf(files->path, sizeof files->path, "%s/version-2", directory);
    DIR *listing = opendir(files->path);
    if (!listing && errno == ENOENT) {
        snprintf(files->path, sizeof files->path, "%s", directory);
        listing = opendir(files->path);
    }
    if (!listing) return fail(import, "%s: cannot be listed: %s", files->path, strerror(errno));
    for (struct dirent *found; (found = readdir(listing));) {
        struct file file;
        if (!parse_name(found->d_name, prefix, &file)) continue;
        files->at = grown(files->at, &files->room, files->count + 1, sizeof *files->at);
        files->at[files->count++] = file;
    }
    closedir(listing);
    if (files->count) qsort(files->at, files->count, sizeof *files->at, by_zxid);
    return 0;
}

/* ---- Opening them ---- */

static bool ends_with(const char *name, const char *end) {
    size_t size = strlen(name), wanted = strlen(end);
    return size >= wanted && strcmp(name + size - wanted, end) == 0;
}

static const char *unpack(int file, struct content *content) {
    enum { PIECE = 1 << 20 };
    gzFile packed = gzdopen(dup(file), "rb");
    int got;
    if (!packed) return "cannot be unpacked";
    do {
        got = gzread(packed, bytes_reserve(&content->unpacked, PIECE), PIECE);
        content->unpacked.used += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    if (gzclose(packed) != Z_OK || got < 0) return "cannot be unpacked";
    content->in = zk_in_of(content->unpacked.at, content->unpacked.used);
    return NULL;
}

static const char *map(int file, struct content *content) {
    struct stat about;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return "is not a regular file";
    size_t size = (size_t)about.st_size;
    content->map = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    if (content->map == MAP_FAILED) content->map = NULL, size = 0;
    if (!content->map && about.st_size) return "cannot be mapped";
    content->in = zk_in_of(size ? content->map : (void *)"", size);
    return NULL;
}

/* NULL, or what is wrong with the file. */
static const char *open_content(const struct files *files, const char *name,
                                struct content *content) {
    char path[600];
    *content = (struct content){0};
    if (ends_with(name, ".snappy"))
        return "is compressed with snappy, which is not supported; start the old server once "
               "without snapshot.compression.method, so that it writes a plain snapshot";
    snprintf(path, sizeof path, "%s/%s", files->path, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return strerror(errno);
    const char *why = ends_with(name, ".gz") ? unpack(file, content) : map(file, content);
    close(file);
    return why;
}

static void close_content(struct content *content) {
    if (content->map) munmap(content->map, zk_left(&content->in));
    bytes_close(&content->unpacked);
}

static size_t size_of(const struct files *files, size_t i) {
    char path[600];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", files->path, files->at[i].name);
    return stat(path, &about) == 0 ? (size_t)about.st_size : 0;
}

/* ---- Reading them ---- */

static int read_snapshot(struct import *import, struct tree *tree, const struct files *files,
                         const struct file *file) {
    struct content content;
    struct import_fault fault = {0};
    uint64_t seed = tree->seed;
    tree_close(tree);
    int status = tree_open_empty(tree, seed);
    cv_assert(status == 0);
    tree->zxid = file->zxid;
    const char *why = open_content(files, file->name, &content);
    if (why)
        fail(import, "%s/%s: %s", files->path, file->name, why);
    else if (!import_snapshot(tree, content.in, &fault))
        why = fault.why,
        fail(import, "%s/%s: offset %zu: %s", files->path, file->name, fault.offset, fault.why);
    close_content(&content);
    snprintf(import->snapshot, sizeof import->snapshot, "%s", file->name);
    return why ? -1 : 0;
}

static int read_newest(struct import *import, struct tree *tree, const struct files *files) {
    if (!files->count)
        return fail(
            import,
            "%s: there is no snapshot, so there is nothing to import; give the dataDir of the "
            "old server's zoo.cfg as --from-zookeeper",
            files->path);
    for (size_t i = files->count; i-- > 0;) {
        if (read_snapshot(import, tree, files, &files->at[i]) == 0) return 0;
        if (i) note(import, "%s; trying the snapshot before it", import->message);
    }
    size_t size = strlen(import->message);
    snprintf(import->message + size, sizeof import->message - size,
             "; no snapshot is whole: import the files of another server of the ensemble");
    return -1;
}

static int read_log(struct import *import, struct tree *tree, const struct files *files,
                    const struct file *file) {
    struct content content;
    struct import_fault fault = {0};
    struct import_log log = {.progress = advance, .context = import};
    const char *why = open_content(files, file->name, &content);
    if (why) fail(import, "%s/%s: %s", files->path, file->name, why);
    if (!why && !import_log(tree, content.in, &log, &fault)) {
        why = fault.why;
        fail(import,
             "%s/%s: offset %zu: %s; the transactions before it end with zxid 0x%" PRIx64
             "; copy the file from another server of the ensemble, or import a copy of the "
             "directory without it and the later logs, whose transactions are then lost",
             files->path, file->name, fault.offset, why, (uint64_t)tree->zxid);
    }
    if (!why && log.torn_at)
        note(import,
             "%s/%s: the last record, at offset %zu, is incomplete, as a crash leaves it; skipped",
             files->path, file->name, log.torn_at);
    import->transactions += log.transactions;
    import->bytes_done += zk_left(&content.in);
    close_content(&content);
    return why ? -1 : 0;
}

static int read_logs(struct import *import, struct tree *tree, const struct files *files) {
    size_t first = 0;
    while (first + 1 < files->count && files->at[first + 1].zxid - 1 <= tree->zxid) first++;
    for (size_t i = first; i < files->count; i++) import->bytes_all += size_of(files, i);
    for (size_t i = first; i < files->count; i++) {
        if (read_log(import, tree, files, &files->at[i]) != 0) return -1;
        snprintf(i == first ? import->first_log : import->last_log, IMPORT_NAME_MAX, "%s",
                 files->at[i].name);
        import->logs++;
    }
    if (!import->logs && tree->zxid)
        note(import,
             "%s: there are no transaction logs, so only the snapshot is imported; "
             "if the old server keeps them elsewhere (dataLogDir), give --log-dir",
             files->path);
    return 0;
}

/* ---- The whole import ---- */

/* The last transaction cannot be older than any node. */
static int64_t newest_zxid(const struct tree *tree) {
    int64_t newest = tree->zxid;
    uint32_t up;
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up)) {
        const struct node *node = &tree->node[id];
        if (node->mzxid > newest) newest = node->mzxid;
        if (node->pzxid > newest) newest = node->pzxid;
    }
    return newest;
}

static uint32_t count_closed(struct tree *tree) {
    uint32_t closed = import_closed_acl(tree), nodes = tree->acls.at[closed].refs - 1;
    acl_drop(tree, closed);
    return nodes;
}

static int finish(struct import *import, struct tree *tree, const struct files *logs) {
    const char *why = import_finish(tree, &import->sessions_ended);
    int64_t newest = newest_zxid(tree);
    uint32_t closed = count_closed(tree);
    if (why) return fail(import, "%s: %s", import->from, why);
    if (newest > tree->zxid)
        note(import,
             "%s: the snapshot holds changes up to zxid 0x%" PRIx64
             ", but the logs end with 0x%" PRIx64
             ": other changes of that time may be missing; if there are more logs elsewhere, "
             "give --log-dir",
             logs->path, (uint64_t)newest, (uint64_t)tree->zxid);
    if (closed)
        note(import,
             "%s: the ACLs of %u nodes are neither in the snapshot nor in the logs; only the super "
             "user can use these nodes until their ACLs are set",
             logs->path, closed);
    tree->zxid = newest;
    return 0;
}

int import_read(struct import *import, struct tree *tree) {
    struct files snapshots = {0}, logs = {0};
    const char *logs_from = import->logs_from ? import->logs_from : import->from;
    int status = list(import, import->from, "snapshot", &snapshots);
    if (!status) status = list(import, logs_from, "log", &logs);
    if (!status) status = read_newest(import, tree, &snapshots);
    if (!status) status = read_logs(import, tree, &logs);
    if (!status) status = finish(import, tree, &logs);
    if (import->progress) import->progress(import->bytes_all, import->bytes_all);
    free(snapshots.at);
    free(logs.at);
    return status;
}
