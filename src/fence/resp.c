#include "fence/resp.h"

#include <string.h>
#include <strings.h>

/* A line of one kind: its letter, a decimal number without leading zeros, CR LF.  Returns its size,
 * 0: incomplete, -1: something else. */
static int read_number(const unsigned char *bytes, size_t size, unsigned char kind, int64_t max,
                       int64_t *number) {
    int64_t value = 0;
    size_t at = 1;
    if (!size) return 0;
    if (bytes[0] != kind) return -1;
    for (; at < size && bytes[at] >= '0' && bytes[at] <= '9'; at++) {
        if (at > 1 && value == 0) return -1;
        value = value * 10 + (bytes[at] - '0');
        if (value > max) return -1;
    }
    if (at == size) return 0;
    if (at == 1 || bytes[at] != '\r') return -1;
    if (at + 1 == size) return 0;
    if (bytes[at + 1] != '\n') return -1;
    *number = value;
    return (int)at + 2;
}

int resp_read_head(const unsigned char *bytes, size_t size, struct resp_head *head) {
    *head = (struct resp_head){0};
    int read = read_number(bytes, size, '*', RESP_ARGUMENTS_MAX, &head->arguments);
    if (read <= 0) return read;
    if (head->arguments == 0) return -1;
    head->size = (size_t)read;
    head->rest.arguments = head->arguments;
    while (head->rest.arguments && head->kept < RESP_KEPT) {
        int64_t length;
        read = read_number(bytes + head->size, size - head->size, '$', RESP_BULK_MAX, &length);
        if (read <= 0) return read;
        head->rest.arguments--;
        if (length > RESP_KEPT_MAX) {
            head->size += (size_t)read;
            head->rest.bytes = length + 2;
            return head->kept ? 1 : -1; /* no name of a command is so long */
        }
        const unsigned char *at = bytes + head->size + read;
        if (size - head->size - (size_t)read < (size_t)length + 2) return 0;
        if (at[length] != '\r' || at[length + 1] != '\n') return -1;
        head->argument[head->kept++] = (struct resp_text){(const char *)at, (size_t)length};
        head->size += (size_t)read + (size_t)length + 2;
    }
    return 1;
}

ptrdiff_t resp_read_rest(struct resp_rest *rest, const unsigned char *bytes, size_t size) {
    size_t done = 0;
    while (done < size && !resp_is_done(rest)) {
        if (rest->bytes == 0) {
            int64_t length;
            int read = read_number(bytes + done, size - done, '$', RESP_BULK_MAX, &length);
            if (read < 0) return -1;
            if (read == 0) break;
            rest->arguments--;
            rest->bytes = length + 2;
            done += (size_t)read;
        } else if (rest->bytes > 2) {
            size_t taken = size - done;
            if ((int64_t)taken > rest->bytes - 2) taken = (size_t)rest->bytes - 2;
            rest->bytes -= (int64_t)taken;
            done += taken;
        } else if (bytes[done++] == (rest->bytes == 2 ? '\r' : '\n')) {
            rest->bytes--;
        } else {
            return -1;
        }
    }
    return (ptrdiff_t)done;
}

bool resp_is(struct resp_text text, const char *word) {
    return strlen(word) == text.size && strncasecmp(text.at, word, text.size) == 0;
}

/* ---- What only reads ---- */

/* Those that also can write (SORT ... STORE, GETEX, PFCOUNT, EVAL) are not here, nor are those that
 * others notice (PUBLISH) or that say too much (MONITOR).  In a MULTI each command is judged. */
static const char *const READS[] = {
    /* the connection */
    "ping", "echo", "select", "quit", "reset", "hello", "auth", "readonly", "readwrite", "command",
    "multi", "exec", "discard", "watch", "unwatch", "subscribe", "psubscribe", "ssubscribe",
    "unsubscribe", "punsubscribe", "sunsubscribe",
    /* keys */
    "exists", "type", "ttl", "pttl", "expiretime", "pexpiretime", "keys", "scan", "randomkey",
    "dump", "object", "dbsize", "time", "info", "lastsave", "sort_ro",
    /* values */
    "get", "mget", "strlen", "getrange", "substr", "lcs", "getbit", "bitcount", "bitpos",
    "bitfield_ro", "llen", "lindex", "lrange", "lpos", "hget", "hmget", "hgetall", "hkeys", "hvals",
    "hlen", "hexists", "hstrlen", "hrandfield", "hscan", "smembers", "sismember", "smismember",
    "scard", "srandmember", "sinter", "sintercard", "sunion", "sdiff", "sscan", "zcard", "zcount",
    "zlexcount", "zscore", "zmscore", "zrank", "zrevrank", "zrange", "zrangebyscore", "zrangebylex",
    "zrevrange", "zrevrangebyscore", "zrevrangebylex", "zinter", "zintercard", "zunion", "zdiff",
    "zrandmember", "zscan", "geodist", "geohash", "geopos", "geosearch", "georadius_ro",
    "georadiusbymember_ro", "xlen", "xrange", "xrevrange", "xread", "xpending", "xinfo"};

static const char *const CLIENT_READS[] = {"setname",  "getname",      "id",       "info",
                                           "setinfo",  "list",         "reply",    "caching",
                                           "tracking", "trackinginfo", "getredir", "no-touch"};

static bool is_one_of(struct resp_text text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (resp_is(text, words[i])) return true;
    return false;
}

bool resp_only_reads(const struct resp_head *head) {
    if (resp_is(head->argument[0], "client"))
        return head->kept > 1 && is_one_of(head->argument[1], CLIENT_READS,
                                           sizeof CLIENT_READS / sizeof *CLIENT_READS);
    return is_one_of(head->argument[0], READS, sizeof READS / sizeof *READS);
}
