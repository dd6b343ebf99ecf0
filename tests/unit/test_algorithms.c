/* Every algorithm of the catalogue: its description is consistent, and no messages, in any order,
 * break an invariant or make it tell its application nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "base/rng.h"
#include "lab/sim/sim.h"
#include "lab/sim/trace.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

static bool is_lock(const struct cv_algorithm *a) { return (a->problem & CV_MUTEX) != 0; }

/* ---- The description ---- */

static bool is_word(const char *text) {
    if (!text || !islower((unsigned char)*text)) return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

static bool is_line(const char *text) {
    return text && *text && !strpbrk(text, "\n\t") && strlen(text) < 120;
}

static void unknown_names_are_not_found(void **state) {
    (void)state;
    assert_true(catalogue_count >= 5);
    assert_null(catalogue_find(""));
    assert_null(catalogue_find("no-such-lock"));
}

static void its_names_are_words_of_its_own(void **state) {
    const struct cv_algorithm *a = *state;
    assert_true(is_word(a->name) && is_line(a->summary) && is_line(a->paper));
    assert_true(is_line(a->tolerates));
    assert_ptr_equal(catalogue_find(a->name), a);
    assert_true(!is_lock(a) || (is_line(a->cost) && is_line(a->delay)));
    assert_true(!a->servers == !a->server_name);
}

static void its_counts_fit_their_limits(void **state) {
    const struct cv_algorithm *a = *state;
    assert_true(a->problem && a->step && a->layout && a->state && a->messages);
    assert_in_range(a->message_count, 1, CV_KINDS_MAX);
    assert_in_range(a->option_count, 0, CV_OPTIONS_MAX);
    assert_in_range(a->timers, 0, CV_TIMERS_MAX);
    assert_true(a->option_count == 0 || a->options);
}

static void assert_free_name(const char *name) {
    static const char *const taken[] = {
        "scenario", "at",    "runs",    "jobs",  "share",  "trace",     "output",  "cut",    "json",
        "help",     "usage", "version", "title", "expect", "algorithm", "servers", "summary"};
    for (size_t i = 0; i < COUNT(taken); i++) assert_string_not_equal(name, taken[i]);
    assert_null(setting_find(name));
}

static void its_options_are_named_apart_and_default_values_are_allowed(void **state) {
    const struct cv_algorithm *a = *state;
    for (unsigned k = 0; k < a->option_count; k++) {
        const struct cv_option *o = &a->options[k];
        assert_true(is_word(o->name) && is_line(o->summary));
        assert_ptr_equal(option_find(a, o->name), o);
        assert_free_name(o->name);
        assert_true(o->min <= o->max);
        assert_true(o->default_value == CV_UNSET ||
                    (o->default_value >= o->min && o->default_value <= o->max));
        if (o->type == CV_FLAG) assert_true(o->default_value <= 1 && o->min == 0 && o->max == 1);
    }
}

/* ---- Records ---- */

static unsigned size_of(enum cv_type type) {
    static const unsigned sizes[] = {[CV_U8] = 1, [CV_U16] = 2, [CV_U32] = 4,   [CV_U64] = 8,
                                     [CV_ID] = 8, [CV_PID] = 4, [CV_QUEUE] = 8, [CV_LINK] = 8};
    return sizes[type];
}

static unsigned alignment_of(enum cv_type type) {
    return type == CV_QUEUE || type == CV_LINK ? 4 : size_of(type);
}

/* Fields follow each other without gaps and end where the record does; returns the alignment. */
static unsigned assert_fields(const struct cv_field *fields, unsigned count, unsigned size) {
    unsigned at = 0, alignment = 1;
    for (unsigned i = 0; i < count; i++) {
        enum cv_type type = (enum cv_type)fields[i].type;
        assert_true(is_line(fields[i].name) && type <= CV_LINK);
        assert_int_equal(fields[i].offset, at);
        assert_int_equal(at % alignment_of(type), 0);
        if (alignment_of(type) > alignment) alignment = alignment_of(type);
        at += size_of(type);
    }
    assert_int_equal(at, size);
    assert_int_equal(size % alignment, 0);
    return alignment;
}

static unsigned count_type(const struct cv_field *fields, unsigned count, enum cv_type type) {
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) found += fields[i].type == type;
    return found;
}

