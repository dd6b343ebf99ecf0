/* A server whose files are damaged is mended by the others before it takes part.
 *
 * Until then it is as if it were down: it neither votes nor acknowledges nor stands for election.
 * It asks the others for what it has lost, and gives them what it has intact (mend_help.c), so that
 * members that are all damaged, each elsewhere, mend each other.  When it has all that it had, it
 * writes that to its disk and starts as any other server: nobody can tell that anything was lost.
 *
 * An entry from another log is the one that was lost if
 *   - it has the index and the term that were lost (two entries with both are the same), or
 *   - both servers know that their entries at this index are committed, or
 *   - both logs have one and the same later entry: up to there they are equal (Log Matching).
 * A snapshot holds what is committed, so whatever it covers needs no entries.  And an entry that
 * was lost is not needed if another server knows that another one is committed at its index.
 *
 * What nobody has may never have been committed.  That is known once there is a leader: it has all
 * that is committed, and this server follows it, without its vote, from what precedes the loss. */
#include <stdlib.h>
#include <unistd.h>

#include "base/logger.h"
#include "service/ensemble/internal.h"
#include "service/ensemble/repeated.h"
#include "service/log/salvage.h"
#include "service/log/transfer.h"

enum {
    TICK_MS = 50,
    PAUSE_US = 100000,       /* between two rounds of questions that nobody could answer */
    COMPLAINT_US = 30000000, /* between two lines of the log about what is lacking */
    AHEAD_MAX = 4 << 20,     /* bytes of a snapshot that are asked for before they have come */
    CHUNK_MIN = 4096,
};

/* An answer of which nothing has come in this time does not come.  Where servers are far apart, the
 * election timeout says so. */
static uint64_t answer_us(const struct ensemble *e) {
    const uint64_t least = 500000, half = (uint64_t)e->settings->election_timeout_ms * 500;
    return half > least ? half : least;
}

/* Without progress, before a leader is asked whether it leads. */
static uint64_t patience_us(const struct ensemble *e) { return 3 * answer_us(e); }

/* A leader that was heard so recently may still be there. */
static uint64_t leader_us(const struct ensemble *e) { return 2 * answer_us(e); }

struct mend {
    struct salvage salvage;
    uint64_t progress_us, complained_us;
    /* The question that is open, about the hole that ends at `cursor` or after it. */
    uint64_t number, asked_us, pause_until_us;
    uint64_t cursor;
    uint64_t hole_first;           /* as it was asked for */
    bool waiting;                  /* for the answer of `asked` */
    bool tried[MEMBER_ID_MAX + 1]; /* about this hole */
    uint8_t asked, best;           /* best: it had the last entries */
    uint8_t offered_by;            /* a snapshot that covers the hole; 0: nobody has one */
    uint64_t offered_index;
    /* A snapshot on its way. */
    struct receiving from;
    bool receiving, begun; /* begun: the size of the file is known */
    uint8_t sender;
    uint64_t snapshot_index, chunk_asked_us, chunk_heard_us; /* heard: also a part of one */
    uint64_t chunk, asked_end; /* bytes in an answer; asked_end: all before it were asked for */
    struct repeated unusable;
    /* The leader, if there is one. */
    uint8_t leader;
    uint8_t denied_by;     /* it could not help with the hole that begins with ... */
    uint64_t denied_first; /* ... this entry; 0: nobody has said so since there was progress */
    uint64_t leader_term, leader_us, leader_number, leader_asked_us;
    uint64_t mended;
};

/* ---- Opening ---- */

void mend_open(struct ensemble *e, const struct salvage *salvage) {
    cv_assert(!e->mend);
    e->mend = calloc(1, sizeof *e->mend);
    cv_assert(e->mend);
    e->mend->salvage = *salvage;
    logger_warning("files are damaged; this server asks the others for what it has lost, and takes "
                   "no part until it has that again",
                   LOGGER_STRING("reason", salvage->what),
                   LOGGER_UINT("entries_lost", salvage_lacking(salvage)));
}

struct salvage *mend_salvage(struct ensemble *e) {
    return &e->mend->salvage;
}

static void stop_receiving(struct mend *m) {
    if (m->begun) receiving_close(&m->from);
    m->receiving = m->begun = false;
}

void mend_close(struct ensemble *e) {
    if (!e->mend) return;
    stop_receiving(e->mend);
    salvage_close(&e->mend->salvage);
    free(e->mend);
    e->mend = NULL;
}

