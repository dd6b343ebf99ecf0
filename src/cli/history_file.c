#include "cli/history_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "cli/cli.h"

struct reader {
    struct history_file *file;
    const char *path;
    size_t line;
    json_t *object; /* of the line */
};

_Noreturn static void refuse(const struct reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void refuse(const struct reader *r, const char *format, ...) {
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    usage_error("%s:%zu: %s", r->path, r->line, what);
}

/* ---- Names ---- */

/* The number of a text, of which it takes ownership. */
static uint32_t number_of(struct names *names, char *text) {
    uint32_t hash = hash_bytes(text, strlen(text), 0), number;
    for (struct probe p = table_probe(&names->table, hash);
         (number = table_next(&names->table, &p));)
        if (strcmp(names->text[number - 1], text) == 0) {
            free(text);
            return number - 1;
        }
    cv_assert(names->count < UINT32_MAX - 1);
    names->text = grown(names->text, &names->room, names->count + 1, sizeof *names->text);
    names->text[names->count++] = text;
    table_add(&names->table, hash, (uint32_t)names->count);
    return (uint32_t)names->count - 1;
}

static void names_close(struct names *names) {
    for (size_t i = 0; i < names->count; i++) free(names->text[i]);
    free(names->text);
    table_close(&names->table);
}

/* As JSON, so that everything that is printed is escaped. */
static char *text_of(const json_t *value) {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) system_error("out of memory");
    return text;
}

static uint32_t take_name(const struct reader *r, const char *field, struct names *names) {
    const json_t *value = json_object_get(r->object, field);
    if (!value) refuse(r, "there is no \"%s\"", field);
    if (!json_is_string(value) && !json_is_integer(value))
        refuse(r, "\"%s\" is neither a text nor a whole number", field);
    char *text = text_of(value);
    size_t size = strlen(text);
    if (json_is_string(value)) memmove(text, text + 1, size - 1), text[size - 2] = 0;
    return number_of(names, text);
}

/* ---- Fields ---- */

static bool has(const struct reader *r, const char *field) {
    const json_t *value = json_object_get(r->object, field);
    return value && !json_is_null(value);
}

static int64_t take_number(const struct reader *r, const char *field) {
    const json_t *value = json_object_get(r->object, field);
    if (!json_is_integer(value)) refuse(r, "\"%s\" is not a whole number", field);
    return json_integer_value(value);
}

static int64_t take_number_or_any(const struct reader *r, const char *field) {
    return has(r, field) ? take_number(r, field) : HISTORY_ANY;
}

static int64_t take_value(const struct reader *r, const char *field) {
    if (!has(r, field)) return HISTORY_ANY;
    return number_of(&r->file->values, text_of(json_object_get(r->object, field)));
}

/* ---- Operations ---- */

static const struct action {
    const char *name;
    enum history_action action;
    const char *fields[4]; /* besides the common ones */
} actions[] = {
    {"initial", HISTORY_INITIAL, {"value", "version"}},
    {"read", HISTORY_READ, {"value", "version"}},
    {"write", HISTORY_WRITE, {"value", "version"}},
    {"cas", HISTORY_CAS, {"value", "version", "expected", "expected_value"}},
    {"create", HISTORY_CREATE, {"value", "version"}},
    {"delete", HISTORY_DELETE, {"expected"}},
    {"acquire", HISTORY_ACQUIRE, {"token"}},
    {"release", HISTORY_RELEASE, {0}},
};

static const char *const results[HISTORY_OUTCOMES] = {
    "unknown", "ok", "no_node", "exists", "bad_version", "refused",
};

static const struct action *take_action(const struct reader *r) {
    const char *name = json_string_value(json_object_get(r->object, "op"));
    if (!name) refuse(r, "there is no \"op\"");
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, name) == 0) return &actions[i];
    refuse(r, "\"op\" is not initial, read, write, cas, create, delete, acquire or release");
}

/* A misspelt field is refused, because without it the verdict would be weaker than intended. */
static void refuse_strange_fields(const struct reader *r, const struct action *action) {
    static const char *const common[] = {"op", "client", "key", "start", "end", "result", "note"};
    bool initial = action->action == HISTORY_INITIAL;
    const char *field;
    json_t *value;
    json_object_foreach(r->object, field, value) {
        bool known = false;
        for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
            known |= strcmp(field, common[i]) == 0;
        if (initial && known) known = *field == 'o' || *field == 'k' || *field == 'n';
        for (size_t i = 0; i < 4 && action->fields[i]; i++)
            known |= strcmp(field, action->fields[i]) == 0;
        if (!known) refuse(r, "\"%.40s\" does not go with %s", field, action->name);
    }
}

