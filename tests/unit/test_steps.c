/* Records of servers: written, read, replayed and judged.  The servers are played here, without a
 * network and without clocks. */
#include "file_help.h"
#include "raft_help.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/crc32c.h"
#include "base/little.h"
#include "lab/servers/replay.h"

enum { SERVERS = 3, MAIL_MAX = 512 };

/* ---- Servers ---- */

struct server {
    struct raft raft;
    struct terms terms;
    struct steps *record;
    bool proposed; /* by its last step */
};

struct world {
    struct place place;
    struct rng rng;
    struct server server[SERVERS + 1];
    struct raft_message mail[MAIL_MAX];
    uint32_t mails;
    uint64_t steps;
};

static const char *name_of(unsigned id) {
    static const char *const names[] = {"0", "1", "2", "3"};
    return names[id];
}

static struct steps *open_record(const struct place *place, const char *name, uint64_t max) {
    char path[128], error[STEPS_ERROR_MAX];
    snprintf(path, sizeof path, "%s/%s", place->path, name);
    struct steps *record = steps_open(path, max, 7, error);
    if (!record) print_message("%s\n", error);
    return record;
}

static void post(struct world *w, const struct raft_message *m) {
    if (w->mails < MAIL_MAX) w->mail[w->mails++] = *m;
}

static uint64_t take(struct world *w, unsigned id, struct step step) {
    struct server *s = &w->server[id];
    struct raft_out out = {0};
    steps_before(s->record, &step);
    uint64_t result = step_take(&s->raft, &step, &out);
    assert_true(steps_add(s->record, &s->raft, &step, &out, result));
    note_terms(&s->terms, &s->raft);
    for (uint32_t i = 0; i < out.messages; i++) post(w, &out.message[i]);
    bool proposed = step.type == STEP_PROPOSE && result;
    if (!proposed || !s->proposed) w->steps++; /* proposals that follow each other are one */
    s->proposed = proposed;
    return result;
}

static void start(struct world *w, unsigned id) {
    struct server *s = &w->server[id];
    has_terms(&s->raft, &s->terms);
    steps_begin(s->record, &s->raft, 99);
    take(w, id, (struct step){.type = STEP_START, .number = {s->raft.snapshot_index}});
}

/* What was not durable is lost. */
static void restart(struct world *w, unsigned id) {
    struct server *s = &w->server[id];
    struct raft old = s->raft, raft;
    if (s->proposed) w->steps--; /* it was not in the record yet */
    s->proposed = false;
    raft_open(&raft, old.self, old.term, old.voted_for);
    has_terms(&raft, &s->terms);
    raft_restore_snapshot(&raft, old.snapshot_index, old.snapshot_term, &old.config);
    for (uint64_t i = old.snapshot_index + 1; i <= old.durable_index; i++)
        raft_restore_entries(&raft, i, 1, raft_term_at(&old, i), NULL);
    s->raft = raft;
    start(w, id);
}

static void send_appends(struct world *w, unsigned id) {
    struct raft *raft = &w->server[id].raft;
    struct raft_message m;
    for (uint8_t to = 1; to <= SERVERS; to++) {
        if (rng_below(&w->rng, 8) == 0 &&
            take(w, id, (struct step){.type = STEP_OVERTAKE, .id = to, .message = &m}))
            post(w, &m);
        while (raft_next_append(raft, to, UINT64_MAX, &m)) {
            uint32_t *count = &m.append_entries.entry_count;
            if (*count > 3) *count = 3;
            post(w, &m);
            take(w, id,
                 (struct step){
                     .type = STEP_SENT, .id = to, .number = {UINT64_MAX, *count}, .message = &m});
        }
    }
}

static void deliver(struct world *w) {
    if (!w->mails) return;
    uint32_t i = (uint32_t)rng_below(&w->rng, w->mails);
    struct raft_message m = w->mail[i];
    w->mail[i] = w->mail[--w->mails];
    if (rng_below(&w->rng, 20) == 0) return;
    take(w, m.to, (struct step){.type = STEP_RECEIVE, .message = &m});
}

