/* The effects of the consensus core are carried out in the order that raft.h documents. */
#include "raft_help.h"

struct owner {
    char calls[16]; /* a letter each: Vote, Entries, Config, Timer, Message, Snapshot */
    size_t count;
    char stops_at; /* the call that returns false */
    uint64_t append_from;
    const void *entries, *chunk;
    enum raft_timer timer;
    uint8_t sent_to[4];
};

static bool called(struct owner *owner, char call) {
    assert_true(owner->count + 1 < sizeof owner->calls);
    owner->calls[owner->count++] = call;
    return call != owner->stops_at;
}

static bool persist_vote(void *owner) { return called(owner, 'V'); }

static void append_entries(void *context, uint64_t from, const void *entries) {
    struct owner *owner = context;
    called(owner, 'E');
    owner->append_from = from;
    owner->entries = entries;
}

static void append_config(void *owner) { called(owner, 'C'); }

static void start_timer(void *context, enum raft_timer timer) {
    struct owner *owner = context;
    called(owner, 'T');
    owner->timer = timer;
}

static bool send_message(void *context, const struct raft_message *m) {
    struct owner *owner = context;
    for (size_t i = 0; i < sizeof owner->sent_to; i++)
        if (!owner->sent_to[i]) {
            owner->sent_to[i] = m->to;
            break;
        }
    return called(owner, 'M');
}

static void snapshot_chunk(void *context, const void *chunk) {
    struct owner *owner = context;
    called(owner, 'S');
    owner->chunk = chunk;
}

static const struct raft_callbacks callbacks = {persist_vote, append_entries, append_config,
                                                start_timer,  send_message,   snapshot_chunk};
static const char payload[] = "entries";

/* More than one event asks for: every effect at once. */
static struct raft_out every_effect(void) {
    struct raft_out out = {.persist_vote = true,
                           .append_entries = true,
                           .append_from = 7,
                           .append_config = true,
                           .snapshot_chunk = true,
                           .timer = RAFT_TIMER_ELECTION_JITTER,
                           .messages = 2};
    out.message[0] = message(RAFT_REQUEST_VOTE, 1, 2, 5);
    out.message[1] = message(RAFT_REQUEST_VOTE, 1, 3, 5);
    return out;
}

static struct owner performed(const struct raft_out *out, char stops_at) {
    struct owner owner = {.stops_at = stops_at};
    raft_perform(out, &callbacks, &owner, payload);
    return owner;
}

static void effects_are_carried_out_in_the_documented_order(void **state) {
    (void)state;
    struct raft_out out = every_effect();
    struct owner owner = performed(&out, 0);
    assert_string_equal(owner.calls, "VECTMMS");
    assert_int_equal(owner.append_from, 7);
    assert_ptr_equal(owner.entries, payload);
    assert_ptr_equal(owner.chunk, payload);
    assert_int_equal(owner.timer, RAFT_TIMER_ELECTION_JITTER);
    assert_int_equal(owner.sent_to[0], 2);
    assert_int_equal(owner.sent_to[1], 3);
}

static void only_the_effects_of_the_event_are_carried_out(void **state) {
    (void)state;
    struct raft_out out = {0};
    assert_string_equal(performed(&out, 0).calls, "");
    out.append_entries = true;
    assert_string_equal(performed(&out, 0).calls, "E");
    out = (struct raft_out){.append_config = true, .timer = RAFT_TIMER_ELECTION_TIMEOUT};
    assert_string_equal(performed(&out, 0).calls, "CT");
    out = (struct raft_out){.snapshot_chunk = true};
    assert_string_equal(performed(&out, 0).calls, "S");
}

static void nothing_follows_a_vote_that_could_not_be_persisted(void **state) {
    (void)state;
    struct raft_out out = every_effect();
    assert_string_equal(performed(&out, 'V').calls, "V");
}

static void nothing_follows_a_message_that_stopped_the_owner(void **state) {
    (void)state;
    struct raft_out out = every_effect();
    assert_string_equal(performed(&out, 'M').calls, "VECTM");
}

/* A member's own vote and those that it grants are durable before anybody learns of them. */
static void votes_are_durable_before_they_are_sent(void **state) {
    (void)state;
    struct raft candidate = new_member(1, 3), voter = new_member(2, 3);
    ask_for_pre_votes(&candidate);
    struct raft_out out = receive(&candidate, vote_response(2, 1, 0, PRE_VOTE | GRANTED));
    assert_string_equal(performed(&out, 0).calls, "VTMM");
    out = receive(&voter, out.message[0]);
    assert_string_equal(performed(&out, 0).calls, "VTM");
    assert_string_equal(performed(&out, 'V').calls, "V");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_are_carried_out_in_the_documented_order),
        cmocka_unit_test(only_the_effects_of_the_event_are_carried_out),
        cmocka_unit_test(nothing_follows_a_vote_that_could_not_be_persisted),
        cmocka_unit_test(nothing_follows_a_message_that_stopped_the_owner),
        cmocka_unit_test(votes_are_durable_before_they_are_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
