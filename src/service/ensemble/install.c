/* InstallSnapshot, the receiver's side: chunks are collected in a file, which is then loaded.
 * catch_up_snapshot.c is the sender's. */
#include "service/ensemble/core.h"
#include "service/ensemble/internal.h"
#include "service/ensemble/repeated.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/logger.h"
#include "service/log/transfer.h"
#include "service/store/data.h"

/* A file that has arrived is decoded by a thread, into a tree of its own: on the loop it would keep
 * everything else waiting, and cost leadership.  Where there is no memory for two trees, the thread
 * only reads the file, and it is loaded in place of the tree that is there. */
enum { TREE_PER_BYTE = 2 }; /* bytes of a tree in memory, about, per byte that it is decoded from */

struct loading {
    uv_work_t work;
    struct ensemble *ensemble;
    struct receiving from;
    struct tree tree;  /* only if it is ... */
    bool aside;        /* ... built beside the server's */
    size_t room, used; /* bytes that may be decoded for that; that were */
    uint64_t term;
    const char *why; /* it cannot be loaded; NULL: it can */
    int status;
    bool decoding, decoded; /* decoding: the thread has all of this but these */
    atomic_bool abandoned;  /* the server ends */
};

struct install {
    struct receiving from;
    bool receiving;
    struct loading loading;
    struct repeated complaint;
};

static struct install *install_of(struct ensemble *e) {
    if (!e->install) e->install = calloc(1, sizeof *e->install);
    cv_assert(e->install);
    return e->install;
}

static void drop_loading(struct loading *l) {
    if (!l->decoded) return;
    l->decoded = false;
    receiving_close(&l->from);
    if (l->aside) tree_close(&l->tree);
}

void install_close(struct ensemble *e) {
    struct install *install = e->install;
    if (install && install->receiving) receiving_close(&install->from);
    if (install) drop_loading(&install->loading);
    free(install);
    e->install = NULL;
}

/* What was proposed here may be in the snapshot; nobody waits for it any more. */
static void forget_proposals(struct ensemble *e) {
    const struct tree_proposer *own = &e->tree->proposer[tree_server_of(e->incarnation)];
    uint64_t last = outbox_last(&e->outbox); /* a leader may have made more up */
    if (own->incarnation != e->incarnation) return;
    if (own->sequence < last) last = own->sequence;
    if (last > outbox_applied(&e->outbox)) outbox_remove(&e->outbox, last);
}

struct discarded {
    uv_work_t work;
    struct tree tree;
};

static void free_tree(uv_work_t *work) { tree_close(&((struct discarded *)work->data)->tree); }

static void tree_freed(uv_work_t *work, int status) {
    (void)status;
    free(work->data);
}

/* A large tree takes its time: a thread frees it. */
static void discard_tree(struct ensemble *e, const struct tree *tree) {
    struct discarded *old = calloc(1, sizeof *old);
    cv_assert(old);
    old->tree = *tree;
    old->work.data = old;
    uv_queue_work(e->loop, &old->work, free_tree, tree_freed);
}

static void discard_loaded(struct ensemble *e, struct loading *l) {
    if (l->aside) discard_tree(e, &l->tree);
    receiving_close(&l->from);
}

static void load_in_place(struct ensemble *e, uint64_t index) {
    struct snapshots found;
    uint64_t term;
    logger_info("there is no memory for two trees, so nobody is served while the snapshot of the "
                "leader is loaded",
                LOGGER_UINT("snapshot_index", index));
    data_clear(e->tree);
    if (snapshots_list(&found, e->disk.data_directory, e->settings->data_dir) == 0 &&
        data_load(e->tree, &found, index, &term) == 0)
        return;
    logger_error("the snapshot of the leader cannot be loaded, so the server stops; start it again",
                 LOGGER_STRING("reason", found.message));
    _exit(ENSEMBLE_EXIT_FAILED);
}

/* The tree becomes that of the snapshot, and the log what comes after it. */
static void install(struct ensemble *e, struct loading *l) {
    struct raft_config config;
    struct raft_out out = {0};
    uint64_t index = l->from.index, term = l->term;
    bool in_log = index <= window_last(&e->log) && index >= e->raft.snapshot_index &&
                  raft_term_at(&e->raft, index) == term;
    bool on_disk = in_log && e->raft.durable_index >= index;
    if (l->aside) {
        l->tree.rules = e->tree->rules;
        discard_tree(e, e->tree);
        *e->tree = l->tree;
    } else {
        load_in_place(e, index);
    }
    if (!members_adopt_committed(e, &config)) {
        logger_error("the snapshot that the leader sent has no members, so the server stops",
                     LOGGER_UINT("snapshot_index", index));
        _exit(ENSEMBLE_EXIT_FAILED);
    }
    e->first_members_index = 0;
    bool installed = core_snapshot_installed(e, index, term, &config, &out);
    cv_assert(installed);
    if (in_log)
        window_trim(&e->log, index);
    else
        window_reset(&e->log, index);
    if (!on_disk) log_reset(&e->disk.log, index, term);
    e->applied_index = e->snapshotting.last_index = index;
    e->snapshotting.last_zxid = e->tree->zxid;
    e->applied_term = term;
    e->unfinished = false;
    forget_proposals(e);
    e->callbacks->snapshot_installed(e->owner);
    identity_committed(e, members_committed(e));
    peers_update(e);
    e->statistics.snapshots_installed++;
    logger_info("a snapshot of the leader was installed", LOGGER_UINT("snapshot_index", index),
                LOGGER_UINT("term", term), LOGGER_UINT("nodes", e->tree->nodes));
    ensemble_perform(e, &out, NULL);
}

/* ---- Loading ---- */

