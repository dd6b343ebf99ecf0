/* Running a command under a lease, in three processes that watch each other:
 *
 *     front      what the caller has started: stands for the command towards shell and terminal
 *      keeper    has the session, renews the lease, starts the command, releases the lock
 *       command  in a process group of its own
 *
 * Nothing of the command survives its lease:
 * - The keeper tells it to end and kills it by the local clock (lease.h).  If the keeper is late,
 *   stopped or hangs, the front does, which shares the lease with it, and a second later kills the
 *   keeper as well; one that was only late says what has happened, and may go on to the next.
 * - If the front is killed, the keeper sees their channel close and kills the command.  (A keeper
 *   that is stopped is continued for that by its parent-death signal.)
 * - If the keeper is killed, the kernel kills the command (its parent-death signal), and the front
 *   inherits and kills what the command has started.
 * - If both are killed at once, the kernel still kills the command itself; what it has started is
 *   on its own then, and so is a set-user-ID program, whose parent-death signal the kernel clears.
 *   If that was reading the terminal, it gets one more line at most, and then an error.
 * - If both are stopped and the command is not, nobody is left to act before they are continued.
 *   They then kill before they do anything else; only the token excludes what happened meanwhile.
 * - What belongs to another user (sudo) cannot be killed.  That is said, and waited for.
 * - A patient keeper (--keep-running) tells its command by itself; the front does not do it for a
 *   keeper that hangs.
 *
 * Both adopt orphans, so that everything the command starts belongs to it, wherever it has gone. */
#ifndef CV_CLI_GUARD_H
#define CV_CLI_GUARD_H

#include <signal.h>
#include <stdbool.h>

#include "cli/descriptor.h"
#include "cli/family.h"
#include "cli/lease.h"

/* ---- What is called in the keeper ---- */

enum keeper_event {
    KEEPER_WOKEN,       /* keeper_wake was called */
    KEEPER_TIME,        /* the time that was given is over */
    KEEPER_INTERRUPTED, /* by keeper->signal, while no command runs */
    KEEPER_ALONE,       /* the front is gone, and so is the command */
    KEEPER_ENDED,       /* the command and all that it has started are gone */
};

/* The moment at which the lease ends as far as is known now, LEASE_NONE without one. */
typedef int64_t deadline_fn(void *arg);
/* Another child of the keeper than the command has ended, perhaps one that was inherited. */
typedef void child_fn(pid_t pid, int status, void *arg);

struct keeper {
    struct lease *lease;
    int channel; /* to the front */
    int signals, timer, wake;
    int file;        /* another that wakes it when it can be read; -1: none */
    sigset_t mask;   /* as the caller had it, for the command */
    int front_group; /* the caller's process group */
    int signal;      /* of KEEPER_INTERRUPTED */

    deadline_fn *deadline;
    child_fn *on_child; /* NULL: nobody asks */
    void *arg;
    int32_t look_every; /* ms; how often the deadline is read */

    /* The command. */
    struct family family;
    pid_t command; /* 0: none */
    bool gone;     /* it has ended; what it has started may go on */
    bool killing;  /* everything must go */
    bool asked;    /* the caller wants it to end */
    bool hung_up; /* ... if it does not handle SIGHUP, as those do that read their settings again */
    bool lost;    /* its lease was over, and it was told to end or killed */
    bool alone;   /* the front is gone */
    bool said;    /* that something of it cannot be killed */
    bool patient; /* it is not told and killed by the clock */
    bool wants_terminal, has_terminal;
    int status;      /* as wait has it */
    int64_t kill_at; /* after keeper_end; LEASE_NONE */
    int terminal;    /* -1: none */
};

/* Starts a command; what it has started before must be gone.  0, or -1 and errno: ETIME if the
 * lease is nearly over. */
int keeper_start(struct keeper *keeper, char *const *argv, char *const *environment);
/* Starts another process of the keeper, with the caller's signal mask, as a child that dies with
 * it.  Returns its pid; 0 in that process; -1. */
pid_t keeper_fork(struct keeper *keeper);
/* Waits for the next event; `until` is a moment of lease_now, or LEASE_NONE. */
enum keeper_event keeper_next(struct keeper *keeper, int64_t until);
/* From any thread: has keeper_next return KEEPER_WOKEN. */
void keeper_wake(struct keeper *keeper);
/* Tells the command to end, and kills it after the grace while the lease is renewed. */
void keeper_end(struct keeper *keeper);
/* Kills the command and all that it has started: the lock is somebody else's. */
void keeper_kill(struct keeper *keeper);
/* Sends a signal to the command. */
void keeper_tell(struct keeper *keeper, int signal);
/* Returns to the caller's shell, and holds the lease until its descriptor is closed (0) or the
 * lease is lost, and all who had it open have been killed (EXIT_LOST).  lost(arg) is asked whether.
 */
int keeper_hand_over(struct keeper *keeper, struct descriptor *descriptor, bool (*lost)(void *arg));
/* The exit code of the command as a shell has it. */
int keeper_code(const struct keeper *keeper);
/* After the lease was lost: whether the command was told to end or killed, or had ended by itself.
 */
bool keeper_was_killed(const struct keeper *keeper);

/* ---- What is called in the front ---- */

typedef int keep_fn(struct keeper *keeper, void *arg);

/* Runs `keep` in a keeper and returns its exit code.  With a descriptor (not NULL) it returns to
 * the caller's shell when the keeper calls keeper_hand_over, and the lease is for who has the
 * descriptor open.  `last_word` (not NULL) is printed when the lease is over and the keeper does
 * not say so. */
int guard(keep_fn *keep, void *arg, const struct descriptor *descriptor, const char *last_word);

#endif
