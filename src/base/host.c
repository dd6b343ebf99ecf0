/* Reading the host that a request names. */
#include "base/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* What follows a name: nothing, or a port, which may be empty. */
static bool is_port(const char *at, size_t size) {
    if (size && *at != ':') return false;
    for (size_t i = 1; i < size; i++)
        if (at[i] < '0' || at[i] > '9') return false;
    return true;
}

bool host_read(const char *text, size_t size, char name[HOST_NAME_SIZE]) {
    bool bracketed = size && *text == '[';
    if (bracketed) text++, size--;
    const char *end = size ? memchr(text, bracketed ? ']' : ':', size) : NULL;
    size_t length = end ? (size_t)(end - text) : size, used = length + bracketed;
    if (bracketed && !end) return false;
    if (!length || length >= HOST_NAME_SIZE || memchr(text, 0, length)) return false;
    if (!is_port(text + used, size - used)) return false;
    memcpy(name, text, length);
    if (name[length - 1] == '.') length--;
    name[length] = 0;
    return length > 0;
}

bool host_is_address(const char *name) {
    struct in6_addr address;
    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

bool host_is_localhost(const char *name) {
    static const char below[] = ".localhost";
    size_t size = strlen(name), end = strlen(below);
    if (strcasecmp(name, below + 1) == 0 || strcasecmp(name, "ip6-localhost") == 0) return true;
    return size > end && strcasecmp(name + size - end, below) == 0;
}
