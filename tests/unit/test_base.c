/* Random numbers, numbers as people write them, distributions, memory, UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/distribution.h"
#include "base/parse.h"
#include "base/rng.h"
#include "base/utf8.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* ---- Random numbers ---- */

/* The authors' own reference programs give these. */
static void the_generator_is_xoshiro256_plus_plus(void **state) {
    static const uint64_t expected[] = {41943041u,
                                        58720359u,
                                        3588806011781223u,
                                        3591011842654386u,
                                        9228616714210784205u,
                                        9973669472204895162u,
                                        14011001112246962877u,
                                        12406186145184390807u,
                                        15849039046786891736u,
                                        10450023813501588000u};
    struct rng rng = {{1, 2, 3, 4}};
    (void)state;
    for (size_t i = 0; i < COUNT(expected); i++) assert_true(rng_next(&rng) == expected[i]);
}

static void its_state_is_filled_by_splitmix64(void **state) {
    static const struct {
        uint64_t seed, filled[4], first[4];
    } cases[] = {
        {0,
         {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu, 0xf88bb8a8724c81ecu},
         {0x53175d61490b23dfu, 0x61da6f3dc380d507u, 0x5c0fdf91ec9a7bfcu, 0x02eebf8c3bbe5e1au}},
        {1,
         {0x910a2dec89025cc1u, 0xbeeb8da1658eec67u, 0xf893a2eefb32555eu, 0x71c18690ee42c90bu},
         {0xcfc5d07f6f03c29bu, 0xbf424132963fe08du, 0x19a37d5757aaf520u, 0xbf08119f05cd56d6u}},
        {42,
         {0xbdd732262feb6e95u, 0x28efe333b266f103u, 0x47526757130f9f52u, 0x581ce1ff0e4ae394u},
         {0xd0764d4f4476689fu, 0x519e4174576f3791u, 0xfbe07cfb0c24ed8cu, 0xb37d9f600cd835b8u}},
        {1234567,
         {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u},
         {0}},
        {UINT64_MAX,
         {0xe4d971771b652c20u, 0xe99ff867dbf682c9u, 0x382ff84cb27281e9u, 0x6d1db36ccba982d2u},
         {0x56ccf8ce948e27b2u, 0xe68588432e5a5b90u, 0xe3e9b5a48119ca8bu, 0x460f19495532ae73u}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rng rng;
        rng_seed(&rng, cases[i].seed);
        assert_memory_equal(rng.s, cases[i].filled, sizeof rng.s);
        for (int k = 0; k < 4 && cases[i].first[0]; k++)
            assert_true(rng_next(&rng) == cases[i].first[k]);
    }
}

static void units_are_from_0_to_below_1(void **state) {
    struct rng rng;
    double sum = 0, least = 1, most = 0;
    (void)state;
    rng_seed(&rng, 1);
    for (int i = 0; i < 100000; i++) {
        double u = rng_unit(&rng);
        assert_true(u >= 0 && u < 1);
        sum += u;
        if (u < least) least = u;
        if (u > most) most = u;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 5 * sqrt(1.0 / 12 / 100000));
    assert_true(least < 1e-4 && most > 1 - 1e-4);
}

/* Pearson's statistic over equally likely cells is about as large as their number; four times its
 * standard deviation above it is far out. */
static void assert_even(const unsigned *count, unsigned cells) {
    double all = 0, statistic = 0;
    for (unsigned i = 0; i < cells; i++) all += count[i];
    for (unsigned i = 0; i < cells; i++) {
        double off = count[i] - all / cells;
        statistic += off * off / (all / cells);
    }
    assert_true(statistic < cells - 1 + 5 * sqrt(2.0 * cells));
}

static void small_bounds_are_kept_and_even(void **state) {
    (void)state;
    for (unsigned bound = 1; bound <= 20; bound++) {
        unsigned count[20] = {0};
        struct rng rng;
        rng_seed(&rng, bound);
        for (int i = 0; i < 100000; i++) {
            uint64_t value = rng_below(&rng, bound);
            assert_true(value < bound);
            count[value]++;
        }
        assert_even(count, bound);
    }
}

/* A plain product favours every third number below 3/4 of the range by two to one. */
static void large_bounds_are_kept_and_even(void **state) {
    static const uint64_t bounds[] = {(uint64_t)3 << 62, ((uint64_t)1 << 63) + 1, UINT64_MAX};
    (void)state;
    for (size_t b = 0; b < COUNT(bounds); b++) {
        unsigned by_remainder[3] = {0}, by_half[2] = {0};
        struct rng rng;
        rng_seed(&rng, b);
        for (int i = 0; i < 100000; i++) {
            uint64_t value = rng_below(&rng, bounds[b]);
            assert_true(value < bounds[b]);
            by_remainder[value % 3]++;
            by_half[value >= bounds[b] / 2]++;
        }
        assert_even(by_remainder, 3);
        assert_even(by_half, 2);
    }
}

static void chances_are_taken_as_often_as_they_say(void **state) {
    struct rng rng, untouched;
    int taken = 0;
    (void)state;
    rng_seed(&rng, 7);
    untouched = rng;
    for (int i = 0; i < 1000; i++) assert_false(rng_chance(&rng, 0));
    assert_memory_equal(&rng, &untouched, sizeof rng); /* what cannot happen costs no draw */
    for (int i = 0; i < 1000; i++) assert_true(rng_chance(&rng, 1));
    for (int i = 0; i < 100000; i++) taken += rng_chance(&rng, 0.2);
    assert_true(abs(taken - 20000) < 5 * sqrt(100000 * 0.2 * 0.8));
}

/* ---- Numbers as people write them ---- */

static void whole_numbers(void **state) {
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"7", 7},
                {"007", 7},
                {"4294967296", 4294967296u},
                {"18446744073709551615", UINT64_MAX},
                {"0x0", 0},
                {"0xff", 255},
                {"0XfF", 255},
                {"0xffffffffffffffff", UINT64_MAX}};
    static const char *const bad[] = {"",
                                      " ",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "-1",
                                      "-0",
                                      "1.0",
                                      "1e3",
                                      "x",
                                      "0x",
                                      "0xg",
                                      "0x-1",
                                      "0x 1",
                                      "ff",
                                      "1k",
                                      "1,000",
                                      "\xc2\xb2",
                                      "18446744073709551616",
                                      "0x10000000000000000"};
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        uint64_t value = 99;
        assert_int_equal(parse_u64(good[i].text, &value), 0);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t value = 99;
        if (parse_u64(bad[i], &value) != -1) fail_msg("'%s' is taken", bad[i]);
        assert_true(value == 99);
    }
}

