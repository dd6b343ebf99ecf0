/* The simulator in small runs that can be checked by hand, and the statistics of many runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "lab/experiments/batch.h"
#include "lab/sim/sim.h"
#include "lab/sim/trace.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* ---- A process that shows what the simulator does to it ----
 *
 * Asked for the lock, a process enters at once, arms a timer and announces itself to all others
 * with some NOTEs; after a restart it sends what it still knows.  It saves what it announced, but
 * not what it received. */
enum { NOTE, KINDS };
enum { REPEAT, ROWS, TIMER, OPTIONS };

#define NOTE_FIELDS(F, R)                                                                          \
    F(R, u64, announced, SHOWN)                                                                    \
    F(R, u64, heard, SHOWN)                                                                        \
    F(R, u64, forgotten, SHOWN)
#define LINE_FIELDS(F, R) F(R, u64, value, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, announced, INNER)                                                                    \
    F(R, u64, heard, INNER) /* durable up to here */                                               \
    F(R, u64, forgotten, INNER)

CV_RECORD(note, NOTE_FIELDS);
CV_RECORD(line, LINE_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void say(const struct state *s, const struct cv_env *env, struct cv_out *out) {
    struct line *line =
        cv_send_rows(out, CV_OTHERS, NOTE, note, line, env->option[ROWS], .announced = s->announced,
                     .heard = s->heard, .forgotten = s->forgotten);
    for (uint64_t i = 0; i < env->option[ROWS]; i++)
        line[i].value = s->announced * 1000003 + i * 7 + env->self;
}

static void announce(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->announced++, s->forgotten++;
    cv_save(out);
    say(s, env, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_CALL && e->arg == CV_ACQUIRE) {
        cv_tell(out, CV_ENTERED, 0);
        cv_timer(out, 0, env->option[TIMER], env->option[TIMER]);
        for (uint64_t i = 0; i < env->option[REPEAT]; i++) announce(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE) {
        cv_tell(out, CV_LEFT, 0);
    } else if (e->type == CV_RECV) {
        s->heard++;
    } else if (e->type == CV_RESTART) {
        say(s, env, out);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->durable = offsetof(struct state, forgotten);
    layout->sends = CV_SENDS_DEFAULT + (uint32_t)env->option[REPEAT];
    layout->message_rows = (uint32_t)((env->option[REPEAT] + 1) * env->option[ROWS]);
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE_ROWS("NOTE", note, line)};
static const struct cv_option options[OPTIONS] = {
    [REPEAT] = {"repeat", "how many notes", CV_NUMBER, 1, 1, 100},
    [ROWS] = {"rows", "how long they are", CV_NUMBER, 0, 0, 1000},
    [TIMER] = {"timer", "when the timer fires", CV_DURATION, 1000, 1, UINT64_MAX},
};
static const struct cv_algorithm announcer = {
    .name = "announcer",
    .summary = "lets everyone in and shows what happens to it",
    .paper = "none",
    .cost = "N-1",
    .delay = "0",
    .state = &state_table,
    .messages = messages,
    .message_count = KINDS,
    .options = options,
    .option_count = OPTIONS,
    .timers = 1,
    .layout = layout,
    .step = step,
    .problem = CV_MUTEX,
    .traits = CV_USES_DETECTOR,
};

/* ---- A run, and what was seen in it ---- */

struct run {
    struct sim_config config;
    struct sim *sim;
    struct trace trace;
};

static struct sim *new_sim(void) {
    struct sim *sim = malloc(sizeof *sim);
    assert_non_null(sim);
    assert_int_equal(sim_open(sim), 0);
    return sim;
}

static void free_sim(struct sim *sim) {
    sim_close(sim);
    free(sim);
}

static void set(struct sim_config *config, const char *name, const char *value) {
    char error[SIM_ERROR_MAX] = "";
    const struct setting *setting = setting_find(name);
    int failed = setting ? setting_apply(config, setting, value, error)
                         : option_apply(config, option_find(config->algorithm, name), value, error);
    if (failed) fail_msg("%s %s: %s", name, value, error);
}

static void at(struct sim_config *config, const char *what) {
    char error[SIM_ERROR_MAX] = "";
    if (action_parse(config, what, error) != 0) fail_msg("%s: %s", what, error);
}

/* Settings as "name value" and actions as "at 5ms p2 crash", up to NULL. */
static void configure(struct sim_config *config, const struct cv_algorithm *algorithm,
                      const char *const *lines) {
    config_init(config, algorithm);
    for (; *lines; lines++) {
        char name[32];
        size_t length = strcspn(*lines, " ");
        const char *value = *lines + length + ((*lines)[length] == ' ');
        memcpy(name, *lines, length);
        name[length] = 0;
        if (strcmp(name, "at") == 0)
            at(config, value);
        else
            set(config, name, value);
    }
    char error[SIM_ERROR_MAX] = "";
    if (config_check(config, error) != 0) fail_msg("%s", error);
}

#define LINES(...)                                                                                 \
    (const char *const[]) { __VA_ARGS__, NULL }

static struct run *run_new(const struct cv_algorithm *algorithm, const char *const *lines) {
    struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    configure(&run->config, algorithm, lines);
    run->sim = new_sim();
    trace_open(&run->trace, &run->config);
    sim_run(run->sim, &run->config, &run->trace);
    return run;
}

static void run_free(struct run *run) {
    trace_close(&run->trace);
    free_sim(run->sim);
    config_free(&run->config);
    free(run);
}

enum { ANY = 0 };

/* The next entry after `from` of that type and process; 0: there is none. */
static size_t next(const struct run *run, size_t from, enum trace_type type, cv_pid process) {
    for (size_t i = from + 1; i < run->trace.count; i++) {
        const struct trace_entry *entry = &run->trace.entry[i];
        if (entry->type == type && (process == ANY || entry->process == process)) return i;
    }
    return 0;
}

static unsigned count(const struct run *run, enum trace_type type, cv_pid process) {
    unsigned found = 0;
    for (size_t i = 0; (i = next(run, i, type, process));) found++;
    return found;
}

static const struct note *note_of(const struct run *run, size_t entry) {
    return (const void *)(run->trace.bytes + run->trace.entry[entry].body);
}

struct sight {
    double ms;
    cv_pid process, peer;
};

/* Exactly these entries of that type, in this order. */
static void assert_sights(const struct run *run, enum trace_type type, const struct sight *sights,
                          size_t expected) {
    size_t entry = 0;
    for (size_t i = 0; i < expected; i++) {
        entry = next(run, entry, type, ANY);
        assert_int_not_equal(entry, 0);
        assert_int_equal(run->trace.entry[entry].time_us, llround(sights[i].ms * 1000));
        assert_int_equal(run->trace.entry[entry].process, sights[i].process);
        assert_int_equal(run->trace.entry[entry].peer, sights[i].peer);
    }
    assert_int_equal(next(run, entry, type, ANY), 0);
}
#define ASSERT_SIGHTS(RUN, TYPE, ...)                                                              \
    assert_sights((RUN), (TYPE), (const struct sight[]){__VA_ARGS__},                              \
                  sizeof((const struct sight[]){__VA_ARGS__}) / sizeof(struct sight))

/* ---- Delays and order ---- */

static void a_message_takes_its_delay(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 3", "delay 4ms", "hold 10ms", "at 5ms p2 acquire"));
    ASSERT_SIGHTS(run, TR_ENTER, {5, 2, 0});
    ASSERT_SIGHTS(run, TR_SEND, {5, 2, 1}, {5, 2, 3});
    ASSERT_SIGHTS(run, TR_TIMER, {6, 2, 0});
    ASSERT_SIGHTS(run, TR_RECEIVE, {9, 1, 2}, {9, 3, 2});
    ASSERT_SIGHTS(run, TR_LEAVE, {15, 2, 0});
    assert_int_equal(run->sim->result.end, ALL_SERVED);
    assert_int_equal(run->sim->result.end_us, 15000);
    assert_int_equal(run->sim->result.messages, 2);
    assert_int_equal(run->sim->result.by_kind[NOTE], 2);
    assert_int_equal(run->sim->result.entries, 1);
    run_free(run);
}

static void an_exception_holds_for_its_channel_until_it_is_lifted(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 3", "at 0ms delay p1 p2 6ms",
                                  "at 0ms p1 acquire hold 1ms", "at 10ms delay p1 * usual",
                                  "at 20ms p1 acquire hold 1ms", "at 30ms lose p1 p3 1",
                                  "at 30ms p1 acquire hold 1ms", "at 40ms p1 acquire hold 1ms"));
    ASSERT_SIGHTS(run, TR_RECEIVE, {1, 3, 1}, {6, 2, 1}, {21, 2, 1}, {21, 3, 1}, {31, 2, 1},
                  {41, 2, 1}, {41, 3, 1});
    ASSERT_SIGHTS(run, TR_LOST, {30, 3, 1});
    run_free(run);
}

/* How often a NOTE overtakes an earlier one on the same channel. */
static unsigned overtakings(const struct run *run) {
    unsigned found = 0, processes = run->trace.roster.processes;
    uint64_t *newest = calloc((size_t)(processes + 1) * (processes + 1), sizeof *newest);
    assert_non_null(newest);
    for (size_t i = 0; (i = next(run, i, TR_RECEIVE, ANY));) {
        const struct trace_entry *entry = &run->trace.entry[i];
        uint64_t *known = &newest[entry->peer * (processes + 1) + entry->process];
        uint64_t announced = note_of(run, i)->announced;
        found += announced < *known;
        if (announced > *known) *known = announced;
    }
    free(newest);
    return found;
}

static const char *const spreads[] = {"delay uniform:1us,20ms", "delay exponential:5ms",
                                      "delay lognormal:2ms,1.5"};

static void channels_keep_their_order_whatever_the_delays(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(spreads); i++) {
        struct run *run = run_new(
            &announcer, LINES(spreads[i], "processes 30", "repeat 5", "entries 60", "think 2ms"));
        assert_int_equal(overtakings(run), 0);
        assert_int_equal(run->sim->result.messages, 60 * 5 * 29);
        assert_int_equal(count(run, TR_RECEIVE, ANY), 60 * 5 * 29);
        run_free(run);
    }
}

