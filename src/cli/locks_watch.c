#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/grow.h"
#include "base/parse.h"
#include "cli/locks.h"
#include "recipe/contend.h"

/* ---- What is known of a lock ---- */

struct seen { /* a contender, as of the last look */
    char *node;
    int64_t held_from; /* wall clock, ms; 0: it waits */
    int64_t predicted; /* when; 0: not yet */
    struct waits_interval interval;
};

struct tracked {
    char *name;
    bool dirty, gone;
    struct cv_contender *contenders;
    size_t count;
    struct seen *seen;
    size_t seen_count;
    struct waits waits;
};

struct watching {
    struct remote *remote;
    const char *only; /* one lock; NULL: all */
    size_t limit;
    struct tracked *locks;
    size_t count, room;
    bool pictures; /* on a terminal */
    bool lost;     /* the session, and with it the watch */
    bool renewed;  /* the watch, after a time without it: locks may have come */
    bool full;     /* one could not be added ... */
    bool said;     /* ... and that was said */
    bool over;     /* what is left is for the watch alone */
};

static struct tracked *find(struct watching *watching, const char *name, size_t size) {
    for (size_t i = 0; i < watching->count; i++)
        if (strlen(watching->locks[i].name) == size &&
            memcmp(watching->locks[i].name, name, size) == 0)
            return &watching->locks[i];
    return NULL;
}

static void forget(struct tracked *lock) {
    for (size_t i = 0; i < lock->seen_count; i++) free(lock->seen[i].node);
    free(lock->seen);
    free(lock->contenders);
    lock->seen = NULL;
    lock->contenders = NULL;
    lock->seen_count = lock->count = 0;
}

/* Makes room for others.  True: there is some. */
static bool forget_gone(struct watching *watching) {
    size_t kept = 0;
    for (size_t i = 0; i < watching->count; i++) {
        struct tracked *lock = &watching->locks[i];
        if (lock->gone && !lock->dirty) {
            forget(lock);
            free(lock->name);
        } else {
            watching->locks[kept++] = *lock;
        }
    }
    watching->count = kept;
    return kept < watching->limit;
}

static void touch(struct watching *watching, const char *name, size_t size) {
    struct tracked *lock = find(watching, name, size);
    if (!lock && watching->count == watching->limit) watching->full = true;
    if (!lock && watching->count < watching->limit) {
        watching->locks =
            grown(watching->locks, &watching->room, watching->count + 1, sizeof *watching->locks);
        lock = &watching->locks[watching->count++];
        *lock = (struct tracked){.name = strndup(name, size)};
        cv_assert(lock->name);
    }
    if (lock) lock->dirty = true;
}

/* A change of a contender, or of a node that is a lock or a folder of locks. */
static void touch_lock_of(struct watching *watching, const char *name) {
    const char *slash = strrchr(name, '/');
    struct contender contender;
    if (slash && contend_parse(&contender, slash + 1))
        touch(watching, name, (size_t)(slash - name));
    else if (find(watching, name, strlen(name)))
        touch(watching, name, strlen(name));
}

static void changed(enum cv_watch_type type, const char *path, void *arg) {
    static const char prefix[] = NAME_LOCKS "/";
    struct watching *watching = arg;
    if (watching->over) {
        if (type == CV_WATCH_LOST) free(watching);
        return;
    }
    if (type == CV_WATCH_LOST)
        watching->lost = true;
    else if (type == CV_WATCH_RENEWED)
        watching->renewed = true;
    else if (watching->only)
        touch(watching, watching->only, strlen(watching->only));
    else if (strncmp(path, prefix, sizeof prefix - 1) == 0)
        touch_lock_of(watching, path + sizeof prefix - 1);
}

/* ---- Changes ---- */

static void tell(const struct watching *watching, const struct tracked *lock, const char *event,
                 const struct cv_contender *contender, int64_t held_ms) {
    char who[700], name[600], moment[64], held[64] = "";
    if (watching->pictures) return;
    if (watching->remote->json) {
        json_t *object = contender ? locks_json(contender) : json_object();
        json_object_set_new(object, "event", json_string(event));
        json_object_set_new(object, "lock", remote_json_name(lock->name));
        if (held_ms >= 0) json_object_set_new(object, "held_ms", json_integer(held_ms));
        remote_json_line(object);
        return;
    }
    if (held_ms >= 0) format_duration(held, sizeof held, (double)held_ms * 1000);
    printf("%s %s %s", locks_moment(locks_now(), moment, sizeof moment),
           remote_name(name, sizeof name, lock->name), event);
    if (contender)
        printf(" %s token %" PRId64, locks_who(contender, who, sizeof who), contender->token);
    printf("%s%s\n", *held ? " after " : "", held);
}