/* ---- The end ---- */

_Noreturn static void fail(const char *reason) {
    logger_error("the damaged files cannot be mended, so the server stops",
                 LOGGER_STRING("reason", reason));
    _exit(ENSEMBLE_EXIT_FAILED);
}

static void write_mended(struct ensemble *e) {
    struct salvage *s = &e->mend->salvage;
    bool old_format = !e->vote.ensemble_id;
    if (s->tail_lost && snapshots_withhold_vote(e, s->what) != 0) fail("the vote");
    if (salvage_write(s, old_format, (uint64_t)e->settings->log_segment_bytes,
                      !e->settings->force_sync) != 0)
        fail(s->log.message);
    e->statistics.mended_entries += e->mend->mended;
}

/* All that was lost is there again. */
static void finish(struct ensemble *e) {
    write_mended(e);
    logger_info("the damaged files are mended; what could not be used any more was renamed to "
                "damaged.*",
                LOGGER_UINT("entries_mended", e->mend->mended),
                LOGGER_UINT("last_index", salvage_last(&e->mend->salvage)));
    uv_timer_stop(&e->mend_timer);
    mend_close(e);
    ensemble_reopen(e);
}

/* Those that are newer than the one from which this server has started could not be read. */
static void set_aside_damaged(struct ensemble *e, uint64_t good) {
    struct snapshots found;
    if (snapshots_list(&found, e->disk.data_directory, e->settings->data_dir) != 0)
        fail(found.message);
    for (size_t i = 0; i < found.count; i++)
        if (found.index[i] > e->mend->salvage.after && found.index[i] < good &&
            snapshot_set_aside(&found, found.index[i]) != 0)
            fail(found.message); /* it would be found again at each start */
}

/* There is a leader, which has all that is committed; what is lacking is not in its log. */
static void give_up(struct ensemble *e, uint8_t leader) {
    struct mend *m = e->mend;
    struct salvage_hole hole;
    if (!salvage_find_hole(&m->salvage, 0, &hole)) return;
    logger_warning("no other server has some of the entries that this one has lost, so it follows "
                   "the leader from those before them, without a vote until it has caught up",
                   LOGGER_INT("leader", member_number(leader)),
                   LOGGER_UINT("first_index", hole.first),
                   LOGGER_UINT("entries_lost", salvage_lacking(&m->salvage)));
    m->salvage.tail_lost = true;
    salvage_cut(&m->salvage, hole.first);
    write_mended(e);
    set_aside_damaged(e, UINT64_MAX); /* that it was there is of no use any more */
    uv_timer_stop(&e->mend_timer);
    mend_close(e);
    ensemble_reopen(e);
}

/* ---- A snapshot from another server ---- */

static void ask_chunk(struct ensemble *e, uint64_t offset) {
    struct mend *m = e->mend;
    uint16_t version;
    m->chunk_asked_us = e->clock->monotonic_us;
    struct bytes *out =
        peers_begin(e, m->sender, FRAME_TYPE_mend_chunk_request, LINK_URGENT, &version);
    if (!out) return;
    codec_write_mend_chunk_request(
        out, version,
        &(struct frame_mend_chunk_request){.snapshot_index = m->snapshot_index, .offset = offset});
    peers_end(e, m->sender);
    peers_flush(e);
}

/* For each chunk that has come two are asked for, until as much is on its way as may be. */
static void ask_ahead(struct ensemble *e) {
    struct mend *m = e->mend;
    for (int i = 0; i < 2; i++) {
        if (m->asked_end >= m->from.size || m->asked_end - m->from.offset >= AHEAD_MAX) return;
        ask_chunk(e, m->asked_end);
        m->asked_end += m->chunk;
    }
}

/* What is on its way may be lost. */
static void ask_again(struct ensemble *e) {
    struct mend *m = e->mend;
    ask_chunk(e, m->begun ? m->from.offset : 0);
    if (m->begun) m->asked_end = m->from.offset + m->chunk;
}

static void begin_snapshot(struct ensemble *e) {
    struct mend *m = e->mend;
    logger_info("a snapshot of another server takes the place of what is damaged here",
                LOGGER_INT("peer", member_number(m->offered_by)),
                LOGGER_UINT("snapshot_index", m->offered_index));
    m->receiving = true;
    m->sender = m->offered_by;
    m->snapshot_index = m->offered_index;
    m->offered_by = 0;
    m->chunk_heard_us = e->clock->monotonic_us;
    ask_again(e);
}