static void a_shorter_delay_does_not_break_the_order(void **state) {
    (void)state;
    struct run *run = run_new(
        &announcer, LINES("processes 2", "at 0ms delay p1 p2 9ms", "at 0ms p1 acquire hold 1ms",
                          "at 2ms delay p1 p2 1ms", "at 3ms p1 acquire hold 1ms"));
    ASSERT_SIGHTS(run, TR_RECEIVE, {9, 2, 1}, {9, 2, 1});
    assert_int_equal(overtakings(run), 0);
    run_free(run);
}

static void with_reorder_messages_do_overtake_each_other(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(spreads); i++) {
        struct run *run = run_new(&announcer, LINES(spreads[i], "reorder", "processes 3",
                                                    "repeat 5", "entries 60", "think 2ms"));
        assert_true(overtakings(run) > 50);
        assert_int_equal(count(run, TR_RECEIVE, ANY), 60 * 5 * 2);
        run_free(run);
    }
}

/* ---- Bodies ---- */

static void bodies_of_any_length_arrive_as_they_were_sent(void **state) {
    static const char *const lengths[] = {"rows 0",  "rows 1",  "rows 5",  "rows 6",
                                          "rows 12", "rows 13", "rows 100"};
    (void)state;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct run *run = run_new(&announcer, LINES(lengths[i], "processes 4", "repeat 3",
                                                    "delay exponential:4ms", "duplicate 0.2",
                                                    "loss 0.1", "entries 50", "think 1ms"));
        unsigned received = 0;
        for (size_t k = 0; (k = next(run, k, TR_RECEIVE, ANY)); received++) {
            const struct trace_entry *arrival = &run->trace.entry[k],
                                     *sending = &run->trace.entry[arrival->match];
            assert_int_equal(sending->type, TR_SEND);
            assert_int_equal(arrival->size, sending->size);
            assert_memory_equal(run->trace.bytes + arrival->body, run->trace.bytes + sending->body,
                                sending->size);
        }
        assert_true(received > 300);
        run_free(run);
    }
}

/* ---- Loss, duplication, partitions ---- */

static void a_loss_of_1_loses_everything(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("loss 1", "entries 20"));
    assert_int_equal(run->sim->result.messages, 20 * 4);
    assert_int_equal(run->sim->result.lost, 20 * 4);
    assert_int_equal(count(run, TR_LOST, ANY), 20 * 4);
    assert_int_equal(count(run, TR_RECEIVE, ANY), 0);
    run_free(run);
}