static void assert_record(const struct cv_record *r) {
    assert_true(is_line(r->name) && r->size > 0 && r->field_count > 0);
    assert_fields(r->fields, r->field_count, r->size);
    assert_true(!r->row_fields == !r->row_field_count && !r->row_fields == !r->row_size);
    if (r->row_fields)
        assert_int_equal(r->size % assert_fields(r->row_fields, r->row_field_count, r->row_size),
                         0);
    unsigned links = count_type(r->row_fields, r->row_field_count, CV_LINK);
    assert_true(links <= 1);
    if (count_type(r->fields, r->field_count, CV_QUEUE)) assert_int_equal(links, 1);
}

static void its_records_have_no_gaps_and_aligned_rows(void **state) {
    const struct cv_algorithm *a = *state;
    assert_record(a->state);
    for (unsigned k = 0; k < a->message_count; k++) {
        const struct cv_record *m = &a->messages[k];
        assert_record(m);
        for (unsigned other = 0; other < k; other++)
            assert_string_not_equal(m->name, a->messages[other].name);
    }
}

/* ---- A world without time: processes, what is under way between them, and chaos ---- */

enum app { IDLE_APP, WAITING_APP, INSIDE_APP };
enum { FLIGHTS = 64, PROCESSES_MAX = 16 };

struct actor {
    unsigned char *state, *saved;
    struct cv_layout layout;
    uint32_t size;
    uint32_t choose;
    enum app app;
};

struct flight {
    cv_pid from, to;
    uint16_t kind;
    uint32_t size;
    void *body;
};

struct world {
    const struct cv_algorithm *algorithm;
    uint64_t option[CV_OPTIONS_MAX];
    struct cv_env env;
    struct actor actor[PROCESSES_MAX + 1];
    struct cv_out out;
    struct flight flight[FLIGHTS];
    size_t flights;
    struct rng rng;
};

static uint64_t some_value(struct rng *rng, const struct cv_option *o) {
    switch (rng_below(rng, 4)) {
    case 0: return o->min;
    case 1:
        if (o->type != CV_DURATION && o->max - o->min > 6) return o->min + rng_below(rng, 7);
        return o->min + rng_below(rng, o->max - o->min < 1000 ? o->max - o->min + 1 : 1000);
    default: return o->default_value;
    }
}

static void draw_options(struct world *w) {
    const struct cv_algorithm *a = w->algorithm;
    do {
        for (unsigned i = 0; i < a->option_count; i++)
            w->option[i] = some_value(&w->rng, &a->options[i]);
        w->env.servers = a->servers ? a->servers(w->option) : 0;
        w->env.processes = w->env.servers + 1 + (uint32_t)rng_below(&w->rng, 5);
    } while (w->env.processes > PROCESSES_MAX || (a->refuse && a->refuse(&w->env)));
}

static void *zeroed(size_t size) {
    void *memory = calloc(size ? size : 1, 1);
    assert_non_null(memory);
    return memory;
}

static void assert_layout(const struct world *w, const struct actor *actor) {
    const struct cv_layout *l = &actor->layout;
    assert_true(l->durable <= actor->size && l->durable % 4 == 0);
    assert_true(l->rows == 0 || w->algorithm->state->row_size);
    assert_true(l->rows == 0 || (l->first >= 1 && l->first + l->rows - 1 <= w->env.processes));
}

