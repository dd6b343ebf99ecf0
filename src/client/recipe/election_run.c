/* Elections: see recipe/election.h for who leads.
 *
 * A candidate looks (lists the children), and follows the one ahead of it, or, as the first, the
 * leader's node.  Whatever fires, and whatever answer is lost, makes it look again.  To lead is to
 * have created the leader's node, so there is one leader by the server's own rule; its czxid is the
 * token. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "client/recipe/election.h"

static void look(struct cv_election *e);
static void sweep(struct cv_election *e);
static void sweep_later(struct cv_election *e);
static bool is_ours(const struct cv_election *e, const struct cv_result *r,
                    const struct note *note);

/* ---- Telling ---- */

static void run_notify(struct client_task *task) {
    struct cv_election *e =
        (struct cv_election *)((char *)task - offsetof(struct cv_election, notify));
    struct cv_client *client = e->client;
    client_lock(client);
    e->notify_posted = false;
    bool wanted = e->on_change && !e->closing;
    enum cv_candidate_state state = e->state;
    e->notifying = wanted;
    client_unlock(client);
    if (wanted) e->on_change(e, state, e->arg);
    client_lock(client);
    e->notifying = false;
    client_wake(client);
    election_unreference(e);
    client_unlock(client);
}

void election_set_state(struct cv_election *e, enum cv_candidate_state state) {
    bool changed = e->state != state;
    e->state = state;
    client_wake(e->client);
    if (!changed || !e->on_change || e->notify_posted || e->closing) return;
    e->notify_posted = true;
    e->references++;
    client_post(e->client, &e->notify);
}

bool election_is_leader(const struct cv_election *e) {
    return e->state == CV_LEADING || e->state == CV_SHOULD_RESIGN;
}

/* Nothing is left of it on the servers. */
static void over(struct cv_election *e) {
    e->phase = OUT;
    e->leaving = e->unsure = false;
    client_timer_cancel(e->client, &e->lease);
    follow_forget(&e->followers);
    if (e->state != CV_LEADERSHIP_LOST) election_set_state(e, CV_NOT_STANDING);
    client_wake(e->client);
}

static void lose(struct cv_election *e, int error) {
    e->error = error;
    if (election_is_leader(e)) election_set_state(e, CV_LEADERSHIP_LOST);
}

static void session_over(struct cv_election *e, int error) {
    if (e->phase == OUT) return;
    lose(e, error);
    over(e);
}

/* ---- The lease ---- */

int64_t election_lease_end(struct cv_election *e) {
    return cv_session_deadline(e->client) - e->margin;
}

void election_check_lease(struct cv_election *e) {
    if (!election_is_leader(e)) return;
    if (cv_now() < election_lease_end(e)) {
        client_timer_set(e->client, &e->lease, election_lease_end(e));
        return;
    }
    lose(e, CV_LOST);
    sweep(e);
}

static void on_lease(struct client_timer *timer) {
    struct cv_election *e =
        (struct cv_election *)((char *)timer - offsetof(struct cv_election, lease));
    struct cv_client *client = e->client;
    client_lock(client);
    if (!e->closing) election_check_lease(e);
    client_unlock(client);
}

/* ---- Requests ---- */

/* Starts one; its answer is certain.  False: it was not started, and the election is over. */
static bool start(struct cv_election *e, const struct cv_op *op, cv_done_fn *done) {
    int error = cv_start(e->client, op, done, e);
    if (!error) {
        e->references++;
        return true;
    }
    session_over(e, error);
    return false;
}

static struct cv_election *begin(void *arg) {
    struct cv_election *e = arg;
    client_lock(e->client);
    return e;
}

static void finish(struct cv_election *e) {
    struct cv_client *client = e->client;
    election_unreference(e);
    client_wake(client);
    client_unlock(client);
}

