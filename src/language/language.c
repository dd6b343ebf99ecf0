#include "language/language.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Set once, like the logger's configuration: every folder that speaks would have to pass it on. */
static struct {
    enum language texts;
    bool names_kept;
} language_in_use = {.texts = ENGLISH};

void language_choose(enum language language) { language_in_use.texts = language; }

enum language language_chosen(void) { return language_in_use.texts; }

int language_parse(const char *name, enum language *language) {
    static const struct {
        const char *name;
        enum language language;
    } known[] = {{"en", ENGLISH}, {"pt", PORTUGUESE}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t length = strlen(known[i].name);
        if (strncmp(name, known[i].name, length) != 0 || !strchr("_-.@", name[length])) continue;
        *language = known[i].language;
        return 0;
    }
    return -1;
}

enum language language_of_environment(void) {
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    enum language language = ENGLISH;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (!value || !*value) continue;
        language_parse(value, &language);
        break;
    }
    return language;
}

static int by_english(const void *key, const void *row) {
    return strcmp(key, ((const struct translation *)row)->english);
}

const char *_(const char *text) {
    if (language_in_use.texts == ENGLISH) return text;
    const struct translation *found =
        bsearch(text, portuguese, portuguese_count, sizeof *portuguese, by_english);
    return found ? found->text : text;
}

void language_keep_names(void) { language_in_use.names_kept = true; }

const char *language_name(const char *name) { return language_in_use.names_kept ? name : _(name); }

int language_columns(const char *text) {
    int columns = 0;
    for (; *text; text++) columns += (*text & 0xc0) != 0x80; /* not within a character of UTF-8 */
    return columns;
}