static void open_actor(struct world *w, cv_pid p) {
    struct actor *actor = &w->actor[p];
    w->env.self = p;
    w->algorithm->layout(&w->env, &actor->layout);
    actor->size = w->algorithm->state->size + actor->layout.rows * w->algorithm->state->row_size;
    assert_layout(w, actor);
    actor->state = zeroed(actor->size);
    actor->saved = zeroed(actor->layout.durable);
}

static struct world *world_new(const struct cv_algorithm *algorithm, uint64_t seed) {
    struct world *w = zeroed(sizeof *w);
    w->algorithm = algorithm;
    w->env.option = w->option;
    rng_seed(&w->rng, seed);
    draw_options(w);
    for (cv_pid p = 1; p <= w->env.processes; p++) open_actor(w, p);
    return w;
}

static void drop_flight(struct world *w, size_t at) {
    free(w->flight[at].body);
    w->flight[at] = w->flight[--w->flights];
}

static void world_free(struct world *w) {
    while (w->flights) drop_flight(w, 0);
    for (cv_pid p = 1; p <= w->env.processes; p++) {
        free(w->actor[p].state);
        free(w->actor[p].saved);
    }
    free(w);
}

/* ---- What a step may do ---- */

static uint32_t room_of(const struct world *w, cv_pid p) {
    const struct cv_layout *l = &w->actor[p].layout;
    uint32_t head = 0, row = 0, sends = l->sends > CV_SENDS_DEFAULT ? l->sends : CV_SENDS_DEFAULT;
    for (unsigned i = 0; i < w->algorithm->message_count; i++) {
        const struct cv_record *m = &w->algorithm->messages[i];
        if (m->size > head) head = m->size;
        if (m->row_size > row) row = m->row_size;
    }
    return sends * ((uint32_t)sizeof(struct cv_send) + ((head + 7) & ~7u)) +
           2 * ((l->message_rows * row + 7) & ~7u);
}

static void fly(struct world *w, cv_pid to, const struct cv_send *send) {
    if (w->flights == FLIGHTS) drop_flight(w, rng_below(&w->rng, FLIGHTS));
    struct flight *f = &w->flight[w->flights++];
    *f = (struct flight){w->env.self, to, send->kind, send->size, malloc(send->size)};
    assert_non_null(f->body);
    memcpy(f->body, send + 1, send->size);
}

static void take_send(struct world *w, const struct cv_send *send) {
    assert_true(send->kind < w->algorithm->message_count);
    const struct cv_record *m = &w->algorithm->messages[send->kind];
    assert_true(send->size >= m->size);
    assert_true(m->row_size ? (send->size - m->size) % m->row_size == 0 : send->size == m->size);
    for (uint32_t i = send->size; i % 8; i++)
        assert_int_equal(((const unsigned char *)(send + 1))[i], 0);
    if (send->to < CV_SERVERS) {
        assert_in_range(send->to, 1, w->env.processes);
        assert_int_not_equal(send->to, w->env.self);
        fly(w, send->to, send);
        return;
    }
    cv_pid last = send->to == CV_SERVERS ? w->env.servers : w->env.processes;
    for (cv_pid to = 1; to <= last; to++)
        if (to != w->env.self) fly(w, to, send);
}

static void take_sends(struct world *w) {
    assert_true(w->out.used <= w->out.room);
    for (uint32_t at = 0; at < w->out.used;) {
        const struct cv_send *send = (const void *)(w->out.sends + at);
        take_send(w, send);
        at += (uint32_t)sizeof *send + ((send->size + 7) & ~7u);
    }
}

static void take_tell(struct world *w, const struct cv_tell *tell) {
    struct actor *actor = &w->actor[w->env.self];
    if (!is_lock(w->algorithm)) return;
    if (tell->what == CV_ENTERED) {
        assert_int_equal(actor->app, WAITING_APP);
        assert_true((w->algorithm->traits & CV_FENCED) || tell->arg == 0);
        actor->app = INSIDE_APP;
    } else if (tell->what == CV_LEFT) {
        assert_int_equal(actor->app, INSIDE_APP);
        actor->app = IDLE_APP;
    } else {
        assert_int_equal(tell->what, CV_WOKEN);
    }
}