static void real_numbers(void **state) {
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},      {"1", 1},         {"-1", -1},    {"0.25", 0.25},  {".5", 0.5},
                {"-.5", -0.5}, {"5.", 5},        {"1e3", 1000}, {"1E-3", 1e-3},  {"1e+3", 1000},
                {"007", 7},    {"1e308", 1e308}, {"0.1", 0.1},  {"-1e-9", -1e-9}};
    static const char *const bad[] = {"",      " 1",       "1 ",   "+1",   "-",    "--1",
                                      ".",     "e3",       "1e",   "inf",  "-inf", "nan",
                                      "-nan",  "infinity", "0x10", "1_0",  "1,5",  "1/2",
                                      "1e400", "ten",      "-e",   "1..2", "1-2",  "0x1p3"};
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        double value = 99;
        assert_int_equal(parse_real(good[i].text, &value), 0);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        double value = 99;
        if (parse_real(bad[i], &value) != -1) fail_msg("'%s' is taken", bad[i]);
        assert_true(value == 99);
    }
}

static void probabilities(void **state) {
    static const char *const good[] = {"0", "1", "0.5", "1e-300", "1.0", ".999"};
    static const char *const bad[] = {"-0.1", "1.0000001", "2", "50%", "nan", "", "-1e-300", "1/2"};
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        double value = 99;
        assert_int_equal(parse_probability(good[i], &value), 0);
        assert_true(value == strtod(good[i], NULL));
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        double value = 99;
        if (parse_probability(bad[i], &value) != -1) fail_msg("'%s' is taken", bad[i]);
        assert_true(value == 99);
    }
}

