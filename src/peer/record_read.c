/* Reading records.  Every byte may be forged: what is not in order is refused here or, where it
 * takes the algorithm to know, in the replay. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/little.h"
#include "peer/record.h"

#define FILE_MAX ((off_t)1 << 32)

struct reading {
    struct records *records;
    const char *name;
    char *error;
    struct record_run *run;    /* the one that is being read */
    uint64_t *met;             /* incarnations, by pid */
    uint64_t *sent, *received; /* the newest numbers, by pid */
    uint64_t *begun; /* by pid: the first of run->sent that may be of its channel as it is */
};

static int fail(const struct reading *r, const char *why) {
    snprintf(r->error, RECORD_ERROR_MAX, "%.200s: %s", r->name, why);
    return -1;
}

/* ---- The group ---- */

static int read_options(const struct reading *r, struct group *group, const unsigned char *at,
                        unsigned count) {
    const struct cv_algorithm *code = group->algorithm;
    if (count != code->option_count) return fail(r, "its algorithm has other options");
    for (unsigned i = 0; i < count; i++) {
        const struct cv_option *option = &code->options[i];
        uint64_t value = get64(at + 8 * (size_t)i);
        bool unset = value == CV_UNSET && option->default_value == CV_UNSET;
        if (!unset && (value < option->min || value > option->max) &&
            !(option->type == CV_FLAG && value <= 1))
            return fail(r, "an option has a value that it cannot have");
        group->option[i] = value;
    }
    return 0;
}

/* Name and options of the algorithm, and the list of peers. */
static int read_group(const struct reading *r, const unsigned char *at, size_t size) {
    struct records *records = r->records;
    char name[256], error[GROUP_ERROR_MAX];
    if (records->group_bytes) {
        if (size == records->group_size && memcmp(at, records->group_bytes, size) == 0) return 0;
        return fail(r, "it is of another group, or of another algorithm, than the first record");
    }
    size_t length = size ? at[0] : 0;
    if (size < length + 2 || size - length - 2 < 8 * (size_t)at[length + 1])
        return fail(r, "its group is cut off");
    memcpy(name, at + 1, length);
    name[length] = 0;
    const struct cv_algorithm *code = records->algorithm ? records->algorithm : records->find(name);
    if (!code) return fail(r, "its algorithm is not known here; one of a file needs --algorithm");
    group_init(&records->group, code);
    if (read_options(r, &records->group, at + length + 2, at[length + 1]) != 0) return -1;
    size_t before = length + 2 + 8 * (size_t)at[length + 1];
    char *text = strndup((const char *)at + before, size - before);
    cv_assert(text);
    int failed = group_parse(&records->group, r->name, text, error);
    free(text);
    if (failed) return snprintf(r->error, RECORD_ERROR_MAX, "%s", error), -1;
    records->group_bytes = at;
    records->group_size = size;
    return 0;
}

/* ---- Entries: each returns its size, or 0 after a refusal ---- */

static size_t refuse(const struct reading *r, const char *why) { return fail(r, why), 0; }

/* The run before goes on. */
static bool resume_run(const struct reading *r, const unsigned char *at) {
    struct record_run *run = r->run;
    if (!run || !run->ended || run->in_order || run->self != get32(at + 6) ||
        run->incarnation != get64(at + 10))
        return refuse(r, "it goes on with a state that is in no record");
    run->resumed_us = get64(at + 18);
    run->ended = false;
    if (run->resumed_us <= (uint64_t)1 << 62) return true;
    return refuse(r, "its beginning makes no sense");
}

static size_t read_run(struct reading *r, const unsigned char *at, size_t left) {
    struct records *records = r->records;
    if (left < RECORD_RUN_SIZE || get32(at + 1) != RECORD_MAGIC)
        return refuse(r, "this is no record of a peer or of a server");
    size_t size = get32(at + 38);
    if (left - RECORD_RUN_SIZE < size) return refuse(r, "its group is cut off");
    if (read_group(r, at + RECORD_RUN_SIZE, size) != 0) return 0;
    uint32_t self = get32(at + 6), n = records->group.processes;
    if (!self || self > n) return refuse(r, "it is of a process that does not exist");
    if (at[5] & RECORD_RESUMED) return resume_run(r, at) ? RECORD_RUN_SIZE + size : 0;
    records->run =
        grown(records->run, &records->run_room, records->run_count + 1, sizeof *records->run);
    r->run = &records->run[records->run_count++];
    *r->run = (struct record_run){.self = self,
                                  .path = r->name,
                                  .flags = at[5],
                                  .incarnation = get64(at + 10),
                                  .began_us = get64(at + 18),
                                  .prefix = get64(at + 26),
                                  .group_run = get32(at + 34)};
    if (!r->run->incarnation || r->run->began_us > (uint64_t)1 << 62)
        return refuse(r, "its beginning makes no sense");
    uint64_t **arrays[] = {&r->met, &r->sent, &r->received, &r->begun};
    for (int i = 0; i < 4; i++) {
        free(*arrays[i]);
        *arrays[i] = calloc((size_t)n + 1, sizeof **arrays[i]);
        cv_assert(*arrays[i]);
    }
    return RECORD_RUN_SIZE + size;
}

