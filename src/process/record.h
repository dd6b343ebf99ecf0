/* Records: states and messages, described once.
 *
 * A record is a head of fields and, for some, rows that follow it.  The description, written as one
 * list of fields, makes the C struct and the table that serves the printed trace, JSON, the wire
 * and the checker's symmetry.  The struct has no padding (checked here), so its bytes are its
 * value. */
#ifndef CV_RECORD_H
#define CV_RECORD_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t cv_pid;
enum { CV_NOBODY = 0 };

struct cv_queue { /* processes in order; see process/queue.h */
    cv_pid first, last;
};
struct cv_link { /* a row's place in the queue; all zero when it is in none */
    cv_pid next, prev;
};

enum cv_type { CV_U8, CV_U16, CV_U32, CV_U64, CV_PID, CV_QUEUE, CV_LINK };
/* Who wants to see a field. */
enum cv_audience {
    CV_INNER, /* nobody but a debugger */
    CV_SHOWN, /* a reader of the trace */
};

struct cv_field {
    const char *name;
    uint16_t offset;
    uint8_t type, audience;
    const char *values; /* names for 0, 1, ... as "no|yes"; NULL: a number is a number */
};

struct cv_record {
    const char *name;
    const struct cv_field *fields, *row_fields;
    uint16_t field_count, size;
    uint16_t row_field_count, row_size;
};

/* #define GRANT_FIELDS(F, R) F(R, u32, number, SHOWN) F(R, u64, fence, SHOWN)
 * CV_RECORD(grant, GRANT_FIELDS);     struct grant and its table
 * CV_TABLE("GRANT", grant)            a cv_record without rows
 * CV_TABLE_ROWS("state", head, row)   one with rows */
#define CV_CTYPE_u8    uint8_t
#define CV_CTYPE_u16   uint16_t
#define CV_CTYPE_u32   uint32_t
#define CV_CTYPE_u64   uint64_t
#define CV_CTYPE_pid   cv_pid
#define CV_CTYPE_queue struct cv_queue
#define CV_CTYPE_link  struct cv_link
#define CV_TAG_u8      CV_U8
#define CV_TAG_u16     CV_U16
#define CV_TAG_u32     CV_U32
#define CV_TAG_u64     CV_U64
#define CV_TAG_pid     CV_PID
#define CV_TAG_queue   CV_QUEUE
#define CV_TAG_link    CV_LINK

#define CV_MEMBER_(R, TYPE, NAME, AUDIENCE) CV_CTYPE_##TYPE NAME;
#define CV_SIZE_(R, TYPE, NAME, AUDIENCE)   +sizeof(CV_CTYPE_##TYPE)
#define CV_FIELD_(R, TYPE, NAME, AUDIENCE)                                                         \
    {#NAME, (uint16_t)offsetof(struct R, NAME), CV_TAG_##TYPE, CV_FOR_##AUDIENCE},
#define CV_FOR_INNER         CV_INNER, NULL
#define CV_FOR_SHOWN         CV_SHOWN, NULL
#define CV_FOR_NAMED(VALUES) CV_SHOWN, VALUES /* F(R, u32, phase, NAMED("idle|waiting")) */
#define CV_RECORD(R, LIST)                                                                         \
    struct R {                                                                                     \
        LIST(CV_MEMBER_, R)                                                                        \
    };                                                                                             \
    _Static_assert(sizeof(struct R) == 0 LIST(CV_SIZE_, R), #R " has no padding");                 \
    static const struct cv_field R##_fields[] = {LIST(CV_FIELD_, R)}

#define CV_COUNT_(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])
#define CV_TABLE(NAME, R)                                                                          \
    { NAME, R##_fields, NULL, CV_COUNT_(R##_fields), sizeof(struct R), 0, 0 }
#define CV_TABLE_ROWS(NAME, R, ROW)                                                                \
    {                                                                                              \
        NAME, R##_fields, ROW##_fields, CV_COUNT_(R##_fields), sizeof(struct R),                   \
            CV_COUNT_(ROW##_fields), sizeof(struct ROW)                                            \
    }

#endif
