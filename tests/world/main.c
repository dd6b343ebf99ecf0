/* conclave-simulate: the whole server, thousands of times, with faults. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "world.h"

enum { EXIT_USAGE = 2, SEED_TIMEOUT_S = 120, JOBS_MAX = 64, DIRECTORY_MAX = 30 };

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __real_fork(void);

/* ---- One seed ---- */

struct request {
    uint64_t first, last, kinds;
    unsigned servers, jobs;
    nanos length;
    const char *directory;
    bool tracing, hashes, coverage, stop, always; /* always: every kind in every world */
};

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

static void open_machine(unsigned number) {
    char disk[64], graveyard[64];
    struct machine *m = &world->machine[number];
    m->number = number;
    snprintf(disk, sizeof disk, "%.50s/s%u", world->root, number);
    snprintf(graveyard, sizeof graveyard, "%.50s/g%u", world->root, number);
    disk_open(&m->disk, disk, graveyard);
    if (!world_has(KIND_TTL)) m->skew_ms = (int64_t)rng_below(&world->random, 4000) - 2000;
    m->installed = number <= world->founders;
}

static void open_world(uint64_t seed, uint64_t kinds, unsigned servers, const char *root,
                       bool tracing) {
    static struct world all;
    world = &all;
    world->seed = world->hash = seed;
    world->kinds = kinds;
    world->tracing = tracing;
    rng_seed(&world->net, seed * 8 + 1);
    rng_seed(&world->disk, seed * 8 + 2);
    rng_seed(&world->faults, seed * 8 + 3);
    rng_seed(&world->random, seed * 8 + 4);
    rng_seed(&world->orders, seed * 8 + 5);
    world->founders = servers ? servers : rng_chance(&world->random, 0.75) ? 3 : 5;
    world->servers = world->founders;
    if (world_has(KIND_MEMBERS))
        world->servers += 1 + (unsigned)rng_below(&world->random, SERVERS_MAX - world->founders);
    world->linearizable = rng_chance(&world->random, 0.3) || world_has(KIND_SUSPEND);
    world->short_logs = rng_chance(&world->random, 0.2);
    world->loop_steps =
        rng_chance(&world->random, 0.5) ? 1 + (unsigned)rng_below(&world->random, 4) : 0;
    if (world_has(KIND_CHUNKS)) world->chunk = 20 + rng_below(&world->random, 300);
    world->users = 3 + (unsigned)rng_below(&world->random, 3);
    snprintf(world->root, sizeof world->root, "%s/%llu", root, (unsigned long long)seed);
    cv_assert(mkdir(world->root, 0700) == 0);
    for (unsigned i = 1; i <= world->servers; i++) open_machine(i);
    members_found();
    /* Most are close to each other, some are far apart, a few on other continents; users may be
     * closer to the servers than these are to each other. */
    double far = rng_unit(&world->random);
    nanos delay_max = far < 0.8 ? 500 * US : far < 0.95 ? 15 * MS : 120 * MS;
    nanos users_delay_max = rng_chance(&world->random, 0.4) ? 50 * US : delay_max;
    for (unsigned a = 0; a < HOSTS_MAX; a++)
        for (unsigned b = 0; b < HOSTS_MAX; b++) {
            bool both = a < world->servers && b < world->servers; /* servers */
            world->delay[a][b] =
                random_time(&world->random, 30 * US, both ? delay_max : users_delay_max);
        }
    world->jitter = 200 * US;
    world->few_in_flight = rng_chance(&world->random, 0.2);
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
    if (world_has(KIND_MEMBERS)) members_start(length);
    world_run(is_never, length);
    if (world_has(KIND_PARTIAL)) partial_run();
    faults_heal();
    world->healed = true;
    if (!world_run(users_are_done, world->now + 30 * SECOND) && !*world->violation)
        violated("30 s after the faults ended some users are still not served");
    world->over = true;
    if (!world_run(trees_agree, world->now + 15 * SECOND) && !*world->violation)
        violated("15 s after all users left servers still differ, or sessions still exist");
    if (!world_run(nobody_is_helped, world->now + 75 * SECOND) && !*world->violation)
        violated("75 s later some server still sends what a member lacks");
    trace_servers();
    if (!*world->violation) judge_trees();
    judge_histories();
}

static struct outcome run_seed(const struct request *r, uint64_t seed, const char *root) {
    struct outcome outcome = {.seed = seed};
    uint64_t kinds = kinds_choose(seed, r->kinds, r->always);
    open_world(seed, kinds, r->servers, root, r->tracing);
    trace("", "kinds %llx: see --list, from the first", (unsigned long long)kinds);
    start_all();
    run_all(r->length);
    outcome.hash = world->hash;
    outcome.simulated = world->now;
    outcome.coverage = world->coverage;
    outcome.coverage.terms = world->terms;
    if (!*world->violation) outcome.coverage.survived = world->coverage.damages;
    memcpy(outcome.violation, world->violation, sizeof outcome.violation);
    return outcome;
}

