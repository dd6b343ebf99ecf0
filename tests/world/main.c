/* conclave-simulate: the whole server, thousands of times, with faults. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "world.h"

enum { EXIT_USAGE = 2, PATIENCE_S = 120, JOBS_MAX = 64, DIRECTORY_MAX = 30 };

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __real_fork(void);

/* ---- One seed ---- */

struct outcome {
    uint64_t seed, hash;
    nanos simulated;
    struct coverage coverage;
    char violation[512];
};

static bool users_are_done(void) {
    for (unsigned i = 0; i < world->users; i++)
        if (!world->user[i].finished) return false;
    return true;
}

static bool is_never(void) { return false; }

static void open_world(uint64_t seed, unsigned servers, const char *root, bool tracing) {
    static struct world all;
    char disk[64], graveyard[64];
    world = &all;
    world->seed = world->hash = seed;
    world->tracing = tracing;
    rng_seed(&world->net, seed * 8 + 1);
    rng_seed(&world->disk, seed * 8 + 2);
    rng_seed(&world->faults, seed * 8 + 3);
    rng_seed(&world->random, seed * 8 + 4);
    world->servers = servers ? servers : rng_chance(&world->random, 0.75) ? 3 : 5;
    world->fresh = rng_chance(&world->random, 0.3);
    world->forgetful = rng_chance(&world->random, 0.2);
    world->users = 3 + (unsigned)rng_below(&world->random, 3);
    snprintf(world->root, sizeof world->root, "%s/%llu", root, (unsigned long long)seed);
    cv_assert(mkdir(world->root, 0700) == 0);
    for (unsigned i = 1; i <= world->servers; i++) {
        struct machine *m = &world->machine[i];
        m->number = i;
        snprintf(disk, sizeof disk, "%.50s/s%u", world->root, i);
        snprintf(graveyard, sizeof graveyard, "%.50s/g%u", world->root, i);
        disk_open(&m->disk, disk, graveyard);
        m->skew_ms = (int64_t)rng_below(&world->random, 4000) - 2000;
    }
    /* Most are close to each other, some are far apart, a few on other continents; users may be
     * closer to the servers than these are to each other. */
    double far = rng_unit(&world->random);
    nanos most = far < 0.8 ? 500 * US : far < 0.95 ? 15 * MS : 120 * MS;
    nanos users_most = rng_chance(&world->random, 0.4) ? 50 * US : most;
    for (unsigned a = 0; a < HOSTS_MAX; a++)
        for (unsigned b = 0; b < HOSTS_MAX; b++) {
            bool both = a < world->servers && b < world->servers; /* servers */
            world->delay[a][b] = random_time(&world->random, 30 * US, both ? most : users_most);
        }
    world->jitter = 200 * US;
}

static void start_all(void) {
    for (unsigned i = 1; i <= world->servers; i++) machine_start(&world->machine[i]);
    for (unsigned i = 0; i < world->users; i++) {
        struct user *u = &world->user[i];
        u->number = i;
        u->host = (int)(world->servers + i);
        u->timeout_ms = 1500 + 500 * (int32_t)rng_below(&world->random, 6);
        rng_seed(&u->rng, world->seed * 64 + 32 + i);
        u->task = task_start(NULL, load_run, u);
    }
}

static void run_all(nanos length) {
    faults_start(length);
    world_run(is_never, length);
    faults_heal();
    world->healed = true;
    if (!world_run(users_are_done, world->now + 30 * SECOND) && !*world->violation)
        violated("30 s after all was well again some users have not got through");
    world->over = true;
    if (!world_run(trees_agree, world->now + 15 * SECOND) && !*world->violation)
        violated("15 s after everybody left servers differ, or sessions go on");
    say_servers();
    if (!*world->violation) judge_trees();
    judge_histories();
}

static struct outcome run_seed(uint64_t seed, unsigned servers, nanos length, const char *root,
                               bool tracing) {
    struct outcome outcome = {.seed = seed};
    open_world(seed, servers, root, tracing);
    start_all();
    run_all(length);
    outcome.hash = world->hash;
    outcome.simulated = world->now;
    outcome.coverage = world->coverage;
    outcome.coverage.terms = world->terms;
    memcpy(outcome.violation, world->violation, sizeof outcome.violation);
    return outcome;
}

/* ---- Many ---- */

struct request {
    uint64_t first, last;
    unsigned servers, jobs;
    nanos length;
    const char *directory;
    bool tracing, hashes, coverage, stop;
};

struct job {
    pid_t process;
    uint64_t seed;
    int result;
};

