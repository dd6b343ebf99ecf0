#include "load.h"

#include <stdio.h>

/* etcd speaks gRPC: calls in HTTP/2 streams, whose messages are protocol buffers.  This is as much
 * of it as a client needs that makes a call with one short message and gets one short message back:
 * ready-made headers, nothing compressed, and windows so large that they need no thought.  Answers'
 * headers are not decoded: a call that has failed is one without a message. */

enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RESET = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_WINDOW = 8,
};

enum {
    FRAME_HEAD = 9, /* 3 bytes of length, type, flags, 4 bytes of stream */
    STREAM_OFFSET = 5,
    END_STREAM = 1, /* flags */
    ACKNOWLEDGED = 1,
    END_HEADERS = 4,
    MESSAGE_HEAD = 5,       /* of gRPC: not compressed, 4 bytes of length */
    STREAMS = 1 << 16,      /* a power of two; more than there are at a time */
    WINDOW = 1 << 30,       /* bytes that the server may send before a window update, */
    UPDATE_AFTER = 1 << 20, /* which is sent after so many */
    LEASE_S = 600,
};

struct streams {
    uint32_t next, received;
    uint32_t slot[STREAMS]; /* by half the stream's number: 1 more than the slot; 0: none */
};

/* ---- Writing ---- */

static void put_number(unsigned char *to, unsigned size, uint32_t value) {
    while (size--) {
        to[size] = (unsigned char)value;
        value >>= 8;
    }
}

static uint32_t number_at(const unsigned char *from, unsigned size) {
    uint32_t value = 0;
    while (size--) value = value << 8 | *from++;
    return value;
}

static size_t frame_begin(struct bytes *out, enum frame_type type, unsigned flags) {
    size_t frame = out->used;
    unsigned char *head = bytes_extend(out, FRAME_HEAD);
    memset(head, 0, FRAME_HEAD);
    head[3] = (unsigned char)type;
    head[4] = (unsigned char)flags;
    return frame;
}

static void frame_end(struct bytes *out, size_t frame) {
    put_number(out->at + frame, 3, (uint32_t)(out->used - frame - FRAME_HEAD));
}

static void add_window(struct bytes *out, uint32_t more) {
    size_t frame = frame_begin(out, FRAME_WINDOW, 0);
    put_number(bytes_extend(out, 4), 4, more);
    frame_end(out, frame);
}

static void add_byte(struct bytes *out, unsigned byte) {
    *bytes_extend(out, 1) = (unsigned char)byte;
}

static void add_short_text(struct bytes *out, const char *text) {
    add_byte(out, (unsigned)strlen(text)); /* below 127, and not Huffman's code */
    bytes_add(out, text, strlen(text));
}

/* By the static table of HPACK, and never to be remembered. */
static void add_headers(struct bytes *out, const char *method) {
    size_t frame = frame_begin(out, FRAME_HEADERS, END_HEADERS);
    add_byte(out, 0x83); /* :method POST */
    add_byte(out, 0x86); /* :scheme http */
    add_byte(out, 0x04); /* :path */
    add_short_text(out, method);
    add_byte(out, 0x01); /* :authority */
    add_short_text(out, "etcd");
    add_byte(out, 0x0f), add_byte(out, 31 - 15); /* content-type */
    add_short_text(out, "application/grpc");
    add_byte(out, 0x00);
    add_short_text(out, "te");
    add_short_text(out, "trailers");
    frame_end(out, frame);
}

static void add_varint(struct bytes *out, uint64_t value) {
    for (; value > 0x7f; value >>= 7) add_byte(out, (unsigned)(value & 0x7f) | 0x80);
    add_byte(out, (unsigned)value);
}

enum wire { VARINT = 0, LENGTH = 2 };

static void add_field(struct bytes *out, unsigned field, const void *at, size_t size) {
    add_byte(out, field << 3 | LENGTH);
    add_varint(out, size);
    bytes_add(out, at, size);
}

static void add_field_number(struct bytes *out, unsigned field, uint64_t value) {
    add_byte(out, field << 3 | VARINT);
    add_varint(out, value);
}

/* A ready-made call: all but the number of its stream, which is twice in it. */
static void add_call(struct bytes *out, const char *method, const struct bytes *message) {
    add_headers(out, method);
    size_t frame = frame_begin(out, FRAME_DATA, END_STREAM);
    unsigned char *head = bytes_extend(out, MESSAGE_HEAD);
    head[0] = 0;
    put_number(head + 1, 4, (uint32_t)message->used);
    bytes_add(out, message->at, message->used);
    frame_end(out, frame);
}

