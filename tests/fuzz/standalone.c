/* A main for the fuzz targets without libFuzzer: every file that is named, or standard input, once.
 * For AFL++ (afl-cc -DSTANDALONE ... tests/fuzz/standalone.c), or to try a single file again. */
#ifdef STANDALONE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int try_file(FILE *file) {
    struct bytes all = {0};
    size_t got;
    do {
        unsigned char *to = bytes_reserve(&all, 65536);
        all.used += got = fread(to, 1, 65536, file);
    } while (got);
    LLVMFuzzerTestOneInput(all.at, all.used);
    bytes_close(&all);
    return ferror(file);
}

int main(int count, char **names) {
    if (count == 1) return try_file(stdin);
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(names[i], "rb");
        if (!file || try_file(file) != 0) {
            perror(names[i]);
            return 1;
        }
        fclose(file);
    }
    return 0;
}
#endif
