/* conclave museum: faults of consensus and of locks that were published, and what finds them. */
#include <string.h>

#include "base/spelling.h"
#include "cli/cli.h"
#include "cli/museum.h"

struct request {
    const char *name;
    bool json;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case 'j': request->json = true; return 0;
    case ARGP_KEY_ARG:
        if (request->name) usage_error("museum: one at a time: %s or %s", request->name, text);
        request->name = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct exhibit *require_exhibit(const char *name) {
    const char *nearest = NULL;
    unsigned best = 4;
    for (const struct exhibit *e = exhibits; e->name; e++) {
        if (strcmp(e->name, name) == 0) return e;
        unsigned distance = word_distance(name, e->name);
        if (distance < best) best = distance, nearest = e->name;
    }
    if (nearest) usage_error("there is no exhibit '%s'; did you mean %s?", name, nearest);
    usage_error("there is no exhibit '%s'; 'conclave museum' lists them", name);
}

/* Whether an exhibit before this one is in the same room. */
static bool room_was_seen(const struct exhibit *exhibit) {
    for (const struct exhibit *e = exhibits; e != exhibit; e++)
        if (strcmp(e->room, exhibit->room) == 0) return true;
    return false;
}

static void list(void) {
    int width = 0;
    for (const struct exhibit *e = exhibits; e->name; e++)
        if ((int)strlen(e->name) > width) width = (int)strlen(e->name);
    for (const struct exhibit *first = exhibits; first->name; first++) {
        if (room_was_seen(first)) continue;
        printf("%s%s\n", first == exhibits ? "" : "\n", first->room);
        for (const struct exhibit *e = first; e->name; e++)
            if (strcmp(e->room, first->room) == 0) printf("  %-*s  %s\n", width, e->name, e->title);
    }
    puts("\nconclave museum NAME tells what happened.");
}

static void show(const struct exhibit *e) {
    printf("%s\n\n%s\n\nPublished: %s\n", e->title, e->story, e->reference);
    if (*e->edit) printf("\nThe fault, in %s:\n  sed '%s'\n", e->file, e->edit);
    printf("\nFound by:\n  %s\n  %s\n", e->run, e->says);
    printf("\nMended: %s\n", e->mended);
    if (*e->sound) printf("  %s\n", e->sound);
    printf("\nTo see it happen, in the source tree:\n  make museum E=%s\n", e->name);
}

static json_t *to_json(const struct exhibit *e) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "name",
                     e->name, "title", e->title, "room", e->room, "reference", e->reference,
                     "story", e->story, "file", e->file, "edit", e->edit, "run", e->run, "sound",
                     *e->sound ? e->sound : e->run, "says", e->says, "mended", e->mended, "page",
                     e->page);
}

static json_t *all_to_json(void) {
    json_t *all = json_array();
    for (const struct exhibit *e = exhibits; e->name; e++) json_array_append_new(all, to_json(e));
    return all;
}

int cmd_museum(int argc, char **argv) {
    static const struct argp_option options[] = {{"json", 'j', 0, 0, "report in JSON", 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "[NAME]",
        "A museum of faults: errors in consensus algorithms and in locks that were published, each "
        "as a small edit of Conclave's own sources, with the command that finds it.  Without NAME "
        "their list; with NAME what happened, the edit, the command, what the judge says, and what "
        "mends it.\v"
        "Examples:\n  conclave museum\n  conclave museum raft-figure-8\n",
        0,
        0,
        0};
    struct request request = {0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    const struct exhibit *e = request.name ? require_exhibit(request.name) : NULL;
    if (request.json)
        print_json(e ? to_json(e) : all_to_json());
    else if (e)
        show(e);
    else
        list();
    return EXIT_OK;
}
