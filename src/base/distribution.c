#include "base/distribution.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/parse.h"

static const char *const names[] = {"constant", "uniform", "exponential", "lognormal"};

static int parse_pair(const char *text, char first[32], const char **second) {
    const char *comma = strchr(text, ',');
    if (!comma || comma - text >= 32) return -1;
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = 0;
    *second = comma + 1;
    return 0;
}

int distribution_parse(const char *text, struct distribution *result) {
    struct distribution d = {.kind = CONSTANT};
    const char *colon = strchr(text, ':'), *second;
    char first[32];
    uint64_t a, b;
    if (colon) {
        size_t i = 0, length = (size_t)(colon - text);
        while (i < 4 && (strlen(names[i]) != length || memcmp(names[i], text, length) != 0)) i++;
        if (i == 4) return -1;
        d.kind = (enum distribution_kind)i;
        text = colon + 1;
    }
    if (d.kind == CONSTANT || d.kind == EXPONENTIAL) {
        if (parse_duration(text, &a) != 0) return -1;
    } else if (parse_pair(text, first, &second) != 0 || parse_duration(first, &a) != 0) {
        return -1;
    } else if (d.kind == UNIFORM) {
        if (parse_duration(second, &b) != 0 || b < a) return -1;
        d.b = (double)b;
    } else if (parse_real(second, &d.b) != 0 || d.b < 0 || d.b > 10) {
        return -1;
    }
    d.a = (double)a;
    *result = d;
    return 0;
}

char *distribution_format(char *buffer, size_t size, const struct distribution *d) {
    char a[32], b[32] = "";
    format_us(a, sizeof a, (uint64_t)d->a);
    if (d->kind == UNIFORM) format_us(b, sizeof b, (uint64_t)d->b);
    if (d->kind == LOGNORMAL) format_real(b, sizeof b, d->b);
    if (d->kind == CONSTANT)
        snprintf(buffer, size, "%s", a);
    else
        snprintf(buffer, size, "%s:%s%s%s", names[d->kind], a, *b ? "," : "", b);
    return buffer;
}

double distribution_mean(const struct distribution *d) {
    switch (d->kind) {
    case UNIFORM: return (d->a + d->b) / 2;
    case LOGNORMAL: return d->a * exp(d->b * d->b / 2);
    default: return d->a;
    }
}

double distribution_above(const struct distribution *d, double x) {
    if (x < 0) return 1;
    switch (d->kind) {
    case CONSTANT: return x < d->a;
    case UNIFORM: return x < d->a ? 1 : x >= d->b ? 0 : (d->b - x) / (d->b - d->a);
    case EXPONENTIAL: return d->a > 0 ? exp(-x / d->a) : 0;
    case LOGNORMAL:
        if (d->a <= 0) return 0;
        if (d->b == 0) return x < d->a;
        return x == 0 ? 1 : erfc(log(x / d->a) / (d->b * sqrt(2))) / 2;
    }
    return 0;
}

uint64_t distribution_clamp(double us) { return us < 1e15 ? (uint64_t)us : 1000000000000000u; }

uint64_t distribution_draw_slow(const struct distribution *d, struct rng *rng) {
    double u = 1 - rng_unit(rng); /* in (0, 1] */
    switch (d->kind) {
    case CONSTANT: return (uint64_t)d->a;
    case UNIFORM: return (uint64_t)d->a + rng_below(rng, (uint64_t)(d->b - d->a) + 1);
    case EXPONENTIAL: return distribution_clamp(-log(u) * d->a);
    case LOGNORMAL: {
        double normal = sqrt(-2 * log(u)) * cos(2 * M_PI * rng_unit(rng));
        return distribution_clamp(d->a * exp(d->b * normal));
    }
    }
    cv_assert(!"a kind of distribution");
}
