/* Whose data this is, and who may speak for a member.
 *
 * A data directory has a random id, made once, and an ensemble has one that its first leader makes.
 * The leader writes both into the configuration, so that all members know them: a server that has
 * only a member's number is refused, and so is a server of another ensemble.
 *
 * A directory that is blank may be new, or it may have been lost with what the member acknowledged.
 * So a server whose directory is blank has no vote until it has caught up with a leader.  There is
 * no leader yet where an ensemble is founded: there it has its vote when the directories of all
 * other voters are blank too, or when the operator says that they are (--found). */
#include <string.h>
#include <sys/random.h>

#include "base/logger.h"
#include "service/ensemble/codec.h"
#include "service/ensemble/core.h"
#include "service/ensemble/internal.h"

/* ---- At the start ---- */

static int refuse(const char *problem, uint64_t theirs, uint64_t ours) {
    logger_error(problem, LOGGER_UINT("of_the_data", theirs), LOGGER_UINT("of_this_server", ours));
    return ENSEMBLE_EXIT_FAILED;
}

static bool is_blank(const struct ensemble *e) { return !e->raft.last_index && !e->mend; }

static void explain_waiting(const struct ensemble *e) {
    if (is_blank(e) && e->vote.ensemble_id) {
        logger_warning(
            "the log of this server is gone, and only the file 'vote' is left, so it has "
            "no vote until it has caught up with a leader",
            LOGGER_STRING("path", e->settings->log_dir));
        return;
    }
    logger_info(!is_blank(e)
                    ? "this server has no vote until it has caught up with a leader, because "
                      "the end of its log was lost, or it began without data"
                : e->settings->join
                    ? "this server has no data; it waits to be added to the ensemble ('conclave "
                      "ensemble add')"
                    : "this server has no data, so it has no vote until it has caught up with a "
                      "leader, or until all other voters have said that they have no data either; "
                      "--found says so for those that do not run");
}

/* A snapshot that was restored, or came from another server, may be of a newer term than the vote.
 * The vote is raised before anything of that term is in the log: what a log has lost is not newer
 * than the vote.  So it stays as it is while the log is mended. */
int identity_raise_term(struct ensemble *e) {
    if (e->vote.term >= e->log_start_term || e->mend) return 0;
    e->vote.term = e->log_start_term;
    e->vote.voted_for = 0;
    if (!e->vote.directory_id || vote_write(&e->vote) == 0) return 0; /* 0: identity_open writes */
    logger_error("the vote cannot be made durable, so the server does not start",
                 LOGGER_UINT("term", e->vote.term), LOGGER_STRING("reason", e->vote.message));
    return -1;
}

int identity_open(struct ensemble *e, bool log_has_config) {
    struct vote *vote = &e->vote;
    struct member_list list = {0};
    struct raft_config config;
    char why[256];
    if (e->standalone) return 0;
    /* A configuration that is not committed may be replaced, and the ids in it with it. */
    struct zk_text committed = members_committed(e);
    if (committed.size)
        members_read(committed.at, (size_t)committed.size, &config, &list, why, sizeof why);
    if (vote->server_id && vote->server_id != e->raft.self)
        return refuse(
            "the data is another server's, so this server does not start; give it its own "
            "data directory, or correct --id",
            (uint64_t)member_number((int32_t)vote->server_id),
            (uint64_t)member_number(e->raft.self));
    if (vote->ensemble_id && list.ensemble && vote->ensemble_id != list.ensemble)
        return refuse("the log and the snapshots are of different ensembles, so this server does "
                      "not start; correct the data directories, or repeat 'conclave recover "
                      "--new-ensemble' if it was interrupted",
                      vote->ensemble_id, list.ensemble);
    /* A member has its vote before it has anything in its log.  Where a configuration is in the log
     * it may have voted, whether that configuration is known to be committed or not. */
    bool was_member = committed.size > 0 || log_has_config;
    if (was_member && !vote->directory_id) {
        logger_error(
            "the file 'vote' is missing beside the log, so this server no longer knows its "
            "vote and does not start; bring the file back, or remove the server and add it "
            "again with an empty directory ('conclave ensemble remove', 'add')",
            LOGGER_STRING("path", e->settings->log_dir));
        return ENSEMBLE_EXIT_FAILED;
    }
    if (e->settings->join && e->raft.last_index && !e->raft.config.count) {
        logger_error("the data was written by a server alone, so this server does not join: it "
                     "would keep entries that no other member has; give it an empty directory",
                     LOGGER_STRING("path", e->settings->data_dir));
        return ENSEMBLE_EXIT_FAILED;
    }
    /* One that knows its ensemble had a log. */
    e->began_blank = is_blank(e);
    if (is_blank(e) && (!vote->directory_id || vote->ensemble_id)) e->raft.vote_withheld = 1;
    if (e->raft.vote_withheld) explain_waiting(e);
    bool changed = !vote->directory_id || !vote->server_id ||
                   (list.ensemble && !vote->ensemble_id) || vote->withheld != e->raft.vote_withheld;
    vote->server_id = e->raft.self;
    vote->withheld = e->raft.vote_withheld;
    if (list.ensemble) vote->ensemble_id = list.ensemble;
    if (!changed || vote_write(vote) == 0) return 0;
    logger_error("the identity of the data cannot be made durable, so the server does not start",
                 LOGGER_STRING("reason", vote->message));
    return ENSEMBLE_EXIT_FAILED;
}