static void durations(void **state) {
    static const struct {
        const char *text;
        uint64_t us;
    } good[] = {{"0", 0},
                {"0us", 0},
                {"0.0s", 0},
                {"1us", 1},
                {"0.5us", 1},
                {"250us", 250},
                {"1ms", 1000},
                {"1.5ms", 1500},
                {".5ms", 500},
                {"1e3us", 1000},
                {"3s", 3000000},
                {"3sec", 3000000},
                {"2min", 120000000},
                {"2m", 120000000},
                {"1h", 3600000000u},
                {"1hour", 3600000000u},
                {"10d", 864000000000u},
                {"1day", 86400000000u},
                {"1000000000s", 1000000000000000u}};
    static const char *const bad[] = {"",      "5",    "ms",    "5 ms",  "5ms ",  " 5ms", "-5ms",
                                      "5MS",   "5mss", "5ks",   "1e10s", "5us5",  "5m5s", "inf s",
                                      "nanms", "5.5",  "0x5ms", "0.4us", "1e-9s", "5µs",  "1e300d"};
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        uint64_t us = 99;
        if (parse_duration(good[i].text, &us) != 0) fail_msg("'%s' is refused", good[i].text);
        assert_true(us == good[i].us);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint64_t us = 99;
        if (parse_duration(bad[i], &us) != -1) fail_msg("'%s' is taken", bad[i]);
        assert_true(us == 99);
    }
}

static void rates(void **state) {
    static const struct {
        const char *text;
        double per_second;
    } good[] = {{"0/s", 0},      {"1/s", 1},          {"0.5/s", 0.5},    {"2/ms", 2000},
                {"1/us", 1e6},   {"3/min", 3.0 / 60}, {"36/hour", 0.01}, {"1e-6/s", 1e-6},
                {"9/sec", 9},    {"36/h", 0.01},      {"864/d", 0.01},   {"864/day", 0.01},
                {"6/m", 6 / 60.}};
    static const char *const bad[] = {"",    "1",    "/s",    "1/",   "1/2s", "-1/s",
                                      "1/x", "1 /s", "1/ s",  "1//s", "1s",   "inf/s",
                                      "s/1", "1/S",  "1/s/s", "1/s "};
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        double rate = 99;
        if (parse_rate(good[i].text, &rate) != 0) fail_msg("'%s' is refused", good[i].text);
        assert_true(fabs(rate - good[i].per_second) <= 1e-15 * rate);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        double rate = 99;
        if (parse_rate(bad[i], &rate) != -1) fail_msg("'%s' is taken", bad[i]);
        assert_true(rate == 99);
    }
}

static void fractions(void **state) {
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"1", 1},
                {"0.25", 0.25},
                {"3s/hour", 3.0 / 3600},
                {"3s/1hour", 3.0 / 3600},
                {"1min/10d", 1.0 / 14400},
                {"30s/min", 0.5},
                {"1s/1s", 1},
                {"0/h", 0},
                {"1us/s", 1e-6}};
    static const char *const bad[] = {"",
                                      "/",
                                      "3s/",
                                      "/hour",
                                      "2s/1s",
                                      "1/2",
                                      "3/h",
                                      "3s/0",
                                      "3s/0s",
                                      "-1s/h",
                                      "3s/x",
                                      "3s/h/d",
                                      "1.5",
                                      "3s /h",
                                      "3s/ h",
                                      "0.00000000000000000000000000000001s/h",
                                      "1s/1000000000000000000000000000000h"};
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        double value = 99;
        if (parse_fraction(good[i].text, &value) != 0) fail_msg("'%s' is refused", good[i].text);
        assert_true(fabs(value - good[i].value) <= 1e-15 * value);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        double value = 99;
        if (parse_fraction(bad[i], &value) != -1) fail_msg("'%s' is taken", bad[i]);
        assert_true(value == 99);
    }
}

/* ---- Writing numbers ---- */

static void assert_real_text(double value, const char *expected) {
    char text[40];
    double read = 99;
    assert_ptr_equal(format_real(text, sizeof text, value), text);
    if (expected) assert_string_equal(text, expected);
    assert_int_equal(parse_real(text, &read), 0);
    assert_true(read == value);
}