static const struct seen *seen_before(const struct tracked *lock, const char *node) {
    for (size_t i = 0; i < lock->seen_count; i++)
        if (strcmp(lock->seen[i].node, node) == 0) return &lock->seen[i];
    return NULL;
}

static bool is_there(const struct cv_contender *contenders, size_t count, const char *node) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(contenders[i].node, node) == 0) return true;
    return false;
}

/* Those that are gone have held it for a time that is known now. */
static void note_ends(struct watching *watching, struct tracked *lock,
                      const struct cv_contender *contenders, size_t count, int64_t now) {
    for (size_t i = 0; i < lock->seen_count; i++) {
        struct seen *seen = &lock->seen[i];
        if (is_there(contenders, count, seen->node)) continue;
        const struct cv_contender *before = NULL;
        for (size_t j = 0; j < lock->count; j++)
            if (strcmp(lock->contenders[j].node, seen->node) == 0) before = &lock->contenders[j];
        int64_t held = seen->held_from && now > seen->held_from ? now - seen->held_from : 0;
        if (seen->held_from) waits_add(&lock->waits, (double)held);
        tell(watching, lock, seen->held_from ? "released" : "left", before,
             seen->held_from ? held : -1);
    }
}

/* Who was seen to wait holds it since it was seen to hold it, unless it says since when: its node
 * was created when it began to wait. */
static struct seen note_one(struct watching *watching, struct tracked *lock,
                            struct cv_contender *contender, const struct seen *before,
                            int64_t now) {
    struct seen seen = {0};
    if (before) seen = *before;
    seen.node = strdup(contender->node);
    cv_assert(seen.node);
    bool granted = contender->holds && !seen.held_from;
    if (granted) seen.held_from = before ? now : contender->held_since;
    if (contender->holds && !contender->held_known) contender->held_since = seen.held_from;
    if (granted) {
        if (seen.predicted)
            waits_judge(&lock->waits, &seen.interval, (double)(now - seen.predicted));
        tell(watching, lock, "granted", contender, -1);
    } else if (!before) {
        tell(watching, lock, "waits", contender, -1);
    }
    return seen;
}

/* Once for each who waits, as soon as enough is known. */
static void predict(struct tracked *lock, int64_t now) {
    for (size_t i = 0; i < lock->count; i++) {
        struct seen *seen = &lock->seen[i];
        const struct cv_contender *c = &lock->contenders[i];
        if (c->kind != CV_EXCLUSIVE || c->slots > 1) return;
        if (seen->held_from || seen->predicted || !lock->seen[0].held_from) continue;
        if (waits_estimate(&lock->waits, i, (double)(now - lock->seen[0].held_from),
                           &seen->interval))
            seen->predicted = now;
    }
}

static int look(struct watching *watching, size_t index) {
    struct cv_contender *contenders = NULL;
    size_t count = 0;
    char *path = locks_path(watching->locks[index].name);
    watching->locks[index].dirty = false;
    int error = cv_lock_contenders(watching->remote->client, path, &contenders, &count);
    int64_t now = locks_now();
    struct tracked *lock = &watching->locks[index]; /* more may have come meanwhile */
    bool retry = error == CV_CONNECTION_LOSS || error == CV_NO_SERVER;
    if (error == CV_NO_AUTH && !watching->only) error = CV_NO_NODE; /* nothing is seen of it */
    int status =
        error && error != CV_NO_NODE && !retry ? remote_fail(watching->remote, error, path) : 0;
    free(path);
    if (status || retry) {
        lock->dirty |= retry;
        free(contenders);
        return status;
    }
    note_ends(watching, lock, contenders, count, now);
    struct seen *seen = calloc(count + 1, sizeof *seen);
    cv_assert(seen);
    for (size_t i = 0; i < count; i++)
        seen[i] =
            note_one(watching, lock, &contenders[i], seen_before(lock, contenders[i].node), now);
    struct tracked before = *lock;
    *lock = (struct tracked){.name = before.name,
                             .dirty = before.dirty,
                             .gone = error == CV_NO_NODE,
                             .contenders = contenders,
                             .count = count,
                             .seen = seen,
                             .seen_count = count,
                             .waits = before.waits};
    predict(lock, now);
    forget(&before);
    return 0;
}

