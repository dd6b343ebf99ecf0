/* Holds a lock for a while: `lock NAME SECONDS`.  Run it twice. */
#include <conclave.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int fail(struct cv_client *client, const char *what, int error) {
    char why[500] = "";
    if (error == CV_NO_SERVER) cv_explain(client, why, sizeof why);
    fprintf(stderr, "%s: %s %s\n", what, cv_error_text(error), why);
    cv_close(client);
    return 1;
}

static void changed(struct cv_lock *lock, enum cv_lock_state state, void *arg) {
    (void)arg;
    if (state == CV_WAITING && cv_lock_position(lock) > 0)
        printf("%d before us\n", cv_lock_position(lock));
    if (state == CV_LOST_LOCK) {
        /* Somebody else may hold it soon: stop working now. */
        fprintf(stderr, "lost\n");
        _Exit(1);
    }
}

int main(int count, char **argument) {
    struct cv_client *client;
    struct cv_lock *lock;
    char path[256];
    int error;
    if (count != 3) return fprintf(stderr, "usage: lock NAME SECONDS\n"), 2;
    snprintf(path, sizeof path, "/conclave/locks/%s", argument[1]);
    error = cv_open(&client, NULL); /* $CONCLAVE_SERVER, or localhost:2181 */
    if (error) return fail(client, "open", error);
    struct cv_lock_options options = {.label = "an example", .on_change = changed};
    if ((error = cv_lock_open(&lock, client, path, &options))) return fail(client, path, error);
    if ((error = cv_lock_acquire(lock, CV_FOREVER))) return fail(client, path, error);
    printf("held, token %" PRId64 "\n", cv_lock_token(lock));
    fflush(stdout);
    nanosleep(&(struct timespec){.tv_sec = atoi(argument[2])}, NULL);
    cv_lock_release(lock);
    cv_lock_close(lock);
    cv_close(client);
    return 0;
}