static void live(struct world *w) {
    uint8_t id = (uint8_t)(1 + rng_below(&w->rng, SERVERS)), other = (uint8_t)(id % SERVERS + 1);
    struct raft *raft = &w->server[id].raft;
    uint64_t kept =
        raft->commit_index < raft->durable_index ? raft->commit_index : raft->durable_index;
    switch (rng_below(&w->rng, 40)) {
    case 0: take(w, id, (struct step){.type = STEP_TIMER}); break;
    case 1: take(w, id, (struct step){.type = STEP_HEARTBEAT}); break;
    case 2: take(w, id, (struct step){.type = STEP_DISCONNECTED, .id = other}); break;
    case 3: take(w, id, (struct step){.type = STEP_CONNECTED, .id = other}); break;
    case 4:
        if (rng_below(&w->rng, 10) == 0) restart(w, id);
        break;
    case 5: take(w, id, (struct step){.type = STEP_RESTARTED, .id = other}); break;
    case 6:
        if (kept > raft->snapshot_index + 20)
            take(w, id, (struct step){.type = STEP_COMPACTED, .number = {kept - 20}});
        break;
    case 7: take(w, id, (struct step){.type = STEP_ALIVE, .id = other}); break;
    case 8: take(w, id, (struct step){.type = STEP_TRANSFER, .id = other}); break;
    case 9: take(w, id, (struct step){.type = STEP_DOWN, .id = other}); break;
    case 10:
    case 11:
    case 12:
        for (uint64_t i = rng_below(&w->rng, 3); i < 3; i++)
            take(w, id, (struct step){.type = STEP_PROPOSE, .number = {1}});
        break;
    case 13:
    case 14:
    case 15:
        if (raft->last_index > raft->durable_index)
            take(w, id,
                 (struct step){.type = STEP_DURABLE,
                               .number = {raft->last_index, raft_term_at(raft, raft->last_index)}});
        break;
    case 16:
    case 17: send_appends(w, id); break;
    default: deliver(w);
    }
}

static void world_open(struct world *w, uint64_t seed, uint64_t bytes_max) {
    struct raft_config config = members(SERVERS);
    memset(w, 0, sizeof *w);
    place_open(&w->place);
    rng_seed(&w->rng, seed);
    for (unsigned id = 1; id <= SERVERS; id++) {
        struct server *s = &w->server[id];
        s->record = open_record(&w->place, name_of(id), bytes_max);
        assert_non_null(s->record);
        raft_open(&s->raft, (uint8_t)id, 0, 0);
        raft_restore_snapshot(&s->raft, 0, 0, &config);
        start(w, id);
    }
}

static void end_records(struct world *w) {
    for (unsigned id = 1; id <= SERVERS; id++) {
        steps_close(w->server[id].record);
        w->server[id].record = NULL;
    }
}

/* ---- Replays ---- */

static int replay_bytes(struct servers_replay *replay, const struct bytes *bytes) {
    FILE *file = fmemopen(bytes->at, bytes->used, "r");
    assert_non_null(file);
    return servers_replay_file(replay, "record", file);
}

static void replay(struct servers_replay *r, const struct place *place, const char *name) {
    struct bytes bytes = file_read(place, name);
    if (replay_bytes(r, &bytes) != 0) fail_msg("%s", r->error);
    bytes_close(&bytes);
}

static void assert_holds(const struct servers_judge *judge) {
    for (int i = 0; i < SERVERS_PROPERTIES; i++) assert_string_equal(judge->why[i], "");
}

/* A file of one block. */
static struct bytes block_of(const struct bytes *entries) {
    struct bytes file = {0};
    unsigned char head[STEPS_BLOCK_HEAD];
    put32(head, (uint32_t)entries->used);
    put32(head + 4, crc32c(0, entries->at, entries->used));
    bytes_add(&file, head, sizeof head);
    bytes_add(&file, entries->at, entries->used);
    return file;
}

static void test_all_replay(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        static struct world w;
        struct servers_judge judge = {0};
        struct servers_replay r = {.judge = &judge};
        world_open(&w, seed, 1 << 30);
        for (int i = 0; i < 5000; i++) live(&w);
        for (unsigned id = 1; id <= SERVERS; id++)
            take(&w, id, (struct step){.type = STEP_PROPOSE, .number = {1}});
        end_records(&w);
        for (unsigned id = 1; id <= SERVERS; id++) replay(&r, &w.place, name_of(id));
        servers_judge_finish(&judge);
        assert_int_equal(r.steps, w.steps);
        assert_true(r.starts > SERVERS && !r.torn && !r.missed);
        assert_true(judge.terms > 1 && judge.committed_count && judge.server[SERVERS]);
        assert_holds(&judge);
        servers_replay_close(&r);
        servers_judge_close(&judge);
        place_close(&w.place);
    }
}

