/* What the service manager is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/notify.h"

static void expect_told(const char *name, const char *sun_path, size_t size) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char told[64] = "";
    memcpy(address.sun_path, sun_path, size);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
    notify_service_manager("READY=1");
    assert_int_equal(recv(fd, told, sizeof told, 0), 7);
    assert_string_equal(told, "READY=1");
    close(fd);
}

static void it_is_told_by_a_file(void **state) {
    char directory[] = "/tmp/test_notify.XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/socket", directory);
    expect_told(path, path, strlen(path));
    unlink(path);
    rmdir(directory);
}

static void it_is_told_by_an_abstract_name(void **state) {
    char name[64];
    (void)state;
    size_t size = (size_t)snprintf(name, sizeof name, "@test_notify-%d", getpid());
    char abstract[64];
    memcpy(abstract, name, size);
    abstract[0] = '\0';
    expect_told(name, abstract, size);
}

static void nobody_asked_or_the_name_is_nonsense(void **state) {
    char of_any_length[300];
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    notify_service_manager("READY=1");
    memset(of_any_length, 'a', sizeof of_any_length - 1);
    of_any_length[0] = '/', of_any_length[sizeof of_any_length - 1] = '\0';
    const char *names[] = {"", "@", "relative", "/nobody/listens", of_any_length};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        notify_service_manager("READY=1");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_told_by_a_file),
        cmocka_unit_test(it_is_told_by_an_abstract_name),
        cmocka_unit_test(nobody_asked_or_the_name_is_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
