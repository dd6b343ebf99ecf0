/* Power fails everywhere, and then all disks are damaged, each elsewhere: in the log, in its
 * segments' headers, in snapshots.  Every entry stays intact on one of them.  The servers have to
 * mend each other, and nothing may be lost.
 *
 * Whatever cannot be mended is not done: an entry of which the last copy would go; more ends of
 * logs of which nobody knows how long they were than a minority has; an end that would look as a
 * crash leaves it; entries of which not even the terms are left, and that nobody can recognize. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "service/log/salvage.h"
#include "service/log/vote.h"
#include "world.h"

#define NOT_AN_ENTRY 2 /* hashes of entries are odd */
static const char LOG[] = "log.", IMAGE[] = "snapshot.", VOTE[] = VOTE_NAME;
enum {
    HEADER = 80,
    INDEX_MAX = 4000,
    HOLES_MAX = 100,
    NAMES_MAX = 64,
    TRIES = 12,
    SMUDGE_MAX = 1500
};

struct holdings {                           /* of a server's disk */
    uint64_t hash[INDEX_MAX];               /* of its entries; 0: not intact, or not there */
    uint64_t term[INDEX_MAX];               /* as far as it is known, intact or not */
    struct salvage_hole unknown[HOLES_MAX]; /* of these it is not */
    unsigned holes;
    uint64_t snapshot, last, commit_index;
    bool end_unknown; /* it has no vote, or will have none */
    uint64_t vote_term, voted_for;
    bool sound;
};

static struct rng *rng(void) { return &world->disk; }

/* ---- What is on a disk ---- */

static uint64_t good_snapshot(const struct snapshots *found, uint64_t *term) {
    struct snapshots each = *found;
    for (size_t i = 0; i < found->count; i++) {
        struct snapshot_reader *reader = snapshot_open(&each, found->index[i], term);
        if (!reader) continue;
        snapshot_close(reader);
        if (snapshot_verify(&each, found->index[i]) == 0) return found->index[i];
    }
    return *term = 0;
}

static void collect(struct salvage *s, struct holdings *h) {
    struct raft_batch batch;
    struct raft_entry entry;
    struct salvage_hole hole;
    for (uint64_t i = 0; salvage_find_hole(s, i, &hole) && h->holes < HOLES_MAX; i = hole.last + 1)
        if (!hole.term) h->unknown[h->holes++] = hole;
    for (uint64_t i = s->after + 1; i <= salvage_last(s) && i < INDEX_MAX; i++) {
        size_t at = 0;
        h->term[i] = salvage_term_at(s, i);
        if (!salvage_read(s, i, i, SIZE_MAX, &batch) &&
            (h->term[i] || !salvage_read_dropped(s, i, i, SIZE_MAX, &batch)))
            continue;
        if (!raft_next(&batch, &at, &entry)) continue;
        h->hash[i] = hash_long(entry.bytes, entry.size, entry.term) | 1;
    }
}

static void take_stock(const struct machine *m, struct holdings *h) {
    int directory = open(m->disk.path, O_RDONLY | O_DIRECTORY);
    struct snapshots found;
    struct salvage s;
    struct vote vote;
    uint64_t term = 0;
    memset(h, 0, sizeof *h);
    cv_assert(directory >= 0 && snapshots_list(&found, directory, m->disk.path) == 0);
    h->sound = vote_read(&vote, directory, m->disk.path) == 0 && vote.directory_id;
    h->vote_term = vote.term;
    h->voted_for = vote.voted_for;
    h->snapshot = good_snapshot(&found, &term);
    uint64_t newest = found.count ? found.index[0] : 0;
    if (salvage_open(&s, directory, m->disk.path, h->snapshot, term,
                     newest > h->snapshot ? newest : 0, vote.term) != 0 ||
        s.illogical)
        h->sound = false;
    collect(&s, h);
    h->last = salvage_last(&s);
    h->commit_index = s.commit_index;
    h->end_unknown = s.tail_lost || vote.withheld;
    salvage_close(&s);
    close(directory);
}

/* ---- What may be lost ---- */

static struct holdings before[SERVERS_MAX + 1], now[SERVERS_MAX + 1];

