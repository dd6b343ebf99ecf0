#include "cli/peer_clients.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- The lock ---- */

static struct client *first_in_queue(struct clients *clients) {
    struct client *first = NULL;
    for (unsigned i = 0; i < clients->count; i++) {
        struct client *c = &clients->client[i];
        if (c->place && (!first || c->place < first->place)) first = c;
    }
    return first;
}

/* One wish at a time goes to the algorithm: after each stay the other participants have their
 * turn. */
static void ask(struct clients *clients) {
    if (clients->phase != OUTSIDE || !first_in_queue(clients)) return;
    clients->phase = ASKED;
    peer_thread_call(clients->thread, CV_ACQUIRE);
}

static void leave(struct clients *clients) {
    clients->phase = LEAVING;
    peer_thread_call(clients->thread, CV_RELEASE);
}

/* ---- Connections ---- */

static void drop(struct clients *clients, struct client *client) {
    uint64_t place = client->place;
    close(client->socket);
    *client = clients->client[--clients->count];
    if (!place || place != clients->holder) return;
    clients->holder = 0;
    if (clients->phase == INSIDE) leave(clients);
}

/* Who does not read is dropped: what it is told is little. */
static bool say(const struct client *client, const char *text) {
    size_t size = strlen(text);
    return send(client->socket, text, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static bool tell(const struct client *client, const struct cv_tell *tell) {
    char line[64];
    return tell_print(line, sizeof line, tell) == 0 || say(client, line);
}

static const char *gives(const struct peer_setup *setup) {
    if (setup->config.self <= setup->group.servers) return "nothing";
    return setup->group.algorithm->problem == CV_MUTEX ? "lock" : "election";
}

static void take_new(struct clients *clients) {
    int socket = accept4(clients->listener, NULL, NULL, SOCK_CLOEXEC);
    char greeting[128];
    if (socket < 0) return;
    if (clients->count == CLIENTS_MAX) {
        close(socket);
        return;
    }
    struct client *client = &clients->client[clients->count++];
    *client = (struct client){.socket = socket};
    snprintf(greeting, sizeof greeting, "peer %" PRIu32 " %.63s %s\n", clients->setup->config.self,
             clients->setup->group.algorithm->name, gives(clients->setup));
    if (!say(client, greeting) || !tell(client, &clients->role)) drop(clients, client);
}

/* False: it is nothing that can be asked now. */
static bool take_line(struct clients *clients, struct client *client) {
    const struct peer_setup *setup = clients->setup;
    bool locks = strcmp(gives(setup), "lock") == 0, elects = strcmp(gives(setup), "election") == 0;
    if (strcmp(client->line, "acquire") == 0 && locks && !client->place && !clients->ending) {
        client->place = ++clients->places;
    } else if (strcmp(client->line, "release") == 0 && clients->phase == INSIDE &&
               client->place == clients->holder) {
        leave(clients);
    } else if (strcmp(client->line, "campaign") == 0 && elects) {
        peer_thread_call(clients->thread, CV_CAMPAIGN);
    } else if (strcmp(client->line, "state") == 0) {
        client->watches = client->behind = true;
    } else {
        return false;
    }
    return true;
}

/* False: it is gone, or says what it should not. */
static bool take_text(struct clients *clients, struct client *client) {
    char part[64];
    ssize_t size = recv(client->socket, part, sizeof part, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    for (ssize_t i = 0; i < size; i++) {
        if (part[i] != '\n') {
            if (client->used == sizeof client->line - 1) return false;
            client->line[client->used++] = part[i];
            continue;
        }
        client->line[client->used] = 0;
        client->used = 0;
        if (!take_line(clients, client)) return false;
    }
    return size > 0;
}

/* ---- All of them ---- */

unsigned clients_poll(const struct clients *clients, struct pollfd *files) {
    files[0] = (struct pollfd){clients->listener, POLLIN, 0};
    for (unsigned i = 0; i < clients->count; i++)
        files[i + 1] = (struct pollfd){clients->client[i].socket, POLLIN, 0};
    return clients->count + 1;
}

/* From the last, whose place one that is dropped leaves to another that was served. */
void clients_serve(struct clients *clients, const struct pollfd *files, unsigned count) {
    for (unsigned i = count - 1; i-- > 0;)
        if (files[i + 1].revents && !take_text(clients, &clients->client[i]))
            drop(clients, &clients->client[i]);
    if (files[0].revents) take_new(clients);
    ask(clients);
}

static void entered(struct clients *clients, const struct cv_tell *told) {
    struct client *next;
    clients->phase = INSIDE;
    while ((next = first_in_queue(clients))) {
        clients->holder = next->place;
        if (tell(next, told)) return;
        clients->holder = 0;
        drop(clients, next);
    }
    leave(clients); /* who wanted it has gone */
}

static void left(struct clients *clients, const struct cv_tell *told) {
    clients->phase = OUTSIDE;
    for (unsigned i = clients->count; clients->holder && i-- > 0;) {
        struct client *client = &clients->client[i];
        if (client->place != clients->holder) continue;
        client->place = 0;
        if (!tell(client, told)) drop(clients, client);
        break;
    }
    clients->holder = 0;
    ask(clients);
}

void clients_told(struct clients *clients, const struct cv_tell *told) {
    if (told->what == CV_ENTERED) entered(clients, told);
    if (told->what == CV_LEFT) left(clients, told);
    if (told->what != CV_ELECTED && told->what != CV_FOLLOWS && told->what != CV_LEADERLESS) return;
    clients->role = *told;
    for (unsigned i = clients->count; i-- > 0;)
        if (!tell(&clients->client[i], told)) drop(clients, &clients->client[i]);
}

unsigned clients_queue(const struct clients *clients) {
    unsigned count = 0;
    for (unsigned i = 0; i < clients->count; i++) count += clients->client[i].place != 0;
    return count;
}

bool clients_watch(const struct clients *clients) {
    bool any = false;
    for (unsigned i = 0; i < clients->count; i++) any |= clients->client[i].watches;
    return any;
}

void clients_show(struct clients *clients, const char *state) {
    bool same = clients->state && strcmp(clients->state, state) == 0;
    if (!same) {
        free(clients->state);
        clients->state = strdup(state);
        cv_assert(clients->state);
    }
    for (unsigned i = clients->count; i-- > 0;) {
        struct client *client = &clients->client[i];
        if (!client->watches || (same && !client->behind)) continue;
        client->behind = false;
        if (!say(client, state)) drop(clients, client);
    }
}

void clients_end(struct clients *clients) {
    clients->ending = true;
    if (clients->listener >= 0) close(clients->listener);
    clients->listener = -1;
    for (unsigned i = clients->count; i-- > 0;)
        if (!say(&clients->client[i], "ends\n")) drop(clients, &clients->client[i]);
}

/* What somebody still holds is not given back: its command lives until it learns of this. */
void clients_close(struct clients *clients) {
    for (unsigned i = 0; i < clients->count; i++) close(clients->client[i].socket);
    if (clients->listener >= 0) close(clients->listener);
    free(clients->state);
}
