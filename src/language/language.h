/* The laboratory's texts in the reader's language.
 *
 * A text stands in the source in English, and is looked up when it is printed.  The translations
 * are po/pt/ of the repository, made into a table by scripts/messages.awk.  What programs read
 * is English always: JSON, CSV, scenarios, the names of options. */
#ifndef CV_LANGUAGE_LANGUAGE_H
#define CV_LANGUAGE_LANGUAGE_H

#include <stddef.h>

enum language { ENGLISH, PORTUGUESE };

/* Chosen at the start, before there are threads and before anything is said. */
void language_choose(enum language language);
enum language language_chosen(void);
/* That of LC_ALL, LC_MESSAGES or LANG, whichever is the first that is not empty. */
enum language language_of_environment(void);
/* "en", "pt" or a locale of one of these, such as "pt_BR.UTF-8".  Returns 0, or -1. */
int language_parse(const char *name, enum language *language);

/* The text in the language that was chosen; as it is if there is no translation. */
const char *_(const char *text) __attribute__((format_arg(1)));
/* Marks a text that is looked up later, because it stands in a table. */
#define N_(TEXT) TEXT
/* The name of a message, as the lecture notes have it, of a field or of its value; only where
 * people read it. */
const char *language_name(const char *name);
/* From now on names are those of the code, for a reader who works on that. */
void language_keep_names(void);

/* How many columns of a terminal a text takes. */
int language_columns(const char *text);
/* Two arguments for "%-*s": the text, filled up to that many columns, and not bytes. */
#define COLUMN(WIDTH, TEXT) ((WIDTH) + (int)strlen(TEXT) - language_columns(TEXT)), (TEXT)

/* ---- The table ---- */

struct translation {
    const char *english, *text;
};
extern const struct translation portuguese[]; /* by the bytes of their English */
extern const size_t portuguese_count;

#endif
