/* Records of peers: written, read, replayed, merged and judged.  The peers are played here, without
 * a network and without clocks. */
#include "file_help.h"

#include <dirent.h>

#include "algorithms/catalogue.h"
#include "base/crc32c.h"
#include "base/little.h"
#include "base/rng.h"
#include "lab/peers/merge.h"
#include "lab/peers/repeat.h"
#include "process/contract.h"

enum { COMPETITORS = 4, NODES_MAX = 8, BODY_MAX = 1024, MAIL_MAX = 4096 };

struct node {
    struct recorder recorder;
    struct cv_env env;
    struct cv_layout layout;
    struct codec codec;
    size_t size;
    unsigned char state[BODY_MAX], saved[BODY_MAX];
    uint8_t armed;
    enum { IDLE_NODE, WAITS, HOLDS } phase;
    unsigned left; /* stays that it still wants */
    uint64_t incarnation, met[NODES_MAX + 1], sent[NODES_MAX + 1];
};

struct mail {
    cv_pid from, to;
    uint64_t to_incarnation, from_incarnation, number;
    uint16_t kind;
    uint32_t size;
    _Alignas(8) unsigned char body[BODY_MAX];
};

struct world {
    struct place place;
    struct group group;
    struct rng rng;
    struct node node[NODES_MAX + 1];
    struct mail mail[MAIL_MAX];
    size_t mail_count;
    struct cv_out out;
    uint64_t now_us, incarnations;
    unsigned entries;
    enum { HONEST, TWISTED, INVENTED } arrivals; /* the next one is not what was sent */
};

static const struct cv_algorithm *found;
static const struct cv_algorithm *find(const char *name) {
    return strcmp(found->name, name) == 0 ? found : NULL;
}

static char *path_of(const struct world *w, cv_pid p, char *buffer) {
    sprintf(buffer, "%s/%u", w->place.path, p);
    return buffer;
}

/* ---- Peers that are played ---- */

static void step(struct world *w, cv_pid p, const struct cv_event *event, const struct mail *mail);

static void send_one(struct world *w, cv_pid p, cv_pid to, const struct cv_send *send) {
    struct node *node = &w->node[p];
    if (to == p || !group_reaches(&w->group, p, to)) return;
    assert_true(w->mail_count < MAIL_MAX && send->size <= BODY_MAX);
    struct mail *mail = &w->mail[w->mail_count++];
    *mail = (struct mail){.from = p,
                          .to = to,
                          .from_incarnation = node->incarnation,
                          .to_incarnation = node->met[to],
                          .number = ++node->sent[to],
                          .kind = send->kind,
                          .size = send->size};
    memcpy(mail->body, send + 1, send->size);
    recorder_sent(&node->recorder, to, mail->number);
}

static void tell(struct world *w, cv_pid p, const struct cv_tell *tell) {
    struct node *node = &w->node[p];
    if (tell->what == CV_ENTERED) node->phase = HOLDS, w->entries++;
    if (tell->what == CV_LEFT) node->phase = IDLE_NODE;
}

static void apply(struct world *w, cv_pid p) {
    struct node *node = &w->node[p];
    struct cv_out *out = &w->out;
    if (out->save) memcpy(node->saved, node->state, node->layout.durable);
    node->armed = (uint8_t)((node->armed | out->timers_set) & ~out->timers_cancelled);
    for (uint32_t at = 0; at < out->used;) {
        const struct cv_send *send = (const void *)(out->sends + at);
        if (send->to < CV_SERVERS) send_one(w, p, send->to, send);
        cv_pid last = send->to == CV_SERVERS  ? w->group.servers
                      : send->to == CV_OTHERS ? w->group.processes
                                              : 0;
        for (cv_pid to = 1; to <= last; to++) send_one(w, p, to, send);
        at += (uint32_t)sizeof *send + ((send->size + 7) & ~7u);
    }
    for (unsigned i = 0; i < out->tells; i++) tell(w, p, &out->tell[i]);
}

static void step(struct world *w, cv_pid p, const struct cv_event *event, const struct mail *mail) {
    struct node *node = &w->node[p];
    w->now_us += 100;
    cv_out_reset(&w->out);
    w->group.algorithm->step(node->state, &node->env, event, &w->out);
    recorder_step(&node->recorder, w->now_us, &node->codec, event, mail ? mail->number : 0,
                  record_hash(node->state, node->size, &w->out));
    apply(w, p);
    if (!w->out.choose) return;
    struct cv_event choice = {.type = CV_CHOICE,
                              .arg = (uint32_t)rng_below(&w->rng, w->out.choose)};
    step(w, p, &choice, NULL);
}

