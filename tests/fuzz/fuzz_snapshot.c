/* Any bytes as a snapshot: reads stay within their bounds, and a bad end is reported.
 *
 * When the first byte is odd, the checksum of the header is corrected, which would hide everything
 * after it.
 *
 *   make fuzz F=snapshot */
#include "fuzz_files.h"
#include "service/log/snapshot.h"

enum { HEADER = 40, MOST = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct snapshots s;
    uint64_t term = 0, index = 1;
    uint32_t crc;
    char piece[1000];
    if (!size) return 0;
    unsigned char *file = malloc(size);
    cv_assert(file);
    memcpy(file, bytes + 1, size - 1);
    if (bytes[0] & 1 && size > HEADER) {
        memcpy(file + 16, &index, sizeof index);
        crc = crc32c(0, file, HEADER - sizeof crc);
        memcpy(file + HEADER - sizeof crc, &crc, sizeof crc);
    }
    fuzz_file("snapshot.0000000000000001", file, size - 1);
    free(file);
    cv_assert(snapshots_list(&s, fuzz_directory, fuzz_path) == 0 && s.count == 1);
    struct snapshot_reader *reader = snapshot_open(&s, s.index[0], &term);
    if (!reader) {
        cv_assert(*s.message);
        return 0;
    }
    for (size_t read = 0; read < MOST; read += sizeof piece)
        if (snapshot_read(reader, piece, sizeof piece) != 0) break;
    snapshot_close(reader);
    return 0;
}