static void send_call(struct connection *c, const unsigned char *call, size_t size, unsigned slot) {
    struct streams *s = c->streams;
    unsigned char *to = memcpy(bytes_extend(&c->out, size), call, size);
    uint32_t stream = s->next;
    s->next += 2;
    s->slot[stream / 2 % STREAMS] = slot + 1;
    put_number(to + STREAM_OFFSET, 4, stream);
    put_number(to + FRAME_HEAD + number_at(to, 3) + STREAM_OFFSET, 4, stream);
}

static void send_new_call(struct connection *c, const char *method, struct bytes *message,
                          unsigned slot) {
    struct bytes call = {0};
    add_call(&call, method, message);
    send_call(c, call.at, call.used, slot);
    bytes_close(&call);
    bytes_close(message);
}

/* ---- Reading ---- */

static void greet(struct connection *c) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    if (!c->streams) c->streams = malloc(sizeof *c->streams);
    cv_assert(c->streams);
    *c->streams = (struct streams){.next = 1};
    bytes_add(&c->out, preface, sizeof preface - 1);
    frame_end(&c->out, frame_begin(&c->out, FRAME_SETTINGS, 0));
    add_window(&c->out, WINDOW);
}

static const unsigned char *next_frame(struct zk_in *received, size_t *length) {
    const unsigned char *frame = received->at;
    if (zk_left(received) < FRAME_HEAD) return NULL;
    *length = number_at(frame, 3);
    if (zk_left(received) < FRAME_HEAD + *length) return NULL;
    received->at += FRAME_HEAD + *length;
    return frame;
}

static void acknowledge(struct connection *c, enum frame_type type, const unsigned char *payload,
                        size_t size) {
    size_t frame = frame_begin(&c->out, type, ACKNOWLEDGED);
    bytes_add(&c->out, payload, size);
    frame_end(&c->out, frame);
}

static bool greeted(struct connection *c, struct zk_in *received) {
    size_t length;
    const unsigned char *frame = next_frame(received, &length);
    if (!frame) return false;
    if (frame[3] != FRAME_SETTINGS) die("connection %u: this is not etcd", c->index);
    acknowledge(c, FRAME_SETTINGS, NULL, 0);
    return true;
}

static void take_data(struct connection *c, struct slot *slot, const unsigned char *payload,
                      size_t size) {
    if (slot) bytes_add(&slot->body, payload, size);
    c->streams->received += (uint32_t)size;
    if (c->streams->received < UPDATE_AFTER) return;
    add_window(&c->out, c->streams->received);
    c->streams->received = 0;
}

/* The end of a stream is an answer. */
static bool next(struct load *load, struct connection *c, struct zk_in *received,
                 struct reply *reply) {
    const unsigned char *frame;
    for (size_t length; (frame = next_frame(received, &length));) {
        const unsigned char *payload = frame + FRAME_HEAD;
        unsigned type = frame[3], flags = frame[4];
        uint32_t *call = &c->streams->slot[number_at(frame + STREAM_OFFSET, 4) / 2 % STREAMS];
        bool of_call = type == FRAME_DATA || type == FRAME_HEADERS || type == FRAME_RESET;
        if (of_call && *call > load->outstanding) die("connection %u: no such call", c->index);
        struct slot *slot = of_call && *call ? &c->slots[*call - 1] : NULL;
        if (type == FRAME_DATA) take_data(c, slot, payload, length);
        if (type == FRAME_PING && !(flags & ACKNOWLEDGED))
            acknowledge(c, FRAME_PING, payload, length);
        if (type == FRAME_SETTINGS && !(flags & ACKNOWLEDGED))
            acknowledge(c, FRAME_SETTINGS, NULL, 0);
        if (!slot || (type != FRAME_RESET && !(flags & END_STREAM))) continue;
        bool whole = type != FRAME_RESET && slot->body.used >= MESSAGE_HEAD;
        *reply = (struct reply){.slot = *call - 1, .err = !whole};
        if (whole)
            reply->body = zk_in_of(slot->body.at + MESSAGE_HEAD, slot->body.used - MESSAGE_HEAD);
        slot->body.used = 0; /* the bytes stay until the next answer to this slot */
        *call = 0;
        return true;
    }
    return false;
}

const struct protocol etcd = {"etcd", greet, greeted, next, NULL};

