#include "peer/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/logger.h"
#include "peer/checkpoint.h"
#include "peer/internal.h"
#include "process/contract.h"

static bool is_connected(const struct other *other) { return other->up && other->here; }

static struct cv_env env_of(const struct peer *peer, const uint64_t *option) {
    struct cv_env env = group_env(peer->group, peer->self);
    env.option = option;
    env.detector = peer->config.detector != NULL;
    return env;
}

/* ---- Steps and their effects ---- */

static void fire(uv_timer_t *uv) {
    struct machine_timer *timer = uv->data;
    struct cv_event event = {.type = CV_TIMEOUT, .arg = timer->index};
    if (!timer->peer->over) peer_step(timer->peer, timer->machine, &event);
}

static void apply_timers(struct peer *peer, struct machine *machine) {
    struct cv_out *out = &peer->out;
    for (unsigned changed = out->timers_set | out->timers_cancelled; changed;
         changed &= changed - 1) {
        unsigned t = (unsigned)__builtin_ctz(changed);
        cv_assert(t < machine->code->timers);
        uv_timer_stop(&machine->timer[t].uv);
        if (!(out->timers_set & 1u << t)) continue;
        uint64_t min = out->timer[t].min_us, max = out->timer[t].max_us;
        uint64_t after = max > min ? min + rng_below(&peer->rng, max - min + 1) : min;
        uv_timer_start(&machine->timer[t].uv, fire, (after + 999) / 1000, 0);
    }
}

void peer_fail(struct peer *peer, const char *why) {
    if (peer->over) return;
    peer->over = true;
    peer->config.failed(peer->config.owner, why);
}

void peer_flush_record(struct peer *peer) {
    int error = recorder_flush(&peer->recorder);
    if (error)
        logger_error("the run is not recorded any more", LOGGER_STRING("reason", strerror(error)));
}

static void take_call(struct peer *peer, uint32_t what) {
    peer->campaigned |= what == CV_CAMPAIGN;
    if (what == CV_ACQUIRE && peer->phase == OUTSIDE) peer->phase = WAITING;
    if (what == CV_RELEASE && peer->phase == INSIDE) peer->phase = LEAVING;
}

/* False: the application does not know of it, and need not. */
static bool take_tell(struct peer *peer, const struct cv_tell *tell) {
    if (tell->what == CV_ENTERED) peer->phase = INSIDE;
    if (tell->what == CV_LEFT) {
        peer->phase = OUTSIDE;
        peer->left_ms = uv_now(peer->config.loop);
    }
    if (!peer->orphan || (tell->what != CV_ENTERED && tell->what != CV_LEFT)) return true;
    if (tell->what == CV_ENTERED)
        peer_call(peer, CV_RELEASE);
    else
        peer->orphan = false;
    return false;
}

/* Whether a wish of before serves for this one.  Who is patient leaves at once, so it waits. */
static bool adopt(struct peer *peer, uint32_t what) {
    if (what != CV_ACQUIRE || !peer->orphan) return false;
    cv_assert(peer->phase == WAITING);
    peer->orphan = false;
    return true;
}

/* Fencing tokens grow from run to run.  False: there are no more. */
static bool add_run(const struct peer *peer, uint64_t *token) {
    if (!*token) return true; /* the algorithm gives none */
    if (*token >> PEER_TOKEN_RUN || peer->run >> (64 - PEER_TOKEN_RUN)) return false;
    *token |= (uint64_t)peer->run << PEER_TOKEN_RUN;
    return true;
}

