/* What peers are made of: messages as bytes, channels, the durable prefix, the list of peers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "algorithms/catalogue.h"
#include "base/rng.h"
#include "peer/awake.h"
#include "peer/channel.h"
#include "peer/codec.h"
#include "peer/durable.h"
#include "peer/group.h"

enum { PROCESSES = 5 };

/* ---- The codec ---- */

static struct codec codec_of(const struct cv_algorithm *code) {
    return (struct codec){code->messages, code->message_count, PROCESSES, PROCESSES};
}

static unsigned size_of(uint8_t type) {
    static const unsigned sizes[] = {1, 2, 4, 8, 8, 4, 8, 8};
    return sizes[type];
}

/* Values that each field may have; queues and links are empty. */
static void fill_fields(struct rng *rng, const struct cv_field *fields, unsigned count,
                        unsigned char *at) {
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = rng_next(rng);
        if (fields[i].type >= CV_QUEUE) continue;
        if (fields[i].type == CV_PID) value %= PROCESSES + 1;
        if (fields[i].values) value %= 2;
        memcpy(at + fields[i].offset, &value, size_of(fields[i].type));
    }
}

static uint32_t fill(struct rng *rng, const struct cv_record *record, unsigned char *body) {
    uint32_t rows = record->row_size ? (uint32_t)rng_below(rng, PROCESSES + 1) : 0;
    for (unsigned i = 0; i < record->row_field_count; i++)
        if (record->row_fields[i].type == CV_LINK) rows = PROCESSES;
    fill_fields(rng, record->fields, record->field_count, body);
    for (uint32_t row = 0; row < rows; row++)
        fill_fields(rng, record->row_fields, record->row_field_count,
                    body + record->size + row * record->row_size);
    return record->size + rows * record->row_size;
}

static void what_is_written_is_read(void **state) {
    struct rng rng;
    (void)state;
    rng_seed(&rng, 1);
    for (size_t a = 0; a < catalogue_count; a++) {
        struct codec codec = codec_of(catalogue[a]);
        uint32_t room = codec_room(&codec);
        unsigned char *bytes = malloc(room), *read = malloc(room), *body = malloc(room);
        for (uint16_t kind = 0; kind < codec.message_count; kind++)
            for (int i = 0; i < 100; i++) {
                memset(body, 0, room);
                uint32_t size = fill(&rng, &codec.messages[kind], body);
                codec_write(&codec, kind, body, size, bytes);
                const char *wrong = codec_read(&codec, kind, bytes, size, read);
                if (wrong) print_error("%s: %s\n", catalogue[a]->name, wrong);
                assert_null(wrong);
                assert_memory_equal(read, body, size);
            }
        free(bytes), free(read), free(body);
    }
}

static void assert_pids(const struct cv_field *fields, unsigned count, const unsigned char *at) {
    for (unsigned i = 0; i < count; i++) {
        cv_pid pid = 0;
        if (fields[i].type == CV_PID) memcpy(&pid, at + fields[i].offset, sizeof pid);
        assert_in_range(pid, 0, PROCESSES);
    }
}

static void assert_processes_exist(const struct cv_record *record, const unsigned char *body,
                                   size_t size) {
    size_t rows = record->row_size ? (size - record->size) / record->row_size : 0;
    assert_in_range(rows, 0, PROCESSES);
    assert_pids(record->fields, record->field_count, body);
    for (size_t row = 0; row < rows; row++)
        assert_pids(record->row_fields, record->row_field_count,
                    body + record->size + row * record->row_size);
}

