/* HTTP/1.1.  The token comes in a header field, Conclave-Token, and with several locks the lock's
 * name in another, Conclave-Lock.  A method that may change something needs one; a safe one may
 * come without, and is passed on then.  One request of a connection is passed on at a time, as it
 * came; the next when the response to it is complete. */
#include <stdio.h>

#include "fence/proxy.h"

/* ---- Answers of the fence itself ---- */

static const char *reason(int status) {
    switch (status) {
    case 400: return "Bad Request";
    case 412: return "Precondition Failed";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 505: return "HTTP Version Not Supported";
    default: return "Service Unavailable";
    }
}

/* Names of locks may have characters that JSON has to escape; what a client sent is never in it. */
static void quote(struct bytes *out, const char *text) {
    char escape[8];
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\') {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text);
            bytes_add(out, escape, 6);
        } else {
            bytes_add(out, text, 1);
        }
    }
}

/* The connection ends with it: what is left of the request need not be read. */
static void refuse(struct relay *relay, int status, const char *error, const char *why) {
    struct bytes body = {0};
    char head[256];
    bytes_add(&body, "{\"error\":\"", 10);
    quote(&body, error);
    bytes_add(&body, "\",\"message\":\"", 13);
    quote(&body, why);
    bytes_add(&body, "\"}\n", 3);
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: "
                        "%zu\r\nConnection: close\r\n\r\n",
                        status, reason(status), body.used);
    relay_answer(relay, head, (size_t)size);
    if (!relay->web.to_head) relay_answer(relay, body.at, body.used);
    bytes_close(&body);
    relay_end(relay);
}

/* ---- Requests ---- */

/* What is known of the request is in web.head from here on. */
static void pass_on(struct relay *relay) {
    struct web_part *web = &relay->web;
    if (!relay_dial(relay)) return; /* advance comes again */
    bytes_add(&relay->up.out, web->head.at, web->head.used);
    bytes_close(&web->head);
    web->under_way = true;
    web->answering = false;
}

static void begin_request(struct relay *relay, const struct http_head *head) {
    struct web_part *web = &relay->web;
    struct proxy *proxy = relay->proxy;
    struct fence_lock *lock = &proxy->locks[0];
    int64_t token = 0;
    web->to_head = http_is(head->method, "HEAD");
    if (!head->token.at && (!http_is_safe(head) || proxy->settings->refuse_readers)) {
        refuse(relay, 412, "no_token",
               "only the holder of a lock may do this: show its token in Conclave-Token");
        return;
    }
    if (head->lock.at)
        lock = proxy_lock(proxy, head->lock.at, head->lock.size);
    else if (head->token.at && proxy->settings->lock_count > 1)
        lock = NULL;
    if (!lock) {
        refuse(relay, 400, "no_lock", "name one of the locks of this fence in Conclave-Lock");
        return;
    }
    if (head->token.at && !fence_parse_token(head->token.at, head->token.size, &token)) {
        refuse(relay, 400, "malformed_token", "Conclave-Token is not a token");
        return;
    }
    bool asks = head->token.at;
    web->request = head->body;
    web->close = head->close;
    web->head.used = 0;
    bytes_add(&web->head, relay->in.at, head->size);
    relay_take(relay, head->size);
    if (asks)
        relay_ask(relay, lock, token);
    else
        pass_on(relay);
}

static void pass_body(struct relay *relay) {
    struct web_part *web = &relay->web;
    ptrdiff_t size = http_read_body(&web->request, relay->in.at, relay->in.used);
    if (size < 0) { /* whatever the resource thinks of it: it will not see the end */
        if (!web->answering)
            refuse(relay, 400, "malformed", "a malformed chunk of the body");
        else
            relay_end(relay);
        return;
    }
    bytes_add(&relay->up.out, relay->in.at, (size_t)size);
    relay_take(relay, (size_t)size);
}

