#include "lab/peers/merge.h"

#include <stdio.h>
#include <stdlib.h>

#include "lab/peers/internal.h"
#include "lab/sim/sim.h"
#include "language/language.h"

#define ARENA_BYTES ((uint64_t)1 << 36)

static int fail(const struct play *play, cv_pid p, const char *why) {
    const struct repeat *repeat = &play->lane[p].repeat;
    snprintf(play->error, RECORD_ERROR_MAX, "%.200s: process %u, step %zu: %s", repeat->run->path,
             p, repeat->next + 1, why);
    return -1;
}

cv_pid merge_bearer(const struct merge *merge, uint64_t id) {
    cv_pid p = merge->roster.processes;
    while (p && merge->records->group.ids[p] != id) p--;
    return p;
}

/* ---- Messages: found by who has sent them to whom ---- */

static int compare(const struct message *a, const struct message *b) {
    if (a->run != b->run) return a->run < b->run ? -1 : 1;
    if (a->to != b->to) return a->to < b->to ? -1 : 1;
    if (a->incarnation != b->incarnation) return a->incarnation < b->incarnation ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int by_channel(const void *a, const void *b) {
    return compare(*(struct message *const *)a, *(struct message *const *)b);
}

static void gather_messages(struct play *play) {
    const struct records *records = play->merge->records;
    size_t count = 0;
    for (size_t i = 0; i < records->run_count; i++) count += records->run[i].sent_count;
    cv_assert(count < NO_MESSAGE);
    play->message = calloc(count + 1, sizeof *play->message);
    play->sorted = calloc(count + 1, sizeof(struct message *));
    play->first = calloc(records->run_count + 1, sizeof *play->first);
    cv_assert(play->message && play->sorted && play->first);
    for (size_t i = 0; i < records->run_count; i++) {
        play->first[i] = play->message_count;
        for (size_t k = 0; k < records->run[i].sent_count; k++) {
            const struct record_sent *sent = &records->run[i].sent[k];
            play->sorted[play->message_count] = &play->message[play->message_count];
            play->message[play->message_count++] =
                (struct message){.run = (uint32_t)i,
                                 .to = sent->to,
                                 .incarnation = sent->incarnation,
                                 .number = sent->number};
        }
    }
    qsort(play->sorted, play->message_count, sizeof(struct message *), by_channel);
}

static uint32_t find_message(const struct play *play, const struct message *wanted) {
    uint32_t from = 0, to = play->message_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        int order = compare(play->sorted[middle], wanted);
        if (order == 0) return (uint32_t)(play->sorted[middle] - play->message);
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NO_MESSAGE;
}

/* ---- Lanes ---- */

/* Finds what the next step has to wait for. */
static int look_ahead(struct play *play, cv_pid p) {
    struct lane *lane = &play->lane[p];
    const struct records *records = play->merge->records;
    lane->awaited = NO_MESSAGE;
    lane->unsent = false;
    if (repeat_is_over(&lane->repeat)) return 0;
    const struct record_step *step = &lane->repeat.run->step[lane->repeat.next];
    if (step->event.type != CV_RECV) return 0;
    const struct lane *sender = &play->lane[step->event.from];
    for (size_t i = sender->last_run + 1; i-- > 0 && records->run[i].self == step->event.from;) {
        if (records->run[i].incarnation != step->from_incarnation) continue;
        struct message wanted = {.run = (uint32_t)i,
                                 .to = p,
                                 .incarnation = lane->repeat.run->incarnation,
                                 .number = step->number};
        lane->awaited = find_message(play, &wanted);
        lane->unsent = lane->awaited == NO_MESSAGE;
        if (lane->unsent && records->run[i].ended)
            return fail(play, p, "it has received a message that was not sent");
        return 0;
    }
    return fail(play, p, "it has received a message in a run of which there is no record");
}

static int open_lanes(struct play *play) {
    const struct records *records = play->merge->records;
    uint32_t n = records->group.processes;
    play->lane = calloc((size_t)n + 1, sizeof *play->lane);
    cv_assert(play->lane);
    play->begin_us = UINT64_MAX;
    for (size_t i = records->run_count; i-- > 0;) {
        const struct record_run *run = &records->run[i];
        if (!play->lane[run->self].last_run) play->lane[run->self].last_run = i;
        play->lane[run->self].run = i;
        if (run->began_us < play->begin_us) play->begin_us = run->began_us;
    }
    for (cv_pid p = 1; p <= n; p++) {
        struct lane *lane = &play->lane[p];
        if (records->run[lane->run].self != p) {
            snprintf(play->error, RECORD_ERROR_MAX,
                     "there is no record of process %u; it takes those of all %u", p, n);
            return -1;
        }
        if (repeat_open(&lane->repeat, records, &records->run[lane->run], play->error) != 0)
            return -1;
    }
    for (cv_pid p = 1; p <= n; p++)
        if (look_ahead(play, p) != 0) return -1;
    return 0;
}

static bool all_others_at_end(const struct play *play, cv_pid p) {
    for (cv_pid q = 1; q <= play->merge->roster.processes; q++) {
        const struct lane *lane = &play->lane[q];
        if (q != p && !lane->over &&
            !(lane->run == lane->last_run && repeat_is_over(&lane->repeat)))
            return false;
    }
    return true;
}

/* The end of a run: a process that was stopped when nothing more happened was there to the end. */
static int end_run(struct play *play, cv_pid p) {
    struct lane *lane = &play->lane[p];
    const struct record_run *run = lane->repeat.run;
    bool last = lane->run == lane->last_run;
    bool stays = last && run->ended && (run->in_order || all_others_at_end(play, p));
    if (!stays && !run->in_order) told_crash(play, p);
    lane->over = last;
    if (last) return 0;
    lane->run++;
    if (repeat_open(&lane->repeat, play->merge->records, &play->merge->records->run[lane->run],
                    play->error) != 0)
        return -1;
    return look_ahead(play, p);
}

static int take_step(struct play *play, cv_pid p) {
    struct lane *lane = &play->lane[p];
    if (repeat_step(&lane->repeat, play->error) != 0) return -1;
    if (lane->awaited != NO_MESSAGE) {
        const struct cv_event *event = &lane->repeat.event;
        lane->repeat.next--; /* for the number of the step, in an error */
        if (play->message[lane->awaited].hash != hash_long(event->body, event->size, event->kind))
            return fail(play, p, "it has received another message than was sent");
        lane->repeat.next++;
    }
    play->merge->result.unsent += lane->unsent;
    told_step(play, p);
    return look_ahead(play, p);
}

/* ---- The order ---- */

static uint64_t time_of(const struct lane *lane) {
    const struct record_run *run = lane->repeat.run;
    if (!repeat_is_over(&lane->repeat)) return run->step[lane->repeat.next].time_us;
    return run->ended ? run->ended_us : 0; /* one that was killed is gone */
}

static bool is_leave(const struct lane *lane) {
    if (repeat_is_over(&lane->repeat)) return false;
    const struct cv_event *event = &lane->repeat.run->step[lane->repeat.next].event;
    return event->type == CV_CALL && event->arg == CV_RELEASE;
}

/* No process takes a step in a run of the group before all others have ended those before it. */
static bool waits_for_its_run(const struct play *play, const struct lane *lane) {
    uint32_t group_run = lane->repeat.run->group_run;
    for (cv_pid p = 1; group_run && p <= play->merge->roster.processes; p++)
        if (!play->lane[p].over && play->lane[p].repeat.run->group_run < group_run) return true;
    return false;
}

/* The process whose turn it is: of those that can go on, the one whose clock says the earliest
 * time.  Those whose message is in no record go on when nobody else can. */
static cv_pid whose_turn(const struct play *play) {
    cv_pid best = CV_NOBODY;
    unsigned best_rank = 0;
    uint64_t best_us = 0;
    for (cv_pid p = 1; p <= play->merge->roster.processes; p++) {
        const struct lane *lane = &play->lane[p];
        if (lane->over || (lane->awaited != NO_MESSAGE && !play->message[lane->awaited].sent) ||
            waits_for_its_run(play, lane))
            continue;
        unsigned rank = lane->unsent ? 2 : play->late_leaves && is_leave(lane) ? 1 : 0;
        uint64_t us = time_of(lane);
        if (best && (rank > best_rank || (rank == best_rank && us >= best_us))) continue;
        best = p, best_rank = rank, best_us = us;
    }
    return best;
}

static int run_lanes(struct play *play) {
    const uint32_t n = play->merge->roster.processes;
    for (cv_pid p; (p = whose_turn(play));) {
        struct lane *lane = &play->lane[p];
        uint64_t us = time_of(lane);
        if (us > play->begin_us && us - play->begin_us > play->now_us)
            play->now_us = us - play->begin_us;
        int failed = repeat_is_over(&lane->repeat) ? end_run(play, p) : take_step(play, p);
        if (failed) return -1;
    }
    for (cv_pid p = 1; p <= n; p++)
        if (!play->lane[p].over)
            return fail(play, p, "it waits for a message that was sent only after this one");
    return 0;
}

/* ---- Judging ---- */

static bool apart(const void *context, cv_pid a, cv_pid b) {
    (void)context, (void)a, (void)b;
    return false;
}

/* For pictures of the network. */
static void trace_neighbours(struct merge *merge) {
    const struct group *group = &merge->records->group;
    uint32_t n = group->processes;
    cv_pid *ring = NULL;
    if (group->algorithm->topology == CV_RING) {
        ring = arena_take(&merge->arena, (2 * (size_t)n + 1) * sizeof *ring);
        for (uint32_t i = 0; i <= 2 * n; i++) ring[i] = i % n + 1;
    }
    const struct topology topology = {.processes = n,
                                      .complete = !group->neighbour,
                                      .offset = group->first,
                                      .neighbour = group->neighbour,
                                      .ring = ring,
                                      .ids = group->ids,
                                      .weights = group->weights};
    trace_network(&merge->trace, &topology);
}

static void open_judges(struct merge *merge) {
    const struct group *group = &merge->records->group;
    const struct cv_algorithm *code = group->algorithm;
    struct sim_config config;
    if (code->problem == CV_ELECTION) {
        struct election_rules rules = {.preference = code->preference,
                                       .terms = code->traits & CV_TERMS,
                                       .anonymous = code->traits & CV_ANONYMOUS,
                                       .ids = group->ids,
                                       .weights = group->weights,
                                       .apart = apart};
        election_judge_open(&merge->election, &merge->arena, &merge->roster, &rules);
    } else {
        struct mutex_rules rules = {0};
        mutex_judge_open(&merge->mutex, &merge->arena, &merge->roster, &rules);
    }
    config_init(&config, code);
    trace_open(&merge->trace, &config);
    config_free(&config);
    merge->trace.roster = merge->roster;
    if (code->problem == CV_ELECTION) trace_neighbours(merge);
}

static void close_judges(struct merge *merge, uint64_t now, bool late_leaves) {
    struct merge_result *result = &merge->result;
    if (merge->records->group.algorithm->problem == CV_ELECTION) {
        const uint32_t *part =
            arena_take(&merge->arena, ((size_t)merge->roster.processes + 1) * sizeof *part);
        election_judge_close(&merge->election, now, LASTED, part);
        memcpy(result->verdict, merge->election.verdict, sizeof merge->election.verdict);
        /* Logs are compared at one moment, and records of several machines have none. */
        for (int i = LOG_MATCHING; i < ELECTION_PROPERTIES; i++) {
            result->verdict[i] = (struct verdict){0};
            verdict_set(&result->verdict[i], UNKNOWN, now, "%s",
                        _("logs are not judged in records"));
        }
        return;
    }
    mutex_judge_close(&merge->mutex, now, LASTED);
    memcpy(result->verdict, merge->mutex.verdict, sizeof merge->mutex.verdict);
    result->entries = merge->mutex.entries;
    for (int i = DEADLOCK; late_leaves && i < MUTEX_PROPERTIES; i++)
        result->verdict[i] = (struct verdict){.value = UNKNOWN};
}

static void play_close(struct play *play) {
    for (cv_pid p = 1; play->lane && p <= play->merge->roster.processes; p++)
        repeat_close(&play->lane[p].repeat);
    free(play->lane);
    free(play->message);
    free(play->sorted);
    free(play->first);
}

/* In one of the orders that the messages allow. */
static int play_all(struct merge *merge, bool late_leaves, char *error) {
    struct play play = {.merge = merge, .late_leaves = late_leaves, .error = error};
    trace_close(&merge->trace);
    arena_reset(&merge->arena);
    merge->result = (struct merge_result){.late_leaves = late_leaves};
    open_judges(merge);
    gather_messages(&play);
    int failed = open_lanes(&play) != 0 || run_lanes(&play) != 0;
    if (!failed) close_judges(merge, play.now_us, late_leaves);
    play_close(&play);
    return failed ? -1 : 0;
}

static int open_merge(struct merge *merge, const struct records *records, char *error) {
    const struct group *group = &records->group;
    *merge = (struct merge){.records = records};
    for (size_t i = 1; i < records->run_count; i++)
        if (records->run[i].self == records->run[i - 1].self &&
            records->run[i].incarnation == records->run[i - 1].incarnation) {
            snprintf(error, RECORD_ERROR_MAX, "%.200s: the same run is in %.200s",
                     records->run[i].path, records->run[i - 1].path);
            return -1;
        }
    if (!records->run_count || arena_open(&merge->arena, ARENA_BYTES) != 0) {
        snprintf(error, RECORD_ERROR_MAX,
                 records->run_count ? "out of address space" : "there are no records");
        return -1;
    }
    merge->roster = (struct roster){.processes = group->processes,
                                    .servers = group->servers,
                                    .server_name = group->algorithm->server_name};
    return 0;
}

static void count_torn(struct merge *merge) {
    for (size_t i = 0; i < merge->records->run_count; i++)
        merge->result.torn += merge->records->run[i].torn != 0;
}

/* Where messages are missing, what they would have ordered is not known. */
static int judge_order(struct merge *merge, char *error) {
    if (play_all(merge, true, error) != 0) return -1;
    struct verdict late = merge->result.verdict[EXCLUSION];
    if (late.value == VIOLATED && !merge->result.unsent) return 0;
    if (play_all(merge, false, error) != 0) return -1;
    struct verdict *exclusion = &merge->result.verdict[EXCLUSION];
    if (late.value == VIOLATED && exclusion->value != VIOLATED) {
        *exclusion = late;
        exclusion->value = UNKNOWN;
    }
    return 0;
}

/* A process that has sent what no record has lived longer than its record says. */
static void doubt(struct merge *merge) {
    int count = sim_properties(merge->records->group.algorithm).count;
    for (int i = 0; i < count && merge->result.unsent; i++)
        if (merge->result.verdict[i].value == HELD)
            verdict_set(&merge->result.verdict[i], UNKNOWN, 0,
                        _("somebody's record ends before what it did last"));
}

int merge_run(struct merge *merge, const struct records *records, char error[RECORD_ERROR_MAX]) {
    if (open_merge(merge, records, error) != 0) return -1;
    bool lock = records->group.algorithm->problem == CV_MUTEX;
    if (lock ? judge_order(merge, error) : play_all(merge, false, error)) return -1;
    doubt(merge);
    count_torn(merge);
    return 0;
}

int merge_replay(struct merge *merge, const struct records *records, char error[RECORD_ERROR_MAX]) {
    struct repeat repeat = {0};
    int failed = open_merge(merge, records, error);
    for (size_t i = 0; i < records->run_count && !failed; i++) {
        const struct record_run *run = &records->run[i];
        if (i && records->run[i - 1].self != run->self) repeat_close(&repeat);
        failed = repeat_open(&repeat, records, run, error);
        while (!failed && !repeat_is_over(&repeat)) {
            failed = repeat_step(&repeat, error);
            merge->result.steps++;
        }
    }
    repeat_close(&repeat);
    if (!failed) count_torn(merge);
    return failed;
}

bool merge_violated(const struct merge *merge) {
    return any_violated(merge->result.verdict,
                        sim_properties(merge->records->group.algorithm).count);
}

void merge_cut(struct merge *merge) {
    if (merge->records->group.algorithm->problem == CV_ELECTION)
        trace_cut_election(&merge->trace, &merge->election);
    else
        trace_cut_lock(&merge->trace, &merge->mutex);
}

void merge_close(struct merge *merge) {
    trace_close(&merge->trace);
    arena_close(&merge->arena);
    *merge = (struct merge){0};
}
