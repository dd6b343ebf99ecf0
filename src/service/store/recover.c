#include "service/store/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/file.h>
#include <unistd.h>

#include "service/log/log.h"
#include "service/log/vote.h"
#include "service/store/data.h"

struct state {
    struct recover *recover;
    int directory, log_directory;
    struct data data;
    struct snapshots snapshots;
    uint64_t good;   /* index of the newest good snapshot; 0: there is none */
    uint32_t origin; /* its */
    uint64_t damaged[SNAPSHOTS_MAX];
    size_t damaged_count;

    struct log log;
    struct log_finding *segment;
    size_t segments, room;
    size_t begin;          /* the segment with the entry after the snapshot */
    size_t end;            /* the first segment that is damaged or leaves a gap, or `segments` */
    bool end_is_usable;    /* that segment is good up to an offset */
    uint64_t next_index;   /* one after the last entry that can be saved */
    uint64_t last;         /* the last entry of which anything is left */
    size_t damaged_before; /* segments before `begin` that are damaged */
    bool log_is_missing;   /* all of it, and there was one beside the snapshot */
};

__attribute__((format(printf, 2, 3))) static enum recover_outcome fail(struct recover *recover,
                                                                       const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(recover->message, sizeof recover->message, format, arguments);
    va_end(arguments);
    return RECOVER_FAILED;
}

/* ---- Examining ---- */

static int lock(struct recover *recover, const char *path) {
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        fail(recover, "%s: %s", path, strerror(errno));
    } else if (flock(directory, LOCK_EX | LOCK_NB) != 0) {
        fail(recover, "%s: a server is using it; stop the server first", path);
        close(directory);
        return -1;
    }
    return directory;
}

static enum recover_outcome examine_snapshots(struct state *s) {
    struct snapshots *found = &s->snapshots;
    FILE *out = s->recover->out;
    if (snapshots_list(found, s->directory, s->recover->directory) != 0)
        return fail(s->recover, "%s", found->message);
    for (size_t i = 0; i < found->count; i++) {
        uint64_t index = found->index[i], term;
        if (data_load(&s->data.tree, found, index, &term) == 0) {
            fprintf(out, "snapshot.%016" PRIx64 "  good: up to entry %" PRIu64 ", %u nodes\n",
                    index, index, s->data.tree.nodes);
            if (!s->good) s->origin = found->origin;
            if (!s->good) s->good = index;
        } else {
            fprintf(out, "snapshot.%016" PRIx64 "  damaged: %s\n", index, found->message);
            s->damaged[s->damaged_count++] = index;
        }
    }
    return RECOVER_GOOD;
}

static void note_segment(void *context, const struct log_finding *found) {
    struct state *s = context;
    FILE *out = s->recover->out;
    s->segment = grown(s->segment, &s->room, s->segments + 1, sizeof *s->segment);
    s->segment[s->segments] = *found;
    s->segment[s->segments].name = s->segment[s->segments].what = NULL; /* they do not last */
    s->segments++;
    fprintf(out, "%s  ", found->name);
    if (found->state == LOG_UNREADABLE || found->state == LOG_MISSING) {
        fprintf(out, "damaged: %s\n", found->state == LOG_MISSING ? found->what : s->log.message);
        return;
    }
    if (found->next_index == found->first)
        fprintf(out, "no entry");
    else
        fprintf(out, "entries %" PRIu64 " to %" PRIu64, found->first, found->next_index - 1);
    if (found->state == LOG_WHOLE) fputs(": good\n", out);
    if (found->state == LOG_TORN) fprintf(out, ": good; %s\n", found->what);
    if (found->state == LOG_END_DAMAGED)
        fprintf(out, "; damaged: %s; it may have been acknowledged\n", found->what);
    if (found->state == LOG_DAMAGED)
        fprintf(out, "; damaged at offset %" PRIu64 " (entry %" PRIu64 ")\n", found->offset,
                found->next_index);
}

/* ---- Judging ---- */

static bool is_damaged(const struct log_finding *found) {
    return found->state != LOG_WHOLE && found->state != LOG_TORN;
}

