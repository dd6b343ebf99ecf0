/* conclave recover: finds damaged files of a server, and saves what can be saved; and makes a new
 * ensemble of what one server has, when the others are lost. */
#include "cli/cli.h"
#include "service/store/new_ensemble.h"
#include "service/store/recover.h"

enum { KEY_DATA = 256, KEY_LOG, KEY_CUT, KEY_NEW_ENSEMBLE, KEY_MEMBER, KEY_ACCEPT_LOSS };

struct request {
    struct recover recover;
    struct new_ensemble made;
    bool new_ensemble;
};

static const struct argp_option options[] = {
    {"data", KEY_DATA, "DIR", 0, "The server's data (./conclave-data)", 0},
    {"log", KEY_LOG, "DIR", 0, "The server's directory for the log, if other than --data", 0},
    {"cut", KEY_CUT, NULL, 0,
     "Cut the log where it is damaged, and rename unusable files to damaged.*", 0},
    {"new-ensemble", KEY_NEW_ENSEMBLE, NULL, 0,
     "Make this server's data a new ensemble of one, because a majority of the members is lost for "
     "good.  Without --accept-loss it is only said what would be lost",
     0},
    {"accept-loss", KEY_ACCEPT_LOSS, NULL, 0, "With --new-ensemble: do it", 0},
    {"member", KEY_MEMBER, "N=HOST:PORT", 0,
     "With --new-ensemble: this server, and where others reach it, if not as before", 0},
    {0}};

static const char doc[] =
    "Reads every snapshot and every segment of the log in the data directory of a server that is "
    "not running, and shows which are good, where the others are damaged, and what is lost.  "
    "Nothing is changed without --cut, after which a member of an ensemble has no vote until it "
    "has caught up with the leader; where a majority is without a vote, nobody can be elected.\v"
    "When a majority of an ensemble's members is lost for good, or has lost the ends of their "
    "logs, nobody can be elected, and --new-ensemble makes the data of one server that is left an "
    "ensemble of one.  Choose the server with the longest log.  Whatever only the others had is "
    "lost, although clients may "
    "have been told that it was done; and entries that this server has, but of which it does not "
    "know that they were committed, become so. The new ensemble has another identity: no former "
    "member can take part in it, except with an empty directory.  What is replaced is kept in a "
    "folder old-ensemble.* of the data directory.\n\n"
    "Exit status: 0 all is good (perhaps only now, after --cut), 1 there is damage, 2 wrong usage, "
    "3 the system failed.\n\n"
    "Examples:\n"
    "  conclave recover --data /var/lib/conclave\n"
    "  conclave recover --data /var/lib/conclave --cut\n"
    "  conclave recover --data /var/lib/conclave --new-ensemble --accept-loss\n";

static int parse(int key, char *text, struct argp_state *state) {
    struct request *r = state->input;
    switch (key) {
    case KEY_DATA: r->recover.directory = r->made.directory = text; return 0;
    case KEY_LOG: r->recover.log_directory = r->made.log_directory = text; return 0;
    case KEY_CUT: r->recover.cut = true; return 0;
    case KEY_NEW_ENSEMBLE: r->new_ensemble = true; return 0;
    case KEY_MEMBER: r->made.member = text; return 0;
    case KEY_ACCEPT_LOSS: r->made.accept_loss = true; return 0;
    case ARGP_KEY_ARG: usage_error("'%s' is not expected here", text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

int cmd_recover(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    struct request request = {.recover = {.directory = "conclave-data", .out = stdout},
                              .made = {.directory = "conclave-data", .out = stdout}};
    struct recover *recover = &request.recover;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (request.new_ensemble && recover->cut) usage_error("--cut comes before --new-ensemble");
    if (!request.new_ensemble && (request.made.accept_loss || request.made.member))
        usage_error("--accept-loss and --member go with --new-ensemble");
    if (request.new_ensemble) {
        if (new_ensemble_make(&request.made) == 0) return EXIT_OK;
        fflush(stdout);
        if (request.made.member_is_wrong) usage_error("--member: %s", request.made.message);
        system_error("%s", request.made.message);
    }
    switch (recover_run(recover)) {
    case RECOVER_GOOD: return EXIT_OK;
    case RECOVER_DAMAGED: return EXIT_VIOLATED;
    default: fflush(stdout); system_error("%s", recover->message);
    }
}
