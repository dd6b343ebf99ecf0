/* The configuration of the ensemble: as the text that the log and /zookeeper/config have, and as
 * the core has it. */
#include <stdio.h>

#include "base/hash.h"
#include "base/logger.h"
#include "service/ensemble/internal.h"

_Static_assert((int)RAFT_MEMBERS_MAX == (int)MEMBERS_MAX, "the core has them all");

void members_set(struct members *members, const void *text, size_t size) {
    members->text.used = 0;
    bytes_add(&members->text, text, size);
    members->hash = hash_long(text, size, 0);
}

static void swap_with_previous(struct ensemble *e) {
    struct members members = e->members;
    e->members = e->previous_members;
    e->previous_members = members;
}

void members_adopt(struct ensemble *e, const void *text, size_t size) {
    if (e->members.hash == hash_long(text, size, 0)) return;
    swap_with_previous(e);
    members_set(&e->members, text, size);
}

void members_take(struct ensemble *e, const void *text, size_t size) {
    uint64_t before = e->raft.previous_config.hash;
    if (e->members.hash != before && e->previous_members.hash == before) swap_with_previous(e);
    members_adopt(e, text, size);
}

void members_revert(struct ensemble *e) {
    if (e->members.hash == e->raft.config.hash || ensemble_is_standalone(e)) return;
    cv_assert(e->previous_members.hash == e->raft.config.hash);
    swap_with_previous(e);
    peers_update(e);
}

/* ---- Reading ---- */

static bool to_config(const struct member_list *list, struct raft_config *config, char *why,
                      size_t size) {
    if (!member_list_is_ensemble(list, why, size)) return false;
    for (unsigned i = 0; i < list->count; i++) {
        const struct member *member = &list->at[i];
        config->at[config->count++] =
            (struct raft_member){.id = (uint8_t)member->id,
                                 .group = member->group,
                                 .weight = member->observer ? 0 : (uint16_t)member->weight};
    }
    return true;
}

bool members_read(const void *text, size_t size, struct raft_config *config,
                  struct member_list *list, char *why, size_t why_size) {
    *config = (struct raft_config){.hash = hash_long(text, size, 0)};
    *list = (struct member_list){0};
    return member_list_parse(list, text, size, why, why_size) &&
           to_config(list, config, why, why_size);
}

bool members_read_entry(const struct raft_batch *batch, struct raft_config *config,
                        struct zk_text *text) {
    char why[256];
    size_t at = 0;
    struct raft_entry entry;
    struct tree_members members;
    struct member_list list;
    if (batch->count != 1 || !raft_next(batch, &at, &entry) ||
        !tree_read_members(zk_in_of(entry.bytes, entry.size), &members) || members.text.size < 0)
        return false;
    *text = members.text;
    return members_read(text->at, (size_t)text->size, config, &list, why, sizeof why);
}

/* ---- In force ---- */

bool members_in_force(struct ensemble *e, struct raft_config *config) {
    const struct bytes *text = &e->members.text;
    struct member_list list;
    char why[256];
    bool good = members_read(text->at, text->used, config, &list, why, sizeof why);
    if (!good)
        logger_error("the configuration of the ensemble is not valid, so the server stops",
                     LOGGER_STRING("reason", why));
    return good;
}

struct zk_text members_committed(const struct ensemble *e) {
    return tree_members_text(e->tree);
}

static void write_without_ids(struct zk_text text, struct bytes *to) {
    struct raft_config config;
    struct member_list list;
    char why[256];
    members_read(text.at, (size_t)text.size, &config, &list, why, sizeof why);
    list.ensemble = 0;
    for (unsigned i = 0; i < list.count; i++) list.at[i].directory = 0;
    member_list_write(&list, to);
}

int64_t members_version(const struct ensemble *e) {
    struct zk_text committed = members_committed(e);
    struct bytes before = {0}, now = {0};
    if (!e->members.text.used) return 0;
    if (!committed.size) return (int64_t)(e->raft.term << 32);
    write_without_ids(committed, &before);
    write_without_ids(
        (struct zk_text){(const char *)e->members.text.at, (int32_t)e->members.text.used}, &now);
    bool same = before.used == now.used && memcmp(before.at, now.at, now.used) == 0;
    bytes_close(&before);
    bytes_close(&now);
    return same ? tree_members_version(e->tree) : 0;
}

bool members_adopt_committed(struct ensemble *e, struct raft_config *config) {
    struct zk_text text = members_committed(e);
    if (!text.size) return false;
    members_adopt(e, text.at, (size_t)text.size);
    return members_in_force(e, config);
}
