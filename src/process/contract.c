#include "process/contract.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

enum { ROW_BYTES_MAX = 4096, MESSAGE_BYTES_MAX = 4096, SENDS_MAX = 1 << 20, WRONG_USAGE = 2 };
enum { NAME_BYTES_MAX = 40, SERVER_BYTES_MAX = 16, VALUES_BYTES_MAX = 240 };

static const unsigned type_size[] = {[CV_U8] = 1, [CV_U16] = 2, [CV_U32] = 4,   [CV_U64] = 8,
                                     [CV_ID] = 8, [CV_PID] = 4, [CV_QUEUE] = 8, [CV_LINK] = 8};

static unsigned alignment_of(unsigned type) {
    return type == CV_QUEUE || type == CV_LINK ? 4 : type_size[type];
}

/* ---- Descriptors ---- */

struct inspection {
    char *buffer;
    size_t size;
    const char *problem;
};

__attribute__((format(printf, 2, 3))) static void object(struct inspection *i, const char *format,
                                                         ...) {
    va_list arguments;
    if (i->problem) return; /* the first one is told */
    va_start(arguments, format);
    vsnprintf(i->buffer, i->size, format, arguments);
    va_end(arguments);
    i->problem = i->buffer;
}

/* Names are written to terminals and into pictures. */
static bool is_printable(const char *text, size_t bytes_max) {
    if (!text || !*text || strlen(text) > bytes_max) return false;
    for (uint32_t code; (code = utf8_next(&text));)
        if (code < ' ' || (code >= 0x7f && code < 0xa0) || code == UTF8_BROKEN) return false;
    return true;
}

/* Fields follow each other without gaps and end where the record does. */
static void inspect_fields(struct inspection *i, const char *record, const struct cv_field *fields,
                           unsigned count, unsigned size, const char *what) {
    unsigned at = 0, alignment = 1;
    if (!fields != !count || !count != !size)
        object(i, "'%s' does not describe its %s", record, what);
    for (unsigned f = 0; f < count && !i->problem; f++) {
        if (!is_printable(fields[f].name, NAME_BYTES_MAX)) {
            object(i, "field %u of the %s of '%s' has no name of 1 to %d bytes", f + 1, what,
                   record, NAME_BYTES_MAX);
        } else if (fields[f].values && !is_printable(fields[f].values, VALUES_BYTES_MAX)) {
            object(i, "field '%s' of '%s' has no names for its values, of 1 to %d bytes in all",
                   fields[f].name, record, VALUES_BYTES_MAX);
        } else if (fields[f].type > CV_LINK || fields[f].audience > CV_IF_SET) {
            object(i, "field '%s' of '%s' has an unknown type", fields[f].name, record);
        } else if (fields[f].offset != at || at % alignment_of(fields[f].type)) {
            object(i, "field '%s' of '%s' is not where the one before it ends", fields[f].name,
                   record);
        } else {
            at += type_size[fields[f].type];
            if (alignment_of(fields[f].type) > alignment) alignment = alignment_of(fields[f].type);
        }
    }
    if (!i->problem && (at != size || at % alignment))
        object(i, "the fields of the %s of '%s' take %u bytes, and its size is %u", what, record,
               at, size);
}

static unsigned count_type(const struct cv_field *fields, unsigned count, unsigned type) {
    unsigned found = 0;
    for (unsigned f = 0; f < count; f++) found += fields[f].type == type;
    return found;
}

static void inspect_record(struct inspection *i, const struct cv_record *record, unsigned max,
                           const char *what) {
    if (i->problem) return;
    if (!is_printable(record->name, NAME_BYTES_MAX)) {
        object(i, "a %s has no name of 1 to %d bytes", what, NAME_BYTES_MAX);
        return;
    }
    if (record->size > max || record->row_size > max)
        object(i, "'%s' is larger than %u bytes", record->name, max);
    inspect_fields(i, record->name, record->fields, record->field_count, record->size, "head");
    if (!i->problem && !record->size) object(i, "'%s' has no fields", record->name);
    inspect_fields(i, record->name, record->row_fields, record->row_field_count, record->row_size,
                   "rows");
    if (i->problem || !record->row_size) return;
    for (unsigned f = 0; f < record->row_field_count; f++)
        if (record->size % alignment_of(record->row_fields[f].type))
            object(i, "the rows of '%s' are not aligned: let its head end on 8 bytes",
                   record->name);
    unsigned links = count_type(record->row_fields, record->row_field_count, CV_LINK);
    bool queues = count_type(record->fields, record->field_count, CV_QUEUE) != 0;
    if (links > 1 || (queues && !links))
        object(i, "'%s' has %u links in a row; a queue needs one", record->name, links);
}

