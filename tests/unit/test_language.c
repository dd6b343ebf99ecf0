/* The laboratory's language: how it is chosen, and what every translation must keep of its English.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language/language.h"

static void set(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static enum language from(const char *all, const char *messages, const char *lang) {
    set("LC_ALL", all);
    set("LC_MESSAGES", messages);
    set("LANG", lang);
    return language_of_environment();
}

static void the_environment_chooses(void **state) {
    (void)state;
    assert_int_equal(from(NULL, NULL, NULL), ENGLISH);
    assert_int_equal(from(NULL, NULL, "pt_BR.UTF-8"), PORTUGUESE);
    assert_int_equal(from(NULL, "pt", "en_GB.UTF-8"), PORTUGUESE);
    assert_int_equal(from("C", "pt_PT", "pt_PT"), ENGLISH);
    assert_int_equal(from("pt_PT@euro", "C", "C"), PORTUGUESE);
    assert_int_equal(from("", "", "pt"), PORTUGUESE);
    assert_int_equal(from(NULL, "de_AT.UTF-8", "pt"), ENGLISH);
    from(NULL, NULL, NULL);
}

static void a_language_has_a_name(void **state) {
    enum language language = ENGLISH;
    (void)state;
    assert_int_equal(language_parse("pt", &language), 0);
    assert_int_equal(language, PORTUGUESE);
    assert_int_equal(language_parse("en_US", &language), 0);
    assert_int_equal(language, ENGLISH);
    assert_int_equal(language_parse("pt-BR", &language), 0);
    assert_int_equal(language, PORTUGUESE);
    assert_int_equal(language_parse("ptolemaic", &language), -1);
    assert_int_equal(language_parse("", &language), -1);
    assert_int_equal(language_parse("p", &language), -1);
    assert_int_equal(language, PORTUGUESE);
}

static void a_text_is_found(void **state) {
    (void)state;
    assert_int_equal(language_chosen(), ENGLISH);
    assert_string_equal(_("exclusion"), "exclusion");
    language_choose(PORTUGUESE);
    assert_string_equal(_("exclusion"), "exclusão mútua");
    assert_string_equal(_("no translation has this"), "no translation has this");
    assert_string_equal(_(""), "");
    for (size_t i = 0; i < portuguese_count; i++)
        assert_ptr_equal(_(portuguese[i].english), portuguese[i].text);
    language_choose(ENGLISH);
    for (size_t i = 0; i < portuguese_count; i++)
        assert_ptr_equal(_(portuguese[i].english), portuguese[i].english);
}

static void the_table_is_in_order(void **state) {
    (void)state;
    assert_true(portuguese_count > 100);
    for (size_t i = 1; i < portuguese_count; i++)
        if (strcmp(portuguese[i - 1].english, portuguese[i].english) >= 0)
            fail_msg("'%s' comes before '%s'", portuguese[i - 1].english, portuguese[i].english);
}

/* The next conversion of a format, such as "%-20s"; NULL at the end.  "%%" and "95% of" are none.
 */
static const char *next_conversion(const char **at, size_t *size) {
    for (; (*at = strchrnul(*at, '%')), **at;) {
        const char *begin = (*at)++;
        if (!**at) return NULL;
        if (**at == '%' || **at == ' ') {
            (*at)++;
            continue;
        }
        *at += strspn(*at, "0123456789-+#.*hlzjtL");
        *size = (size_t)(*at - begin) + (**at != 0);
        *at += **at != 0;
        return begin;
    }
    return NULL;
}

/* A translation with other conversions would read other arguments than there are. */
static void conversions_are_the_same(void **state) {
    (void)state;
    for (size_t i = 0; i < portuguese_count; i++) {
        const char *a = portuguese[i].english, *b = portuguese[i].text;
        for (bool more = true; more;) {
            size_t a_size = 0, b_size = 0;
            const char *one = next_conversion(&a, &a_size);
            const char *other = next_conversion(&b, &b_size);
            if (!one != !other || a_size != b_size || (one && strncmp(one, other, a_size) != 0))
                fail_msg("'%s' has other conversions than '%s'", portuguese[i].text,
                         portuguese[i].english);
            more = one != NULL;
        }
    }
}

/* What begins or ends a line, or is joined to another text, must stay so. */
static void ends_are_the_same(void **state) {
    (void)state;
    for (size_t i = 0; i < portuguese_count; i++) {
        const char *a = portuguese[i].english, *b = portuguese[i].text;
        size_t spaces = strspn(a, " \n"), a_end = strlen(a), b_end = strlen(b);
        if (strspn(b, " \n") != spaces) fail_msg("'%s' does not begin as '%s'", b, a);
        while (a_end && strchr(" \n", a[a_end - 1])) a_end--;
        while (b_end && strchr(" \n", b[b_end - 1])) b_end--;
        if (strcmp(a + a_end, b + b_end) != 0) fail_msg("'%s' does not end as '%s'", b, a);
        for (const char *at = b; *at; at++)
            assert_false(iscntrl((unsigned char)*at) && *at != '\n');
    }
}

static void columns_are_counted(void **state) {
    char text[64];
    (void)state;
    assert_int_equal(language_columns("exclusion"), 9);
    assert_int_equal(language_columns("exclusão mútua"), 14);
    snprintf(text, sizeof text, "%-*s|", COLUMN(16, "exclusão mútua"));
    assert_string_equal(text, "exclusão mútua  |");
    snprintf(text, sizeof text, "%*s|", COLUMN(6, "média"));
    assert_string_equal(text, " média|");
    snprintf(text, sizeof text, "%-*s|", COLUMN(2, "três"));
    assert_string_equal(text, "três|");
}

/* The last test: there is no way back. */
static void names_may_be_those_of_the_code(void **state) {
    (void)state;
    assert_string_equal(language_name("REQUEST"), "REQUEST");
    language_choose(PORTUGUESE);
    assert_string_equal(language_name("REQUEST"), "RequestAccess");
    assert_string_equal(language_name("holder"), "detentor");
    assert_string_equal(language_name("none_such"), "none_such");
    language_keep_names();
    assert_string_equal(language_name("REQUEST"), "REQUEST");
    assert_string_equal(language_name("holder"), "holder");
    assert_string_equal(_("exclusion"), "exclusão mútua");
    language_choose(ENGLISH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_chooses),
        cmocka_unit_test(a_language_has_a_name),
        cmocka_unit_test(a_text_is_found),
        cmocka_unit_test(the_table_is_in_order),
        cmocka_unit_test(conversions_are_the_same),
        cmocka_unit_test(ends_are_the_same),
        cmocka_unit_test(columns_are_counted),
        cmocka_unit_test(names_may_be_those_of_the_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