static int read_for_tree(void *context, void *bytes, size_t size) {
    struct loading *l = ((void **)context)[0];
    l->used += size;
    if (atomic_load(&l->abandoned) || l->used > l->room) return -1;
    return snapshot_read(((void **)context)[1], bytes, size);
}

static int decode(void *context, struct snapshot_reader *reader) {
    struct loading *l = context;
    void *both[] = {l, reader};
    unsigned char part[4096];
    if (tree_load(&l->tree, read_for_tree, both, &l->why) == 0) return 0;
    if (l->used <= l->room) return -1;
    tree_close(&l->tree);
    l->aside = false; /* the checksum at its end says whether it is whole */
    while (!atomic_load(&l->abandoned) && snapshot_read(reader, part, sizeof part) == 0) continue;
    return 0;
}

static void load(uv_work_t *work) {
    struct loading *l = work->data;
    l->status = receiving_check(&l->from, &l->term, decode, l);
}

static void complain(struct ensemble *e, const struct receiving *from) {
    if (!repeated_is_due(&e->install->complaint, e->clock->monotonic_us, from->message)) return;
    logger_error("a snapshot of the leader cannot be received; it is sent again",
                 LOGGER_UINT("snapshot_index", from->index),
                 LOGGER_STRING("reason", from->message));
}

/* One that is loaded in place is seen when it is. */
static bool has_members(struct loading *l) {
    struct raft_config config;
    struct member_list list;
    char why[256];
    struct zk_text text = l->aside ? tree_members_text(&l->tree) : (struct zk_text){0};
    bool has = !l->aside || (text.size && members_read(text.at, (size_t)text.size, &config, &list,
                                                       why, sizeof why));
    if (!has) snprintf(l->from.message, sizeof l->from.message, "it names no members");
    return has;
}

/* Entries may have come from elsewhere meanwhile: then the snapshot is not needed any more. */
void install_advance(struct ensemble *e) {
    struct loading *l = e->install ? &e->install->loading : NULL;
    if (!l || !l->decoded || e->disk.writing) return;
    enum busy_kind before = busy_with(e->busy, BUSY_INSTALL);
    bool sound = l->from.index <= RAFT_INDEX_MAX && l->term && l->term <= e->raft.term;
    bool needed = sound && l->from.index > e->raft.commit_index && !ensemble_leads(e);
    if (!needed) {
        discard_loaded(e, l);
    } else if (has_members(l) && receiving_end(&l->from) == 0) {
        install(e, l);
    } else {
        complain(e, &l->from);
        discard_loaded(e, l);
    }
    l->decoded = false;
    busy_with(e->busy, before);
}

static void loaded(uv_work_t *work, int status) {
    struct loading *l = work->data;
    struct ensemble *e = l->ensemble;
    (void)status;
    l->decoding = false;
    if (l->status == 0) {
        l->decoded = true;
        if (!e->draining) ensemble_wake(e);
        return;
    }
    if (!e->draining) complain(e, &l->from);
    if (l->aside) tree_close(&l->tree);
    receiving_close(&l->from);
}

static void begin_loading(struct ensemble *e, const struct receiving *from) {
    struct loading *l = &e->install->loading;
    *l = (struct loading){.ensemble = e,
                          .from = *from,
                          .room = e->memory_max / TREE_PER_BYTE,
                          .aside = true,
                          .decoding = true};
    int status = tree_open(&l->tree, e->tree->seed);
    cv_assert(status == 0);
    l->work.data = l;
    uv_queue_work(e->loop, &l->work, load, loaded);
}

void install_abandon(struct ensemble *e) {
    if (e->install) atomic_store(&e->install->loading.abandoned, true);
}

static void answer_chunk(struct ensemble *e, uint8_t to, uint64_t index, uint64_t next_offset) {
    struct raft_message m = {
        .type = RAFT_INSTALL_SNAPSHOT_RESPONSE,
        .from = e->raft.self,
        .to = to,
        .term = e->raft.term,
        .install_snapshot_response = {.last_included_index = index, .next_offset = next_offset}};
    peers_send(e, &m, NULL, 0);
}

static void receive_chunk(struct ensemble *e, const struct raft_message *m, struct zk_in bytes) {
    const struct raft_install_snapshot *chunk = &m->install_snapshot;
    struct install *install = install_of(e);
    struct loading *loading = &install->loading;
    struct receiving *from = &install->from;
    if (loading->decoding || loading->decoded) { /* another one waits until it is installed */
        if (loading->from.index == chunk->last_included_index &&
            loading->from.size == chunk->file_size)
            answer_chunk(e, m->from, loading->from.index, loading->from.size);
        return;
    }
    bool same = install->receiving && from->index == chunk->last_included_index &&
                from->size == chunk->file_size;
    if (!same) {
        if (install->receiving) receiving_close(from);
        install->receiving = receiving_open(from, e->disk.data_directory, e->settings->data_dir,
                                            chunk->last_included_index, chunk->file_size) == 0;
    }
    if (!install->receiving ||
        receiving_add(from, chunk->offset, bytes.at, zk_left(&bytes)) == RECEIVING_FAILED) {
        complain(e, from); /* without an answer it is sent again, but not at once */
        return;
    }
    answer_chunk(e, m->from, from->index, from->offset);
    if (from->offset < from->size) return;
    install->receiving = false;
    begin_loading(e, from);
}

void install_receive(struct ensemble *e, const struct raft_message *m, struct zk_in chunk) {
    enum busy_kind before = busy_with(e->busy, BUSY_INSTALL);
    if (m->type == RAFT_INSTALL_SNAPSHOT_RESPONSE)
        catch_up_chunk_answered(e, m);
    else
        receive_chunk(e, m, chunk);
    busy_with(e->busy, before);
}