/* The core forgets the older terms of its log, and asks for them. */
static void test_many_terms(void **state) {
    static struct world w;
    struct servers_judge judge = {0};
    struct servers_replay r = {.judge = &judge};
    (void)state;
    world_open(&w, 1, 1 << 20);
    for (uint64_t term = 1; term <= 100; term++) {
        struct raft_message m = append_request(2, 1, term, term - 1, term - 1, 1, term);
        take(&w, 1, (struct step){.type = STEP_RECEIVE, .message = &m});
    }
    assert_int_equal(w.server[1].raft.runs, RAFT_RUNS_MAX);
    restart(&w, 1); /* nothing was durable */
    for (uint64_t term = 101; term <= 130; term++) {
        uint64_t index = term - 101;
        struct raft_message m = append_request(2, 1, term, index, index ? term - 1 : 0, 1, term);
        take(&w, 1, (struct step){.type = STEP_RECEIVE, .message = &m});
        take(&w, 1, (struct step){.type = STEP_DURABLE, .number = {index + 1, term}});
    }
    restart(&w, 1); /* with all of its log in the checkpoint */
    struct raft_message m = append_request(3, 1, 200, 25, 7, 0, 0); /* refused: another term */
    take(&w, 1, (struct step){.type = STEP_RECEIVE, .message = &m});
    end_records(&w);
    replay(&r, &w.place, "1");
    assert_int_equal(r.runs, 30);
    servers_judge_finish(&judge);
    assert_holds(&judge);
    servers_replay_close(&r);
    servers_judge_close(&judge);
    place_close(&w.place);
}

/* However much is recorded, two files keep the newest part, and each replays without the other. */
static void test_rotation(void **state) {
    enum { MAX = 120000 };
    static struct world w;
    struct servers_replay both = {0}, one = {0}, in_disorder = {0};
    (void)state;
    world_open(&w, 3, MAX);
    for (int i = 0; i < 60000; i++) {
        live(&w);
        if (i % 200 == 0) usleep(1000);
    }
    end_records(&w);
    struct bytes before = file_read(&w.place, "1.1"), now = file_read(&w.place, "1");
    assert_true(before.used + now.used <= MAX + MAX / 4);
    assert_int_equal(replay_bytes(&both, &before), 0);
    assert_int_equal(replay_bytes(&both, &now), 0);
    assert_int_equal(replay_bytes(&one, &now), 0);
    assert_true(one.steps && both.steps > one.steps);
    assert_int_equal(both.incarnation_step, one.incarnation_step);
    assert_int_equal(replay_bytes(&in_disorder, &now), 0);
    assert_int_equal(replay_bytes(&in_disorder, &before), 0);
    servers_replay_close(&both);
    servers_replay_close(&one);
    servers_replay_close(&in_disorder);
    bytes_close(&before);
    bytes_close(&now);
    place_close(&w.place);
}

/* A file of a checkpoint and the start of a server; its state afterwards is in `raft`. */
static struct bytes part(struct raft *raft, const struct checkpoint *checkpoint, bool starts) {
    struct bytes entries = {0};
    unsigned char entry[STEPS_ENTRY_MAX];
    struct step step = {.type = starts ? STEP_START : STEP_HEARTBEAT};
    struct raft_out out = {0};
    steps_write_checkpoint(&entries, checkpoint, raft);
    uint64_t result = step_take(raft, &step, &out);
    bytes_add(&entries, entry, steps_write(entry, &step, step_hash(raft, &step, &out, result)));
    struct bytes file = block_of(&entries);
    bytes_close(&entries);
    return file;
}

/* What follows on another file begins where that ends. */
static void test_continued(void **state) {
    struct raft_config config = members(3);
    (void)state;
    for (int differs = 0; differs <= 1; differs++) {
        struct servers_replay r = {0};
        struct raft raft;
        raft_open(&raft, 1, 4, 2);
        raft_restore_snapshot(&raft, 0, 0, &config);
        struct bytes first =
            part(&raft, &(struct checkpoint){.reason = STEPS_BEGUN, .incarnation = 5}, true);
        raft.catch_up_index += (uint64_t)differs;
        struct bytes second =
            part(&raft, &(struct checkpoint){.reason = STEPS_ROTATED, .incarnation = 5, .step = 1},
                 false);
        assert_int_equal(replay_bytes(&r, &first), 0);
        assert_int_equal(replay_bytes(&r, &second), differs ? -1 : 0);
        if (differs) assert_non_null(strstr(r.error, "in which the file before ends"));
        servers_replay_close(&r);
        bytes_close(&first);
        bytes_close(&second);
    }
}