static void apply_tells(struct peer *peer, enum peer_machine m) {
    struct cv_tell tells[CV_TELLS_MAX];
    unsigned count = peer->out.tells;
    if (count && m == ALGORITHM) peer_flush_record(peer); /* what is acted upon is recorded */
    memcpy(tells, peer->out.tell, sizeof tells);
    for (unsigned i = 0; i < count; i++) {
        struct cv_tell *tell = &tells[i];
        if (m == DETECTOR) {
            peer_suspect(peer, (cv_pid)tell->arg, tell->what == CV_SUSPECT);
            continue;
        }
        if (!take_tell(peer, tell)) continue;
        if (tell->what == CV_ENTERED && !add_run(peer, &tell->arg))
            return peer_fail(peer, "no fencing token is left in this run of the group: end all of "
                                   "its peers, and start them again");
        if (tell->what == CV_ELECTED && !tell->arg) tell->arg = peer->group->ids[peer->self];
        if (tell->what == CV_FOLLOWS) peer->leader = tell->arg;
        if (tell->what == CV_ELECTED || tell->what == CV_LEADERLESS) peer->leader = 0;
        peer->config.told(peer->config.owner, tell);
    }
}

/* In the order of process.h: nothing leaves before what it depends on is durable. */
static void apply(struct peer *peer, enum peer_machine m) {
    struct cv_out *out = &peer->out;
    struct machine *machine = &peer->machine[m];
    if (out->save && m == ALGORITHM) {
        peer_flush_record(peer);
        int error = durable_write(&peer->durable, machine->state);
        if (error) return peer_fail(peer, strerror(error));
        uv_update_time(peer->config.loop); /* timers count from now, not from before the sync */
    }
    if (out->timers_set | out->timers_cancelled) apply_timers(peer, machine);
    for (uint32_t at = 0; at < out->used;) {
        const struct cv_send *send = (const void *)(out->sends + at);
        channels_send(peer, m, send);
        at += (uint32_t)sizeof *send + ((send->size + 7) & ~7u);
    }
}

static void step_once(struct peer *peer, enum peer_machine m, const struct cv_event *event) {
    struct machine *machine = &peer->machine[m];
    struct cv_env env = env_of(peer, machine->option);
    cv_out_reset(&peer->out);
    contract_step(machine->code, machine->state, &env, event, &peer->out);
    if (m == ALGORITHM && peer->recorder.fd >= 0)
        recorder_step(&peer->recorder, uv_hrtime() / 1000, &machine->codec, event, peer->arriving,
                      record_hash(machine->state, machine->size, &peer->out));
    if (recorder_is_full(&peer->recorder)) peer_flush_record(peer);
    apply(peer, m);
}

/* A step and the choices that it asks for, each with what the application is told. */
static void step_to_the_end(struct peer *peer, enum peer_machine m, const struct cv_event *event) {
    if (event->type == CV_CALL) take_call(peer, event->arg);
    step_once(peer, m, event);
    if (!peer->over) apply_tells(peer, m);
    while (peer->out.choose && !peer->over) {
        struct cv_event choice = {.type = CV_CHOICE,
                                  .arg = (uint32_t)rng_below(&peer->rng, peer->out.choose)};
        step_once(peer, m, &choice);
        if (!peer->over) apply_tells(peer, m);
    }
}

/* What the application asks for meanwhile is done when the step is over. */
void peer_step(struct peer *peer, enum peer_machine m, const struct cv_event *event) {
    bool outermost = !peer->stepping;
    cv_assert(peer->begun);
    peer->stepping = true;
    step_to_the_end(peer, m, event);
    if (!outermost) return;
    while (peer->call_count && !peer->over) {
        struct cv_event call = {.type = CV_CALL, .arg = peer->calls[0]};
        memmove(peer->calls, peer->calls + 1, --peer->call_count * sizeof *peer->calls);
        step_to_the_end(peer, ALGORITHM, &call);
    }
    peer->stepping = false;
}

void peer_call(struct peer *peer, uint32_t what) {
    struct cv_event call = {.type = CV_CALL, .arg = what};
    if (peer->over || adopt(peer, what)) return;
    if (!peer->stepping && peer->begun) return peer_step(peer, ALGORITHM, &call);
    if (peer->call_count && peer->calls[peer->call_count - 1] == what) return; /* the same call */
    cv_assert(peer->call_count < CALLS_MAX);
    peer->calls[peer->call_count++] = what;
}

