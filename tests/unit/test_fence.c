/* What a fence decides and remembers, and how it reads the two protocols. */
#include <sys/file.h>

#include "fence/http.h"
#include "fence/memory.h"
#include "fence/resp.h"
#include "fence/rule.h"
#include "file_help.h"

/* ---- The rule ---- */

static struct fence_pass *cut_pass[8];
static unsigned cuts;

static void note_cut(struct fence_pass *pass) { cut_pass[cuts++] = pass; }

static struct fence_lock new_lock(enum fence_reach reach) {
    cuts = 0;
    return (struct fence_lock){.name = "job", .reach = reach, .cut = note_cut};
}

static void test_older_tokens(void **state) {
    struct fence_lock lock = new_lock(FENCE_UNREACHED);
    struct fence_pass pass = {0};
    (void)state;
    assert_int_equal(fence_judge(&lock, 5, false, false), FENCE_ENTER);
    fence_enter(&lock, &pass, 5);
    fence_leave(&pass);
    assert_int_equal(fence_judge(&lock, 4, false, false), FENCE_OLDER);
    assert_int_equal(fence_judge(&lock, 5, false, false), FENCE_ENTER);
    assert_int_equal(fence_judge(&lock, 6, false, false), FENCE_ENTER);
    assert_int_equal(fence_judge(&lock, 6, false, true), FENCE_UNSURE);
    fence_hear(&lock, 4); /* the servers may have lost what they knew; the fence has not */
    assert_int_equal(fence_judge(&lock, 4, true, false), FENCE_OLDER);
}

static void test_what_servers_say(void **state) {
    struct fence_lock lock = new_lock(FENCE_CONNECTING);
    (void)state;
    assert_int_equal(fence_judge(&lock, 5, false, false), FENCE_ASK);
    assert_int_equal(fence_judge(&lock, 5, true, true), FENCE_ASK);
    fence_hear(&lock, 5);
    assert_int_equal(fence_judge(&lock, 5, false, false), FENCE_ENTER);
    assert_int_equal(fence_judge(&lock, 5, true, true), FENCE_ENTER);
    /* One that has just got the lock may be ahead of what was heard last. */
    assert_int_equal(fence_judge(&lock, 6, false, false), FENCE_ASK);
    assert_int_equal(fence_judge(&lock, 6, true, false), FENCE_NOT_HELD);
    fence_hear(&lock, 0);
    assert_int_equal(fence_judge(&lock, 5, false, false), FENCE_ASK);
    assert_int_equal(fence_judge(&lock, 5, true, false), FENCE_NOT_HELD);
}

static void test_cuts(void **state) {
    struct fence_lock lock = new_lock(FENCE_UNREACHED);
    struct fence_pass first = {0}, second = {0}, newer = {0}, newest = {0};
    (void)state;
    fence_enter(&lock, &first, 5);
    fence_enter(&lock, &second, 5);
    assert_true(fence_is_clear(&first) && fence_is_clear(&second));
    assert_int_equal(cuts, 0);
    fence_enter(&lock, &newer, 7);
    assert_int_equal(cuts, 2);
    assert_true(cut_pass[0] == &second && cut_pass[1] == &first);
    /* Not before the resource is done with both. */
    assert_false(fence_is_clear(&newer));
    fence_leave(&first);
    assert_false(fence_is_clear(&newer));
    fence_enter(&lock, &newest, 8);
    assert_int_equal(cuts, 3);
    assert_true(cut_pass[2] == &newer); /* and the second not once more */
    fence_leave(&second);
    assert_true(fence_is_clear(&newer));
    assert_false(fence_is_clear(&newest));
    fence_leave(&newer);
    fence_leave(&newer);
    assert_true(fence_is_clear(&newest));
    fence_hear(&lock, 8);
    assert_int_equal(cuts, 3);
    fence_hear(&lock, 0); /* before another one has shown up here */
    assert_int_equal(cuts, 4);
    assert_true(cut_pass[3] == &newest);
    fence_leave(&newest);
    assert_null(lock.passes);
}