static void call(struct world *w, cv_pid p, uint32_t what) {
    struct cv_event event = {.type = CV_CALL, .arg = what};
    if (what == CV_ACQUIRE) w->node[p].phase = WAITS;
    step(w, p, &event, NULL);
}

static void meet(struct world *w, cv_pid p, cv_pid q) {
    struct node *node = &w->node[p];
    if (p == q || node->met[q] == w->node[q].incarnation) return;
    if (node->met[q]) node->sent[q] = 0;
    node->met[q] = w->node[q].incarnation;
    recorder_met(&node->recorder, q, node->met[q]);
}

static void record(struct world *w, cv_pid p, unsigned flags) {
    struct node *node = &w->node[p];
    char path[100], error[RECORD_ERROR_MAX] = "";
    assert_int_equal(recorder_open(&node->recorder, path_of(w, p, path), error), 0);
    struct recorder_run run = {.group = &w->group,
                               .self = p,
                               .incarnation = node->incarnation,
                               .wall_us = 1000000 + w->now_us,
                               .now_us = w->now_us,
                               .flags = flags,
                               .prefix = hash_long(node->saved, node->layout.durable, 0)};
    recorder_run(&node->recorder, &run);
}

static void boot(struct world *w, cv_pid p, bool again, bool amnesia) {
    struct node *node = &w->node[p];
    node->incarnation = ++w->incarnations;
    node->armed = 0;
    node->phase = IDLE_NODE;
    memset(node->state, 0, sizeof node->state);
    memset(node->met, 0, sizeof node->met);
    memset(node->sent, 0, sizeof node->sent);
    if (amnesia) memset(node->saved, 0, sizeof node->saved);
    memcpy(node->state, node->saved, node->layout.durable);
    record(w, p, (again ? RECORD_AGAIN : 0u) | (amnesia ? RECORD_AMNESIA : 0u));
    for (cv_pid q = 1; q <= w->group.processes; q++)
        if (w->node[q].incarnation) meet(w, p, q), meet(w, q, p);
    struct cv_event start = {.type = again ? CV_RESTART : CV_START};
    step(w, p, &start, NULL);
}

static void world_open(struct world *w, const struct cv_algorithm *code, uint64_t seed) {
    char text[1024] = "", error[GROUP_ERROR_MAX] = "";
    memset(w, 0, sizeof *w);
    found = code;
    place_open(&w->place);
    rng_seed(&w->rng, seed);
    group_init(&w->group, code);
    uint32_t n = COMPETITORS + (code->servers ? code->servers(w->group.option) : 0);
    assert_true(n <= NODES_MAX);
    for (uint32_t p = 1; p <= n; p++) sprintf(text + strlen(text), "%u h:%u\n", p, p);
    if (code->topology == CV_GRAPH) strcat(text, "edges 1-2 2-3 3-4 4-1 1-3\n");
    if (group_parse(&w->group, "test", text, error) != 0) fail_msg("%s: %s", code->name, error);
    for (cv_pid p = 1; p <= n; p++) {
        struct node *node = &w->node[p];
        node->env = group_env(&w->group, p);
        node->layout = contract_layout(code, &node->env);
        node->codec =
            (struct codec){code->messages, code->message_count, n, node->layout.message_rows};
        node->size = code->state->size + (size_t)node->layout.rows * code->state->row_size;
        assert_true(node->size <= BODY_MAX);
        uint32_t room = cv_out_room(code, &node->layout);
        if (room > w->out.room) w->out.room = room;
        node->left = p > w->group.servers ? 5 : 0;
    }
    w->out.sends = calloc(1, w->out.room);
    for (cv_pid p = 1; p <= n; p++) boot(w, p, false, false);
}

/* Delivers the oldest message of some channel; what was for an earlier life is dropped. */
static bool deliver(struct world *w) {
    while (w->mail_count) {
        size_t at = rng_below(&w->rng, w->mail_count);
        for (size_t i = 0; i < at; i++)
            if (w->mail[i].from == w->mail[at].from && w->mail[i].to == w->mail[at].to) at = i;
        struct mail mail = w->mail[at];
        memmove(&w->mail[at], &w->mail[at + 1], (--w->mail_count - at) * sizeof mail);
        if (mail.to_incarnation && mail.to_incarnation != w->node[mail.to].incarnation) continue;
        if (mail.from_incarnation != w->node[mail.from].incarnation) continue;
        if (w->arrivals == TWISTED) mail.body[0] ^= 1;
        if (w->arrivals == INVENTED) mail.number += 100;
        w->arrivals = HONEST;
        struct cv_event event = {.type = CV_RECV,
                                 .from = mail.from,
                                 .kind = mail.kind,
                                 .size = mail.size,
                                 .body = mail.body};
        step(w, mail.to, &event, &mail);
        return true;
    }
    return false;
}

