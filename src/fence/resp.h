/* Commands of Redis's protocol (RESP, which clients of versions 2 and 3 send alike), as they
 * arrive.  The input is not trusted: only arrays of bulk strings in their one spelling are
 * commands; inline commands are refused.
 *
 * A command begins with its head: as many of its first arguments as decide about it.  What comes
 * after the head is not kept, however large it is. */
#ifndef CV_FENCE_RESP_H
#define CV_FENCE_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESP_KEPT = 8,                /* arguments of a head, the command's name included */
    RESP_KEPT_MAX = 1024,         /* bytes of such an argument; a longer one ends the head */
    RESP_ARGUMENTS_MAX = 1 << 20, /* Redis's own limits */
    RESP_BULK_MAX = 512 << 20,
    RESP_HEAD_MAX = RESP_KEPT * (RESP_KEPT_MAX + 16) + 32, /* a head is never longer */
};

struct resp_text {
    const char *at;
    size_t size;
};

/* What is to come of a command after its head. */
struct resp_rest {
    int64_t arguments; /* that have not begun */
    int64_t bytes;     /* of the one that has, with the two that end it */
};

struct resp_head {
    struct resp_text argument[RESP_KEPT];
    unsigned kept;
    int64_t arguments; /* of the whole command */
    size_t size;       /* bytes of the head */
    struct resp_rest rest;
};

/* 1: a head; 0: more bytes are needed; -1: this is no command. */
int resp_read_head(const unsigned char *bytes, size_t size, struct resp_head *head);
/* How many of the bytes belong to the rest of the command; -1: this is no command.  Fewer than
 * `size` while `rest` is not done: it needs more bytes than there are to go on. */
ptrdiff_t resp_read_rest(struct resp_rest *rest, const unsigned char *bytes, size_t size);
static inline bool resp_is_done(const struct resp_rest *rest) {
    return !rest->arguments && !rest->bytes;
}

/* Whether the argument is that word, in any case. */
bool resp_is(struct resp_text text, const char *word);

/* Whether a command only reads, as far as can be told from its head: one that is not known writes.
 */
bool resp_only_reads(const struct resp_head *head);

#endif
