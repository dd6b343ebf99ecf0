/* A trace as a Mermaid sequence diagram inside a Markdown page: the messages in the order of
 * arrival, the states of servers, the stays inside, and in red the overlaps. */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "lab/sim/trace.h"
#include "language/language.h"

/* Viewers refuse a diagram of more than 50,000 letters. */
enum { STEPS_MAX = 400, LETTERS_MAX = 45000, TEXT_MAX = 120 };

struct diagram {
    const struct trace *trace;
    FILE *out;
    size_t end; /* entries from here on are left out */
    size_t steps_max;
    size_t steps_left;     /* steps that were left out */
    bool *occurs, *inside; /* by pid */
    uint32_t *state;       /* by pid: its last note, an offset into trace.text */
    uint32_t inside_count;
    bool *leads;        /* by pid */
    uint32_t *term;     /* by pid: in which it leads */
    cv_pid first, last; /* of those that occur */
    bool red;
};

static bool is_step(const struct trace *trace, size_t i) {
    enum trace_type type = trace->entry[i].type;
    return trace_shows(trace, i) && type != TR_NONE && type != TR_SEND && type != TR_DONE &&
           type != TR_WRITE;
}

/* ---- Names and texts ---- */

/* A keyword of Mermaid cannot name a participant. */
static bool is_keyword(const char *name) {
    static const char *const words[] = {
        "accdescr",   "acctitle",    "activate",
        "actor",      "alt",         "and",
        "as",         "autonumber",  "box",
        "break",      "create",      "critical",
        "deactivate", "destroy",     "details",
        "else",       "end",         "left",
        "link",       "links",       "loop",
        "note",       "off",         "opt",
        "option",     "over",        "par",
        "par_over",   "participant", "properties",
        "rect",       "right",       "sequencediagram",
        "title",
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(words[i], name) == 0) return true;
    return false;
}

/* Whether a name can stand in the diagram as it is, without an alias. */
static bool is_plain(const char *name) {
    if (!isalpha((unsigned char)*name) || is_keyword(name)) return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_') return false;
    return true;
}

static void put_name(const struct diagram *d, cv_pid p) {
    char name[ROSTER_NAME_MAX];
    if (is_plain(roster_name(&d->trace->roster, p, name)))
        fputs(name, d->out);
    else
        fprintf(d->out, "_%u", p); /* no plain name begins with _ */
}

/* Characters that mean something to Mermaid are written by their code. */
static void put_text(const struct diagram *d, const char *text) {
    size_t letters = 0;
    for (const char *at = text, *next = text; *at; at = next) {
        uint32_t code = utf8_next(&next);
        if (letters++ == TEXT_MAX) {
            fputs("...", d->out);
            return;
        }
        if (code < ' ')
            fputc(' ', d->out);
        else if (code == UTF8_BROKEN)
            fputc('?', d->out);
        else if (code >= 0x80 || isalnum((int)code) || strchr(" =,.[]()_+-*/!?:'", (int)code))
            fwrite(at, 1, (size_t)(next - at), d->out);
        else
            fprintf(d->out, "#%u;", code);
    }
}

static void put_title(const char *title, FILE *out) {
    fputs("# ", out);
    for (const char *at = title, *next = title; *at; at = next) {
        uint32_t code = utf8_next(&next);
        if (code < 0x80 && strchr("\\`*<[&", (int)code)) fputc('\\', out);
        if (code < ' ' || code == UTF8_BROKEN)
            fputc(code < ' ' ? ' ' : '?', out);
        else
            fwrite(at, 1, (size_t)(next - at), out);
    }
    fputs("\n\n", out);
}

__attribute__((format(printf, 4, 5))) static void note(const struct diagram *d, cv_pid first,
                                                       cv_pid last, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("    note over ", d->out);
    put_name(d, first);
    if (last != first) {
        fputc(',', d->out);
        put_name(d, last);
    }
    fputs(": ", d->out);
    put_text(d, text);
    fputc('\n', d->out);
}

static void arrow(const struct diagram *d, cv_pid from, const char *line, cv_pid to,
                  const char *text) {
    fputs("    ", d->out);
    put_name(d, from);
    fputs(line, d->out);
    put_name(d, to);
    fputs(": ", d->out);
    put_text(d, text);
    fputc('\n', d->out);
}

