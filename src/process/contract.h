/* Whether an algorithm keeps the contract of conclave/algorithm.h.  Those that come with Conclave
 * are tested; one that was loaded from a file is inspected, and so is each of its steps. */
#ifndef CV_PROCESS_CONTRACT_H
#define CV_PROCESS_CONTRACT_H

#include "process/process.h"

/* What is wrong with a descriptor, in the buffer; NULL when it can be used. */
const char *contract_problem(const struct cv_algorithm *code, char *buffer, size_t size);

/* The layout of a process.  One that cannot be is told in one line, and ends the program. */
struct cv_layout contract_layout(const struct cv_algorithm *code, const struct cv_env *env);

/* Inspects what a step has left.  A slip is told in one line, and ends the program. */
void contract_inspect(const struct cv_algorithm *code, const struct cv_env *env, const void *state,
                      const struct cv_out *out);

static inline void contract_step(const struct cv_algorithm *code, void *state,
                                 const struct cv_env *env, const struct cv_event *event,
                                 struct cv_out *out) {
    code->step(state, env, event, out);
    if (__builtin_expect(code->traits & CV_FROM_FILE, 0)) contract_inspect(code, env, state, out);
}

#endif