/* Errors that end everything; true if this one did. */
static bool ends(struct cv_election *e, int error) {
    if (recipe_is_over(error)) {
        session_over(e, error);
        return true;
    }
    if (error && error != CV_NO_NODE && error != CV_NODE_EXISTS && !recipe_is_lost(error)) {
        lose(e, error);
        if (e->node)
            sweep(e);
        else
            over(e);
        return true;
    }
    return false;
}

static void follow(struct cv_election *e, const char *path, int whom) {
    int error = follow_start(&e->followers, path, whom);
    if (!error)
        e->references++;
    else
        session_over(e, error);
}

/* ---- Leading ---- */

static void lead(struct cv_election *e, int64_t token) {
    e->token = token;
    e->error = CV_OK;
    e->phase = LEADS;
    if (e->leaving) {
        election_leave(e);
        return;
    }
    election_set_state(e, CV_LEADING);
    follow(e, e->leader, OWN_LEADERSHIP);
    if (e->phase == LEADS) follow(e, e->node, OWN_CANDIDACY);
    if (e->phase == LEADS) election_check_lease(e);
}

static void on_claimed(const struct cv_result *r, void *arg) {
    struct cv_election *e = begin(arg);
    if (e->phase == CLAIMING && !ends(e, r->error)) {
        e->unsure |= recipe_is_lost(r->error);
        if (r->error)
            look(e);
        else
            lead(e, r->stat.czxid);
    }
    finish(e);
}

static void claim(struct cv_election *e) {
    char text[NOTE_MAX];
    e->phase = CLAIMING;
    struct note note = e->note;
    note.since = recipe_wall_clock();
    note_copy(note.node, recipe_name(e->node), strlen(recipe_name(e->node)));
    struct cv_op op = cv_op_create(e->leader, text, note_write(&note, text), CV_EPHEMERAL);
    start(e, &op, on_claimed);
}

/* Whether the leader's node was made by this candidate, whoever has written to it since. */
static bool is_ours(const struct cv_election *e, const struct cv_result *r,
                    const struct note *note) {
    if (e->token && r->stat.czxid == e->token) return true;
    return e->node && !strcmp(note->node, recipe_name(e->node));
}

/* Somebody has deleted the leader's node, or the candidate's. */
static void lose_lead(struct cv_election *e) {
    lose(e, CV_NO_NODE);
    sweep(e);
}

static void on_asked(const struct cv_result *r, void *arg) {
    struct cv_election *e = begin(arg);
    if (recipe_is_lost(r->error) || r->error == CV_BAD_VERSION)
        if (e->phase == PLACED) look(e);
    finish(e);
}

static void ask(struct cv_election *e, const struct cv_result *leader, struct note *note) {
    char text[NOTE_MAX];
    note->resign = true;
    struct cv_op op = cv_op_set(e->leader, text, note_write(note, text), leader->stat.version);
    start(e, &op, on_asked);
}

/* The leader's node, as the first candidate sees it, or who may lead without knowing it. */
static void on_leader(struct cv_election *e, const struct cv_result *r) {
    struct note note;
    if (r->error == CV_NO_NODE) {
        claim(e);
        return;
    }
    note_read(&note, r->data, r->data ? r->size : 0);
    if (is_ours(e, r, &note)) {
        lead(e, r->stat.czxid);
        return;
    }
    struct election_term term = {
        .priority = note.priority, .stable = note.stable, .asked = note.resign};
    if (election_asks(&term, e->priority, e->stable)) ask(e, r, &note);
}

/* The leader's node, as the leader sees it. */
static void on_own(struct cv_election *e, const struct cv_result *r) {
    struct note note;
    if (!r->error) note_read(&note, r->data, r->data ? r->size : 0);
    if (r->error == CV_NO_NODE || (!r->error && !is_ours(e, r, &note))) {
        lose_lead(e);
    } else if (recipe_is_lost(r->error)) {
        follow(e, e->leader, OWN_LEADERSHIP);
    } else if (note.resign && e->state == CV_LEADING) {
        election_set_state(e, CV_SHOULD_RESIGN);
    }
}

