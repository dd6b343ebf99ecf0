/* What a long ACL grants to whom, without a look at each of its entries: a client may use it again
 * and again with little effort of its own. */
#include "base/grow.h"
#include "base/hash.h"
#include "service/tree/internal.h"

struct grant {               /* to one identity: the permissions of all its entries together */
    const unsigned char *id; /* as it is encoded in the list */
    uint32_t size;
    int32_t permissions;
};

struct network { /* the addresses from `first` to `last`, which begin with the same bits */
    uint32_t first, last;
    int32_t permissions;
};

struct range { /* from `first` up to the next range */
    uint32_t first;
    int32_t permissions;
};

struct acl_index {
    struct grant *grant; /* from 1 */
    size_t grant_room;
    uint32_t grants;
    struct table by_identity;
    struct range *range; /* of all addresses, in their order */
    size_t range_room, ranges;
    int32_t to_anyone;
};

static struct grant *find(const struct acl_index *index, const struct grant *key, uint32_t hash) {
    uint32_t number;
    for (struct probe p = table_probe(&index->by_identity, hash);
         (number = table_next(&index->by_identity, &p));) {
        struct grant *grant = &index->grant[number];
        if (grant->size == key->size && memcmp(grant->id, key->id, key->size) == 0) return grant;
    }
    return NULL;
}

static void add(struct acl_index *index, const struct grant *grant, uint64_t seed) {
    uint32_t hash = hash_bytes(grant->id, grant->size, seed);
    struct grant *known = find(index, grant, hash);
    if (known) {
        known->permissions |= grant->permissions;
        return;
    }
    index->grant = grown(index->grant, &index->grant_room, index->grants + 2, sizeof *grant);
    index->grant[++index->grants] = *grant;
    table_add(&index->by_identity, hash, index->grants);
}

/* ---- Addresses ---- */

/* A network comes before those within it. */
static int by_address(const void *a, const void *b) {
    const struct network *one = a, *other = b;
    if (one->first != other->first) return one->first < other->first ? -1 : 1;
    return one->last == other->last ? 0 : one->last > other->last ? -1 : 1;
}

static void begin_range(struct acl_index *index, uint32_t first, int32_t permissions) {
    if (!index->ranges || index->range[index->ranges - 1].first != first) {
        index->range =
            grown(index->range, &index->range_room, index->ranges + 1, sizeof *index->range);
        index->ranges++;
    }
    index->range[index->ranges - 1] = (struct range){first, permissions};
}

/* What is granted to a network is granted to those within it. */
static void add_networks(struct acl_index *index, struct network *networks, size_t count) {
    struct network around[34]; /* those that an address is in: one for each length of a mask */
    size_t depth = 0;
    around[0] = (struct network){0, UINT32_MAX, 0};
    if (count) qsort(networks, count, sizeof *networks, by_address);
    begin_range(index, 0, 0);
    for (size_t i = 0; i <= count; i++) {
        while (depth && (i == count || around[depth].last < networks[i].first)) {
            uint32_t last = around[depth--].last;
            if (last < UINT32_MAX) begin_range(index, last + 1, around[depth].permissions);
        }
        if (i == count) return;
        bool known = depth && by_address(&around[depth], &networks[i]) == 0;
        int32_t permissions = networks[i].permissions | around[depth].permissions;
        if (!known) around[++depth] = networks[i];
        around[depth].permissions = permissions;
        begin_range(index, networks[i].first, permissions);
    }
}

static int32_t granted_to_address(const struct acl_index *index, uint32_t address) {
    size_t low = 0, high = index->ranges;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (index->range[middle].first <= address)
            low = middle;
        else
            high = middle;
    }
    return index->range[low].permissions;
}

/* ---- All of it ---- */

struct acl_index *acl_index_open(struct zk_acls list, uint64_t seed) {
    struct acl_index *index = calloc(1, sizeof *index);
    struct network *networks = NULL;
    size_t count = 0, room = 0;
    struct zk_acl entry;
    cv_assert(index);
    for (const unsigned char *at = list.at; zk_acls_next(&list, &entry); at = list.at) {
        struct grant grant = {.id = at + sizeof entry.perms, .permissions = entry.perms};
        uint32_t address, mask;
        grant.size = (uint32_t)(list.at - grant.id);
        if (acl_is_to_anyone(&entry)) {
            index->to_anyone |= entry.perms;
        } else if (acl_read_address(&entry.id, &address, &mask)) {
            networks = grown(networks, &room, count + 1, sizeof *networks);
            networks[count++] = (struct network){address & mask, address | ~mask, entry.perms};
        } else {
            add(index, &grant, seed);
        }
    }
    add_networks(index, networks, count);
    free(networks);
    return index;
}

bool acl_index_allows(const struct acl_index *index, uint64_t seed, int32_t permission,
                      struct zk_clients identities) {
    int32_t permissions = index->to_anyone;
    struct zk_client identity;
    while (!(permissions & permission)) {
        struct grant key = {.id = (const unsigned char *)identities.at};
        uint32_t address, mask;
        if (!zk_clients_next(&identities, &identity)) return false;
        key.size = (uint32_t)((const unsigned char *)identities.at - key.id);
        if (acl_read_address(&(struct zk_id){identity.scheme, identity.user}, &address, &mask)) {
            permissions |= granted_to_address(index, address);
        } else {
            const struct grant *found = find(index, &key, hash_bytes(key.id, key.size, seed));
            permissions |= found ? found->permissions : 0;
        }
    }
    return true;
}

void acl_index_close(struct acl_index *index) {
    if (!index) return;
    free(index->grant);
    free(index->range);
    table_close(&index->by_identity);
    free(index);
}