/* ---- Participants ---- */

static void find_participants(struct diagram *d) {
    size_t steps = 0;
    for (size_t i = 1; i < d->trace->count; i++) {
        const struct trace_entry *entry = &d->trace->entry[i];
        if (!is_step(d->trace, i)) continue;
        if (steps++ == d->steps_max) d->end = i;
        if (steps > d->steps_max) continue;
        d->occurs[entry->process] = d->occurs[entry->peer] = true;
    }
    d->steps_left = steps > d->steps_max ? steps - d->steps_max : 0;
    for (cv_pid p = 1; p <= d->trace->roster.processes; p++) {
        if (!d->occurs[p]) continue;
        if (!d->first) d->first = p;
        d->last = p;
    }
}

static void put_participants(const struct diagram *d) {
    char name[ROSTER_NAME_MAX];
    for (cv_pid p = d->first; p && p <= d->last; p++) {
        if (!d->occurs[p]) continue;
        fputs("    participant ", d->out);
        put_name(d, p);
        if (!is_plain(roster_name(&d->trace->roster, p, name))) {
            fputs(" as ", d->out);
            put_text(d, name);
        }
        fputc('\n', d->out);
    }
}

static cv_pid column_behind(const struct diagram *d, cv_pid p) {
    while (++p <= d->last && !d->occurs[p]) {
    }
    return p;
}

/* ---- Inside ---- */

static void turn_red(struct diagram *d) {
    if (d->red) return;
    fputs("    rect rgb(200, 0, 0)\n", d->out);
    d->red = true;
}

static void turn_back(struct diagram *d) {
    if (d->red) fputs("    end\n", d->out);
    d->red = false;
}

/* The entry of the wanted type (TR_ENTER, TR_ELECTED) in the step that entry i begins, or 0. */
static size_t leads_to(const struct trace *trace, size_t i, enum trace_type wanted) {
    cv_pid p = trace->entry[i].process;
    for (size_t j = i + 1; j < trace->count; j++) {
        enum trace_type type = trace->entry[j].type;
        if (type == wanted) return trace->entry[j].process == p ? j : 0;
        if (type != TR_SEND && type != TR_LOST) return 0;
    }
    return 0;
}

static void enter(struct diagram *d, cv_pid p) {
    if (d->inside[p]) return;
    if (d->inside_count) turn_red(d);
    d->inside[p] = true;
    d->inside_count++;
    fputs("    activate ", d->out);
    put_name(d, p);
    fputc('\n', d->out);
    if (!d->red) return;
    cv_pid first = d->first, last = d->last;
    while (!d->inside[first]) first++;
    while (!d->inside[last]) last--;
    note(d, first, last, _("%u inside at once"), d->inside_count);
}

static void leave(struct diagram *d, cv_pid p) {
    if (!d->inside[p]) return;
    d->inside[p] = false;
    d->inside_count--;
    fputs("    deactivate ", d->out);
    put_name(d, p);
    fputc('\n', d->out);
    if (d->inside_count < 2) turn_back(d);
}

/* ---- Leaders ---- */

/* The number of leaders of a term, and the first and the last of them. */
static uint32_t leaders_of(const struct diagram *d, uint32_t term, cv_pid *first, cv_pid *last) {
    uint32_t count = 0;
    for (cv_pid p = d->first; p && p <= d->last; p++) {
        if (!d->leads[p] || d->term[p] != term) continue;
        if (!count++) *first = p;
        *last = p;
    }
    return count;
}

static void retire(struct diagram *d, cv_pid p) {
    cv_pid first, last;
    if (!d->leads[p]) return;
    d->leads[p] = false;
    for (cv_pid q = d->first; q && q <= d->last; q++)
        if (d->leads[q] && leaders_of(d, d->term[q], &first, &last) > 1) return;
    turn_back(d);
}

/* Red begins before the step that makes a second process lead. */
static void open_rivalry(struct diagram *d, size_t i) {
    cv_pid first = CV_NOBODY, last = CV_NOBODY, p = d->trace->entry[i].process;
    size_t elected = leads_to(d->trace, i, TR_ELECTED);
    if (d->trace->entry[i].type == TR_ELECTED) elected = i;
    if (!elected || elected >= d->end) return;
    uint32_t term = d->trace->entry[elected].term;
    if (leaders_of(d, term, &first, &last) && (first != p || last != p)) turn_red(d);
}

