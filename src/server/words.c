/* Four-letter words. */
#include "server/server.h"

bool word_answer(struct connection *c, const unsigned char *bytes) {
    if (memcmp(bytes, "ruok", 4) != 0) return false;
    bytes_add(&c->stream.out, "imok", 4);
    connection_end_after(c);
    return true;
}
