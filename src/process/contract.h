/* Whether an algorithm keeps the contract of conclave/algorithm.h.  Those that come with Conclave
 * are tested; one that was loaded from a file is inspected, and so is each of its steps. */
#ifndef CV_PROCESS_CONTRACT_H
#define CV_PROCESS_CONTRACT_H

#include "process/process.h"

/* What is wrong with a descriptor, in the buffer; NULL when it can be used. */
const char *contract_problem(const struct cv_algorithm *code, char *buffer, size_t size);

/* The layout of a process.  One that cannot be is told in one line, and ends the program. */
struct cv_layout contract_layout(const struct cv_algorithm *code, const struct cv_env *env);

/* Tells what a loaded algorithm does wrong, and ends the program. */
__attribute__((format(printf, 3, 4))) _Noreturn void
contract_break(const struct cv_algorithm *code, cv_pid self, const char *format, ...);

/* Inspects what a step has left.  A slip is told in one line, and ends the program. */
void contract_inspect(const struct cv_algorithm *code, const struct cv_env *env, const void *state,
                      const struct cv_out *out);

/* That a process enters while it is inside, as a loaded algorithm may say. */
void contract_inside(const struct cv_algorithm *code, cv_pid self);

/* Where the code of a loaded algorithm runs in a thread, for whoever explains its end. */
struct contract_place {
    const char *algorithm; /* NULL: it does not run */
    cv_pid process;        /* CV_NOBODY: it is being loaded */
    uint64_t steps;        /* that it has taken */
};
extern _Thread_local struct contract_place contract_place;

/* From now on the crash of a loaded algorithm, its exit() and a step that never ends are told in
 * one line: in this thread, and in those that say that they take steps. */
void contract_explain_ends(void);
void contract_watch_thread(void);

/* A step of a loaded algorithm, inspected. */
void contract_step_loaded(const struct cv_algorithm *code, void *state, const struct cv_env *env,
                          const struct cv_event *event, struct cv_out *out);

static inline void contract_step(const struct cv_algorithm *code, void *state,
                                 const struct cv_env *env, const struct cv_event *event,
                                 struct cv_out *out) {
    if (__builtin_expect(code->traits & CV_FROM_FILE, 0))
        contract_step_loaded(code, state, env, event, out);
    else
        code->step(state, env, event, out);
}

#endif
