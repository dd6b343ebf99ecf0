/* The spellings of a reconfig that ZooKeeper takes, as one that the tree takes.
 *
 * ZooKeeper reads the parts with what Java has at hand: names before the last dot, blanks, signs
 * and empty parts do not matter to it in one place and do in another; and a number that cannot be
 * read is an error of its own (MARSHALLINGERROR).  The leader writes a request anew before it goes
 * into the log, so that every server reads the same, whatever version it is of. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "service/ensemble/change.h"
#include "service/ensemble/properties.h"

enum { PART_SIZE_MAX = 2 * SETTINGS_HOST_MAX };
static const char server_key[] = "server.";

/* ---- Texts ---- */

__attribute__((format(printf, 2, 3))) static void put(struct bytes *to, const char *format, ...) {
    char text[2 * PART_SIZE_MAX + 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bytes_add(to, text, strlen(text));
}

static struct zk_text text_between(const char *from, const char *to) {
    return (struct zk_text){from, (int32_t)(to - from)};
}

static struct zk_text trimmed(struct zk_text text) {
    const char *from = text.at, *to = text.at + text.size;
    while (from < to && (unsigned char)*from <= ' ') from++;
    while (from < to && (unsigned char)to[-1] <= ' ') to--;
    return text_between(from, to);
}

/* Takes what is before the first separator, if there is one.  False: nothing is left. */
static bool take_until(struct zk_text *rest, const char *separators, struct zk_text *part) {
    int32_t size = 0;
    if (rest->size < 0) return false;
    while (size < rest->size && !memchr(separators, rest->at[size], strlen(separators))) size++;
    *part = (struct zk_text){rest->at, size};
    if (size == rest->size)
        rest->size = -1;
    else
        *rest = text_between(rest->at + size + 1, rest->at + rest->size);
    return true;
}

/* The same, trimmed, and past empty ones. */
static bool take_part(struct zk_text *rest, const char *separators, struct zk_text *part) {
    do
        if (!take_until(rest, separators, part)) return false;
    while (!(*part = trimmed(*part)).size);
    return true;
}

/* How many parts there are, of which `part` gets the first; empty ones at the end do not count. */
static unsigned split(struct zk_text text, const char *separator, struct zk_text *part,
                      unsigned room) {
    struct zk_text one;
    unsigned count = 0, all = 0;
    while (take_until(&text, separator, &one)) {
        if (all < room) part[all] = one;
        all++;
        if (one.size) count = all;
    }
    return count;
}

static bool is_word(struct zk_text text, const char *word) {
    return (size_t)text.size == strlen(word) && strncasecmp(text.at, word, strlen(word)) == 0;
}

static bool is_text(struct zk_text text, const char *other) {
    return zk_text_equal(text, zk_text_of(other));
}

static bool has_prefix(struct zk_text text, const char *prefix) {
    return (size_t)text.size >= strlen(prefix) && memcmp(text.at, prefix, strlen(prefix)) == 0;
}

/* Whether it can be a part of a line, and is read there as it is. */
static bool is_plain(struct zk_text text) {
    for (int32_t i = 0; i < text.size; i++)
        if ((unsigned char)text.at[i] <= ' ' || text.at[i] == ',' || text.at[i] == '\\')
            return false;
    return text.size <= PART_SIZE_MAX;
}

/* Digits, perhaps with a sign. */
static bool read_number(struct zk_text text, int64_t *number) {
    const char *at = text.at, *end = at + text.size;
    bool negative = at < end && *at == '-';
    int64_t result = 0;
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end) return false;
    for (; at < end; at++) {
        int digit = *at - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(result, 10, &result) ||
            __builtin_add_overflow(result, negative ? -digit : digit, &result))
            return false;
    }
    *number = result;
    return true;
}

/* ---- Servers ---- */

static int32_t read_port(struct zk_text text, int64_t *port) {
    if (!read_number(text, port) || *port < INT32_MIN || *port > INT32_MAX) return ZK_BADARGUMENTS;
    return *port < 0 || *port > UINT16_MAX ? ZK_MARSHALLINGERROR : ZK_OK;
}

/* Parts with colons between them; those of a host in brackets are not between parts. */
static unsigned split_at_colons(struct zk_text text, struct zk_text *part, unsigned room) {
    const char *end = text.size && *text.at == '[' ? memchr(text.at, ']', (size_t)text.size) : NULL;
    if (!end) return split(text, ":", part, room);
    part[0] = text_between(text.at, end + 1);
    if (end + 1 == text.at + text.size) return 1;
    if (end[1] != ':') return 0;
    return 1 + split(text_between(end + 2, text.at + text.size), ":", part + 1, room - 1);
}