static void on_followed(void *owner, int whom, const char *path, const struct cv_result *r) {
    struct cv_election *e = owner;
    (void)path;
    bool own = whom == OWN_LEADERSHIP || whom == OWN_CANDIDACY;
    bool expected = own ? e->phase == LEADS : e->phase == PLACED;
    if (expected && !ends(e, r->error)) {
        if (whom == OWN_LEADERSHIP)
            on_own(e, r);
        else if (whom == OWN_CANDIDACY && recipe_is_lost(r->error))
            follow(e, e->node, OWN_CANDIDACY);
        else if (whom == OWN_CANDIDACY && r->error)
            lose_lead(e);
        else if (recipe_is_lost(r->error) || (whom == AHEAD && r->error))
            look(e);
        else if (whom == LEADER)
            on_leader(e, r);
    }
    if (e->closing) follow_forget(&e->followers);
    election_unreference(e);
}

static void on_fired(void *owner, int whom, const char *path, enum cv_watch_type type) {
    struct cv_election *e = owner;
    bool own = whom == OWN_LEADERSHIP || whom == OWN_CANDIDACY;
    if (own && e->phase == LEADS) {
        if (type == CV_NODE_DELETED)
            lose_lead(e);
        else
            follow(e, path, whom);
    } else if (!own && e->phase == PLACED) {
        look(e);
    }
}

/* ---- Standing ---- */

static void take_place(struct cv_election *e, const struct election_verdict *v) {
    if (!v->mine) {
        if (e->leaving) {
            over(e);
        } else if (e->unsure) {
            e->unsure = false;
            election_join(e);
        } else { /* somebody has deleted it */
            e->error = CV_NO_NODE;
            over(e);
        }
        return;
    }
    free(e->node);
    e->node = recipe_child(e->path, v->mine->name);
    if (!e->node) {
        session_over(e, CV_NO_MEMORY);
        return;
    }
    if (e->leaving) {
        sweep(e);
        return;
    }
    e->phase = PLACED;
    bool may_lead = e->unsure;
    e->unsure = false;
    if (!v->ahead || may_lead) {
        follow(e, e->leader, LEADER);
        return;
    }
    char *ahead = recipe_child(e->path, v->ahead->name);
    if (ahead)
        follow(e, ahead, AHEAD);
    else
        session_over(e, CV_NO_MEMORY);
    free(ahead);
}

/* A create that came late, after it had been given up and repeated, would lead one day. */
static void delete_others(struct cv_election *e, const struct candidate *all, size_t count,
                          const struct candidate *mine) {
    for (size_t i = 0; mine && i < count; i++) {
        bool ours = all[i].owner_size == GUID_SIZE && !memcmp(all[i].owner, e->guid, GUID_SIZE);
        char *path = ours && &all[i] != mine ? recipe_child(e->path, all[i].name) : NULL;
        struct cv_op op = cv_op_delete(path, -1);
        if (path) (void)cv_start(e->client, &op, NULL, NULL);
        free(path);
    }
}

static void on_listed(const struct cv_result *r, void *arg) {
    struct cv_election *e = begin(arg);
    if (e->phase == LOOKING && !ends(e, r->error)) {
        struct candidate *all = calloc(r->name_count + 1, sizeof *all);
        if (recipe_is_lost(r->error)) {
            look(e);
        } else if (all) {
            size_t count = election_list(all, r->names, r->error ? 0 : r->name_count);
            struct election_verdict v = election_judge(all, count, e->guid, GUID_SIZE);
            delete_others(e, all, count, v.mine);
            take_place(e, &v);
        } else {
            session_over(e, CV_NO_MEMORY);
        }
        free(all);
    }
    finish(e);
}

static bool list(struct cv_election *e) {
    struct cv_op op = cv_op_children(e->path);
    return start(e, &op, on_listed);
}