static bool is_covered(uint64_t index, uint64_t hash) {
    for (unsigned i = 1; i <= world->servers; i++)
        if (now[i].hash[index] == hash || index <= now[i].snapshot) return true;
    return false;
}

/* Each entry that anybody had, or that was ever applied.  (Entries that change the members are not
 * known to have been.) */
static bool all_is_covered(void) {
    uint64_t last = world->entries ? world->entries - 1 : 0;
    for (unsigned m = 1; m <= world->servers; m++) {
        if (before[m].last > last) last = before[m].last;
        if (before[m].snapshot > last) last = before[m].snapshot;
    }
    for (uint64_t i = 1; i <= last; i++) {
        uint64_t hash = i < world->entries ? world->entry_hash[i] : 0;
        bool had = hash != 0;
        if (hash && !is_covered(i, hash)) return false;
        for (unsigned m = 1; m <= world->servers; m++) {
            if (before[m].hash[i] && !is_covered(i, before[m].hash[i])) return false;
            had |= before[m].hash[i] != 0;
        }
        if (!had && !is_covered(i, NOT_AN_ENTRY)) return false; /* by a snapshot */
    }
    return true;
}

/* Entries of which not even the term is known are recognized by a later entry, or because they are
 * known to be committed.  (Where a leader was replaced just then, that may not be.) */
static bool is_recognized(const struct holdings *h, const struct salvage_hole *hole, uint64_t i) {
    for (unsigned n = 1; n <= world->servers; n++) {
        const struct holdings *other = &now[n];
        if (i <= other->snapshot) return true;
        bool pinned = hole->pin_index && other->term[hole->pin_index] == hole->pin_term;
        bool committed = i <= h->commit_index && i <= other->commit_index;
        if (other == h) continue;
        if (other->term[i] && pinned) return true; /* then the term is learned */
        if (other->hash[i] && other->term[i] && committed) return true;
    }
    return false;
}

static bool all_is_recognized(void) {
    for (unsigned m = 1; m <= world->servers; m++)
        for (unsigned i = 0; i < now[m].holes; i++)
            for (uint64_t at = now[m].unknown[i].first; at <= now[m].unknown[i].last; at++)
                if (!is_recognized(&now[m], &now[m].unknown[i], at)) return false;
    return true;
}

static bool enough_know_their_ends(void) {
    unsigned unknown = 0;
    for (unsigned i = 1; i <= world->servers; i++) unknown += now[i].end_unknown;
    return unknown <= (world_has(KIND_WEIGHTS) ? 0 : (world->servers - 1) / 2);
}

/* What is left is what was there; and no end is missing without notice. */
static void judge_holdings(const struct machine *m) {
    const struct holdings *was = &before[m->number], *is = &now[m->number];
    if (is->vote_term != was->vote_term || is->voted_for != was->voted_for)
        violated("server %u takes another vote for its own", m->number);
    for (uint64_t i = 1; i < INDEX_MAX && !is->end_unknown; i++)
        if (is->hash[i] && was->hash[i] && is->hash[i] != was->hash[i])
            violated("server %u takes another entry for its entry %llu", m->number,
                     (unsigned long long)i);
}

static bool may_be(const struct machine *m) {
    const struct holdings *was = &before[m->number], *is = &now[m->number];
    uint64_t last = is->hash[was->last];
    bool differs = is->last != was->last || (last && last != was->hash[was->last]);
    bool silent = differs && !is->end_unknown;
    return is->sound && !silent && all_is_covered() && all_is_recognized() &&
           enough_know_their_ends();
}

/* ---- Damage ---- */

static unsigned list(const struct machine *m, const char *prefix,
                     char name[NAMES_MAX][DISK_NAME_MAX]) {
    DIR *directory = opendir(m->disk.path);
    unsigned count = 0;
    cv_assert(directory);
    for (struct dirent *found; (found = readdir(directory)) && count < NAMES_MAX;) {
        if (strncmp(found->d_name, prefix, strlen(prefix)) != 0) continue;
        unsigned at = count++;
        for (; at && strcmp(name[at - 1], found->d_name) > 0; at--)
            memcpy(name[at], name[at - 1], DISK_NAME_MAX);
        snprintf(name[at], DISK_NAME_MAX, "%.63s", found->d_name);
    }
    closedir(directory);
    return count;
}

