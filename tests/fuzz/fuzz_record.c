/* The records of two peers, with any entries in blocks whose checksums are right: they are refused,
 * or replayed and judged.
 *
 *   the size of what is in the first: two bytes; both, without the heads of their blocks */
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "base/crc32c.h"
#include "base/little.h"
#include "lab/peers/merge.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const struct cv_algorithm *find(const char *name) {
    for (size_t i = 0; i < catalogue_count; i++)
        if (strcmp(catalogue[i]->name, name) == 0) return catalogue[i];
    return NULL;
}

static int add(struct records *records, const char *name, const unsigned char *data, size_t size) {
    char error[RECORD_ERROR_MAX];
    unsigned char *file = malloc(RECORD_BLOCK_HEAD + size);
    cv_assert(file);
    put32(file, (uint32_t)size);
    put32(file + 4, crc32c(0, data, size));
    memcpy(file + RECORD_BLOCK_HEAD, data, size);
    return records_parse(records, name, file, RECORD_BLOCK_HEAD + size, error);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    struct records records = {.find = find};
    struct merge merge = {0};
    char error[RECORD_ERROR_MAX];
    if (size < 2) return 0;
    size_t first = get16(data);
    data += 2, size -= 2;
    if (first > size) first = size;
    int failed = add(&records, "first", data, first);
    if (!failed) failed = add(&records, "second", data + first, size - first);
    records_sort(&records);
    if (!failed) {
        merge_replay(&merge, &records, error);
        merge_close(&merge);
        merge_run(&merge, &records, error);
        merge_close(&merge);
    }
    records_free(&records);
    return 0;
}
