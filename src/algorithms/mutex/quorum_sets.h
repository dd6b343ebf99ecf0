/* Quorums for Maekawa's lock: small sets, one for each process, any two of which intersect.
 *
 * The quorum of process p is the same set of steps round a circle for every p, taken from p.  Two
 * such quorums intersect when each distance on the circle is the difference of two of the steps.
 *
 *   - Where N = q(q+1) + 1 and there is a finite projective plane of order q, a power of a prime,
 *     each distance is the difference of exactly one pair of steps: a perfect difference set of
 *     K = q + 1 steps (Singer, Trans. AMS 43, 1938).  These are Maekawa's, and none is smaller.
 *     The table has those for q up to 32.
 *   - For any other N, the steps 0 to a-1 and then a, 2a, 3a, ... up to half the circle: a row, and
 *     half a column, of a grid that is wound round the circle.  A distance d up to N/2 is some
 *     multiple of a less one of the first.  With the best a, K is about sqrt(2N), where a flat grid
 *     has 2 sqrt(N) - 1, and there is no ragged edge (after Luk & Wong's cyclic quorums, 1997). */
#ifndef CV_ALGORITHMS_MUTEX_QUORUM_SETS_H
#define CV_ALGORITHMS_MUTEX_QUORUM_SETS_H

#include "process/process.h"

struct quorum_set {
    uint32_t size;           /* K; step 0, the process itself, is the first */
    uint32_t row;            /* a, when it is not perfect */
    const uint16_t *perfect; /* or NULL */
};

static inline const uint16_t *perfect_difference_set(uint32_t n, uint32_t *size) {
    /* Each: N, K and the K steps. */
    /* clang-format off */
    static const uint16_t sets[] = {
        7, 3, 0, 1, 3,
        13, 4, 0, 1, 3, 9,
        21, 5, 0, 1, 4, 14, 16,
        31, 6, 0, 1, 3, 8, 12, 18,
        57, 8, 0, 1, 3, 13, 32, 36, 43, 52,
        73, 9, 0, 1, 3, 7, 15, 31, 36, 54, 63,
        91, 10, 0, 1, 3, 9, 27, 49, 56, 61, 77, 81,
        133, 12, 0, 1, 3, 12, 20, 34, 38, 81, 88, 94, 104, 109,
        183, 14, 0, 1, 3, 16, 23, 28, 42, 76, 82, 86, 119, 137, 154, 175,
        273, 17, 0, 1, 3, 7, 15, 31, 63, 90, 116, 127, 136, 181, 194, 204, 233, 238, 255,
        307, 18, 0, 1, 3, 21, 25, 31, 68, 77, 91, 170, 177, 185, 196, 212, 225, 257, 269, 274,
        381, 20, 0, 1, 3, 12, 17, 65, 75, 94, 117, 124, 132, 145, 163, 167, 200, 271, 297, 303,
            337, 357,
        553, 24, 0, 1, 3, 13, 41, 61, 85, 90, 94, 115, 137, 201, 207, 238, 246, 257, 264, 280,
            326, 385, 421, 456, 488, 539,
        651, 26, 0, 1, 3, 33, 45, 58, 80, 108, 114, 119, 129, 167, 181, 207, 271, 279, 298, 302,
            322, 339, 368, 404, 422, 498, 507, 514,
        757, 28, 0, 1, 3, 9, 27, 43, 81, 129, 173, 220, 243, 310, 387, 404, 409, 445, 455, 466,
            470, 505, 519, 578, 608, 641, 653, 660, 673, 729,
        871, 30, 0, 1, 3, 12, 22, 53, 76, 81, 121, 203, 219, 268, 286, 311, 315, 347, 373, 381,
            466, 540, 595, 634, 651, 697, 711, 735, 741, 748, 768, 783,
        993, 32, 0, 1, 3, 13, 101, 127, 154, 169, 204, 210, 226, 235, 259, 289, 297, 317, 356,
            434, 474, 478, 495, 538, 570, 584, 589, 607, 618, 654, 749, 756, 801, 920,
        1057, 33, 0, 1, 3, 7, 15, 31, 54, 63, 109, 127, 138, 219, 255, 277, 298, 338, 348, 439,
            452, 511, 528, 555, 597, 677, 697, 702, 754, 792, 879, 905, 924, 990, 1023,
    };
    /* clang-format on */
    for (size_t at = 0; at < sizeof sets / sizeof sets[0]; at += 2u + sets[at + 1]) {
        if (sets[at] != n) continue;
        *size = sets[at + 1];
        return &sets[at + 2];
    }
    return NULL;
}

static inline uint32_t wound_grid_size(uint32_t n, uint32_t row) {
    return row + (n / 2 + row - 1) / row;
}

static inline struct quorum_set quorum_set(uint32_t n) {
    struct quorum_set set = {.row = 1};
    set.perfect = perfect_difference_set(n, &set.size);
    if (set.perfect) return set;
    for (uint32_t row = 2; row <= n / row; row++) /* the best is below sqrt(N) */
        if (wound_grid_size(n, row) < wound_grid_size(n, set.row)) set.row = row;
    set.size = wound_grid_size(n, set.row);
    return set;
}

/* All processes, in the same form. */
static inline struct quorum_set quorum_of_all(uint32_t n) {
    return (struct quorum_set){.size = n, .row = n};
}

/* Member i of the quorum of process p among n. */
static inline cv_pid quorum_member(const struct quorum_set *set, uint32_t n, cv_pid p, uint32_t i) {
    uint32_t step = set->perfect   ? set->perfect[i]
                    : i < set->row ? i
                                   : (i - set->row + 1) * set->row;
    return (cv_pid)(((uint64_t)p - 1 + step) % n + 1);
}

#endif
