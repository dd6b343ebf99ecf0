/* Failure detectors: machines that run beside an algorithm and tell it which processes to suspect.
 */
#ifndef CV_ALGORITHMS_DETECTOR_DETECTOR_H
#define CV_ALGORITHMS_DETECTOR_DETECTOR_H

#include "process/process.h"

extern const struct cv_algorithm cv_detector_fixed, cv_detector_adaptive, cv_detector_phi;

/* The options of all three. */
enum { DETECTOR_INTERVAL, DETECTOR_LIMIT, DETECTOR_OPTIONS };

#endif
