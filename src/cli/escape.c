/* Text that is shown on a terminal, which must not obey it. */
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/remote.h"

/* Characters that a terminal obeys, or that hide or reorder others. */
static bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
           code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) || (code >> 12) == 0xe0;
}

static void put_escaped(FILE *out, const char *from, const char *to, uint32_t code, bool broken) {
    static const char letters[] = "\aa\bb\tt\nn\vv\ff\rr";
    const char *letter = !broken && code && code < 0x20 ? strchr(letters, (int)code) : NULL;
    if (letter)
        fprintf(out, "\\%c", letter[1]);
    else if (!broken && code >= 0x80)
        fprintf(out, code > 0xffff ? "\\U%08" PRIx32 : "\\u%04" PRIx32, code);
    else
        for (; from < to; from++) fprintf(out, "\\x%02x", (unsigned char)*from);
}

void remote_put(FILE *out, const void *data, size_t size, enum remote_text how) {
    const char *text = data, *end = text + size;
    while (text < end) {
        const char *from = text;
        bool broken;
        uint32_t code = utf8_take(&text, end, &broken);
        if (how == REMOTE_NAME && code == '\\')
            fputs("\\\\", out);
        else if (broken ||
                 (is_control(code) && !(how == REMOTE_PAGE && (code == '\n' || code == '\t'))))
            put_escaped(out, from, text, code, broken);
        else
            fwrite(from, 1, (size_t)(text - from), out);
    }
}

const char *remote_name(char *buffer, size_t size, const char *text) {
    FILE *out = fmemopen(buffer, size, "w");
    if (!out) return strcpy(buffer, "?");
    setbuf(out, NULL);
    *buffer = 0; /* nothing is written for an empty text */
    remote_put(out, text, strlen(text), REMOTE_NAME);
    fclose(out);
    buffer[size - 1] = 0;
    return buffer;
}
