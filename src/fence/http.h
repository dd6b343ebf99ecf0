/* Heads and bodies of HTTP/1.1, as they arrive.  The input is not trusted: a message whose end two
 * readers could see in different places is refused, because the reader behind the fence would take
 * what comes after that end for a request of its own (request smuggling). */
#ifndef CV_FENCE_HTTP_H
#define CV_FENCE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_HEAD_MAX = 16 << 10, HTTP_FIELDS_MAX = 100, HTTP_TRAILER_MAX = 8 << 10 };

struct http_text {
    const char *at; /* NULL: there is none */
    size_t size;
};

enum http_framing { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_END };

/* Where a body ends. */
struct http_body {
    enum http_framing framing;
    int64_t left; /* bytes of the body, or of a chunk */
    enum { HTTP_SIZE, HTTP_DATA, HTTP_DATA_END, HTTP_TRAILER } at; /* of a chunked one */
    unsigned digits, trailer;                                      /* so far */
    bool blank;    /* the line of the trailer is empty so far */
    bool returned; /* the last byte was a CR */
    bool done;
};

struct http_head {
    struct http_text method, target, token, lock; /* of a request */
    int status;                                   /* of a response */
    size_t size;
    bool close;    /* the connection ends with this message */
    bool upgrades; /* the message would make it another protocol's connection */
    struct http_body body;
    int error;       /* the status to answer with ... */
    const char *why; /* ... and why */
};

/* 1: a head; 0: more bytes are needed; -1: refused, see `error`. */
int http_read_request(const unsigned char *bytes, size_t size, struct http_head *head);
/* `to_head`: of a response to a HEAD, which has no body whatever it says. */
int http_read_response(const unsigned char *bytes, size_t size, bool to_head,
                       struct http_head *head);
/* How many of the bytes belong to the body, all unless it is done then; -1: it is malformed. */
ptrdiff_t http_read_body(struct http_body *body, const unsigned char *bytes, size_t size);

bool http_is(struct http_text text, const char *word); /* in exactly this case */
/* GET, HEAD, OPTIONS and TRACE. */
bool http_is_safe(const struct http_head *head);

#endif