/* Whatever comes is refused, or is well-formed: processes exist and rows are not too many. */
static void any_bytes_are_refused_or_well_formed(void **state) {
    struct rng rng;
    unsigned refused = 0, taken = 0;
    (void)state;
    rng_seed(&rng, 2);
    for (size_t a = 0; a < catalogue_count; a++) {
        struct codec codec = codec_of(catalogue[a]);
        uint32_t room = codec_room(&codec);
        unsigned char *body = malloc(room);
        for (int i = 0; i < 2000; i++) {
            uint32_t kind = (uint32_t)rng_below(&rng, codec.message_count + 1u);
            size_t size = rng_below(&rng, room + 40);
            if (kind < codec.message_count && rng_below(&rng, 4))
                size = codec.messages[kind].size +
                       rng_below(&rng, PROCESSES + 2) * codec.messages[kind].row_size;
            unsigned char *bytes = malloc(size ? size : 1); /* of its size: sanitizers watch it */
            for (size_t at = 0; at < size; at++)
                bytes[at] = rng_below(&rng, 4) ? 0 : (unsigned char)rng_below(&rng, 8);
            const char *wrong = codec_read(&codec, kind, bytes, size, body);
            refused += wrong != NULL, taken += wrong == NULL;
            if (!wrong) assert_true(kind < codec.message_count && size <= room);
            if (!wrong) assert_processes_exist(&codec.messages[kind], body, size);
            free(bytes);
        }
        free(body);
    }
    assert_true(refused > 1000 && taken > 1000);
}

#define QUEUE_FIELDS(F, R)                                                                         \
    F(R, queue, queue, SHOWN)                                                                      \
    F(R, u8, mood, NAMED("calm|cross")) F(R, u8, a, INNER) F(R, u16, b, INNER)
#define LINK_FIELDS(F, R) F(R, link, link, INNER) F(R, pid, boss, INNER)
CV_RECORD(queue_head, QUEUE_FIELDS);
CV_RECORD(queue_row, LINK_FIELDS);
static const struct cv_record queue_message[] = {CV_TABLE_ROWS("QUEUE", queue_head, queue_row)};

struct travelling {
    struct queue_head head;
    struct queue_row row[PROCESSES + 1];
};

static const char *read_queue(const struct travelling *sent, uint32_t rows) {
    struct codec codec = {queue_message, 1, PROCESSES, PROCESSES};
    struct travelling read;
    return codec_read(&codec, 0, (const unsigned char *)sent,
                      sizeof sent->head + rows * sizeof sent->row[0], &read);
}

/* 2, then 4, then 1. */
static struct travelling a_good_queue(void) {
    struct travelling sent = {.head = {.queue = {2, 1}}};
    sent.row[1].link = (struct cv_link){4, 0};
    sent.row[3].link = (struct cv_link){1, 2};
    sent.row[0].link = (struct cv_link){0, 4};
    return sent;
}

static void a_queue_that_is_no_list_is_refused(void **state) {
    struct travelling good = a_good_queue(), sent;
    (void)state;
    assert_null(read_queue(&good, PROCESSES));
    assert_non_null(read_queue(&good, PROCESSES - 1)); /* not a row for each */
    assert_non_null(read_queue(&good, PROCESSES + 1));
    sent = good, sent.head.queue.last = 4;
    assert_non_null(read_queue(&sent, PROCESSES));
    sent = good, sent.head.queue.first = PROCESSES + 1;
    assert_non_null(read_queue(&sent, PROCESSES));
    sent = good, sent.row[0].link.next = 2; /* a circle */
    assert_non_null(read_queue(&sent, PROCESSES));
    sent = good, sent.row[4].link.prev = 3; /* a link that is in no list */
    assert_non_null(read_queue(&sent, PROCESSES));
    sent = good, sent.row[3].link.prev = 5;
    assert_non_null(read_queue(&sent, PROCESSES));
    sent = good, sent.row[2].boss = PROCESSES + 1;
    assert_non_null(read_queue(&sent, PROCESSES));
    sent = good, sent.head.mood = 2;
    assert_non_null(read_queue(&sent, PROCESSES));
}

/* ---- Forged messages ---- */

static const char ring_of_five[] = "1 a:1\n2 a:2\n3 a:3\n4 a:4\n5 a:5\n";

static void open_group(struct group *group, const struct cv_algorithm *code) {
    char text[256], error[GROUP_ERROR_MAX];
    snprintf(text, sizeof text, "%s%s", ring_of_five,
             code->topology == CV_GRAPH ? "edges 1-2 2-3 3-4 4-5 5-1\n" : "");
    group_init(group, code);
    if (group_parse(group, "peers.conf", text, error) != 0) fail_msg("%s: %s", code->name, error);
}

