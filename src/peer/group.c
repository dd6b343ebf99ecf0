#include "peer/group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/parse.h"

/* Times are for messages of a millisecond in the laboratory; those of a network, between processes
 * that do not run all the time, may take longer. */
enum { SLOWER = 20 };
enum { FILE_MAX = 1 << 20, EDGES_MAX = GROUP_PROCESSES_MAX * 100 };

void group_init(struct group *group, const struct cv_algorithm *algorithm) {
    *group = (struct group){.algorithm = algorithm};
    for (unsigned i = 0; i < algorithm->option_count; i++) {
        const struct cv_option *option = &algorithm->options[i];
        uint64_t value = option->default_value;
        if (option->type == CV_DURATION && value != CV_UNSET)
            value = value < option->max / SLOWER ? value * SLOWER : option->max;
        group->option[i] = value;
    }
}

void group_free(struct group *group) {
    free(group->member);
    free(group->ids);
    free(group->weights);
    free(group->neighbour);
    free(group->first);
    free(group->edges);
    *group = (struct group){0};
}

/* ---- The file ---- */

struct reading {
    struct group *group;
    const char *name; /* of the file */
    unsigned line;    /* 0: all have been read */
    char *error;
};

static int fail(const struct reading *r, const char *why, const char *word) {
    char line[24] = "";
    if (r->line) snprintf(line, sizeof line, ", line %u", r->line);
    snprintf(r->error, GROUP_ERROR_MAX, "%.120s%s: %s%.80s", r->name, line, why, word);
    return -1;
}

static int read_address(const struct reading *r, const char *text, struct group_member *member) {
    const char *colon = strrchr(text, ':');
    uint64_t port;
    if (!colon || colon == text || parse_u64(colon + 1, &port) != 0 || !port || port > 65535)
        return fail(r, "expected HOST:PORT, found ", text);
    size_t length = (size_t)(colon - text);
    if (*text == '[' && colon[-1] == ']') text++, length -= 2;
    if (!length || length >= GROUP_HOST_MAX)
        return fail(r, "the name of the host is too long: ", text);
    memcpy(member->host, text, length);
    member->host[length] = 0;
    member->port = (int32_t)port;
    return 0;
}

/* Whether there are such processes is looked at when all have been read. */
static int add_edge(const struct reading *r, uint64_t a, uint64_t b, const char *word) {
    struct group *group = r->group;
    if (!a || !b || a > GROUP_PROCESSES_MAX || b > GROUP_PROCESSES_MAX || a == b)
        return fail(r, "an edge joins two processes, which is not said by ", word);
    if (group->edge_count == EDGES_MAX) return fail(r, "there are too many edges", "");
    group->edges[group->edge_count][0] = (cv_pid)a;
    group->edges[group->edge_count++][1] = (cv_pid)b;
    return 0;
}

/* The neighbours of a process, such as 2,3. */
static int read_neighbours(const struct reading *r, char *list, cv_pid p) {
    char *rest;
    uint64_t other;
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (parse_u64(word, &other) != 0)
            return fail(r, "expected processes such as edges=2,3, found ", word);
        if (add_edge(r, p, other, word) != 0) return -1;
    }
    return 0;
}

static int read_attribute(const struct reading *r, char *word, cv_pid p) {
    static const char *const wanted = "expected id=N, weight=N or edges=N,N, found ";
    const char *equals = strchr(word, '=');
    uint64_t value;
    if (strncmp(word, "edges=", 6) == 0) return read_neighbours(r, word + 6, p);
    if (!equals || parse_u64(equals + 1, &value) != 0) return fail(r, wanted, word);
    if (strncmp(word, "id=", 3) == 0 && value) return r->group->ids[p] = value, 0;
    if (strncmp(word, "weight=", 7) == 0) return r->group->weights[p] = value, 0;
    return fail(r, wanted, word);
}

static int read_member(const struct reading *r, const char *pid, char **rest) {
    struct group *group = r->group;
    uint64_t p;
    if (parse_u64(pid, &p) != 0) return fail(r, "expected a pid or edges, found ", pid);
    if (p != group->processes + 1) return fail(r, "pids are 1, 2, 3, ... in order, not ", pid);
    if (p > GROUP_PROCESSES_MAX) return fail(r, "there are too many processes", "");
    const char *address = strtok_r(NULL, " \t", rest);
    if (!address) return fail(r, "the address is missing", "");
    group->processes = (uint32_t)p;
    group->ids[p] = p;
    group->weights[p] = 1;
    if (read_address(r, address, &group->member[p]) != 0) return -1;
    for (char *word; (word = strtok_r(NULL, " \t", rest));)
        if (read_attribute(r, word, (cv_pid)p) != 0) return -1;
    return 0;
}

