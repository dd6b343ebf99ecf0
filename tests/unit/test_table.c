/* The hash index beside an array, and the checksum beside its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/rng.h"
#include "base/table.h"

enum { NUMBERS = 3000 };

static bool finds(const struct table *table, uint32_t hash, uint32_t number) {
    uint32_t found;
    for (struct probe p = table_probe(table, hash); (found = table_next(table, &p));)
        if (found == number) return true;
    return false;
}

/* Hashes of few bits make long chains, across the end of the table too. */
static void a_table_is_its_model(void **state) {
    static const uint32_t masks[] = {UINT32_MAX, 0x3f, 0xffffffc0, 0x80000003, 0};
    (void)state;
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
        struct table table = {0};
        static uint32_t hash[NUMBERS + 1];
        static bool there[NUMBERS + 1];
        uint32_t count = 0, range = masks[m] == UINT32_MAX ? NUMBERS : 300;
        struct rng rng;
        rng_seed(&rng, 5 + m);
        memset(there, 0, sizeof there);
        for (uint32_t i = 1; i <= NUMBERS; i++) hash[i] = (uint32_t)rng_next(&rng) & masks[m];
        for (int step = 0; step < 60000; step++) {
            uint32_t number = 1 + (uint32_t)rng_below(&rng, range);
            assert_int_equal(finds(&table, hash[number], number), there[number]);
            if (there[number])
                table_remove(&table, hash[number], number), count--;
            else
                table_add(&table, hash[number], number), count++;
            there[number] = !there[number];
            assert_int_equal(table.used, count);
        }
        for (uint32_t i = 1; i <= range; i++) assert_int_equal(finds(&table, hash[i], i), there[i]);
        table_close(&table);
    }
}

static void room_is_kept(void **state) {
    struct table table = {0};
    (void)state;
    assert_false(finds(&table, 7, 1)); /* empty */
    table_reserve(&table, 1000);
    struct table_slot *slot = table.slot;
    for (uint32_t i = 1; i <= 1000; i++) table_add(&table, i * 2654435761u, i);
    assert_ptr_equal(table.slot, slot);
    table_reserve(&table, 10); /* less than it has */
    assert_ptr_equal(table.slot, slot);
    for (uint32_t i = 1; i <= 1000; i++) assert_true(finds(&table, i * 2654435761u, i));
    table_close(&table);
    assert_int_equal(table.slots | table.used, 0);
}

static uint32_t crc_by_definition(uint32_t crc, const unsigned char *at, size_t size) {
    crc = ~crc;
    for (size_t i = 0; i < 8 * size; i++) {
        uint32_t bit = (crc ^ at[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void the_checksum_is_crc32c(void **state) {
    unsigned char bytes[64 + 8];
    struct rng rng;
    (void)state;
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283); /* the value that everybody gives */
    assert_int_equal(crc32c(0, "", 0), 0);
    rng_seed(&rng, 1);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)rng_next(&rng);
    for (size_t from = 0; from < 8; from++)
        for (size_t size = 0; size <= 64; size++) {
            uint32_t whole = crc_by_definition(0, bytes + from, size);
            assert_int_equal(crc32c(0, bytes + from, size), whole);
            size_t part = size / 3;
            uint32_t continued =
                crc32c(crc32c(0, bytes + from, part), bytes + from + part, size - part);
            assert_int_equal(continued, whole);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_its_model),
        cmocka_unit_test(room_is_kept),
        cmocka_unit_test(the_checksum_is_crc32c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
