/* Processes that use the recipes of the library: started, stopped and killed by
 * tests/suites/recipes.sh.  recipes COMMAND SERVER PATH ... */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conclave.h"

enum { LATE = 75 }; /* the status of what has waited in vain */

static struct cv_client *client;
static const char *path;

static void need(bool good, const char *what, int error) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, cv_error_text(error));
    exit(error == CV_NO_SERVER ? LATE : 1);
}

/* $SESSION_MS is for those that are to lose their session. */
static void open_client(const char *server) {
    const char *session = getenv("SESSION_MS"), *patience = getenv("PATIENCE");
    int error = cv_open(
        &client, &(struct cv_options){.servers = server,
                                      .session_timeout = session ? atoi(session) : 40000,
                                      .connect_timeout = 1000 * (patience ? atoi(patience) : 120)});
    need(error == CV_OK, "open", error);
}

/* $RECIPE is the number of an enum cv_lock_recipe. */
static struct cv_lock *open_lock(struct cv_lock_options options) {
    struct cv_lock *lock;
    const char *recipe = getenv("RECIPE");
    options.recipe = recipe ? (enum cv_lock_recipe)atoi(recipe) : CV_CURATOR;
    int error = cv_lock_open(&lock, client, path, &options);
    need(error == CV_OK, "cv_lock_open", error);
    return lock;
}

/* Another session for one that is to be lost, and was lost too early; anything else is wrong. */
static void begin_anew(const char *server, const char *what, int error) {
    bool ended = error == CV_SESSION_EXPIRED || error == CV_LOST || error == CV_CLOSING ||
                 error == CV_CONNECTION_LOSS;
    need(ended && getenv("SESSION_MS"), what, error);
    cv_close(client);
    open_client(server);
}

/* One line in one write, so that lines of processes do not mix. */
static void append(const char *file, const char *text) {
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) exit(3);
    close(fd);
}

static long read_number(const char *file) {
    char text[32] = "";
    int fd = open(file, O_RDONLY);
    if (fd < 0) return 0;
    if (read(fd, text, sizeof text - 1) < 0) exit(3);
    close(fd);
    return atol(text);
}

static void write_number(const char *file, long number) {
    char text[32];
    int size = snprintf(text, sizeof text, "%ld\n", number);
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || write(fd, text, (size_t)size) != size) exit(3);
    close(fd);
}

static int64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* count CYCLES DIRECTORY KIND SLOTS: increments a file without atomics, and notes when it was
 * inside, and with which token.  A client whose session ends opens another. */
static void count(char **arg, const char *server) {
    char file[512], log[512], line[160];
    bool is_shared = !strcmp(arg[2], "shared");
    int slots = atoi(arg[3]);
    snprintf(file, sizeof file, "%s/number", arg[1]);
    snprintf(log, sizeof log, "%s/log", arg[1]);
    struct cv_lock_options options = {.kind = is_shared ? CV_SHARED : CV_EXCLUSIVE, .slots = slots};
    struct cv_lock *lock = open_lock(options);
    for (int done = 0; done < atoi(arg[0]);) {
        int error = cv_lock_acquire(lock, CV_FOREVER);
        if (error) { /* a restart of the server, or the end of the session */
            if (error != CV_SESSION_EXPIRED && error != CV_LOST && error != CV_CLOSING)
                need(false, "acquire", error);
            cv_lock_close(lock);
            cv_close(client);
            open_client(server);
            lock = open_lock(options);
            continue;
        }
        int64_t begin = microseconds();
        if (!is_shared && slots <= 1) {
            long number = read_number(file);
            if (done % 16 == 0) usleep(200);
            write_number(file, number + 1);
        } else {
            usleep(300);
        }
        bool held = cv_lock_state(lock) == CV_HELD;
        snprintf(line, sizeof line, "%c %" PRId64 " %" PRId64 " %" PRId64 " %d\n",
                 is_shared ? 's' : 'x', begin, microseconds(), cv_lock_token(lock), held);
        append(log, line);
        error = cv_lock_release(lock);
        if (error && error != CV_LOST && error != CV_CONNECTION_LOSS) need(false, "release", error);
        done++;
    }
    cv_lock_close(lock);
}

/* hold FILE: says in the file that it holds, and holds until it is killed.  On a busy machine its
 * short session may end before that. */
static void hold(char **arg, const char *server) {
    struct cv_lock *lock;
    char line[64];
    for (int error;; begin_anew(server, "acquire", error)) {
        lock = open_lock((struct cv_lock_options){.label = "hold"});
        if ((error = cv_lock_acquire(lock, CV_FOREVER)) == CV_OK) break;
        cv_lock_close(lock);
    }
    snprintf(line, sizeof line, "held %" PRId64 "\n", cv_lock_token(lock));
    append(arg[0], line);
    for (;;) pause();
}

