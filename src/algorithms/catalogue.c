#include "algorithms/catalogue.h"

#include <stdio.h>

#include "algorithms/module.h"
#include "base/spelling.h"

static char *nearest_to(const char *name, char *buffer, size_t size) {
    unsigned best = 1 + (unsigned)strlen(name) / 2;
    size_t used = 0;
    *buffer = 0;
    for (size_t i = 0; i < catalogue_count; i++) {
        unsigned distance = word_distance(name, catalogue[i]->name);
        if (strstr(catalogue[i]->name, name) && *name) distance = 1;
        if (distance < best) best = distance;
    }
    for (size_t i = 0; i < catalogue_count && used < size; i++) {
        bool part = *name && strstr(catalogue[i]->name, name);
        if (word_distance(name, catalogue[i]->name) <= best || part)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s", used ? " or " : "",
                                     catalogue[i]->name);
    }
    return buffer;
}

const struct cv_algorithm *catalogue_open(const char *name, char error[CATALOGUE_ERROR_MAX]) {
    char nearest[256];
    for (size_t i = 0; i < catalogue_count; i++)
        if (strcmp(catalogue[i]->name, name) == 0) return catalogue[i];
    if (module_is_named(name)) return module_load(name, error);
    nearest_to(name, nearest, sizeof nearest);
    if (strchr(name, '/'))
        snprintf(error, CATALOGUE_ERROR_MAX,
                 "unknown algorithm '%.200s'; an algorithm of your own is a file that ends in .so",
                 name);
    else if (*nearest)
        snprintf(error, CATALOGUE_ERROR_MAX, "unknown algorithm '%.80s'; did you mean %s?", name,
                 nearest);
    else
        snprintf(error, CATALOGUE_ERROR_MAX,
                 "unknown algorithm '%.80s'; 'conclave list' shows them all", name);
    return NULL;
}

const struct cv_algorithm *catalogue_find(const char *name) {
    char error[CATALOGUE_ERROR_MAX];
    return catalogue_open(name, error);
}
