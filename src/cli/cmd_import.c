/* conclave import: the data of a ZooKeeper server becomes that of a Conclave server. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "service/store/data.h"
#include "service/store/import.h"

enum { KEY_FROM = 256, KEY_LOGS, KEY_DATA };

static const struct argp_option options[] = {
    {"from-zookeeper", KEY_FROM, "DIR", 0, "The dataDir of the old server's zoo.cfg", 0},
    {"log-dir", KEY_LOGS, "DIR", 0, "The dataLogDir of the old server's zoo.cfg, if there is one",
     0},
    {"data", KEY_DATA, "NEWDIR", 0, "Where to put the data: a new or an empty directory", 0},
    {0}};

static const char doc[] =
    "Reads the newest snapshot and the transaction logs of an Apache ZooKeeper server (3.4 to "
    "3.8), which is to be stopped first, and makes a data directory of them that 'conclave serve "
    "--data NEWDIR' starts from.  Nothing is changed in the old directory.\v"
    "All nodes are kept with their data, ACLs and statistics, quotas, ephemeral nodes with their "
    "sessions, and the last zxid: clients of the old server go on with the sessions they have, if "
    "they come back within their timeout.\n\n"
    "Examples:\n"
    "  conclave import --from-zookeeper /var/lib/zookeeper --data /var/lib/conclave\n"
    "  conclave import --from-zookeeper /data/zk --log-dir /logs/zk --data ./new\n";

struct request {
    const char *from, *logs, *data;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_FROM: request->from = text; return 0;
    case KEY_LOGS: request->logs = text; return 0;
    case KEY_DATA: request->data = text; return 0;
    case ARGP_KEY_ARG: usage_error("'%s' is not expected here", text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void note(const char *text) { notice("note: %s", text); }

static void report(const struct import *import, const struct data *data, const char *directory) {
    const struct tree *tree = &data->tree;
    printf("%u nodes, %u of them ephemeral; %u sessions; last zxid 0x%" PRIx64 "\n", tree->nodes,
           tree->ephemerals, tree->sessions.count, (uint64_t)tree->zxid);
    printf("from %s", import->snapshot);
    if (import->logs)
        printf(" and %" PRIu64 " transactions after it in %s%s%s", import->transactions,
               import->first_log, import->logs > 1 ? " to " : "", import->last_log);
    if (import->sessions_ended) printf("; %" PRIu64 " sessions had ended", import->sessions_ended);
    printf("\nnow in %s\n", directory);
}

int cmd_import(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    struct request request = {0};
    struct data data;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (!request.from) usage_error("from-zookeeper: which directory is the old server's?");
    if (!request.data) usage_error("data: which new directory is to hold the data?");
    struct import import = {
        .from = request.from, .logs_from = request.logs, .note = note, .progress = progress_bar()};
    if (data_open(&data) != 0) system_error("%s", data.message);
    int status = import_read(&import, &data.tree);
    data.index = 1; /* as if one entry had written all of it */
    if (!status) status = data_write(&data, request.data);
    if (!status) report(&import, &data, request.data);
    data_close(&data);
    if (status) system_error("%s", *data.message ? data.message : import.message);
    return EXIT_OK;
}
