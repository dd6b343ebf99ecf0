/* Several operations in one request, and their results in one response: each after a header, with a
 * closing header at the end. */
#include "wire/zk/zk.h"

/* Between the operations: 1 and the header of the next, 0 at the closing one, -1 malformed. */
static int next_header(struct zk_in *in, struct zk_multi_header *header) {
    if (!zk_read_multi_header(in, header)) return -1;
    return !header->done;
}

static void write_header(struct bytes *out, int32_t type, int32_t err) {
    zk_write_multi_header(out, &(struct zk_multi_header){type, false, err});
}

void zk_write_multi_end(struct bytes *out) {
    zk_write_multi_header(out, &(struct zk_multi_header){-1, true, -1});
}

/* ---- Requests ---- */

bool zk_read_multi(struct zk_in *in, int32_t opcode, struct zk_multi *multi) {
    struct zk_multi_header header;
    union zk_request request;
    int more;
    *multi = (struct zk_multi){.left = *in};
    while ((more = next_header(in, &header)) == 1) {
        const struct zk_op *op = zk_op_of(header.type);
        if (!op || !op->in || op->in != opcode || !op->request->read(in, &request)) return false;
        multi->count++;
    }
    multi->left.end = in->at;
    return more == 0;
}

bool zk_multi_next(struct zk_multi *multi, struct zk_multi_op *op) {
    struct zk_multi_header header;
    if (multi->count <= 0 || next_header(&multi->left, &header) != 1) return false;
    multi->count--;
    op->type = header.type;
    return zk_op_of(header.type)->request->read(&multi->left, &op->of);
}

void zk_write_multi_op(struct bytes *out, int32_t type, const union zk_request *request) {
    write_header(out, type, -1);
    zk_op_of(type)->request->write(out, request);
}

/* ---- Results ---- */

/* ZooKeeper answers a create2 in a multi as if it were a create, and createContainer and createTTL
 * as if they were a create2. */
static int32_t result_type(int32_t request) {
    switch (request) {
    case ZK_OP_CREATE2: return ZK_OP_CREATE;
    case ZK_OP_CREATE_CONTAINER:
    case ZK_OP_CREATE_TTL: return ZK_OP_CREATE2;
    default: return request;
    }
}

static const struct zk_record *result_record(int32_t type) {
    switch (type) {
    case ZK_OP_ERROR:
    case ZK_OP_CREATE:
    case ZK_OP_DELETE:
    case ZK_OP_GET_DATA:
    case ZK_OP_SET_DATA:
    case ZK_OP_GET_CHILDREN:
    case ZK_OP_CHECK:
    case ZK_OP_CREATE2: return zk_op_of(type)->response;
    default: return NULL;
    }
}

bool zk_read_results(struct zk_in *in, struct zk_multi *results) {
    struct zk_multi_header header;
    union zk_response response;
    int more;
    *results = (struct zk_multi){.left = *in};
    while ((more = next_header(in, &header)) == 1) {
        const struct zk_record *record = result_record(header.type);
        if (!record || !record->read(in, &response)) return false;
        results->count++;
    }
    results->left.end = in->at;
    return more == 0;
}

bool zk_results_next(struct zk_multi *results, struct zk_result *result) {
    struct zk_multi_header header;
    if (results->count <= 0 || next_header(&results->left, &header) != 1) return false;
    results->count--;
    result->type = header.type;
    result->err = header.err;
    return result_record(header.type)->read(&results->left, &result->of);
}

void zk_write_result(struct bytes *out, int32_t type, const union zk_response *response) {
    type = result_type(type);
    write_header(out, type, ZK_OK);
    result_record(type)->write(
        out, response); /* the response of create is a prefix of that of create2 */
}

void zk_write_result_error(struct bytes *out, int32_t err) {
    write_header(out, ZK_OP_ERROR, err);
    zk_write_i32(out, err);
}

void zk_write_rollback(struct bytes *out, int32_t count, int32_t failed, int32_t err) {
    for (int32_t i = 0; i < count; i++)
        zk_write_result_error(out, i < failed    ? ZK_OK
                                   : i == failed ? err
                                                 : ZK_RUNTIMEINCONSISTENCY);
    zk_write_multi_end(out);
}
