#include <strings.h>
#include <unistd.h>

#include "base/logger.h"
#include "service/admin/internal.h"

static bool has_token(const struct secret *token, const char *authorization) {
    static const char scheme[] = "Bearer ";
    size_t size = strlen(scheme);
    if (!token->size || !authorization || strncasecmp(authorization, scheme, size) != 0)
        return false;
    return secret_equals(token, authorization + size, strlen(authorization + size));
}

bool access_granted(const struct caller *caller, uid_t own, const struct secret *token) {
    if (caller->by_socket) return caller->user == own || caller->user == 0;
    return has_token(token, caller->authorization);
}

/* It has to fit into the line of a header. */
static const char *judge_token(const struct secret *token) {
    enum { TOKEN_MAX = 1024 };
    if (token->size > TOKEN_MAX) return "it must hold 1024 bytes or less";
    for (size_t i = 0; i < token->size; i++)
        if (token->at[i] <= ' ' || token->at[i] > '~')
            return "it must be a line of visible ASCII characters ('conclave key' makes one)";
    return NULL;
}

const char *admin_token_read(const char *path, struct secret *token) {
    const char *problem = secret_read(path, token);
    if (!problem) problem = judge_token(token);
    if (problem) secret_forget(token);
    return problem;
}

bool access_open(const struct settings *settings, struct secret *token) {
    const char *path = settings->admin_token;
    struct secret fresh = {0};
    const char *problem = *path ? admin_token_read(path, &fresh) : NULL;
    if (!problem) *token = fresh;
    secret_forget(&fresh);
    if (problem)
        logger_error("the token of the administrators cannot be used", LOGGER_STRING("path", path),
                     LOGGER_STRING("reason", problem));
    else if (*path && secret_is_weak(token))
        logger_warning("the token of the administrators can be guessed: 'conclave key' makes a "
                       "better one",
                       LOGGER_STRING("path", path));
    return !problem;
}
