#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/up.h"

__attribute__((format(printf, 2, 3))) static void show_message(struct up *up, const char *format,
                                                               ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(up->message, sizeof up->message, format, arguments);
    va_end(arguments);
    if (up->picture) return;
    puts(up->message);
    fflush(stdout);
}

/* ---- Commands ---- */

static void kill_server(struct up *up, struct up_server *s) {
    (void)up;
    server_signal(s, SIGKILL);
}

static void stop_server(struct up *up, struct up_server *s) {
    (void)up;
    server_signal(s, SIGSTOP);
}

static void continue_server(struct up *up, struct up_server *s) {
    (void)up;
    server_signal(s, SIGCONT);
}

/* It is told to end (SIGTERM), and started again when it has. */
static void restart_server(struct up *up, struct up_server *s) {
    if (!s->process) {
        server_start(up, s);
        return;
    }
    s->start_again = true;
    server_signal(s, SIGCONT);
    server_signal(s, SIGTERM);
}

static void start_server(struct up *up, struct up_server *s) {
    if (s->process)
        show_message(up, "%s %d is running", up->kind->noun, s->number);
    else
        server_start(up, s);
}

static const struct up_server *find_leader(const struct up *up, uint64_t now_ms) {
    for (int i = 0; i < up->count; i++) {
        const struct up_server *s = &up->server[i];
        if (server_answers(s, now_ms) && s->status.leader == s->number) return s;
    }
    return NULL;
}

/* Any server passes the request on to the leader, but only that one can say what is against it. */
static void transfer_to(struct up *up, struct up_server *s) {
    char path[64];
    uint64_t now = fetch_now_ms();
    const struct up_server *asked = find_leader(up, now);
    for (int i = 0; !asked && i < up->count; i++)
        if (server_answers(&up->server[i], now) && up->server[i].status.leader)
            asked = &up->server[i];
    if (!asked) {
        show_message(up, "no server knows of a leader");
        return;
    }
    up->transferee = s->number;
    up->transfer_ms = now;
    snprintf(path, sizeof path, "/ensemble/transfer/%d", s->number);
    struct fetch_address socket = {.data = asked->data};
    fetch_begin(&up->transfer, &socket, "POST", path);
    command_go_on(up, now); /* it may have failed already */
}

static void acquire(struct up *up, struct up_server *s) {
    (void)up;
    server_tell(s, "acquire\n");
}

static void release(struct up *up, struct up_server *s) {
    (void)up;
    server_tell(s, "release\n");
}

static void campaign(struct up *up, struct up_server *s) {
    (void)up;
    server_tell(s, "campaign\n");
}

/* The network between two of them; both are told, so that neither dials. */
static void part(struct up *up, struct up_server *s, struct up_server *other, bool cut) {
    char line[32];
    bool *between = &up->parted[s->number - 1][other->number - 1];
    if (s == other || *between == cut) return; /* of all, or of two that are so already */
    *between = up->parted[other->number - 1][s->number - 1] = cut;
    snprintf(line, sizeof line, "%s %d\n", cut ? "cut" : "heal", other->number);
    server_tell(s, line);
    snprintf(line, sizeof line, "%s %d\n", cut ? "cut" : "heal", s->number);
    server_tell(other, line);
}

static void cut_link(struct up *up, struct up_server *s, struct up_server *other) {
    part(up, s, other, true);
}

static void heal_link(struct up *up, struct up_server *s, struct up_server *other) {
    part(up, s, other, false);
}

static void cut_off(struct up *up, struct up_server *s) {
    for (int i = 0; i < up->count; i++) cut_link(up, s, &up->server[i]);
}

static void heal(struct up *up, struct up_server *s) {
    for (int i = 0; i < up->count; i++) heal_link(up, s, &up->server[i]);
}

