#include "service/store/new_ensemble.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "service/log/log.h"
#include "service/log/vote.h"
#include "service/settings/member_list.h"
#include "service/store/data.h"

enum { TERMS_SKIPPED = 1000, FOLDER_SIZE = 64 };

struct making {
    struct new_ensemble *of;
    int directory, log_directory;
    struct data data;
    struct vote vote;
    struct member self;
    struct bytes members; /* the new ones, as text */
    char folder[FOLDER_SIZE];
};

__attribute__((format(printf, 2, 3))) static int fail(struct making *m, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(m->of->message, sizeof m->of->message, format, arguments);
    va_end(arguments);
    return -1;
}

static int lock(struct making *m, const char *path) {
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        fail(m, "%s: %s", path, strerror(errno));
    } else if (flock(directory, LOCK_EX | LOCK_NB) != 0) {
        fail(m, "%s: a server is using it; stop the server first", path);
        close(directory);
        return -1;
    }
    return directory;
}

/* ---- Whose data it is ---- */

static int choose_self(struct making *m, const struct member_list *before) {
    char why[256];
    struct member_list given = {0};
    if (m->of->member) {
        m->of->member_is_wrong = true;
        if (!member_list_parse_short(&given, m->of->member, why, sizeof why) || given.count != 1)
            return fail(m, "'%s' is not N=HOST:PORT", m->of->member);
        if (m->vote.server_id && m->vote.server_id != (uint64_t)given.at[0].id)
            return fail(m, "the data is that of server %d, not of server %d",
                        member_number((int32_t)m->vote.server_id), member_number(given.at[0].id));
        m->of->member_is_wrong = false;
        m->self = given.at[0];
    } else {
        const struct member *known = member_list_find(before, (int32_t)m->vote.server_id);
        if (!m->vote.server_id || !known)
            return fail(m, "the data does not say which member it is of; name the server and the "
                           "address at which others reach it with --member N=HOST:PORT");
        m->self = *known;
    }
    m->self.observer = false;
    m->self.weight = 1;
    m->self.group = 0;
    m->self.directory = 0; /* the new one is written into the configuration by the leader */
    return 0;
}

static int read_all(struct making *m) {
    char why[256];
    struct member_list before = {0}, after = {0};
    if (vote_read(&m->vote, m->log_directory, m->of->log_directory) != 0)
        return fail(m, "%s", m->vote.message);
    if (data_read_all(&m->data, m->of->directory, m->of->log_directory) != 0)
        return fail(m, "%s", m->data.message);
    struct zk_text text = tree_members_text(&m->data.tree);
    if (!text.size || !member_list_parse(&before, text.at, (size_t)text.size, why, sizeof why))
        return fail(m, "%s: this is the data of a server alone; it needs no others, start it",
                    m->of->directory);
    if (choose_self(m, &before) != 0) return -1;
    member_list_put(&after, &m->self);
    member_list_write(&after, &m->members);
    fprintf(m->of->out, "server %d, a member of", member_number(m->self.id));
    for (unsigned i = 0; i < before.count; i++)
        fprintf(m->of->out, "%s %d", i ? "," : "", member_number(before.at[i].id));
    fprintf(m->of->out, ": log up to entry %" PRIu64 " of term %" PRIu64 ", %u nodes\n",
            m->data.index, m->data.term, m->data.tree.nodes);
    return 0;
}

static void print_loss(const struct making *m) {
    const struct data *data = &m->data;
    FILE *out = m->of->out;
    fprintf(out, "lost: whatever the other servers acknowledged after entry %" PRIu64 "\n",
            data->index);
    if (data->known_index < data->index)
        fprintf(
            out,
            "kept, although this server does not know that they were committed: entries %" PRIu64
            " to %" PRIu64 ";\nclients may have been told nothing of them, or that they failed\n",
            data->known_index + 1, data->index);
}

/* ---- Doing it ---- */

/* The old files, which the new ones replace: renamed into the folder. */
static int set_aside(struct making *m, int directory, const char *path, const char *kept) {
    static const char *const prefixes[] = {"log.", "snapshot.", MARK_NAME};
    int folder = openat(directory, m->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), status = 0;
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    if (folder < 0 || !listing) status = fail(m, "%s: %s", path, strerror(errno));
    for (struct dirent *found; listing && status == 0 && (found = readdir(listing));) {
        bool old = false;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            old |= strncmp(found->d_name, prefixes[i], strlen(prefixes[i])) == 0;
        if (!old || strcmp(found->d_name, kept) == 0) continue;
        if (renameat(directory, found->d_name, folder, found->d_name) != 0)
            status = fail(m, "%s/%s: cannot be renamed: %s", path, found->d_name, strerror(errno));
        else
            fprintf(m->of->out, "%s: moved to %s\n", found->d_name, m->folder);
    }
    if (status == 0 && (fsync(folder) != 0 || fsync(directory) != 0))
        status = fail(m, "%s: %s", path, strerror(errno));
    if (listing) closedir(listing);
    if (folder >= 0) close(folder);
    return status;
}

