/* Secrets in files, and who may command a server: by the socket in its data directory, the server's
 * user and root; over HTTP, whoever has the token. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "file_help.h"
#include "service/admin/internal.h"

enum { NOBODY = 65534 };

static const char *path_of(const struct place *place, const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", place->path, name);
    return path;
}

static void write_secret(const struct place *place, const char *name, const char *text, size_t size,
                         mode_t mode) {
    int file = openat(place->directory, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, size), size);
    assert_int_equal(fchmod(file, mode), 0);
    close(file);
}

/* Reads a file with that text; what is said about it, NULL if nothing. */
static const char *read_back(const struct place *place, const char *text, mode_t mode,
                             struct secret *secret) {
    write_secret(place, "secret", text, strlen(text), mode);
    return secret_read(path_of(place, "secret"), secret);
}

static void expect_problem(const char *problem, const char *part) {
    if (!problem || !strstr(problem, part)) fail_msg("'%s', not '%s'", problem, part);
}

/* ---- Secrets ---- */

static void what_can_be_guessed_is_weak(void **state) {
    static const struct {
        const char *text;
        bool is_weak;
    } of[] = {
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
        {"abababababababababababababababababababab", true},
        {"1234567890123456", true},
        {"password12345678", true},
        {"correct horse battery", false},
        {"5f1c0a94e2b7d8365f1c0a94e2b7d836", false},
        {"Kq3vT8xW0bRn5yLcZs7J", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        struct secret secret = {.size = strlen(of[i].text)};
        memcpy(secret.at, of[i].text, secret.size);
        if (secret_is_weak(&secret) != of[i].is_weak) fail_msg("%s", of[i].text);
    }
    struct secret made;
    struct place place;
    place_open(&place);
    assert_int_equal(secret_make(path_of(&place, "made")), 0);
    assert_null(secret_read(path_of(&place, "made"), &made));
    assert_false(secret_is_weak(&made));
    assert_int_equal(unlinkat(place.directory, "made", 0), 0);
    place_close(&place);
}

static void only_the_owner_may_read_a_secret(void **state) {
    static const mode_t open_to_others[] = {0644, 0640, 0604, 0620, 0602, 0610, 0601, 0660};
    struct place place;
    struct secret secret;
    (void)state;
    place_open(&place);
    assert_null(read_back(&place, "0123456789abcdef", 0600, &secret));
    assert_null(read_back(&place, "0123456789abcdef", 0400, &secret));
    for (size_t i = 0; i < sizeof open_to_others / sizeof open_to_others[0]; i++) {
        expect_problem(read_back(&place, "0123456789abcdef", open_to_others[i], &secret),
                       "only its owner can read");
        assert_int_equal(secret.size, 0);
    }
    expect_problem(secret_read(place.path, &secret), "only its owner can read"); /* a directory */
    expect_problem(secret_read(path_of(&place, "none"), &secret), "No such file");
    if (geteuid() == 0) {
        write_secret(&place, "foreign", "0123456789abcdef", 16, 0600);
        assert_int_equal(fchownat(place.directory, "foreign", NOBODY, NOBODY, 0), 0);
        expect_problem(secret_read(path_of(&place, "foreign"), &secret), "another user");
    }
    place_close(&place);
}

static void a_secret_has_a_size(void **state) {
    struct place place;
    struct secret secret;
    char text[SECRET_MAX + 3];
    (void)state;
    place_open(&place);
    expect_problem(read_back(&place, "", 0600, &secret), "16 bytes or more");
    expect_problem(read_back(&place, "0123456789abcde\n\n", 0600, &secret), "16 bytes or more");
    assert_null(read_back(&place, "0123456789 bcdef\r\n\n", 0600, &secret));
    assert_int_equal(secret.size, 16);
    assert_memory_equal(secret.at, "0123456789 bcdef", 16);
    memset(text, 'x', sizeof text);
    text[SECRET_MAX + 1] = 0;
    expect_problem(read_back(&place, text, 0600, &secret), "less than 4096 bytes");
    text[SECRET_MAX] = 0;
    assert_null(read_back(&place, text, 0600, &secret));
    assert_int_equal(secret.size, SECRET_MAX);
    secret_forget(&secret);
    for (size_t i = 0; i < sizeof secret.at; i++) assert_int_equal(secret.at[i], 0);
    assert_int_equal(secret.size, 0);
    place_close(&place);
}

static void a_secret_is_made_once(void **state) {
    struct place place;
    struct secret first, again, other;
    struct stat status;
    (void)state;
    place_open(&place);
    mode_t before = umask(0);
    assert_int_equal(secret_make(path_of(&place, "key")), 0);
    umask(before);
    assert_int_equal(fstatat(place.directory, "key", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_null(secret_read(path_of(&place, "key"), &first));
    assert_int_equal(first.size, 64);
    assert_int_equal(secret_make(path_of(&place, "key")), EEXIST);
    assert_null(secret_read(path_of(&place, "key"), &again));
    assert_memory_equal(&first, &again, sizeof first);
    assert_int_equal(secret_make(path_of(&place, "other")), 0);
    assert_null(secret_read(path_of(&place, "other"), &other));
    assert_memory_not_equal(&first, &other, sizeof first);
    assert_int_equal(secret_make(path_of(&place, "none/key")), ENOENT);
    assert_int_equal(each_file(&place, NULL), 2); /* nothing else is left */
    place_close(&place);
}

static void a_token_fits_into_a_header(void **state) {
    struct place place;
    struct secret token;
    char text[1026];
    (void)state;
    place_open(&place);
    write_secret(&place, "token", "0123456789abcdef\n", 17, 0600);
    assert_null(admin_token_read(path_of(&place, "token"), &token));
    for (const char *bad = "\t \n\x7f\xc3\x01"; *bad; bad++) {
        char line[] = "0123456789abcdef0";
        line[7] = *bad;
        write_secret(&place, "token", line, strlen(line), 0600);
        expect_problem(admin_token_read(path_of(&place, "token"), &token), "visible ASCII");
        assert_int_equal(token.size, 0);
    }
    memset(text, 'x', sizeof text);
    write_secret(&place, "token", text, 1025, 0600);
    expect_problem(admin_token_read(path_of(&place, "token"), &token), "1024 bytes or less");
    write_secret(&place, "token", text, 1024, 0644);
    expect_problem(admin_token_read(path_of(&place, "token"), &token), "only its owner can read");
    place_close(&place);
}

/* ---- Who may command ---- */

static bool user_may(uid_t user, uid_t own, const struct secret *token) {
    /* What is said over HTTP does not count here. */
    struct caller caller = {
        .by_socket = true, .user = user, .authorization = "Bearer 0123456789abcdef"};
    return access_granted(&caller, own, token);
}

static void by_the_socket_the_own_user_and_root(void **state) {
    static const struct secret none = {.size = 0}, token = {"0123456789abcdef", 16};
    (void)state;
    assert_true(user_may(0, 0, &none));
    assert_true(user_may(0, 900, &none));
    assert_true(user_may(900, 900, &none));
    assert_false(user_may(901, 900, &none));
    assert_false(user_may(1, 0, &none));
    assert_false(user_may((uid_t)-1, 0, &none));
    assert_false(user_may(901, 900, &token));
}

static bool header_admits(const char *authorization, const struct secret *token) {
    struct caller caller = {.user = 0, .address = "127.0.0.1", .authorization = authorization};
    return access_granted(&caller, 0, token);
}

static void over_http_whoever_has_the_token(void **state) {
    static const struct secret none = {.size = 0}, token = {"0123456789abcdef", 16};
    static const char *const wrong[] = {NULL,
                                        "",
                                        "Bearer",
                                        "Bearer ",
                                        "Bearer 0123456789abcde",
                                        "Bearer 0123456789abcdefg",
                                        "Bearer 1123456789abcdef",
                                        "Bearer 0123456789abcdeg",
                                        "Bearer  0123456789abcdef",
                                        "Digest 0123456789abcdef",
                                        "0123456789abcdef",
                                        "Bearer 0123456789ABCDEF"};
    (void)state;
    assert_true(header_admits("Bearer 0123456789abcdef", &token));
    assert_true(header_admits("bearer 0123456789abcdef", &token));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (header_admits(wrong[i], &token)) fail_msg("'%s' is taken for the token", wrong[i]);
        assert_false(header_admits(wrong[i], &none)); /* without one nobody may */
    }
    assert_false(header_admits("Bearer 0123456789abcdef", &none));
}

/* ---- The socket ---- */

/* Connects as that user; an errno, or 0. */
static int connect_as(uid_t user, const struct sockaddr_un *address) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (user != geteuid() && (setgid(NOBODY) != 0 || setuid(user) != 0)) _exit(255);
        _exit(connect(socket_, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_user(int listener, uid_t expected) {
    uid_t user = (uid_t)-1;
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(connection >= 0);
    assert_true(socket_user(connection, &user));
    assert_int_equal(user, expected);
    close(connection);
}

static void the_socket_is_for_its_owner(void **state) {
    struct place place;
    struct sockaddr_un address;
    struct stat status;
    const char *problem;
    (void)state;
    place_open(&place);
    mode_t before = umask(0);
    int listener = socket_listen(place.path, place.directory, &problem);
    umask(before);
    assert_true(listener >= 0);
    assert_int_equal(fstatat(place.directory, ADMIN_SOCKET, &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(status.st_mode, S_IFSOCK | 0600);
    admin_socket_address(place.path, place.directory, &address);
    assert_int_equal(connect_as(geteuid(), &address), 0);
    expect_user(listener, geteuid());
    if (geteuid() == 0) {
        assert_int_equal(fchmod(place.directory, 0755), 0);
        assert_int_equal(connect_as(NOBODY, &address), EACCES);
        assert_int_equal(fchmodat(place.directory, ADMIN_SOCKET, 0666, 0), 0);
        assert_int_equal(connect_as(NOBODY, &address), 0); /* it is known all the same */
        expect_user(listener, NOBODY);
    }
    close(listener);
    place_close(&place);
}

static void the_socket_of_a_killed_server_is_replaced(void **state) {
    struct place place;
    struct sockaddr_un address;
    const char *problem;
    (void)state;
    place_open(&place);
    admin_socket_address(place.path, place.directory, &address);
    close(socket_listen(place.path, place.directory, &problem));
    assert_int_equal(connect_as(geteuid(), &address), ECONNREFUSED);
    int listener = socket_listen(place.path, place.directory, &problem);
    assert_true(listener >= 0);
    assert_int_equal(connect_as(geteuid(), &address), 0);
    close(listener);
    assert_int_equal(unlinkat(place.directory, ADMIN_SOCKET, 0), 0);
    write_secret(&place, ADMIN_SOCKET, "x", 1, 0600);
    assert_int_equal(socket_listen(place.path, place.directory, &problem), -1);
    expect_problem(problem, "which is no socket");
    assert_int_equal(each_file(&place, NULL), 1); /* a file stays what it is */
    place_close(&place);
}

/* The system's addresses have room for 107 bytes. */
static void a_path_may_be_long(void **state) {
    struct place place;
    struct sockaddr_un address;
    char name[120], path[256];
    const char *problem;
    (void)state;
    place_open(&place);
    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(mkdirat(place.directory, name, 0700), 0);
    int inner = openat(place.directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/%s", place.path, name);
    for (size_t size = 90; size < 110; size++) { /* at the limit, too */
        char text[128];
        memset(text, 'x', size);
        text[size] = 0;
        admin_socket_address(text, 7, &address);
        bool fits = size + 1 + strlen(ADMIN_SOCKET) < sizeof address.sun_path;
        assert_int_equal(strncmp(address.sun_path, fits ? text : "/proc/self/fd/7/", 16), 0);
        assert_non_null(strstr(address.sun_path, "/" ADMIN_SOCKET));
    }
    int listener = socket_listen(path, inner, &problem);
    if (listener < 0) fail_msg("%s", problem);
    admin_socket_address(path, inner, &address);
    assert_int_equal(connect_as(geteuid(), &address), 0);
    expect_user(listener, geteuid());
    close(listener);
    assert_int_equal(unlinkat(inner, ADMIN_SOCKET, 0), 0);
    close(inner);
    assert_int_equal(unlinkat(place.directory, name, AT_REMOVEDIR), 0);
    place_close(&place);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_owner_may_read_a_secret),
        cmocka_unit_test(what_can_be_guessed_is_weak),
        cmocka_unit_test(a_secret_has_a_size),
        cmocka_unit_test(a_secret_is_made_once),
        cmocka_unit_test(a_token_fits_into_a_header),
        cmocka_unit_test(by_the_socket_the_own_user_and_root),
        cmocka_unit_test(over_http_whoever_has_the_token),
        cmocka_unit_test(the_socket_is_for_its_owner),
        cmocka_unit_test(the_socket_of_a_killed_server_is_replaced),
        cmocka_unit_test(a_path_may_be_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