/* A message that passes the codec: random fields, and now and then a queue of two. */
static uint32_t forge(struct rng *rng, const struct codec *codec, uint32_t kind,
                      unsigned char *body) {
    const struct cv_record *record = &codec->messages[kind];
    unsigned char *bytes = calloc(1, codec_room(codec));
    uint32_t size = fill(rng, record, bytes);
    for (unsigned i = 0; i < record->field_count; i++)
        if (record->fields[i].type == CV_QUEUE && rng_below(rng, 2)) {
            cv_pid first = 1 + (cv_pid)rng_below(rng, PROCESSES), last = first % PROCESSES + 1;
            memcpy(bytes + record->fields[i].offset, &(struct cv_queue){first, last}, 8);
            for (unsigned f = 0; f < record->row_field_count; f++) {
                if (record->row_fields[f].type != CV_LINK) continue;
                unsigned char *rows = bytes + record->size + record->row_fields[f].offset;
                memcpy(rows + (first - 1) * record->row_size, &(struct cv_link){last, 0}, 8);
                memcpy(rows + (last - 1) * record->row_size, &(struct cv_link){0, first}, 8);
            }
        }
    for (uint32_t at = 0; at < size; at++) /* small numbers more often: terms and clocks meet */
        if (rng_below(rng, 3) == 0 && codec_read(codec, kind, bytes, size, body) == NULL) {
            unsigned char was = bytes[at];
            bytes[at] &= 3;
            if (codec_read(codec, kind, bytes, size, body)) bytes[at] = was;
        }
    const char *wrong = codec_read(codec, kind, bytes, size, body);
    free(bytes);
    return wrong ? 0 : size;
}

/* Random events, among them messages that were forged. */
static struct cv_event draw(struct rng *rng, const struct cv_algorithm *code, cv_pid self,
                            const struct cv_out *out, void *body) {
    cv_pid from = 1 + (cv_pid)rng_below(rng, PROCESSES);
    uint64_t what = rng_below(rng, 10);
    if (out->choose)
        return (struct cv_event){.type = CV_CHOICE, .arg = (uint32_t)rng_below(rng, out->choose)};
    if (what == 0)
        return (struct cv_event){.type = CV_CALL,
                                 .arg = code->problem == CV_ELECTION
                                            ? CV_CAMPAIGN
                                            : CV_ACQUIRE + (uint32_t)rng_below(rng, 2)};
    if (what == 1 && code->timers)
        return (struct cv_event){.type = CV_TIMEOUT, .arg = (uint32_t)rng_below(rng, code->timers)};
    if (what == 2 && code->traits & CV_USES_DETECTOR && from != self)
        return (struct cv_event){.type = rng_below(rng, 2) ? CV_DOWN : CV_UP, .arg = from};
    if (what == 2 && code->traits & CV_HANDS_ON && from != self)
        return (struct cv_event){.type = CV_HAND_ON, .arg = from};
    return (struct cv_event){.type = CV_RECV, .from = from, .body = body};
}

/* One that is patient has no timers, and does nothing upon the word of a failure detector. */
static void flood(const struct group *group, cv_pid self, struct rng *rng) {
    const struct cv_algorithm *code = group->algorithm;
    struct cv_env env = group_env(group, self);
    env.detector = code->traits & CV_USES_DETECTOR;
    struct cv_layout layout = {0};
    code->layout(&env, &layout);
    struct codec codec = {code->messages, code->message_count, PROCESSES, layout.message_rows};
    size_t size = code->state->size + layout.rows * (size_t)code->state->row_size;
    void *memory = calloc(1, size + 8), *before = calloc(1, size + 8);
    struct cv_out out = {.room = cv_out_room(code, &layout)};
    out.sends = malloc(out.room);
    void *body = malloc(codec_room(&codec));
    struct cv_event event = {.type = CV_START};
    code->step(memory, &env, &event, &out);
    for (int i = 0; i < 4000; i++) {
        event = draw(rng, code, self, &out, body);
        if (event.type == CV_RECV) {
            if (!group_reaches(group, event.from, self) || !code->message_count) continue;
            event.kind = (uint16_t)rng_below(rng, code->message_count);
            event.size = forge(rng, &codec, event.kind, body);
            if (!event.size) continue;
        }
        memcpy(before, memory, size);
        cv_out_reset(&out);
        code->step(memory, &env, &event, &out);
        if (layout.patient) assert_false(out.timers_set);
        if (!layout.patient || (event.type != CV_DOWN && event.type != CV_UP)) continue;
        assert_memory_equal(before, memory, size);
        assert_true(!out.used && !out.tells);
    }
    free(memory), free(before), free(body), free(out.sends);
}