static void a_loss_of_a_third_loses_a_third(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("loss 0.3333", "entries 2000"));
    double lost = (double)run->sim->result.lost, sent = 2000 * 4;
    assert_true(fabs(lost - sent / 3) < 5 * sqrt(sent * 2 / 9));
    assert_int_equal(count(run, TR_RECEIVE, ANY), sent - lost);
    run_free(run);
}

static void a_duplication_of_1_doubles_everything(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("duplicate 1", "entries 20", "delay uniform:1ms,9ms"));
    assert_int_equal(run->sim->result.messages, 20 * 4);
    assert_int_equal(count(run, TR_RECEIVE, ANY), 2 * 20 * 4);
    assert_int_equal(run->sim->result.lost, 0);
    run_free(run);
}

static void a_partition_cuts_both_ways_until_it_heals(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer,
                LINES("processes 3", "at 0ms p1 acquire hold 1ms", "at 0.5ms partition p1 | p2 p3",
                      "at 2ms p1 acquire hold 1ms", "at 3ms p2 acquire hold 1ms",
                      "at 4.5ms p3 acquire hold 1ms", "at 5ms heal", "at 7ms p1 acquire hold 1ms"));
    /* 0 ms: the partition comes while they are in flight; 2 ms: to both; 3 ms and 4.5 ms: to p1 */
    ASSERT_SIGHTS(run, TR_LOST, {1, 2, 1}, {1, 3, 1}, {2, 2, 1}, {2, 3, 1}, {3, 1, 2}, {4.5, 1, 3});
    ASSERT_SIGHTS(run, TR_RECEIVE, {4, 3, 2}, {5.5, 2, 3}, {8, 2, 1}, {8, 3, 1});
    ASSERT_SIGHTS(run, TR_PARTITION, {0.5, 0, 0});
    ASSERT_SIGHTS(run, TR_HEAL, {5, 0, 0});
    assert_int_equal(run->sim->result.lost, 6);
    run_free(run);
}

static void drawn_partitions_come_and_go(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("partition-rate 20/s", "partition-for 10ms",
                                                "entries 500", "processes 8"));
    unsigned splits = count(run, TR_PARTITION, ANY), heals = count(run, TR_HEAL, ANY);
    assert_true(splits > 5 && (heals == splits || heals == splits - 1));
    size_t split = next(run, 0, TR_PARTITION, ANY), heal = next(run, split, TR_HEAL, ANY);
    assert_int_equal(run->trace.entry[heal].time_us, run->trace.entry[split].time_us + 10000);
    assert_true(run->sim->result.lost > 0 && count(run, TR_RECEIVE, ANY) > run->sim->result.lost);
    run_free(run);
}

/* ---- Pauses ---- */

static void a_pause_keeps_what_arrives_and_releases_it_in_order(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("processes 3", "repeat 2", "hold 2ms",
                                                "at 0ms p2 acquire", "at 0.5ms p2 pause 20ms",
                                                "at 1ms p3 acquire", "at 4ms p1 acquire"));
    ASSERT_SIGHTS(run, TR_PAUSE, {0.5, 2, 0});
    ASSERT_SIGHTS(run, TR_RESUME, {20.5, 2, 0});
    /* p2 hears at the end of its pause, in the order of arrival */
    ASSERT_SIGHTS(run, TR_RECEIVE, {1, 1, 2}, {1, 3, 2}, {1, 1, 2}, {1, 3, 2}, {2, 1, 3}, {2, 1, 3},
                  {5, 3, 1}, {5, 3, 1}, {20.5, 2, 3}, {20.5, 2, 3}, {20.5, 2, 1}, {20.5, 2, 1});
    assert_int_equal(overtakings(run), 0);
    /* its timer was due at 1 ms and its application at 2 ms */
    ASSERT_SIGHTS(run, TR_TIMER, {2, 3, 0}, {5, 1, 0}, {20.5, 2, 0});
    ASSERT_SIGHTS(run, TR_LEAVE, {3, 3, 0}, {6, 1, 0}, {20.5, 2, 0});
    run_free(run);
}

static void a_pause_without_an_end_lasts_until_it_is_ended(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("processes 2", "at 0ms p1 acquire hold 1ms",
                                                "at 0ms p2 pause", "at 9ms p2 resume"));
    ASSERT_SIGHTS(run, TR_RECEIVE, {9, 2, 1});
    run_free(run);
    run =
        run_new(&announcer, LINES("processes 2", "at 0ms p1 acquire hold 1ms", "at 0ms p2 pause"));
    assert_int_equal(count(run, TR_RECEIVE, ANY), 0);
    assert_int_equal(count(run, TR_LOST, ANY), 0);
    run_free(run);
}

static void messages_of_a_paused_process_still_arrive(void **state) {
    (void)state;
    struct run *run = run_new(
        &announcer, LINES("processes 2", "at 0ms p1 acquire hold 1ms", "at 0.1ms p1 pause 50ms"));
    ASSERT_SIGHTS(run, TR_RECEIVE, {1, 2, 1});
    run_free(run);
}

/* ---- Crashes ---- */

static void a_crash_ends_timers_and_stays(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 2", "timer 8ms", "at 0ms p1 acquire hold 20ms",
                                  "at 1ms p1 crash", "at 2ms p1 recover", "at 40ms p1 acquire"));
    ASSERT_SIGHTS(run, TR_CRASH, {1, 1, 0});
    ASSERT_SIGHTS(run, TR_RECOVER, {2, 1, 0});
    ASSERT_SIGHTS(run, TR_TIMER, {48, 1, 0}); /* that of the second request only */
    ASSERT_SIGHTS(run, TR_ENTER, {0, 1, 0}, {40, 1, 0});
    ASSERT_SIGHTS(run, TR_LEAVE, {41, 1, 0});
    assert_int_equal(run->sim->judge.verdict[EXCLUSION].value, HELD);
    assert_int_equal(run->sim->result.crashes, 1);
    run_free(run);
}

