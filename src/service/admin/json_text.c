/* Strings of JSON from bytes of anybody: names, data, labels. */
#include <string.h>

#include "base/utf8.h"
#include "service/admin/internal.h"

/* Beside what JSON demands, nothing is written that could end a script or an attribute of HTML,
 * or a line of JavaScript. */
static bool is_escaped(uint32_t code) {
    return code < 0x20 || (code < 0x80 && strchr("\"\\<>&'", (int)code)) || code == 0x7f ||
           code == 0x2028 || code == 0x2029;
}

static void add_escape(struct bytes *out, uint32_t code) {
    static const char digits[] = "0123456789abcdef";
    char escape[6] = {'\\',
                      'u',
                      digits[code >> 12 & 15],
                      digits[code >> 8 & 15],
                      digits[code >> 4 & 15],
                      digits[code & 15]};
    bytes_add(out, escape, sizeof escape);
}

void json_add_text(struct bytes *out, struct zk_text text) {
    const char *at = text.at, *end = text.at + (text.size > 0 ? text.size : 0), *plain = at;
    bool broken;
    if (text.size < 0) {
        bytes_add(out, "null", 4);
        return;
    }
    bytes_add(out, "\"", 1);
    while (at < end) {
        const char *from = at;
        uint32_t code = utf8_take(&at, end, &broken);
        if (!broken && !is_escaped(code)) continue;
        bytes_add(out, plain, (size_t)(from - plain));
        add_escape(out, broken ? UTF8_BROKEN : code);
        plain = at;
    }
    bytes_add(out, plain, (size_t)(end - plain));
    bytes_add(out, "\"", 1);
}
