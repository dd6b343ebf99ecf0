/* How many connections come from where.  An IPv6 network of 64 bits counts as one address: whoever
 * has one address of it has them all. */
#include <netinet/in.h>

#include "base/grow.h"
#include "base/rng.h"
#include "service/server/internal.h"

uint64_t crowd_network(const struct sockaddr *address) {
    uint64_t network = 0;
    if (address->sa_family != AF_INET6) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
        return four->sin_addr.s_addr;
    }
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    bool is_mapped = IN6_IS_ADDR_V4MAPPED(six), is_local = IN6_IS_ADDR_LOOPBACK(six);
    if (is_mapped || is_local)
        memcpy(&network, six->s6_addr + 12, 4);
    else
        memcpy(&network, six->s6_addr, sizeof network);
    return network;
}

static uint32_t hash_of(const struct crowds *all, uint64_t network) {
    return (uint32_t)rng_mix(network ^ all->seed);
}

static uint32_t find(const struct crowds *all, uint64_t network) {
    uint32_t number;
    for (struct probe p = table_probe(&all->index, hash_of(all, network));
         (number = table_next(&all->index, &p));)
        if (all->at[number].network == network) return number;
    return 0;
}

uint32_t crowd_count(const struct crowds *all, uint64_t network) {
    uint32_t number = find(all, network);
    return number ? all->at[number].count : 0;
}

void crowd_join(struct crowds *all, uint64_t network) {
    uint32_t number = find(all, network);
    if (!number) {
        number = all->free ? all->free : ++all->slots;
        all->at = grown(all->at, &all->room, all->slots + 1, sizeof *all->at);
        if (all->free) all->free = all->at[number].count;
        all->at[number] = (struct crowd){network, 0};
        table_add(&all->index, hash_of(all, network), number);
    }
    all->at[number].count++;
}

void crowd_leave(struct crowds *all, uint64_t network) {
    uint32_t number = find(all, network);
    cv_assert(number);
    if (--all->at[number].count) return;
    table_remove(&all->index, hash_of(all, network), number);
    all->at[number].count = all->free;
    all->free = number;
}

void crowds_close(struct crowds *all) {
    table_close(&all->index);
    free(all->at);
}
