/* conclave restore: puts a backup into a new data directory, or into a running server. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/restore.h"
#include "service/store/data.h"

enum { KEY_DATA = 256, KEY_SERVER, KEY_DRY_RUN };

static const struct argp_option options[] = {
    {"data", KEY_DATA, "NEWDIR", 0, "Make this data directory, which must be new or empty", 0},
    {"server", KEY_SERVER, "HOST:PORT", 0, "Change the tree of a server that is running", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0,
     "With --server: show what would be changed, and change nothing", 0},
    {0}};

static const char doc[] =
    "Restores a backup that 'conclave backup' has written.\v"
    "With --data everything is as it was: nodes with their versions, sessions, the last zxid.  "
    "'conclave serve --data NEWDIR' starts from it.  If it was the data of a member of an "
    "ensemble, "
    "NEWDIR is the data of a server alone: start it as the only member of --ensemble and add "
    "others.\n\n"
    "With --server the nodes of a running server, this one or ZooKeeper, are made equal to those "
    "in the backup: missing ones are created, others written or deleted, ACLs set.  Its clients "
    "stay connected and see each change.  Changes are made in batches, each as a whole, but not "
    "all at once.  Nodes below /zookeeper (quotas) and ephemeral nodes are left alone, and "
    "versions "
    "and times are the server's own.  CONCLAVE_AUTH=user:password in the environment says who is "
    "asking, where nodes are protected; the super user may do everything.\n\n"
    "Examples:\n"
    "  conclave restore /backup/conclave.snapshot --data /var/lib/conclave\n"
    "  conclave restore today.snapshot --server 127.0.0.1:2181 --dry-run\n";

struct request {
    const char *file, *data, *server;
    bool dry_run;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_DATA: request->data = text; return 0;
    case KEY_SERVER: request->server = text; return 0;
    case KEY_DRY_RUN: request->dry_run = true; return 0;
    case ARGP_KEY_ARG:
        if (request->file) usage_error("one file at a time, not '%s' as well", text);
        request->file = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void check(const struct request *request) {
    if (!request->file) usage_error("give the FILE of the backup");
    if (!request->data == !request->server)
        usage_error("either --data (a directory for a server that is stopped) or --server");
    if (request->dry_run && !request->server) usage_error("dry-run: only with --server");
    if (request->server && !strchr(request->server, ':'))
        usage_error("server: '%s' is not an address such as 127.0.0.1:2181", request->server);
}

static int restore_server(const struct request *request, struct data *data) {
    struct restore restore = {.tree = &data->tree,
                              .address = request->server,
                              .secret = getenv("CONCLAVE_AUTH"),
                              .dry_run = request->dry_run,
                              .out = stdout,
                              .progress = progress_bar()};
    int status = restore_run(&restore);
    printf("%s%" PRIu64 " created, %" PRIu64 " written, %" PRIu64 " ACLs set, %" PRIu64
           " deleted, %" PRIu64 " kept for open sessions\n",
           request->dry_run ? "would be: " : "", restore.created, restore.written, restore.acls,
           restore.deleted, restore.kept);
    fflush(stdout);
    snprintf(data->message, sizeof data->message, "%s", restore.message);
    return status;
}

static int restore_directory(const struct request *request, struct data *data) {
    bool of_member = tree_members_text(&data->tree).size > 0;
    if (of_member) /* the ensemble goes on without these, or is gone */
        tree_forget_members(&data->tree);
    if (data_write(data, request->data) != 0) return -1;
    printf("%u nodes, %u sessions, last zxid 0x%" PRIx64 ", now in %s\n", data->tree.nodes,
           data->tree.sessions.count, (uint64_t)data->tree.zxid, request->data);
    if (of_member)
        puts("It was the data of a member of an ensemble, and is that of a server alone now.  "
             "Start it "
             "with itself\nas the only member of --ensemble, and add others, which join with empty "
             "directories\n('conclave ensemble add').");
    return 0;
}

int cmd_restore(int argc, char **argv) {
    static const struct argp argp = {options, parse, "FILE", doc, NULL, NULL, NULL};
    struct request request = {0};
    struct data data;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    check(&request);
    int status = data_open(&data);
    if (!status) status = data_read_file(&data, request.file);
    if (!status) status = (request.server ? restore_server : restore_directory)(&request, &data);
    data_close(&data);
    if (status) system_error("%s", data.message);
    return EXIT_OK;
}
