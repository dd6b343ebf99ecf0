/* What `conclave peer` was asked for, and its run.
 *
 * A participant that stays ('conclave peer run') has a Unix socket for the commands on its machine.
 * Both sides speak in lines.  It greets with "peer ID ALGORITHM GIVES", of which the last is
 * "lock", "election" or "nothing", and passes on what the algorithm tells its application: "entered
 * TOKEN", "left", "elected ID TERM", "follows ID TERM" and "leaderless".  "ends" says that it was
 * asked to end, and waits for who is inside.  It takes "acquire", "release", "runs"
 * (a command, whenever it leads: it has some time to end) and "state", which it answers by "state
 * JSON" now and whenever that has changed.  Who acquires stands
 * in a queue of the participant's; a connection that is closed gives back what it has.  With
 * "entered" comes a file to have open for as long (cli/peer_remains.h).  "full" is said instead of
 * the greeting when there are too many. */
#ifndef CV_CLI_PEER_H
#define CV_CLI_PEER_H

#include "cli/run.h"
#include "peer/setup.h"

enum { PEER_PATH_MAX = 108 }; /* what the address of a socket can have */

enum peer_action { PEER_LOCK = 1, PEER_ELECT, PEER_SERVE, PEER_INTERACTIVE, PEER_RUN };

enum { JOINED_LINE_MAX = 16384 };

/* A connection to a participant that stays. */
struct joined {
    int socket; /* -1: it is closed */
    uint32_t id;
    char algorithm[64], gives[16];
    char text[JOINED_LINE_MAX]; /* that was read and not taken yet */
    size_t used;
    bool ends;
    bool full;     /* it has too many connections */
    int shared;    /* a file that commands have open as well, see cli/peer_remains.h; -1: none */
    char why[128]; /* it is lost */
    char *state;   /* the last that it has told of itself, JSON; NULL: nothing, or it was taken */
};

struct peer_request {
    struct run run; /* of a command; the rest of it is for clients of servers */
    int action;
    struct peer_setup setup;
    const char *socket; /* of a participant that stays; NULL: the default */
    bool stay;
    uint64_t times;
    const char *on_leader, *on_follower;
    const char *of_command; /* an option that was given, and is for commands; NULL: none */

    struct peer_thread *thread; /* its own participant, or ... */
    struct joined *joined;      /* ... one that stays */
    int64_t wait;               /* ms; CV_FOREVER */
    int busy_code;
    bool interrupted; /* by a signal, or left alone, while no command ran */
};

#define PEER_DEFAULTS                                                                              \
    { .run = {.grace = 5000}, .times = 1, .wait = CV_FOREVER, .busy_code = EXIT_BUSY }

/* Returns the exit code. */
int peer_run(struct peer_request *request);
int peer_interact(struct peer_request *request);
int peer_stay(struct peer_request *request);
/* conclave peer lock, elect, leader and state, by a participant that stays; argv[0] is one of them.
 */
bool peer_is_asked(const char *name);
int peer_ask(int argc, char **argv);
int peer_up(int argc, char **argv); /* conclave peer up */

/* The values of options; wrong usage ends the program. */
uint64_t peer_whole(const char *option, const char *text, uint64_t min, uint64_t max);
const char *peer_path(const char *option, const char *text);
void peer_check_hooks(const struct peer_request *request);
int peer_grace(struct run *run, const char *text); /* for a parser: 0, or EINVAL after one line */

/* From now on the commands of this process have the file open as well, where scripts open nothing.
 */
void peer_let_inherit(int *file);

/* Where the socket is: PATH as given, CONCLAVE_PEER_SOCKET, or one for the user; NULL: there is no
 * place for that. */
const char *peer_socket_path(const char *given, char room[PEER_PATH_MAX]);
/* Listens there, with nobody else's rights.  Returns the socket; -1: why not is in `error`. */
int peer_socket_listen(const char *path, char error[PEER_ERROR_MAX]);

/* Connects and reads the greeting, within so many milliseconds (CV_FOREVER: as long as is usual):
 * 0, or the exit code after one line. */
int joined_open(struct joined *joined, const char *path, int64_t wait);
/* From now on the commands of this process have it open as well, where scripts open nothing. */
void joined_let_inherit(struct joined *joined);
void joined_call(struct joined *joined, uint32_t what);
void joined_say(struct joined *joined, const char *line);
/* The next thing that was told; false: there is none now.  See also `ends` and `state`.
 */
bool joined_next(struct joined *joined, struct cv_tell *tell);
/* Why it cannot be asked any more; NULL: it can. */
const char *joined_failure(struct joined *joined);
void joined_close(struct joined *joined);

/* What is told as a line, and back; 0 and false: it is nothing for others. */
int tell_print(char *line, size_t size, const struct cv_tell *tell);
bool tell_read(const char *line, struct cv_tell *tell);

#endif
