/* Operations become frames, which wait in `out` until the socket takes them. */
#include <stdlib.h>

#include "client/internal.h"

enum { XID_MAX = INT32_MAX };

/* ---- What an operation needs ---- */

bool path_is_good(const char *path, bool sequential) {
    if (!path || path[0] != '/') return false;
    size_t size = strlen(path);
    if (size > INT32_MAX / 2) return false;
    /* A number will follow, so it may end in a slash. */
    if (sequential && path[size - 1] == '/')
        return size == 1 || (size > 2 && zk_path_valid((struct zk_text){path, (int32_t)size - 1}));
    return zk_path_valid((struct zk_text){path, (int32_t)size});
}

static bool takes_path(enum cv_op_type type) {
    return type != CV_OP_MULTI && type != CV_OP_AUTH && type != CV_OP_WHO_AM_I &&
           type != CV_OP_RECONFIG;
}

static bool is_good(const struct cv_op *op, bool inside) {
    bool read_inside = op->type == CV_OP_GET || op->type == CV_OP_CHILDREN;
    if (takes_path(op->type) &&
        !path_is_good(op->path, op->type == CV_OP_CREATE && op->flags & CV_SEQUENTIAL))
        return false;
    if (op->size > INT32_MAX / 2 || (op->size && !op->data)) return false;
    for (size_t i = 0; i < op->acl_count; i++)
        if (!op->acl[i].scheme || !op->acl[i].id) return false;
    switch (op->type) {
    case CV_OP_CREATE:
        return !(op->flags & ~(CV_EPHEMERAL | CV_SEQUENTIAL | CV_CONTAINER)) && op->ttl >= 0 &&
               !(op->flags & CV_CONTAINER && op->flags != CV_CONTAINER) &&
               !(op->ttl && op->flags & ~CV_SEQUENTIAL);
    case CV_OP_AUTH: return !inside && op->path;
    case CV_OP_MULTI: return !inside && op->op_count < INT32_MAX / 2;
    case CV_OP_ADD_WATCH:
        return !inside && op->watch &&
               (op->flags == CV_WATCH_PERSISTENT || op->flags == CV_WATCH_RECURSIVE);
    case CV_OP_DELETE:
    case CV_OP_SET: return true;
    case CV_OP_CHECK: return inside;
    case CV_OP_EXISTS:
    case CV_OP_GET:
    case CV_OP_CHILDREN:
    case CV_OP_GET_ACL:
    case CV_OP_SET_ACL:
    case CV_OP_SYNC:
    case CV_OP_REMOVE_WATCH:
    case CV_OP_WHO_AM_I:
    case CV_OP_EPHEMERALS:
    case CV_OP_COUNT_ALL:
    case CV_OP_RECONFIG: return !inside || read_inside;
    }
    return false;
}

/* A multi changes and checks, or it only reads. */
static bool is_good_multi(const struct cv_op *op) {
    size_t reads = 0;
    for (size_t i = 0; i < op->op_count; i++) {
        if (!is_good(&op->ops[i], true) || op->ops[i].watch) return false;
        reads += op->ops[i].type == CV_OP_GET || op->ops[i].type == CV_OP_CHILDREN;
    }
    return reads == 0 || reads == op->op_count;
}

static int32_t opcode_of(const struct cv_op *op) {
    switch (op->type) {
    case CV_OP_CREATE:
        return op->ttl                    ? ZK_OP_CREATE_TTL
               : op->flags & CV_CONTAINER ? ZK_OP_CREATE_CONTAINER
                                          : ZK_OP_CREATE2;
    case CV_OP_DELETE: return ZK_OP_DELETE;
    case CV_OP_EXISTS: return ZK_OP_EXISTS;
    case CV_OP_GET: return ZK_OP_GET_DATA;
    case CV_OP_SET: return ZK_OP_SET_DATA;
    case CV_OP_CHILDREN: return ZK_OP_GET_CHILDREN2;
    case CV_OP_GET_ACL: return ZK_OP_GET_ACL;
    case CV_OP_SET_ACL: return ZK_OP_SET_ACL;
    case CV_OP_SYNC: return ZK_OP_SYNC;
    case CV_OP_CHECK: return ZK_OP_CHECK;
    case CV_OP_MULTI:
        return op->op_count && op->ops[0].type != CV_OP_GET && op->ops[0].type != CV_OP_CHILDREN
                   ? ZK_OP_MULTI
               : op->op_count ? ZK_OP_MULTI_READ
                              : ZK_OP_MULTI;
    case CV_OP_ADD_WATCH: return ZK_OP_ADD_WATCH;
    case CV_OP_REMOVE_WATCH: return ZK_OP_REMOVE_WATCHES;
    case CV_OP_AUTH: return ZK_OP_AUTH;
    case CV_OP_WHO_AM_I: return ZK_OP_WHO_AM_I;
    case CV_OP_EPHEMERALS: return ZK_OP_GET_EPHEMERALS;
    case CV_OP_COUNT_ALL: return ZK_OP_GET_ALL_CHILDREN_NUMBER;
    case CV_OP_RECONFIG: return ZK_OP_RECONFIG;
    }
    return ZK_OP_ERROR;
}

