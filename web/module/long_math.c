/* Logarithms and powers of long doubles, which have 113 bits here: those of the C library have no
 * more than a double's, and the odds of what is improbable need more to be printed as elsewhere. */
#include <math.h>

#define LN_2  0.693147180559945309417232121458176568L
#define LN_10 2.302585092994045684017991454684364208L

enum { HALVINGS = 10, TERMS = 14 };

long double expl(long double x) {
    if (isnan(x) || x > 11356) return x > 0 ? INFINITY : x;
    if (x < -11355) return 0;
    int twos = (int)rint((double)(x / LN_2));
    long double rest = ldexpl(x - (long double)twos * LN_2, -HALVINGS), sum = 0;
    for (int i = TERMS; i > 0; i--) sum = (sum + 1) * rest / i; /* e^rest - 1 */
    for (int i = 0; i < HALVINGS; i++) sum = sum * (sum + 2);
    return ldexpl(1 + sum, twos);
}

/* A step of Halley's method triples the digits that are right. */
long double logl(long double x) {
    int twos;
    if (isnan(x) || isinf(x) || x <= 0) return x < 0 ? NAN : x == 0 ? -INFINITY : x;
    long double part = frexpl(x, &twos), near = (long double)log((double)part), e = expl(near);
    return near + 2 * (part - e) / (part + e) + (long double)twos * LN_2;
}

long double log1pl(long double x) {
    if (fabsl(x) > 1e-9L) return logl(1 + x);
    return x * (1 - x * (1 / 2.0L - x * (1 / 3.0L - x * (1 / 4.0L - x / 5))));
}

/* The odds raise nothing but ten. */
long double powl(long double base, long double exponent) {
    return expl(exponent * (base == 10 ? LN_10 : logl(base)));
}
