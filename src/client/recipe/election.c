/* Elections, as programs use them. */
#include <stdlib.h>
#include <string.h>

#include "client/recipe/election.h"

int cv_election_open_sized(struct cv_election **opened, struct cv_client *client, const char *path,
                           const struct cv_election_options *given, size_t size) {
    struct cv_election_options options = {0};
    *opened = NULL;
    if (!path || path[0] != '/' || !path[1]) return CV_BAD_ARGUMENTS;
    if (given) memcpy(&options, given, size < sizeof options ? size : sizeof options);
    if (options.margin < 0) return CV_BAD_ARGUMENTS;
    struct cv_election *e = calloc(1, sizeof *e);
    if (!e) return CV_NO_MEMORY;
    *e = (struct cv_election){.client = client,
                              .path = strdup(path),
                              .leader = recipe_child(path, ELECTION_LEADER),
                              .priority = options.priority,
                              .stable = options.stable,
                              .margin = options.margin,
                              .on_change = options.on_change,
                              .arg = options.arg,
                              .references = 1};
    if (!e->path || !e->leader) {
        election_free(e);
        return CV_NO_MEMORY;
    }
    recipe_note(&e->note, options.label);
    e->note.priority = options.priority;
    e->note.stable = options.stable;
    election_init(e);
    *opened = e;
    return CV_OK;
}

static int stand(struct cv_election *e) {
    if (e->phase != OUT) return e->leaving ? CV_BUSY : CV_OK;
    enum cv_state state = cv_state(e->client);
    if (state == CV_EXPIRED) return CV_SESSION_EXPIRED;
    if (state == CV_CLOSED) return CV_CLOSING;
    recipe_guid(e->guid);
    free(e->node);
    e->node = NULL;
    e->token = 0;
    e->error = CV_OK;
    e->note.since = recipe_wall_clock();
    election_set_state(e, CV_STANDING);
    election_join(e);
    return CV_OK;
}

int cv_election_stand(struct cv_election *e) {
    client_lock(e->client);
    int error = stand(e);
    client_unlock(e->client);
    return error;
}

static bool is_out(void *arg) { return ((struct cv_election *)arg)->phase == OUT; }
static bool is_decided(void *arg) { return ((struct cv_election *)arg)->state != CV_STANDING; }
static bool has_left(void *arg) {
    const struct cv_election *e = arg;
    return e->phase == OUT || !e->leaving;
}

int cv_election_lead(struct cv_election *e, int32_t timeout) {
    if (client_in_callback(e->client)) return CV_WOULD_DEADLOCK;
    int64_t until = recipe_until(timeout);
    client_lock(e->client);
    int error = client_wait(e->client, has_left, e, until);
    bool stood = e->phase != OUT;
    if (!error) error = stand(e);
    if (!error) error = client_wait(e->client, is_decided, e, until);
    election_check_lease(e); /* it may be long ago that it was decided */
    if (!error && !election_is_leader(e)) error = e->error ? e->error : CV_LOST;
    bool gives_up = error == CV_OPERATION_TIMEOUT && !stood && e->phase != OUT;
    client_unlock(e->client);
    if (gives_up) (void)cv_election_resign(e);
    return error;
}

int cv_election_resign(struct cv_election *e) {
    struct cv_client *client = e->client;
    client_lock(client);
    election_check_lease(e);
    int error = e->state == CV_LEADERSHIP_LOST ? CV_LOST : e->phase == OUT ? CV_NOT_HELD : CV_OK;
    if (!error) {
        e->error = CV_OK;
        election_leave(e);
        int waited = client_wait(client, is_out, e, cv_now() + cv_session_timeout(client));
        if (waited == CV_OPERATION_TIMEOUT) error = CV_CONNECTION_LOSS;
        if (!waited && e->error && !recipe_is_over(e->error))
            error = e->error; /* it stays until the session ends */
    }
    election_set_state(e, CV_NOT_STANDING);
    client_unlock(client);
    return error;
}

static bool is_quiet(void *arg) { return !((struct cv_election *)arg)->notifying; }

void cv_election_close(struct cv_election *e) {
    if (!e) return;
    struct cv_client *client = e->client;
    (void)cv_election_resign(e);
    client_lock(client);
    (void)client_wait(client, is_quiet, e, CV_FOREVER);
    e->closing = true;
    client_timer_cancel(client, &e->lease);
    client_unlisten(client, &e->listener);
    follow_forget(&e->followers);
    election_unreference(e);
    client_unlock(client);
}

enum cv_candidate_state cv_election_state(struct cv_election *e) {
    client_lock(e->client);
    election_check_lease(e);
    enum cv_candidate_state state = e->state;
    client_unlock(e->client);
    return state;
}

int64_t cv_election_token(struct cv_election *e) {
    client_lock(e->client);
    int64_t token = e->token;
    client_unlock(e->client);
    return token;
}

int64_t cv_election_deadline(struct cv_election *e) {
    client_lock(e->client);
    int64_t end = election_is_leader(e) ? election_lease_end(e) : 0;
    client_unlock(e->client);
    return end;
}

int cv_election_error(struct cv_election *e) {
    client_lock(e->client);
    int error = e->error;
    client_unlock(e->client);
    return error;
}

/* The candidate's node, which only its own session has: while it is there, and we led, we lead. */
struct cv_op cv_election_guard(struct cv_election *e, char *node, size_t size) {
    client_lock(e->client);
    bool leads = e->phase == LEADS && e->node && strlen(e->node) < size;
    const char *path = leads ? e->node : e->path;
    size_t length = size ? strnlen(path, size - 1) : 0;
    if (size) {
        memcpy(node, path, length);
        node[length] = 0;
    }
    client_unlock(e->client);
    return cv_op_check(node, leads ? -1 : INT32_MIN);
}

int cv_election_ask_to_resign(struct cv_client *client, const char *path) {
    char text[NOTE_MAX];
    struct note note;
    struct cv_result *r;
    char *leader = recipe_child(path, ELECTION_LEADER);
    int error = leader ? CV_BAD_VERSION : CV_NO_MEMORY;
    while (error == CV_BAD_VERSION) { /* it was written to meanwhile */
        error = cv_get(client, leader, &r);
        if (!error) {
            note_read(&note, r->data, r->data ? r->size : 0);
            note.resign = true;
            error = cv_set(client, leader, text, note_write(&note, text), r->stat.version);
        }
        cv_result_free(r);
    }
    free(leader);
    return error;
}
