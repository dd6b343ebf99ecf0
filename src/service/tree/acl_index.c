/* What a long ACL grants to whom, without a look at each of its entries: a client may use it again
 * and again with little effort of its own. */
#include "base/grow.h"
#include "base/hash.h"
#include "service/tree/internal.h"

struct grant {               /* to one identity: the permissions of all its entries together */
    const unsigned char *id; /* as it is encoded in the list; NULL: `address` and `mask` */
    uint32_t size;
    uint32_t address, mask;
    int32_t permissions;
};

struct acl_index {
    struct grant *grant; /* from 1 */
    size_t room;
    uint32_t count;
    struct table by_identity;
    uint64_t mask_bits; /* a bit for each length of a mask that occurs */
    int32_t to_anyone;
};

static bool is_same(const struct grant *a, const struct grant *b) {
    if (!a->id || !b->id) return !a->id && !b->id && a->address == b->address && a->mask == b->mask;
    return a->size == b->size && memcmp(a->id, b->id, a->size) == 0;
}

static uint32_t hash_of(const struct grant *key, uint64_t seed) {
    if (key->id) return hash_bytes(key->id, key->size, seed);
    return hash_bytes((uint32_t[]){key->address, key->mask}, 2 * sizeof(uint32_t), seed);
}

static struct grant *find(const struct acl_index *index, const struct grant *key, uint32_t hash) {
    uint32_t number;
    for (struct probe p = table_probe(&index->by_identity, hash);
         (number = table_next(&index->by_identity, &p));)
        if (is_same(&index->grant[number], key)) return &index->grant[number];
    return NULL;
}

static void add(struct acl_index *index, const struct grant *grant, uint64_t seed) {
    uint32_t hash = hash_of(grant, seed);
    struct grant *known = find(index, grant, hash);
    if (known) {
        known->permissions |= grant->permissions;
        return;
    }
    index->grant = grown(index->grant, &index->room, index->count + 2, sizeof *index->grant);
    index->grant[++index->count] = *grant;
    table_add(&index->by_identity, hash, index->count);
}

struct acl_index *acl_index_open(struct zk_acls list, uint64_t seed) {
    struct acl_index *index = calloc(1, sizeof *index);
    struct zk_acl entry;
    cv_assert(index);
    for (;;) {
        const unsigned char *at = (const unsigned char *)list.at;
        if (!zk_acls_next(&list, &entry)) return index;
        struct grant grant = {.id = at + sizeof entry.perms, .permissions = entry.perms};
        grant.size = (uint32_t)((const unsigned char *)list.at - grant.id);
        if (acl_is_to_anyone(&entry)) {
            index->to_anyone |= entry.perms;
            continue;
        }
        if (acl_read_address(&entry.id, &grant.address, &grant.mask)) {
            grant.address &= grant.mask;
            grant.id = NULL;
            index->mask_bits |= (uint64_t)1 << __builtin_popcount(grant.mask);
        }
        add(index, &grant, seed);
    }
}

static int32_t granted(const struct acl_index *index, const struct grant *key, uint64_t seed) {
    const struct grant *found = find(index, key, hash_of(key, seed));
    return found ? found->permissions : 0;
}

static int32_t granted_to_address(const struct acl_index *index, uint32_t address, uint64_t seed) {
    int32_t permissions = 0;
    for (int bits = 0; bits <= 32; bits++) {
        if (!(index->mask_bits >> bits & 1)) continue;
        uint32_t mask = bits ? UINT32_MAX << (32 - bits) : 0;
        struct grant key = {.address = address & mask, .mask = mask};
        permissions |= granted(index, &key, seed);
    }
    return permissions;
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
        if (acl_read_address(&(struct zk_id){identity.scheme, identity.user}, &address, &mask))
            permissions |= granted_to_address(index, address, seed);
        else
            permissions |= granted(index, &key, seed);
    }
    return true;
}

void acl_index_close(struct acl_index *index) {
    if (!index) return;
    free(index->grant);
    table_close(&index->by_identity);
    free(index);
}
