/* Redis.  The token comes as credentials, because every client can be given these, by a URL if by
 * nothing else; or in the connection's name:
 *
 *   AUTH LOCK TOKEN              redis://LOCK:TOKEN@host       (also LOCK/USER and TOKEN:PASSWORD)
 *   AUTH LOCK:TOKEN              redis://:LOCK:TOKEN@host      (also LOCK:TOKEN:PASSWORD)
 *   HELLO 3 AUTH LOCK TOKEN ...  the same in the newer handshake
 *   CLIENT SETNAME lock=LOCK,token=TOKEN
 *
 * Users and passwords that come with it are Redis's own.  A command that is not passed on as it is
 * is replaced by one to which Redis gives the wanted answer, so that answers stay in their order
 * and need not be read here. */
#include <inttypes.h>
#include <stdio.h>

#include "fence/proxy.h"

struct credentials {
    struct fence_lock *lock;
    int64_t token;
    struct resp_text user, password; /* Redis's own; size 0: none */
};

enum found { NONE, MALFORMED, FOUND };

static void add_argument(struct bytes *out, struct resp_text text) {
    char line[32];
    int size = snprintf(line, sizeof line, "$%zu\r\n", text.size);
    bytes_add(out, line, (size_t)size);
    bytes_add(out, text.at, text.size);
    bytes_add(out, "\r\n", 2);
}

static void add_word(struct bytes *out, const char *word) {
    add_argument(out, (struct resp_text){word, strlen(word)});
}

static void add_count(struct bytes *out, unsigned count) {
    char line[32];
    int size = snprintf(line, sizeof line, "*%u\r\n", count);
    bytes_add(out, line, (size_t)size);
}

static struct resp_text after(struct resp_text text, size_t size) {
    return (struct resp_text){text.at + size, text.size - size};
}

/* "TOKEN" or "TOKEN:PASSWORD" */
static enum found read_token(struct resp_text text, struct credentials *to) {
    const char *colon = memchr(text.at, ':', text.size);
    size_t size = colon ? (size_t)(colon - text.at) : text.size;
    if (colon) to->password = after(text, size + 1);
    return fence_parse_token(text.at, size, &to->token) ? FOUND : MALFORMED;
}

/* "LOCK:TOKEN..."; the name of a lock may have colons. */
static enum found read_one(struct proxy *proxy, struct resp_text text, struct credentials *to) {
    for (size_t size = 0; size < text.size; size++) {
        if (text.at[size] != ':' || !(to->lock = proxy_lock(proxy, text.at, size))) continue;
        return read_token(after(text, size + 1), to);
    }
    return NONE;
}

/* A name without a slash is a lock's alone, one with a slash has Redis's user after it. */
static enum found read_two(struct proxy *proxy, struct resp_text user, struct resp_text password,
                           struct credentials *to) {
    const char *slash = memchr(user.at, '/', user.size);
    size_t size = slash ? (size_t)(slash - user.at) : user.size;
    if (resp_is(user, "default")) return read_one(proxy, password, to);
    if (!(to->lock = proxy_lock(proxy, user.at, size))) return NONE;
    if (slash) to->user = after(user, size + 1);
    return read_token(password, to);
}

static enum found read_name(struct proxy *proxy, struct resp_text name, struct credentials *to) {
    static const char LOCK[] = "lock=", TOKEN[] = ",token=";
    const size_t lock = sizeof LOCK - 1, token = sizeof TOKEN - 1;
    if (name.size < lock || memcmp(name.at, LOCK, lock) != 0) return NONE;
    name = after(name, lock);
    const char *comma = memmem(name.at, name.size, TOKEN, token);
    if (!comma || !(to->lock = proxy_lock(proxy, name.at, (size_t)(comma - name.at))))
        return MALFORMED;
    name = after(name, (size_t)(comma - name.at) + token);
    return fence_parse_token(name.at, name.size, &to->token) ? FOUND : MALFORMED;
}

static unsigned auth_arguments(const struct credentials *from) {
    return from->password.size ? 2 + (from->user.size > 0) : 0;
}

