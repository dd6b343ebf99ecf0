#include "store/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/file.h>
#include <unistd.h>

#include "raft/log.h"
#include "raft/vote.h"
#include "store/data.h"

struct state {
    struct recover *recover;
    int directory, log_directory;
    struct data data;
    struct snapshots snapshots;
    uint64_t good; /* index of the newest good snapshot; 0: there is none */
    uint64_t bad[SNAPSHOTS_MAX];
    size_t bads;

    struct log log;
    struct log_finding *segment;
    size_t segments, room;
    size_t begin;          /* the segment with what comes behind the snapshot */
    size_t end;            /* the first that does not lead on; `segments`: all do */
    bool within;           /* that one is good up to some place */
    uint64_t next;         /* the entry behind the last that can be saved */
    uint64_t last;         /* the last of which anything is left */
    size_t damaged_before; /* segments before `begin` that are damaged */
};

__attribute__((format(printf, 2, 3))) static enum recover_outcome fail(struct recover *recover,
                                                                       const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(recover->message, sizeof recover->message, format, arguments);
    va_end(arguments);
    return RECOVER_FAILED;
}

/* ---- Looking ---- */

static int lock(struct recover *recover, const char *path) {
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        fail(recover, "%s: %s", path, strerror(errno));
    } else if (flock(directory, LOCK_EX | LOCK_NB) != 0) {
        fail(recover, "%s: a server is using it; stop it first", path);
        close(directory);
        return -1;
    }
    return directory;
}

static enum recover_outcome look_at_snapshots(struct state *s) {
    struct snapshots *found = &s->snapshots;
    FILE *out = s->recover->out;
    if (snapshots_list(found, s->directory, s->recover->directory) != 0)
        return fail(s->recover, "%s", found->message);
    for (size_t i = 0; i < found->count; i++) {
        uint64_t index = found->index[i], term;
        if (data_load(&s->data.tree, found, index, &term) == 0) {
            fprintf(out, "snapshot.%016" PRIx64 "  good: up to entry %" PRIu64 ", %u nodes\n",
                    index, index, s->data.tree.nodes);
            if (!s->good) s->good = index;
        } else {
            fprintf(out, "snapshot.%016" PRIx64 "  damaged: %s\n", index, found->message);
            s->bad[s->bads++] = index;
        }
    }
    return RECOVER_GOOD;
}

static void look_at_segment(void *context, const struct log_finding *found) {
    struct state *s = context;
    FILE *out = s->recover->out;
    s->segment = grown(s->segment, &s->room, s->segments + 1, sizeof *s->segment);
    s->segment[s->segments++] = *found;
    fprintf(out, "%s  ", found->name);
    if (found->state == LOG_UNREADABLE) {
        fprintf(out, "damaged: %s\n", s->log.message);
        return;
    }
    if (found->next == found->first)
        fprintf(out, "no entry");
    else
        fprintf(out, "entries %" PRIu64 " to %" PRIu64, found->first, found->next - 1);
    if (found->state == LOG_WHOLE) fputs(": good\n", out);
    if (found->state == LOG_TORN)
        fprintf(out, ": good; what follows at offset %" PRIu64 " was never completed\n", found->at);
    if (found->state == LOG_DAMAGED)
        fprintf(out, "; damaged at offset %" PRIu64 " (entry %" PRIu64 ")\n", found->at,
                found->next);
}

/* ---- Judging ---- */

static bool is_damaged(const struct log_finding *found) {
    return found->state == LOG_DAMAGED || found->state == LOG_UNREADABLE;
}

/* How far the log leads on from the snapshot. */
static void follow(struct state *s) {
    for (size_t i = 0; i < s->segments; i++)
        if (s->segment[i].begins && s->segment[i].begins <= s->good + 1) s->begin = i;
    for (size_t i = 0; i < s->begin; i++) s->damaged_before += is_damaged(&s->segment[i]);
    s->next = s->good + 1;
    for (s->end = s->begin; s->end < s->segments && !s->within; s->end++) {
        const struct log_finding *found = &s->segment[s->end];
        if (s->end == s->begin ? found->begins > s->good + 1 : !found->leads_on) break;
        if (found->state == LOG_UNREADABLE) break;
        s->next = found->next > s->good + 1 ? found->next : s->good + 1;
        s->within = found->state == LOG_DAMAGED;
    }
    s->end -= s->within;
    for (size_t i = s->end; i < s->segments; i++)
        if (s->segment[i].last > s->last) s->last = s->segment[i].last;
}