/* A file between two others is not there, or the end of the first is torn. */
static void test_missing_file(void **state) {
    struct raft_config config = members(3);
    struct checkpoint begun = {.reason = STEPS_BEGUN, .incarnation = 5};
    struct checkpoint later = {.reason = STEPS_ROTATED, .incarnation = 5, .step = 2};
    struct checkpoint other = {.reason = STEPS_ROTATED, .incarnation = 6, .step = 7};
    struct servers_replay r = {0};
    struct raft raft;
    (void)state;
    raft_open(&raft, 1, 4, 2);
    raft_restore_snapshot(&raft, 0, 0, &config);
    struct bytes file[] = {part(&raft, &begun, true), part(&raft, &later, false),
                           part(&raft, &other, false)};
    const size_t order[] = {0, 1, 2, 0}; /* steps 0, 2, of another process, and the first again */
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(replay_bytes(&r, &file[order[i]]), 0);
        assert_int_equal(r.missed, i > 0);
    }
    servers_replay_close(&r);
    for (size_t i = 0; i < 3; i++) bytes_close(&file[i]);
}

/* Steps come faster than a thread can take them: some are missing, and that is said. */
static void test_gaps(void **state) {
    static struct world w;
    struct servers_replay r = {0};
    struct raft_message m = append_request(2, 1, 1, 0, 0, 1, 1);
    struct raft_config config = members(SERVERS);
    (void)state;
    world_open(&w, 1, (uint64_t)1 << 40);
    m.append_entries.entry_kind = RAFT_CONFIG;
    for (int i = 0; i < 300000; i++)
        take(&w, 1, (struct step){.type = STEP_RECEIVE, .message = &m, .config = &config});
    w.mails = 0;
    end_records(&w);
    replay(&r, &w.place, "1");
    assert_true(r.steps && (r.missed || r.steps + 2 >= w.steps - SERVERS));
    servers_replay_close(&r);
    place_close(&w.place);
}

/* ---- Ends ---- */

static void test_torn(void **state) {
    static struct world w;
    struct servers_replay whole = {0};
    (void)state;
    world_open(&w, 5, 1 << 30);
    for (int i = 0; i < 2000; i++) live(&w);
    end_records(&w);
    replay(&whole, &w.place, "1");
    struct bytes bytes = file_read(&w.place, "1");
    for (size_t cut = 1; cut < bytes.used; cut += 1 + cut / 3) {
        struct servers_replay r = {0};
        struct bytes part = {.at = bytes.at, .used = bytes.used - cut};
        int failed = replay_bytes(&r, &part);
        assert_true(failed || (r.steps <= whole.steps && r.torn == 1) || !r.torn);
        servers_replay_close(&r);
    }
    /* What is torn is cut off by whoever goes on. */
    file_write(&w.place, "1", bytes.at, bytes.used - 1);
    w.server[1].record = open_record(&w.place, "1", 1 << 30);
    restart(&w, 1);
    end_records(&w);
    struct servers_replay again = {0};
    replay(&again, &w.place, "1");
    assert_int_equal(again.torn, 0);
    assert_true(again.starts >= 1);
    servers_replay_close(&again);
    servers_replay_close(&whole);
    bytes_close(&bytes);
    place_close(&w.place);
}

static size_t last_block(const struct bytes *file) {
    size_t at = 0, next;
    while ((next = at + STEPS_BLOCK_HEAD + get32(file->at + at)) < file->used) at = next;
    return at;
}

/* A server goes on with a file that a power failure has left; what was lost is no reason to refuse
 * what follows. */
static void go_on_with(const void *left, size_t size, bool keeps_steps) {
    static struct world w;
    struct servers_replay r = {0};
    world_open(&w, 6, 1 << 30);
    end_records(&w);
    file_write(&w.place, "1", left, size);
    w.server[1].record = open_record(&w.place, "1", 1 << 30);
    assert_non_null(w.server[1].record);
    restart(&w, 1);
    end_records(&w);
    replay(&r, &w.place, "1");
    assert_int_equal(r.torn, 0);
    assert_int_equal(r.steps > 1, keeps_steps);
    servers_replay_close(&r);
    place_close(&w.place);
}

