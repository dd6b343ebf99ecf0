/* Steps of the consensus core, taken and recorded. */
#include "service/ensemble/core.h"

#include "base/logger.h"

int core_open_record(struct ensemble *e) {
    const struct settings *settings = e->settings;
    char error[STEPS_ERROR_MAX];
    if (!*settings->record_file) return 0;
    e->record = steps_open(settings->record_file, (uint64_t)settings->record_mib_max << 20,
                           e->incarnation, error);
    if (e->record) return 0;
    logger_error("the record cannot be written, so the server does not start",
                 LOGGER_STRING("reason", error));
    return ENSEMBLE_EXIT_FAILED;
}

static void end_record(struct ensemble *e) {
    logger_warning(
        "the record cannot be written any more, and ends here; the server goes on without",
        LOGGER_STRING("path", e->settings->record_file),
        LOGGER_STRING("reason", strerror(steps_error(e->record))));
    steps_close(e->record);
    e->record = NULL;
}

uint64_t core_step(struct ensemble *e, const struct step *step, struct raft_out *out) {
    if (e->record) steps_before(e->record, step);
    uint64_t result = step_take(&e->raft, step, out);
    if (e->record && !steps_add(e->record, &e->raft, step, out, result)) end_record(e);
    return result;
}

void core_start(struct ensemble *e, uint64_t commit_index, struct raft_out *out) {
    if (e->record) steps_begin(e->record, &e->raft, e->vote.ensemble_id);
    core_step(e, &(struct step){.type = STEP_START, .number = {commit_index}}, out);
}