static int read_through(void *context, struct snapshot_reader *reader) {
    unsigned char part[4096];
    (void)context;
    while (snapshot_read(reader, part, sizeof part) == 0) continue;
    return 0;
}

/* What is left of the log is looked at again, now as what continues this snapshot. */
static void snapshot_received(struct ensemble *e) {
    struct mend *m = e->mend;
    uint64_t term, index = m->snapshot_index;
    if (receiving_check(&m->from, &term, read_through, NULL) != 0 || receiving_end(&m->from) != 0) {
        if (repeated_is_due(&m->unusable, e->clock->monotonic_us, m->from.message))
            logger_warning("a snapshot of another server cannot be used; it is asked for again",
                           LOGGER_STRING("reason", m->from.message));
        stop_receiving(m);
        return;
    }
    m->receiving = m->begun = false;
    set_aside_damaged(e, index);
    e->statistics.mended_snapshots++;
    uint64_t lost = m->salvage.lost_snapshot > index ? m->salvage.lost_snapshot : 0;
    salvage_close(&m->salvage);
    if (salvage_open(&m->salvage, e->disk.log_directory, e->settings->log_dir, index, term, lost,
                     e->vote.term) != 0)
        fail(m->salvage.log.message);
    if (m->salvage.illogical) fail("the snapshot contradicts the log");
    m->cursor = 0;
    memset(m->tried, 0, sizeof m->tried);
    m->progress_us = e->clock->monotonic_us;
    ensemble_wake(e);
}

/* The first chunk says how large the file is, of which some may be here from an earlier attempt. */
static bool begin_file(struct ensemble *e, uint64_t size) {
    struct mend *m = e->mend;
    m->begun = receiving_open(&m->from, e->disk.data_directory, e->settings->data_dir,
                              m->snapshot_index, size) == 0;
    m->chunk = 0;
    return m->begun;
}

/* The next ones are asked for as if they were as long as this one. */
static void expect(struct mend *m, uint64_t size) {
    if (size == m->chunk) return;
    m->chunk = size > CHUNK_MIN ? size : CHUNK_MIN;
    m->asked_end = m->from.offset;
}

bool mend_chunk_received(struct ensemble *e, uint8_t from, const struct frame_mend_chunk *frame,
                         struct zk_in bytes) {
    struct mend *m = e->mend;
    if (!m || !m->receiving || from != m->sender || frame->snapshot_index != m->snapshot_index)
        return true; /* late */
    size_t size = zk_left(&bytes);
    bool is_first = !m->begun, is_gone = !frame->file_size || !size;
    enum receiving_answer answer = RECEIVING_FAILED;
    if (!is_gone && (m->begun || begin_file(e, frame->file_size)) &&
        m->from.size == frame->file_size)
        answer = receiving_add(&m->from, frame->offset, bytes.at, size);
    if (answer == RECEIVING_FAILED) stop_receiving(m);
    if (answer == RECEIVING_FAILED || (answer == RECEIVING_WRONG_OFFSET && !is_first)) return true;
    expect(m, size);
    m->progress_us = m->chunk_heard_us = e->clock->monotonic_us;
    if (m->from.offset < m->from.size)
        ask_ahead(e);
    else
        snapshot_received(e);
    return true;
}

/* A part of a message from that server has come: what is slow is not lost. */
void mend_part_received(struct ensemble *e, uint8_t from) {
    struct mend *m = e->mend;
    if (!m) return;
    if (m->receiving && from == m->sender) m->chunk_heard_us = e->clock->monotonic_us;
    if (m->waiting && from == m->asked) m->asked_us = e->clock->monotonic_us;
}

/* ---- Entries from other servers ---- */

static bool can_answer(const struct ensemble *e, unsigned id) {
    return e->peer[id].up && link_version(e->links, id) >= CODEC_VERSION_MEND;
}

/* The next one to ask about this hole; 0: all were asked. */
static uint8_t next_to_ask(const struct ensemble *e) {
    const struct mend *m = e->mend;
    if (m->best && !m->tried[m->best] && can_answer(e, m->best)) return m->best;
    for (unsigned id = 1; id <= MEMBER_ID_MAX; id++)
        if (!m->tried[id] && can_answer(e, id)) return (uint8_t)id;
    return 0;
}