static void inspect_option(struct inspection *i, const struct cv_option *o, unsigned number) {
    if (i->problem) return;
    if (!o->name || !*o->name || !o->summary)
        object(i, "option %u has no name or no summary", number + 1);
    else if (strspn(o->name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(o->name))
        object(i, "option '%s' is not a word of small letters", o->name);
    else if (o->type > CV_FLAG)
        object(i, "option '%s' has an unknown type", o->name);
    else if (o->min > o->max || (o->type == CV_FLAG && (o->min || o->max != 1)) ||
             (o->default_value != CV_UNSET &&
              (o->default_value < o->min || o->default_value > o->max)))
        object(i, "option '%s' does not allow its own default", o->name);
}

static void inspect_texts(struct inspection *i, const struct cv_algorithm *code) {
    const struct {
        const char *member, *text;
    } texts[] = {{"name", code->name}, {"summary", code->summary}};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
        if (!is_printable(texts[t].text, 1000))
            object(i, ".%s is not a line of text", texts[t].member);
    if (!code->servers != !code->server_name)
        object(i, ".servers and .server_name go together: how many there are, and what one is "
                  "called");
    if (code->server_name && !is_printable(code->server_name, SERVER_BYTES_MAX))
        object(i, ".server_name is not a name of 1 to %d bytes", SERVER_BYTES_MAX);
}

const char *contract_problem(const struct cv_algorithm *code, char *buffer, size_t size) {
    struct inspection i = {.buffer = buffer, .size = size};
    inspect_texts(&i, code);
    if (code->problem != CV_MUTEX && code->problem != CV_ELECTION)
        object(&i, ".problem is neither CV_MUTEX nor CV_ELECTION");
    if (!code->step) object(&i, "there is no .step");
    if (!code->layout) object(&i, "there is no .layout");
    if (code->log && code->problem != CV_ELECTION) object(&i, ".log is for elections");
    if (code->topology > CV_GRAPH) object(&i, ".topology is unknown");
    if (code->preference > CV_LOWEST) object(&i, ".preference is unknown");
    if (code->timers > CV_TIMERS_MAX)
        object(&i, ".timers is %u; at most %d", code->timers, CV_TIMERS_MAX);
    if (code->option_count > CV_OPTIONS_MAX || (code->option_count && !code->options))
        object(&i, ".option_count is %u; at most %d, in .options", code->option_count,
               CV_OPTIONS_MAX);
    for (unsigned k = 0; !i.problem && k < code->option_count; k++)
        inspect_option(&i, &code->options[k], k);
    if (!code->state) object(&i, "there is no .state");
    if (!code->messages || !code->message_count || code->message_count > CV_KINDS_MAX)
        object(&i, ".message_count is %u; from 1 to %d, in .messages", code->message_count,
               CV_KINDS_MAX);
    if (!i.problem) inspect_record(&i, code->state, ROW_BYTES_MAX, "state");
    for (unsigned k = 0; !i.problem && k < code->message_count; k++)
        inspect_record(&i, &code->messages[k], MESSAGE_BYTES_MAX, "message");
    return i.problem;
}

/* ---- Steps ---- */

void contract_break(const struct cv_algorithm *code, cv_pid self, const char *format, ...) {
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "conclave: %s: process %u %s\n", code->name, self, what);
    _Exit(WRONG_USAGE); /* other threads may be in its steps */
}

void contract_inside(const struct cv_algorithm *code, cv_pid self) {
    if (code->traits & CV_FROM_FILE)
        contract_break(code, self, "tells that it has entered, and is inside already");
}

struct cv_layout contract_layout(const struct cv_algorithm *code, const struct cv_env *env) {
    struct cv_layout layout = {0};
    struct contract_place before = contract_place;
    contract_place.algorithm = code->traits & CV_FROM_FILE ? code->name : NULL;
    contract_place.process = env->self;
    code->layout(env, &layout);
    contract_place = before;
    uint64_t bytes = code->state->size + (uint64_t)layout.rows * code->state->row_size;
    if (layout.rows > env->processes || layout.first > env->processes + 1)
        contract_break(code, env->self,
                       "has %u rows from process %u on, and there are %u processes", layout.rows,
                       layout.first, env->processes);
    if (layout.rows && !code->state->row_size)
        contract_break(code, env->self, "has %u rows, and its state describes none", layout.rows);
    if (layout.durable > bytes || layout.durable % 4)
        contract_break(code, env->self, "has a durable prefix of %u bytes; at most %llu, in fours",
                       layout.durable, (unsigned long long)bytes);
    if (layout.sends > SENDS_MAX || layout.message_rows > SENDS_MAX)
        contract_break(code, env->self, "wants to send %u messages in a step, of %u rows",
                       layout.sends, layout.message_rows);
    return layout;
}

