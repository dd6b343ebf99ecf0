/* What words and HTTP report, each thing described once. */
#include "service/admin/internal.h"

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
    const struct raft *raft = ensemble_status(s->ensemble).raft;
    const struct raft_member *self = raft_find_member(&raft->config, raft->self);
    if (ensemble_is_standalone(s->ensemble)) return "standalone";
    if (!raft->leader)
        return ensemble_is_leaderless(s->ensemble) && s->settings.read_only_mode ? "read-only"
                                                                                 : "looking";
    if (raft->role == RAFT_LEADER) return "leader";
    return self && self->weight ? "follower" : "observer";
}

const char *report_peer_state(const struct server *s) {
    const char *mode = report_mode(s);
    if (ensemble_is_standalone(s->ensemble)) return NULL;
    if (strcmp(mode, "leader") == 0) return "leading - broadcast";
    if (strcmp(mode, "follower") == 0) return "following - broadcast";
    if (strcmp(mode, "observer") == 0) return "observing - broadcast";
    return "looking";
}

bool report_is_learning(const struct raft_member *member, const struct member_list *target) {
    const struct member *later = member_list_find(target, member->id);
    return !member->weight && later && !later->observer && later->weight;
}

static int64_t port_of(const struct settings_addresses *addresses) {
    return addresses->count ? addresses->at[0].port : -1;
}

/* What a server of an ensemble has besides. */
static void report_part_in_ensemble(const struct server *s, item_fn *each, void *context) {
    const struct settings *settings = &s->settings;
    struct member_list members = {0};
    ensemble_members(s->ensemble, &members);
    int32_t id = ensemble_status(s->ensemble).raft->self;
    const struct member *own = member_list_find(&members, id);
    if (!own) own = member_list_find(&settings->members, id);
    if (ensemble_is_standalone(s->ensemble) || !own) return;
    number(each, context, "initLimit", "init_limit", settings->init_ticks);
    number(each, context, "syncLimit", "sync_limit", settings->sync_ticks);
    number(each, context, "electionAlg", "election_alg", 3);
    number(each, context, "electionPort", "election_port", own->election_port);
    number(each, context, "quorumPort", "quorum_port", own->peer_port);
    number(each, context, "peerType", "peer_type", own->observer);
}

/* The lines of the members, and their version, as in the node /zookeeper/config. */
struct zk_text report_membership(const struct server *s) {
    node_id id = tree_find(&s->tree, zk_text_of("/zookeeper/config"));
    if (ensemble_is_standalone(s->ensemble) || !id) return (struct zk_text){0};
    return node_data(&s->tree.node[id]);
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
    report_part_in_ensemble(s, each, context);
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
    struct ensemble_status status = ensemble_status(s->ensemble);
    return (struct directory_sizes){directory_size(status.data_directory),
                                    directory_size(status.log_directory)};
}

/* ---- Where it runs ---- */

static void memory(item_fn *each, void *context, const char *name, uint64_t bytes) {
    char value[32];
    snprintf(value, sizeof value, "%lluMB", (unsigned long long)(bytes >> 20));
    text(each, context, name, name, value);
}