static void elect(struct diagram *d, const struct trace_entry *entry) {
    cv_pid first = CV_NOBODY, last = CV_NOBODY, p = entry->process;
    bool already = d->leads[p] && d->term[p] == entry->term;
    char word[NUMBER_WORD_MAX];
    if (d->term[p] != entry->term) retire(d, p);
    d->leads[p] = true;
    d->term[p] = entry->term;
    uint32_t count = leaders_of(d, entry->term, &first, &last);
    if (count > 1 && !already) note(d, first, last, _("%s lead"), number_word(count, word));
}

/* ---- Steps ---- */

static const char *state_text(const struct trace *trace, const struct trace_entry *entry) {
    return entry->note ? trace->text + entry->note : "";
}

/* Equal entries of adjacent processes at the same time (starts, suspicions) share a note.  Returns
 * the last of these processes and moves to its entry. */
static cv_pid share_note(const struct diagram *d, size_t *i) {
    const struct trace_entry *entry = &d->trace->entry[*i];
    cv_pid last = entry->process;
    if (entry->type != TR_START && entry->type != TR_SUSPECT && entry->type != TR_TRUST)
        return last;
    for (size_t j = *i + 1; j < d->end; j++) {
        const struct trace_entry *other = &d->trace->entry[j];
        if (!is_step(d->trace, j)) continue;
        if (other->type != entry->type || other->peer != entry->peer ||
            other->process != column_behind(d, last) ||
            strcmp(state_text(d->trace, other), state_text(d->trace, entry)) != 0)
            break;
        last = other->process;
        *i = j;
    }
    return last;
}

static void show_state(struct diagram *d, const struct trace_entry *entry, cv_pid last) {
    uint32_t known = d->state[entry->process];
    if (!entry->note) return;
    if (known && strcmp(d->trace->text + known, d->trace->text + entry->note) == 0) return;
    note(d, entry->process, last, "%s", d->trace->text + entry->note);
    for (cv_pid p = entry->process; p <= last; p++) d->state[p] = entry->note;
}

static void show_fault(struct diagram *d, const struct trace_entry *entry, cv_pid last) {
    char peer[ROSTER_NAME_MAX], sides[256];
    cv_pid p = entry->process;
    bool one = last == p;
    roster_name(&d->trace->roster, entry->peer, peer);
    switch (entry->type) {
    case TR_CRASH:
        note(d, p, p, "💀☠️💀☠️💀☠️💀");
        leave(d, p);
        retire(d, p);
        d->state[p] = 0; /* the state after a recovery gets a note even when it is the same */
        break;
    case TR_RECOVER:
        note(d, p, p, "%s",
             entry->arg ? _("is back and has forgotten everything")
                        : _("is back with what it had saved"));
        break;
    case TR_PAUSE: note(d, p, p, _("pauses")); break;
    case TR_RESUME: note(d, p, p, _("runs on")); break;
    case TR_SUSPECT:
        note(d, p, last, one ? _("suspects that %s is down") : _("suspect that %s is down"), peer);
        break;
    case TR_TRUST: note(d, p, last, one ? _("trusts %s again") : _("trust %s again"), peer); break;
    case TR_PARTITION:
        note(d, d->first, d->last, _("the network splits: %s"),
             trace_sides(d->trace, entry, sides, sizeof sides));
        break;
    case TR_HEAL: note(d, d->first, d->last, _("the network heals")); break;
    default: break;
    }
}

static void show_election(struct diagram *d, const struct trace_entry *entry) {
    char term[32] = "", leader[ROSTER_NAME_MAX];
    if (entry->term) snprintf(term, sizeof term, _(" in term %u"), entry->term);
    switch (entry->type) {
    case TR_CAMPAIGN: note(d, entry->process, entry->process, _("wants an election")); break;
    case TR_ELECTED: note(d, entry->process, entry->process, _("👑 leads%s"), term); break;
    case TR_FOLLOWS:
        if (entry->peer)
            note(d, entry->process, entry->process, _("follows %s%s"),
                 roster_name(&d->trace->roster, entry->peer, leader), term);
        else
            note(d, entry->process, entry->process, _("knows that there is a leader%s"), term);
        break;
    default: note(d, entry->process, entry->process, _("has no leader any more")); break;
    }
    if (entry->type == TR_ELECTED) elect(d, entry);
    if (entry->type == TR_FOLLOWS || entry->type == TR_LEADERLESS) retire(d, entry->process);
}

