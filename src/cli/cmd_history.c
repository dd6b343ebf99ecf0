/* conclave history: whether a history of operations is linearizable. */
#include <stdlib.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/history_file.h"

enum { KEY_SEQUENTIAL = 256, KEY_WORK };
enum { EXIT_UNDECIDED = 4, ORDER_SHOWN = 8 };

struct request {
    struct history_rules rules;
    const char *path;
    bool json;
};

static const struct argp_option options[] = {
    {"sequential", KEY_SEQUENTIAL, NULL, 0,
     "Sequential consistency: a read may show an older state than the newest, but none older than "
     "its client knows",
     0},
    {"work", KEY_WORK, "K", 0, "Give up on a key after K steps (20000000)", 0},
    {"json", 'j', NULL, 0, "Report in JSON", 0},
    {0}};

static const char doc[] =
    "Judge a history: the operations of several clients on nodes and locks, with their times.  It "
    "is linearizable when for each key there is one order of all operations, each at a moment "
    "between "
    "its start and its end, in which every answer is right.  FILE has a JSON object for each "
    "operation, on a line "
    "of its own and in any order; - is standard input.\v"
    "Fields of every operation:\n"
    "  client, key   texts or whole numbers\n"
    "  op            the operation, see below\n"
    "  start, end    whole numbers in any unit; without an end, no answer came: it\n"
    "                takes effect at any time after its start, or never\n"
    "  result        ok, which is the default; or as below; or unknown, which is\n"
    "                the same as no end\n"
    "  note          anything; it is ignored\n"
    "Fields of some; a value is any JSON except null, and a version that is not given\n"
    "may be any:\n"
    "  read          value, null: no node; version; or result no_node\n"
    "  write         value; the version that it made; or result no_node\n"
    "  cas           value, and expected, a version, or expected_value; the version\n"
    "                that it made; or result bad_version or no_node\n"
    "  create        value; or result exists; the version is then 0\n"
    "  delete        expected, a version; or result bad_version or no_node\n"
    "  acquire       the lock of that name; token, which grows; or result refused:\n"
    "                somebody holds it\n"
    "  release       or result refused: the client does not hold it\n"
    "  initial       no operation: the value and version of the key at the\n"
    "                beginning; keys without it had no node\n"
    "The end of a session is written as a delete or a release by its client, without an end, for "
    "each ephemeral node or lock that it had.\n\n"
    "Exit status: 0 it holds, 1 it is violated, 2 wrong usage or a bad file, 4 undecided within "
    "--work.\n\n"
    "Examples, for a file in which b reads what was overwritten before it asked (the first "
    "fails):\n"
    "  {\"client\":\"a\",\"key\":\"/x\",\"op\":\"create\",\"value\":1,\"start\":0,\"end\":5}\n"
    "  {\"client\":\"a\",\"key\":\"/x\",\"op\":\"write\",\"value\":2,\"start\":6,\"end\":9}\n"
    "  {\"client\":\"b\",\"key\":\"/x\",\"op\":\"read\",\"value\":1,\"start\":10,\"end\":12}\n"
    "  conclave history history.jsonl\n"
    "  conclave history --sequential history.jsonl\n";

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_SEQUENTIAL: request->rules.sequential = true; return 0;
    case KEY_WORK:
        if (parse_u64(text, &request->rules.work_limit) != 0 || !request->rules.work_limit)
            usage_error("work: '%s' is not a whole number above 0", text);
        return 0;
    case 'j': request->json = true; return 0;
    case ARGP_KEY_ARG:
        if (request->path) usage_error("one history at a time: %s or %s", request->path, text);
        request->path = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const char *property_of(const struct request *request) {
    return request->rules.sequential ? "sequential_consistency" : "linearizability";
}

/* ---- JSON ---- */

