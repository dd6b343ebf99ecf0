/* conclave lab: the laboratory in a browser. */
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/lab_server.h"
#include "cli/pages.h"

enum { KEY_PORT = 256, KEY_LISTEN, KEY_OPEN, PORT = 8017 };

struct request {
    struct lab_address address;
    bool open;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    uint64_t port;
    switch (key) {
    case KEY_PORT:
        if (parse_u64(text, &port) != 0 || port > UINT16_MAX)
            usage_error("port: '%s' is not a number from 0 to 65535", text);
        request->address.port = (uint16_t)port;
        return 0;
    case KEY_LISTEN: request->address.host = text; return 0;
    case KEY_OPEN: request->open = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static bool has_page(const char *name) {
    for (const struct asset *p = lab_pages; p->name; p++)
        if (strcmp(p->name, name) == 0) return true;
    return false;
}

static void say_where(const char *url) {
    printf("The laboratory is at %s (Ctrl-C ends it)\n", url);
    fflush(stdout);
}

static void say_and_open(const char *url) {
    extern char **environ;
    char *words[] = {"xdg-open", (char *)url, NULL};
    pid_t browser;
    say_where(url);
    signal(SIGCHLD, SIG_IGN); /* nobody waits for it */
    if (posix_spawnp(&browser, words[0], NULL, NULL, words, environ) != 0)
        notice("there is no xdg-open here: open that address in a browser");
}

int cmd_lab(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"port", KEY_PORT, "N", 0, "port of the page; 0: any that is free (8017)", 0},
        {"listen", KEY_LISTEN, "ADDRESS", 0, "address of the page (127.0.0.1)", 0},
        {"open", KEY_OPEN, NULL, 0, "open the page in a browser", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "The laboratory in a browser: run, break and check algorithms, and see what happens.  The "
        "page runs this program's own commands, as a WebAssembly module, and asks nobody else for "
        "anything; it is served until Ctrl-C.\v"
        "Examples:\n  conclave lab\n  conclave lab --port 0 --open\n",
        0,
        0,
        0};
    struct request request = {.address = {"127.0.0.1", PORT}};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (!has_page("index.html") || !has_page("lab.wasm"))
        system_error("this program was built without the laboratory's page, since a compiler for "
                     "WebAssembly was missing (clang-14, lld-14, wasi-libc, "
                     "libclang-rt-14-dev-wasm32)");
    int error = lab_serve(&request.address, request.open ? say_and_open : say_where);
    if (error == UV_EINVAL) usage_error("listen: '%s' is not an address", request.address.host);
    if (error)
        system_error("%s, port %u: %s", request.address.host, request.address.port,
                     uv_strerror(error));
    return EXIT_OK;
}