static void take_timers(const struct world *w) {
    assert_int_equal(w->out.timers_set & w->out.timers_cancelled, 0);
    assert_true((w->out.timers_set | w->out.timers_cancelled) < 1u << w->algorithm->timers);
    for (unsigned t = 0; t < w->algorithm->timers; t++)
        if (w->out.timers_set & 1u << t)
            assert_true(w->out.timer[t].min_us <= w->out.timer[t].max_us);
}

/* Nothing leaves before what it depends on is durable: a process that sends has saved its prefix. A
 * client shares the layout of its server, and need not save all of it. */
static void take_save(struct world *w) {
    struct actor *actor = &w->actor[w->env.self];
    bool answers = cv_serves(&w->env) || !w->env.servers;
    if (w->out.save) memcpy(actor->saved, actor->state, actor->layout.durable);
    if (w->out.used && answers)
        assert_memory_equal(actor->saved, actor->state, actor->layout.durable);
}

/* The same event on the same state has the same effects. */
static void assert_pure(struct world *w, const struct cv_event *e, const void *before) {
    const struct actor *actor = &w->actor[w->env.self];
    struct cv_out again = {.room = w->out.room, .sends = zeroed(w->out.room)};
    void *state = zeroed(actor->size);
    memcpy(state, before, actor->size);
    w->algorithm->step(state, &w->env, e, &again);
    assert_memory_equal(state, actor->state, actor->size);
    assert_true(again.used == w->out.used && again.save == w->out.save &&
                again.tells == w->out.tells && again.choose == w->out.choose);
    if (again.used) assert_memory_equal(again.sends, w->out.sends, again.used);
    free(state);
    free(again.sends);
}

static void step(struct world *w, cv_pid p, const struct cv_event *e) {
    struct actor *actor = &w->actor[p];
    void *before = zeroed(actor->size);
    memcpy(before, actor->state, actor->size);
    w->env.self = p;
    w->out = (struct cv_out){.room = room_of(w, p)};
    w->out.sends = zeroed(w->out.room);
    w->algorithm->step(actor->state, &w->env, e, &w->out);
    assert_pure(w, e, before);
    take_save(w);
    take_timers(w);
    take_sends(w);
    if (w->out.choose) actor->choose = w->out.choose;
    for (unsigned i = 0; i < w->out.tells; i++) take_tell(w, &w->out.tell[i]);
    free(w->out.sends);
    free(before);
}

/* ---- Chaos ---- */

static cv_pid anyone(struct world *w) { return 1 + (cv_pid)rng_below(&w->rng, w->env.processes); }

static uint64_t some_number(struct world *w, enum cv_type type) {
    if (type == CV_PID) return rng_below(&w->rng, w->env.processes + 1);
    switch (rng_below(&w->rng, 8)) {
    case 0: return rng_below(&w->rng, 200);
    case 1: return type == CV_U64 || type == CV_ID ? rng_next(&w->rng) : rng_below(&w->rng, 200);
    default: return rng_below(&w->rng, 5);
    }
}

static void fill(struct world *w, const struct cv_field *fields, unsigned count,
                 unsigned char *at) {
    for (unsigned i = 0; i < count; i++) { /* little-endian, like the machine */
        enum cv_type type = (enum cv_type)fields[i].type;
        uint64_t value = type == CV_QUEUE || type == CV_LINK ? 0 : some_number(w, type);
        memcpy(at + fields[i].offset, &value, size_of(type));
    }
}