uint64_t identity_incarnation(const struct ensemble *e) {
    return (uint64_t)identity_of(e->vote.directory_id) << 32 | (uint32_t)(e->incarnation >> 8);
}

/* ---- Hellos ---- */

bool identity_is_expected(void *owner, uint64_t id, uint64_t ensemble, uint32_t directory) {
    struct ensemble *e = owner;
    struct member_list list;
    if (!id || id > MEMBER_ID_MAX) return false;
    ensemble_members(e, &list);
    const struct member *member = member_list_find(&list, (int32_t)id);
    /* One that names the ensemble has its data: this server may not have heard yet that it was
     * added anew. */
    struct peer_state *peer = &e->peer[id];
    bool has_data = ensemble && ensemble == e->vote.ensemble_id;
    bool differs = member && member->directory && directory && member->directory != directory;
    if (differs && (!has_data || peer->refused == directory)) return false;
    if (peer->directory != directory) peer->named_index = 0;
    if (peer->refused == directory) peer->refused = 0;
    peer->directory = directory;
    peer->ensemble = ensemble;
    peer->seen_us = e->clock->monotonic_us;
    peer->doubted = differs && peer->named_index < e->raft.config_index;
    return true;
}

/* ---- Founding ---- */

static bool is_only_voter(const struct ensemble *e) {
    int slot = raft_member_slot(&e->raft.config, e->raft.self);
    return slot >= 0 && raft_is_quorum(&e->raft.config, 1u << slot);
}

bool identity_is_founding(const struct ensemble *e) {
    return is_blank(e) && e->raft.vote_withheld && e->raft.config.count && !e->raft.leader &&
           !e->vote.ensemble_id;
}

void identity_gone(struct ensemble *e, uint8_t id) {
    e->peer[id].introduced = false;
    e->peer[id].seen_us = e->clock->monotonic_us;
}

/* A server that the configuration does not name is of a former ensemble, and counts while it runs:
 * one that runs dials again at least every second.  But for a voter that is alone in its list, the
 * others may be the members of a larger ensemble, and may only be starting again. */
static bool knows_data_of(const struct ensemble *e, uint8_t id) {
    enum { GONE_US = 10000000 };
    const struct peer_state *peer = &e->peer[id];
    bool lasts = raft_find_member(&e->raft.config, id) || (is_only_voter(e) && !e->settings->found);
    bool is_here = peer->introduced || e->clock->monotonic_us - peer->seen_us < GONE_US;
    return peer->ensemble && (lasts || is_here);
}

uint8_t identity_knows_data(const struct ensemble *e) {
    for (unsigned id = 1; id <= MEMBER_ID_MAX; id++)
        if (knows_data_of(e, (uint8_t)id)) return (uint8_t)id;
    return 0;
}

/* The voters that have not said yet that they have no data. */
uint32_t identity_awaited(const struct ensemble *e) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < e->raft.config.count; i++) {
        const struct raft_member *member = &e->raft.config.at[i];
        if (member->id != e->raft.self && member->weight && !e->peer[member->id].blank)
            set |= 1u << i;
    }
    return set;
}

/* Once all have been blank since this server has started, whatever they have got by now: had this
 * server acknowledged anything before, then another one would have it.  A server that is to join
 * has no configuration yet; while it replays the log it passes those in which a former server of
 * its id had a vote.  An only voter may have become a member of a larger ensemble and lost its
 * data, and an operator who says --found may not know what is left: the others get the time to say
 * so.  With --found it may have got entries by then, from a leader of a version that says nothing.
 */
void identity_found(struct ensemble *e) {
    enum { OTHERS_US = 1000000 }; /* longer than servers take to dial again */
    struct raft_out out = {.persist_vote = true};
    bool told = e->settings->found && e->began_blank, waits = told || is_only_voter(e);
    if (!e->raft.vote_withheld || !e->raft.config.count || e->vote.ensemble_id) return;
    if (!is_blank(e) && !told) return;
    if (waits && e->clock->monotonic_us - e->leaderless_us < OTHERS_US) return;
    if (identity_knows_data(e) || (identity_awaited(e) && !told)) return;
    logger_info("no voter has any data, so this server takes part in founding the ensemble");
    core_may_vote(e);
    ensemble_perform(e, &out, NULL);
}