/* Whoever has the key may send what it likes, whenever it likes. */
static void no_well_formed_message_stops_a_process(void **state) {
    (void)state;
    for (size_t a = 0; a < catalogue_count; a++) {
        struct group group;
        struct rng rng;
        rng_seed(&rng, a);
        for (uint64_t flags = 0; flags <= 1; flags++) { /* none that can be set, or all */
            open_group(&group, catalogue[a]);
            for (unsigned i = 0; flags && i < catalogue[a]->option_count; i++)
                if (catalogue[a]->options[i].type == CV_FLAG) group.option[i] = 1;
            for (cv_pid self = 1; self <= PROCESSES; self++) flood(&group, self, &rng);
            group_free(&group);
        }
    }
}

/* ---- Channels ---- */

struct end {
    struct channel channel;
    uint64_t incarnation;
    uint32_t next_out, next_in; /* what is sent next, and what is expected next */
    struct {
        uint64_t to, number, value, acknowledged;
    } wire[64]; /* on the link to the other end */
    unsigned in_flight;
};

static void put(struct end *from) {
    uint32_t value = from->next_out++;
    memcpy(channel_push(&from->channel, sizeof value), &value, sizeof value);
}

static void give(struct end *from) {
    uint64_t number;
    uint32_t size, value;
    const unsigned char *message;
    while (from->in_flight < 64 && (message = channel_next(&from->channel, &number, &size))) {
        assert_int_equal(size, sizeof value);
        memcpy(&value, message, sizeof value);
        from->wire[from->in_flight].to = from->channel.incarnation;
        from->wire[from->in_flight].number = number;
        from->wire[from->in_flight].value = value;
        from->wire[from->in_flight++].acknowledged = from->channel.received;
    }
}

static void take(struct end *from, struct end *to) {
    if (!from->in_flight) return;
    uint64_t meant = from->wire[0].to, number = from->wire[0].number, value = from->wire[0].value;
    uint64_t acknowledged = from->wire[0].acknowledged;
    memmove(from->wire, from->wire + 1, --from->in_flight * sizeof from->wire[0]);
    if (meant != to->incarnation || from->incarnation != to->channel.incarnation) return;
    assert_true(channel_acknowledge(&to->channel, acknowledged));
    enum channel_arrival arrival = channel_arrived(&to->channel, number);
    assert_int_not_equal(arrival, CHANNEL_WRONG);
    if (arrival == CHANNEL_NEW) assert_int_equal(value, to->next_in++);
}

/* A link that broke loses what was on it; both ends learn who the other is now. */
static void reconnect(struct end *a, struct end *b) {
    a->in_flight = b->in_flight = 0;
    channel_meet(&a->channel, b->incarnation);
    channel_meet(&b->channel, a->incarnation);
    channel_rewind(&a->channel);
    channel_rewind(&b->channel);
}

/* The other end begins anew with both: numbers of messages are of a pair of incarnations. */
static void restart(struct end *crashed, struct end *other) {
    channel_free(&crashed->channel);
    crashed->incarnation++;
    crashed->next_in = 1000000 * (uint32_t)crashed->incarnation;
    crashed->next_out = other->next_in = crashed->next_in;
    reconnect(crashed, other);
    other->next_out = crashed->next_in;
}

/* It ends in order, and goes on with what it has written down. */
static void suspend(struct end *end, struct end *other) {
    struct bytes text = {0};
    channel_write(&end->channel, &text);
    channel_free(&end->channel);
    const unsigned char *at = text.at;
    size_t left = text.used;
    assert_true(channel_read(&end->channel, &at, &left));
    assert_int_equal(left, 0);
    bytes_close(&text);
    reconnect(end, other);
}

