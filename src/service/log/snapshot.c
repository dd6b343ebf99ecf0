#include "service/log/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/assert.h"
#include "base/crc32c.h"

static const char MAGIC[16] = "conclave snap 1";

struct header {
    char magic[16];
    uint64_t index, term;
    uint32_t origin, crc; /* crc: of all before it */
};
enum { PIECE = 1 << 17, LEVEL = 1 };

char *snapshot_name(char name[SNAPSHOT_NAME_SIZE], uint64_t index) {
    snprintf(name, SNAPSHOT_NAME_SIZE, "snapshot.%016" PRIx64, index);
    return name;
}

static void complain(struct snapshots *s, const char *name, const char *what, int error) {
    const char *slash = strcmp(s->path, "/") == 0 ? "" : "/";
    s->error = error;
    snprintf(s->message, sizeof s->message, "%s%s%s: %s%s%s", s->path, slash, name, what,
             error ? ": " : "", error ? file_error(error) : "");
}

/* ---- Listing ---- */

static void remember(struct snapshots *s, uint64_t index) {
    size_t at = s->count < SNAPSHOTS_MAX ? s->count++ : SNAPSHOTS_MAX;
    for (; at > 0 && s->index[at - 1] < index; at--)
        if (at < SNAPSHOTS_MAX) s->index[at] = s->index[at - 1];
    if (at < SNAPSHOTS_MAX) s->index[at] = index;
}

int snapshots_list(struct snapshots *s, int directory, const char *path) {
    *s = (struct snapshots){.directory = directory, .path = path};
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    if (!listing) return complain(s, ".", "cannot be listed", errno), -1;
    for (struct dirent *found; (found = readdir(listing));) {
        char again[SNAPSHOT_NAME_SIZE];
        uint64_t index;
        if (sscanf(found->d_name, "snapshot.%16" SCNx64, &index) == 1 && index &&
            index <= INT64_MAX && strcmp(found->d_name, snapshot_name(again, index)) == 0)
            remember(s, index);
    }
    closedir(listing);
    return 0;
}

void snapshots_trim(struct snapshots *s, size_t keep) {
    char name[SNAPSHOT_NAME_SIZE];
    while (s->count > keep) unlinkat(s->directory, snapshot_name(name, s->index[--s->count]), 0);
}

int snapshot_set_aside(struct snapshots *s, uint64_t index) {
    char name[SNAPSHOT_NAME_SIZE];
    if (file_set_aside(s->directory, snapshot_name(name, index)) == 0 && fsync(s->directory) == 0)
        return 0;
    complain(s, name, "cannot be renamed to damaged.*", errno);
    return -1;
}

/* ---- Writing ---- */

struct snapshot_writer {
    struct snapshots *snapshots;
    struct header header;
    char name[NAME_MAX + 1], unfinished[NAME_MAX + 1]; /* the second until it is complete */
    int file;
    ZSTD_CCtx *zstd;
    int failed; /* an errno */
    unsigned char out[PIECE];
};

static void put(struct snapshot_writer *w, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    while (size && !w->failed) {
        ssize_t done = write(w->file, at, size);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            w->failed = done ? errno : EIO;
            return;
        }
        at += done;
        size -= (size_t)done;
    }
}

static struct snapshot_writer *begin(struct snapshots *s, const char *name, const char *unfinished,
                                     uint64_t index, uint64_t term) {
    struct snapshot_writer *w = calloc(1, sizeof *w);
    cv_assert(w);
    w->snapshots = s;
    snprintf(w->name, sizeof w->name, "%s", name);
    snprintf(w->unfinished, sizeof w->unfinished, "%s", unfinished);
    w->zstd = ZSTD_createCCtx();
    cv_assert(w->zstd);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
    w->file = file_open(s->directory, unfinished, O_WRONLY | O_CREAT | O_TRUNC);
    if (w->file < 0) {
        complain(s, unfinished, "cannot be created", errno);
        ZSTD_freeCCtx(w->zstd);
        free(w);
        return NULL;
    }
    w->header = (struct header){.index = index, .term = term, .origin = s->origin};
    memcpy(w->header.magic, MAGIC, sizeof MAGIC);
    w->header.crc = crc32c(0, &w->header, offsetof(struct header, crc));
    put(w, &w->header, sizeof w->header);
    return w;
}

struct snapshot_writer *snapshot_begin(struct snapshots *s, uint64_t index, uint64_t term) {
    char name[SNAPSHOT_NAME_SIZE];
    return begin(s, snapshot_name(name, index), "new.snapshot", index, term);
}

struct snapshot_writer *snapshot_begin_as(struct snapshots *s, const char *name, uint64_t index,
                                          uint64_t term) {
    char unfinished[NAME_MAX + 1];
    snprintf(unfinished, sizeof unfinished, "%.*s.new", NAME_MAX - 4, name);
    return begin(s, name, unfinished, index, term);
}

/* Compresses what is given, or ends the frame. */
static void compress(struct snapshot_writer *w, const void *bytes, size_t size,
                     ZSTD_EndDirective how) {
    ZSTD_inBuffer in = {bytes, size, 0};
    for (size_t left = 1; !w->failed && (in.pos < in.size || (how == ZSTD_e_end && left));) {
        ZSTD_outBuffer out = {w->out, sizeof w->out, 0};
        left = ZSTD_compressStream2(w->zstd, &out, &in, how);
        cv_assert(!ZSTD_isError(left));
        put(w, w->out, out.pos);
    }
}

