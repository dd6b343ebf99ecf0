/* Messages of the core as version 2 of the protocol had them: one form of 72 bytes for all, whose
 * fields meant different things in each.  It goes when no server speaks version 2 any more. */
#include <endian.h>

#include "service/ensemble/codec.h"

struct form { /* little-endian */
    uint64_t term, index, index_term, other, pledge, entries_term, round;
    uint32_t count;
    uint8_t type, flags, from, to, kind, reserved[7];
};
_Static_assert(sizeof(struct form) == CODEC_V2_SIZE, "there is no padding");

enum { PRE_VOTE = 1, GRANTED = 2, TRANSFER = 4, REJECTED = 8, LEASE = 16, NOTIFICATION = 32 };

static void swap_bytes(struct form *form) {
    uint64_t *numbers[] = {&form->term,   &form->index,        &form->index_term, &form->other,
                           &form->pledge, &form->entries_term, &form->round};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = htole64(*numbers[i]);
    form->count = htole32(form->count);
}

static uint8_t flag(bool set, uint8_t bit) { return set ? bit : 0; }

static void from_append_entries(const struct raft_append_entries *body, struct form *form) {
    form->index = body->prev_log_index;
    form->index_term = body->prev_log_term;
    form->other = body->leader_commit;
    form->pledge = body->pledge;
    form->entries_term = body->entries_term;
    form->round = body->round;
    form->count = body->entry_count;
    form->kind = body->entry_kind;
    form->flags = flag(body->lease, LEASE) | flag(body->commit_notification, NOTIFICATION);
}

static void to_append_entries(const struct form *form, struct raft_append_entries *body) {
    *body = (struct raft_append_entries){.prev_log_index = form->index,
                                         .prev_log_term = form->index_term,
                                         .leader_commit = form->other,
                                         .pledge = form->pledge,
                                         .entries_term = form->entries_term,
                                         .round = form->round,
                                         .entry_count = form->count,
                                         .entry_kind = form->kind,
                                         .lease = (form->flags & LEASE) != 0,
                                         .commit_notification = (form->flags & NOTIFICATION) != 0};
}

void codec_v2_write_message(struct bytes *out, const struct raft_message *m) {
    struct form form = {.term = m->term, .type = m->type, .from = m->from, .to = m->to};
    switch (m->type) {
    case RAFT_REQUEST_VOTE:
        form.index = m->request_vote.last_log_index;
        form.index_term = m->request_vote.last_log_term;
        form.flags = flag(m->request_vote.pre_vote, PRE_VOTE) |
                     flag(m->request_vote.leadership_transfer, TRANSFER);
        break;
    case RAFT_REQUEST_VOTE_RESPONSE:
        form.flags = flag(m->request_vote_response.vote_granted, GRANTED) |
                     flag(m->request_vote_response.pre_vote, PRE_VOTE);
        break;
    case RAFT_APPEND_ENTRIES: from_append_entries(&m->append_entries, &form); break;
    case RAFT_APPEND_ENTRIES_RESPONSE:
        form.index = m->append_entries_response.match_index;
        form.index_term = m->append_entries_response.match_term;
        form.other = m->append_entries_response.rejected_index;
        form.round = m->append_entries_response.round;
        form.flags = flag(m->append_entries_response.rejected, REJECTED);
        break;
    case RAFT_INSTALL_SNAPSHOT:
        form.index = m->install_snapshot.last_included_index;
        form.index_term = m->install_snapshot.last_included_term;
        form.other = m->install_snapshot.offset;
        form.entries_term = m->install_snapshot.file_size;
        break;
    case RAFT_INSTALL_SNAPSHOT_RESPONSE:
        form.index = m->install_snapshot_response.last_included_index;
        form.other = m->install_snapshot_response.next_offset;
        break;
    }
    swap_bytes(&form);
    bytes_add(out, &form, sizeof form);
}

bool codec_v2_read_message(struct zk_in *in, struct raft_message *m) {
    struct form form;
    if (zk_left(in) < sizeof form) return false;
    memcpy(&form, in->at, sizeof form);
    in->at += sizeof form;
    swap_bytes(&form);
    m->term = form.term;
    m->type = form.type;
    switch (m->type) {
    case RAFT_REQUEST_VOTE:
        m->request_vote.last_log_index = form.index;
        m->request_vote.last_log_term = form.index_term;
        m->request_vote.pre_vote = (form.flags & PRE_VOTE) != 0;
        m->request_vote.leadership_transfer = (form.flags & TRANSFER) != 0;
        return true;
    case RAFT_REQUEST_VOTE_RESPONSE:
        m->request_vote_response.vote_granted = (form.flags & GRANTED) != 0;
        m->request_vote_response.pre_vote = (form.flags & PRE_VOTE) != 0;
        return true;
    case RAFT_APPEND_ENTRIES: to_append_entries(&form, &m->append_entries); return true;
    case RAFT_APPEND_ENTRIES_RESPONSE:
        m->append_entries_response.match_index = form.index;
        m->append_entries_response.match_term = form.index_term;
        m->append_entries_response.rejected_index = form.other;
        m->append_entries_response.round = form.round;
        m->append_entries_response.rejected = (form.flags & REJECTED) != 0;
        return true;
    case RAFT_INSTALL_SNAPSHOT:
        m->install_snapshot.last_included_index = form.index;
        m->install_snapshot.last_included_term = form.index_term;
        m->install_snapshot.offset = form.other;
        m->install_snapshot.file_size = form.entries_term;
        return true;
    case RAFT_INSTALL_SNAPSHOT_RESPONSE:
        m->install_snapshot_response.last_included_index = form.index;
        m->install_snapshot_response.next_offset = form.other;
        return true;
    case RAFT_TIMEOUT_NOW: return true;
    default: return false;
    }
}