static void channels_are_in_order_and_exactly_once(void **state) {
    struct rng rng;
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct end a = {.incarnation = 1}, b = {.incarnation = 1};
        unsigned received = 0;
        rng_seed(&rng, seed);
        for (int i = 0; i < 3; i++) put(&a); /* before the other end is known */
        give(&a);
        assert_int_equal(a.in_flight, 0);
        reconnect(&a, &b);
        for (int step = 0; step < 2000; step++) {
            struct end *from = rng_below(&rng, 2) ? &a : &b, *to = from == &a ? &b : &a;
            uint64_t what = rng_below(&rng, 100);
            if (what < 40)
                put(from);
            else if (what < 65)
                give(from);
            else if (what < 97)
                take(from, to);
            else if (what < 99)
                reconnect(&a, &b);
            else if (rng_below(&rng, 4) == 0)
                restart(from, to);
            else
                suspend(from, to);
        }
        reconnect(&a, &b);
        for (int i = 0; i < 4000; i++) give(&a), give(&b), take(&a, &b), take(&b, &a), received++;
        assert_int_equal(b.next_in, a.next_out);
        assert_int_equal(a.next_in, b.next_out);
        assert_true(received);
        channel_free(&a.channel), channel_free(&b.channel);
    }
}

static void acknowledged_is_only_what_was_sent(void **state) {
    struct channel channel = {.incarnation = 1};
    uint64_t number;
    uint32_t size;
    (void)state;
    *channel_push(&channel, 1) = 1;
    assert_false(channel_acknowledge(&channel, 1)); /* it was not given to a link yet */
    assert_non_null(channel_next(&channel, &number, &size));
    assert_false(channel_acknowledge(&channel, 2));
    assert_true(channel_acknowledge(&channel, 1));
    assert_int_equal(channel_backlog(&channel), 0);
    assert_int_equal(channel_arrived(&channel, 2), CHANNEL_WRONG);
    channel_free(&channel);
}

/* ---- The durable prefix ---- */

struct place {
    char directory[32], path[64];
};

static int make_place(void **state) {
    struct place *place = calloc(1, sizeof *place);
    strcpy(place->directory, "/tmp/test_peer.XXXXXX");
    if (!mkdtemp(place->directory)) return -1;
    snprintf(place->path, sizeof place->path, "%s/durable", place->directory);
    *state = place;
    return 0;
}

static int remove_place(void **state) {
    struct place *place = *state;
    unlink(place->path);
    rmdir(place->directory);
    free(place);
    return 0;
}

static enum durable_found open_file(struct durable *durable, const char *path, uint64_t group,
                                    uint32_t process, uint64_t *prefix) {
    char error[DURABLE_ERROR_MAX];
    return durable_open(durable, path, group, process, prefix, sizeof *prefix, error);
}

static void a_prefix_survives(void **state) {
    const struct place *place = *state;
    struct durable durable, second;
    uint64_t prefix = 7, read = 0;
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_NEW);
    durable.incarnation = 41;
    for (; prefix < 12; prefix++) assert_int_equal(durable_write(&durable, &prefix), 0);
    assert_int_equal(open_file(&second, place->path, 1, 2, &read), DURABLE_FAILED); /* in use */
    durable_close(&durable);
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_FOUND);
    assert_int_equal(read, 11);
    assert_int_equal(durable.incarnation, 41);
    assert_int_equal(durable_write(&durable, NULL), 0); /* as it was */
    durable_close(&durable);
    read = 0;
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_FOUND);
    assert_int_equal(read, 11);
    durable_close(&durable);
    assert_int_equal(open_file(&durable, place->path, 9, 2, &read), DURABLE_FAILED);
    assert_int_equal(open_file(&durable, place->path, 1, 3, &read), DURABLE_FAILED);
}

/* Until it runs again: then it is as after a crash. */
static void one_that_is_suspended_is_told_apart(void **state) {
    const struct place *place = *state;
    struct durable durable;
    uint64_t prefix = 7, read = 0;
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_NEW);
    assert_int_equal(durable_write(&durable, &prefix), 0);
    assert_int_equal(durable_suspend(&durable), 0);
    durable_close(&durable);
    assert_int_equal(open_file(&durable, place->path, 9, 2, &read), DURABLE_FAILED);
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_SUSPENDED);
    assert_int_equal(read, 7);
    assert_int_equal(durable.sequence, 2);
    assert_int_equal(durable_write(&durable, NULL), 0);
    durable_close(&durable);
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_FOUND);
    durable_close(&durable);
}