static void tell_verdict(const struct state *s) {
    FILE *out = s->recover->out;
    if (s->bads) fprintf(out, "%zu snapshots are damaged\n", s->bads);
    if (s->damaged_before)
        fprintf(out, "%zu segments are damaged that are older than the newest good snapshot\n",
                s->damaged_before);
    if (s->end < s->segments)
        fprintf(out, "the log can be used up to entry %" PRIu64 "\n", s->next - 1);
    if (s->last >= s->next)
        fprintf(out, "lost: entries %" PRIu64 " to %" PRIu64 ", at least\n", s->next, s->last);
    else
        fputs("lost: nothing\n", out);
    fputs(
        "if it is a member of an ensemble: rather than to save what is left, have the others "
        "remove it\n('conclave ensemble remove'), and let it join with an empty directory under a "
        "new number\n",
        out);
}

/* ---- Cutting ---- */

static enum recover_outcome set_aside(struct state *s, size_t i) {
    if (log_set_aside(&s->log, s->segment[i].sequence) != 0)
        return fail(s->recover, "%s", s->log.message);
    fprintf(s->recover->out, "log.%016" PRIx64 ": renamed to damaged.*\n", s->segment[i].sequence);
    return RECOVER_GOOD;
}

static enum recover_outcome cut_log(struct state *s) {
    size_t gone = s->end;
    for (size_t i = 0; i < s->begin; i++)
        if (is_damaged(&s->segment[i]) && set_aside(s, i) != RECOVER_GOOD) return RECOVER_FAILED;
    if (s->within) {
        const struct log_finding *found = &s->segment[gone++];
        if (log_cut(&s->log, found->sequence, found->at) != 0)
            return fail(s->recover, "%s", s->log.message);
        fprintf(s->recover->out, "log.%016" PRIx64 ": cut at offset %" PRIu64 "\n", found->sequence,
                found->at);
    }
    for (size_t i = s->segments; i-- > gone;)
        if (set_aside(s, i) != RECOVER_GOOD) return RECOVER_FAILED;
    return RECOVER_GOOD;
}

static enum recover_outcome cut(struct state *s) {
    for (size_t i = 0; i < s->bads; i++) {
        if (snapshot_set_aside(&s->snapshots, s->bad[i]) != 0)
            return fail(s->recover, "%s", s->snapshots.message);
        fprintf(s->recover->out, "snapshot.%016" PRIx64 ": renamed to damaged.*\n", s->bad[i]);
    }
    if (cut_log(s) != RECOVER_GOOD) return RECOVER_FAILED;
    if (data_read(&s->data, s->recover->directory, s->recover->log_directory) != 0)
        return fail(s->recover, "%s", s->data.message);
    fprintf(s->recover->out,
            "what is left: entries up to %" PRIu64 ", zxid 0x%" PRIx64 ", %u nodes\n",
            s->data.index, (uint64_t)s->data.tree.zxid, s->data.tree.nodes);
    return RECOVER_GOOD;
}

/* ---- All of it ---- */

static enum recover_outcome examine(struct state *s) {
    struct recover *recover = s->recover;
    if (look_at_snapshots(s) != RECOVER_GOOD) return RECOVER_FAILED;
    if (log_examine(&s->log, s->log_directory, recover->log_directory, look_at_segment, s) != 0)
        return fail(recover, "%s", s->log.message);
    if (!s->segments && !s->snapshots.count)
        return fail(recover, "%s: there is no data in it", recover->directory);
    follow(s);
    if (!s->bads && !s->damaged_before && s->end == s->segments) {
        fputs("all is good\n", recover->out);
        return RECOVER_GOOD;
    }
    tell_verdict(s);
    if (!recover->cut) return RECOVER_DAMAGED;
    if (s->next == 1)
        return fail(recover, "nothing would be left: restore a backup into a new directory");
    return cut(s);
}

static enum recover_outcome examine_locked(struct state *s) {
    if (data_open(&s->data) != 0) return fail(s->recover, "%s", s->data.message);
    enum recover_outcome outcome = examine(s);
    data_close(&s->data);
    log_close(&s->log);
    free(s->segment);
    return outcome;
}

enum recover_outcome recover_run(struct recover *recover) {
    struct state s = {.recover = recover, .log_directory = -1, .log = {.file = -1}};
    enum recover_outcome outcome = RECOVER_FAILED;
    bool same = !recover->log_directory;
    if (same) recover->log_directory = recover->directory;
    s.directory = lock(recover, recover->directory);
    if (s.directory >= 0)
        s.log_directory = same ? s.directory : lock(recover, recover->log_directory);
    if (s.log_directory >= 0) outcome = examine_locked(&s);
    if (s.log_directory >= 0 && !same) close(s.log_directory);
    if (s.directory >= 0) close(s.directory);
    return outcome;
}