static json_t *counterexample_json(const struct history_file *file,
                                   const struct history_result *result) {
    if (result->verdict.value != VIOLATED) return json_null();
    char what[HISTORY_TEXT_MAX], why[HISTORY_TEXT_MAX];
    json_t *order = json_array(), *stuck = json_array();
    for (size_t i = 0; i < result->ordered; i++)
        json_array_append_new(order, json_integer((json_int_t)file->line[result->order[i]]));
    for (size_t i = 0; i < result->stuck_count; i++) {
        size_t index = result->stuck[i];
        history_describe(&file->history, index, what);
        history_why(&file->history, result, index, why);
        json_array_append_new(stuck,
                              json_pack("{s:I, s:s, s:s}", "line", (json_int_t)file->line[index],
                                        "operation", what, "why", why));
    }
    return json_pack("{s:I, s:o, s:o}", "at", (json_int_t)result->verdict.at_us, "order", order,
                     "stuck", stuck);
}

static json_t *report_json(const struct request *request, const struct history_file *file,
                           const struct history_result *result) {
    enum verdict_value value = result->verdict.value;
    json_t *report =
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "operations",
                  (json_int_t)(file->history.count - file->initials), "clients",
                  (json_int_t)file->clients.count, "keys", (json_int_t)file->keys.count,
                  "unanswered", (json_int_t)file->unanswered, "work", (json_int_t)result->work);
    json_object_set_new(report, "verdicts",
                        json_pack("{s:s}", property_of(request), verdict_word(value)));
    json_object_set_new(report, "key",
                        value == HELD ? json_null() : json_string(file->keys.text[result->key]));
    json_object_set_new(report, "why", json_string(result->verdict.why));
    json_object_set_new(report, "counterexample", counterexample_json(file, result));
    return report;
}

/* ---- Text ---- */

static void show_order(const struct history_file *file, const struct history_result *result) {
    char text[HISTORY_TEXT_MAX];
    size_t first = result->ordered > ORDER_SHOWN ? result->ordered - ORDER_SHOWN : 0;
    printf("\nThe longest order found on %s: %zu operation%s", file->keys.text[result->key],
           result->ordered, result->ordered == 1 ? "" : "s");
    if (first) printf(", of which the last %zu are", result->ordered - first);
    puts(result->ordered ? ":" : ".");
    for (size_t i = first; i < result->ordered; i++) {
        size_t index = result->order[i];
        printf("  line %-6zu %s\n", file->line[index],
               history_describe(&file->history, index, text));
    }
}

static void show_stuck(const struct history_file *file, const struct history_result *result) {
    char text[HISTORY_TEXT_MAX];
    puts("Operations that have to be next, and cannot be:");
    for (size_t i = 0; i < result->stuck_count; i++) {
        size_t index = result->stuck[i];
        printf("  line %-6zu %s, ", file->line[index],
               history_describe(&file->history, index, text));
        printf("but %s\n", history_why(&file->history, result, index, text));
    }
}

static void report_text(const struct request *request, const struct history_file *file,
                        const struct history_result *result) {
    const struct verdict *verdict = &result->verdict;
    size_t operations = file->history.count - file->initials;
    printf("%zu operation%s by %zu client%s on %zu key%s, %zu without an answer:\n", operations,
           operations == 1 ? "" : "s", file->clients.count, file->clients.count == 1 ? "" : "s",
           file->keys.count, file->keys.count == 1 ? "" : "s", file->unanswered);
    printf("  %-22s ", property_of(request));
    switch (verdict->value) {
    case HELD: puts("held"); break;
    case VIOLATED:
        printf("violated at %lld on %s: %s\n", (long long)verdict->at_us,
               file->keys.text[result->key], verdict->why);
        show_order(file, result);
        show_stuck(file, result);
        break;
    case UNKNOWN:
        printf("undecided on %s: %s; --work allows more\n", file->keys.text[result->key],
               verdict->why);
    }
}

int cmd_history(int argc, char **argv) {
    static const struct argp argp = {options, parse, "FILE", doc, NULL, NULL, NULL};
    struct request request = {0};
    struct history_file file;
    struct history_result result;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (!request.path) usage_error("history: which file? See conclave history --help");
    history_file_read(&file, request.path);
    if (file.history.count == file.initials) usage_error("%s: no operations", request.path);
    history_judge(&file.history, &request.rules, &result);
    if (request.json)
        print_json(report_json(&request, &file, &result));
    else
        report_text(&request, &file, &result);
    enum verdict_value value = result.verdict.value;
    history_result_close(&result);
    history_file_close(&file);
    return value == HELD ? EXIT_OK : value == VIOLATED ? EXIT_VIOLATED : EXIT_UNDECIDED;
}