/* paused FILE NODE: is stopped while it holds; when it goes on, it tries a guarded write. */
static void paused(char **arg, const char *server) {
    struct cv_lock *lock;
    int error;
    for (;; begin_anew(server, "acquire and set", error)) {
        lock = open_lock((struct cv_lock_options){0});
        error = cv_lock_acquire(lock, CV_FOREVER);
        if (error == CV_OK) error = cv_lock_set(lock, arg[1], "mine", 4, -1);
        if (error == CV_OK) break;
        cv_lock_close(lock);
    }
    append(arg[0], "held\n");
    raise(SIGSTOP);
    enum cv_lock_state state = cv_lock_state(lock); /* at once, by the clock */
    error = cv_lock_set(lock, arg[1], "stale", 5, -1);
    append(arg[0], state == CV_LOST_LOCK && error == CV_LOST ? "refused\n" : "WRITTEN\n");
}

static struct cv_election *stand(char **arg) {
    struct cv_election *e;
    int error = cv_election_open(
        &e, client, path, &(struct cv_election_options){.priority = atoi(arg[1]), .stable = true});
    need(error == CV_OK, "cv_election_open", error);
    return e;
}

/* lead FILE PRIORITY ROUNDS: stands, notes when it leads, resigns when it is asked or after a
 * while. */
static void lead(char **arg, const char *server) {
    struct cv_election *e = stand(arg);
    char line[128];
    int error;
    for (int i = 0; i < atoi(arg[2]); i++) {
        while ((error = cv_election_lead(e, CV_FOREVER)) != CV_OK) {
            cv_election_close(e);
            begin_anew(server, "lead", error);
            e = stand(arg);
        }
        int64_t begin = microseconds();
        usleep(1000);
        bool leads = cv_election_state(e) == CV_LEADING;
        snprintf(line, sizeof line, "x %" PRId64 " %" PRId64 " %" PRId64 " %d\n", begin,
                 microseconds(), cv_election_token(e), leads);
        append(arg[0], line);
        if (arg[3] && !strcmp(arg[3], "forever"))
            for (;;) pause();
        error = cv_election_resign(e);
        need(error == CV_OK || error == CV_LOST, "resign", error);
    }
    cv_election_close(e);
}

/* once FILE: claims, and says so. */
static void once(char **arg) {
    struct cv_result *owner = NULL;
    char line[64];
    int error = cv_once(client, path, "test", &owner);
    need(error == CV_OK || (error == CV_NODE_EXISTS && owner && owner->size), "once", error);
    snprintf(line, sizeof line, "%d\n", (int)getpid());
    if (error == CV_OK) append(arg[0], line);
    cv_result_free(owner);
}

/* add TIMES: to a counter. */
static void add(char **arg) {
    for (int i = 0; i < atoi(arg[0]); i++) {
        int error = cv_counter_add(client, path, 1, NULL);
        need(error == CV_OK, "add", error);
    }
}

static int count_lines(const char *file) {
    int lines = 0, c;
    FILE *in = fopen(file, "r");
    while (in && (c = getc(in)) != EOF) lines += c == '\n';
    if (in) fclose(in);
    return lines;
}

/* work FILE COUNT: takes what there is, until the file says that so much was done. */
static void work(char **arg) {
    struct cv_work *entry;
    char line[64];
    while (count_lines(arg[0]) < atoi(arg[1])) {
        if (cv_work_take(&entry, client, path, 200) != CV_OK) continue;
        size_t size;
        const char *data = cv_work_data(entry, &size);
        snprintf(line, sizeof line, "%.*s\n", (int)size, data);
        if (cv_work_done(entry) == CV_OK) append(arg[0], line);
    }
}

/* put COUNT */
static void put(char **arg) {
    for (int i = 0; i < atoi(arg[0]); i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        int error = cv_work_put(client, path, text, strlen(text), 0);
        need(error == CV_OK, "put", error);
    }
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    path = argv[3];
    char **arg = argv + 4;
    const char *command = argv[1];
    open_client(argv[2]);
    if (!strcmp(command, "count"))
        count(arg, argv[2]);
    else if (!strcmp(command, "hold"))
        hold(arg, argv[2]);
    else if (!strcmp(command, "paused"))
        paused(arg, argv[2]);
    else if (!strcmp(command, "lead"))
        lead(arg, argv[2]);
    else if (!strcmp(command, "once"))
        once(arg);
    else if (!strcmp(command, "add"))
        add(arg);
    else if (!strcmp(command, "work"))
        work(arg);
    else if (!strcmp(command, "put"))
        put(arg);
    else
        return 2;
    cv_close(client);
    return 0;
}
