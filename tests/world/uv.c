/* libuv on virtual time: the loop, timers, idle and check handles, signals, work. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>

#include "uv_parts.h"

/* ---- Handles ---- */

struct machine *uv_machine(const uv_loop_t *loop) {
    return loop->internal_fields;
}

static void link_handle(uv_loop_t *loop, uv_handle_t *handle, uv_handle_type type) {
    handle->loop = loop;
    handle->type = type;
    handle->flags = 0;
    handle->close_cb = NULL;
    handle->handle_queue[0] = NULL;
    handle->handle_queue[1] = loop->handle_queue[1];
    if (loop->handle_queue[1])
        ((uv_handle_t *)loop->handle_queue[1])->handle_queue[0] = handle;
    else
        loop->handle_queue[0] = handle;
    loop->handle_queue[1] = handle;
}

static void unlink_handle(uv_handle_t *handle) {
    uv_handle_t *after = handle->handle_queue[0], *before = handle->handle_queue[1];
    *(before ? &before->handle_queue[0] : &handle->loop->handle_queue[0]) = after;
    *(after ? &after->handle_queue[1] : &handle->loop->handle_queue[1]) = before;
}

void uv_begin_handle(uv_loop_t *loop, uv_handle_t *handle, uv_handle_type type) {
    link_handle(loop, handle, type);
}

int uv_is_active(const uv_handle_t *handle) { return (handle->flags & UV_ACTIVE) != 0; }
int uv_is_closing(const uv_handle_t *handle) { return (handle->flags & UV_CLOSING) != 0; }

void uv_close(uv_handle_t *handle, uv_close_cb close_cb) {
    uv_handle_t **last = &handle->loop->closing_handles;
    cv_assert(!uv_is_closing(handle));
    handle->flags = (handle->flags & ~(unsigned)UV_ACTIVE) | UV_CLOSING;
    handle->close_cb = close_cb;
    handle->next_closing = NULL;
    if (handle->type == UV_TCP) uv_tcp_shut((uv_tcp_t *)handle);
    while (*last) last = &(*last)->next_closing;
    *last = handle;
}

void uv_walk(uv_loop_t *loop, uv_walk_cb walk_cb, void *context) {
    for (uv_handle_t *handle = loop->handle_queue[0], *next; handle; handle = next) {
        next = handle->handle_queue[0];
        walk_cb(handle, context);
    }
}

/* ---- Timers ---- */

uint64_t uv_hrtime(void) { return machine_now() ? machine_monotonic(machine_now()) : world->now; }
uint64_t uv_now(const uv_loop_t *loop) { return loop->time; }

void uv_update_time(uv_loop_t *loop) { loop->time = machine_monotonic(uv_machine(loop)) / MS; }

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer) {
    link_handle(loop, (uv_handle_t *)timer, UV_TIMER);
    timer->timer_cb = NULL;
    timer->repeat = 0;
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t timeout, uint64_t repeat) {
    if (uv_is_closing((uv_handle_t *)timer)) return UV_EINVAL;
    timer->timer_cb = call;
    timer->timeout = timer->loop->time + timeout;
    timer->repeat = repeat;
    timer->start_id = timer->loop->timer_counter++;
    timer->flags |= UV_ACTIVE;
    return 0;
}

int uv_timer_stop(uv_timer_t *timer) {
    timer->flags &= ~(unsigned)UV_ACTIVE;
    return 0;
}

static uv_timer_t *next_timer(const uv_loop_t *loop) {
    uv_timer_t *next = NULL;
    for (uv_handle_t *h = loop->handle_queue[0]; h; h = h->handle_queue[0]) {
        uv_timer_t *timer = (uv_timer_t *)h;
        if (h->type != UV_TIMER || !uv_is_active(h)) continue;
        if (!next || timer->timeout < next->timeout ||
            (timer->timeout == next->timeout && timer->start_id < next->start_id))
            next = timer;
    }
    return next;
}

static void run_timers(uv_loop_t *loop) {
    for (uv_timer_t *timer; (timer = next_timer(loop)) && timer->timeout <= loop->time;) {
        uv_timer_stop(timer);
        if (timer->repeat) uv_timer_start(timer, timer->timer_cb, timer->repeat, timer->repeat);
        timer->timer_cb(timer);
    }
}

/* ---- Idle, prepare, check, signals ---- */

int uv_idle_init(uv_loop_t *loop, uv_idle_t *idle) {
    link_handle(loop, (uv_handle_t *)idle, UV_IDLE);
    return 0;
}

int uv_idle_start(uv_idle_t *idle, uv_idle_cb call) {
    idle->idle_cb = call;
    idle->flags |= UV_ACTIVE;
    return 0;
}

int uv_idle_stop(uv_idle_t *idle) {
    idle->flags &= ~(unsigned)UV_ACTIVE;
    return 0;
}