/* ---- Introductions ---- */

/* What is applied here, if that names this server's directory. */
static uint64_t named_index(const struct ensemble *e) {
    struct raft_config config;
    struct member_list list;
    char why[256];
    struct zk_text text = members_committed(e);
    if (!text.size || !members_read(text.at, (size_t)text.size, &config, &list, why, sizeof why))
        return 0;
    const struct member *self = member_list_find(&list, e->raft.self);
    bool is_named = self && self->directory == identity_of(e->vote.directory_id);
    return is_named ? e->applied_index : 0;
}

void identity_introduce(struct ensemble *e, uint8_t to) {
    const struct member *self = member_list_find(&e->settings->members, e->raft.self);
    uint16_t version;
    if (link_version(e->links, to) < IDENTITY_VERSION || !self) return;
    struct bytes *out = peers_begin(e, to, FRAME_TYPE_introduction, LINK_URGENT, &version);
    if (!out) return;
    codec_write_introduction(out, version,
                             &(struct frame_introduction){.port = (uint32_t)self->peer_port,
                                                          .blank = is_blank(e),
                                                          .named_index = named_index(e)});
    bytes_add(out, self->host, strlen(self->host));
    peers_end(e, to);
}

/* A server that the configuration does not name may be a member all the same: the configuration
 * that this server has got to may be an old one.  It is answered if it proves to be of the
 * ensemble: by the key or certificate of the link, or by the id of the ensemble; or if the operator
 * names it. */
static bool is_of_the_ensemble(const struct ensemble *e, uint8_t id) {
    return e->tls || member_list_find(&e->settings->members, id) ||
           (e->vote.ensemble_id && e->peer[id].ensemble == e->vote.ensemble_id);
}

/* A server that came with another directory than the configuration has for it is believed if it has
 * applied what brought that, and is named by something later.  If it has not, it has what the
 * member had before it was added anew, and may lack what was acknowledged since. */
static void review(struct ensemble *e, uint8_t id, const struct member *member) {
    struct peer_state *peer = &e->peer[id];
    bool differs = member && member->directory && member->directory != peer->directory;
    if (!peer->directory || peer->refused == peer->directory) return;
    peer->doubted = differs && peer->named_index < e->raft.config_index;
    bool may_change = e->raft.config_index > e->applied_index;
    if (!peer->doubted || !peer->named_index || may_change) return;
    logger_warning("a server has come with the data directory that the member had before it was "
                   "removed and added again, so it is refused; start it with the directory that it "
                   "has had since, or remove it and add it again",
                   LOGGER_INT("peer", member_number(id)));
    peer->refused = peer->directory;
    peers_refuse(e, id);
}

void identity_review(struct ensemble *e) {
    struct member_list list;
    ensemble_members(e, &list);
    for (uint32_t id = 1; id <= MEMBER_ID_MAX; id++)
        review(e, (uint8_t)id, member_list_find(&list, (int32_t)id));
}

bool identity_introduced(struct ensemble *e, uint8_t from, uint16_t version,
                         const struct frame_introduction *frame, struct zk_text host) {
    struct peer_state *peer = &e->peer[from];
    char name[SETTINGS_HOST_MAX];
    if (!frame->port || frame->port > UINT16_MAX || host.size <= 0 ||
        (size_t)host.size >= sizeof name || memchr(host.at, 0, (size_t)host.size))
        return false;
    memcpy(name, host.at, (size_t)host.size);
    name[host.size] = 0;
    peer->named_index = version >= CODEC_VERSION_PROOF ? frame->named_index : UINT64_MAX;
    if (peer->doubted) identity_review(e);
    if (peer->doubted) return true;
    peer->introduced = true;
    peer->blank |= frame->blank != 0;
    identity_found(e);
    if (!is_of_the_ensemble(e, from)) return true;
    if (peer->linked) { /* it may have moved, as this server has not heard yet */
        links_learn(e->links, from, name, (int32_t)frame->port);
        return true;
    }
    const char *problem = links_set(e->links, from, name, (int32_t)frame->port);
    peer->guest = !problem;
    if (problem)
        logger_warning("a server that the configuration does not name cannot be answered",
                       LOGGER_INT("peer", member_number(from)), LOGGER_STRING("host", name),
                       LOGGER_STRING("reason", problem));
    return true;
}

/* ---- Data that was put back ---- */

void identity_restarted(struct ensemble *e, uint8_t id) {
    const struct raft_peer *peer = raft_find_peer(&e->raft, id);
    if (peer && ensemble_leads(e) && peer->match_index > e->peer[id].acknowledged)
        e->peer[id].acknowledged = peer->match_index;
}

