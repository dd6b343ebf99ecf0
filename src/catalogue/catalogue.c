#include "catalogue/catalogue.h"

#include <stdio.h>

#include "election/election.h"
#include "mutex/mutex.h"

const struct cv_algorithm *const catalogue[] = {&cv_central,
                                                &cv_central_lease,
                                                &cv_token_ring,
                                                &cv_quorum,
                                                &cv_voting,
                                                &cv_lamport,
                                                &cv_ricart_agrawala,
                                                &cv_ricart_agrawala_majority,
                                                &cv_roucairol_carvalho,
                                                &cv_maekawa,
                                                &cv_suzuki_kasami,
                                                &cv_raymond,
                                                &cv_tree_lock_naive,
                                                &cv_tree_lock,
                                                &cv_tree_lock_queue,
#define E(NAME) &cv_##NAME,
                                                RING_ELECTIONS(E) NETWORK_ELECTIONS(E)
#undef E
};
const size_t catalogue_count = sizeof catalogue / sizeof catalogue[0];

const struct cv_algorithm *catalogue_find(const char *name) {
    for (size_t i = 0; i < catalogue_count; i++)
        if (strcmp(catalogue[i]->name, name) == 0) return catalogue[i];
    return NULL;
}

unsigned word_distance(const char *a, const char *b) {
    enum { LETTERS_MAX = 64 };
    unsigned row[LETTERS_MAX + 1];
    size_t m = strlen(a), n = strlen(b);
    if (m > LETTERS_MAX || n > LETTERS_MAX) return LETTERS_MAX;
    for (size_t j = 0; j <= n; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= m; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < gap ? change : gap;
        }
    }
    return row[n];
}

char *catalogue_nearest(const char *name, char *buffer, size_t size) {
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