static bool is_other(const struct reading *r, uint32_t p) {
    return p && p <= r->records->group.processes && p != r->run->self;
}

static size_t read_message(const struct reading *r, struct record_step *step,
                           const unsigned char *at, size_t left) {
    if (left < RECORD_MESSAGE_SIZE || left - RECORD_MESSAGE_SIZE < get32(at + 14))
        return refuse(r, "a message is cut off");
    cv_pid from = get32(at);
    if (!is_other(r, from) || !r->met[from])
        return refuse(r, "a message is of a process that was not met");
    step->number = get64(at + 4);
    if (step->number <= r->received[from]) /* one that was refused is missing */
        return refuse(r, "the messages of a channel are not in their order");
    r->received[from] = step->number;
    step->from_incarnation = r->met[from];
    step->event.from = from;
    step->event.kind = get16(at + 12);
    step->event.size = get32(at + 14);
    step->body = at + RECORD_MESSAGE_SIZE;
    return RECORD_MESSAGE_SIZE + step->event.size;
}

static uint64_t last_time(const struct record_run *run) {
    uint64_t us = run->step_count ? run->step[run->step_count - 1].time_us : run->began_us;
    return us > run->resumed_us ? us : run->resumed_us;
}

static size_t read_step(const struct reading *r, const unsigned char *at, size_t left) {
    struct record_run *run = r->run;
    if (left < RECORD_STEP_SIZE + RECORD_ARGUMENT_SIZE) return refuse(r, "a step is cut off");
    if (at[1] > CV_HAND_ON) return refuse(r, "an event is of a kind that does not exist");
    if ((at[1] <= CV_RESTART) != !run->step_count)
        return refuse(r, "a run does not begin with the start of its process");
    struct record_step step = {.event = {.type = at[1]},
                               .time_us = last_time(run) + get32(at + 2),
                               .hash = get64(at + 6),
                               .sent = (uint32_t)run->sent_count};
    size_t size = RECORD_ARGUMENT_SIZE;
    if (at[1] == CV_RECV)
        size = read_message(r, &step, at + RECORD_STEP_SIZE, left - RECORD_STEP_SIZE);
    else
        step.event.arg = get32(at + RECORD_STEP_SIZE);
    if (!size) return 0;
    run->step = grown(run->step, &run->step_room, run->step_count + 1, sizeof step);
    run->step[run->step_count++] = step;
    return RECORD_STEP_SIZE + size;
}

/* Before the receiver is met, what was sent to it may have become too much, and be given up. */
static size_t read_sent(const struct reading *r, const unsigned char *at, size_t left) {
    struct record_run *run = r->run;
    if (left < RECORD_SENT_SIZE) return refuse(r, "a message is cut off");
    struct record_sent sent = {.to = get32(at + 1), .number = get64(at + 5)};
    if (!is_other(r, sent.to) || !run->step_count || run->sent_count == UINT32_MAX)
        return refuse(r, "a message is for nobody");
    sent.incarnation = r->met[sent.to];
    bool anew = sent.number == 1 && !sent.incarnation;
    if (sent.number != r->sent[sent.to] + 1 && !anew)
        return refuse(r, "the messages of a channel are not in their order");
    for (size_t i = r->begun[sent.to]; anew && i < run->sent_count; i++)
        if (run->sent[i].to == sent.to) run->sent[i].number = 0;
    if (anew) r->begun[sent.to] = run->sent_count;
    r->sent[sent.to] = sent.number;
    run->sent = grown(run->sent, &run->sent_room, run->sent_count + 1, sizeof sent);
    run->sent[run->sent_count++] = sent;
    run->step[run->step_count - 1].sent_count++;
    return RECORD_SENT_SIZE;
}

