/* Completion in the shell: commands, and paths of nodes as the server knows them. */
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "cli/client_commands.h"
#include "cli/shell.h"

enum { SHOWN = 100 };

/* Candidates that begin as the word does. */
struct candidates {
    const char *begin;
    size_t size;
    const char *shown[SHOWN]; /* the first ones */
    size_t count;
    const char *first;
    size_t common; /* how many bytes all of them share */
};

static void consider(struct candidates *candidates, const char *name) {
    if (strncmp(name, candidates->begin, candidates->size) != 0) return;
    if (candidates->count < SHOWN) candidates->shown[candidates->count] = name;
    if (candidates->count++ == 0) {
        candidates->first = name;
        candidates->common = strlen(name);
        return;
    }
    size_t same = 0;
    while (same < candidates->common && name[same] == candidates->first[same]) same++;
    candidates->common = same;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void show(struct candidates *candidates) {
    size_t shown = candidates->count < SHOWN ? candidates->count : SHOWN;
    if (shown) qsort(candidates->shown, shown, sizeof *candidates->shown, by_name);
    putchar('\n');
    for (size_t i = 0; i < shown; i++) {
        remote_put(stdout, candidates->shown[i], strlen(candidates->shown[i]), REMOTE_NAME);
        fputs(i + 1 < shown ? "  " : "\n", stdout);
    }
    if (candidates->count > SHOWN) printf("and %zu more\n", candidates->count - SHOWN);
    fflush(stdout);
}

/* Inserts text as words.h reads it; a half of a character waits for the other. */
static bool insert(EditLine *editor, const char *text, size_t size, const char *end) {
    struct bytes line = {0};
    while (size && ((unsigned char)text[size] & 0xc0) == 0x80) size--;
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) break;
        if (strchr(" \\\"'#", text[i])) bytes_add(&line, "\\", 1);
        bytes_add(&line, text + i, 1);
    }
    bytes_add(&line, end, strlen(end) + 1);
    bool inserted = *line.at && el_insertstr(editor, (char *)line.at) == 0;
    bytes_close(&line);
    return inserted;
}

static unsigned char finish(EditLine *editor, struct candidates *candidates, const char *end) {
    if (!candidates->count) return CC_ERROR;
    const char *rest = candidates->first + candidates->size;
    size_t size = candidates->common - candidates->size;
    if (insert(editor, rest, size, candidates->count == 1 ? end : "")) return CC_REFRESH;
    if (candidates->count == 1) return CC_ERROR;
    show(candidates);
    return CC_REDISPLAY;
}

static unsigned char complete_command(EditLine *editor, const char *word) {
    static const char *const builtins[] = {"help", "quit"};
    struct candidates candidates = {.begin = word, .size = strlen(word)};
    for (const struct client_command *command = client_commands; command->name; command++)
        consider(&candidates, command->name);
    for (size_t i = 0; i < 2; i++) consider(&candidates, builtins[i]);
    return finish(editor, &candidates, " ");
}

/* Takes the backslashes out of what was typed. */
static void unescape(char *word) {
    char *to = word;
    for (const char *from = word; *from; *to++ = *from++)
        if (*from == '\\' && from[1]) from++;
    *to = 0;
}

static bool has_children(struct remote *remote, const char *directory, const char *name) {
    char *path = NULL;
    struct cv_stat stat = {0};
    if (asprintf(&path, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name) < 0)
        return false;
    int error = cv_exists(remote->client, path, &stat);
    free(path);
    return error == CV_OK && stat.children > 0;
}

static unsigned char complete_path(struct shell *shell, EditLine *editor, char *word) {
    struct cv_result *result = NULL;
    if (!*word) return insert(editor, "/", 1, "") ? CC_REFRESH : CC_ERROR;
    if (*word == ':') word++; /* a node for cp */
    unescape(word);
    char *slash = strrchr(word, '/');
    if (*word != '/') return CC_ERROR;
    struct candidates candidates = {.begin = slash + 1, .size = strlen(slash + 1)};
    char *directory = slash == word ? strdup("/") : strndup(word, (size_t)(slash - word));
    struct cv_op op = cv_op_children(directory);
    unsigned char what = CC_ERROR;
    if (!remote_path_problem(directory) && cv_call(shell->remote.client, &op, &result) == CV_OK) {
        for (size_t i = 0; i < result->name_count; i++) consider(&candidates, result->names[i]);
        bool more =
            candidates.count == 1 && has_children(&shell->remote, directory, candidates.first);
        what = finish(editor, &candidates, more ? "/" : " ");
    }
    cv_result_free(result);
    free(directory);
    return what;
}

unsigned char shell_complete(EditLine *editor, int key) {
    (void)key;
    struct shell *shell;
    el_get(editor, EL_CLIENTDATA, &shell);
    const LineInfo *line = el_line(editor);
    const char *begin = line->cursor;
    while (begin > line->buffer &&
           (begin[-1] != ' ' || (begin - 1 > line->buffer && begin[-2] == '\\')))
        begin--;
    const char *before = line->buffer;
    while (before < begin && *before == ' ') before++;
    char *word = strndup(begin, (size_t)(line->cursor - begin));
    unsigned char what =
        before == begin ? complete_command(editor, word) : complete_path(shell, editor, word);
    free(word);
    return what;
}
