#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/up.h"

__attribute__((format(printf, 2, 3))) static void say(struct up *up, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(up->message, sizeof up->message, format, arguments);
    va_end(arguments);
    if (up->picture) return;
    puts(up->message);
    fflush(stdout);
}

/* ---- What there is ---- */

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

/* As its user would: it ends by itself, and is started again. */
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
        say(up, "server %d is running", s->number);
    else
        server_start(up, s);
}

/* Any server passes it on to the one that leads. */
static void transfer_to(struct up *up, struct up_server *s) {
    char path[64];
    uint64_t now = fetch_now_ms();
    const struct up_server *asked = NULL;
    for (int i = 0; i < up->count; i++)
        if (server_answers(&up->server[i], now) && up->server[i].now.leader) asked = &up->server[i];
    if (!asked) {
        say(up, "no server knows of a leader");
        return;
    }
    snprintf(path, sizeof path, "/ensemble/transfer/%d", s->number);
    fetch_begin(&up->order, &asked->http, "POST", path);
}

static const struct command {
    const char *name;
    char key;
    bool needs_process;
    void (*act)(struct up *up, struct up_server *server);
} commands[] = {
    {"kill", 'k', true, kill_server},         {"stop", 's', true, stop_server},
    {"continue", 'c', true, continue_server}, {"restart", 'r', false, restart_server},
    {"start", 0, false, start_server},        {"transfer", 't', true, transfer_to},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void act(struct up *up, const struct command *command, int number) {
    if (number < 1 || number > up->count) {
        say(up, "there is no server %d: 1 to %d", number, up->count);
        return;
    }
    struct up_server *s = &up->server[number - 1];
    *up->message = 0;
    if (command->needs_process && !s->process)
        say(up, "server %d is not running", number);
    else
        command->act(up, s);
}

/* ---- From where it comes ---- */

void command_line(struct up *up, const char *line) {
    char word[16], rest[2];
    int number, parts = sscanf(line, "%15s %d %1s", word, &number, rest);
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
        if (strcmp(word, commands[i].name) != 0 && !short_form) continue;
        if (parts == 2)
            act(up, &commands[i], number);
        else
            say(up, "%s: which server?", commands[i].name);
        return;
    }
    say(up,
        "'%s' is not kill, stop, continue, start, restart or transfer with a server's number, "
        "status or quit",
        word);
}

void command_key(struct up *up, char key) {
    if (key == 'q') up->ending = true;
    if (up->key && isdigit((unsigned char)key)) {
        for (int i = 0; i < COMMANDS; i++)
            if (commands[i].key == up->key) act(up, &commands[i], key - '0');
        up->key = 0;
        return;
    }
    up->key = 0;
    for (int i = 0; i < COMMANDS; i++)
        if (key && commands[i].key == key) up->key = key;
}

void command_go_on(struct up *up, uint64_t now_ms) {
    (void)now_ms;
    fetch_go_on(&up->order);
    if (up->order.state == FETCH_FAILED) say(up, "the server did not answer");
    if (up->order.state == FETCH_DONE && up->order.status != 200)
        say(up, "%.*s", (int)strcspn(up->order.body, "\n"), up->order.body);
    if (up->order.state != FETCH_UNDER_WAY) fetch_end(&up->order);
}
