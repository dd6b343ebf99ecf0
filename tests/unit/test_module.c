/* Algorithms from files: which versions and tables are accepted, and which steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "algorithms/catalogue.h"
#include "algorithms/module.h"
#include "process/contract.h"

/* ---- An algorithm that may do anything ---- */

#define MESSAGE_FIELDS(F, R) F(R, u64, number, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, queue, queue, SHOWN)                                                                      \
    F(R, pid, holder, SHOWN)                                                                       \
    F(R, u32, phase, INNER)
#define ROW_FIELDS(F, R) F(R, link, link, INNER) F(R, u64, number, INNER)
CV_RECORD(message, MESSAGE_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static void step(void *state, const struct cv_env *env, const struct cv_event *event,
                 struct cv_out *out) {
    (void)state, (void)env, (void)event, (void)out;
}
static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[] = {CV_TABLE("MESSAGE", message)};
static const struct cv_option options[] = {{"size", "how large", CV_NUMBER, 3, 1, 9}};

static struct cv_algorithm sound(void) {
    return (struct cv_algorithm){.name = "sound",
                                 .summary = "does nothing",
                                 .problem = CV_MUTEX,
                                 .timers = 1,
                                 CV_MACHINE,
                                 CV_OPTIONS};
}

static struct cv_module module_of(const struct cv_algorithm *algorithm) {
    return (struct cv_module){.magic = CV_MODULE_MAGIC,
                              .version = CV_MODULE_VERSION,
                              .size = CV_MODULE_SIZES_,
                              .source = "x.c",
                              .algorithm = algorithm};
}

/* ---- Versions ---- */

/* If this fails, an algorithm that was compiled before does not fit any more: raise
 * CV_MODULE_VERSION, and change the numbers here. */
static void the_layout_is_that_of_the_version(void **state) {
    static const uint16_t expected[CV_MODULE_SIZES] = {176, 128, 32, 24, 48, 80, 32, 16, 152, 24};
    static const uint16_t sizes[CV_MODULE_SIZES] = CV_MODULE_SIZES_;
    (void)state;
    assert_int_equal(CV_MODULE_VERSION, 3);
    for (int i = 0; i < CV_MODULE_SIZES; i++) assert_int_equal(sizes[i], expected[i]);
    /* The last of each list: one that is added goes to its end. */
    assert_int_equal(CV_LINK, 7);
    assert_int_equal(CV_IF_SET, 2);
    assert_int_equal(CV_HAND_ON, 8);
    assert_int_equal(CV_CAMPAIGN, 3);
    assert_int_equal(CV_TRUST, 9);
    assert_int_equal(CV_FLAG, 2);
    assert_int_equal(CV_GRAPH, 3);
    assert_int_equal(CV_LOWEST, 2);
    assert_int_equal(CV_HANDS_ON, 256);
    assert_int_equal(offsetof(struct cv_module, version), 8);
    assert_int_equal(offsetof(struct cv_module, size), 12);
}

static void refuses(const struct cv_module *module, const char *why) {
    char error[MODULE_ERROR_MAX] = "";
    assert_int_equal(module_inspect(module, "x.so", error), -1);
    assert_non_null(strstr(error, why));
    assert_non_null(strstr(error, "x.so: "));
}

static void other_versions_are_refused(void **state) {
    const struct cv_algorithm algorithm = sound();
    struct cv_module module = module_of(&algorithm);
    char error[MODULE_ERROR_MAX];
    (void)state;
    assert_int_equal(module_inspect(&module, "x.so", error), 0);
    module.version++;
    refuses(&module, "against version 4");
    for (int i = 0; i < CV_MODULE_SIZES; i++) {
        module = module_of(&algorithm);
        module.size[i]++;
        refuses(&module, "another conclave/algorithm.h");
    }
    module = module_of(&algorithm);
    module.magic[0]++;
    refuses(&module, "not made by CV_ALGORITHM");
    module = module_of(NULL);
    refuses(&module, "names no algorithm");
}

/* ---- Tables ---- */

static void all_of_the_catalogue_keep_the_contract(void **state) {
    char buffer[256];
    (void)state;
    for (size_t i = 0; i < catalogue_count; i++)
        assert_null(contract_problem(catalogue[i], buffer, sizeof buffer));
}

static void objects_to(struct cv_algorithm algorithm, const char *why) {
    char buffer[256] = "";
    if (!contract_problem(&algorithm, buffer, sizeof buffer)) fail_msg("accepted: %s", why);
    if (!strstr(buffer, why)) fail_msg("'%s' is not in '%s'", why, buffer);
}

#define WITH(...)                                                                                  \
    ({                                                                                             \
        struct cv_algorithm a_ = sound();                                                          \
        a_ __VA_ARGS__;                                                                            \
        a_;                                                                                        \
    })

static void nonsense_in_descriptors_is_named(void **state) {
    static const struct cv_option upside_down[] = {{"size", "how large", CV_NUMBER, 3, 9, 1}};
    static const struct cv_option shouting[] = {{"SIZE", "how large", CV_NUMBER, 3, 1, 9}};
    static const struct cv_option nameless[] = {{NULL, "how large", CV_NUMBER, 3, 1, 9}};
    (void)state;
    objects_to(WITH(.name = NULL), ".name");
    objects_to(WITH(.name = "two\nlines"), ".name");
    objects_to(WITH(.summary = NULL), ".summary");
    objects_to(WITH(.problem = CV_DETECTOR), ".problem");
    objects_to(WITH(.step = NULL), ".step");
    objects_to(WITH(.layout = NULL), ".layout");
    objects_to(WITH(.state = NULL), ".state");
    objects_to(WITH(.messages = NULL), ".messages");
    objects_to(WITH(.message_count = 0), ".message_count is 0");
    objects_to(WITH(.message_count = CV_KINDS_MAX + 1), ".message_count is 17");
    objects_to(WITH(.timers = CV_TIMERS_MAX + 1), ".timers is 5");
    objects_to(WITH(.option_count = CV_OPTIONS_MAX + 1), ".option_count is 9");
    objects_to(WITH(.options = NULL), ".options");
    objects_to(WITH(.options = upside_down), "its own default");
    objects_to(WITH(.options = shouting), "small letters");
    objects_to(WITH(.options = nameless), "no name");
    objects_to(WITH(.server_name = "coordinator"), "go together");
    objects_to(WITH(.topology = CV_GRAPH + 1), ".topology");
    objects_to(WITH(.preference = CV_LOWEST + 1), ".preference");
}

static void nonsense_in_records_is_named(void **state) {
    struct cv_record record = state_table;
    struct cv_field fields[3];
    (void)state;
    memcpy(fields, state_fields, sizeof fields);
    record.fields = fields;
    fields[1].name = NULL;
    objects_to(WITH(.state = &record), "field 2 of the head of 'state' has no name");
    fields[1] = state_fields[1], fields[1].type = CV_LINK + 1;
    objects_to(WITH(.state = &record), "unknown type");
    fields[1] = state_fields[1], fields[1].offset = 12;
    objects_to(WITH(.state = &record), "is not where the one before it ends");
    fields[1] = state_fields[1], record.size = 4000;
    objects_to(WITH(.state = &record), "take 16 bytes, and its size is 4000");
    record.size = 8000;
    objects_to(WITH(.state = &record), "is larger than 4096 bytes");
    record = state_table, record.name = "";
    objects_to(WITH(.state = &record), "has no name");
    record = state_table, record.fields = NULL;
    objects_to(WITH(.state = &record), "does not describe its head");
    record = state_table, record.row_fields = message_fields, record.row_field_count = 1;
    record.row_size = 8;
    objects_to(WITH(.state = &record), "a queue needs one");
}

/* ---- Steps ---- */

struct bench {
    struct cv_algorithm code;
    struct cv_env env;
    struct cv_layout layout;
    struct state state;
    struct row row[3];
    struct cv_out out;
    _Alignas(8) unsigned char sends[512];
};

static void give_layout(const struct cv_env *env, struct cv_layout *layout) {
    *layout =
        ((const struct bench *)(const void *)((const char *)env - offsetof(struct bench, env)))
            ->layout;
}

/* Whether the bench ends the program, with status 2. */
static bool is_stopped(struct bench *b, void (*tries)(struct bench *)) {
    pid_t child = fork();
    int status;
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(9);
        tries(b);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2));
    return WEXITSTATUS(status) == 2;
}