static void look(struct cv_election *e) {
    struct cv_op sync = cv_op_sync(e->path);
    e->phase = LOOKING;
    client_cork(e->client);
    if (e->unsure) (void)cv_start(e->client, &sync, NULL, NULL);
    list(e);
    client_uncork(e->client);
}

static void on_prepared(const struct cv_result *r, void *arg) {
    struct cv_election *e = begin(arg);
    if (e->phase == JOINING) {
        int error = r->error == CV_NODE_EXISTS ? CV_OK : r->error;
        if (error == CV_NO_NODE) /* one of those above may not be created */
            session_over(e, CV_NO_AUTH);
        else if (recipe_is_over(error) || (error && !recipe_is_lost(error)))
            session_over(e, error);
        else if (e->leaving)
            over(e);
        else
            election_join(e);
    }
    finish(e);
}

/* The nodes above, in one write; the last one counts. */
static void prepare(struct cv_election *e) {
    char *path = strdup(e->path);
    client_cork(e->client);
    for (char *slash = path ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        struct cv_op op = cv_op_create(path, NULL, 0, CV_PERSISTENT);
        (void)cv_start(e->client, &op, NULL, NULL);
        *slash = '/';
    }
    struct cv_op op = cv_op_create(e->path, NULL, 0, CV_PERSISTENT);
    start(e, &op, on_prepared);
    client_uncork(e->client);
    free(path);
}

static void on_joined(const struct cv_result *r, void *arg) {
    struct cv_election *e = begin(arg);
    if (e->phase == JOINING) {
        if (r->error == CV_NO_NODE) {
            prepare(e);
        } else if (recipe_is_over(r->error) || (r->error && !recipe_is_lost(r->error))) {
            session_over(e, r->error);
        } else {
            e->unsure = r->error != CV_OK;
            if (!r->error && !e->node) e->node = strdup(r->path);
            e->phase = LOOKING; /* the answer to the list is on its way */
        }
    }
    finish(e);
}

void election_join(struct cv_election *e) {
    char text[NOTE_MAX], name[GUID_SIZE + 48];
    snprintf(name, sizeof name, "%s__candidate%d__", e->guid, e->priority);
    char *path = recipe_child(e->path, name);
    e->phase = JOINING;
    struct cv_op op =
        cv_op_create(path, text, note_write(&e->note, text), CV_EPHEMERAL | CV_SEQUENTIAL);
    client_cork(e->client);
    if (!path)
        session_over(e, CV_NO_MEMORY);
    else if (start(e, &op, on_joined))
        list(e);
    client_uncork(e->client);
    free(path);
}

/* ---- Leaving ---- */

static void on_left(const struct cv_result *r, void *arg) {
    struct cv_election *e = begin(arg);
    if (e->phase == LEAVING) {
        bool led = e->leaves_lead;
        e->leaves_lead = false;
        if (recipe_is_over(r->error)) {
            session_over(e, r->error);
        } else if (recipe_is_postponed(r->error)) {
            sweep_later(e);
        } else if (recipe_is_lost(r->error) || (led && r->error)) {
            sweep(e);
        } else {
            if (r->error && r->error != CV_NO_NODE) e->error = r->error;
            over(e);
        }
    }
    finish(e);
}

static void on_sweep_again(struct client_timer *timer) {
    struct cv_election *e =
        (struct cv_election *)((char *)timer - offsetof(struct cv_election, sweep_again));
    struct cv_client *client = e->client;
    client_lock(client);
    if (e->phase == LEAVING) sweep(e);
    election_unreference(e);
    client_unlock(client);
}

/* Also of one that is closed by now. */
static void sweep_later(struct cv_election *e) {
    e->references++;
    client_timer_set(e->client, &e->sweep_again, cv_now() + RECIPE_PAUSE);
}

static void delete_candidate(struct cv_election *e) {
    struct cv_op op = cv_op_delete(e->node, -1);
    start(e, &op, on_left);
}