static bool fire_timer(struct world *w) {
    for (cv_pid p = 1; p <= w->group.processes; p++)
        for (uint32_t t = 0; t < CV_TIMERS_MAX; t++)
            if (w->node[p].armed & 1u << t) {
                struct cv_event event = {.type = CV_TIMEOUT, .arg = t};
                w->node[p].armed &= (uint8_t) ~(1u << t);
                step(w, p, &event, NULL);
                return true;
            }
    return false;
}

/* Something that an application does; false: it wants nothing more. */
static bool work(struct world *w, cv_pid p) {
    struct node *node = &w->node[p];
    if (node->phase == HOLDS) return call(w, p, CV_RELEASE), true;
    if (node->phase == WAITS || !node->left) return false;
    node->left--;
    return call(w, p, w->group.algorithm->problem == CV_MUTEX ? CV_ACQUIRE : CV_CAMPAIGN), true;
}

static void run(struct world *w, unsigned steps) {
    for (unsigned i = 0; i < steps; i++) {
        cv_pid p = 1 + (cv_pid)rng_below(&w->rng, w->group.processes);
        if (rng_below(&w->rng, 3) == 0 && work(w, p)) continue;
        if (deliver(w)) continue;
        bool worked = false;
        for (p = 1; p <= w->group.processes && !worked; p++) worked = work(w, p);
        if (!worked && !fire_timer(w)) return;
    }
}

static void stop(struct world *w, cv_pid p, bool killed) {
    struct node *node = &w->node[p];
    if (!killed) recorder_end(&node->recorder, w->now_us, true);
    assert_int_equal(recorder_flush(&node->recorder), 0);
    recorder_close(&node->recorder);
}

/* It goes on where it was, a second later. */
static void suspend(struct world *w, cv_pid p) {
    recorder_end(&w->node[p].recorder, w->now_us, false);
    stop(w, p, true);
    w->now_us += 1000000;
    record(w, p, RECORD_RESUMED);
}

static void read_all(struct world *w, struct records *records) {
    char error[RECORD_ERROR_MAX] = "", path[NODES_MAX + 1][100];
    *records = (struct records){.find = find};
    for (cv_pid p = w->group.processes; p; p--) /* in any order */
        if (records_read(records, path_of(w, p, path[p]), error) != 0) fail_msg("%s", error);
    for (size_t i = 0; i < records->run_count; i++) records->run[i].path = "record";
    records_sort(records);
}

/* Ends it, and reads what it has recorded. */
static void gather(struct world *w, struct records *records) {
    for (cv_pid p = 1; p <= w->group.processes; p++) stop(w, p, false);
    read_all(w, records);
}

static void world_close(struct world *w) {
    free(w->out.sends);
    group_free(&w->group);
    place_close(&w->place);
}

static void judge(struct world *w, struct merge *merge, struct records *records) {
    char error[RECORD_ERROR_MAX] = "";
    gather(w, records);
    if (merge_run(merge, records, error) != 0) fail_msg("%s: %s", found->name, error);
}

/* ---- Tests ---- */

static struct world world;

static void each_algorithm_is_repeated_and_judged(void **state) {
    (void)state;
    for (size_t a = 0; a < catalogue_count; a++) {
        struct records records;
        struct merge merge;
        if (catalogue[a]->problem == CV_DETECTOR) continue;
        world_open(&world, catalogue[a], a + 1);
        run(&world, 1500);
        judge(&world, &merge, &records);
        bool lock = catalogue[a]->problem == CV_MUTEX;
        assert_true(merge.result.steps > 10 && merge.result.messages > 5);
        assert_int_equal(merge.result.unsent, 0);
        if (lock) {
            assert_int_equal(merge.result.verdict[EXCLUSION].value, HELD);
            assert_int_equal(merge.result.entries, world.entries);
            assert_true(world.entries > 5);
        }
        bool is_there_to_fail = catalogue[a] == catalogue_find("ring-anonymous");
        if (!lock && !is_there_to_fail)
            assert_int_equal(merge.result.verdict[UNIQUENESS].value, HELD);
        merge_close(&merge);
        records_free(&records);
        world_close(&world);
    }
}

