/* Running a client: events in, callbacks out. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/internal.h"

enum { EVENTS = 4, FAREWELL_MAX = 3000 };

void client_lock(struct cv_client *client) { pthread_mutex_lock(&client->mutex); }
void client_unlock(struct cv_client *client) { pthread_mutex_unlock(&client->mutex); }

/* ---- Callbacks ---- */

void call_begin(struct cv_client *client) {
    client->calling = true;
    if (!client->threaded) client->runner = pthread_self();
    client_unlock(client);
}

void call_end(struct cv_client *client) {
    client_lock(client);
    client->calling = false;
}

static bool is_runner(const struct cv_client *client) {
    return client->calling && pthread_equal(client->runner, pthread_self());
}

int64_t client_time(const struct cv_client *client) {
    return is_runner(client) ? client->round : cv_now();
}

bool client_in_callback(struct cv_client *client) {
    client_lock(client);
    bool inside = is_runner(client);
    client_unlock(client);
    return inside;
}

/* ---- Timers ---- */

void client_interrupt(struct cv_client *client) {
    ssize_t woken = write(client->wake, &(uint64_t){1}, sizeof(uint64_t));
    (void)woken;
}

static int64_t next_time(struct cv_client *client) {
    int64_t next = session_next_time(client);
    if (client->timers && client->timers->at < next) next = client->timers->at;
    if (client->ending != NOT_ENDING && client->ending_since + FAREWELL_MAX < next)
        next = client->ending_since + FAREWELL_MAX;
    return next;
}

/* One that fires too early costs less than setting it with every request. */
void client_arm_timer(struct cv_client *client) {
    int64_t next = next_time(client);
    if (next == INT64_MAX || (client->timer_at && client->timer_at <= next)) return;
    if (next < 1) next = 1;
    struct itimerspec when = {
        .it_value = {.tv_sec = next / 1000, .tv_nsec = next % 1000 * 1000000 + 1}};
    timerfd_settime(client->timer, TFD_TIMER_ABSTIME, &when, NULL);
    client->timer_at = next;
}

static void unlink_timer(struct cv_client *client, struct client_timer *timer) {
    if (timer->before)
        timer->before->next = timer->next;
    else
        client->timers = timer->next;
    if (timer->next) timer->next->before = timer->before;
    timer->set = false;
}

void client_timer_set(struct cv_client *client, struct client_timer *timer, int64_t at) {
    client_lock(client);
    if (timer->set) unlink_timer(client, timer);
    struct client_timer *before = NULL, *next = client->timers;
    while (next && next->at <= at) before = next, next = next->next;
    timer->at = at;
    timer->before = before;
    timer->next = next;
    timer->set = true;
    if (next) next->before = timer;
    if (before)
        before->next = timer;
    else
        client->timers = timer;
    client_arm_timer(client);
    client_unlock(client);
}

void client_timer_cancel(struct cv_client *client, struct client_timer *timer) {
    client_lock(client);
    if (timer->set) unlink_timer(client, timer);
    client_unlock(client);
}

static void fire_timer(struct cv_client *client) {
    struct client_timer *timer = client->timers;
    unlink_timer(client, timer);
    CALL_BACK(client, timer->fire(timer));
}

static void fire_timers(struct cv_client *client) {
    int64_t now = cv_now();
    while (client->timers && client->timers->at <= now) fire_timer(client);
}

/* ---- Listeners and tasks ---- */

void client_listen(struct cv_client *client, struct client_listener *listener) {
    client_lock(client);
    listener->before = NULL;
    listener->next = client->listeners;
    if (listener->next) listener->next->before = listener;
    client->listeners = listener;
    client_unlock(client);
}

void client_unlisten(struct cv_client *client, struct client_listener *listener) {
    client_lock(client);
    if (client->listener_next == listener) client->listener_next = listener->next;
    if (listener->before)
        listener->before->next = listener->next;
    else if (client->listeners == listener)
        client->listeners = listener->next;
    if (listener->next) listener->next->before = listener->before;
    listener->next = listener->before = NULL;
    client_unlock(client);
}

static void tell_state(struct cv_client *client) {
    enum cv_state state = client->told_state = client->state;
    for (struct client_listener *one = client->listeners; one; one = client->listener_next) {
        client->listener_next = one->next;
        CALL_BACK(client, one->changed(one, state));
    }
    if (client->on_state) CALL_BACK(client, client->on_state(client, state, client->on_state_arg));
    pthread_cond_broadcast(&client->changed);
}

void client_post(struct cv_client *client, struct client_task *task) {
    client_lock(client);
    task->next = NULL;
    *client->tasks_last = task;
    client->tasks_last = &task->next;
    client_interrupt(client);
    client_unlock(client);
}

static bool run_task(struct cv_client *client) {
    struct client_task *task = client->tasks;
    if (!task) return false;
    client->tasks = task->next;
    if (!client->tasks) client->tasks_last = &client->tasks;
    CALL_BACK(client, task->run(task));
    return true;
}