static void a_crash_ends_a_wait(void **state) {
    (void)state;
    struct run *run =
        run_new(catalogue_find("central"),
                LINES("processes 2", "at 0ms p1 acquire hold 20ms", "at 3ms p2 acquire hold 1ms",
                      "at 5ms p2 crash", "at 50ms p2 recover"));
    ASSERT_SIGHTS(run, TR_ENTER, {2, 2, 0});
    assert_int_equal(run->sim->result.end, ALL_SERVED);
    assert_int_equal(run->sim->judge.verdict[DEADLOCK].value, HELD);
    run_free(run);
}

static void a_crash_loses_what_a_pause_had_kept(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("processes 2", "repeat 3", "timer 2ms",
                                                "at 0ms p2 acquire hold 3ms", "at 0.5ms p2 pause",
                                                "at 1ms p1 acquire hold 1ms", "at 5ms p2 crash",
                                                "at 7ms p2 recover", "at 9ms p2 resume"));
    ASSERT_SIGHTS(run, TR_LOST, {5, 2, 1}, {5, 2, 1}, {5, 2, 1});
    assert_int_equal(count(run, TR_RECEIVE, 2), 0);
    assert_int_equal(count(run, TR_TIMER, 2), 0);
    assert_int_equal(count(run, TR_LEAVE, 2), 0);
    assert_int_equal(count(run, TR_RESUME, 2), 0); /* the crash had ended the pause */
    run_free(run);
}

/* What p2 announces when it comes back: two requests of its own, three notes of p1 between them. */
static struct note announced_after_restart(const char *recovery) {
    struct run *run = run_new(
        &announcer, LINES("processes 2", "at 0ms p2 acquire hold 1ms", "at 2ms p1 acquire hold 1ms",
                          "at 5ms p2 acquire hold 1ms", "at 8ms p1 acquire hold 1ms",
                          "at 11ms p1 acquire hold 1ms", "at 20ms p2 crash", recovery));
    size_t sending = 0;
    for (size_t i = 0; (i = next(run, i, TR_SEND, 2));) sending = i;
    assert_int_equal(run->trace.entry[sending].time_us, 30000);
    struct note note = *note_of(run, sending);
    run_free(run);
    return note;
}

static void the_durable_prefix_survives_as_it_was_saved(void **state) {
    (void)state;
    struct note note = announced_after_restart("at 30ms p2 recover");
    assert_int_equal(note.announced, 2);
    assert_int_equal(note.heard, 1); /* two more were heard after the last save */
    assert_int_equal(note.forgotten, 0);
}

static void amnesia_leaves_nothing(void **state) {
    (void)state;
    struct note note = announced_after_restart("at 30ms p2 recover amnesia");
    assert_int_equal(note.announced, 0);
    assert_int_equal(note.heard, 0);
    assert_int_equal(note.forgotten, 0);
}

static void amnesia_is_permanent(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("processes 2", "at 0ms p2 acquire hold 1ms",
                                                "at 2ms p2 acquire hold 1ms", "at 5ms p2 crash",
                                                "at 6ms p2 recover amnesia", "at 7ms p2 crash",
                                                "at 8ms p2 recover"));
    size_t sending = 0;
    for (size_t i = 0; (i = next(run, i, TR_SEND, 2));) sending = i;
    assert_int_equal(run->trace.entry[sending].time_us, 8000);
    assert_int_equal(note_of(run, sending)->announced, 0);
    run_free(run);
}

static const char *const former_life[] = {"processes 2",
                                          "delay 10ms",
                                          "at 0ms p1 acquire hold 0.1ms",
                                          "at 1ms p2 crash",
                                          "at 2ms p1 acquire hold 0.1ms",
                                          "at 3ms p2 recover",
                                          "at 4ms p1 acquire hold 0.1ms",
                                          NULL,
                                          NULL};

static void messages_to_a_former_life_are_lost(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, former_life);
    ASSERT_SIGHTS(run, TR_LOST, {10, 2, 1}, {12, 2, 1});
    ASSERT_SIGHTS(run, TR_RECEIVE, {13, 1, 2}, {14, 2, 1});
    run_free(run);
}

static void datagrams_to_a_former_life_reach_the_next(void **state) {
    const char *lines[COUNT(former_life)];
    (void)state;
    memcpy(lines, former_life, sizeof lines);
    lines[COUNT(former_life) - 2] = "reorder";
    struct run *run = run_new(&announcer, lines);
    ASSERT_SIGHTS(run, TR_RECEIVE, {10, 2, 1}, {12, 2, 1}, {13, 1, 2}, {14, 2, 1});
    assert_int_equal(count(run, TR_LOST, ANY), 0);
    run_free(run);
}

static void messages_of_a_crashed_process_still_arrive(void **state) {
    (void)state;
    struct run *run = run_new(
        &announcer, LINES("processes 2", "at 0ms p1 acquire hold 9ms", "at 0.5ms p1 crash"));
    ASSERT_SIGHTS(run, TR_RECEIVE, {1, 2, 1});
    assert_int_equal(run->sim->result.end, ALL_SERVED);
    run_free(run);
}

static void to_the_dead_nothing_happens(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("processes 2", "at 0ms p1 crash", "at 1ms p1 crash",
                                                "at 2ms p1 pause 1ms", "at 3ms p1 acquire hold 1ms",
                                                "at 4ms p2 acquire hold 1ms", "at 9ms p2 recover"));
    ASSERT_SIGHTS(run, TR_CRASH, {0, 1, 0});
    assert_int_equal(count(run, TR_PAUSE, ANY), 0);
    assert_int_equal(count(run, TR_RECOVER, ANY), 0);
    ASSERT_SIGHTS(run, TR_ENTER, {4, 2, 0});
    ASSERT_SIGHTS(run, TR_LOST, {5, 1, 2});
    run_free(run);
}

/* ---- Clocks ---- */

static void drift_changes_how_long_timers_take(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 3", "timer 10ms", "at 0ms p1 drift 2",
                                  "at 0ms p2 drift 0.5", "at 0ms p1 acquire hold 1ms",
                                  "at 0ms p2 acquire hold 1ms", "at 0ms p3 acquire hold 1ms"));
    ASSERT_SIGHTS(run, TR_TIMER, {5, 1, 0}, {10, 3, 0}, {20, 2, 0});
    run_free(run);
}

