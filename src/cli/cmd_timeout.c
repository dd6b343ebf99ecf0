/* conclave timeout */
#include <errno.h>
#include <math.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "lab/experiments/stats.h"
#include "lab/experiments/timeout.h"
#include "language/language.h"

struct request {
    struct timeout_problem problem;
    const char *model, *file, *plot;
    bool json, force;
};
enum { KEY_FORCE = 0x100 };

struct answer {
    struct timeout_point break_even, least_total, curve[TIMEOUT_CURVE_MAX];
    size_t count;
};

static const struct argp_option options[] = {
    {"wait-cost", 'w', "E", 0, "Cost of one second of waiting", 0},
    {"mistake-cost", 'm', "C", 0, "Cost of giving up on an answer that is only late", 0},
    {"delay", 'd', "MODEL", 0, "Delay of an answer: " DISTRIBUTION_SYNTAX, 0},
    {"delays", 'f', "FILE", 0,
     "Measured delays: one to a line, as 12.5ms or as a number of milliseconds; # begins a "
     "comment; - is standard input",
     0},
    {"plot", 'o', "FILE", 0, "Plot the costs as SVG; - is standard output", 0},
    {"force", KEY_FORCE, 0, 0, "Overwrite a file that is there", 0},
    {"json", 'j', 0, 0, "Report in JSON", 0},
    LANG_OPTION(0),
    {0}};

static const char doc[] =
    "How long to wait for an answer before taking its sender for dead.  Waiting T costs E*T; "
    "giving "
    "up on an answer that is only late costs C, and happens with p(T), the probability that a "
    "delay "
    "is above T. Two answers: the break-even T, the first at which C*p(T) > E*T ends, which is "
    "the "
    "rule of many lectures; and the least total T, at which C*p(T) + E*T is smallest.\v"
    "E and C are in the same unit, whichever it is.  The least total is the minimum of E*T + "
    "C*p(T).\n\n"
    "Examples:\n"
    "  conclave timeout --wait-cost 1 --mistake-cost 10 --delay exponential:20ms\n"
    "  conclave timeout -w 1 -m 10 --delays ping.txt --plot costs.svg\n";

/* ---- The command line ---- */

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
    case KEY_FORCE: request->force = true; return 0;
    case 'j': request->json = true; return 0;
    case KEY_LANG: return language_option(argument);
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
    require_output(request->plot, request->force);
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
    json_object_set_new(report, "best", solution_json(&answer->break_even)); /* by the rule */
    json_object_set_new(report, "least_total", solution_json(&answer->least_total));
    json_object_set_new(report, "curve", curve_json(answer));
    return report;
}

/* ---- Text ---- */

static void print_problem(const struct request *request) {
    const struct timeout_problem *problem = &request->problem;
    char p50[32], p99[32], longest[32];
    printf(_("waiting       %.6g per second (E)\n"), problem->wait_cost);
    printf(_("a mistake     %.6g (C)\n"), problem->mistake_cost);
    if (request->model) {
        printf(_("delays        %s\n"), request->model);
        return;
    }
    struct stats s = stats_of(problem->delays.sample_us, problem->delays.count);
    printf(_("delays        %s: %zu, half of them up to %s, 99%% up to %s, all up to %s\n"),
           request->file, s.count, format_duration(p50, sizeof p50, s.p50),
           format_duration(p99, sizeof p99, s.p99),
           format_duration(longest, sizeof longest, s.max));
}

static void print_solution(const char *name, const struct timeout_point *p, const char *meaning) {
    char timeout[32];
    printf("%-*s %-10s %s\n", COLUMN(13, name),
           format_duration(timeout, sizeof timeout, p->timeout_us), meaning);
    printf(_("%-13s a mistake with probability %.4g: costs %.4g + %.4g waiting = %.4g\n"), "",
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
    printf("\n%12s %11s %12s %12s %12s\n", "T (ms)", "p(T)", "C p(T)", "E T", _("total"));
    for (size_t i = 0; i < answer->count; i++) {
        const struct timeout_point *p = &answer->curve[i];
        bool even = p->timeout_us == answer->break_even.timeout_us;
        bool least = p->timeout_us == answer->least_total.timeout_us;
        printf("%12.*f %11.4g %12.5g %12.5g %12.5g%s%s%s%s\n", places, p->timeout_us / 1e3,
               p->mistake_probability, p->mistake_cost, p->wait_cost, timeout_total(p),
               even || least ? "  <- " : "", even ? _("break-even") : "", even && least ? ", " : "",
               least ? _("least total") : "");
    }
}

static void print_answer(const struct request *request, const struct answer *answer) {
    const struct delays *delays = &request->problem.delays;
    print_problem(request);
    putchar('\n');
    print_solution(_("break-even T"), &answer->break_even,
                   _("the rule \"wait while C p > E\": the first T with C p(T) <= E T"));
    print_solution(_("least total T"), &answer->least_total,
                   _("the cheapest: the T with the smallest C p(T) + E T"));
    if (answer->break_even.timeout_us != answer->least_total.timeout_us)
        puts(
            _("They differ: where the two costs are equal, their sum is not the smallest.  Use the "
              "least total."));
    if (delays->count && answer->break_even.mistake_probability == 0)
        printf(_("              No measured delay is longer than that; longer ones may exist, "
                 "but only\n"
                 "              more measurements can show that.\n"));
    print_curve(answer);
}

int cmd_timeout(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, 0, 0, 0};
    struct request request = {0};
    struct answer answer;
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.json) language_choose(ENGLISH);
    check(&request);
    answer.break_even = timeout_break_even(&request.problem);
    answer.least_total = timeout_least_total(&request.problem);
    answer.count =
        timeout_curve(&request.problem, &answer.break_even, &answer.least_total, answer.curve);
    if (request.plot) {
        FILE *out = open_output(request.plot, request.force);
        timeout_plot(&request.problem, &answer.break_even, &answer.least_total, out);
        close_output(out, request.plot);
    }
    if (request.json)
        print_json(to_json(&request, &answer));
    else if (!request.plot || strcmp(request.plot, "-") != 0)
        print_answer(&request, &answer);
    delays_free(&request.problem.delays);
    return EXIT_OK;
}
