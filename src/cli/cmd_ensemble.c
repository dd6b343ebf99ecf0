/* conclave ensemble: shows the members, and changes them while they serve. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/ensemble.h"
#include "cli/fetch.h"
#include "service/admin/admin.h"

enum { KEY_AT = 256, KEY_DATA, KEY_TOKEN, KEY_JSON, KEY_TIMEOUT };

static const struct argp_option options[] = {
    {"data", KEY_DATA, "DIR", 0,
     "Data directory of a server of the ensemble that runs on this machine.  Whoever changes "
     "something has to be that server's user, or root",
     0},
    {"at", KEY_AT, "HOST:PORT", 0,
     "HTTP address of any server of the ensemble, instead of --data (127.0.0.1:8080).  It shows "
     "its status to everybody",
     0},
    {"admin-token-file", KEY_TOKEN, "FILE", 0,
     "The secret by which a server at --at takes changes: the one that it has as "
     "--admin-token-file.  It is not encrypted on its way",
     0},
    {"timeout", KEY_TIMEOUT, "TIME", 0, "How long to wait for a change (30s)", 0},
    {"json", KEY_JSON, NULL, 0, "Print the server's last answer as JSON", 0},
    {0}};

static const char doc[] =
    "Shows and changes the members of an ensemble, while it serves.\v"
    "  status     show the members: roles, links, and how far each log is\n"
    "  add        add a server that was started with --join: it gets the log and\n"
    "             then a vote (with :observer, no vote); or give a member another\n"
    "             address or role.  One that is not running gets its vote at once,\n"
    "             if the others are a quorum without it.  One that refuses the link,\n"
    "             such as a server of another ensemble, is not added\n"
    "  remove     remove a server, whether it runs or not\n"
    "  weight     set the weight of a member's vote (1).  A quorum is more than\n"
    "             half of all weight; a member of weight 0 is an observer\n"
    "  transfer   transfer leadership to that server\n\n"
    "In the table of 'status', 'link' is the link from the server that was asked ('here') to the "
    "member.  'log' is the index of the last entry that the member has; only the leader knows that "
    "of others.\n\n"
    "Each command returns when it is done.  Members change one step at a time, and each step is "
    "committed by the members of that moment, so nothing is lost if servers fail meanwhile, and "
    "the next leader goes on.  A change is refused if some step of it needs members that do not "
    "respond: nobody could be elected any more, and nothing could undo it.  A change that is given "
    "up on its way is undone.  If a majority is lost for good, see 'conclave recover --help'.\n\n"
    "Examples:\n"
    "  conclave ensemble status\n"
    "  conclave ensemble add 4=10.0.0.4:2888 --data /var/lib/conclave\n"
    "  conclave ensemble remove 2 --data /var/lib/conclave\n"
    "  conclave ensemble weight 1=2 --data /var/lib/conclave\n"
    "  conclave ensemble transfer 3 --at 10.0.0.1:8080 --admin-token-file token\n\n"
    "Exit status: 0 done, 2 wrong usage or a change that is not possible, 3 no answer, or not in "
    "time.\n";

enum verb { VERB_STATUS, VERB_ADD, VERB_REMOVE, VERB_WEIGHT, VERB_TRANSFER, VERBS };

static const char *const verbs[VERBS] = {[VERB_STATUS] = "status",
                                         [VERB_ADD] = "add",
                                         [VERB_REMOVE] = "remove",
                                         [VERB_WEIGHT] = "weight",
                                         [VERB_TRANSFER] = "transfer"};

struct request {
    const char *at, *data, *token_file; /* at: the server, as it is named to the user */
    const char *typed, *argument;       /* typed: the verb */
    enum verb verb;
    uint64_t timeout_ms;
    bool json;
    int id, number, weight, port; /* of the argument */
    char host[ENSEMBLE_HOST_MAX];
    bool observer;
    struct fetch_address address;
    struct secret token;
    struct fetch fetch;
    struct ensemble_view status;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    uint64_t us;
    switch (key) {
    case KEY_AT: request->at = text; return 0;
    case KEY_DATA: request->data = text; return 0;
    case KEY_TOKEN: request->token_file = text; return 0;
    case KEY_JSON: request->json = true; return 0;
    case KEY_TIMEOUT:
        if (parse_duration(text, &us) != 0 || us < 1000)
            usage_error("timeout: '%s' is not a duration such as 30s", text);
        request->timeout_ms = us / 1000;
        return 0;
    case ARGP_KEY_ARG:
        if (request->argument) usage_error("one change at a time, not '%s' as well", text);
        if (request->typed)
            request->argument = text;
        else
            request->typed = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Asking ---- */

enum { ANSWER_TIMEOUT_MS = 5000 };

static void put_argument(struct bytes *path, const char *text) {
    char code[4];
    for (; *text; text++) {
        snprintf(code, sizeof code, "%%%02x", (unsigned char)*text);
        bytes_add(path, code, 3);
    }
}

static bool ask(struct request *r, const char *method, const char *path) {
    fetch_begin(&r->fetch, &r->address, method, path);
    fetch_wait(&r->fetch, ANSWER_TIMEOUT_MS);
    return r->fetch.state == FETCH_DONE;
}

/* False: there was no answer, or not that of a server. */
static bool read_status(struct request *r) {
    return ask(r, "GET", "/ensemble") && r->fetch.status == 200 &&
           ensemble_view_parse(r->fetch.body, &r->status);
}

static _Noreturn void no_answer(struct request *r) {
    const struct fetch *f = &r->fetch;
    if (r->data && (f->error == ENOENT || f->error == ECONNREFUSED))
        system_error("%s: no server runs with this data directory", r->at);
    if (r->data && f->error == EACCES)
        system_error("%s: only root and the server's user may ask it this way", r->at);
    if (f->state == FETCH_DONE || !f->error)
        system_error("%s: this is not the HTTP address of a Conclave server (its option --http)",
                     r->at);
    if (f->error == ECONNREFUSED)
        system_error("%s: nothing listens there; --at has to be the address that a server of the "
                     "ensemble has as --http",
                     r->at);
    system_error("%s: no answer: %s", r->at, strerror(f->error));
}

static void choose_server(struct request *r) {
    if (r->data && (r->at || r->token_file))
        usage_error("--data names a server on this machine, which needs no address and no token");
    if (r->data) {
        r->at = r->address.data = r->data;
        return;
    }
    if (!r->at) r->at = "127.0.0.1:8080";
    const char *problem = fetch_resolve(r->at, &r->address);
    if (problem) usage_error("at: '%s': %s", r->at, problem);
    if (!r->token_file) return;
    problem = admin_token_read(r->token_file, &r->token);
    if (problem) system_error("%s: %s", r->token_file, problem);
    r->address.token = &r->token;
}

/* The first status: without it nothing can be checked or changed. */
static void require_ensemble(struct request *r) {
    if (!read_status(r)) no_answer(r);
    if (strcmp(r->status.mode, "standalone") == 0)
        system_error("%s: that server is alone, and not a member of an ensemble; see --id and "
                     "--ensemble in 'conclave serve --help'",
                     r->at);
}

/* ---- Status ---- */

static const char *role_of(const struct ensemble_view *e, const struct ensemble_view_member *m) {
    if (m->id == e->leader) return "leader";
    if (m->is_learner) return "learner";
    if (!m->weight) return "observer";
    if (m->id == e->server && !e->leader) return e->role;
    return "follower";
}

static void print_log(const struct ensemble_view *e, const struct ensemble_view_member *m) {
    bool self = m->id == e->server;
    const char *withheld =
        m->vote_withheld || (self && e->vote_withheld) ? ", no vote until it has caught up" : "";
    if (!m->has_match_index && !self)
        printf("%s\n", "-");
    else if (self && e->mending)
        printf("%s\n", "damaged, being mended");
    else if (!m->has_match_index)
        printf("%" PRIu64 "%s\n", e->last, withheld);
    else if (strcmp(m->sending, "snapshot") == 0)
        printf("receiving a snapshot\n");
    else if (m->match_index < e->last)
        printf("%" PRIu64 ", %" PRIu64 " behind%s\n", m->match_index, e->last - m->match_index,
               withheld);
    else
        printf("%" PRIu64 "%s\n", m->match_index, withheld);
}

static void print_member(const struct ensemble_view *e, const struct ensemble_view_member *m,
                         int width) {
    char address[ENSEMBLE_HOST_MAX + 16];
    snprintf(address, sizeof address, strchr(m->host, ':') ? "[%s]:%d" : "%s:%d", m->host, m->port);
    printf("  %-6d  %-*s  %-9s  %6d  %-4s  ", member_number(m->id), width, address, role_of(e, m),
           m->weight,
           m->id == e->server ? "here"
           : m->linked        ? "up"
                              : "down");
    print_log(e, m);
}

/* Why this server takes no part, or has no vote. */
static void print_waiting(const struct ensemble_view *e) {
    int here = member_number(e->server);
    if (e->mending) {
        printf("server %d takes no part until its files are mended by the others: %s\n", here,
               e->damage);
        printf("  %" PRIu64 " entries are mended, %" PRIu64 " are lacking", e->entries_mended,
               e->entries_lost);
        if (e->first_lost)
            printf(", the first of them %" PRIu64 " to %" PRIu64, e->first_lost, e->last_lost);
        if (e->snapshot) printf("; a snapshot of entry %" PRIu64 " is on its way", e->snapshot);
        if (e->mended_by) printf("; the last came from server %d", member_number(e->mended_by));
        printf("\n");
    } else if (e->founded_by && e->count > 1 && !ensemble_view_member(e, e->founded_by)) {
        printf("server %d has no data, and server %d, which is no member, has that of a former "
               "ensemble.  The\nensemble is founded ten seconds after such servers have been "
               "stopped\n",
               here, member_number(e->founded_by));
    } else if (e->founded_by) {
        printf(
            "server %d has no data, and server %d has: this one has lost its own, or has another "
            "directory.  A\nmajority that has its data can remove server %d, and add it again "
            "with --join\n",
            here, member_number(e->founded_by), here);
    } else if (*e->awaited) {
        printf("server %d has no data; to found the ensemble it waits for servers %s to say that "
               "they have none\neither ('conclave serve --found' says so for those that do not "
               "run)\n",
               here, e->awaited);
    } else if (e->vote_withheld) {
        printf("server %d has no vote until it has caught up with a leader: it may have lost "
               "entries\n",
               here);
        if (!e->leader)
            printf("where a majority is without, nobody can be elected; 'conclave recover "
                   "--new-ensemble' makes an\nensemble of what one server has\n");
    }
}

static void print_problems(const struct ensemble_view *e) {
    const char *before = "\n";
    for (int i = 0; i < e->count; i++) {
        const struct ensemble_view_member *m = &e->member[i];
        if (!*m->link_problem) continue;
        printf("%sserver %d: %s\n", before, member_number(m->id), m->link_problem);
        before = "";
    }
}

static void print_status(const struct ensemble_view *e) {
    int width = 7, here = member_number(e->server);
    for (int i = 0; i < e->count; i++) {
        int size = (int)strlen(e->member[i].host) + 8;
        if (size > width) width = size;
    }
    if (e->removed)
        printf("server %d is no longer a member; stop it, or add it again\n", here);
    else if (!e->count)
        printf(
            "server %d waits to be added: ask a member to 'conclave ensemble add %d=HOST:PORT'\n",
            here, here);
    else if (e->leader)
        printf("server %d leads in term %" PRIu64 "; %" PRIu64 " %s committed%s\n",
               member_number(e->leader), e->term, e->committed,
               e->committed == 1 ? "entry is" : "entries are",
               e->changing ? "; the members are being changed" : "");
    else
        printf("there is no leader in term %" PRIu64 "; nothing can be written\n", e->term);
    if (!e->count || e->removed) return;
    print_waiting(e);
    printf("\n  %-6s  %-*s  %-9s  %6s  %-4s  %s\n", "member", width, "address", "role", "weight",
           "link", "log");
    for (int i = 0; i < e->count; i++) print_member(e, &e->member[i], width);
    print_problems(e);
}

static void print_answer(struct request *r) { print_json(json_loads(r->fetch.body, 0, NULL)); }

/* ---- The command line ---- */

static bool take_number(const char **at, int max, int *result) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    unsigned long value = strtoul(*at, &end, 10);
    *at = end;
    *result = (int)value;
    return value <= (unsigned long)max;
}