/* A lock that asks nobody. */
static void greedy_step(void *state, const struct cv_env *env, const struct cv_event *event,
                        struct cv_out *out) {
    (void)state, (void)env;
    if (event->type != CV_CALL) return;
    cv_tell(out, event->arg == CV_ACQUIRE ? CV_ENTERED : CV_LEFT, 0);
}

/* The stays are one after the other by the clock, and only by the clock. */
static void stays_that_no_message_orders_are_found(void **state) {
    struct cv_algorithm greedy = *catalogue_find("lamport");
    struct records records;
    struct merge merge;
    (void)state;
    greedy.name = "greedy";
    greedy.step = greedy_step;
    world_open(&world, &greedy, 1);
    for (cv_pid p = 1; p <= 3; p++) call(&world, p, CV_ACQUIRE), call(&world, p, CV_RELEASE);
    judge(&world, &merge, &records);
    assert_int_equal(merge.result.verdict[EXCLUSION].value, VIOLATED);
    assert_non_null(strstr(merge.result.verdict[EXCLUSION].why, "entered while"));
    merge_cut(&merge);
    assert_true(merge.trace.cut);
    merge_close(&merge);
    records_free(&records);
    world_close(&world);
}

static void restarts_are_followed(void **state) {
    (void)state;
    for (int amnesia = 0; amnesia < 2; amnesia++) {
        struct records records;
        struct merge merge;
        world_open(&world, catalogue_find("ricart-agrawala"), 5);
        run(&world, 60);
        stop(&world, 3, true);
        boot(&world, 3, true, amnesia);
        run(&world, 400);
        judge(&world, &merge, &records);
        assert_int_equal(merge.result.restarts, 1);
        assert_int_equal(records.run_count, world.group.processes + 1);
        merge_close(&merge);
        records_free(&records);
        world_close(&world);
    }
}

static void one_that_is_resumed_has_one_run(void **state) {
    struct records records;
    struct merge merge;
    char error[RECORD_ERROR_MAX] = "";
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world_open(&world, catalogue_find(seed % 2 ? "raymond" : "suzuki-kasami"), seed);
        for (int i = 0; i < 5; i++) {
            run(&world, 30);
            suspend(&world, 1 + (cv_pid)rng_below(&world.rng, world.group.processes));
        }
        run(&world, 400);
        judge(&world, &merge, &records);
        assert_int_equal(merge.result.restarts, 0);
        assert_int_equal(records.run_count, world.group.processes);
        assert_int_equal(merge.result.entries, world.entries);
        assert_int_equal(merge.result.verdict[EXCLUSION].value, HELD);
        merge_close(&merge);
        records_free(&records);
        world_close(&world);
    }
    /* What it goes on with has to be there, and to be its own. */
    for (int lie = 0; lie < 3; lie++) {
        char path[100];
        world_open(&world, catalogue_find("raymond"), 1);
        run(&world, 30);
        recorder_end(&world.node[3].recorder, world.now_us, lie == 1);
        stop(&world, 3, true);
        if (lie == 0) unlink(path_of(&world, 3, path));
        world.node[3].incarnation += lie == 2;
        record(&world, 3, RECORD_RESUMED);
        for (cv_pid p = 1; p <= world.group.processes; p++) stop(&world, p, false);
        records = (struct records){.find = find};
        assert_int_equal(records_read(&records, path_of(&world, 3, path), error), -1);
        assert_non_null(strstr(error, "in no record"));
        records_free(&records);
        world_close(&world);
    }
}

static void a_prefix_that_was_not_saved_is_refused(void **state) {
    struct records records;
    struct merge merge;
    char error[RECORD_ERROR_MAX] = "";
    (void)state;
    world_open(&world, catalogue_find("ricart-agrawala"), 5);
    run(&world, 60);
    stop(&world, 3, true);
    world.node[3].saved[0] ^= 1;
    boot(&world, 3, true, false);
    gather(&world, &records);
    assert_int_equal(merge_run(&merge, &records, error), -1);
    assert_non_null(strstr(error, "other durable data"));
    merge_close(&merge);
    records_free(&records);
    world_close(&world);
}