/* ---- Encoding ---- */

/* The server's path: valid until the next. */
static struct zk_text whole_path(struct cv_client *client, const char *path) {
    const char *chroot = client->session.servers.chroot;
    if (!path) return zk_null();
    if (!chroot[0]) return zk_text_of(path);
    if (!path[1]) return zk_text_of(chroot);
    struct bytes *whole = &client->requests.scratch_path;
    whole->used = 0;
    bytes_add(whole, chroot, strlen(chroot));
    bytes_add(whole, path, strlen(path));
    return (struct zk_text){(const char *)whole->at, (int32_t)whole->used};
}

static struct zk_acls acls_of(struct cv_client *client, const struct cv_op *op) {
    static const struct cv_acl anyone = {CV_ALL, "world", "anyone"};
    const struct cv_acl *acl = op->acl ? op->acl : &anyone;
    size_t count = op->acl ? op->acl_count : 1;
    struct bytes *to = &client->requests.scratch_acl;
    to->used = 0;
    for (size_t i = 0; i < count; i++)
        zk_write_acl(to, &(struct zk_acl){acl[i].permissions,
                                          {zk_text_of(acl[i].scheme), zk_text_of(acl[i].id)}});
    return (struct zk_acls){to->at, to->used, (int32_t)count};
}

static struct zk_text data_of(const struct cv_op *op) {
    return op->data ? (struct zk_text){op->data, (int32_t)op->size} : zk_null();
}

static struct zk_text text_or_null(const char *text) { return text ? zk_text_of(text) : zk_null(); }

static int32_t create_flags(const struct cv_op *op) {
    if (!op->ttl) return op->flags;
    return op->flags & CV_SEQUENTIAL ? ZK_TTL_SEQUENTIAL : ZK_TTL;
}

/* The record of one operation; a multi's are written one by one. */
static void fill(struct cv_client *client, const struct cv_op *op, bool watch,
                 union zk_request *of) {
    struct zk_text path = takes_path(op->type) ? whole_path(client, op->path) : zk_null();
    switch (op->type) {
    case CV_OP_CREATE:
        of->create_ttl = (struct zk_create_ttl_request){path, data_of(op), acls_of(client, op),
                                                        create_flags(op), op->ttl};
        return;
    case CV_OP_DELETE:
    case CV_OP_CHECK: of->delete = (struct zk_delete_request){path, op->version}; return;
    case CV_OP_EXISTS:
    case CV_OP_GET:
    case CV_OP_CHILDREN: of->exists = (struct zk_exists_request){path, watch}; return;
    case CV_OP_SET:
        of->set_data = (struct zk_set_data_request){path, data_of(op), op->version};
        return;
    case CV_OP_SET_ACL:
        of->set_acl = (struct zk_set_acl_request){path, acls_of(client, op), op->version};
        return;
    case CV_OP_GET_ACL:
    case CV_OP_SYNC:
    case CV_OP_EPHEMERALS:
    case CV_OP_COUNT_ALL: of->sync = (struct zk_sync_request){path}; return;
    case CV_OP_ADD_WATCH: of->add_watch = (struct zk_add_watch_request){path, op->flags}; return;
    case CV_OP_REMOVE_WATCH:
        of->remove_watches = (struct zk_remove_watches_request){path, 3};
        return; /* of all kinds */
    case CV_OP_AUTH:
        of->auth = (struct zk_auth_request){0, zk_text_of(op->path), data_of(op)};
        return;
    case CV_OP_RECONFIG:
        of->reconfig =
            (struct zk_reconfig_request){text_or_null(op->joining), text_or_null(op->leaving),
                                         text_or_null(op->members), op->ttl ? op->ttl : -1};
        return;
    case CV_OP_MULTI:
    case CV_OP_WHO_AM_I: return;
    }
}

static int32_t multi_opcode(const struct cv_op *op) {
    return op->type == CV_OP_CHILDREN ? ZK_OP_GET_CHILDREN : opcode_of(op);
}

static void write_body(struct cv_client *client, const struct cv_op *op, int32_t opcode,
                       bool watch) {
    struct bytes *out = &client->requests.out;
    union zk_request of;
    if (op->type == CV_OP_MULTI) {
        for (size_t i = 0; i < op->op_count; i++) {
            fill(client, &op->ops[i], false, &of);
            zk_write_multi_op(out, multi_opcode(&op->ops[i]), &of);
        }
        zk_write_multi_end(out);
        return;
    }
    if (op->type == CV_OP_WHO_AM_I) return;
    fill(client, op, watch, &of);
    zk_op_of(opcode)->request->write(out, &of);
}

