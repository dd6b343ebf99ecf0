/* An algorithm that sends much: the first process sends the second messages that are numbered, also
 * while that is away, and then never again. */
#include <conclave/algorithm.h>

enum { DATA, KINDS };
enum { MESSAGES = 250000, AT_ONCE = 1000, EVERY_US = 1000 };

#define DATA_FIELDS(F, R)                                                                          \
    F(R, u64, number, SHOWN)                                                                       \
    F(R, u64, a, INNER)                                                                            \
    F(R, u64, b, INNER)                                                                            \
    F(R, u64, c, INNER)                                                                            \
    F(R, u64, d, INNER)                                                                            \
    F(R, u64, e, INNER)                                                                            \
    F(R, u64, f, INNER)                                                                            \
    F(R, u64, g, INNER)                                                                            \
    F(R, u64, h, INNER)                                                                            \
    F(R, u64, i, INNER)                                                                            \
    F(R, u64, j, INNER)                                                                            \
    F(R, u64, k, INNER)                                                                            \
    F(R, u64, l, INNER)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, sent, SHOWN)                                                                         \
    F(R, u64, received, SHOWN)
CV_RECORD(data, DATA_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    const struct data *m = e->body;
    if (e->type == CV_RECV) s->received += m->number == s->received + 1;
    if (env->self != 1 || (e->type != CV_START && e->type != CV_TIMEOUT)) return;
    for (int i = 0; i < AT_ONCE; i++) cv_send(out, 2, DATA, data, .number = ++s->sent);
    if (s->sent < MESSAGES) cv_timer(out, 0, EVERY_US, EVERY_US);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    (void)env;
    layout->sends = AT_ONCE;
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE("DATA", data)};

CV_ALGORITHM(flood) = {
    .name = "flood",
    .summary = "messages that wait for their receiver",
    .tolerates = "nothing",
    .paper = "none",
    .cost = "0",
    .delay = "0",
    CV_MACHINE,
    .timers = 1,
    .problem = CV_MUTEX,
};
