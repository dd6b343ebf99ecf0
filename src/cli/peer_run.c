/* A command in the critical section, or while its participant leads: one of its own, or one that
 * stays. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli/health.h"
#include "cli/peer.h"

static void wake(void *keeper) { keeper_wake(keeper); }

/* ---- The participant ---- */

static void call(struct peer_request *request, uint32_t what) {
    if (request->joined)
        joined_call(request->joined, what);
    else
        peer_thread_call(request->thread, what);
}

static bool next_tell(struct peer_request *request, struct cv_tell *tell) {
    return request->joined ? joined_next(request->joined, tell)
                           : peer_thread_next(request->thread, tell);
}

static const char *failure_of(struct peer_request *request) {
    if (!request->joined) return peer_thread_failure(request->thread);
    const char *failure = joined_failure(request->joined);
    if (failure) request->run.keeper->file = -1; /* it would wake the keeper for ever */
    return failure;
}

static uint32_t number_of(const struct peer_request *request) {
    return request->joined ? request->joined->id : request->setup.config.self;
}

static int64_t no_deadline(void *arg) {
    (void)arg;
    return LEASE_NONE;
}

/* Waits for the next thing while no command runs: 0, or the exit code. */
static int wait_idle(struct peer_request *request, int64_t until) {
    int code = run_wait(&request->run, until);
    const char *failure = failure_of(request);
    request->interrupted = code != 0;
    if (!code && failure)
        code = remote_say(request->joined ? EXIT_NO_SERVER : EXIT_SYSTEM, "peer %u ends: %s",
                          number_of(request), failure);
    return code;
}

/* Waits for what the algorithm tells: 0, or the exit code. */
static int wait_for(struct peer_request *request, uint32_t what, struct cv_tell *tell,
                    int64_t until) {
    for (;;) {
        while (next_tell(request, tell))
            if (tell->what == what) return 0;
        if (request->joined && request->joined->ends && what == CV_ENTERED)
            return remote_say(EXIT_NO_SERVER, "peer %u ends, and gives no lock any more",
                              number_of(request));
        if (lease_now() >= until)
            return remote_say(request->busy_code,
                              "the command was not run: the peers did not let it in within -w");
        int code = wait_idle(request, until);
        if (code) return code;
    }
}

static void export_number(struct run *run, const char *name, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    run_export(run, name, text);
}

/* Starts the command: 0, or the exit code. */
static int start(struct run *run) {
    if (keeper_start(run->keeper, run->command, run->environment) == 0) return 0;
    return remote_say(EXIT_SYSTEM, "no process can be started: %s", strerror(errno));
}

/* ---- lock ---- */

/* Waits until the command is gone; a peer that has failed kills it. */
static int run_inside(struct peer_request *request) {
    struct run *run = &request->run;
    int code = start(run);
    if (code) return code;
    while (keeper_next(run->keeper, LEASE_NONE) != KEEPER_ENDED) {
        struct cv_tell tell;
        while (next_tell(request, &tell)) continue;
        if (failure_of(request)) keeper_kill(run->keeper);
        if (request->joined && request->joined->ends) keeper_end(run->keeper);
    }
    if (run->keeper->lost)
        return remote_say(EXIT_LOST, "peer %u has failed, and the command was killed: %s",
                          number_of(request), failure_of(request));
    return keeper_code(run->keeper);
}

static int lock_once(struct peer_request *request) {
    struct run *run = &request->run;
    struct cv_tell tell;
    int64_t until = request->wait < 0 ? LEASE_NONE : lease_now() + request->wait;
    call(request, CV_ACQUIRE);
    int code = wait_for(request, CV_ENTERED, &tell, until);
    if (code) return code;
    if (failure_of(request)) return wait_idle(request, lease_now());
    if (tell.arg) export_number(run, "CONCLAVE_TOKEN", tell.arg);
    if (run->verbose) remote_say(0, "peer %u holds the lock", number_of(request));
    code = run_inside(request);
    if (run->keeper->lost || run->keeper->alone) return code;
    call(request, CV_RELEASE);
    int waited = wait_for(request, CV_LEFT, &tell, LEASE_NONE);
    return code ? code : waited;
}

static int lock(struct peer_request *request) {
    int code = 0;
    for (uint64_t i = 0; i < request->times && !code; i++) code = lock_once(request);
    return code;
}

/* ---- elect ---- */

static void say_leader(struct peer_request *request, const struct cv_tell *tell) {
    struct run *run = &request->run;
    bool leads = tell->what == CV_ELECTED;
    uint64_t leader =
        leads && !tell->arg ? request->setup.group.ids[request->setup.config.self] : tell->arg;
    const char *hook = leads ? request->on_leader : request->on_follower;
    if (tell->what == CV_LEADERLESS) {
        puts("leaderless");
    } else {
        printf("%s %" PRIu64 " term %u\n", leads ? "leads" : "follows", leader, tell->term);
        export_number(run, "CONCLAVE_LEADER", leader);
        export_number(run, "CONCLAVE_TERM", tell->term);
        run_export(run, "CONCLAVE_STATE", leads ? "leading" : "following");
        if (hook) health_start(run, hook);
    }
    fflush(stdout);
}

