/* What servers have recorded as one trace: whose messages these were, and who is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/servers/picture.h"

static void begin(struct servers_picture *picture, struct raft raft) {
    servers_picture_begin(picture, &(struct checkpoint){.incarnation = 1, .raft = raft});
}

/* The server is in the same state after the step. */
static void take(struct servers_picture *picture, struct raft raft, struct step step,
                 const struct raft_message *sent) {
    struct raft_out out = {.messages = sent != NULL};
    if (sent) out.message[0] = *sent;
    assert_true(servers_picture_step(picture, &raft, &step, &out, 0));
}

static char *write_text(struct servers_picture *picture) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    servers_picture_write(picture, "", TRACE_TEXT, 1, out);
    fclose(out);
    return text;
}

static void shows(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" is not in\n%s", part, text);
}

static const struct raft_message ask = {.type = RAFT_REQUEST_VOTE,
                                        .from = 2,
                                        .to = 1,
                                        .term = 7,
                                        .request_vote = {.last_log_index = 5}};

/* The receiver would come first: by its record, its id, and because messages do. */
static void a_message_is_sent_before_it_arrives(void **state) {
    (void)state;
    struct servers_picture *picture = servers_picture_open();
    struct raft one = {.self = 1, .term = 7}, two = {.self = 2, .term = 7};
    struct raft_message arrived = ask;
    begin(picture, one);
    take(picture, one, (struct step){.type = STEP_RECEIVE, .message = &arrived}, NULL);
    begin(picture, two);
    take(picture, two, (struct step){.type = STEP_TIMER}, &ask);
    char *text = write_text(picture);
    const char *sending = strstr(text, "server2 -> server1"),
               *arrival = strstr(text, "server1 <- server2");
    assert_true(sending && arrival && sending < arrival);
    assert_int_equal(servers_picture_unsent(picture), 0);
    free(text);
    servers_picture_close(picture);
}

static void another_message_is_not_that_one(void **state) {
    (void)state;
    struct servers_picture *picture = servers_picture_open();
    struct raft one = {.self = 1, .term = 7}, two = {.self = 2, .term = 7};
    struct raft_message arrived = ask;
    arrived.request_vote.last_log_index++;
    begin(picture, two);
    take(picture, two, (struct step){.type = STEP_TIMER}, &ask);
    begin(picture, one);
    take(picture, one, (struct step){.type = STEP_RECEIVE, .message = &arrived}, NULL);
    free(write_text(picture));
    assert_int_equal(servers_picture_unsent(picture), 1);
    servers_picture_close(picture);
}

/* No message of the record is from them, or to them. */
static void who_is_only_spoken_of_has_a_name(void **state) {
    (void)state;
    struct servers_picture *picture = servers_picture_open();
    struct raft one = {.self = 1, .term = 7, .leader = 3}, alone = {.self = 1, .term = 7};
    begin(picture, one);
    take(picture, one, (struct step){.type = STEP_TIMER}, NULL);
    take(picture, alone, (struct step){.type = STEP_DOWN, .id = 4}, NULL);
    char *text = write_text(picture);
    shows(text, "server1 follows server3 in term 7");
    shows(text, "server1 suspects that server4 is down");
    free(text);
    servers_picture_close(picture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_sent_before_it_arrives),
        cmocka_unit_test(another_message_is_not_that_one),
        cmocka_unit_test(who_is_only_spoken_of_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
