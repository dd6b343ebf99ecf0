/* Loaded algorithms that end the program, or never come back from a step.
 *
 * Handlers of signals belong to a whole process, as what is here does. */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process/contract.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { STACK_SIZE = 65536, ENDLESS_S = 3, WRONG_USAGE = 2 };

/* What a thread has that takes steps: a stack for the handler of a stack that overflows, and a
 * clock that ticks with every second that it works. */
struct watch {
    timer_t clock;
    bool ticks;
    unsigned char stack[STACK_SIZE];
};

static struct {
    pthread_once_t once;
    bool installed;
    atomic_flag crashing; /* a thread explains it, and ends the program */
    pthread_key_t watches;
} handlers = {.once = PTHREAD_ONCE_INIT, .crashing = ATOMIC_FLAG_INIT};
static _Thread_local volatile uint64_t last_step;
static _Thread_local volatile unsigned ticks_in_step;

/* ---- Words, also from a handler of signals ---- */

static char *append(char *at, const char *end, const char *text) {
    while (*text && at < end) *at++ = *text++;
    return at;
}

static char *append_number(char *at, const char *end, unsigned number) {
    char digits[12], *from = digits + sizeof digits;
    *--from = 0;
    do *--from = (char)('0' + number % 10);
    while (number /= 10);
    return append(at, end, from);
}

/* "conclave: ./mine.so: in a step of process 2 it calls exit()" */
static void explain(const char *what) {
    char line[512];
    const char *end = line + sizeof line - 1;
    char *at = append(line, end, "conclave: ");
    if (!contract_place.algorithm) {
        at = append(at, end, "after an algorithm was loaded from a file, the program ");
    } else {
        at = append(at, end - 250, contract_place.algorithm);
        at = append(at, end, contract_place.process ? ": in a step of process " : ": while loaded");
        if (contract_place.process) at = append_number(at, end, contract_place.process);
        at = append(at, end, " it ");
    }
    at = append(at, end, what);
    *at++ = '\n';
    if (write(STDERR_FILENO, line, (size_t)(at - line)) < 0) _exit(WRONG_USAGE);
}

/* ---- Ends ---- */

#define DEBUGGER "; run this in a debugger (gdb --args conclave ...)"

static const char *what_happens(int number) {
    switch (number) {
    case SIGABRT: return "aborts" DEBUGGER;
    case SIGFPE: return "crashes: it divides by zero" DEBUGGER;
    case SIGILL: return "crashes: a function ends without its value" DEBUGGER;
    default: return "crashes: it follows a wrong pointer, or calls itself for ever" DEBUGGER;
    }
}

static void crashed(int number) {
    while (atomic_flag_test_and_set(&handlers.crashing)) pause();
    /* an assertion of the program itself has said its word */
    if (number != SIGABRT || contract_place.algorithm) explain(what_happens(number));
    signal(number, SIG_DFL);
    raise(number);
}

static void exited(void) {
    if (!contract_place.algorithm) return;
    explain("calls exit()");
    _Exit(WRONG_USAGE);
}

/* ---- Steps without an end ---- */

static void ticked(int number) {
    (void)number;
    if (!contract_place.algorithm || last_step != contract_place.steps) {
        last_step = contract_place.steps;
        ticks_in_step = 0;
    } else if (++ticks_in_step == ENDLESS_S) {
        explain("works for seconds, and seems never to come back");
        _Exit(WRONG_USAGE);
    }
}

static void end_watch(void *of_thread) {
    struct watch *watch = of_thread;
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    if (watch->ticks) timer_delete(watch->clock);
    free(watch);
}

/* What cannot be had is done without: the explanation of an end. */
void contract_watch_thread(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    struct itimerspec second = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
    struct watch *watch;
    if (!handlers.installed || pthread_getspecific(handlers.watches)) return;
    if (!(watch = malloc(sizeof *watch))) return;
    stack_t stack = {.ss_sp = watch->stack, .ss_size = sizeof watch->stack};
    stack_t was;
    if (sigaltstack(NULL, &was) == 0 && was.ss_flags & SS_DISABLE) sigaltstack(&stack, NULL);
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    watch->ticks = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &watch->clock) == 0;
    if (watch->ticks) timer_settime(watch->clock, 0, &second, NULL);
    pthread_setspecific(handlers.watches, watch);
}

/* A debugger's or a sanitizer's handlers know more. */
static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction was, ours = {.sa_handler = handler, .sa_flags = flags};
    if (sigaction(number, NULL, &was) == 0 && was.sa_handler == SIG_DFL)
        sigaction(number, &ours, NULL);
}

static void begin(void) {
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    if (pthread_key_create(&handlers.watches, end_watch) != 0) return;
    handlers.installed = true;
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        handle(crashes[i], crashed, SA_ONSTACK);
    handle(SIGPROF, ticked, SA_RESTART);
    atexit(exited);
    contract_watch_thread();
}

void contract_explain_ends(void) { pthread_once(&handlers.once, begin); }