static int read_edges(const struct reading *r, char **rest) {
    for (char *word; (word = strtok_r(NULL, " \t", rest));) {
        char *dash = strchr(word, '-');
        uint64_t a, b;
        if (dash) *dash = 0;
        bool wrong = !dash || parse_u64(word, &a) != 0 || parse_u64(dash + 1, &b) != 0;
        if (dash) *dash = '-';
        if (wrong) return fail(r, "expected an edge such as 1-2, found ", word);
        if (add_edge(r, a, b, word) != 0) return -1;
    }
    return 0;
}

static void make_room(struct group *group) {
    group->member = calloc(GROUP_PROCESSES_MAX + 1, sizeof *group->member);
    group->ids = calloc(GROUP_PROCESSES_MAX + 1, sizeof *group->ids);
    group->weights = calloc(GROUP_PROCESSES_MAX + 1, sizeof *group->weights);
    group->edges = calloc(EDGES_MAX, sizeof *group->edges);
    cv_assert(group->member && group->ids && group->weights && group->edges);
}

/* ---- What follows from it ---- */

static void add_neighbour(struct group *group, cv_pid p, cv_pid other) {
    for (uint32_t i = group->first[p]; i < group->first[p + 1]; i++)
        if (group->neighbour[i] == other) return;
    group->neighbour[group->first[p + 1]++] = other;
}

/* The neighbours of each process, the one to the right first.  On a one-way ring the others follow,
 * for algorithms that skip the dead. */
static void make_neighbours(struct group *group) {
    uint32_t n = group->processes;
    enum cv_topology needs = group->algorithm->topology;
    if (needs == CV_COMPLETE || n < 2) return;
    size_t room = needs == CV_RING ? (size_t)n * n : 2 * (size_t)(group->edge_count + n);
    group->neighbour = calloc(room, sizeof(cv_pid));
    group->first = calloc((size_t)n + 2, sizeof *group->first);
    cv_assert(group->neighbour && group->first);
    for (cv_pid p = 1; p <= n; p++) {
        uint32_t *end = &group->first[p + 1];
        *end = group->first[p];
        for (uint32_t i = 0; needs == CV_RING && i + 1 < n; i++)
            group->neighbour[(*end)++] = (p + i) % n + 1;
        if (needs == CV_TWO_WAY_RING) group->neighbour[(*end)++] = p % n + 1;
        if (needs == CV_TWO_WAY_RING) group->neighbour[(*end)++] = p == 1 ? n : p - 1;
        for (uint32_t i = 0; needs == CV_GRAPH && i < group->edge_count; i++)
            if (group->edges[i][0] == p || group->edges[i][1] == p)
                add_neighbour(group, p, group->edges[i][group->edges[i][0] == p]);
    }
}

static bool is_connected(const struct group *group) {
    bool *met = calloc((size_t)group->processes + 1, 1), changed = true;
    uint32_t count = 1;
    cv_assert(met);
    met[1] = true;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < group->edge_count; i++) {
            cv_pid a = group->edges[i][0], b = group->edges[i][1];
            if (met[a] == met[b]) continue;
            met[a] = met[b] = changed = true;
            count++;
        }
    }
    free(met);
    return count == group->processes;
}

static uint64_t identify(const struct group *group) {
    const struct cv_algorithm *code = group->algorithm;
    uint64_t hash = hash_long(code->name, strlen(code->name), 0);
    hash = hash_long(group->option, code->option_count * sizeof *group->option, hash);
    for (cv_pid p = 1; p <= group->processes; p++) {
        const struct group_member *m = &group->member[p];
        const uint64_t facts[] = {(uint64_t)m->port, group->ids[p], group->weights[p]};
        hash = hash_long(m->host, strlen(m->host) + 1, hash);
        hash = hash_long(facts, sizeof facts, hash);
    }
    hash = hash_long(group->edges, group->edge_count * sizeof *group->edges, hash);
    return hash ? hash : 1;
}