struct lead {
    bool leads, running;
    bool ending; /* it was lost since the command was started */
    uint32_t term;
};

static void take_tells(struct peer_request *request, struct lead *lead) {
    struct cv_tell tell;
    while (next_tell(request, &tell)) {
        if (tell.what != CV_ELECTED && tell.what != CV_FOLLOWS && tell.what != CV_LEADERLESS)
            continue;
        lead->leads = tell.what == CV_ELECTED;
        bool same = lead->leads && tell.term == lead->term;
        if (lead->running && !same && !lead->ending) {
            lead->ending = true;
            keeper_end(request->run.keeper);
        }
        if (lead->leads) lead->term = tell.term;
        say_leader(request, &tell);
    }
}

static int elect(struct peer_request *request) {
    struct run *run = &request->run;
    struct lead lead = {0};
    if (!request->joined) call(request, CV_CAMPAIGN); /* one that stays has done so */
    for (;;) {
        take_tells(request, &lead);
        const char *failure = failure_of(request);
        bool ends = request->joined && request->joined->ends;
        if (lead.running && failure) keeper_kill(run->keeper);
        if (lead.running && ends) keeper_end(run->keeper);
        if (!lead.running && ends)
            return remote_say(EXIT_NO_SERVER, "peer %u ends", number_of(request));
        if (lead.leads && run->command && !lead.running && !failure) {
            int code = start(run);
            if (code) return code;
            lead.running = true;
            lead.ending = false;
        }
        if (!lead.running) {
            int code = wait_idle(request, LEASE_NONE);
            if (code) return code;
        } else if (keeper_next(run->keeper, LEASE_NONE) == KEEPER_ENDED) {
            lead.running = false;
            if (failure)
                return remote_say(EXIT_LOST, "peer %u has failed, and the command was killed: %s",
                                  number_of(request), failure);
            if (!lead.ending || run->keeper->asked || run->keeper->alone)
                return keeper_code(run->keeper);
        }
    }
}

/* ---- All of them ---- */

/* The others may need it for longer than it needs them. */
static int serve(struct peer_request *request) {
    peer_thread_done(request->thread, request->stay);
    while (request->stay || !peer_thread_is_over(request->thread)) {
        struct cv_tell tell;
        while (peer_thread_next(request->thread, &tell)) continue;
        int code = wait_idle(request, LEASE_NONE);
        if (code) return code;
    }
    return 0;
}

/* Also those that the command has started keep the connection open: nobody else enters while one of
 * them lives, even if all who watch over them are killed. */
static int join(struct keeper *keeper, struct peer_request *request) {
    int code = joined_open(request->joined, request->socket);
    if (code) return code;
    bool locks = request->action == PEER_LOCK;
    if (strcmp(request->joined->gives, locks ? "lock" : "election") != 0)
        return remote_say(exit_code(EXIT_USAGE), "peer %u of %s gives no %s", request->joined->id,
                          request->joined->algorithm, locks ? "lock" : "leader");
    if (locks) joined_let_inherit(request->joined);
    keeper->file = request->joined->socket;
    export_number(&request->run, "CONCLAVE_PEER", request->joined->id);
    return locks ? lock(request) : elect(request);
}

static int keep(struct keeper *keeper, void *arg) {
    struct peer_request *request = arg;
    char error[PEER_ERROR_MAX];
    int code = 0;
    request->run.keeper = keeper;
    keeper->deadline = no_deadline;
    keeper->arg = request;
    atomic_store(&keeper->lease->grace, request->run.grace);
    if (request->joined) return join(keeper, request);
    request->thread =
        peer_thread_open(&request->setup.config, &request->setup.credentials, wake, keeper, error);
    if (!request->thread)
        return remote_say(EXIT_SYSTEM, "peer %u cannot start: %s", request->setup.config.self,
                          error);
    export_number(&request->run, "CONCLAVE_PEER", request->setup.config.self);
    if (request->action == PEER_LOCK) code = lock(request);
    if (request->action == PEER_ELECT) code = elect(request);
    bool goes_on = !keeper->alone && !keeper->asked && !request->interrupted &&
                   !peer_thread_failure(request->thread);
    if (goes_on) {
        int served = serve(request);
        code = code ? code : served;
    }
    peer_thread_close(request->thread);
    return code;
}

int peer_run(struct peer_request *request) { return guard(keep, request, NULL, NULL); }
