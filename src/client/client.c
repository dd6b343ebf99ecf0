/* Opening and closing clients, and what can be asked of them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "client/internal.h"

enum { SESSION_TIMEOUT = 15000, CONNECT_TIMEOUT = 10000 };

const char *cv_version(void) { return CONCLAVE_VERSION; }

int64_t cv_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Opening ---- */

static bool watch_descriptor(int epoll, int fd, enum source source) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};
    return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool open_descriptors(struct cv_client *client) {
    client->epoll = epoll_create1(EPOLL_CLOEXEC);
    client->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    client->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return client->epoll >= 0 && watch_descriptor(client->epoll, client->timer, SOURCE_TIMER) &&
           watch_descriptor(client->epoll, client->wake, SOURCE_WAKE);
}

static void open_lock(struct cv_client *client) {
    pthread_mutexattr_t recursive;
    pthread_condattr_t monotonic;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&client->mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&client->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static struct cv_client *client_new(void) {
    struct cv_client *client = calloc(1, sizeof *client);
    if (!client) return NULL;
    open_lock(client);
    queue_init(&client->requests.waiting);
    queue_init(&client->requests.auth);
    queue_init(&client->requests.ended);
    client->tasks_last = &client->tasks;
    client->session.transport.fd = -1;
    if (getrandom(&client->seed, sizeof client->seed, GRND_NONBLOCK) != sizeof client->seed)
        client->seed = (uint64_t)cv_now() ^ (uint64_t)(uintptr_t)client;
    rng_seed(&client->rng, client->seed);
    if (open_descriptors(client)) return client;
    client_free(client);
    return NULL;
}

static int refuse(struct cv_client *client, int error, const char *why) {
    if (why != client->bad_options)
        snprintf(client->bad_options, sizeof client->bad_options, "%s", why);
    client->refusal = error;
    return error;
}

static int take_identities(struct cv_client *client, const struct cv_options *options) {
    for (size_t i = 0; i < options->auth_count; i++) {
        const struct cv_auth *auth = &options->auth[i];
        if (!auth->scheme || !auth->credential)
            return refuse(client, CV_BAD_ARGUMENTS,
                          "an authentication needs scheme and credential");
        size_t size = auth->size ? auth->size : strlen(auth->credential);
        if (size > INT32_MAX / 2 || !identity_add(client, auth->scheme, auth->credential, size))
            return refuse(client, CV_NO_MEMORY, "no memory");
    }
    return CV_OK;
}

static int take_options(struct cv_client *client, const struct cv_options *options) {
    struct session *session = &client->session;
    const char *servers = options->servers ? options->servers : getenv("CONCLAVE_SERVER");
    client->flags = options->flags;
    client->threaded = !(options->flags & CV_NO_THREAD);
    client->on_state = options->on_state;
    client->on_state_arg = options->arg;
    client->wanted_timeout =
        options->session_timeout > 0 ? options->session_timeout : SESSION_TIMEOUT;
    client->connect_timeout = options->connect_timeout ? options->connect_timeout : CONNECT_TIMEOUT;
    session->timeout = client->wanted_timeout;
    session->id = options->session_id;
    session->is_known = session->id != 0;
    memcpy(session->password, options->session_password, PASSWORD_SIZE);
    if (!servers || !servers[0]) servers = "localhost:2181";
    if (!servers_parse(&session->servers, servers, client->bad_options))
        return refuse(client, CV_BAD_ARGUMENTS, client->bad_options);
    servers_shuffle(&session->servers, &client->rng);
    if (options->tls && !(client->tls = tls_client_open(options->tls, client->bad_options)))
        return refuse(client, CV_TLS_FAILED, client->bad_options);
    if (options->sasl_user && !(client->sasl_user = strdup(options->sasl_user)))
        return refuse(client, CV_NO_MEMORY, "no memory");
    if (options->sasl_password && !(client->sasl_password = strdup(options->sasl_password)))
        return refuse(client, CV_NO_MEMORY, "no memory");
    return take_identities(client, options);
}

static int start_thread(struct cv_client *client) {
    sigset_t all, before;
    sigfillset(&all); /* signals are the program's own */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&client->thread, NULL, client_run, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? refuse(client, CV_SYSTEM_ERROR, "no thread can be started") : CV_OK;
}

static bool is_settled(void *arg) {
    const struct cv_client *client = arg;
    return client->state != CV_CONNECTING;
}

static int wait_for_session(struct cv_client *client) {
    int64_t until =
        client->connect_timeout == CV_FOREVER ? CV_FOREVER : cv_now() + client->connect_timeout;
    client_lock(client);
    int error = client_wait(client, is_settled, client, until);
    enum cv_state state = client->state;
    client_unlock(client);
    if (error == CV_OPERATION_TIMEOUT) return CV_NO_SERVER;
    return error                 ? error
           : state == CV_EXPIRED ? CV_SESSION_EXPIRED
           : state == CV_REFUSED ? CV_AUTH_FAILED
                                 : CV_OK;
}

int cv_open_sized(struct cv_client **to, const struct cv_options *given, size_t size) {
    struct cv_options options = {0};
    if (given) memcpy(&options, given, size < sizeof options ? size : sizeof options);
    struct cv_client *client = *to = client_new();
    if (!client) return CV_NO_MEMORY;
    int error = take_options(client, &options);
    if (error) {
        client->threaded = false;
        session_end(client, CV_CLOSED, error);
        client->told_state = CV_CLOSED;
        return error;
    }
    session_begin(client);
    client_arm_timer(client);
    if (client->threaded && (error = start_thread(client))) {
        client->threaded = false;
        return error;
    }
    return options.flags & CV_DO_NOT_WAIT ? CV_OK : wait_for_session(client);
}

/* ---- Closing ---- */

void client_free(struct cv_client *client) {
    struct identity *identity;
    while ((identity = client->identities)) {
        client->identities = identity->next;
        identity_free(identity);
    }
    requests_close(client);
    watches_free(&client->watches);
    session_close(&client->session);
    tls_client_close(client->tls);
    if (client->sasl_password) explicit_bzero(client->sasl_password, strlen(client->sasl_password));
    free(client->sasl_user);
    free(client->sasl_password);
    if (client->timer >= 0) close(client->timer);
    if (client->wake >= 0) close(client->wake);
    if (client->epoll >= 0) close(client->epoll);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->mutex);
    free(client);
}

