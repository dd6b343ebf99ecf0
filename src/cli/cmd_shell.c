/* conclave shell: the commands on the tree, in one session. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "base/bytes.h"
#include "base/spelling.h"
#include "cli/client_commands.h"
#include "cli/shell.h"
#include "cli/words.h"

static const char doc[] =
    "Takes commands on the tree of a server, one in a line, in one session.\v"
    "The commands are those of 'conclave' without that word: ls, get, set, create, rm, stat, acl, "
    "tree, watch, cp, multi, barrier, counter and queue; 'help' lists them, 'ls --help' explains "
    "one, 'quit' or Ctrl-D ends.  Ephemeral nodes that are made here live as long as the shell.\n\n"
    "On a terminal Tab completes commands and paths, and lines are kept in "
    "$XDG_STATE_HOME/conclave/history (or ~/.local/state), but for those that begin with a blank.  "
    "Ctrl-C ends what waits.  Words are quoted as 'conclave multi' explains.  If standard input is "
    "no terminal, the exit status is that of the last command.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave shell\n"
    "  conclave shell --server zk1:2181/app <commands.txt\n";

static int parse(int key, char *text, struct argp_state *state) {
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = state->input; return 0;
    case ARGP_KEY_ARG: return remote_usage("'%s': commands are read from standard input", text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Typing ---- */

/* A signal at the prompt: Ctrl-C drops the line, others end the shell. */
static int interrupted(struct shell *shell, int signal) {
    if (signal != SIGINT) {
        shell->over = true;
        return -1;
    }
    if (!shell->editor) return shell->over = true, -1;
    fputs("^C", stdout);
    fflush(stdout);
    shell->fed = "\x15\n"; /* erases the line, and takes it */
    return shell_byte(shell);
}

int shell_byte(struct shell *shell) {
    if (shell->fed && *shell->fed) return (unsigned char)*shell->fed++;
    for (;;) {
        struct pollfd polled[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                  {.fd = cv_fd(shell->remote.client), .events = POLLIN},
                                  {.fd = shell->remote.signals, .events = POLLIN}};
        if (poll(polled, 3, -1) < 0 && errno != EINTR) return -1;
        int signal = remote_wait(&shell->remote, 0);
        if (signal) return interrupted(shell, signal);
        if (!polled[0].revents) continue;
        unsigned char byte;
        ssize_t size = read(STDIN_FILENO, &byte, 1);
        if (size == 1) return byte;
        if (size == 0 || errno != EINTR) return -1;
    }
}

/* One character for the editor. */
static int type(EditLine *editor, wchar_t *character) {
    struct shell *shell;
    mbstate_t state = {0};
    el_get(editor, EL_CLIENTDATA, &shell);
    for (;;) {
        int byte = shell_byte(shell);
        if (byte < 0) return 0;
        char text = (char)byte;
        size_t size = mbrtowc(character, &text, 1, &state);
        if (size == (size_t)-1) /* not of this encoding */
            return *character = L'?', 1;
        if (size != (size_t)-2) return 1;
    }
}

static char *prompt(EditLine *editor) {
    struct shell *shell;
    char server[128];
    el_get(editor, EL_CLIENTDATA, &shell);
    cv_server(shell->remote.client, server, sizeof server);
    snprintf(shell->prompt, sizeof shell->prompt, "%s> ", *server ? server : "(not connected)");
    return shell->prompt;
}

/* A line without its end; NULL: there are no more.  Free it. */
static char *next_line(struct shell *shell) {
    if (shell->editor) {
        int size = 0;
        el_resize(shell->editor);
        /* Else the prompt is shown first, and a Ctrl-D that is typed at once is lost: the terminal
           takes it for the end of a line, and the editor finds nothing in it. */
        el_set(shell->editor, EL_PREP_TERM, 1);
        const char *line = el_gets(shell->editor, &size);
        return line && size > 0 && !shell->over ? strndup(line, strcspn(line, "\r\n")) : NULL;
    }
    struct bytes line = {0};
    int byte;
    while ((byte = shell_byte(shell)) >= 0 && byte != '\n')
        *bytes_extend(&line, 1) = (unsigned char)byte;
    if (byte < 0 && !line.used) return NULL;
    *bytes_extend(&line, 1) = 0;
    return (char *)line.at;
}

/* ---- What was typed ---- */