static void drawn_clocks_stay_within_the_drift(void **state) {
    double fastest = 1e9, slowest = 0;
    (void)state;
    struct run *run = run_new(
        &announcer, LINES("drift 0.2", "timer 1s", "processes 20", "entries 20", "think 0"));
    for (cv_pid p = 1; p <= 20; p++) {
        size_t enter = next(run, 0, TR_ENTER, p), timer = next(run, 0, TR_TIMER, p);
        double took = (double)(run->trace.entry[timer].time_us - run->trace.entry[enter].time_us);
        assert_true(took > 1e6 / 1.2001 && took < 1e6 / 0.7999);
        fastest = fmin(fastest, took), slowest = fmax(slowest, took);
    }
    assert_true(fastest < 1e6 / 1.1 && slowest > 1e6 / 0.9);
    run_free(run);
}

/* ---- The failure detector ---- */

static void the_detector_tells_after_its_delay_and_of_the_return_at_once(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 3", "detector 5ms", "at 0ms p1 acquire hold 1ms",
                                  "at 10ms p2 crash", "at 30ms p2 recover"));
    ASSERT_SIGHTS(run, TR_SUSPECT, {15, 1, 2}, {15, 3, 2});
    ASSERT_SIGHTS(run, TR_TRUST, {30, 1, 2}, {30, 3, 2});
    run_free(run);
}

static void a_short_outage_is_noticed_only_when_memory_was_lost(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("processes 3", "detector 5ms",
                                                "at 0ms p1 acquire hold 1ms", "at 10ms p2 crash",
                                                "at 12ms p2 recover", "at 20ms p3 pause 4ms"));
    ASSERT_SIGHTS(run, TR_SUSPECT, {12, 1, 2}, {12, 3, 2});
    ASSERT_SIGHTS(run, TR_TRUST, {12, 1, 2}, {12, 3, 2});
    run_free(run);
}

static void a_long_pause_is_taken_for_a_crash(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 2", "detector 5ms", "at 0ms p1 acquire hold 1ms",
                                  "at 10ms p2 pause 9ms"));
    ASSERT_SIGHTS(run, TR_SUSPECT, {15, 1, 2});
    ASSERT_SIGHTS(run, TR_TRUST, {19, 1, 2});
    run_free(run);
}

static void an_outage_that_ended_is_not_taken_for_the_next(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 2", "detector 5ms", "at 0ms p1 acquire hold 1ms",
                                  "at 10ms p2 pause 3ms", "at 14ms p2 pause 3ms"));
    assert_int_equal(count(run, TR_SUSPECT, ANY), 0);
    run_free(run);
}

static void a_recovered_process_hears_which_are_down(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 3", "detector 2ms", "at 0ms p1 acquire hold 1ms",
                                  "at 10ms p2 crash", "at 11ms p3 crash", "at 20ms p2 recover"));
    ASSERT_SIGHTS(run, TR_SUSPECT, {12, 1, 2}, {13, 1, 3}, {20, 2, 3});
    ASSERT_SIGHTS(run, TR_TRUST, {20, 1, 2});
    run_free(run);
}

static void suspicions_can_be_scheduled(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("processes 3", "at 0ms p1 acquire hold 1ms",
                                                "at 5ms p1 suspects p3", "at 6ms p1 trusts p3"));
    ASSERT_SIGHTS(run, TR_SUSPECT, {5, 1, 3});
    ASSERT_SIGHTS(run, TR_TRUST, {6, 1, 3});
    run_free(run);
}

/* ---- How a run ends ---- */

static void a_time_limit_caps_the_end(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("processes 2", "time-limit 6ms", "delay 3ms",
                                                "at 3ms p1 acquire hold 50ms"));
    ASSERT_SIGHTS(run, TR_RECEIVE, {6, 2, 1}); /* at the limit is within it */
    assert_int_equal(run->sim->result.end, TIME_LIMIT);
    assert_int_equal(run->sim->result.end_us, 6000);
    assert_int_equal(count(run, TR_LEAVE, ANY), 0);
    run_free(run);
}

static void an_event_limit_stops_the_count(void **state) {
    (void)state;
    struct run *run = run_new(catalogue_find("central"), LINES("event-limit 77"));
    assert_int_equal(run->sim->result.end, EVENT_LIMIT);
    assert_int_equal(run->sim->result.events, 77);
    run_free(run);
}

static void a_lost_message_leaves_central_at_rest(void **state) {
    (void)state;
    struct run *run = run_new(catalogue_find("central"),
                              LINES("processes 2", "at 0ms lose p1 coordinator 1",
                                    "at 0ms p1 acquire hold 1ms", "at 5ms p2 acquire hold 1ms"));
    assert_int_equal(run->sim->result.end, QUIESCENT);
    assert_int_equal(run->sim->result.end_us, 9000);
    assert_int_equal(run->sim->judge.verdict[DEADLOCK].value, VIOLATED);
    assert_int_equal(run->sim->judge.verdict[DEADLOCK].at_us, 9000);
    assert_int_equal(run->sim->judge.verdict[EXCLUSION].value, HELD);
    assert_int_equal(run->sim->result.violation_event, run->sim->result.events);
    run_free(run);
}

/* Two of three coordinators are down, so p1 retries for ever. */
static void a_run_without_progress_ends(void **state) {
    (void)state;
    struct run *run = run_new(catalogue_find("quorum"),
                              LINES("processes 1", "n 3", "patience 3s", "give-up 50ms",
                                    "at 0ms c1 crash", "at 0ms c2 crash", "at 1ms p1 acquire"));
    assert_int_equal(run->sim->result.end, NO_PROGRESS);
    assert_true(run->sim->result.end_us > 3001000 && run->sim->result.end_us < 4000000);
    assert_int_equal(run->sim->judge.verdict[DEADLOCK].value, VIOLATED);
    run_free(run);
}

/* ---- The budget ---- */

static void a_closed_loop_makes_exactly_the_entries_that_were_asked_for(void **state) {
    static const char *const entries[] = {"entries 0", "entries 1", "entries 7", "entries 500"};
    static const uint64_t expected[] = {0, 1, 7, 500};
    (void)state;
    for (size_t a = 0; a < catalogue_count; a++)
        for (size_t i = 0; i < COUNT(entries) && catalogue[a]->problem == CV_MUTEX; i++) {
            struct run *run = run_new(catalogue[a], LINES(entries[i]));
            assert_int_equal(run->sim->result.entries, expected[i]);
            assert_int_equal(run->sim->result.requests, expected[i]);
            assert_int_equal(run->sim->result.end, ALL_SERVED);
            run_free(run);
        }
}