static void a_file_of_others_is_refused_with_a_way_out(void **state) {
    const struct place *place = *state;
    struct durable durable;
    uint64_t prefix = 7;
    uint32_t shorter;
    char error[DURABLE_ERROR_MAX];
    assert_int_equal(open_file(&durable, place->path, 1, 2, &prefix), DURABLE_NEW);
    assert_int_equal(durable_write(&durable, &prefix), 0);
    durable_close(&durable);
    assert_int_equal(durable_open(&durable, place->path, 9, 2, &prefix, sizeof prefix, error),
                     DURABLE_FAILED);
    assert_non_null(strstr(error, "another group"));
    assert_non_null(strstr(error, "--data"));
    assert_int_equal(durable_open(&durable, place->path, 1, 2, &shorter, sizeof shorter, error),
                     DURABLE_FAILED);
    assert_non_null(strstr(error, "another algorithm"));
    assert_non_null(strstr(error, "--data"));
}

/* Whoever was killed may still have it. */
static void one_that_is_about_to_go_is_waited_for(void **state) {
    const struct place *place = *state;
    struct durable durable;
    uint64_t prefix = 0;
    int locked[2];
    char byte;
    assert_int_equal(pipe(locked), 0);
    pid_t other = fork();
    if (other == 0) {
        open_file(&durable, place->path, 1, 2, &prefix);
        if (write(locked[1], "", 1) == 1) usleep(100000);
        _exit(0);
    }
    assert_int_equal(read(locked[0], &byte, 1), 1);
    assert_int_not_equal(open_file(&durable, place->path, 1, 2, &prefix), DURABLE_FAILED);
    durable_close(&durable);
    assert_int_equal(waitpid(other, NULL, 0), other);
    close(locked[0]);
    close(locked[1]);
}

static void after_an_end_in_order_it_begins_anew(void **state) {
    const struct place *place = *state;
    struct durable durable;
    uint64_t prefix = 5, read = 0;
    open_file(&durable, place->path, 1, 2, &read);
    durable.incarnation = 41;
    assert_int_equal(durable_write(&durable, &prefix), 0);
    assert_int_equal(durable_end(&durable, 1), 0);
    durable_close(&durable);
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_NEW);
    assert_int_equal(read, 0);
    assert_int_equal(durable.incarnation, 41);
    durable_close(&durable);
}

/* By whoever it was: nothing that was promised is left. */
static void a_file_of_others_that_has_ended_is_taken_over(void **state) {
    const struct place *place = *state;
    struct durable durable;
    uint64_t prefix = 5, read = 9;
    unsigned char longer[5000];
    char error[DURABLE_ERROR_MAX];
    for (unsigned ends = 0; ends < 2; ends++) {
        open_file(&durable, place->path, 1 + ends, 2, &read);
        durable.incarnation = 41;
        assert_int_equal(durable_write(&durable, &prefix), 0);
        assert_int_equal(durable_write(&durable, &prefix), 0);
        assert_int_equal(durable_end(&durable, 1), 0);
        durable_close(&durable);
        if (ends) break;
        assert_int_equal(open_file(&durable, place->path, 2, 2, &read), DURABLE_NEW);
        assert_int_equal(read, 0);
        assert_int_equal(durable.incarnation, 41);
        assert_int_equal(durable_write(&durable, &prefix), 0);
        durable_close(&durable);
        assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_FAILED);
        assert_int_equal(open_file(&durable, place->path, 2, 2, &read), DURABLE_FOUND);
        assert_int_equal(read, 5);
        durable_close(&durable);
    }
    assert_int_equal(durable_open(&durable, place->path, 3, 2, longer, sizeof longer, error),
                     DURABLE_NEW);
    assert_int_equal(durable.incarnation, 41);
    memset(longer, 7, sizeof longer);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(durable_write(&durable, longer), 0);
    durable_close(&durable);
    assert_int_equal(open_file(&durable, place->path, 2, 2, &read), DURABLE_FAILED);
    assert_int_equal(durable_open(&durable, place->path, 3, 2, longer, sizeof longer, error),
                     DURABLE_FOUND);
    assert_int_equal(durable_end(&durable, 1), 0);
    durable_close(&durable);
    assert_int_equal(open_file(&durable, place->path, 2, 2, &read), DURABLE_NEW);
    durable_close(&durable);
}