/* Every process that a record names is one. */
static void inspect_pids(const struct cv_algorithm *code, const struct cv_env *env,
                         const char *record, const struct cv_field *fields, unsigned count,
                         const unsigned char *bytes) {
    for (unsigned f = 0; f < count; f++) {
        unsigned pids = fields[f].type == CV_PID                                  ? 1
                        : fields[f].type == CV_QUEUE || fields[f].type == CV_LINK ? 2
                                                                                  : 0;
        for (unsigned k = 0; k < pids; k++) {
            cv_pid p;
            memcpy(&p, bytes + fields[f].offset + k * sizeof p, sizeof p);
            if (p > env->processes)
                contract_break(code, env->self, "has process %u in '%s' of '%s', and there are %u",
                               p, fields[f].name, record, env->processes);
        }
    }
}

static void inspect_send(const struct cv_algorithm *code, const struct cv_env *env,
                         const struct cv_send *send) {
    if (send->kind >= code->message_count)
        contract_break(code, env->self, "sends a message of kind %u, and .message_count is %u",
                       send->kind, code->message_count);
    const struct cv_record *record = &code->messages[send->kind];
    uint32_t rows = send->size < record->size ? 0 : send->size - record->size;
    if (send->size < record->size || (rows && (!record->row_size || rows % record->row_size)))
        contract_break(code, env->self, "sends %s with a body of %u bytes, and its record has %u",
                       record->name, send->size, record->size);
    if (send->to < CV_SERVERS && (!send->to || send->to > env->processes))
        contract_break(code, env->self, "sends %s to process %u, and there are 1 to %u",
                       record->name, send->to, env->processes);
    if (send->to == env->self) contract_break(code, env->self, "sends %s to itself", record->name);
    const unsigned char *body = (const unsigned char *)(send + 1);
    inspect_pids(code, env, record->name, record->fields, record->field_count, body);
    for (uint32_t at = record->size; at < send->size; at += record->row_size)
        inspect_pids(code, env, record->name, record->row_fields, record->row_field_count,
                     body + at);
}

static bool may_tell(const struct cv_algorithm *code, uint32_t what) {
    if (code->problem == CV_MUTEX) return what >= CV_ENTERED && what <= CV_WOKEN;
    return what >= CV_ELECTED && what <= CV_ROUND;
}

/* Its entries are inside the state. */
static void inspect_log(const struct cv_algorithm *code, const struct cv_env *env,
                        const unsigned char *state, size_t size) {
    struct cv_log log = {0};
    code->log(state, &log);
    uint64_t count = log.last - log.first + 1;
    size_t at = (size_t)((uintptr_t)log.entry - (uintptr_t)state);
    if (!log.first || log.last + 1 < log.first || log.commit > log.last ||
        log.commit + 1 < log.first)
        contract_break(code, env->self, "has a log from %llu to %llu, committed up to %llu",
                       (unsigned long long)log.first, (unsigned long long)log.last,
                       (unsigned long long)log.commit);
    if (count && (at > size || count > (size - at) / sizeof *log.entry))
        contract_break(code, env->self, "has a log whose %llu entries are not inside its state",
                       (unsigned long long)count);
}

void contract_inspect(const struct cv_algorithm *code, const struct cv_env *env, const void *state,
                      const struct cv_out *out) {
    const struct cv_record *record = code->state;
    uint32_t rows = contract_layout(code, env).rows;
    const unsigned char *bytes = state;
    unsigned timers = out->timers_set | out->timers_cancelled;
    if (timers >> code->timers)
        contract_break(code, env->self, "uses timer %d, and .timers is %u",
                       31 - __builtin_clz(timers), code->timers);
    for (unsigned t = 0; t < code->timers; t++)
        if (out->timers_set >> t & 1 &&
            (out->timer[t].min_us > out->timer[t].max_us || !out->timer[t].max_us))
            contract_break(code, env->self, "sets timer %u to a time from %llu to %llu us", t,
                           (unsigned long long)out->timer[t].min_us,
                           (unsigned long long)out->timer[t].max_us);
    for (uint32_t at = 0; at < out->used;) {
        const struct cv_send *send = (const void *)(out->sends + at);
        if (out->used - at < sizeof *send || out->used - at - sizeof *send < send->size)
            contract_break(code, env->self, "sends a message of which a part is missing");
        inspect_send(code, env, send);
        at += (uint32_t)sizeof *send + ((send->size + 7) & ~7u);
    }
    for (unsigned t = 0; t < out->tells; t++)
        if (!may_tell(code, out->tell[t].what))
            contract_break(code, env->self, "tells its application %u, which %s does not",
                           out->tell[t].what, code->problem == CV_MUTEX ? "a lock" : "an election");
    if (code->log) inspect_log(code, env, bytes, record->size + (size_t)rows * record->row_size);
    inspect_pids(code, env, record->name, record->fields, record->field_count, bytes);
    for (uint32_t i = 0; i < rows; i++)
        inspect_pids(code, env, record->name, record->row_fields, record->row_field_count,
                     bytes + record->size + (size_t)i * record->row_size);
}
