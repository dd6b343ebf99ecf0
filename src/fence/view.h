/* What the servers say about who holds the locks.  A thread of the client library asks them; all
 * that is said here is said on the loop. */
#ifndef CV_FENCE_VIEW_H
#define CV_FENCE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct cv_options;
struct fence_view;

struct fence_view_calls {
    /* `question`: the newest that this answers.  `holder`: the token; 0: nobody. */
    void (*heard)(void *owner, size_t lock, uint64_t question, int64_t holder);
    /* Whether the servers say who holds this lock. */
    void (*reached)(void *owner, size_t lock, bool reached);
};

/* Watches ROOT/NAME for each lock.  NULL: it cannot, and `message` says why. */
struct fence_view *fence_view_open(uv_loop_t *loop, const struct cv_options *servers,
                                   const char *root, const char *const *locks, size_t count,
                                   const struct fence_view_calls *calls, void *owner, char *message,
                                   size_t size);
/* Looks anew; returns the number of the question.  Many may be answered by one look. */
uint64_t fence_view_ask(struct fence_view *view, size_t lock);
void fence_view_close(struct fence_view *view); /* before the loop ends; frees it */

#endif
