/* What a module in a browser has no system for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "algorithms/module.h"

bool module_is_named(const char *name) {
    size_t length = strlen(name);
    return length > 3 && strcmp(name + length - 3, ".so") == 0;
}

const struct cv_algorithm *module_load(const char *path, char error[MODULE_ERROR_MAX]) {
    snprintf(error, MODULE_ERROR_MAX,
             "%.200s: an algorithm from a file runs only outside of the browser", path);
    return NULL;
}

const char *module_source(const struct cv_algorithm *algorithm, char *buffer, size_t size) {
    (void)algorithm;
    if (size) *buffer = 0;
    return buffer;
}

char *mkdtemp(char *template) {
    (void)template;
    errno = ENOSYS;
    return NULL;
}