/* What was sent before the first meeting goes to the one that is met. */
static size_t read_met(const struct reading *r, const unsigned char *at, size_t left) {
    struct record_run *run = r->run;
    if (left < RECORD_MET_SIZE) return refuse(r, "a meeting is cut off");
    cv_pid p = get32(at + 1);
    uint64_t incarnation = get64(at + 5);
    if (!is_other(r, p) || incarnation <= r->met[p])
        return refuse(r, "a process is met that cannot be");
    for (size_t i = 0; !r->met[p] && i < run->sent_count; i++)
        if (run->sent[i].to == p) run->sent[i].incarnation = incarnation;
    if (r->met[p]) r->sent[p] = r->received[p] = 0;
    r->met[p] = incarnation;
    return RECORD_MET_SIZE;
}

static size_t read_end(const struct reading *r, const unsigned char *at, size_t left) {
    if (left < RECORD_END_SIZE) return refuse(r, "its end is cut off");
    r->run->ended = true;
    r->run->in_order = at[1];
    r->run->ended_us = last_time(r->run) + get32(at + 2);
    return RECORD_END_SIZE;
}

static size_t read_entry(struct reading *r, const unsigned char *at, size_t left) {
    if (*at == RECORD_RUN) return read_run(r, at, left);
    if (!r->run) return refuse(r, "this is no record of a peer or of a server");
    if (r->run->ended) return refuse(r, "something follows the end of a run");
    switch (*at) {
    case RECORD_STEP: return read_step(r, at, left);
    case RECORD_SENT: return read_sent(r, at, left);
    case RECORD_MET: return read_met(r, at, left);
    case RECORD_END: return read_end(r, at, left);
    default: return refuse(r, "an entry is of a kind that does not exist");
    }
}

/* ---- Files ---- */

static int read_blocks(struct reading *r, const unsigned char *bytes, size_t size) {
    size_t at = 0;
    while (size - at >= RECORD_BLOCK_HEAD) {
        const unsigned char *block = bytes + at + RECORD_BLOCK_HEAD;
        size_t length = get32(bytes + at);
        if (length > size - at - RECORD_BLOCK_HEAD) break;
        if (crc32c(0, block, length) != get32(bytes + at + 4))
            return fail(r, "it is damaged: a checksum is wrong");
        for (size_t done = 0; done < length;) {
            size_t entry = read_entry(r, block + done, length - done);
            if (!entry) return -1;
            done += entry;
        }
        at += RECORD_BLOCK_HEAD + length;
    }
    if (!r->run) return fail(r, "this is no record of a peer or of a server");
    if (at < size && r->run->ended) return fail(r, "something follows the end of a run");
    r->run->torn = size - at;
    return 0;
}

int records_parse(struct records *records, const char *name, unsigned char *bytes, size_t size,
                  char error[RECORD_ERROR_MAX]) {
    struct reading r = {.records = records, .name = name, .error = error};
    records->file =
        grown(records->file, &records->file_room, records->file_count + 1, sizeof *records->file);
    records->file[records->file_count++] = bytes;
    int failed = read_blocks(&r, bytes, size);
    free(r.met);
    free(r.sent);
    free(r.received);
    free(r.begun);
    return failed;
}

int records_read(struct records *records, const char *path, char error[RECORD_ERROR_MAX]) {
    struct reading r = {.records = records, .name = path, .error = error};
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail(&r, strerror(errno));
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size > FILE_MAX) {
        close(fd);
        return fail(&r, "this is no record of a peer or of a server");
    }
    size_t size = (size_t)file.st_size, used = 0;
    unsigned char *bytes = malloc(size + 1);
    ssize_t got = 0;
    cv_assert(bytes);
    while (used < size && (got = read(fd, bytes + used, size - used)) > 0) used += (size_t)got;
    int problem = errno;
    close(fd);
    if (got >= 0) return records_parse(records, path, bytes, used, error);
    free(bytes);
    return fail(&r, strerror(problem));
}

static int by_process_and_incarnation(const void *a, const void *b) {
    const struct record_run *x = a, *y = b;
    if (x->self != y->self) return x->self < y->self ? -1 : 1;
    return (x->incarnation > y->incarnation) - (x->incarnation < y->incarnation);
}

void records_sort(struct records *records) {
    if (records->run_count)
        qsort(records->run, records->run_count, sizeof *records->run, by_process_and_incarnation);
}

void records_free(struct records *records) {
    for (size_t i = 0; i < records->run_count; i++) {
        free(records->run[i].step);
        free(records->run[i].sent);
    }
    for (size_t i = 0; i < records->file_count; i++) free(records->file[i]);
    free(records->run);
    free(records->file);
    group_free(&records->group);
    *records = (struct records){0};
}
