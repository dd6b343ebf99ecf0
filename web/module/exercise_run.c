/* The commands that an exercise runs: the page starts another instance of the module for each. */
#include "cli/cli.h"
#include "cli/exercise.h"
#include "language/language.h"

/* Runs words that each end with a NUL byte; without `keep` the output is shown.  Returns its size.
 */
__attribute__((import_module("conclave"), import_name("run"))) size_t
host_run(const char *words, size_t size, int keep);
/* Copies the output that was kept. */
__attribute__((import_module("conclave"), import_name("output"))) void
host_output(unsigned char *to);

void answer_hold_signals(bool hold) { (void)hold; }

static void add_word(struct bytes *words, const char *word) {
    bytes_add(words, word, strlen(word) + 1);
}

int exercise_run(char **words, unsigned long seconds, const struct answer *answer,
                 struct bytes *output) {
    struct bytes all = {0};
    (void)seconds, (void)answer;
    for (char **word = words + 1; *word; word++) add_word(&all, *word);
    if (!output && language_chosen() == PORTUGUESE) {
        add_word(&all, "--lang");
        add_word(&all, "pt");
    }
    fflush(stdout);
    size_t size = host_run((const char *)all.at, all.used, output != NULL);
    bytes_close(&all);
    if (output) host_output(bytes_extend(output, size));
    return 0;
}

int exercise_compile(char **words, const struct answer *answer) {
    (void)words, (void)answer;
    return 127;
}
