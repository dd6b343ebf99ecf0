/* Libraries that are loaded when they are needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/dynlib.h"

static void functions_are_found(void **state) {
    (void)state;
    double (*round_up)(double) = NULL;
    struct dynlib_symbol symbol = {"ceil", &round_up};
    assert_null(dynlib_load("libm.so.6", &symbol, 1));
    assert_true(round_up(1.5) == 2);
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    void (*missing)(void) = NULL;
    struct dynlib_symbol symbol = {"no_such_function", &missing};
    assert_non_null(strstr(dynlib_load("libm.so.6", &symbol, 1), "no_such_function"));
    assert_non_null(strstr(dynlib_load("libnone.so.9", &symbol, 1), "libnone.so.9"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_found),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