/* ---- Many ---- */

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
    setpgid(0, 0);
    alarm(SEED_TIMEOUT_S);
    struct outcome outcome = run_seed(r, seed, batch->root);
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
    setpgid(process, process); /* whoever is first */
    close(ends[1]);
    batch->job[batch->running++] = (struct job){process, seed, ends[0]};
}

static void add_coverage(struct coverage *to, const struct coverage *from) {
    uint64_t *a = (uint64_t *)to;
    const uint64_t *b = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++) a[i] += b[i];
}

/* Servers log there too: these are the lines of assertions and of sanitizers. */
static void show_log(const struct batch *batch, uint64_t seed) {
    char path[96], line[512];
    log_path(batch, seed, path);
    FILE *log = fopen(path, "r");
    while (log && fgets(line, sizeof line, log))
        if (strstr(line, "broken invariant") || strstr(line, "runtime error: ") ||
            strstr(line, "ERROR: ") || strncmp(line, "    #", 5) == 0)
            printf("  %s", line);
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
               whole ? outcome.violation : "the process ended: ",
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

/* With the processes in which its servers write snapshots: they would go on writing. */
static void end_others(struct batch *batch) {
    for (unsigned i = 0; i < batch->running; i++) kill(-batch->job[i].process, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
    }
}

static double seconds(void) {
    struct timespec now;
    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_coverage(const struct coverage *c) {
#define SHOW(NAME) printf("  %-16s %llu\n", #NAME, (unsigned long long)c->NAME);
    COVERAGE(SHOW)
#undef SHOW
}

static int run_batch(const struct request *request) {
    struct batch batch = {.request = request, .next = request->first};
    double begun = seconds();
    struct sigaction action = {.sa_handler = interrupt};
    const char *above = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    if (request->directory) above = request->directory;
    snprintf(batch.root, sizeof batch.root, "%.30s/conclave-simulate.XXXXXX", above);
    signal(SIGPIPE, SIG_IGN); /* files are removed even if nobody reads the output */
    if (!mkdtemp(batch.root)) {
        fprintf(stderr, "conclave-simulate: %s: %s\n", batch.root, strerror(errno));
        return 3;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
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
    if (request->coverage) print_coverage(&batch.coverage);
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
    KEY_KINDS,
    KEY_ALWAYS,
    KEY_LIST,
};

static const struct argp_option options[] = {
    {"seeds", KEY_SEEDS, "FIRST-LAST", 0, "Which seeds to run (1-100)", 0},
    {"seed", KEY_SEED, "N", 0, "Run one seed, and print its hash", 0},
    {"servers", KEY_SERVERS, "3|5", 0, "Number of servers (by the seed)", 0},
    {"length", KEY_LENGTH, "SECONDS", 0, "Simulated time with faults (10)", 0},
    {"kinds", KEY_KINDS, "NAME,NAME,...", 0,
     "What may happen in a world, beside the usual faults (those that --list marks)", 0},
    {"always", KEY_ALWAYS, NULL, 0, "All these kinds in every world, not by the seed", 0},
    {"list", KEY_LIST, NULL, 0, "List the kinds, and end", 0},
    {"jobs", KEY_JOBS, "N", 0, "Number of seeds that run at the same time (1)", 0},
    {"directory", KEY_DIRECTORY, "DIR", 0,
     "Directory for the servers' files (/dev/shm), with a short path", 0},
    {"stop", KEY_STOP, NULL, 0, "Stop at the first seed that fails", 0},
    {"trace", KEY_TRACE, NULL, 0, "Print what happens", 0},
    {"hash", KEY_HASH, NULL, 0, "Print the hash of each run: the same seed has the same hash", 0},
    {"coverage", KEY_COVERAGE, NULL, 0, "Print how often each kind of event happened", 0},
    {0}};

static const char doc[] =
    "Runs ensembles of servers in simulated worlds with faults, and judges what their clients "
    "saw.\v"
    "All that happens follows from the seed, so a seed that fails can be run again with "
    "--trace.\n\n"
    "Examples:\n"
    "  conclave-simulate --seeds 1-1000 --jobs 2\n"
    "  conclave-simulate --seed 17 --trace\n";

static uint64_t number(struct argp_state *state, const char *text, uint64_t min, uint64_t max) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *end || value < min || value > max)
        argp_error(state, "'%s' is not a number from %llu to %llu", text, (unsigned long long)min,
                   (unsigned long long)max);
    return value;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    struct request *r = state->input;
    const char *unknown;
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
    case KEY_KINDS:
        if (!kinds_read(text, &r->kinds, &unknown))
            argp_error(state, "kinds: there is no '%s'; see --list", unknown);
        return 0;
    case KEY_ALWAYS: r->always = true; return 0;
    case KEY_LIST: kinds_print(); exit(0);
    case KEY_STOP: r->stop = true; return 0;
    case KEY_HASH: r->hashes = true; return 0;
    case KEY_COVERAGE: r->coverage = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    struct request request = {
        .first = 1, .last = 100, .jobs = 1, .length = 10 * SECOND, .kinds = kinds_default()};
    argp_err_exit_status = EXIT_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (request.tracing) {
        request.jobs = 1;
        setlinebuf(stdout);
    }
    return run_batch(&request);
}
