/* An operator's commands over HTTP, and who is an operator. */
#include <unistd.h>

#include "base/logger.h"
#include "service/admin/http.h"

static const char of_ensemble[] = "/ensemble/", commands[] = "/commands/";

static struct caller caller_of(const struct http_request *request) {
    struct door *door = request->door;
    struct caller caller = {.by_socket = door == &door->server->http->socket};
    if (caller.by_socket) {
        if (!socket_user(http_socket(request), &caller.user)) caller.user = (uid_t)-1;
        return caller;
    }
    const union MHD_ConnectionInfo *info =
        door->mhd->get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info) uv_ip_name(info->client_addr, caller.address, sizeof caller.address);
    caller.authorization = http_header(request, MHD_HTTP_HEADER_AUTHORIZATION);
    return caller;
}

static void log_refusal(struct server *s, const struct caller *caller, const char *verb) {
    enum { PERIOD_US = 10000000 };
    uint64_t now = s->clock.monotonic_us;
    if (s->http->refused_us && now - s->http->refused_us < PERIOD_US) return;
    s->http->refused_us = now;
    if (caller->by_socket)
        logger_warning("a command was refused: it came from a user who may not command this server",
                       LOGGER_STRING("command", verb), LOGGER_UINT("user", caller->user));
    else
        logger_warning("a command was refused: it came over HTTP without the administrators' token",
                       LOGGER_STRING("command", verb), LOGGER_STRING("address", caller->address));
}

static struct answer refuse(struct server *s, const struct caller *caller, const char *verb) {
    struct answer answer = {MHD_HTTP_FORBIDDEN, HTTP_TEXT, {0}, NULL};
    char *data = realpath(s->settings.data_dir, NULL);
    s->statistics.refused[REFUSED_command]++;
    log_refusal(s, caller, verb);
    if (caller->by_socket) {
        report_print(&answer.text,
                     "only root and the user whose process the server is may do that\n");
    } else if (s->http->token.size) {
        answer.status = MHD_HTTP_UNAUTHORIZED;
        report_print(&answer.text,
                     "that takes the secret that the server has as --admin-token-file\n");
    } else {
        report_print(&answer.text,
                     "over HTTP nothing is changed; on the server's machine, as its user or root, "
                     "use --data %s; from elsewhere, start the server with --admin-token-file\n",
                     data ? data : s->settings.data_dir);
    }
    free(data);
    return answer;
}

bool http_is_operator(const struct http_request *request) {
    struct caller caller = caller_of(request);
    return access_granted(&caller, geteuid(), &request->door->server->http->token);
}

struct answer command_refuse(const struct http_request *request, const char *verb) {
    struct caller caller = caller_of(request);
    return refuse(request->door->server, &caller, verb);
}

bool command_is_of_ensemble(const char *path) {
    return strncmp(path, of_ensemble, strlen(of_ensemble)) == 0;
}

/* /ensemble/VERB/ARGUMENT */
static struct answer command(const struct http_request *request) {
    struct server *s = request->door->server;
    char verb[16], why[512];
    const char *begin = request->path + strlen(of_ensemble), *argument = strchr(begin, '/');
    size_t size = argument ? (size_t)(argument - begin) : 0;
    if (!argument || size >= sizeof verb) return http_in_words(MHD_HTTP_NOT_FOUND, "not found");
    memcpy(verb, begin, size);
    verb[size] = 0;
    if (!http_is_operator(request)) return command_refuse(request, verb);
    bool begun = ensemble_command(s->ensemble, verb, argument + 1, why, sizeof why);
    return begun ? http_in_json(json_ensemble(s)) : http_in_words(MHD_HTTP_CONFLICT, why);
}

bool command_is_change(const char *path) {
    return strncmp(path, commands, strlen(commands)) == 0 &&
           json_is_change(path + strlen(commands));
}

/* /commands/NAME of one that changes something.  ZooKeeper does it for anybody, so any page in a
 * browser that reaches the server could. */
static struct answer change(const struct http_request *request) {
    const char *name = request->path + strlen(commands);
    if (!http_is_operator(request)) return command_refuse(request, name);
    return http_in_json(
        json_change(request->door->server, name, http_argument(request, "traceMask").at));
}

struct answer command_answer(const struct http_request *request) {
    return command_is_of_ensemble(request->path) ? command(request) : change(request);
}
