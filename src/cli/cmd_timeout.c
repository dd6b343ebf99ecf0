/* conclave timeout */
#include <errno.h>
#include <math.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "lab/stats.h"
#include "lab/timeout.h"

struct request {
    struct timeout_problem problem;
    const char *model, *file, *plot;
    bool json;
};

struct answer {
    struct timeout_point best, least_total, curve[TIMEOUT_CURVE_MAX];
    size_t count;
};

static const struct argp_option options[] = {
    {"wait-cost", 'w', "E", 0, "What one second of waiting costs", 0},
    {"mistake-cost", 'm', "C", 0, "What it costs to give up on an answer that is only late", 0},
    {"delay", 'd', "MODEL", 0, "How long answers take: " DISTRIBUTION_SYNTAX, 0},
    {"delays", 'f', "FILE", 0,
     "How long answers took: one to a line, as 12.5ms or as a number of milliseconds; # begins a "
     "comment; - is standard input",
     0},
    {"plot", 'o', "FILE", 0, "Draw the costs as SVG; - is standard output", 0},
    {"json", 'j', 0, 0, "Report in JSON", 0},
    {0}};

static const char doc[] =
    "How long to wait for an answer before taking its sender for dead.  Waiting T costs E*T; "
    "giving "
    "up on an answer that is only late costs C, and happens with p(T), the probability that a "
    "delay "
    "is above T.  Wait while C*p(T) > E*T: the best T is the first at which that ends.\v"
    "E and C are in the same unit, whichever it is.  The least total is where E*T + C*p(T) is "
    "smallest.\n\n"
    "Examples:\n"
    "  conclave timeout --wait-cost 1 --mistake-cost 10 --delay exponential:20ms\n"
    "  conclave timeout -w 1 -m 10 --delays ping.txt --plot costs.svg\n";

/* ---- What is asked ---- */

static double cost(const char *option, const char *text) {
    double value;
    if (parse_real(text, &value) != 0 || value < 1e-100 || value > 1e100)
        usage_error("--%s: '%s' is not a number above 0 (from 1e-100 to 1e100)", option, text);
    return value;
}

static int parse(int key, char *argument, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case 'w': request->problem.wait_cost = cost("wait-cost", argument); return 0;
    case 'm': request->problem.mistake_cost = cost("mistake-cost", argument); return 0;
    case 'd': request->model = argument; return 0;
    case 'f': request->file = argument; return 0;
    case 'o': request->plot = argument; return 0;
    case 'j': request->json = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void read_delays(const char *path, struct delays *delays) {
    char error[TIMEOUT_ERROR_MAX];
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "r");
    if (!file) system_error("%s: %s", path, strerror(errno));
    errno = 0;
    int failed = delays_read(delays, file, standard ? "standard input" : path, error);
    if (ferror(file)) system_error("%s: %s", path, strerror(errno));
    if (failed) usage_error("%s", error);
    if (!standard) fclose(file);
}

static void check(struct request *request) {
    struct timeout_problem *problem = &request->problem;
    const bool delays = request->model || request->file;
    if (!problem->wait_cost || !problem->mistake_cost || !delays)
        usage_error(
            "missing:%s%s%s; for instance: conclave timeout --wait-cost 1 --mistake-cost 10 "
            "--delay exponential:20ms",
            problem->wait_cost ? "" : " --wait-cost",
            problem->mistake_cost ? "" : " --mistake-cost", delays ? "" : " --delay or --delays");
    if (request->model && request->file)
        usage_error("--delay and --delays: give a model or measured delays, not both");
    if (request->json && request->plot && strcmp(request->plot, "-") == 0)
        usage_error("--plot: both it and --json want standard output; give it a file");
    if (request->file)
        read_delays(request->file, &problem->delays);
    else if (distribution_parse(request->model, &problem->delays.model) != 0)
        usage_error("--delay: '%s' is not " DISTRIBUTION_SYNTAX, request->model);
}

/* ---- JSON ---- */

static json_t *solution_json(const struct timeout_point *p) {
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "timeout_ms", p->timeout_us / 1e3,
                     "mistake_probability", p->mistake_probability, "mistake_cost", p->mistake_cost,
                     "wait_cost", p->wait_cost, "total_cost", timeout_total(p));
}

static json_t *curve_json(const struct answer *answer) {
    json_t *curve = json_array();
    for (size_t i = 0; i < answer->count; i++) {
        const struct timeout_point *p = &answer->curve[i];
        json_array_append_new(curve, json_pack("{s:f, s:f, s:f, s:f}", "timeout_ms",
                                               p->timeout_us / 1e3, "mistake_probability",
                                               p->mistake_probability, "expected_mistake_cost",
                                               p->mistake_cost, "waiting_cost", p->wait_cost));
    }
    return curve;
}

