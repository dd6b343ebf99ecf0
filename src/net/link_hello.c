#include <endian.h>

#include "base/crc32c.h"
#include "net/link_parts.h"

/* "CVPEER", version (2 bytes), ensemble, from, to, incarnation (8 each), verdict, checksum (4
 * each); little-endian.  What another version says has the same size, magic, version and verdict.
 */

enum { VERSION = 2, VERSION_AT = 6, NUMBERS_AT = 8, VERDICT_AT = 40, CHECKSUM_AT = 44 };
static const char magic[] = {'C', 'V', 'P', 'E', 'E', 'R'};

struct hello hello_of(const struct links *links, uint64_t to, enum hello_verdict verdict) {
    return (struct hello){.version = VERSION,
                          .ensemble = links->is.ensemble,
                          .from = links->is.id,
                          .to = to,
                          .incarnation = links->is.incarnation,
                          .verdict = verdict};
}

void hello_write(struct bytes *out, const struct hello *hello) {
    unsigned char *to = bytes_extend(out, HELLO_SIZE);
    uint16_t version = htole16(hello->version);
    uint64_t numbers[] = {htole64(hello->ensemble), htole64(hello->from), htole64(hello->to),
                          htole64(hello->incarnation)};
    uint32_t verdict = htole32(hello->verdict);
    memcpy(to, magic, sizeof magic);
    memcpy(to + VERSION_AT, &version, sizeof version);
    memcpy(to + NUMBERS_AT, numbers, sizeof numbers);
    memcpy(to + VERDICT_AT, &verdict, sizeof verdict);
    uint32_t checksum = htole32(crc32c(0, to, CHECKSUM_AT));
    memcpy(to + CHECKSUM_AT, &checksum, sizeof checksum);
}

bool hello_read(const unsigned char *bytes, struct hello *hello) {
    uint16_t version;
    uint64_t numbers[4];
    uint32_t verdict, checksum;
    memcpy(&version, bytes + VERSION_AT, sizeof version);
    memcpy(numbers, bytes + NUMBERS_AT, sizeof numbers);
    memcpy(&verdict, bytes + VERDICT_AT, sizeof verdict);
    memcpy(&checksum, bytes + CHECKSUM_AT, sizeof checksum);
    *hello = (struct hello){.version = le16toh(version),
                            .ensemble = le64toh(numbers[0]),
                            .from = le64toh(numbers[1]),
                            .to = le64toh(numbers[2]),
                            .incarnation = le64toh(numbers[3]),
                            .verdict = le32toh(verdict)};
    return memcmp(bytes, magic, sizeof magic) == 0 &&
           le32toh(checksum) == crc32c(0, bytes, CHECKSUM_AT);
}

enum hello_verdict hello_judge(const struct links *links, const struct hello *hello) {
    if (hello->version != VERSION) return HELLO_OTHER_VERSION;
    if (hello->ensemble != links->is.ensemble) return HELLO_OTHER_ENSEMBLE;
    if (hello->to != links->is.id) return HELLO_OTHER_SERVER;
    if (hello->from == links->is.id) return HELLO_OWN_ID;
    return HELLO_WELCOME;
}

const char *hello_says(uint32_t verdict) {
    switch (verdict) {
    case HELLO_WELCOME: return "all is well";
    case HELLO_OTHER_VERSION: return "the two speak different versions of the protocol";
    case HELLO_OTHER_ENSEMBLE: return "the two are not of the same ensemble";
    case HELLO_OTHER_SERVER: return "that is the address of another server";
    case HELLO_OWN_ID: return "both have the same id";
    case HELLO_TOO_MANY: return "too many servers are connected";
    default: return "the reason is one that this version does not know";
    }
}

uint32_t frame_checksum(const struct frame_header *header, const unsigned char *body, size_t size) {
    return crc32c(crc32c(0, header, offsetof(struct frame_header, checksum)), body, size);
}
