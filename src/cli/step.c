#include "cli/step.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "lab/sim/replay.h"
#include "language/language.h"

/* An arrow key is no text for the terminal. */
static const char *printable(char *line) {
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) *at = '?';
    return line;
}

/* Reads one command: the step to go to; 0: it is over; `step` itself after a line about what can be
 * typed. */
static size_t next_step(const struct replay *replay, size_t step, bool asks) {
    const char *keys = _("Enter: next   b: back   NUMBER: that step   q: quit");
    char *line = NULL;
    size_t room = 0;
    uint64_t number;
    if (asks) {
        printf("%s > ", keys);
        fflush(stdout);
    }
    ssize_t length = getline(&line, &room, stdin);
    if (length > 0) line[strcspn(line, " \t\r\n")] = 0;
    if (length < 0 || strcmp(line, "q") == 0)
        step = 0;
    else if (!*line || strcmp(line, "n") == 0)
        step = step < replay->steps ? step + 1 : 0;
    else if (strcmp(line, "b") == 0)
        step = step > 1 ? step - 1 : 1;
    else if (parse_u64(line, &number) == 0 && number >= 1 && number <= replay->steps)
        step = number;
    else
        printf(_("'%.20s' is no step from 1 to %zu.  %s\n"), printable(line), replay->steps, keys);
    free(line);
    return step;
}

void step_through(const struct sim_config *config) {
    bool asks = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    struct replay replay;
    if (replay_open(&replay, config) != 0) system_error("out of address space");
    for (size_t step = replay.steps ? 1 : 0, shown = 0; step;
         step = next_step(&replay, step, asks)) {
        if (step != shown) replay_show(&replay, step, stdout);
        putchar('\n');
        shown = step;
    }
    replay_close(&replay);
}
