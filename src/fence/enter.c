/* Entering: those who ask are judged, again whenever something has changed. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/logger.h"
#include "fence/proxy.h"
#include "fence/view.h"

void relay_unask(struct relay *relay) {
    if (!relay->asks) return;
    struct relay **at = &relay->proxy->asking;
    while (*at != relay) at = &(*at)->next_asking;
    *at = relay->next_asking;
    relay->asks = NULL;
}

struct fence_lock *proxy_lock(struct proxy *proxy, const char *name, size_t size) {
    for (size_t i = 0; i < proxy->settings->lock_count; i++)
        if (strlen(proxy->locks[i].name) == size && memcmp(proxy->locks[i].name, name, size) == 0)
            return &proxy->locks[i];
    return NULL;
}

static void decide(struct relay *relay, enum fence_verdict verdict) {
    const struct fence_lock *lock = relay->asks;
    relay_unask(relay);
    if (verdict != FENCE_ENTER)
        logger_info("a client was refused", LOGGER_STRING("lock", lock->name),
                    LOGGER_INT("token", relay->token), LOGGER_INT("newest", lock->highest));
    relay->proxy->settings->protocol->admitted(relay, verdict);
    relay_advance(relay);
}

/* Durable before the first byte passes.  If that fails nothing passes. */
static bool enter(struct relay *relay) {
    struct proxy *proxy = relay->proxy;
    fence_enter(relay->asks, &relay->pass, relay->token);
    if (fence_memory_raise(&proxy->memory, relay->asks->name, relay->token) == 0) return true;
    logger_error("a token cannot be remembered, so its holder is refused",
                 LOGGER_STRING("error", proxy->memory.message));
    relay_leave(relay);
    return false;
}

static void judge(struct relay *relay, uint64_t now_us) {
    struct proxy *proxy = relay->proxy;
    size_t index = (size_t)(relay->asks - proxy->locks);
    if (!relay->pass.lock) {
        bool asked = relay->question && proxy->answered[index] >= relay->question;
        enum fence_verdict verdict =
            fence_judge(relay->asks, relay->token, asked, proxy->settings->strict);
        if (verdict == FENCE_ASK) {
            if (!relay->question && relay->asks->reach == FENCE_REACHED)
                relay->question = fence_view_ask(proxy->view, index);
            if (now_us >= relay->until_us) decide(relay, FENCE_UNSURE);
            return;
        }
        if (verdict == FENCE_ENTER && !enter(relay)) verdict = FENCE_UNSURE;
        if (verdict != FENCE_ENTER) {
            decide(relay, verdict);
            return;
        }
    }
    if (fence_is_clear(&relay->pass)) {
        decide(relay, FENCE_ENTER);
    } else if (now_us >= relay->until_us) {
        relay_leave(relay);
        decide(relay, FENCE_UNSURE);
    }
}

void proxy_judge(struct proxy *proxy) {
    uint64_t now_us = clock_monotonic_us();
    proxy->changed = false;
    uv_idle_stop(&proxy->idle);
    for (struct relay *relay = proxy->asking, *next; relay; relay = next) {
        next = relay->next_asking;
        judge(relay, now_us);
    }
}

static void judge_changed(uv_idle_t *idle) { proxy_judge(idle->data); }

void proxy_change(struct proxy *proxy) {
    proxy->changed = true;
    uv_idle_start(&proxy->idle, judge_changed);
}

void relay_ask(struct relay *relay, struct fence_lock *lock, int64_t token) {
    cv_assert(!relay->asks && !relay->pass.lock && !relay->gone);
    relay->asks = relay->asked = lock;
    relay->token = token;
    relay->question = 0;
    relay->until_us = clock_monotonic_us() + (uint64_t)relay->proxy->settings->patience_ms * 1000;
    relay->next_asking = relay->proxy->asking;
    relay->proxy->asking = relay;
    judge(relay, 0);
}

const char *relay_explain(const struct relay *relay, enum fence_verdict verdict, char *text,
                          size_t size) {
    const struct fence_lock *lock = relay->asked;
    int64_t token = relay->token;
    if (verdict == FENCE_OLDER)
        snprintf(text, size,
                 "token %" PRId64 " is older than %" PRId64 ", which was let through: its holder "
                 "has lost the lock %s",
                 token, lock->highest, lock->name);
    else if (verdict == FENCE_NOT_HELD && lock->holder)
        snprintf(text, size, "the lock %s is held with token %" PRId64 ", not %" PRId64, lock->name,
                 lock->holder, token);
    else if (verdict == FENCE_NOT_HELD)
        snprintf(text, size, "nobody holds the lock %s, so token %" PRId64 " is over", lock->name,
                 token);
    else if (lock->reach != FENCE_REACHED)
        snprintf(text, size, "the servers cannot be asked who holds the lock %s; try again",
                 lock->name);
    else
        snprintf(text, size,
                 "the resource is not done with an older token of the lock %s; try again",
                 lock->name);
    return text;
}
