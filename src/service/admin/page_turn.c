/* Parts of the page take turns.  Each is bounded, but many may be asked for at once, and to answer
 * them all would stop the loop: when those of one iteration have taken some time, the rest waits,
 * in the order in which it came, and each iteration answers one of them. */
#include "service/admin/http.h"

enum {
    TURN_NS = 5000000,
    NEXT_MS = 1 /* a timer of 0 that is started by a timer may fire in the same iteration */
};

struct turn {
    struct http_state state; /* first */
    struct turn *next;
    struct door *door;
    struct MHD_Connection *connection;
};

static enum MHD_Result go_on(const struct http_request *request, struct http_state *state,
                             const char *upload, size_t *upload_size) {
    (void)state, (void)upload, (void)upload_size;
    clock_read(&request->door->server->clock);
    return page_answer_now(request);
}

static void end(struct http_state *state) {
    struct turn *turn = (struct turn *)state, **at = &turn->door->server->http->turns.first;
    while (*at && *at != turn) at = &(*at)->next;
    if (*at) *at = turn->next;
    free(turn);
}

bool page_turn_waits(const struct http_request *request, void **seen) {
    struct page_turns *turns = &request->door->server->http->turns;
    struct turn **last = &turns->first, *turn;
    if (turns->spent_ns < TURN_NS && !turns->first) return false;
    *seen = turn = calloc(1, sizeof *turn);
    cv_assert(turn);
    *turn = (struct turn){{go_on, end}, NULL, request->door, request->connection};
    while (*last) last = &(*last)->next;
    *last = turn;
    request->door->mhd->suspend_connection(request->connection);
    return true;
}

static void ticked(uv_timer_t *timer) {
    struct server *s = timer->data;
    struct page_turns *turns = &s->http->turns;
    struct turn *first = turns->first;
    turns->spent_ns = 0;
    if (!first) return;
    turns->first = first->next;
    uv_timer_start(timer, ticked, NEXT_MS, 0);
    s->http->mhd.resume_connection(first->connection);
    http_run(first->door);
}

void page_turn_took(struct server *s, uint64_t since_ns) {
    struct page_turns *turns = &s->http->turns;
    turns->spent_ns += uv_hrtime() - since_ns;
    uv_timer_start(&turns->timer, ticked, NEXT_MS, 0);
}

void page_turns_open(struct server *s) {
    uv_timer_init(&s->loop, &s->http->turns.timer);
    s->http->turns.timer.data = s;
}

void page_turns_end(struct http *http) {
    for (struct turn *turn = http->turns.first; turn; turn = turn->next)
        http->mhd.resume_connection(turn->connection);
}
