/* conclave trace, of records of servers: replayed step by step, and judged. */
#include "cli/trace_servers.h"

#include <errno.h>
#include <string.h>

#include "cli/options.h"
#include "lab/servers/picture.h"
#include "lab/servers/replay.h"

bool trace_is_of_server(const char *path) {
    FILE *file = fopen(path, "re");
    bool is_record = file && steps_is_record(file);
    if (file) fclose(file);
    return is_record;
}

static unsigned count_servers(const struct servers_judge *judge) {
    unsigned count = 0;
    for (unsigned id = 0; id < sizeof judge->server; id++) count += judge->server[id];
    return count;
}

static void print_report(const struct servers_replay *replay, const struct servers_judge *judge,
                         FILE *out) {
    fprintf(out, "%llu steps of the consensus core replayed, each to the state that was recorded\n",
            (unsigned long long)replay->steps);
    if (replay->torn)
        fprintf(out, "  %-20s the end of %llu record%s is torn, and left out\n", "records",
                (unsigned long long)replay->torn, replay->torn == 1 ? "" : "s");
    if (replay->missed)
        fprintf(out, "  %-20s %llu, where the disk was too slow or a part of a record is missing\n",
                "gaps", (unsigned long long)replay->missed);
    fprintf(out, "  %-20s %llu\n", "starts of servers", (unsigned long long)replay->starts);
    if (!replay->judge) return;
    fprintf(out, "  %-20s %u\n", "servers", count_servers(judge));
    if (judge->committed_count)
        fprintf(out, "  %-20s %llu to %llu\n", "committed entries",
                (unsigned long long)judge->committed[0].first,
                (unsigned long long)judge->committed[judge->committed_count - 1].last);
    if (judge->terms)
        fprintf(out, "  %-20s %llu to %llu\n", "terms", (unsigned long long)judge->term[0].term,
                (unsigned long long)judge->term[judge->terms - 1].term);
    for (int i = 0; i < SERVERS_PROPERTIES; i++) {
        fprintf(out, "  %-20s %s", servers_judge_property_name((enum servers_property)i),
                *judge->why[i] ? "VIOLATED" : "holds");
        fprintf(out, *judge->why[i] ? ": %s\n" : "\n", judge->why[i]);
    }
}

static void print_json_report(const struct servers_replay *replay,
                              const struct servers_judge *judge) {
    json_t *report = json_pack("{s:I, s:I, s:I, s:I}", "steps", (json_int_t)replay->steps, "starts",
                               (json_int_t)replay->starts, "torn", (json_int_t)replay->torn, "gaps",
                               (json_int_t)replay->missed);
    if (replay->judge) {
        json_t *verdicts = json_object(), *why = json_object();
        for (int i = 0; i < SERVERS_PROPERTIES; i++) {
            const char *name = servers_judge_property_name((enum servers_property)i);
            json_object_set_new(verdicts, name, json_string(*judge->why[i] ? "violated" : "holds"));
            if (*judge->why[i]) json_object_set_new(why, name, json_string(judge->why[i]));
        }
        json_object_set_new(verdicts, "why", why);
        json_object_set_new(report, "servers", json_integer(count_servers(judge)));
        json_object_set_new(report, "verdicts", verdicts);
    }
    print_json(report);
}

/* ---- The picture ---- */

static void say_violated(const struct servers_judge *judge, char text[TRACE_VIOLATED_MAX]) {
    size_t used = 0;
    *text = 0;
    for (int i = 0; i < SERVERS_PROPERTIES && used < TRACE_VIOLATED_MAX; i++)
        if (*judge->why[i])
            used += (size_t)snprintf(
                text + used, TRACE_VIOLATED_MAX - used, "%s%s: %s", used ? "\n" : "",
                servers_judge_property_name((enum servers_property)i), judge->why[i]);
}

static void write_picture(const struct trace_servers *request, struct servers_picture *picture,
                          const struct servers_judge *judge) {
    const char *path = request->output ? request->output : "-";
    char violated[TRACE_VIOLATED_MAX];
    FILE *out = open_output(path, request->force);
    say_violated(judge, violated);
    servers_picture_write(picture, violated, request->format, request->page, out);
    close_output(out, path);
}

int trace_servers(const struct trace_servers *request) {
    struct servers_judge judge = {0};
    struct servers_picture *picture = request->picture ? servers_picture_open() : NULL;
    struct servers_replay replay = {.judge = request->replay ? NULL : &judge, .picture = picture};
    bool on_stdout = picture && (!request->output || !strcmp(request->output, "-"));
    for (int i = 0; i < request->count; i++) {
        FILE *file = fopen(request->paths[i], "re");
        if (!file) usage_error("%s: %s", request->paths[i], strerror(errno));
        if (servers_replay_file(&replay, request->paths[i], file) != 0)
            usage_error("%s", replay.error);
    }
    servers_judge_finish(&judge);
    bool violated = servers_judge_is_violated(&judge);
    if (picture) write_picture(request, picture, &judge);
    uint64_t unsent = picture ? servers_picture_unsent(picture) : 0;
    FILE *out = on_stdout ? stderr : stdout;
    if (request->json)
        print_json_report(&replay, &judge);
    else
        print_report(&replay, &judge, out);
    if (unsent && !request->json)
        fprintf(out, "  %-20s %llu, which a record that ends early or is not here does not have\n",
                "messages of nobody", (unsigned long long)unsent);
    if (picture) servers_picture_close(picture);
    servers_replay_close(&replay);
    servers_judge_close(&judge);
    return violated ? EXIT_VIOLATED : EXIT_OK;
}
