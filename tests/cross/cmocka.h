/* As much of cmocka as the unit tests use, in one header, for machines that only a cross compiler
 * knows.  The first assertion that fails ends the program. */
#ifndef TESTS_CROSS_CMOCKA_H
#define TESTS_CROSS_CMOCKA_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*CMUnitTestFunction)(void **state);
struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    int (*setup_func)(void **state), (*teardown_func)(void **state);
    void *initial_state;
};

#define cmocka_unit_test(TEST)                                                                     \
    { #TEST, TEST, NULL, NULL, NULL }
#define cmocka_unit_test_prestate(TEST, STATE)                                                     \
    { #TEST, TEST, NULL, NULL, STATE }
#define cmocka_unit_test_setup(TEST, SETUP)                                                        \
    { #TEST, TEST, SETUP, NULL, NULL }
#define cmocka_unit_test_setup_teardown(TEST, SETUP, AFTER)                                        \
    { #TEST, TEST, SETUP, AFTER, NULL }
#define cmocka_run_group_tests_name(NAME, TESTS, SETUP, AFTER)                                     \
    _cmocka_run_group_tests(NAME, TESTS, sizeof(TESTS) / sizeof *(TESTS), SETUP, AFTER)
#define cmocka_run_group_tests(TESTS, SETUP, AFTER)                                                \
    _cmocka_run_group_tests(#TESTS, TESTS, sizeof(TESTS) / sizeof *(TESTS), SETUP, AFTER)

#define print_message(...) printf(__VA_ARGS__)
#define print_error(...)   printf(__VA_ARGS__)
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf("%s:%d: ", __FILE__, __LINE__);                                                     \
        printf(__VA_ARGS__);                                                                       \
        puts("");                                                                                  \
        exit(1);                                                                                   \
    } while (0)

/* As in cmocka, integers of all kinds are compared as the widest. */
#define CROSS_INTEGER(VALUE) ((uintmax_t)(VALUE))
#define CROSS_POINTER(VALUE) ((uintmax_t)(uintptr_t)(VALUE))

#define assert_true(VALUE)  cross_hold((VALUE) ? 1 : 0, #VALUE, __FILE__, __LINE__)
#define assert_false(VALUE) cross_hold((VALUE) ? 0 : 1, "not " #VALUE, __FILE__, __LINE__)
#define assert_null(VALUE)  cross_hold((VALUE) == NULL, #VALUE " is null", __FILE__, __LINE__)
#define assert_non_null(VALUE)                                                                     \
    cross_hold((VALUE) != NULL, #VALUE " is not null", __FILE__, __LINE__)
#define assert_int_equal(A, B)                                                                     \
    cross_equal(CROSS_INTEGER(A), CROSS_INTEGER(B), 1, #A, #B, __FILE__, __LINE__)
#define assert_int_not_equal(A, B)                                                                 \
    cross_equal(CROSS_INTEGER(A), CROSS_INTEGER(B), 0, #A, #B, __FILE__, __LINE__)
#define assert_ptr_equal(A, B)                                                                     \
    cross_equal(CROSS_POINTER(A), CROSS_POINTER(B), 1, #A, #B, __FILE__, __LINE__)
#define assert_in_range(VALUE, MIN, MAX)                                                           \
    cross_in_range(CROSS_INTEGER(VALUE), CROSS_INTEGER(MIN), CROSS_INTEGER(MAX), #VALUE, __FILE__, \
                   __LINE__)
#define assert_string_equal(A, B)           cross_strings(A, B, 1, __FILE__, __LINE__)
#define assert_string_not_equal(A, B)       cross_strings(A, B, 0, __FILE__, __LINE__)
#define assert_memory_equal(A, B, SIZE)     cross_bytes(A, B, SIZE, 1, __FILE__, __LINE__)
#define assert_memory_not_equal(A, B, SIZE) cross_bytes(A, B, SIZE, 0, __FILE__, __LINE__)

static inline void cross_hold(int holds, const char *what, const char *file, int line) {
    if (holds) return;
    printf("%s:%d: it does not hold that %s\n", file, line, what);
    exit(1);
}

static inline void cross_equal(uintmax_t a, uintmax_t b, int equal, const char *a_text,
                               const char *b_text, const char *file, int line) {
    if ((a == b) == equal) return;
    printf("%s:%d: %s is %" PRIdMAX ", %s is %" PRIdMAX "\n", file, line, a_text, (intmax_t)a,
           b_text, (intmax_t)b);
    exit(1);
}

static inline void cross_in_range(uintmax_t value, uintmax_t min, uintmax_t max, const char *text,
                                  const char *file, int line) {
    if (value >= min && value <= max) return;
    printf("%s:%d: %s is %" PRIuMAX ", not %" PRIuMAX " to %" PRIuMAX "\n", file, line, text, value,
           min, max);
    exit(1);
}

static inline void cross_strings(const char *a, const char *b, int equal, const char *file,
                                 int line) {
    if ((strcmp(a, b) == 0) == equal) return;
    printf("%s:%d: \"%s\" %s \"%s\"\n", file, line, a, equal ? "is not" : "is", b);
    exit(1);
}

static inline void cross_bytes(const void *a, const void *b, size_t size, int equal,
                               const char *file, int line) {
    if ((memcmp(a, b, size) == 0) == equal) return;
    printf("%s:%d: %zu bytes are %s\n", file, line, size, equal ? "not equal" : "equal");
    exit(1);
}

static inline int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests,
                                          size_t count, int (*setup)(void **),
                                          int (*teardown)(void **)) {
    void *shared = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (setup && setup(&shared)) return 1;
    for (size_t i = 0; i < count; i++) {
        void *state = tests[i].initial_state ? tests[i].initial_state : shared;
        printf("[ RUN      ] %s\n", tests[i].name);
        if (tests[i].setup_func && tests[i].setup_func(&state)) return 1;
        tests[i].test_func(&state);
        if (tests[i].teardown_func && tests[i].teardown_func(&state)) return 1;
    }
    if (teardown && teardown(&shared)) return 1;
    printf("%s: %zu passed\n", group, count);
    return 0;
}

#endif
