/* The durable state of elections: the current term, and the candidate that got the vote in it.  It
 * is one small file, `vote`, beside the log, which is replaced as a whole.
 *
 * The file also holds whose data this is: the random id of the data directory, made once, because a
 * server that comes back with another one has lost its data; the server's own id; and the random id
 * of the ensemble, which its first leader makes.  And it holds whether this server may vote at all.
 *
 *   magic, version; term; vote; directory id; server id; ensemble id; flags; checksum (CRC32C)
 *
 * Nobody else knows a vote, so a member that loses it can only be replaced.  That is why all of it
 * is in the file twice, in different blocks: one copy that is intact suffices.
 *
 * Version 1 had less, and no copy: it is written for as long as it suffices, so that a server can
 * go back to the program before while its ensemble is being upgraded. */
#ifndef CV_SERVICE_LOG_VOTE_H
#define CV_SERVICE_LOG_VOTE_H

#include <stdbool.h>
#include <stdint.h>

#define VOTE_NAME "vote"
enum { VOTE_MESSAGE_MAX = 1024 };

struct vote {
    int directory;    /* its descriptor */
    const char *path; /* its name, for messages */
    uint64_t term;
    uint64_t voted_for;             /* in that term; 0: nobody */
    uint64_t directory_id;          /* 0: none yet; the first vote_write makes one */
    uint64_t server_id;             /* 0: not known, as version 1 did not have it */
    uint64_t ensemble_id;           /* 0: not known */
    bool withheld;                  /* raft.vote_withheld */
    bool mended;                    /* one of its copies was damaged; vote_write mends that */
    char message[VOTE_MESSAGE_MAX]; /* what is wrong, where, and what to do about it */
};

/* All zero if the file does not exist.  -1, with a message: the file cannot be read or is damaged,
 * and the server may not take part in elections. */
int vote_read(struct vote *vote, int directory, const char *path);
/* Makes the vote durable.  -1: it may or may not be; the only thing left to do is to stop. */
int vote_write(struct vote *vote);

#endif