static bool take_member(struct request *r, const char *at) {
    static const char role[] = ":observer";
    size_t size = strlen(at), suffix = sizeof role - 1;
    r->observer = size > suffix && strcmp(at + size - suffix, role) == 0;
    if (r->observer) size -= suffix;
    const char *colon = memrchr(at, ':', size), *port = colon ? colon + 1 : NULL;
    if (!colon || !take_number(&port, UINT16_MAX, &r->port) || port != at + size) return false;
    bool brackets = *at == '[' && colon > at + 1 && colon[-1] == ']';
    size_t host = (size_t)(colon - at) - 2 * brackets;
    snprintf(r->host, sizeof r->host, "%.*s", (int)host, at + brackets);
    return host > 0 && host < sizeof r->host && r->port > 0;
}

static void take_verb(struct request *r) {
    if (!r->typed) usage_error("a command is missing: status, add, remove, weight or transfer");
    while (r->verb < VERBS && strcmp(r->typed, verbs[r->verb]) != 0) r->verb++;
    if (r->verb == VERBS)
        usage_error("'%s' is not status, add, remove, weight or transfer", r->typed);
}

static void take_argument(struct request *r) {
    const char *at = r->argument;
    if (r->verb == VERB_STATUS && at)
        usage_error("status: '%s' is too much; it takes no argument", at);
    if (r->verb == VERB_STATUS) return;
    if (!at) usage_error("%s: which server?", r->typed);
    bool good = take_number(&at, MEMBER_NUMBER_MAX, &r->number);
    r->id = member_id(r->number);
    switch (r->verb) {
    case VERB_ADD:
        if (!good || *at != '=' || !take_member(r, at + 1))
            usage_error("add: '%s' is not N=HOST:PORT or N=HOST:PORT:observer, with N from 0 to "
                        "254",
                        r->argument);
        return;
    case VERB_WEIGHT:
        if (!good || *at++ != '=' || !take_number(&at, 255, &r->weight) || *at)
            usage_error("weight: '%s' is not N=W, a server's number and a weight up to 255",
                        r->argument);
        return;
    default:
        if (!good || *at)
            usage_error("%s: '%s' is not the number of a server", r->typed, r->argument);
    }
}