static int make_folder(struct making *m, int directory, const char *path) {
    if (mkdirat(directory, m->folder, 0750) != 0 && errno != EEXIST)
        return fail(m, "%s/%s: %s", path, m->folder, strerror(errno));
    return 0;
}

/* First the identity: from then on no former member has to do with this data any more. */
static int change_identity(struct making *m) {
    char kept[FOLDER_SIZE + sizeof VOTE_NAME + 1];
    snprintf(kept, sizeof kept, "%s/" VOTE_NAME, m->folder);
    if (linkat(m->log_directory, VOTE_NAME, m->log_directory, kept, 0) != 0 && errno != ENOENT)
        return fail(m, "%s/%s: %s", m->of->log_directory, kept, strerror(errno));
    struct vote *vote = &m->vote;
    vote->term = (vote->term > m->data.term ? vote->term : m->data.term) + TERMS_SKIPPED;
    vote->server_id = (uint64_t)m->self.id;
    vote->voted_for = vote->directory_id = vote->ensemble_id = 0;
    vote->withheld = false;
    while (!vote->ensemble_id)
        if (getrandom(&vote->ensemble_id, sizeof vote->ensemble_id, 0) < 0)
            return fail(m, "no random number for the id of the ensemble: %s", strerror(errno));
    if (vote_write(vote) != 0) return fail(m, "%s", vote->message);
    fprintf(m->of->out, VOTE_NAME ": a new identity; the old one is in %s\n", m->folder);
    return 0;
}

static int write_snapshot(struct making *m, char name[SNAPSHOT_NAME_SIZE]) {
    struct data *data = &m->data;
    struct snapshots into = {.directory = m->directory, .path = m->of->directory};
    struct tree_members members = {.time = (int64_t)time(NULL) * 1000,
                                   .text = {(const char *)m->members.at, (int32_t)m->members.used}};
    data->index++;
    data->term = m->vote.term;
    data->tree.target.used = 0;
    tree_configure(&data->tree, tree_next_zxid(&data->tree, data->term), &members);
    struct snapshot_writer *writer = snapshot_begin(&into, data->index, data->term);
    int status = writer ? tree_save(&data->tree, snapshot_write, writer) : -1;
    if (writer && snapshot_end(writer, status == 0) != 0) status = -1;
    if (status != 0) return fail(m, "%s", into.message);
    fprintf(m->of->out, "%s: all data, with server %d as the only member\n",
            snapshot_name(name, data->index), member_number(m->self.id));
    return 0;
}

static int make(struct making *m) {
    struct new_ensemble *of = m->of;
    char snapshot[SNAPSHOT_NAME_SIZE];
    int32_t number = member_number(m->self.id);
    time_t now = time(NULL);
    struct tm when;
    strftime(m->folder, sizeof m->folder, "old-ensemble.%Y%m%dT%H%M%SZ", gmtime_r(&now, &when));
    if (make_folder(m, m->directory, of->directory) != 0 ||
        make_folder(m, m->log_directory, of->log_directory) != 0 || change_identity(m) != 0 ||
        write_snapshot(m, snapshot) != 0 ||
        set_aside(m, m->directory, of->directory, snapshot) != 0)
        return -1;
    if (m->log_directory != m->directory &&
        set_aside(m, m->log_directory, of->log_directory, "") != 0)
        return -1;
    fprintf(
        of->out,
        "done: server %d is an ensemble of one.  Start it with --id %d --ensemble %d=%s:%d, and "
        "add others, with\nempty directories and --join ('conclave ensemble add')\n",
        number, number, number, m->self.host, m->self.peer_port);
    return 0;
}

static int make_locked(struct making *m) {
    if (data_open(&m->data) != 0) return fail(m, "%s", m->data.message);
    int status = read_all(m);
    if (status == 0) print_loss(m);
    if (status == 0 && m->of->accept_loss) status = make(m);
    if (status == 0 && !m->of->accept_loss)
        fputs("nothing was changed.  Be sure that the other servers are gone for good, or this one "
              "and they become\ntwo ensembles; then repeat the command with --accept-loss\n",
              m->of->out);
    data_close(&m->data);
    bytes_close(&m->members);
    return status;
}

int new_ensemble_make(struct new_ensemble *of) {
    struct making m = {.of = of, .log_directory = -1};
    int status = -1;
    bool same = !of->log_directory;
    if (same) of->log_directory = of->directory;
    m.directory = lock(&m, of->directory);
    if (m.directory >= 0) m.log_directory = same ? m.directory : lock(&m, of->log_directory);
    if (m.log_directory >= 0) status = make_locked(&m);
    if (m.log_directory >= 0 && !same) close(m.log_directory);
    if (m.directory >= 0) close(m.directory);
    return status;
}