static void add_auth(struct bytes *out, const struct credentials *from, bool both) {
    if (!from->password.size) return;
    add_word(out, "AUTH");
    if (from->user.size)
        add_argument(out, from->user);
    else if (both)
        add_word(out, "default");
    add_argument(out, from->password);
}

/* Redis answers OK to both; and its CLIENT LIST shows whose connection it is. */
static void replace_auth(struct bytes *out, const struct credentials *from) {
    char name[128];
    if (from->password.size) {
        add_count(out, auth_arguments(from));
        add_auth(out, from, false);
        return;
    }
    snprintf(name, sizeof name, "fence:%.64s:%" PRId64, from->lock->name, from->token);
    for (char *c = name; *c; c++)
        if (*c <= ' ' || *c > '~') *c = '_';
    add_count(out, 3);
    add_word(out, "CLIENT");
    add_word(out, "SETNAME");
    add_word(out, name);
}

/* HELLO VERSION [AUTH USER PASSWORD] [SETNAME NAME]: `auth` is the place of AUTH. */
static void replace_hello(struct bytes *out, const struct resp_head *head, unsigned auth,
                          const struct credentials *from) {
    add_count(out, head->kept - 3 + (from->password.size ? 3 : 0));
    for (unsigned i = 0; i < head->kept; i++) {
        if (i == auth) add_auth(out, from, true);
        if (i < auth || i > auth + 2) add_argument(out, head->argument[i]);
    }
}

/* The credentials of a command, and what Redis gets instead of it. */
static enum found read_credentials(struct relay *relay, const struct resp_head *head,
                                   struct credentials *to, struct bytes *instead) {
    struct proxy *proxy = relay->proxy;
    const struct resp_text *argument = head->argument;
    enum found found = NONE;
    if (head->kept < head->arguments) return NONE;
    if (resp_is(argument[0], "auth") && (head->kept == 2 || head->kept == 3)) {
        found = head->kept == 2 ? read_one(proxy, argument[1], to)
                                : read_two(proxy, argument[1], argument[2], to);
        if (found == FOUND) replace_auth(instead, to);
    } else if (resp_is(argument[0], "hello")) {
        for (unsigned i = 2; i + 2 < head->kept && found == NONE; i++) {
            if (!resp_is(argument[i], "auth")) continue;
            found = read_two(proxy, argument[i + 1], argument[i + 2], to);
            if (found == FOUND) replace_hello(instead, head, i, to);
        }
    } else if (head->kept == 3 && resp_is(argument[0], "client") &&
               resp_is(argument[1], "setname")) {
        found = read_name(proxy, argument[2], to);
        if (found == FOUND) {
            add_count(instead, 3);
            for (unsigned i = 0; i < 3; i++) add_argument(instead, argument[i]);
        }
    }
    return found;
}

/* An error of the client, or ours, after which its connection ends.  Answers to what was passed on
 * before may be on their way, and nothing may come in between: then it ends without a word. */
static void fail(struct relay *relay, const char *error) {
    char line[600];
    int size = snprintf(line, sizeof line, "-%s\r\n", error);
    if (!relay->up_open) relay_answer(relay, line, (size_t)size);
    relay_end(relay);
}

/* Passed on in place of a command that is refused: Redis answers with that error. */
static void refuse(struct relay *relay) {
    static const char script[] =
        "return redis.error_reply('NOTOKEN only the holder of a lock may write here, and this "
        "connection has shown no token')";
    struct bytes *out = &relay->up.out;
    add_count(out, 3);
    add_word(out, "EVAL");
    add_word(out, script);
    add_word(out, "0");
}

/* A connection that shows no token may do that even if readers are refused. */
static bool is_handshake(const struct resp_head *head) {
    return resp_is(head->argument[0], "hello") || resp_is(head->argument[0], "quit") ||
           (resp_is(head->argument[0], "client") && resp_only_reads(head));
}

/* Under a token all is passed on, without one what only reads. */
static void pass_on(struct relay *relay, const struct resp_head *head, const unsigned char *bytes) {
    bool has_token = relay->pass.lock;
    if (!has_token && relay->proxy->settings->refuse_readers && !is_handshake(head)) {
        fail(relay, "NOAUTH show the token of a lock that you hold first: AUTH LOCK TOKEN");
        return;
    }
    if (!relay_dial(relay)) {
        relay_end(relay);
        return;
    }
    relay->redis.rest = head->rest;
    relay->redis.refused = !has_token && !resp_only_reads(head);
    if (relay->redis.refused)
        refuse(relay);
    else
        bytes_add(&relay->up.out, bytes, head->size);
}