static bool is_where_requested(const struct request *r, const struct ensemble_view_member *m) {
    return m && m->port == r->port && strcmp(m->host, r->host) == 0;
}

/* Whether the members are as requested, though perhaps not committed yet. */
static bool is_as_requested(const struct request *r) {
    const struct ensemble_view *e = &r->status;
    const struct ensemble_view_member *m = ensemble_view_member(e, r->id);
    if (r->verb == VERB_TRANSFER) return e->leader == r->id;
    if (r->verb == VERB_REMOVE) return !m || (e->server == r->id && e->removed);
    if (r->verb == VERB_WEIGHT) return m && m->weight == r->weight;
    return is_where_requested(r, m) && r->observer == !m->weight;
}

/* Whether the server is still to get its vote: what was given up is a change that somebody asked
 * for meanwhile. */
static bool is_going_on(const struct request *r) {
    const struct ensemble_view_member *m = ensemble_view_member(&r->status, r->id);
    return r->verb == VERB_ADD && r->status.changing && is_where_requested(r, m) && m->is_learner;
}

static void check_request(const struct request *r) {
    const struct ensemble_view_member *m = ensemble_view_member(&r->status, r->id);
    bool adds = r->verb == VERB_ADD;
    if (r->status.removed || !r->status.count)
        system_error("%s: server %d is not a member itself; name one that is with --data or --at",
                     r->at, member_number(r->status.server));
    if (!adds && !m)
        usage_error("server %d is not a member; 'conclave ensemble status' shows the members",
                    r->number);
    if (adds && is_as_requested(r) && !r->status.changing)
        usage_error("server %d at %s:%d is a member already", r->number, r->host, r->port);
    if (r->verb == VERB_TRANSFER && !m->weight)
        usage_error("server %d has no vote, and cannot lead", r->number);
}

