/* The client without a thread, in the program's own loop: reads lines, and keeps each as a node
 * below PATH while it goes on; `own_loop PATH`. */
#include <conclave.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int pending;

static void created(const struct cv_result *result, void *arg) {
    (void)arg;
    pending--;
    if (result->error)
        printf("%s\n", cv_error_text(result->error));
    else
        printf("%s\n", result->path);
    fflush(stdout);
}

static void start(struct cv_client *client, const char *path, const char *line) {
    char node[300];
    snprintf(node, sizeof node, "%s/line-", path);
    struct cv_op op = cv_op_create(node, line, strcspn(line, "\n"), CV_SEQUENTIAL);
    int error = cv_start(client, &op, created, NULL); /* what it points to is copied */
    if (error)
        printf("%s\n", cv_error_text(error));
    else
        pending++;
}

int main(int count, char **argument) {
    struct cv_options options = {.flags = CV_NO_THREAD};
    struct cv_client *client;
    char why[500], line[200];
    int open_input = 1;
    if (count != 2) return fprintf(stderr, "usage: own_loop PATH\n"), 2;
    int error = cv_open(&client, &options);
    if (!error) error = cv_create_all(client, argument[1], CV_PERSISTENT);
    if (error) {
        fprintf(stderr, "%s; %s\n", cv_error_text(error), cv_explain(client, why, sizeof why));
        cv_close(client);
        return 1;
    }
    setvbuf(stdin, NULL, _IONBF, 0); /* poll knows nothing of what stdio keeps */
    while (open_input || pending) {
        struct pollfd wait[] = {{.fd = cv_fd(client), .events = POLLIN},
                                {.fd = open_input ? STDIN_FILENO : -1, .events = POLLIN}};
        poll(wait, 2, -1);
        if (wait[1].revents) {
            if (fgets(line, sizeof line, stdin))
                start(client, argument[1], line);
            else
                open_input = 0;
        }
        if (wait[0].revents) cv_process(client);
    }
    cv_close(client);
    return 0;
}
