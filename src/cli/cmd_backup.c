/* conclave backup: writes all data of a server, which may be running, into one file. */
#include <inttypes.h>

#include "cli/cli.h"
#include "service/store/data.h"

enum { KEY_DATA = 256, KEY_LOG };

static const struct argp_option options[] = {
    {"data", KEY_DATA, "DIR", 0, "The server's data (./conclave-data)", 0},
    {"log", KEY_LOG, "DIR", 0, "The server's directory for the log, if other than --data", 0},
    {0}};

static const char doc[] =
    "Writes all data of a server into FILE: nodes, ACLs and sessions as of one moment, with all "
    "that was acknowledged before the backup began.  FILE appears when it is complete.  (Of a "
    "member "
    "of an ensemble it is what its log knows to be committed: the last write before a pause is "
    "known "
    "with the next one, or after a snapshot.)\v"
    "The server may be running, and is not involved: its files are read, so this runs on the same "
    "machine, as a user who may read them.  Whoever can read FILE can read all nodes.\n\n"
    "Examples:\n"
    "  conclave backup /backup/conclave.snapshot --data /var/lib/conclave\n"
    "  conclave backup today.snapshot\n";

struct request {
    const char *file, *data, *log;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_DATA: request->data = text; return 0;
    case KEY_LOG: request->log = text; return 0;
    case ARGP_KEY_ARG:
        if (request->file) usage_error("one file at a time, not '%s' as well", text);
        request->file = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int cmd_backup(int argc, char **argv) {
    static const struct argp argp = {options, parse, "FILE", doc, NULL, NULL, NULL};
    struct request request = {.data = "conclave-data"};
    struct data data;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (!request.file) usage_error("give the FILE to write the backup to");
    int status = data_open(&data);
    if (!status) status = data_read(&data, request.data, request.log);
    if (!status) status = data_write_file(&data, request.file);
    if (!status)
        printf("%s: %u nodes, %u sessions, last zxid 0x%" PRIx64 ", entry %" PRIu64 " of the log\n",
               request.file, data.tree.nodes, data.tree.sessions.count, (uint64_t)data.tree.zxid,
               data.index);
    data_close(&data);
    if (status) system_error("%s", data.message);
    return EXIT_OK;
}
