/* Virtual time: coroutines, one of which runs at a time, and calls that are scheduled. */
#undef _FORTIFY_SOURCE /* it takes a jump to another stack for an error */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include "world.h"

struct world *world;

/* ---- Traces ---- */

void trace(const char *who, const char *format, ...) {
    va_list arguments;
    if (!world->tracing) return;
    va_start(arguments, format);
    printf("%10.6f  %-4s ", (double)world->now / 1e9, who);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

void violated(const char *format, ...) {
    va_list arguments;
    if (*world->violation) return;
    va_start(arguments, format);
    int used = snprintf(world->violation, sizeof world->violation,
                        "at %.6f s: ", (double)world->now / 1e9);
    vsnprintf(world->violation + used, sizeof world->violation - (size_t)used, format, arguments);
    va_end(arguments);
    trace("!!!", "%s", world->violation);
}

void hash_event(uint64_t a, uint64_t b) {
    world->hash = rng_mix(world->hash ^ rng_mix(a ^ rng_mix(b + 0x9e3779b97f4a7c15u)));
}

nanos random_time(struct rng *rng, nanos min, nanos max) {
    return min + rng_below(rng, max - min + 1);
}

/* ---- Calls: a heap, by time and then by age ---- */

struct call_entry {
    nanos when;
    uint64_t age, number;
    call_fn *call;
    void *context;
};

static bool is_before(const struct call_entry *a, const struct call_entry *b) {
    return a->when < b->when || (a->when == b->when && a->age < b->age);
}

void call_at(nanos when, call_fn *call, void *context, uint64_t number) {
    struct world *w = world;
    w->call = grown(w->call, &w->call_room, w->calls + 1, sizeof *w->call);
    size_t at = w->calls++;
    struct call_entry added = {when < w->now ? w->now : when, w->call_count++, number, call,
                               context};
    for (; at && is_before(&added, &w->call[(at - 1) / 2]); at = (at - 1) / 2)
        w->call[at] = w->call[(at - 1) / 2];
    w->call[at] = added;
}

static struct call_entry take_call(void) {
    struct world *w = world;
    struct call_entry first = w->call[0], last = w->call[--w->calls];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < w->calls; at = child) {
        if (child + 1 < w->calls && is_before(&w->call[child + 1], &w->call[child])) child++;
        if (!is_before(&w->call[child], &last)) break;
        w->call[at] = w->call[child];
    }
    w->call[at] = last;
    return first;
}

enum { STACK = 1 << 20, STACK_FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK };

/* ---- Stacks: those of tasks that have ended are used again, and jumped between ---- */

#if defined __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__ /* It knows contexts, and not where else the stack may be. */

static char *take_stack(void) {
    return mmap(NULL, STACK, PROT_READ | PROT_WRITE, STACK_FLAGS, -1, 0);
}
static void return_stack(char *stack) { munmap(stack, STACK); }
static void go_on(struct task *task) { swapcontext(&world->scheduler, &task->context); }
static void leave(struct task *task) { swapcontext(&task->context, &world->scheduler); }

#else /* Without a system call each time. */

static char *take_stack(void) {
    if (world->stacks) return world->stack[--world->stacks];
    return mmap(NULL, STACK, PROT_READ | PROT_WRITE, STACK_FLAGS, -1, 0);
}

static void return_stack(char *stack) { world->stack[world->stacks++] = stack; }

__attribute__((noinline)) static void go_on(struct task *task) {
    if (_setjmp(world->place)) return;
    if (task->begun) _longjmp(task->place, 1);
    task->begun = true;
    setcontext(&task->context);
}

__attribute__((noinline)) static void leave(struct task *task) {
    if (_setjmp(task->place) == 0) _longjmp(world->place, 1);
}

#endif

/* ---- Tasks ---- */

struct task *task_now(void) {
    return world->current;
}

static void enter(void) {
    struct task *task = world->current;
    task->body(task->argument);
    task_end();
}

struct task *task_start(struct machine *machine, void (*body)(void *), void *argument) {
    struct task *task = calloc(1, sizeof *task);
    cv_assert(task && world->tasks < TASKS_MAX);
    task->stack = take_stack();
    cv_assert(task->stack != MAP_FAILED);
    task->body = body;
    task->argument = argument;
    task->machine = machine;
    task->wake = world->now;
    getcontext(&task->context);
    task->context.uc_stack.ss_sp = task->stack;
    task->context.uc_stack.ss_size = STACK;
    task->context.uc_link = NULL;
    makecontext(&task->context, enter, 0);
    world->task[world->tasks++] = task;
    return task;
}

static void remove_task(struct task *task) {
    unsigned at = 0;
    while (world->task[at] != task) at++;
    for (world->tasks--; at < world->tasks; at++) world->task[at] = world->task[at + 1];
    return_stack(task->stack);
    free(task);
}

void task_drop(struct task *task) {
    cv_assert(task != world->current);
    remove_task(task);
}

void task_end(void) {
    world->current->over = true;
    leave(world->current);
    abort();
}

void task_wait(nanos until) {
    world->current->wake = until;
    leave(world->current);
}

void task_sleep(nanos length) {
    nanos until = world->now + length;
    while (world->now < until) task_wait(until);
}

void task_wake(struct task *task) {
    if (task && task->wake > world->now) task->wake = world->now;
}

static nanos due(const struct task *task) {
    nanos paused = task->machine ? task->machine->paused_until : 0;
    return task->wake > paused ? task->wake : paused;
}

static void run_task(struct task *task) {
    struct machine *machine = task->machine;
    task->wake = NEVER;
    world->current = task;
    go_on(task);
    world->current = NULL;
    if (task->over) remove_task(task);
    if (machine) judge_step(machine);
}

bool world_run(bool (*done)(void), nanos until) {
    struct world *w = world;
    while (!done() && !*w->violation) {
        struct task *next = NULL;
        for (unsigned i = 0; i < w->tasks; i++)
            if (!next || due(w->task[i]) < due(next)) next = w->task[i];
        nanos when = w->calls ? w->call[0].when : NEVER;
        bool is_call = !next || when <= due(next);
        if (!is_call) when = due(next);
        if (when >= until) {
            w->now = until;
            return false;
        }
        if (when > w->now) w->now = when;
        hash_event(w->now, is_call);
        if (is_call) {
            struct call_entry call = take_call();
            call.call(call.context, call.number);
        } else {
            run_task(next);
        }
    }
    return !*w->violation;
}
