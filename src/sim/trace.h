/* What happened in a run, entry by entry, each with what caused it. */
#ifndef CV_SIM_TRACE_H
#define CV_SIM_TRACE_H

#include <stdio.h>

#include "judge/election.h"
#include "judge/mutex.h"
#include "sim/config.h"

enum trace_type {
    TR_NONE,
    TR_START,      /* process, one that serves */
    TR_ASK,        /* process: its application wants the lock */
    TR_DONE,       /* process: its application is done */
    TR_CAMPAIGN,   /* process: its application wants an election */
    TR_ELECTED,    /* process leads; arg: its id; term */
    TR_FOLLOWS,    /* process follows peer, when it is known; arg: its id; term */
    TR_LEADERLESS, /* process knows of no leader any more */
    TR_SEND,       /* process to peer: kind, body; match: the first arrival, 0: none yet */
    TR_RECEIVE,    /* process from peer: kind, body; match: the sending */
    TR_LOST,       /* process from peer: kind, body; match: the sending */
    TR_TIMER,      /* process; arg: timer */
    TR_CHOICE,     /* process; arg: answer */
    TR_ENTER,      /* process; arg: fencing token */
    TR_LEAVE,      /* process */
    TR_WRITE,      /* process; arg: token; the resource took the write */
    TR_REFUSED,    /* process; arg: token; it refused it */
    TR_CRASH,      /* process */
    TR_RECOVER,    /* process; arg: amnesia */
    TR_PAUSE,      /* process */
    TR_RESUME,     /* process */
    TR_SUSPECT,    /* process hears that peer is down */
    TR_TRUST,      /* process hears that peer is back */
    TR_PARTITION,
    TR_HEAL,
};

struct trace_entry {
    uint64_t time_us, arg;
    enum trace_type type;
    cv_pid process, peer;
    uint32_t cause; /* index of the entry whose step led to this one, 0: none */
    uint32_t match;
    uint16_t kind;
    uint32_t term;
    uint32_t body, size; /* offset into trace.bytes */
    uint32_t note; /* offset into trace.text: the shown part of the state after the step, 0: none */
    bool kept;     /* part of the cut */
};

struct trace {
    const struct cv_algorithm *algorithm;
    struct roster roster;
    struct trace_entry *entry; /* from 1 */
    size_t count, room;
    unsigned char *bytes;
    size_t bytes_used, bytes_room;
    char *text;
    size_t text_used, text_room;
    uint64_t from_event; /* events before this one are not recorded */
    bool recording;
    bool cut;  /* only kept entries are to be shown */
    bool full; /* what came after TRACE_ENTRIES_MAX entries is missing */
};
enum { TRACE_ENTRIES_MAX = 1000000, TRACE_BYTES_MAX = 256 << 20 };

void trace_open(struct trace *trace, const struct sim_config *config);
void trace_close(struct trace *trace);
/* Appends an entry and returns its index, 0 when the trace is full. */
uint32_t trace_add(struct trace *trace, struct trace_entry entry);
/* Keeps the body of a message. */
void trace_body(struct trace *trace, uint32_t entry, const void *body, uint32_t size);
/* Notes what a reader may see of a state. */
void trace_state(struct trace *trace, uint32_t entry, const void *state, uint32_t rows,
                 cv_pid first);

/* Cuts the trace down to what led to the first violation: the causes of both stays inside, or of
 * each unended wait, and the faults that they met. */
void trace_cut_lock(struct trace *trace, const struct mutex_judge *judge);
void trace_cut_election(struct trace *trace, const struct election_judge *judge);

static inline bool trace_shows(const struct trace *trace, size_t index) {
    return !trace->cut || trace->entry[index].kept;
}

enum { NUMBER_WORD_MAX = 16 };
const char *number_word(uint32_t number, char buffer[NUMBER_WORD_MAX]); /* "two" */
/* "GRANT number=1 fence=7" */
char *trace_message(const struct trace *trace, const struct trace_entry *entry, char *buffer,
                    size_t size);

enum trace_format { TRACE_TEXT, TRACE_MERMAID, TRACE_JSON, TRACE_SVG };
/* Writes the entries that the trace shows. */
void trace_write(const struct trace *trace, enum trace_format format, const char *title, FILE *out);
void trace_write_text(const struct trace *trace, FILE *out);
void trace_write_mermaid(const struct trace *trace, const char *title, FILE *out);
void trace_write_json(const struct trace *trace, const char *title, FILE *out);
void trace_write_svg(const struct trace *trace, const char *title, FILE *out);

#endif