/* Algorithms that do not use a detector themselves get another election when their leader is down.
 */
void peer_suspect(struct peer *peer, cv_pid p, bool down) {
    struct other *other = &peer->other[p];
    const struct cv_algorithm *code = peer->group->algorithm;
    if (!peer->machine[DETECTOR].code || other->suspected == down || peer->over || !peer->begun)
        return;
    other->suspected = down;
    if (peer->config.suspects) peer->config.suspects(peer->config.owner, p, down);
    if (code->traits & CV_USES_DETECTOR) {
        struct cv_event event = {.type = down ? CV_DOWN : CV_UP, .arg = p};
        peer_step(peer, ALGORITHM, &event);
    } else if (down && code->problem == CV_ELECTION && peer->leader == peer->group->ids[p]) {
        peer_call(peer, CV_CAMPAIGN);
    }
}

/* Those after it come first, so that two that end do not give each other the same thing. */
void peer_hand_on(struct peer *peer) {
    const struct group *group = peer->group;
    bool can = group->algorithm->traits & CV_HANDS_ON && peer->begun, news = !peer->ending;
    if (peer->over) return;
    peer->ending = true;
    for (uint32_t i = 0; can && i + 1 < group->processes && !peer->over; i++) {
        cv_pid p = (peer->self + i) % group->processes + 1;
        struct cv_event event = {.type = CV_HAND_ON, .arg = p};
        if (!is_connected(&peer->other[p]) || peer->other[p].suspected) continue;
        peer_step(peer, ALGORITHM, &event);
        news |= peer->out.used != 0;
    }
    for (cv_pid p = 1; p <= group->processes && news; p++)
        peer->other[p].awaited = peer->other[p].channel.last;
}

void peer_done(struct peer *peer, bool stays) {
    peer->done = true;
    peer->stays = stays;
    for (cv_pid p = 1; p <= peer->group->processes; p++)
        if (p != peer->self) runs_tell_done(peer, p);
    runs_look_whether_over(peer);
}

/* ---- Opening ---- */

static void lay_out(struct peer *peer, enum peer_machine m, const struct cv_algorithm *code,
                    const uint64_t *option) {
    struct machine *machine = &peer->machine[m];
    struct cv_env env = env_of(peer, option);
    machine->code = code;
    machine->option = option;
    code->layout(&env, &machine->layout);
    machine->codec = (struct codec){code->messages, code->message_count, env.processes,
                                    machine->layout.message_rows};
    machine->size = code->state->size + (size_t)machine->layout.rows * code->state->row_size;
    machine->state = calloc(1, machine->size + 8);
    cv_assert(machine->state);
    uint32_t room = cv_out_room(code, &machine->layout);
    if (room > peer->out.room) peer->out.room = room;
    for (unsigned t = 0; t < code->timers; t++) {
        struct machine_timer *timer = &machine->timer[t];
        *timer = (struct machine_timer){.peer = peer, .machine = (uint8_t)m, .index = (uint8_t)t};
        uv_timer_init(peer->config.loop, &timer->uv);
        timer->uv.data = timer;
        peer->handles++;
    }
}

static uint64_t wall_clock_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int make_directory(const char *data) {
    if (mkdir(data, 0700) != 0) return errno == EEXIST ? 0 : -1;
    errno = durable_sync_directory(data);
    return errno ? -1 : 0;
}

int peer_data_open(const char *data, const char *name, int flags) {
    char path[4096];
    if (make_directory(data) != 0) return -1;
    snprintf(path, sizeof path, "%s/%s", data, name);
    return open(path, flags | O_CLOEXEC, 0600);
}

enum peer_beginning { FIRST, RESTARTED, RESUMED };

static void take_incarnation(struct peer *peer) {
    peer->incarnation = wall_clock_us();
    if (peer->incarnation <= peer->durable.incarnation)
        peer->incarnation = peer->durable.incarnation + 1;
    peer->durable.incarnation = peer->incarnation;
}

