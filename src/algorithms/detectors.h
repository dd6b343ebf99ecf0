/* Failure detectors, as people type them: fixed:TIME, adaptive:K or phi:X. */
#ifndef CV_ALGORITHMS_DETECTORS_H
#define CV_ALGORITHMS_DETECTORS_H

#include "algorithms/detector/detector.h"

/* The detector of that text and its limit; NULL: it is none. */
const struct cv_algorithm *detector_parse(const char *text, uint64_t *limit);

#endif