static void show_step(struct diagram *d, size_t i, cv_pid last) {
    const struct trace_entry *entry = &d->trace->entry[i];
    cv_pid p = entry->process;
    char message[256];
    if (d->inside_count && !d->inside[p] && leads_to(d->trace, i, TR_ENTER)) turn_red(d);
    open_rivalry(d, i);
    switch (entry->type) {
    case TR_ASK: /* the REQUEST shows it */
        if (i + 1 == d->trace->count || d->trace->entry[i + 1].type != TR_SEND)
            note(d, p, p, _("wants the lock"));
        break;
    case TR_CAMPAIGN:
    case TR_ELECTED:
    case TR_FOLLOWS:
    case TR_LEADERLESS: show_election(d, entry); break;
    case TR_RECEIVE:
        arrow(d, entry->peer, "->>", p, trace_message(d->trace, entry, message, sizeof message));
        break;
    case TR_LOST:
        arrow(d, entry->peer, "-x", p, trace_message(d->trace, entry, message, sizeof message));
        break;
    case TR_TIMER: arrow(d, p, "->>", p, _("Timeout")); break;
    case TR_CHOICE: note(d, p, p, _("draws %llu"), (unsigned long long)entry->arg); break;
    case TR_ENTER: enter(d, p); break;
    case TR_LEAVE: leave(d, p); break;
    case TR_REFUSED:
        note(d, p, p, _("its write with token %llu is refused"), (unsigned long long)entry->arg);
        break;
    default: show_fault(d, entry, last); break;
    }
    show_state(d, entry, last);
}

static void show_steps(struct diagram *d) {
    for (size_t i = 1; i < d->end; i++) {
        if (!is_step(d->trace, i)) continue;
        size_t begin = i;
        cv_pid last = share_note(d, &i);
        show_step(d, begin, last);
    }
    for (cv_pid p = d->first; d->inside_count; p++) leave(d, p);
    turn_back(d);
}

/* Returns how many steps it leaves out. */
static size_t put_diagram(const struct trace *trace, size_t steps_max, FILE *out) {
    size_t processes = trace->roster.processes + 1;
    struct diagram d = {.trace = trace, .out = out, .end = trace->count, .steps_max = steps_max};
    d.occurs = calloc(processes, sizeof *d.occurs);
    d.inside = calloc(processes, sizeof *d.inside);
    d.state = calloc(processes, sizeof *d.state);
    d.leads = calloc(processes, sizeof *d.leads);
    d.term = calloc(processes, sizeof *d.term);
    cv_assert(d.occurs && d.inside && d.state && d.leads && d.term);
    find_participants(&d);
    fputs("```mermaid\nsequenceDiagram\n", out);
    put_participants(&d);
    show_steps(&d);
    fputs("```\n", out);
    free(d.occurs);
    free(d.inside);
    free(d.state);
    free(d.leads);
    free(d.term);
    return d.steps_left;
}

/* As many steps as a viewer takes: at first as many as there may be, then fewer. */
void trace_write_mermaid(const struct trace *trace, const char *title, FILE *out) {
    size_t steps = STEPS_MAX, left = 0, letters = 0;
    char *text = NULL;
    do {
        if (text) steps = steps * LETTERS_MAX / letters;
        free(text);
        FILE *memory = open_memstream(&text, &letters);
        cv_assert(memory);
        left = put_diagram(trace, steps, memory);
        fclose(memory);
    } while (letters > LETTERS_MAX && steps > 1);
    if (title && *title) put_title(title, out);
    fputs(text, out);
    free(text);
    if (left)
        fprintf(out, _("\nOnly the first %d steps are shown; %zu more are left out.\n"), (int)steps,
                left);
    if (trace->full)
        fprintf(out, _("\nThe run went on: its trace ends after %d entries.\n"), TRACE_ENTRIES_MAX);
}
