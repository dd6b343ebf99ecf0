/* A request as it goes through the log: when, who, and what the client sent, as it sent it. */
#include "tree/tree.h"

size_t tree_entry_size(const struct tree_entry *entry) {
    return sizeof entry->time + sizeof entry->life + sizeof entry->number + sizeof entry->session +
           zk_size_clients(&entry->identities) + sizeof entry->rules + sizeof entry->op +
           zk_left(&entry->body);
}

void tree_store_entry(unsigned char *to, const struct tree_entry *entry) {
    to = zk_store_i64(to, &entry->time);
    to = zk_store_i64(to, &(int64_t){(int64_t)entry->life});
    to = zk_store_i64(to, &(int64_t){(int64_t)entry->number});
    to = zk_store_i64(to, &entry->session);
    to = zk_store_clients(to, &entry->identities);
    to = zk_store_i32(to, &entry->rules);
    to = zk_store_i32(to, &entry->op);
    if (zk_left(&entry->body)) memcpy(to, entry->body.at, zk_left(&entry->body));
}

bool tree_read_entry(struct zk_in *in, struct tree_entry *entry) {
    int64_t life, number;
    if (!zk_read_i64(in, &entry->time) || !zk_read_i64(in, &life) || !zk_read_i64(in, &number) ||
        !zk_read_i64(in, &entry->session) || !zk_read_clients(in, &entry->identities) ||
        !zk_read_i32(in, &entry->rules) || !zk_read_i32(in, &entry->op))
        return false;
    entry->life = (uint64_t)life;
    entry->number = (uint64_t)number;
    entry->body = *in;
    in->at = in->end;
    return true;
}

void tree_store_expiry(unsigned char to[TREE_EXPIRY_SIZE], const struct tree_expiry *expiry) {
    zk_store_i32(zk_store_i64(to, &expiry->term), &expiry->moves);
}

bool tree_read_expiry(struct zk_in in, struct tree_expiry *expiry) {
    return zk_read_i64(&in, &expiry->term) && zk_read_i32(&in, &expiry->moves);
}

size_t tree_members_size(const struct tree_members *members) {
    return sizeof members->time + (size_t)members->text.size;
}

void tree_store_members(unsigned char *to, const struct tree_members *members) {
    to = zk_store_i64(to, &members->time);
    if (members->text.size) memcpy(to, members->text.at, (size_t)members->text.size);
}

bool tree_read_members(struct zk_in in, struct tree_members *members) {
    if (!zk_read_i64(&in, &members->time) || zk_left(&in) > INT32_MAX) return false;
    members->text = (struct zk_text){(const char *)in.at, (int32_t)zk_left(&in)};
    return true;
}