static void reals_are_written_short_and_read_back(void **state) {
    struct rng rng;
    (void)state;
    assert_real_text(0, "0");
    assert_real_text(0.1, "0.1");
    assert_real_text(0.25, "0.25");
    assert_real_text(-3, "-3");
    assert_real_text(1.0 / 3, "0.3333333333333333");
    assert_real_text(1e300, "1e+300");
    assert_real_text(0.1 + 0.2, "0.30000000000000004");
    rng_seed(&rng, 5);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = rng_next(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) assert_real_text(value, NULL);
        assert_real_text(rng_unit(&rng), NULL);
    }
}

static void assert_us_text(uint64_t us, const char *expected) {
    char text[40];
    uint64_t read = 99;
    assert_ptr_equal(format_us(text, sizeof text, us), text);
    if (expected) assert_string_equal(text, expected);
    assert_int_equal(parse_duration(text, &read), 0);
    assert_true(read == us);
}

static void durations_are_written_exactly_and_read_back(void **state) {
    struct rng rng;
    (void)state;
    assert_us_text(0, "0us");
    assert_us_text(1, "1us");
    assert_us_text(999, "999us");
    assert_us_text(1000, "1ms");
    assert_us_text(1500, "1500us");
    assert_us_text(1000000, "1s");
    assert_us_text(1001000, "1001ms");
    assert_us_text(3600000000u, "3600s");
    rng_seed(&rng, 6);
    for (int i = 0; i < 20000; i++) { /* whole numbers that a double holds exactly */
        uint64_t us = rng_next(&rng) >> (15 + rng_below(&rng, 49));
        assert_us_text(us, NULL);
        if (us < 1000000000) assert_us_text(us * 1000000, NULL); /* up to the limit */
    }
}

static void durations_for_people(void **state) {
    static const struct {
        double us;
        const char *text;
    } cases[] = {{0, "0 us"},         {999, "999 us"},        {1000, "1 ms"},   {1500, "1.5 ms"},
                 {999999, "1000 ms"}, {1e6, "1 s"},           {119e6, "119 s"}, {120e6, "2 min"},
                 {36e8, "60 min"},    {12345.678, "12.35 ms"}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[40];
        assert_string_equal(format_duration(text, sizeof text, cases[i].us), cases[i].text);
    }
}

static void writing_never_passes_the_end_of_the_buffer(void **state) {
    (void)state;
    for (size_t size = 1; size < 12; size++) {
        char *text = malloc(size);
        assert_non_null(text);
        assert_true(strlen(format_us(text, size, 123456789)) < size);
        assert_true(strlen(format_real(text, size, 1.0 / 3)) < size);
        assert_true(strlen(format_duration(text, size, 12345)) < size);
        free(text);
    }
}

/* ---- Distributions ---- */

static void distributions_are_read_and_written(void **state) {
    static const struct {
        const char *text, *written; /* NULL: the same */
        enum distribution_kind kind;
        double a, b;
    } cases[] = {{"1ms", NULL, CONSTANT, 1000, 0},
                 {"0", "0us", CONSTANT, 0, 0},
                 {"constant:1.5ms", "1500us", CONSTANT, 1500, 0},
                 {"uniform:1ms,5ms", NULL, UNIFORM, 1000, 5000},
                 {"uniform:2ms,2ms", NULL, UNIFORM, 2000, 2000},
                 {"uniform:0,1s", "uniform:0us,1s", UNIFORM, 0, 1e6},
                 {"exponential:2ms", NULL, EXPONENTIAL, 2000, 0},
                 {"lognormal:2ms,0.8", NULL, LOGNORMAL, 2000, 0.8},
                 {"lognormal:2ms,0", NULL, LOGNORMAL, 2000, 0},
                 {"lognormal:7us,9.5", NULL, LOGNORMAL, 7, 9.5}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct distribution d, again;
        char text[80];
        assert_int_equal(distribution_parse(cases[i].text, &d), 0);
        assert_int_equal(d.kind, cases[i].kind);
        assert_true(d.a == cases[i].a && d.b == cases[i].b);
        assert_string_equal(distribution_format(text, sizeof text, &d),
                            cases[i].written ? cases[i].written : cases[i].text);
        assert_int_equal(distribution_parse(text, &again), 0);
        assert_true(again.kind == d.kind && again.a == d.a && again.b == d.b);
    }
}