/* A command that begins at `bytes`.  Returns how many of them are done with; 0: none yet.  With
 * credentials everything up to it is taken from `in`, because what follows may be met at once. */
static size_t begin(struct relay *relay, size_t at) {
    const unsigned char *bytes = relay->in.at + at;
    struct credentials credentials = {0};
    struct resp_head head;
    int read = resp_read_head(bytes, relay->in.used - at, &head);
    if (read == 0) return 0;
    if (read < 0) {
        fail(relay, "ERR Protocol error: a command is an array of bulk strings");
        return 0;
    }
    relay->redis.instead.used = 0;
    switch (read_credentials(relay, &head, &credentials, &relay->redis.instead)) {
    case NONE: pass_on(relay, &head, bytes); return head.size;
    case MALFORMED: fail(relay, "WRONGPASS these are no lock and token: AUTH LOCK TOKEN"); return 0;
    case FOUND: break;
    }
    relay_take(relay, at + head.size);
    struct fence_pass *pass = &relay->pass;
    if (!pass->lock)
        relay_ask(relay, credentials.lock, credentials.token);
    else if (pass->lock == credentials.lock && pass->token == credentials.token)
        bytes_add(&relay->up.out, relay->redis.instead.at, relay->redis.instead.used);
    else
        fail(relay, "FENCED this connection has shown another token; open a new one");
    return SIZE_MAX;
}

static void redis_advance(struct relay *relay) {
    struct redis_part *redis = &relay->redis;
    size_t at = 0;
    while (at < relay->in.used && !relay->asks && !relay->gone) {
        if (resp_is_done(&redis->rest)) {
            size_t taken = begin(relay, at);
            if (taken == SIZE_MAX) at = 0;
            if (!taken) break;
            if (taken != SIZE_MAX) at += taken;
            continue;
        }
        ptrdiff_t more = resp_read_rest(&redis->rest, relay->in.at + at, relay->in.used - at);
        if (more < 0) {
            fail(relay, "ERR Protocol error: a command is an array of bulk strings");
            return;
        }
        if (more == 0) break;
        if (!redis->refused) bytes_add(&relay->up.out, relay->in.at + at, (size_t)more);
        at += (size_t)more;
    }
    if (at && !relay->gone) relay_take(relay, at);
}

static void redis_admitted(struct relay *relay, enum fence_verdict verdict) {
    char text[400], line[440];
    if (verdict == FENCE_ENTER && relay_dial(relay)) {
        bytes_add(&relay->up.out, relay->redis.instead.at, relay->redis.instead.used);
    } else if (verdict == FENCE_ENTER) {
        relay_end(relay);
    } else {
        relay_explain(relay, verdict, text, sizeof text);
        snprintf(line, sizeof line, "%s %s", verdict == FENCE_UNSURE ? "TRYAGAIN" : "FENCED", text);
        fail(relay, line);
    }
    bytes_close(&relay->redis.instead);
}

static void redis_answered(struct relay *relay, const unsigned char *bytes, size_t size) {
    relay->redis.answered = true;
    relay_answer(relay, bytes, size);
}

/* It has said all that it had to say; or it cannot be connected to, and nobody has said anything.
 */
static void redis_up_ended(struct relay *relay) {
    static const char error[] = "-ERR the Redis server behind this fence cannot be reached\r\n";
    if (!relay->redis.answered) relay_answer(relay, error, sizeof error - 1);
    relay_end(relay);
}

/* Which commands are not answered yet is not known here, but Redis closes a connection that has
 * been half-closed only after it has executed what it got before, or will not any more. */
static enum fence_busy redis_busy(const struct relay *relay) {
    (void)relay;
    return FENCE_CLOSES;
}

const struct fence_protocol fence_redis = {redis_advance,  redis_admitted, redis_answered,
                                           redis_up_ended, redis_busy,     true};
