/* The judge of logs, with logs made up by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lab/judge/log.h"

enum { MATCHING = 1 << LOG_MATCHING, COMPLETE = 1 << LEADER_COMPLETENESS };
enum { MACHINES = 1 << STATE_MACHINE_SAFETY, LOG_MAX = 8 };

struct process {
    struct cv_log_entry entry[LOG_MAX];
    struct cv_log log;
};

/* A digit for each entry: its term, which is also its number. */
static const struct cv_log *log_of(struct process *p, const char *terms, uint64_t commit) {
    uint32_t count = (uint32_t)strlen(terms);
    assert_true(count <= LOG_MAX);
    for (uint32_t i = 0; i < count; i++)
        p->entry[i] = (struct cv_log_entry){(uint32_t)(terms[i] - '0'), (uint32_t)(terms[i] - '0')};
    p->log = (struct cv_log){.first = 1, .last = count, .commit = commit, .entry = p->entry};
    p->log.term = count ? p->entry[count - 1].term : 0;
    return &p->log;
}

static uint32_t broken(const char *a, uint64_t a_commit, const char *b, uint64_t b_commit) {
    struct process p, q;
    uint32_t found = logs_break(log_of(&p, a, a_commit), log_of(&q, b, b_commit));
    assert_int_equal(logs_break(&q.log, &p.log), found);
    return found;
}

static void logs_may_end_differently(void **state) {
    (void)state;
    assert_int_equal(broken("", 0, "", 0), 0);
    assert_int_equal(broken("", 0, "112", 3), 0);
    assert_int_equal(broken("11", 2, "1122", 3), 0);
    assert_int_equal(broken("1111", 1, "1223", 1), 0);
}

static void one_entry_makes_all_before_it_the_same(void **state) {
    struct process p, q;
    (void)state;
    assert_int_equal(broken("113", 1, "123", 1), MATCHING);
    assert_int_equal(broken("1133", 0, "1233", 0), MATCHING);
    log_of(&p, "12", 0), log_of(&q, "12", 0);
    q.entry[1].number = 7;
    assert_int_equal(logs_break(&p.log, &q.log), MATCHING);
}

static void what_is_committed_is_the_same(void **state) {
    (void)state;
    assert_int_equal(broken("111", 2, "122", 2), MACHINES);
    assert_int_equal(broken("111", 2, "122", 1), 0);
}

static void a_leader_has_what_is_committed(void **state) {
    struct process p, q;
    (void)state;
    log_of(&p, "13", 1), p.log.leads = true;
    assert_int_equal(logs_break(&p.log, log_of(&q, "122", 1)), 0);
    assert_int_equal(logs_break(&p.log, log_of(&q, "122", 2)), COMPLETE);
    assert_int_equal(logs_break(&q.log, &p.log), COMPLETE);
    assert_int_equal(logs_break(&p.log, log_of(&q, "133", 3)), COMPLETE); /* it is too short */
    log_of(&q, "3", 8); /* the others of which are in a snapshot */
    q.log.first = q.log.last = 8;
    assert_int_equal(logs_break(&p.log, &q.log), COMPLETE);
    log_of(&q, "144", 3); /* of a newer term than the leader's, which need not know it */
    assert_int_equal(logs_break(&p.log, &q.log), 0);
}

/* What is in a snapshot is not looked at. */
static void a_log_may_begin_later(void **state) {
    struct process p, q;
    (void)state;
    log_of(&p, "33", 4), log_of(&q, "1233", 4);
    p.log.first = 3, p.log.last = 4;
    assert_int_equal(logs_break(&p.log, &q.log), 0);
    q.entry[3].number = 7;
    assert_int_equal(logs_break(&p.log, &q.log), MATCHING | MACHINES);
    p.log.first = 9, p.log.last = 10;
    assert_int_equal(logs_break(&p.log, &q.log), 0);
}

static void the_verdicts_say_who_and_where(void **state) {
    struct roster roster = {.processes = 2};
    struct election_judge judge = {.roster = &roster};
    struct process p, q;
    (void)state;
    log_of(&p, "113", 2), log_of(&q, "123", 2);
    p.log.leads = true;
    log_judge_pair(&judge, 5, 1, &p.log, 2, &q.log);
    assert_string_equal(judge.verdict[LOG_MATCHING].why,
                        "the logs of p1 and p2 have entry 3 of one term, but not the same entry 2");
    assert_string_equal(judge.verdict[STATE_MACHINE_SAFETY].why,
                        "p1 and p2 know different entries 2 to be committed, of terms 1 and 2");
    assert_string_equal(judge.verdict[LEADER_COMPLETENESS].why,
                        "p1 leads in term 3 without entry 2, which p2 knows to be committed");
    assert_int_equal(judge.verdict[LEADER_COMPLETENESS].at_us, 5);
    assert_int_equal(judge.verdict[UNIQUENESS].value, UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_may_end_differently),
        cmocka_unit_test(one_entry_makes_all_before_it_the_same),
        cmocka_unit_test(what_is_committed_is_the_same),
        cmocka_unit_test(a_leader_has_what_is_committed),
        cmocka_unit_test(a_log_may_begin_later),
        cmocka_unit_test(the_verdicts_say_who_and_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
