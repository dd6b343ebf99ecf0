/* Any bytes as any record of ZooKeeper's client protocol: records that decode are encoded again,
 * and the bytes must be the same.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -D_GNU_SOURCE -o fuzz_zk \
 *       tests/fuzz/fuzz_zk.c src/wire/zk/[a-z]*.c src/base/assert.c */
#include "base/assert.h"
#include "wire/zk/zk.h"

union any {
    max_align_t align;
    union zk_request request;
    union zk_response response;
    struct zk_connect_request connect;
};

/* A bool may be any byte but zero, and is written as 1; everything else stays. */
static void same(const struct bytes *out, const unsigned char *from, size_t size) {
    cv_assert(out->used == size);
    for (size_t i = 0; i < size; i++)
        cv_assert(out->at[i] == from[i] || (out->at[i] == 1 && from[i]));
}

static void walk_text(struct zk_text text) {
    volatile char letter;
    for (int32_t i = 0; i < text.size; i++) letter = text.at[i];
    (void)letter;
    if (zk_path_valid(text)) cv_assert(zk_path_plausible(text));
}

/* A vector's elements, written one by one, are the vector. */
static void walk_texts(struct zk_texts texts) {
    struct bytes out = {0};
    struct zk_text text;
    int32_t count = 0;
    for (struct zk_texts left = texts; zk_texts_next(&left, &text); count++) {
        walk_text(text);
        zk_write_text(&out, text);
    }
    cv_assert(count == (texts.count > 0 ? texts.count : 0));
    same(&out, texts.at, texts.size);
    bytes_close(&out);
}

static void walk_acls(struct zk_acls acls) {
    struct bytes out = {0};
    struct zk_acl acl;
    for (struct zk_acls left = acls; zk_acls_next(&left, &acl);) {
        walk_text(acl.id.scheme);
        walk_text(acl.id.id);
        zk_write_acl(&out, &acl);
    }
    same(&out, acls.at, acls.size);
    bytes_close(&out);
}

static void walk_clients(struct zk_clients clients) {
    struct bytes out = {0};
    struct zk_client client;
    for (struct zk_clients left = clients; zk_clients_next(&left, &client);) {
        walk_text(client.scheme);
        walk_text(client.user);
        zk_write_client(&out, &client);
    }
    same(&out, clients.at, clients.size);
    bytes_close(&out);
}

static void walk(const struct zk_record *record, const void *at) {
    for (unsigned i = 0; i < record->field_count; i++) {
        const void *value = (const char *)at + record->fields[i].offset;
        switch (record->fields[i].type) {
        case ZK_TYPE_text:
        case ZK_TYPE_buffer: walk_text(*(const struct zk_text *)value); break;
        case ZK_TYPE_texts: walk_texts(*(const struct zk_texts *)value); break;
        case ZK_TYPE_acls: walk_acls(*(const struct zk_acls *)value); break;
        case ZK_TYPE_clients: walk_clients(*(const struct zk_clients *)value); break;
        case ZK_TYPE_id: walk(&zk_records[ZK_RECORD_id], value); break;
        default: break;
        }
    }
}

static void try_record(const struct zk_record *record, struct zk_in in) {
    const unsigned char *begin = in.at;
    struct bytes out = {0};
    union any value;
    if (!record->read(&in, &value)) return;
    cv_assert(in.at >= begin && in.at <= in.end);
    walk(record, &value);
    record->write(&out, &value);
    same(&out, begin, (size_t)(in.at - begin));
    bytes_close(&out);
}

/* The error in the header of a request is ignored, so only sizes and decoded values are compared.
 */
static void try_multi(struct zk_in in, int32_t opcode) {
    const unsigned char *begin = in.at;
    struct bytes out = {0}, again = {0};
    struct zk_multi multi;
    struct zk_multi_op op;
    if (!zk_read_multi(&in, opcode, &multi)) return;
    for (int32_t left = multi.count; left; left--) {
        cv_assert(zk_multi_next(&multi, &op));
        walk(zk_op_of(op.type)->request, &op.of);
        zk_write_multi_op(&out, op.type, &op.of);
    }
    cv_assert(!zk_multi_next(&multi, &op));
    zk_write_multi_end(&out);
    cv_assert(out.used == (size_t)(in.at - begin));
    in = zk_in_of(out.at, out.used);
    cv_assert(zk_read_multi(&in, opcode, &multi));
    while (zk_multi_next(&multi, &op)) zk_write_multi_op(&again, op.type, &op.of);
    zk_write_multi_end(&again);
    same(&again, out.at, out.used);
    bytes_close(&out);
    bytes_close(&again);
}

static void try_results(struct zk_in in) {
    struct zk_multi results;
    struct zk_result result;
    if (!zk_read_results(&in, &results)) return;
    for (int32_t left = results.count; left; left--) {
        cv_assert(zk_results_next(&results, &result));
        walk(zk_op_of(result.type)->response, &result.of);
    }
    cv_assert(!zk_results_next(&results, &result));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct zk_in in = zk_in_of(bytes, size), received = in, frame;
    for (unsigned i = 0; i < ZK_RECORD_COUNT; i++) try_record(&zk_records[i], in);
    try_multi(in, ZK_OP_MULTI);
    try_multi(in, ZK_OP_MULTI_READ);
    try_results(in);
    while (zk_next_frame(&received, 1048575, &frame) == 1)
        cv_assert(frame.at <= frame.end && frame.end == received.at && received.at <= in.end);
    walk_text((struct zk_text){(const char *)bytes, (int32_t)size});
    return 0;
}