/* It is gone, or somebody has written to it meanwhile: look once more.  The candidate's node stays
 * until there is no lead of ours, which it is known by. */
static void on_lead_swept(const struct cv_result *r, void *arg) {
    struct cv_election *e = begin(arg);
    if (e->phase == LEAVING) {
        if (recipe_is_over(r->error)) {
            session_over(e, r->error);
        } else if (recipe_is_postponed(r->error)) {
            sweep_later(e);
        } else if (!r->error || r->error == CV_NO_NODE || r->error == CV_BAD_VERSION ||
                   recipe_is_lost(r->error)) {
            sweep(e);
        } else {
            e->error = r->error; /* it stays until the session ends */
            delete_candidate(e);
        }
    }
    finish(e);
}

static void on_swept(const struct cv_result *r, void *arg) {
    struct cv_election *e = begin(arg);
    struct note note;
    if (e->phase == LEAVING) {
        if (!r->error) note_read(&note, r->data, r->data ? r->size : 0);
        client_cork(e->client);
        if (recipe_is_over(r->error)) {
            session_over(e, r->error);
        } else if (recipe_is_lost(r->error)) {
            sweep(e);
        } else {
            struct cv_op lead = cv_op_delete(e->leader, r->stat.version);
            if (!r->error && is_ours(e, r, &note))
                start(e, &lead, on_lead_swept);
            else
                delete_candidate(e);
        }
        client_uncork(e->client);
    }
    finish(e);
}

/* Deletes what is left, when it is not known what that is.  Another's lead must stay. */
static void sweep(struct cv_election *e) {
    struct cv_op op = cv_op_get(e->leader);
    e->phase = LEAVING;
    e->leaving = true;
    client_timer_cancel(e->client, &e->lease);
    start(e, &op, on_swept);
}

void election_leave(struct cv_election *e) {
    struct cv_op ops[3] = {cv_op_check(e->node, -1), cv_op_delete(e->leader, -1),
                           cv_op_delete(e->node, -1)};
    bool led = e->phase == LEADS;
    e->leaving = true;
    if (election_is_leader(e)) election_set_state(e, CV_NOT_STANDING);
    client_timer_cancel(e->client, &e->lease);
    if (!led && e->phase != PLACED) return; /* when what was asked is answered */
    e->phase = LEAVING;
    e->leaves_lead = led;
    struct cv_op op = led ? cv_op_multi(ops, 3) : ops[2];
    start(e, &op, on_left);
}

static void on_state(struct client_listener *listener, enum cv_state state) {
    struct cv_election *e =
        (struct cv_election *)((char *)listener - offsetof(struct cv_election, listener));
    struct cv_client *client = e->client;
    if (state != CV_EXPIRED && state != CV_REFUSED && state != CV_CLOSED) return;
    client_lock(client);
    if (!e->closing)
        session_over(e, state == CV_EXPIRED   ? CV_SESSION_EXPIRED
                        : state == CV_REFUSED ? CV_AUTH_FAILED
                                              : CV_CLOSING);
    client_unlock(client);
}

void election_free(struct cv_election *e) {
    free(e->path);
    free(e->leader);
    free(e->node);
    free(e);
}

static void run_end(struct client_task *task) {
    election_free((struct cv_election *)((char *)task - offsetof(struct cv_election, end)));
}

void election_unreference(struct cv_election *e) {
    if (--e->references) return;
    cv_assert(e->closing);
    e->end.run = run_end;
    client_post(e->client, &e->end);
}

void election_init(struct cv_election *e) {
    e->followers = (struct followers){
        .client = e->client, .owner = e, .answered = on_followed, .fired = on_fired};
    e->lease.fire = on_lease;
    e->sweep_again.fire = on_sweep_again;
    e->listener.changed = on_state;
    e->notify.run = run_notify;
    client_listen(e->client, &e->listener);
}
