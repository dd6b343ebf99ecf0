/* A command in the critical section, or while its participant leads: one of its own, or one that
 * stays. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>

#include "cli/health.h"
#include "cli/lines.h"
#include "cli/peer.h"
#include "cli/peer_remains.h"

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

static int say_ending(const struct peer_request *request) {
    return remote_say(EXIT_NO_SERVER, "peer %u ends, and gives no lock any more",
                      number_of(request));
}

/* Whether the participant was told to end. */
static bool is_ending(struct peer_request *request) {
    struct cv_tell tell;
    while (next_tell(request, &tell)) continue;
    return request->joined && request->joined->ends;
}

/* Waits for what the algorithm tells: 0, or the exit code. */
static int wait_for(struct peer_request *request, uint32_t what, struct cv_tell *tell,
                    int64_t until) {
    for (;;) {
        while (next_tell(request, tell))
            if (tell->what == what) return 0;
        if (request->joined && request->joined->ends && what == CV_ENTERED)
            return say_ending(request);
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
    do {
        if (failure_of(request)) keeper_kill(run->keeper);
        if (is_ending(request)) keeper_end(run->keeper);
    } while (keeper_next(run->keeper, LEASE_NONE) != KEEPER_ENDED);
    if (run->keeper->lost)
        return remote_say(EXIT_LOST, "peer %u has failed, and the command was killed: %s",
                          number_of(request), failure_of(request));
    return keeper_code(run->keeper);
}

/* Returns the exit code of the command.  `left`: 0, or the exit code of one that would follow. */
static int lock_once(struct peer_request *request, int *left) {
    struct run *run = &request->run;
    struct cv_tell tell;
    int64_t until = request->wait < 0 ? LEASE_NONE : lease_now() + request->wait;
    call(request, CV_ACQUIRE);
    int code = wait_for(request, CV_ENTERED, &tell, until);
    if (code) return code;
    if (failure_of(request)) return wait_idle(request, lease_now());
    if (tell.arg) export_number(run, "CONCLAVE_TOKEN", tell.arg);
    if (run->verbose) remote_say(0, "peer %u holds the lock", number_of(request));
    code = is_ending(request) ? say_ending(request) : run_inside(request);
    if (run->keeper->lost || run->keeper->alone) return code;
    call(request, CV_RELEASE);
    *left = wait_for(request, CV_LEFT, &tell, LEASE_NONE);
    return code;
}

static int lock(struct peer_request *request) {
    int code = 0, left = 0;
    for (uint64_t i = 0; i < request->times && !code; i++)
        code = left ? left : lock_once(request, &left);
    return code;
}

/* ---- elect ---- */

struct lead {
    struct peer_request *request;
    bool leads, running;
    bool ending; /* it was lost since the command was started */
    uint32_t term;
    struct lines lines;
    pid_t hook;          /* that runs; 0: none */
    struct cv_tell next; /* what the next hook is for; its `what` is 0: there is none */
};

static void hook_ended(pid_t pid, int status, void *arg) {
    struct lead *lead = arg;
    (void)status;
    if (pid != lead->hook) return;
    lead->hook = 0;
    keeper_wake(lead->request->run.keeper);
}

/* One after the other, so that the last one is for how it is now; those between are left out. */
static void run_hook(struct lead *lead) {
    struct run *run = &lead->request->run;
    const struct cv_tell *tell = &lead->next;
    bool leads = tell->what == CV_ELECTED, known = tell->what != CV_LEADERLESS;
    const char *hook = leads ? lead->request->on_leader : lead->request->on_follower;
    if (!tell->what || lead->hook) return;
    export_number(run, "CONCLAVE_LEADER", tell->arg);
    export_number(run, "CONCLAVE_TERM", tell->term);
    if (!known) run_export(run, "CONCLAVE_LEADER", "");
    run_export(run, "CONCLAVE_STATE", leads ? "leading" : known ? "following" : "leaderless");
    pid_t pid = hook ? health_start(run, hook) : 0;
    lead->hook = pid > 0 ? pid : 0;
    lead->next.what = 0;
}

static void take_tell(struct lead *lead, const struct cv_tell *tell) {
    struct keeper *keeper = lead->request->run.keeper;
    bool led = lead->leads, known = tell->what != CV_LEADERLESS;
    if (tell->what != CV_ELECTED && tell->what != CV_FOLLOWS && known) return;
    lead->leads = tell->what == CV_ELECTED;
    bool same = lead->leads && tell->term == lead->term;
    if (lead->running && !same && !lead->ending) {
        lead->ending = true;
        keeper_end(keeper);
    }
    if (lead->leads) lead->term = tell->term;
    if (known || led) lead->next = *tell;
    if (known)
        lines_say(&lead->lines, "%s %" PRIu64 " term %" PRIu32, lead->leads ? "leads" : "follows",
                  tell->arg, tell->term);
    else
        lines_say(&lead->lines, "leaderless");
}

/* What nobody has read yet is tried again soon. */
static int64_t next_look(struct lead *lead) {
    enum { AGAIN_MS = 100 };
    return lines_flush(&lead->lines) ? LEASE_NONE : lease_now() + AGAIN_MS;
}

/* Waits for the hook that runs; after the grace it is killed.  False: this program is told to end.
 */
static bool await_hook(struct lead *lead) {
    struct run *run = &lead->request->run;
    int64_t until = lease_now() + run->grace;
    while (lead->hook) {
        if (run_wait(run, until) != 0) return false;
        if (!lead->hook || lease_now() < until) continue;
        remote_say(0, "what was run on a change did not end within --grace, and was killed");
        kill(-lead->hook, SIGKILL);
        until = LEASE_NONE;
    }
    return true;
}

/* There is no participant any more, so this one does not lead; a hook for that is not left out. */
static void step_down(struct lead *lead) {
    if (lead->leads) take_tell(lead, &(struct cv_tell){.what = CV_LEADERLESS});
    for (run_hook(lead); lead->hook && await_hook(lead); run_hook(lead)) continue;
}

/* Returns the exit code. */
static int lose_participant(struct lead *lead, const char *failure, bool killed) {
    struct peer_request *request = lead->request;
    step_down(lead);
    if (killed)
        return remote_say(EXIT_LOST, "peer %u has failed, and the command was killed: %s",
                          number_of(request), failure);
    return remote_say(request->joined ? EXIT_NO_SERVER : EXIT_SYSTEM, "peer %u ends%s%s",
                      number_of(request), failure ? ": " : "", failure ? failure : "");
}

static int lead_on(struct lead *lead) {
    struct peer_request *request = lead->request;
    struct run *run = &request->run;
    for (struct cv_tell tell;;) {
        while (next_tell(request, &tell)) take_tell(lead, &tell);
        const char *failure = failure_of(request);
        bool ends = request->joined && request->joined->ends;
        if (lead->running && failure) keeper_kill(run->keeper);
        if (lead->running && ends) keeper_end(run->keeper);
        if (!lead->running && (failure || ends)) return lose_participant(lead, failure, false);
        run_hook(lead);
        if (lead->leads && run->command && !lead->running) {
            int code = start(run);
            if (code) return code;
            lead->running = true;
            lead->ending = false;
        } else if (!lead->running) {
            int code = run_wait(run, next_look(lead));
            request->interrupted = code != 0;
            if (code && !request->joined && !run->keeper->alone) step_down(lead);
            if (code) return code;
        } else if (keeper_next(run->keeper, next_look(lead)) == KEEPER_ENDED) {
            lead->running = false;
            if (failure) return lose_participant(lead, failure, true);
            if (!lead->ending || run->keeper->asked || run->keeper->alone)
                return keeper_code(run->keeper);
        }
    }
}

static int elect(struct peer_request *request) {
    struct lead lead = {.request = request};
    lines_open(&lead.lines, STDOUT_FILENO);
    request->run.keeper->on_child = hook_ended;
    request->run.keeper->arg = &lead;
    if (!request->joined) call(request, CV_CAMPAIGN); /* one that stays has done so */
    int code = lead_on(&lead);
    request->run.keeper->on_child = NULL;
    lines_close(&lead.lines);
    return code;
}

/* ---- All of them ---- */

/* The others may need it for longer than it needs them. */
static int serve(struct peer_request *request) {
    peer_thread_done(request->thread, request->stay);
    if (request->run.verbose)
        remote_say(0, "peer %u is done, and serves the others until %s", number_of(request),
                   request->stay ? "it is told to end" : "they are done as well");
    while (request->stay || !peer_thread_is_over(request->thread)) {
        struct cv_tell tell;
        while (peer_thread_next(request->thread, &tell)) continue;
        int code = wait_idle(request, LEASE_NONE);
        if (code) return code;
    }
    return 0;
}

/* Whether the lock is held around this program; from now on it is around those that it starts. */
static bool is_inside(struct peer_request *request) {
    char path[PATH_MAX];
    const char *around = getenv("CONCLAVE_PEER_INSIDE");
    if (!realpath(request->socket, path)) return false;
    run_export(&request->run, "CONCLAVE_PEER_INSIDE", path);
    return around && strcmp(around, path) == 0;
}

/* Also those that the command has started keep the connection open: nobody else enters while one of
 * them lives, even if all who watch over them are killed. */
static int join(struct keeper *keeper, struct peer_request *request) {
    int code = joined_open(request->joined, request->socket, request->wait);
    if (code) return code;
    bool locks = request->action == PEER_LOCK;
    if (strcmp(request->joined->gives, locks ? "lock" : "election") != 0)
        return remote_say(exit_code(EXIT_USAGE), "peer %u of %s gives no %s", request->joined->id,
                          request->joined->algorithm, locks ? "lock" : "leader");
    if (locks && is_inside(request))
        return remote_say(exit_code(EXIT_USAGE),
                          "this runs inside the lock of that participant already, and would wait "
                          "for itself");
    if (locks) joined_let_inherit(request->joined);
    if (!locks && request->run.command) joined_say(request->joined, "runs\n");
    keeper->file = request->joined->socket;
    export_number(&request->run, "CONCLAVE_PEER", request->joined->id);
    return locks ? lock(request) : elect(request);
}

static int say_no_start(const struct peer_request *request, const char *why) {
    return remote_say(EXIT_SYSTEM, "peer %u cannot start: %s", request->setup.config.self, why);
}

/* Waits for what is left of earlier commands; the one of this participant has the file open as
 * well.  0, or the exit code. */
static int await_remains(struct peer_request *request, struct peer_remains *remains) {
    char error[PEER_ERROR_MAX];
    int code = 0, gone;
    if (peer_remains_open(remains, request->setup.config.data, error) != 0)
        return say_no_start(request, error);
    for (bool said = false; !code && !(gone = peer_remains_are_gone(remains)); said = true) {
        if (!said) remote_say(0, REMAINS_WAIT);
        code = run_wait(&request->run, lease_now() + REMAINS_LOOK_MS);
    }
    if (!code && gone < 0) code = say_no_start(request, strerror(errno));
    if (request->action == PEER_LOCK) peer_let_inherit(&remains->shared);
    return code;
}

static int keep(struct keeper *keeper, void *arg) {
    struct peer_request *request = arg;
    struct peer_remains remains;
    struct lines errors;
    char error[PEER_ERROR_MAX];
    request->run.keeper = keeper;
    keeper->deadline = no_deadline;
    keeper->arg = request;
    atomic_store(&keeper->lease->grace, request->run.grace);
    if (request->joined) return join(keeper, request);
    int code = await_remains(request, &remains);
    if (code) return code;
    lines_open(&errors, STDERR_FILENO);
    lines_take_log(&errors);
    request->thread =
        peer_thread_open(&request->setup.config, &request->setup.credentials, wake, keeper, error);
    if (!request->thread) {
        lines_close(&errors);
        return say_no_start(request, error);
    }
    export_number(&request->run, "CONCLAVE_PEER", request->setup.config.self);
    if (request->action == PEER_LOCK) code = lock(request);
    if (request->action == PEER_ELECT) code = elect(request);
    bool goes_on = !keeper->alone && !keeper->asked && !request->interrupted &&
                   !peer_thread_failure(request->thread);
    if (goes_on) {
        int served = serve(request);
        code = code ? code : served;
    }
    if (request->interrupted || keeper->asked) peer_thread_abandon(request->thread);
    if (!keeper->alone) peer_thread_farewell(request->thread);
    peer_thread_close(request->thread);
    lines_close(&errors);
    return code;
}

int peer_run(struct peer_request *request) {
    unsetenv("CONCLAVE_TOKEN"); /* of another lock, around this one */
    return guard(keep, request, NULL, NULL);
}
