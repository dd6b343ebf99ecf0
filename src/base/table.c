#include "base/table.h"

#include <string.h>
#include <sys/mman.h>

/* Looking up in a large table goes all over it: pages of the usual size would be missed each time.
 */
static struct table_slot *new_slots(size_t count) {
    enum { HUGE_PAGE = 1 << 21 };
    size_t size = count * sizeof(struct table_slot);
    struct table_slot *slots =
        size < 2 * HUGE_PAGE ? calloc(1, size) : aligned_alloc(HUGE_PAGE, size);
    cv_assert(slots);
    if (size >= 2 * HUGE_PAGE) {
        madvise(slots, size, MADV_HUGEPAGE);
        memset(slots, 0, size);
    }
    return slots;
}

void table_reserve(struct table *table, uint32_t count) {
    uint32_t slots = table->slots ? table->slots : 64;
    while (count > slots / 4 * 3) {
        cv_assert(slots < 1u << 31);
        slots *= 2;
    }
    if (slots == table->slots) return;
    struct table old = *table;
    *table = (struct table){new_slots(slots), slots, old.used};
    for (uint32_t i = 0; i < old.slots; i++)
        if (old.slot[i].number) table_place(table, old.slot[i].hash, old.slot[i].number);
    free(old.slot);
}
