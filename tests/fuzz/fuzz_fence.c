/* Any bytes as what a client of a fence sends: commands of Redis, and requests and responses of
 * HTTP.  Wherever the bytes are cut, messages end in the same places.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -D_GNU_SOURCE -o fuzz_fence \
 *       tests/fuzz/fuzz_fence.c src/fence/resp.c src/fence/http.c src/base/assert.c
 *   ./fuzz_fence tests/fuzz/corpus/fence */
#include "base/assert.h"
#include "fence/http.h"
#include "fence/resp.h"

/* Where the command at the beginning ends; -1: it is none, 0: it is not complete. */
static ptrdiff_t command(const uint8_t *bytes, size_t size, size_t step) {
    struct resp_head head;
    int read = resp_read_head(bytes, size, &head);
    if (read <= 0) return read;
    cv_assert(head.size <= size && head.size <= RESP_HEAD_MAX && head.kept <= RESP_KEPT);
    for (unsigned i = 0; i < head.kept; i++)
        cv_assert((const uint8_t *)head.argument[i].at + head.argument[i].size <= bytes + size);
    resp_only_reads(&head);
    size_t at = head.size, room = step;
    while (!resp_is_done(&head.rest) && at < size) {
        size_t left = size - at;
        ptrdiff_t more = resp_read_rest(&head.rest, bytes + at, left < room ? left : room);
        if (more < 0) return -1;
        if (more == 0 && left <= room) return 0;
        room = more ? step : room + step;
        at += (size_t)more;
        cv_assert(at <= size);
    }
    return resp_is_done(&head.rest) ? (ptrdiff_t)at : 0;
}

static ptrdiff_t body(struct http_body body_, const uint8_t *bytes, size_t size, size_t step) {
    size_t at = 0;
    while (!body_.done && at < size) {
        size_t left = size - at;
        ptrdiff_t more = http_read_body(&body_, bytes + at, left < step ? left : step);
        if (more < 0) return -1;
        cv_assert(more > 0);
        at += (size_t)more;
    }
    cv_assert(at <= size);
    return body_.done ? (ptrdiff_t)at : -2;
}

static void message(const uint8_t *bytes, size_t size, bool response) {
    struct http_head head, again;
    int read = response ? http_read_response(bytes, size, false, &head)
                        : http_read_request(bytes, size, &head);
    if (read < 0) cv_assert(head.error >= 400 && head.why);
    if (read <= 0) return;
    cv_assert(head.size <= size && head.size <= HTTP_HEAD_MAX);
    /* It ends where it ends, and not before. */
    cv_assert((response ? http_read_response(bytes, head.size, false, &again)
                        : http_read_request(bytes, head.size, &again)) == 1);
    cv_assert(again.size == head.size && again.body.framing == head.body.framing);
    if (!response) cv_assert(http_read_request(bytes, head.size - 1, &again) == 0);
    ptrdiff_t whole = body(head.body, bytes + head.size, size - head.size, size + 1);
    for (size_t step = 1; step < 8; step++)
        cv_assert(body(head.body, bytes + head.size, size - head.size, step) == whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ptrdiff_t whole = command(bytes, size, size + 1);
    for (size_t step = 1; step < 8; step++) cv_assert(command(bytes, size, step) == whole);
    message(bytes, size, false);
    message(bytes, size, true);
    return 0;
}