/* Who says that it received what was not sent, and acts on it, is found out by who did not send. */
static void what_is_received_has_to_be_sent(void **state) {
    static const char *const says[] = {
        [TWISTED] = "another message than was sent", [INVENTED] = "a message that was not sent"};
    (void)state;
    for (int lie = TWISTED; lie <= INVENTED; lie++) {
        struct records records;
        struct merge merge;
        char error[RECORD_ERROR_MAX] = "";
        world_open(&world, catalogue_find("lamport"), 4);
        run(&world, 50);
        world.arrivals = lie;
        while (!deliver(&world)) run(&world, 1);
        gather(&world, &records);
        assert_int_equal(merge_run(&merge, &records, error), -1);
        if (!strstr(error, says[lie])) fail_msg("%s", error);
        merge_close(&merge);
        assert_int_equal(merge_replay(&merge, &records, error), 0); /* it is consistent by itself */
        merge_close(&merge);
        records_free(&records);
        world_close(&world);
    }
}

/* ---- Forged records ---- */

/* Reads the records of the world with one of them replaced: 0 if they are believed. */
static int try(const struct world *w, cv_pid forged, const struct bytes *bytes, char *error) {
    struct records records = {.find = find};
    struct merge merge = {0};
    char path[NODES_MAX + 1][100];
    int failed = 0;
    for (cv_pid p = 1; p <= w->group.processes && !failed; p++) {
        if (p != forged) {
            failed = records_read(&records, path_of(w, p, path[p]), error);
            continue;
        }
        unsigned char *copy = malloc(bytes->used + 1);
        memcpy(copy, bytes->at, bytes->used);
        failed = records_parse(&records, "forged", copy, bytes->used, error);
    }
    records_sort(&records);
    if (!failed) failed = merge_run(&merge, &records, error);
    if (!failed) assert_int_equal(merge.result.steps > 0, 1);
    merge_close(&merge);
    records_free(&records);
    return failed;
}

/* Makes the checksum of the first block right. */
static void seal(struct bytes *bytes) {
    put32(bytes->at + 4, crc32c(0, bytes->at + RECORD_BLOCK_HEAD, get32(bytes->at)));
}

static void close_records(struct world *w, const char *name, struct bytes *bytes) {
    for (cv_pid p = 1; p <= w->group.processes; p++) stop(w, p, false);
    *bytes = file_read(&w->place, name);
}

static void a_flipped_bit_is_refused(void **state) {
    char error[RECORD_ERROR_MAX] = "";
    struct bytes bytes;
    (void)state;
    world_open(&world, catalogue_find("suzuki-kasami"), 9);
    run(&world, 200);
    close_records(&world, "2", &bytes);
    assert_int_equal(try(&world, 2, &bytes, error), 0);
    for (size_t at = 4; at < bytes.used; at += 1 + bytes.used / 300) {
        bytes.at[at] ^= 4;
        assert_int_equal(try(&world, 2, &bytes, error), -1);
        assert_non_null(strstr(error, "checksum"));
        bytes.at[at] ^= 4;
    }
    free(bytes.at);
    world_close(&world);
}

/* With right checksums: it is refused, or what was changed is only a time. */
static void whatever_is_forged_is_refused_or_makes_no_difference(void **state) {
    static const char *const names[] = {"suzuki-kasami", "raymond", "central",   "quorum",
                                        "bully",         "yo-yo",   "itai-rodeh"};
    unsigned refused = 0, taken = 0, differs = 0;
    (void)state;
    for (size_t a = 0; a < sizeof names / sizeof names[0]; a++) {
        char error[RECORD_ERROR_MAX] = "";
        struct bytes bytes;
        world_open(&world, catalogue_find(names[a]), a);
        run(&world, 80);
        close_records(&world, "2", &bytes);
        for (int i = 0; i < 400; i++) {
            size_t at = RECORD_BLOCK_HEAD + rng_below(&world.rng, bytes.used - RECORD_BLOCK_HEAD);
            unsigned char before = bytes.at[at];
            bytes.at[at] ^= (unsigned char)(1u << rng_below(&world.rng, 8));
            seal(&bytes);
            int failed = try(&world, 2, &bytes, error);
            refused += failed != 0, taken += failed == 0;
            differs += failed && strstr(error, "something else");
            bytes.at[at] = before;
        }
        free(bytes.at);
        world_close(&world);
    }
    assert_true(refused > 4 * taken && taken && differs > 100);
}

