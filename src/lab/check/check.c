/* One check: the search, its verdicts and the counterexamples. */
#include "lab/check/check.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lab/check/path.h"
#include "lab/judge/election.h"
#include "lab/judge/implications.h"
#include "lab/judge/mutex.h"

#define REPORT_EVERY_S 0.25

#ifdef __wasm__
enum { THREADS = false }; /* a module in a browser has only its own */
#else
enum { THREADS = true };
#endif

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

/* Why a property that was not violated may still be: some bound kept the search from what would
 * decide it.  Only a search that no bound has cut short can say that a property holds. */
static enum check_doubt doubt(const struct search *s, int property) {
    const struct check_result *result = s->result;
    if (!(s->explorer.judged & 1u << property)) return NOT_ASKED;
    if (result->end == CHECK_VIOLATED) return AFTER_THE_FIRST;
    if (result->end == CHECK_DEPTH) return BEYOND_DEPTH;
    if (result->end == CHECK_MEMORY && !s->explored) return BEYOND_MEMORY;
    if (result->timers_left) return BEYOND_TIMEOUTS;
    bool lock = s->explorer.model->algorithm->problem == CV_MUTEX;
    bool counted =
        property == BOUNDED_WAIT || (property == STARVATION && s->explorer.model->starved_after &&
                                     s->waits_doubt != ALL_ENTRIES_USED);
    if (lock && counted && s->waits_doubt) return s->waits_doubt;
    if (!(s->undecided & 1u << property)) return NO_DOUBT;
    return result->end == CHECK_MEMORY ? BEYOND_MEMORY : CYCLES_UNSEEN;
}

static void decide(struct search *s) {
    struct check_result *result = s->result;
    if (s->broken && !s->options->keep_going) result->end = CHECK_VIOLATED;
    result->violated = -1;
    for (int i = 0; i < PROPERTIES_MAX; i++) {
        if (s->broken & 1u << i) {
            result->verdict[i] = VIOLATED;
            if (result->violated < 0) result->violated = i;
        } else {
            result->doubt[i] = doubt(s, i);
            result->verdict[i] = result->doubt[i] == NO_DOUBT ? HELD : UNKNOWN;
        }
    }
    cv_assert(!verdicts_contradict(s->explorer.model->algorithm, result->verdict));
}

static void find_paths(struct search *s) {
    for (int i = 0; i < PROPERTIES_MAX; i++)
        if (s->broken & 1u << i && !s->result->path[i].move) s->result->path[i] = path_to(s, i);
}

/* Searches once; `enough`: see struct search. */
static int run_once(const struct check_model *model, const struct check_search *options,
                    unsigned threads, unsigned enough, struct check_result *result) {
    struct search s = {.options = options, .result = result, .enough = enough};
    *result = (struct check_result){.overtakes = -1};
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
    s.explored = result->end == CHECK_COMPLETE;
    if (result->end == CHECK_COMPLETE && !found && (!s.broken || options->keep_going))
        search_cycles(&s);
    found = enough && (s.broken & enough) == enough;
    if (result->end == CHECK_COMPLETE && !found && (!s.broken || options->keep_going))
        search_waits(&s);
    search_likely(&s);
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

void check_free(struct check_result *result) {
    for (int i = 0; i < PROPERTIES_MAX; i++) {
        free(result->path[i].move);
        free(result->path[i].flight);
    }
}

/* Which of several paths to a violation is found first depends on the threads, so a single thread
 * searches again, for a counterexample that is always the same. */
static int find_again(const struct check_model *model, const struct check_search *options,
                      struct check_result *result) {
    struct check_result again;
    unsigned broken = options->keep_going ? broken_properties(result) : 0;
    if (run_once(model, options, 1, broken, &again) != 0) return -1;
    check_free(result);
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
    if (options->depth_first || options->compact || !THREADS) threads = 1;
    if (run_once(model, options, threads, 0, result) != 0) return -1;
    if (threads > 1 && result->violated >= 0) return find_again(model, options, result);
    return 0;
}

const char *check_refuse(const struct check_model *model, const struct check_search *search) {
    bool grows = model->algorithm->traits & CV_UNBOUNDED, timers = model->algorithm->timers;
    if (grows && timers && model->timeouts == CHECK_FOREVER && !search->depth)
        return "its timers can fire for ever, and its state grows each time: bound them with "
               "--timeouts K";
    if (grows && !timers && !search->depth)
        return "its rounds are numbered and can go on for ever: bound the steps with --depth D";
    if (model->fencing && (model->processes - model->servers) * model->entries > TOKENS_MAX / 2)
        return "fencing: so many entries need more tokens than the checker can number";
    uint32_t moves_for_ever = CV_USES_DETECTOR | CV_NEVER_QUIESCENT;
    bool replaced = model->suspicions && (~model->algorithm->traits & moves_for_ever) == 0;
    if (model->fencing && replaced && !model->fifo &&
        (!search->depth || search->depth > TOKENS_MAX / 2))
        return "fencing: tokens that overtake each other are replaced for ever: give --fifo, or "
               "bound the steps (to 32 at most) with --depth D";
    if (search->depth && (search->depth_first || search->compact))
        return "depth: needs breadth-first search, which reaches every state by a shortest path";
    if (model->late && !timers) return "late: it has no timers";
    return NULL;
}