enum { ENOUGH = -1 };

static int touch_row(const struct locks_row *row, void *arg) {
    struct watching *watching = arg;
    size_t size = strlen(row->name);
    if (watching->count == watching->limit && !find(watching, row->name, size)) return ENOUGH;
    touch(watching, row->name, size);
    return 0;
}

/* All of them may have changed, and others may have come. */
static int look_at_all(struct watching *watching) {
    watching->renewed = false;
    for (size_t i = 0; i < watching->count; i++) watching->locks[i].dirty = true;
    if (watching->only) {
        touch(watching, watching->only, strlen(watching->only));
        return 0;
    }
    int status = locks_walk(
        &(struct locks_walk){.remote = watching->remote, .each = touch_row, .arg = watching});
    if (status != ENOUGH) return status;
    if (!watching->said)
        remote_say(0, "the first %zu locks are watched (--limit)", watching->limit);
    watching->said = true;
    return 0;
}

static bool is_connected(const struct watching *watching) {
    return cv_state(watching->remote->client) == CV_CONNECTED;
}

/* Not while there is no connection: to wait for one here would keep signals waiting, too. */
static int look_at_changed(struct watching *watching) {
    if (watching->full) watching->renewed |= forget_gone(watching);
    watching->full = false;
    int status = watching->renewed && is_connected(watching) ? look_at_all(watching) : 0;
    for (size_t i = 0; i < watching->count && !status && is_connected(watching); i++)
        if (watching->locks[i].dirty) status = look(watching, i);
    return status;
}

/* ---- The picture ---- */

static void draw(const struct watching *watching) {
    fputs("\033[H\033[J", stdout);
    for (size_t i = 0; i < watching->count; i++) {
        const struct tracked *lock = &watching->locks[i];
        if (lock->count || watching->only)
            locks_print_one(lock->name, lock->contenders, lock->count, &lock->waits);
    }
    fputs("(until Ctrl-C)\n", stdout);
}

static int begin(struct watching *watching) {
    char *path = watching->only ? locks_path(watching->only) : strdup(NAME_LOCKS);
    struct cv_op op = cv_op_add_watch(path, CV_WATCH_RECURSIVE, changed, watching);
    int error = remote_call(watching->remote, &op, NULL);
    free(path);
    if (error) watching->lost = true; /* there is none */
    if (error) return remote_fail(watching->remote, error, watching->only);
    watching->renewed = true;
    return 0;
}

/* In a shell the session goes on: the watch must not.  If it cannot be removed now, it ends with
 * the session, and its memory with it. */
static void end(struct watching *watching) {
    char *path = watching->only ? locks_path(watching->only) : strdup(NAME_LOCKS);
    struct cv_op op = cv_op_add_watch(path, CV_WATCH_RECURSIVE, changed, watching);
    op.type = CV_OP_REMOVE_WATCH;
    bool removed = watching->lost;
    if (!removed && watching->remote->shared && is_connected(watching))
        removed = remote_call(watching->remote, &op, NULL) == CV_OK;
    free(path);
    for (size_t i = 0; i < watching->count; i++) {
        forget(&watching->locks[i]);
        free(watching->locks[i].name);
    }
    free(watching->locks);
    watching->over = true;
    if (removed) free(watching);
}

int locks_watch(struct remote *remote, const char *name, size_t limit) {
    enum { AGAIN_MS = 1000 };
    struct watching *watching = calloc(1, sizeof *watching);
    cv_assert(watching);
    *watching = (struct watching){.remote = remote,
                                  .only = name,
                                  .limit = limit,
                                  .pictures = !remote->json && isatty(STDOUT_FILENO)};
    remote_catch_signals(remote);
    int status = begin(watching), signal_ = 0;
    while (!status && !signal_ && !watching->lost) {
        status = look_at_changed(watching);
        if (!status && watching->pictures) draw(watching);
        fflush(stdout);
        bool waits = watching->pictures || !is_connected(watching);
        if (!status) signal_ = remote_wait(remote, waits ? AGAIN_MS : CV_FOREVER);
    }
    if (!status && watching->lost) status = remote_fail(remote, CV_SESSION_EXPIRED, NULL);
    end(watching);
    return status;
}