/* Every length: the whole blocks before the end count. */
static void a_torn_end_is_left_out(void **state) {
    char error[RECORD_ERROR_MAX] = "";
    struct bytes bytes;
    (void)state;
    world_open(&world, catalogue_find("lamport"), 3);
    run(&world, 100);
    for (cv_pid p = 1; p <= world.group.processes; p++) recorder_flush(&world.node[p].recorder);
    run(&world, 100);
    close_records(&world, "2", &bytes);
    size_t first = RECORD_BLOCK_HEAD + get32(bytes.at), all = bytes.used;
    for (bytes.used = 0; bytes.used < all; bytes.used++) {
        int failed = try(&world, 2, &bytes, error);
        if (failed != (bytes.used < first ? -1 : 0))
            fail_msg("%zu of %zu bytes: %s", bytes.used, all, error);
    }
    free(bytes.at);
    world_close(&world);
}

/* Others have received what it sent later, so it may have been inside, too. */
static void what_a_short_record_shows_is_not_known(void **state) {
    char error[RECORD_ERROR_MAX] = "", path[100];
    struct records records;
    struct merge merge;
    struct stat file;
    (void)state;
    world_open(&world, catalogue_find("lamport"), 3);
    run(&world, 100);
    assert_int_equal(recorder_flush(&world.node[2].recorder), 0);
    assert_int_equal(stat(path_of(&world, 2, path), &file), 0);
    run(&world, 100);
    for (cv_pid p = 1; p <= world.group.processes; p++) stop(&world, p, false);
    assert_int_equal(truncate(path, file.st_size), 0);
    read_all(&world, &records);
    if (merge_run(&merge, &records, error) != 0) fail_msg("%s", error);
    assert_true(merge.result.unsent > 0);
    assert_int_equal(merge.result.verdict[EXCLUSION].value, UNKNOWN);
    merge_close(&merge);
    records_free(&records);
    world_close(&world);
}

static void what_is_no_record_is_left_alone(void **state) {
    struct place place;
    struct recorder recorder;
    char path[100], error[RECORD_ERROR_MAX] = "";
    (void)state;
    place_open(&place);
    sprintf(path, "%s/file", place.path);
    FILE *file = fopen(path, "w");
    fputs("something that somebody needs", file);
    fclose(file);
    assert_int_equal(recorder_open(&recorder, path, error), -1);
    assert_non_null(strstr(error, "no record"));
    place_close(&place);
}

/* One that is refused at its beginning teaches the fuzzer nothing. */
static void seeds_of_the_fuzzer_are_records(void **state) {
    unsigned char seed[1 << 16];
    char error[RECORD_ERROR_MAX], path[512];
    unsigned count = 0;
    DIR *seeds = opendir("tests/fuzz/corpus/record");
    (void)state;
    assert_non_null(seeds);
    for (struct dirent *entry; (entry = readdir(seeds));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/fuzz/corpus/record/%s", entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        size_t size = fread(seed, 1, sizeof seed, file), at = 2, length = get16(seed);
        fclose(file);
        struct records records = {.find = catalogue_find};
        for (int i = 0; i < 2; i++, at += length, length = size - at) {
            assert_true(at + length <= size);
            unsigned char *bytes = malloc(RECORD_BLOCK_HEAD + length);
            put32(bytes, (uint32_t)length);
            put32(bytes + 4, crc32c(0, seed + at, length));
            memcpy(bytes + RECORD_BLOCK_HEAD, seed + at, length);
            if (records_parse(&records, path, bytes, RECORD_BLOCK_HEAD + length, error) != 0)
                fail_msg("%s", error);
        }
        records_free(&records);
        count++;
    }
    closedir(seeds);
    assert_true(count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_algorithm_is_repeated_and_judged),
        cmocka_unit_test(stays_that_no_message_orders_are_found),
        cmocka_unit_test(restarts_are_followed),
        cmocka_unit_test(one_that_is_resumed_has_one_run),
        cmocka_unit_test(a_prefix_that_was_not_saved_is_refused),
        cmocka_unit_test(what_is_received_has_to_be_sent),
        cmocka_unit_test(a_flipped_bit_is_refused),
        cmocka_unit_test(whatever_is_forged_is_refused_or_makes_no_difference),
        cmocka_unit_test(a_torn_end_is_left_out),
        cmocka_unit_test(what_a_short_record_shows_is_not_known),
        cmocka_unit_test(what_is_no_record_is_left_alone),
        cmocka_unit_test(seeds_of_the_fuzzer_are_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