/* An older copy of a member's own directory cannot be told from that, except by who leads and has
 * its acknowledgements.  A member that knows of its loss has no vote. */
void identity_answered(struct ensemble *e, const struct raft_message *m) {
    const struct raft_append_entries_response *response = &m->append_entries_response;
    uint64_t *acknowledged = &e->peer[m->from].acknowledged;
    if (!*acknowledged || m->term != e->raft.term) return;
    if (response->rejected && !response->vote_withheld && response->match_index < *acknowledged)
        logger_warning("a member has lost entries that it had acknowledged, and gets them again; "
                       "was an older copy of its data put back?  If the other members that have "
                       "them fail before, they are lost",
                       LOGGER_INT("peer", member_number(m->from)),
                       LOGGER_UINT("acknowledged_index", *acknowledged),
                       LOGGER_UINT("index", response->match_index));
    *acknowledged = 0;
}

/* ---- The configuration ---- */

/* Members that doubt this server's directory hear that it is named. */
static void introduce_again(struct ensemble *e) {
    bool was_named = e->is_named;
    e->is_named = named_index(e) != 0;
    for (unsigned id = 1; !was_named && e->is_named && e->links && id <= MEMBER_ID_MAX; id++)
        if (e->peer[id].up) identity_introduce(e, (uint8_t)id);
}

void identity_committed(struct ensemble *e, struct zk_text text) {
    struct raft_config config;
    struct member_list list;
    char why[256];
    if (!members_read(text.at, (size_t)text.size, &config, &list, why, sizeof why)) return;
    introduce_again(e);
    identity_review(e);
    if (!list.ensemble || list.ensemble == e->vote.ensemble_id) return;
    e->vote.ensemble_id = list.ensemble;
    ensemble_perform(e, &(struct raft_out){.persist_vote = true}, NULL);
    if (!e->links) return;
    links_set_ensemble(e->links, list.ensemble);
    peers_end_unanswered(e);
    /* A server that joins may come to lead members whose list does not name it.  The hellos that
     * they have from it are without the id. */
    if (e->settings->join) peers_redial(e);
}

/* A vote that names the ensemble proves that there was a log. */
void identity_advance(struct ensemble *e) {
    if (e->settings->found) identity_found(e);
    if (!e->identity_index || e->raft.durable_index < e->identity_index) return;
    e->identity_index = 0;
    identity_committed(e, members_committed(e));
}

/* Servers of an older version cannot read the ids, so the first are written when no member has an
 * older one. */
static bool may_record(const struct ensemble *e, const struct member_list *list) {
    for (unsigned i = 0; i < list->count && !list->ensemble; i++) {
        uint8_t id = (uint8_t)list->at[i].id;
        if (id != e->raft.self && link_version(e->links, id) < IDENTITY_VERSION) return false;
    }
    return true;
}

/* A leader that has joined may not know what all others do. */
static uint64_t known_ensemble(const struct ensemble *e) {
    uint64_t known = e->vote.ensemble_id;
    for (uint32_t id = 1; id <= MEMBER_ID_MAX && !known; id++)
        if (e->peer[id].linked) known = e->peer[id].ensemble;
    return known;
}

static bool add_ids(struct ensemble *e, struct member_list *list) {
    bool added = false;
    for (unsigned i = 0; i < list->count; i++) {
        struct member *member = &list->at[i];
        uint32_t directory = member->id == e->raft.self ? identity_of(e->vote.directory_id)
                                                        : e->peer[member->id].directory;
        bool here = member->id == e->raft.self || e->peer[member->id].up;
        if (member->directory || !directory || !here) continue;
        member->directory = directory;
        added = true;
    }
    if (!list->ensemble) added |= (list->ensemble = known_ensemble(e)) != 0;
    while (!list->ensemble &&
           getrandom(&list->ensemble, sizeof list->ensemble, 0) == sizeof list->ensemble)
        added = true;
    return added;
}

static bool names_all_ids(const struct member_list *list) {
    bool all = list->ensemble != 0;
    for (unsigned i = 0; i < list->count; i++) all &= list->at[i].directory != 0;
    return all;
}

/* Asked in every iteration of the loop, so that a complete configuration is not read again. */
bool identity_is_complete(const struct ensemble *e) {
    return e->members.text.used && e->complete_hash == e->members.hash;
}

bool identity_record(struct ensemble *e, struct bytes *text) {
    struct member_list list;
    ensemble_members(e, &list);
    if (names_all_ids(&list)) e->complete_hash = e->members.hash;
    if (!e->links || !may_record(e, &list) || !add_ids(e, &list)) return false;
    member_list_write(&list, text);
    return true;
}