/* ---- Doing it ---- */

/* A change that is repeated may be refused because it was taken before.  A transfer to a server
 * that does not respond is refused each time, as it would halt all writes for a while; but that may
 * be over in a moment, so the second refusal counts. */
static void request_change(struct request *r, bool again) {
    struct bytes path = {0};
    bytes_add(&path, "/ensemble/", 10);
    bytes_add(&path, r->typed, strlen(r->typed));
    bytes_add(&path, "/", 1);
    put_argument(&path, r->argument);
    bytes_add(&path, "", 1);
    bool answered = ask(r, "POST", (const char *)path.at);
    bytes_close(&path);
    bool counts = r->verb == VERB_TRANSFER && r->fetch.status == 409 ? again : !again;
    if (!answered || r->fetch.status == 200 || !counts)
        return; /* a request without an answer is repeated */
    char *line = (char *)r->fetch.body;
    line[strcspn(line, "\n")] = 0;
    const struct ensemble_view_member *m = ensemble_view_member(&r->status, r->id);
    bool is_needed = r->verb == VERB_ADD || r->verb == VERB_TRANSFER;
    if (r->fetch.status == 409 && is_needed && m && *m->link_problem)
        usage_error("%s: %s", line, m->link_problem);
    if (r->fetch.status == 409) usage_error("%s", line);
    system_error("%s: %s", r->at, line);
}