static bool read_varint(struct zk_in *in, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; in->at < in->end && shift < 64; shift += 7) {
        *value |= (uint64_t)(*in->at & 0x7f) << shift;
        if (!(*in->at++ & 0x80)) return true;
    }
    return false;
}

/* A field of a message: its number, or its bytes; false: it has none such. */
static bool find_field(struct zk_in in, unsigned field, uint64_t *number, struct zk_text *text) {
    for (uint64_t key; read_varint(&in, &key);) {
        *text = zk_null();
        if (!read_varint(&in, number)) return false;
        if ((key & 7) == LENGTH) {
            if (*number > zk_left(&in)) return false;
            *text = (struct zk_text){(const char *)in.at, (int32_t)*number};
            in.at += *number;
        } else if ((key & 7) != VARINT) {
            return false;
        }
        if (key >> 3 == field) return true;
    }
    return false;
}

/* ---- set: values of keys ---- */

static void prepare_set(struct load *load) {
    for (unsigned key = 0; key < KEYS; key++) {
        struct bytes message = {0};
        char text[PATH_ROOM];
        int size = snprintf(text, sizeof text, "/load/data/%04u", key);
        add_field(&message, 1, text, (size_t)size);
        add_field(&message, 2, load->data, load->value);
        add_call(&load->frames, "/etcdserverpb.KV/Put", &message);
        bytes_close(&message);
    }
    load->frame_bytes = load->frames.used / KEYS;
}

static void begin_set(struct load *load, struct connection *c, unsigned slot) {
    size_t key = load->begun * 7919 % KEYS;
    send_call(c, load->frames.at + key * load->frame_bytes, load->frame_bytes, slot);
}

static void answer_set(struct load *load, struct connection *c, const struct reply *reply) {
    if (reply->err)
        cycle_failed(load, c, reply->slot);
    else
        cycle_done(load, c, reply->slot);
}

const struct operation etcd_set = {"set", &etcd, prepare_set, begin_set, answer_set, NULL, false};

/* ---- contended: the lock that etcd itself has, with a lease for each client ---- */

enum lock_step { LOCKING, UNLOCKING };

static uint64_t grant_lease(struct load *load, struct connection *c) {
    struct bytes message = {0};
    struct reply reply;
    struct zk_text text;
    uint64_t lease;
    add_field_number(&message, 1, LEASE_S);
    send_new_call(c, "/etcdserverpb.Lease/LeaseGrant", &message, 0);
    flush_all(c);
    for (bool found = false; !found;) {
        if (!receive(c, 0)) die("connection %u: no lease", c->index);
        struct zk_in received = zk_in_of(c->in, c->in_used);
        found = next(load, c, &received, &reply);
        keep_rest(c, &received);
    }
    if (reply.err || !find_field(reply.body, 2, &lease, &text)) die("no lease is granted");
    return lease;
}

static void prepare_contended(struct load *load) {
    static const char name[] = "contended";
    if (load->outstanding != 1) die("contended: a client waits for one lock, --outstanding 1");
    for (unsigned i = 0; i < load->opened; i++) {
        struct connection *c = &load->all[i];
        struct bytes message = {0};
        uint64_t lease = grant_lease(load, c);
        add_field(&message, 1, name, sizeof name - 1);
        add_field_number(&message, 2, lease);
        add_call(&c->frames, "/v3lockpb.Lock/Lock", &message);
        bytes_close(&message);
    }
}

static void begin_lock(struct load *load, struct connection *c, unsigned slot) {
    (void)load;
    c->slots[slot].step = LOCKING;
    send_call(c, c->frames.at, c->frames.used, slot);
}

static void answer_lock(struct load *load, struct connection *c, const struct reply *reply) {
    struct slot *slot = &c->slots[reply->slot];
    struct bytes message = {0};
    struct zk_text key;
    uint64_t number;
    if (reply->err) {
        cycle_failed(load, c, reply->slot);
    } else if (slot->step == UNLOCKING) {
        cycle_done(load, c, reply->slot);
    } else if (!find_field(reply->body, 2, &number, &key)) {
        cycle_failed(load, c, reply->slot);
    } else {
        add_field(&message, 1, key.at, (size_t)key.size);
        slot->step = UNLOCKING;
        send_new_call(c, "/v3lockpb.Lock/Unlock", &message, reply->slot);
    }
}

const struct operation etcd_contended = {
    "contended", &etcd, prepare_contended, begin_lock, answer_lock, NULL, false};