static void test_power_failure(void **state) {
    static struct world w;
    (void)state;
    world_open(&w, 5, 1 << 30);
    for (int i = 0; i < 20; i++) {
        for (int j = 0; j < 50; j++) live(&w);
        usleep(30000); /* several blocks */
    }
    end_records(&w);
    struct bytes file = file_read(&w.place, "1");
    size_t last = last_block(&file), content = last + STEPS_BLOCK_HEAD;
    assert_true(last > 0);
    memset(file.at + content, 0, file.used - content);
    go_on_with(file.at, file.used, true);
    memset(file.at + last, 0, file.used - last);
    go_on_with(file.at, file.used, true);
    go_on_with(file.at, 3, false);
    go_on_with(file.at, STEPS_BLOCK_HEAD + 2, false);
    memset(file.at + STEPS_BLOCK_HEAD + 20, 0, file.used - STEPS_BLOCK_HEAD - 20);
    go_on_with(file.at, file.used, false);
    memset(file.at, 0, file.used);
    go_on_with(file.at, file.used, false);
    go_on_with(file.at, 5, false);
    bytes_close(&file);
    place_close(&w.place);
}

/* A disk that is full ends the record, at the end of a block, and nothing else. */
static void fill_disk(void) {
    static struct world w;
    world_open(&w, 7, 1 << 30);
    limit_files(30000);
    struct step step = {.type = STEP_HEARTBEAT};
    struct server *s = &w.server[1];
    int patience = 20000000;
    while (steps_add(s->record, &s->raft, &step, NULL, 0) && --patience) usleep(1);
    assert_true(patience && steps_error(s->record) == EFBIG);
    end_records(&w);
    struct servers_replay r = {0};
    replay(&r, &w.place, "1");
    assert_int_equal(r.torn, 0);
    servers_replay_close(&r);
    place_close(&w.place);
}

