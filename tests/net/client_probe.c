/* Opens a session with the options given, and prints who the server takes us for.
 *
 *   client_probe SERVERS [ca=FILE] [cert=FILE] [key=FILE] [any] [sasl=USER PASSWORD] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conclave.h"

static const char *value_of(const char *word, const char *name) {
    size_t size = strlen(name);
    return strncmp(word, name, size) == 0 && word[size] == '=' ? word + size + 1 : NULL;
}

int main(int count, char **argument) {
    struct cv_tls tls = {0};
    const char *limit = getenv("CONNECT_MS"); /* where no session is to come */
    struct cv_options options = {.servers = argument[1],
                                 .connect_timeout = limit ? atoi(limit) : 120000};
    struct cv_client *client;
    struct cv_result *result = NULL;
    char why[1000];
    for (int i = 2; i < count; i++) {
        const char *value;
        options.tls = &tls;
        if ((value = value_of(argument[i], "ca"))) tls.authorities = value;
        if ((value = value_of(argument[i], "cert"))) tls.certificate = value;
        if ((value = value_of(argument[i], "key"))) tls.key = value;
        if (strcmp(argument[i], "any") == 0) tls.any_host = true;
        if ((value = value_of(argument[i], "sasl")) && i + 1 < count) {
            options.sasl_user = value;
            options.sasl_password = argument[++i];
            options.tls = tls.authorities ? &tls : NULL;
        }
    }
    int error = cv_open(&client, &options);
    struct cv_op op = {.type = CV_OP_WHO_AM_I};
    if (!error) error = cv_call(client, &op, &result);
    if (error)
        fprintf(stderr, "%s: %s\n", cv_error_text(error), cv_explain(client, why, sizeof why));
    for (size_t i = 0; result && i < result->acl_count; i++)
        printf("%s:%s\n", result->acl[i].scheme, result->acl[i].id);
    cv_result_free(result);
    cv_close(client);
    return error ? 1 : 0;
}