static void open_arrivals_too(void **state) {
    (void)state;
    struct run *run = run_new(catalogue_find("central"),
                              LINES("arrivals 100/s", "entries 300", "hold 3ms", "processes 4"));
    assert_int_equal(run->sim->result.entries, 300);
    assert_int_equal(run->sim->result.requests, 300);
    assert_int_equal(run->sim->result.end, ALL_SERVED);
    run_free(run);
}

/* A request that is lost in a crash is made again. */
static void crashes_cost_no_entries_when_the_crashed_come_back(void **state) {
    uint64_t crashes = 0, repeated = 0;
    struct sim *sim = new_sim();
    struct sim_config config;
    (void)state;
    configure(&config, catalogue_find("quorum"),
              LINES("crash-rate 3/s", "recover", "recover-after 20ms", "entries 60", "hold 5ms"));
    for (config.seed = 1; config.seed <= 100; config.seed++) {
        sim_run(sim, &config, NULL);
        assert_int_equal(sim->result.entries, 60);
        assert_int_equal(sim->result.end, ALL_SERVED);
        assert_true(sim->result.requests >= 60);
        crashes += sim->result.crashes, repeated += sim->result.requests - 60;
    }
    assert_true(crashes > 500 && repeated > 50);
    config_free(&config);
    free_sim(sim);
}

static void scheduled_requests_of_the_busy_wait_their_turn(void **state) {
    (void)state;
    struct run *run = run_new(catalogue_find("central"),
                              LINES("processes 2", "hold 5ms", "at 0ms p1 acquire",
                                    "at 1ms p1 acquire", "at 2ms p1 acquire", "at 3ms p2 acquire"));
    assert_int_equal(run->sim->result.entries, 4);
    assert_int_equal(count(run, TR_ENTER, 2), 3);
    run_free(run);
}

/* ---- Scripts ---- */

static void a_scripted_timer_fires_when_the_schedule_says_so(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 2", "scripted", "at 0ms p1 acquire hold 1ms",
                                  "at 7ms p1 timeout", "at 8ms p1 timeout", "at 9ms p2 timeout 0"));
    ASSERT_SIGHTS(run, TR_TIMER, {7, 1, 0}); /* later, and at p2, none is armed */
    run_free(run);
    run = run_new(&announcer, LINES("processes 2", "scripted", "at 0ms p1 acquire hold 1ms",
                                    "at 2ms p1 crash", "at 3ms p1 recover", "at 4ms p1 timeout"));
    assert_int_equal(count(run, TR_TIMER, ANY), 0);
    run_free(run);
    run = run_new(&announcer, LINES("processes 2", "scripted", "at 0ms p1 acquire hold 9ms",
                                    "at 1ms p1 pause 3ms", "at 2ms p1 timeout",
                                    "at 3ms p1 timeout")); /* it has fired, but is parked */
    ASSERT_SIGHTS(run, TR_TIMER, {4, 1, 0});
    run_free(run);
}

static void a_timer_can_be_made_to_fire_early(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 2", "timer 8ms", "at 0ms p1 acquire hold 1ms",
                                  "at 3ms p1 timeout", "at 5ms p2 acquire hold 1ms"));
    ASSERT_SIGHTS(run, TR_TIMER, {3, 1, 0}, {13, 2, 0});
    run_free(run);
}

/* Only the end of p1's lease lets p2 in. */
static void an_armed_timer_keeps_no_script_alive(void **state) {
    const char *lines[] = {"processes 2",
                           "scripted",
                           "at 0ms p1 acquire hold 9ms",
                           "at 3ms p1 crash",
                           "at 4ms p2 acquire",
                           NULL,
                           NULL};
    (void)state;
    struct run *run = run_new(catalogue_find("central-lease"), lines);
    assert_int_equal(run->sim->result.end, QUIESCENT);
    assert_int_equal(run->sim->judge.verdict[DEADLOCK].value, VIOLATED);
    run_free(run);
    lines[5] = "at 9ms coordinator timeout";
    run = run_new(catalogue_find("central-lease"), lines);
    ASSERT_SIGHTS(run, TR_ENTER, {2, 2, 0}, {10, 3, 0});
    assert_int_equal(run->sim->result.end, ALL_SERVED);
    run_free(run);
}

static void in_a_script_nobody_asks_unasked(void **state) {
    (void)state;
    struct run *run = run_new(&announcer, LINES("scripted"));
    assert_int_equal(run->sim->result.requests, 0);
    run_free(run);
    run = run_new(catalogue_find("bully"), LINES("scripted"));
    assert_int_equal(run->sim->result.messages, 0);
    assert_int_equal(run->sim->result.end, QUIESCENT);
    run_free(run);
}

/* What was chosen, in the order of time, as digits. */
static void assert_choices(const struct run *run, cv_pid p, const char *digits) {
    for (size_t i = 0; (i = next(run, i, TR_CHOICE, p)); digits++)
        assert_int_equal(run->trace.entry[i].arg, *digits - '0');
    assert_int_equal(*digits, 0);
}

static void choices_can_be_scheduled(void **state) {
    (void)state;
    const struct cv_algorithm *lots = catalogue_find("itai-rodeh");
    /* equal lots in two rounds, then p2's is better */
    struct run *run =
        run_new(lots, LINES("processes 2", "at 0ms p1 chooses 1", "at 0ms p1 campaign",
                            "at 0ms p2 chooses 1", "at 0ms p2 campaign", "at 1ms p2 chooses 0",
                            "at 1ms p1 chooses 0", "at 1ms p1 chooses 0", "at 1ms p2 chooses 1"));
    assert_choices(run, 1, "100");
    assert_choices(run, 2, "101");
    assert_int_equal(run->sim->result.leader, run->sim->topology.ids[2]);
    run_free(run);
    run = run_new(lots, LINES("processes 2", "at 0ms p2 chooses 1", "at 0ms p1 campaign"));
    assert_int_equal(count(run, TR_CHOICE, 1), 1); /* drawn: the answer is not for p1 */
    assert_int_equal(count(run, TR_CHOICE, 2), 0);
    run_free(run);
    for (char seed[] = "seed 1"; seed[5] <= '9'; seed[5]++) { /* 7 is not a choice: one is drawn */
        run = run_new(lots, LINES("processes 3", seed, "at 1ms p1 chooses 7", "at 1ms p1 campaign",
                                  "initiators 1"));
        assert_true(run->trace.entry[next(run, 0, TR_CHOICE, 1)].arg < 3);
        run_free(run);
    }
}

