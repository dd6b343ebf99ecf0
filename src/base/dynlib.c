#include "base/dynlib.h"

#include <dlfcn.h>

const char *dynlib_load(const char *file, const struct dynlib_symbol *symbols, size_t count) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found) return dlerror();
        *(void **)symbols[i].at = found;
    }
    return NULL;
}
