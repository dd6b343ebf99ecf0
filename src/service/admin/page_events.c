/* The state as a stream of events, which a browser goes on reading (server-sent events).
 *
 * Each second one text is made for all streams.  A stream keeps one event, the next only when its
 * reader has taken that: a slow one gets fewer, and never more memory.  The library ends whoever
 * takes nothing for some seconds. */
#include <sys/socket.h>

#include "service/admin/http.h"

enum {
    STREAMS_MAX = 16, /* fewer than a door has connections: streams cannot lock others out */
    PERIOD_MS = 1000,
    BLOCK_BYTES = 4096,
    SOCKET_BYTES = 4 << 10, /* that the system keeps for a reader */
};

struct stream {
    struct stream *next;
    struct door *door;
    struct MHD_Connection *connection;
    struct bytes text; /* an event ... */
    size_t taken;      /* ... of which the reader has so much */
    bool suspended;    /* it has all of it, and waits for the next one */
};

/* ---- Events ---- */

static void make_event(struct server *s, struct bytes *out) {
    struct page_events *events = &s->http->events;
    bool is_interval = events->count > 0;
    json_t *state =
        page_state(s, is_interval ? &events->reads : NULL, is_interval ? &events->writes : NULL);
    report_print(out, "event: state\ndata: ");
    http_add_json(out, state, JSON_COMPACT);
    report_print(out, "\n\n");
    json_decref(state);
}

static void refill(struct stream *stream, const struct bytes *event) {
    if (stream->taken < stream->text.used) return;
    stream->text.used = stream->taken = 0;
    bytes_add(&stream->text, event->at, event->used);
    if (stream->suspended) stream->door->mhd->resume_connection(stream->connection);
    stream->suspended = false;
}

static void mark_interval(struct server *s) {
    summary_take_mark(&s->statistics.reads, &s->http->events.reads);
    summary_take_mark(&s->statistics.writes, &s->http->events.writes);
}

static void ticked(uv_timer_t *timer) {
    struct server *s = timer->data;
    struct bytes event = {0};
    clock_read(&s->clock);
    enum busy_kind before = busy_with(&s->work, BUSY_REPORTS);
    make_event(s, &event);
    mark_interval(s);
    for (struct stream *stream = s->http->events.first; stream; stream = stream->next)
        refill(stream, &event);
    bytes_close(&event);
    if (s->http->addresses.daemon) http_run(&s->http->addresses);
    if (s->http->socket.daemon) http_run(&s->http->socket);
    busy_with(&s->work, before);
}

/* ---- Streams ---- */

static ssize_t take(void *context, uint64_t position, char *to, size_t room) {
    struct stream *stream = context;
    size_t left = stream->text.used - stream->taken;
    (void)position;
    if (!left) {
        stream->suspended = true;
        stream->door->mhd->suspend_connection(stream->connection);
        http_note_answer(stream->door, stream->connection);
        return 0;
    }
    size_t size = left < room ? left : room;
    memcpy(to, stream->text.at + stream->taken, size);
    stream->taken += size;
    return (ssize_t)size;
}

static void ended(void *context) {
    struct stream *stream = context;
    struct page_events *events = &stream->door->server->http->events;
    struct stream **at = &events->first;
    while (*at != stream) at = &(*at)->next;
    *at = stream->next;
    if (!--events->count) uv_timer_stop(&events->timer);
    bytes_close(&stream->text);
    free(stream);
}

static struct stream *open_stream(const struct http_request *request) {
    struct server *s = request->door->server;
    struct page_events *events = &s->http->events;
    struct stream *stream = calloc(1, sizeof *stream);
    cv_assert(stream);
    stream->door = request->door;
    stream->connection = request->connection;
    report_print(&stream->text, "retry: %d\n\n", PERIOD_MS);
    make_event(s, &stream->text);
    stream->next = events->first;
    events->first = stream;
    if (!events->count++) {
        mark_interval(s);
        uv_timer_start(&events->timer, ticked, PERIOD_MS, PERIOD_MS);
    }
    return stream;
}

enum MHD_Result page_events_begin(const struct http_request *request) {
    struct server *s = request->door->server;
    const struct mhd *mhd = request->door->mhd;
    if (s->http->events.count == STREAMS_MAX) {
        struct answer answer = page_error(MHD_HTTP_SERVICE_UNAVAILABLE, "Busy",
                                          "as many streams of events are open as there may be");
        return http_send(request, &answer);
    }
    setsockopt(http_socket(request), SOL_SOCKET, SO_SNDBUF, &(int){SOCKET_BYTES}, sizeof(int));
    struct stream *stream = open_stream(request);
    struct MHD_Response *response =
        mhd->create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, take, stream, ended);
    if (!response) {
        ended(stream);
        return MHD_NO;
    }
    http_add_headers(mhd, response, "text/event-stream");
    enum MHD_Result queued = mhd->queue_response(request->connection, MHD_HTTP_OK, response);
    mhd->destroy_response(response);
    return queued;
}

void page_events_open(struct server *s) {
    uv_timer_init(&s->loop, &s->http->events.timer);
    s->http->events.timer.data = s;
}

void page_events_end(struct http *http) {
    for (struct stream *stream = http->events.first; stream; stream = stream->next)
        if (stream->suspended) http->mhd.resume_connection(stream->connection);
}