static void exceptions_for_one_message_are_used_up_oldest_first(void **state) {
    (void)state;
    struct run *run =
        run_new(&announcer, LINES("processes 2", "reorder", "repeat 5", "at 0ms delay p1 p2 20ms",
                                  "at 1ms delay p1 p2 9ms once", "at 1ms lose p1 p2 1",
                                  "at 1ms delay * p2 3ms once", "at 1ms delay p1 p2 usual once",
                                  "at 1ms delay p2 p1 7ms once", "at 1ms p1 acquire hold 1ms"));
    ASSERT_SIGHTS(run, TR_RECEIVE, {2, 2, 1}, {4, 2, 1}, {10, 2, 1}, {21, 2, 1});
    ASSERT_SIGHTS(run, TR_LOST, {1, 2, 1});
    size_t sending = next(run, 0, TR_SEND, 1);
    assert_int_equal(run->trace.entry[run->trace.entry[sending].match].time_us, 10000);
    run_free(run);
}

static void exceptions_at_the_start_hold_for_what_is_sent_then(void **state) {
    (void)state;
    const struct cv_algorithm *ring = catalogue_find("token-ring");
    struct run *run = run_new(
        ring, LINES("processes 2", "at 0ms delay p1 p2 5ms once", "at 3ms p2 acquire hold 2ms"));
    ASSERT_SIGHTS(run, TR_ENTER, {5, 2, 0});
    run_free(run);
    run = run_new(ring, LINES("processes 2", "at 0ms lose p1 p2 1", "at 3ms p2 acquire hold 2ms"));
    assert_int_equal(run->sim->judge.verdict[DEADLOCK].value, VIOLATED);
    run_free(run);
}

/* ---- The same run again ---- */

static const char *const every_fault[] = {"delay lognormal:2ms,0.8",
                                          "loss 0.01",
                                          "duplicate 0.01",
                                          "crash-rate 0.2/s",
                                          "recover",
                                          "amnesia",
                                          "pause-rate 0.2/s",
                                          "partition-rate 0.2/s",
                                          "drift 0.1",
                                          "time-limit 10s",
                                          NULL};

static uint64_t hash_of(struct sim *sim, const struct sim_config *config) {
    sim_run(sim, config, NULL);
    return sim->result.hash;
}

static void a_run_is_the_same_after_any_other_in_the_same_memory(void **state) {
    struct sim_config plain, faulty;
    struct sim *used = new_sim();
    (void)state;
    for (size_t a = 0; a < catalogue_count; a++) {
        if (catalogue[a]->problem != CV_MUTEX) continue;
        struct sim *fresh = new_sim();
        configure(&plain, catalogue[a], LINES("entries 50", "processes 9"));
        configure(&faulty, catalogue[a], every_fault);
        uint64_t first = hash_of(fresh, &faulty);
        hash_of(used, &plain);
        assert_true(hash_of(used, &faulty) == first);
        assert_true(hash_of(used, &faulty) == first);
        faulty.seed++;
        assert_true(hash_of(used, &faulty) != first);
        config_free(&plain);
        config_free(&faulty);
        free_sim(fresh);
    }
    free_sim(used);
}

/* ---- Many runs ---- */

static struct batch batch_of(const struct sim_config *config, uint64_t runs, uint32_t share,
                             uint32_t shares, unsigned jobs) {
    struct batch batch = {
        .config = config, .runs = runs, .share = share, .shares = shares, .jobs = jobs};
    assert_int_equal(batch_run(&batch, NULL), 0);
    return batch;
}

static void assert_same_row(const struct batch_row *a, const struct batch_row *b) {
#define C(NAME) assert_true(a->NAME == b->NAME);
    BATCH_COLUMNS(C)
#undef C
    assert_true(a->hash == b->hash);
    for (int i = 0; i < MUTEX_PROPERTIES; i++) assert_int_equal(a->verdict[i], b->verdict[i]);
}

static void the_number_of_jobs_changes_no_result(void **state) {
    struct sim_config config;
    (void)state;
    configure(&config, catalogue_find("quorum"), every_fault);
    struct batch one = batch_of(&config, 41, 1, 1, 1), four = batch_of(&config, 41, 1, 1, 4);
    assert_int_equal(one.count, 41);
    assert_int_equal(four.count, 41);
    for (size_t i = 0; i < one.count; i++) {
        assert_int_equal(one.rows[i].seed, config.seed + i);
        assert_same_row(&one.rows[i], &four.rows[i]);
    }
    free(one.rows);
    free(four.rows);
    config_free(&config);
}

static void shares_are_the_whole(void **state) {
    struct sim_config config;
    (void)state;
    configure(&config, catalogue_find("central"), LINES("entries 20"));
    struct batch whole = batch_of(&config, 10, 1, 1, 2);
    size_t together = 0;
    for (uint32_t share = 1; share <= 3; share++) {
        struct batch part = batch_of(&config, 10, share, 3, 2);
        for (size_t i = 0; i < part.count; i++)
            assert_same_row(&part.rows[i], &whole.rows[share - 1 + 3 * i]);
        together += part.count;
        free(part.rows);
    }
    assert_int_equal(together, 10);
    assert_int_equal(batch_size(&(struct batch){.runs = 2, .share = 3, .shares = 3}), 0);
    free(whole.rows);
    config_free(&config);
}

/* ---- Sums ---- */

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-4 * fmax(1, fabs(expected))))
        fail_msg("%.9g is not %.9g", value, expected);
}