static void test_tokens(void **state) {
    static const char *const bad[] = {"",   "0",   "-1",  "+1",  " 1",
                                      "1 ", "0x1", "1.0", "1\n", "9223372036854775808"};
    int64_t token = 0;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(fence_parse_token(bad[i], strlen(bad[i]), &token));
    assert_true(fence_parse_token("9223372036854775807", 19, &token));
    assert_int_equal(token, INT64_MAX);
    assert_true(fence_parse_token("17,", 2, &token));
    assert_int_equal(token, 17);
}

/* ---- The memory ---- */

static const char *path_of(const struct place *place, const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", place->path, name);
    return path;
}

static void test_memory(void **state) {
    struct place place;
    struct fence_memory memory, other;
    (void)state;
    place_open(&place);
    assert_int_equal(fence_memory_open(&memory, path_of(&place, "state")), 0);
    assert_int_equal(fence_memory_of(&memory, "job"), 0);
    assert_int_equal(fence_memory_raise(&memory, "job", 7), 0);
    assert_int_equal(fence_memory_raise(&memory, "a lock: 2", 3), 0);
    assert_int_equal(fence_memory_raise(&memory, "job", 5), 0); /* it is not lowered */
    assert_int_equal(fence_memory_open(&other, memory.path), -1);
    assert_non_null(strstr(other.message, "another fence"));
    fence_memory_close(&other);
    fence_memory_close(&memory);
    assert_int_equal(fence_memory_open(&memory, path_of(&place, "state")), 0);
    assert_int_equal(fence_memory_of(&memory, "job"), 7);
    assert_int_equal(fence_memory_of(&memory, "a lock: 2"), 3);
    fence_memory_close(&memory);
    place_close(&place);
}

