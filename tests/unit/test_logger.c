/* The log: levels, both formats, and values that come from nobody knows whom. */
#include "base/logger.h"

#include <jansson.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char written[4 * LOGGER_LINE_MAX];
static size_t lines;

static void keep(void *arg, const char *line, size_t size) {
    (void)arg;
    assert_int_equal(strlen(line), size);
    assert_true(size < LOGGER_LINE_MAX);
    assert_ptr_equal(strchr(line, '\n'), line + size - 1); /* one event is one line */
    strcpy(written, line);
    lines++;
}

static int begin(void **state) {
    (void)state;
    logger_set_output(keep, NULL);
    logger_set(LOGGER_INFO, LOGGER_FORMAT_TEXT);
    *written = 0;
    lines = 0;
    return 0;
}

/* What was written behind the time and a space, without the newline. */
static const char *behind_time(void) {
    size_t size = strlen(written);
    assert_true(size > 25 && written[23] == 'Z' && written[24] == ' ');
    written[size - 1] = 0;
    return written + 25;
}

static const char *text_of(const char *value) {
    logger_info("m", LOGGER_STRING("v", value));
    const char *text = behind_time();
    assert_memory_equal(text, "info m v=", 9);
    return text + 9;
}

/* The value as a reader of JSON gets it back; the caller frees it. */
static json_t *json_of_line(void) {
    json_error_t error;
    json_t *json = json_loads(written, JSON_REJECT_DUPLICATES, &error);
    if (!json) fail_msg("%s: %s", error.text, written);
    return json;
}

static void json_is(const char *value, const char *wanted) {
    logger_info("m", LOGGER_STRING("v", value));
    json_t *json = json_of_line();
    assert_string_equal(json_string_value(json_object_get(json, "v")), wanted);
    json_decref(json);
}

/* ---- Levels ---- */

static void test_levels(void **state) {
    (void)state;
    for (int level = LOGGER_ERROR; level <= LOGGER_DEBUG; level++) {
        logger_set((enum logger_level)level, LOGGER_FORMAT_TEXT);
        lines = 0;
        logger_error("e");
        logger_warning("w");
        logger_info("i");
        logger_debug("d");
        assert_int_equal(lines, level + 1);
    }
    assert_string_equal(behind_time(), "debug d");
}

static void test_names(void **state) {
    (void)state;
    enum logger_level level = LOGGER_WARNING;
    enum logger_format format = LOGGER_FORMAT_JSON;
    assert_false(logger_parse_level("", &level) || logger_parse_level("INFO", &level) ||
                 logger_parse_level("information", &level));
    assert_false(logger_parse_format("", &format) || logger_parse_format("xml", &format));
    assert_true(level == LOGGER_WARNING && format == LOGGER_FORMAT_JSON);
    for (int i = LOGGER_ERROR; i <= LOGGER_DEBUG; i++) {
        assert_true(logger_parse_level(logger_level_name((enum logger_level)i), &level));
        assert_int_equal(level, i);
    }
    assert_true(logger_parse_format("text", &format) && format == LOGGER_FORMAT_TEXT);
    assert_true(logger_parse_format("json", &format) && format == LOGGER_FORMAT_JSON);
}

/* ---- Formats ---- */

static void test_text(void **state) {
    (void)state;
    regex_t time;
    logger_warning("a session expired", LOGGER_HEX("session", INT64_MIN), LOGGER_INT("from", -5),
                   LOGGER_UINT("to", UINT64_MAX), LOGGER_STRING("by", "1.2.3.4"));
    assert_int_equal(regcomp(&time,
                             "^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\."
                             "[0-9]{3}Z warning ",
                             REG_EXTENDED | REG_NOSUB),
                     0);
    assert_int_equal(regexec(&time, written, 0, NULL, 0), 0);
    regfree(&time);
    assert_string_equal(behind_time(), "warning a session expired session=0x8000000000000000 "
                                       "from=-5 to=18446744073709551615 by=1.2.3.4");
}

static void test_json(void **state) {
    (void)state;
    const char *key;
    json_t *value;
    char keys[64] = "";
    logger_set(LOGGER_INFO, LOGGER_FORMAT_JSON);
    logger_error("it \"failed\"", LOGGER_HEX("session", 255), LOGGER_INT("from", -5),
                 LOGGER_UINT("to", 7), LOGGER_STRING("by", NULL));
    json_t *json = json_of_line();
    json_object_foreach(json, key, value) strcat(strcat(keys, key), " ");
    assert_string_equal(keys, "time level message session from to by ");
    assert_int_equal(strlen(json_string_value(json_object_get(json, "time"))), 24);
    assert_string_equal(json_string_value(json_object_get(json, "level")), "error");
    assert_string_equal(json_string_value(json_object_get(json, "message")), "it \"failed\"");
    assert_string_equal(json_string_value(json_object_get(json, "session")), "0xff");
    assert_int_equal(json_integer_value(json_object_get(json, "from")), -5);
    assert_int_equal(json_integer_value(json_object_get(json, "to")), 7);
    assert_string_equal(json_string_value(json_object_get(json, "by")), "");
    json_decref(json);
}

static void test_describe(void **state) {
    (void)state;
    char line[LOGGER_LINE_MAX];
    const struct logger_field fields[] = {LOGGER_INT("n", 1), LOGGER_STRING("s", "a b")};
    assert_int_equal(logger_describe(line, "it is so", fields, 2), 20);
    assert_string_equal(line, "it is so n=1 s=\"a b\"");
    assert_int_equal(lines, 0);
}

