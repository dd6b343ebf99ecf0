/* conclave ensemble: who the members are, and how that is changed while they serve. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/ensemble.h"
#include "cli/fetch.h"

enum { KEY_AT = 256, KEY_JSON, KEY_TIMEOUT };

static const struct argp_option options[] = {
    {"at", KEY_AT, "HOST:PORT", 0,
     "Where a server of the ensemble is asked over HTTP (127.0.0.1:8080); changes are asked for on "
     "its own machine",
     0},
    {"timeout", KEY_TIMEOUT, "TIME", 0, "How long to wait for a change (30s)", 0},
    {"json", KEY_JSON, NULL, 0, "What the server said last, as JSON", 0},
    {0}};

static const char doc[] =
    "Shows and changes the members of an ensemble, while it serves.\v"
    "  status     who the members are, who leads, and who is behind\n"
    "  add        a server that was started with --join gets all of the log, then\n"
    "             its vote (:observer: none); a member, another address or role\n"
    "  remove     a server, perhaps a broken one, loses its vote and its place\n"
    "  weight     more than half of all weight decides; 1 unless said, 0: no vote\n"
    "  transfer   that server leads from now on\n\n"
    "Each returns when it is done.  Members change one step at a time, and every step is decided "
    "by those who are members then: whatever happens meanwhile, nothing is lost.  If a change is "
    "left half-way, say it again.\n\n"
    "Examples:\n"
    "  conclave ensemble status\n"
    "  conclave ensemble add 4=10.0.0.4:2888\n"
    "  conclave ensemble remove 2\n"
    "  conclave ensemble weight 1=2\n"
    "  conclave ensemble transfer 3 --at 127.0.0.1:8081\n\n"
    "Exit status: 0 done, 2 wrong usage or nothing that can be done, 3 no answer, or not in "
    "time.\n";

enum verb { VERB_STATUS, VERB_ADD, VERB_REMOVE, VERB_WEIGHT, VERB_TRANSFER, VERBS };

static const char *const verbs[VERBS] = {[VERB_STATUS] = "status",
                                         [VERB_ADD] = "add",
                                         [VERB_REMOVE] = "remove",
                                         [VERB_WEIGHT] = "weight",
                                         [VERB_TRANSFER] = "transfer"};

struct request {
    const char *at, *typed, *argument; /* typed: the verb */
    enum verb verb;
    uint64_t timeout_ms;
    bool json;
    int id, weight, port; /* of the argument */
    char host[ENSEMBLE_HOST_MAX];
    bool observer;
    struct fetch_address address;
    struct fetch fetch;
    struct ensemble now;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    uint64_t us;
    switch (key) {
    case KEY_AT: request->at = text; return 0;
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

enum { PATIENCE_MS = 5000 };

static void put_argument(struct bytes *path, const char *text) {
    char code[4];
    for (; *text; text++) {
        snprintf(code, sizeof code, "%%%02x", (unsigned char)*text);
        bytes_add(path, code, 3);
    }
}

static bool ask(struct request *r, const char *method, const char *path) {
    fetch_begin(&r->fetch, &r->address, method, path);
    fetch_wait(&r->fetch, PATIENCE_MS);
    return r->fetch.state == FETCH_DONE;
}

/* False: not this time. */
static bool look(struct request *r) {
    return ask(r, "GET", "/ensemble") && r->fetch.status == 200 &&
           ensemble_parse(r->fetch.body, &r->now);
}

static _Noreturn void no_answer(struct request *r) {
    const struct fetch *f = &r->fetch;
    if (f->state == FETCH_DONE || !f->error)
        system_error("%s: that is not the HTTP address of a Conclave server (--http)", r->at);
    if (f->error == ECONNREFUSED)
        system_error("%s: nobody listens there; --at says where a server of the ensemble is asked "
                     "over HTTP, and its own --http where it listens",
                     r->at);
    system_error("%s: no answer: %s", r->at, strerror(f->error));
}

/* The first look: without it nothing can be said or done. */
static void require_ensemble(struct request *r) {
    const char *problem = fetch_resolve(r->at, &r->address);
    if (problem) usage_error("at: '%s': %s", r->at, problem);
    if (!look(r)) no_answer(r);
    if (strcmp(r->now.mode, "standalone") == 0)
        system_error("%s: that server is alone, and no member of an ensemble; see 'conclave serve "
                     "--help' for --id and --ensemble",
                     r->at);
}

/* ---- Status ---- */

static const char *role_of(const struct ensemble *e, const struct ensemble_member *m) {
    if (m->id == e->leader) return "leader";
    if (m->learns) return "learner";
    if (!m->weight) return "observer";
    if (m->id == e->server && !e->leader) return e->role;
    return "follower";
}

static void print_log(const struct ensemble *e, const struct ensemble_member *m) {
    bool self = m->id == e->server;
    if (!m->has_log && !self)
        printf("%s\n", "-");
    else if (!m->has_log)
        printf("%" PRIu64 "\n", e->last);
    else if (strcmp(m->sending, "snapshot") == 0)
        printf("gets a snapshot\n");
    else if (m->log < e->last)
        printf("%" PRIu64 ", %" PRIu64 " behind\n", m->log, e->last - m->log);
    else
        printf("%" PRIu64 "\n", m->log);
}

static void print_member(const struct ensemble *e, const struct ensemble_member *m, int width) {
    char address[ENSEMBLE_HOST_MAX + 16];
    snprintf(address, sizeof address, strchr(m->host, ':') ? "[%s]:%d" : "%s:%d", m->host, m->port);
    printf("  %-6d  %-*s  %-9s  %6d  %-4s  ", m->id, width, address, role_of(e, m), m->weight,
           m->id == e->server ? "here"
           : m->linked        ? "up"
                              : "down");
    print_log(e, m);
}

static void print_status(const struct ensemble *e) {
    int width = 7;
    for (int i = 0; i < e->count; i++) {
        int size = (int)strlen(e->member[i].host) + 8;
        if (size > width) width = size;
    }
    if (e->dismissed)
        printf("server %d is no longer a member: it can be ended, or added again\n", e->server);
    else if (!e->count)
        printf("server %d waits to be added: conclave ensemble add %d=HOST:PORT\n", e->server,
               e->server);
    else if (e->leader)
        printf("server %d leads in term %" PRIu64 "; %" PRIu64 " %s decided%s\n", e->leader,
               e->term, e->committed, e->committed == 1 ? "entry is" : "entries are",
               e->changing ? "; the members are being changed" : "");
    else
        printf("no leader in term %" PRIu64 ": nothing can be written\n", e->term);
    if (!e->count || e->dismissed) return;
    printf("\n  %-6s  %-*s  %-9s  %6s  %-4s  %s\n", "member", width, "address", "role", "weight",
           "link", "log");
    for (int i = 0; i < e->count; i++) print_member(e, &e->member[i], width);
}

static void print_answer(struct request *r) { print_json(json_loads(r->fetch.body, 0, NULL)); }

/* ---- What is asked for ---- */

static bool take_number(const char **at, int most, int *result) {
    char *end;
    if (**at < '0' || **at > '9') return false;
    unsigned long value = strtoul(*at, &end, 10);
    *at = end;
    *result = (int)value;
    return value <= (unsigned long)most;
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
    if (!r->typed) usage_error("what is to be done? status, add, remove, weight or transfer");
    while (r->verb < VERBS && strcmp(r->typed, verbs[r->verb]) != 0) r->verb++;
    if (r->verb == VERBS)
        usage_error("'%s' is not status, add, remove, weight or transfer", r->typed);
}

static void take_argument(struct request *r) {
    const char *at = r->argument;
    if (r->verb == VERB_STATUS && at) usage_error("status: '%s' is not needed", at);
    if (r->verb == VERB_STATUS) return;
    if (!at) usage_error("%s: which server?", r->typed);
    bool good = take_number(&at, 254, &r->id) && r->id > 0;
    switch (r->verb) {
    case VERB_ADD:
        if (!good || *at != '=' || !take_member(r, at + 1))
            usage_error("add: '%s' is not N=HOST:PORT or N=HOST:PORT:observer, with N from 1 to "
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

/* Whether the members are as they are to be, though perhaps not for good yet. */
static bool is_so(const struct request *r) {
    const struct ensemble *e = &r->now;
    const struct ensemble_member *m = ensemble_member(e, r->id);
    if (r->verb == VERB_TRANSFER) return e->leader == r->id;
    if (r->verb == VERB_REMOVE) return !m || (e->server == r->id && e->dismissed);
    if (r->verb == VERB_WEIGHT) return m && m->weight == r->weight;
    return m && r->observer == !m->weight && m->port == r->port && strcmp(m->host, r->host) == 0;
}

static void check_sense(const struct request *r) {
    const struct ensemble_member *m = ensemble_member(&r->now, r->id);
    bool adds = r->verb == VERB_ADD;
    if (r->now.dismissed || !r->now.count)
        system_error("%s: server %d is no member itself; ask one that is, with --at", r->at,
                     r->now.server);
    if (!adds && !m)
        usage_error("server %d is not a member; 'conclave ensemble status' shows who is", r->id);
    if (adds && is_so(r) && !r->now.changing)
        usage_error("server %d at %s:%d is a member already", r->id, r->host, r->port);
    if (r->verb == VERB_TRANSFER && !m->weight)
        usage_error("server %d has no vote, and cannot lead", r->id);
}

/* ---- Doing it ---- */

static void order(struct request *r, bool again) {
    struct bytes path = {0};
    bytes_add(&path, "/ensemble/", 10);
    bytes_add(&path, r->typed, strlen(r->typed));
    bytes_add(&path, "/", 1);
    put_argument(&path, r->argument);
    bytes_add(&path, "", 1);
    bool answered = ask(r, "POST", (const char *)path.at);
    bytes_close(&path);
    if (!answered || r->fetch.status == 200 || again)
        return; /* if it was not heard, it is said again */
    char *line = (char *)r->fetch.body;
    line[strcspn(line, "\n")] = 0;
    if (r->fetch.status == 409) usage_error("%s", line);
    system_error("%s: %s", r->at, line);
}

static void print_done(struct request *r, uint64_t took_ms) {
    char time[32];
    format_duration(time, sizeof time, (double)took_ms * 1000);
    switch (r->verb) {
    case VERB_ADD:
        printf("server %d at %s:%d is a member%s", r->id, r->host, r->port,
               r->observer ? ", and observes" : "");
        break;
    case VERB_REMOVE: printf("server %d is no longer a member", r->id); break;
    case VERB_WEIGHT: printf("server %d has weight %d", r->id, r->weight); break;
    default: printf("server %d leads in term %" PRIu64, r->id, r->now.term);
    }
    printf(" (%s)\n", time);
}

static _Noreturn void not_in_time(struct request *r, bool looked) {
    const struct ensemble_member *m = ensemble_member(&r->now, r->id);
    char time[32];
    format_duration(time, sizeof time, (double)r->timeout_ms * 1000);
    if (!looked) no_answer(r);
    if (!r->now.leader) system_error("not done in %s: the ensemble has no leader", time);
    if (r->verb == VERB_ADD && m && !m->weight && !r->observer)
        system_error("not done in %s: server %d is known, but has not caught up; is it running at "
                     "%s:%d, with --join?  It gets its vote when it has, if that is within a "
                     "minute; 'conclave ensemble remove %d' takes it back",
                     time, r->id, r->host, r->port, r->id);
    system_error("not done in %s; 'conclave ensemble status' shows how far it is", time);
}

/* Who asks is told at once that a request was taken; then it is watched.  Should it be forgotten on
 * the way, with a server that fell, it is made again. */
static void change(struct request *r) {
    enum { LOOK_MS_MIN = 2, LOOK_MS_MAX = 50, AGAIN_MS = 1000 };
    uint64_t begun = fetch_now_ms(), ordered = begun, pause = LOOK_MS_MIN;
    bool looked = true;
    check_sense(r);
    order(r, false);
    for (;;) {
        uint64_t now = fetch_now_ms();
        looked = look(r);
        bool settled = r->verb == VERB_TRANSFER || !r->now.changing;
        if (looked && settled && is_so(r) && (r->now.leader || r->now.dismissed)) break;
        if (now - begun > r->timeout_ms) not_in_time(r, looked);
        if (looked && settled && r->now.leader && now - ordered > AGAIN_MS) {
            order(r, true);
            ordered = now;
        }
        usleep((useconds_t)pause * 1000);
        pause = pause * 2 < LOOK_MS_MAX ? pause * 2 : LOOK_MS_MAX;
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
    struct request request = {.at = "127.0.0.1:8080", .timeout_ms = 30000};
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    take_verb(&request);
    take_argument(&request);
    require_ensemble(&request);
    if (request.verb != VERB_STATUS)
        change(&request);
    else if (request.json)
        print_answer(&request);
    else
        print_status(&request.now);
    fetch_close(&request.fetch);
    return EXIT_OK;
}