static void damage(const char *path, long at) {
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 0x40, file);
    fclose(file);
}

/* A slot that is torn leaves the one before; two damaged ones are nothing to go on with. */
static void a_torn_slot_leaves_the_one_before(void **state) {
    const struct place *place = *state;
    struct durable durable;
    uint64_t prefix = 1, read = 0;
    open_file(&durable, place->path, 1, 2, &read);
    for (; prefix <= 3; prefix++) assert_int_equal(durable_write(&durable, &prefix), 0);
    durable_close(&durable);
    damage(place->path, 4096 + 48); /* the third is in the second slot */
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_FOUND);
    assert_int_equal(read, 2);
    durable_close(&durable);
    damage(place->path, 48);
    assert_int_equal(open_file(&durable, place->path, 1, 2, &read), DURABLE_FAILED);
}

/* ---- The list of peers ---- */

static int parse(struct group *group, const char *algorithm, const char *text, char *error) {
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    group_init(group, catalogue_find(algorithm));
    return group_parse(group, "peers.conf", copy, error);
}

static void a_list_is_read(void **state) {
    struct group group, other;
    char error[GROUP_ERROR_MAX];
    (void)state;
    assert_int_equal(parse(&group, "chang-roberts",
                           "# peers\n1 10.0.0.1:7101\n2 [::1]:7102 id=17 weight=3 # two\n\n3 c:1\n",
                           error),
                     0);
    assert_int_equal(group.processes, 3);
    assert_string_equal(group.member[2].host, "::1");
    assert_int_equal(group.member[2].port, 7102);
    struct cv_env env = group_env(&group, 2);
    assert_int_equal(env.id, 17);
    assert_int_equal(env.weight, 3);
    assert_int_equal(env.degree, 1);
    assert_int_equal(env.neighbours[0], 3);
    assert_int_equal(parse(&other, "chang-roberts", "1 10.0.0.1:7101\n2 c:7102\n3 c:1\n", error),
                     0);
    assert_true(group.identity != other.identity);
    group_free(&group);
    group_free(&other);
    assert_int_equal(parse(&group, "yo-yo", "1 a:1\n2 a:2\n3 a:3\nedges 1-2 2-3\n", error), 0);
    assert_true(group_reaches(&group, 1, 2) && !group_reaches(&group, 1, 3));
    group_free(&group);
    assert_int_equal(parse(&group, "yo-yo", "1 a:1 edges=2\n2 a:2\n3 a:3 edges=2\n", error), 0);
    assert_true(group_reaches(&group, 2, 1) && group_reaches(&group, 2, 3));
    assert_false(group_reaches(&group, 1, 3));
    group_free(&group);
    assert_int_equal(parse(&group, "yo-yo", "1 a:1 edges=2,3\n2 a:2 edges=1,3\n3 a:3\n", error), 0);
    assert_int_equal(group_env(&group, 1).degree, 2);
    group_free(&group);
}