struct batch {
    const struct request *request;
    char root[64];
    struct job job[JOBS_MAX];
    unsigned running;
    uint64_t next, done, failed;
    nanos simulated;
    struct coverage coverage;
};

static volatile sig_atomic_t interrupted;
static void interrupt(int number) { interrupted = number; }

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static void remove_tree(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static void log_path(const struct batch *batch, uint64_t seed, char path[96]) {
    snprintf(path, 96, "%s/%llu.log", batch->root, (unsigned long long)seed);
}

_Noreturn static void be_child(const struct batch *batch, uint64_t seed, int to) {
    const struct request *r = batch->request;
    char path[96];
    log_path(batch, seed, path);
    int log = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (log >= 0) dup2(log, STDERR_FILENO);
    if (!r->tracing) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
    }
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    alarm(PATIENCE_S);
    struct outcome outcome = run_seed(seed, r->servers, r->length, batch->root, r->tracing);
    fflush(stdout);
    _exit(write(to, &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
}

static void begin(struct batch *batch) {
    int ends[2];
    uint64_t seed = batch->next++;
    if (pipe2(ends, O_CLOEXEC) != 0) abort();
    fflush(stdout);
    pid_t process = __real_fork();
    if (process < 0) abort();
    if (process == 0) be_child(batch, seed, ends[1]);
    close(ends[1]);
    batch->job[batch->running++] = (struct job){process, seed, ends[0]};
}

static void add_coverage(struct coverage *to, const struct coverage *from) {
    uint64_t *a = (uint64_t *)to;
    const uint64_t *b = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++) a[i] += b[i];
}

static void show_log(const struct batch *batch, uint64_t seed) {
    char path[96], line[512];
    log_path(batch, seed, path);
    FILE *log = fopen(path, "r");
    while (log && fgets(line, sizeof line, log))
        if (strstr(line, "broken invariant")) printf("  %s", line);
    if (log) fclose(log);
}

static void take_outcome(struct batch *batch, const struct job *job, int status) {
    struct outcome outcome;
    char path[96];
    ssize_t size = read(job->result, &outcome, sizeof outcome);
    bool whole = size == sizeof outcome;
    close(job->result);
    batch->done++;
    if (whole) {
        batch->simulated += outcome.simulated;
        add_coverage(&batch->coverage, &outcome.coverage);
    }
    if (batch->request->hashes && whole)
        printf("seed %llu hash %016llx simulated %.6f s\n", (unsigned long long)job->seed,
               (unsigned long long)outcome.hash, (double)outcome.simulated / 1e9);
    if (!whole || *outcome.violation) {
        batch->failed++;
        printf("seed %llu FAILED: %s%s\n", (unsigned long long)job->seed,
               whole ? outcome.violation : "the program ended: ",
               whole                 ? ""
               : WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                     : "by itself");
        show_log(batch, job->seed);
    }
    fflush(stdout);
    log_path(batch, job->seed, path);
    remove(path);
    snprintf(path, sizeof path, "%s/%llu", batch->root, (unsigned long long)job->seed);
    remove_tree(path);
}

static void wait_for_one(struct batch *batch) {
    int status;
    pid_t process = waitpid(-1, &status, 0);
    for (unsigned i = 0; i < batch->running; i++) {
        if (batch->job[i].process != process) continue;
        struct job job = batch->job[i];
        batch->job[i] = batch->job[--batch->running];
        take_outcome(batch, &job, status);
        return;
    }
}

static void end_others(struct batch *batch) {
    for (unsigned i = 0; i < batch->running; i++) kill(batch->job[i].process, SIGKILL);
    for (unsigned i = 0; i < batch->running; i++) waitpid(batch->job[i].process, NULL, 0);
}

static double seconds(void) {
    struct timespec now;
    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void say_coverage(const struct coverage *c) {
#define SHOW(NAME) printf("  %-14s %llu\n", #NAME, (unsigned long long)c->NAME);
    SHOW(operations)
    SHOW(unknown)
    SHOW(events)
    SHOW(moves)
    SHOW(expirations)
    SHOW(elections)
    SHOW(terms)
    SHOW(snapshots)
    SHOW(installs)
    SHOW(kills)
    SHOW(crashes)
    SHOW(lost_changes)
    SHOW(torn_changes)
    SHOW(rolling)
    SHOW(pauses)
    SHOW(partitions)
    SHOW(breaks)
    SHOW(slow_disks)
    SHOW(full_disks)
    SHOW(rots)
#undef SHOW
}

static int run_batch(const struct request *request) {
    struct batch batch = {.request = request, .next = request->first};
    double begun = seconds();
    struct sigaction action = {.sa_handler = interrupt};
    const char *above = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    if (request->directory) above = request->directory;
    snprintf(batch.root, sizeof batch.root, "%.30s/conclave-simulate.XXXXXX", above);
    signal(SIGPIPE, SIG_IGN); /* what was made is removed, whoever reads */
    if (!mkdtemp(batch.root)) {
        fprintf(stderr, "conclave-simulate: %s: %s\n", batch.root, strerror(errno));
        return 3;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    while (!interrupted && (batch.next <= request->last || batch.running)) {
        if (request->stop && batch.failed) break;
        if (batch.next <= request->last && batch.running < request->jobs)
            begin(&batch);
        else
            wait_for_one(&batch);
    }
    end_others(&batch);
    remove_tree(batch.root);
    double minutes = (seconds() - begun) / 60, hours = (double)batch.simulated / 3600e9;
    printf("%llu seeds, %llu failed; %.2f simulated hours in %.1f s, %.1f hours per minute\n",
           (unsigned long long)batch.done, (unsigned long long)batch.failed, hours, minutes * 60,
           hours / minutes);
    if (request->coverage) say_coverage(&batch.coverage);
    return batch.failed || interrupted ? 1 : 0;
}

/* ---- Options ---- */

enum {
    KEY_SEEDS = 256,
    KEY_SEED,
    KEY_SERVERS,
    KEY_JOBS,
    KEY_LENGTH,
    KEY_TRACE,
    KEY_HASH,
    KEY_COVERAGE,
    KEY_STOP,
    KEY_DIRECTORY,
};

static const struct argp_option options[] = {
    {"seeds", KEY_SEEDS, "FIRST-LAST", 0, "Which seeds to run (1-100)", 0},
    {"seed", KEY_SEED, "N", 0, "One of them, and its hash", 0},
    {"servers", KEY_SERVERS, "3|5", 0, "How many servers there are (by the seed)", 0},
    {"length", KEY_LENGTH, "SECONDS", 0, "For how long things go wrong, simulated (10)", 0},
    {"jobs", KEY_JOBS, "N", 0, "How many seeds at a time (1)", 0},
    {"directory", KEY_DIRECTORY, "DIR", 0,
     "Where the servers' files are while they run (/dev/shm), with a short name", 0},
    {"stop", KEY_STOP, NULL, 0, "End with the first that fails", 0},
    {"trace", KEY_TRACE, NULL, 0, "Say what happens", 0},
    {"hash", KEY_HASH, NULL, 0, "Say the hash of each run: the same seed has the same", 0},
    {"coverage", KEY_COVERAGE, NULL, 0, "Say how often what happened", 0},
    {0}};

static const char doc[] =
    "Runs ensembles of servers in simulated worlds with faults, and judges what their clients "
    "saw.\v"
    "All that happens follows from the seed, so a seed that fails can be run again with --trace.\n";

static uint64_t number(struct argp_state *state, const char *text, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        argp_error(state, "'%s' is not a number from %llu to %llu", text, (unsigned long long)least,
                   (unsigned long long)most);
    return value;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    struct request *r = state->input;
    char *dash;
    switch (key) {
    case KEY_SEEDS:
        dash = strchr(text, '-');
        if (!dash) argp_error(state, "seeds: '%s' is not FIRST-LAST", text);
        *dash = 0;
        r->first = number(state, text, 1, 1ull << 40);
        r->last = number(state, dash + 1, r->first, 1ull << 40);
        return 0;
    case KEY_SEED:
        r->first = r->last = number(state, text, 1, 1ull << 40), r->hashes = true;
        return 0;
    case KEY_SERVERS:
        r->servers = (unsigned)number(state, text, 3, 5);
        if (r->servers == 4) argp_error(state, "servers: 3 or 5");
        return 0;
    case KEY_LENGTH: r->length = number(state, text, 1, 3600) * SECOND; return 0;
    case KEY_JOBS: r->jobs = (unsigned)number(state, text, 1, JOBS_MAX); return 0;
    case KEY_TRACE: r->tracing = true; return 0;
    case KEY_DIRECTORY:
        if (strlen(text) > DIRECTORY_MAX) argp_error(state, "directory: '%s' is too long", text);
        r->directory = text;
        return 0;
    case KEY_STOP: r->stop = true; return 0;
    case KEY_HASH: r->hashes = true; return 0;
    case KEY_COVERAGE: r->coverage = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    struct request request = {.first = 1, .last = 100, .jobs = 1, .length = 10 * SECOND};
    argp_err_exit_status = EXIT_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (request.tracing) {
        request.jobs = 1;
        setlinebuf(stdout);
    }
    return run_batch(&request);
}
