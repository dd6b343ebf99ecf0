/* One check: the search, what it decides, and the counterexamples. */
#include "check/check.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check/path.h"
#include "judge/election.h"
#include "judge/mutex.h"

#define REPORT_EVERY_S 0.25

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool search_broken(struct search *s, uint32_t state, uint32_t properties, bool in_state) {
    pthread_mutex_lock(&s->lock);
    for (uint32_t new = properties & ~s->broken; new; new &= new - 1)
        s->explorer.violation[__builtin_ctz(new)] = (struct violation){state, in_state};
    s->broken |= properties;
    bool over = s->enough && (s->broken & s->enough) == s->enough;
    over |= !s->enough && !s->options->keep_going;
    pthread_mutex_unlock(&s->lock);
    return over;
}

void search_report(struct search *s, uint64_t states, uint64_t transitions, uint64_t frontier,
                   uint64_t depth) {
    if (!s->options->progress) return;
    double now = seconds_now();
    if (now - s->reported < REPORT_EVERY_S) return;
    s->reported = now;
    struct check_progress progress = {.states = states,
                                      .transitions = transitions,
                                      .frontier = frontier,
                                      .depth = depth,
                                      .memory = explorer_bytes(&s->explorer),
                                      .seconds = now - s->began};
    s->options->progress(s->options->context, &progress);
}

/* ---- Deciding ---- */

/* The property that a cycle can break. */
static unsigned waiting_property(const struct check_model *model) {
    return 1u << (model->algorithm->problem == CV_ELECTION ? (int)LIVENESS : (int)STARVATION);
}

/* Those that an end decides: nothing is known of them where timers would have gone on. */
static unsigned end_properties(const struct check_model *model) {
    if (model->algorithm->problem == CV_ELECTION)
        return 1u << SAFETY | 1u << LIVENESS | 1u << TERMINATION | 1u << AGREEMENT;
    return 1u << DEADLOCK | 1u << STARVATION;
}

static void decide(struct search *s) {
    struct check_result *result = s->result;
    if (s->broken && !s->options->keep_going) result->end = CHECK_VIOLATED;
    bool complete = result->end == CHECK_COMPLETE || result->end == CHECK_DEPTH;
    unsigned undecided = s->undecided;
    if (result->end == CHECK_DEPTH) undecided |= waiting_property(s->explorer.model);
    if (result->cut) undecided |= end_properties(s->explorer.model);
    result->violated = -1;
    for (int i = 0; i < PROPERTIES_MAX; i++) {
        if (s->broken & 1u << i) {
            result->verdict[i] = VIOLATED;
            if (result->violated < 0) result->violated = i;
        } else if (s->explorer.judged & 1u << i) {
            result->verdict[i] = complete && !(undecided & 1u << i) ? HELD : UNKNOWN;
        }
    }
}

static void find_paths(struct search *s) {
    for (int i = 0; i < PROPERTIES_MAX; i++)
        if (s->broken & 1u << i && !s->result->path[i].move) s->result->path[i] = path_to(s, i);
}

/* Searches once; `enough`: see struct search. */
static int run_once(const struct check_model *model, const struct check_search *options,
                    unsigned threads, unsigned enough, struct check_result *result) {
    struct search s = {.options = options, .result = result, .enough = enough};
    *result = (struct check_result){0};
    if (explorer_open(&s.explorer, model, options) != 0) return -1;
    pthread_mutex_init(&s.lock, NULL);
    s.began = s.reported = seconds_now();
    if (options->compact)
        search_compact(&s);
    else if (options->depth_first)
        search_depth(&s);
    else
        search_breadth(&s, threads);
    if (!options->compact) result->memory_visited = explorer_visited_bytes(&s.explorer);
    uint64_t bytes = explorer_bytes(&s.explorer);
    if (result->memory < bytes) result->memory = bytes;
    bool found = enough && (s.broken & enough) == enough;
    if (result->end == CHECK_COMPLETE && !found && (!s.broken || options->keep_going))
        search_cycles(&s);
    result->seconds = seconds_now() - s.began;
    decide(&s);
    if (threads == 1) find_paths(&s);
    explorer_close(&s.explorer);
    pthread_mutex_destroy(&s.lock);
    return 0;
}

static unsigned broken_properties(const struct check_result *result) {
    unsigned broken = 0;
    for (int i = 0; i < PROPERTIES_MAX; i++)
        if (result->verdict[i] == VIOLATED) broken |= 1u << i;
    return broken;
}

/* Which of several ways to a violation is found first depends on the threads, so the way is found
 * again by one alone, and everybody is shown the same. */
static int find_again(const struct check_model *model, const struct check_search *options,
                      struct check_result *result) {
    struct check_result again;
    unsigned broken = options->keep_going ? broken_properties(result) : 0;
    if (run_once(model, options, 1, broken, &again) != 0) return -1;
    if (options->keep_going) {
        memcpy(result->path, again.path, sizeof result->path);
    } else {
        again.seconds = result->seconds;
        *result = again;
    }
    return 0;
}

int check_run(const struct check_model *model, const struct check_search *options,
              struct check_result *result) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned threads = options->threads ? options->threads : cores > 0 ? (unsigned)cores : 1;
    if (options->depth_first || options->compact) threads = 1;
    if (run_once(model, options, threads, 0, result) != 0) return -1;
    if (threads > 1 && result->violated >= 0) return find_again(model, options, result);
    return 0;
}

void check_free(struct check_result *result) {
    for (int i = 0; i < PROPERTIES_MAX; i++) {
        free(result->path[i].move);
        free(result->path[i].flight);
    }
}

const char *check_refuse(const struct check_model *model, const struct check_search *search) {
    bool grows = model->algorithm->traits & CV_GROWS, timers = model->algorithm->timers;
    if (grows && timers && model->timeouts == CHECK_FOREVER && !search->depth)
        return "its timers can fire for ever, and something grows each time: say how often they "
               "may, with --timeouts K";
    if (grows && !timers && !search->depth)
        return "its rounds can go on for ever, and are numbered: say how many steps to look at, "
               "with --depth D";
    if (model->fencing && (model->processes - model->servers) * model->entries > TOKENS_MAX / 2)
        return "fencing: so many entries take more tokens than can be told apart";
    uint32_t moves_for_ever = CV_USES_DETECTOR | CV_NEVER_RESTS;
    bool replaced = model->suspicions && (~model->algorithm->traits & moves_for_ever) == 0;
    if (model->fencing && replaced && !model->fifo &&
        (!search->depth || search->depth > TOKENS_MAX / 2))
        return "fencing: tokens that overtake each other are replaced for ever: say --fifo, or how "
               "many steps to look at (32 at most), with --depth D";
    if (search->depth && (search->depth_first || search->compact))
        return "depth: goes with breadth first, which comes to every state by a shortest way";
    if (model->late && !timers) return "late: it has no timers";
    return NULL;
}