static void other_distributions_are_refused(void **state) {
    static const char *const bad[] = {"",
                                      "5",
                                      ":1ms",
                                      "1ms:",
                                      "gauss:1ms",
                                      "Uniform:1ms,2ms",
                                      "uniformly:1ms,2ms",
                                      "uni:1ms,2ms",
                                      "uniform",
                                      "uniform:",
                                      "uniform:1ms",
                                      "uniform:1ms,",
                                      "uniform:,1ms",
                                      "uniform:5ms,1ms",
                                      "uniform:1ms,2ms,3ms",
                                      "uniform:1,2",
                                      "uniform:0000000000000000000000000000001ms,2ms",
                                      "constant:",
                                      "constant:1ms,2ms",
                                      "exponential:1ms,2ms",
                                      "exponential:-1ms",
                                      "lognormal:2ms",
                                      "lognormal:2ms,-0.1",
                                      "lognormal:2ms,10.1",
                                      "lognormal:2ms,x",
                                      "lognormal:2ms,1ms",
                                      "lognormal:2ms, 1"};
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct distribution d = {UNIFORM, 3, 4};
        if (distribution_parse(bad[i], &d) != -1) fail_msg("'%s' is taken", bad[i]);
        assert_true(d.kind == UNIFORM && d.a == 3 && d.b == 4);
    }
}

static const struct shape {
    struct distribution d;
    double mean, deviation; /* of one draw, from the textbook */
} shapes[] = {
    {{CONSTANT, 1000, 0}, 1000, 0},
    {{CONSTANT, 0, 0}, 0, 0},
    {{UNIFORM, 1000, 5000}, 3000, 1154.7005383792516},
    {{UNIFORM, 700, 700}, 700, 0},
    {{EXPONENTIAL, 10000, 0}, 10000, 10000},
    {{EXPONENTIAL, 0, 0}, 0, 0},
    {{LOGNORMAL, 2000, 0.8}, 2754.2555286171357, 2604.0286574},
    {{LOGNORMAL, 2000, 0}, 2000, 0},
};
enum { DRAWS = 200000 };

static void the_mean_of_many_draws_is_the_mean(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct rng rng;
        double sum = 0;
        rng_seed(&rng, 100 + i);
        for (int k = 0; k < DRAWS; k++) sum += (double)distribution_draw(&shapes[i].d, &rng);
        assert_true(fabs(distribution_mean(&shapes[i].d) - shapes[i].mean) <=
                    1e-6 * shapes[i].mean);
        /* a draw is cut to whole microseconds: half of one is lost on average */
        assert_true(fabs(sum / DRAWS - shapes[i].mean) <=
                    5 * shapes[i].deviation / sqrt(DRAWS) + 1);
    }
}

/* The part of all draws that is above x, within five standard errors and the cut of one us. */
static void assert_above(const struct distribution *d, double x, unsigned above) {
    double high = distribution_above(d, x), low = distribution_above(d, x + 1);
    double part = (double)above / DRAWS, error = 5 * sqrt(high * (1 - low) / DRAWS);
    double step = d->kind == UNIFORM && d->b > d->a ? 1 / (d->b - d->a) : 0;
    assert_true(high >= low && high <= 1 && low >= 0);
    if (part > high + error + step || part < low - error - step)
        fail_msg("above %g: %g of the draws, not %g", x, part, high);
}

static void draws_are_above_as_often_as_they_should(void **state) {
    static const double points[] = {0,    1,    100,  699,  700,  999,   1000,  1500,
                                    2000, 2500, 3000, 4999, 5000, 10000, 20000, 50000};
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        unsigned above[COUNT(points)] = {0};
        struct rng rng;
        rng_seed(&rng, 200 + i);
        for (int k = 0; k < DRAWS; k++) {
            double drawn = (double)distribution_draw(&shapes[i].d, &rng);
            for (size_t p = 0; p < COUNT(points); p++) above[p] += drawn > points[p];
        }
        for (size_t p = 0; p < COUNT(points); p++) assert_above(&shapes[i].d, points[p], above[p]);
    }
}