/* Random processes, once each, in random order. */
static void fill_queue(struct world *w, const struct cv_record *m, unsigned char *body,
                       uint32_t rows) {
    struct cv_links links = {body + m->size, m->row_size, 1};
    for (unsigned i = 0; i < m->row_field_count; i++)
        if (m->row_fields[i].type == CV_LINK) links.base += m->row_fields[i].offset;
    for (unsigned i = 0; i < m->field_count; i++) {
        struct cv_queue *queue = (void *)(body + m->fields[i].offset);
        for (uint32_t k = 0; k < rows && m->fields[i].type == CV_QUEUE; k++) {
            cv_pid p = 1 + (cv_pid)rng_below(&w->rng, rows);
            if (!cv_queued(queue, links, p)) cv_queue_push(queue, links, p);
        }
    }
}

/* A well-formed message, whether or not any process could have sent it. */
static void forge(struct world *w) {
    cv_pid from = anyone(w), to = anyone(w);
    uint16_t kind = (uint16_t)rng_below(&w->rng, w->algorithm->message_count);
    const struct cv_record *m = &w->algorithm->messages[kind];
    uint32_t rows = m->row_size ? w->actor[from].layout.message_rows : 0;
    uint32_t size = m->size + rows * m->row_size;
    if (from == to) return;
    unsigned char *body = zeroed(size);
    fill(w, m->fields, m->field_count, body);
    for (uint32_t i = 0; i < rows; i++)
        fill(w, m->row_fields, m->row_field_count, body + m->size + i * m->row_size);
    fill_queue(w, m, body, rows);
    step(w, to,
         &(struct cv_event){
             .type = CV_RECV, .from = from, .kind = kind, .size = size, .body = body});
    free(body);
}

/* A message in flight arrives, unless it is for `away`. */
static void arrive(struct world *w, bool again, cv_pid away) {
    if (!w->flights) return;
    size_t at = rng_below(&w->rng, w->flights);
    struct flight f = w->flight[at];
    f.body = zeroed(f.size);
    memcpy(f.body, w->flight[at].body, f.size);
    if (!again) drop_flight(w, at);
    if (f.to != away)
        step(w, f.to,
             &(struct cv_event){
                 .type = CV_RECV, .from = f.from, .kind = f.kind, .size = f.size, .body = f.body});
    free(f.body);
}

static void restart(struct world *w, cv_pid p) {
    struct actor *actor = &w->actor[p];
    memset(actor->state, 0, actor->size);
    if (rng_below(&w->rng, 4) == 0) memset(actor->saved, 0, actor->layout.durable);
    memcpy(actor->state, actor->saved, actor->layout.durable);
    actor->app = IDLE_APP;
    actor->choose = 0;
    step(w, p, &(struct cv_event){.type = CV_RESTART});
}

/* An application may ask for what it already has, which must do no harm. */
static void call(struct world *w, cv_pid p, uint32_t what) {
    struct actor *actor = &w->actor[p];
    if (p <= w->env.servers) return;
    if (what == CV_ACQUIRE && actor->app == IDLE_APP) actor->app = WAITING_APP;
    step(w, p, &(struct cv_event){.type = CV_CALL, .arg = what});
}

static void choose(struct world *w, cv_pid p) {
    uint32_t k = w->actor[p].choose;
    w->actor[p].choose = 0;
    if (k)
        step(w, p, &(struct cv_event){.type = CV_CHOICE, .arg = (uint32_t)rng_below(&w->rng, k)});
}

static void hand_on(struct world *w, cv_pid p, cv_pid to) {
    if (to != p && w->algorithm->traits & CV_HANDS_ON)
        step(w, p, &(struct cv_event){.type = CV_HAND_ON, .arg = to});
}

static void detect(struct world *w, cv_pid p, enum cv_event_type type) {
    cv_pid subject = anyone(w);
    if (subject != p) step(w, p, &(struct cv_event){.type = type, .arg = subject});
}

static void time_out(struct world *w, cv_pid p) {
    if (!w->algorithm->timers) return;
    uint32_t timer = (uint32_t)rng_below(&w->rng, w->algorithm->timers);
    step(w, p, &(struct cv_event){.type = CV_TIMEOUT, .arg = timer});
}

