/* One thread: nobody else ever holds a lock. */
#ifndef CV_MODULE_PTHREAD_H
#define CV_MODULE_PTHREAD_H

#include <errno.h>

typedef int pthread_t;
typedef struct {
    int unused;
} pthread_mutex_t, pthread_cond_t, pthread_mutexattr_t, pthread_attr_t;
#define PTHREAD_MUTEX_INITIALIZER                                                                  \
    { 0 }

static inline int pthread_nothing(const void *what) { return what ? 0 : EINVAL; }
#define pthread_mutex_init(MUTEX, ATTRIBUTES) ((void)(ATTRIBUTES), pthread_nothing(MUTEX))
#define pthread_mutex_destroy                 pthread_nothing
#define pthread_mutex_lock                    pthread_nothing
#define pthread_mutex_trylock                 pthread_nothing
#define pthread_mutex_unlock                  pthread_nothing
#define pthread_mutexattr_init                pthread_nothing
#define pthread_mutexattr_destroy             pthread_nothing
#define pthread_cond_init(COND, ATTRIBUTES)   ((void)(ATTRIBUTES), pthread_nothing(COND))
#define pthread_cond_destroy                  pthread_nothing
#define pthread_cond_broadcast                pthread_nothing
#define pthread_cond_wait(COND, MUTEX)        ((void)(MUTEX), pthread_nothing(COND))

static inline int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                 void *(*run)(void *), void *argument) {
    (void)thread, (void)attributes, (void)run, (void)argument;
    return EAGAIN;
}
static inline int pthread_join(pthread_t thread, void **result) {
    (void)thread, (void)result;
    return EINVAL;
}

#endif