static void statistics_of_known_numbers(void **state) {
    double five[] = {5, 1, 4, 2, 3}, one[] = {7}, hundred[100], same[40];
    (void)state;
    struct stats s = stats_of(five, 5);
    assert_int_equal(s.count, 5);
    assert_near(s.mean, 3);
    assert_near(s.high, 3 + 2.776 * sqrt(2.5 / 5));
    assert_near(s.low, 3 - 2.776 * sqrt(2.5 / 5));
    assert_true(s.min == 1 && s.p50 == 3 && s.p90 == 5 && s.p99 == 5 && s.max == 5);
    s = stats_of(one, 1);
    assert_true(s.mean == 7 && s.low == 7 && s.high == 7 && s.min == 7 && s.p99 == 7);
    for (int i = 0; i < 100; i++) hundred[i] = 100 - i;
    s = stats_of(hundred, 100);
    assert_near(s.mean, 50.5);
    assert_true(s.min == 1 && s.p50 == 50 && s.p90 == 90 && s.p99 == 99 && s.max == 100);
    /* Student's t for 99 degrees of freedom is 1.9842; the deviation of the mean is 2.9011 */
    assert_true(fabs(s.high - (50.5 + 1.9842 * 2.9011)) < 0.05);
    for (int i = 0; i < 40; i++) same[i] = 0.1;
    s = stats_of(same, 40);
    assert_near(s.low, 0.1);
    assert_near(s.high, 0.1);
    s = stats_of(NULL, 0);
    assert_true(s.count == 0 && isnan(s.mean) && isnan(s.p50));
}

static void proportions_of_known_numbers(void **state) {
    static const struct {
        size_t hits, count;
        double rate, low, high; /* Wilson's interval */
    } cases[] = {{0, 0, 0, 0, 1},
                 {5, 10, 0.5, 0.236593, 0.763407},
                 {0, 10, 0, 0, 0.277533},
                 {10, 10, 1, 0.722467, 1},
                 {1, 100, 0.01, 0.001767, 0.054486},
                 {0, 1000000, 0, 0, 0.0000038414}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct proportion p = proportion_of(cases[i].hits, cases[i].count);
        assert_near(p.rate, cases[i].rate);
        assert_true(fabs(p.low - cases[i].low) < 2e-6 && fabs(p.high - cases[i].high) < 2e-6);
    }
}

static void fairness_and_hops_of_known_numbers(void **state) {
    struct sim_config config;
    (void)state;
    config_init(&config, &announcer);
    config.processes = 4;
    struct sim_result result = {.entries = 8, .entries_squared = 4 * 2 * 2, .delay_us = 8 * 2500};
    assert_near(sim_fairness(&result, &config), 1);
    assert_near(sim_delay_hops(&result, &config), 2.5);
    result.entries_squared = 64;
    assert_near(sim_fairness(&result, &config), 0.25);
    result = (struct sim_result){0};
    assert_true(isnan(sim_delay_hops(&result, &config)));
    config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_takes_its_delay),
        cmocka_unit_test(an_exception_holds_for_its_channel_until_it_is_lifted),
        cmocka_unit_test(channels_keep_their_order_whatever_the_delays),
        cmocka_unit_test(a_shorter_delay_does_not_break_the_order),
        cmocka_unit_test(with_reorder_messages_do_overtake_each_other),
        cmocka_unit_test(bodies_of_any_length_arrive_as_they_were_sent),
        cmocka_unit_test(a_loss_of_1_loses_everything),
        cmocka_unit_test(a_loss_of_a_third_loses_a_third),
        cmocka_unit_test(a_duplication_of_1_doubles_everything),
        cmocka_unit_test(a_partition_cuts_both_ways_until_it_heals),
        cmocka_unit_test(drawn_partitions_come_and_go),
        cmocka_unit_test(a_pause_keeps_what_arrives_and_releases_it_in_order),
        cmocka_unit_test(a_pause_without_an_end_lasts_until_it_is_ended),
        cmocka_unit_test(messages_of_a_paused_process_still_arrive),
        cmocka_unit_test(a_crash_ends_timers_and_stays),
        cmocka_unit_test(a_crash_ends_a_wait),
        cmocka_unit_test(a_crash_loses_what_a_pause_had_kept),
        cmocka_unit_test(the_durable_prefix_survives_as_it_was_saved),
        cmocka_unit_test(amnesia_leaves_nothing),
        cmocka_unit_test(amnesia_is_permanent),
        cmocka_unit_test(messages_to_a_former_life_are_lost),
        cmocka_unit_test(datagrams_to_a_former_life_reach_the_next),
        cmocka_unit_test(messages_of_a_crashed_process_still_arrive),
        cmocka_unit_test(to_the_dead_nothing_happens),
        cmocka_unit_test(drift_changes_how_long_timers_take),
        cmocka_unit_test(drawn_clocks_stay_within_the_drift),
        cmocka_unit_test(the_detector_tells_after_its_delay_and_of_the_return_at_once),
        cmocka_unit_test(a_short_outage_is_noticed_only_when_memory_was_lost),
        cmocka_unit_test(a_long_pause_is_taken_for_a_crash),
        cmocka_unit_test(an_outage_that_ended_is_not_taken_for_the_next),
        cmocka_unit_test(a_recovered_process_hears_which_are_down),
        cmocka_unit_test(suspicions_can_be_scheduled),
        cmocka_unit_test(a_time_limit_caps_the_end),
        cmocka_unit_test(an_event_limit_stops_the_count),
        cmocka_unit_test(a_lost_message_leaves_central_at_rest),
        cmocka_unit_test(a_run_without_progress_ends),
        cmocka_unit_test(a_closed_loop_makes_exactly_the_entries_that_were_asked_for),
        cmocka_unit_test(open_arrivals_too),
        cmocka_unit_test(crashes_cost_no_entries_when_the_crashed_come_back),
        cmocka_unit_test(scheduled_requests_of_the_busy_wait_their_turn),
        cmocka_unit_test(a_scripted_timer_fires_when_the_schedule_says_so),
        cmocka_unit_test(a_timer_can_be_made_to_fire_early),
        cmocka_unit_test(an_armed_timer_keeps_no_script_alive),
        cmocka_unit_test(in_a_script_nobody_asks_unasked),
        cmocka_unit_test(choices_can_be_scheduled),
        cmocka_unit_test(exceptions_for_one_message_are_used_up_oldest_first),
        cmocka_unit_test(exceptions_at_the_start_hold_for_what_is_sent_then),
        cmocka_unit_test(a_run_is_the_same_after_any_other_in_the_same_memory),
        cmocka_unit_test(the_number_of_jobs_changes_no_result),
        cmocka_unit_test(shares_are_the_whole),
        cmocka_unit_test(statistics_of_known_numbers),
        cmocka_unit_test(proportions_of_known_numbers),
        cmocka_unit_test(fairness_and_hops_of_known_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