static bool end_request(struct cv_client *client) {
    struct request *request = queue_take(&client->requests.ended);
    struct cv_result result = {0};
    if (!request) return false;
    result.error = request->error;
    struct waiter *waiter = request->waiter;
    request_finish(client, request, &result);
    if (waiter) waiter->result = NULL; /* we have the lock still */
    return true;
}

/* Tells what has to be told: states, requests without an answer, watches, tasks. */
static void tell(struct cv_client *client) {
    for (;;) {
        if (client->state != client->told_state) {
            tell_state(client);
        } else if (client->session.renewed) {
            client->session.renewed = false;
            watches_tell_renewed(client);
        } else if (client->session.phase == PHASE_OVER && client->watches.nodes) {
            watches_lost(client);
        } else if (!end_request(client) && !run_task(client)) {
            return;
        }
    }
}

/* ---- The end ---- */

static void on_farewell(const struct cv_result *result, void *arg) {
    struct cv_client *client = arg;
    (void)result;
    client_lock(client);
    client->farewell_over = true;
    client_unlock(client);
}

/* Says that the session ends, and waits a moment for the answer. */
static void take_leave(struct cv_client *client) {
    bool connected = client->session.phase == PHASE_UP && !client->farewell_over &&
                     client->ending == ENDING_CLOSE;
    if (connected && !client->farewell_sent) {
        request_internal(client, ZK_OP_CLOSE_SESSION, on_farewell, client);
        client->farewell_sent = true;
    }
    if (connected && cv_now() < client->ending_since + FAREWELL_MAX) return;
    session_end(client, CV_CLOSED, CV_CLOSING);
    tell(client);
    while (client->timers) fire_timer(client); /* what they wait for will not come */
    tell(client);
    client->over = true;
    pthread_cond_broadcast(&client->changed);
}

/* ---- Rounds ---- */

static void handle(struct cv_client *client, const struct epoll_event *events, int count) {
    uint64_t ignored;
    bool look = false;
    for (int i = 0; i < count; i++) {
        switch (events[i].data.u32) {
        case SOURCE_SOCKET: session_on_socket(client, events[i].events); break;
        case SOURCE_TIMER:
            look = read(client->timer, &ignored, sizeof ignored) > 0 || look;
            client->timer_at = 0;
            break;
        case SOURCE_WAKE:
            look = read(client->wake, &ignored, sizeof ignored) > 0 || look;
            session_on_wake(client);
            break;
        default: break;
        }
    }
    if (look) session_on_time(client);
    if (look) fire_timers(client);
    tell(client);
    if (client->ending != NOT_ENDING && !client->over) take_leave(client);
    session_flush(client);
    client_arm_timer(client);
}

void client_process(struct cv_client *client, int timeout) {
    struct epoll_event events[EVENTS];
    client_unlock(client);
    int count = epoll_wait(client->epoll, events, EVENTS, timeout);
    client_lock(client);
    client->round = cv_now();
    handle(client, events, count < 0 ? 0 : count);
}

void *client_run(void *arg) {
    struct cv_client *client = arg;
    client_lock(client);
    client->runner = pthread_self();
    client->round = cv_now();
    handle(client, NULL, 0);
    while (!client->over) client_process(client, -1);
    bool orphan = client->orphan;
    while (orphan && client->waiters) pthread_cond_wait(&client->changed, &client->mutex);
    client_unlock(client);
    if (orphan) client_free(client);
    return NULL;
}

/* ---- Waiting ---- */

void client_wake(struct cv_client *client) {
    client_lock(client);
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
}

/* Until something may have changed, or the moment has come. */
static void wait_once(struct cv_client *client, int64_t until) {
    int64_t left = until == CV_FOREVER ? INT32_MAX : until - cv_now();
    if (left > 60000) left = 60000;
    if (left < 1) left = 1;
    if (!client->threaded) {
        client_process(client, (int)left);
        return;
    }
    struct timespec when;
    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += left / 1000;
    when.tv_nsec += left % 1000 * 1000000;
    if (when.tv_nsec >= 1000000000) when.tv_sec++, when.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&client->changed, &client->mutex, &when);
}

int client_wait(struct cv_client *client, bool (*over)(void *arg), void *arg, int64_t until) {
    int error = CV_OK;
    if (is_runner(client)) return CV_WOULD_DEADLOCK;
    client->waiters++;
    while (!over(arg)) {
        if (client->ending != NOT_ENDING || client->over)
            error = CV_CLOSING;
        else if (until != CV_FOREVER && cv_now() >= until)
            error = CV_OPERATION_TIMEOUT;
        if (error) break;
        wait_once(client, until);
    }
    client->waiters--;
    pthread_cond_broadcast(&client->changed);
    return error;
}

/* ---- Writes ---- */

void client_cork(struct cv_client *client) {
    client_lock(client);
    client->corked++;
}

void client_uncork(struct cv_client *client) {
    if (--client->corked == 0 && !is_runner(client)) session_flush(client);
    client_unlock(client);
}