static void write_all(const struct place *place, const char *name, const void *bytes, size_t size) {
    int file = openat(place->directory, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

/* Every byte counts: any change, and any end, is noticed. */
static void test_damaged_memory(void **state) {
    struct place place;
    struct fence_memory memory;
    (void)state;
    place_open(&place);
    assert_int_equal(fence_memory_open(&memory, path_of(&place, "state")), 0);
    assert_int_equal(fence_memory_raise(&memory, "job", 17), 0);
    fence_memory_close(&memory);
    struct bytes whole = file_read(&place, "state");
    for (size_t i = 0; i < whole.used; i++) {
        whole.at[i] ^= 1;
        write_all(&place, "state", whole.at, whole.used);
        whole.at[i] ^= 1;
        assert_int_equal(fence_memory_open(&memory, path_of(&place, "state")), -1);
        assert_non_null(strstr(memory.message, "damaged"));
        fence_memory_close(&memory);
        write_all(&place, "state", whole.at, i);
        assert_int_equal(fence_memory_open(&memory, path_of(&place, "state")), -1);
        fence_memory_close(&memory);
    }
    bytes_close(&whole);
    place_close(&place);
}

/* A token that could not be written counts as not remembered, and is tried again. */
static void test_memory_that_fails(void **state) {
    struct place place;
    struct fence_memory memory;
    struct rlimit limit, none;
    (void)state;
    place_open(&place);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(fence_memory_open(&memory, path_of(&place, "state")), 0);
    getrlimit(RLIMIT_FSIZE, &limit);
    none = limit;
    none.rlim_cur = 5;
    setrlimit(RLIMIT_FSIZE, &none);
    assert_int_equal(fence_memory_raise(&memory, "job", 7), -1);
    assert_int_equal(fence_memory_raise(&memory, "job", 7), -1);
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(fence_memory_raise(&memory, "other", 8), 0);
    assert_int_equal(fence_memory_raise(&memory, "job", 7), 0);
    fence_memory_close(&memory);
    assert_int_equal(fence_memory_open(&memory, path_of(&place, "state")), 0);
    assert_int_equal(fence_memory_of(&memory, "job"), 7);
    fence_memory_close(&memory);
    place_close(&place);
}

/* ---- RESP ---- */

static int head_of(const char *text, struct resp_head *head) {
    return resp_read_head((const unsigned char *)text, strlen(text), head);
}

static void test_commands(void **state) {
    static const char set[] = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n";
    struct resp_head head;
    (void)state;
    for (size_t size = 0; size + 1 < sizeof set; size++)
        assert_int_equal(resp_read_head((const unsigned char *)set, size, &head), 0);
    assert_int_equal(head_of(set, &head), 1);
    assert_int_equal(head.size, sizeof set - 1);
    assert_int_equal(head.kept, 3);
    assert_true(resp_is(head.argument[0], "set") && resp_is(head.argument[1], "a"));
    assert_memory_equal(head.argument[2].at, "\r\n", 2);
    assert_true(resp_is_done(&head.rest));
}

static void test_malformed_commands(void **state) {
    static const char *const bad[] = {"PING\r\n",
                                      "*0\r\n",
                                      "*-1\r\n",
                                      "*1\n$4\nPING\n",
                                      "*01\r\n$1\r\nx",
                                      "*1\r\n+PING\r\n",
                                      "*1\r\n$-1\r\n",
                                      "*1\r\n$4\r\nPINGxx",
                                      "*1\r\n$4\r\nPING\rx",
                                      "*1\r\n$04\r\nPING\r\n",
                                      "*1048577\r\n",
                                      "*1\r\n$536870913\r\n",
                                      "*1\r\n$2000\r\n",
                                      " *1\r\n",
                                      "*1 \r\n",
                                      "*99999999999999999999\r\n",
                                      "*1\r\n$1\rx",
                                      "\r\n",
                                      "GET / HTTP/1.1\r\n"};
    struct resp_head head;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (head_of(bad[i], &head) != -1) fail_msg("'%s'", bad[i]);
}

/* However the bytes of a large command are cut, its end is where it is. */
static void test_rest(void **state) {
    struct bytes command = {0};
    struct resp_head head;
    (void)state;
    char line[64];
    bytes_add(&command, line, (size_t)sprintf(line, "*12\r\n$4\r\nMSET\r\n"));
    for (int i = 0; i < 11; i++) {
        size_t size = i == 3 ? 5000 : (size_t)i;
        bytes_add(&command, line, (size_t)sprintf(line, "$%zu\r\n", size));
        memset(bytes_extend(&command, size), '\r', size);
        bytes_add(&command, "\r\n", 2);
    }
    size_t whole = command.used;
    bytes_add(&command, "*1\r\n", 4);
    assert_int_equal(resp_read_head(command.at, command.used, &head), 1);
    assert_int_equal(head.kept, 4); /* the fifth is long */
    for (size_t step = 1; step < 40; step++) {
        struct resp_rest rest = head.rest;
        size_t at = head.size, room = step;
        while (!resp_is_done(&rest)) {
            size_t left = command.used - at;
            ptrdiff_t read = resp_read_rest(&rest, command.at + at, left < room ? left : room);
            assert_true(read >= 0);
            room = read ? step : room + step;
            at += (size_t)read;
        }
        assert_int_equal(at, whole);
    }
    struct resp_rest rest = head.rest;
    command.at[whole - 1] = 'x';
    assert_int_equal(resp_read_rest(&rest, command.at + head.size, command.used - head.size), -1);
    bytes_close(&command);
}

static bool reads(const char *text) {
    struct resp_head head;
    assert_int_equal(head_of(text, &head), 1);
    return resp_only_reads(&head);
}

static void test_what_reads(void **state) {
    (void)state;
    assert_true(reads("*2\r\n$3\r\nGeT\r\n$1\r\na\r\n"));
    assert_true(reads("*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$1\r\na\r\n"));
    assert_false(reads("*2\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n"));
    assert_false(reads("*1\r\n$6\r\nCLIENT\r\n"));
    assert_false(reads("*1\r\n$3\r\nSET\r\n"));
    assert_false(reads("*1\r\n$4\r\nEVAL\r\n"));
    assert_false(reads("*1\r\n$4\r\nSORT\r\n"));
    assert_false(reads("*1\r\n$5\r\nGETEX\r\n"));
    assert_false(reads("*1\r\n$0\r\n\r\n"));
    assert_false(reads("*1\r\n$4\r\nGET\1\r\n"));
}

/* ---- HTTP ---- */

static int request_of(const char *text, struct http_head *head) {
    return http_read_request((const unsigned char *)text, strlen(text), head);
}

static void test_requests(void **state) {
    static const char post[] = "POST /a?b HTTP/1.1\r\nHost: x\r\nconclave-TOKEN: 17 \r\n"
                               "Conclave-Lock:\tjob\r\nContent-Length: 3\r\n\r\nabc";
    struct http_head head;
    (void)state;
    for (size_t size = 0; size < sizeof post - 4; size++)
        assert_int_equal(http_read_request((const unsigned char *)post, size, &head), 0);
    assert_int_equal(request_of(post, &head), 1);
    assert_int_equal(head.size, sizeof post - 4);
    assert_true(http_is(head.method, "POST") && http_is(head.target, "/a?b"));
    assert_true(http_is(head.token, "17") && http_is(head.lock, "job"));
    assert_int_equal(head.body.framing, HTTP_LENGTH);
    assert_int_equal(head.body.left, 3);
    assert_false(head.close || head.body.done || http_is_safe(&head));
    assert_int_equal(request_of("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n", &head), 1);
    assert_true(head.close && head.body.done && http_is_safe(&head));
    assert_int_equal(request_of("get / HTTP/1.1\r\n\r\n", &head), 1);
    assert_false(http_is_safe(&head)); /* methods have a case */
}

static void test_refused_requests(void **state) {
    static const struct {
        int error;
        const char *text;
    } bad[] = {
        {400, "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: 0x3\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nContent-Length : 3\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n Content-Length: 3\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nA: b\nContent-Length: 3\r\n\r\n"},
        {400, "POST / HTTP/1.1\nA: b\n\n"},
        {400, "POST / HTTP/1.1\r\nA: b\rContent-Length: 3\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nA\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n: b\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nA: b\1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nConclave-Token: 1\r\nConclave-Token: 2\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nConclave-Lock: a\r\nConclave-Lock: b\r\n\r\n"},
        {400, "POST  / HTTP/1.1\r\n\r\n"},
        {400, "POST /\r\n\r\n"},
        {400, "P(ST / HTTP/1.1\r\n\r\n"},
        {400, "\r\nPOST / HTTP/1.1\r\n\r\n"},
        {400,
         "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked,\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n"},
        {501, "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
        {501, "CONNECT a:1 HTTP/1.1\r\n\r\n"},
        {505, "POST / HTTP/1.0\r\n\r\n"},
        {505, "POST / HTTP/1.1 x\r\n\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\n"},
    };
    struct http_head head;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (request_of(bad[i].text, &head) != -1 || head.error != bad[i].error)
            fail_msg("%d, not %d: '%s'", head.error, bad[i].error, bad[i].text);
}

static void test_large_heads(void **state) {
    struct bytes text = {0};
    struct http_head head;
    (void)state;
    bytes_add(&text, "GET / HTTP/1.1\r\n", 16);
    for (int i = 0; i <= HTTP_FIELDS_MAX; i++) bytes_add(&text, "A: b\r\n", 6);
    bytes_add(&text, "\r\n", 2);
    assert_int_equal(http_read_request(text.at, text.used, &head), -1);
    assert_int_equal(head.error, 431);
    text.used = 16;
    memset(bytes_extend(&text, HTTP_HEAD_MAX), 'a', HTTP_HEAD_MAX);
    assert_int_equal(http_read_request(text.at, text.used, &head), -1);
    assert_int_equal(head.error, 431);
    bytes_close(&text);
}

/* Reads a body in steps of every size; how many of the bytes are its own, or -1. */
static ptrdiff_t read_body(struct http_body body, const char *text) {
    size_t size = strlen(text);
    ptrdiff_t result = -2;
    for (size_t step = 1; step <= size; step++) {
        struct http_body now = body;
        ptrdiff_t at = 0, read = 0;
        while (!now.done && (size_t)at < size && read >= 0) {
            size_t left = size - (size_t)at;
            read =
                http_read_body(&now, (const unsigned char *)text + at, left < step ? left : step);
            if (read >= 0) at += read;
        }
        if (read < 0) at = -1;
        if (result != -2) assert_int_equal(result, at);
        result = at;
        if (at >= 0 && !now.done) return -3;
    }
    return result;
}

static void test_bodies(void **state) {
    struct http_body chunked = {.framing = HTTP_CHUNKED};
    struct http_body length = {.framing = HTTP_LENGTH, .left = 3};
    (void)state;
    assert_int_equal(read_body(length, "abcdef"), 3);
    assert_int_equal(read_body(length, "ab"), -3);
    assert_int_equal(read_body(chunked, "0\r\n\r\nGET"), 5);
    assert_int_equal(read_body(chunked, "3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\nX"), 29);
    assert_int_equal(read_body(chunked, "1\r\nx\r\n0\r\nA: b\r\n\r\nX"), 17);
    assert_int_equal(read_body(chunked, "3;a=b\r\nabc\r\n0\r\n\r\n"), -1);
    assert_int_equal(read_body(chunked, "3\nabc\r\n0\r\n\r\n"), -1);
    assert_int_equal(read_body(chunked, "3\r\nabcd\r\n0\r\n\r\n"), -1);
    assert_int_equal(read_body(chunked, "3\r\nabc\n0\r\n\r\n"), -1);
    assert_int_equal(read_body(chunked, "\r\n"), -1);
    assert_int_equal(read_body(chunked, "-1\r\n"), -1);
    assert_int_equal(read_body(chunked, "0x3\r\n"), -1);
    assert_int_equal(read_body(chunked, "0000000000000000001\r\n"), -1);
    assert_int_equal(read_body(chunked, "0\r\nA: b\nC\r\n\r\n"), -1);
    assert_int_equal(read_body(chunked, "0\r\n\n"), -1);
}

static void test_responses(void **state) {
    static const struct {
        const char *text;
        enum http_framing framing;
        bool close, to_head;
    } good[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", HTTP_LENGTH, false, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", HTTP_NO_BODY, false, true},
        {"HTTP/1.1 204\r\nContent-Length: 3\r\n\r\n", HTTP_NO_BODY, false, false},
        {"HTTP/1.1 304 x\r\n\r\n", HTTP_NO_BODY, false, false},
        {"HTTP/1.1 100 Continue\r\n\r\n", HTTP_NO_BODY, false, false},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_CHUNKED, false, false},
        {"HTTP/1.1 200 OK\r\n\r\n", HTTP_UNTIL_END, true, false},
        {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", HTTP_LENGTH, true, false},
        {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n", HTTP_LENGTH,
         false, false},
    };
    static const char *const bad[] = {"HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
                                      "HTTP/1.1 2000\r\n\r\n", "HTTP/1.1 200 OK\n\n"};
    struct http_head head;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const char *text = good[i].text;
        assert_int_equal(
            http_read_response((const unsigned char *)text, strlen(text), good[i].to_head, &head),
            1);
        assert_int_equal(head.body.framing, good[i].framing);
        assert_int_equal(head.close, good[i].close);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(
            http_read_response((const unsigned char *)bad[i], strlen(bad[i]), false, &head), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older_tokens),
        cmocka_unit_test(test_what_servers_say),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_damaged_memory),
        cmocka_unit_test(test_memory_that_fails),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_malformed_commands),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_what_reads),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_large_heads),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_responses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