/* "host:port:port", perhaps with ":role". */
static int32_t write_address(struct zk_text value, struct bytes *to) {
    enum { HOST, PEER, ELECTION, ROLE, PARTS };
    struct zk_text part[PARTS];
    int64_t peer, election;
    unsigned count = split_at_colons(value, part, PARTS);
    if ((count != ROLE && count != PARTS) || !is_plain(part[HOST])) return ZK_BADARGUMENTS;
    int32_t err = read_port(part[PEER], &peer);
    if (!err) err = read_port(part[ELECTION], &election);
    if (err) return err;
    put(to, "%.*s:%d:%d", part[HOST].size, part[HOST].at, (int)peer, (int)election);
    if (count == ROLE) return ZK_OK;
    struct zk_text role = trimmed(part[ROLE]);
    bool observer = is_word(role, "observer");
    if (!observer && !is_word(role, "participant")) return ZK_BADARGUMENTS;
    put(to, observer ? ":observer" : ":participant");
    return ZK_OK;
}

/* "host:port", or "port" for any address.  No host is this machine to Java. */
static int32_t write_client(struct zk_text value, struct bytes *to) {
    enum { PARTS = 2 };
    struct zk_text part[PARTS];
    int64_t port;
    unsigned count = split_at_colons(value, part, PARTS);
    if (!count || count > PARTS || !is_plain(part[0])) return ZK_BADARGUMENTS;
    int32_t err = read_port(part[count - 1], &port);
    if (err) return err;
    put(to, ";");
    if (count == PARTS && !part[0].size) part[0] = zk_text_of("localhost");
    if (count == PARTS) put(to, "%.*s:", part[0].size, part[0].at);
    put(to, "%d", (int)port);
    return ZK_OK;
}

/* The client's part is judged first. */
static int32_t write_server(struct zk_text number_text, struct zk_text value, struct bytes *to) {
    enum { SERVER, CLIENT, PARTS };
    struct zk_text part[PARTS];
    struct bytes client = {0};
    int64_t number;
    if (!read_number(number_text, &number)) return ZK_MARSHALLINGERROR;
    if (number < 0 || number > MEMBER_NUMBER_MAX) return ZK_BADARGUMENTS;
    unsigned count = split(value, ";", part, PARTS);
    if (!count && value.size) return ZK_MARSHALLINGERROR;
    if (!count || count > PARTS) return ZK_BADARGUMENTS;
    int32_t err = count == PARTS ? write_client(part[CLIENT], &client) : ZK_OK;
    put(to, "%sserver.%d=", to->used ? "\n" : "", (int)number);
    if (!err) err = write_address(part[SERVER], to);
    bytes_add(to, client.at, client.used);
    bytes_close(&client);
    return err;
}

/* ---- What is asked for ---- */

/* Of another key than server.N, for the tree to judge. */
static int32_t write_line(struct zk_text key, struct zk_text value, struct bytes *to) {
    if (!is_plain(key) || !is_plain(value)) return ZK_BADARGUMENTS;
    put(to, "%s%.*s=%.*s", to->used ? "\n" : "", key.size, key.at, value.size, value.at);
    return ZK_OK;
}

/* A server that joins has an address for clients.  Weights may join, as ZooKeeper does not have
 * it. */
static int32_t write_joining(struct zk_text joining, struct bytes *to) {
    struct zk_text one, key, value, more;
    int32_t err = ZK_OK;
    while (!err && take_part(&joining, ",", &one)) {
        if (!take_part(&one, "=", &key) || !take_part(&one, "=", &value) ||
            take_part(&one, "=", &more))
            return ZK_BADARGUMENTS;
        const char *dot = memrchr(key.at, '.', (size_t)key.size);
        struct zk_text number = dot ? text_between(dot + 1, key.at + key.size) : key;
        size_t before = to->used;
        if (has_prefix(key, "weight.")) {
            err = write_line(key, value, to);
            continue;
        }
        err = write_server(number, value, to);
        bool has_client = !err && memchr(to->at + before, ';', to->used - before);
        if (!err && !has_client) err = ZK_BADARGUMENTS;
    }
    return err;
}

/* Numbers that no member can have leave nothing. */
static int32_t write_leaving(struct zk_text leaving, struct bytes *to) {
    struct zk_text one;
    int64_t number;
    while (take_part(&leaving, ",", &one)) {
        if (!read_number(one, &number)) return ZK_MARSHALLINGERROR;
        if (number >= 0 && number <= MEMBER_NUMBER_MAX)
            put(to, "%s%d", to->used ? "," : "", (int)number);
    }
    return ZK_OK;
}

