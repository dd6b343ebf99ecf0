#include "server/report.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

void report_print(struct bytes *out, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t size = (size_t)vsnprintf(NULL, 0, format, arguments);
    vsnprintf((char *)bytes_reserve(out, size + 1), size + 1, format, again);
    out->used += size;
    va_end(again);
    va_end(arguments);
}

static void text(item_fn *each, void *context, const char *word, const char *json,
                 const char *value) {
    each(context, &(struct item){word, json, ITEM_TEXT, {.text = value}});
}

static void number(item_fn *each, void *context, const char *word, const char *json,
                   int64_t value) {
    each(context, &(struct item){word, json, ITEM_NUMBER, {.number = value}});
}

static void hex(item_fn *each, void *context, const char *word, const char *json, int64_t value) {
    each(context, &(struct item){word, json, ITEM_HEX, {.number = value}});
}

/* ---- The server ---- */

const char *report_mode(const struct server *s) {
    const struct raft *raft = &s->replica.raft;
    const struct raft_member *self = raft_member(&raft->config, raft->self);
    if (!s->replica.links) return "standalone";
    if (!raft->leader)
        return replica_is_lost(s) && s->settings.read_only_mode ? "read-only" : "looking";
    if (raft->role == RAFT_LEADER) return "leader";
    return self && self->weight ? "follower" : "observer";
}

static int64_t port_of(const struct settings_addresses *addresses) {
    return addresses->count ? addresses->at[0].port : -1;
}

void report_configuration(const struct server *s, item_fn *each, void *context) {
    const struct settings *settings = &s->settings;
    struct directory_sizes sizes = report_directories(s);
    number(each, context, "clientPort", "client_port", port_of(&settings->clients));
    number(each, context, "secureClientPort", "secure_client_port", port_of(&settings->tls));
    text(each, context, "dataDir", "data_dir", settings->data_dir);
    number(each, context, "dataDirSize", NULL, sizes.data);
    text(each, context, "dataLogDir", "data_log_dir", settings->log_dir);
    number(each, context, "dataLogSize", NULL, sizes.log);
    number(each, context, "tickTime", "tick_time", settings->tick_ms);
    number(each, context, "maxClientCnxns", "max_client_cnxns",
           settings->connections_per_address_max);
    number(each, context, "minSessionTimeout", "min_session_timeout", settings->session_ms_min);
    number(each, context, "maxSessionTimeout", "max_session_timeout", settings->session_ms_max);
    number(each, context, "clientPortListenBacklog", "client_port_listen_backlog",
           settings->backlog);
    number(each, context, "serverId", "server_id",
           settings->server_id < 0 ? 0 : settings->server_id);
}

static int64_t directory_size(int directory) {
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    int64_t size = 0;
    if (!stream && copy >= 0) close(copy);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        struct stat file;
        if (fstatat(directory, entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(file.st_mode))
            size += file.st_size;
    }
    if (stream) closedir(stream);
    return size;
}

struct directory_sizes report_directories(const struct server *s) {
    return (struct directory_sizes){directory_size(s->data_directory),
                                    directory_size(s->log_directory)};
}

/* ---- Where it runs ---- */

static void memory(item_fn *each, void *context, const char *name, uint64_t bytes) {
    char value[32];
    snprintf(value, sizeof value, "%lluMB", (unsigned long long)(bytes >> 20));
    text(each, context, name, name, value);
}

void report_environment(item_fn *each, void *context) {
    char host[256] = "", directory[SETTINGS_PATH_MAX] = "";
    struct utsname os = {0};
    uv_passwd_t user = {0};
    gethostname(host, sizeof host - 1);
    uname(&os);
    bool known = uv_os_get_passwd(&user) == 0;
    if (!getcwd(directory, sizeof directory)) *directory = 0;
    text(each, context, "zookeeper.version", "zookeeper.version", REPORT_VERSION);
    text(each, context, "host.name", "host.name", host);
    text(each, context, "os.name", "os.name", os.sysname);
    text(each, context, "os.arch", "os.arch", os.machine);
    text(each, context, "os.version", "os.version", os.release);
    text(each, context, "user.name", "user.name", known ? user.username : "");
    text(each, context, "user.home", "user.home", known ? user.homedir : "");
    text(each, context, "user.dir", "user.dir", directory);
    uint64_t all = uv_get_total_memory(), most = uv_get_constrained_memory();
    memory(each, context, "os.memory.free", uv_get_free_memory());
    memory(each, context, "os.memory.max", most && most < all ? most : all);
    memory(each, context, "os.memory.total", all);
    if (known) uv_os_free_passwd(&user);
}

/* ---- Connections ---- */

void report_address(const struct connection *c, char address[REPORT_ADDRESS_MAX]) {
    bool six = strchr(c->address, ':');
    snprintf(address, REPORT_ADDRESS_MAX, six ? "[%s]:%d" : "%s:%d", c->address, c->port);
}