static void lays_out(struct bench *b) { contract_layout(&b->code, &b->env); }
static void inspects(struct bench *b) { contract_inspect(&b->code, &b->env, &b->state, &b->out); }

static struct bench new_bench(void) {
    struct bench b = {.code = sound(), .env = {.self = 2, .processes = 3}};
    b.code.layout = give_layout;
    b.layout = (struct cv_layout){.rows = 3, .first = 1};
    return b;
}

static bool layout_is_stopped(struct cv_layout layout) {
    struct bench b = new_bench();
    b.layout = layout;
    return is_stopped(&b, lays_out);
}

static void layouts_have_bounds(void **state) {
    (void)state;
    assert_false(layout_is_stopped((struct cv_layout){.rows = 3, .first = 1, .durable = 16}));
    assert_false(layout_is_stopped((struct cv_layout){.durable = 16}));
    assert_true(layout_is_stopped((struct cv_layout){.rows = 4, .first = 1}));
    assert_true(layout_is_stopped((struct cv_layout){.durable = 17}));
    assert_true(layout_is_stopped((struct cv_layout){.durable = 20}));
    assert_true(layout_is_stopped((struct cv_layout){.sends = UINT32_MAX}));
}

static bool send_is_stopped(uint32_t to, uint16_t kind, uint32_t size) {
    struct bench b = new_bench();
    b.out.sends = b.sends, b.out.room = sizeof b.sends;
    cv_send_raw(&b.out, to, kind, size);
    return is_stopped(&b, inspects);
}