void report_environment(item_fn *each, void *context) {
    /* Agents expect them; ZooKeeper says the same where there is nothing. */
    static const char *const of_java[] = {"java.version",    "java.vendor",       "java.home",
                                          "java.class.path", "java.library.path", "java.compiler"};
    const char *temporary = getenv("TMPDIR");
    char host[256] = "", directory[SETTINGS_PATH_MAX] = "";
    struct utsname os = {0};
    uv_passwd_t user = {0};
    gethostname(host, sizeof host - 1);
    uname(&os);
    bool known = uv_os_get_passwd(&user) == 0;
    if (!getcwd(directory, sizeof directory)) *directory = 0;
    text(each, context, "zookeeper.version", "zookeeper.version", report_version);
    text(each, context, "host.name", "host.name", host);
    for (size_t i = 0; i < sizeof of_java / sizeof *of_java; i++)
        text(each, context, of_java[i], of_java[i], "<NA>");
    text(each, context, "java.io.tmpdir", "java.io.tmpdir", temporary ? temporary : "/tmp");
    text(each, context, "os.name", "os.name", os.sysname);
    text(each, context, "os.arch", "os.arch", os.machine);
    text(each, context, "os.version", "os.version", os.release);
    text(each, context, "user.name", "user.name", known ? user.username : "");
    text(each, context, "user.home", "user.home", known ? user.homedir : "");
    text(each, context, "user.dir", "user.dir", directory);
    uint64_t all = uv_get_total_memory(), max = uv_get_constrained_memory();
    memory(each, context, "os.memory.free", uv_get_free_memory());
    memory(each, context, "os.memory.max", max && max < all ? max : all);
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
    number(each, context, "to", "session_timeout", c->server->sessions.at[c->session].timeout_ms);
    if (c->last_xid >= 0) hex(each, context, "lcxid", "last_cxid", c->last_xid);
    hex(each, context, "lzxid", "last_zxid", c->last_zxid);
    number(each, context, "lresp", "last_response_time", (int64_t)(c->last_answer_us / 1000));
    number(each, context, "llat", "last_latency", (int64_t)(latency->last / 1000));
    number(each, context, "minlat", "min_latency", (int64_t)(latency->min / 1000));
    number(each, context, "avglat", "avg_latency", (int64_t)(tally_average(latency) / 1000));
    number(each, context, "maxlat", "max_latency", (int64_t)(latency->max / 1000));
}

/* ---- Expiries ---- */

static int64_t tick_at(const struct server *s, int64_t ms) {
    int64_t tick = s->settings.tick_ms;
    return (ms + tick - 1) / tick * tick;
}

static int64_t session_end(const struct server *s, uint32_t slot) {
    return tick_at(s, s->clock.now_ms +
                          (int64_t)(session_deadline_ms(s, slot) - s->clock.monotonic_us / 1000));
}

bool report_knows_expiries(const struct server *s) {
    return ensemble_is_standalone(s->ensemble) || ensemble_leads(s->ensemble);
}

bool report_is_before(const struct expiry *a, const struct expiry *b) {
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->session < b->session;
}

struct expiry report_session_expiry(const struct server *s, uint32_t slot) {
    const struct session *session = &s->tree.sessions.at[slot];
    int64_t at_ms = report_knows_expiries(s) ? session_end(s, slot) : 0;
    return (struct expiry){
        .at_ms = at_ms, .session = session->id, .timeout_ms = session->timeout_ms};
}

struct expiry report_connection_expiry(const struct connection *c) {
    const struct server *s = c->server;
    struct expiry expiry = {.at_ms = c->session
                                         ? session_end(s, c->session)
                                         : tick_at(s, c->established_ms + CONNECTION_HANDSHAKE_MS),
                            .session = c->session_id};
    report_address(c, expiry.address);
    return expiry;
}

/* ---- Watches ---- */

uint32_t report_watch_held(const struct server *s, uint32_t connection, uint32_t after) {
    const struct watches *w = &s->watches;
    if (connection >= w->connections || !s->connections.at[connection]) return 0;
    uint32_t watch = after ? w->watch[after].next_held : w->held[connection];
    while (watch && w->watch[watch].table != WATCH_DATA) watch = w->watch[watch].next_held;
    return watch;
}

uint32_t report_watch_at(const struct server *s, uint32_t path, uint32_t after) {
    const struct watches *w = &s->watches;
    uint32_t watch = after ? w->watch[after].next : w->path[path].first[WATCH_DATA];
    while (watch && !s->connections.at[w->watch[watch].connection]) watch = w->watch[watch].next;
    return watch;
}

struct watch_count report_watches(const struct server *s) {
    struct watch_count found = {0};
    for (uint32_t i = 1; i <= s->connections.slots; i++)
        found.connections += report_watch_held(s, i, 0) != 0;
    for (uint32_t i = 1; i <= s->watches.path_slots; i++) {
        uint32_t watch = report_watch_at(s, i, 0);
        found.paths += watch != 0;
        for (; watch; watch = report_watch_at(s, i, watch)) found.watches++;
    }
    return found;
}