static void web_advance(struct relay *relay) {
    struct web_part *web = &relay->web;
    struct http_head head;
    if (web->head.used) pass_on(relay); /* it has waited for the last connection to close */
    while (relay->in.used && !relay->asks && !relay->gone) {
        if (web->under_way) {
            if (web->request.done || relay->up.closing) return;
            pass_body(relay);
            continue;
        }
        if (web->head.used) return;
        int read = http_read_request(relay->in.at, relay->in.used, &head);
        if (read == 0) return;
        if (read < 0)
            refuse(relay, head.error, "malformed", head.why);
        else
            begin_request(relay, &head);
    }
}

static void web_admitted(struct relay *relay, enum fence_verdict verdict) {
    char text[400];
    if (verdict == FENCE_ENTER) {
        pass_on(relay);
        return;
    }
    relay_explain(relay, verdict, text, sizeof text);
    if (verdict == FENCE_UNSURE)
        refuse(relay, 503, "not_now", text);
    else
        refuse(relay, 412, "stale_token", text);
}

/* ---- Responses ---- */

/* The resource is done with the request. */
static void complete(struct relay *relay) {
    struct web_part *web = &relay->web;
    bool ends = web->close || !web->request.done; /* it did not want all of the body */
    web->under_way = web->answering = false;
    relay_leave(relay);
    if (ends || relay->gone) relay_hang_up(relay);
    if (ends) relay_end(relay);
}

static void distrust(struct relay *relay, const char *why) {
    relay_hang_up(relay);
    relay_leave(relay);
    if (relay->web.under_way && !relay->web.answering && !relay->gone)
        refuse(relay, 502, "bad_response", why);
    else
        relay_end(relay);
}

/* The head of a response; 0: it is not complete, or refused. */
static size_t begin_response(struct relay *relay) {
    struct web_part *web = &relay->web;
    struct http_head head;
    int read = http_read_response(web->answer.at, web->answer.used, web->to_head, &head);
    if (read == 0) return 0;
    if (read < 0 || head.status == 101) {
        distrust(relay, "the response of the server behind this fence cannot be understood");
        return 0;
    }
    if (head.status >= 200) {
        web->response = head.body;
        web->answering = true;
        web->close |= head.close;
    }
    return head.size;
}

static void web_answered(struct relay *relay, const unsigned char *bytes, size_t size) {
    struct web_part *web = &relay->web;
    if (!web->under_way) { /* nobody has asked */
        distrust(relay, NULL);
        return;
    }
    bytes_add(&web->answer, bytes, size);
    size_t at = 0;
    while (web->under_way && at < web->answer.used) {
        size_t more;
        if (!web->answering) {
            memmove(web->answer.at, web->answer.at + at, web->answer.used -= at);
            at = 0;
            more = begin_response(relay);
            if (!more) return;
        } else {
            ptrdiff_t taken =
                http_read_body(&web->response, web->answer.at + at, web->answer.used - at);
            if (taken < 0) {
                distrust(relay, NULL);
                return;
            }
            more = (size_t)taken;
        }
        relay_answer(relay, web->answer.at + at, more);
        at += more;
        if (web->answering && web->response.done) complete(relay);
    }
    bool extra = at < web->answer.used; /* behind the end of the response */
    net_shrink(&web->answer);
    if (extra && !relay->gone) distrust(relay, NULL);
}

static void web_up_ended(struct relay *relay) {
    struct web_part *web = &relay->web;
    if (web->under_way && !web->answering)
        refuse(relay, 502, "unreachable", "the server behind this fence gave no answer");
    else if (web->under_way)
        relay_end(relay);
}

/* A response shows that it is done.  A request that is not complete must not become so. */
static enum fence_busy web_busy(const struct relay *relay) {
    const struct web_part *web = &relay->web;
    if (!web->under_way) return FENCE_IDLE;
    return web->request.done && !net_unsent(&relay->up) ? FENCE_ANSWERS : FENCE_CLOSES;
}

const struct fence_protocol fence_web = {web_advance,  web_admitted, web_answered,
                                         web_up_ended, web_busy,     false};
