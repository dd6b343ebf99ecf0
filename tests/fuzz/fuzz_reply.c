/* Any bytes as the answer to any operation of the client library: the first byte says to which, the
 * rest is the body.  What is decoded is walked through to its last byte. */
#include <stdlib.h>

#include "client/internal.h"

static const struct request REQUESTS[] = {
    {.type = CV_OP_CREATE, .opcode = ZK_OP_CREATE2},
    {.type = CV_OP_CREATE, .opcode = ZK_OP_CREATE_TTL},
    {.type = CV_OP_DELETE, .opcode = ZK_OP_DELETE},
    {.type = CV_OP_EXISTS, .opcode = ZK_OP_EXISTS},
    {.type = CV_OP_GET, .opcode = ZK_OP_GET_DATA},
    {.type = CV_OP_SET, .opcode = ZK_OP_SET_DATA},
    {.type = CV_OP_CHILDREN, .opcode = ZK_OP_GET_CHILDREN2},
    {.type = CV_OP_GET_ACL, .opcode = ZK_OP_GET_ACL},
    {.type = CV_OP_SYNC, .opcode = ZK_OP_SYNC},
    {.type = CV_OP_ADD_WATCH, .opcode = ZK_OP_ADD_WATCH},
    {.type = CV_OP_WHO_AM_I, .opcode = ZK_OP_WHO_AM_I},
    {.type = CV_OP_EPHEMERALS, .opcode = ZK_OP_GET_EPHEMERALS},
    {.type = CV_OP_COUNT_ALL, .opcode = ZK_OP_GET_ALL_CHILDREN_NUMBER},
    {.type = CV_OP_RECONFIG, .opcode = ZK_OP_RECONFIG},
    {.type = CV_OP_MULTI, .opcode = ZK_OP_MULTI},
    {.type = CV_OP_MULTI, .opcode = ZK_OP_MULTI_READ},
};
enum { COUNT = sizeof REQUESTS / sizeof REQUESTS[0] };

static size_t walk(const struct cv_result *result) {
    size_t sum = result->path ? strlen(result->path) : 0;
    if (result->data) sum += ((const unsigned char *)result->data)[result->size];
    for (size_t i = 0; i < result->name_count; i++) sum += strlen(result->names[i]);
    for (size_t i = 0; i < result->acl_count; i++)
        sum += strlen(result->acl[i].scheme) + strlen(result->acl[i].id);
    for (size_t i = 0; i < result->result_count; i++) sum += walk(&result->results[i]);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct bytes room = {0};
    struct zk_reply_header header = {.xid = 1, .zxid = 1};
    struct zk_multi results;
    if (size < 2) return 0;
    struct request request = REQUESTS[bytes[0] % COUNT];
    struct zk_in body = zk_in_of(bytes + 2, size - 2), counted = body;
    /* As many operations as there are results: what is compared first. */
    if (zk_read_results(&counted, &results)) request.op_count = (uint32_t)results.count;
    int error;
    struct cv_result *result = reply_decode(&request, &header, &body, bytes[1] % 16, &room, &error);
    volatile size_t sink = result ? walk(result) : 0;
    (void)sink;
    bytes_close(&room);
    return 0;
}