static void test_full_disk(void **state) {
    (void)state;
    pid_t child = fork();
    if (!child) {
        fill_disk();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void assert_file_is(const struct place *place, const char *name, const char *text) {
    struct bytes bytes = file_read(place, name);
    assert_int_equal(bytes.used, strlen(text));
    assert_memory_equal(bytes.at, text, bytes.used);
    bytes_close(&bytes);
}

static void test_no_record(void **state) {
    struct place place;
    (void)state;
    place_open(&place);
    file_write(&place, "1", "precious", 8);
    file_write(&place, "2.1", "precious", 8);
    assert_null(open_record(&place, "1", 1 << 20));
    assert_null(open_record(&place, "2", 1 << 20)); /* which would replace it one day */
    assert_file_is(&place, "1", "precious");
    assert_file_is(&place, "2.1", "precious");
    file_write(&place, "2.1", "", 0);
    steps_close(open_record(&place, "2", 1 << 20));
    place_close(&place);
}

/* ---- Forgeries ---- */

/* The entries of a record, with one step changed. */
static struct bytes forged(const struct bytes *file, size_t which,
                           void (*forge)(struct step *step, uint32_t *hash)) {
    struct steps_reader reader;
    struct bytes entries = {0};
    unsigned char entry[STEPS_ENTRY_MAX];
    steps_reader_open(&reader, "record", fmemopen(file->at, file->used, "r"));
    for (enum steps_read found; (found = steps_read(&reader)) > STEPS_READ_EOF;) {
        if (found == STEPS_READ_CHECKPOINT)
            steps_write_checkpoint(&entries, &reader.checkpoint, &reader.checkpoint.raft);
        if (found != STEPS_READ_STEP) continue;
        if (which-- == 0) forge(&reader.step, &reader.hash);
        bytes_add(&entries, entry, steps_write(entry, &reader.step, reader.hash));
    }
    steps_reader_close(&reader);
    struct bytes all = block_of(&entries);
    bytes_close(&entries);
    return all;
}

static void leave(struct step *step, uint32_t *hash) { (void)step, (void)hash; }
static void forge_hash(struct step *step, uint32_t *hash) { (void)step, *hash ^= 1; }
static void forge_step(struct step *step, uint32_t *hash) {
    (void)hash;
    *step = (struct step){.type = STEP_COMPACTED, .number = {1u << 30}};
}
static void forge_term(struct step *step, uint32_t *hash) {
    (void)hash;
    if (step->type == STEP_RECEIVE) step->message->term++;
}

static void test_forged(void **state) {
    static struct world w;
    struct servers_replay r = {0};
    (void)state;
    world_open(&w, 11, 1 << 30);
    for (int i = 0; i < 300; i++) {
        struct raft_message m = append_request(2, 1, 1, (uint64_t)i, i ? 1 : 0, 1, 1);
        take(&w, 1, (struct step){.type = STEP_RECEIVE, .message = &m});
    }
    end_records(&w);
    struct bytes bytes = file_read(&w.place, "1"), other = forged(&bytes, 0, leave);
    assert_int_equal(replay_bytes(&r, &other), 0);
    bytes_close(&other);
    other = forged(&bytes, 200, forge_hash);
    assert_int_equal(replay_bytes(&r, &other), -1);
    assert_non_null(strstr(r.error, "(RECEIVE) does not end as it was recorded"));
    bytes_close(&other);
    other = forged(&bytes, 200, forge_term);
    assert_int_equal(replay_bytes(&r, &other), -1);
    assert_non_null(strstr(r.error, "does not end as it was recorded"));
    bytes_close(&other);
    other = forged(&bytes, 200, forge_step);
    assert_int_equal(replay_bytes(&r, &other), -1);
    assert_non_null(strstr(r.error, "the core is in no possible state"));
    bytes_close(&other);
    for (size_t i = 0; i < bytes.used; i += 1 + i / 8) { /* damage anywhere */
        bytes.at[i] ^= 0x40;
        replay_bytes(&r, &bytes);
        bytes.at[i] ^= 0x40;
    }
    bytes_close(&bytes);
    servers_replay_close(&r);
    place_close(&w.place);
}

/* A record of an earlier program: tests/suites/records.sh says how to make it anew. */
static void test_golden(void **state) {
    struct servers_judge judge = {0};
    struct servers_replay r = {.judge = &judge};
    FILE *file = fopen("tests/golden/server.record", "re");
    (void)state;
    assert_non_null(file);
    if (servers_replay_file(&r, "server.record", file) != 0) fail_msg("%s", r.error);
    servers_judge_finish(&judge);
    assert_true(r.steps > 50 && r.starts == 2);
    assert_holds(&judge);
    servers_replay_close(&r);
    servers_judge_close(&judge);
}

/* ---- Verdicts ---- */

/* A server alone that starts with this log, and goes on for a step. */
static struct bytes alone(uint8_t self, uint64_t term, uint8_t voted_for, const char *log,
                          uint32_t members_count, uint64_t commit_index) {
    struct raft raft;
    struct raft_config config = members(members_count);
    struct bytes entries = {0};
    unsigned char entry[STEPS_ENTRY_MAX];
    if (members_count == 1) config.at[0].id = self;
    raft_open(&raft, self, term, voted_for);
    raft_restore_snapshot(&raft, 0, 0, &config);
    for (uint64_t i = 0; log[i]; i++)
        raft_restore_entries(&raft, i + 1, 1, (uint64_t)(log[i] - '0'), NULL);
    steps_write_checkpoint(&entries, &(struct checkpoint){.incarnation = self}, &raft);
    struct step steps[] = {{.type = STEP_START, .number = {commit_index}},
                           {.type = STEP_DURABLE, .number = {1, term + 1}},
                           {.type = STEP_HEARTBEAT}};
    for (int i = 0; i < 3; i++) {
        struct raft_out out = {0};
        if (i == 1) {
            steps[1].number[0] = raft.last_index;
            steps[1].number[1] = raft_term_at(&raft, raft.last_index);
        }
        uint64_t result = step_take(&raft, &steps[i], &out);
        bytes_add(&entries, entry,
                  steps_write(entry, &steps[i], step_hash(&raft, &steps[i], &out, result)));
    }
    struct bytes file = block_of(&entries);
    bytes_close(&entries);
    return file;
}

static void expect(struct bytes a, struct bytes b, enum servers_property property,
                   const char *why) {
    struct servers_judge judge = {0};
    struct servers_replay r = {.judge = &judge};
    if (replay_bytes(&r, &a) != 0 || replay_bytes(&r, &b) != 0) fail_msg("%s", r.error);
    servers_judge_finish(&judge);
    assert_string_equal(judge.why[property], why);
    assert_int_equal(servers_judge_is_violated(&judge), *why != 0);
    servers_replay_close(&r);
    servers_judge_close(&judge);
    bytes_close(&a);
    bytes_close(&b);
}

static void test_verdicts(void **state) {
    (void)state;
    expect(alone(1, 0, 0, "", 1, 0), alone(2, 0, 0, "", 3, 0), SERVERS_ELECTION_SAFETY, "");
    expect(alone(1, 0, 0, "", 1, 0), alone(2, 0, 0, "", 1, 0), SERVERS_ELECTION_SAFETY,
           "in term 1 server 1 leads by the record of server 1, and server 2 by that of server 2");
    expect(alone(1, 5, 2, "1", 3, 0), alone(1, 5, 3, "1", 3, 0), SERVERS_ONE_VOTE,
           "in term 5 server 1 votes for server 2 and server 3");
    expect(alone(1, 5, 2, "122", 3, 0), alone(2, 5, 2, "112", 3, 0), SERVERS_LOG_MATCHING,
           "the entries of term 2 begin at 2 after term 1 in the log of server 1, and at 3 after "
           "term 1 in that of server 2");
    expect(alone(1, 5, 2, "13", 3, 2), alone(2, 5, 2, "12", 3, 2), SERVERS_STATE_MACHINE_SAFETY,
           "entry 2 is committed with term 3 at server 1, and with term 2 at server 2");
    expect(alone(1, 5, 2, "111", 3, 3), alone(2, 6, 2, "1", 1, 1), SERVERS_LEADER_COMPLETENESS,
           "server 2 leads in term 7 with a log that ends at 2, and 3 was committed before");
    expect(alone(1, 5, 2, "1112", 3, 4), alone(2, 6, 2, "111", 1, 0), SERVERS_LEADER_COMPLETENESS,
           "server 2 leads in term 7 with an entry 4 of term 7, which was committed before with "
           "term 2");
}

/* A log with an entry of each term, by two servers that lead in turns: the second has another entry
 * where it says so.  What is judged is linear in the elections, or this would not end. */
static void judge_elections(struct servers_judge *judge, uint64_t other_at) {
    enum { ELECTIONS = 50000 };
    static struct raft_run run[ELECTIONS];
    for (uint8_t self = 1; self <= 2; self++) {
        struct raft raft = {.self = self};
        servers_judge_begin(judge, &raft, (struct judged_runs){run, 0});
        for (uint64_t i = 1; i <= ELECTIONS; i++) {
            bool leads = i % 2 + 1 == self;
            if (self == 2 && i == other_at && leads) raft.last_index--; /* and so takes it again */
            raft.term = i;
            raft.last_index++;
            raft.leader = (uint8_t)(i % 2 + 1);
            raft.role = leads ? RAFT_LEADER : RAFT_FOLLOWER;
            run[raft.last_index - 1] = (struct raft_run){raft.last_index, i};
            servers_judge_step(judge, &raft, (struct judged_runs){run, raft.last_index});
            if (self == 1) raft.commit_index = i;
            servers_judge_step(judge, &raft, (struct judged_runs){run, raft.last_index});
        }
        servers_judge_begin(judge, &raft, (struct judged_runs){run, raft.last_index});
    }
    servers_judge_finish(judge);
}

static void test_many_elections(void **state) {
    (void)state;
    struct servers_judge judge = {0};
    judge_elections(&judge, 0);
    assert_holds(&judge);
    assert_int_equal(judge.committed_count, 50000);
    servers_judge_close(&judge);
    judge_elections(&judge, 40001);
    assert_string_equal(judge.why[SERVERS_STATE_MACHINE_SAFETY], "");
    assert_string_equal(judge.why[SERVERS_LEADER_COMPLETENESS],
                        "server 2 leads in term 40001 with an entry 40000 of term 40001, which was "
                        "committed before with term 40000");
    servers_judge_close(&judge);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_replay),   cmocka_unit_test(test_many_terms),
        cmocka_unit_test(test_rotation),     cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_torn),         cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_no_record),    cmocka_unit_test(test_forged),
        cmocka_unit_test(test_verdicts),     cmocka_unit_test(test_continued),
        cmocka_unit_test(test_golden),       cmocka_unit_test(test_power_failure),
        cmocka_unit_test(test_missing_file), cmocka_unit_test(test_many_elections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