int report_interest(const struct connection *c) {
    return (c->stream.reading ? 1 : 0) | (c->stream.sending.used ? 4 : 0);
}

void report_connection(const struct connection *c, bool brief, item_fn *each, void *context) {
    const struct zk_op *op = zk_op_of(c->last_op);
    const struct tally *latency = &c->latency;
    number(each, context, "queued", "outstanding_requests", c->waiting);
    number(each, context, "recved", "packets_received", (int64_t)c->received);
    number(each, context, "sent", "packets_sent", (int64_t)c->sent);
    if (brief || !c->session) return;
    hex(each, context, "sid", "session_id", c->session_id);
    text(each, context, "lop", "last_operation", op ? op->lop : "NA");
    number(each, context, "est", "established", c->established_ms);
    number(each, context, "to", "session_timeout", c->server->live[c->session].timeout_ms);
    if (c->last_xid >= 0) hex(each, context, "lcxid", "last_cxid", c->last_xid);
    hex(each, context, "lzxid", "last_zxid", c->last_zxid);
    number(each, context, "lresp", "last_response_time", (int64_t)(c->last_answer_us / 1000));
    number(each, context, "llat", "last_latency", (int64_t)(latency->last / 1000));
    number(each, context, "minlat", "min_latency", (int64_t)(latency->least / 1000));
    number(each, context, "avglat", "avg_latency", (int64_t)(tally_average(latency) / 1000));
    number(each, context, "maxlat", "max_latency", (int64_t)(latency->most / 1000));
}

/* ---- Who ends when ---- */

static int64_t tick_at(const struct server *s, int64_t ms) {
    int64_t tick = s->settings.tick_ms;
    return (ms + tick - 1) / tick * tick;
}

static int64_t session_end(const struct server *s, uint32_t place) {
    return tick_at(s, s->now_ms + (int64_t)(s->live[place].deadline_ms - s->clock_us / 1000));
}

static int by_time(const void *a, const void *b) {
    const struct expiry *x = a, *y = b;
    return x->at_ms != y->at_ms ? (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms)
                                : (x->session > y->session) - (x->session < y->session);
}

static struct expiry *expiries_of(size_t most) {
    struct expiry *list = malloc((most + 1) * sizeof *list);
    cv_assert(list);
    return list;
}

size_t report_sessions(const struct server *s, struct expiry **expiries) {
    const struct sessions *sessions = &s->tree.sessions;
    struct expiry *list = *expiries = expiries_of(sessions->count);
    size_t count = 0;
    for (uint32_t place = 1; place <= sessions->places && place < s->lives; place++)
        if (sessions->at[place].id)
            list[count++] =
                (struct expiry){.at_ms = session_end(s, place), .session = sessions->at[place].id};
    qsort(list, count, sizeof *list, by_time);
    return count;
}

size_t report_connections(const struct server *s, struct expiry **expiries) {
    struct expiry *list = *expiries = expiries_of(s->connections);
    size_t count = 0;
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        const struct connection *c = s->connection[i];
        if (!c) continue;
        list[count++] = (struct expiry){
            .at_ms = c->session ? session_end(s, c->session)
                                : tick_at(s, c->established_ms + CONNECTION_SILENCE_MS),
            .session = c->session_id,
            .connection = c,
        };
    }
    qsort(list, count, sizeof *list, by_time);
    return count;
}

size_t report_same_time(const struct expiry *from, const struct expiry *end) {
    const struct expiry *at = from;
    while (at < end && at->at_ms == from->at_ms) at++;
    return (size_t)(at - from);
}

/* ---- Watches ---- */

uint32_t report_watch_held(const struct server *s, uint32_t connection, uint32_t after) {
    const struct watches *w = &s->watches;
    if (connection >= w->connections) return 0;
    uint32_t watch = after ? w->watch[after].next_held : w->held[connection];
    while (watch && w->watch[watch].table != WATCH_DATA) watch = w->watch[watch].next_held;
    return watch;
}

uint32_t report_watch_at(const struct server *s, uint32_t path, uint32_t after) {
    const struct watches *w = &s->watches;
    return after ? w->watch[after].next : w->path[path].first[WATCH_DATA];
}

struct watch_count report_watches(const struct server *s) {
    struct watch_count found = {0};
    for (uint32_t i = 1; i <= s->connection_places; i++)
        found.connections += report_watch_held(s, i, 0) != 0;
    for (uint32_t i = 1; i <= s->watches.path_places; i++) {
        uint32_t watch = report_watch_at(s, i, 0);
        found.paths += watch != 0;
        for (; watch; watch = report_watch_at(s, i, watch)) found.watches++;
    }
    return found;
}