/* Opens what it has kept. */
static int open_data(struct peer *peer, enum peer_beginning *beginning, char *error) {
    const struct peer_config *config = &peer->config;
    struct machine *machine = &peer->machine[ALGORITHM];
    char path[4096], why[DURABLE_ERROR_MAX];
    if (make_directory(config->data) != 0) {
        snprintf(error, PEER_ERROR_MAX, "%.200s: %s", config->data, strerror(errno));
        return -1;
    }
    snprintf(path, sizeof path, "%s/durable", config->data);
    enum durable_found found = durable_open(&peer->durable, path, peer->group->identity, peer->self,
                                            machine->state, machine->layout.durable, why);
    if (found == DURABLE_FAILED) {
        snprintf(error, PEER_ERROR_MAX, "%s", why);
        return -1;
    }
    *beginning = found == DURABLE_NEW ? FIRST : RESTARTED;
    peer->run = peer->next_run = peer->durable.run;
    if (config->amnesia) memset(machine->state, 0, machine->layout.durable);
    if (found == DURABLE_SUSPENDED && !config->amnesia && checkpoint_read(peer)) {
        *beginning = RESUMED;
        peer->resumed = true;
        peer->incarnation = peer->durable.incarnation;
    } else {
        take_incarnation(peer);
    }
    return 0;
}

/* A run that is not the first waits for all. */
static bool begins_at_once(const struct peer *peer, enum peer_beginning beginning) {
    return beginning != FIRST || !peer->run;
}

/* Writes down that it runs again: the next incarnation is higher, and no checkpoint counts.  Until
 * then a start that fails has changed nothing. */
static int begin(struct peer *peer, enum peer_beginning beginning, char *error) {
    int failed = begins_at_once(peer, beginning)
                     ? durable_write(&peer->durable, peer->machine[ALGORITHM].state)
                     : durable_end(&peer->durable, peer->run);
    if (failed) snprintf(error, PEER_ERROR_MAX, "%.200s: %s", peer->config.data, strerror(failed));
    if (!failed && peer->resumed) checkpoint_remove(peer);
    return failed ? -1 : 0;
}

static int open_record(struct peer *peer, enum peer_beginning beginning, char *error) {
    const struct peer_config *config = &peer->config;
    char why[RECORD_ERROR_MAX];
    if (!config->record) return 0;
    if (recorder_open(&peer->recorder, config->record, why) != 0) {
        snprintf(error, PEER_ERROR_MAX, "%s", why);
        return -1;
    }
    bool follows = peer->recorded && recorder_size(&peer->recorder) == peer->recorded;
    if (beginning == RESUMED && !follows) {
        logger_warning("the run is not recorded: it goes on with a state that is in no record",
                       LOGGER_STRING("file", config->record));
        recorder_close(&peer->recorder);
    }
    return 0;
}

/* Its record says how it begins. */
static void begin_record(struct peer *peer, enum peer_beginning beginning) {
    const struct peer_config *config = &peer->config;
    const struct machine *machine = &peer->machine[ALGORITHM];
    const struct recorder_run run = {.group = peer->group,
                                     .self = peer->self,
                                     .incarnation = peer->incarnation,
                                     .wall_us = wall_clock_us(),
                                     .now_us = uv_hrtime() / 1000,
                                     .flags = (beginning == RESTARTED ? RECORD_AGAIN : 0u) |
                                              (beginning == RESUMED ? RECORD_RESUMED : 0u) |
                                              (config->amnesia ? RECORD_AMNESIA : 0u) |
                                              (config->detector ? RECORD_DETECTOR : 0u),
                                     .prefix =
                                         hash_long(machine->state, machine->layout.durable, 0),
                                     .group_run = peer->run};
    recorder_run(&peer->recorder, &run);
}

