/* A transaction log of ZooKeeper:
 *
 *   "ZKLG", version, id of the database
 *   records  Adler-32 of the bytes, their number, the bytes, 'B'; zeros after the last
 *
 * The bytes are a header, the transaction, and since 3.6 a digest of the tree after it. */
#include <zlib.h>

#include "service/store/internal.h"

#define ZK_FIELDS_log_record(F, R) F(R, i64, checksum) F(R, buffer, bytes)

ZK_RECORD_(log_record, "record")

enum { MAGIC = 0x5a4b4c47, ZXID_AT = 12, HEADER_SIZE = 32, RECORD_MAX = 1 << 30 };

static bool all_zero(const struct zk_in *in) {
    const unsigned char *at = in->at;
    while (at < in->end && !*at) at++;
    return at == in->end;
}

/* Takes a whole record off the front; false: there is none. */
static bool next_record(struct zk_in *in, struct zk_in *record) {
    struct zk_in rest = *in;
    struct zk_log_record found;
    if (!zk_read_log_record(&rest, &found) || found.bytes.size < HEADER_SIZE) return false;
    if (found.bytes.size > RECORD_MAX) return false;
    if (!zk_left(&rest) || *rest.at++ != 'B') return false;
    size_t size = (size_t)found.bytes.size;
    const unsigned char *bytes = (const unsigned char *)found.bytes.at;
    if (found.checksum != (int64_t)adler32_z(adler32(0, NULL, 0), bytes, size)) return false;
    *record = zk_in_of(bytes, size);
    *in = rest;
    return true;
}

static bool any_record_after(struct zk_in in) {
    struct zk_in record;
    while (in.at < in.end) {
        in.at++;
        struct zk_in here = in;
        if (next_record(&here, &record)) return true;
    }
    return false;
}

/* zxids are consecutive; a new leader begins a new epoch, with counter 1. */
static bool follows(int64_t zxid, int64_t last) {
    return zxid - 1 == last || (zxid >> 32 > last >> 32 && (zxid & UINT32_MAX) == 1);
}

static const char *apply_record(struct tree *tree, struct zk_in record, struct import_log *log) {
    struct zk_in at = {record.at + ZXID_AT, record.end};
    int64_t zxid = 0;
    zk_read_i64(&at, &zxid);
    if (zxid <= tree->zxid) return NULL;
    if (!log->transactions && !follows(zxid, tree->zxid))
        return "transactions before it are missing; is a log file missing?";
    log->transactions++;
    return import_transaction(tree, record);
}

static bool fail(struct import_fault *fault, const char *why) {
    fault->why = why;
    return false;
}

bool import_log(struct tree *tree, struct zk_in file, struct import_log *log,
                struct import_fault *fault) {
    const unsigned char *begin = file.at;
    struct zk_in record;
    *fault = (struct import_fault){0};
    log->transactions = log->torn_at = 0;
    if (all_zero(&file)) return true; /* as a crash leaves it before the header is written */
    if (!import_header(&file, MAGIC))
        return fail(fault, "it is not a transaction log (wrong header)");
    for (uint32_t i = 0;; i++) {
        fault->offset = (size_t)(file.at - begin);
        if (!next_record(&file, &record)) break;
        const char *why = apply_record(tree, record, log);
        if (why) return fail(fault, why);
        if (log->progress && i % 4096 == 0) log->progress(log->context, fault->offset);
    }
    if (all_zero(&file)) return true;
    if (any_record_after(file)) return fail(fault, "it is damaged, although more records follow");
    log->torn_at = fault->offset;
    return true;
}
