/* conclave restore: puts a backup into a new data directory, or into a running server. */
#include <inttypes.h>

#include "cli/restore.h"
#include "service/store/data.h"

enum { KEY_DATA = 256, KEY_DRY_RUN };

static const struct argp_option options[] = {
    {"data", KEY_DATA, "NEWDIR", 0, "Make this data directory, which must be new or empty", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0,
     "With a server: show what would be changed, and change nothing", 0},
    {0}};

static const char doc[] =
    "Restores a backup that 'conclave backup' has written.\v"
    "With --data everything is as it was: nodes with their versions, sessions, the last zxid.  "
    "'conclave serve --data NEWDIR' starts from it.  If it was the data of a member of an "
    "ensemble, "
    "NEWDIR is the data of a server alone: start it as the only member of --ensemble and add "
    "others.\n\n"
    "With --server or --context the nodes of a running server, this one or ZooKeeper, are made "
    "equal to those "
    "in the backup: missing ones are created, others written or deleted, ACLs set.  Its clients "
    "stay connected and see each change.  Changes are made in batches, each as a whole, but not "
    "all at once.  Nodes below /zookeeper (quotas) and ephemeral nodes are left alone, and "
    "versions "
    "and times are the server's own.  Where nodes are protected, the super user may do "
    "everything.\n\n" REMOTE_EXIT_STATUS "\nExamples:\n"
    "  conclave restore /backup/conclave.snapshot --data /var/lib/conclave\n"
    "  conclave restore today.snapshot --server 127.0.0.1:2181 --dry-run\n";

struct request {
    struct remote remote;
    const char *file, *data;
    bool dry_run;
};

/* That of the environment is not meant without being named: its tree would be changed. */
static bool names_server(const struct request *request) {
    return request->remote.settings[REMOTE_SERVER] || request->remote.context;
}

static int check(const struct request *request) {
    if (!request->file) return remote_usage("give the FILE of the backup");
    if (!request->data == !names_server(request))
        return remote_usage("either --data (a directory for a server that is stopped) or a server "
                            "(--server, --context)");
    if (request->dry_run && request->data) return remote_usage("dry-run: only with a server");
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &request->remote; return 0;
    case KEY_DATA: request->data = text; return 0;
    case KEY_DRY_RUN: request->dry_run = true; return 0;
    case ARGP_KEY_ARG:
        if (request->file) return remote_usage("one file at a time, not '%s' as well", text);
        request->file = text;
        return 0;
    case ARGP_KEY_END: return check(request);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int restore_server(struct request *request, struct data *data) {
    struct restore restore = {.tree = &data->tree,
                              .remote = &request->remote,
                              .dry_run = request->dry_run,
                              .progress = progress_bar()};
    int status = remote_connect(&request->remote);
    if (status) return status;
    status = restore_run(&restore);
    if (request->remote.json)
        remote_json_line(json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "created",
                                   (json_int_t)restore.created, "written",
                                   (json_int_t)restore.written, "acls", (json_int_t)restore.acls,
                                   "deleted", (json_int_t)restore.deleted, "kept",
                                   (json_int_t)restore.kept, "dry_run", request->dry_run));
    else
        printf("%s%" PRIu64 " created, %" PRIu64 " written, %" PRIu64 " ACLs set, %" PRIu64
               " deleted, %" PRIu64 " kept for open sessions\n",
               request->dry_run ? "would be: " : "", restore.created, restore.written, restore.acls,
               restore.deleted, restore.kept);
    return status;
}

static int restore_directory(struct request *request, struct data *data) {
    bool of_member = tree_members_text(&data->tree).size > 0;
    if (of_member) /* the ensemble goes on without these, or is gone */
        tree_forget_members(&data->tree);
    if (data_write(data, request->data) != 0) return remote_say(EXIT_SYSTEM, "%s", data->message);
    if (request->remote.json) {
        remote_json_line(json_pack("{s:I, s:I, s:I, s:b}", "nodes", (json_int_t)data->tree.nodes,
                                   "sessions", (json_int_t)data->tree.sessions.count, "zxid",
                                   (json_int_t)data->tree.zxid, "of_member", of_member));
        return EXIT_OK;
    }
    printf("%u nodes, %u sessions, last zxid 0x%" PRIx64 ", now in %s\n", data->tree.nodes,
           data->tree.sessions.count, (uint64_t)data->tree.zxid, request->data);
    if (of_member)
        puts("It was the data of a member of an ensemble, and is that of a server alone now.  "
             "Start it "
             "with itself\nas the only member of --ensemble, and add others, which join with empty "
             "directories\n('conclave ensemble add').");
    return EXIT_OK;
}

static int restore(struct request *request) {
    struct data data;
    int status = data_open(&data);
    if (!status) status = data_read_file(&data, request->file);
    if (status)
        status = remote_say(EXIT_SYSTEM, "%s", data.message);
    else
        status = (request->data ? restore_directory : restore_server)(request, &data);
    data_close(&data);
    remote_close(&request->remote);
    return status;
}

int cmd_restore(int argc, char **argv) {
    static const struct argp argp = {options, parse, "FILE", doc, remote_children, NULL, NULL};
    struct request request = {.remote.options = {.flags = CV_NO_THREAD}};
    int status;
    if (!remote_parse(&request.remote, &argp, 0, argc, argv, &request, &status)) return status;
    return restore(&request);
}
