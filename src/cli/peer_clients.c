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

/* It is told that it is alone, and ends.  What it has is given back when it is gone: its command
 * may still run. */
static void part_with(struct client *client) {
    client->parted = true;
    shutdown(client->socket, SHUT_WR);
}

/* Who does not read is parted with: what it is told is little. */
static void say(struct client *client, const char *text) {
    size_t size = strlen(text);
    if (client->parted) return;
    if (send(client->socket, text, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
        part_with(client);
}

/* The line that lets it in, with the file that commands share. */
static void let_in(const struct clients *clients, struct client *client, const char *text) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec line = {(char *)text, strlen(text)};
    struct msghdr message = {.msg_iov = &line,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &clients->shared, sizeof(int));
    if (client->parted) return;
    if (sendmsg(client->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)line.iov_len)
        part_with(client);
}

static void tell(struct client *client, const struct cv_tell *tell) {
    char line[64];
    if (tell_print(line, sizeof line, tell)) say(client, line);
}

static const char *gives(const struct peer_setup *setup) {
    if (setup->config.self <= setup->group.servers) return "nothing";
    return setup->group.algorithm->problem == CV_MUTEX ? "lock" : "election";
}

static void take_new(struct clients *clients) {
    static const char full[] = "full\n";
    int socket = accept4(clients->listener, NULL, NULL, SOCK_CLOEXEC);
    char greeting[128];
    clients->pausing = socket < 0;
    if (socket < 0) return;
    if (clients->count == CLIENTS_MAX) {
        send(socket, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(socket);
        return;
    }
    struct client *client = &clients->client[clients->count++];
    *client = (struct client){.socket = socket};
    snprintf(greeting, sizeof greeting, "peer %" PRIu32 " %.63s %s\n", clients->setup->config.self,
             clients->setup->group.algorithm->name, gives(clients->setup));
    say(client, greeting);
    tell(client, &clients->role);
}

/* False: it is nothing that can be asked now. */
static bool take_line(struct clients *clients, struct client *client) {
    const struct peer_setup *setup = clients->setup;
    bool locks = strcmp(gives(setup), "lock") == 0;
    if (strcmp(client->line, "acquire") == 0 && locks && !client->place && !clients->ending) {
        client->place = ++clients->places;
    } else if (strcmp(client->line, "release") == 0 && clients->phase == INSIDE &&
               client->place == clients->holder) {
        leave(clients);
    } else if (strcmp(client->line, "runs") == 0) {
        client->runs = true;
    } else if (strcmp(client->line, "state") == 0) {
        client->watches = client->behind = true;
    } else {
        return false;
    }
    return true;
}

/* False: it is gone.  Who says what it should not is not listened to any more. */
static bool take_text(struct clients *clients, struct client *client) {
    char part[64];
    ssize_t size = recv(client->socket, part, sizeof part, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    for (ssize_t i = 0; i < size && !client->parted; i++) {
        bool ends = part[i] == '\n', full = client->used == sizeof client->line - 1;
        client->line[client->used++] = ends || full ? 0 : part[i];
        if (ends) client->used = 0;
        if (ends ? !take_line(clients, client) : full) part_with(client);
    }
    return size > 0;
}

/* ---- All of them ---- */

unsigned clients_poll(const struct clients *clients, struct pollfd *files) {
    files[0] = (struct pollfd){clients->pausing ? -1 : clients->listener, POLLIN, 0};
    for (unsigned i = 0; i < clients->count; i++)
        files[i + 1] = (struct pollfd){clients->client[i].socket, POLLIN, 0};
    return clients->count + 1;
}

/* From the last, whose place one that is dropped leaves to another that was served. */
void clients_serve(struct clients *clients, const struct pollfd *files, unsigned count) {
    for (unsigned i = count - 1; i-- > 0;)
        if (files[i + 1].revents && !take_text(clients, &clients->client[i]))
            drop(clients, &clients->client[i]);
    clients->pausing = false;
    if (files[0].revents) take_new(clients);
    ask(clients);
}

static void entered(struct clients *clients, const struct cv_tell *told) {
    struct client *next;
    char line[64];
    tell_print(line, sizeof line, told);
    clients->phase = INSIDE;
    while ((next = first_in_queue(clients))) {
        let_in(clients, next, line);
        if (next->parted) {
            next->place = 0;
            continue;
        }
        clients->holder = next->place;
        return;
    }
    leave(clients); /* who wanted it has gone */
}

static void left(struct clients *clients, const struct cv_tell *told) {
    clients->phase = OUTSIDE;
    for (unsigned i = clients->count; clients->holder && i-- > 0;) {
        struct client *client = &clients->client[i];
        if (client->place != clients->holder) continue;
        client->place = 0;
        tell(client, told);
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
    for (unsigned i = 0; i < clients->count; i++) tell(&clients->client[i], told);
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

bool clients_run(const struct clients *clients) {
    bool any = false;
    for (unsigned i = 0; i < clients->count; i++) any |= clients->client[i].runs;
    return any;
}

void clients_show(struct clients *clients, const char *state) {
    bool same = clients->state && strcmp(clients->state, state) == 0;
    if (!same) {
        free(clients->state);
        clients->state = strdup(state);
        cv_assert(clients->state);
    }
    for (unsigned i = 0; i < clients->count; i++) {
        struct client *client = &clients->client[i];
        if (!client->watches || (same && !client->behind)) continue;
        client->behind = false;
        say(client, state);
    }
}

void clients_end(struct clients *clients) {
    clients->ending = true;
    if (clients->listener >= 0) close(clients->listener);
    clients->listener = -1;
    for (unsigned i = 0; i < clients->count; i++) {
        struct client *client = &clients->client[i];
        if (client->place != clients->holder) client->place = 0; /* it does not get it any more */
        say(client, "ends\n");
    }
}

/* What somebody still holds is not given back: its command lives until it learns of this. */
void clients_close(struct clients *clients) {
    for (unsigned i = 0; i < clients->count; i++) close(clients->client[i].socket);
    if (clients->listener >= 0) close(clients->listener);
    free(clients->state);
}
