/* Links between servers: several in one process, on loopback, and unauthenticated connections of
 * plain sockets. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <time.h>

#include "base/crc32c.h"
#include "base/logger.h"
#include "file_help.h"
#include "patience.h"
#include "wire/net/link.h"

enum { ENSEMBLE = 77, HELLO = 48, HEADER = 12, TICK_MS = 2 };

/* ---- One loop, and what is said ---- */

static uv_loop_t loop;
static uv_timer_t tick; /* so that the loop never waits for long */
static unsigned ticks;  /* one for all of the time in which the machine did something else */
static char said[1 << 16];

static void on_tick(uv_timer_t *timer) { (void)timer, ticks++; }

/* Without the time and the level. */
static void keep_line(void *arg, const char *line, size_t size) {
    const char *message = strchr(strchr(line, ' ') + 1, ' ') + 1;
    (void)arg, (void)size;
    strncat(said, message, sizeof said - strlen(said) - 1);
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#define WAIT(CONDITION)                                                                            \
    for (uint64_t begun_ = now_ms(); !(CONDITION);) {                                              \
        if (now_ms() - begun_ > PATIENCE_MS) fail_msg("not in time: %s\n%s", #CONDITION, said);    \
        uv_run(&loop, UV_RUN_ONCE);                                                                \
    }

static void run_for(uint64_t ms) {
    for (uint64_t begun = now_ms(); now_ms() - begun < ms;) uv_run(&loop, UV_RUN_ONCE);
}

static int open_loop(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    said[0] = 0;
    logger_set_output(keep_line, NULL);
    assert_int_equal(net_open(&loop), 0);
    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, on_tick, TICK_MS, TICK_MS);
    return 0;
}

static int close_loop(void **state) {
    (void)state;
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_DEFAULT); /* ends only if nothing was forgotten */
    assert_int_equal(uv_loop_alive(&loop), 0);
    net_shut(&loop);
    return 0;
}

/* ---- Servers ---- */

struct end {
    uint64_t id, incarnation, last_incarnation;
    uint16_t oldest, newest, last_version;
    struct links *links;
    int32_t port;
    struct tls *tls;
    unsigned up, accepted, gone, drained, frames;
    unsigned down[4]; /* by reason */
    unsigned down_tick[4];
    uint64_t last_from;
    uint32_t last_type;
    struct bytes last; /* body */
    void (*then)(struct end *end);
    bool (*is_expected)(void *owner, uint64_t id, uint64_t ensemble, uint32_t directory);
};

static void on_frame(void *owner, uint64_t from, uint16_t version, uint32_t type,
                     const unsigned char *bytes, size_t size) {
    struct end *end = owner;
    end->frames++;
    end->last_from = from;
    end->last_version = version;
    end->last_type = type;
    end->last.used = 0;
    bytes_add(&end->last, bytes, size);
    if (end->then) end->then(end);
}

static void on_up(void *owner, uint64_t id) {
    struct end *end = owner;
    (void)id;
    end->up++;
}

static void on_down(void *owner, uint64_t id, enum link_reason reason) {
    struct end *end = owner;
    (void)id;
    if (!end->down[reason]++) end->down_tick[reason] = ticks;
    if (end->then) end->then(end);
}

static void on_incoming(void *owner, uint64_t id, bool here, uint64_t incarnation) {
    struct end *end = owner;
    (void)id;
    *(here ? &end->accepted : &end->gone) += 1;
    if (here) end->last_incarnation = incarnation;
}

static void on_drained(void *owner, uint64_t id) {
    struct end *end = owner;
    (void)id;
    end->drained++;
}

static struct links_config config_of(struct end *end) {
    return (struct links_config){.version_oldest = end->oldest,
                                 .version_newest = end->newest,
                                 .loop = &loop,
                                 .id = end->id,
                                 .ensemble = ENSEMBLE,
                                 .incarnation = end->incarnation,
                                 .seed = 1,
                                 .tls = end->tls,
                                 .owner = end,
                                 .is_expected = end->is_expected,
                                 .on_frame = on_frame,
                                 .on_up = on_up,
                                 .on_down = on_down,
                                 .on_incoming = on_incoming,
                                 .on_drained = on_drained};
}

/* Not one of those that the system hands out: what dials such a port may meet itself. */
static void listen_somewhere(struct end *end) {
    for (int32_t i = 0; i < 1000; i++) {
        end->port = 23000 + ((int32_t)getpid() * 7 + i) % 1000;
        if (!links_listen(end->links, "127.0.0.1", &end->port)) return;
    }
    fail_msg("no port is free");
}

static void start_as(struct end *end, const struct links_config *config) {
    end->links = links_open(config);
    if (end->port)
        assert_null(links_listen(end->links, "127.0.0.1", &end->port));
    else
        listen_somewhere(end);
}

static void start(struct end *end) {
    struct links_config config = config_of(end);
    start_as(end, &config);
}

static void stop(struct end *end) {
    links_close(end->links);
    bytes_close(&end->last);
}

static void set(struct end *from, const struct end *to) {
    assert_null(links_set(from->links, to->id, "127.0.0.1", to->port));
}

static void send_frame(struct end *from, uint64_t to, uint32_t type, const void *body,
                       size_t size) {
    struct bytes *out = link_begin(from->links, to, type, LINK_BULK);
    assert_non_null(out);
    bytes_add(out, body, size);
    link_end(from->links, to);
}

static bool was_said(const char *text) { return strstr(said, text) != NULL; }

/* ---- Certificates and keys ---- */

static struct place place;

static const char *path_of(const char *name) {
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", place.path, name);
    return path;
}

struct authority {
    EVP_PKEY *key;
    X509 *certificate;
};

static X509 *certificate_of(EVP_PKEY *key, const char *name, const struct authority *by) {
    X509 *made = X509_new();
    X509_NAME *subject = X509_get_subject_name(made);
    assert_int_equal(X509_set_version(made, 2), 1);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1 + rand());
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made, by ? X509_get_subject_name(by->certificate) : subject);
    X509_set_pubkey(made, key);
    X509_EXTENSION *is_authority =
        X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, by ? "CA:FALSE" : "CA:TRUE");
    assert_int_equal(X509_add_ext(made, is_authority, -1), 1);
    X509_EXTENSION_free(is_authority);
    assert_true(X509_sign(made, by ? by->key : key, EVP_sha256()) > 0);
    return made;
}

static void write_certificate(const char *name, const char *how, X509 *certificate) {
    FILE *file = fopen(path_of(name), how);
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
}

static struct authority make_authority(const char *name) {
    struct authority made = {.key = EVP_EC_gen("P-256")};
    made.certificate = certificate_of(made.key, name, NULL);
    return made;
}

static void free_authority(struct authority *authority) {
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
}

