/* The table of records: the functions of wire/zk/codec.h for each, behind one type of pointer. */
#include "wire/zk/zk.h"

static bool read_none(struct zk_in *in, void *record) { return (void)in, (void)record, true; }
static void write_none(struct bytes *out, const void *record) { (void)out, (void)record; }

#define FIELD(R, TYPE, NAME) {#NAME, (uint16_t)offsetof(struct zk_##R, NAME), ZK_TYPE_##TYPE},
#define PARTS(R, TITLE)                                                                            \
    static const struct zk_field R##_fields[] = {ZK_FIELDS_##R(FIELD, R)};                         \
    static bool read_##R(struct zk_in *in, void *record) { return zk_read_##R(in, record); }       \
    static void write_##R(struct bytes *out, const void *record) { zk_write_##R(out, record); }
#define PARTS_REQUEST(NAME, TITLE)  PARTS(NAME##_request, TITLE)
#define PARTS_RESPONSE(NAME, TITLE) PARTS(NAME##_response, TITLE)

ZK_PARTS(PARTS)
ZK_ENVELOPES(PARTS)
ZK_REQUESTS(PARTS_REQUEST)
ZK_RESPONSES(PARTS_RESPONSE)

#define ROW(R, TITLE)                                                                              \
    [ZK_RECORD_##R] = {.name = TITLE,                                                              \
                       .fields = R##_fields,                                                       \
                       .field_count = sizeof R##_fields / sizeof R##_fields[0],                    \
                       .size = sizeof(struct zk_##R),                                              \
                       .read = read_##R,                                                           \
                       .write = write_##R},
#define ROW_REQUEST(NAME, TITLE)  ROW(NAME##_request, TITLE)
#define ROW_RESPONSE(NAME, TITLE) ROW(NAME##_response, TITLE)

const struct zk_record zk_records[ZK_RECORD_COUNT] = {
    [ZK_RECORD_none] = {"none", NULL, 0, 0, read_none, write_none},
    ZK_PARTS(ROW) ZK_ENVELOPES(ROW) ZK_REQUESTS(ROW_REQUEST) ZK_RESPONSES(ROW_RESPONSE)};
