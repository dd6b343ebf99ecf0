/* ACLs: lists of (permissions, scheme, id), each kept once, with a count of references. */
#include "base/grow.h"
#include "base/hash.h"
#include "service/tree/internal.h"

static bool is(struct zk_text text, const char *word) {
    return zk_text_equal(text, zk_text_of(word));
}

/* ---- Addresses ---- */

/* "1.2.3.4" or, where a mask is allowed, "1.2.3.4/24". */
static bool read_address(struct zk_text text, uint32_t *address, uint32_t *mask) {
    char copy[32], *at = copy, *end;
    if (text.size <= 0 || text.size >= (int32_t)sizeof copy) return false;
    memcpy(copy, text.at, (size_t)text.size);
    copy[text.size] = 0;
    *address = 0;
    *mask = UINT32_MAX;
    for (int part = 0; part < 4; part++, at = end) {
        if (part && *at++ != '.') return false;
        if (*at < '0' || *at > '9') return false;
        unsigned long number = strtoul(at, &end, 10);
        if (number > 255) return false;
        *address = *address << 8 | (uint32_t)number;
    }
    if (!*at) return true;
    if (*at++ != '/' || *at < '0' || *at > '9') return false;
    unsigned long bits = strtoul(at, &end, 10);
    *mask = bits == 0 ? 0 : UINT32_MAX << (32 - (bits > 32 ? 32 : bits));
    return *end == 0 && bits <= 32;
}

bool acl_read_address(const struct zk_id *id, uint32_t *address, uint32_t *mask) {
    return is(id->scheme, "ip") && read_address(id->id, address, mask);
}

static bool address_matches(struct zk_text pattern, struct zk_text address) {
    uint32_t a, b, mask, all;
    return read_address(pattern, &a, &mask) && read_address(address, &b, &all) &&
           (a & mask) == (b & mask);
}

/* ---- Checking ---- */

static bool matches(const struct zk_id *id, const struct zk_client *identity) {
    if (!zk_text_equal(id->scheme, identity->scheme)) return false;
    if (is(id->scheme, "ip")) return address_matches(id->id, identity->user);
    return zk_text_equal(id->id, identity->user);
}

static bool is_super(const struct zk_clients *identities) {
    struct zk_client identity;
    for (struct zk_clients left = *identities; zk_clients_next(&left, &identity);)
        if (is(identity.scheme, "super")) return true;
    return false;
}

bool acl_is_to_anyone(const struct zk_acl *entry) {
    return is(entry->id.scheme, "world") && is(entry->id.id, "anyone");
}

static bool entry_allows(const struct zk_acl *entry, const struct zk_clients *identities) {
    struct zk_client identity;
    for (struct zk_clients left = *identities; zk_clients_next(&left, &identity);)
        if (matches(&entry->id, &identity)) return true;
    return false;
}

static bool list_allows(struct zk_acls list, int32_t permission,
                        const struct zk_clients *identities) {
    struct zk_acl entry;
    for (struct zk_acls left = list; zk_acls_next(&left, &entry);)
        if (entry.perms & permission && acl_is_to_anyone(&entry)) return true;
    for (struct zk_acls left = list; zk_acls_next(&left, &entry);)
        if (entry.perms & permission && entry_allows(&entry, identities)) return true;
    return false;
}

/* What is soonest seen comes first: a client may have many identities, and ask again and again. */
bool acl_allows(const struct tree *tree, uint32_t acl, int32_t permission,
                const struct zk_clients *identities) {
    const struct acl_index *index = tree->acls.at[acl].long_index;
    if (acl == ACL_OPEN || tree->rules & TREE_SKIP_ACL) return true;
    bool allows = index ? acl_index_allows(index, tree->seed, permission, *identities)
                        : list_allows(acl_list(tree, acl), permission, identities);
    return allows || is_super(identities);
}

/* ---- Validating ---- */

static bool is_digest(struct zk_text id) {
    if (id.size <= 0) return false;
    const char *colon = memchr(id.at, ':', (size_t)id.size), *end = id.at + id.size;
    return colon && colon + 1 < end && !memchr(colon + 1, ':', (size_t)(end - colon - 1));
}

static bool entry_is_valid(const struct tree *tree, const struct zk_acl *entry) {
    uint32_t address, mask;
    if (is(entry->id.scheme, "world")) return is(entry->id.id, "anyone");
    if (is(entry->id.scheme, "digest")) return is_digest(entry->id.id);
    if (is(entry->id.scheme, "ip")) return read_address(entry->id.id, &address, &mask);
    return tree->rules & TREE_X509 && is(entry->id.scheme, "x509") && entry->id.id.size > 0;
}

bool acl_entry_is_sound(const struct zk_acl *entry) {
    return !is(entry->id.scheme, "digest") || is_digest(entry->id.id);
}

struct list { /* under construction */
    struct bytes *out;
    int32_t count;
    struct table seen; /* offsets of entries, plus 1 */
    uint64_t seed;
};

