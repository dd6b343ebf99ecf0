/* Answers become results: the struct, then what it points to, in one block.  The answer is checked
 * as a whole before the block is measured, so filling it in cannot fail. */
#include <stdlib.h>

#include "client/internal.h"

struct room {
    unsigned char *at, *end;
    size_t chroot;
};

/* ---- Filling in ---- */

static void *take(struct room *room, size_t size) {
    size = (size + 7) & ~(size_t)7;
    cv_assert((size_t)(room->end - room->at) >= size);
    void *at = room->at;
    room->at += size;
    return at;
}

static const char *take_text(struct room *room, struct zk_text text) {
    size_t size = text.size > 0 ? (size_t)text.size : 0;
    char *to = take(room, size + 1);
    if (size) memcpy(to, text.at, size);
    to[size] = 0;
    return to;
}

/* A path without the chroot. */
static const char *take_path(struct room *room, struct zk_text path) {
    size_t skip = room->chroot;
    if (path.size >= 0 && (size_t)path.size >= skip) {
        path.at += skip;
        path.size -= (int32_t)skip;
        if (!path.size) path = zk_text_of("/");
    }
    return take_text(room, path);
}

static void set_stat(struct cv_result *result, const struct zk_stat *stat) {
    result->has_stat = true;
    result->stat = (struct cv_stat){.czxid = stat->czxid,
                                    .mzxid = stat->mzxid,
                                    .ctime = stat->ctime,
                                    .mtime = stat->mtime,
                                    .version = stat->version,
                                    .cversion = stat->cversion,
                                    .aversion = stat->aversion,
                                    .ephemeral_owner = stat->ephemeral_owner,
                                    .data_length = stat->data_length,
                                    .children = stat->num_children,
                                    .pzxid = stat->pzxid};
}

static void set_data(struct room *room, struct cv_result *result, struct zk_text data) {
    if (data.size < 0) return;
    result->data = take_text(room, data);
    result->size = (size_t)data.size;
}

static bool is_below(const struct room *room, struct zk_text path) {
    size_t skip = room->chroot;
    return !skip || (path.size >= 0 && (size_t)path.size == skip) ||
           (path.size >= 0 && (size_t)path.size > skip && path.at[skip] == '/');
}

static void set_names(struct room *room, struct cv_result *result, struct zk_texts names,
                      bool paths) {
    const char **name = take(room, (names.count > 0 ? (size_t)names.count : 0) * sizeof *name);
    struct zk_text text;
    result->names = name;
    while (zk_texts_next(&names, &text))
        if (!paths)
            name[result->name_count++] = take_text(room, text);
        else if (is_below(room, text)) /* the server knows prefixes, not paths */
            name[result->name_count++] = take_path(room, text);
}

static void set_acls(struct room *room, struct cv_result *result, struct zk_acls acls) {
    struct cv_acl *acl = take(room, (acls.count > 0 ? (size_t)acls.count : 0) * sizeof *acl);
    struct zk_acl one;
    result->acl = acl;
    while (zk_acls_next(&acls, &one))
        acl[result->acl_count++] =
            (struct cv_acl){one.perms, take_text(room, one.id.scheme), take_text(room, one.id.id)};
}

static void set_clients(struct room *room, struct cv_result *result, struct zk_clients clients) {
    struct cv_acl *acl = take(room, (clients.count > 0 ? (size_t)clients.count : 0) * sizeof *acl);
    struct zk_client one;
    result->acl = acl;
    while (zk_clients_next(&clients, &one))
        acl[result->acl_count++] =
            (struct cv_acl){0, take_text(room, one.scheme), take_text(room, one.user)};
}

static void set_response(struct room *room, struct cv_result *result, int32_t opcode,
                         const union zk_response *of) {
    switch (opcode) {
    case ZK_OP_CREATE: result->path = take_path(room, of->create.path); return;
    case ZK_OP_CREATE2:
    case ZK_OP_CREATE_CONTAINER:
    case ZK_OP_CREATE_TTL:
        result->path = take_path(room, of->create2.path);
        set_stat(result, &of->create2.stat);
        return;
    case ZK_OP_EXISTS: set_stat(result, &of->exists.stat); return;
    case ZK_OP_GET_DATA:
    case ZK_OP_RECONFIG:
        set_data(room, result, of->get_data.data);
        set_stat(result, &of->get_data.stat);
        return;
    case ZK_OP_SET_DATA:
    case ZK_OP_SET_ACL: set_stat(result, &of->set_data.stat); return;
    case ZK_OP_GET_ACL:
        set_acls(room, result, of->get_acl.acl);
        set_stat(result, &of->get_acl.stat);
        return;
    case ZK_OP_GET_CHILDREN: set_names(room, result, of->get_children.children, false); return;
    case ZK_OP_GET_CHILDREN2:
        set_names(room, result, of->get_children2.children, false);
        set_stat(result, &of->get_children2.stat);
        return;
    case ZK_OP_SYNC: result->path = take_path(room, of->sync.path); return;
    case ZK_OP_GET_EPHEMERALS: set_names(room, result, of->get_ephemerals.ephemerals, true); return;
    case ZK_OP_GET_ALL_CHILDREN_NUMBER: result->count = of->get_all_children_number.total; return;
    case ZK_OP_WHO_AM_I: set_clients(room, result, of->who_am_i.clients); return;
    default: return;
    }
}