/* Finds how far the log continues from the snapshot. */
static void find_usable(struct state *s) {
    for (size_t i = 0; i < s->segments; i++)
        if (s->segment[i].start_index && s->segment[i].start_index <= s->good + 1) s->begin = i;
    for (size_t i = 0; i < s->begin; i++) s->damaged_before += is_damaged(&s->segment[i]);
    s->next_index = s->good + 1;
    for (s->end = s->begin; s->end < s->segments && !s->end_is_usable; s->end++) {
        const struct log_finding *found = &s->segment[s->end];
        if (s->end == s->begin ? found->start_index > s->good + 1 : !found->continues) break;
        if (found->state == LOG_UNREADABLE || found->state == LOG_MISSING) break;
        s->next_index = found->next_index > s->good + 1 ? found->next_index : s->good + 1;
        s->end_is_usable = found->state == LOG_DAMAGED || found->state == LOG_END_DAMAGED;
    }
    s->end -= s->end_is_usable;
    for (size_t i = s->end; i < s->segments; i++)
        if (s->segment[i].last > s->last) s->last = s->segment[i].last;
    if (s->damaged_count && s->damaged[0] > s->last) s->last = s->damaged[0];
    s->log_is_missing = s->origin && !s->segments;
}

static struct zk_text config_text(const struct state *s) {
    node_id id = tree_find(&s->data.tree, zk_text_of("/zookeeper/config"));
    return node_data(&s->data.tree.node[id]);
}

/* As the server judges it (ensemble/snapshots.c). */
static bool belong_together(const struct state *s) {
    return !s->origin || !s->log.origin || s->origin == s->log.origin || config_text(s).size;
}

static bool is_all_good(const struct state *s) {
    return !s->damaged_count && !s->damaged_before && s->end == s->segments && !s->log_is_missing;
}

static bool entries_are_lost(const struct state *s) {
    return s->end < s->segments || s->last >= s->next_index || s->log_is_missing;
}

static void print_verdict(const struct state *s) {
    FILE *out = s->recover->out;
    bool is_unknown = s->end < s->segments || s->log_is_missing;
    if (s->log_is_missing)
        fputs("damaged: there is no log, and there was one beside the snapshots; is its disk "
              "mounted, and is --log as it was?\n",
              out);
    if (s->damaged_count) fprintf(out, "damaged: %zu snapshots\n", s->damaged_count);
    if (s->damaged_before)
        fprintf(out, "damaged: %zu segments that are older than the newest good snapshot\n",
                s->damaged_before);
    if (s->end < s->segments)
        fprintf(out, "the log can be used up to entry %" PRIu64 "\n", s->next_index - 1);
    if (s->last >= s->next_index)
        fprintf(out, "lost: entries %" PRIu64 " to %" PRIu64 ", at least\n", s->next_index,
                s->last);
    else
        fputs(is_unknown ? "lost: nothing that is known of\n" : "lost: nothing\n", out);
    fputs(
        "to do: a standalone server starts again after 'conclave recover --cut'; a member of an "
        "ensemble\nis mended by the others when it starts, and needs that only if nobody has what "
        "it lacks; or\nremove it ('conclave ensemble remove') and let it join again with an empty "
        "directory\n",
        out);
}

static enum recover_outcome set_aside(struct state *s, size_t i) {
    if (log_set_aside(&s->log, s->segment[i].sequence) != 0)
        return fail(s->recover, "%s", s->log.message);
    fprintf(s->recover->out, "log.%016" PRIx64 ": renamed to damaged.*\n", s->segment[i].sequence);
    return RECOVER_GOOD;
}

/* ---- The vote ---- */

/* A member that has lost entries may have acknowledged them, so it does not vote until it has
 * caught up with the leader; but a server alone has nobody to catch up with. */
static enum recover_outcome withhold_vote(struct state *s, bool withheld) {
    struct vote vote;
    if (vote_read(&vote, s->log_directory, s->recover->log_directory) != 0)
        return fail(s->recover, "%s", vote.message);
    if (!vote.directory_id || vote.withheld == withheld) return RECOVER_GOOD;
    vote.withheld = withheld;
    return vote_write(&vote) == 0 ? RECOVER_GOOD : fail(s->recover, "%s", vote.message);
}