int uv_prepare_init(uv_loop_t *loop, uv_prepare_t *prepare) {
    link_handle(loop, (uv_handle_t *)prepare, UV_PREPARE);
    return 0;
}

int uv_prepare_start(uv_prepare_t *prepare, uv_prepare_cb call) {
    prepare->prepare_cb = call;
    prepare->flags |= UV_ACTIVE;
    return 0;
}

int uv_check_init(uv_loop_t *loop, uv_check_t *check) {
    link_handle(loop, (uv_handle_t *)check, UV_CHECK);
    return 0;
}

int uv_check_start(uv_check_t *check, uv_check_cb call) {
    check->check_cb = call;
    check->flags |= UV_ACTIVE;
    return 0;
}

int uv_check_stop(uv_check_t *check) {
    check->flags &= ~(unsigned)UV_ACTIVE;
    return 0;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *handle) {
    link_handle(loop, (uv_handle_t *)handle, UV_SIGNAL);
    return 0;
}

int uv_signal_start(uv_signal_t *handle, uv_signal_cb call, int number) {
    handle->signal_cb = call;
    handle->signum = number;
    handle->flags |= UV_ACTIVE;
    return 0;
}

static bool any_idle(const uv_loop_t *loop) {
    for (uv_handle_t *h = loop->handle_queue[0]; h; h = h->handle_queue[0])
        if (h->type == UV_IDLE && uv_is_active(h)) return true;
    return false;
}

static void run_prepares(uv_loop_t *loop) {
    for (uv_handle_t *h = loop->handle_queue[0], *next; h; h = next) {
        next = h->handle_queue[0];
        if (h->type == UV_PREPARE && uv_is_active(h))
            ((uv_prepare_t *)h)->prepare_cb((uv_prepare_t *)h);
    }
}

static void run_checks(uv_loop_t *loop) {
    for (uv_handle_t *h = loop->handle_queue[0], *next; h; h = next) {
        next = h->handle_queue[0];
        if (h->type == UV_CHECK && uv_is_active(h)) ((uv_check_t *)h)->check_cb((uv_check_t *)h);
    }
}

/* ---- Work: a thread is a task of its own ---- */

static void do_work(void *context) {
    uv_work_t *work = context;
    struct machine *m = uv_machine(work->loop);
    bool late = rng_chance(&world->random, 0.05);
    task_sleep(random_time(&world->random, 0, late ? 500 * MS : 200 * US));
    work->work_cb(work);
    for (unsigned i = 0; i < m->works; i++)
        if (m->work[i].of == work) m->work[i].done = true;
    task_wake(m->task);
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *work, uv_work_cb work_cb, uv_after_work_cb after) {
    struct machine *m = uv_machine(loop);
    cv_assert(m->works < WORKS_MAX);
    work->loop = loop;
    work->work_cb = work_cb;
    work->after_work_cb = after;
    m->work[m->works] = (struct work){.of = work, .task = task_start(m, do_work, work)};
    m->works++;
    return 0;
}

static unsigned finished_work(const struct machine *m) {
    unsigned i = 0;
    while (i < m->works && !m->work[i].done) i++;
    return i;
}

static void finish_work(struct machine *m) {
    for (unsigned i; (i = finished_work(m)) < m->works;) {
        uv_work_t *work = m->work[i].of;
        memmove(&m->work[i], &m->work[i + 1], (--m->works - i) * sizeof *m->work);
        work->after_work_cb(work, 0);
    }
}

/* ---- The loop ---- */

int uv_loop_init(uv_loop_t *loop) {
    struct machine *m = machine_now();
    *loop = (uv_loop_t){.internal_fields = m};
    m->loop = loop;
    uv_update_time(loop);
    return 0;
}

int uv_loop_close(uv_loop_t *loop) {
    uv_machine(loop)->loop = NULL;
    return 0;
}

static bool is_ready(uv_handle_t *handle) {
    const struct machine *m = uv_machine(handle->loop);
    if (uv_is_closing(handle)) return false;
    if (handle->type == UV_SIGNAL)
        return uv_is_active(handle) && m->signals >> ((uv_signal_t *)handle)->signum & 1;
    return handle->type == UV_TCP && uv_tcp_is_ready((uv_tcp_t *)handle);
}

static unsigned ready_handles(const uv_loop_t *loop, uv_handle_t **list, unsigned max) {
    unsigned count = 0;
    for (uv_handle_t *h = loop->handle_queue[0]; h && count < max; h = h->handle_queue[0])
        if (is_ready(h)) list[count++] = h;
    return count;
}

static void dispatch(uv_handle_t *handle) {
    struct machine *m = uv_machine(handle->loop);
    if (handle->type == UV_TCP) {
        uv_tcp_dispatch((uv_tcp_t *)handle);
    } else {
        uv_signal_t *signal = (uv_signal_t *)handle;
        m->signals &= ~((uint64_t)1 << signal->signum);
        signal->signal_cb(signal, signal->signum);
    }
}

