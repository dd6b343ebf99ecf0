/* Certificates and keys that are replaced while the server runs: they are read again when their
 * files have changed, and when the server is told to (SIGHUP).  Connections go on as they are. */
#include <sys/stat.h>

#include "base/logger.h"
#include "service/server/internal.h"

enum { FILES_MAX = 4 };

static void files_of(const struct settings *set, enum credential which,
                     const char *files[FILES_MAX]) {
    const char *of[CREDENTIALS][FILES_MAX] = {
        [CREDENTIALS_OF_CLIENTS] = {set->tls_certificate, set->tls_key, set->tls_authorities,
                                    set->tls_password_file},
        [CREDENTIALS_OF_MEMBERS] = {set->peer_certificate, set->peer_key, set->peer_authorities,
                                    set->peer_password_file},
        [CREDENTIALS_OF_ADMINS] = {set->admin_token, "", "", ""},
    };
    memcpy(files, of[which], sizeof of[which]);
    if (which == CREDENTIALS_OF_MEMBERS && *set->peer_secret) files[0] = set->peer_secret;
}

static uint64_t mixed(uint64_t hash, uint64_t number) {
    return (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
}

/* Which files they are, and when they were written. */
static uint64_t look_at(const struct settings *set, enum credential which) {
    const char *files[FILES_MAX];
    struct stat file;
    uint64_t hash = 1;
    files_of(set, which, files);
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (!*files[i]) continue;
        if (stat(files[i], &file) != 0) file = (struct stat){0};
        hash = mixed(hash, (uint64_t)file.st_dev);
        hash = mixed(hash, (uint64_t)file.st_ino);
        hash = mixed(hash, (uint64_t)file.st_size);
        hash = mixed(hash, (uint64_t)file.st_mode);
        hash = mixed(hash, (uint64_t)file.st_ctim.tv_sec);
        hash = mixed(hash, (uint64_t)file.st_ctim.tv_nsec);
    }
    return hash;
}

static bool are_used(const struct settings *set, enum credential which) {
    const char *files[FILES_MAX];
    files_of(set, which, files);
    return *files[0];
}

bool credentials_are_used(const struct server *s) {
    for (enum credential which = 0; which < CREDENTIALS; which++)
        if (are_used(&s->settings, which)) return true;
    return false;
}

static bool load(struct server *s, enum credential which) {
    switch (which) {
    case CREDENTIALS_OF_CLIENTS: return !s->tls || tls_reload(s->tls);
    case CREDENTIALS_OF_MEMBERS: return ensemble_reload_credentials(s->ensemble);
    case CREDENTIALS_OF_ADMINS: return s->admin->reload(s);
    case CREDENTIALS: break;
    }
    return true;
}

static void reload(struct server *s, enum credential which) {
    static const char *const names[] = {"clients", "members", "administrators"};
    struct credentials *c = &s->credentials;
    c->loaded[which] = c->seen[which] = look_at(&s->settings, which);
    if (load(s, which)) {
        s->statistics.reloads++;
        logger_info("certificates and keys were read again; new connections use them",
                    LOGGER_STRING("of", names[which]));
    } else {
        s->statistics.reloads_failed++;
        logger_error("new certificates or keys cannot be used, so those before them stay in use",
                     LOGGER_STRING("of", names[which]));
    }
}

void credentials_open(struct server *s) {
    struct credentials *c = &s->credentials;
    for (enum credential which = 0; which < CREDENTIALS; which++)
        c->loaded[which] = c->seen[which] = look_at(&s->settings, which);
}

void credentials_reload(struct server *s) {
    for (enum credential which = 0; which < CREDENTIALS; which++)
        if (are_used(&s->settings, which)) reload(s, which);
}

/* A certificate and its key are two files: they are read when neither has changed for a while. */
void credentials_check(struct server *s) {
    struct credentials *c = &s->credentials;
    for (enum credential which = 0; which < CREDENTIALS; which++) {
        if (!are_used(&s->settings, which)) continue;
        uint64_t now = look_at(&s->settings, which);
        bool settled = now == c->seen[which];
        c->seen[which] = now;
        if (settled && now != c->loaded[which]) reload(s, which);
    }
}
