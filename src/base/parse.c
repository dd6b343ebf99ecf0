#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    double us;
} units[] = {
    {"us", 1},   {"ms", 1e3},   {"s", 1e6},       {"sec", 1e6},   {"min", 60e6},
    {"m", 60e6}, {"h", 3600e6}, {"hour", 3600e6}, {"d", 86400e6}, {"day", 86400e6},
};

static int unit_us(const char *name, double *us) {
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, name) == 0) return *us = units[i].us, 0;
    return -1;
}

/* strtod without white space, inf, nan, hexadecimal and underflow to 0. */
static int leading_real(const char *text, double *value, const char **rest) {
    if (!isdigit((unsigned char)*text) && *text != '.' && *text != '-') return -1;
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    bool plain = strspn(text, "+-.eE0123456789") >= (size_t)(end - text);
    if (end == text || !plain || !isfinite(*value) || (errno == ERANGE && *value == 0)) return -1;
    *rest = end;
    return 0;
}

int parse_u64(const char *text, uint64_t *result) {
    if (!isdigit((unsigned char)*text)) return -1;
    char *end;
    errno = 0;
    int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
    unsigned long long value = strtoull(text, &end, base);
    if (*end || errno) return -1;
    *result = value;
    return 0;
}

int parse_real(const char *text, double *result) {
    double value;
    const char *rest;
    if (leading_real(text, &value, &rest) != 0 || *rest) return -1;
    *result = value;
    return 0;
}

int parse_probability(const char *text, double *result) {
    double value;
    if (parse_real(text, &value) != 0 || value < 0 || value > 1) return -1;
    *result = value;
    return 0;
}

int parse_duration(const char *text, uint64_t *us) {
    double value, unit;
    const char *rest;
    if (leading_real(text, &value, &rest) != 0 || value < 0) return -1;
    if (*rest == 0 && value == 0)
        unit = 1;
    else if (unit_us(rest, &unit) != 0)
        return -1;
    uint64_t whole = value * unit > 1e15 ? 0 : (uint64_t)llround(value * unit);
    if (whole == 0 && value > 0) return -1; /* too long, or rounded to 0 */
    *us = whole;
    return 0;
}

int parse_rate(const char *text, double *per_second) {
    double value, unit;
    const char *rest;
    if (leading_real(text, &value, &rest) != 0 || value < 0 || *rest != '/') return -1;
    if (unit_us(rest + 1, &unit) != 0) return -1;
    if (!isfinite(value * 1e6 / unit)) return -1;
    *per_second = value * 1e6 / unit;
    return 0;
}

int parse_fraction(const char *text, double *result) {
    const char *slash = strchr(text, '/');
    char part[32];
    uint64_t part_us, us;
    double whole_us;
    if (!slash) return parse_probability(text, result);
    if ((size_t)(slash - text) >= sizeof part) return -1;
    memcpy(part, text, (size_t)(slash - text));
    part[slash - text] = 0;
    if (parse_duration(part, &part_us) != 0) return -1;
    if (unit_us(slash + 1, &whole_us) != 0) { /* "3s/hour" means "3s/1hour" */
        if (parse_duration(slash + 1, &us) != 0) return -1;
        whole_us = (double)us;
    }
    if (whole_us == 0 || (double)part_us > whole_us) return -1;
    *result = (double)part_us / whole_us;
    return 0;
}

char *format_real(char *buffer, size_t size, double value) {
    bool plain = value == 0 || (fabs(value) >= 1e-4 && fabs(value) < 1e15);
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, size, "%.*g", digits, value);
        if (plain && strchr(buffer, 'e')) continue; /* 10 rather than 1e+01 */
        if (strtod(buffer, NULL) == value) break;
    }
    return buffer;
}

char *format_us(char *buffer, size_t size, uint64_t us) {
    const char *unit = us == 0 ? "us" : us % 1000000 == 0 ? "s" : us % 1000 == 0 ? "ms" : "us";
    uint64_t scale = *unit == 's' ? 1000000 : *unit == 'm' ? 1000 : 1;
    snprintf(buffer, size, "%llu%s", (unsigned long long)(us / scale), unit);
    return buffer;
}

int parse_bytes(const char *text, uint64_t *result) {
    static const char letters[] = "kMGT";
    double value;
    const char *rest;
    if (leading_real(text, &value, &rest) != 0 || value < 0) return -1;
    const char *unit = *rest ? strchr(letters, *rest) : NULL;
    if (*rest && (!unit || rest[1])) return -1;
    if (unit) value = ldexp(value, 10 * (int)(unit - letters + 1));
    if (value >= 0x1p63) return -1;
    *result = (uint64_t)value;
    return 0;
}

char *format_bytes(char *buffer, size_t size, double bytes) {
    static const char *const names[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++) bytes /= 1024;
    snprintf(buffer, size, "%.4g %s", bytes, names[unit]);
    return buffer;
}

char *format_duration(char *buffer, size_t size, double us) {
    const char *name = "us";
    double scale = 1;
    if (us >= 120e6)
        name = "min", scale = 60e6;
    else if (us >= 1e6)
        name = "s", scale = 1e6;
    else if (us >= 1e3)
        name = "ms", scale = 1e3;
    snprintf(buffer, size, "%.4g %s", us / scale, name);
    return buffer;
}