static json_t *to_json(const struct request *request, const struct answer *answer) {
    const struct timeout_problem *problem = &request->problem;
    json_t *report =
        json_pack("{s:f, s:f, s:s}", "wait_cost", problem->wait_cost, "mistake_cost",
                  problem->mistake_cost, "delays", request->file ? request->file : request->model);
    if (request->file)
        json_object_set_new(report, "samples", json_integer((json_int_t)problem->delays.count));
    json_object_set_new(report, "best", solution_json(&answer->best));
    json_object_set_new(report, "least_total", solution_json(&answer->least_total));
    json_object_set_new(report, "curve", curve_json(answer));
    return report;
}

/* ---- For people ---- */

static void print_problem(const struct request *request) {
    const struct timeout_problem *problem = &request->problem;
    char p50[32], p99[32], most[32];
    printf("waiting       %.6g per second (E)\n", problem->wait_cost);
    printf("a mistake     %.6g (C)\n", problem->mistake_cost);
    if (request->model) {
        printf("delays        %s\n", request->model);
        return;
    }
    struct stats s = stats_of(problem->delays.sample_us, problem->delays.count);
    printf("delays        %s: %zu, half of them up to %s, 99%% up to %s, all up to %s\n",
           request->file, s.count, format_duration(p50, sizeof p50, s.p50),
           format_duration(p99, sizeof p99, s.p99), format_duration(most, sizeof most, s.most));
}

static void print_solution(const char *name, const struct timeout_point *p, const char *meaning) {
    char timeout[32];
    printf("%-13s %-10s %s\n", name, format_duration(timeout, sizeof timeout, p->timeout_us),
           meaning);
    printf("%-13s a mistake with probability %.4g: costs %.4g + %.4g waiting = %.4g\n", "",
           p->mistake_probability, p->mistake_cost, p->wait_cost, timeout_total(p));
}

/* Enough decimals to tell the rows apart. */
static int decimals(const struct answer *answer) {
    double widest = answer->curve[answer->count - 1].timeout_us / 1e3;
    int digits = 4 - (int)floor(log10(widest));
    return digits < 0 ? 0 : digits > 6 ? 6 : digits;
}

static void print_curve(const struct answer *answer) {
    int places = decimals(answer);
    printf("\n%12s %11s %12s %12s %12s\n", "T (ms)", "p(T)", "C p(T)", "E T", "total");
    for (size_t i = 0; i < answer->count; i++) {
        const struct timeout_point *p = &answer->curve[i];
        bool best = p->timeout_us == answer->best.timeout_us;
        bool least = p->timeout_us == answer->least_total.timeout_us;
        printf("%12.*f %11.4g %12.5g %12.5g %12.5g%s%s%s%s\n", places, p->timeout_us / 1e3,
               p->mistake_probability, p->mistake_cost, p->wait_cost, timeout_total(p),
               best || least ? "  <- " : "", best ? "best" : "", best && least ? ", " : "",
               least ? "least total" : "");
    }
}

static void print_answer(const struct request *request, const struct answer *answer) {
    const struct delays *delays = &request->problem.delays;
    print_problem(request);
    putchar('\n');
    print_solution("best T", &answer->best, "the first T with C p(T) <= E T");
    print_solution("least total", &answer->least_total, "the T with the smallest C p(T) + E T");
    if (delays->count && answer->best.mistake_probability == 0)
        printf(
            "              No measured delay is longer than the best T: longer ones may exist, and"
            " only\n              more measurements can tell.\n");
    print_curve(answer);
}

int cmd_timeout(int argc, char **argv) {
    static const struct argp argp = {options, parse, "", doc, 0, 0, 0};
    struct request request = {0};
    struct answer answer;
    argp_parse(&argp, argc, argv, 0, 0, &request);
    check(&request);
    answer.best = timeout_best(&request.problem);
    answer.least_total = timeout_least_total(&request.problem);
    answer.count = timeout_curve(&request.problem, &answer.best, &answer.least_total, answer.curve);
    if (request.plot) {
        FILE *out = open_output(request.plot);
        timeout_plot(&request.problem, &answer.best, &answer.least_total, out);
        close_output(out, request.plot);
    }
    if (request.json)
        print_json(to_json(&request, &answer));
    else if (!request.plot || strcmp(request.plot, "-") != 0)
        print_answer(&request, &answer);
    delays_free(&request.problem.delays);
    return EXIT_OK;
}
