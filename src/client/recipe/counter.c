/* Counters, and claims for good. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/recipe/recipe.h"

/* ---- Counters: a decimal number in a node, as kazoo has them ---- */

static bool parse_value(const struct cv_result *r, int64_t *value) {
    char *end;
    *value = 0;
    if (!r->size) return true;
    if (r->size > 20) return false;
    *value = strtoll(r->data, &end, 10);
    return end == (const char *)r->data + r->size;
}

/* After a lost answer: whether the set took effect (1), did not (0), or that is not known (-1). */
static int was_set(struct cv_client *client, const char *path, int32_t version, const char *text) {
    struct cv_result *r;
    struct cv_op sync = cv_op_sync(path);
    int known = -1;
    if (cv_call(client, &sync, NULL)) return -1;
    if (cv_get(client, path, &r) == CV_OK) {
        bool same = r->size == strlen(text) && !memcmp(r->data, text, r->size);
        if (r->stat.version == version) known = 0;
        /* the next version is another's, unless both have written the same */
        if (r->stat.version == (int32_t)((uint32_t)version + 1) && !same) known = 0;
    }
    cv_result_free(r);
    return known;
}

static int add_once(struct cv_client *client, const char *path, int64_t amount, int64_t *value) {
    struct cv_result *r;
    char text[24];
    int error;
    while ((error = cv_get(client, path, &r)) == CV_CONNECTION_LOSS) { /* nothing is written yet */
    }
    if (!error && (!parse_value(r, value) || __builtin_add_overflow(*value, amount, value)))
        error = CV_BAD_ARGUMENTS;
    if (!error && amount) {
        snprintf(text, sizeof text, "%" PRId64, *value);
        error = cv_set(client, path, text, strlen(text), r->stat.version);
        if (error == CV_CONNECTION_LOSS && was_set(client, path, r->stat.version, text) == 0)
            error = CV_BAD_VERSION; /* once more */
    }
    cv_result_free(r);
    return error;
}

int cv_counter_add(struct cv_client *client, const char *path, int64_t amount, int64_t *value) {
    int64_t ignored;
    int error;
    if (!value) value = &ignored;
    do {
        error = add_once(client, path, amount, value);
        if (error == CV_NO_NODE) {
            error = cv_create_all(client, path, CV_PERSISTENT);
            if (!error) error = CV_BAD_VERSION;
        }
    } while (error == CV_BAD_VERSION);
    return error;
}

/* ---- Once ---- */

static int look_for_owner(struct cv_client *client, const char *path, const char *guid,
                          struct cv_result **owner) {
    struct cv_result *r;
    struct note note;
    int error;
    do error = cv_get(client, path, &r);
    while (error == CV_CONNECTION_LOSS);
    if (!error) {
        note_read(&note, r->data, r->data ? r->size : 0);
        /* an answer that was lost: it is ours after all */
        error = strcmp(note.node, guid) ? CV_NODE_EXISTS : CV_OK;
    }
    if (error == CV_NODE_EXISTS && owner)
        *owner = r;
    else
        cv_result_free(r);
    return error;
}

/* CV_NO_NODE, which it was created for, or why it cannot be. */
static int make_parent(struct cv_client *client, const char *path) {
    char *parent = strdup(path), *slash = parent ? strrchr(parent, '/') : NULL;
    int error = parent ? CV_BAD_ARGUMENTS : CV_NO_MEMORY;
    if (slash && slash > parent) {
        *slash = 0;
        error = cv_create_all(client, parent, CV_PERSISTENT);
    }
    free(parent);
    return error ? error : CV_NO_NODE;
}

int cv_once(struct cv_client *client, const char *path, const char *label,
            struct cv_result **owner) {
    struct note note;
    char text[NOTE_MAX];
    bool lost = false;
    int error;
    if (owner) *owner = NULL;
    recipe_note(&note, label);
    recipe_guid(note.node);
    size_t size = note_write(&note, text);
    do {
        error = cv_create(client, path, text, size, CV_PERSISTENT, NULL, 0);
        lost |= error == CV_CONNECTION_LOSS;
        if (error == CV_NO_NODE) error = make_parent(client, path);
        /* a node that was deleted between is claimed anew */
        if (error == CV_NODE_EXISTS) error = look_for_owner(client, path, note.node, owner);
        if (error == CV_NO_NODE) error = CV_CONNECTION_LOSS; /* once more */
    } while (error == CV_CONNECTION_LOSS);
    return recipe_after_loss(lost, error);
}
