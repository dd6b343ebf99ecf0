#include <endian.h>

#include "base/crc32c.h"
#include "wire/net/internal.h"

/* "CVPEER", version (2 bytes), ensemble, from, to, incarnation (8 each), verdict, checksum (4
 * each); little-endian.  This layout is the same in all versions. */

enum { DIRECTORY_SINCE = 4 }; /* version */
enum { VERSION_AT = 6, NUMBERS_AT = 8, VERDICT_AT = 40, CHECKSUM_AT = 44 };
static const char magic[] = {'C', 'V', 'P', 'E', 'E', 'R'};

struct hello hello_of(const struct links *links, uint64_t to, uint16_t version,
                      enum hello_verdict verdict) {
    return (struct hello){.version = version,
                          .ensemble = links->config.ensemble,
                          .from = links->config.id,
                          .to = to,
                          .incarnation = links->config.incarnation,
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

uint16_t hello_answer(const struct links *links, uint16_t offered) {
    const struct links_config *config = &links->config;
    if (offered < config->version_oldest) return config->version_oldest;
    return offered < config->version_newest ? offered : config->version_newest;
}

/* A server that is started again takes the place of the process before, whose link may not have
 * ended yet.  If that process comes back, both run: one has a copy of the other's data.  The elder
 * stays, as long as it is heard. */
static bool is_twice(const struct links *links, const struct hello *hello) {
    enum { HEARD_MS = 10000 };
    const struct incoming *here = incoming_find(links, hello->from);
    return here && here->came_back && here->replaced == hello->incarnation &&
           uv_now(links->config.loop) - here->heard_ms < HEARD_MS;
}

/* That of the servers on the other ends of links; 0: none of them knows it. */
static uint64_t ensemble_of_links(const struct links *links) {
    for (const struct incoming *i = links->incoming; i; i = i->next)
        if (i->ensemble) return i->ensemble;
    for (const struct peer *peer = links->peers; peer; peer = peer->next)
        if (peer_link(peer) && peer_link(peer)->ensemble) return peer_link(peer)->ensemble;
    return 0;
}

enum hello_verdict hello_judge(const struct links *links, const struct hello *hello) {
    if (hello->version < links->config.version_oldest) return HELLO_OTHER_VERSION;
    uint64_t own = links->config.ensemble ? links->config.ensemble : ensemble_of_links(links);
    if (hello->ensemble && own && hello->ensemble != own) return HELLO_OTHER_ENSEMBLE;
    if (hello->to != links->config.id) return HELLO_OTHER_SERVER;
    if (hello->from == links->config.id) return HELLO_OWN_ID;
    if (is_twice(links, hello)) return HELLO_TWICE;
    uint32_t directory =
        hello->version < DIRECTORY_SINCE ? 0 : (uint32_t)(hello->incarnation >> 32);
    if (links->config.is_expected &&
        !links->config.is_expected(links->config.owner, hello->from, hello->ensemble, directory))
        return HELLO_OTHER_DIRECTORY;
    return HELLO_WELCOME;
}

const char *hello_verdict_text(uint32_t verdict) {
    switch (verdict) {
    case HELLO_WELCOME: return "the link was accepted";
    case HELLO_OTHER_VERSION:
        return "the two servers have no version of the protocol in common; upgrade the older one";
    case HELLO_OTHER_ENSEMBLE:
        return "the two servers belong to different ensembles; correct the address of the one that "
               "was dialed";
    case HELLO_OTHER_SERVER:
        return "the server at the dialed address has another id; make the lists of members agree "
               "on ids and addresses";
    case HELLO_OWN_ID: return "both servers have the same id; give each server its own";
    case HELLO_OTHER_DIRECTORY:
        return "a member has come with another data directory than the one it became a member "
               "with, so what it had acknowledged may be lost; bring the directory back, or remove "
               "the member and add it again ('conclave ensemble remove', 'add')";
    case HELLO_TWICE:
        return "two processes run as that server, one with a copy of the other's data; the one "
               "that was there first is believed, so stop the other";
    case HELLO_TOO_MANY:
        return "the dialed server has too many links from other servers; stop those that are not "
               "members";
    default:
        return "the other server refused for a reason that this version does not know; see its log";
    }
}

uint32_t frame_checksum(const struct frame_header *header, const unsigned char *body, size_t size) {
    return crc32c(crc32c(0, header, offsetof(struct frame_header, checksum)), body, size);
}
