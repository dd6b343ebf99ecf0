#include "load.h"

#include <stdio.h>
#include <unistd.h>

enum {
    SESSION_MS = 40000,
    FRAME_MAX = 1 << 20,
    PENDING_MAX = 512,      /* unmeasured requests at a time: their answers fit where they arrive */
    DIRECTORY_NODES = 1000, /* nodes that are created below one directory */
    XID_OFFSET = 4,         /* in a frame: its length is in front */
    PATH_OFFSET = 16,       /* of a path that is the first field: a header and its length too */
};

/* ---- The protocol ---- */

static void greet(struct connection *c) {
    size_t frame = zk_frame_begin(&c->out);
    zk_write_connect_request(
        &c->out, &(struct zk_connect_request){.timeout = SESSION_MS,
                                              .session_id = c->session,
                                              .passwd = {c->password, sizeof c->password}});
    zk_frame_end(&c->out, frame);
}

static bool greeted(struct connection *c, struct zk_in *received) {
    struct zk_in frame;
    struct zk_connect_response response;
    if (zk_next_frame(received, FRAME_MAX, &frame) != 1) return false;
    if (!zk_read_connect_response(&frame, &response) || !response.session_id)
        die("the server refuses a session");
    c->session = response.session_id;
    if (response.passwd.size == PASSWORD_BYTES)
        memcpy(c->password, response.passwd.at, PASSWORD_BYTES);
    return true;
}

static bool next(struct load *load, struct connection *c, struct zk_in *received,
                 struct reply *reply) {
    struct zk_reply_header header;
    int found = zk_next_frame(received, FRAME_MAX, &reply->body);
    if (found == 0) return false;
    if (found < 0 || !zk_read_reply_header(&reply->body, &header))
        die("connection %u: not a reply", c->index);
    reply->slot = header.xid == ZK_XID_EVENT ? EVENT : (unsigned)header.xid;
    reply->err = header.err;
    if (reply->slot != EVENT && reply->slot >= load->outstanding)
        die("connection %u: a reply to nothing", c->index);
    return true;
}

static void farewell(struct connection *c) {
    size_t frame = zk_frame_begin(&c->out);
    zk_write_request_header(&c->out, &(struct zk_request_header){0, ZK_OP_CLOSE_SESSION});
    zk_frame_end(&c->out, frame);
}

const struct protocol zookeeper = {"zookeeper", greet, greeted, next, farewell};

/* ---- Requests ---- */

size_t frame_size(const unsigned char *frame) {
    struct zk_in in = zk_in_of(frame, XID_OFFSET);
    int32_t length = 0;
    zk_read_i32(&in, &length);
    return XID_OFFSET + (size_t)length;
}

void send_frame(struct connection *c, const unsigned char *frame, unsigned slot) {
    size_t size = frame_size(frame);
    unsigned char *to = memcpy(bytes_extend(&c->out, size), frame, size);
    zk_store_i32(to + XID_OFFSET, &(int32_t){(int32_t)slot});
}

void send_create(struct bytes *out, unsigned slot, const char *path, struct zk_text data,
                 int32_t flags) {
    static struct bytes anyone;
    if (!anyone.used)
        zk_write_acl(&anyone, &(struct zk_acl){31, {zk_text_of("world"), zk_text_of("anyone")}});
    struct zk_acls acl = {anyone.at, anyone.used, 1};
    SEND(out, slot, ZK_OP_CREATE, create_request, zk_text_of(path), data, acl, flags);
}

static struct zk_text value_of(const struct load *load) {
    return (struct zk_text){load->data, (int32_t)load->value};
}

static void settle_on(struct load *load, struct connection *c) {
    struct reply reply;
    flush_all(c);
    while (load->pending) {
        if (!receive(c, 0)) die("the server ended the connection that prepares the run");
        struct zk_in received = zk_in_of(c->in, c->in_used);
        for (; next(load, c, &received, &reply); load->pending--)
            if (reply.err && reply.err != ZK_NODEEXISTS)
                die("preparing the run: %s", zk_error_name(reply.err));
        keep_rest(c, &received);
    }
}

void settle(struct load *load) { settle_on(load, load->all); }

void make_node(struct load *load, const char *path, struct zk_text data) {
    send_create(&load->all->out, 0, path, data, ZK_PERSISTENT);
    if (++load->pending == PENDING_MAX) settle(load);
}

void remove_node(struct load *load, const char *path) {
    SEND(&load->all->out, 0, ZK_OP_DELETE, delete_request, zk_text_of(path), -1);
    if (++load->pending == PENDING_MAX) settle(load);
}

/* ---- get and set: nodes that are there ---- */

static const char *key_path(unsigned key) {
    static char path[PATH_ROOM];
    snprintf(path, sizeof path, "/load/data/%04u", key);
    return path;
}

static void prepare_keys(struct load *load) {
    make_node(load, "/load", zk_null());
    make_node(load, "/load/data", zk_null());
    for (unsigned key = 0; key < KEYS; key++) make_node(load, key_path(key), value_of(load));
    settle(load);
}