static void start(struct peer *peer, enum peer_beginning beginning) {
    struct cv_event event = {.type = beginning == RESTARTED ? CV_RESTART : CV_START};
    peer->stranded = beginning == RESTARTED && peer->group->algorithm->traits & CV_NO_WAY_BACK;
    if (peer->stranded)
        logger_warning("this peer has crashed, and the algorithm has no way back from that: it "
                       "takes part again when the group begins anew; end all of it, and delete the "
                       "data of all",
                       LOGGER_STRING("algorithm", peer->group->algorithm->name));
    begin_record(peer, beginning);
    peer->begun = true;
    if (beginning != RESUMED) peer_step(peer, ALGORITHM, &event);
    event.type = CV_START;
    if (peer->machine[DETECTOR].code) peer_step(peer, DETECTOR, &event);
}

void peer_begin_run(struct peer *peer) {
    int failed = durable_write(&peer->durable, peer->machine[ALGORITHM].state);
    if (failed) return peer_fail(peer, strerror(failed));
    start(peer, FIRST);
}

struct peer *peer_open(const struct peer_config *config, char error[PEER_ERROR_MAX]) {
    struct peer *peer = calloc(1, sizeof *peer);
    uint64_t seed = wall_clock_us() ^ (uint64_t)config->self << 48;
    enum peer_beginning beginning = FIRST;
    cv_assert(peer);
    peer->config = *config;
    peer->group = config->group;
    peer->self = config->self;
    peer->durable.fd = peer->recorder.fd = -1;
    rng_seed(&peer->rng, seed);
    peer->other = calloc((size_t)config->group->processes + 1, sizeof *peer->other);
    cv_assert(peer->other);
    lay_out(peer, ALGORITHM, config->group->algorithm, config->group->option);
    if (config->detector) lay_out(peer, DETECTOR, config->detector, peer->config.detector_option);
    peer->out.sends = malloc(peer->out.room);
    uint32_t body = codec_room(&peer->machine[ALGORITHM].codec);
    uint32_t beat = config->detector ? codec_room(&peer->machine[DETECTOR].codec) : 0;
    peer->body = malloc(body > beat ? body : beat);
    cv_assert(peer->out.sends && peer->body);
    if (open_data(peer, &beginning, error) != 0 || open_record(peer, beginning, error) != 0 ||
        channels_open(peer, error) != 0 || begin(peer, beginning, error) != 0) {
        peer_close(peer);
        return NULL;
    }
    if (begins_at_once(peer, beginning))
        start(peer, beginning);
    else
        runs_watch(peer);
    return peer;
}

/* ---- Closing ---- */

static void end_record(struct peer *peer, bool in_order) {
    if (peer->begun) recorder_end(&peer->recorder, uv_hrtime() / 1000, in_order);
    peer_flush_record(peer);
}

static void forget_leader(struct peer *peer) {
    const struct cv_tell tell = {.what = CV_LEADERLESS};
    peer->leader = 0;
    if (peer->group->algorithm->problem == CV_ELECTION)
        peer->config.told(peer->config.owner, &tell);
}

/* What the application wants of the run that was left, it wants of the next one. */
static void keep_wishes(struct peer *peer) {
    const struct cv_tell left = {.what = CV_LEFT};
    bool waits = peer->phase == WAITING && !peer->orphan;
    bool told = peer->phase == LEAVING && !peer->orphan;
    peer->call_count = 0;
    peer->phase = OUTSIDE;
    peer->orphan = false;
    if (waits) peer_call(peer, CV_ACQUIRE);
    if (peer->campaigned) peer_call(peer, CV_CAMPAIGN);
    if (told) peer->config.told(peer->config.owner, &left);
}

void peer_renew(struct peer *peer) {
    logger_info("the run of the group is over, and this peer joins the next one",
                LOGGER_UINT("run", peer->next_run));
    end_record(peer, peer->phase == OUTSIDE);
    peer->begun = peer->met = peer->resumed = peer->late = false;
    peer->run = peer->next_run;
    take_incarnation(peer);
    int failed = durable_end(&peer->durable, peer->run);
    if (failed) return peer_fail(peer, strerror(failed));
    for (int m = 0; m < MACHINES; m++) {
        struct machine *machine = &peer->machine[m];
        for (unsigned t = 0; machine->code && t < machine->code->timers; t++)
            uv_timer_stop(&machine->timer[t].uv);
        if (machine->code) memset(machine->state, 0, machine->size);
    }
    for (cv_pid p = 1; p <= peer->group->processes; p++) {
        if (peer->other[p].suspected && peer->config.suspects)
            peer->config.suspects(peer->config.owner, p, false);
        peer->other[p].suspected = false;
    }
    channels_renew(peer);
    forget_leader(peer);
    keep_wishes(peer);
    runs_watch(peer);
}