/* Without a result: ok when there is an end; a read of null found no node. */
static enum history_outcome take_outcome(const struct reader *r, enum history_action action) {
    if (!has(r, "result")) {
        if (!has(r, "end")) return HISTORY_UNKNOWN;
        bool null = json_is_null(json_object_get(r->object, "value"));
        return action == HISTORY_READ && null ? HISTORY_NO_NODE : HISTORY_OK;
    }
    const char *name = json_string_value(json_object_get(r->object, "result"));
    for (int i = 0; name && i < HISTORY_OUTCOMES; i++)
        if (strcmp(results[i], name) == 0) {
            if (i != HISTORY_UNKNOWN && !has(r, "end"))
                refuse(r, "there is a \"result\", but no \"end\"");
            return (enum history_outcome)i;
        }
    refuse(r, "\"result\" is not ok, no_node, exists, bad_version, refused or unknown");
}

static void take_expected(const struct reader *r, struct history_operation *o) {
    if (has(r, "expected_value")) {
        if (has(r, "expected")) refuse(r, "there are both \"expected\" and \"expected_value\"");
        o->action = HISTORY_CAS_VALUE;
        o->expected = take_value(r, "expected_value");
        return;
    }
    if (o->action == HISTORY_CAS && !has(r, "expected"))
        refuse(r, "cas needs \"expected\", a version, or \"expected_value\"");
    o->expected = take_number_or_any(r, "expected");
}

static struct history_operation take_operation(const struct reader *r) {
    const struct action *action = take_action(r);
    refuse_strange_fields(r, action);
    struct history_operation o =
        history_begin(0, take_name(r, "key", &r->file->keys), action->action, 0);
    o.value = take_value(r, "value");
    o.version = take_number_or_any(r, "version");
    if (action->action == HISTORY_INITIAL) {
        o.outcome = HISTORY_OK;
        return o;
    }
    o.client = take_name(r, "client", &r->file->clients);
    o.start = o.end = take_number(r, "start");
    if (has(r, "end")) o.end = take_number(r, "end");
    o.outcome = take_outcome(r, o.action);
    o.token = take_number_or_any(r, "token");
    take_expected(r, &o);
    return o;
}

static void add_line(struct reader *r, const char *text, size_t size) {
    struct history_file *file = r->file;
    json_error_t error;
    if (strspn(text, " \t\r\n") == size) return;
    r->object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!r->object) refuse(r, "%s", error.text);
    if (!json_is_object(r->object)) refuse(r, "not a JSON object");
    struct history_operation o = take_operation(r);
    const char *why = history_refuse(&o);
    if (why) refuse(r, "%s", why);
    json_decref(r->object);
    size_t index = history_add(&file->history, &o);
    file->line = grown(file->line, &file->line_room, index + 1, sizeof *file->line);
    file->line[index] = r->line;
    file->initials += o.action == HISTORY_INITIAL;
    file->unanswered += o.outcome == HISTORY_UNKNOWN;
}

void history_file_read(struct history_file *file, const char *path) {
    bool standard = strcmp(path, "-") == 0;
    FILE *in = standard ? stdin : fopen(path, "r");
    struct reader reader = {.file = file, .path = standard ? "standard input" : path};
    char *text = NULL;
    size_t room = 0;
    ssize_t size;
    *file = (struct history_file){0};
    if (!in) usage_error("%s: %s", path, strerror(errno));
    while (errno = 0, (size = getline(&text, &room, in)) >= 0) {
        reader.line++;
        add_line(&reader, text, (size_t)size);
    }
    if (ferror(in)) usage_error("%s: %s", reader.path, strerror(errno));
    free(text);
    if (!standard) fclose(in);
    file->history.client_name = (const char *const *)file->clients.text;
    file->history.key_name = (const char *const *)file->keys.text;
    file->history.value_name = (const char *const *)file->values.text;
}

void history_file_close(struct history_file *file) {
    history_close(&file->history);
    names_close(&file->clients);
    names_close(&file->keys);
    names_close(&file->values);
    free(file->line);
}
