/* Makes the data of one server a new ensemble of one, offline: the way out when a majority of the
 * members is lost for good.
 *
 * The log here is taken for all that there is, so what only the others had is lost, and entries
 * that nobody may have committed count as committed.  The new ensemble has another identity, so
 * that a former member that turns up again is no part of it, and a term far beyond any that the
 * others can have reached, so that no zxid of theirs is used twice.  What is replaced is kept in a
 * folder of the data directory. */
#ifndef CV_SERVICE_STORE_NEW_ENSEMBLE_H
#define CV_SERVICE_STORE_NEW_ENSEMBLE_H

#include <stdbool.h>
#include <stdio.h>

enum { NEW_ENSEMBLE_MESSAGE_MAX = 1024 };

struct new_ensemble {
    const char *directory, *log_directory; /* the second NULL: the same */
    const char *member;                    /* N=HOST:PORT; NULL: as the data has this server */
    bool accept_loss;                      /* otherwise nothing is changed */
    FILE *out;
    char message[NEW_ENSEMBLE_MESSAGE_MAX]; /* after -1 */
    bool member_is_wrong;                   /* after -1, too: what was given as such */
};

/* 0, or -1 and a message. */
int new_ensemble_make(struct new_ensemble *made);

#endif
