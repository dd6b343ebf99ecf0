#include "cli/patience.h"

#include <unistd.h>

int patience_parse(struct patience *patience, const char *option, const char *text) {
    patience->limited = true;
    return remote_duration(option, text, &patience->limit);
}

int32_t patience_limit(const struct patience *patience) {
    if (!patience->limited) return CV_FOREVER;
    return patience->limit > INT32_MAX ? INT32_MAX : (int32_t)patience->limit;
}

void patience_note(const char *text) {
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r%s\033[K", text ? text : "");
    fflush(stderr);
}

static void note(const char *text, int64_t since) {
    char line[128];
    int64_t seconds = (cv_now() - since) / 1000;
    snprintf(line, sizeof line, "%s, %d:%02d", text, (int)(seconds / 60), (int)(seconds % 60));
    if (seconds) patience_note(line);
}

int patience_wait(struct patience *patience, struct remote *remote, const char *text,
                  int (*once)(struct remote *, void *, int32_t), void *arg) {
    enum { STEP = 500 };
    int64_t since = cv_now();
    remote_catch_signals(remote);
    for (;;) {
        int64_t left = patience->limited ? patience->limit - (cv_now() - since) : STEP;
        int error = once(remote, arg, left > STEP ? STEP : left > 0 ? (int32_t)left : 0);
        if (error == CV_OPERATION_TIMEOUT || error == CV_BUSY) {
            patience->signal = remote_wait(remote, 0);
            if (!patience->signal && left > 0) {
                note(text, since);
                continue;
            }
        }
        patience_note(NULL);
        return error == CV_BUSY ? CV_OPERATION_TIMEOUT : error;
    }
}

int patience_result(const struct patience *patience, struct remote *remote, int error,
                    const char *path) {
    if (patience->signal) return 128 + patience->signal;
    return error ? remote_fail(remote, error, path) : EXIT_OK;
}
