/* What a server may never forget of elections: the term, and whom it voted for in it.  One small
 * file, `vote`, beside the log; it is complete or not there.
 *
 * With it goes a number by which the data directory is known, made once: a server that comes back
 * with another one has lost what it had.
 *
 *   magic, version; term; vote; the directory's number; checksum (CRC32C) */
#ifndef CV_RAFT_VOTE_H
#define CV_RAFT_VOTE_H

#include <stdint.h>

#define VOTE_NAME "vote"
enum { VOTE_MESSAGE_MAX = 1024 };

struct vote {
    int directory;                  /* its descriptor */
    const char *path;               /* its name, for messages */
    uint64_t term;                  /* the newest that was heard of */
    uint64_t server;                /* that was voted for in it; 0: none was */
    uint64_t directory_number;      /* 0: there is none yet, and the first vote_write makes one */
    char message[VOTE_MESSAGE_MAX]; /* what is wrong, where, and what to do about it */
};

/* All zero if it was never written.  -1: it cannot be read or is damaged, and a message; then the
 * server may not take part in elections. */
int vote_read(struct vote *vote, int directory, const char *path);
/* Makes it durable.  -1: it may or may not be; the only thing left to do is to stop. */
int vote_write(struct vote *vote);

#endif