static uint64_t used_size(const struct bytes *file) {
    size_t used = file->used;
    while (used && !file->at[used - 1]) used--;
    return used;
}

struct damage {
    const char *prefix; /* of the file's name */
    bool removed, bit;  /* bit: one; otherwise a range of bytes */
    uint64_t at;
};

static void smudge(struct bytes *file, struct damage *damage) {
    uint64_t used = used_size(file);
    if (!used) return;
    uint64_t at = damage->at =
        rng_chance(rng(), 0.1) ? rng_below(rng(), used < 80 ? used : 80) : rng_below(rng(), used);
    uint64_t kind = rng_below(rng(), 4), length = 1 + rng_below(rng(), SMUDGE_MAX);
    damage->bit = kind < 2;
    if (damage->bit) {
        file->at[at] ^= (unsigned char)(1u << rng_below(rng(), 8));
        return;
    }
    for (uint64_t i = at; i < used && i < at + length; i++)
        file->at[i] = kind == 2 ? 0 : (unsigned char)rng_next(rng());
}

static void load(const char *path, struct bytes *file) {
    struct stat about;
    int fd = open(path, O_RDONLY);
    cv_assert(fd >= 0 && fstat(fd, &about) == 0);
    file->used = 0;
    if (about.st_size)
        cv_assert(pread(fd, bytes_extend(file, (size_t)about.st_size), (size_t)about.st_size, 0) ==
                  about.st_size);
    close(fd);
}

static void save(const char *path, const struct bytes *file) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    cv_assert(fd >= 0 &&
              (!file->used || pwrite(fd, file->at, file->used, 0) == (ssize_t)file->used));
    close(fd);
}

/* One trial: the world goes on with it, and is judged. */
static void count(const struct damage *damage) {
    struct coverage *c = &world->coverage;
    bool log = damage->prefix == LOG, header = log && !damage->removed && damage->at < HEADER;
    c->damages++;
    c->damaged_images += damage->prefix == IMAGE;
    c->damaged_votes += damage->prefix == VOTE;
    c->damaged_headers += header;
    c->damaged_logs += log && !header;
    c->removed_files += damage->removed;
    c->damaged_bits += !damage->removed && damage->bit;
    c->damaged_ranges += !damage->removed && !damage->bit;
}

/* Damages a file, or leaves it as it was. */
static void damage_one(struct machine *m) {
    char name[NAMES_MAX][DISK_NAME_MAX], path[160];
    double kind = rng_unit(rng());
    struct damage damage = {.prefix = kind < 0.25 ? IMAGE : kind < 0.35 ? VOTE : LOG};
    unsigned names = list(m, damage.prefix, name);
    struct bytes whole = {0}, damaged = {0};
    if (!names) return;
    unsigned which = rng_chance(rng(), 0.5) ? names - 1 : (unsigned)rng_below(rng(), names);
    snprintf(path, sizeof path, "%s/%s", m->disk.path, name[which]);
    load(path, &whole);
    bytes_add(&damaged, whole.at, whole.used);
    smudge(&damaged, &damage);
    damage.removed = rng_chance(rng(), 0.1);
    if (damage.removed)
        cv_assert(unlink(path) == 0);
    else
        save(path, &damaged);
    struct holdings kept = now[m->number];
    take_stock(m, &now[m->number]);
    if (may_be(m)) {
        trace("", "%s of server %u is %s", name[which], m->number,
              damage.removed ? "gone" : "damaged");
        count(&damage);
        judge_holdings(m);
    } else {
        now[m->number] = kept;
        save(path, &whole);
    }
    bytes_close(&whole);
    bytes_close(&damaged);
}

void damage_disks(void) {
    bool sound = true;
    for (unsigned i = 1; i <= world->servers; i++) {
        take_stock(&world->machine[i], &before[i]);
        now[i] = before[i];
        sound &= before[i].sound;
    }
    if (!sound || world->entries >= INDEX_MAX / 2) return;
    if (!all_is_covered() || !all_is_recognized() || !enough_know_their_ends()) return;
    for (unsigned i = 0; i < TRIES; i++)
        damage_one(&world->machine[1 + rng_below(rng(), world->servers)]);
}
