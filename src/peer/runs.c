/* The runs of a group.  One ends when all are done; the next one begins anew, with the state in
 * which the algorithm starts.
 *
 * Who is done may come back and not be done any more, and who has not heard of that ends the run
 * without it.  So runs are numbered, in the data of each process, and no process takes a step in a
 * run before all others have ended those before it: nobody can be inside in two runs.  Who hears of
 * a higher run than its own knows that its own is over: it ends, if it was done, or goes on in the
 * higher one with what its application wants.  The first run is not waited for: there was none
 * before it.
 *
 * Frames, little-endian, at the beginning of each link and with each change:
 *   RUN   number of the sender's run (4 bytes); 1: it has begun
 *   DONE  the receiver's incarnation; bits: the sender knows that the receiver is done; stays */
#include "base/little.h"
#include "base/logger.h"
#include "peer/internal.h"

enum { RUN_SIZE = 5, DONE_SIZE = 9 };
enum { DONE_KNOWN = 1, DONE_STAYS = 2, DONE_NOT_YET = 4 /* what it said before it was resumed */ };
enum {
    LOOK_MS = 250,
    LATE_MS = 2000,  /* when the log says for whom a run waits */
    GRACE_MS = 1000, /* see ends_with_its_run and is_idle */
};

static bool is_outrun(const struct peer *peer) { return peer->next_run > peer->run; }

/* ---- The end ---- */

static void tell_run(struct peer *peer, cv_pid p, uint32_t run, bool begun) {
    struct bytes *frame = channels_begin(peer, p, FRAME_RUN);
    if (!frame) return;
    unsigned char *body = bytes_extend(frame, RUN_SIZE);
    put32(body, run);
    body[4] = begun;
    link_end(peer->links, p);
}

static void tell_all(struct peer *peer, uint32_t run, bool begun) {
    for (cv_pid p = 1; p <= peer->group->processes; p++)
        if (p != peer->self) tell_run(peer, p, run, begun);
}

void runs_tell_done(struct peer *peer, cv_pid p) {
    const struct other *other = &peer->other[p];
    bool news = peer->done || peer->resumed;
    struct bytes *frame =
        news && other->channel.incarnation ? channels_begin(peer, p, FRAME_DONE) : NULL;
    if (!frame) return;
    unsigned char *body = bytes_extend(frame, DONE_SIZE);
    put64(body, other->channel.incarnation);
    body[8] = (unsigned char)((other->done ? DONE_KNOWN : 0) | (peer->stays ? DONE_STAYS : 0) |
                              (peer->done ? 0 : DONE_NOT_YET));
    link_end(peer->links, p);
}

/* Whether all are done, as far as this process knows, and know that it is: those that have ended
 * since knew it before. */
static bool all_are_done(const struct peer *peer, bool *somebody_stays) {
    for (cv_pid p = 1; p <= peer->group->processes; p++) {
        const struct other *other = &peer->other[p];
        if (p != peer->self && !(other->done && (other->knows_us_done || other->gone)))
            return false;
        *somebody_stays |= other->stays;
    }
    return true;
}

/* Who was not there while its run was on has not done its part in it, and joins the next one. */
static bool ends_with_its_run(const struct peer *peer) {
    return peer->done && !peer->stays && peer->met;
}

static bool is_recent(const struct peer *peer, uint64_t ms) {
    return ms && uv_now(peer->config.loop) - ms < GRACE_MS;
}

/* Whether those that have begun another run, and wait for this process, can be told that it ends:
 * its link to them may take a moment longer than theirs. */
static bool can_tell(const struct peer *peer) {
    for (cv_pid p = 1; p <= peer->group->processes; p++) {
        const struct other *other = &peer->other[p];
        if (other->run > peer->run && other->here && !other->up) return false;
    }
    return true;
}

/* The next run of the group begins anew; if that cannot be written down, this was a crash. */
static void end(struct peer *peer, uint32_t next_run) {
    peer->over = true;
    peer_flush_record(peer);
    peer->ended = durable_end(&peer->durable, next_run) == 0;
    if (peer->ended) tell_all(peer, next_run, false);
    links_flush(peer->links);
    peer->config.all_done(peer->config.owner);
}

