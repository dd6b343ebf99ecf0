/* The addresses of a host.  getaddrinfo blocks, so it has a thread of its own, which nobody waits
 * for: what it works on belongs to whoever lets go of it last. */
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/internal.h"

struct lookup {
    atomic_int users;
    atomic_bool known;
    int wake, error;
    struct addrinfo *found;
    char host[HOST_MAX], port[PORT_MAX];
};

/* ---- What was found ---- */

static bool add_all(struct addresses *addresses, const struct addrinfo *found) {
    size_t count = addresses->count;
    for (const struct addrinfo *at = found; at; at = at->ai_next) count++;
    struct address *all = realloc(addresses->all, (count + 1) * sizeof *all);
    if (!all) return false;
    addresses->all = all;
    for (const struct addrinfo *at = found; at; at = at->ai_next) {
        if (at->ai_addrlen > sizeof all->at) continue;
        struct address *address = &all[addresses->count++];
        *address = (struct address){.size = at->ai_addrlen};
        memcpy(&address->at, at->ai_addr, at->ai_addrlen);
    }
    return addresses->count > 0;
}

static bool add_literal(struct addresses *addresses, const char *host, const char *port) {
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV},
                    *found;
    if (getaddrinfo(host, port, &wanted, &found) != 0) return false;
    bool added = add_all(addresses, found);
    freeaddrinfo(found);
    return added;
}

bool lookup_at_once(const struct server_entry *entry, struct addresses *addresses) {
    addresses->count = 0;
    if (strcmp(entry->host, "localhost") == 0) {
        bool v4 = add_literal(addresses, "127.0.0.1", entry->port);
        return add_literal(addresses, "::1", entry->port) || v4;
    }
    return add_literal(addresses, entry->host, entry->port);
}

/* ---- The thread ---- */

static void let_go(struct lookup *lookup) {
    if (atomic_fetch_sub(&lookup->users, 1) > 1) return;
    if (lookup->found) freeaddrinfo(lookup->found);
    close(lookup->wake);
    free(lookup);
}

static void *look_up(void *arg) {
    struct lookup *lookup = arg;
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    lookup->error = getaddrinfo(lookup->host, lookup->port, &wanted, &lookup->found);
    if (lookup->error) lookup->found = NULL;
    atomic_store(&lookup->known, true);
    ssize_t woken = write(lookup->wake, &(uint64_t){1}, sizeof(uint64_t));
    (void)woken;
    let_go(lookup);
    return NULL;
}

struct lookup *lookup_start(const struct server_entry *entry, int wake) {
    struct lookup *lookup = calloc(1, sizeof *lookup);
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (!lookup) return NULL;
    lookup->wake =
        fcntl(wake, F_DUPFD_CLOEXEC, 0); /* the client may be gone before the answer comes */
    if (lookup->wake < 0) return free(lookup), NULL;
    snprintf(lookup->host, sizeof lookup->host, "%s", entry->host);
    snprintf(lookup->port, sizeof lookup->port, "%s", entry->port);
    atomic_init(&lookup->users, 2);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&thread, &attributes, look_up, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!error) return lookup;
    close(lookup->wake);
    free(lookup);
    return NULL;
}

bool lookup_finished(struct lookup *lookup, struct addresses *addresses) {
    if (!atomic_load(&lookup->known)) return false;
    addresses->count = 0;
    if (lookup->error)
        snprintf(addresses->reason, sizeof addresses->reason, "%s", gai_strerror(lookup->error));
    else if (!add_all(addresses, lookup->found))
        snprintf(addresses->reason, sizeof addresses->reason, "it has no address");
    return true;
}

void lookup_end(struct lookup *lookup) { let_go(lookup); }