/* ---- Requests ---- */

static struct request *request_new(struct cv_client *client) {
    struct requests *requests = &client->requests;
    struct request *request = requests->unused;
    if (request)
        requests->unused = request->next;
    else
        request = malloc(sizeof *request);
    if (request) *request = (struct request){.at = client_time(client)};
    return request;
}

void request_free(struct cv_client *client, struct request *request) {
    free(request->watcher);
    request->next = client->requests.unused;
    client->requests.unused = request;
}

static int32_t next_xid(struct requests *requests) {
    requests->xid = requests->xid == XID_MAX ? 1 : requests->xid + 1;
    return requests->xid;
}

static void enqueue(struct cv_client *client, struct request *request) {
    struct requests *requests = &client->requests;
    request->begin = requests->out_before + requests->out.used;
    queue_add(request->type == CV_OP_AUTH ? &requests->auth : &requests->waiting, request);
}

static void end(struct cv_client *client, struct request *request, int error) {
    request->error = error;
    queue_add(&client->requests.ended, request);
    client_interrupt(client);
}

static bool is_watched(const struct cv_op *op) {
    return op->watch && (op->type == CV_OP_GET || op->type == CV_OP_EXISTS ||
                         op->type == CV_OP_CHILDREN || op->type == CV_OP_ADD_WATCH);
}

/* Removes watches here; true: the server need not be told, others of the path are left. */
static bool remove_watches(struct cv_client *client, const struct cv_op *op,
                           struct request *request) {
    bool left;
    if (op->type != CV_OP_REMOVE_WATCH) return false;
    struct zk_text path = whole_path(client, op->path);
    bool removed = watch_remove(client, path, op, &left);
    /* The server would forget all of the path, also what a read on its way is to watch. */
    for (const struct request *one = client->requests.waiting.first; one; one = one->next) {
        const struct watcher *watcher = one->watcher;
        if (watcher && zk_text_equal((struct zk_text){watcher->path, watcher->path_size}, path))
            left = true;
    }
    if (removed && !left) return false;
    end(client, request, removed ? CV_OK : CV_NO_WATCHER);
    return true;
}

/* Who we are is told every connection. */
struct identity *identity_add(struct cv_client *client, const char *scheme, const void *credential,
                              size_t size) {
    struct identity *identity = calloc(1, sizeof *identity), **last = &client->identities;
    if (!identity) return NULL;
    identity->scheme = strdup(scheme);
    identity->credential = malloc(size + 1);
    if (!identity->scheme || !identity->credential) {
        identity_free(identity);
        return NULL;
    }
    if (size) memcpy(identity->credential, credential, size);
    identity->size = size;
    while (*last) last = &(*last)->next;
    *last = identity;
    return identity;
}

void identity_free(struct identity *identity) {
    free(identity->scheme);
    free(identity->credential);
    free(identity);
}

static int refusal(const struct cv_client *client) {
    if (client->ending != NOT_ENDING) return CV_CLOSING;
    switch (client->state) {
    case CV_EXPIRED: return CV_SESSION_EXPIRED;
    case CV_REFUSED: return CV_AUTH_FAILED;
    case CV_CLOSED: return CV_CLOSING;
    case CV_CONNECTING:
    case CV_CONNECTED:
    case CV_READ_ONLY: break;
    }
    return CV_OK;
}

int request_check(const struct cv_client *client, const struct cv_op *op) {
    int error = refusal(client);
    if (error) return error;
    bool good = is_good(op, false) && (op->type != CV_OP_MULTI || is_good_multi(op));
    return good ? CV_OK : CV_BAD_ARGUMENTS;
}

int request_start(struct cv_client *client, const struct cv_op *op, cv_done_fn *done, void *arg,
                  struct waiter *waiter) {
    struct requests *requests = &client->requests;
    int error = request_check(client, op);
    if (error) return error;
    struct request *request = request_new(client);
    if (!request) return CV_NO_MEMORY;
    bool watch = is_watched(op);
    *request = (struct request){.done = done,
                                .arg = arg,
                                .at = request->at,
                                .opcode = opcode_of(op),
                                .op_count = (uint32_t)op->op_count,
                                .type = op->type,
                                .waiter = waiter};
    if (op->type == CV_OP_AUTH &&
        !(request->identity = identity_add(client, op->path, op->data, op->size))) {
        request_free(client, request);
        return CV_NO_MEMORY;
    }
    if (watch && !(request->watcher = watcher_new(whole_path(client, op->path), op))) {
        request_free(client, request);
        return CV_NO_MEMORY;
    }
    if (watch) watch = !watch_is_covered(client, whole_path(client, op->path), op->type);
    if (remove_watches(client, op, request)) return CV_OK;
    request->xid = op->type == CV_OP_AUTH ? ZK_XID_AUTH : next_xid(requests);
    enqueue(client, request);
    size_t frame = zk_frame_begin(&requests->out);
    zk_write_request_header(&requests->out,
                            &(struct zk_request_header){request->xid, request->opcode});
    write_body(client, op, request->opcode, watch);
    zk_frame_end(&requests->out, frame); /* its size is small by the checks above */
    client->session.sent = request->at;
    if (client->session.phase != PHASE_UP) client_arm_timer(client);
    return CV_OK;
}

