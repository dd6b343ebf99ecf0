/* A request in the log: its time, proposer and session, and the body as the client sent it. */
#include <stdio.h>
#include <stdlib.h>

#include "service/tree/internal.h"

size_t tree_entry_size(const struct tree_entry *entry) {
    return sizeof entry->time + sizeof entry->incarnation + sizeof entry->sequence +
           sizeof entry->session + zk_size_clients(&entry->identities) + sizeof entry->rules +
           sizeof entry->op + zk_left(&entry->body);
}

void tree_store_entry(unsigned char *to, const struct tree_entry *entry) {
    to = zk_store_i64(to, &entry->time);
    to = zk_store_i64(to, &(int64_t){(int64_t)entry->incarnation});
    to = zk_store_i64(to, &(int64_t){(int64_t)entry->sequence});
    to = zk_store_i64(to, &entry->session);
    to = zk_store_clients(to, &entry->identities);
    to = zk_store_i32(to, &entry->rules);
    to = zk_store_i32(to, &entry->op);
    if (zk_left(&entry->body)) memcpy(to, entry->body.at, zk_left(&entry->body));
}

bool tree_read_entry(struct zk_in *in, struct tree_entry *entry) {
    int64_t incarnation, sequence;
    if (!zk_read_i64(in, &entry->time) || !zk_read_i64(in, &incarnation) ||
        !zk_read_i64(in, &sequence) || !zk_read_i64(in, &entry->session) ||
        !zk_read_clients(in, &entry->identities) || !zk_read_i32(in, &entry->rules) ||
        !zk_read_i32(in, &entry->op))
        return false;
    entry->incarnation = (uint64_t)incarnation;
    entry->sequence = (uint64_t)sequence;
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

/* A version is a line before the others, which servers that do not expect it there pass over. */
#define VERSION_LINE "version=%016llx\n"
enum { VERSION_SIZE = sizeof "version=0123456789abcdef\n" - 1 };

size_t tree_members_size(const struct tree_members *members) {
    return sizeof members->time + (members->version ? VERSION_SIZE : 0) +
           (size_t)members->text.size;
}

void tree_store_members(unsigned char *to, const struct tree_members *members) {
    char line[VERSION_SIZE + 1];
    to = zk_store_i64(to, &members->time);
    snprintf(line, sizeof line, VERSION_LINE, (unsigned long long)members->version);
    if (members->version) memcpy(to, line, VERSION_SIZE), to += VERSION_SIZE;
    if (members->text.size) memcpy(to, members->text.at, (size_t)members->text.size);
}

int64_t tree_take_versions(struct zk_text *text) {
    int64_t first = 0;
    for (; text->size >= VERSION_SIZE; text->at += VERSION_SIZE, text->size -= VERSION_SIZE) {
        char line[VERSION_SIZE + 1] = "", again[VERSION_SIZE + 1];
        memcpy(line, text->at, VERSION_SIZE);
        unsigned long long number = strtoull(line + strcspn(line, "=") + (*line != 0), NULL, 16);
        snprintf(again, sizeof again, VERSION_LINE, number);
        if (!number || strcmp(line, again) != 0) break;
        if (!first) first = (int64_t)number;
    }
    return first;
}

bool tree_read_members(struct zk_in in, struct tree_members *members) {
    if (!zk_read_i64(&in, &members->time) || zk_left(&in) > INT32_MAX) return false;
    members->text = (struct zk_text){(const char *)in.at, (int32_t)zk_left(&in)};
    members->version = tree_take_versions(&members->text);
    return true;
}