/* Its thread, if there is one, does the rest. */
static void begin_end(struct cv_client *client, enum ending ending) {
    client->ending = ending;
    client->ending_since = cv_now();
    client_interrupt(client);
    pthread_cond_broadcast(&client->changed);
}

static void end(struct cv_client *client, enum ending ending) {
    if (!client) return;
    client_lock(client);
    begin_end(client, ending);
    if (client_in_callback(client)) { /* it frees itself when the callback has returned */
        client->orphan = true;
        if (client->threaded) pthread_detach(client->thread);
        client_unlock(client);
        return;
    }
    while (!client->threaded && !client->over) client_process(client, -1);
    client_unlock(client);
    if (client->threaded) pthread_join(client->thread, NULL);
    client_lock(client);
    while (client->waiters) pthread_cond_wait(&client->changed, &client->mutex);
    client_unlock(client);
    client_free(client);
}

void cv_close(struct cv_client *client) { end(client, ENDING_CLOSE); }
void cv_detach(struct cv_client *client) { end(client, ENDING_DETACH); }

/* ---- What is known ---- */

#define ASK(TYPE, CLIENT, EXPRESSION)                                                              \
    client_lock(CLIENT);                                                                           \
    TYPE answer = (EXPRESSION);                                                                    \
    client_unlock(CLIENT);                                                                         \
    return answer

enum cv_state cv_state(struct cv_client *client) { ASK(enum cv_state, client, client->state); }
int64_t cv_session_id(struct cv_client *client) { ASK(int64_t, client, client->session.id); }
int32_t cv_session_timeout(struct cv_client *client) {
    ASK(int32_t, client, client->session.timeout);
}
int64_t cv_last_zxid(struct cv_client *client) { ASK(int64_t, client, client->session.last_zxid); }
int64_t cv_session_deadline(struct cv_client *client) {
    ASK(int64_t, client, client->session.phase == PHASE_OVER ? 0 : client->session.deadline);
}
int cv_fd(struct cv_client *client) { return client->epoll; }

const char *cv_explain(struct cv_client *client, char *text, size_t size) {
    if (size) text[0] = 0;
    client_lock(client);
    session_explain(client, text, size);
    client_unlock(client);
    return text;
}

void cv_session_password(struct cv_client *client, unsigned char password[PASSWORD_SIZE]) {
    client_lock(client);
    memcpy(password, client->session.password, PASSWORD_SIZE);
    client_unlock(client);
}

const char *cv_server(struct cv_client *client, char *text, size_t size) {
    if (size) text[0] = 0;
    client_lock(client);
    const struct session *session = &client->session;
    if (session->phase == PHASE_UP)
        server_name(&session->servers.entry[session->entry], text, size);
    client_unlock(client);
    return text;
}

/* ---- The caller's event loop ---- */

int cv_process_for(struct cv_client *client, int32_t timeout) {
    if (client->threaded) return CV_BAD_ARGUMENTS;
    if (client_in_callback(client)) return CV_WOULD_DEADLOCK;
    client_lock(client);
    client_process(client, timeout);
    bool orphan = client->orphan; /* closed by a callback: nobody will call this again */
    while (orphan && !client->over) client_process(client, -1);
    client_unlock(client);
    if (orphan) client_free(client);
    return CV_OK;
}

int cv_process(struct cv_client *client) { return cv_process_for(client, 0); }
