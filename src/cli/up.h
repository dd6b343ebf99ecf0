/* conclave up: a local ensemble in one terminal.
 *
 *   cmd_up.c       options, ports and directories; the loop
 *   up_server.c    one server: its process, its log, what it says of itself
 *   up_commands.c  what a person wants done to it
 *   up_view.c      what is shown: a picture for a terminal, lines for anything else */
#ifndef CV_CLI_UP_H
#define CV_CLI_UP_H

#include <poll.h>
#include <sys/types.h>

#include "cli/ensemble.h"
#include "cli/fetch.h"

enum {
    UP_SERVERS_MAX = 9, /* one key names a server */
    UP_LINES = 32,      /* of each server's log */
    UP_LINE_MAX = 256,
    UP_LOOK_MS = 200,
    UP_PATIENCE_MS = 1000, /* of questions */
    UP_END_MS = 3000,      /* for servers to end by themselves */
};

struct up_pipe { /* lines from a process */
    int from;    /* -1: closed */
    char part[UP_LINE_MAX];
    size_t used;
};

struct up_server {
    int number, client_port;
    char data[1024];
    pid_t process; /* 0: none */
    bool stopped, continued, start_again;
    char ended[64]; /* how it did */
    int failed;     /* with this status; 0: it did not */
    bool served;    /* ever */
    struct up_pipe out, log;
    char line[UP_LINES][UP_LINE_MAX]; /* of the log, the newest at (lines - 1) % UP_LINES */
    size_t lines;
    bool has_http;
    int http_port;
    struct fetch_address http;
    struct fetch fetch;
    uint64_t asked_ms, answered_ms; /* answered 0: never in this life */
    struct ensemble now;
    uint64_t counted, counted_ms; /* requests, and when */
    double rate;                  /* requests per second */
    char said[128];               /* to who reads lines */
};

struct up {
    struct up_server server[UP_SERVERS_MAX];
    int count;
    char *ensemble; /* 1=host:port,... */
    char **extra;   /* more options of all servers, ended by NULL */
    const char *data;
    bool picture; /* for a terminal */
    bool ending;
    uint64_t ending_ms;
    char message[256]; /* to whoever gave the last command */
    char key;          /* pressed, and waits for a number */
    char input[UP_LINE_MAX];
    size_t input_used;
    struct fetch order; /* to hand over */
};

/* ---- up_server.c ---- */

void server_start(struct up *up, struct up_server *server);
void server_signal(struct up_server *server, int signal);
void server_close(struct up_server *server); /* when its process has ended */
/* Its process has ended, if it has. */
void server_reap(struct up *up, struct up_server *server);
/* What it waits for, appended to what poll is given; and what came. */
void server_await(struct up_server *server, struct pollfd *poll, nfds_t *count);
void server_go_on(struct up_server *server, uint64_t now_ms);
/* "leader", "follower", "stopped", ... */
const char *server_state(const struct up_server *server, uint64_t now_ms);
bool server_answers(const struct up_server *server, uint64_t now_ms);

/* ---- up_commands.c ---- */

void command_line(struct up *up, const char *line);
void command_key(struct up *up, char key);
/* The answer to an order, if it has come. */
void command_go_on(struct up *up, uint64_t now_ms);

/* ---- up_view.c ---- */

void view_open(struct up *up);
void view_show(struct up *up, uint64_t now_ms);
void view_table(struct up *up, uint64_t now_ms); /* as lines */
void view_close(struct up *up);

#endif