/* After the answer to a write a connection shows all earlier writes, whichever server it is to. */
static void catch_up(struct load *load) {
    for (unsigned i = 0; i < load->opened; i++)
        SEND(&load->all[i].out, 0, ZK_OP_SET_DATA, set_data_request, zk_text_of(key_path(0)),
             value_of(load), -1);
    for (unsigned i = 0; i < load->opened; i++) {
        load->pending = 1;
        settle_on(load, &load->all[i]);
    }
}

static void prepare_get(struct load *load) {
    prepare_keys(load);
    for (unsigned key = 0; key < KEYS; key++)
        SEND(&load->frames, 0, ZK_OP_GET_DATA, get_data_request, zk_text_of(key_path(key)), false);
    load->frame_bytes = load->frames.used / KEYS;
    catch_up(load);
}

static void prepare_set(struct load *load) {
    prepare_keys(load);
    for (unsigned key = 0; key < KEYS; key++)
        SEND(&load->frames, 0, ZK_OP_SET_DATA, set_data_request, zk_text_of(key_path(key)),
             value_of(load), -1);
    load->frame_bytes = load->frames.used / KEYS;
}

static void begin_key(struct load *load, struct connection *c, unsigned slot) {
    size_t key = load->begun * 7919 % KEYS; /* a prime: all keys, in no order of theirs */
    send_frame(c, load->frames.at + key * load->frame_bytes, slot);
}

static void answer_get(struct load *load, struct connection *c, const struct reply *reply) {
    struct zk_in body = reply->body;
    int32_t size;
    if (reply->err || !zk_read_i32(&body, &size) || size != (int32_t)load->value)
        cycle_failed(load, c, reply->slot);
    else
        cycle_done(load, c, reply->slot);
}

static void answer_write(struct load *load, struct connection *c, const struct reply *reply) {
    if (reply->err)
        cycle_failed(load, c, reply->slot);
    else
        cycle_done(load, c, reply->slot);
}

const struct operation zookeeper_get = {"get",     &zookeeper, prepare_get,
                                        begin_key, answer_get, .finish = NULL};
const struct operation zookeeper_set = {"set",     &zookeeper,   prepare_set,
                                        begin_key, answer_write, .finish = NULL};

/* ---- create: nodes that are not there ----
 *
 * A connection fills one directory after another.  A directory is created like a node, just before
 * the first node in it: requests of a connection are served in order. */

enum { DIRECTORY_DIGITS = 5, NODE_DIGITS = 4 };

static void create_path(char path[PATH_ROOM], unsigned connection, uint32_t number) {
    uint32_t directory = number / (DIRECTORY_NODES + 1), node = number % (DIRECTORY_NODES + 1);
    int used = snprintf(path, PATH_ROOM, "/load/%07d-%05u/%0*u", getpid(), connection,
                        DIRECTORY_DIGITS, directory);
    if (node) snprintf(path + used, PATH_ROOM - (size_t)used, "/%0*u", NODE_DIGITS, node);
}

static void prepare_create(struct load *load) {
    char path[PATH_ROOM];
    make_node(load, "/load", zk_null());
    for (unsigned i = 0; i < load->opened; i++) {
        snprintf(path, sizeof path, "/load/%07d-%05u", getpid(), i);
        make_node(load, path, zk_null());
        create_path(path, i, 1);
        send_create(&load->all[i].frames, 0, path, value_of(load), ZK_PERSISTENT);
    }
    load->path_end = PATH_OFFSET + strlen(path);
    settle(load);
}

static void store_digits(unsigned char *end, unsigned digits, uint32_t number) {
    for (; digits; digits--, number /= 10) *--end = (unsigned char)('0' + number % 10);
}

static void begin_create(struct load *load, struct connection *c, unsigned slot) {
    uint32_t number = c->made++;
    uint32_t directory = number / (DIRECTORY_NODES + 1), node = number % (DIRECTORY_NODES + 1);
    if (node == 0) {
        char path[PATH_ROOM];
        create_path(path, c->index, number);
        send_create(&c->out, slot, path, zk_null(), ZK_PERSISTENT);
        return;
    }
    unsigned char *end = c->frames.at + load->path_end; /* only digits differ */
    store_digits(end, NODE_DIGITS, node);
    store_digits(end - NODE_DIGITS - 1, DIRECTORY_DIGITS, directory);
    send_frame(c, c->frames.at, slot);
}

static void remove_created(struct load *load) {
    char path[PATH_ROOM];
    if (load->keep) return;
    for (unsigned i = 0; i < load->opened; i++)
        for (uint32_t number = load->all[i].made; number--;) {
            create_path(path, i, number);
            remove_node(load, path);
        }
    settle(load);
}

const struct operation zookeeper_create = {
    "create", &zookeeper, prepare_create, begin_create, answer_write, remove_created, false};