static void survival_has_the_known_values(void **state) {
    (void)state;
    const struct distribution constant = {CONSTANT, 1000, 0}, uniform = {UNIFORM, 1000, 5000},
                              exponential = {EXPONENTIAL, 1000, 0},
                              lognormal = {LOGNORMAL, 1000, 1};
    for (size_t i = 0; i < COUNT(shapes); i++)
        assert_true(distribution_above(&shapes[i].d, -1) == 1);
    assert_true(distribution_above(&constant, 999.9) == 1);
    assert_true(distribution_above(&constant, 1000) == 0);
    assert_true(distribution_above(&uniform, 2000) == 0.75);
    assert_true(distribution_above(&uniform, 500) == 1 && distribution_above(&uniform, 5000) == 0);
    assert_true(fabs(distribution_above(&exponential, 1000) - 0.36787944117144233) < 1e-15);
    assert_true(distribution_above(&exponential, 0) == 1);
    assert_true(distribution_above(&lognormal, 0) == 1);
    assert_true(fabs(distribution_above(&lognormal, 1000) - 0.5) < 1e-15);
    assert_true(fabs(distribution_above(&lognormal, 1000 * exp(1)) - 0.15865525393145707) < 1e-14);
}

static void draws_stay_within_their_bounds(void **state) {
    const struct distribution uniform = {UNIFORM, 3, 5};
    unsigned count[3] = {0};
    struct rng rng;
    (void)state;
    rng_seed(&rng, 9);
    for (int i = 0; i < 30000; i++) {
        uint64_t drawn = distribution_draw(&uniform, &rng);
        assert_true(drawn >= 3 && drawn <= 5);
        count[drawn - 3]++;
    }
    assert_even(count, 3);
}

/* ---- Memory ---- */

static void assert_zero(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], 0);
}

static void pieces_are_aligned_apart_and_zero(void **state) {
    struct arena arena;
    unsigned char *piece[64];
    (void)state;
    assert_int_equal(arena_open(&arena, 1 << 24), 0);
    for (size_t i = 0; i < 64; i++) {
        piece[i] = arena_take(&arena, i * 100);
        assert_int_equal((uintptr_t)piece[i] % 64, 0);
        assert_zero(piece[i], i * 100);
        memset(piece[i], (int)i, i * 100);
    }
    for (size_t i = 0; i < 64; i++)
        for (size_t k = 0; k < i * 100; k++) assert_int_equal(piece[i][k], i);
    arena_close(&arena);
    assert_null(arena.base);
    arena_close(&arena);
}

static void extending_is_contiguous_and_moves_nothing(void **state) {
    struct arena arena;
    (void)state;
    assert_int_equal(arena_open(&arena, (size_t)1 << 30), 0);
    unsigned char *first = arena_take(&arena, 24), *end = first + 24;
    for (size_t bytes = 1; bytes < (1u << 20); bytes = bytes * 3 + 1) {
        unsigned char *more = arena_extend(&arena, bytes);
        assert_ptr_equal(more, end);
        assert_zero(more, bytes);
        memset(more, 0xa5, bytes);
        end = more + bytes;
    }
    assert_ptr_equal(arena.base, first);
    for (unsigned char *at = first + 24; at < end; at++) assert_int_equal(*at, 0xa5);
    assert_ptr_equal(arena_extend(&arena, 0), end);
    arena_close(&arena);
}

static void a_reset_arena_hands_out_the_same_memory_zeroed(void **state) {
    struct arena arena;
    (void)state;
    assert_int_equal(arena_open(&arena, 1 << 24), 0);
    for (size_t round = 1; round <= 5; round++) {
        unsigned char *piece = arena_take(&arena, 100000 * round);
        assert_ptr_equal(piece, arena.base);
        assert_zero(piece, 100000 * round);
        memset(piece, 0xff, 100000 * round);
        arena_reset(&arena);
    }
    assert_int_equal(arena.used, 0);
    arena_reset(&arena);
    arena_close(&arena);
}

