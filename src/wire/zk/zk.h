/* ZooKeeper's client protocol (3.8): bytes to records and back, and what the numbers in them mean.
 * No I/O, no policy.  Nothing is copied or allocated in reading; writing goes to a buffer that
 * grows.  The input is not trusted: malformed records are refused, and nothing is read beyond its
 * end.
 *
 *   wire/zk/wire.h     integers, texts, frames
 *   wire/zk/records.h  the fields of each record
 *   wire/zk/codec.h    the structs, decoders and encoders that follow from them
 *   wire/zk/numbers.h  operations, errors, what fields can hold */
#ifndef CV_WIRE_ZK_ZK_H
#define CV_WIRE_ZK_ZK_H

#include "wire/zk/codec.h"
#include "wire/zk/numbers.h"

/* ---- Records as tables: for code that handles all of them alike ---- */

enum zk_type {
    ZK_TYPE_bool,
    ZK_TYPE_late,
    ZK_TYPE_i32,
    ZK_TYPE_i64,
    ZK_TYPE_text,
    ZK_TYPE_buffer,
    ZK_TYPE_texts,
    ZK_TYPE_acls,
    ZK_TYPE_clients,
    ZK_TYPE_id,
    ZK_TYPE_stat,
};

struct zk_field {
    const char *name;
    uint16_t offset, type;
};

struct zk_record {
    const char *name;
    const struct zk_field *fields;
    uint16_t field_count, size;
    bool (*read)(struct zk_in *in, void *record);
    void (*write)(struct bytes *out, const void *record);
};

#define ZK_INDEX_(R, TITLE)             ZK_RECORD_##R,
#define ZK_REQUEST_INDEX_(NAME, TITLE)  ZK_INDEX_(NAME##_request, TITLE)
#define ZK_RESPONSE_INDEX_(NAME, TITLE) ZK_INDEX_(NAME##_response, TITLE)
enum zk_record_index {
    ZK_RECORD_none, /* no fields: reads and writes nothing */
    ZK_PARTS(ZK_INDEX_) ZK_ENVELOPES(ZK_INDEX_) ZK_REQUESTS(ZK_REQUEST_INDEX_)
        ZK_RESPONSES(ZK_RESPONSE_INDEX_) ZK_RECORD_COUNT
};

extern const struct zk_record zk_records[ZK_RECORD_COUNT];

/* ---- Operations and errors ----
 *
 * `op->request->read(&in, &request)` reads the body of any request into a union zk_request. */

struct zk_op {
    const char *name, *lop;
    int32_t number;
    uint8_t kind; /* enum zk_kind */
    uint8_t in;   /* ZK_OP_MULTI or ZK_OP_MULTI_READ: may be part of that; else 0 */
    const struct zk_record *request, *response; /* of multi and multiRead: none, see below */
};

const struct zk_op *zk_op_of(int32_t number); /* NULL: unknown operation */
const char *zk_error_name(int32_t error);     /* NULL: unknown error */

/* ---- Multi ----
 *
 * Checked as a whole before the first operation is looked at, like a vector; `count` is how many
 * are left. */
struct zk_multi {
    struct zk_in left;
    int32_t count;
};

struct zk_multi_op {
    int32_t type;
    union zk_request of;
};

/* Reads the body of a multi or a multiRead (`opcode`) up to the closing header.  False: malformed,
 * or an operation that such a multi cannot hold. */
bool zk_read_multi(struct zk_in *in, int32_t opcode, struct zk_multi *multi);
bool zk_multi_next(struct zk_multi *multi, struct zk_multi_op *op);

/* A success is answered with one result for each operation, a failure of a multi with a rollback,
 * a failure in a multiRead with an error instead of the result.  All but the rollback are closed by
 * zk_write_multi_end. */
struct zk_result {
    int32_t type; /* ZK_OP_ERROR: err says which */
    int32_t err;
    union zk_response of;
};

bool zk_read_results(struct zk_in *in, struct zk_multi *results);
bool zk_results_next(struct zk_multi *results, struct zk_result *result);

void zk_write_multi_op(struct bytes *out, int32_t type, const union zk_request *request);
/* `type` is that of the request.  Whichever create it was, its result is in `response->create2`:
 * how much of it is sent depends on the request.  A delete and a check have none. */
void zk_write_result(struct bytes *out, int32_t type, const union zk_response *response);
void zk_write_result_error(struct bytes *out, int32_t err);
void zk_write_rollback(struct bytes *out, int32_t count, int32_t failed, int32_t err);
void zk_write_multi_end(struct bytes *out);

/* ---- Paths ---- */

bool zk_path_valid(struct zk_text path);
/* The check before the parent of a path is looked up: the path has a slash and no NUL. */
bool zk_path_plausible(struct zk_text path);

enum { ZK_SEQUENCE_MAX = 11 };
/* The end of a sequential node's name, as %010d: 10 digits, or a sign and up to 10.  Not
 * terminated; returns its length. */
int32_t zk_sequence(char to[ZK_SEQUENCE_MAX], int32_t number);

#endif
