/* conclave context: names for servers and for who is asking them. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "cli/contexts.h"

static const char doc[] =
    "Keeps names for servers, with how to reach them and who is asking.\v"
    "'add' notes the options that are given with it, 'use' chooses the context that counts when "
    "neither --server, --context, CONCLAVE_SERVER nor CONCLAVE_CONTEXT says otherwise.  They are "
    "kept in $XDG_CONFIG_HOME/conclave/contexts (or ~/.config), with the names of files that have "
    "secrets, and no secrets.  A server that is named by --server gets no credentials of a "
    "context.\n\n"
    "JSON: of 'list' [{name, current, server, ...}].\n\n"
    "Examples:\n"
    "  conclave context add prod --server zk1:2281,zk2:2281/app --tls-ca ca.pem --auth-file me\n"
    "  conclave context use prod\n"
    "  conclave context list\n"
    "  conclave ls / --context prod\n"
    "  conclave context remove prod\n";

struct request {
    struct remote remote;
    const char *what, *name;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &request->remote; return 0;
    case ARGP_KEY_ARG:
        if (!request->what) return request->what = text, 0;
        if (request->name) return remote_usage("one context at a time, not '%s' as well", text);
        request->name = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static bool is_good_name(const char *name) {
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("._-", *at)) return false;
    return *name;
}

static bool is_file(int setting) {
    return setting == REMOTE_TLS_CA || setting == REMOTE_TLS_CERT || setting == REMOTE_TLS_KEY ||
           setting == REMOTE_AUTH_FILE || setting == REMOTE_SASL_PASSWORD_FILE;
}

static int add(struct request *request, struct contexts *contexts) {
    const struct remote *remote = &request->remote;
    if (!is_good_name(request->name))
        return remote_say(EXIT_USAGE, "'%s': a name has letters, digits, '.', '_' and '-' only",
                          request->name);
    if (!remote->settings[REMOTE_SERVER])
        return remote_say(EXIT_USAGE, "which server? Give --server");
    if (contexts_find(contexts, request->name))
        return remote_say(EXIT_CONFLICT, "there is a context '%s' already; remove it first",
                          request->name);
    struct context *context = contexts_add(contexts, request->name);
    for (int i = 0; i < REMOTE_SETTINGS; i++) {
        const char *value = remote->settings[i];
        if (!value) continue;
        context->settings[i] = is_file(i) ? realpath(value, NULL) : strdup(value);
        if (!context->settings[i]) return remote_say(EXIT_SYSTEM, "%s: %s", value, strerror(errno));
        if (strchr(context->settings[i], '\n'))
            return remote_say(EXIT_USAGE, "%s: a line feed cannot be kept",
                              remote_setting_names[i]);
    }
    return contexts_write(contexts);
}

static int find(struct request *request, struct contexts *contexts, struct context **found) {
    *found = contexts_find(contexts, request->name);
    return *found ? 0
                  : remote_say(EXIT_CONFLICT,
                               "there is no context '%s'; 'conclave context list' "
                               "shows them",
                               request->name);
}

static int use(struct request *request, struct contexts *contexts) {
    struct context *context;
    int status = find(request, contexts, &context);
    if (status) return status;
    free(contexts->current);
    contexts->current = strdup(request->name);
    return contexts_write(contexts);
}

static int remove_one(struct request *request, struct contexts *contexts) {
    struct context *context;
    int status = find(request, contexts, &context);
    if (status) return status;
    if (contexts->current && strcmp(contexts->current, request->name) == 0) {
        free(contexts->current);
        contexts->current = NULL;
    }
    contexts_remove(contexts, context);
    return contexts_write(contexts);
}

static int list(struct request *request, struct contexts *contexts) {
    json_t *array = json_array();
    for (size_t i = 0; i < contexts->count; i++) {
        const struct context *context = &contexts->at[i];
        bool current = contexts->current && strcmp(contexts->current, context->name) == 0;
        json_t *object =
            json_pack("{s:o, s:b}", "name", remote_json_name(context->name), "current", current);
        if (!request->remote.json) printf("%c %s", current ? '*' : ' ', context->name);
        for (int j = 0; j < REMOTE_SETTINGS; j++) {
            const char *value = context->settings[j];
            if (!value) continue;
            json_object_set_new(object, remote_setting_names[j], remote_json_name(value));
            if (request->remote.json) continue;
            printf("  --%s%s", remote_setting_names[j], *value ? "=" : "");
            remote_put(stdout, value, strlen(value), REMOTE_LINE);
        }
        if (!request->remote.json) putchar('\n');
        json_array_append_new(array, object);
    }
    if (request->remote.json)
        print_json(array);
    else
        json_decref(array);
    return EXIT_OK;
}

int cmd_context(int argc, char **argv) {
    static const struct argp argp = {
        NULL, parse, "list\nadd NAME\nuse NAME\nremove NAME", doc, remote_children, NULL, NULL};
    static const struct {
        const char *name;
        bool named;
        int (*run)(struct request *request, struct contexts *contexts);
    } actions[] = {{"list", false, list},
                   {"add", true, add},
                   {"use", true, use},
                   {"remove", true, remove_one}};
    struct request request = {0};
    struct contexts contexts = {0};
    int status;
    if (!remote_parse(&request.remote, &argp, 0, argc, argv, &request, &status)) return status;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (!request.what || strcmp(actions[i].name, request.what) != 0) continue;
        if (actions[i].named != (request.name != NULL))
            return remote_say(EXIT_USAGE, actions[i].named ? "which context? Give its NAME"
                                                           : "'list' shows all contexts");
        status = contexts_read(&contexts);
        if (!status) status = actions[i].run(&request, &contexts);
        contexts_close(&contexts);
        return status;
    }
    return remote_say(EXIT_USAGE, "what to do: list, add, use or remove");
}
