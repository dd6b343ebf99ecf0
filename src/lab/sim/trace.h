/* The trace of a run: entries, each with its cause. */
#ifndef CV_LAB_SIM_TRACE_H
#define CV_LAB_SIM_TRACE_H

#include <stdio.h>

#include "lab/judge/election.h"
#include "lab/judge/mutex.h"
#include "lab/sim/config.h"
#include "lab/sim/topology.h"

enum trace_type {
    TR_NONE,
    TR_START,      /* process, a server */
    TR_ASK,        /* process: its application wants the lock */
    TR_DONE,       /* process: its application is done */
    TR_CAMPAIGN,   /* process: its application wants an election */
    TR_ELECTED,    /* process leads; arg: its id; term */
    TR_FOLLOWS,    /* process follows peer, when it is known; arg: its id; term */
    TR_LEADERLESS, /* process knows no leader any more */
    TR_SEND,       /* process to peer: kind, body; match: the first arrival, 0: none yet */
    TR_RECEIVE,    /* process from peer: kind, body; match: the sending */
    TR_LOST,       /* process from peer: kind, body; match: the sending */
    TR_TIMER,      /* process; arg: timer */
    TR_CHOICE,     /* process; arg: answer */
    TR_ENTER,      /* process; arg: fencing token */
    TR_LEAVE,      /* process */
    TR_WRITE,      /* process; arg: token; the resource accepted the write */
    TR_REFUSED,    /* process; arg: token; the resource refused the write */
    TR_CRASH,      /* process */
    TR_RECOVER,    /* process; arg: amnesia */
    TR_PAUSE,      /* process */
    TR_RESUME,     /* process */
    TR_SUSPECT,    /* process hears that peer is down */
    TR_TRUST,      /* process hears that peer is back */
    TR_PARTITION,
    TR_HEAL,
};

enum { TRACE_ENTRIES_MAX = 1000000, TRACE_BYTES_MAX = 256 << 20, TRACE_VIOLATED_MAX = 1600 };

struct trace_entry {
    uint64_t time_us, arg;
    enum trace_type type;
    cv_pid process, peer;
    uint32_t cause; /* the entry whose step led to this one; 0: none */
    uint32_t match;
    uint16_t kind;
    uint32_t term;
    uint32_t body, size; /* offset into trace.bytes */
    uint32_t note; /* offset into trace.text: the shown part of the state after the step, 0: none */
    uint32_t ways; /* offset into trace.bytes: of the edges of the process, 0: none */
    uint32_t round;   /* of the election that the process began in this step, 0: none */
    uint8_t standing; /* 1 + the value of the field that says what part it takes, 0: none */
    bool kept;        /* part of the cut */
    uint64_t event;   /* the number of the event that it is a part of; 0: the start */
};

/* The network as a picture shows it. */
struct trace_network {
    bool complete; /* there are no lists of neighbours */
    bool ring;
    uint32_t *offset; /* by pid: where its neighbours begin; one more at the end */
    cv_pid *neighbour;
    uint64_t *ids;  /* by pid; NULL: there are none */
    cv_pid *toward; /* by pid: its neighbour in a tree, itself at the root; NULL: there is none */
};

/* At the end of a deadlock one process waits for another, perhaps at a third. */
struct trace_wait {
    cv_pid who, whom, at;
};

struct trace {
    const struct cv_algorithm *algorithm;
    struct roster roster;
    struct trace_network network;
    struct trace_wait *wait;
    size_t wait_count;
    char violated[TRACE_VIOLATED_MAX]; /* what the judges say, a line each; empty: nothing */
    uint64_t violated_us;              /* when the first was violated */
    struct trace_entry *entry;         /* from 1 */
    size_t count, room;
    unsigned char *bytes;
    size_t bytes_used, bytes_room;
    char *text;
    size_t text_used, text_room;
    uint64_t event;      /* the number of the event that is under way */
    uint64_t from_event; /* events before this one are not recorded */
    bool recording;
    bool cut;          /* only kept entries are to be shown */
    size_t left_out;   /* entries that led here, too, long before */
    size_t left_later; /* entries of a wait after those that somebody would read */
    bool full;         /* what came after TRACE_ENTRIES_MAX entries is missing */
};

void trace_open(struct trace *trace, const struct sim_config *config);
void trace_close(struct trace *trace);
/* Appends an entry and returns its index, 0 when the trace is full. */
uint32_t trace_add(struct trace *trace, struct trace_entry entry);
/* Keeps the body of a message. */
void trace_body(struct trace *trace, uint32_t entry, const void *body, uint32_t size);
/* Keeps the neighbours and ids of the processes. */
void trace_network(struct trace *trace, const struct topology *topology);
/* Records the fields of a state that a reader may see, and what pictures show of it. */
void trace_state(struct trace *trace, uint32_t entry, const void *state, uint32_t rows,
                 cv_pid first);

/* Cuts the trace down to what led to the first violation: the causal past of both stays inside, or
 * of each wait that did not end, and the faults of the processes that took part. */
void trace_cut_lock(struct trace *trace, const struct mutex_judge *judge);
void trace_cut_election(struct trace *trace, const struct election_judge *judge);

static inline bool trace_shows(const struct trace *trace, size_t index) {
    return !trace->cut || trace->entry[index].kept;
}

enum { NUMBER_WORD_MAX = 16 };
const char *number_word(uint32_t number, char buffer[NUMBER_WORD_MAX]); /* "two" */
/* "GRANT number=1 fence=7" */
/* "p1 p2 | p3": who is on which side of a split network. */
char *trace_sides(const struct trace *trace, const struct trace_entry *entry, char *buffer,
                  size_t size);
char *trace_message(const struct trace *trace, const struct trace_entry *entry, char *buffer,
                    size_t size);

enum trace_format { TRACE_TEXT, TRACE_MERMAID, TRACE_JSON, TRACE_SVG, TRACE_GRAPH, TRACE_FORMATS };
/* Writes the entries that the trace shows.  A long picture has pages, numbered from 1; a page
 * beyond the last is the last. */
void trace_write(const struct trace *trace, enum trace_format format, const char *title,
                 uint64_t page, FILE *out);
void trace_write_text(const struct trace *trace, FILE *out);
void trace_write_entry(const struct trace *trace, size_t index, FILE *out); /* a line of it */
void trace_describe(const struct trace *trace, size_t index,
                    FILE *out); /* without time and state */
void trace_write_entry_json(const struct trace *trace, size_t index, FILE *out);
void trace_write_mermaid(const struct trace *trace, const char *title, FILE *out);
void trace_write_json(const struct trace *trace, const char *title, FILE *out);
void trace_write_svg(const struct trace *trace, const char *title, uint64_t page, FILE *out);
void trace_write_graph(const struct trace *trace, const char *title, uint64_t page, FILE *out);

#endif