/* All results of a multi; what failed first is its error, unless each stands alone. */
static void set_results(struct room *room, struct cv_result *result, struct zk_multi results,
                        bool alone) {
    size_t count = (size_t)results.count;
    struct cv_result *all = take(room, count * sizeof *all);
    struct zk_result one;
    result->results = all;
    while (zk_results_next(&results, &one)) {
        struct cv_result *to = &all[result->result_count++];
        *to = (struct cv_result){.zxid = result->zxid};
        if (one.type == ZK_OP_ERROR)
            to->error = one.of.error.err;
        else
            set_response(room, to, one.type, &one.of);
        if (to->error && !result->error && !alone) result->error = to->error;
    }
}

/* ---- Measuring ---- */

/* Pointers to elements, and texts, each of which is rounded up.  A text takes four bytes or more of
 * the answer for its length, so a few times its size is enough for all of it. */
static size_t room_for(int32_t opcode, const union zk_response *of, size_t body) {
    size_t elements = opcode == ZK_OP_GET_CHILDREN     ? (size_t)of->get_children.children.count
                      : opcode == ZK_OP_GET_CHILDREN2  ? (size_t)of->get_children2.children.count
                      : opcode == ZK_OP_GET_EPHEMERALS ? (size_t)of->get_ephemerals.ephemerals.count
                      : opcode == ZK_OP_GET_ACL        ? (size_t)of->get_acl.acl.count
                      : opcode == ZK_OP_WHO_AM_I       ? (size_t)of->who_am_i.clients.count
                                                       : 0;
    if (elements == SIZE_MAX) elements = 0; /* null */
    return body + elements * (sizeof(struct cv_acl) + 16) + 64;
}

/* Of what is inside a multi: each result has a struct, and names. */
static size_t room_for_results(struct zk_multi results, size_t body) {
    struct zk_result one;
    size_t size = body + 64;
    while (zk_results_next(&results, &one))
        size += sizeof(struct cv_result) + room_for(one.type, &one.of, 0);
    return size;
}

static struct cv_result *begin(const struct request *request, struct bytes *room, size_t more) {
    size_t size = sizeof(struct cv_result) + more;
    if (request->waiter) return malloc(size);
    if (room->room < size) {
        unsigned char *at = realloc(room->at, size * 2);
        if (!at) return NULL;
        room->at = at;
        room->room = size * 2;
    }
    return (struct cv_result *)(void *)room->at;
}

/* ---- Decoding ---- */

struct cv_result *reply_decode(const struct request *request, const struct zk_reply_header *header,
                               struct zk_in *body, size_t chroot, struct bytes *room, int *error) {
    bool is_multi = request->type == CV_OP_MULTI, has_body = header->err == ZK_OK;
    const struct zk_op *op = zk_op_of(request->opcode);
    union zk_response of;
    struct zk_multi results;
    size_t more = 0, size = zk_left(body);
    *error = CV_MARSHALLING_ERROR;
    if (has_body && is_multi) {
        if (!zk_read_results(body, &results) || (uint32_t)results.count != request->op_count)
            return NULL;
        more = room_for_results(results, size);
    } else if (has_body) {
        if (!op->response->read(body, &of)) return NULL;
        more = room_for(request->opcode, &of, size);
    }
    struct cv_result *result = begin(request, room, more);
    *error = CV_NO_MEMORY;
    if (!result) return NULL;
    *result = (struct cv_result){.error = header->err, .zxid = header->zxid};
    struct room left = {(unsigned char *)(result + 1), (unsigned char *)(result + 1) + more,
                        chroot};
    if (has_body && is_multi)
        set_results(&left, result, results, request->opcode == ZK_OP_MULTI_READ);
    else if (has_body)
        set_response(&left, result, request->opcode, &of);
    *error = CV_OK;
    return result;
}