static void ask(struct ensemble *e, uint8_t id, const struct salvage_hole *hole) {
    struct mend *m = e->mend;
    uint16_t version;
    m->tried[id] = true;
    struct bytes *out = peers_begin(e, id, FRAME_TYPE_mend_request, LINK_URGENT, &version);
    if (!out) return;
    m->asked = id;
    m->asked_us = e->clock->monotonic_us;
    m->waiting = true;
    m->hole_first = hole->first;
    codec_write_mend_request(out, version,
                             &(struct frame_mend_request){.number = ++m->number,
                                                          .first = hole->first,
                                                          .last = hole->last,
                                                          .pin_index = hole->pin_index,
                                                          .pin_term = hole->pin_term});
    peers_end(e, id);
    peers_flush(e);
}

/* Goes on to the next hole, and from the last to the first, after a pause. */
static void ask_next(struct ensemble *e) {
    struct mend *m = e->mend;
    struct salvage_hole hole;
    m->waiting = false;
    while (salvage_find_hole(&m->salvage, m->cursor, &hole)) {
        uint8_t id = next_to_ask(e);
        if (id) {
            ask(e, id, &hole);
            return;
        }
        memset(m->tried, 0, sizeof m->tried);
        m->cursor = hole.last + 1;
        if (!m->offered_by) continue;
        begin_snapshot(e);
        return;
    }
    m->cursor = 0;
    m->pause_until_us = e->clock->monotonic_us + PAUSE_US;
}

/* Whether another entry is committed at the index of one that was lost: then that one never was,
 * nor what followed it, and this server needs neither. */
static bool is_overtaken(const struct mend *m, const struct salvage_hole *hole,
                         const struct frame_mend_response *frame) {
    return frame->count && hole->term && frame->term != hole->term &&
           hole->first <= frame->commit_index && hole->first > m->salvage.commit_index;
}

bool mend_answered(struct ensemble *e, uint8_t from, const struct frame_mend_response *frame,
                   struct zk_in entries) {
    struct mend *m = e->mend;
    struct salvage_hole hole;
    if (!m || !m->waiting || frame->number != m->number || from != m->asked) return true; /* late */
    if (!salvage_find_hole(&m->salvage, m->cursor, &hole) || hole.first != m->hole_first)
        return true;
    struct raft_batch batch = {.first = hole.first,
                               .term = frame->term,
                               .count = frame->count,
                               .kind = (enum raft_kind)frame->kind,
                               .bytes = entries.at,
                               .size = zk_left(&entries)};
    bool is_config = frame->kind == RAFT_CONFIG;
    if (frame->kind > RAFT_CONFIG || (is_config && frame->count > 1) ||
        !peers_entries_are_applicable(&batch))
        return false;
    if (frame->snapshot_index >= hole.first) {
        m->offered_by = from;
        m->offered_index = frame->snapshot_index;
    }
    uint64_t last =
        salvage_recognize(&m->salvage, &hole, &batch, frame->pinned, frame->commit_index);
    if (last) {
        uint64_t before = salvage_lacking(&m->salvage);
        salvage_fill(&m->salvage, &batch, last);
        m->mended += before - salvage_lacking(&m->salvage);
        m->progress_us = e->clock->monotonic_us;
        m->best = from;
        m->offered_by = 0;
        memset(m->tried, 0, sizeof m->tried);
    }
    if (is_overtaken(m, &hole, frame)) {
        salvage_cut(&m->salvage, hole.first);
        m->progress_us = e->clock->monotonic_us;
    }
    if (!frame->count && frame->known && frame->pinned && frame->term >= hole.term_min &&
        frame->term <= hole.term_max)
        salvage_learn(&m->salvage, hole.first, frame->known, frame->term);
    if (from == m->leader) {
        m->denied_by = last || m->offered_by ? 0 : from;
        m->denied_first = hole.first;
    }
    ask_next(e);
    ensemble_wake(e);
    return true;
}

/* ---- The leader ---- */

void mend_leader_heard(struct ensemble *e, uint8_t leader, uint64_t term) {
    struct mend *m = e->mend;
    /* Another one may have replaced it. */
    if (term < e->vote.term || term < m->leader_term) return;
    if (term != m->leader_term) m->denied_by = 0;
    m->leader = leader;
    m->leader_term = term;
    m->leader_us = e->clock->monotonic_us;
}