static void sends_have_bounds(void **state) {
    (void)state;
    assert_false(send_is_stopped(1, 0, 8));
    assert_false(send_is_stopped(CV_OTHERS, 0, 8));
    assert_false(send_is_stopped(CV_SERVERS, 0, 8));
    assert_true(send_is_stopped(2, 0, 8)); /* itself */
    assert_true(send_is_stopped(0, 0, 8));
    assert_true(send_is_stopped(4, 0, 8));
    assert_true(send_is_stopped(1, 1, 8)); /* no such kind */
    assert_true(send_is_stopped(1, 0, 4));
    assert_true(send_is_stopped(1, 0, 16));
}

static void states_name_processes_that_are(void **state) {
    (void)state;
    struct bench b = new_bench();
    b.state.holder = 3;
    assert_false(is_stopped(&b, inspects));
    b.state.holder = 4;
    assert_true(is_stopped(&b, inspects));
    b.state.holder = 0, b.state.queue.last = 9;
    assert_true(is_stopped(&b, inspects));
    b.state.queue.last = 0, b.row[2].link.next = 9;
    assert_true(is_stopped(&b, inspects));
}

static void timers_and_tells_have_bounds(void **state) {
    (void)state;
    struct bench b = new_bench();
    cv_timer(&b.out, 0, 1, 1);
    cv_tell(&b.out, CV_ENTERED, 0);
    assert_false(is_stopped(&b, inspects));
    cv_timer(&b.out, 1, 1, 1);
    assert_true(is_stopped(&b, inspects));
    b = new_bench();
    cv_timer(&b.out, 0, 0, 0);
    assert_true(is_stopped(&b, inspects));
    cv_timer(&b.out, 0, 2, 1);
    assert_true(is_stopped(&b, inspects));
    b = new_bench();
    cv_tell(&b.out, CV_ELECTED, 0);
    assert_true(is_stopped(&b, inspects));
    b.code.problem = CV_ELECTION;
    assert_false(is_stopped(&b, inspects));
}

/* ---- Whole steps ---- */

enum misdeed {
    NONE,
    BEFORE,
    BEHIND,
    BEHIND_SENDS,
    TELLS,
    USED,
    ENV,
    EVENT,
    OTHER_STATE,
    OTHER_SEND,
    OTHER_TIMER,
    OTHER_TELL,
    MISDEEDS
};

static void misbehave(void *at, const struct cv_env *env, const struct cv_event *event,
                      struct cv_out *out) {
    static unsigned calls;
    struct state *s = at;
    unsigned char *bytes = at;
    uint64_t number = ++calls;
    enum misdeed misdeed = event->arg;
    s->holder = misdeed == OTHER_STATE ? 1 + (cv_pid)number % 2 : 1;
    cv_send(out, 1, 0, message, .number = misdeed == OTHER_SEND ? number : 7);
    cv_timer(out, 0, 1, misdeed == OTHER_TIMER ? number : 1);
    cv_tell(out, CV_ENTERED, misdeed == OTHER_TELL ? number : 7);
    if (misdeed == BEFORE) bytes[-1] = 1;
    if (misdeed == BEHIND) bytes[sizeof *s + 3 * sizeof(struct row)] = 1;
    if (misdeed == BEHIND_SENDS) out->sends[out->room] = 1;
    if (misdeed == TELLS) out->tells = 200;
    if (misdeed == USED) out->used = 4000000000;
    if (misdeed == ENV) ((struct cv_env *)(uintptr_t)env)->processes = 77;
    if (misdeed == EVENT) ((struct cv_event *)(uintptr_t)event)->from = 77;
}

static enum misdeed misdeed;

static void steps(struct bench *b) {
    struct cv_event event = {.type = CV_CALL, .arg = misdeed};
    b->code.step = misbehave;
    b->code.traits |= CV_FROM_FILE;
    b->out.sends = b->sends, b->out.room = sizeof b->sends / 2;
    contract_step(&b->code, &b->state, &b->env, &event, &b->out);
    _exit(b->state.holder == 1 && b->out.tells == 1 && b->out.used == 24 ? 0 : 9);
}

static void steps_keep_to_their_own(void **state) {
    (void)state;
    struct bench b = new_bench();
    for (misdeed = NONE; misdeed < MISDEEDS; misdeed++)
        if (is_stopped(&b, steps) != (misdeed != NONE)) fail_msg("misdeed %d", misdeed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_is_that_of_the_version),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(all_of_the_catalogue_keep_the_contract),
        cmocka_unit_test(nonsense_in_descriptors_is_named),
        cmocka_unit_test(nonsense_in_records_is_named),
        cmocka_unit_test(layouts_have_bounds),
        cmocka_unit_test(sends_have_bounds),
        cmocka_unit_test(states_name_processes_that_are),
        cmocka_unit_test(timers_and_tells_have_bounds),
        cmocka_unit_test(steps_keep_to_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
