/* Any bytes as frames between servers, of every version: what is read is written and read again,
 * with the same result, and only the fields are taken from the input.
 *
 *   version: one byte; type of the frame: one byte; the frame
 *
 *   make fuzz F=codec */
#include "service/ensemble/codec.h"
#include "wire/net/link.h"

enum { FROM_ID = 1, TO_ID = 2 };

static struct bytes written;

/* What was written is read to its end. */
static struct zk_in read_again(void) { return zk_in_of(written.at, written.used); }

static void check_end(const struct zk_in *in) { cv_assert(zk_left(in) == 0); }

static void try_message(struct zk_in in, uint16_t version) {
    struct raft_message m, again;
    const unsigned char *begin = in.at, *end = in.end;
    if (!codec_read_message(&in, version, FROM_ID, TO_ID, &m)) return;
    cv_assert(in.end == end && in.at > begin && in.at <= end);
    cv_assert(m.from == FROM_ID && m.to == TO_ID && m.type && m.type < RAFT_MESSAGE_TYPES);
    codec_write_message(&written, version, &m);
    cv_assert(written.used == (size_t)(in.at - begin));
    if (version >= 3) cv_assert(memcmp(written.at, begin, written.used) == 0);
    struct zk_in rest = read_again();
    cv_assert(codec_read_message(&rest, version, FROM_ID, TO_ID, &again));
    check_end(&rest);
    cv_assert(memcmp(&m, &again, sizeof m) == 0);
}

#define TRY_FRAME(TYPE, NAME)                                                                      \
    static void try_##NAME(struct zk_in in, uint16_t version) {                                    \
        struct frame_##NAME frame, again;                                                          \
        const unsigned char *begin = in.at, *end = in.end;                                         \
        if (!codec_read_##NAME(&in, version, &frame)) return;                                      \
        cv_assert(in.end == end && in.at >= begin && in.at <= end);                                \
        codec_write_##NAME(&written, version, &frame);                                             \
        cv_assert(written.used == (size_t)(in.at - begin));                                        \
        cv_assert(!written.used || memcmp(written.at, begin, written.used) == 0);                  \
        struct zk_in rest = read_again();                                                          \
        cv_assert(codec_read_##NAME(&rest, version, &again));                                      \
        check_end(&rest);                                                                          \
        cv_assert(memcmp(&frame, &again, sizeof frame) == 0);                                      \
    }
FRAMES(TRY_FRAME)

/* The payload of touch_sessions. */
static void try_numbers(struct zk_in in, uint16_t version) {
    struct zk_in rest = in;
    uint64_t number;
    while (codec_read_u64(&rest, version, &number)) codec_write_u64(&written, version, number);
    cv_assert(zk_left(&rest) < sizeof number && written.used == zk_left(&in) - zk_left(&rest));
    cv_assert(!written.used || memcmp(written.at, in.at, written.used) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size < 2) return 0;
    uint16_t version =
        LINK_VERSION_OLDEST + bytes[0] % (LINK_VERSION_NEWEST - LINK_VERSION_OLDEST + 1);
    struct zk_in in = zk_in_of(bytes + 2, size - 2);
    written.used = 0;
    switch (bytes[1]) {
    case 0: try_numbers(in, version); break;
    case FRAME_MESSAGE: try_message(in, version); break;
#define TRY(TYPE, NAME)                                                                            \
    case TYPE: try_##NAME(in, version); break;
        FRAMES(TRY)
    }
    return 0;
}
