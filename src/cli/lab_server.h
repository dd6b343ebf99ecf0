/* A web server for the files of the laboratory's page, and nothing else. */
#ifndef CV_CLI_LAB_SERVER_H
#define CV_CLI_LAB_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab_address {
    const char *host; /* an address */
    uint16_t port;    /* 0: any that is free */
};

/* Serves until SIGINT or SIGTERM; calls `listens` once it is ready, with the page's address.
 * Returns 0, or an error of libuv when it cannot listen. */
int lab_serve(const struct lab_address *address, void (*listens)(const char *url));

/* What is answered to a request whose head is `text`, of `size` bytes: the status, and which of the
 * pages, or NULL. */
struct asset;
int lab_answer(const unsigned char *text, size_t size, const char *listen_host,
               const struct asset **page, bool *head_only);

#endif