/* After an interruption that was too long the session is another. */
static int revive(struct shell *shell) {
    enum cv_state state = cv_state(shell->remote.client);
    if (state != CV_EXPIRED && state != CV_REFUSED && state != CV_CLOSED) return 0;
    remote_say(0, "the session has expired, with its ephemeral nodes; this is a new one");
    cv_close(shell->remote.client);
    shell->remote.client = NULL;
    int status = remote_connect(&shell->remote);
    if (status) shell->over = true;
    return status;
}

static int run(struct shell *shell, int argc, char **argv) {
    for (const struct client_command *command = client_commands; command->name; command++) {
        if (strcmp(command->name, argv[0]) != 0) continue;
        int status = revive(shell);
        if (status) return status;
        struct remote remote = shell->remote; /* its session, with options of the command's own */
        remote.shared = true;
        remote.interrupted = 0;
        status = command->run(&remote, argc, argv);
        fflush(stdout);
        return status;
    }
    const char *nearest = NULL;
    unsigned best = 3;
    for (const struct client_command *command = client_commands; command->name; command++) {
        unsigned distance = word_distance(argv[0], command->name);
        if (distance < best) best = distance, nearest = command->name;
    }
    if (nearest)
        return remote_say(EXIT_USAGE, "unknown command '%s'; did you mean %s?", argv[0], nearest);
    return remote_say(EXIT_USAGE, "unknown command '%s'; 'help' lists them", argv[0]);
}

static int help(void) {
    for (const struct client_command *command = client_commands; command->name; command++)
        printf("%s ", command->name);
    puts("help quit\nOne of them with --help explains it.");
    fflush(stdout);
    return EXIT_OK;
}

static void obey(struct shell *shell, char *line) {
    struct words words;
    const char *problem = words_part(&words, line);
    if (problem) {
        shell->status = remote_say(EXIT_USAGE, "%s", problem);
        return;
    }
    if (!words.count) return;
    if (strcmp(words.at[0], "quit") == 0 || strcmp(words.at[0], "exit") == 0)
        shell->over = true;
    else
        shell->status =
            strcmp(words.at[0], "help") == 0 ? help() : run(shell, words.count, words.at);
}

/* ---- Lines of earlier times ---- */

static char *history_path(void) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    bool given = state && *state == '/';
    if (!given && (!home || *home != '/')) return NULL;
    if (asprintf(&path, "%s%s/conclave/history", given ? state : home,
                 given ? "" : "/.local/state") < 0)
        return NULL;
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    return path;
}

static void work(struct shell *shell, History *lines) {
    HistEvent event;
    for (char *line; !shell->over && (line = next_line(shell));) {
        if (lines && *line && *line != ' ') history(lines, &event, H_ENTER, line);
        obey(shell, line);
        free(line);
    }
}

/* With a terminal: an editor and the lines of earlier times. */
static void work_on_terminal(struct shell *shell) {
    HistEvent event;
    History *lines = history_init();
    char *path = history_path();
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
    shell->editor = el_init("conclave", stdin, stdout, stderr);
    if (!shell->editor || !lines) system_error("the line editor could not be started");
    history(lines, &event, H_SETSIZE, 1000);
    history(lines, &event, H_SETUNIQUE, 1);
    if (path) history(lines, &event, H_LOAD, path);
    el_set(shell->editor, EL_CLIENTDATA, shell);
    el_set(shell->editor, EL_PROMPT, prompt);
    el_set(shell->editor, EL_EDITOR, "emacs");
    el_set(shell->editor, EL_HIST, history, lines);
    el_set(shell->editor, EL_GETCFN, type);
    el_set(shell->editor, EL_ADDFN, "complete", "commands and paths", shell_complete);
    el_set(shell->editor, EL_BIND, "^I", "complete", NULL);
    el_set(shell->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
    work(shell, lines);
    if (path) {
        mode_t mask = umask(077);
        history(lines, &event, H_SAVE, path);
        umask(mask);
    }
    if (!shell->over) putchar('\n'); /* after Ctrl-D */
    history_end(lines);
    el_end(shell->editor);
    free(path);
}

int cmd_shell(int argc, char **argv) {
    static const struct argp argp = {NULL, parse, NULL, doc, remote_children, NULL, NULL};
    struct shell shell = {.remote.options.flags = CV_NO_THREAD};
    int status;
    if (!remote_parse(&shell.remote, &argp, 0, argc, argv, &shell.remote, &status)) return status;
    status = remote_connect(&shell.remote);
    if (status) return status;
    remote_catch_signals(&shell.remote);
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (terminal)
        work_on_terminal(&shell);
    else
        work(&shell, NULL);
    remote_close(&shell.remote);
    return terminal ? EXIT_OK : shell.status;
}