int snapshot_write(void *writer, const void *bytes, size_t size) {
    struct snapshot_writer *w = writer;
    compress(w, bytes, size, ZSTD_e_continue);
    return w->failed ? -1 : 0;
}

int snapshot_end(struct snapshot_writer *w, int keep) {
    struct snapshots *s = w->snapshots;
    if (keep) compress(w, NULL, 0, ZSTD_e_end);
    if (keep && !w->failed && fsync(w->file) != 0) w->failed = errno;
    close(w->file);
    if (keep && !w->failed && renameat(s->directory, w->unfinished, s->directory, w->name) != 0)
        w->failed = errno;
    if (keep && !w->failed && fsync(s->directory) != 0) {
        w->failed = errno;
        unlinkat(s->directory, w->name, 0); /* nothing may rely on a name that is not durable */
    }
    if (w->failed) complain(s, w->unfinished, "cannot be written", w->failed);
    if (!keep || w->failed) unlinkat(s->directory, w->unfinished, 0);
    int status = w->failed ? -1 : 0;
    ZSTD_freeCCtx(w->zstd);
    free(w);
    return status;
}

/* ---- Reading ---- */

struct snapshot_reader {
    int file;
    ZSTD_DCtx *zstd;
    ZSTD_inBuffer in;
    int failed, ended; /* ended: the frame is whole, and its checksum right */
    size_t ready, taken;
    unsigned char raw[PIECE], plain[PIECE];
};

static ssize_t get(struct snapshot_reader *r, void *bytes, size_t size) {
    ssize_t done;
    do done = read(r->file, bytes, size);
    while (done < 0 && errno == EINTR);
    return done;
}

struct snapshot_reader *snapshot_open_as(struct snapshots *s, const char *name, uint64_t *index,
                                         uint64_t *term) {
    struct header header;
    struct snapshot_reader *r = calloc(1, sizeof *r);
    cv_assert(r);
    r->zstd = ZSTD_createDCtx();
    cv_assert(r->zstd);
    r->file = file_open(s->directory, name, O_RDONLY);
    int error = r->file < 0 ? errno : 0;
    if (!error && get(r, &header, sizeof header) == sizeof header &&
        memcmp(header.magic, MAGIC, sizeof MAGIC) == 0 &&
        header.crc == crc32c(0, &header, offsetof(struct header, crc))) {
        *index = header.index;
        *term = header.term;
        s->origin = header.origin;
        r->in = (ZSTD_inBuffer){r->raw, 0, 0};
        return r;
    }
    complain(s, name, error ? "cannot be read" : "its header is damaged", error);
    snapshot_close(r);
    return NULL;
}

struct snapshot_reader *snapshot_open(struct snapshots *s, uint64_t index, uint64_t *term) {
    char name[SNAPSHOT_NAME_SIZE];
    uint64_t found;
    struct snapshot_reader *r = snapshot_open_as(s, snapshot_name(name, index), &found, term);
    if (!r || found == index) return r;
    complain(s, name, "its header is of another snapshot: the file was renamed", 0);
    snapshot_close(r);
    return NULL;
}

/* Fills `plain`; false at the end of the frame, or of what can be read. */
static int fill(struct snapshot_reader *r) {
    r->ready = r->taken = 0;
    while (!r->ready && !r->failed && !r->ended) {
        if (r->in.pos == r->in.size) {
            ssize_t done = get(r, r->raw, sizeof r->raw);
            if (done <= 0) return r->failed = 1, 0;
            r->in = (ZSTD_inBuffer){r->raw, (size_t)done, 0};
        }
        ZSTD_outBuffer out = {r->plain, sizeof r->plain, 0};
        size_t left = ZSTD_decompressStream(r->zstd, &out, &r->in);
        if (ZSTD_isError(left)) return r->failed = 1, 0;
        r->ended = left == 0;
        r->ready = out.pos;
    }
    return r->ready > 0;
}

int snapshot_read(void *reader, void *bytes, size_t size) {
    struct snapshot_reader *r = reader;
    unsigned char *to = bytes;
    while (size) {
        if (r->taken == r->ready && !fill(r)) return -1;
        size_t part = r->ready - r->taken < size ? r->ready - r->taken : size;
        memcpy(to, r->plain + r->taken, part);
        r->taken += part;
        to += part;
        size -= part;
    }
    return 0;
}

int snapshot_close(struct snapshot_reader *r) {
    if (r->file >= 0 && !r->failed && r->taken == r->ready) fill(r); /* the end of the frame */
    unsigned char more;
    int whole = r->ended && r->ready == 0 && !r->failed && r->in.pos == r->in.size &&
                get(r, &more, 1) == 0; /* bytes after the frame are damage too */
    if (r->file >= 0) close(r->file);
    ZSTD_freeDCtx(r->zstd);
    free(r);
    return whole ? 0 : -1;
}

int snapshot_verify(struct snapshots *s, uint64_t index) {
    char name[SNAPSHOT_NAME_SIZE];
    unsigned char part[4096];
    uint64_t term;
    struct snapshot_reader *r = snapshot_open(s, index, &term);
    if (!r) return -1;
    posix_fadvise(r->file, 0, 0, POSIX_FADV_DONTNEED); /* from the disk, not from memory */
    while (snapshot_read(r, part, sizeof part) == 0) continue;
    if (snapshot_close(r) == 0) return 0;
    complain(s, snapshot_name(name, index), "its checksum is wrong: the file is damaged", 0);
    return -1;
}
