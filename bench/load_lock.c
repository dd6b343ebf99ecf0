#include "load.h"

#include <stdio.h>

/* ---- Locks ----
 *
 * ZooKeeper's recipe.  A client creates an ephemeral sequential node in the lock's directory and
 * lists the directory; when its node is the lowest it has the lock, and deletes the node to give it
 * back; else it waits until the node before its own is deleted, and lists again.
 *
 * In `lock` each slot of each connection has a lock of its own, in `contended` all have the same.
 */

enum lock_step { CREATING, LISTING, WATCHING, WAITING, DELETING };

/* The requests that need not be made anew: of each slot, to create and to list. */
static void make_lock(struct load *load, struct connection *c, const char *directory) {
    char prefix[PATH_ROOM];
    make_node(load, directory, zk_null());
    snprintf(prefix, sizeof prefix, "%s/l-", directory);
    send_create(&c->frames, 0, prefix, zk_null(), ZK_EPHEMERAL_SEQUENTIAL);
    SEND(&c->frames, 0, ZK_OP_GET_CHILDREN, get_children_request, zk_text_of(directory), false);
}

static void prepare_lock(struct load *load) {
    char directory[PATH_ROOM];
    make_node(load, "/load", zk_null());
    make_node(load, "/load/lock", zk_null());
    for (unsigned i = 0; i < load->opened; i++)
        for (unsigned slot = 0; slot < load->outstanding; slot++) {
            snprintf(directory, sizeof directory, "/load/lock/%05u-%04u", i, slot);
            make_lock(load, &load->all[i], directory);
        }
    load->frame_bytes = load->all->frames.used / load->outstanding;
    settle(load);
}

static void prepare_contended(struct load *load) {
    if (load->outstanding != 1) die("contended: a client waits for one lock, --outstanding 1");
    make_node(load, "/load", zk_null());
    for (unsigned i = 0; i < load->opened; i++) make_lock(load, &load->all[i], "/load/contended");
    settle(load);
}

static void begin_lock(struct load *load, struct connection *c, unsigned slot) {
    c->slots[slot].step = CREATING;
    send_frame(c, c->frames.at + slot * load->frame_bytes, slot);
}

static void list(struct load *load, struct connection *c, unsigned slot) {
    const unsigned char *create = c->frames.at + slot * load->frame_bytes;
    c->slots[slot].step = LISTING;
    send_frame(c, create + frame_size(create), slot);
}

/* The node just before our own, or null; names differ in their number only. */
static struct zk_text name_before(struct zk_texts names, const char *own) {
    struct zk_text before = zk_null(), other;
    while (zk_texts_next(&names, &other))
        if (memcmp(other.at, own, (size_t)other.size) < 0 &&
            (before.size < 0 || memcmp(other.at, before.at, (size_t)other.size) > 0))
            before = other;
    return before;
}

static void listed(struct connection *c, unsigned slot, struct zk_texts names) {
    struct slot *s = &c->slots[slot];
    char *own = strrchr(s->path, '/') + 1;
    struct zk_text before = name_before(names, own);
    if (before.size < 0) {
        s->step = DELETING;
        SEND(&c->out, slot, ZK_OP_DELETE, delete_request, zk_text_of(s->path), -1);
        return;
    }
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%.*s%.*s", (int)(own - s->path), s->path, before.size, before.at);
    s->step = WATCHING;
    SEND(&c->out, slot, ZK_OP_EXISTS, exists_request, zk_text_of(path), true);
}

static void answer_lock(struct load *load, struct connection *c, const struct reply *reply) {
    unsigned slot = reply->slot == EVENT ? 0 : reply->slot;
    struct slot *s = &c->slots[slot];
    struct zk_in body = reply->body;
    struct zk_create_response created;
    struct zk_get_children_response children;
    bool gone = s->step == WATCHING && reply->err == ZK_NONODE;
    if (reply->slot == EVENT ? s->step == WAITING : gone) {
        list(load, c, slot);
    } else if (reply->err || reply->slot == EVENT) {
        cycle_failed(load, c, slot);
    } else if (s->step == CREATING && zk_read_create_response(&body, &created)) {
        snprintf(s->path, sizeof s->path, "%.*s", created.path.size, created.path.at);
        list(load, c, slot);
    } else if (s->step == LISTING && zk_read_get_children_response(&body, &children)) {
        listed(c, slot, children.children);
    } else if (s->step == WATCHING) {
        s->step = WAITING;
    } else if (s->step == DELETING) {
        cycle_done(load, c, slot);
    } else {
        cycle_failed(load, c, slot);
    }
}

const struct operation zookeeper_lock = {"lock",      &zookeeper, prepare_lock, begin_lock,
                                         answer_lock, NULL,       false};
const struct operation zookeeper_contended = {
    "contended", &zookeeper, prepare_contended, begin_lock, answer_lock, NULL, false};

/* ---- Watchers ----
 *
 * The first connection sets a node that all others watch, and when they all have heard of it and
 * watch it again, sets it again.  Measured from the set until all have the event, and the setter
 * its answer. */

static const char watched[] = "/load/watched";

static void prepare_watchers(struct load *load) {
    if (load->outstanding != 1) die("watchers: one change at a time, --outstanding 1");
    make_node(load, "/load", zk_null());
    make_node(load, watched, zk_null());
    settle(load);
}

static void begin_round(struct load *load, struct connection *setter, unsigned slot) {
    (void)setter, (void)slot;
    load->armed = load->notified = 0;
    for (unsigned i = 1; i < load->opened; i++) {
        struct connection *c = &load->all[i];
        SEND(&c->out, 0, ZK_OP_EXISTS, exists_request, zk_text_of(watched), true);
        flush(load, c);
    }
}

static void answer_watchers(struct load *load, struct connection *c, const struct reply *reply) {
    struct connection *setter = load->all;
    unsigned watchers = load->opened - 1;
    if (reply->err) die("watchers: %s", zk_error_name(reply->err));
    if (reply->slot == EVENT) {
        load->notified++;
    } else if (c == setter) {
        load->armed = 0;
    } else if (++load->armed == watchers) {
        setter->slots->began = load->now = clock_ns();
        SEND(&setter->out, 0, ZK_OP_SET_DATA, set_data_request, zk_text_of(watched), zk_null(), -1);
        flush(load, setter);
    }
    if (load->notified == watchers && !load->armed) cycle_done(load, setter, 0);
}

const struct operation zookeeper_watchers = {
    "watchers", &zookeeper, prepare_watchers, begin_round, answer_watchers, NULL, true};
