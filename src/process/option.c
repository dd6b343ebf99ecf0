#include "process/option.h"

#include <stdio.h>

#include "base/parse.h"

const struct cv_option *option_find(const struct cv_algorithm *algorithm, const char *name) {
    for (unsigned i = 0; i < algorithm->option_count; i++)
        if (strcmp(algorithm->options[i].name, name) == 0) return &algorithm->options[i];
    return NULL;
}

int count_parse(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *result,
                char *error, size_t size) {
    uint64_t value;
    if (parse_u64(text, &value) != 0)
        snprintf(error, size, "%s: '%.40s' is not a whole number", name, text);
    else if (value < min)
        snprintf(error, size, "%s: %.40s is below the minimum, %llu", name, text,
                 (unsigned long long)min);
    else if (value > max)
        snprintf(error, size, "%s: %.40s is above the maximum, %llu", name, text,
                 (unsigned long long)max);
    else
        return *result = value, 0;
    return -1;
}

int option_value(const struct cv_option *option, const char *text, uint64_t *result, char *error,
                 size_t size) {
    uint64_t value;
    if (option->type == CV_FLAG) return *result = 1, 0;
    if (option->type == CV_NUMBER)
        return count_parse(option->name, text, option->min, option->max, result, error, size);
    if (parse_duration(text, &value) != 0 || value < option->min || value > option->max) {
        snprintf(error, size, "%s: '%.40s' is not " DURATION_SYNTAX "%s", option->name, text,
                 option->min ? ", above 0" : "");
        return -1;
    }
    *result = value;
    return 0;
}
