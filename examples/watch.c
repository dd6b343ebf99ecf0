/* Prints a node whenever it changes: `watch PATH [COUNT]`.
 *
 * Each read sets the next watch, so that no change is missed in between: several in quick
 * succession may be seen as one. */
#include <conclave.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct news {
    pthread_mutex_t mutex;
    pthread_cond_t some;
    int count;
    enum cv_watch_type last;
};

/* Called by the client's thread, where nothing may wait: it only tells main. */
static void happened(enum cv_watch_type type, const char *path, void *arg) {
    struct news *news = arg;
    (void)path;
    pthread_mutex_lock(&news->mutex);
    news->count++;
    news->last = type;
    pthread_cond_signal(&news->some);
    pthread_mutex_unlock(&news->mutex);
}

static enum cv_watch_type await_news(struct news *news) {
    pthread_mutex_lock(&news->mutex);
    while (!news->count) pthread_cond_wait(&news->some, &news->mutex);
    news->count = 0;
    enum cv_watch_type type = news->last;
    pthread_mutex_unlock(&news->mutex);
    return type;
}

/* Prints the node, or that there is none, and watches it. */
static int show(struct cv_client *client, const char *path, struct news *news) {
    struct cv_op op = cv_op_get(path);
    struct cv_result *result;
    op.watch = happened, op.watch_arg = news;
    int error = cv_call(client, &op, &result);
    if (!error) printf("%s = %.*s\n", path, (int)result->size, (const char *)result->data);
    cv_result_free(result);
    if (error != CV_NO_NODE) return error;
    op = cv_op_exists(path); /* the watch of a read that fails is not set; that of exists is */
    op.watch = happened, op.watch_arg = news;
    error = cv_call(client, &op, NULL);
    if (error == CV_OK) return show(client, path, news); /* it was created just now */
    if (error == CV_NO_NODE) printf("%s does not exist\n", path);
    return error == CV_NO_NODE ? CV_OK : error;
}

int main(int count, char **argument) {
    struct news news = {.mutex = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};
    struct cv_client *client;
    char why[500] = "";
    if (count < 2) return fprintf(stderr, "usage: watch PATH [COUNT]\n"), 2;
    int error = cv_open(&client, NULL); /* $CONCLAVE_SERVER, or localhost:2181 */
    for (int left = count > 2 ? atoi(argument[2]) : -1; !error && left; left--) {
        error = show(client, argument[1], &news);
        fflush(stdout);
        if (!error && left != 1 && await_news(&news) == CV_WATCH_LOST) error = CV_SESSION_EXPIRED;
    }
    if (error)
        fprintf(stderr, "%s %s\n", cv_error_text(error), cv_explain(client, why, sizeof why));
    cv_close(client);
    return error ? 1 : 0;
}
