/* A process of an algorithm among peers that send what they like: the bytes of a message are
 * refused by the codec, or the algorithm takes them, at any time and from anyone.
 *
 *   the name of an algorithm and a line feed, or one byte that chooses one; the pid: one byte;
 *   then events, each one byte: EVENT and what it brings */
#include <stdio.h>
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "peer/codec.h"
#include "peer/group.h"

enum { PROCESSES = 5 };
enum { MESSAGE, TIMER, CALL, SUSPICION, RESTART, EVENTS };

struct input {
    const unsigned char *at;
    size_t left;
};

struct process {
    const struct cv_algorithm *code;
    struct group group;
    struct cv_env env;
    struct codec codec;
    struct cv_layout layout;
    size_t size;
    unsigned char *state, *saved;
    struct cv_out out;
    void *body;
    unsigned armed;
    enum { IDLE, WAITING, INSIDE } phase;
};

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static unsigned byte(struct input *input) {
    if (!input->left) return 0;
    input->left--;
    return *input->at++;
}

static const struct cv_algorithm *choose(struct input *input) {
    const unsigned char *end = memchr(input->at, '\n', input->left < 40 ? input->left : 40);
    size_t length = end ? (size_t)(end - input->at) : 0;
    for (size_t i = 0; end && i < catalogue_count; i++) {
        if (strlen(catalogue[i]->name) != length ||
            memcmp(catalogue[i]->name, input->at, length) != 0)
            continue;
        input->at += length + 1, input->left -= length + 1;
        return catalogue[i];
    }
    return catalogue[byte(input) % catalogue_count];
}

static void step_once(struct process *p, const struct cv_event *event) {
    cv_out_reset(&p->out);
    p->code->step(p->state, &p->env, event, &p->out);
    if (p->out.save) memcpy(p->saved, p->state, p->layout.durable);
    p->armed = (p->armed | p->out.timers_set) & ~(unsigned)p->out.timers_cancelled;
    for (unsigned i = 0; i < p->out.tells; i++) {
        if (p->out.tell[i].what == CV_ENTERED) p->phase = INSIDE;
        if (p->out.tell[i].what == CV_LEFT) p->phase = IDLE;
    }
}

static void step(struct process *p, const struct cv_event *event, struct input *input) {
    step_once(p, event);
    for (int i = 0; p->out.choose && i < 64; i++) {
        struct cv_event choice = {.type = CV_CHOICE, .arg = byte(input) % p->out.choose};
        step_once(p, &choice);
    }
}

static void receive(struct process *p, struct input *input) {
    cv_pid from = byte(input) % PROCESSES + 1;
    uint32_t kind = byte(input);
    size_t size = byte(input);
    if (size > input->left) size = input->left;
    unsigned char *bytes = malloc(size + 1); /* of its size: sanitizers watch it */
    cv_assert(bytes);
    memcpy(bytes, input->at, size);
    input->at += size, input->left -= size;
    const char *wrong = codec_read(&p->codec, kind, bytes, size, p->body);
    if (!wrong && group_reaches(&p->group, from, p->env.self)) {
        struct cv_event event = {.type = CV_RECV,
                                 .from = from,
                                 .kind = (uint16_t)kind,
                                 .size = (uint32_t)size,
                                 .body = p->body};
        step(p, &event, input);
    }
    free(bytes);
}

static void call(struct process *p, struct input *input) {
    struct cv_event event = {.type = CV_CALL, .arg = CV_CAMPAIGN};
    if (cv_serves(&p->env)) return;
    if (p->code->problem == CV_MUTEX) {
        if (p->phase == WAITING) return;
        event.arg = p->phase == IDLE ? CV_ACQUIRE : CV_RELEASE;
        if (p->phase == IDLE) p->phase = WAITING;
    }
    step(p, &event, input);
}

static void happen(struct process *p, struct input *input) {
    struct cv_event event = {0};
    unsigned what = byte(input), arg = what / EVENTS;
    switch (what % EVENTS) {
    case MESSAGE: receive(p, input); break;
    case TIMER:
        arg %= CV_TIMERS_MAX;
        if (!(p->armed & 1u << arg)) break;
        p->armed &= ~(1u << arg);
        event = (struct cv_event){.type = CV_TIMEOUT, .arg = arg};
        step(p, &event, input);
        break;
    case CALL: call(p, input); break;
    case SUSPICION:
        event =
            (struct cv_event){.type = arg & 1 ? CV_DOWN : CV_UP, .arg = arg / 2 % PROCESSES + 1};
        if (p->code->traits & CV_HANDS_ON) event.type = CV_HAND_ON;
        if (p->code->traits & (CV_USES_DETECTOR | CV_HANDS_ON) && event.arg != p->env.self)
            step(p, &event, input);
        break;
    case RESTART:
        memset(p->state, 0, p->size);
        memcpy(p->state, p->saved, p->layout.durable);
        p->armed = 0;
        p->phase = IDLE;
        event.type = CV_RESTART;
        step(p, &event, input);
        break;
    default: break;
    }
}

static void process_open(struct process *p, struct input *input) {
    char text[256], error[GROUP_ERROR_MAX];
    snprintf(text, sizeof text, "1 a:1\n2 a:2\n3 a:3\n4 a:4\n5 a:5\n%s",
             p->code->topology == CV_GRAPH ? "edges 1-2 2-3 3-4 4-5 5-1\n" : "");
    group_init(&p->group, p->code);
    cv_assert(group_parse(&p->group, "peers", text, error) == 0);
    p->env = group_env(&p->group, byte(input) % PROCESSES + 1);
    p->env.detector = p->code->traits & CV_USES_DETECTOR;
    p->code->layout(&p->env, &p->layout);
    p->codec = (struct codec){p->code->messages, p->code->message_count, PROCESSES,
                              p->layout.message_rows};
    p->size = p->code->state->size + (size_t)p->layout.rows * p->code->state->row_size;
    p->state = calloc(1, p->size);
    p->saved = calloc(1, p->layout.durable + 1);
    p->out.room = cv_out_room(p->code, &p->layout);
    p->out.sends = malloc(p->out.room);
    p->body = malloc(codec_room(&p->codec));
    cv_assert(p->state && p->saved && p->out.sends && p->body);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    struct input input = {data, size};
    struct process p = {.code = choose(&input)};
    struct cv_event start = {.type = CV_START};
    process_open(&p, &input);
    step(&p, &start, &input);
    while (input.left) happen(&p, &input);
    free(p.state);
    free(p.saved);
    free(p.out.sends);
    free(p.body);
    group_free(&p.group);
    return 0;
}
