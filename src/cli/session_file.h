/* A session that outlives the program, in a file (--session): a wrapper that was ended by a signal
 * is started again, resumes the session, and finds its place at the lock. */
#ifndef CV_CLI_SESSION_FILE_H
#define CV_CLI_SESSION_FILE_H

#include <conclave.h>
#include <jansson.h>

struct session_file {
    const char *path; /* NULL: none */
    int file;
    int lock;        /* of FILE.lock, as long as we or the command have it open */
    json_t *content; /* what was in it; NULL: nothing */
    json_t *noted;   /* the nodes that were written last */
};

/* 0, or the exit code after one line: somebody else uses it. */
int session_file_open(struct session_file *file, const char *path);
void session_file_resume(struct session_file *file, struct cv_options *options);
/* The node of our contender at that lock in the session before; NULL: none. */
const char *session_file_node(const struct session_file *file, const char *lock_path);
/* Writes the session and the nodes of these locks, if they have changed. */
void session_file_note(struct session_file *file, struct cv_client *client,
                       struct cv_lock *const *locks, size_t count);
void session_file_forget(struct session_file *file);

#endif