bool requests_reserve(struct cv_client *client, size_t count) {
    struct requests *requests = &client->requests;
    for (const struct request *one = requests->unused; one && count; one = one->next) count--;
    for (; count; count--) {
        struct request *request = malloc(sizeof *request);
        if (!request) return false;
        *request = (struct request){.next = requests->unused};
        requests->unused = request;
    }
    return true;
}

void request_fail(struct cv_client *client, cv_done_fn *done, void *arg, int error) {
    struct request *request = request_new(client);
    cv_assert(request); /* was reserved */
    request->done = done;
    request->arg = arg;
    end(client, request, error);
}

void request_finish(struct cv_client *client, struct request *request, struct cv_result *result) {
    struct waiter *waiter = request->waiter;
    if (waiter) {
        waiter->error = result->error;
        waiter->result = result;
        waiter->done = true;
        pthread_cond_signal(&waiter->answered);
    } else if (request->done) {
        CALL_BACK(client, request->done(result, request->arg));
    }
    request_free(client, request);
}

void request_internal(struct cv_client *client, int32_t opcode, cv_done_fn *done, void *arg) {
    struct requests *requests = &client->requests;
    struct request *request = request_new(client);
    if (!request) return;
    request->done = done;
    request->arg = arg;
    request->opcode = opcode;
    request->type = CV_OP_DELETE; /* an answer without a body */
    request->xid = next_xid(requests);
    enqueue(client, request);
    size_t frame = zk_frame_begin(&requests->out);
    zk_write_request_header(&requests->out, &(struct zk_request_header){request->xid, opcode});
    zk_frame_end(&requests->out, frame);
}

/* ---- Without a connection ---- */

static void end_sent(struct cv_client *client, struct request_queue *queue, uint64_t sent) {
    while (queue->first && queue->first->begin < sent)
        end(client, queue_take(queue), CV_CONNECTION_LOSS);
}

void requests_broken(struct cv_client *client) {
    struct requests *requests = &client->requests;
    uint64_t sent = requests->out_before + requests->out_sent;
    uint64_t keep = requests->out_before + requests->out.used;
    end_sent(client, &requests->waiting, sent);
    end_sent(client, &requests->auth, sent);
    if (requests->waiting.first && requests->waiting.first->begin < keep)
        keep = requests->waiting.first->begin;
    if (requests->auth.first && requests->auth.first->begin < keep)
        keep = requests->auth.first->begin;
    size_t drop = (size_t)(keep - requests->out_before);
    if (drop) memmove(requests->out.at, requests->out.at + drop, requests->out.used - drop);
    requests->out.used -= drop;
    requests->out_before = keep;
    requests->out_sent = 0;
}

void requests_end(struct cv_client *client, int error) {
    struct requests *requests = &client->requests;
    struct request *request;
    while ((request = queue_take(&requests->waiting))) end(client, request, error);
    while ((request = queue_take(&requests->auth))) end(client, request, error);
    requests->out_before += requests->out.used;
    requests->out.used = requests->out_sent = 0;
}

void requests_end_older(struct cv_client *client, int64_t than, int error) {
    struct requests *requests = &client->requests;
    while (requests->waiting.first && requests->waiting.first->at < than)
        end(client, queue_take(&requests->waiting), error);
    while (requests->auth.first && requests->auth.first->at < than)
        end(client, queue_take(&requests->auth), error);
    requests_broken(client);
}

static void free_queue(struct request *request) {
    while (request) {
        struct request *next = request->next;
        free(request->watcher);
        free(request);
        request = next;
    }
}

void requests_close(struct cv_client *client) {
    struct requests *requests = &client->requests;
    free_queue(requests->waiting.first);
    free_queue(requests->auth.first);
    free_queue(requests->ended.first);
    while (requests->unused) {
        struct request *request = requests->unused;
        requests->unused = request->next;
        free(request);
    }
    bytes_close(&requests->out);
    bytes_close(&requests->scratch_path);
    bytes_close(&requests->scratch_acl);
    bytes_close(&requests->result);
}