static void a_wrong_list_is_refused(void **state) {
    static const struct {
        const char *algorithm, *text, *says;
    } wrong[] = {
        {"bully", "", "too few"},
        {"bully", "1 a:1\n", "too few"},
        {"central", "1 a:1\n", "too few"},
        {"bully", "1 a:1\n3 a:3\n", "line 2"},
        {"bully", "2 a:1\n", "in order"},
        {"bully", "1 a\n2 a:2\n", "HOST:PORT"},
        {"bully", "1 a:0\n2 a:2\n", "HOST:PORT"},
        {"bully", "1 a:1\n2 a:70000\n", "HOST:PORT"},
        {"bully", "1 a:1 colour=3\n2 a:2\n", "id=N, weight=N or edges=N,N"},
        {"bully", "1 a:1 id=0\n2 a:2\n", "id=N, weight=N or edges=N,N"},
        {"bully", "1 a:1 id=2\n2 a:2\n", "same id"},
        {"bully", "x a:1\n", "pid"},
        {"bully", "1\n2 a:2\n", "address"},
        {"bully", "1 a:1\n2 a:2\nedges 1-2\n", "edges"},
        {"yo-yo", "1 a:1\n2 a:2\n", "edges"},
        {"yo-yo", "1 a:1\n2 a:2\n3 a:3\nedges 1-2\n", "connect"},
        {"yo-yo", "1 a:1\n2 a:2\nedges 1-3\n", "not listed"},
        {"yo-yo", "1 a:1\n2 a:2 edges=3\n", "not listed"},
        {"yo-yo", "1 a:1\n2 a:2 edges=2\n", "line 2: an edge joins two"},
        {"yo-yo", "1 a:1\n2 a:2\nedges 0-1\n", "line 3: an edge joins two"},
        {"yo-yo", "1 a:1 edges=1001\n2 a:2\n", "line 1: an edge joins two"},
        {"yo-yo", "1 a:1 edges=2,x\n2 a:2\n", "edges=2,3"},
        {"yo-yo", "1 a:1 edges=\n2 a:2\n", "missing"},
        {"yo-yo", "1 a:1 edges\n2 a:2\n", "edges=N,N"},
        {"yo-yo", "1 a:1\n2 a:2\nedges -1-2\n", "such as 1-2"},
        {"yo-yo", "1 a:1\n2 a:2\nedges 1+2\n", "such as 1-2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct group group;
        char error[GROUP_ERROR_MAX] = "";
        assert_int_equal(parse(&group, wrong[i].algorithm, wrong[i].text, error), -1);
        if (!strstr(error, wrong[i].says)) print_error("%s: %s\n", wrong[i].text, error);
        assert_non_null(strstr(error, wrong[i].says));
        group_free(&group);
    }
}

/* ---- Staying awake ---- */

static void it_stays_awake_between_close_messages(void **state) {
    struct awake awake = {0};
    uint64_t now = 1000000000;
    (void)state;
    assert_false(awake_stays(&awake, now, 0));
    assert_false(awake_stays(&awake, now, 1)); /* the first */
    assert_true(awake_stays(&awake, now += AWAKE_CLOSE_NS, 2));
    assert_true(awake_stays(&awake, now + AWAKE_CLOSE_NS, 2));
    assert_false(awake_stays(&awake, now + AWAKE_CLOSE_NS + 1, 2)); /* nothing has come */
    assert_false(awake_stays(&awake, now += AWAKE_CLOSE_NS + 1, 3));
    assert_true(awake_stays(&awake, now += 1, 4));
}

static void it_sleeps_where_others_want_the_processor(void **state) {
    struct awake awake = {0};
    uint64_t now = 1000000000;
    (void)state;
    awake_stays(&awake, now, 1);
    assert_true(awake_stays(&awake, now + 1, 2));
    awake_offered(&awake, now, now + AWAKE_TAKEN_NS);
    assert_true(awake_stays(&awake, now + 2, 3));
    awake_offered(&awake, now, now + AWAKE_TAKEN_NS + 1);
    now += AWAKE_TAKEN_NS + 1;
    assert_false(awake_stays(&awake, now, 4));
    awake_stays(&awake, now += AWAKE_TAKEN_FOR_NS, 5);
    assert_true(awake_stays(&awake, now + 1, 6));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(any_bytes_are_refused_or_well_formed),
        cmocka_unit_test(a_queue_that_is_no_list_is_refused),
        cmocka_unit_test(no_well_formed_message_stops_a_process),
        cmocka_unit_test(channels_are_in_order_and_exactly_once),
        cmocka_unit_test(acknowledged_is_only_what_was_sent),
        cmocka_unit_test_setup_teardown(a_prefix_survives, make_place, remove_place),
        cmocka_unit_test_setup_teardown(one_that_is_suspended_is_told_apart, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(a_file_of_others_is_refused_with_a_way_out, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(after_an_end_in_order_it_begins_anew, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(a_file_of_others_that_has_ended_is_taken_over, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(a_torn_slot_leaves_the_one_before, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(one_that_is_about_to_go_is_waited_for, make_place,
                                        remove_place),
        cmocka_unit_test(a_list_is_read),
        cmocka_unit_test(a_wrong_list_is_refused),
        cmocka_unit_test(it_stays_awake_between_close_messages),
        cmocka_unit_test(it_sleeps_where_others_want_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