/* Where somebody stays, so does the run: this process may end, and come back to it. */
static void may_end(struct peer *peer) {
    if (peer->may_end) return;
    peer->may_end = true;
    peer->config.all_done(peer->config.owner);
}

void runs_look_whether_over(struct peer *peer) {
    bool somebody_stays = false;
    if (!peer->done || peer->over || peer->stays) return;
    if (is_outrun(peer)) {
        bool waits = !can_tell(peer) && is_recent(peer, peer->since_ms);
        if (ends_with_its_run(peer) && !waits) end(peer, peer->next_run);
    } else if (all_are_done(peer, &somebody_stays)) {
        somebody_stays ? may_end(peer) : end(peer, peer->run + 1);
    }
}

/* Answered until both know: an answer that says so is not answered. */
static void hear_done(struct peer *peer, cv_pid p, unsigned bits) {
    struct other *other = &peer->other[p];
    bool first = !other->done, knows_us_done = bits & DONE_KNOWN;
    if (bits & DONE_NOT_YET) {
        other->done = other->knows_us_done = other->stays = false;
        return;
    }
    other->stays = bits & DONE_STAYS;
    other->done = true;
    other->knows_us_done = knows_us_done;
    if (peer->done && (first || !knows_us_done)) runs_tell_done(peer, p);
    runs_look_whether_over(peer);
}

const char *runs_hear_done(struct peer *peer, cv_pid p, const unsigned char *bytes, size_t size) {
    if (size != DONE_SIZE) return "it has the wrong size";
    if (get64(bytes) == peer->incarnation) hear_done(peer, p, bytes[8]);
    return NULL;
}

/* ---- The next one ---- */

static cv_pid first_behind(const struct peer *peer) {
    for (cv_pid p = 1; p <= peer->group->processes; p++)
        if (p != peer->self && peer->other[p].run < peer->run) return p;
    return CV_NOBODY;
}

/* Nobody has the lock; who has just left it may be about to say that it is done. */
static bool is_idle(const struct peer *peer) {
    return peer->phase == WAITING || peer->phase == LEAVING ||
           (peer->phase == OUTSIDE && !is_recent(peer, peer->left_ms));
}

void runs_look(struct peer *peer) {
    if (peer->over || peer->closing) return;
    if (is_outrun(peer) && ends_with_its_run(peer))
        runs_look_whether_over(peer);
    else if (is_outrun(peer) && is_idle(peer))
        peer_renew(peer);
    if (peer->over || peer->begun || first_behind(peer)) return;
    peer_begin_run(peer);
    if (peer->over) return;
    tell_all(peer, peer->run, true);
    for (cv_pid p = 1; p <= peer->group->processes; p++)
        if (p != peer->self) channels_meet(peer, p);
}

static void look_again(uv_timer_t *timer) {
    struct peer *peer = timer->data;
    runs_look(peer);
    if (peer->over || (peer->begun && !is_outrun(peer))) {
        uv_timer_stop(timer);
    } else if (!peer->begun && !peer->late && uv_now(timer->loop) - peer->since_ms >= LATE_MS) {
        peer->late = true;
        logger_warning("the next run of the group begins when all of its peers have started again",
                       LOGGER_UINT("missing", first_behind(peer)));
    }
}

/* A process waits for its run to begin, or is about to leave one that is over. */
void runs_watch(struct peer *peer) {
    peer->since_ms = uv_now(peer->config.loop);
    uv_timer_start(&peer->runs, look_again, LOOK_MS, LOOK_MS);
}

void runs_introduce(struct peer *peer, cv_pid p) { tell_run(peer, p, peer->run, peer->begun); }

const char *runs_hear(struct peer *peer, cv_pid p, const unsigned char *bytes, size_t size) {
    struct other *other = &peer->other[p];
    if (size != RUN_SIZE) return "it has the wrong size";
    other->run = get32(bytes);
    other->begun = bytes[4];
    if (other->run > peer->next_run) {
        peer->next_run = other->run;
        runs_watch(peer);
    }
    channels_meet(peer, p);
    runs_look_whether_over(peer);
    return NULL;
}