/* A leader may have been replaced without knowing it.  One that answers for its read index is known
 * to lead when it does. */
static void ask_leader(struct ensemble *e) {
    struct mend *m = e->mend;
    uint16_t version;
    uint64_t now = e->clock->monotonic_us;
    if (!m->leader || now - m->leader_us > leader_us(e) || now - m->progress_us < patience_us(e))
        return;
    if (m->leader_number && now - m->leader_asked_us < answer_us(e)) return;
    struct bytes *out =
        peers_begin(e, m->leader, FRAME_TYPE_read_index_request, LINK_URGENT, &version);
    if (!out) return;
    m->leader_number = m->leader_number ? m->leader_number + 1 : (e->incarnation >> 1) + 1;
    m->leader_asked_us = now;
    codec_write_read_index_request(out, version,
                                   &(struct frame_read_index_request){m->leader_number});
    peers_end(e, m->leader);
    peers_flush(e);
}

/* That nothing has come for long may be because it is slow, or the links are. */
static bool is_denied(const struct ensemble *e, uint8_t leader) {
    const struct mend *m = e->mend;
    struct salvage_hole hole;
    if (link_version(e->links, leader) < CODEC_VERSION_MEND) return true;
    return salvage_find_hole(&m->salvage, 0, &hole) && m->denied_by == leader &&
           m->denied_first == hole.first;
}

void mend_leader_confirmed(struct ensemble *e, uint8_t leader, uint64_t number) {
    struct mend *m = e->mend;
    bool answers = m->leader_number && number == m->leader_number && leader == m->leader;
    if (answers && is_denied(e, leader) &&
        e->clock->monotonic_us - m->progress_us >= patience_us(e) && !m->receiving)
        give_up(e, leader);
}

/* ---- Time ---- */

static void complain(struct ensemble *e) {
    struct mend *m = e->mend;
    struct salvage_hole hole;
    uint64_t now = e->clock->monotonic_us;
    uint64_t since = m->complained_us > m->progress_us ? m->complained_us : m->progress_us;
    if (now - since < COMPLAINT_US || !salvage_find_hole(&m->salvage, 0, &hole)) return;
    m->complained_us = now;
    logger_warning("this server waits for entries that it has lost, and that no server which runs "
                   "has intact; start all servers of the ensemble",
                   LOGGER_UINT("first_index", hole.first), LOGGER_UINT("last_index", hole.last),
                   LOGGER_UINT("entries_lost", salvage_lacking(&m->salvage)));
}

void mend_advance(struct ensemble *e) {
    struct mend *m = e->mend;
    uint64_t now = e->clock->monotonic_us;
    if (!m || e->draining) return;
    if (salvage_is_whole(&m->salvage)) {
        finish(e);
        return;
    }
    if (m->receiving) {
        uint64_t silence = now - m->chunk_heard_us;
        if (silence > 4 * answer_us(e))
            stop_receiving(m);
        else if (silence > answer_us(e) && now - m->chunk_asked_us > answer_us(e))
            ask_again(e);
        return;
    }
    if (m->waiting ? now - m->asked_us > answer_us(e) : now >= m->pause_until_us) ask_next(e);
    ask_leader(e);
    complain(e);
}

static void ticked(uv_timer_t *timer) {
    struct ensemble *e = timer->data;
    clock_read(e->clock);
    mend_advance(e);
}

void mend_start(struct ensemble *e) {
    clock_read(e->clock); /* reading the files may have taken long */
    e->mend->progress_us = e->clock->monotonic_us;
    uv_timer_start(&e->mend_timer, ticked, TICK_MS, TICK_MS);
}

void mend_report(const struct ensemble *e, struct ensemble_mending *report) {
    const struct mend *m = e->mend;
    struct salvage_hole hole = {0};
    *report = (struct ensemble_mending){.active = m != NULL};
    if (!m) return;
    salvage_find_hole(&m->salvage, 0, &hole);
    report->lacking = salvage_lacking(&m->salvage);
    report->first = hole.first;
    report->last = hole.last;
    report->mended = m->mended;
    report->from = m->best;
    report->snapshot_index = m->receiving ? m->snapshot_index : 0;
    snprintf(report->damage, sizeof report->damage, "%s", m->salvage.what);
}