static int check(struct group *group, const struct reading *r) {
    const struct cv_algorithm *code = group->algorithm;
    group->servers = code->servers ? code->servers(group->option) : 0;
    if (group->processes < group->servers + 1 || group->processes < 2)
        return fail(r, "there are too few processes for ", code->name);
    for (cv_pid p = 1; p <= group->processes; p++)
        for (cv_pid q = 1; q < p; q++)
            if (group->ids[p] == group->ids[q])
                return fail(r, "two processes have the same id", "");
            else if (group->member[p].port == group->member[q].port &&
                     strcmp(group->member[p].host, group->member[q].host) == 0)
                return fail(r, "two processes have the same address, at ", group->member[p].host);
    if (code->topology == CV_GRAPH && !group->edge_count)
        return fail(r, "a line \"edges 1-2 2-3 ...\" is missing, which is needed by ", code->name);
    for (uint32_t i = 0; i < group->edge_count; i++)
        if (group->edges[i][0] > group->processes || group->edges[i][1] > group->processes)
            return fail(r, "an edge joins a process that is not listed", "");
    if (code->topology != CV_GRAPH && group->edge_count)
        return fail(r, "edges are only for networks that are no ring; they mean nothing to ",
                    code->name);
    if (code->topology == CV_GRAPH && !is_connected(group))
        return fail(r, "the edges do not connect all processes", "");
    make_neighbours(group);
    struct cv_env env = group_env(group, 1);
    const char *why = code->refuse ? code->refuse(&env) : NULL;
    return why ? fail(r, why, "") : 0;
}

int group_parse(struct group *group, const char *name, char *text, char error[GROUP_ERROR_MAX]) {
    struct reading r = {group, name, 0, error};
    make_room(group);
    for (char *line = text, *end; line; line = end) {
        char *rest;
        end = strchr(line, '\n');
        if (end) *end++ = 0;
        r.line++;
        line[strcspn(line, "#\r")] = 0;
        const char *word = strtok_r(line, " \t", &rest);
        if (!word) continue;
        int failed =
            strcmp(word, "edges") == 0 ? read_edges(&r, &rest) : read_member(&r, word, &rest);
        if (failed) return -1;
    }
    r.line = 0;
    if (check(group, &r) != 0) return -1;
    group->identity = identify(group);
    return 0;
}

int group_read(struct group *group, const char *path, char error[GROUP_ERROR_MAX]) {
    char *text = malloc(FILE_MAX + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC), result = -1;
    size_t used = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    cv_assert(text);
    while (got > 0 && used < FILE_MAX) {
        got = read(fd, text + used, FILE_MAX - used);
        if (got > 0) used += (size_t)got;
    }
    text[used] = 0;
    if (got < 0)
        snprintf(error, GROUP_ERROR_MAX, "%.200s: %s", path, strerror(errno));
    else if (got > 0 || strlen(text) != used)
        snprintf(error, GROUP_ERROR_MAX, "%.200s: this is no list of peers", path);
    else
        result = group_parse(group, path, text, error);
    if (fd >= 0) close(fd);
    free(text);
    return result;
}

void group_write(const struct group *group, struct bytes *to) {
    char line[GROUP_HOST_MAX + 120];
    for (cv_pid p = 1; p <= group->processes; p++) {
        const struct group_member *m = &group->member[p];
        bool colons = strchr(m->host, ':');
        int length = snprintf(line, sizeof line, "%u %s%s%s:%d id=%" PRIu64 " weight=%" PRIu64 "\n",
                              p, colons ? "[" : "", m->host, colons ? "]" : "", m->port,
                              group->ids[p], group->weights[p]);
        bytes_add(to, line, (size_t)length);
    }
    for (uint32_t i = 0; i < group->edge_count; i++) {
        int length =
            snprintf(line, sizeof line, "edges %u-%u\n", group->edges[i][0], group->edges[i][1]);
        bytes_add(to, line, (size_t)length);
    }
}

struct cv_env group_env(const struct group *group, cv_pid self) {
    struct cv_env env = {.self = self,
                         .processes = group->processes,
                         .servers = group->servers,
                         .option = group->option};
    if (group->algorithm->problem != CV_ELECTION) return env;
    env.id = group->ids[self], env.weight = group->weights[self];
    env.ids = group->ids, env.weights = group->weights;
    env.degree = group->processes - 1;
    if (!group->neighbour) return env;
    env.degree = group->first[self + 1] - group->first[self];
    if (group->algorithm->topology == CV_RING) env.degree = 1;
    env.neighbours = group->neighbour + group->first[self];
    return env;
}

bool group_reaches(const struct group *group, cv_pid from, cv_pid to) {
    if (from == to) return false;
    if (group->algorithm->topology != CV_GRAPH) return true;
    for (uint32_t i = group->first[from]; i < group->first[from + 1]; i++)
        if (group->neighbour[i] == to) return true;
    return false;
}