static const struct command {
    const char *name;
    char key;
    bool needs_process;
    void (*act)(struct up *up, struct up_server *server);
    /* The same name with two numbers, and the key for that. */
    char pair_key;
    void (*act_on_two)(struct up *up, struct up_server *one, struct up_server *other);
} commands[] = {
    {"kill", 'k', true, kill_server, 0, NULL},
    {"stop", 's', true, stop_server, 0, NULL},
    {"continue", 'c', true, continue_server, 0, NULL},
    {"restart", 'r', false, restart_server, 0, NULL},
    {"start", 0, false, start_server, 0, NULL},
    {"transfer", 't', true, transfer_to, 0, NULL},
    {"acquire", 'a', true, acquire, 0, NULL},
    {"release", 'l', true, release, 0, NULL},
    {"campaign", 'e', true, campaign, 0, NULL},
    {"cut", 'x', false, cut_off, 'X', cut_link},
    {"heal", 'h', false, heal, 'H', heal_link},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static bool is_for(const struct up *up, const struct command *command) {
    return !command->key || strchr(up->kind->commands, command->key);
}

const char *command_words(const struct up *up, bool keys, char *buffer, size_t size) {
    size_t used = 0;
    for (int i = 0; i < COMMANDS && used < size; i++) {
        if (!is_for(up, &commands[i]) || (keys && !commands[i].key)) continue;
        used += (size_t)(keys ? snprintf(buffer + used, size - used, "%c N %s  ", commands[i].key,
                                         commands[i].name)
                              : snprintf(buffer + used, size - used, "%s%s", used ? ", " : "",
                                         commands[i].name));
    }
    if (keys && used < size) snprintf(buffer + used, size - used, "q quit");
    return buffer;
}

static struct up_server *find(struct up *up, int number) {
    if (number >= 1 && number <= up->count) return &up->server[number - 1];
    show_message(up, "there is no %s %d: 1 to %d", up->kind->noun, number, up->count);
    return NULL;
}

static void act_on_two(struct up *up, const struct command *command, int one, int two) {
    struct up_server *s = find(up, one), *other = s ? find(up, two) : NULL;
    if (!other) return;
    *up->message = 0;
    if (s == other)
        show_message(up, "%s: there is no network between %s %d and itself", command->name,
                     up->kind->noun, one);
    else
        command->act_on_two(up, s, other);
}

static void act(struct up *up, const struct command *command, int number) {
    struct up_server *s = find(up, number);
    if (!s) return;
    *up->message = 0;
    if (command->needs_process && !s->process)
        show_message(up, "%s %d is not running", up->kind->noun, number);
    else
        command->act(up, s);
}

/* ---- Input ---- */

void command_line(struct up *up, const char *line) {
    char word[16], rest[2];
    int number, second, parts = sscanf(line, "%15s %9d %9d %1s", word, &number, &second, rest);
    if (parts < 1) return;
    if (strcmp(word, "quit") == 0 || strcmp(word, "q") == 0) {
        up->ending = true;
        return;
    }
    if (strcmp(word, "status") == 0) {
        view_table(up, fetch_now_ms());
        return;
    }
    for (int i = 0; i < COMMANDS; i++) {
        bool short_form = word[0] == commands[i].key && !word[1];
        if (!is_for(up, &commands[i]) || (strcmp(word, commands[i].name) != 0 && !short_form))
            continue;
        if (parts == 2)
            act(up, &commands[i], number);
        else if (parts == 1 && commands[i].act == heal)
            for (int n = 0; n < up->count; n++) heal(up, &up->server[n]);
        else if (parts == 3 && commands[i].act_on_two)
            act_on_two(up, &commands[i], number, second);
        else
            show_message(up, "%s: which %s?", commands[i].name, up->kind->noun);
        return;
    }
    char words[200];
    show_message(up, "'%s' is not one of %s, with a number; or status or quit", word,
                 command_words(up, false, words, sizeof words));
}

/* Whether the digits name all that the command needs: one digit does, if there are no more than
 * nine; else a space or the end of the line ends a number. */
static bool is_whole(const struct up *up, bool pair, bool ended) {
    int first, second, used = 0;
    bool short_ = up->count <= 9;
    if (!pair) return (short_ || ended) && isdigit((unsigned char)up->digits[0]);
    if (short_) return sscanf(up->digits, "%1d%1d", &first, &second) == 2;
    return ended && sscanf(up->digits, "%d %d%n", &first, &second, &used) == 2 && used;
}

/* A digit, a space or the end of the line after the key of a command. */
static void take_digit(struct up *up, const struct command *command, bool pair, char key) {
    size_t used = strlen(up->digits);
    bool ended = key == '\n' || key == '\r' || (key == ' ' && !pair && used);
    int first, second;
    if (!ended && used + 1 < sizeof up->digits) {
        up->digits[used] = key;
        up->digits[used + 1] = 0;
    }
    if (!is_whole(up, pair, ended)) {
        if (ended) up->typed = 0;
        return;
    }
    up->typed = 0;
    if (pair && sscanf(up->digits, up->count <= 9 ? "%1d%1d" : "%d %d", &first, &second) == 2)
        act_on_two(up, command, first, second);
    else if (!pair)
        act(up, command, atoi(up->digits));
}

static const struct command *command_of(const struct up *up, char key) {
    for (int i = 0; i < COMMANDS && key; i++)
        if (is_for(up, &commands[i]) && (commands[i].key == key || commands[i].pair_key == key))
            return &commands[i];
    return NULL;
}

void command_key(struct up *up, char key) {
    const struct command *typed = command_of(up, up->typed);
    bool of_number = isdigit((unsigned char)key) || key == ' ' || key == '\n' || key == '\r';
    if (key == 'q') up->ending = true;
    if (typed && key == ' ' && !*up->digits) return; /* "k 2" and "k2" are the same */
    if (typed && of_number) {
        take_digit(up, typed, up->typed == typed->pair_key, key);
        return;
    }
    up->typed = command_of(up, key) ? key : 0;
    *up->digits = 0;
}

void command_go_on(struct up *up, uint64_t now_ms) {
    (void)now_ms;
    fetch_go_on(&up->transfer);
    if (up->transfer.state == FETCH_FAILED) show_message(up, "the server did not answer");
    if (up->transfer.state == FETCH_DONE && up->transfer.status != 200)
        show_message(up, "%.*s", (int)strcspn(up->transfer.body, "\n"), up->transfer.body);
    bool begun = up->transfer.state == FETCH_UNDER_WAY ||
                 (up->transfer.state == FETCH_DONE && up->transfer.status == 200);
    if (!begun) up->transferee = 0;
    if (up->transfer.state == FETCH_DONE) up->transfer_ms = now_ms;
    if (up->transfer.state != FETCH_UNDER_WAY) fetch_end(&up->transfer);
}

/* A transfer ends without a word: either that server leads, or the leader goes on. */
void command_watch_transfer(struct up *up, uint64_t now_ms) {
    enum { PATIENCE_MS = 10000 };
    if (!up->transferee || up->transfer.state == FETCH_UNDER_WAY) return;
    const struct up_server *leader = find_leader(up, now_ms);
    bool is_news = leader && leader->answered_ms && leader->asked_ms > up->transfer_ms;
    bool done = leader && leader->number == up->transferee;
    bool given_up = is_news && !done && !leader->status.transferee;
    if (given_up)
        show_message(up,
                     "server %d does not lead: it did not take leadership over in time; server %d "
                     "goes on",
                     up->transferee, leader->number);
    else if (!done && now_ms - up->transfer_ms > PATIENCE_MS)
        show_message(up, "server %d does not lead, and nobody else", up->transferee);
    else if (!done)
        return;
    up->transferee = 0;
}
