/* Operations and errors by their numbers. */
#include "wire/zk/zk.h"

#define ROW(CONSTANT, NUMBER, NAME, LOP, KIND, REQUEST, RESPONSE, IN)                              \
    [NUMBER - ZK_OP_FIRST] = {.name = NAME,                                                        \
                              .lop = LOP,                                                          \
                              .number = NUMBER,                                                    \
                              .kind = ZK_KIND_##KIND,                                              \
                              .in = IN,                                                            \
                              .request = &zk_records[ZK_RECORD_##REQUEST],                         \
                              .response = &zk_records[ZK_RECORD_##RESPONSE]},

static const struct zk_op ops[ZK_OP_LAST - ZK_OP_FIRST + 1] = {ZK_OPS(ROW)};

const struct zk_op *zk_op_of(int32_t number) {
    if (number < ZK_OP_FIRST || number > ZK_OP_LAST) return NULL;
    const struct zk_op *op = &ops[number - ZK_OP_FIRST];
    return op->name ? op : NULL;
}

#define CASE(NAME, NUMBER)                                                                         \
    case NUMBER: return #NAME;

const char *zk_error_name(int32_t error) {
    switch (error) { ZK_ERRORS(CASE) }
    return NULL;
}