/* Ready handles are dispatched in any order; one that is closed meanwhile is skipped. */
static void poll_once(uv_loop_t *loop) {
    uv_handle_t *list[64];
    for (unsigned count = ready_handles(loop, list, 64); count; count--) {
        unsigned chosen = (unsigned)rng_below(&world->random, count);
        uv_handle_t *handle = list[chosen];
        list[chosen] = list[count - 1];
        for (uv_handle_t *h = loop->handle_queue[0]; h; h = h->handle_queue[0]) {
            if (h != handle || !is_ready(h)) continue;
            dispatch(h);
            break;
        }
    }
    finish_work(uv_machine(loop));
    if (*uv_machine(loop)->order.verb) members_obey(uv_machine(loop));
}

static void poll(uv_loop_t *loop) {
    struct machine *m = uv_machine(loop);
    uv_handle_t *any;
    bool wait = !any_idle(loop) && !loop->closing_handles;
    while (wait && !ready_handles(loop, &any, 1) && finished_work(m) == m->works &&
           !*m->order.verb) {
        const uv_timer_t *timer = next_timer(loop);
        nanos until = timer ? machine_when(m, timer->timeout * MS) : NEVER;
        if (until <= world->now) break;
        nanos begun = machine_monotonic(m);
        task_wait(until);
        m->waited += machine_monotonic(m) - begun;
    }
    uv_update_time(loop);
    poll_once(loop);
}

static void run_closing(uv_loop_t *loop) {
    uv_handle_t *handle = loop->closing_handles;
    loop->closing_handles = NULL;
    while (handle) {
        uv_handle_t *next = handle->next_closing;
        if (handle->type == UV_TCP) uv_tcp_cancel((uv_tcp_t *)handle);
        unlink_handle(handle);
        if (handle->close_cb) handle->close_cb(handle);
        handle = next;
    }
}

static bool is_alive(const uv_loop_t *loop) {
    if (loop->closing_handles || uv_machine(loop)->works) return true;
    for (uv_handle_t *h = loop->handle_queue[0]; h; h = h->handle_queue[0])
        if (uv_is_active(h)) return true;
    return false;
}

int uv_run(uv_loop_t *loop, uv_run_mode mode) {
    cv_assert(mode == UV_RUN_DEFAULT);
    while (is_alive(loop)) {
        uv_update_time(loop);
        run_timers(loop);
        run_prepares(loop);
        poll(loop);
        run_checks(loop);
        run_closing(loop);
        task_sleep(random_time(&world->random, 2 * US, 30 * US)); /* the time of one iteration */
    }
    return 0;
}

/* ---- Odds and ends ---- */

int uv_loop_configure(uv_loop_t *loop, uv_loop_option option, ...) {
    return (void)loop, (void)option, 0;
}
uint64_t uv_metrics_idle_time(uv_loop_t *loop) { return uv_machine(loop)->waited; }

uv_buf_t uv_buf_init(char *base, unsigned size) { return (uv_buf_t){.base = base, .len = size}; }
const char *uv_strerror(int error) { return strerror(-error); }

int uv_ip4_addr(const char *ip, int port, struct sockaddr_in *address) {
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, ip, &address->sin_addr) == 1 ? 0 : UV_EINVAL;
}

int uv_ip6_addr(const char *ip, int port, struct sockaddr_in6 *address) {
    *address = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    return inet_pton(AF_INET6, ip, &address->sin6_addr) == 1 ? 0 : UV_EINVAL;
}

int uv_ip_name(const struct sockaddr *address, char *to, size_t size) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    return inet_ntop(AF_INET, &four->sin_addr, to, (socklen_t)size) ? 0 : UV_EINVAL;
}

/* No name is resolved: all hosts have addresses. */
int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb call,
                   const char *node, const char *service, const struct addrinfo *hints) {
    (void)loop, (void)request, (void)call, (void)node, (void)service, (void)hints;
    return UV_EAI_NONAME;
}
void uv_freeaddrinfo(struct addrinfo *found) { (void)found; }
int uv_cancel(uv_req_t *request) { return (void)request, UV_EBUSY; }
int uv_fileno(const uv_handle_t *handle, uv_os_fd_t *fd) { return (void)handle, *fd = -1, 0; }

/* For HTTP, which is off. */
int uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd) {
    return (void)loop, (void)poll, (void)fd, UV_ENOSYS;
}
int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb call) {
    return (void)poll, (void)events, (void)call, UV_ENOSYS;
}
int uv_resident_set_memory(size_t *size) { return *size = 0, 0; }
uint64_t uv_get_free_memory(void) { return 0; }
uint64_t uv_get_total_memory(void) { return 0; }
uint64_t uv_get_constrained_memory(void) { return 0; }
int uv_os_get_passwd(uv_passwd_t *passwd) { return (void)passwd, UV_ENOSYS; }
void uv_os_free_passwd(uv_passwd_t *passwd) { (void)passwd; }
