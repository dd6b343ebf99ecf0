/* conclave candidates: who leads an election, and who would be next. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/locks.h"
#include "cli/run.h"

static const char doc[] =
    "Lists the candidates of an election ('conclave elect NAME'): first who leads, then the others "
    "in the order in which they would.\v"
    "A higher priority comes first, then who came earlier.  JSON: {election, candidates: [{leads, "
    "priority, label, host, pid, session, token, since_ms}, ...]}.\n\n"
    "Examples:\n"
    "  conclave candidates scheduler\n"
    "  conclave candidates scheduler --json | jq -r '.candidates[].host'\n\n"
    "Exit status: 0; 1 nobody stands; 2 wrong usage; 3 the system failed; 69 no server; 77 not "
    "allowed.\n";

/* Who leads may not be the first in the order of the others: a better one has asked for the lead.
 */
static void put_leader_first(struct cv_contender *all, size_t count) {
    size_t at = 0;
    while (at < count && !all[at].holds) at++;
    if (at == count) return; /* nobody leads, for the moment */
    struct cv_contender leader = all[at];
    memmove(all + 1, all, at * sizeof *all);
    all[0] = leader;
}

static void print(const struct cv_contender *all, size_t count) {
    char who[700], moment[64];
    printf("%-32s %8s %-8s %19s %12s\n", "CANDIDATE", "PRIORITY", "STATE", "SINCE", "TOKEN");
    for (size_t i = 0; i < count; i++) {
        const struct cv_contender *c = &all[i];
        printf("%-32s %8" PRId32 " %-8s %19s", locks_who(c, who, sizeof who), c->priority,
               c->holds ? "leads" : "stands",
               locks_moment(c->holds ? c->held_since : c->since, moment, sizeof moment));
        if (c->holds)
            printf(" %12" PRId64 "\n", c->token);
        else
            printf(" %12s\n", "-");
    }
}

static void print_as_json(const char *name, const struct cv_contender *all, size_t count) {
    json_t *report = json_object(), *candidates = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *one = locks_json(&all[i]);
        json_object_set_new(one, "leads", json_boolean(all[i].holds));
        json_object_set_new(one, "priority", json_integer(all[i].priority));
        json_object_del(one, "shared");
        json_object_del(one, "slots");
        json_array_append_new(candidates, one);
    }
    json_object_set_new(report, "election", remote_json_name(name));
    json_object_set_new(report, "candidates", candidates);
    remote_json_line(report);
}

int cmd_candidates(int argc, char **argv) {
    static const struct argp argp = {NULL, run_parse_election, "NAME", doc, remote_children, NULL,
                                     NULL};
    struct run_election request = {0};
    struct cv_contender *all = NULL;
    size_t count = 0;
    char path[NAME_PATH_SIZE];
    int status;
    if (!remote_parse(&request.remote, &argp, 0, argc, argv, &request, &status)) return status;
    name_path(path, NAME_LEADERS, request.name);
    int error = cv_lock_contenders(remote_open(&request.remote), path, &all, &count);
    if (error && error != CV_NO_NODE) {
        status = remote_fail(&request.remote, error, path);
    } else {
        put_leader_first(all, count);
        if (request.remote.json)
            print_as_json(request.name, all, count);
        else if (count)
            print(all, count);
        else
            remote_say(0, "%s: nobody stands", request.name);
        status = count ? EXIT_OK : EXIT_CONFLICT;
    }
    free(all);
    remote_close(&request.remote);
    return status;
}