static size_t entry_size(const unsigned char *at, const unsigned char *end) {
    struct zk_in in = {at, end};
    struct zk_acl entry;
    bool whole = zk_read_acl(&in, &entry);
    cv_assert(whole);
    return (size_t)(in.at - at);
}

/* Adds an entry unless the list has an equal one. */
static void add_once(struct list *list, const struct zk_acl *entry) {
    struct bytes *out = list->out;
    size_t from = out->used, other;
    zk_write_acl(out, entry);
    size_t size = out->used - from;
    uint32_t hash = hash_bytes(out->at + from, size, list->seed);
    for (struct probe p = table_probe(&list->seen, hash); (other = table_next(&list->seen, &p));) {
        const unsigned char *at = out->at + other - 1;
        if (entry_size(at, out->at + from) == size && memcmp(at, out->at + from, size) == 0) {
            out->used = from;
            return;
        }
    }
    table_add(&list->seen, hash, (uint32_t)from + 1);
    list->count++;
}

/* The scheme `auth` stands for all identities that the connection has proven. */
static bool add_identities(struct list *list, int32_t perms, const struct zk_clients *identities) {
    bool any = false;
    struct zk_client identity;
    for (struct zk_clients left = *identities; zk_clients_next(&left, &identity);) {
        struct zk_acl entry = {perms, {identity.scheme, identity.user}};
        bool proven = is(identity.scheme, "digest") || is(identity.scheme, "sasl") ||
                      is(identity.scheme, "x509");
        if (!proven || !acl_entry_is_sound(&entry)) continue;
        add_once(list, &entry);
        any = true;
    }
    return any;
}

static bool add_all(const struct tree *tree, struct list *list, struct zk_acls given,
                    const struct zk_clients *identities) {
    struct zk_acl entry;
    while (zk_acls_next(&given, &entry)) {
        if (is(entry.id.scheme, "auth")) {
            if (!add_identities(list, entry.perms, identities)) return false;
        } else if (entry_is_valid(tree, &entry)) {
            add_once(list, &entry);
        } else {
            return false;
        }
    }
    return true;
}

bool acl_prepare(struct tree *tree, struct zk_acls given, const struct zk_clients *identities,
                 struct zk_acls *kept) {
    const struct acl *open = &tree->acls.at[ACL_OPEN];
    if (given.count == 1 && given.size == open->size &&
        memcmp(given.at, open->bytes, given.size) == 0) {
        *kept = given;
        return true;
    }
    struct list list = {.out = &tree->scratch, .seed = tree->seed};
    list.out->used = 0;
    bool good = given.count > 0 && add_all(tree, &list, given, identities);
    table_close(&list.seen);
    *kept = (struct zk_acls){list.out->at, list.out->used, list.count};
    return good;
}

/* ---- Keeping ---- */

enum { ACL_SHORT = 4 }; /* up to so many entries are looked at one by one */

struct zk_acls acl_list(const struct tree *tree, uint32_t acl) {
    const struct acl *a = &tree->acls.at[acl];
    return (struct zk_acls){a->bytes, a->size, a->count};
}

static uint32_t free_slot(struct acl_lists *acls) {
    uint32_t slot = acls->free_slot;
    if (slot) {
        acls->free_slot = acls->at[slot].size;
        return slot;
    }
    acls->at = grown(acls->at, &acls->room, acls->slots + 2, sizeof *acls->at);
    return ++acls->slots;
}

uint32_t acl_take(struct tree *tree, const struct zk_acls *list) {
    struct acl_lists *acls = &tree->acls;
    uint32_t hash = hash_bytes(list->at, list->size, tree->seed), slot;
    for (struct probe p = table_probe(&acls->index, hash); (slot = table_next(&acls->index, &p));)
        if (acls->at[slot].size == list->size &&
            memcmp(acls->at[slot].bytes, list->at, list->size) == 0) {
            acls->at[slot].refs++;
            return slot;
        }
    slot = free_slot(acls);
    acls->at[slot] = (struct acl){.bytes = malloc(list->size + 1),
                                  .size = (uint32_t)list->size,
                                  .refs = 1,
                                  .count = list->count,
                                  .hash = hash};
    cv_assert(acls->at[slot].bytes);
    memcpy(acls->at[slot].bytes, list->at, list->size);
    if (list->count > ACL_SHORT)
        acls->at[slot].long_index = acl_index_open(acl_list(tree, slot), tree->seed);
    table_add(&acls->index, hash, slot);
    return slot;
}

void acl_share(struct tree *tree, uint32_t acl) { tree->acls.at[acl].refs++; }

void acl_drop(struct tree *tree, uint32_t acl) {
    struct acl_lists *acls = &tree->acls;
    struct acl *a = &acls->at[acl];
    cv_assert(a->refs);
    if (--a->refs) return;
    table_remove(&acls->index, a->hash, acl);
    acl_index_close(a->long_index);
    free(a->bytes);
    *a = (struct acl){.size = acls->free_slot};
    acls->free_slot = acl;
}