static void make_member(const char *name, const struct authority *by) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = certificate_of(key, name, by);
    char file[64];
    snprintf(file, sizeof file, "%s.pem", name);
    write_certificate(file, "w", certificate);
    snprintf(file, sizeof file, "%s.key", name);
    FILE *to = fopen(path_of(file), "w");
    assert_non_null(to);
    assert_int_equal(PEM_write_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(to);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void make_files(void) {
    struct authority ours = make_authority("ours"), theirs = make_authority("theirs");
    umask(077);
    place_open(&place);
    write_certificate("ours", "w", ours.certificate);
    write_certificate("both", "w", ours.certificate);
    write_certificate("both", "a", theirs.certificate);
    make_member("member", &ours);
    make_member("stranger", &theirs);
    free_authority(&ours);
    free_authority(&theirs);
    file_write(&place, "key", "a key of 20 letters.", 20);
    file_write(&place, "key-line", "a key of 20 letters.\n", 21);
    file_write(&place, "other-key", "a key of 20 letters!", 20);
    file_write(&place, "short-key", "15 letters long\n", 16);
    file_write(&place, "seen-key", "a key of 20 letters.", 20);
    assert_int_equal(fchmodat(place.directory, "seen-key", 0640, 0), 0);
}

static void remove_files(int number) {
    place_close(&place);
    _exit(number);
}

static int open_all(void **state) {
    make_files();
    signal(SIGABRT, remove_files);
    return open_loop(state);
}

static int close_all(void **state) {
    close_loop(state);
    signal(SIGABRT, SIG_DFL);
    place_close(&place);
    return 0;
}

static struct tls *certified(const char *member, const char *authorities) {
    char certificate[128], key[128];
    snprintf(certificate, sizeof certificate, "%s/%s.pem", place.path, member);
    snprintf(key, sizeof key, "%s/%s.key", place.path, member);
    struct tls_files files = {
        .certificate = certificate, .key = key, .authorities = path_of(authorities)};
    struct tls *tls = tls_open(&files, TLS_CLIENTS_CERTIFIED);
    assert_non_null(tls);
    return tls;
}

static struct tls *keyed(const char *name) {
    struct tls *tls = tls_open_key(path_of(name));
    assert_non_null(tls);
    return tls;
}

/* ---- Unauthenticated connections ---- */

static int dial_raw(int32_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int raw = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(raw, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(raw, F_SETFL, O_NONBLOCK), 0);
    return raw;
}

static void put(int raw, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (uint64_t begun = now_ms(); size;) {
        ssize_t sent = send(raw, at, size, MSG_NOSIGNAL);
        if (sent > 0) at += sent, size -= (size_t)sent;
        assert_true(sent > 0 || errno == EAGAIN);
        assert_true(now_ms() - begun < PATIENCE_MS);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

/* What comes, up to so many bytes; fewer only if the other end closes. */
static size_t get(int raw, void *to, size_t room) {
    size_t size = 0;
    for (uint64_t begun = now_ms(); size < room;) {
        ssize_t received = recv(raw, (char *)to + size, room - size, 0);
        if (received == 0 || (received < 0 && errno != EAGAIN)) break;
        if (received > 0) size += (size_t)received;
        if (now_ms() - begun > PATIENCE_MS) fail_msg("nothing came\n%s", said);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    return size;
}

static bool is_closed(int raw) {
    char byte;
    ssize_t received = recv(raw, &byte, 1, MSG_PEEK);
    return received == 0 || (received < 0 && errno != EAGAIN);
}

struct raw_hello {
    char magic[6];
    uint16_t version;
    uint64_t ensemble, from, to, incarnation;
    uint32_t verdict, checksum;
} __attribute__((packed));

static struct raw_hello hello(uint64_t from, uint64_t to) {
    return (struct raw_hello){{'C', 'V', 'P', 'E', 'E', 'R'}, 2, ENSEMBLE, from, to, 5, 0, 0};
}

static void seal(struct raw_hello *h) { h->checksum = crc32c(0, h, HELLO - 4); }

static int greet_as(struct raw_hello h, int32_t port, struct raw_hello *answer) {
    int raw = dial_raw(port);
    seal(&h);
    put(raw, &h, sizeof h);
    size_t size = get(raw, answer, sizeof *answer);
    if (size < sizeof *answer) *answer = (struct raw_hello){.verdict = UINT32_MAX};
    return raw;
}

/* A link of a server that is none. */
static int raw_link_of(uint16_t version, uint64_t from, const struct end *to) {
    struct raw_hello h = hello(from, to->id), answer;
    h.version = version;
    int raw = greet_as(h, to->port, &answer);
    assert_int_equal(answer.verdict, 0);
    assert_int_equal(answer.from, to->id);
    assert_int_equal(answer.to, from);
    return raw;
}

static int raw_link(uint64_t from, const struct end *to) { return raw_link_of(2, from, to); }

static void add_raw_frame(struct bytes *out, uint32_t type, const void *body, uint32_t size) {
    uint32_t header[3] = {size, type, 0};
    header[2] = crc32c(crc32c(0, header, 8), body, size);
    bytes_add(out, header, sizeof header);
    bytes_add(out, body, size);
}

static int listen_raw(int32_t *port, int backlog) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int raw = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(raw, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(raw, backlog), 0);
    assert_int_equal(getsockname(raw, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return raw;
}

static int accept_raw(int listener) {
    int raw = -1;
    WAIT((raw = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    return raw;
}

/* ---- Frames ---- */

static void frames_between(struct tls *one, struct tls *two) {
    struct end a = {.id = 1, .incarnation = 11, .tls = one};
    struct end b = {.id = 2, .incarnation = 22, .tls = two};
    static unsigned char body[LINK_FRAME_MAX];
    static const size_t sizes[] = {0, 1, 100, 16384, 65524, 65536, 200000, LINK_FRAME_MAX};
    start(&a), start(&b);
    assert_null(link_begin(a.links, 2, 0, LINK_URGENT));
    set(&a, &b), set(&b, &a);
    assert_null(link_begin(a.links, 2, 0, LINK_URGENT));
    WAIT(a.up && b.up && a.accepted && b.accepted);
    assert_int_equal(a.last_incarnation, 22);
    assert_int_equal(b.last_incarnation, 11);
    for (size_t i = 0; i < sizeof body; i++) body[i] = (unsigned char)(i * 31 >> 3);
    uint64_t sent = 0;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        send_frame(&a, 2, 1000 + i, body, sizes[i]);
        assert_int_equal(b.frames, i);
        links_flush(a.links);
        WAIT(b.frames == i + 1);
        assert_int_equal(b.last_from, 1);
        assert_int_equal(b.last_type, 1000 + i);
        assert_int_equal(b.last.used, sizes[i]);
        assert_memory_equal(b.last.at, body, sizes[i]);
        size_t fragments = sizes[i] ? (sizes[i] + LINK_FRAGMENT_MAX - 1) / LINK_FRAGMENT_MAX : 1;
        sent += fragments * HEADER + sizes[i];
    }
    send_frame(&b, 1, 7, "back", 4);
    links_flush(b.links);
    WAIT(a.frames == 1);
    assert_int_equal(a.last_from, 2);
    struct link_status ours = link_status(a.links, 2), theirs = link_status(b.links, 1);
    assert_true(ours.up && ours.incoming && ours.up_ms < PATIENCE_MS);
    assert_int_equal(ours.bytes_out, sent);
    assert_int_equal(ours.bytes_in, HEADER + 4);
    assert_int_equal(theirs.bytes_in, sent);
    assert_int_equal(ours.port, b.port);
    assert_string_equal(ours.address, "127.0.0.1");
    assert_int_equal(link_unsent(a.links, 2), 0);
    assert_int_equal(a.up + b.up + a.accepted + b.accepted, 4);
    stop(&a), stop(&b);
}

static void test_frames_plain(void **state) {
    (void)state;
    frames_between(NULL, NULL);
    assert_string_equal(said, "");
}

static void test_frames_certified(void **state) {
    (void)state;
    struct tls *tls = certified("member", "ours"), *other = certified("member", "both");
    frames_between(tls, other);
    assert_string_equal(said, "");
    run_for(20);
    tls_close(tls), tls_close(other);
}

static void test_frames_keyed(void **state) {
    (void)state;
    struct tls *tls = keyed("key"), *other = keyed("key-line");
    frames_between(tls, other);
    assert_string_equal(said, "");
    run_for(20);
    tls_close(tls), tls_close(other);
}

static uint64_t expected_number;

static void expect_number(struct end *end) {
    uint64_t number;
    assert_true(end->last.used >= sizeof number);
    memcpy(&number, end->last.at, sizeof number);
    assert_int_equal(number, expected_number);
    assert_int_equal(end->last.used, sizeof number + number % 50);
    expected_number++;
}

static void test_many_in_order(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    struct end a = {.id = 1}, b = {.id = 2, .then = expect_number}, c = {.id = 3};
    expected_number = 0;
    start(&a), start(&b), start(&c);
    set(&a, &b), set(&a, &c), set(&c, &b);
    WAIT(a.up == 2 && c.up == 1);
    for (uint64_t number = 0; number < COUNT; number++) {
        unsigned char body[64] = {0};
        memcpy(body, &number, sizeof number);
        send_frame(&a, 2, 1, body, sizeof number + number % 50);
        if (number % 1000 == 0) send_frame(&a, 3, 1, body, sizeof number);
        if (number % 777 == 0) links_flush(a.links), uv_run(&loop, UV_RUN_NOWAIT);
    }
    links_flush(a.links);
    WAIT(b.frames == COUNT && c.frames == COUNT / 1000);
    assert_int_equal(a.down[LINK_BROKEN], 0);
    stop(&a), stop(&b), stop(&c);
}

/* However a stream is cut into pieces, the frames are the same. */
static void test_frames_in_pieces(void **state) {
    (void)state;
    struct end b = {.id = 2, .then = expect_number};
    struct bytes all = {0};
    expected_number = 0;
    start(&b);
    int raw = raw_link(1, &b);
    for (uint64_t number = 0; number < 300; number++) {
        unsigned char body[64] = {0};
        memcpy(body, &number, sizeof number);
        add_raw_frame(&all, 1, body, (uint32_t)(sizeof number + number % 50));
    }
    for (size_t at = 0, piece = 1; at < all.used; at += piece, piece = 1 + at % 97) {
        if (piece > all.used - at) piece = all.used - at;
        put(raw, all.at + at, piece);
    }
    WAIT(b.frames == 300);
    close(raw);
    WAIT(b.gone == 1);
    bytes_close(&all);
    stop(&b);
}

/* ---- Who is let in ---- */

/* Both dial each other, and both fail; what each says. */
static void nobody_gets_through(struct end *a, struct end *b, const char *reason) {
    start(a), start(b);
    set(a, b), set(b, a);
    WAIT(a->down[LINK_REJECTED] >= 2 && b->down[LINK_REJECTED] >= 2);
    assert_int_equal(a->up + b->up + a->accepted + b->accepted, 0);
    if (!was_said(reason)) fail_msg("no '%s' in: %s", reason, said);
    stop(a), stop(b);
    run_for(20);
    tls_close(a->tls), tls_close(b->tls);
}

static void test_wrong_key(void **state) {
    (void)state;
    struct end a = {.id = 1, .tls = keyed("key")}, b = {.id = 2, .tls = keyed("other-key")};
    nobody_gets_through(&a, &b, " address=127.0.0.1 reason=\"the two servers have different keys;");
    assert_true(was_said("TLS refused a link") && was_said("no link to another server") &&
                was_said(" peer=1 host=127.0.0.1 port=") && !was_said("illegal parameter") &&
                !was_said("binder"));
}

static void test_wrong_authority(void **state) {
    (void)state;
    struct end a = {.id = 1, .tls = certified("member", "ours")};
    struct end b = {.id = 2, .tls = certified("stranger", "both")};
    nobody_gets_through(&a, &b, "unknown ca");
}

static void test_key_and_certificate(void **state) {
    (void)state;
    struct end a = {.id = 1, .tls = keyed("key")},
               b = {.id = 2, .tls = certified("member", "ours")};
    nobody_gets_through(&a, &b, "until it answers peer=2 ");
}

static void test_plain_and_key(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2, .tls = keyed("key")};
    nobody_gets_through(&a, &b, "only one of the two uses TLS");
}

/* OpenSSL's own client, with what a context says; true: the other end took it in. */
static bool openssl_gets_in(SSL_CTX *context, const struct end *to) {
    SSL *ssl = SSL_new(context);
    struct raw_hello h = hello(1, to->id), answer;
    int raw = dial_raw(to->port), result = -1;
    seal(&h);
    SSL_set_fd(ssl, raw);
    SSL_set_connect_state(ssl);
    bool written = false;
    for (uint64_t begun = now_ms(); now_ms() - begun < PATIENCE_MS;) {
        if (!written) written = SSL_write(ssl, &h, sizeof h) == sizeof h;
        result = SSL_read(ssl, &answer, sizeof answer);
        int error = SSL_get_error(ssl, result);
        if (result > 0 || (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)) break;
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    SSL_free(ssl);
    close(raw);
    return result > 0;
}

static void let_in(const struct end *to, int version, const char *member, bool expected) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    char file[64];
    SSL_CTX_set_max_proto_version(context, version);
    snprintf(file, sizeof file, "%s.pem", member ? member : "");
    if (member) assert_int_equal(SSL_CTX_use_certificate_chain_file(context, path_of(file)), 1);
    snprintf(file, sizeof file, "%s.key", member ? member : "");
    if (member) assert_int_equal(SSL_CTX_use_PrivateKey_file(context, path_of(file), 1), 1);
    assert_int_equal(openssl_gets_in(context, to), expected);
    SSL_CTX_free(context);
}

static void test_certificate_is_needed(void **state) {
    (void)state;
    struct end b = {.id = 2, .tls = certified("member", "ours")};
    start(&b);
    let_in(&b, TLS1_3_VERSION, NULL, false);
    let_in(&b, TLS1_2_VERSION, NULL, false);
    let_in(&b, TLS1_3_VERSION, "stranger", false);
    assert_int_equal(b.accepted, 0);
    let_in(&b, TLS1_3_VERSION, "member", true);
    let_in(&b, TLS1_2_VERSION, "member", true);
    let_in(&b, TLS1_1_VERSION, "member", false);
    assert_int_equal(b.accepted, 2);
    stop(&b);
    run_for(20);
    tls_close(b.tls);
}

static void test_key_is_needed(void **state) {
    (void)state;
    struct end b = {.id = 2, .tls = keyed("key")};
    start(&b);
    let_in(&b, TLS1_3_VERSION, NULL, false);
    let_in(&b, TLS1_3_VERSION, "member", false);
    let_in(&b, TLS1_2_VERSION, "member", false);
    assert_int_equal(b.accepted, 0);
    stop(&b);
    run_for(20);
    tls_close(b.tls);
}

static void expect_frame(struct end *from, struct end *to) {
    unsigned before = to->frames;
    send_frame(from, to->id, 7, "here", 4);
    links_flush(from->links);
    WAIT(to->frames == before + 1);
}

/* Links that are up stay so; those that begin use what was read last, and could be used. */
static void test_key_is_replaced(void **state) {
    (void)state;
    file_write(&place, "turned", "the first of two keys", 21);
    struct end a = {.id = 1, .tls = keyed("turned")}, b = {.id = 2, .tls = keyed("turned")};
    start(&a), start(&b);
    set(&a, &b), set(&b, &a);
    WAIT(a.up && b.up && a.accepted && b.accepted);
    file_write(&place, "turned", "too short", 9);
    assert_false(tls_reload(a.tls));
    assert_true(was_said("turned reason=\"it must hold 16 bytes or more"));
    file_write(&place, "turned", "the second of two keys", 22);
    assert_true(tls_reload(a.tls) && tls_reload(b.tls));
    expect_frame(&a, &b), expect_frame(&b, &a);
    assert_int_equal(a.down[LINK_BROKEN] + b.down[LINK_BROKEN], 0);
    struct end c = {.id = 3, .tls = keyed("turned")};
    start(&c);
    set(&c, &b);
    WAIT(c.up);
    file_write(&place, "turned", "too short", 9);
    assert_false(tls_reload(b.tls));
    links_redial(c.links);
    WAIT(c.up == 2);
    stop(&a), stop(&b), stop(&c);
    run_for(20);
    tls_close(a.tls), tls_close(b.tls), tls_close(c.tls);
}

static void copy(const char *from, const char *to) {
    char bytes[4096];
    FILE *file = fopen(path_of(from), "r");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    file_write(&place, to, bytes, size);
}

static void test_certificate_is_replaced(void **state) {
    (void)state;
    copy("ours", "turned-ca");
    struct end b = {.id = 2, .tls = certified("member", "turned-ca")};
    int64_t left = tls_expiry(b.tls) - time(NULL);
    assert_true(left > 0 && left <= 3600);
    start(&b);
    let_in(&b, TLS1_3_VERSION, "stranger", false);
    copy("both", "turned-ca");
    assert_true(tls_reload(b.tls));
    let_in(&b, TLS1_3_VERSION, "stranger", true);
    file_write(&place, "turned-ca", "nothing", 7);
    assert_false(tls_reload(b.tls));
    let_in(&b, TLS1_3_VERSION, "stranger", true);
    let_in(&b, TLS1_3_VERSION, "member", true);
    let_in(&b, TLS1_3_VERSION, NULL, false);
    stop(&b);
    run_for(20);
    tls_close(b.tls);
}

static void test_key_files(void **state) {
    (void)state;
    assert_null(tls_open_key(path_of("none")));
    assert_true(was_said("none reason=\"No such file"));
    assert_null(tls_open_key(path_of("short-key")));
    assert_true(was_said("short-key reason=\"it must hold 16 bytes or more"));
    assert_null(tls_open_key(path_of("seen-key")));
    assert_true(was_said("seen-key reason=\"it must be a file that only its owner"));
    assert_null(tls_open_key(place.path));
    assert_false(was_said("a key of"));
}

/* ---- Hellos ---- */

static void answered(struct raw_hello h, const struct end *to, uint32_t verdict) {
    struct raw_hello answer;
    int raw = greet_as(h, to->port, &answer);
    assert_int_equal(answer.verdict, verdict);
    if (verdict) WAIT(is_closed(raw));
    close(raw);
}

static bool expects_7(void *owner, uint64_t id, uint64_t ensemble, uint32_t directory) {
    (void)owner, (void)ensemble;
    return id != 1 || !directory || directory == 7;
}

/* From version 4 on the upper half of the incarnation is the id of the sender's data directory. */
static void test_data_directories(void **state) {
    (void)state;
    struct end a = {.id = 1, .incarnation = UINT64_C(8) << 32};
    struct end b = {.id = 2, .is_expected = expects_7};
    struct raw_hello h;
    start(&a), start(&b);
    h = hello(1, 2), h.version = 4, h.incarnation = UINT64_C(7) << 32 | 9, answered(h, &b, 0);
    h = hello(1, 2), h.version = 4, h.incarnation = UINT64_C(8) << 32 | 9, answered(h, &b, 6);
    h = hello(1, 2), h.version = 3, h.incarnation = UINT64_C(8) << 32 | 9, answered(h, &b, 0);
    assert_int_equal(b.accepted, 2);
    set(&b, &a); /* the dialer judges as well */
    WAIT(b.down[LINK_REJECTED]);
    assert_true(was_said("another data directory"));
    stop(&a), stop(&b);
}

static void test_hellos(void **state) {
    (void)state;
    struct end b = {.id = 2};
    struct raw_hello h;
    start(&b);
    h = hello(1, 2), h.version = 1, answered(h, &b, 1);
    h = hello(1, 2), h.ensemble++, answered(h, &b, 2);
    answered(hello(1, 3), &b, 3);
    answered(hello(2, 2), &b, 4);
    h = hello(1, 2), h.magic[5] = 'S', answered(h, &b, UINT32_MAX);
    assert_int_equal(b.accepted, 0);
    answered(hello(1, 2), &b, 0);
    assert_int_equal(b.accepted, 1);
    assert_int_equal(b.last_incarnation, 5);
    for (size_t i = 0; i < HELLO; i++) { /* a bit that fell over */
        int raw = dial_raw(b.port);
        h = hello(1, 2), seal(&h);
        ((char *)&h)[i] ^= 4;
        put(raw, &h, sizeof h);
        WAIT(is_closed(raw));
        close(raw);
    }
    assert_int_equal(b.accepted, 1);
    stop(&b);
}

/* Who does not know yet of which ensemble it is has links with one at a time. */
static void test_one_ensemble(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2};
    struct links_config config = config_of(&b);
    struct raw_hello h, answer;
    config.ensemble = 0;
    start(&a), start_as(&b, &config);
    h = hello(1, 2), h.ensemble = 0, answered(h, &b, 0);
    h = hello(1, 2), h.ensemble = 7;
    int raw = greet_as(h, b.port, &answer);
    assert_int_equal(answer.verdict, 0);
    h = hello(3, 2), h.ensemble = 8, answered(h, &b, 2);
    h = hello(3, 2), h.ensemble = 0, answered(h, &b, 0);
    set(&b, &a); /* the dialer judges as well */
    WAIT(b.down[LINK_REJECTED]);
    close(raw); /* nobody is left of the other one */
    WAIT(b.up);
    h = hello(3, 2), h.ensemble = 7, answered(h, &b, 2);
    links_set_ensemble(b.links, ENSEMBLE);
    links_drop(b.links, 1);
    h = hello(3, 2), h.ensemble = 7, answered(h, &b, 2);
    stop(&a), stop(&b);
}

static void test_other_servers(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2}, c = {.id = 3};
    struct links_config config = config_of(&c);
    config.ensemble++;
    start(&a), start(&b), start_as(&c, &config);
    assert_null(links_set(a.links, 4, "127.0.0.1", b.port));
    WAIT(a.down[LINK_REJECTED] >= 1);
    assert_true(was_said("until it answers peer=4 ") && was_said("has another id"));
    links_drop(a.links, 4);
    a.down[LINK_REJECTED] = 0;
    set(&a, &c);
    WAIT(a.down[LINK_REJECTED] >= 5);
    char *first = strstr(said, "different ensembles");
    assert_non_null(first);
    first = strstr(first, " peer=3 ");
    assert_true(!first || !strstr(first + 1, " peer=3 ")); /* once is enough */
    links_drop(a.links, 3);
    a.down[LINK_REJECTED] = 0;
    assert_null(links_set(a.links, 5, "127.0.0.1", a.port)); /* itself */
    WAIT(a.down[LINK_REJECTED] >= 1);
    assert_int_equal(a.up + a.accepted + b.accepted + c.accepted, 0);
    stop(&a), stop(&b), stop(&c);
}

/* Answers a dialer with a hello, and more, and says what it makes of it. */
static void impostor(struct raw_hello answer, size_t more, bool good) {
    struct end a = {.id = 1};
    char extra[8] = {0};
    int32_t port;
    int listener = listen_raw(&port, 8);
    start(&a);
    assert_null(links_set(a.links, 2, "127.0.0.1", port));
    int raw = accept_raw(listener);
    struct raw_hello theirs;
    assert_int_equal(get(raw, &theirs, sizeof theirs), sizeof theirs);
    assert_memory_equal(theirs.magic, "CVPEER", 6);
    assert_true(theirs.from == 1 && theirs.to == 2 && theirs.ensemble == ENSEMBLE);
    seal(&answer);
    put(raw, &answer, sizeof answer);
    if (more) put(raw, extra, more);
    WAIT(a.up || a.down[LINK_REJECTED]);
    if (more) WAIT(a.down[LINK_BROKEN] || a.down[LINK_REJECTED]);
    assert_int_equal(a.up, good);
    close(raw), close(listener);
    stop(&a);
}

static void test_impostors(void **state) {
    (void)state;
    struct raw_hello h = hello(2, 1);
    impostor(h, 0, true);
    impostor(hello(3, 1), 0, false);
    impostor(hello(2, 4), 0, false);
    h = hello(2, 1), h.ensemble++, impostor(h, 0, false);
    h = hello(2, 1), h.version = 3, impostor(h, 0, true);
    h = hello(2, 1), h.version = LINK_VERSION_NEWEST + 1, impostor(h, 0, false);
    h = hello(2, 1), h.version = 1, impostor(h, 0, false);
    h = hello(2, 1), h.verdict = 99, impostor(h, 0, false);
    h = hello(2, 1), h.magic[0] = 'X', impostor(h, 0, false);
    impostor(hello(2, 1), 8, true); /* and broken as soon as it says more */
}

/* ---- Versions ---- */

static void answered_version(uint16_t offer, const struct end *to, uint32_t verdict,
                             uint16_t version) {
    struct raw_hello h = hello(1, to->id), answer;
    h.version = offer;
    close(greet_as(h, to->port, &answer));
    assert_int_equal(answer.verdict, verdict);
    assert_int_equal(answer.version, version);
}

static void test_offers(void **state) {
    (void)state;
    struct end b = {.id = 2}, c = {.id = 3, .oldest = 4, .newest = 6};
    start(&b), start(&c);
    answered_version(1, &b, 1, LINK_VERSION_OLDEST);
    answered_version(2, &b, 0, 2);
    answered_version(3, &b, 0, 3);
    answered_version(UINT16_MAX, &b, 0, LINK_VERSION_NEWEST);
    answered_version(3, &c, 1, 4);
    answered_version(4, &c, 0, 4);
    answered_version(5, &c, 0, 5);
    answered_version(7, &c, 0, 6);
    stop(&b), stop(&c);
}

/* Sends a frame over the link from one to the other, which has that version. */
static void frame_of_version(struct end *from, struct end *to, uint16_t version) {
    unsigned frames = to->frames;
    assert_int_equal(link_version(from->links, to->id), version);
    send_frame(from, to->id, 1, "frame", 5);
    links_flush(from->links);
    WAIT(to->frames == frames + 1);
    assert_int_equal(to->last_version, version);
}

/* Both dial each other: each link has the newest version that both have. */
static void versions_between(struct end a, struct end b, uint16_t version) {
    a.id = 1, b.id = 2;
    start(&a), start(&b);
    set(&a, &b), set(&b, &a);
    assert_int_equal(link_version(a.links, 2), 0);
    assert_int_equal(link_version(a.links, 9), 0);
    WAIT(a.up && b.up);
    frame_of_version(&a, &b, version);
    frame_of_version(&b, &a, version);
    assert_int_equal(a.up + b.up, 2);
    assert_string_equal(said, "");
    stop(&a), stop(&b);
}

static void test_versions(void **state) {
    (void)state;
    struct end two = {.newest = 2}, three = {.newest = 3}, only_three = {.oldest = 3, .newest = 3};
    struct end later = {.oldest = 3, .newest = 5}, now = {0};
    versions_between(two, two, 2);
    versions_between(two, three, 2);
    versions_between(three, three, 3);
    versions_between(three, only_three, 3);
    versions_between(three, later, 3);
    versions_between(now, now, LINK_VERSION_NEWEST);
    versions_between(two, now, 2);
}

/* What a server does that knows no version but its own; returns the connection. */
static int answer_as_2(int listener, uint16_t offer) {
    struct raw_hello theirs, answer = hello(2, 1);
    int raw = accept_raw(listener);
    assert_int_equal(get(raw, &theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(theirs.version, offer);
    answer.verdict = offer != 2;
    seal(&answer);
    put(raw, &answer, sizeof answer);
    if (offer == 2) return raw;
    close(raw);
    return -1;
}

static void test_version_2_refuses(void **state) {
    (void)state;
    struct end a = {.id = 1};
    struct raw_hello theirs;
    int32_t port;
    int listener = listen_raw(&port, 8);
    start(&a);
    assert_null(links_set(a.links, 2, "127.0.0.1", port));
    answer_as_2(listener, LINK_VERSION_NEWEST);
    int raw = accept_raw(listener); /* dialed again without a failed attempt */
    assert_int_equal(a.down[LINK_REJECTED] + a.up, 0);
    assert_string_equal(said, "");
    close(raw); /* it falls before it answers */
    WAIT(a.down[LINK_REJECTED] == 1);
    answer_as_2(listener, LINK_VERSION_NEWEST); /* it might have been upgraded */
    raw = answer_as_2(listener, 2);
    WAIT(a.up == 1);
    assert_int_equal(link_version(a.links, 2), 2);
    close(raw);
    WAIT(a.down[LINK_BROKEN] == 1);
    assert_int_equal(link_version(a.links, 2), 0);
    answer_as_2(listener, LINK_VERSION_NEWEST); /* it might have been upgraded */
    raw = answer_as_2(listener, 2);
    WAIT(a.up == 2);
    assert_int_equal(a.down[LINK_REJECTED], 1);
    close(raw);
    WAIT(a.down[LINK_BROKEN] == 2);
    answer_as_2(listener, LINK_VERSION_NEWEST);
    close(accept_raw(listener));
    WAIT(a.down[LINK_REJECTED] == 2);
    int32_t other_port; /* another address may be another server's: nothing is remembered of it */
    int other = listen_raw(&other_port, 8);
    assert_null(links_set(a.links, 2, "127.0.0.1", other_port));
    raw = accept_raw(other);
    assert_int_equal(get(raw, &theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(theirs.version, LINK_VERSION_NEWEST);
    close(raw), close(other), close(listener);
    stop(&a);
}

static unsigned times_said(const char *text) {
    unsigned times = 0;
    for (const char *at = said; (at = strstr(at, text)); at++) times++;
    return times;
}

static const char no_version[] = "no version of the protocol in common";

/* One that refuses version 2 as well, with the version that it was offered, or an older one. */
static void test_version_refused_again(void **state) {
    (void)state;
    enum { ATTEMPTS = 5 };
    struct end a = {.id = 1};
    struct raw_hello theirs, answer = hello(2, 1);
    int32_t port;
    int listener = listen_raw(&port, 8);
    answer.verdict = 1;
    start(&a);
    assert_null(links_set(a.links, 2, "127.0.0.1", port));
    uint64_t begun = now_ms();
    for (unsigned i = 0; i < 2 * ATTEMPTS; i++) {
        int raw = accept_raw(listener);
        assert_int_equal(a.down[LINK_REJECTED], i / 2);
        assert_int_equal(get(raw, &theirs, sizeof theirs), sizeof theirs);
        assert_int_equal(theirs.version, i % 2 ? 2 : LINK_VERSION_NEWEST);
        answer.version = i == 1 ? 1 : i == 3 ? LINK_VERSION_NEWEST : 2;
        seal(&answer);
        put(raw, &answer, sizeof answer);
        WAIT(is_closed(raw));
        close(raw);
    }
    WAIT(a.down[LINK_REJECTED] == ATTEMPTS);
    assert_true(now_ms() - begun >= (20 + 40 + 80 + 160) / 2 - 20);
    assert_int_equal(times_said("until it answers peer=2 "), 1);
    assert_true(was_said(no_version));
    close(listener);
    stop(&a);
}

static void test_versions_do_not_meet(void **state) {
    (void)state;
    enum { ATTEMPTS = 5 };
    struct end a = {.id = 1, .newest = 2}, b = {.id = 2, .oldest = 3};
    start(&a), start(&b);
    uint64_t begun = now_ms();
    set(&a, &b), set(&b, &a);
    WAIT(a.down[LINK_REJECTED] >= ATTEMPTS && b.down[LINK_REJECTED] >= ATTEMPTS);
    assert_true(now_ms() - begun >= (20 + 40 + 80 + 160) / 2 - 20); /* retried ever more slowly */
    assert_int_equal(a.up + b.up + a.frames + b.frames + b.accepted, 0);
    assert_int_equal(times_said("until it answers peer=1 "), 1);
    assert_int_equal(times_said("until it answers peer=2 "), 1);
    assert_int_equal(times_said("a link was refused"), 1);
    assert_int_equal(times_said("or is set up otherwise peer="), 1);
    assert_int_equal(times_said(no_version), 3);
    stop(&a), stop(&b);
}

static void test_upgrade(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2, .newest = 2};
    start(&a), start(&b);
    set(&a, &b), set(&b, &a);
    WAIT(a.up == 1 && b.up == 1);
    frame_of_version(&a, &b, 2);
    frame_of_version(&b, &a, 2);
    stop(&b);
    WAIT(a.down[LINK_BROKEN] == 1 && a.gone == 1);
    assert_int_equal(link_version(a.links, 2), 0);
    b.newest = 3;
    start(&b);
    set(&b, &a);
    WAIT(a.up == 2 && b.up == 2);
    frame_of_version(&a, &b, 3);
    frame_of_version(&b, &a, 3);
    assert_string_equal(said, "");
    stop(&a), stop(&b);
}

/* ---- Unauthenticated connections ---- */

/* Closed although it has not been silent for as long as it may. */
static bool is_closed_early(int raw, uint64_t begun) {
    return is_closed(raw) && now_ms() - begun < 290;
}

static void test_silence_ends(void **state) {
    (void)state;
    struct end b = {.id = 2};
    struct links_config config = config_of(&b);
    config.handshake_ms = 300;
    start_as(&b, &config);
    struct raw_hello h = hello(1, 2), answer;
    seal(&h);
    int link = -1; /* a busy machine may take too long over its hello */
    WAIT((close(link), link = greet_as(hello(3, 2), b.port, &answer), !answer.verdict));
    uint64_t begun = now_ms();
    int half = dial_raw(b.port), silent = dial_raw(b.port);
    put(half, &h, sizeof h / 2);
    run_for(100);
    uint64_t begun_later = now_ms();
    int later = dial_raw(b.port);
    assert_false(is_closed_early(half, begun) || is_closed_early(silent, begun));
    WAIT(is_closed(half) && is_closed(silent));
    assert_true(now_ms() - begun >= 290);
    assert_false(is_closed_early(later, begun_later));
    WAIT(is_closed(later));
    assert_true(was_said("no hello was received in time"));
    assert_false(is_closed(link)); /* it may be as silent as it likes */
    close(half), close(silent), close(later), close(link);
    stop(&b);
}

static void test_unauthenticated_are_few(void **state) {
    (void)state;
    enum { MORE = 3, ALL = LINK_UNAUTHENTICATED_MAX + MORE };
    struct end b = {.id = 2};
    int raw[ALL];
    start(&b);
    int known = raw_link(1, &b);
    for (int i = 0; i < ALL; i++) {
        raw[i] = dial_raw(b.port);
        run_for(3); /* one after the other */
    }
    WAIT(is_closed(raw[MORE - 1]));
    run_for(20);
    for (int i = 0; i < ALL; i++) assert_int_equal(is_closed(raw[i]), i < MORE);
    assert_false(is_closed(known));
    struct raw_hello h = hello(3, 2), answer;
    seal(&h);
    put(raw[MORE], &h, sizeof h);
    assert_int_equal(get(raw[MORE], &answer, sizeof answer), sizeof answer);
    assert_int_equal(b.accepted, 2);
    for (int i = 0; i < ALL; i++) close(raw[i]);
    close(known);
    WAIT(b.gone == 2);
    stop(&b);
}

static void test_known_are_bounded(void **state) {
    (void)state;
    struct end b = {.id = 1000};
    int raw[LINK_INCOMING_MAX];
    start(&b);
    for (int i = 0; i < LINK_INCOMING_MAX; i++) raw[i] = raw_link(1 + (uint64_t)i, &b);
    answered(hello(500, 1000), &b, 5);
    int again = raw_link(1, &b); /* takes the place of its own */
    WAIT(is_closed(raw[0]));
    assert_int_equal(b.accepted, LINK_INCOMING_MAX + 1);
    for (int i = 0; i < LINK_INCOMING_MAX; i++) close(raw[i]);
    close(again);
    stop(&b);
}

static void test_garbage(void **state) {
    (void)state;
    struct end b = {.id = 2};
    unsigned char noise[2000];
    start(&b);
    for (size_t size = 1; size < sizeof noise; size += 1 + size / 2) {
        for (size_t i = 0; i < sizeof noise; i++) noise[i] = (unsigned char)rand();
        int raw = dial_raw(b.port);
        (void)!send(raw, noise, size, MSG_NOSIGNAL);
        shutdown(raw, SHUT_WR);
        WAIT(is_closed(raw));
        close(raw);
    }
    struct raw_hello h = hello(1, 2);
    unsigned char both[HELLO + 1] = {0};
    seal(&h);
    memcpy(both, &h, sizeof h);
    int hasty = dial_raw(b.port); /* has not waited for the answer */
    put(hasty, both, sizeof both);
    WAIT(is_closed(hasty));
    close(hasty);
    assert_int_equal(b.accepted + b.frames, 0);
    stop(&b);
}

/* A link, some bytes, and the end of it, for that reason; so many frames are taken before. */
static void ends_link(uint16_t version, const void *bytes, size_t size, const char *reason,
                      unsigned frames) {
    struct end b = {.id = 2};
    start(&b);
    int raw = raw_link_of(version, 1, &b);
    (void)!send(raw, bytes, size, MSG_NOSIGNAL);
    said[0] = 0;
    WAIT(is_closed(raw));
    assert_int_equal(b.gone, 1);
    assert_int_equal(b.frames, frames);
    if (!was_said(reason)) fail_msg("no '%s' in: %s", reason, said);
    close(raw);
    stop(&b);
}

static void test_bad_frames(void **state) {
    (void)state;
    uint32_t giant[3] = {htole32(LINK_FRAME_MAX + 1), 1, 0};
    struct bytes frames = {0};
    ends_link(2, giant, sizeof giant, "a frame is too large", 0);
    giant[0] = UINT32_MAX;
    ends_link(2, giant, sizeof giant, "a frame is too large", 0);
    giant[0] = htole32(LINK_UNCUT_MAX + 1);
    ends_link(LINK_VERSION_LANES, giant, sizeof giant, "a frame is too large", 0);
    for (unsigned i = 0; i < 3; i++) add_raw_frame(&frames, 1, "some body", 9);
    frames.at[frames.used / 3 + HEADER + 4] ^= 1;
    ends_link(2, frames.at, frames.used, "a frame has a wrong checksum", 1);
    frames.at[frames.used / 3 + HEADER + 4] ^= 1;
    frames.at[5] ^= 1; /* the type */
    ends_link(2, frames.at, frames.used, "a frame has a wrong checksum", 0);
    bytes_close(&frames);
}

/* A frame whose length was damaged would swallow all frames after it.  One that is only late may
 * come at any time. */
static void length_is_damaged(uint16_t version, uint32_t frame_ms, bool ends) {
    struct end b = {.id = 2};
    struct links_config config = config_of(&b);
    struct bytes frame = {0}, damaged = {0};
    config.frame_ms = frame_ms;
    said[0] = 0;
    start_as(&b, &config);
    add_raw_frame(&frame, 1, "some body", 9);
    add_raw_frame(&damaged, 1, "some body", 9);
    damaged.at[1] ^= 0x10; /* 4096 bytes more */
    int late = raw_link_of(version, 1, &b), raw = raw_link_of(version, 3, &b);
    put(late, frame.at, frame.used - 1);
    put(raw, damaged.at, damaged.used);
    run_for(100);
    put(raw, frame.at, frame.used);
    run_for(20);
    if (ends) WAIT(is_closed(raw));
    assert_int_equal(is_closed(raw), ends);
    assert_int_equal(was_said("a frame was not complete in time"), ends);
    assert_int_equal(b.frames, 0);
    put(late, frame.at + frame.used - 1, 1);
    WAIT(b.frames == 1);
    assert_false(is_closed(late));
    close(raw), close(late);
    bytes_close(&frame), bytes_close(&damaged);
    stop(&b);
}

static void test_damaged_length(void **state) {
    (void)state;
    length_is_damaged(4, 60000, false);
    length_is_damaged(4, 50, true);
    length_is_damaged(3, 50, false); /* whose frames may be large, and take long */
}

/* ---- Ends and beginnings ---- */

/* It is dialed where it says that it is, while it is not where it should be; and the link stays
 * when that is known everywhere. */
static void test_found_elsewhere(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2}, gone = {.id = 3};
    start(&a), start(&b), start(&gone);
    stop(&gone);
    run_for(20);
    assert_null(links_set(a.links, 2, "127.0.0.1", gone.port));
    WAIT(a.down[LINK_REFUSED] >= 2);
    links_learn(a.links, 2, "127.0.0.1", b.port);
    links_learn(a.links, 9, "127.0.0.1", b.port); /* nobody that is known */
    WAIT(a.up == 1 && b.accepted == 1);
    assert_int_equal(link_status(a.links, 2).port, b.port);
    assert_null(links_set(a.links, 2, "127.0.0.1", gone.port));
    assert_null(links_set(a.links, 2, "127.0.0.2", gone.port)); /* as out of date */
    set(&a, &b);
    run_for(50);
    assert_int_equal(a.up, 1);
    assert_int_equal(a.down[LINK_BROKEN] + b.gone, 0);
    assert_int_equal(link_status(a.links, 2).port, b.port);
    links_learn(a.links, 2, NULL, 0);
    links_learn(a.links, 2, "127.0.0.1", gone.port);
    memset(a.down, 0, sizeof a.down);
    stop(&b);
    WAIT(a.down[LINK_REFUSED] >= 1); /* by both */
    start(&b);
    WAIT(a.up == 2);
    links_learn(a.links, 2, "127.0.0.1", gone.port);
    links_redial(a.links);
    WAIT(a.up == 3);
    stop(&a), stop(&b);
    run_for(20);
}

static void test_down_and_up(void **state) {
    (void)state;
    char line[256];
    struct end a = {.id = 1}, b = {.id = 2};
    start(&a), start(&b);
    stop(&b);
    run_for(20);
    set(&a, &b);
    WAIT(a.down[LINK_REFUSED] >= 6); /* by now it waits for longest */
    assert_string_equal(said, "");   /* it may just be starting */
    WAIT(a.down[LINK_REFUSED] >= 10);
    snprintf(line, sizeof line,
             "no link to another server; it is dialed again until it answers peer=2 host=127.0.0.1 "
             "port=%d reason=\"connection refused: no server listens there; start it, or correct "
             "its address\"\n",
             b.port);
    assert_string_equal(said, line); /* once */
    assert_non_null(strstr(link_status(a.links, 2).problem, "connection refused"));
    assert_int_equal(a.down[LINK_SILENT] + a.down[LINK_REJECTED] + a.down[LINK_BROKEN], 0);
    start(&b);
    WAIT(a.up == 1 && b.accepted == 1);
    assert_null(link_status(a.links, 2).problem);
    run_for(LINK_STEADY_MS + 50);
    memset(a.down, 0, sizeof a.down);
    unsigned ended = ticks;
    stop(&b);
    WAIT(a.down[LINK_REFUSED] >= 1);
    assert_int_equal(a.down[LINK_BROKEN], 1);
    assert_true(a.down_tick[LINK_BROKEN] - ended < 200 / TICK_MS);
    /* Not after what it had come to wait. */
    assert_true(a.down_tick[LINK_REFUSED] - ended < 200 / TICK_MS);
    assert_null(link_begin(a.links, 2, 1, LINK_URGENT));
    assert_int_equal(link_unsent(a.links, 2), 0);
    assert_false(link_status(a.links, 2).up);
    start(&b);
    WAIT(a.up == 2 && b.accepted == 2);
    assert_int_equal(a.down[LINK_BROKEN], 1);
    stop(&a);
    WAIT(b.gone == 1);
    stop(&b);
}

/* Breaks seven links, each as soon as it is up; for how long one was up at most. */
static uint64_t break_at_once(uint64_t *all_ms) {
    struct end a = {.id = 1};
    int32_t port;
    int listener = listen_raw(&port, 8);
    struct raw_hello answer = hello(2, 1), theirs;
    uint64_t longest = 0;
    seal(&answer);
    start(&a);
    uint64_t begun = now_ms();
    assert_null(links_set(a.links, 2, "127.0.0.1", port));
    for (unsigned i = 0; i < 7; i++) {
        int raw = accept_raw(listener);
        get(raw, &theirs, sizeof theirs);
        uint64_t answered_at = now_ms();
        put(raw, &answer, sizeof answer);
        WAIT(a.up == i + 1);
        close(raw);
        WAIT(a.down[LINK_BROKEN] == i + 1);
        if (now_ms() - answered_at > longest) longest = now_ms() - answered_at;
    }
    *all_ms = now_ms() - begun;
    close(listener);
    stop(&a);
    return longest;
}

/* One that breaks at once is not dialed without end. */
static void test_no_busy_dialing(void **state) {
    (void)state;
    uint64_t all_ms;
    /* One that a busy machine has kept for so long may be dialed at once, as a steady one. */
    WAIT(break_at_once(&all_ms) < LINK_STEADY_MS - 20);
    assert_true(all_ms >= (20 + 40 + 80 + 160 + 320 + 500) / 2 - 20);
}

/* Who listens no more, but has a connection in its queue, closes it: that says nothing of keys. */
static void test_an_end_is_no_warning(void **state) {
    (void)state;
    struct end a = {.id = 1};
    int32_t port;
    int listener = listen_raw(&port, 8);
    start(&a);
    assert_null(links_set(a.links, 2, "127.0.0.1", port));
    for (unsigned i = 1; i <= 12; i++) {
        close(accept_raw(listener));
        WAIT(a.down[LINK_REJECTED] == i);
        if (i < 8) assert_string_equal(said, "");
    }
    assert_true(was_said("check that both use the same kind of authentication"));
    close(listener);
    stop(&a);
}

static void test_silent_peers(void **state) {
    (void)state;
    struct end a = {.id = 1};
    struct links_config config = config_of(&a);
    int32_t port, full_port;
    int listener = listen_raw(&port, 8), full = listen_raw(&full_port, 0), waiting[4];
    config.handshake_ms = 200;
    start_as(&a, &config);
    uint64_t begun = now_ms();
    assert_null(links_set(a.links, 2, "127.0.0.1", port));
    int raw = accept_raw(listener);
    WAIT(a.down[LINK_SILENT] == 1);
    assert_true(now_ms() - begun >= 150);
    assert_true(was_said(" peer=2 host=127.0.0.1 ") && was_said(" reason=\"no answer in time;"));
    links_drop(a.links, 2);
    for (int i = 0; i < 4; i++) { /* whose calls nobody takes */
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)full_port)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(waiting[i], (struct sockaddr *)&address, sizeof address);
    }
    memset(a.down, 0, sizeof a.down);
    begun = now_ms();
    uv_update_time(&loop); /* which counts from when it has looked at the clock last */
    assert_null(links_set(a.links, 3, "127.0.0.1", full_port));
    WAIT(a.down[LINK_SILENT] == 1);
    assert_true(now_ms() - begun >= LINK_CONNECT_MS - 20);
    assert_int_equal(a.down[LINK_REFUSED] + a.down[LINK_REJECTED] + a.up, 0);
    for (int i = 0; i < 4; i++) close(waiting[i]);
    close(raw), close(listener), close(full);
    stop(&a);
}

static void test_replaced(void **state) {
    (void)state;
    struct end b = {.id = 2};
    struct bytes frame = {0};
    start(&b);
    add_raw_frame(&frame, 9, "whole", 5);
    int old = raw_link(1, &b), other = raw_link(3, &b);
    put(old, frame.at, frame.used - 1);
    run_for(20);
    struct raw_hello h = hello(1, 2), answer;
    h.incarnation = 6;
    int new = greet_as(h, b.port, &answer);
    assert_int_equal(answer.verdict, 0);
    WAIT(is_closed(old));
    assert_int_equal(b.accepted, 3);
    assert_int_equal(b.gone, 1);
    assert_int_equal(b.last_incarnation, 6);
    put(new, frame.at, frame.used);
    WAIT(b.frames == 1);
    assert_int_equal(b.last.used, 5);
    assert_false(is_closed(new) || is_closed(other));
    assert_int_equal(link_status(b.links, 1).bytes_in, frame.used);
    close(old), close(new), close(other);
    WAIT(b.gone == 3);
    bytes_close(&frame);
    stop(&b);
}

static int greet_twice(uint64_t incarnation, const struct end *to, uint32_t verdict) {
    struct raw_hello h = hello(1, 2), answer;
    h.incarnation = incarnation;
    int raw = greet_as(h, to->port, &answer);
    assert_int_equal(answer.verdict, verdict);
    return raw;
}

/* A server that is started again is welcome at once.  If the process before comes back, both run:
 * then the elder stays, and the other one has its place when that has ended. */
static void test_two_of_one_id(void **state) {
    (void)state;
    struct end b = {.id = 2};
    int32_t port;
    int silent = listen_raw(&port, 8);
    start(&b);
    assert_null(links_set(b.links, 1, "127.0.0.1", port));
    int elder = greet_twice(6, &b, 0), other = greet_twice(7, &b, 0), raw;
    WAIT(is_closed(elder));
    close(elder);
    elder = greet_twice(6, &b, 0);
    WAIT(is_closed(other));
    close(other);
    for (int i = 0; i < 3; i++) close(greet_twice(7, &b, 7));
    assert_true(was_said("two processes run as that server"));
    assert_non_null(strstr(link_status(b.links, 1).problem, "two processes run"));
    raw = greet_twice(6, &b, 0); /* once more, with another link */
    WAIT(is_closed(elder));
    close(elder);
    close(greet_twice(7, &b, 7));
    assert_int_equal(b.last_incarnation, 6);
    unsigned gone = b.gone;
    close(raw);
    WAIT(b.gone > gone);
    other = greet_twice(7, &b, 0);
    elder = greet_twice(8, &b, 0); /* started again, and again */
    raw = greet_twice(9, &b, 0);
    close(other), close(elder), close(raw), close(silent);
    stop(&b);
}

static void test_peer_does_not_read(void **state) {
    (void)state;
    enum { PIECE = 100000, MOST = 32 << 20 };
    static unsigned char body[PIECE], sink[1 << 20], large[LINK_FRAME_MAX];
    struct end a = {.id = 1};
    int32_t port;
    int listener = listen_raw(&port, 8);
    struct raw_hello answer = hello(2, 1), theirs;
    start(&a);
    assert_null(links_set(a.links, 2, "127.0.0.1", port));
    int raw = accept_raw(listener);
    assert_int_equal(get(raw, &theirs, sizeof theirs), sizeof theirs);
    seal(&answer);
    put(raw, &answer, sizeof answer);
    WAIT(a.up);
    size_t sent = 0, got = 0;
    while (link_unsent(a.links, 2) < MOST / 4 && sent < MOST) {
        send_frame(&a, 2, 1, body, PIECE);
        sent += HEADER + PIECE;
        links_flush(a.links);
        run_for(1);
    }
    assert_true(link_unsent(a.links, 2) >= MOST / 4);
    assert_true(link_unsent(a.links, 2) < sent);
    assert_int_equal(a.drained, 0);
    for (uint64_t begun = now_ms(); got < sent;) {
        ssize_t received = recv(raw, sink, sizeof sink, 0);
        if (received > 0) got += (size_t)received;
        assert_true(received != 0 && now_ms() - begun < PATIENCE_MS);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    WAIT(a.drained == 1);
    assert_int_equal(link_unsent(a.links, 2), 0);
    assert_int_equal(got, sent);
    /* One that goes away in between is noticed, and what it had not taken is forgotten. */
    send_frame(&a, 2, 1, large, sizeof large);
    links_flush(a.links);
    assert_true(link_unsent(a.links, 2) > 0);
    close(raw);
    WAIT(a.down[LINK_BROKEN] == 1);
    assert_int_equal(link_unsent(a.links, 2), 0);
    close(listener);
    stop(&a);
}

/* Frames are written to a link that has broken, which nobody knows yet. */
static void test_flush_to_nobody(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2};
    start(&a), start(&b);
    set(&a, &b);
    WAIT(a.up == 1 && b.accepted == 1);
    int sockets = 0;
    for (int i = 0; i < 256; i++) { /* as a reset would: our end can be neither read nor written */
        struct sockaddr_in address = {0};
        socklen_t size = sizeof address;
        if (getpeername(i, (struct sockaddr *)&address, &size) || ntohs(address.sin_port) != b.port)
            continue;
        unsigned timeout_ms = 0;
        int at_once = 0;
        size = sizeof timeout_ms;
        getsockopt(i, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &size);
        getsockopt(i, IPPROTO_TCP, TCP_NODELAY, &at_once, &size);
        assert_true(timeout_ms == 5000 && at_once);
        shutdown(i, SHUT_RDWR);
        sockets++;
    }
    assert_int_equal(sockets, 1);
    send_frame(&a, 2, 1, "lost", 4);
    links_flush(a.links);
    assert_int_equal(a.down[LINK_BROKEN], 0); /* no call back before it returns */
    assert_null(link_begin(a.links, 2, 1, LINK_URGENT));
    WAIT(a.down[LINK_BROKEN] == 1);
    WAIT(a.up == 2);
    assert_int_equal(b.frames, 0);
    stop(&a), stop(&b);
}

/* ---- Changes ---- */

static void test_moved_and_dropped(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2}, c = {.id = 2};
    start(&a), start(&b), start(&c);
    set(&a, &b);
    WAIT(a.up == 1 && b.accepted == 1);
    set(&a, &b); /* nothing new */
    run_for(30);
    assert_int_equal(a.up, 1);
    set(&a, &c);
    assert_null(link_begin(a.links, 2, 1, LINK_URGENT));
    WAIT(a.up == 2 && b.gone == 1 && c.accepted == 1);
    send_frame(&a, 2, 1, "there", 5);
    links_flush(a.links);
    WAIT(c.frames == 1);
    assert_int_equal(b.frames, 0);
    set(&c, &a);
    WAIT(a.accepted == 1);
    links_drop(a.links, 2);
    assert_null(link_begin(a.links, 2, 1, LINK_URGENT));
    assert_false(link_status(a.links, 2).up || link_status(a.links, 2).incoming);
    assert_null(link_status(a.links, 2).host);
    WAIT(c.gone == 1 && c.down[LINK_BROKEN] == 1);
    links_drop(a.links, 2); /* nobody */
    run_for(50);
    assert_int_equal(a.up, 2);
    assert_int_equal(a.down[LINK_BROKEN] + a.gone, 0); /* it knows what it has done */
    stop(&a), stop(&b), stop(&c);
}

static void close_links(struct end *end) {
    links_close(end->links);
    end->then = NULL;
}

static void drop_two(struct end *end) {
    links_drop(end->links, 2);
    end->then = NULL;
}

/* Whoever is called may do anything. */
static void test_changes_from_within(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2, .then = close_links};
    start(&a), start(&b);
    set(&a, &b), set(&b, &a);
    WAIT(a.up == 1 && b.up == 1);
    for (int i = 0; i < 10; i++) send_frame(&a, 2, 1, "end", 3);
    links_flush(a.links);
    a.then = drop_two;
    WAIT(a.down[LINK_BROKEN] == 1);
    assert_int_equal(b.frames, 1);
    assert_int_equal(b.down[LINK_BROKEN] + b.gone, 0);
    run_for(50);
    assert_int_equal(a.down[LINK_REFUSED], 0); /* dropped: not dialed again */
    bytes_close(&b.last);
    stop(&a);
}

/* Who comes again and again is not worth a line each time; another reason is. */
static void test_said_once(void **state) {
    (void)state;
#define REFUSED                                                                                    \
    "a link was refused; its other end is no server of this ensemble, or is set up otherwise "     \
    "address=127.0.0.1 reason="
    static const char once[] = REFUSED "\"this is not a server of an ensemble; only those should "
                                       "reach this port\"\n";
    static const char more[] = REFUSED "\"it sent more than a hello; it is not a server of an "
                                       "ensemble, or only one of the two uses TLS\"\n";
    char all[sizeof once + sizeof more];
    unsigned char noise[HELLO + 1] = {0};
    struct end b = {.id = 2};
    start(&b);
    for (unsigned i = 0; i < 4; i++) {
        int raw = dial_raw(b.port);
        put(raw, noise, i == 2 ? HELLO + 1 : HELLO);
        WAIT(is_closed(raw));
        close(raw);
        snprintf(all, sizeof all, "%s%s", once, i < 2 ? "" : more);
        assert_string_equal(said, all);
        run_for(1050); /* before that, nothing is said */
    }
    stop(&b);
}

/* ---- Addresses ---- */

static void test_addresses(void **state) {
    (void)state;
    struct end a = {.id = 1}, b = {.id = 2}, open = {.id = 3}, c = {.id = 4, .tls = keyed("key")};
    struct links_config config = config_of(&open);
    int32_t port = 0;
    config.insecure = true;
    start(&a), start(&b), start(&c), start_as(&open, &config);
    assert_non_null(strstr(links_listen(a.links, "0.0.0.0", &port), "only loopback"));
    assert_non_null(strstr(links_listen(a.links, "*", &port), "only loopback"));
    assert_non_null(strstr(links_listen(a.links, "::", &port), "only loopback"));
    assert_non_null(links_listen(b.links, "127.0.0.1", &a.port)); /* taken */
    assert_non_null(strstr(links_set(a.links, 9, "192.0.2.1", 2888), "only loopback"));
    assert_non_null(strstr(links_set(a.links, 9, "2001:db8::1", 2888), "only loopback"));
    assert_non_null(strstr(links_set(a.links, 9, "::ffff:192.0.2.1", 2888), "only loopback"));
    assert_non_null(strstr(links_judge(a.links, "192.0.2.1", 2888), "only loopback"));
    assert_non_null(links_judge(a.links, "127.0.0.1", 0));
    assert_null(links_judge(a.links, "127.0.0.1", 2888));
    assert_null(links_judge(open.links, "192.0.2.1", 2888));
    assert_null(links_judge(c.links, "192.0.2.1", 2888));
    assert_non_null(links_set(a.links, 1, "127.0.0.1", 2888));
    assert_non_null(links_set(a.links, 9, "127.0.0.1", 0));
    assert_non_null(links_set(a.links, 9, "127.0.0.1", 65536));
    assert_null(links_listen(open.links, "0.0.0.0", &port));
    assert_null(links_set(open.links, 9, "192.0.2.1", 2888));
    assert_null(links_set(c.links, 9, "192.0.2.1", 2888));
    assert_int_equal(a.down[0] + a.down[1] + a.down[2] + a.down[3], 0);
    /* Not addresses for us, but for whoever looks names up, without asking anybody. */
    assert_null(links_set(a.links, 9, "10.1", 2888));
    WAIT(a.down[LINK_REJECTED] >= 1);
    assert_true(was_said(" peer=9 host=10.1 port=2888 reason=\"links to other machines need"));
    assert_null(links_set(a.links, 2, "127.1", b.port));
    WAIT(a.up == 1);
    assert_string_equal(link_status(a.links, 2).address, "127.0.0.1");
    links_drop(a.links, 2);
    assert_null(links_set(a.links, 2, "localhost", b.port)); /* may be ::1 first, where nobody is */
    WAIT(a.up == 2);
    assert_int_equal(a.down[LINK_REFUSED], 0);
    memset(a.down, 0, sizeof a.down);
    char name[300];
    memset(name, 'x', sizeof name);
    static const size_t too_long[] = {299, 99}; /* for a name, for a part of one */
    for (size_t i = 0; i < 2; i++) {
        name[too_long[i]] = 0;
        assert_null(links_set(a.links, 8, name, 2888));
        WAIT(a.down[LINK_SILENT] >= 1);
        a.down[LINK_SILENT] = 0;
        assert_true(was_said(" peer=8 host=xxx"));
        said[0] = 0;
    }
    stop(&a), stop(&b), stop(&c), stop(&open);
    run_for(50);
    tls_close(c.tls);
}

static void test_loopback(void **state) {
    (void)state;
    static const struct {
        const char *address;
        bool is;
    } cases[] = {{"127.0.0.1", true},
                 {"127.255.0.9", true},
                 {"128.0.0.1", false},
                 {"10.127.0.1", false},
                 {"::1", true},
                 {"::2", false},
                 {"::", false},
                 {"::ffff:127.0.0.1", true},
                 {"::ffff:10.0.0.1", false},
                 {"7f00::1", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sockaddr_storage address = {0};
        assert_int_equal(net_resolve(cases[i].address, 1, &address), 0);
        assert_int_equal(net_is_loopback((struct sockaddr *)&address), cases[i].is);
    }
}

int main(void) {
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* after a failure the loop is in no state to go on */
#define LOOP(NAME)  cmocka_unit_test_setup_teardown(NAME, open_loop, close_loop)
#define FILES(NAME) cmocka_unit_test_setup_teardown(NAME, open_all, close_all)
    const struct CMUnitTest tests[] = {
        LOOP(test_frames_plain),
        FILES(test_frames_certified),
        FILES(test_frames_keyed),
        LOOP(test_many_in_order),
        LOOP(test_frames_in_pieces),
        FILES(test_wrong_key),
        FILES(test_wrong_authority),
        FILES(test_key_and_certificate),
        FILES(test_plain_and_key),
        FILES(test_certificate_is_needed),
        FILES(test_key_is_needed),
        FILES(test_key_is_replaced),
        FILES(test_certificate_is_replaced),
        FILES(test_key_files),
        LOOP(test_hellos),
        LOOP(test_data_directories),
        LOOP(test_one_ensemble),
        LOOP(test_other_servers),
        LOOP(test_impostors),
        LOOP(test_offers),
        LOOP(test_versions),
        LOOP(test_version_2_refuses),
        LOOP(test_upgrade),
        LOOP(test_silence_ends),
        LOOP(test_unauthenticated_are_few),
        LOOP(test_known_are_bounded),
        LOOP(test_garbage),
        LOOP(test_bad_frames),
        LOOP(test_damaged_length),
        LOOP(test_replaced),
        LOOP(test_two_of_one_id),
        LOOP(test_peer_does_not_read),
        LOOP(test_flush_to_nobody),
        LOOP(test_moved_and_dropped),
        LOOP(test_changes_from_within),
        FILES(test_addresses),
        LOOP(test_loopback),
        LOOP(test_found_elsewhere), /* those that take long are the last */
        LOOP(test_down_and_up),     /* those that take long are the last */
        LOOP(test_no_busy_dialing),
        LOOP(test_an_end_is_no_warning),
        LOOP(test_version_refused_again),
        LOOP(test_versions_do_not_meet),
        LOOP(test_silent_peers),
        LOOP(test_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
