#include "cli/pipeline.h"

enum { WINDOW = 256, TRIES = 5 };

struct run;

struct slot {
    struct run *run;
    size_t index;
    unsigned tries;
    bool busy, again;
};

struct run {
    const struct pipeline *pipeline;
    struct slot slots[WINDOW];
    size_t busy, next;
    int error;
};

static void ended(const struct cv_result *result, void *arg) {
    struct slot *slot = arg;
    struct run *run = slot->run;
    if (result->error == CV_CONNECTION_LOSS && run->pipeline->again && ++slot->tries < TRIES) {
        slot->again = true;
        return;
    }
    slot->busy = false;
    run->busy--;
    run->pipeline->done(run->pipeline->arg, slot->index, result);
}

static bool start(struct remote *remote, struct run *run, struct slot *slot) {
    struct cv_op op = {0};
    if (!run->pipeline->describe(run->pipeline->arg, slot->index, &op)) return false;
    run->error = cv_start(remote->client, &op, ended, slot);
    return run->error == CV_OK;
}

static void fill(struct remote *remote, struct run *run) {
    for (size_t i = 0; i < WINDOW && !run->error; i++) {
        struct slot *slot = &run->slots[i];
        if (slot->again) {
            slot->again = false;
            if (!start(remote, run, slot)) slot->busy = false, run->busy--;
        } else if (!slot->busy) {
            *slot = (struct slot){.run = run, .index = run->next, .busy = true};
            if (!start(remote, run, slot)) {
                slot->busy = false;
                return;
            }
            run->next++;
            run->busy++;
        }
    }
}

int pipeline_run(struct remote *remote, const struct pipeline *pipeline) {
    struct run run = {.pipeline = pipeline};
    for (fill(remote, &run); run.busy; fill(remote, &run)) remote_wait(remote, CV_FOREVER);
    return run.error;
}
