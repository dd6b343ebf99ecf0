/* Text from a server, and messages, in which it may be. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "cli/remote.h"

/* ---- Messages ---- */

static void say(const char *format, va_list arguments) {
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) return;
    fflush(stdout); /* what was printed before comes before */
    fputs("conclave: ", stderr);
    remote_put(stderr, text, strlen(text), REMOTE_LINE);
    fputc('\n', stderr);
    free(text);
}

int remote_say(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return exit_code(code);
}

int remote_usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return EINVAL;
}

/* ---- JSON ---- */

json_t *remote_json_data(const void *data, size_t size) {
    if (!data) return json_null();
    json_t *text = json_stringn(data, size);
    if (text) return text;
    char *encoded = malloc(4 * ((size + 2) / 3) + 1);
    if (!encoded) return json_null();
    EVP_EncodeBlock((unsigned char *)encoded, data, (int)size);
    json_t *object = json_pack("{s:s}", "base64", encoded);
    free(encoded);
    return object;
}

json_t *remote_json_name(const char *text) {
    json_t *string = json_string(text);
    char *escaped = NULL;
    size_t size;
    FILE *out = string ? NULL : open_memstream(&escaped, &size);
    if (!out) return string ? string : json_null();
    remote_put(out, text, strlen(text), REMOTE_NAME);
    fclose(out);
    string = json_string(escaped);
    free(escaped);
    return string;
}

json_t *remote_json_stat(const struct cv_stat *stat) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:I, s:i, s:i}", "czxid",
                     (json_int_t)stat->czxid, "mzxid", (json_int_t)stat->mzxid, "pzxid",
                     (json_int_t)stat->pzxid, "ctime", (json_int_t)stat->ctime, "mtime",
                     (json_int_t)stat->mtime, "version", stat->version, "cversion", stat->cversion,
                     "aversion", stat->aversion, "ephemeral_owner",
                     (json_int_t)stat->ephemeral_owner, "data_length", stat->data_length,
                     "children", stat->children);
}

void remote_json_line(json_t *report) {
    if (json_dumpf(report, stdout, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
        system_error("the report cannot be written: %s", strerror(errno));
    putchar('\n');
    fflush(stdout);
    json_decref(report);
}