/* `forged`: whether messages arrive that no process sent. */
static void something(struct world *w, bool forged) {
    cv_pid p = anyone(w);
    switch (rng_below(&w->rng, 40)) {
    case 0: restart(w, p); break;
    case 1:
    case 2: detect(w, p, CV_DOWN); break;
    case 3:
    case 4: detect(w, p, CV_UP); break;
    case 5:
    case 6:
    case 7: time_out(w, p); break;
    case 8:
    case 9: choose(w, p); break;
    case 10:
    case 11:
    case 12:
    case 13:
    case 14:
    case 15: call(w, p, CV_ACQUIRE); break;
    case 16:
    case 17:
    case 18:
    case 19: call(w, p, CV_RELEASE); break;
    case 20: hand_on(w, p, anyone(w)); break;
    case 21:
    case 22:
    case 23:
    case 24:
        if (forged) forge(w);
        break;
    default: arrive(w, rng_below(&w->rng, 4) == 0, CV_NOBODY); break; /* some come again later */
    }
}

static unsigned inside(const struct world *w) {
    unsigned found = 0;
    for (cv_pid p = 1; p <= w->env.processes; p++) found += w->actor[p].app == INSIDE_APP;
    return found;
}

/* Returns the number of events after which a process was inside. */
static unsigned chaos(const struct cv_algorithm *algorithm, uint64_t seed, bool forged) {
    enum { EVENTS = 600 };
    struct world *w = world_new(algorithm, seed);
    unsigned entered = 0;
    for (cv_pid p = 1; p <= w->env.processes; p++) step(w, p, &(struct cv_event){.type = CV_START});
    for (int i = 0; i < EVENTS; i++) {
        something(w, forged);
        entered += inside(w) > 0;
    }
    world_free(w);
    return entered;
}

static void assert_survives(const struct cv_algorithm *algorithm, bool forged) {
    unsigned entered = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) entered += chaos(algorithm, seed, forged);
    assert_true(entered > 0);
}

static void it_survives_any_order_of_what_was_sent(void **state) { assert_survives(*state, false); }

static void it_survives_forged_messages(void **state) { assert_survives(*state, true); }

/* ---- Traits ---- */

/* Whoever wants the lock gets it, and nobody wants it again. */
static void serve_all(struct world *w, cv_pid away) {
    enum { STEPS_MAX = 10000 };
    for (int i = 0; i < STEPS_MAX && (w->flights || inside(w)); i++) {
        for (cv_pid p = 1; p <= w->env.processes; p++)
            if (w->actor[p].app == INSIDE_APP) call(w, p, CV_RELEASE);
        arrive(w, false, away);
        assert_true(inside(w) <= 1);
    }
    for (cv_pid p = 1; p <= w->env.processes; p++) assert_int_equal(w->actor[p].app, IDLE_APP);
}

/* The last process: of those on a tree it is a leaf. */
static void end_one(struct world *w) {
    cv_pid away = w->env.processes;
    for (cv_pid p = 1; p < away; p++) hand_on(w, away, p);
    serve_all(w, away);
    for (cv_pid p = 1; p < away; p++) {
        call(w, p, CV_ACQUIRE);
        serve_all(w, away);
    }
}

static void it_goes_on_without_one_that_ends_if_that_is_promised(void **state) {
    enum { EVENTS = 300 };
    const struct cv_algorithm *a = *state;
    for (uint64_t seed = 1; seed <= 100 && a->traits & CV_HANDS_ON; seed++) {
        struct world *w = world_new(a, seed);
        for (cv_pid p = 1; p <= w->env.processes; p++)
            step(w, p, &(struct cv_event){.type = CV_START});
        for (int i = 0; i < EVENTS; i++) {
            cv_pid p = anyone(w);
            uint64_t what = rng_below(&w->rng, 8);
            if (what == 0) hand_on(w, p, anyone(w));
            if (what == 1) call(w, p, CV_ACQUIRE);
            if (what == 2) call(w, p, CV_RELEASE);
            if (what > 2) arrive(w, false, CV_NOBODY);
            assert_true(inside(w) <= 1);
        }
        serve_all(w, CV_NOBODY);
        end_one(w);
        world_free(w);
    }
}