static void print_done(struct request *r, uint64_t took_ms) {
    char time[32];
    format_duration(time, sizeof time, (double)took_ms * 1000);
    switch (r->verb) {
    case VERB_ADD:
        printf("server %d at %s:%d is a member%s", r->number, r->host, r->port,
               r->observer ? ", as an observer" : "");
        break;
    case VERB_REMOVE: printf("server %d is no longer a member", r->number); break;
    case VERB_WEIGHT: printf("server %d has weight %d", r->number, r->weight); break;
    default: printf("server %d leads in term %" PRIu64, r->number, r->status.term);
    }
    printf(" (%s)\n", time);
    const struct ensemble_view_member *m = ensemble_view_member(&r->status, r->id);
    bool may_be_absent = r->verb == VERB_ADD || r->verb == VERB_WEIGHT;
    if (may_be_absent && m && !m->linked && *m->link_problem)
        printf("there is no link to it yet: %s\n", m->link_problem);
}

static _Noreturn void not_in_time(struct request *r, bool answered) {
    const struct ensemble_view_member *m = ensemble_view_member(&r->status, r->id);
    char time[32];
    format_duration(time, sizeof time, (double)r->timeout_ms * 1000);
    if (!answered) no_answer(r);
    if (!r->status.leader) system_error("not done in %s: the ensemble has no leader", time);
    if (r->verb == VERB_ADD && m && !m->weight && !r->observer)
        system_error("not done in %s: server %d has not caught up%s%s; it gets its vote when it "
                     "has, and 'conclave ensemble remove %d' undoes the change",
                     time, r->number, *m->link_problem ? ", as there is no link to it: " : "",
                     m->link_problem, r->number);
    if (r->verb == VERB_TRANSFER)
        system_error("not done in %s: server %d may not respond, or has to catch up; the leader, "
                     "server %d, knows",
                     time, r->number, member_number(r->status.leader));
    system_error("not done in %s; 'conclave ensemble status' shows the progress", time);
}

/* The server answers at once that it has proposed a change; then its status is polled.  A proposal
 * may be lost with a server that crashes, so the request is repeated; but not when the new member
 * was there and is gone: somebody else has removed or moved it. */
static void change(struct request *r) {
    enum { POLL_MS_MIN = 2, POLL_MS_MAX = 50, REPEAT_MS = 1000 };
    uint64_t begun = fetch_now_ms(), requested = begun, pause = POLL_MS_MIN;
    uint64_t refused = r->status.changes_refused;
    bool answered = true, joins = false;
    check_request(r);
    request_change(r, false);
    for (;;) {
        uint64_t now = fetch_now_ms();
        answered = read_status(r);
        bool settled = r->verb == VERB_TRANSFER || !r->status.changing;
        if (answered && settled && is_as_requested(r) && (r->status.leader || r->status.removed))
            break;
        if (answered && r->status.changes_refused > refused && r->verb != VERB_TRANSFER) {
            if (!is_going_on(r)) usage_error("%s", r->status.refusal);
            refused = r->status.changes_refused;
        }
        const struct ensemble_view_member *m = ensemble_view_member(&r->status, r->id);
        bool here = r->verb == VERB_ADD && is_where_requested(r, m);
        if (answered && settled && r->status.leader && joins && !here)
            usage_error(m ? "server %d was given another address meanwhile"
                          : "server %d was removed again meanwhile",
                        r->number);
        joins |= answered && here;
        if (now - begun > r->timeout_ms) not_in_time(r, answered);
        if (answered && settled && r->status.leader && now - requested > REPEAT_MS) {
            request_change(r, true);
            requested = now;
        }
        usleep((useconds_t)pause * 1000);
        pause = pause * 2 < POLL_MS_MAX ? pause * 2 : POLL_MS_MAX;
    }
    if (r->json)
        print_answer(r);
    else
        print_done(r, fetch_now_ms() - begun);
}

int cmd_ensemble(int argc, char **argv) {
    static const struct argp argp = {
        options, parse, "status\nadd N=HOST:PORT[:observer]\nremove N\nweight N=W\ntransfer N",
        doc,     NULL,  NULL,
        NULL};
    struct request request = {.timeout_ms = 30000};
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    take_verb(&request);
    take_argument(&request);
    choose_server(&request);
    require_ensemble(&request);
    if (request.verb != VERB_STATUS)
        change(&request);
    else if (request.json)
        print_answer(&request);
    else
        print_status(&request.status);
    fetch_close(&request.fetch);
    secret_forget(&request.token);
    return EXIT_OK;
}
