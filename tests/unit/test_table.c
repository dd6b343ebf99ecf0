/* The hash index beside an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "base/table.h"

enum { NUMBERS = 3000 };

static bool finds(const struct table *table, uint32_t hash, uint32_t number) {
    uint32_t found;
    for (struct probe p = table_probe(table, hash); (found = table_next(table, &p));) {
        assert_true(found != TABLE_GONE);
        if (found == number) return true;
    }
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

static void reserved_room_stays(void **state) {
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

/* Growing is spread over the changes after it, and what is not moved yet is found and removed. */
static void it_grows_bit_by_bit(void **state) {
    enum { MANY = 100000 };
    struct table table = {0};
    uint32_t growing = 0;
    (void)state;
    for (uint32_t i = 1; i <= MANY; i++) {
        bool grows = table.old;
        uint32_t before = table.moved;
        table_add(&table, i * 2654435761u, i);
        growing += grows;
        if (grows && table.old) assert_true(table.moved - before <= TABLE_MOVES);
        assert_true(finds(&table, i / 2 * 2654435761u, i / 2) == (i > 1));
        if (i % 3 == 0) table_remove(&table, (i / 3) * 2654435761u, i / 3);
        if (i % 3 == 0) assert_false(finds(&table, (i / 3) * 2654435761u, i / 3));
        if (i % 3 == 0) table_add(&table, (i / 3) * 2654435761u, i / 3);
    }
    assert_true(growing > 1000);
    assert_int_equal(table.used, MANY);
    table_close(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_its_model),
        cmocka_unit_test(reserved_room_stays),
        cmocka_unit_test(it_grows_bit_by_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
