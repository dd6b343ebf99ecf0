/* Strings of JSON from any bytes: what is written is JSON, means the same, and harms no page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "service/admin/internal.h"

static void writes(const char *text, size_t size, const char *wanted) {
    struct bytes out = {0};
    json_add_text(&out, (struct zk_text){text, (int32_t)size});
    bytes_add(&out, "", 1);
    assert_string_equal((char *)out.at, wanted);
    bytes_close(&out);
}

static void texts(void **state) {
    (void)state;
    writes("", 0, "\"\"");
    writes(NULL, (size_t)-1, "null");
    writes("plain", 5, "\"plain\"");
    writes("a\0b", 3, "\"a\\u0000b\"");
    writes("\"\\\n\x7f", 4, "\"\\u0022\\u005c\\u000a\\u007f\"");
    writes("</script>", 9, "\"\\u003c/script\\u003e\"");
    writes("<img src=x onerror='f'&>", 24,
           "\"\\u003cimg src=x onerror=\\u0027f\\u0027\\u0026\\u003e\"");
    writes("\xc3\xa7\xf0\x9f\x94\x92", 6, "\"\xc3\xa7\xf0\x9f\x94\x92\"");
    writes("\xe2\x80\xa8", 3, "\"\\u2028\"");
    writes("a\xff\x80z", 4, "\"a\\ufffd\\ufffdz\"");
    writes("\xc3", 1, "\"\\ufffd\"");              /* cut off */
    writes("\xed\xa0\x80", 3, "\"\\ufffd\"");      /* a surrogate */
    writes("\xc0\xaf", 2, "\"\\ufffd\"");          /* longer than need be */
    writes("\xef\xbf\xbd", 3, "\"\xef\xbf\xbd\""); /* that is no mistake */
}

/* Whatever the bytes are, a parser takes it, and no byte is one that HTML obeys. */
static void any_bytes(void **state) {
    struct rng rng;
    char text[64];
    (void)state;
    rng_seed(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        struct bytes out = {0};
        json_error_t error;
        size_t size = rng_below(&rng, sizeof text);
        for (size_t j = 0; j < size; j++)
            text[j] =
                (char)(rng_below(&rng, 2) ? rng_below(&rng, 256) : 0x80 + rng_below(&rng, 80));
        json_add_text(&out, (struct zk_text){text, (int32_t)size});
        json_t *read =
            json_loadb((char *)out.at, out.used, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        assert_non_null(read);
        assert_true(json_is_string(read));
        for (size_t j = 0; j < out.used; j++)
            assert_true(out.at[j] >= 0x20 && !strchr("<>&'", out.at[j]));
        json_decref(read);
        bytes_close(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