/* A hexadecimal number, which says nothing here. */
static bool is_version(struct zk_text text) {
    int32_t digits = 0;
    if (text.size && (*text.at == '-' || *text.at == '+'))
        text = text_between(text.at + 1, text.at + text.size);
    while (digits < text.size && isxdigit((unsigned char)text.at[digits])) digits++;
    return digits == text.size && digits > 0 && digits <= 16;
}

/* The number after the first dot. */
static bool read_key(struct zk_text key, int64_t *number) {
    const char *dot = memchr(key.at, '.', (size_t)key.size);
    return read_number(dot ? text_between(dot + 1, key.at + key.size) : key, number);
}

/* Weights in a list are taken without groups, too, as ZooKeeper does not have it. */
static int32_t write_weight(struct zk_text key, struct zk_text value, struct bytes *to) {
    int64_t id, weight;
    if (!read_key(key, &id) || !read_number(value, &weight)) return ZK_MARSHALLINGERROR;
    if (id < 0 || id > MEMBER_NUMBER_MAX || weight < 0 || weight > INT32_MAX)
        return ZK_BADARGUMENTS;
    put(to, "%sweight.%d=%d", to->used ? "\n" : "", (int)id, (int)weight);
    return ZK_OK;
}

/* Members cannot be put into groups while they serve: see decision 10. */
static int32_t refuse_group(struct zk_text key, struct zk_text value) {
    struct zk_text one;
    int64_t number;
    bool is_read = read_key(key, &number);
    while (value.size && value.at[value.size - 1] == ':') value.size--;
    while (is_read && take_until(&value, ":", &one)) is_read = read_number(one, &number);
    return is_read ? ZK_BADARGUMENTS : ZK_MARSHALLINGERROR;
}

static int32_t write_property(struct zk_text key, struct zk_text value, struct bytes *to) {
    if (has_prefix(key, server_key)) {
        size_t before = strlen(server_key);
        return write_server(text_between(key.at + before, key.at + key.size), value, to);
    }
    if (has_prefix(key, "weight")) return write_weight(key, value, to);
    if (has_prefix(key, "group")) return refuse_group(key, value);
    if (is_text(key, "version")) return is_version(value) ? ZK_OK : ZK_MARSHALLINGERROR;
    return write_line(key, value, to);
}

/* ZooKeeper has no ids of directories and ensembles. */
static bool is_known(struct zk_text key) {
    return has_prefix(key, server_key) || has_prefix(key, "weight") || has_prefix(key, "group") ||
           is_text(key, "version") || has_prefix(key, "directory.") || is_text(key, "ensemble");
}

/* All keys are looked at before any of the values. */
static int32_t judge_keys(struct properties *list) {
    bool known = true;
    enum properties_found found;
    while ((found = properties_next(list)) == PROPERTIES_ONE)
        known &= is_known(trimmed(change_text(&list->key)));
    if (found == PROPERTIES_BROKEN) return ZK_MARSHALLINGERROR;
    return known ? ZK_OK : ZK_BADARGUMENTS;
}

static int32_t write_list(struct zk_text text, struct bytes *to) {
    struct properties list = {.rest = text};
    int32_t err = judge_keys(&list);
    list.rest = text;
    while (!err && properties_next(&list) == PROPERTIES_ONE)
        err = write_property(change_text(&list.key), change_text(&list.value), to);
    properties_close(&list);
    return err;
}

int32_t change_respell(struct zk_reconfig_request *request, struct spelling *text) {
    enum { SIZE_MAX_EACH = 64 << 10 }; /* far more than all members take */
    int32_t err = ZK_OK;
    if (request->members.size > SIZE_MAX_EACH || request->joining.size > SIZE_MAX_EACH ||
        request->leaving.size > SIZE_MAX_EACH)
        return ZK_BADARGUMENTS;
    if (request->members.size >= 0) { /* the rest of the request does not count */
        err = write_list(request->members, &text->members);
        *request = (struct zk_reconfig_request){zk_null(), zk_null(), change_text(&text->members),
                                                request->config_id};
        return err;
    }
    err = write_leaving(request->leaving, &text->leaving);
    if (!err) err = write_joining(request->joining, &text->joining);
    request->leaving = change_text(&text->leaving);
    request->joining = change_text(&text->joining);
    return err;
}

void change_close_spelling(struct spelling *text) {
    bytes_close(&text->joining);
    bytes_close(&text->leaving);
    bytes_close(&text->members);
}
