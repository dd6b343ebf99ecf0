/* What load.c and lock.c share. */
#ifndef WORLD_LOAD_H
#define WORLD_LOAD_H

#include "world.h"

enum { EPHEMERALS = 16, LOCK = 64 }; /* keys of histories: registers come first */

struct history_operation load_begin(const struct user *user, uint32_t key,
                                    enum history_action action);
void load_add(const struct history_operation *operation, bool strong);
/* Takes the outcome from the answer; false: the operation certainly had no effect. */
bool load_outcome(struct history_operation *operation, const struct call *call);
void load_set_done(struct user *user, struct history_operation *operation, const struct call *call);
void load_get_done(struct user *user, struct history_operation *operation, const struct call *call,
                   bool strong);
struct call *load_set(struct user *user, const char *path, int64_t value, int64_t version);
struct call *load_create(struct user *user, const char *path, int64_t value, int32_t flags);
struct call *load_delete(struct user *user, const char *path, int64_t version);
void load_sync(struct user *user);

#endif
