/* An emulator keeps books on every page of address space, also of what is only reserved, and
 * terabytes of that would take all memory.  Arenas take less where they do not get what they ask
 * for. */
#include <errno.h>
#include <sys/mman.h>

void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    if (protection == PROT_NONE && size > (size_t)256 << 20) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(address, size, protection, flags, file, offset);
}