static void too_many_addresses_become_fewer(void **state) {
    struct arena arena;
    (void)state;
    assert_int_equal(arena_open(&arena, SIZE_MAX / 2 + 1), 0);
    assert_true(arena.reserved < SIZE_MAX / 2);
    memset(arena_take(&arena, 1000), 1, 1000);
    arena_close(&arena);
}

/* The whole reserve can be used, and one byte more ends the program with status 3. */
static void memory_that_runs_out_ends_the_program(void **state) {
    (void)state;
    for (int beyond = 0; beyond < 2; beyond++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct arena arena;
            if (!freopen("/dev/null", "w", stderr) || arena_open(&arena, 1 << 16) != 0) _exit(9);
            memset(arena_take(&arena, (1 << 16) + (size_t)beyond), 1, 1 << 16);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), beyond ? 3 : 0);
    }
}

/* ---- UTF-8 ---- */

static void characters_are_decoded(void **state) {
    static const struct {
        const char *text;
        uint32_t code[4];
    } cases[] = {
        {"", {0}},
        {"aZ", {'a', 'Z', 0}},
        {"\xc3\xa9x", {0xe9, 'x', 0}},
        {"\xe2\x82\xac", {0x20ac, 0}},
        {"\xf0\x9f\x94\x92", {0x1f512, 0}},
        {"\x80x", {UTF8_BROKEN, 'x', 0}},            /* begins in the middle */
        {"\xc3", {UTF8_BROKEN, 0}},                  /* ends in the middle */
        {"\xe2\x82", {UTF8_BROKEN, UTF8_BROKEN, 0}}, /* the same */
        {"\xc3(", {UTF8_BROKEN, '(', 0}},            /* another character begins */
        {"\xc0\xaf", {UTF8_BROKEN, 0}},              /* overlong */
        {"\xed\xa0\x80", {UTF8_BROKEN, 0}},          /* a surrogate */
        {"\xf4\x90\x80\x80", {UTF8_BROKEN, 0}},      /* above the last code point */
        {"\xef\xbf\xbf", {UTF8_BROKEN, 0}},          /* not a character */
        {"\xff\xfe", {UTF8_BROKEN, UTF8_BROKEN, 0}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *at = cases[i].text;
        for (const uint32_t *code = cases[i].code;; code++) {
            assert_int_equal(utf8_next(&at), *code);
            if (!*code) break;
        }
        assert_ptr_equal(at, cases[i].text + strlen(cases[i].text));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_is_xoshiro256_plus_plus),
        cmocka_unit_test(its_state_is_filled_by_splitmix64),
        cmocka_unit_test(units_are_from_0_to_below_1),
        cmocka_unit_test(small_bounds_are_kept_and_even),
        cmocka_unit_test(large_bounds_are_kept_and_even),
        cmocka_unit_test(chances_are_taken_as_often_as_they_say),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(real_numbers),
        cmocka_unit_test(probabilities),
        cmocka_unit_test(durations),
        cmocka_unit_test(rates),
        cmocka_unit_test(fractions),
        cmocka_unit_test(reals_are_written_short_and_read_back),
        cmocka_unit_test(durations_are_written_exactly_and_read_back),
        cmocka_unit_test(durations_for_people),
        cmocka_unit_test(writing_never_passes_the_end_of_the_buffer),
        cmocka_unit_test(distributions_are_read_and_written),
        cmocka_unit_test(other_distributions_are_refused),
        cmocka_unit_test(the_mean_of_many_draws_is_the_mean),
        cmocka_unit_test(draws_are_above_as_often_as_they_should),
        cmocka_unit_test(survival_has_the_known_values),
        cmocka_unit_test(draws_stay_within_their_bounds),
        cmocka_unit_test(pieces_are_aligned_apart_and_zero),
        cmocka_unit_test(extending_is_contiguous_and_moves_nothing),
        cmocka_unit_test(a_reset_arena_hands_out_the_same_memory_zeroed),
        cmocka_unit_test(too_many_addresses_become_fewer),
        cmocka_unit_test(memory_that_runs_out_ends_the_program),
        cmocka_unit_test(characters_are_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
