/* A main for the fuzz targets without libFuzzer: every file that is named, or standard input, once;
 * or `--runs COUNT SEED`, as many random inputs.  For AFL++ (afl-cc -DSTANDALONE ...
 * tests/fuzz/standalone.c), for targets that tests run, or to try a single file again. */
#ifdef STANDALONE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/rng.h"

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

enum { INPUT_BITS = 9 };
static unsigned char input[1 << INPUT_BITS];
static size_t input_size;

/* For a file to try again, by xxd -r -p. */
static void print_input(int signal) {
    (void)signal;
    for (size_t i = 0; i < input_size; i++) fprintf(stderr, "%02x", input[i]);
    fprintf(stderr, "\n");
}

static int try_random(uint64_t runs, uint64_t seed) {
    signal(SIGABRT, print_input);
    for (uint64_t i = 0; i < runs; i++) {
        uint64_t random = rng_mix(seed << 32 | i);
        input_size = (random >> 8) % ((size_t)2 << random % INPUT_BITS);
        for (size_t at = 0; at < input_size; at++) input[at] = (unsigned char)rng_mix(random + at);
        LLVMFuzzerTestOneInput(input, input_size);
    }
    return 0;
}

int main(int count, char **names) {
    if (count == 1) return try_file(stdin);
    if (count == 4 && strcmp(names[1], "--runs") == 0)
        return try_random(strtoull(names[2], NULL, 10), strtoull(names[3], NULL, 10));
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