void peer_abandon(struct peer *peer) {
    if (!peer->begun) peer->call_count = 0;
    if (peer->over || peer->phase == OUTSIDE) return;
    peer->orphan = true;
    if (peer->phase == INSIDE) peer_call(peer, CV_RELEASE);
}

int peer_suspend(struct peer *peer) {
    bool can = peer->machine[ALGORITHM].layout.patient && !peer->over && peer->begun &&
               peer->phase <= WAITING && !peer->stranded;
    if (!can) return 0;
    end_record(peer, false);
    peer->suspended = true;
    int failed = checkpoint_write(peer);
    if (!failed) failed = durable_suspend(&peer->durable);
    if (failed)
        logger_error("this peer cannot go on later where it is, and will be one that has crashed",
                     LOGGER_STRING("reason", strerror(failed)));
    peer->over = true;
    return failed;
}

static void free_all(struct peer *peer) {
    for (cv_pid p = 1; p <= peer->group->processes; p++) channel_free(&peer->other[p].channel);
    for (int m = 0; m < MACHINES; m++) free(peer->machine[m].state);
    durable_close(&peer->durable);
    recorder_close(&peer->recorder);
    free(peer->other);
    free(peer->out.sends);
    free(peer->body);
    free(peer);
}

static void closed(uv_handle_t *handle) {
    struct peer *peer = handle->data;
    if (--peer->handles == 0) free_all(peer);
}

void peer_close(struct peer *peer) {
    if (!peer->suspended) end_record(peer, peer->ended);
    peer->closing = peer->over = true;
    bool networked = peer->links != NULL;
    channels_close(peer);
    for (int m = 0; m < MACHINES; m++)
        for (unsigned t = 0; peer->machine[m].code && t < peer->machine[m].code->timers; t++) {
            peer->machine[m].timer[t].uv.data = peer;
            uv_close((uv_handle_t *)&peer->machine[m].timer[t].uv, closed);
        }
    if (networked) {
        uv_close((uv_handle_t *)&peer->flush, closed);
        uv_close((uv_handle_t *)&peer->acknowledge, closed);
        uv_close((uv_handle_t *)&peer->runs, closed);
    } else if (!peer->handles) {
        free_all(peer);
    }
}

/* ---- Looking ---- */

uint64_t peer_messages(const struct peer *peer) { return peer->messages; }

void peer_look(const struct peer *peer, struct peer_view *view) {
    const struct machine *machine = &peer->machine[ALGORITHM];
    const struct group *group = peer->group;
    *view = (struct peer_view){.state = malloc(machine->size),
                               .rows = machine->layout.rows,
                               .first = machine->layout.first};
    cv_assert(view->state);
    memcpy(view->state, machine->state, machine->size);
    for (cv_pid p = 1; p <= group->processes; p++) {
        const struct other *other = &peer->other[p];
        if (is_connected(other)) view->other[p] |= PEER_CONNECTED;
        if (other->suspected) view->other[p] |= PEER_SUSPECTED;
        if (is_connected(other) && other->channel.acknowledged < other->awaited)
            view->other[p] |= PEER_BEHIND;
    }
}

bool peer_is_local(const struct group *group) {
    for (cv_pid p = 1; p <= group->processes; p++) {
        struct sockaddr_storage address;
        if (net_resolve(group->member[p].host, group->member[p].port, &address) != 0 ||
            !net_is_loopback((struct sockaddr *)&address))
            return false;
    }
    return true;
}
