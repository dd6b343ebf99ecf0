/* A queue of processes inside a state: every operation costs the same whatever its length, equal
 * queues have equal bytes, and whether a process is in it is known from its row.  The links live in
 * the rows, so a state that keeps a row per process can queue them all without more memory. */
#ifndef CV_QUEUE_H
#define CV_QUEUE_H

#include "process/record.h"

struct cv_links {
    unsigned char *base; /* the link of process `first` */
    size_t stride;
    cv_pid first;
};

static inline struct cv_link *cv_link(struct cv_links links, cv_pid p) {
    return (struct cv_link *)(void *)(links.base + links.stride * (p - links.first));
}

static inline bool cv_queued(const struct cv_queue *queue, struct cv_links links, cv_pid p) {
    return queue->first == p || cv_link(links, p)->prev != CV_NOBODY;
}

static inline void cv_queue_push(struct cv_queue *queue, struct cv_links links, cv_pid p) {
    cv_link(links, p)->prev = queue->last;
    if (queue->last)
        cv_link(links, queue->last)->next = p;
    else
        queue->first = p;
    queue->last = p;
}

static inline void cv_queue_remove(struct cv_queue *queue, struct cv_links links, cv_pid p) {
    struct cv_link *link = cv_link(links, p);
    if (link->prev)
        cv_link(links, link->prev)->next = link->next;
    else
        queue->first = link->next;
    if (link->next)
        cv_link(links, link->next)->prev = link->prev;
    else
        queue->last = link->prev;
    *link = (struct cv_link){0};
}

static inline cv_pid cv_queue_pop(struct cv_queue *queue, struct cv_links links) {
    cv_pid p = queue->first;
    if (p) cv_queue_remove(queue, links, p);
    return p;
}

#endif
