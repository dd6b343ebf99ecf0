/* conclave up, conclave peer up: a local ensemble, or a group of peers, in one terminal.
 *
 *   cmd_up.c       options, ports and directories of an ensemble
 *   peer_up.c      the same of a group
 *   up_loop.c      what they share, and the loop
 *   up_server.c    one server, or peer: its process, its log, its status
 *   up_commands.c  commands, from keys or lines
 *   up_view.c      output: a picture for a terminal, lines for anything else */
#ifndef CV_CLI_UP_H
#define CV_CLI_UP_H

#include <poll.h>
#include <sys/types.h>

#include "cli/ensemble.h"
#include "cli/fetch.h"

enum {
    UP_SERVERS_MAX = 9,
    UP_MAX = 100,  /* peers */
    UP_LINES = 32, /* of each server's log */
    UP_LINE_MAX = 512,
    UP_REFRESH_MS = 200,  /* servers are asked for their status, and the picture is drawn */
    UP_TIMEOUT_MS = 1000, /* of a request for status */
    UP_END_MS = 3000,     /* then servers that have not ended are killed */
};

struct up_pipe { /* lines from a process */
    int from;    /* -1: closed */
    char part[UP_LINE_MAX];
    size_t used;
};

struct up;
struct up_server;

struct up_kind { /* of what is run */
    const char *noun;
    bool speaks;          /* its output is its state, line by line, and it reads commands */
    const char *action;   /* the last of its words; NULL: none */
    const char *commands; /* by their keys */
    /* Writes the words that start it, without those that all get; returns how many. */
    int (*options)(struct up *up, struct up_server *server, char **options);
    void (*ended)(const struct up *up); /* the last line */
};
extern const struct up_kind up_servers, up_peers;

struct up_server {
    const struct up_kind *kind;
    int number, client_port;
    char data[1024], record[1100];
    char name[16], listen[32], said[64];
    int in;        /* what it reads commands from; -1: none */
    pid_t process; /* 0: none */
    bool stopped, continued, start_again;
    char ended[64]; /* how the last process ended */
    int failed;     /* its exit status; 0: it did not fail */
    bool served;    /* ever */
    struct up_pipe out, log;
    char line[UP_LINES][UP_LINE_MAX]; /* of the log, the newest at (lines - 1) % UP_LINES */
    size_t lines;
    bool has_http;
    int http_port;
    struct fetch_address http;
    struct fetch fetch;
    uint64_t asked_ms, answered_ms; /* answered 0: not since its process started */
    struct ensemble_view status;
    uint64_t counted, counted_ms; /* requests, and when */
    double rate;                  /* requests per second */
    char printed[128];            /* its last line, if there is no picture */
};

struct up {
    const struct up_kind *kind;
    struct up_server server[UP_MAX];
    bool parted[UP_MAX][UP_MAX]; /* the network between two is cut */
    int count;
    char *ensemble; /* 1=host:port,... */
    char *group;    /* the algorithm of peers, and their list; NULL: servers */
    char *list;
    char *key;    /* file with the secret of these servers; NULL: the options after -- say */
    char **extra; /* more options of all servers, ended by NULL */
    const char *data;
    bool keeps;   /* the data is not removed at the end */
    bool records; /* each server writes down its consensus, beside its data */
    bool picture; /* for a terminal */
    bool ending;
    uint64_t ending_ms;
    char message[256]; /* about the last command */
    char typed;        /* a command that was typed without its numbers yet */
    char digits[16];   /* the part of them that was */
    char input[UP_LINE_MAX];
    size_t input_used;
    struct fetch transfer; /* the last request to transfer leadership */
    int transferee;        /* to that server, since then; 0: none is under way */
    uint64_t transfer_ms;
};

/* ---- up_loop.c ---- */

struct up_options { /* what comes after --, ended by NULL */
    char *at[32];
    size_t count;
};
void up_add_option(struct up_options *options, char *text, const char *whose);
uint64_t up_number(const char *name, const char *text, uint64_t min, uint64_t max);
bool up_port_is_free(uint64_t port);
/* The directory that was given, or one that is made now, in `room`. */
const char *up_directory(const char *given, char *room, size_t size);
/* Starts them all, goes on until they have ended, and frees it: the exit code. */
int up_run(struct up *up);

/* ---- up_server.c ---- */

void server_start(struct up *up, struct up_server *server);
void server_signal(struct up_server *server, int signal);
/* A line for one that reads commands. */
void server_tell(struct up_server *server, const char *line);
void server_close(struct up_server *server); /* when its process has ended */
/* "1, 3", those from which the network cuts it off; "": none. */
const char *server_parted(const struct up *up, const struct up_server *server, char *buffer,
                          size_t size);
/* Notices that its process has ended, if it has. */
void server_reap(struct up *up, struct up_server *server);
/* Appends the descriptors that it waits for; goes on when poll has returned. */
void server_await(struct up_server *server, struct pollfd *poll, nfds_t *count);
void server_go_on(struct up_server *server, uint64_t now_ms);
/* "leader", "follower", "stopped", ... */
const char *server_state(const struct up_server *server, uint64_t now_ms);
bool server_answers(const struct up_server *server, uint64_t now_ms);

/* ---- up_commands.c ---- */

void command_line(struct up *up, const char *line);
void command_key(struct up *up, char key);
/* The names of all commands, or with their keys. */
const char *command_words(const struct up *up, bool keys, char *buffer, size_t size);
/* Takes the answer to a request for transfer, if it has come. */
void command_go_on(struct up *up, uint64_t now_ms);
/* Says how a transfer of leadership has ended. */
void command_watch_transfer(struct up *up, uint64_t now_ms);

/* ---- up_view.c ---- */

void view_open(struct up *up);
void view_show(struct up *up, uint64_t now_ms);
void view_table(struct up *up, uint64_t now_ms); /* as lines */
void view_close(struct up *up);

#endif
