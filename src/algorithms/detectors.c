#include "algorithms/detectors.h"

#include <string.h>

#include "base/parse.h"

const struct cv_algorithm *detector_parse(const char *text, uint64_t *limit) {
    static const struct {
        const struct cv_algorithm *code;
        double max;
    } kinds[] = {{&cv_detector_fixed, 0}, {&cv_detector_adaptive, 1000}, {&cv_detector_phi, 16}};
    double value;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i].code->name);
        if (strncmp(text, kinds[i].code->name, length) != 0 || text[length] != ':') continue;
        const char *number = text + length + 1;
        if (kinds[i].code == &cv_detector_fixed)
            return parse_duration(number, limit) == 0 && *limit ? kinds[i].code : NULL;
        if (parse_real(number, &value) != 0 || value <= 0 || value > kinds[i].max) return NULL;
        *limit = (uint64_t)(value * 1000);
        return kinds[i].code;
    }
    return NULL;
}