static bool has_other_members(const struct state *s) {
    struct zk_text text = config_text(s);
    static const char line[] = "server.";
    size_t lines = 0;
    for (int32_t i = 0; i + (int32_t)sizeof line <= text.size; i++)
        lines += (!i || text.at[i - 1] == '\n') && memcmp(text.at + i, line, sizeof line - 1) == 0;
    return lines > 1;
}

/* ---- Repairing ---- */

static enum recover_outcome cut_log(struct state *s) {
    size_t unusable = s->end;
    for (size_t i = 0; i < s->begin; i++)
        if (is_damaged(&s->segment[i]) && set_aside(s, i) != RECOVER_GOOD) return RECOVER_FAILED;
    if (s->end_is_usable) {
        const struct log_finding *found = &s->segment[unusable++];
        if (log_cut(&s->log, found->sequence, found->offset) != 0)
            return fail(s->recover, "%s", s->log.message);
        fprintf(s->recover->out, "log.%016" PRIx64 ": cut at offset %" PRIu64 "\n", found->sequence,
                found->offset);
    }
    for (size_t i = s->segments; i-- > unusable;)
        if (s->segment[i].state != LOG_MISSING && set_aside(s, i) != RECOVER_GOOD)
            return RECOVER_FAILED;
    return RECOVER_GOOD;
}

static enum recover_outcome repair(struct state *s) {
    for (size_t i = 0; i < s->damaged_count; i++) {
        if (snapshot_set_aside(&s->snapshots, s->damaged[i]) != 0)
            return fail(s->recover, "%s", s->snapshots.message);
        fprintf(s->recover->out, "snapshot.%016" PRIx64 ": renamed to damaged.*\n", s->damaged[i]);
    }
    if (entries_are_lost(s) && withhold_vote(s, true) != RECOVER_GOOD) return RECOVER_FAILED;
    if (cut_log(s) != RECOVER_GOOD) return RECOVER_FAILED;
    if (log_forget_mark(&s->log) != 0) return fail(s->recover, "%s", s->log.message);
    if (data_read(&s->data, s->recover->directory, s->recover->log_directory) != 0)
        return fail(s->recover, "%s", s->data.message);
    if (entries_are_lost(s) && !has_other_members(s)) {
        if (withhold_vote(s, false) != RECOVER_GOOD) return RECOVER_FAILED;
    } else if (entries_are_lost(s)) {
        fputs("vote: withheld until this server has caught up with the leader\n", s->recover->out);
    }
    bool log_is_left = s->end || s->end_is_usable;
    if (s->origin && !log_is_left &&
        data_write_snapshot(&s->data, s->directory, s->recover->directory) != 0)
        return fail(s->recover, "%s", s->data.message);
    uint64_t left = s->next_index - 1;
    fprintf(s->recover->out, "what is left: entries up to %" PRIu64, left);
    if (s->data.index < left)
        fprintf(s->recover->out, " (known to be committed: up to %" PRIu64 ")", s->data.index);
    fprintf(s->recover->out, ", zxid 0x%" PRIx64 ", %u nodes\n", (uint64_t)s->data.tree.zxid,
            s->data.tree.nodes);
    return RECOVER_GOOD;
}

/* ---- The whole directory ---- */

static enum recover_outcome examine(struct state *s) {
    struct recover *recover = s->recover;
    if (examine_snapshots(s) != RECOVER_GOOD) return RECOVER_FAILED;
    if (log_examine(&s->log, s->log_directory, recover->log_directory, note_segment, s) != 0)
        return fail(recover, "%s", s->log.message);
    if (!s->segments && !s->snapshots.count)
        return fail(recover, "%s: there is no data in it; is it the data directory of a server?",
                    recover->directory);
    find_usable(s);
    if (!belong_together(s))
        return fail(recover,
                    "%s, %s: the snapshots and the log are of different servers; put back those "
                    "that belong together, or correct --data and --log",
                    recover->directory, recover->log_directory);
    if (is_all_good(s)) {
        fputs("all is good\n", recover->out);
        return RECOVER_GOOD;
    }
    print_verdict(s);
    if (!recover->cut) return RECOVER_DAMAGED;
    if (s->next_index == 1)
        return fail(
            recover,
            "nothing would be left, so nothing was changed; restore a backup into a new directory "
            "('conclave restore')");
    return repair(s);
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