/* ---- Values ---- */

static void test_quoting(void **state) {
    (void)state;
    assert_string_equal(text_of("/data/log.1:[::1]"), "/data/log.1:[::1]");
    assert_string_equal(text_of(""), "\"\"");
    assert_string_equal(text_of(NULL), "\"\"");
    assert_string_equal(text_of("two words"), "\"two words\"");
    assert_string_equal(text_of("a=b"), "\"a=b\"");
    assert_string_equal(text_of("a\"b"), "\"a\\\"b\"");
    assert_string_equal(text_of("a\\b"), "\"a\\\\b\"");
    assert_string_equal(text_of("Z\xc3\xbcrich \xf0\x9f\x94\x92"),
                        "\"Z\xc3\xbcrich \xf0\x9f\x94\x92\"");
}

static void test_hostile_text(void **state) {
    (void)state;
    assert_string_equal(text_of("x\n2026 error fake"), "\"x\\n2026 error fake\"");
    assert_string_equal(text_of("\r\t\033[2J\a\x7f"), "\"\\r\\t\\u001b[2J\\u0007\\u007f\"");
    assert_string_equal(text_of("\xc2\x9b"), "\"\\u009b\"");             /* CSI in one letter */
    assert_string_equal(text_of("\xe2\x80\xae"), "\"\\u202e\"");         /* from right to left */
    assert_string_equal(text_of("\x9b\xff\xc3"), "\"\\x9b\\xff\\xc3\""); /* of no letter */
    assert_string_equal(text_of("\xc0\x9b"), "\"\\xc0\\x9b\"");          /* longer than need be */
}

static void test_hostile_json(void **state) {
    (void)state;
    logger_set(LOGGER_INFO, LOGGER_FORMAT_JSON);
    json_is("x\",\"level\":\"error", "x\",\"level\":\"error");
    json_is("a\\b\n\r\t\033\x7f", "a\\b\n\r\t\033\x7f");
    json_is("\xc2\x9b Z\xc3\xbcrich", "\xc2\x9b Z\xc3\xbcrich");
    json_is("\xff!", "\xef\xbf\xbd!");
    json_is("\xc0\x9b", "\xef\xbf\xbd");
}

/* Every byte, every pair of them: nothing but letters comes out, and JSON stays JSON. */
static void test_all_bytes(void **state) {
    (void)state;
    for (unsigned pair = 1; pair < 0x10000; pair++) {
        char value[3] = {(char)(pair & 0xff), (char)(pair >> 8), 0};
        bool json = pair & 1;
        logger_set(LOGGER_INFO, json ? LOGGER_FORMAT_JSON : LOGGER_FORMAT_TEXT);
        logger_info("m", LOGGER_STRING("v", value));
        for (const unsigned char *at = (unsigned char *)written; *at != '\n'; at++) {
            assert_true(*at >= ' ' && *at != 0x7f);
            if (*at == 0xc2) assert_true(at[1] >= 0xa0);
        }
        if (json) json_decref(json_of_line());
    }
}

static void test_long_values(void **state) {
    (void)state;
    static char longest[100000];
    static const char *const letters[] = {"a", "\n", "\xff", "\xc3\xbc", "\""};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
        size_t size = strlen(letters[i]);
        for (size_t at = 0; at + size < sizeof longest; at += size)
            memcpy(longest + at, letters[i], size + 1);
        logger_set(LOGGER_INFO, LOGGER_FORMAT_TEXT);
        const char *text = text_of(longest);
        assert_true(strlen(text) <= LOGGER_VALUE_MAX && strlen(text) > LOGGER_VALUE_MAX - 40);
        assert_string_equal(text + strlen(text) - 4, "...\"");
        logger_set(LOGGER_INFO, LOGGER_FORMAT_JSON);
        logger_info("m", LOGGER_STRING("a", longest), LOGGER_STRING("b", longest),
                    LOGGER_STRING("c", longest), LOGGER_INT("d", 4));
        json_t *json = json_of_line(); /* one too many for the line is left out as a whole */
        assert_true(json_object_get(json, "a") && json_object_get(json, "b"));
        assert_null(json_object_get(json, "c"));
        assert_int_equal(json_integer_value(json_object_get(json, "d")), 4);
        json_decref(json);
    }
}

/* Whatever the sizes are, a line is never longer than it may be. */
static void test_full_lines(void **state) {
    (void)state;
    static char value[1400];
    for (size_t size = 1100; size < sizeof value - 1; size++) {
        memset(value, 'v', size);
        value[size] = 0;
        for (int format = LOGGER_FORMAT_TEXT; format <= LOGGER_FORMAT_JSON; format++) {
            logger_set(LOGGER_INFO, (enum logger_format)format);
            logger_info("m", LOGGER_STRING("a", value), LOGGER_STRING("b", value),
                        LOGGER_STRING("c", value), LOGGER_INT("d", INT64_MIN));
            if (format == LOGGER_FORMAT_JSON) json_decref(json_of_line());
        }
    }
}

int main(void) {
#define LOG(TEST) cmocka_unit_test_setup(TEST, begin)
    const struct CMUnitTest tests[] = {
        LOG(test_levels),    LOG(test_names),       LOG(test_text),         LOG(test_json),
        LOG(test_describe),  LOG(test_quoting),     LOG(test_hostile_text), LOG(test_hostile_json),
        LOG(test_all_bytes), LOG(test_long_values), LOG(test_full_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