static void its_tokens_grow_if_they_are_promised(void **state) {
    const struct cv_algorithm *a = *state;
    struct sim *sim = zeroed(sizeof *sim);
    struct sim_config config;
    struct trace trace;
    uint64_t newest = 0, entries = 0;
    config_init(&config, a);
    trace_open(&trace, &config);
    assert_int_equal(sim_open(sim), 0);
    sim_run(sim, &config, &trace);
    for (size_t i = 1; i < trace.count; i++) {
        if (trace.entry[i].type != TR_ENTER) continue;
        assert_true(a->traits & CV_FENCED ? trace.entry[i].arg > newest : trace.entry[i].arg == 0);
        newest = trace.entry[i].arg;
        entries++;
    }
    assert_int_equal(entries, config.entries);
    sim_close(sim);
    free(sim);
    trace_close(&trace);
    config_free(&config);
}

/* The tokens of an epoch are lower than those of the next one. */
static void a_ring_begins_an_epoch_before_the_last_token_of_one(void **state) {
    (void)state;
    enum { TOKENS_PER_EPOCH = 1000000, SEEDS = 20 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world *w = world_new(catalogue_find("token-ring"), seed);
        const uint32_t last[] = {w->env.processes, TOKENS_PER_EPOCH - 1};
        cv_pid p = w->env.processes; /* the first has the token at once */
        if (p > 1) {
            call(w, p, CV_ACQUIRE);
            step(w, p, &(struct cv_event){CV_RECV, .from = 1, .size = sizeof last, .body = last});
            assert_int_equal(w->actor[p].app, INSIDE_APP);
            assert_true(w->out.tell[0].arg == (2ull * p - 1) * TOKENS_PER_EPOCH + 1);
        }
        world_free(w);
    }
}

/* ---- All of that for each ---- */

static const struct check {
    const char *name;
    CMUnitTestFunction run;
    bool of_locks;
} checks[] = {
    {"its names are words of its own", its_names_are_words_of_its_own, false},
    {"its counts fit their limits", its_counts_fit_their_limits, false},
    {"its options are named apart and their default values are allowed",
     its_options_are_named_apart_and_default_values_are_allowed, false},
    {"its records have no gaps and aligned rows", its_records_have_no_gaps_and_aligned_rows, false},
    {"its tokens grow if they are promised", its_tokens_grow_if_they_are_promised, true},
    {"it goes on without one that ends, if that is promised",
     it_goes_on_without_one_that_ends_if_that_is_promised, true},
    {"it survives any order of what was sent", it_survives_any_order_of_what_was_sent, true},
    {"it survives forged messages", it_survives_forged_messages, true},
};

int main(void) {
    enum { TESTS_MAX = 1000 };
    static struct CMUnitTest tests[TESTS_MAX];
    static char names[TESTS_MAX][120];
    size_t count = 0;
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(unknown_names_are_not_found);
    tests[count++] =
        (struct CMUnitTest)cmocka_unit_test(a_ring_begins_an_epoch_before_the_last_token_of_one);
    for (size_t i = 0; i < catalogue_count; i++)
        for (size_t k = 0; k < COUNT(checks); k++) {
            if (checks[k].of_locks && !is_lock(catalogue[i])) continue;
            cv_assert(count < TESTS_MAX);
            snprintf(names[count], sizeof names[count], "%s: %s", catalogue[i]->name,
                     checks[k].name);
            tests[count] = (struct CMUnitTest){.name = names[count],
                                               .test_func = checks[k].run,
                                               .initial_state = (void *)catalogue[i]};
            count++;
        }
    return _cmocka_run_group_tests("algorithms", tests, count, NULL, NULL);
}
